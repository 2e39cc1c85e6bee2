/*
 * partial.c - see partial.h.
 *
 * A sweep claims orphans with dead pages under the stripe and gives the pages back without it. In between the tag says
 * PARTIAL: late frees go on, but nobody else returns the slab, so its pages cannot be another slab's by then. The
 * thread that makes it an ORPHAN again looks whether it was completed, or released, in between.
 */
#include "heap/partial.h"

#include "mem/purge.h"
#include "mem/region.h"

/* Returns a bit for each page of a slab that no live slot touches and that has not gone back to the system; of a
 * region, for each part of *page_bytes, a page or more. Sets *page_bytes in any case. Returns 0 where pages never go
 * alone: in slabs of one page or more than 32 that are no regions, large objects, and where pages stay by policy.
 * [any thread, needs no lock] */
static uint64_t dead_pages(const TsiSpace* s, unsigned cls, uint32_t slab_id, size_t* page_bytes) {
    const TsiClass* shape = &s->classes->c[cls];
    size_t page = tsi_os.page_bytes, pages = shape->slab_bytes / page;
    *page_bytes = page;
    if (tsi_class_is_region(cls))
        return pages < 2 || !tsi_space_gives_back(s) ? 0 : tsi_region_dead_parts(s, cls, slab_id, page_bytes);
    if (cls == TSI_CLASS_LARGE || pages < 2 || pages > 32) return 0;
    if (!tsi_space_gives_back(s)) return 0;
    uint32_t live_pages = 0, first = tsi_first_line(shape, slab_id);
    unsigned shift = tsi_log2(page);

    for (uint32_t i = 0; i < 1u << shape->lines_log2; i++) {
        uint64_t live = tsi_line_live(s, cls, first + i);
        while (live != 0) { /* a live slot answers for all of its page */
            unsigned slot = tsi_ctz64(live);
            size_t from = ((size_t)i << shape->line_shift) + tsi_class_offset(shape, slot);
            for (size_t p = from >> shift; p <= (from + shape->size - 1) >> shift; p++) live_pages |= 1u << p;
            live &= ~(tsi_partial_slots(shape, slot) | 1ull << slot);
        }
    }

    uint32_t all = pages == 32 ? ~0u : (1u << pages) - 1;
    return all & ~live_pages & ~tsi_load_relaxed(&tsi_slab(s, slab_id)->gone);
}

/* Notes pages, bits as from dead_pages, as gone to the system, in the region's or the slab's `gone`. Nobody else writes
 * this. [slab claimed, or owner, in bracket] */
static void note_gone(TsiSpace* s, unsigned cls, uint32_t slab_id, uint64_t pages) {
    TsiSlab* slab = tsi_slab(s, slab_id);
    if (tsi_class_is_region(cls)) {
        TsiRegion* r = tsi_region(s, slab_id);
        tsi_store_relaxed(&r->gone, tsi_load_relaxed(&r->gone) | pages);
    } else {
        tsi_store_relaxed(&slab->gone, tsi_load_relaxed(&slab->gone) | (uint32_t)pages);
    }
}

void tsi_partial_claim(TsiSweep* sweep, unsigned cls, uint32_t slab_id) {
    TsiSlab* slab = tsi_slab(&sweep->arena->space, slab_id);
    uint64_t old = tsi_load_seq(&slab->tag);
    size_t page;
    if (tsi_tag_state(old) != TSI_SLAB_ORPHAN || dead_pages(&sweep->arena->space, cls, slab_id, &page) == 0) return;
    /* seq_cst: decides between us and the claims of settle.c, which want ORPHAN. Pairs with the freer in free.c, as
     * below. */
    if (!tsi_cas_seq(&slab->tag, &old, (old & ~(uint64_t)TSI_SLAB_STATE) | TSI_SLAB_PARTIAL)) return;
    tsi_store_relaxed(&slab->extra, sweep->partial);
    sweep->partial = slab_id + 1;
}

size_t tsi_partial_dead_bytes(const TsiSpace* s, unsigned cls, uint32_t slab_id) {
    size_t page;
    return (size_t)tsi_popcount(dead_pages(s, cls, slab_id, &page)) * page;
}

/* Adjoining pages that go together. */
typedef struct Run {
    uint8_t *from, *to;
} Run;

/* Gives the run's pages back to the system, if it has any. [no other user of the pages] */
static void run_end(TsiSpace* s, const Run* run) {
    if (run->to != run->from) tsi_space_purge_pages(s, run->from, (size_t)(run->to - run->from));
}

/* Adds `bytes` at p, whole pages, to the run; if they do not follow it at once, first gives its pages back to the
 * system and begins another there. [no other user of the pages] */
static void run_add(TsiSpace* s, Run* run, uint8_t* p, size_t bytes) {
    if (p != run->to) {
        run_end(s, run);
        run->from = p;
    }
    run->to = p + bytes;
}

/* Gives back the pages of a slab that no object touches, and notes them as gone; the last of them stay in the run for
 * the next slab's, and go with run_end. Returns their bytes. [slab claimed] */
static size_t give_dead(TsiSpace* s, unsigned cls, uint32_t slab_id, Run* run) {
    size_t page, bytes = 0;
    uint8_t* payload = tsi_slab_payload(s, &s->classes->c[cls], slab_id);
    uint64_t dead = dead_pages(s, cls, slab_id, &page);
    /* or its pages come back by themselves */
    if (dead != 0 && cls == TSI_CLASS_HUGE && s->chunks[tsi_slab_chunk(slab_id)].huge)
        tsi_space_avoid_huge(s, tsi_slab_chunk(slab_id));
    note_gone(s, cls, slab_id, dead);
    for (; dead != 0; dead &= dead - 1) {
        run_add(s, run, payload + tsi_ctz64(dead) * page, page);
        bytes += page;
    }
    return bytes;
}

