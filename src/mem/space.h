/*
 * space.h - the address space of one allocator: its record, its tables, and what addresses mean in them. The code that
 * changes them is above it: chunk.h, stock.h, parts.h, pool.h, large.h.
 *
 *   one reservation:  [ payload chunks | a page | bookkeeping, 128 KiB a chunk | handle counts, 512 KiB a chunk |
 *                       regions, 128 KiB a chunk | entries, 4 KiB a chunk | chunk tables ]
 *   bookkeeping of a chunk:  [ 256 TsiSlab, 8 KiB | 1024 TsiLine, 64 KiB | unused ]
 *
 * A chunk (1 MiB) serves one class, named by its TsiChunkKey. The class is 0 until the chunk's bookkeeping is
 * committed, so any other class makes every table access of the chunk safe. Payload pages hold payload only.
 *
 * A plain free does not look up the class: for each KiB of payload a TsiEntry tells where the words of its line or
 * region are. Entry 0 leads to a line that nobody owns, in the page before the bookkeeping, which is never written.
 * Entries of all chunks below `covered` may be read.
 *
 * The pool is the set of slabs of no epoch whose pages are with the system, kept by chunk. A chunk whose slabs are all
 * in the pool loses its class and may serve any other. Guarded by `lock`, the *pool lock*.
 */
#ifndef TSI_MEM_SPACE_H
#define TSI_MEM_SPACE_H

#include "mem/size_class.h"
#include "mem/slab.h"
#include "os/lock.h"
#include "os/os.h"
#include "slab_alloc.h"

enum {
    TSI_META_SHIFT = 17,
    TSI_META_LINES = 8 << 10,
    TSI_META_STRIDE = (1 << TSI_META_SHIFT) / (int)sizeof(TsiLine), /* in lines, from a chunk's lines to the next's */
    TSI_META_END = TSI_META_LINES + (64 << 10),
    TSI_COUNTS_SHIFT = 19,
    TSI_CHUNKS_MAX = 1 << 16,
    TSI_ENTRIES_SHIFT = 12,
    TSI_REGIONS_SHIFT = 17,
    TSI_REGIONS_MAP = 64 << 10,
    TSI_REGIONS_END = TSI_REGIONS_MAP + TSI_CHUNK_SLABS * (int)sizeof(TsiRegion),
    TSI_NODES_MAX = 8, /* memory nodes told apart; further nodes share chunks with these */
    TSI_HUGE_SHIFT = 21,
    TSI_COLUMNS = 16,     /* kinds of callers whose counters of slabs taken are kept apart */
    TSI_STOCK_SHIFT = 12, /* log2 of the bytes that a bit of the stock stands for */
    TSI_STOCK_UNITS = 1 << (TSI_CHUNK_SHIFT - TSI_STOCK_SHIFT),
    TSI_STOCK_SLOTS = 6
};

/* Bounds: each table has room for all that may be in it. */
_Static_assert(TSI_CHUNK_SLABS * sizeof(TsiSlab) <= TSI_META_LINES, "slabs end before the lines");
_Static_assert(TSI_META_LINES + TSI_CHUNK_LINES * sizeof(TsiLine) == TSI_META_END, "lines end the bookkeeping");
_Static_assert(TSI_META_END <= 1 << TSI_META_SHIFT, "a chunk's bookkeeping fits its block");
_Static_assert(TSI_REGIONS_END <= 1 << TSI_REGIONS_SHIFT, "a chunk's regions fit their block");
_Static_assert(TSI_CHUNK_LINES == 1 << (TSI_CHUNK_SHIFT - TSI_LINE_MIN_SHIFT), "a line for each KiB of a chunk");
_Static_assert(TSI_CHUNK_LINES* TSI_LINE_SLOTS * sizeof(uint64_t) == 1 << TSI_COUNTS_SHIFT, "a count for each slot");
_Static_assert(TSI_CHUNK_LINES * sizeof(uint32_t) == 1 << TSI_ENTRIES_SHIFT, "an entry for each KiB of a chunk");
_Static_assert(TSI_CHUNK_SLABS* TSI_REGION_MIN == 1 << TSI_CHUNK_SHIFT, "no chunk has more slabs than pages");
/* Handles have 26 bits for a line and 6 for a slot, entries 31 bits for how far behind TsiSpace.words a line or a
 * region is, in lines. */
