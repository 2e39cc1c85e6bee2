#!/bin/bash
# The library loaded late, into a program whose threads run already, without and with the rest of their static storage used
# up. Built with TLS descriptors it works in both; the usual build is loaded where there is room, and dlopen says why not.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
here=$TSLAB_SOURCE_DIR/tests/install/late
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$TSLAB_BUILD_DIR/CMakeCache.txt")
[ "$(uname -m)" != x86_64 ] || "$cc" -mtls-dialect=gnu2 -x c -fsyntax-only /dev/null 2>/dev/null ||
    skip "$cc has no TLS descriptors"
clean build fillers said
mkdir fillers
usual=$TSLAB_BUILD_DIR/libtemporal_slab.so
cmake -G Ninja -S "$TSLAB_SOURCE_DIR" -B build -DCMAKE_C_COMPILER="$cc" -DTSLAB_TLS=descriptors >said &&
    cmake --build build --target temporal_slab >>said || fail "it does not build: $(tail said)"
"$cc" -std=gnu11 -O1 -Wall -Wextra -Werror -pthread -I"$TSLAB_SOURCE_DIR/include" "$here/host.c" -o host -ldl || exit 1
for bytes in 256 8; do
    "$cc" -O1 -fPIC -shared -DBYTES=$bytes "$here/filler.c" -o filler.so || exit 1
    for n in $(seq 60); do cp filler.so fillers/$bytes.$n.so; done
done
fillers=$(printf '%s\n' fillers/256.*.so fillers/8.*.so) # large ones first

run() { # STATUS LIBRARY FILLER...
    local wanted=$1 status=0
    shift
    timeout 120 ./host "$@" >said 2>&1 || status=$?
    cat said
    [ $status -eq "$wanted" ] || fail "the host ended with $status, not $wanted"
}
grep -q '^TSLAB_TLS:.*=initial-exec$' "$TSLAB_BUILD_DIR/CMakeCache.txt" || fail "the usual build is another one"
run 0 "$usual"
# shellcheck disable=SC2086  # words
run 4 "$usual" $fillers
grep -q 'not loaded: .*static TLS' said || fail "dlopen does not say what is missing"
run 0 ./build/libtemporal_slab.so
# shellcheck disable=SC2086  # words
run 0 ./build/libtemporal_slab.so $fillers
# What it takes of that storage is what pages say, and little.
bytes=$((16#$(readelf -lW "$usual" | sed -nE 's/^ *TLS +.* 0x([0-9a-f]+) +R .*/\1/p')))
[ $bytes -gt 0 ] && [ $bytes -le 120 ] || fail "$bytes bytes of static thread-local storage"
for page in limits production; do has "$TSLAB_SOURCE_DIR/docs/$page.md" " $bytes bytes"; done
readelf -dW build/libtemporal_slab.so | grep -q STATIC_TLS && fail "some of it is initial-exec still"

# glibc before 2.40 spoils vector registers in a thread's first call through a descriptor, and compilers take them to be
# kept: so no function has both (CMakeLists.txt).
if [ "$(uname -m)" = x86_64 ]; then
    objdump -d --no-show-raw-insn build/libtemporal_slab.so | awk '
        /^[0-9a-f]+ <.*>:$/ { name = $2; calls = vectors = 0 }
        /call +\*\(%rax\)/ { calls++; all++ }
        /%[xyz]mm[0-9]/ { vectors++ }
        calls && vectors && !told[name]++ { print "vector registers beside a call through a descriptor: " name; bad = 1 }
        END { print all " calls through descriptors"; exit bad || all < 50 }' || fail "a register may be lost"
fi
