#!/bin/bash
# Builds and tests in parts, one after the other; says how long each took, and at the end how many tests passed in all.
# Usage: run-tests.sh [-s SCALE] [-k] PART...
#   core       gcc: the library's own tests. Needs compilers and libraries only; what `make test` runs
#   rest       gcc: all other tests, of the same build: tools, daemon and its page, demo, benchmark, models, documents
#   tsan asan clang-release      the presets of these names
#   -s SCALE   multiplies the work of the stress, model and contract programs (default 1)
#   -k         a skip that tests/skips.list does not allow fails its part
# All parts run even when one fails; the exit code is 0 when none did.
# Environment: TALLY=FILE adds to the numbers of the runs that were given the same file.
set -u
cd "$(dirname "$0")/.." || exit 1

usage() {
    echo "run-tests.sh: $*; usage: run-tests.sh [-s SCALE] [-k] PART..., see its head" >&2
    exit 2
}
export TSLAB_TEST_SCALE=1
strict=no
while getopts s:k option; do
    case $option in
    s) TSLAB_TEST_SCALE=$OPTARG ;;
    k) strict=yes ;;
    *) usage "no such option" ;;
    esac
done
shift $((OPTIND - 1))
[[ $TSLAB_TEST_SCALE =~ ^[1-9][0-9]{0,3}$ ]] || usage "the scale is a number from 1 to 9999, not '$TSLAB_TEST_SCALE'"
[ $# -gt 0 ] || usage "which part?"

packages="build core"
for part in "$@"; do
    case $part in
    core) ;;
    rest) ;;
    tsan | asan | clang-release) packages="$packages clang" ;;
    *) usage "no part is called '$part'" ;;
    esac
done
case " $* " in *" rest "*) packages=all ;; esac
# shellcheck disable=SC2086  # words
scripts/install-deps.sh $packages || exit 1
if [ "$packages" = all ]; then
    # What draws the page's plots, and what checks it: tests of the page do without, and say so.
    scripts/get-uplot.sh
    scripts/get-axe.sh
fi

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
tally=${TALLY:-$scratch/tally}
mkdir -p "$(dirname "$tally")" && touch "$tally" || exit 1
# Only what hangs takes so long, on a machine however busy.
limit=1500
[ "$TSLAB_TEST_SCALE" -eq 1 ] || limit=4500

run_part() { # PART
    local preset=$1
    case $1 in core | rest) preset=gcc-release ;; esac
    cmake --preset "$preset" && cmake --build --preset "$preset" || return 1
    ctest --preset "$1" --timeout $limit --output-log "$scratch/said"
    local status=$? log=build/$preset/Testing/Temporary/LastTest.log
    scripts/check-skips.sh "$1" "$log" "$scratch/said" || [ $strict = no ] || status=1
    return $status
}
# Seconds of processor time that the processes of this script have used, into a file: a subshell would tell its own.
processor() { # FILE
    times >"$scratch/times"
    awk 'NR == 2 { for (n = 1; n <= 2; n++) { split($n, t, /[ms]/); sum += 60 * t[1] + t[2] } printf "%d", sum }' \
        "$scratch/times" >"$1"
}

failed=""
for part in "$@"; do
    echo "==== $part"
    rm -f "$scratch/said"
    processor "$scratch/before"
    begin=$SECONDS
    if run_part "$part"; then result=passed; else result=FAILED failed="$failed $part"; fi
    processor "$scratch/after"
    used=$(($(<"$scratch/after") - $(<"$scratch/before")))
    # The line that ctest closes with; where there is none something did not build, which counts as a test.
    sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\1 \2/p' "$scratch/said" \
        2>/dev/null >"$scratch/closing"
    [ -s "$scratch/closing" ] || echo "1 1" >"$scratch/closing"
    echo "$part $result $((SECONDS - begin)) $used $(tail -n 1 "$scratch/closing")" >>"$tally"
done

echo
awk '{ printf "%-14s %s: %d of %d tests in %d s (%d s of processor time)\n", $1, $2, $6 - $5, $6, $3, $4
       failed += $5; tests += $6; wall += $3; cpu += $4 }
     END { printf "%d%% tests passed, %d tests failed out of %d\n\nTotal time: %d s (%d s of processor time)\n",
           (tests - failed) * 100 / tests, failed, tests, wall, cpu }' "$tally"
if [ -n "$failed" ]; then
    echo "parts that failed:$failed" >&2
    exit 1
fi
