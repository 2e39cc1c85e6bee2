#!/bin/bash
# Each mutant of tests/mutants still applies: its file and its tests are there, its old text is in the sources exactly
# once. Whether the tests notice is for `make mutants`.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
exec python3 "$TSLAB_SOURCE_DIR/tests/mutants/run.py" --check
