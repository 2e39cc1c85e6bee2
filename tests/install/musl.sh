#!/bin/bash
# The library with musl: static and linked at the start in the usual build, loaded late in the one with TLS descriptors; musl
# does not load initial-exec storage late, and says so. Some of the contract is held as with glibc.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
here=$TSLAB_SOURCE_DIR/tests/install
need musl-gcc "musl-gcc is not installed"
clean usual late said
for build in usual late; do # it is compiled twice
    tls=initial-exec
    [ $build = usual ] || tls=descriptors
    cmake -G Ninja -S "$TSLAB_SOURCE_DIR" -B $build -DCMAKE_C_COMPILER=musl-gcc -DCMAKE_C_FLAGS_RELEASE=$cheap \
        -DTSLAB_WERROR=ON -DTSLAB_TLS=$tls >said && cmake --build $build --target temporal_slab temporal_slab_static >>said || fail "it does not build: $(tail said)"
done
compile() { # WORD...
    musl-gcc -std=gnu11 $cheap -pthread -I"$TSLAB_SOURCE_DIR/include" "$@" || fail "$* does not compile"
}
run() { # STATUS PROGRAM...
    local wanted=$1 status=0
    shift
    echo "$*"
    timeout 120 "$@" >said 2>&1 || status=$?
    [ $status -eq "$wanted" ] || fail "$1 ended with $status, not $wanted: $(cat said)"
}
compile "$here/consumer/consumer.c" usual/libtemporal_slab.so -Wl,-rpath,usual -o at_start
run 0 ./at_start
compile -static "$here/consumer/consumer.c" usual/libtemporal_slab.a -o static
run 0 ./static

compile -Wall -Wextra -Werror "$here/late/host.c" -o host
run 0 ./host late/libtemporal_slab.so
run 4 ./host usual/libtemporal_slab.so
grep -q 'not loaded: .*initial-exec TLS' said || fail "dlopen does not say what is wrong"

for name in epochs domains thread_exit handles; do
    compile -I"$TSLAB_SOURCE_DIR/src" -I"$TSLAB_SOURCE_DIR/tests" -static "$TSLAB_SOURCE_DIR/tests/contract/$name.c" \
        late/libtemporal_slab.a -lm -o $name
    run 0 ./$name
done