_Static_assert((uint64_t)TSI_CHUNKS_MAX* TSI_CHUNK_LINES* TSI_LINE_SLOTS == 1ull << 32, "handles name every slot");
_Static_assert(sizeof(TsiRegion) == sizeof(TsiLine), "an entry counts both in the same unit");
_Static_assert((((uint64_t)TSI_CHUNKS_MAX << TSI_META_SHIFT) + ((uint64_t)TSI_CHUNKS_MAX << TSI_COUNTS_SHIFT) +
                ((uint64_t)TSI_CHUNKS_MAX << TSI_REGIONS_SHIFT)) /
                       sizeof(TsiLine) <
                   1ull << 31,
               "entries reach the last region");
/* Arrays of the reservation with a piece for each chunk, usable from their beginning on. */
typedef enum TsiStrip { TSI_STRIP_PAYLOAD, TSI_STRIP_META, TSI_STRIP_COUNTS, TSI_STRIP_REGIONS, TSI_STRIPS } TsiStrip;

enum { TSI_DIRTY = 1, TSI_DIRTY_KEPT = 2 /* by the stock alone */ };

typedef struct TsiChunk {
    uint32_t free_head;  /* pool slabs: slab id + 1 */
    uint32_t prev, next; /* chunks of the class that have pool slabs, chunk + 1 */
    uint16_t free_count; /* slabs in the pool, never-used ones included */
    uint16_t fresh;      /* slabs handed out at least once since the chunk got its class */
    uint16_t units;      /* LARGE: units that objects have, a bit each */
    uint32_t seq_floor;
    _Atomic uint32_t gen_floor;       /* both floors: no slab of the chunk has used these yet, in any class */
    _Atomic uint8_t counts_committed; /* set once, never cleared */
    uint8_t meta_committed;           /* bookkeeping is usable; set once */
    uint8_t region_class;             /* last class of the chunk's regions; 0: none, and they are not committed */
    uint8_t listed;
    /* TSI_DIRTY: some memory went back and may not be zero; 0: all outside slabs and the stock is zero */
    _Atomic uint8_t dirty;
    uint8_t node;                              /* node whose threads get its slabs: a row of with_free */
    uint8_t asked_node;                        /* node that its memory was last asked of, + 1 */
    _Atomic uint32_t meta_pages, region_pages; /* bits of chunk_pages.h, a page each */
    _Atomic uint64_t counts_pages[2];
    _Atomic uint64_t late;                /* marks of heap/late_frees.h */
    uint64_t stock[TSI_STOCK_UNITS / 64]; /* kept pages of no slab, see stock.h */
    uint64_t parts[TSI_CHUNK_SLABS / 64]; /* slabs that share pages: those in the pool, see parts.h */
    uint32_t stock_tick;                  /* when pages last joined or left the stock */
    uint8_t last_class;            /* class, or while it has none the one it had: for counters of what goes back */
    bool held;                     /* some of its pages are on their way to the system */
    bool meta_kept;                /* its words did not go back with its last slab */
    bool regions_clear;            /* the regions' pages have gone since their last use: all read as 0 */
    bool huge;                     /* huge pages were requested for it and its neighbour, for regions */
    _Atomic uint8_t entries_class; /* class of its entries; 0: they are 0 */
} TsiChunk;

_Static_assert(8 * sizeof(uint32_t) * TSI_REGION_MIN >= 1 << TSI_META_SHIFT && TSI_META_SHIFT == TSI_REGIONS_SHIFT,
               "a bit of meta_pages and of region_pages for each page");
_Static_assert(8 * sizeof(uint64_t[2]) * TSI_REGION_MIN >= 1 << TSI_COUNTS_SHIFT,
               "a bit of counts_pages for each page");
/* Bits of 64 chunks, in one array so that few of its pages are filled. */
typedef struct TsiChunkBits {
    uint64_t used;
    uint64_t stocked; /* has pages in the stock */
    uint64_t open;    /* LARGE, and has units left */
} TsiChunkBits;

