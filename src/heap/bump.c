/* bump.c - see bump.h. */
#include "heap/bump.h"

#include "account/charge.h"
#include "heap/partial.h"
#include "observe/profile.h"
#include "account/refuse.h"
#include "heap/take.h"
#include "mem/parts.h"

enum {
    LOOK = 16,                /* regions looked at before the heap takes another */
    STEPS = 4 * LOOK,         /* limit on other slabs passed during that search */
    FIRST_RANK_MAX = 3,       /* no phase begins with a larger region */
    SMALL_PHASES = 4,         /* in a row, before the next one begins with part of a page */
    SETTLED_BYTES = 64 << 10, /* bumped, before the share that was freed says anything */
    AGAIN_BYTES = 256 << 10,  /* bumped in regions that were empty by the time they were used up: that will go on */
    AGAIN_MOST = 1 << 20,     /* of slabs: a larger heap would take as much again */
    OFTEN = 8,                /* slow paths for each slab of a heap that reuses its slots again and again */
    LESSONS = 4,              /* further general phases that a label needs, once one was wrongly taken for such */
    HUGE_AFTER = 256 << 10,   /* bumped, before a phase of a big label takes huge pages */
    OUTLIVED = 8,             /* phases of a label that take small regions, once objects have outlived one */
    SMALL_PARTS = 16 << 10,   /* bumped by such a phase in parts of pages, */
    SMALL_PAGES = 256 << 10,  /* and in single pages */
    APART = 512,              /* phases that the thread begins while one is open: many are open at a time */
    APART_PAGES = 32 << 10,   /* bumped by such a phase in single pages */
    ALONE = 16                /* objects of a heap that grow in regions of their own, at a time */
};

/* ---- regions of a heap ---- */

/* Makes the region, if it was one of a single growing object, like others; h->solo is one less, unless it is 0.
 * [owner, in bracket] */
static void not_solo(TsiHeap* h, TsiRegion* r) {
    if (r->solo && h->solo != 0) h->solo--; /* a trim has forgotten how many there are */
    r->solo = false;
}

/* Returns true if the region has used up its generations of handles: it issues no more. [any thread, needs no lock] */
static bool is_spent(const TsiSpace* s, const TsiRegion* r) {
    return tsi_load_relaxed(&tsi_region_slab(s, r)->gen_base) >= TSI_GEN_LIMIT;
}

/* Begins another life of an empty region, after the one that has just begun (if `open`), since a thread has asked for a
 * handle meanwhile. The handle may be of the life before: where two threads ask, the second finds heap_at cleared and
 * relies on the first one's membarrier, which may come after it has looked at an object whose plain free is still in
 * this thread's store buffer. Raises the slab's generation of handles, as begin_again does, before the word: no free
 * with that handle enters the next life. Sets heap_at to 0. Returns true with that life begun; false if open is false,
 * generations of handles are used up, or a freer sleeps in the region and its lives are. [owner, in bracket] */
static TSI_COLD bool begin_named(TsiSpace* s, uint32_t slab_id, bool open) {
    _Atomic uint32_t* base = &tsi_slab(s, slab_id)->gen_base;
    uint32_t generation = tsi_load_relaxed(base) + 1;
    TsiRegionSum none;
    tsi_store_seq(&tsi_region(s, slab_id)->heap_at, 0); /* cleared, and then set again */
    tsi_store_seq(base, generation);                    /* pairs with tsi_bump_free_in_life and tsi_handle_decode */
    return open && tsi_region_renew(s, slab_id, 0, &none) && generation < TSI_GEN_LIMIT;
}

/* Begins the next life of an empty region, whatever h bumps in: raises the slab's generation of handles where some were
 * issued or there is a profile, and adds what was issued in the last life to the incarnation's totals. Takes the
 * stripe. Returns false if the region is not empty or its generations are used up: the life goes on. Returns false,
 * too, if a freer sleeps in it or its lives are used up: the life has ended, and if the region was h's current one, h
 * has none. [owner, in bracket] */
