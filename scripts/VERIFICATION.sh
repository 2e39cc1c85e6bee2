#!/bin/sh
# Checks the whole stack in one command: starts it on free ports, asks every route, has promtool look at metrics, alerts and
# configuration, runs every query of the dashboard, sees an alert fire, and ends it all.
# Usage: VERIFICATION.sh [FOLDER]    FOLDER: for logs and data (default: a temporary one, removed at the end)
# Exit status: 0 all is well, 1 something is not. Environment: TSLABD, as run-observability.sh.
set -u
case ${1:-} in -*)
    echo "VERIFICATION.sh: no option is called '$1'; usage: VERIFICATION.sh [FOLDER]" >&2
    exit 2
    ;;
esac
from=$PWD # what is not a whole path is of where it was typed
case ${TSLABD:-} in [!/]*/*) TSLABD=$from/$TSLABD ;; esac
cd "$(dirname "$0")/.." || exit 1
for program in prometheus promtool curl python3; do
    command -v $program >/dev/null || {
        echo "VERIFICATION.sh: $program is missing: apt-get install prometheus curl python3" >&2
        exit 1
    }
done

free_ports='import socket
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*[x.getsockname()[1] for x in s])'
# shellcheck disable=SC2046  # three words
set -- "${1:-}" $(python3 -c "$free_ports")
folder=$1
case $folder in [!/]*) folder=$from/$folder ;; esac
export TSLABD_PORT="$2" PROMETHEUS_PORT="$3" PUSHGATEWAY_PORT="$4" SCRAPE=1s STATE="${folder:-$(mktemp -d)}"
tslabd=http://127.0.0.1:$TSLABD_PORT prometheus=http://127.0.0.1:$PROMETHEUS_PORT

finish() {
    scripts/run-observability.sh down || failures=$((failures + 1))
    [ -n "$folder" ] || rm -rf "$STATE"
}
failures=0
trap 'finish; exit 1' INT TERM
check() { # WORDS COMMAND...
    words=$1
    shift
    if "$@" >"$STATE/said" 2>&1; then
        echo "ok      $words"
    else
        echo "FAILED  $words"
        sed 's/^/        /' "$STATE/said" | head -n 20
        failures=$((failures + 1))
    fi
}
answers() { curl -fsS --max-time 10 -o "$STATE/answer" "$tslabd$1"; }
lint() { answers /metrics && promtool check metrics <"$STATE/answer"; }
fires() { # ALERT: waits for it
    tries=0
    until curl -fsS "$prometheus/api/v1/alerts" | grep -q "\"alertname\":\"$1\"[^}]*}[^}]*}[^}]*\"state\":\"firing\""; do
        tries=$((tries + 1))
        [ $tries -lt 900 ] || return 1
        sleep 0.2
    done
}

# Phases that want more than the allocator may have: allocations fail, and the alert for that has to fire. In shared mode, so that
# every panel has something to show.
mkdir -p "$STATE"
export TSLAB_OPTIONS=shared=1
check "the stack starts" scripts/run-observability.sh up --pattern=steady \
    --objs_min=500 --objs_max=2000 --req_rate=500 --threads=2 --phases=ring --max_bytes=1048576 --sampling_period=16
if [ $failures -eq 0 ]; then
    for route in / /metrics /stats.json /doctor /healthz /readyz; do
        check "tslabd answers $route" answers $route
    done
    check "promtool: metrics" lint
    check "promtool: alerts" promtool check rules share/prometheus/alerts.yml share/prometheus/recording.yml
    check "promtool: configuration" promtool check config "$STATE/prometheus.yml"
    check "the dashboard's queries return numbers, and the alerts are evaluated" tools/check_dashboard.py \
        --prometheus "$prometheus" --metrics "$tslabd/metrics" --dashboard share/grafana/temporal-slab.json \
        --fleet share/grafana/temporal-slab-fleet.json \
        --alerts share/prometheus/alerts.yml
    grep -E '^[0-9]+ (panels|alerts)' "$STATE/said" | sed 's/^/        /'
    check "AllocationsRefused fires" fires AllocationsRefused
    check "what runs is told to who gives no arguments" scripts/run-observability.sh
    if command -v prometheus-pushgateway >/dev/null || command -v pushgateway >/dev/null; then
        check "metrics are pushed without arguments" scripts/push-metrics.sh
    else
        echo "left out: push-metrics.sh without arguments, for there is no Pushgateway (apt-get install prometheus-pushgateway)"
    fi
    check "everything still runs" scripts/run-observability.sh status
fi
finish
echo "$failures failed"
[ $failures -eq 0 ]