/* Distance of the words from `words`, in 64 bytes, with TSI_ENTRY_REGION if they are a region's. */
typedef _Atomic uint32_t TsiEntry;
#define TSI_ENTRY_REGION 0x80000000u

/* Offset of the chunk's class in the table of classes; in the low byte, which is free, the class's line_shift, or
 * TSI_KEY_REGION for regions. */
enum { TSI_KEY_REGION = 0x80 };
typedef _Atomic uint32_t TsiChunkKey;
_Static_assert(sizeof(TsiClass) % 256 == 0, "the low byte of a key is free");

typedef struct TsiSpaceConfig {
    uint64_t reserve_bytes;
    uint64_t slab_min_bytes;               /* 0 = default */
    uint64_t max_bytes;                    /* limit of committed_bytes; 0 = none */
    uint64_t warm_bytes, warm_limit_bytes; /* budget of kept bytes, and how far it may rise; 0: not at all */
    uint64_t quarantine_bytes;             /* see quarantine.h; 0: none */
    int32_t purge_policy;                  /* SlabPurgePolicy */
    bool prefault;
    bool huge_pages;
    bool numa_local;
    bool fill; /* memory that goes back is zeroed where the system does not */
} TsiSpaceConfig;
_Static_assert(sizeof(TsiSpaceConfig) == 6 * sizeof(uint64_t) + sizeof(int32_t) + 4 * sizeof(bool),
               "no padding: tsi_space_init reads all of a space that it has filled before");

/* Kept pages of no slab, and the budget of all that is kept warm: see stock.h. */
typedef struct TsiStock {
    uint64_t start, limit;   /* of the budget */
    _Atomic uint64_t budget; /* in force */
    _Atomic int64_t left;   /* part granted to no thread and not filled; below 0: more is kept than the budget allows */
    _Atomic uint64_t bytes; /* in the stock */
    _Atomic uint64_t regretted; /* given back and soon taken again */
    /* when more than half of the budget was last needed, plus a second for each halving since */
    _Atomic uint64_t used_ns;
    uint64_t gone[TSI_STOCK_SLOTS], gone_sum; /* given back for want of budget, by time */
    uint64_t rued[TSI_STOCK_SLOTS], rued_sum; /* the part of it that was taken again, by time of taking */
    uint32_t gone_tick;
    uint32_t grown_tick;   /* since when grown_bytes counts */
    uint64_t grown_bytes;  /* given back for growth beyond `high` */
    uint32_t looked_tick;  /* end of the last look */
    uint64_t lent;         /* part of the budget above `start`: room for pages that living phases have emptied */
    _Atomic uint64_t high; /* committed bytes beyond which it is taken back; 0: never lent */
    uint32_t hand;         /* where the next search for cold chunks begins, in words of `stocked` */
} TsiStock;

/* Slabs of ended phases that nobody uses again yet: see quarantine.h. */
typedef struct TsiQuarantine {
    uint64_t most;          /* bytes; 0: there is none */
    _Atomic uint64_t bytes; /* of its slabs; any thread may read */
    uint32_t first, last;   /* slab id + 1 */
} TsiQuarantine;

