/*
 * size_class.h - sizes to classes, slots to addresses.
 *
 * Classes are numbered from 1; 0 means "no class", so that a zeroed chunk table refuses every pointer. The public index
 * is the number minus 1: 0..7 are the fixed sizes, then 16, 32, 48, then four steps to each doubling from 1024 to 256
 * KiB, then those between these. Other classes have no size of their own: REGION and those after CONT (regions of six
 * sizes, objects of any size side by side, see region.h) and LARGE (an object with units of its own); CONT marks the
 * further chunks of a large object. Statistics count all regions under REGION.
 *
 * A slab is lines_per_slab lines; a line is an aligned run of cells; a cell is an aligned power of two of bytes that
 * holds objects from its start. No object straddles a cell, and cells of objects up to 1 KiB never straddle 4 KiB, so
 * one survivor pins one page. Slots are numbered in *units*, the largest power of two that divides the size: offset =
 * slot << unit_shift. So an address that is no multiple of the unit starts no object; numbers that no object has are
 * *holes*, bits that are 0 in `full`.
 */
#ifndef TSI_MEM_SIZE_CLASS_H
#define TSI_MEM_SIZE_CLASS_H

#include "base/bits.h"

enum {
    TSI_CLASS_BIGGEST = 44,                   /* class of TSI_SMALL_MAX */
    TSI_SMALL_CLASSES = 53,                   /* classes that heaps keep rooms for: 1..53 */
    TSI_CLASS_REGION = TSI_SMALL_CLASSES + 1, /* 54: regions of one page */
    TSI_CLASS_LARGE,
    TSI_CLASS_CONT,
    TSI_REGION_SIZES = 6,
    TSI_CLASSES = TSI_CLASS_CONT + TSI_REGION_SIZES /* table size, entry 0 included */
};

enum {
    TSI_CHUNK_SHIFT = 20,
    TSI_LINE_MIN_SHIFT = 10,
    TSI_UNIT_SHIFT = 16,     /* log2 bytes of a large object's unit, or of a page if larger */
    TSI_LUT_MAX = 1024,      /* sizes looked up in a byte table */
    TSI_SMALL_MAX = 1 << 18, /* largest object in a slab of a class */
    TSI_REGION_MIN = 4096,   /* bytes of a region of rank 1, or a page; each rank above has four times as many */
    TSI_PART_BYTES = 2048,   /* bytes of a region of rank 0, where two share a page: see parts.h */
    TSI_LINE_SLOTS = 64
};

typedef struct TsiClass {
    uint32_t size;      /* usable bytes of a slot */
    uint32_t line_mask; /* line bytes - 1; 0 where there are no slots */
    uint32_t slab_bytes;
    uint8_t line_shift;
    uint8_t unit_shift; /* log2; also the natural alignment of every slot */
    uint8_t lines_log2; /* lines of a slab, log2 */
    uint8_t slots;      /* slots of a line */
    uint8_t threshold;  /* free slots a full line needs before it is used again */
    uint8_t batch;      /* most slots that a refill of a young line hands out */
    uint64_t full;      /* word with a bit for each slot of a line */
    uint64_t in_page;   /* slots of one page as bits, from bit 0; slot & page_first is the first of its page */
    uint8_t page_first; /* in_page is all ones if a page has several lines, 0 if objects lie in two pages */
} __attribute__((aligned(256))) TsiClass;

typedef struct TsiClassTable {
    TsiClass c[TSI_CLASSES];
} TsiClassTable;

/* Returns true if cls is a class of regions, which have no slots. [any thread, needs no lock] */
TSI_INLINE bool tsi_class_is_region(unsigned cls) { return cls == TSI_CLASS_REGION || cls > TSI_CLASS_CONT; }
/* Ranks of regions: 0 is part of a page, PAGE a whole one, and each above has four times as many bytes. */
enum { TSI_RANK_PART = 0, TSI_RANK_PAGE = 1 };
/* Returns the class of regions of a rank, 0 to TSI_REGION_SIZES - 1. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_region_class(unsigned rank) {
    return rank == TSI_RANK_PAGE ? TSI_CLASS_REGION : TSI_CLASS_CONT + (rank == TSI_RANK_PART ? 1 : rank);
}
#define TSI_CLASS_PART tsi_region_class(TSI_RANK_PART)
/* Half of a huge page, see region.h. */
#define TSI_RANK_HUGE (TSI_REGION_SIZES - 1)
#define TSI_CLASS_HUGE tsi_region_class(TSI_RANK_HUGE)
/* Returns the class under which statistics count cls: REGION for every class of regions, cls itself otherwise.
 * [any thread, needs no lock] */
TSI_INLINE unsigned tsi_class_row(unsigned cls) { return cls > TSI_CLASS_CONT ? TSI_CLASS_REGION : cls; }

extern uint8_t tsi_size_lut[TSI_LUT_MAX / 16 + 1];

/* Fills tsi_size_lut: at i, the class of the smallest slots of at least 16 * i bytes, up to TSI_LUT_MAX; 0 at 0.
 * [once per process] */
void tsi_size_lut_init(void);
/* Fills a table for a page size and a least slab size in bytes, both powers of two; slab_min_bytes 0: the default.
 * [no other user] */
void tsi_class_table_init(TsiClassTable* table, size_t page_bytes, size_t slab_min_bytes);
/* Returns the class of a size in 1025..TSI_SMALL_MAX. Constant time. [any thread, needs no lock] */
unsigned tsi_class_of_big(size_t size);
/* Returns the class of the smallest slots of at least `size` bytes that are aligned to `align`, a power of two, or 0 if
 * only LARGE will do. O(classes) [any thread, needs no lock] */
unsigned tsi_class_aligned(const TsiClassTable* table, size_t size, size_t align);

/* Returns the class of a size in 1..TSI_LUT_MAX; for fast paths, which know size - 1. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_class_near(size_t size) { return tsi_size_lut[((size - 1) >> 4) + 1]; }
/* Returns the class of a size, or 0 for size 0 and for sizes that need LARGE. Constant time.
 * [any thread, needs no lock] */
TSI_INLINE unsigned tsi_class_of(size_t size) {
    if (TSI_LIKELY(size <= TSI_LUT_MAX)) return tsi_size_lut[(size + 15) >> 4];
    return size <= TSI_SMALL_MAX ? tsi_class_of_big(size) : 0;
}

/* Returns the slot at an offset in a line, if tsi_class_starts says that one begins there.
 * [any thread, needs no lock] */
TSI_INLINE unsigned tsi_class_slot(const TsiClass* shape, uint32_t in_line) {
    return (in_line >> shape->unit_shift) & (TSI_LINE_SLOTS - 1);
}
/* Returns the byte offset of a slot in its line. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_class_offset(const TsiClass* shape, unsigned slot) {
    return (uint32_t)slot << shape->unit_shift;
}
/* Returns true if an object may start at the byte offset `in_line` of a line; false for an interior address and for a
 * hole. [any thread, needs no lock] */
TSI_INLINE bool tsi_class_starts(const TsiClass* shape, uint32_t in_line) {
    unsigned slot = tsi_class_slot(shape, in_line);
    return tsi_class_offset(shape, slot) == in_line && (shape->full >> slot & 1) != 0;
}

#endif
