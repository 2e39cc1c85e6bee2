#!/bin/sh
# Prints the functions that include/*.h declares, sorted, one a line; gcc itself lists them (-aux-info).
# With --map prints the linker's version script instead: `scripts/public-functions.sh --map > src/exports.map`.
set -eu
case $* in '' | --map) ;; *)
    echo "usage: public-functions.sh [--map]" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."

list=$(mktemp)
trap 'rm -f "$list"' EXIT
for header in include/*.h; do
    gcc -std=c11 -Iinclude -x c -fsyntax-only -aux-info "$list" "$header"
    sed -n 's,^/\* include/[^ ]* \*/ extern [^(]*[ *]\([a-z_0-9]*\) (.*,\1,p' "$list"
done | sort -u | if [ "${1:-}" = --map ]; then
    echo "/* The exported symbols. Written by scripts/public-functions.sh --map; do not edit. */"
    part() { sed -n "s/^#define TSLAB_VERSION_$1 //p" include/slab_alloc.h; }
    version=$(part MAJOR)
    [ "$version" != 0 ] || version=0.$(part MINOR)
    echo "TSLAB_$version {" # as the soname, see CMakeLists.txt
    echo "global:"
    sed 's/.*/    &;/'
    echo "local:"
    echo "    *;"
    echo "};"
else
    cat
fi
