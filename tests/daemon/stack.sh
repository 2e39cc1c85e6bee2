#!/bin/bash
# The stack as users start it: a real Prometheus scrapes a real tslabd, every query of the dashboard returns numbers, an alert
# fires; and the checker finds what is wrong with a dashboard.
set -eu
for program in prometheus promtool python3 curl; do
    command -v $program >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done
rm -rf ./*
export TSLABD=$TSLAB_BUILD_DIR/tslabd
"$TSLAB_SOURCE_DIR/scripts/VERIFICATION.sh" "$PWD/stack" || { tail -n 20 stack/*.log; exit 1; }
exec python3 "$TSLAB_SOURCE_DIR/tests/daemon/checker.py"
