#!/bin/bash
# promtool has nothing to say about the Prometheus text, and no label or number keeps it from reading it.
set -eu
source=$TSLAB_SOURCE_DIR
command -v promtool >/dev/null || { echo "skipped: promtool is not installed (Debian package prometheus)"; exit 77; }
cc -std=gnu11 -O1 -pthread -I"$source/include" -I"$source/src" -I"$source/tests" "$source/tests/reports/print.c" \
    "$TSLAB_BUILD_DIR/libtemporal_slab.a" -lm -o print

for report in live full extreme empty; do
    ./print $report prometheus >$report.prometheus
    promtool check metrics <$report.prometheus
    echo "$report: $(grep -c '^# TYPE' $report.prometheus) families, $(grep -vc '^#' $report.prometheus) series"
done

# It does look: a family that is not in one piece, and a name it does not like.
if { cat full.prometheus; grep -m1 '^temporal_slab_net_slabs ' full.prometheus; } | promtool check metrics >refused 2>&1; then
    echo "promtool takes a series twice" >&2
    exit 1
fi
