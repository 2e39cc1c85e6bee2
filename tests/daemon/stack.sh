#!/bin/bash
# The stack as users start it: a real Prometheus scrapes a real tslabd, every query of the dashboard returns numbers, an alert
# fires; and the checker finds what is wrong with a dashboard.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
for program in prometheus promtool python3 curl; do
    need $program "$program is not installed"
done
clean
export TSLABD=$TSLAB_BUILD_DIR/tslabd
"$TSLAB_SOURCE_DIR/scripts/VERIFICATION.sh" "$PWD/stack" || { tail -n 20 stack/*.log; exit 1; }
# Without arguments, too; the ports that are free are asked for.
read -r TSLABD_PORT PROMETHEUS_PORT PUSHGATEWAY_PORT < <(python3 -c 'import socket
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*[x.getsockname()[1] for x in s])')
export TSLABD_PORT PROMETHEUS_PORT PUSHGATEWAY_PORT STATE=$PWD/plain
trap '"$TSLAB_SOURCE_DIR/scripts/run-observability.sh" down' EXIT
"$TSLAB_SOURCE_DIR/scripts/run-observability.sh" | grep "tslabd: http://127.0.0.1:$TSLABD_PORT/" ||
    { echo "FAILED: nothing starts without arguments"; tail -n 20 plain/*.log; exit 1; }
curl -fsS "http://127.0.0.1:$TSLABD_PORT/metrics" | grep -q 'tslabd_load_info{pattern="burst"} 1' ||
    fail "another load than by default"
"$TSLAB_SOURCE_DIR/scripts/run-observability.sh" | grep -q "tslabd: runs" || fail "what runs is not told"
"$TSLAB_SOURCE_DIR/scripts/run-observability.sh" down
python3 "$TSLAB_SOURCE_DIR/tests/daemon/checker.py"
