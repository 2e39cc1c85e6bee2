#!/bin/sh
# Incident 1: requests take much longer than they did, and nobody has changed the program. Three busy programs are put
# on the processor it runs on. Is it the allocator? Its samples say where time goes: cpu, wait for a processor, or locks.
#
# Usage: tail-spike.sh [--no-fault]        Exit status: 0 the scheduler is named, 1 it is not, 2 something is missing.
# Environment: TSLAB_BUILD_DIR, TSLAB=none (do without tslab), PATIENCE (s until the numbers have to show it)
name=tail-spike.sh
needs=taskset
# shellcheck source=scripts/incidents/kit.sh
. "$(dirname "$0")/kit.sh"

cpu=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
load="synthetic_bench --pattern=burst --phases=domain --req_rate=0 --progress_s=0"

step "Before: the service has the machine"
show "$load --duration_s=1 | grep latency"

step "Now: it shares processor $cpu with others, and its callers complain"
others=""
if [ $fault = yes ]; then
    for _ in 1 2 3; do
        taskset -c "$cpu" sh -c 'while :; do :; done' &
        others="$others $!"
    done
    pids="$others"
fi
begin_with segment=1,sampling_period=16 "taskset -c $cpu $load --duration_s=0 --doctor >report 2>doctor"
service=$pid
# Losing the processor within a sampled allocation is rare and long: some dozens of times have to be met.
spiked() {
    wait_ns=$(number avg_wait_ns) && cpu_ns=$(number avg_cpu_ns) && samples=$(number samples) &&
        [ "${samples:-0}" -ge 60000 ] && [ "${wait_ns:-0}" -gt $((2 * ${cpu_ns:-0})) ]
}
until_seen spiked || echo "the samples show no waiting"

step "Is it the allocator? Allocations are sampled: cpu is work, wait is a thread that was not let run"
if [ $tslab = yes ]; then
    show "tslab stats --pid $service --json | tr ',' '\n' | grep -E '\"(samples|(avg|max)_(wall|cpu|wait)_ns)\"'"
    show "tslab doctor --pid $service >seen; grep -A 2 '^4' seen"
else
    show "stats_dump --no-text --pid $service | tr ',' '\n' | grep -E '\"(samples|(avg|max)_(wall|cpu|wait)_ns)\"'"
fi
show "grep ctxt_switches /proc/$service/task/*/status | tail -n 2"
show "taskset -cp $service"

step "The service is told to end, and leaves the library's report"
end "$service"
show "grep latency report; grep -A 2 '^4' doctor"

verdict='Verdict: scheduler'
[ $tslab = no ] || grep -q "$verdict" seen || diagnosis seen "$verdict" "the scheduler (by tslab)"
diagnosis doctor "$verdict" "the scheduler, not the allocator"
echo "  Remedy: run fewer busy threads than processors, lift the pinning or the quota. Nothing in the allocator helps."
