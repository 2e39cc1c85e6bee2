/*
 * test_snapshot.c - a walk over the slabs, while a chunk that it is in comes to serve another class.
 */
#include "kit/one.h"

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

int main(int argc, char** argv) {
    const CheckCase tests[] = {CHECK_CASE_WITH(a_chunk_changes_its_class, open_classes, kit_close)};
    return CHECK_RUN(argc, argv, tests);
}
