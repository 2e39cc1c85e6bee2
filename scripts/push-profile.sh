#!/bin/sh
# Pushes the heap profile of a process to a Pyroscope server (POST /ingest, format=pprof), once or repeatedly. Servers
# that scrape, such as Parca and Grafana Alloy, can fetch the profile from /processes/PID/profile of `tslab web`.
#
# Usage: push-profile.sh --pid N [OPTION]... [SERVER]     (default: http://127.0.0.1:4040)
#   --pid N           read this process, started with TSLAB_OPTIONS=segment=1,profile_bytes=512k
#   --name NAME       push under this name, optionally with labels: orders{env=test} (default: the program's name)
#   --tslab PROGRAM   run this tslab (default: build/tslab if it exists, otherwise tslab)
#   --every S         push every S seconds until the process ends; report a failure and try again (default: push once)
#   --timeout S       let each request take at most S seconds (default: 10)
#
# Pushes the memory in use (inuse_space, inuse_objects), with the labels of phases as labels of samples. Allocations
# since the start are not pushed, because the server adds up pushed sums.
#
# Exit status: 0 pushed, 1 reading or pushing failed, 2 wrong command line or curl is missing.
set -u
wrong() {
    echo "push-profile.sh: $*; see push-profile.sh --help" >&2
    exit 2
}
pid="" name="" every=0 timeout=10 server="" tslab=""
while [ $# -gt 0 ]; do
    case $1 in
    --pid | --name | --tslab | --every | --timeout)
        [ $# -ge 2 ] || wrong "$1 needs a value"
        case $1 in
        --pid) pid=$2 ;;
        --name) name=$2 ;;
        --tslab) tslab=$2 ;;
        --every) every=$2 ;;
        --timeout) timeout=$2 ;;
        esac
        shift
        ;;
    -h | --help) sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p;}' "$0"; exit 0 ;;
    -*) wrong "there is no option $1" ;;
    *)
        [ -z "$server" ] || wrong "give only one server, not $server and $1"
        server=${1%/}
        ;;
    esac
    shift
done
number() { # NAME VALUE LEAST
    case $2 in '' | *[!0-9]* | ??????????*) wrong "$1 takes a whole number of at most nine digits, not '$2'" ;; esac
    [ "$2" -ge "$3" ] || wrong "$1 takes $3 or more, not $2"
}
[ -n "$pid" ] || wrong "no process to read: give --pid N"
number --pid "$pid" 1
number --every "$every" 0
number --timeout "$timeout" 1
server=${server:-http://127.0.0.1:4040}
case $server in http://?* | https://?*) ;; *) wrong "a server is an address like http://127.0.0.1:4040, not '$server'" ;; esac
[ -n "$name" ] || name=$(tr -c 'A-Za-z0-9._\n-' _ 2>/dev/null <"/proc/$pid/comm") || name=process
case $name in *[!A-Za-z0-9._:{}=,/-]*) wrong "--name may contain only letters, digits and . , _ : / - { } =, not '$name'" ;; esac
if [ -z "$tslab" ]; then
    tslab=$(dirname "$0")/../build/tslab
    [ -x "$tslab" ] || tslab=$(command -v tslab) || wrong "there is no tslab: run make tslab, or give --tslab PROGRAM"
fi
command -v curl >/dev/null || wrong "curl is needed (apt-get install curl)"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
in_url=$(printf '%s' "$name" | sed 's/{/%7B/g; s/}/%7D/g; s/=/%3D/g; s/,/%2C/g; s|/|%2F|g; s/:/%3A/g')
cat >"$scratch/types.json" <<'END'
{"inuse_space": {"units": "bytes", "display-name": "inuse_space", "aggregation": "average", "cumulative": false, "sampled": false},
 "inuse_objects": {"units": "objects", "display-name": "inuse_objects", "aggregation": "average", "cumulative": false, "sampled": false}}
END

# A profile covers the time since the previous push.
since=$(($(date +%s) - 10))
push() {
    "$tslab" profile --pid "$pid" -o "$scratch/heap.pb.gz" >/dev/null 2>"$scratch/why" || {
        echo "push-profile.sh: $(tail -n 1 "$scratch/why")" >&2
        return 1
    }
    now=$(date +%s)
    status=$(curl -sS --max-time "$timeout" -o "$scratch/answer" -w '%{http_code}' \
        -F "profile=@$scratch/heap.pb.gz;filename=profile.pprof" \
        -F "sample_type_config=@$scratch/types.json;filename=sample_type_config.json" \
        "$server/ingest?name=$in_url&from=$since&until=$now&format=pprof&spyName=tslab" 2>"$scratch/why") || {
        echo "push-profile.sh: $server: $(sed 's/^curl: ([0-9]*) //' "$scratch/why")" >&2
        return 1
    }
    case $status in
    2??) ;;
    *)
        echo "push-profile.sh: $server/ingest answered $status: $(head -c 200 "$scratch/answer" | tr -c '[:print:]' ' ')" >&2
        return 1
        ;;
    esac
    since=$now
    echo "push-profile.sh: pid $pid pushed to $server as $name"
}

[ "$every" -ne 0 ] || { push; exit; }
while :; do
    push || [ -d "/proc/$pid" ] || exit 1
    sleep "$every"
done
