#!/bin/bash
# tslabd shows other processes: live, stopped, killed, another user's, and some whose segments lie. See processes.py.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/processes.py"
