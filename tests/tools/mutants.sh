#!/bin/bash
# tests/mutants/run.py: its verdicts and exit codes, on a library of one function.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
exec python3 "$TSLAB_SOURCE_DIR/tests/tools/mutants.py"
