/*
 * late_frees.c - memory of a closed epoch goes back as its objects are freed, without a second
 * close, whoever frees them and whoever allocated them: the closing thread, a thread that sleeps, a
 * thread that is gone. Allocators here keep no warm pages, so committed bytes are exactly what
 * epochs hold.
 */
#include "kit/fixture.h"

enum { COUNT = 40000, SIZE = 128 };

static void* kept[COUNT];

static bool fill(SlabAllocator* a, EpochId id, size_t size, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        kept[i] = slab_malloc_epoch(a, size, id);
        if (!CHECK(kept[i] != NULL)) {
            return false;
        }
    }
    return true;
}

static void free_range(SlabAllocator* a, size_t from, size_t to, size_t step) {
    for (size_t i = from; i < to; i += step) {
        CHECK(slab_free_checked(a, kept[i]));
    }
}

static void freed_by_the_owner(void) {
    SlabAllocator* a = kit_create_cold();
    REQUIRE(fill(a, 1, SIZE, 0, COUNT));
    uint64_t full = kit_committed(a);
    CHECK_GE(full, (uint64_t)COUNT * SIZE);
    epoch_close(a, 1);
    CHECK_EQ(kit_global(a).draining_phases, 1);
    free_range(a, 0, COUNT / 2, 1);
    CHECK_LE(kit_committed(a), full / 2 + 256 * 1024);
    free_range(a, COUNT / 2, COUNT, 1);
    CHECK_EQ(kit_committed(a), 0);
    CHECK_EQ(kit_global(a).draining_phases, 0);
    slab_allocator_free(a);
}

static void freed_half_before_half_after(void) {
    static const size_t sizes[] = {16, 64, 96, 384, 768, 2000, 5000, 40000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        SlabAllocator* a = kit_create_cold();
        size_t count = sizes[s] > 1000 ? 2000 : COUNT / 4;
        REQUIRE(fill(a, 1, sizes[s], 0, count));
        free_range(a, 0, count, 2);
        epoch_close(a, 1);
        free_range(a, 1, count, 2);
        CHECK_EQ(kit_committed(a), 0);
        CHECK_EQ(kit_live(a), 0);
        slab_allocator_free(a);
    }
}

/* One allocating thread, which stays alive but does nothing while others close and free. */
typedef struct Owner {
    SlabAllocator* a;
    size_t size, count;
    bool half; /* frees every second object itself */
    _Atomic int step;
} Owner;

static void* owner_main(void* arg) {
    Owner* o = arg;
    if (fill(o->a, 1, o->size, 0, o->count) && o->half) {
        free_range(o->a, 1, o->count, 2);
    }
    atomic_store(&o->step, 1);
    while (atomic_load(&o->step) != 2) {
        kit_sleep_us(500);
    }
    return NULL;
}

