/*
 * test_check.c - the checker finds what is wrong, and says what: each case breaks one word of an allocator at rest.
 */
#define KIT_RING_BY_CLASS
#include "kit/one.h"

#include "heap/heap.h"
#include "mem/region.h"

enum { SIZE = 1024, SLOTS = 16 };

/* What all cases look at: a full slab, the current one, one that is listed; an orphan; a region. */
static void *full, *some, *orphan, *listed;
static uint8_t* bumped;
static epoch_domain_t* d;
static TsiHeap* heap;
static TsiInc *inc, *ended;

static TsiSlab* slab_of(const void* p) { return tsi_slab(space, kit_place(a, p).slab_id); }
static TsiLine* line_of(const void* p) { return tsi_line(space, kit_place(a, p).line_id); }
static TsiRegion* region_of(const void* p) { return tsi_region(space, kit_place(a, p).slab_id); }

static void open_allocator(void) {
    void* p[4 * SLOTS];
    kit_open_cold();
    space = &arena->space;
    kit_take(a, SIZE, p, 2 * SLOTS);
    full = p[0];
    listed = p[2 * SLOTS - 1];
    kit_take(a, SIZE, p + 2 * SLOTS, SLOTS + 1); /* the line of `listed` is parked, then listed again */
    for (unsigned n = 0; n < SLOTS / 2; n++) slab_free(a, p[SLOTS + n]);
    some = p[3 * SLOTS];
    orphan = slab_malloc_epoch(a, SIZE, 1);
    ended = tsi_inc(&arena->phases, tsi_ref_index(tsi_phases_resolve(&arena->phases, 1)));
    epoch_close(a, 1);
    d = epoch_domain_create(a);
    bumped = epoch_domain_malloc(d, 64);
    slab_free(a, epoch_domain_malloc(d, 64));
    heap = tsi_heap(arena, tsi_tag_index(kit_tag(a, full)));
    inc = tsi_heap_inc(arena, heap);
    kit_check(a);
    REQUIRE(full != NULL && bumped != NULL && orphan != NULL);
}
static void close_allocator(void) {
    kit_check(a);
    epoch_domain_destroy(d);
    slab_allocator_free(a);
}

/* ---- cases ---- */

#define FLIP(field, bits) tsi_store_relaxed(&(field), tsi_load_relaxed(&(field)) ^ (bits))

static uint64_t one_of(uint64_t bits) { return bits & -bits; }
static void ready_and_freed(void) { FLIP(line_of(some)->freed, one_of(tsi_load_relaxed(&line_of(some)->avail))); }
static void hole_lost(void) { FLIP(line_of(full)->freed, 1ull << 40); }
static void freed_by_two(void) { FLIP(line_of(listed)->remote[0], tsi_remote_bit(tsi_ctz64(tsi_load_relaxed(&line_of(listed)->freed)))); }
static void of_before(void) { FLIP(line_of(full)->remote[1], 1ull << 33); }
static void of_another_heap(void) { FLIP(line_of(listed)->heap_at, 64u); }
static void home_elsewhere(void) { FLIP(line_of(listed)->home, 64u); }
static void plain_though_parked(void) { FLIP(line_of(full)->heap_at, tsi_heap_at(heap)); }
static void parked_with_room(void) { FLIP(line_of(full)->freed, 1ull); }
static void parked_and_listed(void) { FLIP(line_of(full)->flags, TSI_LINE_LISTED); }
static void not_listed(void) { FLIP(line_of(listed)->flags, TSI_LINE_LISTED); }
static void current_is_parked(void) { FLIP(heap->room->cur[kit_place(a, full).cls]->flags, TSI_LINE_LISTED); }
static void handled_alone(void) { FLIP(line_of(full)->handled, 1); }
static void issued_more(void) { FLIP(region_of(bumped)->issued, 4u); }
static void gaps_more(void) { FLIP(region_of(bumped)->gap_granules, 3u); }
static void freed_more(void) { FLIP(region_of(bumped)->freed, 4u); }
static void others_freed(void) { FLIP(region_of(bumped)->word, TSI_REGION_OBJECT); }
static void somebody_in_it(void) { FLIP(region_of(bumped)->word, TSI_REGION_ENTERED); }
static void other_generation(void) { region_of(bumped)->gen ^= 1; }
static void beyond_rel(void) { FLIP(region_of(bumped)->rel, 0x80u); }
static void region_of_another_heap(void) { FLIP(region_of(bumped)->heap_at, 1u << 20); }
static void committed_less(void) { FLIP(space->committed_bytes, 4096ull); }
static void pooled_more(void) { space->chunks[tsi_slab_chunk(kit_place(a, full).slab_id)].free_count ^= 1; }
static void claimed(void) { FLIP(slab_of(orphan)->tag, (uint64_t)(TSI_SLAB_ORPHAN ^ TSI_SLAB_PURGING)); }
static void owned_by_another(void) { FLIP(slab_of(full)->tag, 1ull << 8); }
static void not_an_orphan(void) { FLIP(slab_of(orphan)->tag, (uint64_t)(TSI_SLAB_ORPHAN ^ TSI_SLAB_WARM)); }
static void broken_list(void) { slab_of(orphan)->prev ^= 7; }
static void not_in_the_list(void) { FLIP(slab_of(orphan)->tag, (uint64_t)(ended->index ^ inc->index) << 8); }
static void more_slabs(void) { FLIP(heap->slab_count, 1u << 10); }
static void dead(void) { FLIP(heap->word, (uint64_t)(TSI_HEAP_LIVE ^ TSI_HEAP_DEAD)); }
static void of_another_phase(void) { FLIP(heap->ref, 1ull << 3); }
static void more_heaps(void) { FLIP(inc->heap_count, 8u); }
static void more_detached(void) { FLIP(inc->detached, 8u); }
static void more_orphans(void) { FLIP(ended->slab_count, 8u); }
static void more_issued(void) { ended->orphaned.objects ^= 8; }
static void more_held(void) { ended->holding.live_bytes ^= 8; }
static void told_otherwise(void) { ended->draining.held.slab_bytes ^= 8; }
static void other_label(void) { ended->draining.label ^= 1; }
static void drained_early(void) { ended->drained ^= true; }
static void charged_more(void) { FLIP(inc->charge, 1ull << 40); }
static void label_charged_more(void) { FLIP(tsi_label(&arena->phases.labels, TSI_LABEL_NONE)->committed, 1ull << 40); }

