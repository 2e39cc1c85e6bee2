/*
 * test_region_handles.c - frees by handle in regions: who counts them, what is no handle, and what they leave empty.
 *
 * What comes between the steps of such a free is in test_between.c, and what a handle is worth in another life in
 * test_region_ends.c.
 */
#include "regions.h"

#include "mem/handle.h"

static SlabHandle h[4 * ALL];

static void fill_by_handle(unsigned from, unsigned n) {
    for (unsigned i = from; i < from + n; i++) REQUIRE((p[i] = alloc_obj_epoch(a, SIZE, d->epoch_id, &h[i])) != NULL);
}
static void give_by_handle(unsigned from, unsigned n) {
    for (unsigned i = from; i < from + n; i++) REQUIRE(free_obj(a, h[i]));
}

/* By a thread that has the allocator at hand. */
static void be_bound(void* freed) {
    (void)freed;
    slab_free(a, slab_malloc(a, 16));
}
static bool freed_elsewhere;
static void free_elsewhere(void* handle) { freed_elsewhere = free_obj(a, *(const SlabHandle*)handle); }

/* ---- who frees ---- */

static unsigned mark_of(const TsiRegion* r, const void* q) {
    uint64_t at = (uint64_t)((const uint8_t*)q - tsi_load_relaxed(&r->base));
    return (unsigned)tsi_load_relaxed(&r->map[at >> TSI_GRANULE_SHIFT]) & ~TSI_GEN_BYTE;
}

/* The owner counts for itself, others in the region's word; each object once, whoever comes later. */
static void each_side_counts_its_own(void) {
    KitWorker other;
    fill_by_handle(0, 3);
    const TsiRegion* r = region_of(p[0]);
    kit_worker_start(&other);
    kit_worker_run(&other, be_bound, NULL);
    give_by_handle(0, 1);
    REQUIRE_EQ(tsi_load_relaxed(&r->freed), 1);
    REQUIRE_EQ(tsi_region_objects(tsi_load_relaxed(&r->word)), 0);
    REQUIRE_EQ(mark_of(r, p[0]), TSI_MARK_OWN);
    kit_worker_run(&other, free_elsewhere, &h[1]);
    REQUIRE(freed_elsewhere);
    REQUIRE_EQ(tsi_load_relaxed(&r->freed), 1);
    REQUIRE_EQ(tsi_region_objects(tsi_load_relaxed(&r->word)), 1);
    REQUIRE_EQ(mark_of(r, p[1]), TSI_MARK_OTHER);
    kit_worker_run(&other, free_elsewhere, &h[0]);
    REQUIRE(!freed_elsewhere);
    REQUIRE(!free_obj(a, h[1]));
    REQUIRE_EQ(kit_refusals(a).stale_handle, 2);
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->busy), 0);
    kit_worker_stop(&other);
    kit_check(a);
    end(EPOCH_RELEASE, 3, 2, 3 * SIZE);
}

/* The tag of an orphan names a phase, by a number that a heap of the thread may have as well. */
static void an_orphan_is_in_no_heap(void) {
    enum { N = 64 };
    epoch_domain_t* domain[N];
    TsiArena* arena = tsi_arena(a);
    unsigned x = N;
    for (unsigned i = 0; i < N; i++) {
        REQUIRE((domain[i] = epoch_domain_create(a)) != NULL);
        REQUIRE((p[i] = alloc_obj_epoch(a, SIZE, domain[i]->epoch_id, &h[i])) != NULL);
    }
    for (unsigned i = 0; i < N; i++) {
        uint32_t phase = tsi_ref_index(tsi_phases_resolve(&arena->phases, domain[i]->epoch_id));
        for (unsigned k = 0; k < N; k++)
            if (k != i && tsi_tag_index(kit_tag(a, p[k])) == phase) x = i;
    }
    REQUIRE(x < N);
    const TsiRegion* r = region_of(p[x]);
    EpochReceipt receipt = kit_end(a, domain[x]->epoch_id, EPOCH_DRAIN);
    REQUIRE_EQ(receipt.objects_escaped, 1);
    uint64_t committed = kit_committed_now(a);
    REQUIRE(free_obj(a, h[x]));
    REQUIRE(!free_obj(a, h[x]));
    REQUIRE(kit_committed_now(a) < committed); /* it was the last object there */
    REQUIRE_EQ(tsi_load_relaxed(&r->freed), 0);
    kit_check(a);
    for (unsigned i = 0; i < N; i++) epoch_domain_destroy(domain[i]);
}

/* ---- what is no handle ---- */

static SlabHandle made(uint32_t place, uint32_t generation) {
    return tsi_handle_make(tsi_arena(a)->secret, place, generation);
}
static uint32_t place_of(const void* q) {
    TsiPlace at = kit_place(a, q);
    return tsi_handle_place(at.line_id, at.slot);
}
static void no_handle(SlabHandle handle) {
    uint64_t live = kit_live(a);
    REQUIRE(!free_obj(a, handle));
    REQUIRE_NULL(slab_handle_ptr(a, handle));
    REQUIRE_EQ(kit_live(a), live);
}

/* The right place and generation are not enough: nobody has been told the handle. */
static void one_that_was_not_issued(void) {
    void* q = make(SIZE);
    TsiSlab* slab = tsi_slab(space, kit_place(a, q).slab_id);
    SlabHandle its = made(place_of(q), tsi_load_relaxed(&slab->gen_base));
    no_handle(its);
    REQUIRE(slab_ptr_handle(a, q) == its);
    REQUIRE(free_obj(a, its));
    no_handle(its);
}