static bool begin_again(TsiBinding* b, TsiHeap* h, uint32_t slab_id) {
    TsiArena* a = b->arena;
    TsiSpace* s = &a->space;
    TsiSlab* slab = tsi_slab(s, slab_id);
    TsiRegion* r = tsi_region(s, slab_id);
    if (!tsi_region_is_empty(s, slab_id)) return false;
    not_solo(h, r);
    /* seq_cst: pairs with tsi_handle_flag_slab, as the look after the renewal does */
    bool handled = (tsi_load_seq(&slab->tag) & TSI_SLAB_HANDLED) != 0;
    if (is_spent(s, r)) return false;

    if (handled || a->profile.mean != 0) { /* the profile names objects by it, too */
        uint32_t generation = tsi_load_relaxed(&slab->gen_base) + 1;
        if (generation >= TSI_GEN_LIMIT) return false;
        tsi_store_seq(&slab->gen_base,
                      generation); /* before the word: pairs with tsi_bump_free_shared, which enters, then looks */
    }

    TsiInc* inc = tsi_heap_inc(a, h);
    tsi_phase_lock(inc);
    TsiRegionSum ended;
    bool open = tsi_region_renew(s, slab_id, handled ? 0 : tsi_heap_at(h), &ended);
    /* seq_cst, after the word was exchanged: another thread may have asked for a handle since (names.c) */
    if (!handled && TSI_UNLIKELY((tsi_load_seq(&slab->tag) & TSI_SLAB_HANDLED) != 0))
        open = begin_named(s, slab_id, open);
    inc->allocated.objects += ended.issued;
    inc->allocated.bytes += ended.issued_bytes;
    tsi_phase_unlock(inc);

    for (; ended.twice != 0; ended.twice--) tsi_refuse_count(a, TSI_REFUSED_LATE);
    if (!open && tsi_load_relaxed(&h->region) == r) tsi_heap_set_region(b, h, &tsi_no_region);
    return open;
}

/* Begins an empty region again and makes it current. Takes the stripe. Returns false where begin_again does, and then
 * h's region is as begin_again leaves it. [owner, in bracket] */
static bool renew(TsiBinding* b, TsiHeap* h, uint32_t slab_id) {
    bool open = begin_again(b, h, slab_id);
    if (open) tsi_heap_set_region(b, h, tsi_region(&b->arena->space, slab_id));
    return open;
}

/* Makes one of the heap's regions that were kept empty (h->empty_regions) current again, and takes it, and those before
 * it that cannot be used, off the list. Takes the stripe. Returns false, with an empty list, if none could.
 * [owner, in bracket] */
static bool use_empty_region(TsiBinding* b, TsiHeap* h) {
    TsiSpace* s = &b->arena->space;
    while (h->empty_regions != 0) {
        uint32_t slab_id = h->empty_regions - 1;
        h->empty_regions = tsi_slab(s, slab_id)->prev;
        tsi_region(s, slab_id)->in_empties = false;
        if (renew(b, h, slab_id)) return true;
    }
    return false;
}

/* Makes a region current that others have emptied, among the LOOK regions, or STEPS slabs of any kind, that follow
 * where the last look ended (h->looked); the next look goes on from there. Takes the stripe. Returns true, with *stop
 * as it was; false if none of them could be used again, with *stop: h has bumped SETTLED_BYTES or more, and more than a
 * quarter of the objects of these regions are free, so bumping does not pay. [owner, in bracket] */
static bool use_emptied(TsiBinding* b, TsiHeap* h, bool* stop) {
    TsiSpace* s = &b->arena->space;
    uint64_t issued = 0, freed = 0;
    uint32_t first = 0;

    for (unsigned steps = 0, looks = 0; steps < STEPS && looks < LOOK; steps++) {
        uint32_t at = h->looked != 0 ? h->looked : tsi_load_relaxed(&h->slabs);
        if (at == 0 || at == first) break;
        if (first == 0) first = at;
        h->looked = tsi_slab(s, at - 1)->next;
        if (!tsi_class_is_region(tsi_class_of_slab(s, at - 1))) continue;
        looks++;
        if (renew(b, h, at - 1)) return true;
        TsiRegion* r = tsi_region(s, at - 1);
        issued += tsi_load_relaxed(&r->issued);
        freed += tsi_load_relaxed(&r->freed) + tsi_region_objects(tsi_load_relaxed(&r->word));
    }

    *stop = h->bumped >= SETTLED_BYTES && freed * 4 > issued;
    return false;
}

/* Returns a copy of what the last phases of the heap's label have taught this thread; nothing, but for APART, if none
 * has. [own thread, needs no lock] */
static TsiLearned learned_of(TsiBinding* b, TsiHeap* h) {
    uint32_t label = tsi_inc_label(tsi_heap_inc(b->arena, h));
    TsiLearned learned = b->learned[label % TSI_LEARNED];
    return learned.label == label ? learned : (TsiLearned){.label = label, .traits = b->apart ? TSI_LEARNED_APART : 0};
}

