#!/bin/bash
# What tslab says of a process of which much is easily overlooked.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
unset TSLAB_OPTIONS NO_COLOR
build_tslab "$PWD/tslab"
compile_test cli/outside.c outside
PYTHONPATH=$TSLAB_SOURCE_DIR/tests/daemon python3 "$TSLAB_SOURCE_DIR/tests/cli/outside.py" ./tslab ./outside
