#!/bin/bash
# `tslab run`: a program that knows nothing of the library runs with it as its malloc, is found by tslab, under the label
# that was given, and ends with its own exit code. What takes no library from outside is refused.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
unset TSLAB_OPTIONS NO_COLOR LD_PRELOAD
build_tslab "$PWD/tslab"
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
[ -f "$preload" ] || skip "no libtemporal_slab_preload.so in this build"

status=0
./tslab run --library "$preload" sh -c 'echo out; echo err >&2; exit 7' >out 2>err || status=$?
[ $status = 7 ] || complain "exit code $status"
has out '^out$'
has err '^err$'
[ "$(cat out err | wc -l)" = 2 ] || complain "more was said: $(cat out err)"

mkfifo input
./tslab run --library "$preload" --label "web server" sort <input >out 2>err &
pid=$!
trap 'kill $pid 2>/dev/null' EXIT
exec {hold}>input
shows() { ./tslab ls 2>/dev/null | grep -q "^ *$pid  *sort"; }
eventually 120 shows || complain "tslab ls does not show it: $(./tslab ls 2>&1)"
./tslab top --labels --pid $pid >seen 2>&1 || complain "top: $(cat seen)"
has seen '^web server '
./tslab doctor --pid $pid >seen 2>&1 || complain "doctor: $(cat seen)"
printf 'b\na\n' >&$hold
exec {hold}>&-
wait $pid || complain "sort: exit code $?"
[ "$(xargs <out)" = "a b" ] || complain "sort says $(cat out err)"

# Beside it, and where the system has it.
mkdir -p prefix/bin prefix/lib && cp tslab prefix/bin && cp "$preload" prefix/lib
prefix/bin/tslab run --print >out || complain "not found in ../lib"
has out "LD_PRELOAD=.*prefix/lib/libtemporal_slab_preload.so"

tested=(./tslab run --library "$preload")
expect 2 ./tslab --version
has err 'is linked statically'
cp "$(type -P true)" rights && chmod 6755 rights
if [ "$(id -u)" -eq 0 ] && chown 1:1 rights && chmod 6755 rights; then
    expect 2 ./rights
    has err 'more privileges than its user'
fi
finish
