/*
 * domain_stats.c - epoch_domain_stats: what an open phase holds, whoever allocated it and wherever it lies.
 */
#include "kit/fixture.h"

static SlabDomainStats stats_of(epoch_domain_t* d) {
    SlabDomainStats s = {.struct_size = sizeof s};
    REQUIRE(epoch_domain_stats(d, &s));
    CHECK_EQ(s.struct_size, sizeof s);
    CHECK_EQ(s.epoch_id, d->epoch_id);
    CHECK_EQ(s.epoch_era, epoch_domain_era(d));
    return s;
}

/* Are objects blocks of malloc, for a tool that looks on? Figures are those of the slots that they stand for. */
static bool are_blocks(SlabAllocator* a) {
    void* p = slab_malloc_outside(a, 1);
    bool blocks = slab_usable_size(a, p) == 1;
    slab_free(a, p);
    return blocks;
}

static void is(epoch_domain_t* d, uint64_t objects, uint64_t bytes) {
    SlabDomainStats s = stats_of(d);
    CHECK_EQ(s.live_objects, objects);
    if (are_blocks(d->alloc)) CHECK_GE(s.live_bytes, bytes);
    else CHECK_EQ(s.live_bytes, bytes);
    CHECK_GE(s.committed_bytes, bytes);
    CHECK(s.slabs != 0 || bytes == 0);
}

static void refused(epoch_domain_t* d, SlabDomainStats* out, int error) {
    bool ok = epoch_domain_stats(d, out);
    int seen = errno;
    CHECK(!ok);
    CHECK_EQ(seen, error);
}

static void bad_calls(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create(a);
    SlabDomainStats s = {.struct_size = sizeof s - 1, .live_objects = 77};
    refused(d, &s, EINVAL);
    refused(d, NULL, EINVAL);
    s.struct_size = sizeof s;
    refused(NULL, &s, EINVAL);
    CHECK(epoch_domain_force_close(d));
    refused(d, &s, ESTALE);
    CHECK_EQ(s.live_objects, 77);
    CHECK_EQ(kit_refusals(a).closed_epoch, 0);
    CHECK(epoch_domain_destroy(d));
    d = epoch_domain_create(a); /* ended by its id, with an object that lives on */
    void* p = epoch_domain_malloc(d, 100);
    epoch_close(a, d->epoch_id);
    refused(d, &s, ESTALE);
    CHECK(slab_free_checked(a, p));
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

/* Small objects, objects of classes and large ones; frees of the owner's; then nothing. */
static void of_all_sizes(void) {
    static const size_t sizes[] = {1, 40, 700, 4096, 9000, 60000, 200000, 300000, 5000000};
    enum { EACH = 7, SIZES = sizeof sizes / sizeof *sizes };
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create_labeled(a, "sizes");
    void* p[SIZES][EACH];
    uint64_t objects = 0, bytes = 0;
    is(d, 0, 0);
    for (unsigned k = 0; k < SIZES; k++)
        for (unsigned n = 0; n < EACH; n++) {
            p[k][n] = epoch_domain_malloc(d, sizes[k]);
            REQUIRE(p[k][n] != NULL);
            bytes += slab_usable_size(a, p[k][n]);
            is(d, ++objects, bytes);
        }
    for (unsigned k = 0; k < SIZES; k++)
        for (unsigned n = 0; n < EACH; n += 2) {
            bytes -= slab_usable_size(a, p[k][n]);
            CHECK(slab_free_checked(a, p[k][n]));
            is(d, --objects, bytes);
        }
    SlabDomainStats s = stats_of(d);
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(d, &r));
    CHECK_EQ(r.objects_released, s.live_objects);
    CHECK_EQ(r.bytes_released, s.live_bytes);
    slab_allocator_free(a);
}

