/*
 * left_over.c - what stays resident of bookkeeping once many phases and many threads have ended: at most 2 MiB, whatever
 * the peak was and in whatever order it ended, without a trim; and a thread that exits inside of its domain leaves nothing.
 *
 * Resident sizes are the system's; beside the bookkeeping there may be the pages that are kept warm. Every array is
 * touched before the first reading, and threads run on stacks of the program's own.
 */
#include "kit/fixture.h"

#include <sys/mman.h>

enum { PHASES = 50000, NESTED = 10000, TEAM = 2000, STACK_BYTES = 64 << 10, OBJECTS = 10, LEAST_TEAM = 200 };

static epoch_domain_t* domains[PHASES];
static uint32_t order[PHASES];

#define NEEDS_RSS()                                                       \
    do {                                                                  \
        if (CHECK_TSAN || CHECK_ASAN) {                                   \
            SKIP("resident size means nothing in an instrumented build"); \
        }                                                                 \
        memset(domains, 1, sizeof domains);                               \
        memset(order, 1, sizeof order);                                   \
        if (slab_rss_bytes() == 0) {                                      \
            SKIP("the system does not tell the resident size");           \
        }                                                                 \
    } while (0)

static SlabAllocator* known(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "first");
    CHECK(slab_malloc(a, 100) != NULL);
    epoch_domain_end(d);
    (void)kit_global(a);
    return a;
}

static void little_is_left(SlabAllocator* a, uint64_t before, const char* of) {
    uint64_t after = slab_rss_bytes(), kept = kit_committed(a);
    slab_trim(a);
    uint64_t trimmed = slab_rss_bytes();
    NOTE("%s: +%lld KiB, at most %" PRIu64 " of them pages kept warm; after a trim +%lld KiB", of,
         ((long long)after - (long long)before) / 1024, kept / 1024, ((long long)trimmed - (long long)before) / 1024);
    CHECK_LE(after, before + 2 * KIT_MIB + (kept < KIT_WARM_BYTES ? kept : KIT_WARM_BYTES));
    CHECK_LE(trimmed, before + KIT_MIB);
    CHECK_EQ(kit_committed(a), 0);
    CHECK_EQ(kit_live(a), 0);
}

static void fill(SlabAllocator* a, epoch_domain_t* d) {
    for (size_t k = 0; k < OBJECTS; k++) {
        void* p = d != NULL ? epoch_domain_malloc(d, 16 + 30 * k) : slab_malloc(a, 16 + 30 * k);
        if (CHECK(p != NULL)) {
            memset(p, 1, 16);
        }
    }
}

/* In the order they began in, against it, and in none. */
static void open_phases(void* arg) {
    size_t how = *(size_t*)arg;
    uint64_t dice = 99;
    NEEDS_RSS();
    SlabAllocator* a = known();
    for (size_t i = 0; i < PHASES; i++) {
        order[i] = (uint32_t)(how == 1 ? PHASES - 1 - i : i);
    }
    for (size_t i = PHASES - 1; how == 2 && i != 0; i--) {
        size_t k = kit_rand(&dice) % (i + 1);
        uint32_t t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    uint64_t before = slab_rss_bytes();
    for (size_t i = 0; i < PHASES; i++) {
        domains[i] = epoch_domain_create(a);
        REQUIRE(domains[i] != NULL);
        fill(a, domains[i]);
    }
    CHECK_GE(slab_rss_bytes(), before + 100 * KIT_MIB);
    for (size_t i = 0; i < PHASES; i++) {
        epoch_domain_destroy(domains[order[i]]);
    }
    little_is_left(a, before, how == 0 ? "in order" : how == 1 ? "against it" : "in none");
    slab_allocator_free(a);
}

static void many_open_phases(void) {
    for (size_t how = 0; how < 3; how++) {
        check_child(open_phases, &how);
    }
}

static void nested(void* arg) {
    (void)arg;
    NEEDS_RSS();
    SlabAllocator* a = known();
    uint64_t before = slab_rss_bytes();
    for (size_t i = 0; i < NESTED; i++) {
        domains[i] = epoch_domain_begin(a, "nested");
        REQUIRE(domains[i] != NULL);
        fill(a, NULL);
    }
    for (size_t i = NESTED; i != 0; i--) {
        epoch_domain_end(domains[i - 1]);
    }
    little_is_left(a, before, "nested");
    slab_allocator_free(a);
}

static void deep_phases(void) { check_child(nested, NULL); }

/* ---- threads ---- */

static pthread_barrier_t meet;

static void* work(void* arg) {
    SlabAllocator* a = arg;
    if (a == NULL) { /* what the C library keeps of so many threads */
        pthread_barrier_wait(&meet);
        pthread_barrier_wait(&meet);
        return NULL;
    }
    epoch_domain_t* d = epoch_domain_begin(a, "thread");
    fill(a, NULL);
    void* p = slab_malloc_epoch(a, 100, epoch_current(a));
    pthread_barrier_wait(&meet); /* all are there */
    pthread_barrier_wait(&meet);
    CHECK(slab_free_checked(a, p));
    epoch_domain_end(d);
    return NULL;
}

static pthread_t threads[TEAM];

static bool start(pthread_t* t, uint8_t* stack, void* (*fn)(void*), void* arg) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    bool ok = pthread_attr_setstack(&attr, stack, STACK_BYTES) == 0 && pthread_create(t, &attr, fn, arg) == 0;
    pthread_attr_destroy(&attr);
    return ok;
}

static void* nothing(void* arg) { return arg; }