/* Returns true if the classes must take over from the regions, whatever is empty; false under a limit, which their
 * slabs may reach where regions that are used again would not. [owner, in bracket] */
static bool goes_over(TsiBinding* b, TsiHeap* h) {
    if (h->bumped < SETTLED_BYTES) return false;
    if (h->ring) return true;
    bool often = h->again >= AGAIN_BYTES && tsi_load_relaxed(&h->slab_bytes) <= AGAIN_MOST;
    return (often || learned_of(b, h).general > 0) && !tsi_is_limited(b->arena, tsi_heap_inc(b->arena, h));
}

/* Returns how far phases of the label count as general work, above 0, once this one of `bytes` is over; `before`: until
 * now. A phase that was short, or has bumped to its end, teaches nothing. [own thread, needs no lock] */
static int general_after(const TsiHeap* h, int before, uint64_t bytes) {
    if (h->bumps || bytes < SETTLED_BYTES) return before;
    bool often = tsi_load_relaxed(&h->slow) >= OFTEN * (uint64_t)tsi_load_relaxed(&h->slab_count);
    return !often ? (before > 0 ? -LESSONS : before) : before < 1 ? before + 1 : before;
}

/* Returns the first rank of a phase that objects are likely to outlive. [any thread, needs no lock] */
static unsigned small_rank(TsiBinding* b) {
    return tsi_parts_allowed(&b->arena->space) ? TSI_RANK_PART : TSI_RANK_PAGE;
}

void tsi_bump_learn(TsiBinding* b, const TsiHeap* h, uint32_t label) {
    TsiLearned* learned = &b->learned[label % TSI_LEARNED];
    uint64_t bytes = h->bumped + tsi_load_relaxed(&tsi_load_relaxed(&h->region)->rel);
    bool known = learned->label == label;
    bool part = known && learned->rank == TSI_RANK_PART + 1 && learned->traits == 0;
    if (part && bytes <= TSI_PART_BYTES) return; /* nothing new */
    unsigned rank = TSI_RANK_PAGE, small = known ? learned->small : 0;
    unsigned outlived =
        known && learned->traits >= TSI_LEARNED_OUTLIVED ? learned->traits / TSI_LEARNED_OUTLIVED - 1u : 0;

    while (rank < FIRST_RANK_MAX && (uint64_t)TSI_REGION_MIN << 2 * (rank - TSI_RANK_PAGE) < bytes) rank++;
    if (bytes > TSI_PART_BYTES || !tsi_parts_allowed(&b->arena->space)) small = 0;
    else if (small < SMALL_PHASES) small++;
    if (small == SMALL_PHASES) rank = TSI_RANK_PART;
    /* where many are open, each holds little that it does not fill */
    if (tsi_heap_binding(tsi_load_relaxed(&h->word)) == b->index) b->apart = b->begun - h->born >= APART;
    if (b->apart && rank > TSI_RANK_PAGE) rank = TSI_RANK_PAGE;
    if (outlived != 0) rank = small_rank(b);
    int general = general_after(h, known ? learned->general : 0, bytes);
    uint8_t traits = (uint8_t)(outlived * TSI_LEARNED_OUTLIVED + (bytes > TSI_BIG_BYTES ? TSI_LEARNED_BIG : 0) +
                               (b->apart ? TSI_LEARNED_APART : 0));
    *learned = (TsiLearned){label, 0, 0, (uint8_t)(rank + 1), (uint8_t)small, (int8_t)general, traits};
}

void tsi_bump_outlived(TsiBinding* b, uint32_t label) {
    TsiLearned* learned = &b->learned[label % TSI_LEARNED];
    if (learned->label != label) return;
    learned->traits =
        (uint8_t)((learned->traits & (TSI_LEARNED_BIG | TSI_LEARNED_APART)) + OUTLIVED * TSI_LEARNED_OUTLIVED);
    learned->rank = (uint8_t)(small_rank(b) + 1);
}

/* Returns the rank for h, which takes its phase's first region now. That is what the label has taught this thread, if a
 * phase of it has ended. Otherwise enters h in b->learned as the label's last beginner, and returns TSI_RANK_PART where
 * the beginner before it still is open with one region and at most TSI_PART_BYTES bumped, otherwise TSI_RANK_PAGE: a
 * thread may have many open before it ends one. [owner, in bracket] */
