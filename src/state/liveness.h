/*
 * liveness.h - which objects live: at a place, in a line, in a slab, and in which phase. All of it only reads.
 * [any thread]
 */
#ifndef TSI_STATE_LIVENESS_H
#define TSI_STATE_LIVENESS_H

#include "state/arena.h"
#include "mem/region.h"

enum { TSI_FREE_OK = -1 }; /* otherwise a SlabMisuse */

/* Checks a slot of a line, for tsi_slot_check. */
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
/* Returns why a granule with map byte `byte` is not a live object in the region's life `gen`: freed, inside an object,
 * or of an earlier life. */
SlabMisuse tsi_byte_refused(const TsiRegion* r, unsigned gen, unsigned byte, uint32_t granule);
/* Checks a granule of a region in the life `gen`, for tsi_granule_check. */
TSI_INLINE int tsi_byte_check(const TsiRegion* r, unsigned gen, uint32_t granule) {
    /* acquire: pairs with the mark of another freer, and with the owner's handing on of p */
    unsigned byte = tsi_load_acquire(&tsi_region_map(r)[granule]);
    if (byte == gen) return TSI_FREE_OK;
    return tsi_byte_refused(r, gen, byte, granule);
}
/* Checks a granule of a region in its present life. Returns TSI_FREE_OK or a SlabMisuse. */
int tsi_granule_check(const TsiSpace* s, const TsiPlace* at);
/* Returns TSI_FREE_OK if the slot is a live object of the slab incarnation seq, otherwise a SlabMisuse. Sets *remote to
 * its remote word. */
TSI_INLINE int tsi_slot_check(const TsiSpace* s, const TsiPlace* at, uint32_t seq, uint64_t* remote) {
    *remote = 0;
    if (tsi_class_is_region(at->cls)) return tsi_granule_check(s, at);
    return tsi_line_check(tsi_line(s, at->line_id), at->slot, seq, remote);
}
/* Returns true if a slab with this tag may hold objects. */
TSI_INLINE bool tsi_state_holds_objects(uint64_t tag) {
    unsigned state = tsi_tag_state(tag);
    return state == TSI_SLAB_OWNED || state == TSI_SLAB_ORPHAN || state == TSI_SLAB_PARTIAL;
}
/* Returns TSI_FREE_OK if the place holds a live object now, otherwise the SlabMisuse of a free of it. Sets *tag to its
 * slab's. */
int tsi_place_check(TsiArena* a, const TsiPlace* at, uint64_t* tag);
TSI_INLINE bool tsi_place_is_live(TsiArena* a, const TsiPlace* at, uint64_t* tag) {
    return tsi_place_check(a, at, tag) == TSI_FREE_OK;
}
/* Sets *ref to the incarnation of a place's slab, whether the object lives or not. Returns false if it is in none. */
bool tsi_slab_ref(TsiArena* a, const TsiPlace* at, TsiRef* ref);
/* Sets *ref to the incarnation of a live object. Returns false if the place holds none. */
bool tsi_place_ref(TsiArena* a, const TsiPlace* at, TsiRef* ref);

/* Objects and bytes of a slab, issued and live. Words are read in the direction of invariant F. */
typedef struct TsiSlabSum {
    TsiTotals issued, live;
    unsigned twice; /* slots that an owner and another thread have both freed */
} TsiSlabSum;
/* Returns a region's sum in the form of a slab's. */
TSI_INLINE TsiSlabSum tsi_region_told(TsiRegionSum sum) {
    return (TsiSlabSum){{sum.issued, sum.issued_bytes}, {sum.live, sum.live_bytes}, sum.twice};
}
/* Returns the number of objects of a line that were ever handed out. A snapshot asks before it reads the free slots, so
 * that it never takes a slot handed out in between for a freed one. */
uint64_t tsi_line_handed_out(TsiLine* l);
/* Adds a line, in which others have freed `remote_bits`, to *sum. */
void tsi_line_sum(const TsiSpace* s, unsigned cls, uint32_t line_id, uint64_t issued, uint64_t remote_bits,
                  TsiSlabSum* sum);
/* Sums a slab's lines or a region's objects. */
TsiSlabSum tsi_slab_sum(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Returns the live slots of a line, or the granules of a region's KiB where live objects start: a bit each. */
uint64_t tsi_line_live(const TsiSpace* s, unsigned cls, uint32_t line_id);
/* Returns true if no object of the slab is live. */
bool tsi_slab_is_empty(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Returns true if a line of the slab, of a size class, has enough free slots to be allocated from. */
bool tsi_slab_has_room(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Returns the usable bytes of a live object. */
size_t tsi_place_bytes(const TsiSpace* s, const TsiPlace* at);

#endif
