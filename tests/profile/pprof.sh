#!/bin/bash
# go tool pprof opens the profile: each label holds its bytes, and each maker, within what thousands of samples allow, and where the
# program keeps frame pointers its functions are named.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
PATH=$PATH:/usr/local/go/bin
need go "go is not installed: nothing else here opens the format"
# Newer Go compiles pprof when it is first used: that is not this test's work.
export CGO_ENABLED=0 # as the other tests do with Go
timeout 600 go tool pprof -h >help 2>&1 || true
grep -q '^usage' help || skip "go tool pprof does not work here: $(head -n 1 help)"

pprof() { timeout 300 go tool pprof -symbolize=local "$@" 2>errors || fail "pprof $*: $(cat errors)"; }
# Bytes of the line "Showing nodes accounting for N, ..." or "for NB, ..."
total() { sed -nE 's/^Showing nodes accounting for ([0-9]+)B?, .*/\1/p' | head -n 1; }
near() { # WHAT GOT WANTED
    echo "$1: $2 bytes, really $3"
    awk -v got="${2:-0}" -v want="$3" 'BEGIN { exit !(got > 0.85 * want && got < 1.15 * want) }' || fail "$1: pprof says '$2' bytes, the program $3"
}

compile_test profile/phases.c plain -fomit-frame-pointer
compile_test profile/phases.c framed -fno-omit-frame-pointer
for program in plain framed; do
    ./$program $program.pb >$program.truth
    [ "$(wc -l <$program.truth)" = 4 ] || fail "the program told of $(wc -l <$program.truth) labels"
done
while read -r tag label allocated in_use; do
    near "$label in use" "$(pprof -top -unit=b -tagfocus="$tag=^$label\$" -nodefraction=0 ./plain plain.pb | total)" "$in_use"
    [ "$label" = page ] || continue # half of it was freed
    near "$label allocated" "$(pprof -top -unit=b -sample_index=alloc_space -tagfocus="label=^$label\$" -nodefraction=0 ./plain plain.pb | total)" "$allocated"
done <plain.truth

# Names and callers; the function that called the library is there in any case.
pprof -top -cum -nodefraction=0 ./framed framed.pb >top
for function in parse_headers render_page grow_index open_session; do
    grep -q " $function\$" top || fail "no $function in: $(cat top)"
done
grep -E ' (serve|main)$' top | awk '{ if ($5 + 0 < 99) exit 1 }' || fail "not all below serve and main: $(cat top)"
pprof -top -cum -nodefraction=0 ./plain plain.pb >top
grep -q ' parse_headers$' top || fail "without frame pointers no parse_headers in: $(cat top)"
pprof -raw ./framed framed.pb >raw
grep -q 'bytes:\[' raw && grep -q 'era:\[' raw && grep -q 'class:\[' raw || fail "no size, era or class: $(head -n 20 raw)"
