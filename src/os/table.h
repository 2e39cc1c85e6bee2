/*
 * table.h - records that never move and can always be read, and whose pages go back when nobody needs them.
 *
 *   records by index:  [ ... | unit of records | unit | ... ]   a unit: the least records that fill whole pages
 *   bits:              taken, filled for each record; 16 bits aside for each where the table was made with them
 *
 * A table reserves room for all its records and commits them in steps. A record that is given back keeps its memory and
 * its last content, or its unit has gone back to the system: then it reads as 0. So a thread that still holds its index
 * reads old words or zeros, never a fault; code that uses records that way keeps a number in them that is never used
 * again and never 0. Values that must outlive the record go aside as its unit leaves (TsiTableLeave).
 *
 * Invariants
 *   U1  A unit goes back only while none of its records is taken, under the table's lock: so nobody takes one of them
 *       meanwhile, and a record taken afterwards reads as 0, except for what late writers leave there.
 *   U2  A free record says by its content that it is nobody's, and so do zeros: a stale reader meets either, of each
 *       word.
 *   U3  A record whose `leave` was called, and which stays after all, has had its `stay` called.
 *   U4  Records are taken in turn, by index, from the lowest of which more than `spare` are free: a record is taken
 *       again at most once while the turn passes all of these. So a record that is used again and again comes back
 *       late, and high units empty.
 *
 * Idle records are free, have pages, and lie in units of which none is taken. Their pages go back when there are more
 * than 2 * taken + `keep` of them (tsi_table_tidy), and at trims. A load that takes and gives the same number again and
 * again stays below that.
 *
 * A table that is allowed to learns how many more to keep: a record that is filled again within a tenth of a second
 * after pages went back should have been kept. The learned number falls by half for each second in which less than half
 * of it was needed (tsi_table_poll).
 */
#ifndef TSI_OS_TABLE_H
#define TSI_OS_TABLE_H

#include "os/lock.h"
#include "os/os.h"

enum { TSI_TABLE_FIRST = 8 /* words of bits that need no page */ };

typedef struct TsiTable TsiTable;
/* Called under the table's lock. leave: the record's page is about to go; false: not now. stay: it has not gone after
 * all. back: the record, which reads as 0, is taken for the first time, or the first since its page has gone. */
typedef bool (*TsiTableLeave)(TsiTable* table, uint32_t index);
typedef void (*TsiTableStay)(TsiTable* table, uint32_t index);

/* Bits of 64 records. */
typedef struct TsiTableBits {
    uint64_t taken;
    uint64_t filled; /* taken since its pages went back; others read as 0 */
} TsiTableBits;

struct TsiTable {
    uint8_t* base;
    size_t stride;
    size_t bytes_reserved, bytes_committed; /* bytes of records */
    uint32_t capacity, unit;
    uint32_t spare, keep; /* free records: in rotation, U4; that may keep their pages */
    bool aside, lies;     /* lies: it is part of a ground, which is dropped instead */
    TsiTableLeave leave;  /* or NULL */
    TsiTableStay stay, back;
    uint8_t* bits; /* behind the records: bits of 64 records each, and values aside */
    size_t bits_reserved;
    _Atomic uint32_t used; /* records ever handed out; all below it are committed */
    _Atomic bool surplus;  /* a hint: tsi_table_tidy has something to do */
    TsiLock lock;          /* guards all below */
    size_t bits_committed;
    uint32_t taken, filled, idle;   /* idle: filled records of units of which none is taken */
    uint32_t limit, low_free, turn; /* records below limit are handed out, from turn on; low_free of them are free */
    uint32_t look_at;         /* idle records below which no search is made, because the last could give no more back */
    _Atomic uint32_t learned; /* idle records that may keep their pages beside `keep`; read without the lock */
    uint32_t learned_most, gone;       /* records that went back, and were not filled again */
    uint64_t gone_ns, learned_used_ns; /* when the last went back; when more than half of `learned` was last needed */
    TsiTableBits first[TSI_TABLE_FIRST];
};

/* A reservation that several tables lie in. */
typedef struct TsiGround {
    uint8_t *base, *at, *end; /* [at, end) is no table's yet */
    bool whole;               /* all of it is writable */
} TsiGround;
/* Returns the bytes of a ground that a table of `capacity` records of `stride` bytes takes, whole pages. aside: true if
 * each record has 16 bits beside it that stay when its page goes. [any thread, needs no lock] */
size_t tsi_table_room(size_t stride, uint32_t capacity, bool aside);
/* Sets *ground to a reservation of `bytes`, whole pages, of which no part is a table's yet, and makes all of it
 * writable if it has at most 32 MiB and that costs nothing. Returns false if the system refuses; ground->base is NULL
 * then. [before the ground is shared] */
