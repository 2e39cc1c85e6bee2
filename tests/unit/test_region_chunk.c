/* test_region_chunk.c - regions and what is around them: chunks that change what they serve, budgets, options, many allocators. */
#define KIT_RING_BY_CLASS
#include "regions.h"
#include "mem/pool.h"

#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { KIB = 1024 };

/* The test's own allocator in place of the one of the group. */
static SlabAllocator* group;
static epoch_domain_t* group_domain;
static void begin_with(const SlabOptions* o) {
    group = a;
    group_domain = d;
    REQUIRE((a = slab_allocator_create_with(o)) != NULL);
    space = &tsi_arena(a)->space;
    REQUIRE((d = epoch_domain_create(a)) != NULL);
}
static void end_with(void) {
    epoch_domain_destroy(d);
    kit_check(a);
    slab_allocator_free(a);
    a = group;
    d = group_domain;
    space = &tsi_arena(a)->space;
}
static void anew(void) {
    epoch_domain_destroy(d);
    REQUIRE((d = epoch_domain_create(a)) != NULL);
}

/* ---- chunks ---- */

/* Every granule of the object's region but the start of an object is no start. */
static void alone_in_its_region(void* q, size_t bytes) {
    TsiPlace at = kit_place(a, q);
    uint32_t granules = space->classes->c[at.cls].slab_bytes / TSI_GRANULE, start = tsi_region_granule(space, &at);
    REQUIRE_EQ(slab_usable_size(a, q), bytes);
    tsi_store_relaxed(&region_of(q)->rel, granules * TSI_GRANULE); /* as if all of it were used */
    for (uint32_t g = 0; g < granules; g += 64) {
        uint64_t live = tsi_region_live64(space, at.slab_id, g);
        REQUIRE(live == (g == (start & ~63u) ? 1ull << start % 64 : 0));
    }
    tsi_store_relaxed(&region_of(q)->rel, (uint32_t)bytes + start * TSI_GRANULE);
}

/* Leaves starts of its generation in the first regions of the first chunk. */
static void leave_starts(void) {
    for (unsigned n = 0; n < 3; n++) {
        for (unsigned i = 0; i < ALL; i++) (void)make(16);
        anew();
    }
}

/* From regions of one size to those of another, by way of a class and straight; maps are not given back. */
static void a_chunk_changes_what_it_serves(void) {
    SlabOptions o = kit_options();
    o.purge_policy = SLAB_PURGE_NEVER;
    o.warm_bytes = UINT64_MAX;
    begin_with(&o);
    leave_starts();
    void* small = make(SIZE);
    REQUIRE_EQ(tsi_slab_chunk(kit_place(a, small).slab_id), 0);
    unsigned first_class = space->chunks[0].region_class;
    REQUIRE_EQ(first_class, kit_place(a, small).cls);
    anew();
    REQUIRE_EQ(tsi_chunk_class(space, 0), 0);
    refused(small, SLAB_MISUSE_STALE_FREE);

    void* line = slab_malloc(a, 1000); /* a class, in the ring's epoch */
    REQUIRE_EQ(tsi_slab_chunk(kit_place(a, line).slab_id), 0);
    REQUIRE(!tsi_class_is_region(tsi_chunk_class(space, 0)));
    REQUIRE_EQ(space->chunks[0].region_class, first_class);
    if (small != line) REQUIRE(!slab_free_checked(a, small));
    REQUIRE(slab_free_checked(a, line));
    slab_trim(a);
    REQUIRE_EQ(tsi_chunk_class(space, 0), 0);

    void* wide = make(4096); /* another size of region */
    REQUIRE_EQ(tsi_slab_chunk(kit_place(a, wide).slab_id), 0);
    alone_in_its_region(wide, 4096);
    refused((uint8_t*)wide + 16, SLAB_MISUSE_INTERIOR_POINTER);
    kit_check(a);
    end_with();
}

static uint32_t take_of(unsigned cls);