void tsi_partial_give(TsiSweep* sweep, uint32_t* ids, unsigned n) {
    TsiSpace* s = &sweep->arena->space;
    Run run = {NULL, NULL};
    for (unsigned k = 0; k < n; k++) { /* ids ascend: adjoining pages of neighbours make one run */
        unsigned cls = tsi_class_of_slab(s, ids[k]);
        size_t bytes = give_dead(s, cls, ids[k], &run);
        sweep->bytes += bytes;
        sweep->purged += bytes;
        tsi_sweep_purged(sweep, cls, bytes);
    }
    run_end(s, &run);
}

void tsi_partial_thin(TsiSpace* s, unsigned cls, uint32_t slab_id) {
    TsiRegion* r = tsi_region(s, slab_id);
    size_t page, pages = s->classes->c[cls].slab_bytes / tsi_os.page_bytes;
    uint64_t parts = dead_pages(s, cls, slab_id, &page), live[TSI_REGION_PAGES / 64];
    Run run = {NULL, NULL};
    if (pages < 2 || !tsi_space_gives_back(s)) return;
    tsi_region_live_pages(s, slab_id, live); /* parts are pages, but in the largest regions */
    bool huge = cls == TSI_CLASS_HUGE && s->chunks[tsi_slab_chunk(slab_id)].huge;
    if (huge) tsi_space_avoid_huge(s, tsi_slab_chunk(slab_id)); /* as in give_dead */

    uint64_t gone = tsi_load_relaxed(&r->gone);
    uint8_t* payload = tsi_slab_payload(s, &s->classes->c[cls], slab_id);
    for (size_t n = 0; n < pages; n++) {
        if (tsi_bit_is(live, (unsigned)n) || (gone >> n * tsi_os.page_bytes / page & 1) != 0) continue;
        run_add(s, &run, payload + n * tsi_os.page_bytes, tsi_os.page_bytes);
    }
    run_end(s, &run);
    note_gone(s, cls, slab_id, parts);
}

uint64_t tsi_partial_let_go(TsiSpace* s, uint32_t slab_id) {
    _Atomic uint64_t* tag = &tsi_slab(s, slab_id)->tag;
    uint64_t old = tsi_load_relaxed(tag);
    uint64_t now = (old & ~(uint64_t)TSI_SLAB_STATE) | TSI_SLAB_ORPHAN;
    /* seq_cst, then the words: a freer sets its bit, then looks at the tag. At least one of us sees that the slab is
     * complete. */
    while (!tsi_cas_seq(tag, &old, now)) now = (old & ~(uint64_t)TSI_SLAB_STATE) | TSI_SLAB_ORPHAN;
    return now;
}

/* Returns true if no live object may be in a page that the freed one at *at, of `bytes`, reaches into, also where only
 * dead_pages can tell. Each late free asks this; the answer is normally no. [any thread, needs no lock] */
static bool page_may_be_dead(const TsiSpace* s, const TsiPlace* at, size_t bytes) {
    const TsiClass* shape = &s->classes->c[at->cls];
    uint32_t page = (uint32_t)tsi_os.page_bytes;
    if (tsi_class_is_region(at->cls)) { /* any that the object reaches into */
        uint32_t granule = tsi_region_granule(s, at), of_page = page >> TSI_GRANULE_SHIFT,
                 end = granule + (uint32_t)(bytes >> TSI_GRANULE_SHIFT);
        for (uint32_t from = granule & ~(of_page - 1); from < end; from += of_page) {
            uint64_t live = 0;
            for (uint32_t g = from; g < from + of_page && live == 0; g += 64)
                live = tsi_region_live64(s, at->slab_id, g);
            if (live == 0) return true;
        }
        return false;
    }

    uint64_t in_page = tsi_partial_slots(shape, at->slot);
    if (in_page == 0) return true;
    uint32_t line = at->line_id, n = 1;
    if (shape->line_mask < page) {
        n = page >> shape->line_shift;
        line &= ~(n - 1);
    }
    for (uint32_t end = line + n; line < end; line++)
        if ((tsi_line_live(s, at->cls, line) & in_page) != 0) return false;
    return true;
}

bool tsi_partial_page_freed(TsiArena* a, const TsiPlace* at, uint64_t tag, TsiInc** inc, uint64_t* era) {
    TsiSpace* s = &a->space;
    const TsiClass* shape = &s->classes->c[at->cls];
    if (shape->slab_bytes <= tsi_os.page_bytes) return false; /* goes as a whole */

    size_t part, size = tsi_place_bytes(s, at);
    if (size == 0 || !page_may_be_dead(s, at, size)) return false;
    uint64_t dead = dead_pages(s, at->cls, at->slab_id, &part);
    if (dead == 0) return false;

    size_t from = ((size_t)(at->line_id - tsi_first_line(shape, at->slab_id)) << shape->line_shift) +
                  tsi_class_offset(shape, at->slot);
    uint64_t reached = ((2ull << (from + size - 1) / part) - 1) & ~((1ull << from / part) - 1);
    unsigned parts = tsi_popcount(dead & reached);
    if (parts == 0) return false;

    TsiInc* phase = *inc = tsi_inc(&a->phases, tsi_tag_index(tag));
    *era = tsi_inc_era(phase);
    uint64_t bytes = tsi_add_relaxed(&phase->late_bytes, parts * part) + parts * part;
    if (bytes < TSI_LATE_PAGES_BYTES) return false;
    tsi_store_relaxed(&phase->late_bytes, 0);
    return true;
}
