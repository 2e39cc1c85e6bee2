/*
 * test_moved.c - large objects whose pages move: all of them, some, or none, and what is freed meanwhile.
 */
#include "fake_os.h"
#include "kit/fixture.h"
#include "kit/one.h"

enum { MIB = 1 << 20, SIZE = 70 * MIB + 12345 };

static size_t page, allowed; /* how many bytes may move yet */
static unsigned calls;
static void (*meanwhile)(uint8_t* to, uint8_t* from, size_t bytes);

static size_t fake_move(void* to, void* from, size_t bytes) {
    calls++;
    REQUIRE_EQ(((uintptr_t)to | (uintptr_t)from | bytes) & (page - 1), 0);
    size_t n = bytes < allowed ? bytes : allowed;
    allowed -= n;
    memcpy(to, from, n);
    memset(from, 0, n);
    if (meanwhile != NULL) meanwhile(to, from, bytes);
    return n;
}

static void open_allocator(void) {
    kit_open_with(kit_options());
    calls = 0;
    meanwhile = NULL;
    allowed = SIZE_MAX;
}

static uint64_t kept(void) {
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    return g.warm_bytes;
}

static void* moved(void) {
    epoch_domain_t* d = epoch_domain_create(a);
    uint8_t* p = epoch_domain_malloc(d, SIZE);
    kit_fill(p, SIZE, 5);
    uint8_t* q = slab_move_outside(a, p);
    REQUIRE(q != NULL && q != kit_hide(p));
    REQUIRE(kit_intact(q, SIZE, 5));
    REQUIRE(!slab_free_checked(a, kit_hide(p)));
    REQUIRE(epoch_domain_destroy(d));
    return q;
}

static void all_of_them(void) {
    void* q = moved();
    REQUIRE_EQ(calls, 3); /* pieces: others get the phase between them */
    REQUIRE(slab_free_checked(a, q));
    REQUIRE_EQ(kit_live(a), 0);
}

/* What does not move is copied, from wherever that begins. */
static void some_of_them(void) {
    const size_t some[] = {0, page, 3 * page, 32 * MIB - page, 32 * MIB, 32 * MIB + page, 64 * MIB, SIZE / page * page};
    for (unsigned n = 0; n < sizeof some / sizeof some[0]; n++) {
        allowed = some[n];
        REQUIRE(slab_free_checked(a, moved()));
        allowed = SIZE_MAX;
    }
}

/* A block that grows and has no room there. */
static void by_realloc(void) {
    uint8_t *p = slab_malloc(a, 2 * MIB), *q;
    kit_fill(p, 2 * MIB, 3);
    void* behind = slab_malloc(a, MIB);
    q = slab_realloc(a, p, 9 * MIB);
    REQUIRE(q != NULL && kit_intact(q, 2 * MIB, 3));
    REQUIRE(q == kit_hide(p) || calls == 1);
    REQUIRE(slab_free_checked(a, q) && slab_free_checked(a, behind));
    REQUIRE_EQ(kit_live(a), 0);
}

/* Pages that are elsewhere now are not kept: they would be counted as memory that is there. */
static void nothing_is_kept(void) {
    for (unsigned n = 0; n < 8; n++) { /* what goes back in vain raises the budget */
        void* p = slab_malloc(a, 4 * MIB);
        REQUIRE(slab_free_checked(a, p));
    }
    REQUIRE_GE(kept(), 4 * MIB);
    epoch_domain_t* d = epoch_domain_create(a);
    void* p = epoch_domain_malloc(d, 4 * MIB);
    uint64_t before = kept();
    void* q = slab_move_outside(a, p);
    REQUIRE(q != NULL);
    REQUIRE_EQ(calls, 1);
    REQUIRE_GE(before, kept());
    REQUIRE(epoch_domain_destroy(d) && slab_free_checked(a, q));
}

