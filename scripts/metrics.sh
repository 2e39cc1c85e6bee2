#!/bin/sh
# Writes docs/metrics.md and share/stats.schema.json anew from src/stats/metrics.def.
# Usage: metrics.sh [page | schema]   with an argument prints that one and writes nothing.
set -eu
cd "$(dirname "$0")/.."

program=$(mktemp)
trap 'rm -f "$program"' EXIT
"${CC:-cc}" -std=gnu11 -Iinclude -Isrc scripts/metrics_pages.c -o "$program"
if [ $# -eq 0 ]; then
    "$program" page >docs/metrics.md
    mkdir -p share
    "$program" schema >share/stats.schema.json
else
    "$program" "$1"
fi
