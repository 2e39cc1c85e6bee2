#!/bin/bash
# The ways of docs/ARCHITECTURE.md ("Ways to read") are those of the source: each function is in the file of its
# row, a function of the way before it calls it, each word changes in the function that is named with it, and a way
# has four files at most.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR" || exit 1
page=docs/ARCHITECTURE.md
ways=0 steps=0

body() { # FILE FUNCTION: its definition, from the line of its name to the brace that ends it
    awk -v name="$2" '
        !on && /^[A-Za-z]/ && $0 !~ /;$/ && match($0, "(^|[ *])" name "\\(") { on = 1 }
        on { print }
        on && (/^}/ || /^[A-Za-z].*}$/) { exit }' "src/$1"
}

# "way NAME", then "step FILE FUNCTION" and "word WORD FUNCTION" of it, a line each.
table() {
    awk -F'`' '
        /^## / { on = $0 == "## Ways to read" }
        !on { next }
        /^### / { print "way " substr($0, 5) }
        /^\| `/ { split($0, cell, "|"); n = split(cell[3], name, "`"); for (k = 2; k <= n; k += 2) print "step " $2 " " name[k] }
        /^Changes: / { for (k = 2; k + 2 <= NF; k += 4) print "word " $k " " $(k + 2) }' "$page"
}

way="" files="" bodies="" words=0
end_way() { # checks the one that was read
    [ -n "$way" ] || return 0
    n=$(tr ' ' '\n' <<<"$files" | grep . | sort -u | wc -l)
    [ "$n" -ge 2 ] && [ "$n" -le 4 ] || complain "$page: $way: $n files instead of two to four"
    [ $words -ge 1 ] || complain "$page: $way: no word is said to change"
}
while read -r kind first second; do
    case $kind in
    way)
        end_way
        way="$first $second" files="" bodies="" words=0 ways=$((ways + 1))
        declare -A of=()
        ;;
    step)
        steps=$((steps + 1))
        files="$files $first"
        [ -f "src/$first" ] || { complain "$page: $way: no file src/$first"; continue; }
        text=$(body "$first" "$second")
        [ -n "$text" ] || complain "$page: $way: src/$first does not define $second"
        [ -z "$bodies" ] || grep -qE "(^|[^a-z_0-9])$second\(" <<<"$bodies" || complain "$page: $way: nothing before it calls $second"
        of[$second]=$text
        bodies="$bodies
$(tail -n +2 <<<"$text") ${text##*\{}"
        ;;
    word)
        words=$((words + 1))
        grep -qE "tsi_(store|cas)_[a-z]+\((&[a-z]+->)?$first," <<<"${of[$second]-}" ||
            complain "$page: $way: $second does not change $first"
        ;;
    esac
done < <(table)
end_way
[ $ways -eq 4 ] || complain "$page: $ways ways instead of four"
echo "$ways ways, $steps functions"
finish
