/*
 * living.h - what lives: at a place, in a line, in a slab, and in which phase. It only reads.
 */
#ifndef TSI_STATE_LIVING_H
#define TSI_STATE_LIVING_H

#include "state/arena.h"
#include "mem/region.h"

enum { TSI_FREE_OK = -1 }; /* else a SlabMisuse */

/* Of a slot of a line: as tsi_slot_check. */
TSI_INLINE int tsi_line_check(TsiLine* l, unsigned slot, uint32_t seq, uint64_t* remote) {
    /* acquire, and in this order: invariant F */
    *remote = tsi_load_acquire(&l->remote[slot >> 5]);
    uint64_t freed = tsi_load_acquire(&l->freed), avail = tsi_load_acquire(&l->avail);
    if (!tsi_remote_is(slot >> 5, *remote, seq)) return SLAB_MISUSE_STALE_FREE;
    bool gone = ((freed | avail) >> slot & 1) != 0 || (*remote & tsi_remote_bit(slot)) != 0;
    if (!gone) return TSI_FREE_OK;
    /* The line may have begun to serve another incarnation since its remote word was read. */
    bool still = tsi_remote_is(slot >> 5, tsi_load_acquire(&l->remote[slot >> 5]), seq);
    return still ? SLAB_MISUSE_DOUBLE_FREE : SLAB_MISUSE_STALE_FREE;
}
/* Returns why a granule whose map byte is `byte` is no live object in the life `gen` of its region: freed, in the
 * middle of one, or of an earlier life. */
SlabMisuse tsi_byte_refused(const TsiRegion* r, unsigned gen, unsigned byte, uint32_t granule);
/* The same of a granule of a region in the life `gen`. */
TSI_INLINE int tsi_byte_check(const TsiRegion* r, unsigned gen, uint32_t granule) {
    /* acquire: pairs with the mark of another freer, and with the owner's handing on of p */
    unsigned byte = tsi_load_acquire(&tsi_region_map(r)[granule]);
    if (byte == gen) return TSI_FREE_OK;
    return tsi_byte_refused(r, gen, byte, granule);
}
/* In the present life. */
int tsi_granule_check(const TsiSpace* s, const TsiPlace* at);
/* Misuse if the slot is not a live object of the slab incarnation seq, TSI_FREE_OK if it is. *remote is its remote
 * word. */
TSI_INLINE int tsi_slot_check(const TsiSpace* s, const TsiPlace* at, uint32_t seq, uint64_t* remote) {
    *remote = 0;
    if (tsi_class_is_region(at->cls)) return tsi_granule_check(s, at);
    return tsi_line_check(tsi_line(s, at->line_id), at->slot, seq, remote);
}
TSI_INLINE bool tsi_state_holds_objects(uint64_t tag) {
    unsigned state = tsi_tag_state(tag);
    return state == TSI_SLAB_OWNED || state == TSI_SLAB_ORPHAN || state == TSI_SLAB_PARTIAL;
}
/* TSI_FREE_OK when the place holds a live object now, else what a free of it is refused as; *tag is its slab's. */
int tsi_place_check(TsiArena* a, const TsiPlace* at, uint64_t* tag);
TSI_INLINE bool tsi_place_is_live(TsiArena* a, const TsiPlace* at, uint64_t* tag) {
    return tsi_place_check(a, at, tag) == TSI_FREE_OK;
}
/* Incarnation that a place's slab is in, whether the object lives or not; false when it is in none. */
bool tsi_slab_ref(TsiArena* a, const TsiPlace* at, TsiRef* ref);
/* Incarnation of a live object. */
bool tsi_place_ref(TsiArena* a, const TsiPlace* at, TsiRef* ref);

/* Live objects and bytes of a slab, and what it has issued. Words are read in the direction of invariant F. */
typedef struct TsiSlabSum {
    TsiTotals issued, live;
    unsigned twice; /* slots that an owner and another thread have both freed */
} TsiSlabSum;
TSI_INLINE TsiSlabSum tsi_region_told(TsiRegionSum r) {
    return (TsiSlabSum){{r.issued, r.issued_bytes}, {r.live, r.live_bytes}, r.twice};
}
/* Objects of a line that were ever handed out. A snapshot asks before it reads what is free: then it never takes a
 * slot that is handed out meanwhile for one that was freed. */
uint64_t tsi_line_handed_out(TsiLine* l);
/* Adds a line of which others have freed `remote_bits`. */
void tsi_line_sum(const TsiSpace* s, unsigned cls, uint32_t line_id, uint64_t issued, uint64_t remote_bits,
                  TsiSlabSum* sum);
TsiSlabSum tsi_slab_sum(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Live slots of a line, or granules of a region's KiB where live objects start: a bit each. */
uint64_t tsi_line_live(const TsiSpace* s, unsigned cls, uint32_t line_id);
/* True when no object of the slab is live. */
bool tsi_slab_is_empty(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Some line of a slab of a size class has enough free slots to be allocated from. */
bool tsi_slab_has_room(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Usable bytes of a live object. */
size_t tsi_place_bytes(const TsiSpace* s, const TsiPlace* at);

#endif
