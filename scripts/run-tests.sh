#!/bin/bash
# Builds and tests in parts, one after the other; says how long each took, and at the end how many tests passed in all.
# Usage: run-tests.sh [-s SCALE] [-k] PART...
#   core       gcc: the library's own tests. Needs compilers and libraries only; what `make test` runs
#   rest       gcc: all other tests, of the same build: tools, daemon, pages, demo, benchmark, models, documents
#   tsan asan msan debug clang-release      the presets of these names
#   -s SCALE   multiplies the work of tests that draw, race or step (default 0.25, which also leaves out the tests of
#              tests/short.list; tests/README.md has what it does)
#   -k         a skip that tests/skips.list does not allow fails its part
# All parts run even when one fails; the exit code is 0 when none did. Tests that fail are shown when they do; what the
# others have said is in build/PRESET/Testing/Temporary/LastTest.log.
# Environment: VERBOSE=1 shows the build and the result of every test. TALLY=FILE adds to the numbers of the runs that
# were given the same file.
set -u
cd "$(dirname "$0")/.." || exit 1

usage() {
    echo "run-tests.sh: $*; usage: run-tests.sh [-s SCALE] [-k] PART..., see its head" >&2
    exit 2
}
export TSLAB_TEST_SCALE=0.25
strict=no
while getopts :s:k option; do
    case $option in
    s) TSLAB_TEST_SCALE=$OPTARG ;;
    k) strict=yes ;;
    :) usage "-$OPTARG needs a value" ;;
    *) usage "no option is called '-$OPTARG'; long options do not exist" ;;
    esac
done
shift $((OPTIND - 1))
[[ $TSLAB_TEST_SCALE =~ ^([1-9][0-9]{0,3}|0\.25)$ ]] || usage "the scale is 0.25 or a number from 1 to 9999, not '$TSLAB_TEST_SCALE'"
[ $# -gt 0 ] || usage "which part?"

packages=test
for part in "$@"; do
    case $part in
    core | rest | debug) ;;
    tsan | asan | msan | clang-release) packages="$packages clang" ;;
    *) usage "no part is called '$part'" ;;
    esac
done
case " $* " in *" rest "*)
    case $TSLAB_TEST_SCALE in 0.25 | 1) packages=test-all ;; *) packages=check ;; esac
    ;;
esac
# shellcheck disable=SC2086  # words
scripts/install-deps.sh --root $packages || exit 1
if [[ $packages =~ ^(test-all|check)$ ]]; then
    # What checks pages, and what builds the site: their tests do without, and say so.
    scripts/get-axe.sh
    scripts/site.sh --get
fi

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
tally=${TALLY:-$scratch/tally}
mkdir -p "$(dirname "$tally")" && touch "$tally" || exit 1
# Only what hangs takes so long, on a machine however busy.
limit=1500
case $TSLAB_TEST_SCALE in 0.25 | 1) ;; *) limit=4500 ;; esac

# Passes on what ctest says of tests that fail, with their output, and how far it is: on a terminal in one line, elsewhere
# after each hundred tests.
brief() {
    local terminal=0
    [ ! -t 1 ] || terminal=1
    awk -v terminal=$terminal '
        function wipe() { if (terminal && drawn) printf "\r%70s\r", ""; drawn = 0 }
        / Test +#[0-9]+: / {
            failed = !/ Passed |\*\*\*Skipped/
            split($1, of, "/")
            wipe()
            if (failed) print
            else if (terminal) { printf "  %s tests of %s", of[1], of[2]; drawn = 1 }
            else if (of[1] % 100 == 0 || $1 == of[2]) print "  " of[1] " tests of " of[2]
            fflush()
            next
        }
        /^ *Start +[0-9]+: / || /^[0-9]+% tests passed/ { failed = 0 }
        failed || /^CMake|^ctest/ { wipe(); print; fflush() }
        END { wipe() }'
}
run_part() { # PART
    local preset=$1 status
    case $1 in core | rest) preset=gcc-release ;; esac
    local extra=() targets="" left
    if [ "$TSLAB_TEST_SCALE" = 0.25 ]; then
        left=$(awk -v part="$1" '$1 == part { printf "%s%s", n++ ? "|" : "", $2 }' tests/short.list)
        if [ -n "$left" ]; then
            extra=(-E "^($left)\$")
            echo "left to scale 1 and above, see tests/short.list: $left"
        fi
        # What the other tests of this part do not run need not be built either.
        case $1 in
        core | rest) targets=without_benchmark ;;
        tsan) targets=stress_programs ;;
        asan) targets="unit_programs contract_programs misuse_programs model_programs fuzz_programs" ;;
        esac
    fi
    # Some wait, those of `rest` most of their time: for servers and other processes.
    case $1 in rest) extra+=(-j 6) ;; *) extra+=(-j 3) ;; esac
    TARGETS=$targets scripts/build.sh "$preset" || return 1
    if [ -n "${VERBOSE:-}" ]; then
        ctest --preset "$1" --timeout $limit "${extra[@]}" --output-log "$scratch/said"
        status=$?
    else
        ctest --preset "$1" --timeout $limit "${extra[@]}" --output-log "$scratch/said" 2>&1 | brief
        status=${PIPESTATUS[0]}
    fi
    local skips=build/$1-skips.txt
    if scripts/check-skips.sh "$1" "build/$preset/Testing/Temporary/LastTest.log" "$scratch/said" >"$skips"; then
        [ ! -s "$skips" ] || echo "$(tail -n 1 "$skips"): $skips"
    elif [ $strict = no ]; then
        echo "skipped here for want of something, see $skips: $(grep -c '^SKIPPED' "$skips")"
    else
        cat "$skips" >&2
        status=1
    fi
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
