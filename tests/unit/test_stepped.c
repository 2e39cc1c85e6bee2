/*
 * test_stepped.c - what a snapshot tells after each instruction of an allocation.
 *
 * The processor traps after each instruction of the allocations and frees between step() and stop(). The handler reads all slabs as a
 * snapshot does, which takes no lock: nothing may look freed that nobody began to free, and nothing handed out that nobody asked
 * for. Orders that only a snapshot of several looks can tell apart are left to tests/models/handed_out.pml.
 */
#include "kit/one.h"
#include "kit/step.h"

#include "stats/snapshot.h"

enum { HERE = 5, MOST = 200 };

static struct Seen {
    volatile uint64_t begun, freed; /* allocations and frees */
    uint64_t looks, handed_out, live; /* of the last look */
    uint64_t wrong; /* looks that told too much */
} seen;

static void add(const TsiSlabView* v, void* ctx) {
    struct Seen* s = ctx;
    if (v->state != TSI_SLAB_OWNED) return;
    s->handed_out += v->sum.issued.objects;
    s->live += v->sum.live.objects;
}
static void look(int sig) {
    (void)sig;
    seen.handed_out = seen.live = 0;
    tsi_snapshot_slabs(tsi_arena(a), add, &seen);
    seen.looks++;
    /* live > handed out: counted late, which is told as no free */
    bool free_told = seen.handed_out > seen.live && seen.handed_out - seen.live > seen.freed;
    seen.wrong += free_told || seen.handed_out > seen.begun;
}

static void step(void) { kit_steps_begin(look); }
static void stop(void) {
    kit_steps_end();
    look(0);
    REQUIRE_EQ(seen.handed_out, seen.begun);
    REQUIRE_EQ(seen.handed_out - seen.live, seen.freed);
    REQUIRE_EQ(seen.wrong, 0);
#if CAN_STEP
    REQUIRE_BETWEEN(seen.looks, 100, UINT64_MAX);
#endif
}

static void open_with(bool shared) {
    SlabOptions o = kit_options();
    o.shared = shared;
    memset(&seen, 0, sizeof seen);
    kit_open_with(o);
}
static void open_owned(void) { open_with(false); }
static void open_shared(void) { open_with(true); }

static void* take(size_t size) {
    seen.begun++;
    return slab_malloc_epoch(a, size, HERE);
}
static void give(void* p) {
    seen.freed++;
    slab_free(a, p);
}

/* A domain's objects, one after the other in its region, with a gap before an aligned one. */
static void objects_of_a_region(void) {
    epoch_domain_t* d = epoch_domain_create(a);
    REQUIRE(d != NULL);
    epoch_domain_enter(d);
    void* p[6];
    p[0] = slab_malloc(a, 64);
    REQUIRE_EQ(kit_place(a, p[0]).cls, TSI_CLASS_REGION);
    seen.begun = 1;
    step();
    for (unsigned n = 1; n < 6; n++) {
        seen.begun++;
        p[n] = slab_malloc(a, 16 * n);
    }
    give(p[2]);
    give(p[4]);
    seen.begun++;
    void* aligned = slab_aligned_alloc(a, 256, 100);
    give(p[5]);
    give(aligned);
    stop();
    epoch_domain_exit(d);
    epoch_domain_destroy(d);
}

static void* give_all(void* arg) {
    void** p = arg;
    for (unsigned n = 0; p[n] != NULL; n++) slab_free(a, p[n]);
    return NULL;
}

/* Lines that are used up, refilled by what their owner freed and by what others did, left and come back to. */
static void refills(void) {
    static void *p[MOST + 1], *others[MOST / 4 + 1];
    for (unsigned n = 0; n < MOST; n++) p[n] = take(512);
    for (unsigned n = 0; n < MOST / 4; n++) others[n] = p[4 * n];
    seen.freed += MOST / 4;
    kit_on_thread(give_all, others);
    step();
    for (unsigned n = 0; n < MOST / 4; n++) {
        give(p[4 * n + 1]);
        if (n % 8 == 7) {
            for (unsigned k = 0; k < 8; k++) (void)take(512);
        }
    }
    for (unsigned n = 0; n < 24; n++) (void)take(512);
    stop();
}

static const CheckCase tests[] = {
    CHECK_CASE_WITH(objects_of_a_region, open_owned, kit_close),
    CHECK_CASE_WITH(refills, open_owned, kit_close),
    {"objects_of_a_region_shared", objects_of_a_region, open_shared, kit_close},
    {"refills_shared", refills, open_shared, kit_close},
};

int main(int argc, char** argv) {
    if (!CAN_STEP) puts("no trap after each instruction here: allocations and frees are made, and looked at once");
    return CHECK_RUN(argc, argv, tests);
}
