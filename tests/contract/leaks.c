/*
 * leaks.c - "which phase leaked?": a leak of one object in a hundred, in one of several labelled kinds of phases that
 * were closed by draining, is named first and by its label; nothing is named when nothing leaks; the walk
 * tells every object that escaped.
 */
#include "kit/fixture.h"

#include <slab_diagnostics.h>

enum { ROUTES = 5, OBJECTS = 100, TURNS = 60, KEPT_MAX = 4096 };
static const char* const routes[ROUTES] = {"GET /users", "GET /search", "POST /orders", "GET /health", "nightly"};

typedef struct Kept {
    void* at[KEPT_MAX];
    size_t count;
} Kept;
static Kept kept;

/* One phase of a route that ends by draining; `leaks`: one object in a hundred stays. */
static void phase(SlabAllocator* a, size_t route, bool leaks, uint64_t* seed) {
    void* objects[OBJECTS];
    EpochId id = epoch_advance_id(a);
    slab_epoch_set_label(a, id, routes[route]);
    for (size_t i = 0; i < OBJECTS; i++) {
        objects[i] = slab_malloc(a, 1 + kit_rand_size(seed, 2000));
        REQUIRE(objects[i] != NULL);
    }
    size_t stays = leaks ? kit_rand(seed) % OBJECTS : OBJECTS;
    for (size_t i = 0; i < OBJECTS; i++) {
        if (i != stays) {
            slab_free(a, objects[i]);
        } else {
            REQUIRE(kept.count < KEPT_MAX);
            kept.at[kept.count++] = objects[i];
        }
    }
    epoch_close(a, id);
}

static void free_kept(SlabAllocator* a) {
    while (kept.count != 0) {
        CHECK(slab_free_checked(a, kept.at[--kept.count]));
    }
}

static EpochLeakReport leaks_of(SlabAllocator* a, uint32_t threshold, uint32_t top) {
    EpochLeakReport r;
    uint32_t found = slab_detect_epoch_leaks(a, threshold, top, &r);
    CHECK_EQ(found, r.candidate_count);
    CHECK_EQ(r.version, SLAB_DIAGNOSTICS_VERSION);
    CHECK_EQ(r.threshold_sec, threshold);
    CHECK_LE(r.top_count, top);
    for (uint32_t i = 1; i < r.top_count; i++) {
        CHECK_GE(r.candidates[i - 1].estimated_rss_bytes, r.candidates[i].estimated_rss_bytes);
    }
    return r;
}

static void run_phases(SlabAllocator* a, bool leaks) {
    uint64_t seed = 42;
    for (size_t turn = 0; turn < TURNS; turn++) {
        for (size_t route = 0; route < ROUTES; route++) {
            phase(a, route, leaks && route == 2, &seed);
        }
    }
    epoch_advance(a);
}

static void nothing_leaks(void) {
    SlabAllocator* a = kit_create();
    void* of_the_open_one = slab_malloc_epoch(a, 64, epoch_current(a));
    slab_free(a, of_the_open_one);
    run_phases(a, false);
    CHECK(slab_malloc(a, 64) != NULL); /* in an open phase: no leak */
    EpochLeakReport r = leaks_of(a, 0, 10);
    CHECK_EQ(r.candidate_count, 0);
    CHECK_EQ(r.top_count, 0);
    CHECK_NULL(r.candidates);
    slab_allocator_free(a);
}

static void one_in_a_hundred_is_named(void) {
    SlabAllocator* a = kit_create();
    run_phases(a, true);
    CHECK_EQ(kept.count, TURNS);
    EpochLeakReport r = leaks_of(a, 0, KEPT_MAX);
    uint64_t objects = 0;
    CHECK_EQ(r.top_count, r.candidate_count);
    CHECK_EQ(r.candidate_count, TURNS); /* one row an incarnation and class */
    for (uint32_t i = 0; i < r.top_count; i++) {
        const EpochLeakCandidate* c = &r.candidates[i];
        CHECK_STR(c->label, routes[2]);
        CHECK_EQ(c->alloc_count, 1);
        CHECK_EQ(c->partial_slab_count + c->full_slab_count, 1);
        CHECK_EQ(c->reclaimable_slab_count, 0); /* the close took the empty ones */
        objects += c->alloc_count;
    }
    CHECK_EQ(objects, kept.count);
    free(r.candidates);
    free_kept(a);
    CHECK_EQ(leaks_of(a, 0, 10).candidate_count, 0);
    slab_allocator_free(a);
}