static unsigned first_rank(TsiBinding* b, TsiHeap* h) {
    uint32_t label = tsi_inc_label(tsi_heap_inc(b->arena, h));
    TsiLearned* learned = &b->learned[label % TSI_LEARNED];
    if (learned->label == label && learned->rank != 0) return learned->rank - 1u;
    bool known = learned->label == label && learned->begun != 0;
    uint32_t before = known ? learned->begun : 0, since = known ? learned->since : b->begun;
    bool apart = b->apart || b->begun - since >= APART;
    *learned = (TsiLearned){label, h->index + 1, since, 0, 0, 0, apart ? TSI_LEARNED_APART : 0};
    if (before == 0 || before == h->index + 1 || !tsi_parts_allowed(&b->arena->space)) return TSI_RANK_PAGE;
    TsiHeap* other = tsi_heap(b->arena, before - 1);
    const TsiRegion* r = tsi_load_relaxed(&other->region);
    bool open = tsi_load_relaxed(&other->word) == b->live_word && tsi_load_relaxed(&other->slab_count) == 1;
    open = open && r != &tsi_no_region && !other->ring;
    /* atomic words: others may take the heap meanwhile, and any value will do */
    return open && tsi_load_relaxed(&r->rel) <= TSI_PART_BYTES ? TSI_RANK_PART : TSI_RANK_PAGE;
}

/* Takes two regions that fill a huge page, if the phase is known to need them: it has bumped TSI_BIG_BYTES, or
 * HUGE_AFTER and the last one of its label was big. The first becomes current; the second waits in h->empty_regions
 * until that is used up. Both go back together. Returns false if it took none: no huge pages, no memory, or a budget;
 * b->budget stays as it was. [owner, in bracket] */
static bool take_huge(TsiBinding* b, TsiHeap* h) {
    TsiSpace* s = &b->arena->space;
    uint32_t ids[2];
    if (h->bumped < HUGE_AFTER || !tsi_os.has_huge || !tsi_space_gives_back(s)) return false;
    if (h->bumped < TSI_BIG_BYTES && (learned_of(b, h).traits & TSI_LEARNED_BIG) == 0) return false;
    if (!tsi_huge_take(b, h, ids)) return false;
    if (ids[1] != ids[0]) {
        tsi_slab(s, ids[1])->prev = h->empty_regions;
        h->empty_regions = ids[1] + 1;
        tsi_region(s, ids[1])->in_empties = true;
    }
    tsi_heap_set_region(b, h, tsi_region(s, ids[0]));
    return true;
}

/* Returns the rank of the region that the heap takes next, for an object of `bytes`; take_region goes up where they do
 * not fit. The first region's rank is also noted for the label (first_rank). [owner, in bracket] */
static unsigned next_rank(TsiBinding* b, TsiHeap* h, size_t bytes) {
    if (h->ring) return TSI_RANK_PAGE;
    unsigned traits = learned_of(b, h).traits;
    if (TSI_LIKELY(traits < TSI_LEARNED_OUTLIVED)) {
        if (!h->ranked) return first_rank(b, h);
        bool small = (traits & TSI_LEARNED_APART) != 0 && h->bumped < APART_PAGES;
        return small && bytes <= TSI_REGION_MIN ? TSI_RANK_PAGE : h->rank;
    }
    if (h->bumped < SMALL_PARTS && bytes <= TSI_PART_BYTES / 2) return small_rank(b);
    return h->bumped < SMALL_PAGES || !h->ranked ? TSI_RANK_PAGE : h->rank;
}

/* Takes a region where `bytes` fit, of next_rank's rank or, where memory or a budget has no room for that, of the
 * largest smaller one, and makes it current, empty; or a huge page (take_huge). Raises h->regions and sets h->rank, so
 * that the next one is a rank larger, but not for a huge page. Returns false, with the current region as it was,
 * without memory or against a budget, which b->budget.hard names. [owner, in bracket] */
static bool take_region(TsiBinding* b, TsiHeap* h, size_t bytes) {
    TsiSpace* s = &b->arena->space;
    unsigned rank = next_rank(b, h, bytes);
    unsigned least = rank == TSI_RANK_PART ? TSI_RANK_PART : TSI_RANK_PAGE;
    if (TSI_UNLIKELY(h->bumped >= HUGE_AFTER) && take_huge(b, h)) return true;

    while (s->classes->c[tsi_region_class(least)].slab_bytes < bytes) least++;
    if (rank < least) rank = least;
    uint32_t slab_id;

    while (!tsi_slab_take(b, h, tsi_region_class(rank), &slab_id)) {
        if (rank == least) return false;
        rank--;
    }

    h->regions++;
    h->ranked = !h->ring; /* a heap of the ring teaches nothing */
    h->rank = (uint8_t)(rank + 1 < TSI_RANK_HUGE ? rank + 1 : rank);
    tsi_heap_set_region(b, h, tsi_region(s, slab_id));
    return true;
}

