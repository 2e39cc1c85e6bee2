#!/bin/bash
# stats_dump: every flag, the two streams kept apart, wrong words and the right ones suggested, streams that fail.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
dump=$TSLAB_BUILD_DIR/stats_dump

tested=("$dump")
json() {
    if command -v python3 >/dev/null; then
        python3 -c 'import json, sys; sys.exit(not isinstance(json.load(open(sys.argv[1])), dict))' "$1" || complain "$1 is no JSON object"
    else
        [ "$(head -c 1 "$1")" = "{" ] || complain "$1 is no JSON object"
    fi
}

# The streams.
expect 0 --seconds 0.1
json out
has err 'madvise calls'
has err ' class '
lacks err 'doctor'
expect 0 --seconds 0 --no-text
json out
empty err
expect 0 --seconds=0 --no-json
empty out
has err 'requests'
expect 2 --pid 1 --no-json --no-text
has err 'there is nothing to write about process 1'
expect 0 --seconds 0 --no-json --no-text
has err 'with --no-json and --no-text, nothing is written'
empty out
[ "$(wc -l <err)" -eq 1 ] || complain "more than a line: $(cat err)"
expect 0 --seconds 0 --no-json --json --no-text --text
json out
has err 'requests'

# No room for an allocator: the reason is named. Programs with a sanitizer do not start in so little.
if ! nm -D "$dump" | grep -qE '__(asan|tsan)_init'; then
    named=0
    for kib in {2000..8000..100}; do # the program and its libraries take some of it
        # shellcheck disable=SC2016  # for the inner shell
        bash -c 'ulimit -v "$0" && exec "$@"' "$kib" "$dump" --seconds 0 --no-text >out 2>err
        case $? in
            0) ;;
            127) continue ;; # the loader
            *)
                grep -qE '^stats_dump: no (allocator|statistics): ' err || complain "under $kib KiB: $(head -n 1 err)"
                empty out
                ;;
        esac
        grep -q '^stats_dump: no allocator: .*memory' err && named=$((named + 1))
    done
    [ "$named" -gt 0 ] || complain "no limit is named as the reason for no allocator"
fi

# Patterns and the doctor.
until_said() { # PATTERN SECONDS ARGUMENT...: for so long, or longer where a busy machine has left it no time for that
    local pattern=$1 seconds
    for seconds in $2 20 200; do
        expect 0 --seconds "$seconds" "${@:3}"
        ! grep -q -e "$pattern" err || return
    done
    has err "$pattern"
}
expect 0 --seconds 0.2 --pattern clean --doctor --no-json --no-text
has err '^1. Leaks: none found'
lacks err 'Too young'
has err '^7. Labels'
until_said 'Too young to judge: .* "POST /orders"' 0.2 --pattern=leak --doctor --no-json --no-text
until_said 'ACTION: double_free' 1 --pattern mixed --doctor --no-text
json out
has err '^4. Sampling'

# Help, version.
expect 0 --help
empty err
for flag in --json --no-json --text --no-text --doctor --help --version --pattern --seconds --pid; do has out "$flag"; done
expect 0 --version
grep -qE '^stats_dump [0-9]+\.[0-9]+\.[0-9]+$' out || complain "--version: $(cat out)"

# Wrong words.
wrong() { # SUGGESTION ARGUMENT...
    local suggestion=$1
    shift
    expect 2 "$@"
    empty out
    has err "$suggestion"
}
wrong 'did you mean --json?' --jsno
wrong 'did you mean --no-text?' --notext
wrong 'did you mean --doctor?' --docter
wrong 'did you mean --pattern?' --patern=leak
wrong 'did you mean leak?' --pattern laek
wrong 'see stats_dump --help' --something-else-entirely-and-longer-than-any
wrong 'see stats_dump --help' stray
wrong 'needs a value' --seconds
wrong 'needs a value' --pattern=
wrong 'takes a number' --seconds soon
wrong 'takes a number' --seconds -1
wrong 'takes no value' --json=yes

