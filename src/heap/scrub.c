/* scrub.c - see scrub.h. */
#include "heap/scrub.h"

#include "account/refuse.h"
#include "state/liveness.h"

bool tsi_scrub_is_zero(const void* p, size_t n) {
    const uint64_t* word = p;
    for (size_t i = 0; i < n / sizeof *word; i += 2)
        if ((word[i] | word[i + 1]) != 0) return false;
    return true;
}

TsiInc* tsi_scrub_hold(TsiArena* a, uint32_t slab_id, uint32_t seq) {
    TsiPlace at = {.slab_id = slab_id};
    const _Atomic uint64_t* tag = &tsi_slab(&a->space, slab_id)->tag;
    TsiRef ref;
    while (tsi_tag_seq(tsi_load_seq(tag)) == seq && tsi_slab_ref(a, &at, &ref)) {
        TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
        tsi_lock_take(tsi_inc_lock(inc)); /* not counted: nothing of the phase's record changes */
        /* a slab stays in one phase for as long as its seq */
        if (tsi_tag_seq(tsi_load_seq(tag)) == seq) return inc;
        tsi_lock_give(tsi_inc_lock(inc));
    }
    return NULL;
}

void tsi_scrub_let_go(TsiInc* held) { tsi_lock_give(tsi_inc_lock(held)); }

/* Zeroes the live objects of a region whose life goes on. [stripe held] */
static void scrub_region(TsiSpace* s, uint32_t slab_id) {
    const TsiRegion* r = tsi_region(s, slab_id);
    uint8_t* base = tsi_load_relaxed(&r->base);
    uint32_t granules = tsi_load_relaxed(&r->rel) >> TSI_GRANULE_SHIFT;
    for (uint32_t from = 0; from < granules; from += 64) {
        uint64_t live = tsi_region_live64(s, slab_id, from);
        for (; live != 0; live &= live - 1) {
            uint32_t granule = from + tsi_ctz64(live);
            tsi_scrub(base + ((size_t)granule << TSI_GRANULE_SHIFT), tsi_region_size_at(s, slab_id, granule));
        }
    }
}

void tsi_scrub_live(TsiSpace* s, unsigned cls, uint32_t slab_id) {
    const TsiClass* shape = &s->classes->c[cls];
    if (cls == TSI_CLASS_LARGE) return;
    if (tsi_class_is_region(cls)) {
        scrub_region(s, slab_id);
        return;
    }

    for (uint32_t i = 0, first = tsi_first_line(shape, slab_id); i < 1u << shape->lines_log2; i++) {
        uint64_t live = tsi_line_live(s, cls, first + i);
        uint8_t* base = tsi_line(s, first + i)->base;
        for (; live != 0; live &= live - 1) tsi_scrub(base + tsi_class_offset(shape, tsi_ctz64(live)), shape->size);
    }
}

/* Zeroes `bytes` at p, the object at *at, if it lives in the slab's incarnation `seq` and is not zero; takes the stripe
 * meanwhile. Returns true if it has done so. [no lock, no bracket] */
static bool mended(TsiArena* a, const TsiPlace* at, uint32_t seq, void* p, size_t bytes) {
    TsiInc* held = tsi_scrub_hold(a, at->slab_id, seq);
    uint64_t remote;
    if (held == NULL) return false;
    bool its = tsi_slot_check(&a->space, at, seq, &remote) == TSI_FREE_OK && !tsi_scrub_is_zero(p, bytes);
    if (its) tsi_scrub(p, bytes);
    tsi_scrub_let_go(held);
    return its;
}

void tsi_scrub_given(TsiArena* a, void* p) {
    TsiPlace at;
    uint64_t tag;
    if (tsi_space_locate(&a->space, p, &at) != TSI_PLACE_OK || at.cls == TSI_CLASS_LARGE) return;
    if (!tsi_place_is_live(a, &at, &tag)) return; /* its phase has ended meanwhile */
    size_t bytes = tsi_place_bytes(&a->space, &at);
    if (TSI_LIKELY(tsi_scrub_is_zero(p, bytes))) return;
    if (mended(a, &at, tsi_tag_seq(tag), p, bytes)) tsi_refuse(a, SLAB_MISUSE_WRITE_AFTER_END, p);
}