/* Makes an empty region current again: the current one, one kept in h->empty_regions, or one that others have emptied;
 * whether `bytes` fit there the caller tests. Where the current one is empty and h->rank is at most FIRST_RANK_MAX,
 * takes a new region for `bytes` instead, if it can: changing regions would be most of the cost. Returns false if there
 * is none; then *stop may be true, as in use_emptied, otherwise it is false. [owner, in bracket] */
static bool use_again(TsiBinding* b, TsiHeap* h, size_t bytes, bool* stop) {
    TsiSpace* s = &b->arena->space;
    TsiRegion* r = tsi_load_relaxed(&h->region);
    *stop = false;
    if (r != &tsi_no_region) {
        uint32_t slab_id = tsi_region_id(s, r);
        bool small = !h->ring && h->rank <= FIRST_RANK_MAX;
        if (small && tsi_region_is_empty(s, slab_id) && take_region(b, h, bytes)) return true;
        if (renew(b, h, slab_id)) return true;
    }
    return use_empty_region(b, h) || use_emptied(b, h, stop);
}

/* Returns true if a heap of an epoch of the ring has as many regions as it may. [owner, in bracket] */
static bool is_full(const TsiSpace* s, const TsiHeap* h) {
    return h->regions != 0 && (h->regions + 1) * s->classes->c[TSI_CLASS_REGION].slab_bytes > TSI_RING_BYTES;
}

/* Returns true if objects of the current region would have been as fast by class: no handle was issued there, and
 * nothing grew where it was. [owner, in bracket] */
static bool suits_classes(const TsiHeap* h, const TsiRegion* r) {
    return tsi_load_relaxed(&r->heap_at) != 0 && tsi_load_relaxed(&h->last) == NULL;
}

/* Makes another region current, where `bytes` fit; adds what was bumped in the last one to h->bumped, and counts a slow
 * path. Returns false in two cases. The classes take over: h->bumps is false, and h has no region. Or there is no
 * memory or a budget is in the way (b->budget.hard): then the region that was current stays, for smaller objects,
 * unless it had to go. [owner, in bracket] */
static bool next_region(TsiBinding* b, TsiHeap* h, size_t bytes) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t rel = tsi_load_relaxed(&r->rel);
    h->bumped += rel;
    uint32_t takes = tsi_load_relaxed(&h->takes);
    bool suits = suits_classes(h, r);
    bool stop = goes_over(b, h);
    bool again = !stop && use_again(b, h, bytes, &stop) && tsi_region_room(tsi_load_relaxed(&h->region)) >= bytes;
    bool over = stop || (h->ring && is_full(&b->arena->space, h));
    if (!again && over) {
        h->bumps = false;
        h->looked = 0;
        tsi_heap_set_region(b, h, &tsi_no_region);
        return false;
    }

    if (again && suits) h->again += rel;
    if (!again && !take_region(b, h, bytes)) {
        if (tsi_load_relaxed(&h->region) == r) h->bumped -= rel;
        return false;
    }

    tsi_count_slow(b, h, TSI_CLASS_REGION, tsi_load_relaxed(&h->takes) == takes ? TSI_SLOW_FULL : TSI_SLOW_MISS);
    return true;
}

/* Returns true if few objects live in the region, by counts, so that some pages are likely to have none.
 * [owner, in bracket] */
static bool is_sparse(const TsiRegion* r) {
    uint32_t gone = tsi_load_relaxed(&r->freed) + tsi_region_objects(tsi_load_relaxed(&r->word));
    uint32_t live = tsi_load_relaxed(&r->issued) - gone, pages = tsi_load_relaxed(&r->rel) / TSI_REGION_MIN;
    return live <= pages + pages / 2;
}

