/*
 * slab.h - the words that describe a slab, and nothing else.
 *
 *   TsiSlab   one per slab: the tag says what the slab is and whose, the links file it
 *   TsiLine   one per line of up to 64 slots: the owner's words and, in `remote`, what others have freed
 *
 * Tag      seq:32 | index:24 | state:8. Index is a heap (OWNED) or an incarnation (ORPHAN,
 *          PARTIAL, PURGING). Every transition is one compare-exchange or is made by the only
 *          holder; seq rises when the slab leaves its incarnation and is never 0 in use.
 *
 *   POOL -> OWNED -> ORPHAN <-> PARTIAL          WARM, POOL: no epoch, held by one list
 *     ^       |         |                        OWNED:  its heap's owner may touch the words
 *     |       +-> PURGING <-+                    ORPHAN: only remote words change
 *     +--------- WARM <-+                        PURGING, PARTIAL: claimed by exactly one thread
 *                                                RETIRED: never used again
 *   INSIDE: a unit of a large object, but not its first (large.h); POOL before and after, under the pool's lock
 *
 * Remote words  0: bits:32 | inc:31 | token:1   1: inc:31 | 0:1 | bits:32. inc is seq's low 31 bits; a free of an older
 *          incarnation cannot pass its compare-exchange. The token (word 0 only) is there while
 *          the owner of a full line wants to hear of free slots. The bits of both lie side by side in memory, so that
 *          an owner's free sees them in one load.
 *
 * home     names the heap (its offset among the heap records) that the slab is in; 0 from the moment the slab leaves it
 *          until the next one takes it, and in purged bookkeeping.
 *
 * heap_at  names the same heap, but only while its owner may free slots of this line with plain stores and without
 *          reading anything else. 0 while the line is PARKED, so that its first free files it, RETIRED, or has
 *          issued handles.
 *
 * freed    always has the bits of a line's holes (size_class.h), so that they refuse what starts no object.
 *
 * Invariant F  A free slot of a slab in an epoch has its bit in remote, freed or avail, at every
 *          moment: a bit moves remote -> freed -> avail by being set in the target first. A reader
 *          that asks "is it free?" reads in that direction with acquire.
 */
#ifndef TSI_MEM_SLAB_H
#define TSI_MEM_SLAB_H

#include "base/atomics.h"
#include "base/bits.h"
#include "base/sanitize.h"

enum { TSI_CHUNK_SLABS = 256, TSI_CHUNK_LINES = 1024 };
enum {
    TSI_SLAB_POOL = 0,
    TSI_SLAB_OWNED = 1,
    TSI_SLAB_ORPHAN = 2,
    TSI_SLAB_PURGING = 3,
    TSI_SLAB_PARTIAL = 4,
    TSI_SLAB_WARM = 5,
    TSI_SLAB_RETIRED = 6,
    TSI_SLAB_INSIDE = 7,
    TSI_SLAB_STATE = 0x0f,
    TSI_SLAB_HANDLED = 0x10 /* has issued a handle in this incarnation; while PURGING, in the one that it leaves */
};

typedef struct TsiSlab {
    _Atomic uint64_t tag;
    _Atomic uint32_t gen_base; /* handle generations used up by earlier incarnations */
    uint32_t next, prev;       /* slab id + 1; a heap's chain, an orphan list, a warm or pool list */
    _Atomic uint32_t extra;    /* LARGE: usable KiB; otherwise the next PARTIAL slab of a sweep, id + 1 */
    _Atomic uint32_t inbox;    /* 0 = in no inbox, 1 = last in one, else next slab id + 2; outlives incarnations */
    /* pages given back while the slab still holds objects; others read it as a hint. LARGE: see TSI_LARGE_LOOKED */
    _Atomic uint32_t gone;
} TsiSlab;

/* `gone` of a large object: an end has looked at it; its pages have moved elsewhere. Above these the units that it has,
 * those to grow into included. */
enum { TSI_LARGE_LOOKED = 1, TSI_LARGE_MOVED = 2, TSI_LARGE_FLAGS = 3, TSI_LARGE_UNITS_SHIFT = 2 };