typedef struct TsiSpace {
    uint8_t* base;
    uint64_t payload_bytes;
    uint8_t* meta;
    uint8_t* counts;
    uint8_t* regions;
    uint8_t* words; /* the page before `meta` */
    TsiEntry* entries;
    TsiChunkKey* keys;
    const TsiClassTable* classes;
    uint32_t chunk_count;
    TsiChunk* chunks;
    TsiChunkBits* bits;
    void* mapping;
    size_t mapping_bytes;
    TsiSpaceConfig config;
    TsiClassTable own_classes; /* used unless the shared default fits */
    unsigned nodes;            /* 1 unless numa_local */
    _Atomic bool counted;      /* a slab with lines has issued a handle; before that, all counts of slots are 0 */

    TsiLock lock;                                   /* guards all below */
    uint32_t with_free[TSI_NODES_MAX][TSI_CLASSES]; /* chunk + 1 */
    TsiStock stock;
    TsiQuarantine quarantine;
    _Atomic uint32_t resting;    /* regions that rest, slab id + 1, see rest.h; any thread may read */
    uint32_t usable[TSI_STRIPS]; /* chunks, from the first on, whose pieces are committed; 0 where that is charged */
    uint32_t used_hint, chunks_used;  /* no chunk below used_hint is free; bits in `used` */
    uint32_t set_aside;               /* units that large objects can give up, see units.h */
    bool huge_apart;                  /* huge pages have a side of their own, see chunk.h */
    bool limited;                     /* writable memory counts against a limit, used or not */
    uint32_t large_gives, words_kept; /* large objects given back; chunks with meta_kept */
    _Atomic uint32_t open_chunks;     /* chunks that serve a class of slabs; readers may look */
    _Atomic uint32_t chunk_high;      /* chunks ever used; readers may look */
    _Atomic uint64_t covered;         /* bytes of payload whose entries are committed, all of chunk_high; no lock */
    _Atomic uint64_t committed_bytes; /* slabs out of the pool, and the stock */
    _Atomic uint64_t giving;          /* see tsi_space_give_begin */
    _Atomic uint64_t purge_calls, purge_bytes, purge_failures;
    /* Readers may look */
    /* without the lock; rows by tsi_class_row: */
    _Atomic uint64_t purges[TSI_CLASSES], purged[TSI_CLASSES], purges_failed[TSI_CLASSES];
    _Atomic uint64_t lock_fast[TSI_CLASSES][TSI_COLUMNS], lock_contended[TSI_CLASSES][TSI_COLUMNS];
} TsiSpace;

/* Returns true unless the purge policy forbids giving memory back to the system. [any thread, needs no lock] */
TSI_INLINE bool tsi_space_gives_back(const TsiSpace* s) { return s->config.purge_policy != SLAB_PURGE_NEVER; }

/* ---- addresses ---- */

/* Returns the address of a chunk's payload. [any thread, needs no lock] */
TSI_INLINE uint8_t* tsi_chunk_base(const TsiSpace* s, uint32_t chunk) {
    return s->base + ((size_t)chunk << TSI_CHUNK_SHIFT);
}
/* Returns true if the chunk is not free: it serves a class, or is held (stock.h, K3).
 * [pool lock held, or no other user] */
TSI_INLINE bool tsi_chunk_is_used(const TsiSpace* s, uint32_t chunk) {
    return s->bits[chunk / 64].used >> chunk % 64 & 1;
}
/* Returns true if the chunk has pages in the stock. [pool lock held, or no other user] */
TSI_INLINE bool tsi_chunk_is_stocked(const TsiSpace* s, uint32_t chunk) {
    return s->bits[chunk / 64].stocked >> chunk % 64 & 1;
}
/* Returns true if the chunk is LARGE and has units left. [pool lock held, or no other user] */
TSI_INLINE bool tsi_chunk_is_open(const TsiSpace* s, uint32_t chunk) {
    return s->bits[chunk / 64].open >> chunk % 64 & 1;
}
/* Returns the address of a chunk's bookkeeping, which is readable once the chunk has had a class.
 * [any thread, needs no lock] */
