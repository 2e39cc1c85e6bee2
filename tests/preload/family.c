/*
 * family.c - the malloc family under the preload library keeps what glibc's manual and C23 promise: sizes, alignment,
 * contents, errno, and pointers that libc's own malloc has made.
 */
#include "preload/preloaded.h"

#include <limits.h>

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wpragmas" /* gcc 11 does not know the next */
#pragma GCC diagnostic ignored "-Wuse-after-free"
#pragma GCC diagnostic ignored "-Walloc-size-larger-than="
#endif
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo */

/* Not known to compilers, which drop or mend calls of the family. */
static void* (*volatile malloc_)(size_t) = malloc;
static void* (*volatile calloc_)(size_t, size_t) = calloc;
static void* (*volatile realloc_)(void*, size_t) = realloc;
static void* (*volatile reallocarray_)(void*, size_t, size_t) = reallocarray;
static void (*volatile free_)(void*) = free;
static void* (*volatile memalign_)(size_t, size_t) = memalign;

static const size_t sizes[] = {0,      1,      15,     16,     17,     63,      64,      65,     100,   127,
                               128,    500,    1000,   1024,   1025,   4095,    4096,    4097,   10000, 65536,
                               131071, 262143, 262144, 262145, 300000, 1 << 20, 3 << 20, 9000001};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void sizes_and_contents(void) {
    void* p[SIZES];
    pre_require();
    for (int i = 0; i < SIZES; i++) {
        p[i] = malloc_(sizes[i]);
        REQUIRE(p[i] != NULL);
        CHECK_EQ((uintptr_t)p[i] % 16, 0);
        CHECK_GE(malloc_usable_size(p[i]), sizes[i]);
        pre_fill(p[i], malloc_usable_size(p[i]), (unsigned)i); /* all of it may be used */
    }
    for (int i = 0; i < SIZES; i++) {
        CHECK(pre_is_filled(p[i], malloc_usable_size(p[i]), (unsigned)i));
        for (int k = 0; k < i; k++) CHECK_NE(p[i], p[k]);
    }
    for (int i = 0; i < SIZES; i++) free_(p[i]);
    CHECK_EQ(malloc_usable_size(NULL), 0);
    free_(NULL);
}

static void zeros(void) {
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < SIZES; i++) {
            unsigned char* p = calloc_(1, sizes[i]);
            REQUIRE(p != NULL);
            size_t sum = 0;
            for (size_t n = 0; n < sizes[i]; n++) sum += p[n];
            CHECK_EQ(sum, 0);
            memset(p, 0xa5, malloc_usable_size(p));
            free_(p);
        }
    }
    CHECK_NULL(calloc_(SIZE_MAX / 2, 3));
    CHECK_EQ(errno, ENOMEM);
    CHECK(calloc_(0, 5) != NULL);
}

static void refusals(void) {
    errno = 0;
    CHECK_NULL(malloc_(PTRDIFF_MAX));
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_NULL(malloc_(SIZE_MAX));
    CHECK_EQ(errno, ENOMEM);
    void* p = malloc_(100);
    pre_fill(p, 100, 1);
    errno = 0;
    CHECK_NULL(realloc_(p, SIZE_MAX - 4096));
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_NULL(reallocarray_(p, SIZE_MAX / 2, 4));
    CHECK_EQ(errno, ENOMEM);
    CHECK(pre_is_filled(p, 100, 1)); /* a failure keeps the block */
    errno = 4711;
    free_(p);
    CHECK_EQ(errno, 4711);
    for (int i = 0; i < SIZES; i++) free_(malloc_(sizes[i]));
    CHECK_EQ(errno, 4711);
}

static void resizes(void) {
    char* p = realloc_(NULL, 10);
    REQUIRE(p != NULL);
    pre_fill(p, 10, 3);
    size_t had = 10;
    static const size_t steps[] = {16, 24, 100, 90, 1000, 4000, 5000, 70000, 300000, 2000000, 5000000, 40000, 100, 10};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        p = realloc_(p, steps[i]);
        REQUIRE(p != NULL);
        CHECK(pre_is_filled(p, had < steps[i] ? had : steps[i], 3));
        pre_fill(p, steps[i], 3);
        had = steps[i];
    }
    CHECK_NULL(realloc_(p, 0)); /* freed */
    void* none = realloc_(NULL, 0);
    CHECK(none != NULL);
    free_(none);
    int* many = reallocarray_(NULL, 100, sizeof *many);
    REQUIRE(many != NULL);
    CHECK_GE(malloc_usable_size(many), 100 * sizeof *many);
    free_(many);
}

