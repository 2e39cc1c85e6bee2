#!/bin/bash
# plot_bench.py: its pictures, and a page of real runs. They need matplotlib, which the system's python3 may have where another
# python3 comes first.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import matplotlib' 2>/dev/null; then
        clean
        exec "$python" "$TSLAB_SOURCE_DIR/tests/plots/plot_bench_pictures.py"
    fi
done
skip "no python3 with matplotlib (make deps FOR=plot, about 100 MB)"