typedef struct TsiLine {
    _Atomic uint64_t avail;     /* owner: slots ready to hand out */
    _Atomic uint64_t freed;     /* owner: slots freed since the last refill; holes */
    _Atomic uint64_t issued;    /* slots ever moved to avail */
    _Atomic uint64_t remote[2]; /* slots that other threads have freed */
    uint8_t* base;              /* payload of slot 0 */
    _Atomic uint32_t heap_at;   /* owner: heap whose plain frees may end here; 0 = none */
    _Atomic uint32_t home;      /* owner: heap that the slab is in; 0 = none */
    uint32_t link;              /* owner: next line with room, line id + 1 */
    _Atomic uint8_t flags;      /* owner writes */
    /* owner writes: a handle was issued here in this incarnation, so frees are counted; see handles.h */
    _Atomic uint8_t handled;
    uint8_t shift; /* log2 of its class's unit */
    uint8_t unused_;
} TsiLine; /* 64 bytes: one cache line for everything a plain free touches */

enum {
    TSI_LINE_PARKED = 1,   /* full: in no room, until its owner frees a slot or hears of free ones */
    TSI_LINE_LISTED = 2,   /* in a room's queue */
    TSI_LINE_ARMED = 4,    /* the owner does not have the token */
    TSI_LINE_RETIRED = 16, /* handle generations ran out: hands out no more slots */
    TSI_LINE_CUT = 32      /* its refill ends before a slot that the profile samples */
};

/* Record of a region, one beside each slab of a region class, which has no lines; see region.h. */
typedef struct TsiRegion {
    _Atomic uint64_t word;   /* frees by other threads */
    _Atomic uint32_t issued; /* owner: objects, without those of a run that has the rest */
    _Atomic uint32_t freed;  /* owner: objects that it has freed */
    _Atomic uint32_t rel;    /* owner: bytes used */
    /* owner: bytes that the fast path may use; in an orphan, the count for it, see late_frees.c */
    _Atomic uint32_t lim;
    /* payload; written with the map as the region is opened, and read by snapshots that come late */
    _Atomic(uint8_t*) base;
    _Atomic(_Atomic uint8_t*) map; /* NULL where the record's page has gone: see tsi_region_map */
    _Atomic uint64_t gone;         /* parts given back while the region still holds objects; others read it as a hint */
    _Atomic uint32_t heap_at;      /* as in a line */
    _Atomic uint32_t gap_granules; /* owner: of gaps that alignments have left */
    _Atomic uint32_t late;         /* freers that sleep in a life that has ended */
    _Atomic uint8_t gen;           /* owner: generation of this life, once its counts have begun */
    _Atomic uint8_t size_log2;     /* written as base is */
    bool in_empties : 1;           /* owner: empty, in its heap's list of empty regions */
    bool solo : 1;                 /* owner: this life begins with one object alone, which may grow */
    _Atomic bool claimed;          /* owner: a run has the rest of it, see region.h */
} TsiRegion;                       /* 64 bytes */

/* Returns true if the line has issued a handle in this incarnation; final for its owner alone.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_line_is_handled(const TsiLine* l) { return tsi_load_relaxed(&l->handled) != 0; }
/* Marks the line as one that has issued a handle, and sets its heap_at to 0, so that no free of its slots is a plain
 * one any more, until its slab leaves the incarnation. [owner, in bracket] */
TSI_INLINE void tsi_line_mark_handled(TsiLine* l) {
    tsi_store_relaxed(&l->handled, 1);
    tsi_store_relaxed(&l->heap_at, 0);
}

/* ---- ids of slabs and lines: their chunk, and their number in it ---- */

/* Returns the id of slab `number` (0..255) of a chunk. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_slab_id(uint32_t chunk, uint32_t number) { return chunk << 8 | number; }
/* Returns the chunk of a slab id. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_slab_chunk(uint32_t slab_id) { return slab_id >> 8; }
/* Returns the number of a slab in its chunk, from its id. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_slab_number(uint32_t slab_id) { return slab_id & (TSI_CHUNK_SLABS - 1); }
/* Returns the id of line `number` (0..1023) of a chunk. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_line_at(uint32_t chunk, uint32_t number) { return chunk << 10 | number; }
/* Returns the chunk of a line id. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_line_chunk(uint32_t line_id) { return line_id >> 10; }
/* Returns the number of a line in its chunk, from its id. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_line_number(uint32_t line_id) { return line_id & (TSI_CHUNK_LINES - 1); }

/* ---- tags and remote words ---- */

