#!/bin/bash
# tslabd told to end: drains, and does not hang. See end.py.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/end.py"