/* How many threads the system lets us have at once. */
static unsigned team(uint8_t* stacks) {
    unsigned n = 0;
    while (n < TEAM && start(&threads[n], stacks + (size_t)n * STACK_BYTES, nothing, NULL)) {
        pthread_join(threads[n], NULL);
        n++;
    }
    return n;
}

static void wave(SlabAllocator* a, uint8_t* stacks, unsigned n) {
    pthread_barrier_init(&meet, NULL, n + 1);
    for (unsigned i = 0; i < n; i++) {
        if (!CHECK(start(&threads[i], stacks + (size_t)i * STACK_BYTES, work, a))) {
            exit(1); /* the others wait for it */
        }
    }
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    for (unsigned i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&meet);
}

static void thousands(void* arg) {
    (void)arg;
    NEEDS_RSS();
    SlabAllocator* a = known();
    memset(threads, 1, sizeof threads);
    size_t bytes = (size_t)TEAM * STACK_BYTES;
    uint8_t* stacks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(stacks != MAP_FAILED);
    unsigned n = team(stacks);
    wave(NULL, stacks, n);
    (void)madvise(stacks, bytes, MADV_DONTNEED);
    uint64_t before = slab_rss_bytes();
    wave(a, stacks, n);
    munmap(stacks, bytes);
    if (n < LEAST_TEAM) {
        SKIP("the system allows %u threads", n);
    }
    little_is_left(a, before, "threads");
    slab_allocator_free(a);
}

static void many_threads(void) { check_child(thousands, NULL); }

static void* exit_inside(void* arg) {
    SlabAllocator* a = arg;
    epoch_domain_t* d = epoch_domain_begin(a, "left open");
    CHECK(d != NULL);
    epoch_domain_enter(d);
    CHECK(slab_malloc(a, 100) != NULL);
    epoch_domain_t* also = epoch_domain_create(a);
    epoch_domain_enter(also);
    return NULL;
}

static void exits_inside(void* arg) {
    (void)arg;
    NEEDS_RSS();
    SlabAllocator* a = known();
    kit_on_thread(exit_inside, a);
    uint64_t before = slab_rss_bytes();
    size_t n = 10000;
    for (size_t i = 0; i < n; i++) {
        kit_on_thread(exit_inside, a);
    }
    CHECK_EQ(kit_refusals(a).domain_order + kit_refusals(a).domain_stale, 0);
    little_is_left(a, before, "exits inside of domains");
    slab_allocator_free(a);
}

static void threads_that_exit_inside(void) { check_child(exits_inside, NULL); }

/* ---- which domains go after their thread ---- */

typedef struct Left {
    SlabAllocator* a;
    epoch_domain_t *made, *found, *given, *open, *shared;
    void* p;
} Left;

static void* leave(void* arg) {
    Left* l = arg;
    l->made = epoch_domain_begin(l->a, "made");
    l->found = epoch_domain_begin(l->a, "found");
    epoch_domain_enter(l->given);
    l->open = epoch_domain_create(l->a);
    l->open->auto_close = false;
    epoch_domain_enter(l->open);
    l->p = slab_malloc(l->a, 64);
    l->shared = epoch_domain_create(l->a);
    epoch_domain_enter(l->shared);
    epoch_domain_enter(l->shared);
    CHECK(epoch_domain_detach(l->shared));
    return NULL;
}

static void* leave_one(void* a) {
    CHECK(epoch_domain_begin(a, "one more") != NULL);
    return NULL;
}

/* What the thread has made, once 256 others were left behind, unless objects are to stay in it, somebody is to come, or
 * somebody has used it since; never one that another thread has made. */
static void a_domain_goes_after_the_thread_that_made_it(void) {
    Left l = {.a = kit_create()};
    EpochReceipt r;
    l.given = epoch_domain_create_labeled(l.a, "given");
    kit_on_thread(leave, &l);
    CHECK(epoch_domain_receipt(l.made, &r));
    CHECK(strcmp(r.label, "made") == 0);
    epoch_domain_enter(l.found);
    epoch_domain_exit(l.found);
    for (int i = 0; i < 254; i++) {
        kit_on_thread(leave_one, l.a);
    }
    CHECK(epoch_domain_receipt(l.made, &r));
    CHECK_EQ(kit_refusals(l.a).domain_stale, 0);
    for (int i = 0; i < 300; i++) {
        kit_on_thread(leave_one, l.a);
    }
    CHECK(epoch_domain_receipt(l.found, &r));
    CHECK(strcmp(r.label, "found") == 0); /* its record serves no other domain */
    CHECK(epoch_domain_receipt(l.given, &r));
    CHECK(strcmp(r.label, "given") == 0);
    CHECK_EQ(l.open->refcount, 0);
    CHECK_EQ(slab_usable_size(l.a, l.p), 64);
    CHECK_EQ(l.shared->refcount, 1);
    CHECK(epoch_domain_attach(l.shared));
    epoch_domain_end(l.shared);
    epoch_domain_destroy(l.open);
    epoch_domain_destroy(l.given);
    epoch_domain_destroy(l.found);
    CHECK_EQ(kit_live(l.a), 0);
    CHECK_EQ(kit_refusals(l.a).domain_stale, 0);
    CHECK_EQ(kit_refusals(l.a).domain_order, 0);
    slab_allocator_free(l.a);
}

static const CheckCase cases[] = {
    CHECK_CASE(many_open_phases),         CHECK_CASE(deep_phases),
    CHECK_CASE(many_threads),             CHECK_CASE(threads_that_exit_inside),
    CHECK_CASE(a_domain_goes_after_the_thread_that_made_it),
};
CHECK_MAIN(cases)