void tsi_bump_thin(TsiBinding* b, TsiHeap* h) {
    TsiSpace* s = &b->arena->space;
    uint64_t bytes = tsi_load_relaxed(&h->slab_bytes);
    if (h->bumps || h->ring || h->regions == 0) return;
    if (h->looked == 0 && bytes < h->thin_at) return;

    uint32_t at = h->looked != 0 ? h->looked : tsi_load_relaxed(&h->slabs);
    bool found = false;
    for (unsigned steps = 0; at != 0 && steps < STEPS && !found; steps++) {
        uint32_t slab_id = at - 1;
        at = tsi_slab(s, slab_id)->next;
        unsigned cls = tsi_class_of_slab(s, slab_id);
        if (!tsi_class_is_region(cls)) continue;
        const TsiRegion* r = tsi_region(s, slab_id);
        found = !r->solo && !tsi_load_relaxed(&r->claimed) && is_sparse(r);
        if (found) tsi_partial_thin(s, cls, slab_id);
    }
    h->looked = at;
    if (at == 0) h->thin_at = bytes + bytes / 4;
}

/* ---- objects ---- */

/* Takes the region's next `bytes`, a multiple of TSI_GRANULE, at `align`, a power of two and at least TSI_GRANULE. A
 * gap before them has a start of its own, which ends the object before it. r may be tsi_no_region. Returns their
 * address, or NULL, changing nothing, if they do not fit. [owner, in bracket] */
static void* take_aligned(TsiRegion* r, uint32_t bytes, size_t align) {
    uint32_t rel = tsi_load_relaxed(&r->rel), start = (uint32_t)tsi_align_up(rel, align);
    if (r == &tsi_no_region || start + bytes > tsi_region_room(r)) return NULL;
    if (start != rel) {
        uint32_t gaps = tsi_load_relaxed(&r->gap_granules) + ((start - rel) >> TSI_GRANULE_SHIFT);
        tsi_store_relaxed(&tsi_load_relaxed(&r->map)[rel >> TSI_GRANULE_SHIFT],
                          (uint8_t)(tsi_region_life(r) | TSI_MARK_GAP));
        tsi_store_relaxed(&r->gap_granules, gaps); /* before `rel`: tsi_region_sum */
        tsi_store_release(&r->rel, start);         /* as in tsi_bump_take */
    }
    return tsi_bump_take(r, start, bytes);
}

/* Takes bytes like take_aligned, under a profile, also beyond its mark (r->lim), and lets the profile count them
 * (tsi_profile_bumped). Returns like that. [owner, in bracket] */
static TSI_COLD void* take_marked(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t bytes, size_t align) {
    bool first = tsi_load_relaxed(&r->rel) == 0; /* of a heap that has waited for the phase */
    void* p = take_aligned(r, bytes, align);
    if (p != NULL) tsi_profile_bumped(b, h, bytes, first);
    return p;
}

/* Begins an empty region of at least `bytes` again, among the first LOOK of h->empty_regions, and takes it off that
 * list, with those before it that are large enough and cannot be used. The region does not become current. Takes the
 * stripe. Returns it, or NULL if there is none. [owner, in bracket] */
static TsiRegion* empty_region_of(TsiBinding* b, TsiHeap* h, size_t bytes) {
    TsiSpace* s = &b->arena->space;
    uint32_t* at = &h->empty_regions;
    for (unsigned looks = 0; *at != 0 && looks < LOOK; looks++) {
        uint32_t slab_id = *at - 1;
        TsiRegion* r = tsi_region(s, slab_id);
        if ((size_t)1 << tsi_load_relaxed(&r->size_log2) < bytes) {
            at = &tsi_slab(s, slab_id)->prev;
            continue;
        }
        *at = tsi_slab(s, slab_id)->prev;
        r->in_empties = false;
        if (begin_again(b, h, slab_id)) return r;
    }
    return NULL;
}

/* Gives a large object of `size` bytes that grows a region alone, with a quarter more room if there is memory, which
 * does not become current: an empty one of h's or a new one. So it stays the last object there, whatever else is
 * bumped, even where the heap allocates by size class by now. Raises h->solo and h->bumped and counts a slow path.
 * Returns the object; NULL for heaps of the ring, in shared mode and with TSI_BUMP_OFF, for size > TSI_SOLO_MAX, where
 * h->solo is ALONE, or without memory or against a budget. [owner, in bracket] */
