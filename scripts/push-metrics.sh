#!/bin/sh
# Pushes metrics from tslabd, another URL or standard input to a Pushgateway, once or repeatedly.
#
# Usage: push-metrics.sh [OPTION]... [GATEWAY]     (default: http://127.0.0.1:9091)
#   --from URL        read the metrics from this URL; -: from standard input (default: http://127.0.0.1:8080/metrics)
#   --job NAME        push under this job name (default: temporal-slab)
#   --instance NAME   push under this instance name (default: the name of this machine)
#   --every S         push every S seconds; report a failure and try again (default: push once)
#   --timeout S       let each request take at most S seconds (default: 10)
# To push the metrics of any process, use tslab push, or run tslab web and give
# --from http://127.0.0.1:9465/processes/PID/metrics.
#
# Environment: TSLABD_PORT=8080 and PUSHGATEWAY_PORT=9091 set the default ports, as in run-observability.sh.
#
# Exit status: 0 pushed, 1 reading or pushing failed, 2 wrong command line or curl is missing.
set -u
wrong() {
    echo "push-metrics.sh: $*; see push-metrics.sh --help" >&2
    exit 2
}
from="" job=temporal-slab instance="" every=0 timeout=10 gateway="" hint=""
while [ $# -gt 0 ]; do
    case $1 in
    --from | --job | --instance | --every | --timeout)
        [ $# -ge 2 ] || wrong "$1 needs a value"
        case $1 in
        --from) from=$2 ;;
        --job) job=$2 ;;
        --instance) instance=$2 ;;
        --every) every=$2 ;;
        --timeout) timeout=$2 ;;
        esac
        shift
        ;;
    -h | --help) sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0"; exit 0 ;;
    -*) wrong "there is no option $1" ;;
    *)
        [ -z "$gateway" ] || wrong "give only one gateway, not $gateway and $1"
        gateway=${1%/}
        [ -n "$gateway" ] || wrong "the gateway must not be empty"
        ;;
    esac
    shift
done
number() { # NAME VALUE LEAST
    case $2 in '' | *[!0-9]* | ???????*) wrong "$1 takes a whole number of at most six digits, not '$2'" ;; esac
    [ "$2" -ge "$3" ] || wrong "$1 takes $3 or more, not $2"
}
number --every "$every" 0
number --timeout "$timeout" 1
[ -n "$from" ] && [ -n "$gateway" ] || hint=" (scripts/run-observability.sh starts a tslabd and a Pushgateway)"
from=${from:-http://127.0.0.1:${TSLABD_PORT:-8080}/metrics} gateway=${gateway:-http://127.0.0.1:${PUSHGATEWAY_PORT:-9091}}
case $gateway in http://?* | https://?*) ;; *) wrong "a gateway is an address like http://127.0.0.1:9091, not '$gateway'" ;; esac
case $from in http://?* | https://?* | -) ;; *) wrong "--from takes a URL or -, not '$from'" ;; esac
[ "$from" != - ] || [ "$every" -eq 0 ] || wrong "--every needs a URL, because standard input can be read only once"
[ -n "$instance" ] || instance=$(uname -n)
# They become a part of the gateway's path.
for word in "$job" "$instance"; do
    case $word in '' | *[!A-Za-z0-9._:-]* | . | ..) wrong "job and instance may contain only letters, digits and . _ : -, not '$word'" ;; esac
done
command -v curl >/dev/null || wrong "curl is needed (apt-get install curl)"

page=$(mktemp) || exit 1
nap=""
trap 'rm -f "$page"; [ -z "$nap" ] || kill "$nap" 2>/dev/null' EXIT
trap 'exit 1' INT TERM HUP

push() {
    if [ "$from" = - ]; then
        cat >"$page" || return 1
    elif ! said=$(curl -sS --fail --max-time "$timeout" --max-filesize 67108864 -o "$page" "$from" 2>&1); then
        echo "push-metrics.sh: $from: $said$hint" >&2
        return 1
    fi
    grep -q '^temporal_slab_' "$page" || {
        echo "push-metrics.sh: $from contains no metrics of temporal-slab" >&2
        return 1
    }
    # The gateway replaces the group, so series of labels that are gone do not stay.
    if ! said=$(curl -sS --fail-with-body --max-time "$timeout" -X PUT -H 'Content-Type: text/plain; version=0.0.4' \
        --data-binary "@$page" "$gateway/metrics/job/$job/instance/$instance" 2>&1); then
        echo "push-metrics.sh: $gateway: $said$hint" >&2
        return 1
    fi
}

[ "$every" -gt 0 ] || { push; exit $?; }
while :; do
    push
    # Waited for, and not run: a shell heeds a signal only after the command that it runs.
    sleep "$every" &
    nap=$!
    wait "$nap"
    nap=""
done
