/*
 * threads.c - threads come and go. Their objects stay, the next threads use their slabs, and
 * nothing grows: not over a thousand short-lived threads, not when destructors of thread-specific
 * data use the allocator after its own has run.
 */
#include "kit/fixture.h"

enum { EACH = 300 };

typedef struct Job {
    SlabAllocator* a;
    void* kept[EACH];
    size_t seed;
} Job;

static void* leave_objects(void* arg) {
    Job* j = arg;
    for (size_t i = 0; i < EACH; i++) {
        j->kept[i] = slab_malloc(j->a, 128);
        if (CHECK(j->kept[i] != NULL)) {
            kit_fill(j->kept[i], 128, j->seed + i);
        }
    }
    return NULL;
}

static void objects_survive_their_thread(void) {
    static Job jobs[50];
    SlabAllocator* a = kit_create();
    for (size_t t = 0; t < 50; t++) {
        jobs[t].a = a;
        jobs[t].seed = t * 1000;
        kit_on_thread(leave_objects, &jobs[t]);
    }
    CHECK_EQ(kit_live(a), 50 * EACH);
    for (size_t t = 0; t < 50; t++) {
        for (size_t i = 0; i < EACH; i++) {
            CHECK_EQ(slab_usable_size(a, jobs[t].kept[i]), 128);
            CHECK(kit_intact(jobs[t].kept[i], 128, t * 1000 + i));
            CHECK(slab_free_checked(a, jobs[t].kept[i]));
            CHECK(!slab_free_checked(a, kit_hide(jobs[t].kept[i])));
        }
    }
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void* allocate_and_free(void* arg) {
    SlabAllocator* a = arg;
    void* kept[EACH];
    for (size_t i = 0; i < EACH; i++) {
        kept[i] = slab_malloc(a, 16 + (i * 29) % 3000);
        CHECK(kept[i] != NULL);
    }
    for (size_t i = 0; i < EACH; i++) {
        slab_free(a, kept[i]);
    }
    return NULL;
}

static void a_thousand_threads_grow_nothing(void) {
    SlabAllocator* a = kit_create();
    uint64_t early = 0, metadata = 0;
    size_t threads = check_count_whole(1000);
    for (size_t t = 0; t < threads; t++) {
        kit_on_thread(allocate_and_free, a);
        if (t == threads * 3 / 4) { /* records of threads may be reused late, but they are */
            early = kit_committed(a);
            metadata = kit_global(a).metadata_bytes;
        }
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_committed(a), early);
    CHECK_EQ(kit_global(a).metadata_bytes, metadata);
    slab_allocator_free(a);
}

/* Ten at a time, so that some find nothing to adopt. */
static void waves_of_threads_grow_nothing(void) {
    SlabAllocator* a = kit_create();
    uint64_t early = 0;
    size_t waves = check_count_whole(60);
    for (size_t w = 0; w < waves; w++) {
        pthread_t threads[10];
        for (size_t t = 0; t < 10; t++) {
            threads[t] = kit_thread(allocate_and_free, a);
        }
        for (size_t t = 0; t < 10; t++) {
            pthread_join(threads[t], NULL);
        }
        uint64_t now = kit_committed(a);
        early = w < 10 && now > early ? now : early;
        if (w >= 10) { /* how many run at once is the scheduler's choice; never more than ten */
            CHECK_LE(now, 10 * (early > KIT_MIB ? early : KIT_MIB));
        }
    }
    CHECK_EQ(kit_live(a), 0);
    slab_trim(a);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

static void* leave_a_few(void* arg) {
    void** slots = arg;
    SlabAllocator* a = slots[0];
    for (size_t i = 1; i <= 10; i++) {
        slots[i] = slab_malloc(a, 128);
        CHECK(slots[i] != NULL);
    }
    return NULL;
}

/* Half-used slabs of threads that are gone are filled up by the next ones. */
static void partly_used_slabs_are_adopted(void) {
    enum { THREADS = 1000 };
    static void* slots[THREADS][11];
    SlabAllocator* a = kit_create_cold();
    for (size_t t = 0; t < THREADS; t++) {
        slots[t][0] = a;
        kit_on_thread(leave_a_few, slots[t]);
    }
    uint64_t live = kit_global(a).live_bytes;
    CHECK_EQ(live, THREADS * 10 * 128);
    CHECK_LE(kit_committed(a), 2 * live);
    for (size_t t = 0; t < THREADS; t++) {
        for (size_t i = 1; i <= 10; i++) {
            CHECK(slab_free_checked(a, slots[t][i]));
        }
    }
    epoch_close(a, 0);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

/* Slots of a dead thread's objects, freed by a live one, serve again. */
static void dead_threads_memory_is_reused(void) {
    static Job job;
    SlabAllocator* a = kit_create();
    uint64_t early = 0;
    size_t rounds = check_count(300);
    job.a = a;
    for (size_t r = 0; r < rounds; r++) {
        kit_on_thread(leave_objects, &job);
        for (size_t i = 0; i < EACH; i++) {
            CHECK(slab_free_checked(a, job.kept[i]));
        }
        if (r == 5) {
            early = kit_committed(a);
        }
    }
    CHECK_EQ(kit_committed(a), early);
    slab_allocator_free(a);
}

/* ---- thread exit races with a close, a trim and frees ---- */

static void exits_race_with_closes(void) {
    static Job jobs[4];
    SlabAllocator* a = kit_create_cold();
    size_t rounds = check_count(500);
    for (size_t r = 0; r < rounds; r++) {
        pthread_t threads[4];
        for (size_t t = 0; t < 4; t++) {
            jobs[t].a = a;
            threads[t] = kit_thread(leave_objects, &jobs[t]);
        }
        EpochId id = epoch_current(a);
        epoch_advance(a);
        epoch_close(a, id);
        if (r % 3 == 0) {
            slab_trim(a);
        }
        for (size_t t = 0; t < 4; t++) {
            pthread_join(threads[t], NULL);
            for (size_t i = 0; i < EACH; i++) {
                CHECK(slab_free_checked(a, jobs[t].kept[i]));
            }
        }
    }
    for (EpochId id = 0; id < 16; id++) {
        epoch_close(a, id);
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

/* ---- destructors of thread-specific data ---- */

/* Rounds of destructors that use the allocator: all there are; a sanitizer shuts down in the last. */
enum { TURNS = CHECK_TSAN ? 2 : 4 };
static pthread_key_t early_key;
static SlabAllocator* in_destructor;
static _Atomic size_t destructor_runs;

typedef struct Tail {
    void* kept[4];
    int turn;
} Tail;

/* Runs in every round of destructors the system grants, so also after the library's own. */
static void use_in_destructor(void* arg) {
    Tail* tail = arg;
    SlabHandle h = 0;
    atomic_fetch_add(&destructor_runs, 1);
    if (tail->turn > 0) {
        CHECK(kit_intact(tail->kept[tail->turn - 1], 200, (uint64_t)tail->turn));
        CHECK(slab_free_checked(in_destructor, tail->kept[tail->turn - 1]));
    }
    CHECK(alloc_obj(in_destructor, 100, &h) != NULL);
    CHECK(free_obj(in_destructor, h));
    epoch_domain_t* d = epoch_domain_begin(in_destructor, "destructor");
    CHECK(slab_malloc(in_destructor, 5000) != NULL);
    epoch_domain_end(d);
    if (++tail->turn == TURNS) {
        free(tail);
        return;
    }
    tail->kept[tail->turn - 1] = slab_malloc(in_destructor, 200);
    if (CHECK(tail->kept[tail->turn - 1] != NULL)) {
        kit_fill(tail->kept[tail->turn - 1], 200, (uint64_t)tail->turn);
    }
    pthread_setspecific(early_key, tail);
}

static void* thread_with_destructor(void* arg) {
    (void)arg;
    Tail* tail = calloc(1, sizeof *tail);
    pthread_setspecific(early_key, tail);
    allocate_and_free(in_destructor);
    return NULL;
}

static void destructors_use_the_allocator(void) {
    CHECK_EQ(pthread_key_create(&early_key, use_in_destructor), 0);
    in_destructor = kit_create();
    uint64_t early = 0;
    size_t threads = check_count_whole(1000);
    for (size_t t = 0; t < threads; t++) {
        kit_on_thread(thread_with_destructor, NULL);
        if (t == 20) {
            early = kit_committed(in_destructor);
        }
    }
    CHECK_EQ(atomic_load(&destructor_runs), threads * TURNS);
    CHECK_EQ(kit_live(in_destructor), 0);
    CHECK_LE(kit_committed(in_destructor), early);
    CHECK_EQ(kit_refused_frees(in_destructor), 0);
    slab_allocator_free(in_destructor);
    pthread_key_delete(early_key);
}

/* Calls of the library are no cancellation points: what a thread has begun it ends. */
static _Atomic size_t came_back;
static void* cancelled_at_once(void* a) {
    pthread_cancel(pthread_self());
    slab_free(a, slab_malloc(a, 64));
    epoch_domain_t* d = epoch_domain_begin(a, "of a cancelled thread");
    CHECK(d != NULL && slab_malloc(a, 64) != NULL);
    epoch_domain_end(d);
    atomic_fetch_add(&came_back, 1);
    pthread_testcancel();
    return NULL;
}
static void* one_more(void* a) {
    void* p = slab_malloc(a, 64);
    CHECK(p != NULL);
    slab_free(a, p);
    return NULL;
}
static void cancelled_threads_end_their_calls(void) {
    enum { THREADS = 400 };
    SlabOptions o = {.struct_size = sizeof o, .reserve_bytes = 64 << 20}; /* records for 256 threads at a time */
    SlabAllocator* a = kit_create_with(&o);
    for (size_t n = 0; n < THREADS; n++) kit_on_thread(cancelled_at_once, a);
    CHECK_EQ(atomic_load(&came_back), THREADS);
    kit_on_thread(one_more, a);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(destructors_use_the_allocator), /* first: its key is to be older than the library's */
    CHECK_CASE(objects_survive_their_thread),  CHECK_CASE(a_thousand_threads_grow_nothing),
    CHECK_CASE(waves_of_threads_grow_nothing), CHECK_CASE(partly_used_slabs_are_adopted),
    CHECK_CASE(dead_threads_memory_is_reused), CHECK_CASE(exits_race_with_closes),
    CHECK_CASE(cancelled_threads_end_their_calls),
};
CHECK_MAIN(cases)
