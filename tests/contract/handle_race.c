/*
 * handle_race.c - several threads free the same handles at once: exactly one free of each
 * succeeds, also while pointers are freed beside them and while the epoch is being released.
 *
 * Each round a team of threads meets at a barrier, every member tries every handle of the batch in
 * an order of its own and counts its successes per handle; after the second barrier the counts
 * must be one each.
 */
#include "kit/fixture.h"

enum { TEAM = 4, BATCH = 256 };

typedef struct Race {
    SlabAllocator* a;
    pthread_barrier_t start, end;
    SlabHandle handle[BATCH];
    void* object[BATCH];
    _Atomic unsigned wins[BATCH];
    _Atomic bool over;
    bool by_pointer_too; /* odd members free by pointer */
} Race;

typedef struct Member {
    Race* race;
    unsigned index;
} Member;

static void* member_main(void* arg) {
    Member* m = arg;
    Race* race = m->race;
    static const size_t strides[TEAM] = {1, 1, 255, 101};
    for (;;) {
        pthread_barrier_wait(&race->start);
        if (atomic_load(&race->over)) {
            return NULL;
        }
        for (size_t i = 0, k = 0; i < BATCH; i++, k = (k + strides[m->index]) % BATCH) {
            bool won = race->by_pointer_too && m->index % 2 == 1 ? slab_free_checked(race->a, race->object[k])
                                                                 : free_obj(race->a, race->handle[k]);
            if (won) {
                atomic_fetch_add(&race->wins[k], 1);
            }
        }
        pthread_barrier_wait(&race->end);
    }
}

static void start_team(Race* race, Member* members, pthread_t* threads) {
    pthread_barrier_init(&race->start, NULL, TEAM + 1);
    pthread_barrier_init(&race->end, NULL, TEAM + 1);
    atomic_store(&race->over, false);
    for (unsigned i = 0; i < TEAM; i++) {
        members[i] = (Member){race, i};
        threads[i] = kit_thread(member_main, &members[i]);
    }
}

static void stop_team(Race* race, pthread_t* threads) {
    atomic_store(&race->over, true);
    pthread_barrier_wait(&race->start);
    for (unsigned i = 0; i < TEAM; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&race->start);
    pthread_barrier_destroy(&race->end);
}

static bool fill_batch(Race* race, uint32_t size, EpochId id) {
    for (size_t i = 0; i < BATCH; i++) {
        race->object[i] = alloc_obj_epoch(race->a, size, id, &race->handle[i]);
        atomic_store(&race->wins[i], 0);
        if (race->object[i] == NULL) {
            return false;
        }
    }
    return true;
}

static uint64_t total_wins(Race* race) {
    uint64_t sum = 0;
    for (size_t i = 0; i < BATCH; i++) {
        sum += atomic_load(&race->wins[i]);
    }
    return sum;
}

static void exactly_one_thread_wins(void) {
    static const uint32_t sizes[] = {16, 64, 128, 768, 3000, 20000, 700000};
    static Race race;
    Member members[TEAM];
    pthread_t threads[TEAM];
    race.a = kit_create();
    race.by_pointer_too = false;
    start_team(&race, members, threads);
    size_t rounds = check_count(400);
    for (size_t r = 0; r < rounds; r++) {
        REQUIRE(fill_batch(&race, sizes[r % (r % 16 == 0 ? 7 : 6)], 0));
        pthread_barrier_wait(&race.start);
        pthread_barrier_wait(&race.end);
        for (size_t i = 0; i < BATCH; i++) {
            CHECK_EQ(atomic_load(&race.wins[i]), 1);
        }
        CHECK_EQ(kit_live(race.a), 0);
    }
    SlabRefusals refused = kit_refusals(race.a);
    CHECK_EQ(refused.stale_handle + refused.bad_handle + refused.double_free + refused.stale_free,
             rounds * BATCH * (TEAM - 1));
    CHECK_EQ(refused.late_double_free, 0);
    stop_team(&race, threads);
    slab_allocator_free(race.a);
}

/* Freeing by handle here and by pointer there without synchronisation is misuse; the handles still
 * have at most one winner, nothing crashes, and the memory serves again. */
static void handles_against_pointers(void) {
    static Race race;
    Member members[TEAM];
    pthread_t threads[TEAM];
    race.a = kit_create();
    race.by_pointer_too = true;
    start_team(&race, members, threads);
    size_t rounds = check_count(400);
    for (size_t r = 0; r < rounds; r++) {
        REQUIRE(fill_batch(&race, 128, 0));
        pthread_barrier_wait(&race.start);
        pthread_barrier_wait(&race.end);
        for (size_t i = 0; i < BATCH; i++) {
            CHECK_GE(atomic_load(&race.wins[i]), 1);
            CHECK(!free_obj(race.a, race.handle[i]));
        }
    }
    stop_team(&race, threads);
    EpochReceipt receipt;
    CHECK(epoch_close_ex(race.a, 0, EPOCH_RELEASE, &receipt));
    KIT_BALANCED(&receipt);
    CHECK_EQ(receipt.objects_allocated, rounds * BATCH);
    CHECK_EQ(kit_live(race.a), 0);
    epoch_advance(race.a);
    CHECK(fill_batch(&race, 128, epoch_current(race.a)));
    slab_allocator_free(race.a);
}

