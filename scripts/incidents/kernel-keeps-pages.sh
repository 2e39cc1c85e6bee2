#!/bin/sh
# Incident 3: phases end, the allocator gives their pages back, and resident size does not move. Two causes are made,
# one after the other: pages given back lazily (purge_policy=1, MADV_FREE), and a kernel that refuses (strace makes
# madvise fail as a seccomp filter would). Each close has a receipt: bytes given back, resident size before and after.
#
# Usage: kernel-keeps-pages.sh [--no-fault]   Exit status: 0 the causes are named, 1 they are not, 2 something is missing.
# Environment: TSLAB_BUILD_DIR, TSLAB=none (do without tslab), PATIENCE (s until the numbers have to show it)
name=kernel-keeps-pages.sh
# shellcheck source=scripts/incidents/kit.sh
. "$(dirname "$0")/kit.sh"

load="synthetic_bench --pattern=kernel --objs_min=8000 --objs_max=8000 --req_rate=50 --progress_s=0 --doctor"

# A service whose phases hold 2 MiB each, until some of them have ended; options in $1, its report goes to $2.
begin_service() {
    begin_with "segment=1$1" "$load --duration_s=0 >$2.run 2>$2"
    until_seen some_ended || echo "its phases give nothing back"
}
# shellcheck disable=SC2317  # called by until_seen
some_ended() {
    asked=$(number total_madvise_calls) && failed=$(number total_madvise_failures) &&
        [ $((${asked:-0} + ${failed:-0})) -ge 10 ]
}
# What the live process and then its own report say.
look() { # REPORT
    if [ $tslab = yes ]; then
        show "tslab doctor --pid $pid >$1.seen; sed -n '/^3/,/^4/p' $1.seen | grep -v '^4' | cut -c1-150 | head -n 3"
    else
        show "stats_dump --no-text --pid $pid | tr ',' '\n' | grep -E '\"total_madvise_(calls|bytes|failures)\"|\"(rss_bytes_current|committed_bytes)\"'"
    fi
    end "$pid"
    show "grep -E '^3|ACTION' $1; grep -m 2 'given to the system' $1"
}

step "Phases of 2 MiB end 50 times a second, and their pages are to go back at once"
options=""
[ $fault = no ] || options=,purge_policy=1
begin_service "$options" lazy
show "grep -E 'VmRSS|RssAnon' /proc/$pid/status"
show "grep -E 'LazyFree|AnonHugePages|Locked' /proc/$pid/smaps_rollup"
look lazy
diagnosis lazy 'ACTION: .*RSS did not fall: purge_policy is MADV_FREE' "the kernel keeps pages because of purge_policy=1"
[ $tslab = no ] || diagnosis lazy.seen 'ACTION: .*RSS did not fall|ACTION: .*MADV_FREE' "the kernel, not the allocator (by tslab)"
echo "  Remedy: purge_policy=0, or leave it: LazyFree pages are taken as soon as somebody needs memory."

step "The same with purge_policy=0, and a kernel that refuses madvise"
# A tracer may be forbidden (containers, yama), and a program under one be slow.
inject="strace -f --seccomp-bpf -qq -o calls -e trace=madvise -e inject=madvise:error=EPERM"
if ! $inject true 2>/dev/null; then
    echo "left out: strace is not there, or may not trace (apt-get install strace)"
    exit 0
fi
show "$inject $load --duration_s=2 >refused.run 2>refused"
show "grep -m 2 DONTNEED calls"
show "grep -E '^3|ACTION' refused; grep -m 2 'given to the system' refused"
diagnosis refused 'ACTION: [0-9]+ of the calls failed' "the kernel refuses to take pages back"
echo "  Remedy: find the filter or limit that refuses (seccomp profile, mlockall, vm.max_map_count); the alert is MadviseFailures."