static void* alloc_solo(TsiBinding* b, TsiHeap* h, size_t size) {
    TsiSpace* s = &b->arena->space;
    size_t want = size + size / 4;
    const SlabOptions* options = &b->arena->options; /* in a bank nobody grows what is in a region */
    bool bumps = !h->ring && options->bump != TSI_BUMP_OFF && options->shared == 0;
    if (!bumps || size > TSI_SOLO_MAX || h->solo == ALONE) return NULL;

    TsiRegion* r = empty_region_of(b, h, want);
    unsigned rank, least = TSI_RANK_PAGE;
    while (s->classes->c[tsi_region_class(least)].slab_bytes < size) least++;
    for (rank = least; s->classes->c[tsi_region_class(rank)].slab_bytes < want;) rank++;
    for (uint32_t slab_id; r == NULL; rank--) {
        if (tsi_slab_take(b, h, tsi_region_class(rank), &slab_id)) r = tsi_region(s, slab_id);
        else if (rank == least) return NULL;
    }

    r->solo = true;
    h->solo++;
    uint32_t bytes = tsi_bump_bytes(size);
    h->bumped += bytes; /* so the next phase may have room for it */
    void* p = tsi_bump_take(r, tsi_load_relaxed(&r->rel), bytes);
    if (TSI_UNLIKELY(b->profile_mean != 0)) tsi_profile_solo(b, r, bytes);
    tsi_count_slow(b, h, TSI_CLASS_REGION, TSI_SLOW_MISS);
    return p;
}

void* tsi_bump_alloc(TsiBinding* b, TsiHeap* h, size_t size, size_t align, bool named) {
    if (size > TSI_BUMP_MAX) return align == TSI_ALIGN_GROWS ? alloc_solo(b, h, size) : NULL;
    if (!h->bumps || align > TSI_BUMP_ALIGN_MAX) return NULL;
    if (align < TSI_GRANULE) align = TSI_GRANULE;
    uint32_t bytes = tsi_bump_bytes(size);
    const TsiSpace* s = &b->arena->space;
    TsiRegion* r = tsi_load_relaxed(&h->region);
    if (TSI_UNLIKELY(named) && r != &tsi_no_region && is_spent(s, r)) tsi_bump_drop(b, h);
    r = tsi_load_relaxed(&h->region);
    bool profiled = b->profile_mean != 0;
    void* p = TSI_UNLIKELY(profiled) ? take_marked(b, h, r, bytes, align) : take_aligned(r, bytes, align);
    if (p != NULL) return p;

    do { /* each turn takes another region: reused ones have generations left */
        if (!next_region(b, h, bytes)) return NULL;
        r = tsi_load_relaxed(&h->region);
    } while (TSI_UNLIKELY(named) && is_spent(s, r));
    p = take_aligned(r, bytes, align);
    if (TSI_UNLIKELY(profiled) && p != NULL) tsi_profile_bumped(b, h, bytes, true);
    return p;
}

bool tsi_bump_keep_empty(TsiBinding* b, TsiHeap* h, TsiRegion* r) {
    TsiSpace* s = &b->arena->space;
    uint32_t slab_id = tsi_region_id(s, r);
    if (!tsi_bracket_enter(b, h, tsi_busy_all(h))) return true;

    bool mine = tsi_load_relaxed(&r->heap_at) == tsi_heap_at(h) && h->primary == h->index;
    mine = mine && (h->bumps || r->solo);
    if (mine && r != tsi_load_relaxed(&h->region) && !r->in_empties) {
        tsi_slab(s, slab_id)->prev = h->empty_regions;
        h->empty_regions = slab_id + 1;
        r->in_empties = true;
        not_solo(h, r);
    } else if (!mine) { /* stays empty until a scavenge */
        tsi_count(&tsi_heap(b->arena, h->primary)->takes);
    }

    tsi_bracket_leave(b, h);
    tsi_changed(b->arena);
    return true;
}

bool tsi_bump_holds_any(const TsiRegion* r, uint64_t at, size_t size, uint8_t gen) {
    uint32_t rel = tsi_load_relaxed(&r->rel), granule = (uint32_t)(at >> TSI_GRANULE_SHIFT);
    if (size > rel || at + size > rel) return false;
    return tsi_region_granules_in(r, granule, rel >> TSI_GRANULE_SHIFT, gen) >= (size + TSI_GRANULE - 1) / TSI_GRANULE;
}

