#!/bin/bash
# Runs what `make test` has built again and again beside four busy loops: no test may depend on how fast the machine is.
# Usage: under-load.sh [TIMES] [OPTION OF CTEST]...      default: 10 times all of it; -R contract/ for a part
# Exit status: 0 every turn has passed, 1 one has not. The loops end with this script, or after six hours.
set -u
cd "$(dirname "$0")/.." || exit 1
times=${1:-10}
[ $# -eq 0 ] || shift
[[ $times =~ ^[1-9][0-9]{0,3}$ ]] || {
    echo "under-load.sh: how many times? A number from 1 to 9999, not '$times'" >&2
    exit 2
}

loops=""
trap 'kill $loops 2>/dev/null' EXIT
trap 'exit 1' INT TERM
for _ in 1 2 3 4; do
    (
        trap - EXIT
        ulimit -t 21600
        while :; do :; done
    ) &
    loops="$loops $!"
done

failed=0
for turn in $(seq "$times"); do
    log=build/under-load.$turn.log
    ctest --preset core --quiet --timeout 1500 --output-log "$log" "$@"
    status=$?
    echo "turn $turn of $times: $(grep 'tests passed' "$log") (all of it: $log)"
    [ $status -eq 0 ] || { failed=$((failed + 1)) && sed -n '/The following tests FAILED/,$p' "$log"; }
done
echo "$((times - failed)) of $times turns passed beside four busy loops"
[ $failed -eq 0 ]