bool tsi_ground_reserve(TsiGround* ground, size_t bytes);
/* Unmaps a ground with all tables in it, and sets ground->base to NULL; does nothing if that is NULL.
 * [no other user] */
void tsi_ground_drop(TsiGround* ground);
/* Sets *table to an empty table of `capacity` records of `stride` bytes in the ground, and takes its room off the
 * ground, which has at least tsi_table_room left; stops the process otherwise. aside: true if each record has 16 bits
 * that stay when its page goes. [before the table is shared] */
void tsi_table_init_in(TsiTable* table, TsiGround* ground, size_t stride, uint32_t capacity, bool aside);

/* Sets *table to an empty table with a reservation of its own for `capacity` records of `stride` bytes; a stride of a
 * page or more is rounded up to pages. Returns false if the system refuses; table->base is NULL then.
 * [before the table is shared] */
bool tsi_table_init(TsiTable* table, size_t stride, uint32_t capacity);
/* Sets *table to an empty table with a reservation of its own for `capacity` records of `stride` bytes, in which each
 * has 16 bits aside that stay when its page goes. Returns false if the system refuses; table->base is NULL then.
 * [before the table is shared] */
bool tsi_table_init_aside(TsiTable* table, size_t stride, uint32_t capacity);
/* Unmaps the table's reservation, if it has one of its own, and sets table->base to NULL; a ground keeps its memory.
 * [no other user] */
void tsi_table_destroy(TsiTable* table);
/* Takes a free record, whose content is zeros or that of its last use, and sets *index to it; calls `back`, under the
 * lock, if it has had no page. Returns false, takes none and leaves *index alone if no more than `keep` records are
 * free, or without memory. Takes the table's lock. [any thread that does not hold it] */
bool tsi_table_take(TsiTable* table, uint32_t* index, uint32_t keep);
/* Gives the record `index`, which was taken, back; its content stays until its page goes. Sets `surplus` if more
 * records are idle than are worth keeping: tsi_table_tidy then gives pages back. Takes the table's lock.
 * [holder of the record, table lock not held] */
void tsi_table_give(TsiTable* table, uint32_t index);
/* Gives pages of free records back: with `all` true every page of units without a taken record, and forgets what was
 * learned; with false those beyond `taken` + half of `keep` + `learned` idle records. Clears `surplus`. Takes the
 * table's lock, between runs of pages anew, and calls `leave` and `stay` under it.
 * [any thread, no lock of a record or table held] */
void tsi_table_tidy_slow(TsiTable* table, bool all);
/* Gives pages of free records back if `surplus` says that more are idle than are worth keeping; normally does nothing
 * after one load. [any thread, no lock of a record or table held] */
TSI_INLINE void tsi_table_tidy(TsiTable* table) {
    if (TSI_UNLIKELY(tsi_load_relaxed(&table->surplus))) tsi_table_tidy_slow(table, false);
}
/* Halves table->learned, idle records that may keep their pages, for each whole second since more than half of them was
 * last needed, and sets `surplus` if tidying is due then. now_ns: the coarse clock. Takes the table's lock; returns
 * without it if `learned` is 0. [any thread that does not hold it] */
void tsi_table_poll(TsiTable* table, uint64_t now_ns);

/* Returns how many records are taken now, those included that threads keep in stores of theirs for later. Takes the
 * table's lock. [any thread that does not hold it] */
uint32_t tsi_table_taken(TsiTable* table);
/* Returns the number below which all records may be read: they were handed out once, and are committed.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_table_used(const TsiTable* table) {
    /* acquire: pairs with the release in tsi_table_take: the record is committed */
    return tsi_load_acquire(&table->used);
}
/* Returns the address of record `index`, which stays the same. The record may be read if index < tsi_table_used.
 * [any thread, needs no lock] */
TSI_INLINE void* tsi_table_at(const TsiTable* table, uint32_t index) {
    return table->base + (size_t)index * table->stride;
}
/* A stretch of a table whose pages may be filled. */
typedef struct TsiTablePages {
    const void* from;
    size_t bytes;
} TsiTablePages;
/* Finds the next stretch of records whose pages may be filled, at index *at or after (0 before the first call). Returns
 * true, with *out set to it and *at moved behind it; false if there is none, with *out left alone and *at at the end. A
 * hint: records may be taken and go meanwhile. [any thread, needs no lock] */
bool tsi_table_pages(TsiTable* table, uint32_t* at, TsiTablePages* out);
/* Returns the bytes in use of the table's own bookkeeping, from table->bits on; 0 if all of it lies in *table.
 * [any thread, needs no lock] */
size_t tsi_table_bits_bytes(const TsiTable* table);
/* Returns the address of the 16 bits aside of record `index`, which stay when its page goes. index < tsi_table_used,
 * and the table was made with them. [any thread, needs no lock] */
_Atomic uint16_t* tsi_table_aside(const TsiTable* table, uint32_t index);

#endif
