/*
 * test_snapshot.c - a walk over the slabs, while a chunk that it is in comes to serve another class; and figures that
 * are told without a walk.
 */
#include "kit/one.h"

#include "stats/report.h"
#include "stats/snapshot.h"

enum { SIZE = 512, MOST = 4096 };

static void* held[MOST];
static unsigned looks, strange;
static bool changes;

static void open_classes(void) {
    SlabOptions o = kit_options();
    o.bump = TSI_BUMP_OFF;
    o.warm_bytes = UINT64_MAX;
    kit_open_with(o);
    looks = strange = 0;
    changes = true;
}

/* Everything goes back, and the chunk serves objects of another size. */
static void change_class(void) {
    for (unsigned n = 0; n < MOST; n++) slab_free(a, held[n]);
    slab_trim(a);
    kit_take(a, 2 * SIZE, held, MOST);
    kit_check(a);
}

static void look(const TsiSlabView* v, void* unused) {
    (void)unused;
    looks++;
    strange += v->cls != tsi_class_of_slab(space, v->slab_id);
    if (changes) change_class();
    changes = false;
}

static void a_chunk_changes_its_class(void) {
    kit_take(a, SIZE, held, MOST);
    uint32_t chunk = tsi_slab_chunk(kit_place(a, held[0]).slab_id);
    unsigned cls = tsi_chunk_class(space, chunk);
    tsi_snapshot_slabs(arena, look, NULL);
    REQUIRE(tsi_chunk_class(space, chunk) != cls);
    REQUIRE(looks > 1);
    REQUIRE_EQ(strange, 0);
}

/* A ring's epoch that has ended, of whose ten objects `live` were live: a report of figures alone passes it by, and its
 * label knows everything. */
static void epoch_that_has_ended(EpochCloseMode mode, unsigned live) {
    static TsiKept kept;
    TsiReport r;
    EpochId id = epoch_current(a);
    slab_epoch_set_label(a, id, "ended");
    for (unsigned n = 0; n < 10; n++) REQUIRE((held[n] = slab_malloc_epoch(a, 48, id)) != NULL);
    REQUIRE(tsi_report_take(arena, &r));
    tsi_report_keep(&r, &kept);
    tsi_report_drop(&r);

    for (unsigned n = live; n < 10; n++) REQUIRE(slab_free_checked(a, held[n]));
    REQUIRE(epoch_close_ex(a, id, mode, NULL));
    REQUIRE(tsi_report_figures(arena, &kept, &r));
    uint64_t released = mode == EPOCH_RELEASE ? live : 0;
    bool found = false;
    for (uint32_t n = 0; n < r.label_count; n++) {
        const SlabLabelStats* l = &r.labels[n];
        if (strcmp(l->label, "ended") != 0) continue;
        found = true;
        REQUIRE_EQ(l->objects_allocated, 10);
        REQUIRE_EQ(l->objects_freed, 10 - live);
        REQUIRE_EQ(l->objects_released, released);
        REQUIRE_EQ(l->live_objects, live - released);
    }
    REQUIRE(found);
    tsi_report_drop(&r);
}
static void an_epoch_that_was_released(void) { epoch_that_has_ended(EPOCH_RELEASE, 6); }
static void an_epoch_that_drains(void) { epoch_that_has_ended(EPOCH_DRAIN, 6); }
static void an_epoch_that_has_drained(void) { epoch_that_has_ended(EPOCH_DRAIN, 0); }

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE_WITH(a_chunk_changes_its_class, open_classes, kit_close),
        CHECK_CASE_WITH(an_epoch_that_was_released, kit_open_cold, kit_close),
        CHECK_CASE_WITH(an_epoch_that_drains, kit_open_cold, kit_close),
        CHECK_CASE_WITH(an_epoch_that_has_drained, kit_open_cold, kit_close),
    };
    return CHECK_RUN(argc, argv, tests);
}
