#!/bin/bash
# tslabd asked for /metrics by 100 connections at a time while its load allocates. See load.py.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
rm -rf ./*
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/load.py"
