#!/bin/sh
# The same load inside a memory limit, allocator by allocator: who survives.
#
# usage: memory_limit.sh [--method auto|cgroup2|systemd|watch|data] [--limit-mb N] [--build DIR] [--peers FILE] [--only "NAME ..."]
#                        [--load "PROGRAM ARGUMENT ..."]
#
# The load (default: sustained_phase_shifts, phases of shifting sizes, 1 % of whose objects live for 40 phases more) runs
# once for each allocator. The limit is the first of these that the machine allows; which one it was is printed:
#   cgroup2   a control group of our own below the one we are in, memory.max, no swap; nothing of the parent is changed
#   systemd   systemd-run with MemoryMax, a scope of the user's or, for root, of the system's
#   watch     resident memory sampled every millisecond, killed above the limit (watch_limit.py): close to a group
# and, only when asked for:
#   data      RLIMIT_DATA: limits writable address space, resident or not, so allocations fail instead of a kill
# Verdicts: survives, killed (over the limit), out of memory (an allocation failed), failed (anything else).
# Exit code: 0 whatever the verdicts, 1 when a run failed, 2 wrong arguments, 77 when no method works.
# shellcheck disable=SC2317,SC2086,SC3045  # functions called by name; words; dash and bash have ulimit -d
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
method=auto limit=64 build=$root/build/bench peers=$root/build/peers/peers.tsv only=""
load="sustained_phase_shifts 200 40 1 0 1 --phase-kb 20480 --pin-cycles 40 --sessions 0"

usage() { sed -n '4,5s/^# *//p' "$0"; }
while [ $# -gt 0 ]; do
    case $1 in
    --help) usage && exit 0 ;;
    --method | --limit-mb | --build | --peers | --only | --load)
        [ $# -ge 2 ] || { echo "memory_limit.sh: $1 needs a value" >&2; exit 2; }
        case $1 in
        --method) method=$2 ;;
        --limit-mb) limit=$2 ;;
        --build) build=$2 ;;
        --peers) peers=$2 ;;
        --only) only=$2 ;;
        --load) load=$2 ;;
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
case $method in auto | cgroup2 | systemd | watch | data) ;; *)
    echo "memory_limit.sh: --method takes auto, cgroup2, systemd, watch or data, not '$method'" >&2
    exit 2
    ;;
esac
program=$build/suite/${load%% *}
[ -x "$program" ] || { echo "memory_limit.sh: no $program: cmake --preset bench && cmake --build --preset bench" >&2; exit 2; }
scratch=$(mktemp -d) || exit 1
group=""
clean_up() {
    [ -z "$group" ] || rmdir "$group" 2>/dev/null
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# ---- methods: each says in $why what is in its way ---------------------------------------

why=""
can_cgroup2() {
    mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    [ -n "$mount" ] || { why="no cgroup2 is mounted"; return 1; }
    parent=$mount$(sed -n 's/^0:://p' /proc/self/cgroup)
    grep -qw memory "$parent/cgroup.controllers" 2>/dev/null || { why="our group has no memory controller in cgroup v2"; return 1; }
    grep -qw memory "$parent/cgroup.subtree_control" 2>/dev/null || { why="our group does not pass its memory controller on"; return 1; }
    group=$parent/temporal-slab-limit.$$
    mkdir "$group" 2>/dev/null || { why="no group can be made below our own"; group=""; return 1; }
    [ -w "$group/memory.max" ] && [ -w "$group/cgroup.procs" ] && echo "${limit}M" 2>/dev/null >"$group/memory.max" && return 0
    rmdir "$group"
    group="" why="memory.max of a group of our own cannot be written"
    return 1
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

case $method in auto) methods="cgroup2 systemd watch" ;; *) methods=$method ;; esac
chosen=""
for m in $methods; do
    if "can_$m"; then chosen=$m && break; fi
    echo "not $m: $why"
done
[ -n "$chosen" ] || { echo "skipped: no way to limit memory on this machine"; exit 77; }
echo "limit: $limit MiB by $chosen"
echo "load: $load"

# ---- runs --------------------------------------------------------------------------------

# run ALLOCATOR PRELOAD: the load in the limit; its report in $scratch/report.
run() {
    word=malloc
    [ "$1" = tslab ] && word=tslab
    set -- "$2" "$program" ${load#* } --allocator $word "--json=$scratch/report"
    [ -n "$1" ] && preload="LD_PRELOAD=$1" || preload=NO_PRELOAD=
    shift
    case $chosen in
    cgroup2)
        echo 0 2>/dev/null >"$group/memory.swap.max"
        # shellcheck disable=SC2016  # for the inner shell
        timeout 600 sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec env "$@"' sh "$group" "$preload" "$@"
        ;;
    systemd) timeout 600 systemd-run -q $scope --scope -p "MemoryMax=${limit}M" -p MemorySwapMax=0 env "$preload" "$@" ;;
    watch) timeout 600 python3 "$here/watch_limit.py" "$limit" env "$preload" "$@" ;;
    data) (ulimit -d $((limit * 1024)) && timeout 600 env "$preload" "$@") ;;
    esac >"$scratch/out" 2>"$scratch/err"
}

failed=0
one() { # NAME PRELOAD
    case " $only " in "  " | *" $1 "*) ;; *) return ;; esac
    rm -f "$scratch/report"
    status=0
    run "$1" "$2" || status=$?
    case $status in
    0) verdict=survives ;;
    3) verdict="out of memory" ;;
    137) verdict=killed ;;
    *) verdict="failed, status $status: $(tail -n 1 "$scratch/err")" failed=1 ;;
    esac
    if grep -q 'cannot be preloaded' "$scratch/err"; then verdict="failed: not preloaded" failed=1; fi
    peak=$(sed -n 's/^ *"peak_kb": \([0-9]*\).*/, peak resident \1 KiB (files included)/p' "$scratch/report" 2>/dev/null)
    [ -n "$peak" ] || peak=$(sed -n 's/^watch_limit: peak \([0-9]*\) KiB.*/, peak \1 KiB/p' "$scratch/err")
    printf '%-12s %s%s\n' "$1" "$verdict" "$peak"
}

one tslab ""
one glibc ""
if [ -r "$peers" ]; then
    tab=$(printf '\t')
    while IFS="$tab" read -r name _ kind library reason; do
        if [ "$kind" != general ] || [ "$name" = glibc ]; then continue; fi
        if [ "$library" = - ] || [ -z "$library" ]; then
            echo "$name is missing: ${reason:-no reason given}"
        else
            one "$name" "$library"
        fi
    done <"$peers"
else
    echo "no other peers: $peers does not exist (scripts/get-peers.sh writes it)"
fi
exit $failed