TSI_INLINE uint8_t* tsi_meta_of(const TsiSpace* s, uint32_t chunk) {
    return s->meta + ((size_t)chunk << TSI_META_SHIFT);
}
/* Returns the words of a line by its id; readable once its chunk has had a class. [any thread, needs no lock] */
TSI_INLINE TsiLine* tsi_line(const TsiSpace* s, uint32_t id) {
    return (TsiLine*)(void*)(tsi_meta_of(s, tsi_line_chunk(id)) + TSI_META_LINES) + tsi_line_number(id);
}
/* Returns the number of a line in its chunk, and sets *chunk to that chunk. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_line_find(const TsiSpace* s, const TsiLine* l, uint32_t* chunk) {
    size_t d = (size_t)((const uint8_t*)l - s->meta);
    *chunk = (uint32_t)(d >> TSI_META_SHIFT);
    return (uint32_t)(((d & ((1u << TSI_META_SHIFT) - 1)) - TSI_META_LINES) / sizeof(TsiLine));
}
/* Returns the id of a line. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_line_id(const TsiSpace* s, const TsiLine* l) {
    uint32_t chunk, number = tsi_line_find(s, l, &chunk);
    return tsi_line_at(chunk, number);
}
/* Returns the two remote words of a line; readable once its chunk has had a class. [any thread, needs no lock] */
TSI_INLINE _Atomic uint64_t* tsi_remote(const TsiSpace* s, uint32_t line_id) { return tsi_line(s, line_id)->remote; }
/* Returns the words of a slab by its id; readable once its chunk has had a class. [any thread, needs no lock] */
TSI_INLINE TsiSlab* tsi_slab(const TsiSpace* s, uint32_t id) {
    return (TsiSlab*)(void*)tsi_meta_of(s, tsi_slab_chunk(id)) + tsi_slab_number(id);
}
/* Returns the class of a chunk's key: its record in the table of classes. [any thread, needs no lock] */
TSI_INLINE const TsiClass* tsi_key_class(const TsiClassTable* table, uint32_t key) {
    return (const TsiClass*)(const void*)((const uint8_t*)table + (key & ~255u));
}
/* Returns the log2 of the bytes of a line of a chunk's key, or TSI_KEY_REGION for regions.
 * [any thread, needs no lock] */
TSI_INLINE unsigned tsi_key_line_shift(uint32_t key) { return (uint8_t)key; }
/* Returns the chunk's first entry, of one for each KiB; readable if the chunk is below `covered`.
 * [any thread, needs no lock] */
TSI_INLINE TsiEntry* tsi_entries_of(const TsiSpace* s, uint32_t chunk) {
    return s->entries + ((size_t)chunk << (TSI_CHUNK_SHIFT - TSI_LINE_MIN_SHIFT));
}
/* Returns the class that the chunk serves now, 0 for none; any other makes its bookkeeping readable.
 * [any thread, needs no lock] */
TSI_INLINE unsigned tsi_chunk_class(const TsiSpace* s, uint32_t chunk) {
    /* acquire: pairs with the release in set_class: the chunk's bookkeeping is committed */
    return tsi_load_acquire(&s->keys[chunk]) / (unsigned)sizeof(TsiClass);
}
/* Returns the class that the slab's chunk serves now, 0 for none. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_class_of_slab(const TsiSpace* s, uint32_t slab_id) {
    return tsi_chunk_class(s, tsi_slab_chunk(slab_id));
}
/* Returns the class that the line's chunk serves now, 0 for none. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_class_of_line(const TsiSpace* s, uint32_t line_id) {
    return tsi_chunk_class(s, tsi_line_chunk(line_id));
}
/* Returns the record of the class that the slab's chunk serves now. [any thread, needs no lock] */
TSI_INLINE const TsiClass* tsi_slab_class(const TsiSpace* s, uint32_t slab_id) {
    return &s->classes->c[tsi_class_of_slab(s, slab_id)];
}
/* Returns the id of the slab that a line is part of if its chunk serves the class. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_slab_at(const TsiClass* shape, uint32_t line_id) {
    return tsi_slab_id(tsi_line_chunk(line_id), tsi_line_number(line_id) >> shape->lines_log2);
}
/* Returns true if a line of a chunk of the class, by its number there, is in a slab. False only behind slabs that share
 * pages, which fill half of their chunk. [any thread, needs no lock] */
TSI_INLINE bool tsi_line_has_slab(const TsiClass* shape, uint32_t line) {
    return line >> shape->lines_log2 < TSI_CHUNK_SLABS;
}
/* Returns the id of the slab that a line is part of, by the class that its chunk serves now.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_slab_of_line(const TsiSpace* s, uint32_t line_id) {
    return tsi_slab_at(&s->classes->c[tsi_class_of_line(s, line_id)], line_id);
}
/* Returns the id of the first line of a slab of the class; of a region, of its first KiB.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_first_line(const TsiClass* shape, uint32_t slab_id) {
    return tsi_line_at(tsi_slab_chunk(slab_id), tsi_slab_number(slab_id) << shape->lines_log2);
}
/* Returns the address of the payload of a slab of the class. [any thread, needs no lock] */
TSI_INLINE uint8_t* tsi_slab_payload(const TsiSpace* s, const TsiClass* shape, uint32_t slab_id) {
    return tsi_chunk_base(s, tsi_slab_chunk(slab_id)) + (size_t)tsi_slab_number(slab_id) * shape->slab_bytes;
}
/* Returns the count words of a line's slots, see mem/handle.h; usable once tsi_space_commit_counts was true for its
 * chunk. [any thread, needs no lock] */