static const struct {
    void (*spoil)(void); /* and mends what it has spoilt */
    const char* sentence; /* a part of it */
} cases[] = {
    {ready_and_freed, ": slots both ready and freed"},
    {hole_lost, ": bits outside the class"},
    {freed_by_two, ": slots freed twice"},
    {of_before, ": remote words of another incarnation"},
    {of_another_heap, ": plain frees end in another heap"},
    {home_elsewhere, ": home in another heap"},
    {plain_though_parked, ": plain frees end in another heap"},
    {parked_with_room, ": parked, and its owner has slots there"},
    {parked_and_listed, ": parked and listed"},
    {not_listed, ": in a room, not marked"},
    {current_is_parked, " is parked or listed"},
    {handled_alone, ": marked for handles, and its slab is not"},
    {issued_more, ": 2 objects, counted 6"},
    {gaps_more, ": 0 granules of gaps, counted 3"},
    {freed_more, ": 1 freed by its owner, counted 5"},
    {others_freed, ": 0 freed by others, counted 1"},
    {somebody_in_it, ": somebody frees in it"},
    {other_generation, ", its owner's "},
    {beyond_rel, ": an object starts at 0, beyond 0"},
    {region_of_another_heap, ": plain frees end in another heap"},
    {committed_less, "committed bytes: "},
    {pooled_more, " slabs in the pool, counted "},
    {claimed, ": claimed, and nobody works on it"},
    {owned_by_another, ": home in another heap"},
    {not_an_orphan, " in its orphan list is none"},
    {broken_list, ": orphan list is broken"},
    {not_in_the_list, ": orphan not listed"},
    {more_slabs, " slabs, counted "},
    {dead, ": state 6 in an incarnation's list"},
    {of_another_phase, ": listed under another incarnation"},
    {more_heaps, " heaps, counted "},
    {more_detached, ": 0 detached, counted 8"},
    {more_orphans, ": 1 orphans, counted 9"},
    {more_issued, ": orphans have issued 1 objects, counted 9"},
    {more_held, ": orphans hold 1 objects of 1024 bytes, counted 1 of 1032"},
    {told_otherwise, ": its label was told of other objects"},
    {other_label, ": draining under label "},
    {drained_early, ": drained, and holds slabs"},
    {charged_more, " bytes, charged "},
    {label_charged_more, ": charged with "},
};

static void each_says_what_it_is(void) {
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        char why[160] = "", cut[8] = "", none[4] = "abc";
        cases[n].spoil();
        bool found = !tsi_check_allocator(a, why, sizeof why);
        bool found_cut = !tsi_check_allocator(a, cut, sizeof cut), found_silent = !tsi_check_allocator(a, none, 0);
        cases[n].spoil();
        if (!found || strstr(why, cases[n].sentence) == NULL)
            FAIL("case %u, '%s': found %d, says '%s'", n, cases[n].sentence, found, why);
        REQUIRE(found_cut && found_silent);
        REQUIRE_EQ(strlen(cut), sizeof cut - 1);
        REQUIRE(memcmp(cut, why, sizeof cut - 1) == 0);
        REQUIRE_STR(none, "abc");
        kit_check(a);
    }
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE_WITH(each_says_what_it_is, open_allocator, close_allocator),
    };
    return CHECK_RUN(argc, argv, tests);
}
