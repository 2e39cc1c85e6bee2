/*
 * test_claimed.c - regions of which a run has the rest: what those see who have read before how much is used, and what
 * moves afterwards.
 *
 * Who has read before is one who looks with that number now.
 */
#include "kit/one.h"

#include "heap/bump.h"

#include <slab_lane.h>

static epoch_domain_t* d;

static void open_owned(void) {
    kit_open_cold();
    SlabDomainOptions o = {.struct_size = sizeof o, .label = "claimed", .flags = SLAB_DOMAIN_OWNER_ONLY};
    d = epoch_domain_create_ex(a, &o);
    REQUIRE(d != NULL);
}

static void* make(size_t bytes) {
    void* q = epoch_domain_malloc(d, bytes);
    REQUIRE(q != NULL);
    return kit_hide(q);
}
static TsiRegion* region_of(const void* at) {
    TsiPlace place = kit_place(a, at);
    REQUIRE(tsi_class_is_region(place.cls));
    return tsi_region(space, place.slab_id);
}
/* Bytes of the object, to who has found `used` bytes of its region in use. */
static size_t bytes_of(const void* q, uint32_t used) {
    TsiRegion* r = region_of(q);
    uint32_t granule = (uint32_t)((const uint8_t*)q - tsi_load_relaxed(&r->base)) >> TSI_GRANULE_SHIFT;
    return (size_t)tsi_region_granules_in(r, granule, used >> TSI_GRANULE_SHIFT, r->gen) << TSI_GRANULE_SHIFT;
}
static uint32_t used_of(const void* q) { return tsi_load_relaxed(&region_of(q)->rel); }

static void the_last_object_ends_where_it_did(void) {
    enum { RUNS = 20 };
    (void)make(48); /* from the second one on the domain leads to its heap */
    void* before = make(48);
    uint32_t claimed = 0;
    for (unsigned n = 0; n < RUNS; n++) {
        SlabRun run;
        REQUIRE(slab_run_begin(&run, d));
        claimed = used_of(before);
        REQUIRE_EQ(claimed, tsi_region_room(region_of(before)));
        void* q = n % 4 == 0 ? before : kit_hide(slab_run_malloc(&run, 48)); /* or the run makes none */
        REQUIRE(slab_run_end(&run));
        REQUIRE(used_of(before) < claimed);
        REQUIRE_EQ(bytes_of(q, claimed), 48); /* the rest has been given back meanwhile */
        REQUIRE_EQ(bytes_of(q, used_of(q)), 48);
        kit_check(a);
        if (n % 3 == 0) before = make(48); /* or the next run goes on there */
        else before = q;
        REQUIRE_EQ(bytes_of(q, claimed), 48);
        REQUIRE(!slab_free_checked(a, kit_hide((char*)before + 48)));
    }
    EpochReceipt r;
    REQUIRE(epoch_domain_destroy_ex(d, &r));
    REQUIRE_EQ(r.objects_allocated, r.objects_released);
    REQUIRE_EQ(r.bytes_allocated, 48 * r.objects_allocated);
}

/* An object behind which a run has ended moves as it grows, whichever way it is asked to; after that it grows where it is. */
static void the_last_object_moves_once(void) {
    SlabRun run;
    (void)make(48), (void)make(48); /* as above */
    REQUIRE(slab_run_begin(&run, d));
    void* q = kit_hide(slab_run_malloc(&run, 48));
    REQUIRE(slab_run_end(&run));
    uint64_t made = 3, bytes = 3 * 48, moved = 0;
    for (unsigned way = 0; way < 3; way++) {
        size_t least = slab_usable_size(a, q) + 50, grown = 64 * (way + 1);
        if (way == 2) REQUIRE(slab_ptr_handle(a, q) != 0); /* from here on by the slow way */
        void* before = q;
        moved += slab_usable_size(a, q);
        REQUIRE((q = kit_hide(slab_realloc(a, q, least))) != before);
        kit_check(a);
        made++;
        size_t usable = slab_usable_size(a, q);
        REQUIRE(usable >= least);
        REQUIRE_EQ(kit_hide(slab_realloc(a, q, usable + grown)), q);
        REQUIRE_EQ(slab_usable_size(a, q), usable + grown);
        bytes += usable + grown;
        kit_check(a);
        REQUIRE(slab_run_begin(&run, d) && slab_run_end(&run));
    }
    EpochReceipt r;
    REQUIRE(epoch_domain_destroy_ex(d, &r));
    REQUIRE_EQ(r.objects_allocated, made);
    REQUIRE_EQ(r.objects_freed, 3);
    REQUIRE_EQ(r.bytes_allocated, bytes);
    REQUIRE_EQ(r.bytes_freed, moved);
}

/* While a run is open its objects are in the map alone. */
static void an_open_run_is_in_order(void) {
    (void)make(48), (void)make(48); /* as above */
    SlabRun run;
    REQUIRE(slab_run_begin(&run, d));
    for (unsigned n = 0; n < 3; n++) {
        TsiRegionSum sum = tsi_region_sum(space, kit_place(a, slab_run_malloc(&run, 48)).slab_id);
        REQUIRE_EQ(sum.issued, 3 + n);
        REQUIRE_EQ(sum.issued_bytes, 48 * sum.issued);
        REQUIRE_EQ(sum.live, sum.issued);
        REQUIRE_EQ(sum.live_bytes, sum.issued_bytes);
    }
    for (unsigned n = 0; n < 500; n++) {
        void* q = kit_hide(slab_run_malloc(&run, 48));
        REQUIRE(q != NULL);
        if (n % 3 == 0) REQUIRE(slab_free_checked(a, q));
        if (n % 50 == 7) kit_check(a);
    }
    TsiRegion* r = run.region_;
    REQUIRE(r != NULL);
    char why[160];
    tsi_store_relaxed(&r->freed, tsi_load_relaxed(&r->freed) + 1); /* and what is wrong is seen */
    REQUIRE(!tsi_check_allocator(a, why, sizeof why));
    tsi_store_relaxed(&r->freed, tsi_load_relaxed(&r->freed) - 1);
    tsi_store_relaxed(&r->rel, tsi_load_relaxed(&r->rel) - 16);
    REQUIRE(!tsi_check_allocator(a, why, sizeof why));
    tsi_store_relaxed(&r->rel, tsi_load_relaxed(&r->rel) + 16);
    epoch_domain_t* other = epoch_domain_begin(a, "another"); /* debug builds look as it ends */
    REQUIRE(slab_malloc(a, 48) != NULL);
    REQUIRE(epoch_domain_end(other));
    REQUIRE(slab_run_end(&run));
    kit_check(a);
    REQUIRE(epoch_domain_destroy(d));
}

#define TEST(name) CHECK_CASE_WITH(name, open_owned, kit_close)
static const CheckCase cases[] = {
    TEST(the_last_object_ends_where_it_did),
    TEST(the_last_object_moves_once),
    TEST(an_open_run_is_in_order),
};
CHECK_MAIN(cases)
