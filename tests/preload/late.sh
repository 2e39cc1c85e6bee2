#!/bin/bash
# late_access under the preload library: a program that is linked with nothing of it is told of an object that it touches after
# the end of its phase; one that does nothing wrong runs as before.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
unset TSLAB_OPTIONS LD_PRELOAD
cat >late.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <temporal_slab/phase.h>
__attribute__((noinline)) char* makes_it(size_t n) { char* p = malloc(n); memset(p, 1, n); return p; }
int main(int argc, char** argv) {
    char* kept = NULL;
    for (int n = 0; n < 300; n++) {
        tslab_phase* phase = tslab_phase_begin("GET /page");
        char* made[20];
        for (int k = 0; k < 20; k++) made[k] = makes_it(100 + (size_t)k);
        if (n == 100) kept = made[7];
        for (int k = 0; k < 20; k++) free(made[k]);
        tslab_phase_end(phase);
    }
    return argc > 1 ? kept[20] : 0;
}
END
cc -O1 -g -fno-builtin -fno-omit-frame-pointer -rdynamic -I"$TSLAB_SOURCE_DIR/include" late.c -o late || fail "late.c does not compile"
cc -O1 -g -pthread -fno-builtin -I"$TSLAB_SOURCE_DIR/include" "$TSLAB_SOURCE_DIR/tests/preload/counted/routes.c" -o routes ||
    fail "routes.c does not compile"
watched() { env TSLAB_OPTIONS=late_access=1 LD_PRELOAD="$preload" "$@"; }
tested=(watched)
expect 0 ./late
empty err
expect 139 ./late touches
has err '^temporal-slab: late access to phase "GET /page" (era [0-9]*), drained [0-9]* [mu]*s ago: 0x[0-9a-f]* is 20 bytes into an object of 107 bytes$'
has err '^  touched at    main+0x'
has err '^ *makes_it+0x'
./routes 5 >plain || fail "routes"
expect 0 ./routes 5
cmp plain out || complain "routes: other output"
empty err
expect 0 sh -c 'for i in 1 2 3; do echo $(seq $i 200 | sort -rn | tail -n 3); done'
empty err
finish
