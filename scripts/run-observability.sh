#!/bin/sh
# Starts what there is of the stack on 127.0.0.1, and stops it: tslabd, Prometheus, Pushgateway (the latter two from the
# distribution's packages). Grafana is in no distribution: share/compose.yml has it for machines with Docker.
#
# Usage: run-observability.sh [up [FLAG OF TSLABD]...]   default: --pattern=burst; what runs already is told
#        run-observability.sh status
#        run-observability.sh down
#
# Environment: TSLABD_PORT=8080 PROMETHEUS_PORT=9090 PUSHGATEWAY_PORT=9091 SCRAPE=5s
#              TSLABD=program (default: the newest of build/*/, or that of PATH; without any it is built)
#              STATE=folder of pids, logs and data (default: build/observability)
#
# Exit status: 0 done, 1 something does not start or does not run, 2 wrong command line.
set -u
case ${TSLABD:-} in [!/]*/*) TSLABD=$PWD/$TSLABD ;; esac # of where it was typed
cd "$(dirname "$0")/.." || exit 1
: "${TSLABD_PORT:=8080}" "${PROMETHEUS_PORT:=9090}" "${PUSHGATEWAY_PORT:=9091}" "${SCRAPE:=5s}"
: "${STATE:=build/observability}"
programs="tslabd prometheus pushgateway"

die() {
    echo "run-observability.sh: $*" >&2
    exit 1
}

# A process is its id and the time it started: an id alone may be somebody else's by now.
start_time() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
runs() { # NAME: prints the id while it is ours
    [ -f "$STATE/$1.pid" ] || return 1
    read -r pid started <"$STATE/$1.pid" || return 1
    [ -n "$started" ] && [ "$(start_time "$pid")" = "$started" ] && echo "$pid"
}

begin() { # NAME PROGRAM ARGUMENT...
    name=$1
    shift
    "$@" </dev/null >"$STATE/$name.log" 2>&1 &
    echo "$! $(start_time $!)" >"$STATE/$name.pid"
}

answers() { # NAME URL: waits until it does
    tries=0
    until curl -fsS -o /dev/null --max-time 5 "$2" 2>/dev/null; do
        runs "$1" >/dev/null || {
            tail -n 5 "$STATE/$1.log" >&2
            die "$1 did not start; its log is $STATE/$1.log"
        }
        tries=$((tries + 1))
        [ $tries -lt 600 ] || die "$1 does not answer at $2"
        sleep 0.1
    done
    echo "$1: $2 (pid $(runs "$1"))"
}

find_tslabd() {
    [ -n "${TSLABD:-}" ] && { echo "$TSLABD"; return; }
    # shellcheck disable=SC2012  # names of our own
    found=$(ls -t build/*/tslabd 2>/dev/null | head -n 1)
    [ -n "$found" ] && { echo "$found"; return; }
    command -v tslabd && return
    mkdir -p "$STATE" || return 1
    echo "tslabd: is built, which takes some minutes; see $STATE/build.log" >&2
    { scripts/install-deps.sh --root build daemon; cmake --preset install && cmake --build --preset install --target tslabd; } \
        >"$STATE/build.log" 2>&1 </dev/null && echo build/install/tslabd
}

up() {
    command -v curl >/dev/null || die "curl is needed: apt-get install curl"
    tslabd=$(find_tslabd) || die "there is no tslabd, and it does not build; see $STATE/build.log"
    mkdir -p "$STATE" || exit 1
    [ $# -gt 0 ] || set -- --pattern=burst
    begin tslabd "$tslabd" --listen="127.0.0.1:$TSLABD_PORT" "$@"
    answers tslabd "http://127.0.0.1:$TSLABD_PORT/"

    gateway=$(command -v prometheus-pushgateway || command -v pushgateway)
    if [ -n "$gateway" ]; then
        begin pushgateway "$gateway" --web.listen-address="127.0.0.1:$PUSHGATEWAY_PORT"
        answers pushgateway "http://127.0.0.1:$PUSHGATEWAY_PORT/-/ready"
    else
        echo "pushgateway: not installed (apt-get install prometheus-pushgateway)"
    fi

    if ! command -v prometheus >/dev/null; then
        echo "prometheus: not installed (apt-get install prometheus)"
        return
    fi
    cp share/prometheus/alerts.yml share/prometheus/recording.yml "$STATE/" || exit 1
    sed -e "s/127\.0\.0\.1:8080/127.0.0.1:$TSLABD_PORT/" -e "s/127\.0\.0\.1:9091/127.0.0.1:$PUSHGATEWAY_PORT/" \
        -e "s/_interval: 5s/_interval: $SCRAPE/" share/prometheus/prometheus.yml >"$STATE/prometheus.yml" || exit 1
    [ -n "$gateway" ] || sed -i '/job_name: pushgateway/,$d' "$STATE/prometheus.yml"
    begin prometheus prometheus --config.file="$STATE/prometheus.yml" --storage.tsdb.path="$STATE/data" \
        --storage.tsdb.retention.time=1d --web.listen-address="127.0.0.1:$PROMETHEUS_PORT"
    answers prometheus "http://127.0.0.1:$PROMETHEUS_PORT/-/ready"
    echo "dashboard for Grafana: share/grafana/temporal-slab.json (with Docker: share/compose.yml)"
}

down() {
    for name in $programs; do
        if pid=$(runs "$name"); then
            kill "$pid"
            tries=0
            while runs "$name" >/dev/null && [ $tries -lt 150 ]; do
                sleep 0.1
                tries=$((tries + 1))
            done
            if runs "$name" >/dev/null; then
                kill -9 "$pid"
                echo "$name: killed"
            else
                echo "$name: ended"
            fi
        fi
        rm -f "$STATE/$name.pid"
    done
}

status() {
    failed=0
    for name in $programs; do
        if pid=$(runs "$name"); then echo "$name: runs (pid $pid)"; else echo "$name: does not run"; fi
    done
    runs tslabd >/dev/null && runs prometheus >/dev/null || failed=1
    return $failed
}

any_runs() {
    for name in $programs; do
        if runs "$name" >/dev/null; then return 0; fi
    done
    return 1
}

case ${1:-up} in
up)
    if [ $# -eq 0 ] && any_runs; then
        status
        exit $?
    fi
    [ $# -eq 0 ] || shift
    for name in $programs; do
        if runs "$name" >/dev/null; then die "$name runs already; 'run-observability.sh down' ends it"; fi
    done
    # What has started is ended again when the rest does not.
    (up "$@") || { down; exit 1; }
    ;;
down) down ;;
status) status ;;
-h | --help) sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0" ;;
*)
    echo "usage: run-observability.sh [up [flag of tslabd]...] | status | down" >&2
    exit 2
    ;;
esac
