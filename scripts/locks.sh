#!/bin/sh
# Writes the list of locks in docs/ARCHITECTURE.md anew from src/os/locks.def.
# Usage: locks.sh [--check]   with --check compares, writes nothing, and exits with 1 where they differ.
set -eu
cd "$(dirname "$0")/.."
page=docs/ARCHITECTURE.md
case $#:${1:-} in
0: | 1:--check) ;;
*)
    echo "usage: locks.sh [--check]" >&2
    exit 2
    ;;
esac

new=$(mktemp)
trap 'rm -f "$new"' EXIT
awk '
    FILENAME ~ /locks.def$/ && /^TSI_LOCK\(/ {
        split($0, part, "\"")
        rows = rows sprintf("| %d | %s | `%s` |\n", ++count, part[2], part[4])
    }
    FILENAME ~ /locks.def$/ { next }
    /^<!-- end of the list of locks -->/ { inside = 0 }
    !inside { print }
    /^<!-- list of locks:/ {
        inside = found = 1
        printf "\n| | lock | where |\n|---|---|---|\n%s\n", rows
    }
    END { exit !(found && !inside && count > 0) }' src/os/locks.def "$page" >"$new" || {
    echo "locks.sh: $page has no place for the list, or src/os/locks.def no locks" >&2
    exit 1
}
if [ $# -eq 1 ]; then
    diff -u "$page" "$new" || { echo "locks.sh: $page is out of date: scripts/locks.sh writes it" >&2; exit 1; }
else
    cat "$new" >"$page"
fi
