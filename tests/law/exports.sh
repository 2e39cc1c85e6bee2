#!/bin/bash
# One list of public functions: what include/*.h declares, src/exports.map names and the shared library exports are the
# same, and the static library has no other global name that does not start with tsi_, but for the one that <sys/sdt.h> makes:
# weak, hidden, and no C name.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"
list=$(scripts/public-functions.sh)
[ -n "$list" ] || fail "no public function found in include/"

diff -u src/exports.map <(scripts/public-functions.sh --map) ||
    fail "src/exports.map is out of date: scripts/public-functions.sh --map > src/exports.map"

# Every symbol but the version's own (type A).
exported=$(nm -D --defined-only "$TSLAB_BUILD_DIR/libtemporal_slab.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }')
diff -u --label include/ <(echo "$list") --label libtemporal_slab.so <(sort -u <<<"$exported") ||
    fail "the shared library does not export what the headers declare"

strangers=$(nm -g --defined-only "$TSLAB_BUILD_DIR/libtemporal_slab.a" 2>/dev/null | awk 'NF == 3 { print $3 }' |
    grep -vE '^(tsi_|_\.stapsdt\.base$)' | sort -u | comm -23 - <(echo "$list"))
[ -z "$strangers" ] || fail "global names in libtemporal_slab.a that are neither public nor tsi_*: $strangers"