/* Records and maps go with the chunk's last region, and lives start over; not while a freer is inside of one or late. */
static void records_wait_for_freers(void) {
    SlabOptions o = kit_options();
    begin_with(&o);
    for (unsigned how = 0; how < 4; how++) {
        unsigned cls = tsi_region_class(how % 2);
        uint32_t id = take_of(cls);
        REQUIRE_EQ(id >> 8, 0);
        REQUIRE(tsi_region_open(space, cls, id, 0));
        TsiRegion* r = tsi_region(space, id);
        REQUIRE_EQ(r->gen, 1); /* each time: the one before has gone */
        (void)tsi_bump_take(r, tsi_load_relaxed(&r->rel), 16);
        (void)tsi_region_end(space, id);
        if (how == 1) tsi_add_relaxed(&r->word, TSI_REGION_ENTERED);
        if (how == 2) tsi_store_relaxed(&r->late, 1);
        uint64_t word = tsi_load_relaxed(&r->word);
        REQUIRE_EQ(tsi_region_gen(word), 2);
        tsi_space_purge(space, &id, 1);
        REQUIRE_EQ(tsi_chunk_class(space, 0), 0);
        bool stays = how == 1 || how == 2;
        REQUIRE_EQ(r->gen, stays);
        REQUIRE(tsi_load_relaxed(&r->word) == (stays ? word : 0));
        REQUIRE((tsi_load_relaxed(&r->map) != NULL) == stays);
        slab_trim(a);
        REQUIRE_EQ(r->gen, stays);
        if (how == 1) tsi_sub_relaxed(&r->word, TSI_REGION_ENTERED);
        if (how == 2) tsi_store_relaxed(&r->late, 0);
        slab_trim(a);
        REQUIRE_EQ(r->gen, 0);
        REQUIRE_EQ(tsi_load_relaxed(&r->word), 0);
        /* Who has read the word before, and looks at the map now. */
        REQUIRE_EQ(tsi_load_relaxed(&tsi_region_map(r)[0]), 0);
        REQUIRE_EQ(tsi_region_sum(space, id).issued, 0);
        REQUIRE(tsi_region_is_empty(space, id));
    }
    end_with();
}

static uint32_t take_of(unsigned cls) {
    uint32_t id;
    REQUIRE(tsi_space_take(space, cls, 0, &id));
    return id;
}

/* Of every size to every other: nothing that an earlier region left is an object of a later one. */
static void maps_of_other_sizes_are_cleared(void) {
    SlabOptions o = kit_options();
    o.purge_policy = SLAB_PURGE_NEVER;
    begin_with(&o);
    for (unsigned from = 0; from < TSI_REGION_SIZES; from++)
        for (unsigned to = 0; to < TSI_REGION_SIZES; to++) {
            uint32_t id = take_of(tsi_region_class(from));
            REQUIRE_EQ(id >> 8, 0);
            REQUIRE(tsi_region_open(space, tsi_region_class(from), id, 0));
            TsiRegion* r = tsi_region(space, id);
            for (unsigned n = 0; n < space->classes->c[tsi_region_class(from)].slab_bytes / 16; n++)
                (void)tsi_bump_take(r, tsi_load_relaxed(&r->rel), 16);
            (void)tsi_region_end(space, id);
            tsi_space_purge(space, &id, 1);
            id = take_of(tsi_region_class(to));
            REQUIRE(tsi_region_open(space, tsi_region_class(to), id, 0));
            r = tsi_region(space, id);
            REQUIRE_EQ(r->gen, from == to ? r->gen : 1);
            tsi_store_relaxed(&r->rel, space->classes->c[tsi_region_class(to)].slab_bytes);
            for (uint32_t g = 0; g < tsi_load_relaxed(&r->rel) / 16; g += 64)
                REQUIRE_EQ(tsi_region_live64(space, id, g), 0);
            tsi_store_relaxed(&r->rel, 0);
            (void)tsi_region_end(space, id);
            tsi_space_purge(space, &id, 1);
        }
    end_with();
}

/* Where a freer still sleeps in a region, its chunk serves no other size for good; the space goes on elsewhere. */
static void a_sleeping_freer_keeps_its_chunk(void) {
    void* q = make(SIZE);
    TsiRegion* r = region_of(q);
    uint32_t chunk = tsi_slab_chunk(kit_place(a, q).slab_id);
    tsi_add_relaxed(&r->word, TSI_REGION_ENTERED);
    anew();
    REQUIRE_EQ(tsi_load_relaxed(&r->late), 1);
    REQUIRE_EQ(tsi_chunk_class(space, chunk), 0);
    void* line = slab_malloc(a, 1000); /* a class may have it: it touches no map */
    REQUIRE(slab_free_checked(a, line));
    slab_trim(a);
    uint32_t id = take_of(tsi_region_class(2));
    REQUIRE_NE(id >> 8, chunk);
    REQUIRE(space->chunks[chunk].region_class == TSI_CLASS_REGION);
    tsi_space_purge(space, &id, 1);
    REQUIRE_EQ(tsi_load_relaxed(&r->late), 1);
    /* Each search looks at it again. */
    tsi_store_relaxed(&r->late, 0);
    id = take_of(tsi_region_class(2));
    REQUIRE_EQ(id >> 8, chunk);
    tsi_space_purge(space, &id, 1);
}

