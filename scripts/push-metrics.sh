#!/bin/sh
# Pushes the metrics of a tslabd, of another URL, or of standard input to a Pushgateway, once or in a loop.
#
# Usage: push-metrics.sh [OPTION]... [GATEWAY]     (default: http://127.0.0.1:9091)
#   --from URL        of metrics (default: http://127.0.0.1:8080/metrics); - for standard input
#   --job NAME        (default: temporal-slab)
#   --instance NAME   (default: the name of this machine)
#   --every S         again and again; a failure is told and tried again (default: once)
#   --timeout S       of each request (default: 10)
# Of any process: tslab push, or --from http://127.0.0.1:9465/processes/PID/metrics of tslab web.
#
# Environment: TSLABD_PORT=8080 PUSHGATEWAY_PORT=9091, the ports of the defaults, as of run-observability.sh.
#
# Exit status: 0 pushed, 1 could not be read or pushed, 2 wrong command line or no curl.
set -u
wrong() {
    echo "push-metrics.sh: $*; see the head of the script" >&2
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
        [ -z "$gateway" ] || wrong "one gateway at a time: $gateway and $1"
        gateway=${1%/}
        [ -n "$gateway" ] || wrong "an empty word is no gateway"
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
[ "$from" != - ] || [ "$every" -eq 0 ] || wrong "standard input can be read once only"
[ -n "$instance" ] || instance=$(uname -n)
# They become a part of the gateway's path.
for word in "$job" "$instance"; do
    case $word in '' | *[!A-Za-z0-9._:-]* | . | ..) wrong "job and instance have letters, digits and . _ : - only, not '$word'" ;; esac
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
        echo "push-metrics.sh: $from has no metrics of temporal-slab" >&2
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
