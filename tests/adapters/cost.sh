#!/bin/bash
# What the adapters cost beside malloc, on the work of the tests: instructions of one round of the whole
# program, library and all (callgrind; they do not depend on the machine's mood), and processor time of N rounds, medians of five
# processes of each kind in turn.
# Usage: tests/adapters/cost.sh [-n N] [BUILD] [NAME...]     default: -n 5 build/gcc-release, all that are built there
set -eu
rounds=5
if [ "${1:-}" = -n ]; then
    rounds=$2
    shift 2
fi
cd "$(dirname "$0")/../.."
build=${1:-build/gcc-release}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- lua cjson sqlite3 libxml2 nghttp2 pcre2

instructions() { # PROGRAM malloc|phase
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$1" --only "$2" 1 2>&1 | awk '/Collected/ { print $4 }'
}
echo "| library | instructions, malloc | phases | ratio | processor time, malloc, s | phases, s | ratio |"
echo "|---|---|---|---|---|---|---|"
for name in "$@"; do
    program=$build/tests/adapters/$name
    [ -x "$program" ] || { echo "cost.sh: no $program: build the preset gcc-release, with the library installed" >&2; exit 1; }
    malloc=- phase=-
    if command -v valgrind >/dev/null; then
        malloc=$(instructions "$program" malloc)
        phase=$(instructions "$program" phase)
    fi
    "$program" --cost "$rounds" | awk -v name="$name" -v malloc="$malloc" -v phase="$phase" '{
        counts = malloc == "-" ? "- | - | -" : sprintf("%.1f M | %.1f M | %.3f", malloc / 1e6, phase / 1e6, phase / malloc)
        printf "| %s | %s | %s | %s | %s |\n", name, counts, $2, $5, $8 }'
done
