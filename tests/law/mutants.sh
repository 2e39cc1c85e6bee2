#!/bin/bash
# Each mutant of tests/mutants still applies: its file and its tests are there, its old text is in the sources exactly
# once. Whether the tests notice is for `make mutants`.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
exec python3 "$TSLAB_SOURCE_DIR/tests/mutants/run.py" --check
