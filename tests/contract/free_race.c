/*
 * free_race.c - pointers freed by several threads at once, rightly and wrongly.
 *
 * Rightly: objects wander between threads and are freed once, anywhere; none is lost, none shared.
 * Wrongly: two threads free the same pointer without synchronisation. That may be found only when
 * the slab's words are merged; then it is counted, nothing is handed out twice, and the allocator
 * goes on.
 */
#include "kit/fixture.h"

enum { TEAM = 4, BATCH = 2000 };

/* Checks that nothing but warm pages is committed, within their budget, and nothing after a trim. Beside other work slabs
 * go and come again, so the budget may have learned. */
static void check_only_warm(SlabAllocator* a) {
    SlabGlobalStats g = kit_global(a);
    CHECK_EQ(g.committed_bytes, g.warm_bytes);
    CHECK_LE(g.warm_bytes, g.warm_budget_bytes);
    slab_trim(a);
    CHECK_EQ(kit_committed(a), 0);
}

typedef struct Shared {
    SlabAllocator* a;
    pthread_barrier_t meet;
    void* p[BATCH];
    _Atomic uint64_t freed;
    size_t rounds;
} Shared;

typedef struct Member {
    Shared* s;
    size_t index;
} Member;

static void run_team(Shared* s, void* (*fn)(void*), size_t team) {
    pthread_t threads[TEAM];
    Member members[TEAM];
    for (size_t i = 0; i < team; i++) {
        members[i] = (Member){s, i};
        threads[i] = kit_thread(fn, &members[i]);
    }
    for (size_t i = 0; i < team; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void* doubling(void* arg) {
    Member* m = arg;
    Shared* s = m->s;
    for (size_t round = 0; round < s->rounds; round++) {
        if (m->index == 0) { /* the owner of the slabs is one of the two */
            for (size_t i = 0; i < BATCH; i++) {
                s->p[i] = slab_malloc(s->a, 16 + (i * 13) % 1200);
                CHECK(s->p[i] != NULL);
            }
        }
        pthread_barrier_wait(&s->meet);
        uint64_t freed = 0;
        for (size_t i = 0; i < BATCH; i++) {
            freed += slab_free_checked(s->a, s->p[i]);
        }
        atomic_fetch_add(&s->freed, freed);
        pthread_barrier_wait(&s->meet);
    }
    return NULL;
}

/* After the dust settles: fresh objects are distinct and keep their contents. */
static void check_nothing_is_shared(SlabAllocator* a, Shared* s) {
    for (size_t i = 0; i < BATCH; i++) {
        size_t size = 16 + (i * 13) % 1200;
        s->p[i] = slab_malloc(a, size);
        REQUIRE(s->p[i] != NULL);
        kit_fill(s->p[i], size, i);
    }
    for (size_t i = 0; i < BATCH; i++) {
        CHECK(kit_intact(s->p[i], 16 + (i * 13) % 1200, i));
    }
    for (size_t i = 0; i < BATCH; i++) {
        CHECK(slab_free_checked(a, s->p[i]));
    }
}

static void doubled_without_synchronisation(void) {
    static Shared s;
    s.a = kit_create();
    s.rounds = check_count(100);
    atomic_store(&s.freed, 0);
    pthread_barrier_init(&s.meet, NULL, 2);
    run_team(&s, doubling, 2);
    check_nothing_is_shared(s.a, &s);
    EpochReceipt r;
    CHECK(epoch_close_ex(s.a, 0, EPOCH_DRAIN, &r));
    KIT_BALANCED(&r);
    CHECK_EQ(r.objects_allocated, (s.rounds + 1) * BATCH);
    CHECK_EQ(r.objects_freed, (s.rounds + 1) * BATCH);
    uint64_t freed = atomic_load(&s.freed), expected = s.rounds * BATCH;
    SlabRefusals refused = kit_refusals(s.a);
    NOTE("%" PRIu64 " pointers freed twice: %" PRIu64 " refused at once, %" PRIu64 " found later", expected,
         refused.double_free + refused.stale_free, refused.late_double_free);
    CHECK_GE(freed, expected);
    CHECK_EQ(freed, expected + refused.late_double_free);
    CHECK_EQ(refused.double_free + refused.stale_free + refused.late_double_free, expected);
    CHECK_EQ(kit_live(s.a), 0);
    CHECK_LE(kit_committed(s.a), KIT_WARM_BYTES);
    check_only_warm(s.a);
    pthread_barrier_destroy(&s.meet);
    slab_allocator_free(s.a);
}

/* Everybody allocates into a shared table and frees whatever it finds there. */
static _Atomic(void*) table[1024];

static void* wandering(void* arg) {
    Member* m = arg;
    SlabAllocator* a = m->s->a;
    uint64_t rng = 1000 + m->index;
    for (size_t i = 0; i < m->s->rounds; i++) {
        size_t size = kit_rand_size(&rng, i % 500 == 0 ? 400000 : 4000);
        unsigned char* p = slab_malloc(a, size);
        if (!CHECK(p != NULL)) {
            return NULL;
        }
        memcpy(p, &p, size < sizeof p ? size : sizeof p);
        p[size - 1] = size > sizeof p ? 0x5A : p[size - 1];
        void* old = atomic_exchange(&table[kit_rand(&rng) % 1024], p);
        if (old != NULL) {
            size_t usable = slab_usable_size(a, old);
            CHECK_GT(usable, 0);
            CHECK(memcmp(old, &old, 1) == 0);
            CHECK(slab_free_checked(a, old));
        }
        if (i % 4096 == 0) {
            epoch_advance(a);
        }
    }
    return NULL;
}

static void wandering_objects(void) {
    static Shared s;
    s.a = kit_create_cold();
    s.rounds = check_count(200000);
    run_team(&s, wandering, TEAM);
    uint64_t left = 0;
    for (size_t i = 0; i < 1024; i++) {
        left += atomic_load(&table[i]) != NULL;
    }
    CHECK_EQ(kit_live(s.a), left);
    for (size_t i = 0; i < 1024; i++) {
        CHECK(slab_free_checked(s.a, atomic_exchange(&table[i], NULL)));
    }
    CHECK_EQ(kit_live(s.a), 0);
    CHECK_EQ(kit_refused_frees(s.a), 0);
    CHECK_EQ(kit_refusals(s.a).late_double_free, 0);
    for (EpochId id = 0; id < 16; id++) {
        epoch_close(s.a, id);
    }
    CHECK_EQ(kit_committed(s.a), 0);
    slab_allocator_free(s.a);
}

/* One thread only allocates, the others only free what it made: its memory is reused all along. */
static _Atomic(void*) belt[4096];
static _Atomic int made_all;

static void* consuming(void* arg) {
    Member* m = arg;
    SlabAllocator* a = m->s->a;
    bool last = false;
    for (;;) {
        size_t taken = 0;
        last = atomic_load(&made_all) != 0;
        for (size_t i = m->index; i < 4096; i += 2) {
            void* p = atomic_exchange(&belt[i], NULL);
            if (p != NULL) {
                CHECK(slab_free_checked(a, p));
                taken++;
            }
        }
        if (taken == 0) {
            if (last) {
                return NULL;
            }
            sched_yield();
        }
    }
}

static void producer_and_consumers(void) {
    static Shared s;
    static const size_t belt_sizes[] = {64, 200, 3000};
    for (size_t k = 0; k < 3; k++) {
        pthread_t threads[2];
        Member members[2] = {{&s, 0}, {&s, 1}};
        uint64_t most = 0;
        s.a = kit_create();
        atomic_store(&made_all, 0);
        for (size_t i = 0; i < 2; i++) {
            threads[i] = kit_thread(consuming, &members[i]);
        }
        size_t rounds = check_count(300000);
        for (size_t i = 0; i < rounds; i++) {
            void* p = slab_malloc(s.a, belt_sizes[k]);
            REQUIRE(p != NULL);
            void* none = NULL;
            while (!atomic_compare_exchange_weak(&belt[(i * 7) % 4096], &none, p)) {
                none = NULL;
                sched_yield();
            }
            if (i % 8192 == 0) {
                uint64_t now = kit_committed(s.a);
                most = now > most ? now : most;
            }
        }
        atomic_store(&made_all, 1);
        for (size_t i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
        }
        CHECK_EQ(kit_live(s.a), 0);
        /* At most a belt full of objects is live; parked slabs and the list of frees not yet taken
         * back may hold as much again several times over, but not the whole run. */
        CHECK_LE(most, 8 * 4096 * slab_good_size(s.a, belt_sizes[k]) + 4 * KIT_MIB);
        epoch_close(s.a, 0);
        check_only_warm(s.a);
        slab_allocator_free(s.a);
    }
}

static const CheckCase cases[] = {
    CHECK_CASE(doubled_without_synchronisation),
    CHECK_CASE(wandering_objects),
    CHECK_CASE(producer_and_consumers),
};
CHECK_MAIN(cases)
