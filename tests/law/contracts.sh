#!/bin/bash
# Contracts of functions in src/ and preload/: the comment of each, at its declaration in a header or else at its
# definition, ends with a tag that says which thread may call it and what must be held (src/README.md), and has a sentence
# with "Returns" unless the function is void. Left out are public functions, whose contracts stand in include/, and operators of C++.
# usage: contracts.sh [FILE...]
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"
export LC_ALL=C.UTF-8

# Prints "file:line: name: what is missing" for each function, then "seen: N functions". A function is what the formatter
# leaves in the first column: one line, or several until "{" or ";".
broken() {
    python3 - "$@" <<'PY'
import re
import sys

OTHER = re.compile(r"typedef|(struct|enum|union)\b(?!.*\()|extern|_Static_assert|#|[A-Z_]+\(")
HEAD = re.compile(r"[A-Za-z_][\w *]*?[ *](\w+)\(|__attribute__\(\(constructor\)\) static void (\w+)\(")
END = re.compile(r"([;{]|\{.*\})\s*(/\*.*\*/)?$")
TAG = re.compile(r"\[[a-z][^\[\]]*\]\s*\*/$")


def functions(path):
    with open(path, encoding="utf-8") as source:
        lines = source.read().split("\n")
    at = 0
    while at < len(lines):
        first = at
        at += 1
        if not re.match(r"[A-Za-z_]", lines[first]) or OTHER.match(lines[first]):
            continue
        said = lines[first]
        while not END.search(said) and at < len(lines):
            said += " " + lines[at].strip()
            at += 1
        head = HEAD.match(said)
        if head is None or "=" in said[:head.end()]:
            continue
        top = first
        if lines[first - 1].endswith("*/"):
            top -= 1
            while lines[top].startswith(" *"):
                top -= 1
        comment = "\n".join(lines[top:first]) if lines[top].startswith("/*") else ""
        yield head[1] or head[2], first + 1, said.rstrip().endswith(";"), re.search(r"\bvoid \w+\($", head[0]), comment


with open("src/exports.map", encoding="utf-8") as exports:
    PUBLIC = set(re.findall(r"^    (\w+);", exports.read(), re.M))  # their contracts stand in include/
found, declared = [], {}
for path in sys.argv[1:]:
    for name, line, declares, void, comment in functions(path):
        found.append((path, name, line, declares, void, comment))
        if path.endswith(".h") and not declared.get(name):
            declared[name] = comment
for path, name, line, declares, void, comment in found:
    said = comment if path.endswith(".h") and comment else declared.get(name) or comment
    if declares and not path.endswith(".h") or name in PUBLIC or name.startswith("_Z"):
        continue
    lacks = [] if said else ["comment"]
    lacks += [] if TAG.search(said) else ["tag"]
    lacks += [] if void or "Returns" in said else ["Returns"]
    if lacks:
        print(f"{path}:{line}: {name}: no {', no '.join(lacks)}")
print(f"seen: {len(found)} functions")
PY
}

# The check sees what it is for.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/known.h" <<'C'
/* Frees p. [any thread] */
void f(void* p);
/* Returns p. */
void* g(void* p);
/* Gives p. [own thread] */
static inline int k(void* p) { return 0; }
int m(void);
C
[ "$(broken "$scratch/known.h" | grep -c ': no ')" = 3 ] || fail "the check finds $(broken "$scratch/known.h")"

files=("$@")
[ $# != 0 ] || mapfile -t files < <(ls src/*/*.[ch] preload/*.[ch])
found=$(broken "${files[@]}")
seen=$(grep -o 'seen: [0-9]*' <<<"$found" | grep -o '[0-9]*')
[ $# != 0 ] || [ "$seen" -gt 1900 ] || complain "only $seen functions seen"
found=$(grep -v '^seen:' <<<"$found") || true
[ -z "$found" ] || complain "$(wc -l <<<"$found") functions without a contract:
$found"
finish
