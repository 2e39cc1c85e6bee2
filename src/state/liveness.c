/* liveness.c - see liveness.h. */
#include "state/liveness.h"

#include "mem/handle.h"

/* ---- places ---- */

SlabMisuse tsi_byte_refused(const TsiRegion* r, unsigned gen, unsigned byte, uint32_t granule) {
    if ((byte & TSI_GEN_BYTE) == gen) return SLAB_MISUSE_DOUBLE_FREE;
    /* A life begins at the first granule, and its `rel` is 0 before. Without that test a pointer of the life before is
     * taken for an interior one until the owner has reset `rel`. acquire: pairs with tsi_bump_take; both only tell one
     * refusal from another */
    bool begun = (tsi_load_acquire(&tsi_region_map(r)[0]) & TSI_GEN_BYTE) == gen;
    bool used = granule < tsi_load_acquire(&r->rel) >> TSI_GRANULE_SHIFT;
    return begun && used ? SLAB_MISUSE_INTERIOR_POINTER : SLAB_MISUSE_STALE_FREE;
}

int tsi_granule_check(const TsiSpace* s, const TsiPlace* at) {
    const TsiRegion* r = tsi_region(s, at->slab_id);
    /* seq_cst: pairs with tsi_region_open. After the flag of handles it pairs with ready.c, which ends a life and
     * then looks for the flag. */
    unsigned gen = tsi_region_gen(tsi_load_seq(&r->word));
    return gen != 0 ? tsi_byte_check(r, gen, tsi_region_granule(s, at)) : SLAB_MISUSE_STALE_FREE;
}

int tsi_place_check(TsiArena* a, const TsiPlace* at, uint64_t* tag) {
    uint64_t remote;
    *tag = tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->tag);
    if (!tsi_state_holds_objects(*tag) || tsi_class_of_line(&a->space, at->line_id) != at->cls)
        return SLAB_MISUSE_STALE_FREE;
    return tsi_slot_check(&a->space, at, tsi_tag_seq(*tag), &remote);
}

bool tsi_slab_ref(TsiArena* a, const TsiPlace* at, TsiRef* ref) {
    uint64_t tag;
    do {
        tag = tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->tag);
        if (!tsi_state_holds_objects(tag)) return false;
        if (tsi_tag_state(tag) == TSI_SLAB_OWNED) {
            *ref = tsi_load_acquire(&tsi_heap(a, tsi_tag_index(tag))->ref); /* before the tag is read again */
        } else {
            TsiInc* inc = tsi_inc(&a->phases, tsi_tag_index(tag));
            *ref = tsi_ref(tsi_inc_era(inc), tsi_tag_index(tag));
        }
        /* The heap's record may have passed to another incarnation: then the tag has changed first. */
    } while (tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->tag) != tag);
    return *ref != 0;
}

bool tsi_place_ref(TsiArena* a, const TsiPlace* at, TsiRef* ref) {
    uint64_t tag;
    return tsi_place_is_live(a, at, &tag) && tsi_slab_ref(a, at, ref);
}

/* ---- slabs ---- */

typedef struct LineState {
    uint64_t used, live, twice;
} LineState;

/* Returns the slots of a line as bits: `used`, all that the class has; `live`, those that are neither freed nor never
 * handed out; and `twice`, freed by the owner and by another thread. remote_bits: those that others have freed, read
 * before the call (F). Exact while the owner is idle. [any thread, needs no lock] */
static LineState line_state(const TsiSpace* s, unsigned cls, uint32_t line_id, uint64_t remote_bits) {
    TsiLine* l = tsi_line(s, line_id);
    uint64_t freed = tsi_load_acquire(&l->freed);
    uint64_t avail = tsi_load_acquire(&l->avail);
    LineState st = {s->classes->c[cls].full, 0, remote_bits & freed};
    st.live = st.used & ~(remote_bits | freed | avail);
    return st;
}

uint64_t tsi_line_handed_out(TsiLine* l) {
    /* pairs with refills: last, after the slots have left freed or avail */
    uint64_t issued = tsi_load_acquire(&l->issued);
    uint64_t avail = tsi_load_acquire(&l->avail); /* before the remote words */
    return avail != 0 ? issued - tsi_popcount(avail) : issued;
}

