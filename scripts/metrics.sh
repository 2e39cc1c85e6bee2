#!/bin/sh
# Writes docs/metrics.md, share/stats.schema.json and what tslab/ keeps of both anew from src/stats/metrics.def.
# Usage: metrics.sh [page | schema | table]   with an argument prints that one and writes nothing.
set -eu
case "$# ${1:-}" in "0 " | "1 page" | "1 schema" | "1 table") ;; *)
    echo "usage: metrics.sh [page | schema | table]" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/.."

program=$(mktemp)
trap 'rm -f "$program"' EXIT
"${CC:-cc}" -std=gnu11 -Iinclude -Isrc scripts/metrics_pages.c src/stats/metrics.c -o "$program"
if [ $# -eq 0 ]; then
    "$program" page >docs/metrics.md
    mkdir -p share
    "$program" schema >share/stats.schema.json
    "$program" schema >tslab/internal/metrics/stats.schema.json # a Go program embeds only what is in its own module
    "$program" table >tslab/internal/metrics/metrics.tsv
else
    "$program" "$1"
fi
