#!/bin/bash
# The law of the floors: a file in src/ includes its own floor and floors below it, never one above; mem and phase do
# not know each other. Programs (tools, daemon, bench, examples, demo, and their common) include nothing of src/, and
# preload/ one door.
set -eu
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
cd "$TSLAB_SOURCE_DIR"

floors="base os mem phase state observe threads account heap stats api" # from the bottom up
programs="tools daemon bench examples demo common"
door=api/as_malloc.h # of preload/

height() {
    local floor number=0
    for floor in $floors; do
        [ "$floor" = "$1" ] && echo "$number" && return
        number=$((number + 1))
    done
    echo none
}

# Prints "file:line:path" for each #include "path" or <path> under the given folders.
includes_in() {
    grep -rnE --include='*.c' --include='*.h' --include='*.hpp' '^[ \t]*#[ \t]*include' "$@" |
        sed -nE 's/^([^:]*:[0-9]+):[^"<]*["<]([^">]*)[">].*/\1:\2/p'
}

check_include() { # FILE LINE PATH
    local from to
    from=$(cut -d/ -f2 <<<"$1")
    to=${3%%/*}
    case $3 in
    ..* | */..*) complain "$1:$2: '$3': write the path from src/" && return ;;
    */*) [ -d "src/$to" ] || return 0 ;; # a system header such as <sys/mman.h>
    *) return 0 ;;                       # a public or system header, or one of the same floor
    esac
    if [ "$(height "$to")" -gt "$(height "$from")" ]; then
        complain "$1:$2: $from includes upwards from $to"
    elif [ "$from $to" = "phase mem" ]; then
        complain "$1:$2: phase includes from mem"
    fi
}

for folder in src/*/; do
    floor=$(basename "$folder")
    [ "$(height "$floor")" != none ] || complain "$folder is no floor; the floors are: $floors"
done
[ $failures -eq 0 ] || finish

while IFS=: read -r file line path; do
    check_include "$file" "$line" "$path"
done < <(includes_in src)

for folder in $programs; do
    [ -d "$folder" ] || continue
    while IFS=: read -r file line path; do
        case $path in
        *src/*) complain "$file:$line: '$path' reaches into src/" ;;
        */*) [ ! -e "src/$path" ] || complain "$file:$line: '$path' is a header of src/" ;;
        esac
    done < <(includes_in "$folder")
done

while IFS=: read -r file line path; do
    case $path in
    "$door") ;;
    *src/*) complain "$file:$line: '$path' reaches into src/" ;;
    */*) [ ! -e "src/$path" ] || complain "$file:$line: '$path' is a header of src/, and not the door $door" ;;
    esac
done < <(includes_in preload)

finish
