#!/bin/bash
# plot_bench.py: its page, its tables, what it says of results it cannot use. Pictures: plot_bench_pictures.sh.
set -eu
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
rm -rf ./*
exec python3 "$TSLAB_SOURCE_DIR/tests/plots/plot_bench.py"
