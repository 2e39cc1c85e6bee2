#!/bin/sh
# Builds and tests every preset that tests, one after the other, and says how long each took.
# Usage: run-tests.sh [SCALE]   SCALE multiplies the work of the stress, model and contract programs.
# All presets run even when one fails; the exit code is 0 when none did.
set -u
cd "$(dirname "$0")/.." || exit 1

TSLAB_TEST_SCALE=${1:-1}
case $TSLAB_TEST_SCALE in
    *[!0-9]* | 0* | ?????*)
        echo "run-tests.sh: the scale is a number from 1 to 9999, not '$TSLAB_TEST_SCALE'" >&2
        exit 2
        ;;
esac
export TSLAB_TEST_SCALE
test_timeout=600
[ "$TSLAB_TEST_SCALE" -gt 1 ] && test_timeout=3000

run_preset() {
    cmake --preset "$1" && cmake --build --preset "$1" && ctest --preset "$1" --timeout "$test_timeout"
}

scripts/install-deps.sh build daemon test browser demo || exit 1
# What draws the page's plots, and what checks it: tests of the page do without, and say so.
scripts/get-uplot.sh
scripts/get-axe.sh

failed=""
for preset in tsan asan clang-release gcc-release; do
    echo "==== $preset"
    begin=$(date +%s)
    if run_preset "$preset"; then result=passed; else result=FAILED failed="$failed $preset"; fi
    echo "==== $preset $result after $(($(date +%s) - begin)) s"
done

if [ -n "$failed" ]; then
    echo "failed presets:$failed" >&2
    exit 1
fi