/* Objects that are merely late are smaller than the leak, and are gone when it is not. */
static void the_leak_before_the_stragglers(void) {
    SlabAllocator* a = kit_create();
    uint64_t seed = 7;
    void* late[ROUTES];
    for (size_t route = 0; route < ROUTES; route++) {
        EpochId id = epoch_advance_id(a);
        slab_epoch_set_label(a, id, routes[route]);
        late[route] = slab_malloc(a, 64);
        size_t n = route == 2 ? 2000 : 100;
        for (size_t i = 0; i < n; i++) {
            void* p = slab_malloc(a, 1000 + kit_rand(&seed) % 24);
            if (route != 2 || i % 10 != 0) {
                slab_free(a, p);
            } else {
                kept.at[kept.count++] = p;
            }
        }
        epoch_close(a, id);
    }
    EpochLeakReport r = leaks_of(a, 0, 3);
    CHECK_EQ(r.candidate_count, ROUTES + 1);
    CHECK_EQ(r.top_count, 3);
    CHECK_STR(r.candidates[0].label, routes[2]);
    CHECK_EQ(r.candidates[0].object_size, 1024);
    CHECK_EQ(r.candidates[0].alloc_count, 200);
    CHECK_GE(r.candidates[0].estimated_rss_bytes, 200 * 1024);
    free(r.candidates);
    for (size_t route = 0; route < ROUTES; route++) {
        slab_free(a, late[route]);
    }
    r = leaks_of(a, 0, 3);
    CHECK_EQ(r.candidate_count, 1);
    CHECK_STR(r.candidates[0].label, routes[2]);
    free(r.candidates);
    free_kept(a);
    slab_allocator_free(a);
}

static void a_threshold_of_a_second(void) {
    SlabAllocator* a = kit_create();
    run_phases(a, true);
    kit_sleep_us(1100000);
    uint64_t seed = 5;
    phase(a, 0, true, &seed);
    epoch_advance(a);
    EpochLeakReport r = leaks_of(a, 1, 1);
    CHECK_GE(r.candidate_count, TURNS);
    CHECK_EQ(r.top_count, 1);
    CHECK_STR(r.candidates[0].label, routes[2]);
    CHECK_GE(r.candidates[0].age_sec, 1);
    free(r.candidates);
    CHECK_EQ(leaks_of(a, 3600, 1).candidate_count, 0);
    free_kept(a);
    slab_allocator_free(a);
}

static void* leak_on_a_thread(void* arg) {
    SlabAllocator* a = arg;
    for (size_t i = 0; i < 50; i++) {
        kept.at[kept.count++] = slab_malloc_epoch(a, 200, 3);
    }
    return NULL;
}

/* Owned slabs, slabs of threads that have gone, an epoch that was only advanced past, a domain. */
static void every_way_a_phase_ends(void) {
    SlabAllocator* a = kit_create();
    slab_epoch_set_label(a, 3, "by threads");
    for (size_t t = 0; t < 4; t++) {
        kit_on_thread(leak_on_a_thread, a);
    }
    epoch_close(a, 3);
    slab_epoch_set_label(a, 0, "advanced");
    void* p = slab_malloc_epoch(a, 200, 0);
    epoch_advance(a);
    epoch_domain_t* d = epoch_domain_create_labeled(a, "domain");
    REQUIRE(d != NULL);
    CHECK(epoch_domain_malloc(d, 200) != NULL);
    CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL));
    EpochLeakReport r = leaks_of(a, 0, 10);
    CHECK_EQ(r.candidate_count, 3);
    REQUIRE(r.top_count == 3);
    CHECK_STR(r.candidates[0].label, "by threads");
    CHECK_EQ(r.candidates[0].alloc_count, 200);
    bool advanced = false, domain = false;
    for (uint32_t i = 1; i < 3; i++) {
        advanced = advanced || strcmp(r.candidates[i].label, "advanced") == 0;
        domain = domain || strcmp(r.candidates[i].label, "domain") == 0;
        CHECK_EQ(r.candidates[i].alloc_count, 1);
        CHECK_EQ(r.candidates[i].object_size, slab_good_size(a, 200));
    }
    CHECK(advanced && domain);
    free(r.candidates);
    CHECK(epoch_close_ex(a, 3, EPOCH_RELEASE, NULL)); /* released: nothing leaks there */
    kept.count = 0;
    CHECK(slab_free_checked(a, p));
    epoch_domain_destroy(d);
    CHECK_EQ(leaks_of(a, 0, 10).candidate_count, 0);
    slab_allocator_free(a);
}

typedef struct Walked {
    SlabAllocator* a;
    uint64_t era, objects, bytes;
} Walked;

static bool walked(const SlabLiveObject* o, void* ctx) {
    Walked* w = ctx;
    size_t i = 0;
    while (i < kept.count && kept.at[i] != o->address) {
        i++;
    }
    CHECK(i < kept.count);
    CHECK_EQ(o->usable_bytes, slab_usable_size(w->a, o->address));
    CHECK_EQ(kit_era_of(w->a, o->address), w->era);
    SlabClassStats c;
    slab_stats_class(w->a, o->class_index, &c);
    /* Or a large object. In a region the class is that of the usable bytes. */
    CHECK(c.object_size == slab_good_size(w->a, o->usable_bytes) || o->usable_bytes > 256 << 10);
    w->objects++;
    w->bytes += o->usable_bytes;
    return true;
}

