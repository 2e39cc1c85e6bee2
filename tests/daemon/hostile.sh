#!/bin/bash
# tslabd against slow, hostile and very many clients, and without descriptors. See hostile.py.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
rm -rf ./*
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/hostile.py"