wrong '--pid takes a whole number from 1 ' --pid 12x
wrong '--pid takes a whole number from 1 ' --pid 0
wrong 'cannot be combined with --pid' --pid 1 --seconds 2
wrong 'cannot be combined with --pid' --doctor --pid 1

# Another process: one that shows its statistics, one that does not, one that is no more.
TSLAB_OPTIONS=segment=1 "$dump" --seconds 1200 --no-json --no-text &
shown=$!
"$dump" --seconds 1200 --no-json --no-text &
hidden=$!
trap 'kill $shown $hidden 2>/dev/null' EXIT
for _ in $(seq 1200); do # until it has requests to tell of
    "$dump" --pid $shown 2>err | grep -q '"label":"POST /orders"' && break
    sleep 0.1
done
expect 0 --pid $shown --json --no-text
json out
empty err
grep -q "^\"pid\":$shown,*$\|^,\"pid\":$shown$" out || complain "--pid $shown shows another process: $(grep pid out)"
expect 0 --pid $shown --no-json
empty out
header() { # STATE
    grep -qE "^process $shown, allocator 0: $1; publication [1-9][0-9]*, figures of [0-9]+\.[0-9] s ago\$" err || complain "no header that says $1: $(cat err)"
}
header running
has err '^memory '
has err '^ *class '
grep -qE '^POST /orders( +[0-9.]+){6}$' err || complain "no row of a label: $(cat err)"
grep -E '^POST /orders' err | grep -qE ' [1-9][0-9]* +[1-9]' || complain "a row without figures: $(cat err)"
kill -STOP $shown
for _ in $(seq 1200); do # it may be in the kernel still
    expect 0 --pid $shown --no-json
    grep -q ': stopped;' err && break
    sleep 0.1
done
header stopped
kill -CONT $shown
expect 0 --seconds 0.5 --no-text --pattern clean
mv out own
"$dump" --pid $shown >out 2>err
if command -v python3 >/dev/null; then
    python3 - own out <<'END' || complain "--pid and the program's own document have different keys"
import json, sys
own, other = (json.load(open(name)) for name in sys.argv[1:])
rows = lambda d: {k: sorted(v[0]) for k, v in d.items() if isinstance(v, list) and v}
assert sorted(own) == sorted(other), sorted(set(own) ^ set(other))
assert all(rows(own)[k] == rows(other)[k] for k in ("classes", "labels", "epochs")), "rows"
assert other["segment_publications"] > 0 and other["slowpath_sampling"].keys() == own["slowpath_sampling"].keys()
END
fi
expect 1 --pid $hidden
has err 'shows no statistics'
kill $shown $hidden
wait $shown $hidden 2>/dev/null
trap - EXIT
expect 1 --pid $shown
has err 'there is no process'

# Streams that fail.
if [ -w /dev/full ]; then
    for arguments in "--seconds 0 --no-text" "--help" "--version"; do
        status=0
        # shellcheck disable=SC2086  # a list of words
        "$dump" $arguments >/dev/full 2>err || status=$?
        [ $status -eq 1 ] || complain "$arguments to a full device: exit $status"
        has err 'standard output: No space'
    done
    status=0
    "$dump" --seconds 0 --no-json 2>/dev/full || status=$?
    [ $status -eq 1 ] || complain "text to a full device: exit $status"
fi
status=0
"$dump" --seconds 0 --no-text >&- 2>err || status=$?
[ $status -eq 1 ] || complain "JSON to a closed output: exit $status"
has err 'standard output'
status=0
"$dump" --seconds 0 --no-json >&- 2>err || status=$?
[ $status -eq 0 ] || complain "text with a closed output: exit $status"
"$dump" --seconds 0 --no-text 2>err | cat >out
[ "${PIPESTATUS[0]}" -eq 0 ] || complain "in a pipe: $(cat err)"
json out
"$dump" --seconds 0.3 --no-text 2>err | true
status=${PIPESTATUS[0]}
[ "$status" -le 1 ] || complain "a reader that leaves: exit $status"

finish
