#!/bin/bash
# Invariants: each name (R2) is defined once in src/, by " *   R2  ..." in the head of a file, every name that a comment cites is
# defined, and the table of docs/ARCHITECTURE.md has each of them in one row, which names the file.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"

defined=$(grep -rnoE '^ \*   [A-Z][0-9]  ' src --include=*.[ch] | sed -E 's,^src/([^:]*):.* ([A-Z][0-9])  $,\2 \1,' | sort)
[ "$(wc -l <<<"$defined")" -ge 40 ] || complain "only these invariants were found: $defined"
twice=$(cut -d' ' -f1 <<<"$defined" | uniq -d)
[ -z "$twice" ] || complain "defined more than once:" $twice

cited=$(grep -rhoE '(//|/\*|^ *\*).*' src --include=*.[ch] | grep -oE '\b[A-Z][0-9]\b' | sort -u)
for name in $cited; do grep -q "^$name " <<<"$defined" || complain "cited and not defined: $name"; done

# NAME FILE of each row: "| R1-R4 | what | `mem/region.h` `region.c` | ..."
rows=$(awk -F'|' '$2 ~ /^ [A-Z][0-9](-[A-Z][0-9])? $/ {
    letter = substr($2, 2, 1); from = substr($2, 3, 1); to = length($2) > 5 ? substr($2, 6, 1) : from
    for (n = from; n <= to; n++) print letter n, $4
}' docs/ARCHITECTURE.md)
while read -r name file; do
    row=$(grep "^$name " <<<"$rows") || { complain "docs/ARCHITECTURE.md has no row of $name"; continue; }
    [ "$(wc -l <<<"$row")" = 1 ] || complain "docs/ARCHITECTURE.md has several rows of $name"
    grep -q "${file##*/}" <<<"$row" || complain "$name is defined in $file, and its row says: $row"
done <<<"$defined"
finish
