#!/bin/bash
# scripts/check-skips.sh allows what the list has, for the part, the test and the reason it names, and nothing else; and
# tests/skips.list can be read. Each line of tests/short.list has its three words, and names a test.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
check=$TSLAB_SOURCE_DIR/scripts/check-skips.sh
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
cat >list <<'END'
# a comment

core unit/(one|two)   only .* can do that
END
expect() { # STATUS PART LINE-OF-OUTPUT... : of the log in ./log
    local wanted=$1 part=$2 status=0 line
    shift 2
    "$check" "$part" log said list >out 2>err || status=$?
    [ $status -eq "$wanted" ] || fail "exit code $status instead of $wanted: $(cat log said out err)"
    for line in "$@"; do grep -qF -- "$line" out || fail "it does not say '$line' but: $(cat out)"; done
}
ran() { # NAME LINE...: a test in ./log
    printf '1/9 Testing: %s\n1/9 Test: %s\nOutput:\n' "$1" "$1"
    shift
    printf '%s\n' "$@" '<end of output>' 'Test Passed.'
}
: >said
{ ran unit/one "  skipped: only root can do that" "1 passed"; ran unit/three fine; } >log
expect 0 core "skipped in unit/one: only root can do that" "1 skips in core, 0 of them"
expect 1 asan "SKIPPED, NOT ALLOWED in unit/one"
ran unit/one "skipped: only root can do that today" >log
expect 1 core "SKIPPED, NOT ALLOWED in unit/one: only root can do that today"
ran unit/three "skipped: only root can do that" >log
expect 1 core "SKIPPED, NOT ALLOWED in unit/three"
ran unit/two "a_case" "1 skipped" "2 passed, 0 failed" >log
expect 1 core "SKIPPED, NOT ALLOWED in unit/two: no reason given by a case"
ran unit/two "  skipped: only you can do that" "1 skipped" >log
expect 0 core "skipped in unit/two: only you can do that"
ran unit/three silent >log
echo '1/9 Test  #1: unit/three .............***Skipped   0.01 sec' >said
expect 1 core "SKIPPED, NOT ALLOWED in unit/three: no reason given"
echo '1/9 Test #1: unit/four ...........***Not Run   0.00 sec' >said
expect 1 core "SKIPPED, NOT ALLOWED in unit/four: no reason given"
: >said
: >log
expect 2 core
ran unit/one fine >log
expect 0 core
echo "core unit/one" >>list
expect 2 core
"$check" core log said >out 2>err || fail "skips.list: $(cat out err)"

# Listed from here: ctest -N would empty the log of the run that this test is part of.
echo "subdirs(\"$TSLAB_BUILD_DIR\")" >CTestTestfile.cmake
ctest -N | sed -n 's/^ *Test *#[0-9]*: //p' >tests
[ -s tests ] || fail "no tests in $TSLAB_BUILD_DIR"
short=$TSLAB_SOURCE_DIR/tests/short.list
grep -v '^#\|^$' "$short" | while read -r part test reason; do
    case $part in core | rest | tsan | asan | msan | debug | clang-release) ;; *) fail "$short: no part is called '$part'" ;; esac
    [ -n "$reason" ] || fail "$short: why $test?"
    grep -qxE "$test" tests || fail "$short: no test is called $test"
done
