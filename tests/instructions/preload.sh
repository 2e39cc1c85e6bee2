#!/bin/bash
# A pair of malloc and free of 64 bytes under the preloaded library takes at most 100 instructions, the loop around it
# included; counted by callgrind as the difference between two runs.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
need valgrind "valgrind is not installed"
[ -f "$preload" ] || skip "no libtemporal_slab_preload.so in this build"
grep -q '^CMAKE_C_COMPILER:.*gcc' "$TSLAB_BUILD_DIR/CMakeCache.txt" || skip "other compilers have other counts"
cat >pairs.c <<'END'
#include <stdlib.h>
int main(int argc, char** argv) {
    long n = argc > 1 ? atol(argv[1]) : 0;
    char* volatile kept = NULL;
    for (int i = 0; i < 200; i++) kept = malloc(64);
    for (long i = 0; i < n; i++) {
        char* p = malloc(64);
        *(volatile char*)p = 1;
        free(p);
    }
    free(kept);
    return 0;
}
END
cc -O2 -fno-builtin pairs.c -o pairs || fail "pairs.c does not compile"
count() { # N
    LD_PRELOAD=$preload valgrind --tool=callgrind --callgrind-out-file=/dev/null ./pairs "$1" 2>&1 >/dev/null | awk '/Collected/ { print $4 }'
}
few=$(count 20000) many=$(count 120000)
[ -n "$few" ] && [ -n "$many" ] || fail "callgrind counts nothing"
echo "a pair takes $(((many - few) / 1000))/100 instructions"
[ $((many - few)) -le $((100 * 100000)) ] || complain "a pair takes $(((many - few) / 100000)) instructions"
finish
