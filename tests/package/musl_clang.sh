#!/bin/bash
# The library with musl, compiled by clang: install/musl does it by gcc. No package has a clang that finds musl by itself: it is told
# where the headers are, and musl-gcc links.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
here=$TSLAB_SOURCE_DIR/tests
need musl-gcc "musl-gcc is not installed"
need clang-14 "no clang-14"
include=$(echo | musl-gcc -E -v - 2>&1 | sed -n 's/^ \(\/usr\/include\/.*musl\)$/\1/p' | head -n 1)
[ -e "$include/pthread.h" ] || fail "musl's headers are not where musl-gcc looks: '$include'"
clean
flags="-nostdinc -isystem $include -isystem $(clang-14 -print-resource-dir)/include"
cmake -G Ninja -S "$TSLAB_SOURCE_DIR" -B build -DCMAKE_C_COMPILER=clang-14 -DCMAKE_C_FLAGS="$flags" -DCMAKE_C_FLAGS_RELEASE=$cheap \
    -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY -DTSLAB_WERROR=ON >said && cmake --build build --target temporal_slab_static >>said ||
    fail "it does not build: $(tail said)"
run() { # NAME WORD...: compiles and runs
    local name=$1
    shift
    # shellcheck disable=SC2086  # words
    clang-14 -std=gnu11 $flags $cheap -I"$TSLAB_SOURCE_DIR/include" -I"$TSLAB_SOURCE_DIR/src" -I"$here" -c "$1" -o "$name.o" &&
        musl-gcc -pthread "$name.o" "${@:2}" -lm -o "$name" || fail "$name does not compile"
    timeout 120 "./$name" >said 2>&1 || fail "$name ended with $?: $(tail said)"
    echo "$name"
}
archive=build/libtemporal_slab.a
run static "$here/install/consumer/consumer.c" $archive -static
run at_start "$here/install/consumer/consumer.c" $archive
for name in epochs domains thread_exit handles; do run $name "$here/contract/$name.c" $archive -static; done
readelf -lW at_start | grep -q 'interpreter: .*ld-musl' || fail "it is not musl's"