/* Every free that returned true is in the receipt as a free, every other object as released. */
static void frees_against_release(void) {
    static Race race;
    Member members[TEAM];
    pthread_t threads[TEAM];
    race.a = kit_create();
    race.by_pointer_too = false;
    start_team(&race, members, threads);
    size_t rounds = check_count(1500), undecided = 0;
    uint64_t freed = 0, deferred = 0;
    for (size_t r = 0; r < rounds; r++) {
        epoch_domain_t* d = epoch_domain_create(race.a);
        REQUIRE(d != NULL && fill_batch(&race, r % 2 == 0 ? 128 : 3000, d->epoch_id));
        EpochReceipt receipt;
        pthread_barrier_wait(&race.start);
        for (volatile unsigned spin = 0; spin < (r * 37) % 4000; spin++) {
        }
        CHECK(epoch_close_ex(race.a, d->epoch_id, EPOCH_RELEASE, &receipt));
        pthread_barrier_wait(&race.end);
        KIT_BALANCED(&receipt);
        for (size_t i = 0; i < BATCH; i++) {
            CHECK_LE(atomic_load(&race.wins[i]), 1);
            CHECK(!free_obj(race.a, race.handle[i]));
        }
        if (receipt.slabs_deferred == 0) {
            CHECK_EQ(receipt.objects_allocated, BATCH);
            CHECK_EQ(receipt.objects_freed, total_wins(&race));
        } else {
            CHECK_LE(receipt.objects_freed, total_wins(&race));
            deferred += receipt.slabs_deferred;
        }
        undecided += receipt.objects_freed != 0 && receipt.objects_released != 0;
        freed += receipt.objects_freed;
        epoch_domain_destroy(d);
    }
    NOTE("%zu of %zu releases fell among the frees; %" PRIu64 " objects freed in time, %" PRIu64 " slabs deferred",
         undecided, rounds, freed, deferred);
    CHECK_EQ(kit_live(race.a), 0);
    stop_team(&race, threads);
    slab_allocator_free(race.a);
}

/* ---- an allocation by handle while its epoch is released ---- */

static struct Closing {
    SlabAllocator* a;
    _Atomic EpochId target; /* the closer ends it, and sets 0 */
    _Atomic unsigned delay;
    _Atomic bool over;
    epoch_domain_t* kept;
    void* of_cleanup;
} closing;

static void allocate_elsewhere(void* unused) {
    (void)unused;
    closing.of_cleanup = slab_malloc_epoch(closing.a, 1000, closing.kept->epoch_id);
}

static void* closer_main(void* unused) {
    (void)unused;
    while (!atomic_load(&closing.over)) {
        EpochId id = atomic_load(&closing.target);
        if (id == 0) continue;
        for (volatile unsigned n = 0; n < atomic_load(&closing.delay); n++) {}
        (void)epoch_close_ex(closing.a, id, EPOCH_RELEASE, NULL);
        atomic_store(&closing.target, 0);
    }
    return NULL;
}

/* The allocation sweeps as it leaves, and the epoch's cleanup gets the same slot for another epoch: the handle is not of
 * that object, and nothing frees it. */
static void handles_against_close(void) {
    unsigned rounds = (unsigned)check_count(1000);
    closing.a = slab_allocator_create();
    pthread_t t = kit_thread(closer_main, NULL);
    for (unsigned n = 0; n < rounds; n++) {
        SlabHandle h;
        epoch_domain_t* d = epoch_domain_create(closing.a);
        closing.kept = epoch_domain_create(closing.a);
        closing.of_cleanup = NULL;
        CHECK(slab_epoch_on_end(closing.a, d->epoch_id, allocate_elsewhere, NULL));
        atomic_store(&closing.delay, n * 7 % 400);
        atomic_store(&closing.target, d->epoch_id);
        void* p = alloc_obj_epoch(closing.a, 1000, d->epoch_id, &h);
        while (atomic_load(&closing.target) != 0) (void)sched_yield();
        if (p != NULL) CHECK_NULL(slab_handle_ptr(closing.a, h)); /* its epoch was released */
        if (closing.of_cleanup != NULL) CHECK_GE(slab_usable_size(closing.a, closing.of_cleanup), 1000);
        epoch_domain_destroy(d);
        epoch_domain_destroy(closing.kept);
    }
    atomic_store(&closing.over, true);
    (void)pthread_join(t, NULL);
    slab_allocator_free(closing.a);
}

static const CheckCase cases[] = {
    CHECK_CASE(exactly_one_thread_wins),
    CHECK_CASE(handles_against_pointers),
    CHECK_CASE(frees_against_release),
    CHECK_CASE(handles_against_close),
};
CHECK_MAIN(cases)
