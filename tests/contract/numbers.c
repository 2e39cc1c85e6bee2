/*
 * numbers.c - the C snapshots agree with each other and with what was done: classes add up to the
 * whole, epochs to the classes, the causes of the slow path to its hits.
 */
#include "kit/fixture.h"

enum { COUNT = 20000 };

static void* kept[COUNT];

static uint32_t class_count(SlabAllocator* a) {
    SlabClassStats c;
    uint32_t n = 0;
    for (slab_stats_class(a, n, &c); c.version != 0; slab_stats_class(a, n, &c)) {
        CHECK_EQ(c.version, SLAB_STATS_VERSION);
        CHECK_EQ(c.class_index, n);
        n++;
    }
    return n;
}

static bool fill_epochs(SlabAllocator* a) {
    for (size_t i = 0; i < COUNT; i++) {
        kept[i] = slab_malloc_epoch(a, 1 + (i * 53) % 1500, (EpochId)(i % 5));
        if (kept[i] == NULL) {
            return false;
        }
    }
    for (size_t i = 0; i < COUNT; i += 3) {
        slab_free(a, kept[i]);
        kept[i] = NULL;
    }
    return true;
}

/* Objects up to 1500 B are all served by slab classes, so the classes hold everything. by_class: none of them is in a region, where
 * an object has its own size. */
static void classes_add_up(SlabAllocator* a, bool by_class) {
    REQUIRE(fill_epochs(a));
    SlabGlobalStats g = kit_global(a);
    uint64_t live_bytes = 0, committed = 0, net = 0, hits = 0, miss = 0, closed = 0;
    uint32_t classes = class_count(a);
    CHECK_GE(classes, SLAB_FIXED_CLASSES);
    for (uint32_t i = 0; i < classes; i++) {
        SlabClassStats c;
        slab_stats_class(a, i, &c);
        live_bytes += c.live_bytes;
        committed += c.committed_bytes;
        net += c.net_slabs;
        hits += c.slow_path_hits;
        miss += c.slow_path_cache_miss;
        closed += c.slow_path_epoch_closed;
        CHECK(!by_class || c.live_bytes <= c.committed_bytes);
        /* nothing here is large */
        CHECK(c.object_size == 0 ? c.live_bytes == 0 : !by_class || c.live_bytes % c.object_size == 0);
        CHECK_EQ(c.live_bytes % 16, 0);
    }
    CHECK_EQ(live_bytes, g.live_bytes);
    CHECK_EQ(hits, g.total_slow_path_hits);
    CHECK_EQ(miss, g.total_slow_cache_miss);
    CHECK_EQ(closed, g.total_slow_epoch_closed);
    CHECK_LE(committed, g.committed_bytes); /* warm slabs may belong to no class */
    CHECK_LE(net, g.net_slabs);
    CHECK_GE(g.total_slabs_allocated, g.net_slabs);
    CHECK_GE(g.total_slabs_allocated, g.total_slabs_recycled);
    CHECK_GT(g.rss_bytes_current, 0);
    CHECK_LE(g.live_bytes, g.estimated_slab_rss_bytes);
    slab_allocator_free(a);
}
static void classes_add_up_to_the_whole(void) { classes_add_up(kit_create_by_class(), true); }
static void classes_and_regions_add_up_to_the_whole(void) { classes_add_up(kit_create(), false); }

static void epochs_add_up(SlabAllocator* a, bool by_class) {
    REQUIRE(fill_epochs(a));
    epoch_close(a, 2);
    SlabGlobalStats g = kit_global(a);
    uint64_t objects = 0, bytes = 0;
    for (uint32_t i = 0; i < class_count(a); i++) {
        SlabClassStats c;
        uint64_t here = 0;
        slab_stats_class(a, i, &c);
        for (EpochId id = 0; id < 16; id++) {
            SlabEpochStats e = kit_epoch(a, i, id);
            CHECK_EQ(e.version, SLAB_STATS_VERSION);
            CHECK_EQ(e.class_index, i);
            CHECK_EQ(e.object_size, c.object_size);
            CHECK_EQ(e.epoch_era, epoch_era(a, id));
            CHECK_EQ(e.state, id == 2 ? EPOCH_CLOSING : EPOCH_ACTIVE);
            CHECK(id < 5 || e.alloc_count == 0);
            CHECK(!by_class || e.alloc_count * e.object_size <= e.estimated_rss_bytes);
            CHECK(id != 2 || e.reclaimable_slab_count == 0); /* a close leaves no empty slab */
            objects += e.alloc_count;
            here += e.alloc_count * e.object_size;
        }
        if (by_class) CHECK_EQ(here, c.live_bytes);
        else CHECK_GE(here, c.live_bytes);
        bytes += by_class ? here : c.live_bytes;
    }
    CHECK_EQ(objects, g.live_objects);
    CHECK_EQ(bytes, g.live_bytes);
    CHECK_EQ(g.active_epoch_count, 15);
    CHECK_EQ(g.closing_epoch_count, 1);
    CHECK_EQ(g.open_phases, 15);
    CHECK_EQ(g.draining_phases, 1);
    slab_allocator_free(a);
}
static void epochs_add_up_to_the_classes(void) { epochs_add_up(kit_create_by_class(), true); }
static void epochs_add_up_to_classes_and_regions(void) { epochs_add_up(kit_create(), false); }

