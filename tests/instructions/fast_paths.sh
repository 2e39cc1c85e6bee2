#!/bin/bash
# Instructions per operation, counted by callgrind: they do not depend on the machine's mood.
#
#   1. A label costs the fast paths nothing: the same count, to the instruction, with and without one. Nor does the
#      statistics segment.
#   2. They stay what they are: compared with golden.tsv, to TOLERANCE percent either way, where the compiler is
#      the one that file was made with.
#
# New golden counts, after a change that is meant: UPDATE=1 tests/instructions/fast_paths.sh, with TSLAB_SOURCE_DIR and
# TSLAB_BUILD_DIR set as ctest sets them.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
program=$TSLAB_BUILD_DIR/tests/instructions/fast_paths
golden=$TSLAB_SOURCE_DIR/tests/instructions/golden.tsv
TOLERANCE=2

need valgrind "valgrind is not installed"
[ -x "$program" ] || skip "only built by gcc without sanitizers: other builds have other counts"
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$TSLAB_BUILD_DIR/CMakeCache.txt")
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.calls"' EXIT
made_by="gcc $("$compiler" -dumpfullversion) $("$compiler" -dumpmachine)"

# count PATH N [WORD...]: instructions per operation, with two decimals
count() {
    local n=$2
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=counted "$program" "$@" 2>"$log" ||
        complain "fast_paths $*: $(tail -n 3 "$log")"
    awk -v n="$n" '/Collected/ { printf "%.2f", $4 / n }' "$log"
}

# entry_points PATH N [WORD...]: instructions of the public functions that run, without those that they call
entry_points() {
    valgrind --tool=callgrind --callgrind-out-file="$log.calls" --toggle-collect=counted "$program" "$@" 2>"$log" ||
        complain "fast_paths $*: $(tail -n 3 "$log")"
    callgrind_annotate --threshold=100 "$log.calls" |
        sed -nE 's/^ *([0-9,]+) .*:(slab_malloc|slab_free|alloc_obj|free_obj)( .*)?$/\2=\1/p' | sort | tr '\n' ' '
}

declare -A of=([alloc]=20000 [free]=20000 [free_sized]=20000 [pair]=20000 [wide]=20000 [remote_free]=20000 [remote_free_line]=20000
               [remote_free_unbound]=20000 [late_free]=20000 [late_free_first]=96 [handle_alloc]=20000 [handle_free]=20000
               [domain]=2000 [request]=200 [request_lane]=200 [request_run]=200 [request_sampled]=2000 [grow]=2000 [phase]=2000 [phase_freed]=2000
               [phase_budget]=2000
               [refused]=100)
paths="alloc free free_sized pair wide remote_free remote_free_line remote_free_unbound late_free late_free_first handle_alloc handle_free domain request request_lane request_run request_sampled grow phase phase_freed phase_budget refused"

# Taking a slab charges its label, one in some hundred allocations; frees and pairs take none.
for path in free pair remote_free handle_free; do
    without=$(count $path ${of[$path]})
    with=$(count $path ${of[$path]} label)
    echo "$path: $without without a label, $with with one"
    [ -n "$with" ] && [ "$without" = "$with" ] || complain "$path costs $without instructions, with a label $with"
done

# What slow paths do is not the same: each refill asks for the time when there is a segment. So here only the entry points
# themselves are counted, as often as they run.
for path in pair remote_free handle_alloc handle_free; do
    without=$(entry_points $path ${of[$path]})
    with=$(entry_points $path ${of[$path]} segment)
    echo "$path: entry points: $without without a segment, $with with one"
    [ -n "$with" ] && [ "$without" = "$with" ] || complain "$path: its entry points cost $without, with a segment $with"
done

if [ "${UPDATE:-0}" = 1 ]; then
    {
        echo "# instructions per operation; made by fast_paths.sh with: $made_by"
        for path in $paths; do printf '%s\t%s\n' "$path" "$(count "$path" "${of[$path]}")"; done
    } >"$golden"
    finish
fi

golden_by=$(sed -n '1s/.* with: //p' "$golden")
if [ "$made_by" != "$golden_by" ]; then
    echo "golden counts not compared: they were made with $golden_by, this is $made_by"
    finish
fi
while read -r path wanted; do
    [ "$path" = "#" ] && continue
    now=$(count "$path" "${of[$path]}")
    echo "$path: $now, golden $wanted"
    awk -v now="${now:-0}" -v wanted="$wanted" -v t=$TOLERANCE \
        'BEGIN { d = 100 * (now - wanted) / wanted; exit !(d <= t && d >= -t) }' ||
        complain "$path costs $now instructions, golden $wanted (tolerance $TOLERANCE %)"
done <"$golden"
finish