/* Where freers sleep in several chunks all are passed over, and all come back. */
static void chunks_that_are_passed_over_stay_free(void) {
    enum { N = 3 };
    uint32_t ids[N], id;
    SlabOptions o = kit_options();
    o.reserve_bytes = 16 << 20;
    begin_with(&o);
    for (unsigned n = 0; n < N; n++) {
        for (unsigned k = 0; k < TSI_CHUNK_SLABS; k++) { /* all of a chunk, so that the next one is another */
            id = take_of(TSI_CLASS_REGION);
            if (k == 0) ids[n] = id;
            REQUIRE(tsi_region_open(space, TSI_CLASS_REGION, id, 0));
        }
        tsi_store_relaxed(&tsi_region(space, ids[n])->late, 1);
    }
    for (unsigned n = 0; n < N; n++) {
        for (unsigned k = 0; k < TSI_CHUNK_SLABS; k++) {
            id = tsi_slab_id(tsi_slab_chunk(ids[n]), k);
            (void)tsi_region_end(space, id);
            tsi_space_purge(space, &id, 1);
        }
    }
    id = take_of(tsi_region_class(2));
    REQUIRE_EQ(tsi_slab_chunk(id), N);
    for (unsigned n = 0; n < N; n++) REQUIRE(!tsi_chunk_is_used(space, n));
    tsi_space_purge(space, &id, 1);
    for (unsigned n = 0; n < N; n++) tsi_store_relaxed(&tsi_region(space, ids[n])->late, 0);
    id = take_of(tsi_region_class(2));
    REQUIRE_EQ(tsi_slab_chunk(id), 0);
    tsi_space_purge(space, &id, 1);
    end_with();
}

/* ---- budgets ---- */

/* Regions near the limit are smaller, until not even the smallest fits: all of the budget is used. */
static void fill_to_the_limit(uint64_t most) {
    unsigned n = 0;
    for (;; n++) {
        errno = 0;
        void* q = kit_hide(epoch_domain_malloc(d, SIZE));
        if (q == NULL) break;
        REQUIRE(n < 4 * ALL);
        p[n] = q;
        REQUIRE(kit_committed_now(a) <= most);
    }
    REQUIRE_EQ(errno, EDQUOT);
    REQUIRE_EQ(n, most / SIZE);
    REQUIRE_EQ(kit_committed_now(a), most);
    give(p, n); /* regions that are empty again are used before anything is refused */
    for (unsigned i = 0; i < n; i++) (void)make(SIZE);
    REQUIRE_EQ(kit_committed_now(a), most);
    REQUIRE_NULL(epoch_domain_malloc(d, SIZE));
    kit_check(a);
}

static void a_phases_hard_budget(void) {
    REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, 40 * KIB, NULL, NULL));
    fill_to_the_limit(40 * KIB);
}
static void a_labels_hard_budget(void) {
    REQUIRE(slab_label_set_budget(a, "tight", 0, 52 * KIB, NULL, NULL));
    epoch_domain_destroy(d);
    d = epoch_domain_create_labeled(a, "tight");
    fill_to_the_limit(52 * KIB);
}
static void a_limit_of_the_whole(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    o.max_bytes = 100 * KIB;
    begin_with(&o);
    fill_to_the_limit(100 * KIB);
    end_with();
}

/* What is refused for its size, or at a trim, costs nobody the room that is left. */
static void a_refusal_leaves_the_current_region(void) {
    uint8_t* first = make(SIZE);
    REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, kit_committed_now(a), NULL, NULL));
    for (unsigned i = 1; i < FIRST; i++) {
        REQUIRE_NULL(epoch_domain_malloc(d, i % 2 == 0 ? 4096 : 300 * KIB));
        REQUIRE_EQ(errno, EDQUOT);
        REQUIRE_EQ(make(SIZE), first + i * SIZE);
    }
    REQUIRE_NULL(epoch_domain_malloc(d, SIZE));
    end(EPOCH_RELEASE, FIRST, 0, FIRST * SIZE);
}

/* A trim takes what is empty, and the current region goes on. */
static void a_trim_leaves_the_current_region(void) {
    uint8_t* first = make(SIZE);
    uint64_t committed = kit_committed_now(a);
    for (unsigned i = 1; i < FIRST; i++) {
        slab_trim(a);
        REQUIRE_EQ(make(SIZE), first + i * SIZE);
        kit_check(a);
    }
    REQUIRE_EQ(kit_committed_now(a), committed);
    fill(p, 2); /* the next region */
    give(p, 2);
    slab_trim(a); /* it is empty: it goes */
    REQUIRE_EQ(kit_committed_now(a), committed);
    (void)make(SIZE);
    kit_check(a);
    end(EPOCH_RELEASE, FIRST + 3, 2, (FIRST + 3) * SIZE);
}

/* ---- options ---- */