/* A phase that is asked about still ends by the shortest way: its heap waits, and the next phase begins with it. */
static void ends_as_it_would_have(void) {
    SlabAllocator* a = kit_create();
    void* before = NULL;
    for (unsigned n = 0; n < 4; n++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, "same");
        void* p = epoch_domain_malloc(d, 100);
        CHECK_EQ(stats_of(d).live_objects, 1);
        if (getenv("TSLAB_OPTIONS") == NULL && !are_blocks(a) && n != 0) CHECK_EQ(p, before);
        before = p;
        CHECK(epoch_domain_destroy(d));
    }
    slab_allocator_free(a);
}

/* ---- several threads ---- */

enum { THREADS = 3, OBJECTS = 400 };

typedef struct Part {
    SlabAllocator* a;
    epoch_domain_t* d;
    void* p[OBJECTS];
    uint64_t bytes;
} Part;

static void* part_main(void* arg) {
    Part* part = arg;
    for (unsigned n = 0; n < OBJECTS; n++) {
        part->p[n] = epoch_domain_malloc(part->d, 30 + n % 50 * 20);
        part->bytes += slab_usable_size(part->a, part->p[n]);
    }
    return NULL;
}

/* Heaps of threads that are gone, and frees of what they have made by another thread. */
static void of_several_threads(void) {
    static Part parts[THREADS];
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create_labeled(a, "threads");
    uint64_t objects = 0, bytes = 0;
    for (unsigned t = 0; t < THREADS; t++) {
        parts[t] = (Part){.a = a, .d = d};
        pthread_join(kit_thread(part_main, &parts[t]), NULL);
        objects += OBJECTS;
        bytes += parts[t].bytes;
        is(d, objects, bytes);
    }
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned n = t; n < OBJECTS; n += 3) {
            bytes -= slab_usable_size(a, parts[t].p[n]);
            CHECK(slab_free_checked(a, parts[t].p[n]));
            objects--;
        }
    is(d, objects, bytes);
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

/* ---- beside threads that allocate, free and end ---- */

typedef struct Load {
    SlabAllocator* a;
    epoch_domain_t* d;
    _Atomic bool over;
} Load;

static void* load_main(void* arg) {
    Load* load = arg;
    uint64_t rng = (uint64_t)(uintptr_t)&rng;
    for (size_t rounds = check_count(2000); rounds != 0; rounds--) {
        void* p[16];
        for (unsigned n = 0; n < 16; n++) p[n] = epoch_domain_malloc(load->d, kit_rand_size(&rng, 20000));
        for (unsigned n = 0; n < 16; n++)
            if (n % 4 != 0) slab_free(load->a, p[n]); /* NULL where the phase ended */
        if (rounds % 64 == 0) (void)epoch_domain_reset(load->d);
    }
    return NULL;
}

/* What is read is never absurd, and exact when they rest. */
static void beside_a_load(void) {
    Load load = {.a = kit_create()};
    load.d = epoch_domain_create_labeled(load.a, "load");
    pthread_t threads[THREADS];
    for (unsigned t = 0; t < THREADS; t++) threads[t] = kit_thread(load_main, &load);
    for (size_t n = check_count(20000); n != 0; n--) {
        SlabDomainStats s = {.struct_size = sizeof s};
        if (!epoch_domain_stats(load.d, &s)) {
            CHECK_EQ(errno, ESTALE);
            continue;
        }
        CHECK_LE(s.live_bytes, s.committed_bytes);
        CHECK_LE(s.live_objects, s.live_bytes / 16);
    }
    for (unsigned t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    SlabDomainStats s = stats_of(load.d);
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(load.d, &r));
    CHECK_EQ(r.objects_released, s.live_objects);
    CHECK_EQ(r.bytes_released, s.live_bytes);
    slab_allocator_free(load.a);
}

static const CheckCase cases[] = {
    CHECK_CASE(bad_calls),          CHECK_CASE(of_all_sizes),  CHECK_CASE(ends_as_it_would_have),
    CHECK_CASE(of_several_threads), CHECK_CASE(beside_a_load),
};
CHECK_MAIN(cases)