static void causes_add_up_to_the_hits(void) {
    SlabAllocator* a = kit_create();
    REQUIRE(fill_epochs(a));
    for (size_t i = 0; i < 100; i++) {
        slab_free(a, slab_malloc_epoch(a, 64, 1));
    }
    epoch_close(a, 1);
    for (size_t i = 0; i < 10; i++) {
        CHECK_NULL(slab_malloc_epoch(a, 64, 1));
    }
    uint64_t closed = 0;
    for (uint32_t i = 0; i < class_count(a); i++) {
        SlabClassStats c;
        PerfCounters p;
        slab_stats_class(a, i, &c);
        get_perf_counters(a, i, &p);
        CHECK_EQ(c.slow_path_cache_miss + c.slow_path_epoch_closed + c.current_partial_null + c.current_partial_full,
                 c.slow_path_hits);
        CHECK_EQ(p.slow_path_hits, c.slow_path_hits);
        CHECK_EQ(p.new_slab_count, c.new_slab_count);
        CHECK_EQ(p.current_partial_null, c.current_partial_null);
        CHECK_EQ(p.current_partial_full, c.current_partial_full);
        CHECK_EQ(p.list_move_partial_to_full, c.list_move_partial_to_full);
        CHECK_EQ(p.list_move_full_to_partial, c.list_move_full_to_partial);
        CHECK_EQ(p.empty_slab_recycled, c.empty_slab_recycled);
        CHECK_EQ(p.empty_slab_overflowed, c.empty_slab_overflowed);
        CHECK_LE(c.list_move_full_to_partial, c.list_move_partial_to_full);
        closed += c.slow_path_epoch_closed;
    }
    CHECK_LE(closed, 10);
    CHECK_EQ(kit_refusals(a).closed_epoch, 10);
    slab_allocator_free(a);
}

static uint64_t hits_of(SlabAllocator* a, uint32_t class_index) {
    SlabClassStats c;
    slab_stats_class(a, class_index, &c);
    return c.slow_path_hits;
}

/* Whichever way it came there. */
static void a_refused_allocation_is_no_slow_path(void) {
    SlabAllocator* a = kit_create();
    REQUIRE(slab_epoch_set_budget(a, 0, 0, 64 << 10, NULL, NULL));
    while (slab_malloc(a, 128) != NULL) {
    }
    uint64_t before = hits_of(a, 2);
    CHECK_NULL(slab_malloc(a, 128));
    CHECK_NULL(slab_aligned_alloc(a, 128, 128)); /* never on the fast path */
    CHECK_EQ(hits_of(a, 2), before);
    CHECK_EQ(kit_refusals(a).over_budget, 3);
    slab_allocator_free(a);
}

static void slabs_of_one_epoch(void) {
    SlabAllocator* a = kit_create_by_class();
    uint32_t per_slab = slab_object_count(128);
    size_t count = (size_t)per_slab * 40;
    REQUIRE(per_slab > 0 && count <= COUNT);
    for (size_t i = 0; i < count; i++) {
        kept[i] = slab_malloc_epoch(a, 128, 6);
    }
    SlabClassStats c;
    slab_stats_class(a, 2, &c);
    SlabEpochStats e = kit_epoch(a, 2, 6);
    CHECK_EQ(e.alloc_count, count);
    CHECK_EQ(e.full_slab_count + e.partial_slab_count, 40);
    CHECK_EQ(e.estimated_rss_bytes, 40 * c.slab_bytes);
    CHECK_EQ(c.net_slabs, 40);
    CHECK_GE(c.slab_bytes, (uint64_t)per_slab * 128);
    CHECK_GT(e.open_since_ns, 0);
    CHECK_LE(e.open_since_ns, slab_now_ns());
    for (size_t i = 0; i < count; i++) {
        slab_free(a, kept[i]);
    }
    e = kit_epoch(a, 2, 6);
    CHECK_EQ(e.alloc_count, 0);
    CHECK_EQ(e.reclaimable_slab_count, 40);
    CHECK_EQ(e.reclaimable_bytes, 40 * c.slab_bytes);
    epoch_close(a, 6);
    e = kit_epoch(a, 2, 6);
    CHECK_EQ(e.full_slab_count + e.partial_slab_count, 0);
    CHECK_EQ(e.estimated_rss_bytes, 0);
    slab_stats_class(a, 2, &c);
    CHECK_EQ(c.epoch_close_recycled_slabs, 40);
    CHECK_EQ(c.new_slab_count, 40);
    slab_allocator_free(a);
}

