#!/bin/bash
# Names of one letter in src/ and preload/: a pointer to a structure has one only if it is b (binding), h (heap), s (space),
# l (line), r (region), a (allocator) or d (domain); everything else is spelled.
# usage: letters.sh [FILE...]
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"
export LC_ALL=C

# Prints "file:line: declaration" for each one-letter name of a pointer that another type has.
broken() {
    python3 - "$@" <<'PY'
import re
import sys

LETTERS = {"b": "TsiBinding", "h": "TsiHeap", "s": "TsiSpace", "l": "TsiLine", "r": "TsiRegion",
           "a": "TsiArena SlabAllocator", "d": "TsiDomain epoch_domain_t"}
SKIPPED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
DECLARED = re.compile(r"\b([A-Z]\w*[a-z]\w*|epoch_domain_t)\s*\*+\s*(?:const\s+|restrict\s+)*([A-Za-z])\s*(?=[=;,)\[])")
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as source:
        text = SKIPPED.sub(lambda found: "\n" * found[0].count("\n"), source.read())
    for found in DECLARED.finditer(text):
        if found[1] not in LETTERS.get(found[2], "").split():
            print(f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {' '.join(found[0].split())}")
PY
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The check sees what it is for.
cat > "$scratch/bad.c" <<'C'
void f(TsiInc* i);
void g(TsiBinding* b, const TsiHeap* h);
static void k(void) { TsiSlab *b = x; }
C
[ "$(broken "$scratch/bad.c" | wc -l)" = 2 ] || fail "the check of letters does not see two of three declarations"

if [ $# -gt 0 ]; then files=("$@"); else files=(src/*/*.[ch] preload/*.[ch]); fi
found=$(broken "${files[@]}")
[ -z "$found" ] || fail "one-letter names of other types than CONTRIBUTING allows:
$found"
