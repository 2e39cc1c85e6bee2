#!/bin/bash
# What the preloaded library takes from the environment: options of the allocator, a label, and none of it in a program
# that has more rights than its user. Where the allocator cannot be made, malloc stays libc's.
set -u
. "$TSLAB_SOURCE_DIR/tests/kit.bash"
clean
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
cat >whose.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* Whose malloc served: libc's heap lies between the end of the program and sbrk(0), or is mapped for what is large. */
int main(void) {
    char *p = malloc(100), *end = sbrk(0);
    printf("%s\n", p < end && (size_t)(end - p) < 1u << 24 ? "libc" : "ours");
    free(p);
    for (int i = 1; i < 100; i++) free(realloc(calloc(i, 100), i * 1000));
    p = malloc(64 << 20);
    printf("%s\n", p != NULL ? "large" : "none");
    free(p);
    return 0;
}
END
cc -std=gnu11 -O1 whose.c -o whose || fail "whose.c does not compile"
preloaded() { env LD_PRELOAD="$preload" "$@"; }
tested=(preloaded)

expect 0 ./whose
has out '^ours$'
empty err
expect 0 env -i LD_PRELOAD="$preload" ./whose
has out '^ours$'
empty err
expect 0 env TSLAB_OPTIONS=bump=2,shared=1,purge_policy=2 ./whose
has out '^ours$'
empty err
expect 0 env TSLAB_OPTIONS=bumb=2 ./whose
has out '^ours$'
has err "bumb=2 is no option: bump?"
expect 0 env TSLAB_OPTIONS=max_bytes=8m ./whose
has out '^none$'
# Blocks of malloc cannot be what malloc is made of.
expect 0 env TSLAB_OPTIONS=by_malloc=1 ./whose
has out '^libc$'
has err "malloc stays libc's"
# Words that the library's own variables cannot have, and a label that is too long.
expect 0 env TSLAB_PRELOAD_DEEPBIND=kept TSLAB_PRELOAD_LIBC= ./whose
has out '^ours$'
has err "^temporal-slab: TSLAB_PRELOAD_DEEPBIND can only be 'keep'; ignored: kept$"
lacks err LIBC
expect 0 env TSLAB_PRELOAD_LIBC=phases TSLAB_PRELOAD_LABEL=a-label-that-is-longer-than-labels-are ./whose
has out '^ours$'
has err "^temporal-slab: TSLAB_PRELOAD_LIBC can only be 'phase'; ignored: phases$"
has err '^temporal-slab: TSLAB_PRELOAD_LABEL has more than 31 bytes and is cut: a-label-that-is'
expect 0 env TSLAB_PRELOAD_DEEPBIND=keep TSLAB_PRELOAD_LIBC=phase TSLAB_PRELOAD_LABEL=a-label-of-exactly-31-bytes-abc ./whose
empty err
# Little address space: malloc stays libc's, without a word. More of it: ours, which maps what it needs.
expect 0 bash -c 'ulimit -v 50000; exec ./whose'
has out '^libc$'
empty err
expect 0 bash -c 'ulimit -v 80000; exec ./whose'
has out '^ours$'
empty err
for kib in 200000 1200000 2000000 100000000; do
    expect 0 bash -c "ulimit -v $kib; exec ./whose"
    has out '^ours$'
    has out '^large$'
    empty err
done
# More small objects than the allocator has room for: they go on at libc's, and all are whole.
cat >fills.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { N = 1 << 20, BYTES = 240 };
static char* p[N];
int main(void) {
    int n = 0, k;
    while (n < N && (p[n] = malloc(BYTES)) != NULL) memset(p[n], n & 127, BYTES), n++;
    for (k = 0; k < n; k++)
        if (p[k][0] != (k & 127) || p[k][BYTES - 1] != (k & 127)) return 1;
    for (k = 0; k < n; k++) p[k] = realloc(p[k], k % 3 == 0 ? 20 : 300);
    for (k = 0; k < n; k++) {
        if (p[k] != NULL && p[k][19] != (k & 127)) return 2;
        free(p[k]);
    }
    puts(n == N ? "all" : "not all");
    return 0;
}
END
cc -std=gnu11 -O1 fills.c -o fills || fail "fills.c does not compile"
expect 0 bash -c 'ulimit -v 1200000; exec ./fills'
has out '^all$'
# Where there is no room for all of them either, what there is stays whole, and what is free by then is found.
for kib in 80000 200000; do
    expect 0 bash -c "ulimit -v $kib; exec ./fills"
    has out '^not all$'
done

# More rights than the user: the environment counts for nothing. The library is one of the program's own here, for of
# those that are preloaded ld.so takes none then.
if [ "$(id -u)" -eq 0 ] && id nobody >/dev/null 2>&1; then
    cc -std=gnu11 -O1 whose.c -Wl,--no-as-needed "$preload" -Wl,-rpath,"$TSLAB_BUILD_DIR" -o rights || fail "whose.c does not link"
    cp rights plain
    chown nobody rights && chmod 4755 rights
    chmod 755 .
    tested=(env)
    expect 0 TSLAB_OPTIONS=bumb=2 ./plain
    has err "bumb=2 is no option"
    if expect 0 TSLAB_OPTIONS=bumb=2 ./rights; [ -s out ]; then
        has out '^ours$'
        empty err
    fi
else
    echo "skipped: only root can make a program that has another user's rights"
fi
finish
