#!/bin/sh
# Fetches axe-core (MPL-2.0), with which a test looks whether the page of tslabd is accessible, into build/axe. Nothing that
# is built or installed has anything of it; without it that part of the test is skipped.
# Usage: get-axe.sh      needs npm; does nothing when it is there already
# Exit status: 0 it is there, 1 it could not be had, or is not what it should be.
set -u
[ $# -eq 0 ] || {
    echo "get-axe.sh: takes no argument, not '$1'" >&2
    exit 2
}
cd "$(dirname "$0")/.." || exit 1
to=build/axe

[ -f "$to/axe.min.js" ] && exit 0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
scripts/fetch-npm.sh get-axe.sh axe-core 4.14.1 "$scratch" <<'SUMS' || exit 1
29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c  package/axe.min.js
SUMS
mkdir -p "$to" && cp "$scratch/package/axe.min.js" "$to/part" && mv "$to/part" "$to/axe.min.js"
