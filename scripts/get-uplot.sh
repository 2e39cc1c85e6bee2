#!/bin/sh
# Fetches uPlot (MIT), which the page of tslabd draws its plots with, into build/uplot; the next build embeds it.
# Without it tslabd is built all the same, and its page shows numbers and tables without plots.
# Usage: get-uplot.sh      needs npm; does nothing when it is there already
# Exit status: 0 it is there, 1 it could not be had, or is not what it should be.
set -u
[ $# -eq 0 ] || {
    echo "get-uplot.sh: takes no argument, not '$1'" >&2
    exit 2
}
cd "$(dirname "$0")/.." || exit 1
to=build/uplot

[ -f "$to/uPlot.iife.min.js" ] && [ -f "$to/uPlot.min.css" ] && exit 0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
scripts/fetch-npm.sh get-uplot.sh uplot 1.6.32 "$scratch" <<'SUMS' || { echo "get-uplot.sh: the page will have no plots" >&2; exit 1; }
19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f  package/dist/uPlot.iife.min.js
df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04  package/dist/uPlot.min.css
8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd  package/LICENSE
SUMS
# Who gets the script gets its licence. What has a name in build/uplot is whole, whenever this is ended.
mkdir -p "$to" || exit 1
{
    echo "/*!"
    cat "$scratch/package/LICENSE"
    echo "*/"
    cat "$scratch/package/dist/uPlot.iife.min.js"
} >"$to/part" && mv "$to/part" "$to/uPlot.iife.min.js" &&
    cp "$scratch/package/dist/uPlot.min.css" "$to/part" && mv "$to/part" "$to/uPlot.min.css"
