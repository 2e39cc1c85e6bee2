#!/bin/sh
# Builds the harnesses of tests/fuzz and runs one after the other.
# Usage: run-fuzz.sh [SECONDS] [LIBFUZZER_OPTION...]   SECONDS for each harness, default 120
# The corpus of a harness grows in build/fuzz/corpus and is where the next run starts. An input that fails is kept in
# build/fuzz/findings; its path and the command that replays it are printed, and the exit code is 1.
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

scripts/install-deps.sh --root fuzz || exit 1
cmake --preset fuzz && cmake --build --preset fuzz || exit 1

findings=build/fuzz/findings
failed=""
mkdir -p "$findings"
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    program=build/fuzz/tests/fuzz/$name
    corpus=build/fuzz/corpus/$name
    log=$findings/$name.log
    mkdir -p "$corpus"
    echo "==== $name for $seconds s (log: $log)"
    "$program" -max_total_time="$seconds" -max_len=1024 -len_control=0 -malloc_limit_mb=65536 -rss_limit_mb=4096 -timeout=60 -print_final_stats=1 \
        -artifact_prefix="$findings/$name-" "$@" "$corpus" >"$log" 2>&1
    status=$?
    if [ "$status" -eq 0 ]; then
        grep -aE '^#[0-9]+.DONE|number_of_executed_units' "$log"
        continue
    fi
    failed="$failed $name"
    grep -avE '^#[0-9]+|NEW_FUNC|Uses:' "$log" | tail -n 100 >&2
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    echo "==== $name FAILED, exit code $status" >&2
    [ -z "$input" ] || printf 'input:  %s\nreplay: %s %s\n' "$input" "$program" "$input" >&2
done

if [ -n "$failed" ]; then
    echo "harnesses with findings:$failed" >&2
    exit 1
fi