TSI_INLINE _Atomic uint64_t* tsi_counts(const TsiSpace* s, uint32_t line_id) {
    return (_Atomic uint64_t*)(void*)s->counts + ((size_t)line_id << 6);
}
/* Returns the payload bytes of a slab of class cls that is in use: the class's, or of a large object its own, whole
 * pages. [any thread, needs no lock] */
TSI_INLINE size_t tsi_slab_bytes(const TsiSpace* s, unsigned cls, uint32_t slab_id) {
    return cls == TSI_CLASS_LARGE ? (size_t)tsi_load_relaxed(&tsi_slab(s, slab_id)->extra) << 10
                                  : s->classes->c[cls].slab_bytes;
}
/* Returns the payload bytes of a slab of class cls like tsi_slab_bytes, but for a thread that does not know whether the
 * slab is in use, and reads the slab's tag before and after the call. [any thread, needs no lock] */
TSI_INLINE size_t tsi_slab_bytes_seen(const TsiSpace* s, unsigned cls, uint32_t slab_id) {
    /* acquire, before the tag is read again: pairs with tsi_space_take_large */
    return cls == TSI_CLASS_LARGE ? (size_t)tsi_load_acquire(&tsi_slab(s, slab_id)->extra) << 10
                                  : s->classes->c[cls].slab_bytes;
}

/* Place of an address, as far as the tables have it. */
typedef struct TsiPlace {
    uint32_t line_id, slab_id;
    unsigned cls, slot;
} TsiPlace;
/* GONE: an address that was used, in a chunk that serves no class now. */
typedef enum TsiPlaceResult { TSI_PLACE_OK, TSI_PLACE_FOREIGN, TSI_PLACE_INTERIOR, TSI_PLACE_GONE } TsiPlaceResult;
/* Finds the place of p in the tables. Returns TSI_PLACE_OK if an object may start there, INTERIOR inside of a slot or
 * between slots, GONE where no slab is now but was, FOREIGN for an address that was never used. OK and INTERIOR fill
 * all of *out; an address of the payload sets out->cls at least; one outside of it nothing. Asks no line whether an
 * object lives. [any thread, needs no lock] */
TsiPlaceResult tsi_space_locate(const TsiSpace* s, const void* p, TsiPlace* out);
/* Returns the address of the place, which has its class. [any thread, needs no lock] */
TSI_INLINE uint8_t* tsi_place_address(const TsiSpace* s, const TsiPlace* at) {
    const TsiClass* shape = &s->classes->c[at->cls];
    return tsi_chunk_base(s, tsi_line_chunk(at->line_id)) +
           ((size_t)tsi_line_number(at->line_id) << shape->line_shift) + tsi_class_offset(shape, at->slot);
}

/* ---- reservation ---- */

/* Fills the table of sizes (tsi_size_lut) and the default classes by the system's page. tsi_os_init has run.
 * [once per process, before any other thread] */
void tsi_space_process_init(void);
/* Returns the classes of allocators with default slab sizes. [any thread, needs no lock] */
const TsiClassTable* tsi_space_default_classes(void);
/* Clears *s, reserves the addresses for config->reserve_bytes, in whole chunks and at most TSI_CHUNKS_MAX, and for the
 * tables; makes the records of chunks and the entries of the first one usable, or everything if the payload has at most
 * WHOLE_BYTES and writable memory is not limited; sets the budgets of stock and quarantine from *config, which it
 * copies. Returns false, with nothing left reserved, if the system refuses. [no other user] */
bool tsi_space_init(TsiSpace* s, const TsiSpaceConfig* config);
/* Unmaps the space's addresses, objects and tables alike, and sets s->mapping to NULL; does nothing if that is NULL.
 * [no other user] */