static void idle_owner(size_t size, size_t count, bool half, bool close_first) {
    SlabAllocator* a = kit_create_cold();
    Owner o = {a, size, count, half, 0};
    size_t step = half ? 2 : 1;
    pthread_t t = kit_thread(owner_main, &o);
    kit_await(&o.step, 1);
    if (close_first) {
        EpochReceipt r;
        CHECK(epoch_close_ex(a, 1, EPOCH_DRAIN, &r));
        CHECK_EQ(r.slabs_deferred, 0);
        free_range(a, 0, count, step);
    } else {
        free_range(a, 0, count / 2, step);
        epoch_close(a, 1);
        free_range(a, count / 2 + (half ? (count / 2) % 2 : 0), count, step);
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_committed(a), 0);
    CHECK_EQ(kit_global(a).draining_phases, 0);
    atomic_store(&o.step, 2);
    pthread_join(t, NULL);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

static void freed_while_the_owner_sleeps(void) {
    static const size_t sizes[] = {16, 128, 768, 3000, 100000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t count = sizes[s] > 1000 ? 1000 : COUNT / 4;
        for (int k = 0; k < 4; k++) {
            idle_owner(sizes[s], count, (k & 1) != 0, (k & 2) != 0);
        }
    }
}

static void freed_after_the_owner_is_gone(void) {
    SlabAllocator* a = kit_create_cold();
    for (int close_first = 0; close_first < 2; close_first++) {
        Owner o = {a, SIZE, COUNT / 4, false, 2};
        pthread_t t = kit_thread(owner_main, &o);
        while (atomic_load(&o.step) != 1) {
            sched_yield();
        }
        atomic_store(&o.step, 2);
        pthread_join(t, NULL);
        if (close_first) {
            epoch_close(a, 1);
        }
        free_range(a, 0, COUNT / 4, 1);
        if (!close_first) {
            epoch_close(a, 1);
        }
        CHECK_EQ(kit_committed(a), 0);
        while (epoch_state(a, 1) != EPOCH_ACTIVE) {
            epoch_advance(a);
        }
    }
    slab_allocator_free(a);
}

/* Consumers on several threads empty what a sleeping producer filled, after the close. */
typedef struct Consumer {
    SlabAllocator* a;
    size_t from, step;
} Consumer;

static void* consumer_main(void* arg) {
    Consumer* c = arg;
    free_range(c->a, c->from, COUNT, c->step);
    return NULL;
}

static void freed_by_many_at_once(void) {
    enum { TEAM = 4 };
    size_t rounds = check_count(8);
    SlabAllocator* a = kit_create_cold();
    for (size_t round = 0; round < rounds; round++) {
        Owner o = {a, round % 2 == 0 ? 64 : 400, COUNT, false, 0};
        while (epoch_state(a, 1) != EPOCH_ACTIVE) {
            epoch_advance(a);
        }
        pthread_t owner = kit_thread(owner_main, &o);
        kit_await(&o.step, 1);
        Consumer c[TEAM];
        pthread_t t[TEAM];
        for (size_t i = 0; i < TEAM; i++) {
            c[i] = (Consumer){a, i, TEAM};
            t[i] = kit_thread(consumer_main, &c[i]);
        }
        epoch_close(a, 1); /* somewhere among the frees */
        for (size_t i = 0; i < TEAM; i++) {
            pthread_join(t[i], NULL);
        }
        CHECK_EQ(kit_live(a), 0);
        CHECK_EQ(kit_committed(a), 0);
        atomic_store(&o.step, 2);
        pthread_join(owner, NULL);
    }
    slab_allocator_free(a);
}

static void* free_the_rest(void* a) {
    free_range(a, 1, COUNT / 4, 2);
    return NULL;
}
/* Whoever frees the last ones: the owner, or another thread while the owner does nothing. */
static void freed_after_the_ring_moved_past(void) {
    for (unsigned by_another = 0; by_another < 2; by_another++) {
        SlabAllocator* a = kit_create_cold();
        REQUIRE(fill(a, 0, SIZE, 0, COUNT / 4));
        free_range(a, 0, COUNT / 4, 2);
        for (int i = 0; i < 16; i++) epoch_advance(a); /* taken over: counts as drained, nobody closed it */
        CHECK_GT(kit_committed(a), 0);
        if (by_another) kit_on_thread(free_the_rest, a);
        else (void)free_the_rest(a);
        /* Frees by others sweep in pieces: where pages are large, the last piece waits for one more. */
        CHECK_LE(kit_committed(a), by_another && slab_page_size() > 4096 ? KIT_MIB / 4 : 0);
        slab_allocator_free(a);
    }
}

/* Freed as soon as they are handed over, while the owner goes on with other phases. */
static void handed_down_a_pipeline(void) {
    SlabAllocator* a = kit_create_cold();
    size_t rounds = check_count(300);
    uint64_t most = 0;
    for (size_t round = 0; round < rounds; round++) {
        EpochId id = epoch_current(a);
        REQUIRE(fill(a, id, 200, 0, 1000));
        epoch_advance(a);
        epoch_close(a, id);
        free_range(a, 0, 1000, 3);
        free_range(a, 1, 1000, 3);
        free_range(a, 2, 1000, 3);
        uint64_t now = kit_committed(a);
        most = now > most ? now : most;
    }
    CHECK_EQ(most, 0);
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

/* Pages of a partly live slab are given back while the rest of the slab is released, returned and
 * handed out again to other phases: whoever gets it must never see its contents vanish. */
typedef struct Recycler {
    SlabAllocator* a;
    _Atomic int over;
    uint64_t spoilt;
} Recycler;

static void* recycler_main(void* arg) {
    enum { HELD = 128, BYTES = 2000 };
    Recycler* r = arg;
    for (size_t round = 1; !atomic_load(&r->over); round++) {
        void* held[HELD];
        epoch_domain_t* d = epoch_domain_begin(r->a, "reuse");
        for (size_t i = 0; i < HELD; i++) {
            held[i] = slab_malloc(r->a, BYTES);
            kit_fill(held[i], 64, round);
            kit_fill((char*)held[i] + BYTES - 64, 64, round);
        }
        sched_yield();
        for (size_t i = 0; i < HELD; i++) {
            r->spoilt += !kit_intact(held[i], 64, round) || !kit_intact((char*)held[i] + BYTES - 64, 64, round);
        }
        epoch_domain_end(d);
    }
    return NULL;
}

typedef struct Freer {
    SlabAllocator* a;
    pthread_barrier_t* meet;
    _Atomic int* over;
    size_t from;
} Freer;

static SlabHandle handles[400]; /* a pointer freed after the release may be somebody else's by then */

static void* freer_main(void* arg) {
    Freer* f = arg;
    for (;;) {
        pthread_barrier_wait(f->meet);
        if (atomic_load(f->over)) {
            return NULL;
        }
        for (size_t i = f->from; i < 400; i += 2) {
            if (i % 31 != 0) {
                (void)free_obj(f->a, handles[i]); /* may come after the release */
            }
        }
        pthread_barrier_wait(f->meet);
    }
}

static void returned_pages_are_nobodys(void) {
    SlabAllocator* a = kit_create();
    Recycler r = {a, 0, 0};
    pthread_barrier_t meet;
    pthread_barrier_init(&meet, NULL, 3);
    Freer freers[2] = {{a, &meet, &r.over, 0}, {a, &meet, &r.over, 1}};
    pthread_t threads[3] = {kit_thread(recycler_main, &r), kit_thread(freer_main, &freers[0]),
                            kit_thread(freer_main, &freers[1])};
    size_t rounds = check_count(4000);
    for (size_t round = 0; round < rounds; round++) {
        epoch_domain_t* d = epoch_domain_create(a);
        for (size_t i = 0; i < 400; i++) {
            REQUIRE(alloc_obj_epoch(a, 2000, d->epoch_id, &handles[i]) != NULL);
        }
        epoch_close(a, d->epoch_id);
        pthread_barrier_wait(&meet);
        for (volatile size_t spin = 0; spin < round * 97 % 20000; spin++) {
        }
        CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, NULL));
        pthread_barrier_wait(&meet);
        epoch_domain_destroy(d);
    }
    atomic_store(&r.over, 1);
    pthread_barrier_wait(&meet);
    for (int t = 0; t < 3; t++) {
        pthread_join(threads[t], NULL);
    }
    CHECK_EQ(r.spoilt, 0);
    CHECK_EQ(kit_live(a), 0);
    pthread_barrier_destroy(&meet);
    slab_allocator_free(a);
}

