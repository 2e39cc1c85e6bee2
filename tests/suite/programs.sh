#!/bin/bash
# The programs of bench/suite, see programs.py.
command -v python3 >/dev/null || { echo "skipped: no python3" && exit 77; }
exec python3 "$TSLAB_SOURCE_DIR/tests/suite/programs.py"