/* The receipt says how many escaped, the walk says which. */
static void escapes_by_address(void) {
    static const size_t sizes[] = {10, 64, 100, 300, 700, 1500, 9000, 70000, 400000};
    SlabAllocator* a = kit_create();
    EpochReceipt receipt;
    Walked w = {.a = a};
    EpochId id = epoch_advance_id(a);
    for (size_t i = 0; i < 900; i++) {
        void* p = slab_malloc(a, sizes[i % 9]);
        REQUIRE(p != NULL);
        if (i % 31 == 0) {
            kept.at[kept.count++] = p;
        } else {
            slab_free(a, p);
        }
    }
    w.era = epoch_era(a, id);
    CHECK_EQ(slab_epoch_walk(a, id, walked, &w), kept.count); /* while it is open */
    epoch_advance(a);
    CHECK(epoch_close_ex(a, id, EPOCH_DRAIN, &receipt));
    w.objects = w.bytes = 0;
    CHECK_EQ(slab_epoch_walk(a, id, walked, &w), kept.count);
    CHECK_EQ(receipt.objects_escaped, w.objects);
    CHECK_EQ(receipt.bytes_escaped, w.bytes);
    for (int i = 0; i < 16; i++) {
        epoch_advance(a);
    }
    CHECK_EQ(slab_epoch_walk(a, id, walked, &w), 0); /* the id names another incarnation now */
    CHECK_EQ(slab_epoch_walk_era(a, w.era, walked, &w), kept.count);
    free_kept(a);
    CHECK_EQ(slab_epoch_walk_era(a, w.era, walked, &w), 0);
    slab_allocator_free(a);
}

static _Atomic int stop;

static void* churn(void* arg) {
    SlabAllocator* a = arg;
    uint64_t seed = (uint64_t)(uintptr_t)&seed;
    while (atomic_load(&stop) == 0) {
        epoch_domain_t* d = epoch_domain_begin(a, "churn");
        for (int i = 0; i < 50; i++) {
            void* p = slab_malloc(a, kit_rand_size(&seed, 2000));
            void* q = slab_malloc_epoch(a, kit_rand_size(&seed, 5000), (EpochId)(kit_rand(&seed) % 16));
            if (i % 2 == 0) {
                slab_free(a, p);
            }
            slab_free(a, q);
        }
        epoch_domain_end(d);
    }
    return NULL;
}

static bool plausible(const SlabLiveObject* o, void* ctx) {
    CHECK(slab_owns(ctx, o->address));
    CHECK_GT(o->usable_bytes, 0);
    return true;
}

static bool swallow(void* ctx, const char* bytes, size_t n) {
    *(size_t*)ctx += n;
    return bytes != NULL;
}

/* Reports beside threads that allocate, advance and close: no crash, and nothing absurd. */
static void beside_running_threads(void) {
    SlabAllocator* a = kit_create();
    pthread_t threads[3];
    atomic_store(&stop, 0);
    for (int t = 0; t < 3; t++) {
        threads[t] = kit_thread(churn, a);
    }
    size_t turns = check_count(400), text = 0;
    for (size_t turn = 0; turn < turns; turn++) {
        ReclamationReport r;
        SlowPathReport s;
        EpochId id = epoch_current(a);
        (void)slab_epoch_walk(a, (EpochId)(turn % 16), plausible, a);
        epoch_advance(a);
        epoch_close(a, id);
        EpochLeakReport l = leaks_of(a, 0, 5);
        for (uint32_t i = 0; i < l.top_count; i++) {
            CHECK_LE(l.candidates[i].alloc_count, 1u << 20);
        }
        slab_analyze_reclamation(a, &r);
        CHECK_LE(r.epoch_count, 256);
        slab_analyze_slow_path(a, &s);
        free(l.candidates);
        free(r.epochs);
        free(s.classes);
        if (turn % 16 == 0) {
            CHECK(slab_doctor(a, swallow, &text));
        }
    }
    atomic_store(&stop, 1);
    for (int t = 0; t < 3; t++) {
        pthread_join(threads[t], NULL);
    }
    CHECK_GT(text, 0);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(nothing_leaks),
    CHECK_CASE(one_in_a_hundred_is_named),
    CHECK_CASE(the_leak_before_the_stragglers),
    CHECK_CASE(a_threshold_of_a_second),
    CHECK_CASE(every_way_a_phase_ends),
    CHECK_CASE(escapes_by_address),
    CHECK_CASE(beside_running_threads),
};
CHECK_MAIN(cases)
