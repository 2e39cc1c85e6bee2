#!/bin/bash
# compare_report.py: what it writes of short runs, wrong words, ctrl-C, runs that fail.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
exec python3 "$TSLAB_SOURCE_DIR/tests/tools/compare_report.py"
