#!/bin/bash
# Alert rules: promtool accepts them, each has a case in which it fires and one in which it does not, and all cases hold.
# Every metric that they name exists: daemon/stack looks at that with a live tslabd.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need promtool "promtool is not installed (Debian package prometheus)"
clean
cp "$TSLAB_SOURCE_DIR/share/prometheus/"*.yml "$TSLAB_SOURCE_DIR/tests/daemon/"*_test.yml .
promtool check config prometheus.yml
promtool test rules alerts_test.yml recording_test.yml

# Every record has a case or is made like one that has: a sum, a greatest or a rate of a figure that the library reports.
for name in $(grep -o 'temporal_slab_[a-z_]*' recording.yml | sort -u); do
    grep -q "\`${name#temporal_slab_}\`" "$TSLAB_SOURCE_DIR/docs/metrics.md" || complain "recording.yml names $name, which docs/metrics.md does not have"
done

for alert in $(sed -n 's/^ *- alert: //p' alerts.yml); do
    fires=$(grep -A1 "alertname: $alert\$" alerts_test.yml | grep -c exp_alerts || true)
    cases=$(grep -c "alertname: $alert\$" alerts_test.yml || true)
    if [ "$fires" -eq 0 ] || [ "$cases" -le "$fires" ]; then
        complain "$alert has $fires cases that fire, of $cases"
    fi
    [ "$(grep -A12 -- "- alert: $alert\$" alerts.yml | grep -m1 runbook_url)" = \
        "          runbook_url: '{{ or \$externalLabels.slab_docs \"docs\" }}/monitoring.md#${alert,,}'" ] ||
        complain "$alert has no runbook_url to its section"
    grep -q "^### $alert\$" "$TSLAB_SOURCE_DIR/docs/monitoring.md" || complain "docs/monitoring.md has nothing on $alert"
done
finish
