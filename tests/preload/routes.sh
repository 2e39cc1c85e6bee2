#!/bin/bash
# Phases in a program that is linked with nothing of the library. Without it the program is as it was; under it objects and
# usable bytes of each phase, and of each route, are what an interposer in front of malloc counts between the same begins and
# ends. A program at a fixed address, a static one and one of C++ have the same calls.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
from=$TSLAB_SOURCE_DIR/tests/preload/counted
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
unset TSLAB_OPTIONS LD_PRELOAD
built=(-O1 -g -pthread -fno-builtin -I"$TSLAB_SOURCE_DIR/include" "$from/routes.c")
cc "${built[@]}" -o routes || fail "routes.c does not compile"
cc -O1 -g -shared -fPIC -pthread -I"$TSLAB_SOURCE_DIR/include" "$from/counts.c" -ldl -o counts.so || fail "counts.c does not compile"
compile_test preload/counted/shows.c shows
! nm -D --undefined-only routes | grep -E ' U .*(slab|tsl)' || complain "the program needs a name of ours"

rounds=20
! scale_reaches 1 || rounds=100
counted() { env COUNTS=counts.txt LD_PRELOAD="$PWD/counts.so:$preload" "$@"; }

./routes $rounds >plain 2>err || fail "routes alone: $(cat err)"
for options in decay_ms=500 shared=1 bump=2 purge_policy=2,warm_bytes=0; do
    TSLAB_OPTIONS=$options LD_PRELOAD=$preload ./routes $rounds >under 2>err || complain "$options: $(cat err)"
    empty err
    cmp plain under || complain "$options: other output under the library"
    TSLAB_OPTIONS=$options counted ./routes $rounds >under 2>err || complain "$options, counted: $(cat err)"
    cmp plain under || complain "$options: other output when counted"
    has counts.txt "^differ 0 of $((rounds * 31))\$"
    empty err
done
# What libc keeps is outside; a cache entry a request is not, unless the program says so.
escapes() { awk -F '\t' -v label="$1" '$1 == label { print $4 }' counts.txt; }
[ "$(escapes keeps)" = 0 ] || complain "keeps: $(escapes keeps) escape"
[ "$(escapes outer)" = 0 ] || complain "outer: $(escapes outer) escape"
[ "$(escapes cache)" = $rounds ] || complain "cache: $(escapes cache) escape"
TSLAB_PRELOAD_LIBC=phase LD_PRELOAD="$PWD/counts.so:$preload" COUNTS=counts.txt ./routes $rounds >under 2>err
has err '^keeps: counted 2/' # the interposer holds what libc keeps for outside, and here it is not
cmp plain under || complain "TSLAB_PRELOAD_LIBC=phase: other output"

# Routes as readers of the process see them: sums by label, what has escaped so far, and what drains now.
counted ./routes $rounds >under 2>err && cp counts.txt before.txt
mkfifo hold
COUNTS=counts.txt TSLAB_OPTIONS=segment=1 LD_PRELOAD="$PWD/counts.so:$preload" ./routes $rounds wait <hold >under 2>err &
pid=$!
trap 'kill $pid 2>/dev/null' EXIT
exec {end}>hold
says_it() { [ -s under ]; }
eventually 300 says_it || fail "routes ... wait says nothing: $(cat err)"
cat >compare.py <<'END'
import json, sys
labels = {row["label"]: row for row in json.load(open("shown.json"))["labels"]}
wrong = 0
for line in open("before.txt").readlines()[1:]:
    name, objects, size, escaped, escaped_bytes = line.rstrip("\n").split("\t")
    row = labels.get(name)
    if row is None:
        sys.exit("no label " + name)
    told = [row[key] for key in ("objects_allocated", "bytes_allocated", "objects_escaped", "bytes_escaped")]
    if told != [int(objects), int(size), int(escaped), int(escaped_bytes)]:
        print(name, "counted", line.split()[-4:], "told", told)
        wrong = 1
cache = labels["cache"]
if (cache["expected_objects"], cache["expected_bytes"], cache["unexpected_phases"]) != (1, 1024, 0):
    print("cache: expected", cache["expected_objects"], cache["expected_bytes"], "unexpected", cache["unexpected_phases"])
    wrong = 1
if not 0 < cache["draining_objects"] <= 64 or cache["unexpected_draining_objects"] != 0 or cache["oldest_draining_ns"] == 0:
    print("cache:", cache["draining_objects"], "drain, unexpected", cache["unexpected_draining_objects"])
    wrong = 1
sys.exit(wrong)
END
agrees() { ./shows $pid >shown.json 2>/dev/null && python3 compare.py >said 2>&1; }
if command -v python3 >/dev/null; then
    eventually 120 agrees || complain "labels of the segment: $(cat said)"
else
    echo "skipped: no python3 to read the document with"
fi
exec {end}>&-
wait $pid || complain "routes ... wait: exit code $?"
has counts.txt '^differ 0 of'

# The address of a weak function is a constant in a program at a fixed address; in a static one there is none.
cc "${built[@]}" -fno-pie -no-pie -o fixed || complain "routes.c does not link at a fixed address"
counted ./fixed 3 >under 2>err && has counts.txt '^differ 0 of 93$'
if cc "${built[@]}" -static -o still 2>/dev/null; then
    ./still $rounds >under 2>err || complain "static: $(cat err)"
    cmp plain under || complain "static: other output"
fi
if command -v c++ >/dev/null; then
    cat >scopes.cc <<'END'
#include <temporal_slab/phase.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
static std::vector<std::string> kept;
int main() {
    int caught = 0;
    for (int i = 0; i < 50; i++) try {
            tslab::phase_scope scope("c++");
            std::vector<std::string> words(100, "a word that is too long for the string itself");
            {
                tslab::outer_scope outside;
                kept.push_back(words[0]);
            }
            if (i % 2 != 0) throw std::runtime_error("left by an exception");
        } catch (const std::runtime_error&) {
            caught++;
        }
    std::printf("%d %d %zu\n", tslab_phase_is_there(), caught, kept.size());
}
END
    c++ -std=c++17 -O1 -g -I"$TSLAB_SOURCE_DIR/include" scopes.cc -o scopes || complain "scopes.cc does not compile"
    [ "$(./scopes)" = "0 25 50" ] || complain "C++ without the library: $(./scopes)"
    [ "$(counted ./scopes)" = "1 25 50" ] || complain "C++: $(counted ./scopes 2>&1)"
    has counts.txt '^differ 0 of 50$'
    # An exception and its text live until they are caught, which is later.
    [ "$(escapes c++)" -le 50 ] || complain "C++: $(cat counts.txt)"
fi
finish
