#!/bin/bash
# compare_report.py: what it writes of short runs, wrong words, ctrl-C, runs that fail.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
exec python3 "$TSLAB_SOURCE_DIR/tests/tools/compare_report.py"
