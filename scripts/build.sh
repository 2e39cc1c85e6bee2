#!/bin/sh
# Configures and builds a preset of CMakePresets.json. What cmake and the compiler print goes to build/PRESET.log, of which
# the end is shown when the build fails.
# Usage: build.sh PRESET [CMAKE-OPTION...]      Environment: VERBOSE=1 shows everything instead
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
if [ -n "${VERBOSE:-}" ]; then
    cmake --preset "$preset" "$@"
    exec cmake --build --preset "$preset"
fi
log=build/$preset.log
mkdir -p build
echo "building build/$preset"
{ cmake --preset "$preset" "$@" && cmake --build --preset "$preset"; } >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    echo "the build of build/$preset failed; $log has all of it" >&2
    exit 1
}
