#!/bin/bash
# tslabd asked for /metrics by 100 connections at a time while its load allocates. See load.py.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/load.py"
