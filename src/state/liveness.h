/*
 * liveness.h - which objects live: at a place, in a line, in a slab, and in which phase. All of it only reads.
 */
#ifndef TSI_STATE_LIVENESS_H
#define TSI_STATE_LIVENESS_H

#include "state/arena.h"
#include "mem/region.h"

enum { TSI_FREE_OK = -1 }; /* otherwise a SlabMisuse */

/* Returns TSI_FREE_OK if a slot of the line is a live object of the slab incarnation `seq`; SLAB_MISUSE_DOUBLE_FREE if
 * it is free there, or SLAB_MISUSE_STALE_FREE if the line has left `seq`. Sets *remote to the slot's remote word, as
 * read first. [any thread, needs no lock] */
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
/* Returns why a granule whose map byte is `byte` is not a live object in the region's life `gen`, 1..63: freed
 * (DOUBLE_FREE), inside an object (INTERIOR_POINTER), or of an earlier life (STALE_FREE).
 * [any thread, needs no lock] */
SlabMisuse tsi_byte_refused(const TsiRegion* r, unsigned gen, unsigned byte, uint32_t granule);
/* Returns TSI_FREE_OK if a live object starts at the granule in the region's life `gen`, 1..63, otherwise the
 * SlabMisuse of tsi_byte_refused. [any thread, needs no lock] */
TSI_INLINE int tsi_byte_check(const TsiRegion* r, unsigned gen, uint32_t granule) {
    /* acquire: pairs with the mark of another freer, and with the owner's handing on of p */
    unsigned byte = tsi_load_acquire(&tsi_region_map(r)[granule]);
    if (byte == gen) return TSI_FREE_OK;
    return tsi_byte_refused(r, gen, byte, granule);
}
/* Returns TSI_FREE_OK if a live object starts at the granule that `at` names, in the region's present life, otherwise a
 * SlabMisuse: of tsi_byte_refused, or STALE_FREE if it is in no life. at->cls is one of regions. Tells nothing.
 * [any thread, needs no lock] */
int tsi_granule_check(const TsiSpace* s, const TsiPlace* at);
/* Returns TSI_FREE_OK if the place, of a class with slots, of LARGE or of regions, is a live object of the slab
 * incarnation `seq`, otherwise the SlabMisuse of tsi_line_check or tsi_granule_check. Sets *remote to the slot's remote
 * word, as read first, either way; to 0 in a region, whose present life is judged instead of `seq`.
 * [any thread, needs no lock] */
TSI_INLINE int tsi_slot_check(const TsiSpace* s, const TsiPlace* at, uint32_t seq, uint64_t* remote) {
    *remote = 0;
    if (tsi_class_is_region(at->cls)) return tsi_granule_check(s, at);
    return tsi_line_check(tsi_line(s, at->line_id), at->slot, seq, remote);
}
/* Returns true if a slab with this tag may hold objects: OWNED, ORPHAN or PARTIAL. [any thread, needs no lock] */
TSI_INLINE bool tsi_state_holds_objects(uint64_t tag) {
    unsigned state = tsi_tag_state(tag);
    return state == TSI_SLAB_OWNED || state == TSI_SLAB_ORPHAN || state == TSI_SLAB_PARTIAL;
}
/* Returns TSI_FREE_OK if the place, of tsi_space_locate with TSI_PLACE_OK, holds a live object now, otherwise the
 * SlabMisuse that a free of it would be; STALE_FREE if its slab holds none or the chunk has another class. Sets *tag to
 * its slab's tag, as read before, either way. Tells nothing. [any thread, needs no lock] */
int tsi_place_check(TsiArena* a, const TsiPlace* at, uint64_t* tag);
/* Returns true if the place holds a live object now. Sets *tag to its slab's tag, as read before.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_place_is_live(TsiArena* a, const TsiPlace* at, uint64_t* tag) {
    return tsi_place_check(a, at, tag) == TSI_FREE_OK;
}
/* Sets *ref to the incarnation that the place's slab belongs to, by its heap or as an orphan, whether the object lives
 * or not. Returns true; false if it belongs to none, and then *ref means nothing. [any thread, needs no lock] */
bool tsi_slab_ref(TsiArena* a, const TsiPlace* at, TsiRef* ref);
/* Sets *ref to the incarnation of the object at the place. Returns true; false if the place holds no live object, or
 * its slab has just left: *ref means nothing then. [any thread, needs no lock] */
bool tsi_place_ref(TsiArena* a, const TsiPlace* at, TsiRef* ref);

/* Objects and bytes of a slab, issued and live. Words are read in the direction of invariant F. */
typedef struct TsiSlabSum {
    TsiTotals issued, live;
    unsigned twice; /* slots that an owner and another thread have both freed */
} TsiSlabSum;
/* Returns a region's sum in the form of a slab's. [any thread, needs no lock] */
TSI_INLINE TsiSlabSum tsi_region_told(TsiRegionSum sum) {
    return (TsiSlabSum){{sum.issued, sum.issued_bytes}, {sum.live, sum.live_bytes}, sum.twice};
}
/* Returns the number of slots of a line that were handed out in its slab's incarnation, those freed since included:
 * `issued` less those in `avail`. A snapshot asks before it reads the free slots, so that it never takes a slot handed
 * out in between for a freed one. [any thread, needs no lock] */
uint64_t tsi_line_handed_out(TsiLine* l);
/* Adds a line's objects and bytes, issued and live, to *sum, and to sum->twice the slots that the owner and another
 * thread have freed; a large object with its own bytes. issued: slots, of tsi_line_handed_out, asked before;
 * remote_bits: its slots that other threads have freed, read since then. No fewer count as issued than live.
 * [any thread, needs no lock] */
void tsi_line_sum(const TsiSpace* s, unsigned cls, uint32_t line_id, uint64_t issued, uint64_t remote_bits,
                  TsiSlabSum* sum);
/* Returns what a slab holds and has issued, objects and bytes, and the frees that came twice: the sum of its lines, or
 * its region's (tsi_region_sum). Exact while its owner and freers are idle. cls: the slab's class.
 * [any thread, needs no lock] */
TsiSlabSum tsi_slab_sum(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Returns the live slots of a line of class cls, a bit each; if cls is one of regions, the granules of the region's KiB
 * `line_id` where live objects start. A hint beside the owner, and if the slab's tag has changed since.
 * [any thread, needs no lock] */
uint64_t tsi_line_live(const TsiSpace* s, unsigned cls, uint32_t line_id);
/* Returns true if no object of the slab is live; cls is its class. Final only if its owner can allocate no more and the
 * caller reads the slab's tag afterwards and finds it unchanged. [any thread, needs no lock] */
bool tsi_slab_is_empty(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Returns true if one line of the slab, of cls, a class with slots, has at least its class's `threshold` of free slots,
 * those that other threads have freed included, so that it is worth allocating from. A hint beside the owner.
 * [any thread, needs no lock] */
bool tsi_slab_has_room(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Returns the usable bytes of the object at the place, which the caller knows to live: the class's, of a large object
 * or in a region its own. [any thread, needs no lock] */
size_t tsi_place_bytes(const TsiSpace* s, const TsiPlace* at);

#endif
