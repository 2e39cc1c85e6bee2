#!/bin/bash
# docs/decisions/README.md has one line for each decision, under a subject; those of archive/ stand under "Archive", and each of them
# says what has replaced it. What is missing is named.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean

# Prints a line for each fault of a folder of decisions.
faults() { # FOLDER
    (cd "$1" && find . -name '[0-9]*.md' | sed 's|^\./||' | sort) >pages
    (cd "$1" && xargs awk '
        FILENAME == "README.md" { if ($0 ~ /^\| \[[0-9]/) lines[++count] = $0; next }
        FNR > 1 { next }
        {
            number = FILENAME; sub(/.*\//, "", number); sub(/-.*/, "", number)
            start = "| [" number "](" FILENAME ") | "; found = 0
            for (n = 1; n <= count; n++) found += index(lines[n], start) == 1
            if (found != 1) print "README.md has " (found ? "several lines" : "no line") " that " (found ? "begin" : "begins") " with: " start
            if ($0 !~ "^# " number "[: ]") print FILENAME " does not begin with its number"
            if (pages[number]++ == 1) print "several pages have the number " number
        }' README.md) <pages
    awk '/^## / { subject = substr($0, 4) }
        /^\| \[[0-9]+\]/ {
            split($0, part, /[()]/)
            if (!subject) print "README.md: " part[2] " stands under no subject"
            else if ((part[2] ~ /^archive\//) != (subject == "Archive")) print "README.md: " part[2] " stands under " subject
        }' "$1/README.md"
    (cd "$1" && xargs awk 'FNR == 3 {
        archived = FILENAME ~ /^archive\//
        if (archived && $0 !~ /^\*\*Status\*\* superseded by /) print FILENAME " does not say what supersedes it"
        if (!archived && $0 ~ /^\*\*Status\*\* superseded by \[?[0-9]+\]?(\([^)]*\))?(:|$)/) print FILENAME " is superseded and not in archive/"
    }') <pages
}

there=$TSLAB_SOURCE_DIR/docs/decisions
found=$(faults "$there")
[ -z "$found" ] || complain "docs/decisions: $found"
[ "$(find "$there" -name '[0-9]*.md' | wc -l)" -gt 60 ] || fail "decisions are not found"

# Each kind of fault is found.
broken() { # WANTED
    faults copy >said
    grep -qF "$1" said || complain "not found: $1; but: $(cat said)"
    rm -rf copy && cp -r "$there" copy
}
cp -r "$there" copy
printf '# 9999 New\n\n**Status** accepted\n' >copy/9999-new.md
broken 'no line that begins with: | [9999](9999-new.md) | '
sed -i 's/^\(| \[0006\].*\)$/\1\n\1/' copy/README.md
broken 'several lines that begin with: | [0006](0006-size-classes.md) | '
sed -i 's/^# 0006/# 0007/' copy/0006-size-classes.md
broken '0006-size-classes.md does not begin with its number'
cp copy/0006-size-classes.md copy/archive/0006-again.md
broken 'several pages have the number 0006'
sed -i 's/^## Archive/## Others/' copy/README.md
broken 'archive/0004-mixed-first-slab.md stands under Others'
sed -i '3s/.*/**Status** superseded by [0072](0072-x.md)/' copy/0006-size-classes.md
broken '0006-size-classes.md is superseded and not in archive/'
sed -i '3s/.*/**Status** accepted/' copy/archive/0004-mixed-first-slab.md
broken 'archive/0004-mixed-first-slab.md does not say what supersedes it'
finish
