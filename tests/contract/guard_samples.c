/*
 * guard_samples.c - option guard_sampling: one object in about a period ends at a page that faults, and faults after its
 * end; few at a time, whatever the program does; all others are objects in their slots.
 */
#include "kit/said.h"
#include "kit/fixture.h"

enum { PERIOD = 16, GUARDS = 256 };

static SlabAllocator* a;

static void open_with(uint8_t fills, uint8_t shared) {
    SlabOptions o = kit_options();
    o.guard_sampling = PERIOD;
    o.fill_freed = fills;
    o.shared = shared;
    a = kit_create_with(&o);
}
static void open_it(void) { open_with(0, 0); }
static void open_filled(void) { open_with(1, 0); }
static void open_shared(void) { open_with(0, 1); }
static void close_it(void) {
    CHECK_EQ(kit_refusals(a).write_after_end, 0);
    slab_allocator_free(a);
}

static char* made(size_t size) {
    char* p = slab_malloc(a, size);
    REQUIRE(p != NULL);
    memset(p, 7, size);
    return p;
}
/* An object of 48 bytes that ends at a page, on addresses that objects in slots do not have. */
static bool is_guarded(const char* p) {
    return ((uintptr_t)p + 48 + slab_page_size()) % 65536 == 0 && slab_usable_size(a, p) == 48;
}
static char* guarded(void) {
    for (unsigned n = 0; n < 100000; n++) {
        char* p = made(48);
        if (is_guarded(p)) return p;
        slab_free(a, p);
    }
    REQUIRE(false);
    return NULL;
}

static void reads(void* p) { _exit(*(volatile char*)p == 7 ? 7 : 8); }
static bool faults(void* p, const char* text) {
    Said s = kit_said(reads, p);
    bool died = CHECK_TSAN ? s.status != 0 : WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGSEGV;
    return died && strstr(s.text, text) != NULL;
}

static void faults_where_it_must(void) {
    char* p = guarded();
    CHECK(kit_was_quiet(kit_said(reads, p + 47), 7));
    CHECK(faults(p + 48, "is 0 bytes behind an object of 48 bytes\n"));
    CHECK(slab_free_checked(a, p));
    CHECK(faults(p, "is 0 bytes into an object of 48 bytes\n"));
    CHECK(!slab_free_checked(a, p));
    CHECK_EQ(kit_refusals(a).double_free, 1);
    CHECK(slab_owns(a, p));

    epoch_domain_t* d = epoch_domain_begin(a, "GET /page");
    p = guarded();
    CHECK(epoch_domain_end(d));
    CHECK(faults(p, "temporal-slab: late access to phase \"GET /page\" (era "));
    CHECK_EQ(kit_live(a), 0);
}

/* As many as asked for, at distances that nobody can foretell. */
static void one_in_about_so_many(void) {
    enum { OBJECTS = 32000 };
    unsigned count = 0, last = 0, least = OBJECTS, most = 0;
    for (unsigned n = 0; n < OBJECTS; n++) {
        char* p = made(48);
        if (is_guarded(p)) {
            if (count++ != 0 && n - last < least) least = n - last;
            if (n - last > most) most = n - last;
            last = n;
        }
        CHECK(slab_free_checked(a, p));
    }
    CHECK(count > OBJECTS / PERIOD * 3 / 4 && count < OBJECTS / PERIOD * 5 / 4);
    CHECK(least < PERIOD / 2 && most > PERIOD && most < 2 * PERIOD + 1);
}

/* The pool is all there is: the next objects are in their slots, until guards end. */
static unsigned mappings(void) {
    unsigned n = 0;
    FILE* f = fopen("/proc/self/maps", "r");
    REQUIRE(f != NULL);
    for (int c; (c = getc(f)) != EOF;) n += c == '\n';
    fclose(f);
    return n;
}
static void few_at_a_time(void) {
    enum { OBJECTS = 20000 };
    static char* p[OBJECTS];
    unsigned count = 0, before = mappings();
    for (unsigned n = 0; n < OBJECTS; n++) memset(p[n] = made(48), (int)n, 48);
    for (unsigned n = 0; n < OBJECTS; n++) {
        for (unsigned k = 0; k < 48; k++) REQUIRE_EQ((unsigned char)p[n][k], (unsigned char)n);
        count += is_guarded(p[n]);
    }
    CHECK_EQ(count, GUARDS);
    CHECK_LE(mappings(), before + 2 * GUARDS + 20);
    for (unsigned n = 0; n < OBJECTS; n++) CHECK(slab_free_checked(a, p[n]));
    slab_free(a, guarded());
    CHECK_EQ(kit_live(a), 0);
}

/* The addresses come round within one phase, whose end must go through what it has opened last on each. */
static void addresses_come_round(void) {
    enum { GUARDED = 20000 }; /* there are 16,384 places, or half as many with pages of 64 KiB */
    EpochId id = epoch_current(a);
    char* stays = guarded();
    for (unsigned n = 0; n < GUARDED; n++) slab_free(a, guarded());
    CHECK_EQ(stays[0], 7);
    epoch_advance(a);
    epoch_close(a, id);
    CHECK(slab_free_checked(a, stays)); /* it outlives the phase, which was drained */
    CHECK_EQ(kit_live(a), 0);
}

