/*
 * crowds.c - very many forks and threads in one process, whose accounts come out even.
 *
 *   forks beside a load   children that allocate, free, close phases and check all of it, while four threads of the
 *                         parent do the same (TSLAB_TEST_SCALE=20: 10,000)
 *   threads in succession each leaves objects behind, some of which the next one frees (TSLAB_TEST_SCALE=20: 100,000)
 *   threads at once       500, which meet before any of them goes on, so that all of them live at the same time
 *
 * Records of threads and of heaps are used again: after threads in succession they take what they took half-way, and after
 * many at once no more than that many threads need.
 */
#define KIT_RESERVE_BYTES ((uint64_t)4 << 30)

#include "kit/inside.h"

#include "slab_stats.h"

enum { FORKS = 500, SUCCESSION = 5000, AT_ONCE = 500, WORKERS = 4, SECONDS = 120, KEPT = 64 };

static SlabAllocator* a;

/* No misuse, nothing live: all of it has been freed or has ended. */
static void comes_out_even(void) {
    SlabGlobalStats g = kit_global(a);
    REQUIRE_EQ(kit_refused_frees(a), 0);
    REQUIRE_EQ(g.live_objects, 0);
    REQUIRE_EQ(g.live_bytes, 0);
    static SlabLabelStats labels[64];
    size_t n = slab_stats_labels(a, labels, 64);
    REQUIRE(n > 0 && n <= 64);
    while (n-- > 0) REQUIRE_EQ(labels[n].objects_allocated, labels[n].objects_freed + labels[n].objects_released);
    slab_trim(a);
    REQUIRE_EQ(kit_committed(a), 0);
    kit_check(a);
}

/* ---- forks ---- */

static _Atomic bool over;
static _Atomic(void*) table[KEPT];

static void* load(void* arg) {
    uint64_t dice = 77 + (uint64_t)(uintptr_t)arg;
    while (!atomic_load(&over)) {
        epoch_domain_t* d = epoch_domain_begin(a, "load");
        REQUIRE(d != NULL);
        for (unsigned n = 0; n < 20; n++) {
            size_t size = kit_rand_size(&dice, 3000);
            void* p = slab_malloc_outside(a, size);
            REQUIRE(p != NULL && slab_malloc(a, size) != NULL);
            memset(p, 1, size < 64 ? size : 64);
            slab_free(a, atomic_exchange(&table[kit_rand(&dice) % KEPT], p));
        }
        REQUIRE(epoch_domain_end(d));
    }
    return NULL;
}

static void child(void) {
    void* p[20];
    EpochReceipt r;
    alarm(SECONDS);
    for (unsigned n = 0; n < 20; n++) {
        REQUIRE((p[n] = slab_malloc(a, 50 + 150 * n)) != NULL);
        memset(p[n], 3, 50);
    }
    epoch_domain_t* d = epoch_domain_begin(a, "child");
    REQUIRE(d != NULL && slab_malloc(a, 100) != NULL);
    for (unsigned n = 0; n < KEPT; n++) REQUIRE(slab_free_checked(a, atomic_exchange(&table[n], NULL)));
    REQUIRE(epoch_domain_end_ex(d, &r));
    KIT_BALANCED(&r);
    for (unsigned n = 0; n < 20; n++) REQUIRE(slab_free_checked(a, p[n]));
    REQUIRE(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    kit_check(a);
    _exit(check_failures() != 0);
}

static void forks_beside_a_load(void) {
    pthread_t t[WORKERS];
    size_t forks = check_count(FORKS);
    a = kit_create();
    over = false;
    for (size_t n = 0; n < WORKERS; n++) t[n] = kit_thread(load, (void*)(n * 31));
    fflush(NULL);
    for (size_t n = 0; n < forks; n++) {
        int status = -1;
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) child();
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        if (status != 0) FAIL("child %zu of %zu: status %#x", n, forks, (unsigned)status);
    }
    atomic_store(&over, true);
    for (unsigned n = 0; n < WORKERS; n++) pthread_join(t[n], NULL);
    for (unsigned n = 0; n < KEPT; n++) slab_free(a, atomic_exchange(&table[n], NULL));
    printf("  %zu children\n", forks);
    comes_out_even();
    slab_allocator_free(a);
}

/* ---- threads ---- */

static void* left[KEPT]; /* by the thread before */

static void work(uint64_t dice) {
    epoch_domain_t* d = epoch_domain_begin(a, "life");
    REQUIRE(d != NULL);
    for (unsigned n = 0; n < 20; n++) REQUIRE(slab_malloc(a, kit_rand_size(&dice, 2000)) != NULL);
    for (unsigned n = 0; n < 10; n++) {
        void* p = slab_malloc_outside(a, kit_rand_size(&dice, 2000));
        REQUIRE(p != NULL);
        REQUIRE(slab_free_checked(a, p));
    }
    REQUIRE(epoch_domain_end(d));
}

