#!/bin/sh
# The same load inside a memory limit, allocator by allocator: who survives.
#
# usage: memory_limit.sh [--method auto|cgroup2|cgroup1|systemd|watch|data] [--limit-mb N] [--build DIR] [--peers FILE]
#                        [--only "NAME ..."] [--load "PROGRAM ARGUMENT ..."] [--json FILE]
#
# The load (default: sustained_phase_shifts, phases of shifting sizes, 1 % of whose objects live for 40 phases more) runs
# once for each allocator. The limit is the first of these that the machine allows; which one it was is printed:
#   cgroup2   a control group for each run, below the one we are in; memory.max, no swap; nothing of the parent is changed
#   systemd   systemd-run with MemoryMax, a scope of the user's or, for root, of the system's
#   watch     resident memory sampled every millisecond, killed above the limit (watch_limit.py): close to a group
# and, only when asked for:
#   cgroup1   as cgroup2, with version 1. There a group has no way to say that others may make groups below it
#   data      RLIMIT_DATA: limits writable address space, resident or not, so allocations fail instead of a kill
# Verdicts: survives, killed (over the limit), out of memory (an allocation failed), failed (anything else).
# Exit code: 0 whatever the verdicts, 1 when a run failed, 2 wrong arguments, 77 when no method works, 130 interrupted.
#
# Whatever ends this script, SIGKILL included, a helper that listens at a pipe sees it end, ends the load that runs and
# removes its group and the scratch folder. $scratch/load has the process group of the load, $scratch/group its control group.
# shellcheck disable=SC2317,SC2086,SC3045  # functions called by name; words; dash and bash have ulimit -d
set -u
here=$(dirname "$(readlink -f "$0")")
root=$(cd "$here/../.." && pwd)
command="memory_limit.sh $*"
proc=${MEMORY_LIMIT_PROC:-/proc} # tests show it mounts and groups of their own
method=auto limit=64 build=$root/build/bench peers=$root/build/peers/peers.tsv only="" json=""
load="sustained_phase_shifts 200 40 1 0 1 --phase-kb 20480 --pin-cycles 40 --sessions 0"

usage() { sed -n '4,5s/^# *//p' "$0"; }
while [ $# -gt 0 ]; do
    case $1 in
    --help) usage && exit 0 ;;
    --method | --limit-mb | --build | --peers | --only | --load | --json)
        [ $# -ge 2 ] || { echo "memory_limit.sh: $1 needs a value" >&2; exit 2; }
        case $1 in
        --method) method=$2 ;;
        --limit-mb) limit=$2 ;;
        --build) build=$2 ;;
        --peers) peers=$2 ;;
        --only) only=$2 ;;
        --load) load=$2 ;;
        --json) json=$2 ;;
        esac
        shift 2
        ;;
    *)
        echo "memory_limit.sh: '$1' is not an argument" >&2
        usage >&2
        exit 2
        ;;
    esac
done
case $limit in '' | *[!0-9]* | 0) echo "memory_limit.sh: --limit-mb takes a number of MiB, not '$limit'" >&2 && exit 2 ;; esac
case $method in auto | cgroup2 | cgroup1 | systemd | watch | data) ;; *)
    echo "memory_limit.sh: --method takes auto, cgroup2, cgroup1, systemd, watch or data, not '$method'" >&2
    exit 2
    ;;
esac
program=$build/suite/${load%% *}
[ -x "$program" ] || { echo "memory_limit.sh: no $program: cmake --preset bench && cmake --build --preset bench" >&2; exit 2; }
[ -z "$json" ] || : >"$json" || exit 1
# The members of an object, without its braces.
machine=$(cd "$root" && "$(readlink -f "$build")/tslab_bench" --machine | sed '1d;$d')
[ -n "$machine" ] || { echo "memory_limit.sh: no $build/tslab_bench" >&2; exit 2; }

# ---- the helper that cleans up -----------------------------------------------------------

# shellcheck disable=SC2016  # for the inner shell
helper='
trap "" INT TERM HUP
cat "$1/alive" # ends when the last that holds the other end has ended
tries="1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"
if read -r load <"$1/load"; then
    kill -s KILL -- "-$load" "$load"
    for _ in $tries; do
        kill -s 0 -- "-$load" || break # what is killed may take a moment to die
        sleep 0.1
    done
fi
read -r group <"$1/group" || group=
for _ in $tries; do
    [ -d "$group" ] || break
    while read -r pid; do kill -s KILL "$pid"; done <"$group/cgroup.procs"
    rmdir "$group" && break
    sleep 0.1
done
rm -rf "$1"'
scratch=$(mktemp -d) || exit 1
mkfifo "$scratch/alive" || { rmdir "$scratch"; exit 1; }
setsid=$(command -v setsid)
$setsid sh -c "$helper" helper "$scratch" </dev/null >/dev/null 2>&1 &
helper_pid=$!
exec 9>"$scratch/alive"
complete=false chosen=""
at_exit() {
    [ -z "$json" ] || [ -z "$chosen" ] || write_json
    exec 9>&-
    wait $helper_pid
}
trap at_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- methods: each says in $why what is in its way ---------------------------------------

