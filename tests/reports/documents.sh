#!/bin/bash
# The JSON document and the Prometheus text say what the C fields hold, of reports full of hostile labels, of extremes, of
# nothing and of an allocator at work; documents follow the schema, and damaged ones do not.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
source=$TSLAB_SOURCE_DIR
compile_test reports/print.c print

./print
for report in full extreme empty live; do
    python3 "$source/tests/reports/values.py" $report.fields $report.json $report.prometheus
done

# The interpreter of the distribution has its jsonschema; another one in front may have none.
for python in python3 /usr/bin/python3 ""; do
    [ -z "$python" ] || ! "$python" -c 'from jsonschema import Draft202012Validator' 2>/dev/null || break
done
[ -n "$python" ] || skip "no python3 with jsonschema 4 (Debian package python3-jsonschema)"
"$python" "$source/tests/reports/schema.py" "$source/share/stats.schema.json" full.json live.json extreme.json empty.json