static void one_beyond_the_generations(void) {
    void* q = make(SIZE);
    TsiSlab* slab = tsi_slab(space, kit_place(a, q).slab_id);
    SlabHandle its = slab_ptr_handle(a, q);
    uint32_t was = tsi_load_relaxed(&slab->gen_base);
    tsi_store_relaxed(&slab->gen_base, TSI_GEN_LIMIT);
    no_handle(its);
    no_handle(made(place_of(q), TSI_GEN_LIMIT));
    tsi_store_relaxed(&slab->gen_base, was);
    REQUIRE(free_obj(a, its));
}

/* Of the life that goes on, at every place of the region but the starts of objects; and of nowhere. */
static void those_of_other_places(void) {
    uint8_t* q = alloc_obj_epoch(a, 100, d->epoch_id, &h[0]);
    uint8_t* aligned = slab_aligned_alloc_epoch(a, 256, 40, d->epoch_id);
    uint32_t slab_id = kit_place(a, q).slab_id, generation = tsi_load_relaxed(&tsi_slab(space, slab_id)->gen_base);
    uint32_t first = place_of(tsi_load_relaxed(&region_of(q)->base)), end = 4096 / TSI_GRANULE;
    REQUIRE(aligned > q + 112); /* a gap */
    REQUIRE_EQ(kit_place(a, aligned).slab_id, slab_id);
    for (uint32_t n = 0; n < end; n++)
        if (first + n != place_of(q) && first + n != place_of(aligned)) no_handle(made(first + n, generation));
    for (uint32_t n = 1; n < 20; n++) no_handle(made(first + n * end, 0)); /* regions that nobody has had */
    uint64_t covered = tsi_load_relaxed(&space->covered);
    no_handle(made((uint32_t)((covered - TSI_GRANULE) >> TSI_GRANULE_SHIFT), 0));
    no_handle(made((uint32_t)(covered >> TSI_GRANULE_SHIFT), 0));
    no_handle(made((uint32_t)(space->payload_bytes >> TSI_GRANULE_SHIFT), 0));
    no_handle(made(UINT32_MAX, 0));
    for (unsigned bits = 1; bits < 4; bits++) no_handle(h[0] ^ bits);
    REQUIRE(free_obj(a, made(place_of(aligned), generation)));
    REQUIRE(free_obj(a, h[0]));
}

/* ---- what is left empty ---- */

static void emptied_regions_are_used_again(void) {
    fill_by_handle(0, ALL);
    uint64_t committed = kit_committed_now(a);
    give_by_handle(0, FIRST + SECOND);
    fill_by_handle(ALL, FIRST + SECOND);
    REQUIRE_EQ(kit_committed_now(a), committed);
    for (unsigned i = 0; i < FIRST + SECOND; i++) no_handle(h[i]);
    kit_check(a);
    give_by_handle(FIRST + SECOND, ALL);
    end(EPOCH_RELEASE, ALL + FIRST + SECOND, ALL + FIRST + SECOND, (ALL + FIRST + SECOND) * SIZE);
}

/* However many regions came after them: they are looked for, sixteen at a time. */
static void emptied_regions_are_found_in_time(void) {
    enum { LATER = 20 * 262144 / 4096, SOON = 6 * 262144 / 4096 };
    fill_by_handle(0, ALL);
    for (unsigned i = 0; i < LATER; i++) (void)make(4096);
    give_by_handle(0, FIRST);
    unsigned n = 0;
    while (n < SOON && make(SIZE) != p[0]) n++, (void)make(4096 - SIZE);
    REQUIRE(n < SOON);
}

/* ---- what a thread knows of ---- */

static uint64_t covered_there;
static void look_at_covered(void* unused) {
    (void)unused;
    covered_there = kit_binding(a)->covered;
}

/* A thread that only frees, and by handle only, hears of chunks that came after it. */
static void chunks_that_came_later(void) {
    enum { MANY = 80 };
    void* large[MANY];
    KitWorker other;
    uint64_t covered = tsi_load_relaxed(&space->covered), off = 0;
    kit_worker_start(&other);
    kit_worker_run(&other, be_bound, NULL);
    for (unsigned i = 0; i < MANY; i++) REQUIRE((large[i] = slab_malloc(a, 1 << 20)) != NULL);
    for (unsigned i = 0; off < covered; i++) {
        REQUIRE(i < 1000);
        uint8_t* q = alloc_obj_epoch(a, 4096, d->epoch_id, &h[0]);
        off = (uint64_t)(q - space->base);
    }
    kit_worker_run(&other, look_at_covered, NULL);
    REQUIRE(covered_there <= off);
    kit_worker_run(&other, free_elsewhere, &h[0]);
    REQUIRE(freed_elsewhere);
    kit_worker_run(&other, look_at_covered, NULL);
    REQUIRE(covered_there > off);
    kit_worker_stop(&other);
    give(large, MANY);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(each_side_counts_its_own),          TEST(an_orphan_is_in_no_heap), TEST(one_that_was_not_issued),
        TEST(one_beyond_the_generations),        TEST(those_of_other_places),   TEST(emptied_regions_are_used_again),
        TEST(emptied_regions_are_found_in_time), TEST(chunks_that_came_later),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
