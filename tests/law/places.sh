#!/bin/bash
# Each mutant of a protocol model names the function whose step it changes, of src/ or an inlined path of include/: a row of
# tests/models/places.tsv for each, no row without one, and a function of that name in that file.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"
export LC_ALL=C.UTF-8

# Prints what is wrong with the rows of FILE, then "seen: N mutants".
broken() {
    python3 - "$1" <<'PY'
import glob
import os
import re
import sys

with open(sys.argv[1], encoding="utf-8") as table:
    rows = [line.rstrip("\n").split("\t") for line in table if not line.startswith("#")]
mutants = set()
for path in glob.glob("tests/models/*.pml") + glob.glob("tests/models/*.h"):
    with open(path, encoding="utf-8") as model:
        for line in model:
            if line.lstrip().startswith("#"):
                mutants |= {(os.path.basename(path), name) for name in re.findall(r"MUTANT_(\w+)", line)}
named = [(row[0], row[1]) for row in rows if len(row) == 4]
for row in rows:
    if len(row) != 4:
        print(f"a row has {len(row)} fields: {row}")
        continue
    model, name, path, function = row
    if (model, name) not in mutants:
        print(f"{model} has no mutant {name}")
    if not os.path.exists(f"src/{path}"):
        print(f"{name}: there is no src/{path}")
        continue
    with open(f"src/{path}", encoding="utf-8") as source:
        # defined there: from the first column to the "{" of its body
        if not re.search(rf"(?m)^(?:SLAB_\w+\(\w*\) )?[A-Za-z_][\w *]*[ *]{function}\([^;{{]*\{{", source.read()):
            print(f"{name}: src/{path} defines no {function}")
for model, name in sorted(mutants - set(named)):
    print(f"{model}: mutant {name} names no place")
for pair in sorted({pair for pair in named if named.count(pair) > 1}):
    print(f"{pair[0]}: mutant {pair[1]} has two rows")
print(f"seen: {len(mutants)} mutants")
PY
}

# The check sees what it is for.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
{
    grep -v 'grants.pml.*LABEL_FIRST' tests/models/places.tsv
    printf 'grants.pml\tLABEL_LAST\taccount/charge.c\tlabel_charge\ngrants.pml\tKEEPS_OTHERS\taccount/charge.c\tno_such\n'
} >"$scratch/places.tsv"
[ "$(broken "$scratch/places.tsv" | grep -c -e 'no mutant LABEL_LAST' -e 'defines no no_such' -e 'LABEL_FIRST names no place' -e 'KEEPS_OTHERS has two rows')" = 4 ] ||
    fail "the check finds $(broken "$scratch/places.tsv")"

found=$(broken tests/models/places.tsv)
seen=$(grep -o 'seen: [0-9]*' <<<"$found" | grep -o '[0-9]*')
[ "$seen" -ge 150 ] || complain "only $seen mutants seen"
found=$(grep -v '^seen:' <<<"$found") || true
[ -z "$found" ] || complain "$found"
echo "$seen mutants name the place they stand for"
finish
