#!/bin/bash
# promtool has nothing to say about the Prometheus text, and no label or number keeps it from reading it.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need promtool "promtool is not installed (Debian package prometheus)"
compile_test reports/print.c print

./print
for report in live full extreme empty; do
    promtool check metrics <$report.prometheus
    echo "$report: $(grep -c '^# TYPE' $report.prometheus) families, $(grep -vc '^#' $report.prometheus) series"
done

# It does look.
if sed 's/^# TYPE temporal_slab_net_slabs gauge/# TYPE temporal_slab_net_slabs counter/' full.prometheus |
    promtool check metrics >refused 2>&1; then
    echo "promtool takes a counter without _total" >&2
    exit 1
fi
