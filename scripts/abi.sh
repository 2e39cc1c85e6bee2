#!/bin/sh
# Describes the binary interface of the library that a build has, or compares it with a description, by libabigail. Both are of its public
# types and functions without their symbol versions, which differ between two minor versions anyway.
# Usage: abi.sh describe BUILD OUT     writes a description; BUILD is a folder with debug information (TSLAB_DEBUG_INFO)
#        abi.sh compare BUILD DESCRIPTION ALLOWED...
#   ALLOWED   files of changes that are allowed, in the form of libabigail's suppressions
# Exit status of compare: 0 nothing else has changed, 1 something has, and what is on standard output; functions that are new are no change.
set -eu
usage() {
    echo "usage: abi.sh describe BUILD OUT | compare BUILD DESCRIPTION ALLOWED..., see its head" >&2
    exit 2
}
[ $# -ge 3 ] || usage
what=$1 build=$2 file=$3
shift 3
case $what in
describe) [ $# -eq 0 ] || usage ;;
compare) ;;
*) usage ;;
esac
for tool in abidw abidiff; do command -v $tool >/dev/null || {
    echo "abi.sh: no $tool: Debian has it in abigail-tools" >&2
    exit 2
}; done
sources=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The objects of the shared library once more, without the list of its exports, which gives names their versions.
exported=$build/CMakeFiles/tslab_exported.dir
if [ -d "$exported" ]; then
    find "$build/CMakeFiles/tslab_objects.dir/src" -name '*.o' ! -path '*/src/api/*' >"$scratch/objects"
    find "$exported/src" -name '*.o' >>"$scratch/objects"
else # 0.2 and before
    find "$build/CMakeFiles/tslab_objects.dir/src" -name '*.o' >"$scratch/objects"
fi
"${CC:-cc}" -shared -Wl,-soname,temporal_slab -pthread -o "$scratch/library.so" "@$scratch/objects"

if [ "$what" = describe ]; then
    abidw --headers-dir "$sources/include" --drop-private-types --exported-interfaces-only --no-corpus-path --no-comp-dir-path --short-locs \
        --no-parameter-names --no-elf-needed "$scratch/library.so" >"$file"
    exit
fi
allowed=""
for list in "$@"; do allowed="$allowed --suppressions $list"; done
# shellcheck disable=SC2086  # words
abidiff --headers-dir1 "$sources/include" --headers-dir2 "$sources/include" --no-added-syms $allowed "$file" "$scratch/library.so" >"$scratch/said" || {
    cat "$scratch/said"
    exit 1
}
