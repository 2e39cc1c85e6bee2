#!/bin/bash
# `tslab shim`: phases around functions of a library whose source is not changed, and around functions that a program gives to one.
# Arguments of every kind arrive, results come back, threads and recursion go on; the phases hold what an interposer counts.
set -u
. "$TSLAB_SOURCE_DIR/tests/cli/kit.bash"
need_go
[ "$(uname -m)" = x86_64 ] || skip "wrappers are for x86-64"
unset TSLAB_OPTIONS NO_COLOR LD_PRELOAD
build_tslab "$PWD/tslab"
preload=$TSLAB_BUILD_DIR/libtemporal_slab_preload.so
[ -f "$preload" ] || skip "no libtemporal_slab_preload.so in this build"

cat >library.h <<'END'
typedef struct Two { long a; double b; } Two;
typedef struct Big { long a[8]; } Big;
double mixes(int a, double b, long c, float d, char e, double f, long g, long h, long i, long j, double k, double l, double m, double n, double o, double p);
Two two(long a, double b);
Big big(long a, Big b);
int prints(char* out, const char* format, ...);
long recurses(long n, char* kept[]);
char* keeps(const char* text);
int serves(int n, void (*before)(void), int (*handler)(void* ctx, const char* path, long n), void* ctx);
END
cat >library.c <<'END'
#include "library.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
double mixes(int a, double b, long c, float d, char e, double f, long g, long h, long i, long j, double k, double l, double m, double n, double o, double p) {
    free(malloc(10));
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n + 15 * o + 16 * p;
}
Two two(long a, double b) { free(malloc(20)); return (Two){a + 1, b * 2}; }
Big big(long a, Big b) { free(malloc(30)); for (int i = 0; i < 8; i++) b.a[i] += a; return b; }
int prints(char* out, const char* format, ...) {
    va_list list;
    va_start(list, format);
    char* text = malloc(500);
    int n = vsprintf(text, format, list);
    strcpy(out, text);
    free(text);
    va_end(list);
    return n;
}
long recurses(long n, char* kept[]) {
    kept[n] = malloc(16 + n);
    return n == 0 ? 0 : 1 + recurses(n - 1, kept);
}
char* keeps(const char* text) { return strdup(text); }
int serves(int n, void (*before)(void), int (*handler)(void* ctx, const char* path, long n), void* ctx) {
    static const char* const paths[] = {"/one", "/two", "/three"};
    int sum = 0;
    for (int i = 0; i < n; i++) {
        before();
        sum += handler(ctx, paths[i % 3], i);
    }
    return sum;
}
END
cat >program.c <<'END'
#include "library.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int seen;
static void before(void) { free(malloc(7)); }
static int handler(void* ctx, const char* path, long n) {
    char* p = malloc(100);
    snprintf(p, 100, "%s %ld", path, n);
    int sum = *(int*)ctx + (int)p[1] + (int)n;
    free(p);
    seen++;
    return sum;
}
static void* runs(void* arg) {
    char out[500], *kept[200];
    Big b = {{1, 2, 3, 4, 5, 6, 7, 8}};
    int ctx = 3;
    (void)arg;
    for (int i = 0; i < 50; i++) {
        Two t = two(i, 1.5);
        b = big(i, b);
        if (t.a != i + 1 || t.b != 3 || b.a[7] != 8 + i * (i + 1) / 2) abort();
        double d = mixes(1, 2.5, 3, 4.5f, 5, 6.5, 7, 8, 9, 10, 11.5, 12, 13.5, 14, 15.5, 16);
        if (d != 1 + 5 + 9 + 18 + 25 + 39 + 49 + 64 + 81 + 100 + 126.5 + 144 + 175.5 + 196 + 232.5 + 256) abort();
        if (prints(out, "%d %.1f %s %ld %.2f", 1, 2.5, "three", 4l, 5.25) != 18) abort();
        if (recurses(199, kept) != 199) abort(); /* deeper than the wrappers count */
        for (int k = 0; k < 200; k++) free(kept[k]);
        free(keeps("a text that is kept"));
        if (serves(9, before, handler, &ctx) != 9 * 3 + 3 * ('o' + 't' + 't') + 36) abort();
    }
    return NULL;
}
int main(void) {
    pthread_t t[3];
    for (int i = 0; i < 3; i++) pthread_create(&t[i], NULL, runs, NULL);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    puts("done");
}
END
cc -O1 -shared -fPIC -fno-builtin library.c -o liblibrary.so || fail "library.c does not compile"
cc -O1 -pthread -fno-builtin program.c -L. -llibrary -Wl,-rpath,"$PWD" -o program || fail "program.c does not compile"
cc -O1 -shared -fPIC -pthread -I"$TSLAB_SOURCE_DIR/include" "$TSLAB_SOURCE_DIR/tests/preload/counted/counts.c" -ldl -o counts.so || fail "counts.c"

functions=(mixes two big prints recurses keeps)
./tslab shim "${functions[@]/#/--function=}" --callback serves:3 -o shim.c || fail "tslab shim"
cc -O2 -Wall -Wextra -Werror -shared -fPIC shim.c -o shim.so || fail "shim.c does not compile"
./tslab shim --callback serves:3 --label-argument 2 >paths.c && cc -O2 -shared -fPIC paths.c -o paths.so || fail "tslab shim --label-argument"
has paths.c 'written by: tslab shim --callback serves:3 --label-argument 2$'
./tslab shim --function a --label "it's */ it" >label.c && cc -fsyntax-only label.c || fail "tslab shim --label"
has label.c "written by: tslab shim --function a --label 'it'\\\\''s \* / it'\$"

shimmed() { env COUNTS=counts.txt LD_PRELOAD="$PWD/shim.so:$PWD/counts.so:$preload" "$@"; }
tested=(shimmed)
expect 0 ./program
has out '^done$'
has counts.txt '^differ 0 of '
label() { grep -P "^$1\t" counts.txt | cut -f 2,4 | tr '\t' ' '; }
[ "$(label mixes)/$(label two)/$(label big)/$(label prints)" = "150 0/150 0/150 0/150 0" ] || complain "labels: $(cat counts.txt)"
[ "$(label keeps)" = "150 150" ] || complain "keeps: $(label keeps)"
[ "$(label serves)" = "1350 0" ] || complain "serves: $(label serves)"
# 128 of 200 calls that are inside of each other have a phase; what is deeper is in the innermost.
[ "$(label recurses)" = "30000 30000" ] || complain "recurses: $(label recurses)"
tested=(env COUNTS=counts.txt LD_PRELOAD="$PWD/paths.so:$PWD/counts.so:$preload")
expect 0 ./program
has counts.txt '^differ 0 of 1350$'
[ "$(label /one)/$(label /two)/$(label /three)" = "450 0/450 0/450 0" ] || complain "paths: $(cat counts.txt)"
# Without the preload library the wrappers do nothing.
tested=(env LD_PRELOAD="$PWD/shim.so")
expect 0 ./program
has out '^done$'

tested=(./tslab shim)
expect 2
expect 2 --function 'a b'
expect 2 --function a --function a
expect 2 --callback serves
expect 2 --callback serves:7
expect 2 --function a --label-argument 7
expect 2 --function a --label "$(printf 'x%.0s' $(seq 32))"
expect 2 --function a -o nowhere/shim.c
finish