#define TSI_INC_MASK 0x7fffffffu
#define TSI_REMOTE_TOKEN 1ull

/* Returns the tag of a slab in `state`, TSI_SLAB_*, in heap or incarnation `index`, under `seq`.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_tag(uint32_t seq, uint32_t index, unsigned state) {
    return (uint64_t)seq << 32 | (uint64_t)index << 8 | state;
}
/* Returns the seq in a tag. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_tag_seq(uint64_t tag) { return (uint32_t)(tag >> 32); }
/* Returns the index in a tag: a heap's if the state is OWNED, an incarnation's if ORPHAN, PARTIAL or PURGING.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_tag_index(uint64_t tag) { return (uint32_t)(tag >> 8) & 0xffffff; }
/* Returns the state TSI_SLAB_* in a tag, without the flag of handles. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_tag_state(uint64_t tag) { return (unsigned)tag & TSI_SLAB_STATE; }
/* Moves the slab to `state`, TSI_SLAB_*, in no heap or incarnation, under the same seq and without the flag of handles.
 * Lists, counts and pages are the caller's. [only holder] */
TSI_INLINE void tsi_slab_turn(TsiSlab* slab, unsigned state) {
    /* release: pairs with tsi_handle_decode, which reads gen_base after the tag */
    tsi_store_release(&slab->tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(&slab->tag)), 0, state));
}
/* Returns the seq after `seq`. Skips those whose low 31 bits are 0, which a purged remote word has.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_seq_next(uint32_t seq) { return ((seq + 1) & 0x7fffffffu) == 0 ? seq + 2 : seq + 1; }

/* Returns the seq that tsi_seq_next turns into `seq`. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_seq_before(uint32_t seq) { return ((seq - 1) & 0x7fffffffu) == 0 ? seq - 2 : seq - 1; }

/* Returns a remote word of incarnation `seq` without frees. half: which of the line's two words.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_remote_fresh(unsigned half, uint32_t seq) {
    return (uint64_t)(seq & TSI_INC_MASK) << (half == 0 ? 1 : 33);
}
/* Returns the low 31 bits of the seq in a remote word. half: 0 or 1, which of the line's two words.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_remote_seq(unsigned half, uint64_t word) { return (uint32_t)(word >> half * 32) >> 1; }
/* Returns true if the remote word is of the incarnation `seq`. half: 0 or 1, which of the line's two words.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_remote_is(unsigned half, uint64_t word, uint32_t seq) {
    return ((uint32_t)(word >> half * 32) ^ seq << 1) <= 1; /* apart from the token */
}
/* Returns a slot's bit in the word of its half. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_remote_bit(unsigned slot) { return 1ull << (slot ^ 32); }
/* Returns the bits that stand for slots in a remote word. half: 0 or 1, which of the line's two words.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_remote_mask(unsigned half) { return half == 0 ? ~0ull << 32 : ~0ull >> 32; }
/* Returns the slots that others have freed, a bit each, from both remote words of a line.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_remote_bits(uint64_t w0, uint64_t w1) { return w0 >> 32 | w1 << 32; }
/* Returns the slots that others have freed, a bit each, for the owner, who asks whether others freed a slot before this
 * call, so the halves need not be of one moment. Loads the eight bytes in the middle at once: each half is written as
 * part of a whole word. Only bits that others set are needed, so a processor may read in parts. [owner, in bracket] */
TSI_INLINE uint64_t tsi_remote_seen(const TsiLine* l) {
#if TSI_WATCHED_THREADS || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    return tsi_remote_bits(tsi_load_relaxed(&l->remote[0]), tsi_load_relaxed(&l->remote[1]));
#else
    typedef volatile uint64_t Middle __attribute__((aligned(4), may_alias));
    return *(const Middle*)(const void*)((const char*)&l->remote[0] + 4);
#endif
}

#endif
