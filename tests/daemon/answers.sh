#!/bin/bash
# tslabd: routes, hosts, formats, counters, flags. See answers.py.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
rm -rf ./*
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/answers.py"
