#!/bin/sh
# Removes what scripts/install.sh has installed, by the list that it left, and the folders that only this library has.
# Usage: uninstall.sh PREFIX     Environment: DESTDIR goes in front of PREFIX
set -eu
prefix=${1:-}
while [ "${prefix%/}" != "$prefix" ] && [ "$prefix" != / ]; do prefix=${prefix%/}; done
case $prefix in
'' | -*)
    echo "usage: uninstall.sh PREFIX, the one that make install was given" >&2
    exit 2
    ;;
/*) prefix=${DESTDIR:-}$prefix ;;
*) prefix=${DESTDIR:-}$PWD/$prefix ;;
esac
list=$prefix/share/temporal-slab/installed
[ -r "$list" ] || {
    echo "uninstall.sh: nothing was installed in $prefix by make install: there is no $list" >&2
    exit 1
}
if grep -qE '^/|(^|/)\.\.(/|$)' "$list"; then
    echo "uninstall.sh: $list names files outside of $prefix: nothing was removed" >&2
    exit 1
fi

count=$(wc -l <"$list")
files=$(cat "$list")
echo "$files" | while read -r file; do rm -f -- "$prefix/$file"; done
# The deepest first; those of others, and those in which others have put something, stay.
echo "$files" | sed -n 's|/[^/]*$||p' | awk '{ while (/temporal[-_]slab/) { print; sub(/\/[^\/]*$/, "") } }' | sort -ru |
    while read -r folder; do rmdir -- "$prefix/$folder" 2>/dev/null || true; done
echo "removed $count files from $prefix"