/* Full is where nothing more fits, of every size; one free slot makes it partial, by class and by epoch. */
static void one_free_slot_is_room(void) {
    for (uint32_t i = 0; i < SLAB_FIXED_CLASSES; i++) {
        SlabAllocator* a = kit_create_by_class();
        SlabClassStats c;
        slab_stats_class(a, i, &c);
        size_t slots = 0;
        for (c.net_slabs = 0; c.net_slabs < 2; slots++) { /* until the first is used up */
            REQUIRE(slots < COUNT && (kept[slots] = slab_malloc(a, c.object_size)) != NULL);
            slab_stats_class(a, i, &c);
        }
        slots--;
        for (unsigned freed = 0; freed < 2; freed++) {
            SlabEpochStats e = kit_epoch(a, i, 0);
            uint32_t full = (freed ? 0u : 1u) + (slots == 1); /* the second slab of one slot is full as well */
            CHECK_EQ(c.total_full_slabs, full);
            CHECK_EQ(c.total_partial_slabs, 2 - full);
            CHECK_EQ(e.full_slab_count, c.total_full_slabs);
            CHECK_EQ(e.partial_slab_count, c.total_partial_slabs);
            if (slots == 1) break;
            slab_free(a, kept[slots / 2]);
            slab_stats_class(a, i, &c);
        }
        slab_allocator_free(a);
    }
}

/* Slabs that are kept for the next phase hold nothing. */
static void what_is_kept_is_empty(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    for (int i = 0; i < 500; i++) REQUIRE(slab_malloc(a, 256) != NULL && slab_malloc(a, 5000) != NULL);
    epoch_domain_end(d);
    uint64_t slabs = 0;
    for (uint32_t i = 0, classes = class_count(a); i < classes; i++) {
        SlabClassStats c;
        slab_stats_class(a, i, &c);
        CHECK_EQ(c.total_full_slabs, 0);
        CHECK_EQ(c.total_partial_slabs, 0);
        CHECK_EQ(c.empty_slabs_count, c.net_slabs);
        CHECK_EQ(c.cache_size, c.net_slabs);
        slabs += c.net_slabs;
    }
    CHECK_GT(slabs, 0);
    slab_allocator_free(a);
}

/* Reading changes nothing and needs no quiet: the counters only grow. */
static void counters_only_grow(void) {
    SlabAllocator* a = kit_create();
    SlabGlobalStats before = kit_global(a);
    for (int round = 0; round < 50; round++) {
        epoch_domain_t* d = epoch_domain_begin(a, NULL);
        for (size_t i = 0; i < 2000; i++) {
            REQUIRE(slab_malloc(a, 1 + i) != NULL);
        }
        epoch_domain_end(d);
        SlabGlobalStats now = kit_global(a);
        CHECK_GE(now.total_slabs_allocated, before.total_slabs_allocated);
        CHECK_GE(now.total_slabs_recycled, before.total_slabs_recycled);
        CHECK_GE(now.total_slow_path_hits, before.total_slow_path_hits);
        CHECK_GE(now.total_madvise_calls, before.total_madvise_calls);
        CHECK_GE(now.total_madvise_bytes, before.total_madvise_bytes);
        CHECK_EQ(now.total_madvise_failures, 0);
        CHECK_EQ(now.live_objects, 0);
        before = now;
    }
    CHECK_GT(before.total_slabs_recycled, 0);
    CHECK_GT(before.total_madvise_bytes, 0);
    slab_allocator_free(a);
}

/* A slab is taken anew or taken up again; both are taken. */
static void slabs_taken_again_are_taken(void) {
    SlabAllocator* a = kit_create();
    for (int round = 0; round < 50; round++) {
        epoch_domain_t* d = epoch_domain_begin(a, NULL);
        for (int i = 0; i < 200; i++) {
            REQUIRE(slab_malloc(a, 256) != NULL);
        }
        epoch_domain_end(d);
    }
    SlabGlobalStats g = kit_global(a);
    uint64_t taken = 0, again = 0;
    for (uint32_t i = 0, classes = class_count(a); i < classes; i++) {
        SlabClassStats c;
        slab_stats_class(a, i, &c);
        taken += c.new_slab_count;
        again += c.empty_slab_recycled;
    }
    CHECK_GT(again, taken / 2); /* the phases fit into what is kept warm */
    CHECK_EQ(g.total_slabs_allocated, taken);
    CHECK_EQ(g.total_slabs_recycled, again);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(classes_add_up_to_the_whole), CHECK_CASE(epochs_add_up_to_the_classes),
    CHECK_CASE(causes_add_up_to_the_hits),   CHECK_CASE(slabs_of_one_epoch),
    CHECK_CASE(counters_only_grow),          CHECK_CASE(slabs_taken_again_are_taken),
    CHECK_CASE(a_refused_allocation_is_no_slow_path), CHECK_CASE(one_free_slot_is_room),
    CHECK_CASE(what_is_kept_is_empty),       CHECK_CASE(classes_and_regions_add_up_to_the_whole),
    CHECK_CASE(epochs_add_up_to_classes_and_regions),
};
CHECK_MAIN(cases)