/* Phases of growing size, twice: objects freed singly, contents, receipts. */
static void phases(void) {
    for (unsigned lap = 0; lap < 2; lap++)
        for (unsigned n = 1; n <= 2 * ALL; n *= 4) {
            anew();
            fill(p, n);
            for (unsigned i = 0; i < n; i++) REQUIRE_EQ(((uint8_t*)p[i])[SIZE - 1], i & 0xff);
            give(p, n / 3);
            give_elsewhere(p + n / 3, n / 5);
            EpochReceipt r = end(EPOCH_RELEASE, n, n / 3 + n / 5, n * SIZE);
            REQUIRE_EQ(r.objects_released, n - n / 3 - n / 5);
            for (unsigned i = 0; i < n; i += 7) REQUIRE(!slab_free_checked(a, p[i]));
        }
    kit_check(a);
}

static void purge_policies(void) {
    for (unsigned policy = SLAB_PURGE_DONTNEED; policy <= SLAB_PURGE_NEVER; policy++) {
        SlabOptions o = kit_options();
        o.purge_policy = policy;
        o.warm_bytes = UINT64_MAX;
        begin_with(&o);
        fake_os_clear();
        phases();
        REQUIRE_EQ(fake_os.calls[FAKE_PURGE] == 0, policy == SLAB_PURGE_NEVER);
        end_with();
    }
}

static void prefault_and_huge_pages(void) {
    for (unsigned which = 0; which < 2; which++) {
        SlabOptions o = kit_options();
        o.prefault = which == 0;
        o.huge_pages = which == 1;
        begin_with(&o);
        phases();
        end_with();
    }
    REQUIRE_EQ(fake_os.misaligned, 0);
}

/* Without bumping no region is ever taken. */
static void bumping_can_be_off(void) {
    SlabOptions o = kit_options();
    o.bump = 2;
    begin_with(&o);
    for (unsigned i = 0; i < ALL; i++) REQUIRE(!tsi_class_is_region(kit_place(a, make(1 + i * 3 % 4096)).cls));
    PerfCounters c;
    get_perf_counters(a, TSI_CLASS_REGION - 1, &c);
    REQUIRE_EQ(c.new_slab_count, 0);
    end_with();
}

/* Where a timed or recorded allocation takes the slow path, all of them are bumped there, and counted. */
static void sampled_objects_are_bumped(void) {
    for (unsigned which = 0; which < 2; which++) {
        SlabOptions o = kit_options();
        if (which == 0) o.sampling_period = 16;
        else o.profile_bytes = 512;
        begin_with(&o);
        phases();
        anew();
        for (unsigned i = 0; i < ALL; i++) REQUIRE(region_of(make(SIZE)) != NULL);
        end_with();
    }
}

/* The space that regions add lets a thousand allocators be reserved beside each other, whole. */
static void a_thousand_reservations(void) {
    enum { N = SANITIZED ? 32 : 1000 };
    static SlabAllocator* many[N];
    if (SANITIZED)
        puts("the sanitizer takes most of the address space: 32, and reservations may be smaller than asked for");
    unsigned count = check_charges_writable() ? N / 16 : N; /* each allocator's tables are charged: 11 MiB */
    for (unsigned n = 0; n < count; n++) {
        REQUIRE((many[n] = slab_allocator_create()) != NULL);
        SlabGlobalStats g;
        slab_stats_global(many[n], &g);
        if (!SANITIZED) REQUIRE_EQ(g.reserved_bytes, (uint64_t)64 << 30);
        epoch_domain_t* own = epoch_domain_create(many[n]);
        p[n] = epoch_domain_malloc(own, SIZE);
        REQUIRE(p[n] != NULL);
        memset(p[n], (int)n, SIZE);
    }
    for (unsigned n = 0; n < count; n++) {
        REQUIRE_EQ(((uint8_t*)p[n])[SIZE - 1], n & 0xff);
        REQUIRE(slab_free_checked(many[n], p[n]));
        slab_allocator_free(many[n]);
    }
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(a_chunk_changes_what_it_serves),
        TEST(records_wait_for_freers),
        TEST(maps_of_other_sizes_are_cleared),
        TEST(a_sleeping_freer_keeps_its_chunk),
        TEST(chunks_that_are_passed_over_stay_free),
        TEST(a_phases_hard_budget),
        TEST(a_labels_hard_budget),
        TEST(a_limit_of_the_whole),
        TEST(a_refusal_leaves_the_current_region),
        TEST(a_trim_leaves_the_current_region),
        TEST(purge_policies),
        TEST(prefault_and_huge_pages),
        TEST(bumping_can_be_off),
        TEST(sampled_objects_are_bumped),
        TEST(a_thousand_reservations),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