/* By handle, of all sizes, resized: an object like any other. */
static void like_any_other(void) {
    for (size_t size = 1; size < 3000000; size += size / 50 + 1) {
        char* p = made(size);
        CHECK(slab_usable_size(a, p) >= size && slab_owns(a, p) && p[size - 1] == 7);
        char* q = slab_calloc(a, 1, size);
        REQUIRE(q != NULL);
        CHECK(q[0] == 0 && q[size - 1] == 0);
        p = slab_realloc(a, p, size + 3);
        REQUIRE(p != NULL && p[size - 1] == 7);
        CHECK(slab_free_checked(a, p) && !slab_free_checked(a, p) && slab_free_checked(a, q));
    }
    for (unsigned n = 0; n < 3000; n++) {
        SlabHandle h = 0, other = 0;
        char *p = alloc_obj(a, 48, &h), *q = alloc_obj(a, 48, &other);
        REQUIRE(p != NULL && q != NULL);
        CHECK_EQ(slab_handle_ptr(a, h), p);
        CHECK_EQ(slab_ptr_handle(a, q), other);
        if (n % 3 == 0) CHECK(free_obj(a, h) && !free_obj(a, h));
        else CHECK(slab_free_checked(a, p));
        CHECK_NULL(slab_handle_ptr(a, h));
        CHECK_EQ(slab_handle_ptr(a, other), q);
        CHECK(slab_free_checked(a, q));
    }
    CHECK_EQ(kit_live(a), 0);
}

/* Threads that begin and end phases, free each other's objects, and find all that lives whole. */
static void* _Atomic boxes[32];
static _Atomic SlabHandle handles[32];
static void* works(void* arg) {
    uint64_t seed = (uintptr_t)arg, dice = seed;
    for (unsigned n = 0; n < check_count(300); n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "threads");
        char* own[20];
        size_t size[20];
        for (unsigned k = 0; k < 20; k++) {
            size[k] = kit_rand_size(&dice, 5000);
            kit_fill(own[k] = made(size[k]), size[k], seed + k);
            CHECK(slab_free_checked(a, atomic_exchange(&boxes[kit_rand(&dice) % 32], slab_malloc_outside(a, 40))));
            SlabHandle h = 0;
            REQUIRE(alloc_obj(a, 48, &h) != NULL);
            h = atomic_exchange(&handles[kit_rand(&dice) % 32], h);
            if (h != 0) (void)free_obj(a, h); /* perhaps of a phase that has ended */
        }
        for (unsigned k = 0; k < 20; k++) CHECK(kit_intact(own[k], size[k], seed + k));
        for (unsigned k = 0; k < 20; k += 2) CHECK(slab_free_checked(a, own[k]));
        CHECK(n % 2 == 0 ? epoch_domain_end(d) : epoch_domain_drain(d, NULL));
        for (unsigned k = 1; k < 20 && n % 2 != 0; k += 2) {
            CHECK(kit_intact(own[k], size[k], seed + k));
            CHECK(slab_free_checked(a, own[k]));
        }
    }
    return NULL;
}
static void threads(void) {
    pthread_t t[4];
    for (uintptr_t n = 0; n < 4; n++) REQUIRE_EQ(pthread_create(&t[n], NULL, works, (void*)(n + 1)), 0);
    for (int n = 0; n < 4; n++) pthread_join(t[n], NULL);
    for (int n = 0; n < 32; n++) {
        CHECK(slab_free_checked(a, atomic_exchange(&boxes[n], NULL)));
        (void)free_obj(a, atomic_exchange(&handles[n], 0));
    }
    CHECK_EQ(kit_live(a), 0);
    if (!kit_shared()) slab_free(a, guarded());
}

#define SAMPLED(fn) CHECK_CASE_WITH(fn, open_it, close_it)
#define FILLED(fn) CHECK_CASE_WITH(fn, open_filled, close_it)
static const CheckCase cases[] = {
    SAMPLED(faults_where_it_must),
    FILLED(faults_where_it_must),
    SAMPLED(one_in_about_so_many),
    FILLED(one_in_about_so_many),
    SAMPLED(few_at_a_time),
    SAMPLED(addresses_come_round),
    SAMPLED(like_any_other),
    FILLED(like_any_other),
    SAMPLED(threads),
    FILLED(threads),
    CHECK_CASE_WITH(like_any_other, open_shared, close_it),
    CHECK_CASE_WITH(threads, open_shared, close_it),
};
int main(int argc, char** argv) {
    if (CHECK_ASAN) { /* as in late_access.c */
        puts("skipped: AddressSanitizer handles faults itself");
        return 0;
    }
    return CHECK_RUN(argc, argv, cases);
}