TsiFast tsi_bump_grow_missed(TsiBinding* b, const void* p, size_t size, TsiHeap** out) {
    TsiSpace* s = &b->arena->space;
    TsiRegion* r = (TsiRegion*)(uintptr_t)tsi_load_relaxed(&b->busy);
    TsiHeap* h = (TsiHeap*)(void*)((uint8_t*)b->heaps_base + tsi_load_relaxed(&r->heap_at));
    if (tsi_load_relaxed(&h->word) != b->live_word) return TSI_FAST_MISSED;

    uint32_t start = (uint32_t)((const uint8_t*)p - tsi_load_relaxed(&r->base)), rel = tsi_load_relaxed(&r->rel);
    uint32_t granule = start >> TSI_GRANULE_SHIFT;
    if ((start & (TSI_GRANULE - 1)) != 0 || tsi_load_relaxed(&tsi_load_relaxed(&r->map)[granule]) != tsi_region_life(r))
        return TSI_FAST_MISSED;
    uint32_t usable = (uint32_t)tsi_region_size_at(s, tsi_region_id(s, r), granule);
    if (size > usable) {
        uint32_t to = start + (((uint32_t)size + TSI_GRANULE - 1) & ~(TSI_GRANULE - 1u));
        bool last = tsi_load_relaxed(&h->region) == r && start + usable == rel;
        if (!last || to > tsi_load_relaxed(&r->lim) || !tsi_region_grows(r, rel)) return TSI_FAST_MISSED;
        tsi_store_release(&r->rel, to); /* as in tsi_bump_take */
        tsi_store_relaxed(&h->last, p);
        tsi_store_relaxed(&h->last_end, to);
    } else if (size < usable / 2) {
        return TSI_FAST_MISSED;
    }

    tsi_bracket_clear(b);
    *out = h;
    return TSI_LIKELY(tsi_load_relaxed(&h->word) == b->live_word) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

bool tsi_bump_grow(TsiBinding* b, const TsiPlace* at, size_t size) {
    TsiSpace* s = &b->arena->space;
    TsiRegion* r = tsi_region(s, at->slab_id);
    const _Atomic uint64_t* tag_word = &tsi_slab(s, at->slab_id)->tag;
    uint64_t tag = tsi_load_relaxed(tag_word); /* not heap_at, which a handle clears */
    TsiHeap* h = tsi_heap(b->arena, tsi_tag_index(tag));
    if (tsi_tag_state(tag) != TSI_SLAB_OWNED || size > s->classes->c[at->cls].slab_bytes || !tsi_heap_is_live(b, h))
        return false;
    if (!tsi_bracket_enter(b, h, tsi_busy_all(h))) return false;

    bool current = tsi_load_relaxed(&h->region) == r;
    uint32_t start = tsi_region_granule(s, at) << TSI_GRANULE_SHIFT, rel = tsi_load_relaxed(&r->rel);
    uint32_t end = start + ((uint32_t)size + TSI_GRANULE - 1) / TSI_GRANULE * TSI_GRANULE;
    bool last = tsi_load_relaxed(tag_word) == tag && (current || r->solo);
    last = last && end > rel && tsi_granule_check(s, at) == TSI_FREE_OK;
    last = last && start + tsi_region_size_at(s, at->slab_id, start >> TSI_GRANULE_SHIFT) == rel;
    bool profiled = b->profile_mean != 0;
    bool ok = last && end <= (TSI_UNLIKELY(profiled) ? tsi_region_room(r) : tsi_load_relaxed(&r->lim));
    ok = ok && tsi_region_grows(r, rel);

    if (ok && TSI_UNLIKELY(profiled)) tsi_profile_grown(b, h, r, end);
    if (ok) tsi_store_release(&r->rel, end); /* as in tsi_bump_take */
    if (ok && current) {
        tsi_store_relaxed(&h->last, tsi_load_relaxed(&r->base) + start);
        tsi_store_relaxed(&h->last_end, end);
    }
    tsi_bracket_leave(b, h);
    return ok;
}

/* ---- frees of others ---- */

int tsi_bump_free_shared(TsiArena* a, const TsiPlace* at, uint32_t seq, uint32_t generation, bool fill, uint64_t* tag) {
    TsiSpace* s = &a->space;
    return tsi_bump_free_in_life(tsi_slab(s, at->slab_id), tsi_region(s, at->slab_id), tsi_place_address(s, at),
                                 tsi_tag(seq, 0, 0), generation, fill, tag);
}

TsiRegion tsi_no_region;

void tsi_bump_drop(TsiBinding* b, TsiHeap* h) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    h->bumped += tsi_load_relaxed(&r->rel);
    h->empty_regions = h->looked = h->solo = 0;
    tsi_heap_set_region(b, h, &tsi_no_region);
}
