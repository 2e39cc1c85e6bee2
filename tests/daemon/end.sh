#!/bin/bash
# tslabd told to end: drains, and does not hang. See end.py.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
rm -rf ./*
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/end.py"