why=""
# below FOLDER: makes sure that a group can be made and limited there; FOLDER becomes $parent.
below() {
    parent=${1%/}
    if ! new_group; then
        why="no group can be made below our own"
    elif limit_group 2>/dev/null; then
        drop_group
        return 0
    else
        why="the memory of a group of our own cannot be limited"
    fi
    drop_group
    return 1
}
can_cgroup2() {
    mount=$(awk '$3 == "cgroup2" { print $2; exit }' "$proc/mounts")
    [ -n "$mount" ] || { why="no cgroup2 is mounted"; return 1; }
    own=$mount$(sed -n 's/^0:://p' "$proc/self/cgroup")
    [ -d "$own" ] || { why="our group is not below $mount"; return 1; }
    grep -qw memory "$own/cgroup.controllers" 2>/dev/null || { why="our group has no memory controller in cgroup v2"; return 1; }
    grep -qw memory "$own/cgroup.subtree_control" 2>/dev/null || { why="our group does not pass its memory controller on"; return 1; }
    limit_file=memory.max peak_file=memory.peak kills_file=memory.events
    below "$own"
}
can_cgroup1() {
    mount=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' "$proc/mounts")
    [ -n "$mount" ] || { why="no memory controller of cgroup v1 is mounted"; return 1; }
    own=$mount$(sed -n 's/^[0-9]*:\([^:]*,\)\{0,1\}memory\(,[^:]*\)\{0,1\}://p' "$proc/self/cgroup")
    [ -d "$own" ] || { why="our group is not below $mount"; return 1; }
    limit_file=memory.limit_in_bytes peak_file=memory.max_usage_in_bytes kills_file=memory.oom_control
    below "$own"
}
can_systemd() {
    command -v systemd-run >/dev/null 2>&1 || { why="no systemd-run"; return 1; }
    if [ "$(id -u)" = 0 ]; then scope=--system; else scope=--user; fi
    timeout 10 systemd-run -q $scope --scope -p "MemoryMax=${limit}M" -p MemorySwapMax=0 true 2>/dev/null && return 0
    why="systemd-run cannot make a scope"
    return 1
}
can_watch() { command -v python3 >/dev/null 2>&1 || { why="no python3"; return 1; }; }
can_data() { (ulimit -d $((limit * 1024))) 2>/dev/null || { why="RLIMIT_DATA cannot be set"; return 1; }; }

# A group for one run, limited; it is dropped when the run is over, and what has died there may take a moment to leave.
new_group() {
    group=$parent/temporal-slab-limit.$$
    echo "$group" >"$scratch/group"
    mkdir "$group" 2>/dev/null
}
limit_group() {
    [ -w "$group/cgroup.procs" ] && echo "${limit}M" >"$group/$limit_file" || return 1
    if [ -w "$group/memory.swap.max" ]; then echo 0 >"$group/memory.swap.max"; fi
    if [ -w "$group/memory.memsw.limit_in_bytes" ]; then echo "${limit}M" >"$group/memory.memsw.limit_in_bytes"; fi
    if [ "$limit_file" = memory.limit_in_bytes ]; then echo 0 >"$group/memory.swappiness"; fi
}
drop_group() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -d "$group" ] || break
        rmdir "$group" 2>/dev/null && break
        sleep 0.1
    done
    rm -f "$scratch/group"
}

case $method in auto) methods="cgroup2 systemd watch" ;; *) methods=$method ;; esac
for m in $methods; do
    if "can_$m"; then chosen=$m && break; fi
    echo "not $m: $why"
    echo "$m: $why" >>"$scratch/not"
done
[ -n "$chosen" ] || { echo "skipped: no way to limit memory on this machine"; exit 77; }
echo "limit: $limit MiB by $chosen"
echo "load: $load"

# ---- runs --------------------------------------------------------------------------------

# start WORDS...: the load in a process group of its own, whose number the helper can find; we can be interrupted meanwhile.
start() {
    # shellcheck disable=SC2016
    sh -c 'echo $$ >"$1" && shift && exec timeout -k 10 600 "$@"' start "$scratch/load" "$@" >"$scratch/out" 2>"$scratch/err" 9>&- &
    wait $! 2>/dev/null # the shell would tell of a kill
}

# run ALLOCATOR PRELOAD: the load in the limit; its report in $scratch/report.
run() {
    word=malloc
    [ "$1" = tslab ] && word=tslab
    set -- "$2" "$program" ${load#* } --allocator $word "--json=$scratch/report"
    [ -n "$1" ] && preload="LD_PRELOAD=$1" || preload=NO_PRELOAD=
    shift
    # shellcheck disable=SC2016
    case $chosen in
    cgroup*)
        new_group && limit_group || return 1
        start sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec env "$@"' sh "$group" "$preload" "$@"
        ;;
    systemd) start systemd-run -q $scope --scope -p "MemoryMax=${limit}M" -p MemorySwapMax=0 env "$preload" "$@" ;;
    watch) start python3 "$here/watch_limit.py" "$limit" env "$preload" "$@" ;;
    data) start sh -c 'ulimit -d "$1" && shift && exec env "$@"' sh $((limit * 1024)) "$preload" "$@" ;;
    esac
}

