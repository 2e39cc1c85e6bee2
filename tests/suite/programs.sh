#!/bin/bash
# The programs of bench/suite, see programs.py.
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
exec python3 "$TSLAB_SOURCE_DIR/tests/suite/programs.py"
