#!/bin/bash
# Builds the harnesses of tests/fuzz and runs one after the other, then those of tslab (go test -fuzz).
# Usage: run-fuzz.sh [SECONDS] [LIBFUZZER_OPTION...]   SECONDS for each harness, default 120
# The corpus of a harness grows in build/fuzz/corpus, which the kept inputs of tests/fuzz/corpus join; the next run starts
# there. Executions are counted in build/fuzz/executions, run after run, each run is told with the sum and the coverage. An
# input that fails is kept in build/fuzz/findings; its path and the command that replays it are printed, and the exit code
# is 1.
# Environment: ONLY="NAME..." runs these alone. GOAL=10000000 leaves out harnesses that have made so many executions.
set -u
cd "$(dirname "$0")/.." || exit 1

seconds=${1:-120}
[ $# -eq 0 ] || shift
case $seconds in
"" | *[!0-9]* | 0* | ??????*)
    echo "run-fuzz.sh: the time is a number of seconds, not '$seconds'" >&2
    exit 2
    ;;
esac
goal=${GOAL:-0} only=${ONLY:-}
case $goal in *[!0-9]* | "") echo "run-fuzz.sh: GOAL is a number of executions, not '$goal'" >&2 && exit 2 ;; esac

# Half as fast again: without fake stacks, and with a quarantine that fits a cache.
export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=8:detect_stack_use_after_return=0}
findings=build/fuzz/findings counts=build/fuzz/executions
failed=""
mkdir -p $findings $counts

is_wanted() { # NAME
    [ -z "$only" ] || case " $only " in *" $1 "*) ;; *) return 1 ;; esac
    local done_so_far
    done_so_far=$(cat "$counts/$1" 2>/dev/null || echo 0)
    [ "$goal" -eq 0 ] || [ "$done_so_far" -lt "$goal" ] || { echo "==== $1: $done_so_far executions so far" && return 1; }
}
# Adds to the count of a harness, and tells.
tell() { # NAME EXECUTIONS COVERAGE
    local sum
    sum=$(($(cat "$counts/$1" 2>/dev/null || echo 0) + $2))
    echo $sum >"$counts/$1.new" && mv "$counts/$1.new" "$counts/$1"
    echo "$1: $2 executions, $sum in all; $3"
}
complain() { # NAME STATUS INPUT REPLAY
    failed="$failed $1"
    echo "==== $1 FAILED, exit code $2" >&2
    [ -z "$3" ] || printf 'input:  %s\nreplay: %s\n' "$3" "$4" >&2
}

run_one() { # NAME LIBFUZZER_OPTION...
    local name=$1 program=build/fuzz/tests/fuzz/$1 corpus=build/fuzz/corpus/$1 log=$findings/$1.log status=0 edges covered input
    local length=256 # more is never read, or says nothing new
    case $name in fuzz_calls | fuzz_http) length=1024 ;; esac
    # Choosing inputs by rare features costs more than to run some of fuzz_calls, whose features are many.
    [ "$name" != fuzz_calls ] || set -- "$1" -entropic=0 "${@:2}"
    shift
    mkdir -p "$corpus"
    echo "==== $name for $seconds s (log: $log)"
    "$program" -max_total_time="$seconds" -max_len=$length -len_control=0 -malloc_limit_mb=65536 -rss_limit_mb=4096 -timeout=60 -print_final_stats=1 \
        -artifact_prefix="$findings/$name-" "$@" "$corpus" "tests/fuzz/corpus/$name" >"$log" 2>&1 || status=$?
    edges=$(sed -nE 's/^INFO: Loaded .* PC tables \(([0-9]+) PCs\).*/\1/p' "$log" | tail -n 1)
    covered=$(grep -aoE ' cov: [0-9]+ ft: [0-9]+' "$log" | tail -n 1)
    # The last figures there are: an interrupted run has no final ones.
    tell "$name" "$(sed -nE 's/^stat::number_of_executed_units: ([0-9]+)$/\1/p; s/^#([0-9]+)\t.*/\1/p' "$log" | tail -n 1 | grep . || echo 0)" \
        "coverage:${covered:- none} of ${edges:-?} edges of harness and library"
    [ $status -ne 0 ] || return
    grep -avE '^#[0-9]+|NEW_FUNC|Uses:' "$log" | tail -n 100 >&2
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    complain "$name" $status "$input" "$program $input"
}

run_go() { # PACKAGE TARGET
    local name status=0 log line
    name=tslab_$(basename "$1")_$2 log=$PWD/$findings/tslab_$(basename "$1")_$2.log
    is_wanted "$name" || return 0
    echo "==== $name for $seconds s (log: $log)"
    # Files of a target lie in memory: three times as many executions. To make each new input smaller took most of the time.
    (cd tslab && GOTOOLCHAIN=local GOTMPDIR=${TMPDIR:-/tmp} TMPDIR=${memory:-${TMPDIR:-/tmp}} "$go" test -run '^$' -fuzz "^$2\$" \
        -fuzztime "${seconds}s" -fuzzminimizetime 1x "./$1") >"$log" 2>&1 || status=$?
    line=$(grep -aE '^fuzz: elapsed: .* execs: ' "$log" | tail -n 1)
    tell "$name" "$(echo "$line" | sed -nE 's/.* execs: ([0-9]+).*/\1/p' | grep . || echo 0)" "inputs with coverage of their own:$(echo "$line" | sed -nE 's/.*\(total: ([0-9]+)\).*/ \1/p')"
    [ $status -ne 0 ] || return
    tail -n 100 "$log" >&2
    complain "$name" $status "" ""
}

targets=$(grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z]+' tslab | sed -E 's/:[0-9]+:func /:/') # FILE:TARGET
names=$(ls tests/fuzz/fuzz_*.c | sed -E 's,.*/(.*)\.c,\1,'; echo "$targets" | sed -E 's,.*/([^/]*)/[^/]*:(.*),tslab_\1_\2,')
for name in $only; do
    echo "$names" | grep -qxF -e "$name" || { echo "run-fuzz.sh: there is no harness $name; there are:" $names >&2 && exit 2; }
done

scripts/install-deps.sh --root fuzz || exit 1
cmake --preset fuzz && cmake --build --preset fuzz || exit 1
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    [ -x "build/fuzz/tests/fuzz/$name" ] || { echo "==== $name is not built: it needs a library that is not installed" && continue; }
    is_wanted "$name" && run_one "$name" "$@"
done
if go=$(scripts/find-go.sh); then
    memory=$(mktemp -d /dev/shm/tslab-fuzz.XXXXXX 2>/dev/null) && trap 'rm -rf "$memory"' EXIT && trap 'exit 1' INT TERM
    while IFS=: read -r file target; do
        run_go "$(dirname "${file#tslab/}")" "$target"
    done <<<"$targets"
fi

if [ -n "$failed" ]; then
    echo "harnesses with findings:$failed" >&2
    exit 1
fi
