#!/bin/bash
# docs/options.md has exactly the options of src/api/options.def: same names, types, ranges and defaults, same order.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"

in_table() {
    sed -nE 's/^OPTION\(([a-z_]+), *([^,]+), *([^,]+), *([^,]+), *"([a-z]+)".*/\1 \5 \2..\3 \4/p' src/api/options.def |
        sed 's/UINT64_MAX/18446744073709551615/g'
}
on_page() {
    sed -nE 's/^\| `([a-z_]+)` \| ([a-z]+) \| ([0-9]+\.\.[0-9]+) \| ([0-9]+) \| .+ \|$/\1 \2 \3 \4/p' docs/options.md
}

table=$(in_table)
[ "$(wc -l <<<"$table")" = "$(grep -c '^OPTION(' src/api/options.def)" ] ||
    fail "a line of src/api/options.def has a form that this test does not read"
diff -u --label src/api/options.def <(echo "$table") --label docs/options.md <(on_page) ||
    fail "docs/options.md does not list the options of src/api/options.def"

diff -u --label tslab/internal/options/table.go tslab/internal/options/table.go <(scripts/options.sh print) ||
    fail "tslab/internal/options/table.go is out of date: scripts/options.sh writes it"

# A value of the struct must have a field: the names are those of SlabOptions.
for name in $(cut -d' ' -f1 <<<"$table"); do
    grep -qE "^ +uint[0-9]+_t $name;" include/slab_alloc.h || fail "SlabOptions has no field $name"
done
