/*
 * granule.c - slabs of which every slot was one decision.
 *
 * An epoch fills a number of slabs with objects of one size; each object is a session with probability p, else it is
 * freed before the epoch is advanced and closed at once. A slab goes back if none of its k objects is a session. The
 * sessions are freed after the close has been measured.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slab_stats.h>

#include "measure.h"
#include "drainability.h"

enum { EPOCHS = 100, QUICK_EPOCHS = 10, SLABS = 50, MOST_OBJECTS = SLABS * 256, PHASES = 256 };

static void* object[MOST_OBJECTS];
static SlabPhaseStats phase[PHASES];

static uint64_t slabs_of(SlabAllocator* a, uint64_t era) {
    size_t n = slab_stats_phases(a, phase, PHASES);
    for (size_t i = 0; i < n && i < PHASES; i++)
        if (phase[i].epoch_era == era) return phase[i].slabs;
    return 0;
}

static void defect(struct granule* g, const char* what) {
    if (g->defects++ == 0)
        snprintf(g->defect, sizeof g->defect, "slabs of %u objects, p %g: %s", g->per_slab, g->p, what);
}

/* With the options in force, unlike slab_object_count. 0: no class has this size. */
static unsigned objects_per_slab(SlabAllocator* a, unsigned size) {
    SlabClassStats s;
    for (unsigned i = 0;; i++) {
        slab_stats_class(a, i, &s);
        if (s.version == 0) return 0;
        if (s.object_size == size) return (unsigned)(s.slab_bytes / size);
    }
}

static void run_epoch(struct granule* g, SlabAllocator* a, uint64_t* coin) {
    EpochId id = epoch_current(a);
    uint64_t era = epoch_era(a, id);
    unsigned n = g->per_slab * SLABS, sessions = 0;
    slab_epoch_set_label(a, id, "requests");
    for (unsigned i = 0; i < n; i++)
        if (!(object[i] = slab_malloc(a, g->size))) _exit(1);
    uint64_t before = slabs_of(a, era);
    if (before != SLABS) defect(g, "objects do not fill as many slabs as they should");
    for (unsigned i = 0; i < n; i++)
        if (next_random(coin) / 2147483648.0 < g->p) {
            sessions++;
        } else {
            slab_free(a, object[i]);
            object[i] = NULL;
        }
    epoch_advance(a);
    EpochReceipt r;
    if (!epoch_close_era(a, era, EPOCH_DRAIN, &r) || r.objects_escaped != sessions)
        defect(g, "not what was left escaped");
    uint64_t left = slabs_of(a, era);
    if (left > sessions) defect(g, "more slabs than live objects");
    g->slabs += before;
    g->left_slabs += left;
    for (unsigned i = 0; i < n; i++) slab_free(a, object[i]);
    if (slabs_of(a, era) != 0) defect(g, "slabs left after the last free");
}

void granule_run(struct granule* g, bool quick, uint64_t seed) {
    const SlabOptions by_class = {.struct_size = sizeof by_class, .bump = 3}; /* as in arm.c */
    SlabAllocator* a = slab_allocator_create_with(&by_class);
    if (!a) _exit(1);
    uint64_t coin = seed * 7 + 1;
    g->per_slab = objects_per_slab(a, g->size);
    if (g->per_slab == 0 || g->per_slab * SLABS > MOST_OBJECTS) _exit(1);
    g->theory = theory_slab(g->p, g->per_slab);
    for (unsigned e = 0; e < (quick ? QUICK_EPOCHS : EPOCHS); e++) run_epoch(g, a, &coin);
    SlabLabelStats label[8];
    size_t n = slab_stats_labels(a, label, 8);
    for (size_t i = 0; i < n && i < 8; i++)
        if (strcmp(label[i].label, "requests") == 0) g->label_drainability = label[i].drainability;
    g->finished = true;
    slab_allocator_free(a);
}
