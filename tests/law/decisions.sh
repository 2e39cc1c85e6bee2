#!/bin/bash
# docs/decisions/README.md has one line for each decision, under a subject; those of archive/ stand under "Archive", and each of them
# says what has replaced it. What is missing is named.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean

# Prints a line for each fault of a folder of decisions.
faults() { # FOLDER
    local page number line
    while IFS= read -r page; do
        number=$(basename "$page") && number=${number%%-*}
        line="| [$number]($page) | "
        case $(grep -cF "$line" "$1/README.md") in
        0) echo "README.md has no line that begins with: $line" ;;
        1) ;;
        *) echo "README.md has several lines that begin with: $line" ;;
        esac
        grep -qE "^# $number[: ]" "$1/$page" || echo "$page does not begin with its number"
    done < <(cd "$1" && find . -name '[0-9]*.md' | sed 's|^\./||' | sort)
    (cd "$1" && find . -name '[0-9]*.md' | sed 's|.*/||; s|-.*||' | sort | uniq -d | sed 's/^/several pages have the number /')
    awk '/^## / { subject = substr($0, 4) }
        /^\| \[[0-9]+\]/ {
            split($0, part, /[()]/)
            if (!subject) print "README.md: " part[2] " stands under no subject"
            else if ((part[2] ~ /^archive\//) != (subject == "Archive")) print "README.md: " part[2] " stands under " subject
        }' "$1/README.md"
    for page in "$1"/[0-9]*.md; do
        ! sed -n 3p "$page" | grep -qi '^\*\*status\*\* superseded by \[[0-9]*\]([^)]*)\(:\|$\)' || echo "$(basename "$page") is superseded and not in archive/"
    done
    for page in "$1"/archive/[0-9]*.md; do
        sed -n 3p "$page" | grep -q '^\*\*Status\*\* superseded by ' || echo "archive/$(basename "$page") does not say what supersedes it"
    done
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
