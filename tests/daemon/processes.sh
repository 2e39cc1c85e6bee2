#!/bin/bash
# tslabd shows other processes: live, stopped, killed, another user's, and some whose segments lie. See processes.py.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
rm -rf ./*
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/processes.py"
