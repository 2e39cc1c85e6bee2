#!/bin/bash
# What scripts/platforms.sh has in front of each test program: the emulator or the pretended kernel of the platform that TSLAB_PLATFORM
# names, and the cases of left_out.list that it leaves out. Usage: under.bash PROGRAM [ARGUMENT...]
# qemu before version 8 is arm64-old in that list: it needs more memory and hundreds of times as long, and can do less.
set -u
here=$(dirname "$0")
program=$1
test=$(basename "$(dirname "$program")")/$(basename "$program")
shift

platform=${TSLAB_PLATFORM:-}
if [ "$platform" = arm64 ]; then
    version=$(qemu-aarch64 --version | sed -nE '1s/.* version ([0-9]+).*/\1/p')
    [ "${version:-0}" -ge 8 ] || platform=arm64-old
fi

# Lines "CASE REASON" of this platform and test; a program without cases has "-" for all of it.
TSLAB_TEST_LEAVES=$(awk -v platform="$platform" -v test="$test" '
    /^#/ || NF < 4 { next }
    platform ~ "^(" $1 ")$" && test ~ "^(" $2 ")$" {
        names = $3
        sub(/^[^ ]+ +[^ ]+ +[^ ]+ +/, "")
        n = split(names, name, ",")
        for (i = 1; i <= n; i++) print name[i] " " $0
    }' "$here/left_out.list")
case $TSLAB_TEST_LEAVES in
"- "*)
    echo "skipped: ${TSLAB_TEST_LEAVES#- }" | head -n 1
    exit 77
    ;;
esac
export TSLAB_TEST_LEAVES

case $platform in
pages-*)
    kib=${platform#pages-}
    export TSLAB_TEST_PAGE=$((${kib%k} * 1024)) LD_PRELOAD=$TSLAB_PAGES
    exec "$program" "$@"
    ;;
arm64*)
    if [ $platform = arm64-old ]; then
        # The emulator keeps a record of each reserved page: gigabytes for an allocator of the usual size, so allocators reserve less, as
        # much as the test needs, and a limit of all addresses guards the machine's memory from these records. The program is not told of
        # it, since it would map piece by piece then, in a way that emulators before version 8 do not have.
        ulimit -v 400000000
        mib=256
        case $test in
        contract/limits | contract/outside) mib=16 ;;      # what they ask for themselves
        stress/stress_lifecycle) mib=64 ;;                 # a thousand allocators
        contract/safety | contract/system | contract/rss) mib=1024 ;;
        contract/small_phases) mib=8192 ;;                 # ten thousand phases at once
        stress/stress_load) mib=32768 ;;                   # fifty thousand
        esac
        export TSLAB_OPTIONS=${TSLAB_OPTIONS:+$TSLAB_OPTIONS,}reserve_bytes=$((mib << 20)) TSLAB_TEST_UNLIMITED=1
    fi
    export TSLAB_TEST_RUNNER="qemu-aarch64 -L ${TSLAB_SYSROOT:-/usr/aarch64-linux-gnu} -E LD_PRELOAD=$TSLAB_PAGES"
    export TSLAB_TEST_PAGE=4096
    # shellcheck disable=SC2086  # words
    exec $TSLAB_TEST_RUNNER "$program" "$@"
    ;;
*) exec "$program" "$@" ;;
esac