static void* one_life(void* arg) {
    uint64_t number = (uint64_t)(uintptr_t)arg;
    work(number);
    for (unsigned n = 0; n < KEPT; n++) {
        REQUIRE(slab_free_checked(a, left[n]));
        left[n] = n % 3 == number % 3 ? slab_malloc(a, 16 + 16 * n) : NULL;
    }
    /* Some exit inside of a domain, which ends with them. */
    if (number % 5 == 0) REQUIRE(epoch_domain_begin(a, "left open") != NULL && slab_malloc(a, 300) != NULL);
    return NULL;
}

static void threads_in_succession(void) {
    size_t lives = check_count(SUCCESSION);
    uint64_t early = 0;
    a = kit_create();
    memset(left, 0, sizeof left);
    for (size_t n = 1; n <= lives; n++) {
        kit_on_thread(one_life, (void*)n);
        if (n == lives / 2) early = kit_global(a).metadata_bytes;
    }
    for (unsigned n = 0; n < KEPT; n++) REQUIRE(slab_free_checked(a, left[n]));
    uint64_t late = kit_global(a).metadata_bytes;
    printf("  %zu threads; %" PRIu64 " bytes of records half-way, %" PRIu64 " at the end\n", lives, early, late);
    /* One thread at a time: as many records as one has, and a page of each kind at most that is filled later. */
    REQUIRE_LE(late, early + 64 * slab_page_size());
    epoch_advance(a);
    for (EpochId id = 0; id < 16; id++) epoch_close_ex(a, id, EPOCH_RELEASE, NULL);
    comes_out_even();
    slab_allocator_free(a);
}

static pthread_barrier_t meets;

static void* one_of_many(void* arg) {
    uint64_t number = (uint64_t)(uintptr_t)arg;
    void* mine[8];
    for (unsigned n = 0; n < 8; n++) REQUIRE((mine[n] = slab_malloc(a, 100 + n)) != NULL);
    pthread_barrier_wait(&meets);
    work(number);
    for (unsigned n = 0; n < 4; n++) REQUIRE(slab_free_checked(a, mine[n]));
    pthread_barrier_wait(&meets);
    for (unsigned n = 4; n < 8; n++) REQUIRE(slab_free_checked(a, mine[n]));
    return NULL;
}

static void threads_at_once(void) {
    static pthread_t t[AT_ONCE];
    pthread_attr_t small;
    size_t rounds = check_count(4) > 20 ? 20 : check_count(4);
    REQUIRE_EQ(pthread_attr_init(&small), 0);
    REQUIRE_EQ(pthread_attr_setstacksize(&small, 256 << 10), 0);
    a = kit_create();
    REQUIRE_EQ(pthread_barrier_init(&meets, NULL, AT_ONCE + 1), 0);
    uint64_t early = 0, last = 0;
    for (size_t round = 0; round < rounds; round++) {
        for (size_t n = 0; n < AT_ONCE; n++) {
            int error = pthread_create(&t[n], &small, one_of_many, (void*)n);
            if (error != 0) FAIL("thread %zu: %s", n, strerror(error));
        }
        pthread_barrier_wait(&meets);
        REQUIRE_GE(kit_live(a), 4 * AT_ONCE); /* none of them is past the next meeting */
        epoch_advance(a);                     /* the objects of all are in an epoch that the ring has left */
        pthread_barrier_wait(&meets);
        for (size_t n = 0; n < AT_ONCE; n++) pthread_join(t[n], NULL);
        REQUIRE_EQ(kit_live(a), 0);
        last = kit_global(a).metadata_bytes;
        if (round == rounds / 2) early = last;
    }
    printf("  %zu times %d threads; %" PRIu64 " bytes of records half-way, %" PRIu64 " at the end\n", rounds, AT_ONCE,
           early, last);
    /* Twice of what they have: how many have a phase at once, and fill pages of records, is up to the machine. */
    REQUIRE_LE(last, AT_ONCE * (8u << 10));
    pthread_barrier_destroy(&meets);
    pthread_attr_destroy(&small);
    for (EpochId id = 0; id < 16; id++) epoch_close_ex(a, id, EPOCH_RELEASE, NULL);
    comes_out_even();
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(forks_beside_a_load),
    CHECK_CASE(threads_in_succession),
    CHECK_CASE(threads_at_once),
};
CHECK_MAIN(cases)
