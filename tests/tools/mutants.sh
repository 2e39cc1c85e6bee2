#!/bin/bash
# tests/mutants/run.py: its verdicts and exit codes, on a library of one function.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
exec python3 "$TSLAB_SOURCE_DIR/tests/tools/mutants.py"
