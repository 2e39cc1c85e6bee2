#!/bin/sh
# Makes a manual page of what a program says when it is called with --help: lines of capitals in the first column begin
# sections, and the rest stands as the program has it.
# Usage: man-page.sh NAME PROGRAM OUT     NAME as the program is installed
set -eu
[ $# -eq 3 ] || {
    echo "usage: man-page.sh NAME PROGRAM OUT" >&2
    exit 2
}
help=$("$2" --help)
mkdir -p "$(dirname "$3")"
{
    printf '.TH %s 1 "" "temporal-slab %s"\n' "$(echo "$1" | tr a-z A-Z)" "$("$2" --version | sed 's/.* //')"
    # One that does not begin so has its name and its purpose in the first two lines.
    case $help in
    NAME*) echo "$help" ;;
    *)
        printf 'NAME\n  %s - %s\nSYNOPSIS\n' "$1" "$(echo "$help" | sed -n 2p)"
        echo "$help" | sed '2s/.*/DESCRIPTION/'
        ;;
    esac | sed -E -e "s/(^| )$(basename "$2") /\1$1 /g" -e 's/\\/\\e/g' -e "s/^[.']/\\\\\&&/" -e 's/-/\\-/g' |
        awk '/^[A-Z]+$/ { if (plain) print ".fi"; print ".SH " $0; plain = $0 != "NAME"; if (plain) print ".nf"; next }
             !plain { sub(/^ +/, "") }
             { print }'
} >"$3"
