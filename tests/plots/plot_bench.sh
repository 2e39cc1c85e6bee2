#!/bin/bash
# plot_bench.py: its page, its tables, what it says of results it cannot use. Pictures: plot_bench_pictures.sh.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
clean
exec python3 "$TSLAB_SOURCE_DIR/tests/plots/plot_bench.py"
