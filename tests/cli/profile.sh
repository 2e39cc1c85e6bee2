#!/bin/bash
# tslab profile --pid: what it fetches out of a process that runs or is stopped, go tool pprof opens, and each label holds
# its bytes there, and each maker, within what thousands of samples allow. The process is asked nothing: what it has published is read.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
pprof_help=$(timeout 600 "$go" tool pprof -h 2>&1) # newer Go compiles it when it is first used: not this test's work
case $pprof_help in *usage*) ;; *) skip "go tool pprof does not work here: $pprof_help" ;; esac
unset TSLAB_OPTIONS NO_COLOR
build_tslab "$PWD/tslab"
compile_test profile/phases.c holder -fno-omit-frame-pointer

rm -f input truth
mkfifo input
TSLAB_OPTIONS=segment=1 ./holder - <input >truth &
pid=$!
exec 9>input # as long as it is open the holder stays
trap 'kill -CONT $pid 2>/dev/null; kill $pid 2>/dev/null' EXIT
told() { [ "$(wc -l <truth)" = 4 ]; }
eventually 120 told || fail "the program told of $(wc -l <truth) labels: $(cat truth)"

# What lives, in bytes, by pprof; the whole comes with it.
share() { # FILE TAG=NAME INDEX
    timeout 300 "$go" tool pprof -symbolize=none -top -unit=b -sample_index="$3" -tagfocus="${2%%=*}=^${2#*=}\$" -nodefraction=0 "$1" 2>errors |
        sed -nE 's/^Showing nodes accounting for ([0-9]+)B?, .*/\1/p'
}
near() { # WHAT GOT WANTED
    echo "$1: $2 bytes, really $3"
    awk -v got="${2:-0}" -v want="$3" 'BEGIN { exit !(got > 0.85 * want && got < 1.15 * want) }' || fail "$1: pprof says '$2' bytes, the program $3; $(cat errors)"
}
cpu() { awk '{ print $14 + $15 }' "/proc/$pid/stat"; }
signals() { grep -E '^(SigPnd|ShdPnd|TracerPid):' "/proc/$pid/status"; }

# The last publication may be of a moment before the last objects: until what the program has done is there.
is_there() {
    ./tslab profile --pid $pid -o running.pb.gz >/dev/null &&
        [ "$(./tslab profile --file running.pb.gz --json | sed -nE '/"open_session"/,/\}/s/.*"cum": ([0-9]+).*/\1/p')" -gt 4000000 ] 2>/dev/null # made last
}
eventually 120 is_there || fail "what the program holds does not come: $(./tslab profile --pid $pid 2>&1)"
before=$(signals)
kill -STOP $pid
stopped() { grep -q '^State:.T' /proc/$pid/status; }
eventually 120 stopped || fail "it does not stop"
used=$(cpu)
./tslab profile --pid $pid -o stopped.pb.gz || fail "tslab profile of a stopped process"
./tslab profile --pid $pid >text || fail "tslab profile of a stopped process, as text"
[ "$(cpu)" = "$used" ] || fail "the stopped process has run"
stopped || fail "the process is no longer stopped"
kill -CONT $pid
while read -r tag label allocated in_use; do
    near "$label in use" "$(share stopped.pb.gz "$tag=$label" inuse_space)" "$in_use"
    [ "$label" = page ] || continue # half of it was freed
    near "$label allocated" "$(share stopped.pb.gz "$tag=$label" alloc_space)" "$allocated"
    near "$label in use, while it ran" "$(share running.pb.gz "$tag=$label" inuse_space)" "$in_use"
done <truth
timeout 300 "$go" tool pprof -symbolize=none -top -cum -nodefraction=0 stopped.pb.gz >top 2>&1
for function in parse_headers render_page grow_index open_session serve main; do
    grep -q "^$function " text || fail "no $function in: $(cat text)"
    grep -q " $function\$" top || fail "pprof finds no $function in: $(cat top)"
done
grep -E '^(main|serve) ' text | grep -vq ' 100.0 %$' && fail "not all below main and serve: $(cat text)"
# By maker: a row, and the functions of it.
grep -qE '^\(unlabeled\) +login +[0-9.]+ MiB ' text || fail "no row of what login made outside in: $(cat text)"
./tslab profile --pid $pid --maker login >made || fail "tslab profile --maker"
grep -q '^function (inuse_space made by "login") ' made && grep -qE '^open_session .* 100.0 %$' made && ! grep -q '^grow_index ' made ||
    fail "not the functions of what login made: $(cat made)"
# Without names pprof finds them itself, by the mappings.
./tslab profile --pid $pid --names=false -o bare.pb.gz >/dev/null || fail "--names=false"
timeout 300 "$go" tool pprof -symbolize=local -top -cum -nodefraction=0 ./holder bare.pb.gz 2>&1 | grep -q ' render_page$' || fail "pprof finds no names by the mappings"
[ "$(grep -c . <<<"$before")" = 3 ] && [ "$(signals)" = "$before" ] || fail "signals or a tracer: $before, then $(signals)"

# A program that was replaced while it ran still has its names.
cp holder other && mv other holder
./tslab profile --pid $pid -n 0 | grep -q '^parse_headers ' || fail "no names after the file was replaced: $(./tslab profile --pid $pid -n 0 2>&1)"
exec 9>&-
wait $pid || fail "the program ended with $?"
trap - EXIT
./tslab profile --pid $pid >out 2>errors
[ $? = 2 ] && grep -q 'no such process' errors || fail "of a process that has ended: $(cat out errors)"
echo "passed"
