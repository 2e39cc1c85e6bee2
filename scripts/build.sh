#!/bin/sh
# Configures and builds a preset of CMakePresets.json. What cmake and the compiler print goes to build/PRESET.log, of which
# the end is shown when the build fails.
# Usage: build.sh PRESET [CMAKE-OPTION...]
# Environment: VERBOSE=1 shows everything instead; TARGETS="NAME..." builds these, not all that the preset builds
set -eu
cd "$(dirname "$0")/.."
preset=${1:-}
grep -q "^ *\"name\": \"$preset\"" CMakePresets.json || {
    echo "build.sh: no preset of CMakePresets.json is called '$preset'; usage: build.sh PRESET [CMAKE-OPTION...]" >&2
    exit 2
}
shift
# cmake's own messages on these name no package, and one names an RPATH where ninja is missing.
missing=""
for tool in cmake ninja; do command -v $tool >/dev/null || missing="$missing $tool"; done
command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null || missing="$missing gcc"
[ -z "$missing" ] || {
    echo "build.sh: not in PATH:$missing (Debian packages cmake, ninja-build, gcc)" >&2
    exit 1
}
# shellcheck disable=SC2086  # words
build() { cmake --build --preset "$preset" ${TARGETS:+--target $TARGETS}; }
if [ -n "${VERBOSE:-}" ]; then
    cmake --preset "$preset" "$@"
    build
    exit
fi
log=build/$preset.log
mkdir -p build
echo "building build/$preset"
{ cmake --preset "$preset" "$@" && build; } >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    echo "the build of build/$preset failed; $log has all of it" >&2
    exit 1
}