void tsi_line_sum(const TsiSpace* s, unsigned cls, uint32_t line_id, uint64_t issued, uint64_t remote_bits,
                  TsiSlabSum* sum) {
    LineState st = line_state(s, cls, line_id, remote_bits);
    uint64_t live = st.live != 0 ? tsi_popcount(st.live) : 0;
    uint64_t size = cls == TSI_CLASS_LARGE
                        ? tsi_slab_bytes_seen(s, cls, tsi_slab_id(tsi_line_chunk(line_id), tsi_line_number(line_id)))
                        : s->classes->c[cls].size;

    /* a snapshot that runs beside the owner */
    if ((int64_t)issued < (int64_t)live) issued = live;

    if (TSI_UNLIKELY(st.twice != 0)) sum->twice += tsi_popcount(st.twice);
    sum->live.objects += live;
    sum->live.bytes += live * size;
    sum->issued.objects += issued;
    sum->issued.bytes += issued * size;
}

/* Returns the slots of a line that other threads have freed since its slab entered its incarnation, a bit each.
 * [any thread, needs no lock] */
static uint64_t remote_bits_of(const TsiSpace* s, uint32_t line_id) {
    _Atomic uint64_t* r = tsi_remote(s, line_id);
    uint64_t w0 = tsi_load_seq(&r[0]); /* pairs with the freer's compare-exchange, see free_as_other */
    return tsi_remote_bits(w0, tsi_load_seq(&r[1]));
}

uint64_t tsi_line_live(const TsiSpace* s, unsigned cls, uint32_t line_id) {
    if (tsi_class_is_region(cls)) {
        /* The chunk may serve another class by now: a snapshot reads the tag again. */
        const TsiClass* shape = &s->classes->c[cls];
        uint32_t slab_id = tsi_slab_at(shape, line_id);
        return tsi_region_live64(s, slab_id, (line_id - tsi_first_line(shape, slab_id)) << 6);
    }
    return line_state(s, cls, line_id, remote_bits_of(s, line_id)).live;
}

TsiSlabSum tsi_slab_sum(const TsiSpace* s, unsigned cls, uint32_t slab_id) {
    const TsiClass* shape = &s->classes->c[cls];
    TsiSlabSum sum = {{0, 0}, {0, 0}, 0};
    if (tsi_class_is_region(cls)) return tsi_region_told(tsi_region_sum(s, slab_id));
    for (uint32_t i = 0, first = tsi_first_line(shape, slab_id); i < 1u << shape->lines_log2; i++) {
        uint64_t issued = tsi_line_handed_out(tsi_line(s, first + i));
        tsi_line_sum(s, cls, first + i, issued, remote_bits_of(s, first + i), &sum);
    }
    return sum;
}

bool tsi_slab_is_empty(const TsiSpace* s, unsigned cls, uint32_t slab_id) {
    if (tsi_class_is_region(cls)) return tsi_region_is_empty(s, slab_id);
    const TsiClass* shape = &s->classes->c[cls];
    for (uint32_t i = 0, first = tsi_first_line(shape, slab_id); i < 1u << shape->lines_log2; i++)
        if (line_state(s, cls, first + i, remote_bits_of(s, first + i)).live != 0) return false;
    return true;
}

bool tsi_slab_has_room(const TsiSpace* s, unsigned cls, uint32_t slab_id) {
    const TsiClass* shape = &s->classes->c[cls];
    for (uint32_t i = 0, first = tsi_first_line(shape, slab_id); i < 1u << shape->lines_log2; i++) {
        TsiLine* l = tsi_line(s, first + i);
        uint64_t bits = remote_bits_of(s, first + i);
        bits |= tsi_load_acquire(&l->freed); /* invariant F: remote, freed, avail */
        bits |= tsi_load_acquire(&l->avail);
        if (tsi_popcount(bits & shape->full) >= shape->threshold) return true;
    }
    return false;
}

size_t tsi_place_bytes(const TsiSpace* s, const TsiPlace* at) {
    if (at->cls == TSI_CLASS_LARGE) return tsi_slab_bytes(s, at->cls, at->slab_id);
    if (tsi_class_is_region(at->cls)) return tsi_region_size_at(s, at->slab_id, tsi_region_granule(s, at));
    return s->classes->c[at->cls].size;
}