static void alignments(void) {
    for (size_t align = 8; align <= 1 << 22; align *= 2) {
        for (int i = 0; i < SIZES && sizes[i] <= 300000; i++) {
            void* p = NULL;
            errno = 77;
            REQUIRE_EQ(posix_memalign(&p, align, sizes[i]), 0);
            CHECK_EQ(errno, 77);
            CHECK_EQ((uintptr_t)p % align, 0);
            CHECK_GE(malloc_usable_size(p), sizes[i]);
            memset(p, 1, sizes[i]);
            void* q = memalign(align, sizes[i]);
            CHECK_EQ((uintptr_t)q % align, 0);
            CHECK_NE(p, q);
            free_(p);
            q = realloc_(q, sizes[i] + 100);
            REQUIRE(q != NULL);
            free_(q);
        }
    }
    void* p = (void*)1;
    CHECK_EQ(posix_memalign(&p, 24, 10), EINVAL);
    CHECK_EQ(posix_memalign(&p, 4, 10), EINVAL);
    CHECK_EQ(posix_memalign(&p, 0, 10), EINVAL);
    CHECK_EQ(p, (void*)1);
    CHECK_EQ(posix_memalign(&p, 4096, SIZE_MAX / 2), ENOMEM);
    CHECK_EQ(p, (void*)1);
    void* rounded = memalign_(24, 10);
    CHECK_EQ((uintptr_t)rounded % 32, 0);
    free_(rounded);
    void *a = aligned_alloc(256, 512), *v = valloc(10), *w = pvalloc(4097), *z = pvalloc(0);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    CHECK_EQ((uintptr_t)a % 256, 0);
    CHECK_EQ((uintptr_t)v % page, 0);
    CHECK_EQ((uintptr_t)w % page, 0);
    CHECK_GE(malloc_usable_size(w), 2 * page);
    CHECK_GE(malloc_usable_size(z), page);
    free_(a), free_(v), free_(w), free_(z);
}

/* C23's, which the headers here may not have. */
static void sized(void) {
    void (*free_sized_)(void*, size_t);
    void (*free_aligned_sized_)(void*, size_t, size_t);
    *(void**)&free_sized_ = dlsym(RTLD_DEFAULT, "free_sized");
    *(void**)&free_aligned_sized_ = dlsym(RTLD_DEFAULT, "free_aligned_sized");
    REQUIRE(free_sized_ != NULL && free_aligned_sized_ != NULL);
    for (int i = 0; i < SIZES; i++) {
        free_sized_(malloc_(sizes[i]), sizes[i]);
        free_aligned_sized_(aligned_alloc(64, sizes[i]), 64, sizes[i]);
    }
    free_sized_(NULL, 10);
    free_aligned_sized_(NULL, 16, 10);
}

static void of_libc(void) {
    for (int i = 1; i < SIZES; i++) {
        char* p = __libc_malloc(sizes[i]);
        REQUIRE(p != NULL);
        if (sizes[i] <= 65536) CHECK(!pre_is_ours(p)); /* a larger one may be mapped beside ours */
        pre_fill(p, sizes[i], 5);
        CHECK_GE(malloc_usable_size(p), sizes[i]);
        p = realloc_(p, sizes[i] * 2);
        REQUIRE(p != NULL);
        CHECK(pre_is_filled(p, sizes[i], 5));
        free_(p);
        void* q = __libc_memalign(64, sizes[i]);
        CHECK_EQ((uintptr_t)q % 64, 0);
        free_(q);
        CHECK_NULL(realloc_(__libc_malloc(sizes[i]), 0));
    }
}

/* What libc makes for the program. */
static void by_libc(void) {
    char *text = NULL, *line = NULL, *dup = strdup("a text of some length");
    size_t room = 0;
    CHECK(pre_is_ours(dup));
    REQUIRE_GT(asprintf(&text, "%s %d", dup, 42), 0);
    CHECK_STR(text, "a text of some length 42");
    FILE* f = tmpfile();
    REQUIRE(f != NULL);
    fprintf(f, "%s\n", text);
    rewind(f);
    CHECK_GT(getline(&line, &room, f), 0);
    line = realloc_(line, room * 4);
    free_(line), free_(text), free_(dup);
    fclose(f);
    char* path = realpath("/", NULL);
    CHECK_STR(path, "/");
    free_(path);
}

/* Frees that are wrong are refused: neither the program nor an object suffers. */
static void wrong_frees(void) {
    char *p = malloc_(200), *q = malloc_(200);
    pre_fill(q, 200, 9);
    free_(p);
    free_(p);
    free_(q + 16);
    CHECK(pre_is_filled(q, 200, 9));
    CHECK_GE(malloc_usable_size(q), 200);
    char *r = malloc_(200), *s = malloc_(200);
    CHECK_NE(r, s);
    free_(q), free_(r), free_(s);
}

static void figures(void) {
    enum { EACH = 1 << 20 };
    struct mallinfo2 before = mallinfo2();
    char* p = malloc_(EACH);
    memset(p, 1, EACH);
    struct mallinfo2 with = mallinfo2();
    CHECK_GE(with.uordblks, before.uordblks + EACH);
    CHECK_GE(with.arena, with.uordblks);
    CHECK_GE(mallinfo().uordblks, EACH);
    free_(p);
    CHECK_BETWEEN(malloc_trim(0), 0, 1);
    CHECK_EQ(malloc_trim(0), 0);
    CHECK_LE(mallinfo2().uordblks, with.uordblks - EACH);
    CHECK_EQ(mallopt(M_MMAP_THRESHOLD, 1 << 20), 1);
    char text[1024] = "";
    FILE* f = fmemopen(text, sizeof text, "w");
    CHECK_EQ(malloc_info(1, f), EINVAL);
    CHECK_EQ(malloc_info(0, f), 0);
    fclose(f);
    CHECK_HAS(text, "<malloc version=\"1\">");
    CHECK_HAS(text, "</malloc>");
}

static const CheckCase cases[] = {
    CHECK_CASE(sizes_and_contents), CHECK_CASE(zeros),   CHECK_CASE(refusals), CHECK_CASE(resizes),
    CHECK_CASE(alignments),         CHECK_CASE(sized),   CHECK_CASE(of_libc),  CHECK_CASE(by_libc),
    CHECK_CASE(wrong_frees),        CHECK_CASE(figures),
};
CHECK_MAIN(cases)
