#!/bin/bash
# A process is killed (SIGKILL) while tslab reads it in five ways: those that look once say that it is gone or what they have
# read, those that go on end with a word about it, or say it as long as they serve. None hangs or crashes, and the next process
# is read as before.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
[ -x "$TSLAB_BUILD_DIR/tslabd" ] || skip "no tslabd in this build"
unset TSLAB_OPTIONS NO_COLOR
clean
build_tslab "$PWD/tslab"
pids=""
trap 'code=$?; kill -9 $pids 2>/dev/null; exit $((code != 0 || failures != 0))' EXIT

# Reads by `tslab WORD...` again and again until the process is gone for it; then says with which status it ended last.
again() { # NAME WORD...
    local name=$1 status=0
    shift
    while [ $status -eq 0 ] || [ $status -eq 1 ]; do
        timeout 120 ./tslab "$@" >"$name.out" 2>"$name.err"
        status=$?
        [ $status -ne 0 ] || echo >>"$name.read"
    done
    echo $status >"$name.status"
}
read_by() { [ -s "$1.read" ]; } # NAME
rounds=3
! scale_reaches 2 || rounds=20
for round in $(seq $rounds); do
    rm -f ./*.out ./*.err ./*.read ./*.status
    TSLAB_OPTIONS=profile_bytes=4096 "$TSLAB_BUILD_DIR/tslabd" --listen=127.0.0.1:0 --pattern=steady >daemon.out 2>daemon.err &
    daemon=$!
    pids=$daemon
    eventually 60 ./tslab stats --pid $daemon --json >/dev/null 2>&1 || fail "round $round: tslabd cannot be read: $(cat daemon.err)"
    readers=""
    for name in stats doctor profile; do
        again $name $name --pid $daemon &
        readers="$readers $!"
    done
    timeout 120 ./tslab watch --pid $daemon --plain --interval 100ms >watch.out 2>watch.err &
    watch=$!
    ./tslab serve --pid $daemon --listen 127.0.0.1:0 >serve.out 2>serve.err &
    serve=$!
    pids="$daemon $watch $serve $readers"
    for name in stats doctor profile; do eventually 100 read_by $name || complain "round $round: $name reads nothing: $(cat $name.err)"; done
    eventually 100 grep -q serving serve.out || complain "round $round: serve does not begin: $(cat serve.err)"
    kill -9 $daemon
    wait $daemon 2>/dev/null
    for reader in $readers; do wait "$reader"; done
    for name in stats doctor profile; do
        [ "$(<$name.status)" = 2 ] || complain "round $round: $name ends with $(<$name.status): $(head -c 300 $name.err)"
        lacks $name.err 'panic\|goroutine'
        [ -s $name.err ] || complain "round $round: $name says nothing of a process that is gone"
    done
    status=0
    wait $watch || status=$?
    [ $status -ne 124 ] || complain "round $round: watch goes on without its process"
    lacks watch.err 'panic\|goroutine'
    kill -0 $serve 2>/dev/null || complain "round $round: serve has ended with the process: $(cat serve.err)"
    kill $serve 2>/dev/null
    wait $serve 2>/dev/null
    lacks serve.err 'panic\|goroutine'
done
./tslab ls >ls.out 2>&1
lacks ls.out "^ *$daemon "
finish