/* The same, by what the system says is resident. */
static void resident_size_falls(void) {
    if (CHECK_TSAN || CHECK_ASAN) {
        SKIP("resident size means nothing in an instrumented build");
    }
    SlabAllocator* a = kit_create_cold();
    memset(kept, 0, sizeof kept);
    REQUIRE(fill(a, 2, SIZE, 0, 10));
    uint64_t before = slab_rss_bytes();
    Owner o = {a, 500, COUNT, false, 0};
    pthread_t t = kit_thread(owner_main, &o);
    kit_await(&o.step, 1);
    for (size_t i = 0; i < COUNT; i++) {
        memset(kept[i], 1, 500);
    }
    uint64_t full = slab_rss_bytes();
    CHECK_GE(full, before + (uint64_t)COUNT * 500);
    epoch_close(a, 1);
    free_range(a, 0, COUNT, 1);
    uint64_t after = slab_rss_bytes();
    NOTE("resident before %" PRIu64 " KiB, full %" PRIu64 " KiB, after %" PRIu64 " KiB", before >> 10, full >> 10,
         after >> 10);
    CHECK_LE(after, before + KIT_MIB);
    atomic_store(&o.step, 2);
    pthread_join(t, NULL);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(freed_by_the_owner),           CHECK_CASE(freed_half_before_half_after),
    CHECK_CASE(freed_while_the_owner_sleeps), CHECK_CASE(freed_after_the_owner_is_gone),
    CHECK_CASE(freed_by_many_at_once),        CHECK_CASE(freed_after_the_ring_moved_past),
    CHECK_CASE(handed_down_a_pipeline),       CHECK_CASE(returned_pages_are_nobodys),
    CHECK_CASE(resident_size_falls),
};
CHECK_MAIN(cases)
