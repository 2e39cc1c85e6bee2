#!/bin/bash
# rust/tslab-sys/src/bindings.rs says of functions, structures and constants what include/*.h says of them, and leaves none out: gcc
# compiles both. (That the numbers which it says of structures are so in Rust, rustc checks whenever it compiles it.)
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
need python3
need gcc
/usr/bin/env python3 "$TSLAB_SOURCE_DIR/tests/rust/bindings.py" "$TSLAB_SOURCE_DIR/rust/tslab-sys/src/bindings.rs" >check.c 2>err ||
    fail "bindings.rs has a form that this test does not read: $(tail -n 3 err)"
compiles() { gcc -std=gnu11 -Wall -Wextra -Werror -I"$TSLAB_SOURCE_DIR/include" -fsyntax-only "$1" >"$1.said" 2>&1; }
compiles check.c || fail "bindings.rs differs from the headers, scripts/rust-bindings.sh writes it: $(head -n 20 check.c.said)"

# It would be seen.
for change in 's/_Static_assert(sizeof(SlabOptions) == [0-9]*/&1/' 's/offsetof(EpochReceipt, close_ns) == [0-9]*/&1/' 's/== SLAB_ERROR_BUSY/+ 1 &/' \
    '/all_of_SlabOptions /s/, 0}/}/' '/all_of_EpochReceipt /s/, 0}/, 0, 0}/' \
    's/extern bool epoch_domain_reset(epoch_domain_t \*/&, int/' 's/extern size_t slab_good_size/extern int slab_good_size/' \
    's/_Generic(((SlabOptions\*)0)->quiet, uint8_t/_Generic(((SlabOptions*)0)->quiet, uint32_t/'; do
    sed "$change" check.c >changed.c
    cmp -s check.c changed.c && complain "nothing to change by $change"
    compiles changed.c && complain "gcc takes $change"
done

"$TSLAB_SOURCE_DIR/scripts/public-functions.sh" | sort >public
sed -nE 's/^    pub fn ([a-z_0-9]+)\(.*/\1/p' "$TSLAB_SOURCE_DIR/rust/tslab-sys/src/bindings.rs" | sort >declared
[ "$(wc -l <public)" -gt 100 ] || fail "no public functions"
diff public declared >differ || complain "functions (< missing, > unknown): $(cat differ)"
grep -hoE '^ *(EPOCH|SLAB)_[A-Z_0-9]+( = [^,]*)?,?( |$)' "$TSLAB_SOURCE_DIR"/include/{slab_alloc,slab_stats,slab_segment,epoch_domain,slab_diagnostics,slab_lane}.h |
    grep -oE '[A-Z][A-Z_0-9]+' | grep -vx SLAB_API | sort -u >constants
while read -r name; do
    grep -qE "pub const $name:" "$TSLAB_SOURCE_DIR/rust/tslab-sys/src/bindings.rs" || complain "no constant $name"
done <constants
[ "$(wc -l <constants)" -gt 50 ] || complain "only $(wc -l <constants) constants found"
finish
