#!/bin/bash
# Histories of the library, recorded while threads call it at random, are linearizable by the contract: checker/main.go says
# what that means here, and porcupine decides. A history with one false result is refused, whatever kind it is of.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
unset TSLAB_OPTIONS
clean
go=$("$TSLAB_SOURCE_DIR/scripts/find-go.sh" 2>&1) || skip "$go"
export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false CGO_ENABLED=0
cp -r "$TSLAB_SOURCE_DIR/tests/histories/checker" checker
(cd checker && "$go" mod download) >download.log 2>&1 || skip "porcupine cannot be fetched: $(tail -n 1 download.log)"
(cd checker && "$go" build -o ../check .) || fail "the checker does not build"
record=$TSLAB_BUILD_DIR/tests/histories/record

# Calls that do not overlap have one order only, so histories of few that do would show nothing.
overlap=0
[ "$(uname -m)" != x86_64 ] || overlap=5 # elsewhere no call is stopped in its middle

histories=$(python3 -c 'import os; print(max(50, int(200 * float(os.environ.get("TSLAB_TEST_SCALE", "1")))))')
for options in "" bump=2 shared=1 warm_bytes=0; do
    seed=$((RANDOM << 15 | RANDOM))
    TSLAB_OPTIONS=$options "$record" "$histories" "$seed" >recorded || fail "record $histories $seed with TSLAB_OPTIONS=$options: status $?"
    ./check -overlap $overlap <recorded >said
    status=$?
    echo "${options:-default options}, seed $seed: $(tail -n 1 said)"
    [ $status -eq 0 ] || fail "record $histories $seed with TSLAB_OPTIONS=$options: $(head -n 5 said)"
    [ "$(cut -d' ' -f1 said)" = "$histories" ] || fail "not all histories were checked: $(cat said)"
done

# A lie that other calls may explain, for they overlapped the one that lies, is no contradiction: one in ten does.
for lie in double late twice lost phantom turn stay over; do
    recorded=40
    [ $lie != twice ] || recorded=160 # few have a second object to tell it of
    "$record" $recorded 1 $lie >recorded || fail "record $recorded 1 $lie: status $?"
    ./check <recorded >said && fail "no history with the lie '$lie' is refused: $(tail -n 1 said)"
    read -r told _ _ _ refused _ < <(tail -n 1 said)
    echo "$lie: $(tail -n 1 said)"
    [ "$told" -ge 5 ] || fail "only $told histories can be given the lie '$lie'"
    [ $((refused * 4)) -ge $((told * 3)) ] || fail "of $told histories with the lie '$lie' only $refused are refused"
done

# Input that is no history is an error, and loses nothing.
printf 'history 1\nnonsense\nend\n' | ./check >said 2>errors
[ $? -eq 2 ] && grep -q nonsense errors || fail "nonsense is taken for a history"
printf 'history 1\n0 1 2 alloc 0 0 16 5\n' | ./check >said 2>errors
[ $? -eq 2 ] || fail "half a history is taken for one"
./check </dev/null >said
[ $? -eq 1 ] || fail "no history at all passes"
"$record" 0 1 2>errors
[ $? -eq 2 ] || fail "record takes no histories"