# The peak in KiB, and by whose account: the group's, the watcher's, or the load's own, which has files in it.
find_peak() {
    peak="" peak_of=""
    case $chosen in
    cgroup*) peak=$(awk '{ printf "%d", $1 / 1024 }' "$group/$peak_file" 2>/dev/null) peak_of=group ;;
    watch) peak=$(sed -n 's/^watch_limit: peak \([0-9]*\) KiB.*/\1/p' "$scratch/err") peak_of=watcher ;;
    esac
    [ -z "$peak" ] || return 0
    peak=$(sed -n 's/^ *"peak_kb": \([0-9]*\).*/\1/p' "$scratch/report" 2>/dev/null | head -n 1) peak_of="process, files included"
    [ -n "$peak" ] || peak_of=""
}
killed_in_group() {
    case $chosen in cgroup*) grep -q '^oom_kill [1-9]' "$group/$kills_file" ;; esac
}

uptime_now() { cut -d ' ' -f 1 /proc/uptime; }

failed=0
one() { # NAME VERSION PRELOAD
    case " $only " in "  " | *" $1 "*) ;; *) return ;; esac
    rm -f "$scratch/report"
    : >"$scratch/err"
    status=0 reason="" began=$(uptime_now)
    run "$1" "$3" || status=$?
    seconds=$(awk "BEGIN { printf \"%.1f\", $(uptime_now) - $began }")
    rm -f "$scratch/load"
    find_peak
    case $status in
    0) verdict=survives ;;
    3) verdict="out of memory" ;;
    124) verdict=failed reason="took over 600 s" ;;
    137) if killed_in_group; then verdict=killed; else verdict=failed reason="killed, and not for its memory"; fi ;;
    *) verdict=failed reason="status $status: $(tail -n 1 "$scratch/err")" ;;
    esac
    if grep -q 'cannot be preloaded' "$scratch/err"; then verdict=failed reason="not preloaded"; fi
    [ "$verdict" != failed ] || failed=1
    case $chosen in cgroup*) drop_group ;; esac
    printf '%-12s %s%s%s, %s s\n' "$1" "$verdict" "${reason:+: $reason}" "${peak:+, peak $peak KiB ($peak_of)}" "$seconds"
    add_json "$1" "$2"
}

# ---- JSON --------------------------------------------------------------------------------

quoted() { if [ -n "$1" ]; then printf '"%s"' "$(printf %s "$1" | tr '\t\n\r\033' '    ' | sed 's/[\\"]/\\&/g')"; else printf null; fi; }
# shellcheck disable=SC2094  # only its being empty is asked
add_json() { # NAME VERSION
    {
        [ ! -s "$scratch/rows" ] || printf ',\n'
        printf '    {"name": %s, "version": %s, "verdict": %s, "reason": %s, ' "$(quoted "$1")" "$(quoted "$2")" \
            "$(quoted "$verdict")" "$(quoted "$reason")"
        printf '"peak_kb": %s, "peak_of": %s, "seconds": %s}' "${peak:-null}" "$(quoted "$peak_of")" "${seconds:-null}"
    } >>"$scratch/rows"
}
write_json() {
    {
        printf '{\n  "program": "memory_limit", "format": 1, "complete": %s,\n' $complete
        printf '  "date": "%s",\n%s,\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$machine"
        printf '  "command": %s,\n  "limit_mb": %s, "method": "%s", "not": %s,\n' "$(quoted "$command")" "$limit" "$chosen" \
            "$(quoted "$(paste -s -d ';' "$scratch/not" 2>/dev/null)")"
        printf '  "load": %s,\n  "allocators": [\n' "$(quoted "$load")"
        cat "$scratch/rows" 2>/dev/null
        printf '\n  ]\n}\n'
    } >"$json"
}

one tslab "$("$program" --version 2>/dev/null | sed 's/.* //')" ""
one glibc "$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)" ""
if [ -r "$peers" ]; then
    tab=$(printf '\t')
    while IFS="$tab" read -r name version kind library reason; do
        if [ "$kind" != general ] || [ "$name" = glibc ]; then continue; fi
        if [ "$library" = - ] || [ -z "$library" ]; then
            verdict=missing reason=${reason:-no reason given} peak="" peak_of="" seconds=""
            echo "$name is missing: $reason"
            add_json "$name" ""
        else
            one "$name" "$version" "$library"
        fi
    done <"$peers"
else
    echo "no other peers: $peers does not exist (scripts/get-peers.sh writes it)"
fi
complete=true
exit $failed