/* Freed by the program while its pages move, which is the program's mistake: what comes next is not in its place yet. */
static uint8_t* other;
static size_t other_bytes;
static void* free_it(void* p) {
    uint8_t* from = p;
    REQUIRE(slab_free_checked(a, from));
    other = slab_malloc(a, other_bytes);
    REQUIRE(other + other_bytes <= from || from + other_bytes <= other);
    kit_fill(other, other_bytes, 8);
    return NULL;
}
static void on_a_thread(uint8_t* to, uint8_t* from, size_t bytes) {
    pthread_t t;
    (void)to;
    meanwhile = NULL;
    other_bytes = bytes;
    REQUIRE_EQ(pthread_create(&t, NULL, free_it, from), 0);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
}
static void one_that_is_freed_meanwhile(void) {
    epoch_domain_t* d = epoch_domain_create(a);
    uint8_t* p = epoch_domain_malloc(d, 4 * MIB);
    kit_fill(p, 4 * MIB, 5);
    meanwhile = on_a_thread;
    uint8_t* q = slab_move_outside(a, p);
    REQUIRE(q != NULL && kit_intact(q, 4 * MIB, 5) && kit_intact(other, 4 * MIB, 8));
    REQUIRE(slab_free_checked(a, q) && slab_free_checked(a, other));
    REQUIRE_EQ(kit_live(a), 0);
    REQUIRE(epoch_domain_destroy(d));
}

/* The system's own way: what it moves is there, and what it refuses stays. */
static void by_the_system(void) {
    tsi_os.move = fake_os.real.move;
    void* q = moved();
    REQUIRE(slab_free_checked(a, q));
    const size_t bytes = 64 * page;
    uint8_t *from = tsi_os_map(bytes), *to = tsi_os_map(bytes);
    REQUIRE(from != NULL && to != NULL);
    kit_fill(from, bytes, 1);
    size_t n = tsi_os.move(to, from, bytes);
    if (n == 0) printf("SKIPPED by_the_system: this system moves no pages\n");
    REQUIRE(n == 0 || n == bytes);
    REQUIRE(kit_intact(n == 0 ? from : to, bytes, 1));
    if (n == bytes) {
        kit_fill(from, bytes, 2);
        REQUIRE_EQ(tsi_os.move(to, from, bytes), 0); /* there are pages already */
        REQUIRE(kit_intact(to, bytes, 1) && kit_intact(from, bytes, 2));
    }
    tsi_os_drop(from, bytes);
    tsi_os_drop(to, bytes);
    tsi_os.move = fake_move;
}

/* Pages that nobody has touched stop no move: they are holes in the new place, too. */
static void with_holes(void) {
    const size_t bytes = 64 * page;
    uint8_t *from = tsi_os_map(bytes), *to = tsi_os_map(bytes);
    REQUIRE(from != NULL && to != NULL);
    for (size_t at = 0; at < bytes; at += page)
        if (at / page % 3 != 2) kit_fill(from + at, page, 1 + (unsigned)(at / page));
    size_t n = fake_os.real.move(to, from, bytes);
    if (n == 0) printf("SKIPPED with_holes: this system moves no pages\n");
    REQUIRE(n == 0 || n == bytes);
    for (size_t at = 0; n == bytes && at < bytes; at += page) {
        bool touched = at / page % 3 != 2;
        REQUIRE(touched ? kit_intact(to + at, page, 1 + (unsigned)(at / page)) : to[at] == 0);
    }
    tsi_os_drop(from, bytes);
    tsi_os_drop(to, bytes);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, kit_close)
        TEST(all_of_them),
        TEST(some_of_them),
        TEST(by_realloc),
        TEST(nothing_is_kept),
        TEST(one_that_is_freed_meanwhile),
        TEST(by_the_system),
        TEST(with_holes),
    };
    fake_os_install(0, false, false);
    page = tsi_os.page_bytes;
    tsi_os.move = fake_move;
    return CHECK_RUN(argc, argv, tests);
}