void tsi_space_destroy(TsiSpace* s);

/* Returns the chunk that shares a huge page with this one. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_space_other_half(uint32_t chunk) { return chunk ^ 1; }
/* Makes the entries of all chunks below `end` readable, and of up to COVER_CHUNKS behind them, and raises `covered` to
 * their payload. Returns true if they are; false, with nothing changed, without memory.
 * [pool lock held, or space not shared yet] */
bool tsi_space_cover(TsiSpace* s, uint32_t end);
/* Makes the pieces, in the strip, of n chunks from `first` on usable. Where the system does not charge writable memory,
 * all pieces before them and some behind become usable too, so that a strip is one mapping and takes few calls:
 * usable[strip] is raised to their end. Returns true, at once if they are usable; false, with the strip unchanged, when
 * the system refuses. [pool lock held] */
bool tsi_space_extend(TsiSpace* s, TsiStrip strip, uint32_t first, uint32_t n);
/* Makes the handle counts of a chunk usable, once: sets counts_committed. Returns true if they are; false without
 * memory. Takes the pool lock only if they are not. [any thread, no pool lock held] */
bool tsi_space_commit_counts(TsiSpace* s, uint32_t chunk);
/* Returns the number of slabs, used or not, of a chunk of the class. [any thread, needs no lock] */
unsigned tsi_chunk_slab_count(const TsiSpace* s, unsigned cls);
/* Returns true if `bytes` more would exceed max_bytes; final under the pool's lock alone.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_space_is_over(const TsiSpace* s, size_t bytes) {
    return s->config.max_bytes != 0 && tsi_load_relaxed(&s->committed_bytes) + bytes > s->config.max_bytes;
}
/* ---- memory on its way to the system ----
 *
 * Memory that is about to go back is in no heap, store or stock, and committed until it has gone. A thread that takes
 * some out of there calls give_begin before others can find it missing, and give_end when it has gone: `giving` counts
 * the threads between the two and, above that, how often some has gone. So an allocation that finds no room, looks
 * everywhere, and still finds none can tell whether others had what it lacks (heap/search.h).
 */

/* Counts the caller among the threads that are giving memory back, before others can find it missing.
 * [any thread, needs no lock] */
TSI_INLINE void tsi_space_give_begin(TsiSpace* s) {
    tsi_add_seq(&s->giving, 1); /* before the memory leaves its place; pairs with tsi_space_giving */
}
/* Ends tsi_space_give_begin: takes the caller off the threads that are giving memory back, and adds 1 to the count of
 * times that memory has gone, after committed_bytes has fallen. [any thread, after tsi_space_give_begin] */
TSI_INLINE void tsi_space_give_end(TsiSpace* s) {
    tsi_add_seq(&s->giving, (1ull << 32) - 1); /* after committed_bytes has fallen; as above */
}
/* Returns `giving`, to be read by tsi_givers and tsi_gone. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_space_giving(TsiSpace* s) { return tsi_load_seq(&s->giving); }
/* Returns the number of threads that were giving memory back, from a value of `giving`. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_givers(uint64_t giving) { return (uint32_t)giving; }
/* Returns how often memory has gone, modulo 2^32, from a value of `giving`. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_gone(uint64_t giving) { return (uint32_t)(giving >> 32); }
/* Returns the memory node of the calling thread; 0 unless the allocator tells nodes apart.
 * [any thread, needs no lock] */
TSI_INLINE unsigned tsi_space_node_here(const TsiSpace* s) {
    return s->nodes == 1 ? 0 : tsi_os.node() % TSI_OS_NODES_MAX;
}

/* ---- regions that share pages, see parts.h ---- */

/* Returns true if slabs of the class share pages; false where the system's pages are larger, and each part has a page.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_parts_share(const TsiSpace* s, unsigned cls) {
    return cls == TSI_CLASS_PART && s->classes->c[cls].slab_bytes < tsi_os.page_bytes;
}
/* Returns true if the slab shares its page with another, by the class that its chunk serves now.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_slab_shares(const TsiSpace* s, uint32_t slab_id) {
    return tsi_parts_share(s, tsi_class_of_slab(s, slab_id));
}

#endif
