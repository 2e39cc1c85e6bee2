/*
 * size_class.c - builds the class tables of size_class.h.
 *
 * For each size the smallest cell is taken whose unused tail is at most 1/15 (for objects up to 1 KiB: the cell of 1, 2
 * or 4 KiB with at most 64 units that wastes least). Above 8 KiB the tail of a cell is whole pages that are never
 * touched, so any cell will do. Lines are kept near 16 KiB so that a class that holds few objects does not spread over
 * many pages.
 */
#include "mem/size_class.h"

uint8_t tsi_size_lut[TSI_LUT_MAX / 16 + 1];

static const uint16_t first_sizes[11] = {64, 96, 128, 192, 256, 384, 512, 768, 16, 32, 48};

/* A file's page with its owner's own data: the usual content of page caches. */
enum { PAGE_AND_SOME = 4096 + 512, PAGE_AND_SOME_CLASS = TSI_SMALL_CLASSES, AFTER_PAGE_AND_SOME = 21 /* 5 KiB */ };

static const uint16_t last_sizes[TSI_SMALL_CLASSES - TSI_CLASS_BIGGEST] = {80,  112, 160, 224,          320,
                                                                           448, 640, 288, PAGE_AND_SOME};

/* Returns the bytes of a slot of the class, which is in 1..TSI_SMALL_CLASSES. [any thread, needs no lock] */
static uint32_t class_size(unsigned cls) {
    if (cls <= 11) return first_sizes[cls - 1];
    if (cls > TSI_CLASS_BIGGEST) return last_sizes[cls - TSI_CLASS_BIGGEST - 1];
    unsigned step = cls - 12;
    return (1024u << (step / 4)) / 4 * (4 + step % 4);
}

unsigned tsi_class_of_big(size_t size) {
    unsigned k = tsi_log2(size - 1); /* 2^k < size <= 2^(k+1) */
    /* 4 and which quarter of the doubling, behind four classes for each doubling from 1 KiB on */
    unsigned cls = 4 * k - 31 + (unsigned)((size - 1) >> (k - 2));
    return TSI_UNLIKELY(cls == AFTER_PAGE_AND_SOME) && size <= PAGE_AND_SOME ? PAGE_AND_SOME_CLASS : cls;
}

enum { BATCH_BYTES = 8 << 10 };

/* Returns the bytes at the end of a cell that no slot of the size uses. [any thread, needs no lock] */
static unsigned waste_of(uint32_t size, unsigned cell_shift) { return (1u << cell_shift) % size; }

/* Returns the log2 of the bytes of the cell for slots of the size, as the head of this file says.
 * [any thread, needs no lock] */
static unsigned choose_cell(uint32_t size) {
    if (size > 8192) {
        unsigned shift = tsi_log2(tsi_ceil_pow2(size));
        return shift < 16 ? 16 : shift;
    }

    if (size <= 1024) {
        unsigned best = 10;
        for (unsigned s = 11; s <= 12; s++) {
            if ((1u << s) >> tsi_ctz64(size) <= TSI_LINE_SLOTS &&
                (uint64_t)waste_of(size, s) << (12 - s) < (uint64_t)waste_of(size, best) << (12 - best))
                best = s;
        }
        return best;
    }

    unsigned s = 12;
    while ((1u << s) < size || waste_of(size, s) * 15 > (1u << s)) s++;

    /* A larger cell does too if it has as many objects to the byte, and a tail of whole pages, which are never
     * touched. */
    for (unsigned larger = s + 1; larger <= TSI_UNIT_SHIFT && (1u << larger) >> tsi_ctz64(size) <= TSI_LINE_SLOTS;
         larger++)
        if ((1u << larger) / size >= (1u << s) / size << (larger - s) && waste_of(size, larger) % TSI_KIB(4) == 0)
            return larger;

    return s;
}

/* Sets the fields of *shape for objects of `size` bytes in cells of 1 << cell_shift bytes (of choose_cell): slots,
 * lines and slabs, `threshold` and `batch`, and in_page and page_first, which are 0 unless size is at most 1 KiB and
 * page at most 4 KiB. page: bytes that go back as a whole; slab_min: least bytes of a slab; both powers of two.
 * [no other user] */
static void class_init(TsiClass* shape, uint32_t size, unsigned cell_shift, size_t page, size_t slab_min) {
    unsigned per_cell = (1u << cell_shift) / size, unit_shift = tsi_ctz64(size);
    unsigned line_shift = unit_shift + 6;
    unsigned want = size <= 2048 ? 14 : size <= 4096 ? 15 : 16;
    if (line_shift > want) line_shift = want;
    if (line_shift < cell_shift) line_shift = cell_shift;

    shape->size = size;
    shape->line_shift = (uint8_t)line_shift;
    shape->line_mask = (1u << line_shift) - 1;
    shape->unit_shift = (uint8_t)unit_shift;

    shape->full = 0;
    for (unsigned cell = 0; cell < 1u << (line_shift - cell_shift); cell++) {
        for (unsigned i = 0; i < per_cell; i++) {
            uint32_t offset = (cell << cell_shift) + i * size;
            shape->full |= 1ull << (offset >> unit_shift);
        }
    }

    shape->slots = (uint8_t)tsi_popcount(shape->full);
    shape->threshold = shape->slots / 4 > 16                  ? 16
                       : shape->slots / 4 > 0 && size <= 1024 ? (uint8_t)(shape->slots / 4)
                                                              : 1;
    /* Few slots of large objects: those that a program frees at once are used again before pages that nobody has
     * touched. */
    shape->batch = size <= 1024 ? TSI_LINE_SLOTS : size < BATCH_BYTES ? (uint8_t)(BATCH_BYTES / size) : 1;

    size_t slab = (size_t)1 << line_shift;
    if (slab < page) slab = page;
    if (slab < slab_min) slab = slab_min;
    shape->slab_bytes = (uint32_t)slab;
    shape->lines_log2 = (uint8_t)(tsi_log2(slab) - line_shift);

    size_t units = page >> unit_shift;
    bool one_page = size <= TSI_KIB(1) && page <= TSI_KIB(4), all = one_page && units >= TSI_LINE_SLOTS;
    shape->in_page = all ? ~0ull : one_page ? (1ull << units) - 1 : 0;
    shape->page_first = one_page && !all ? (uint8_t)(TSI_LINE_SLOTS - units) : 0;
}

void tsi_size_lut_init(void) {
    for (unsigned i = 0; i <= TSI_LUT_MAX / 16; i++) {
        unsigned best = 0;
        for (unsigned cls = 1; cls <= TSI_SMALL_CLASSES && i != 0; cls++) {
            uint32_t size = class_size(cls);
            if (size >= i * 16 && (best == 0 || size < class_size(best))) best = cls;
        }
        tsi_size_lut[i] = (uint8_t)best;
    }
}

void tsi_class_table_init(TsiClassTable* table, size_t page, size_t slab_min) {
    size_t least = slab_min != 0 ? slab_min : TSI_KIB(8);
    for (unsigned cls = 1; cls <= TSI_SMALL_CLASSES; cls++) {
        uint32_t size = class_size(cls);
        class_init(&table->c[cls], size, choose_cell(size), page, size <= 48 && slab_min == 0 ? page : least);
    }

    for (unsigned rank = 0; rank < TSI_REGION_SIZES; rank++) { /* granules of 16 bytes */
        size_t least_of_rank =
            rank == TSI_RANK_PART ? TSI_PART_BYTES : (size_t)TSI_REGION_MIN << 2 * (rank - TSI_RANK_PAGE);
        size_t unit = rank == TSI_RANK_PART && page == 2 * TSI_PART_BYTES ? TSI_PART_BYTES : page; /* or as a page */
        class_init(&table->c[tsi_region_class(rank)], 16, 10, unit, least_of_rank);
    }

    TsiClass* large = &table->c[TSI_CLASS_LARGE];
    unsigned unit_shift = page > 1u << TSI_UNIT_SHIFT ? tsi_log2(page) : TSI_UNIT_SHIFT;
    class_init(large, 1u << unit_shift, unit_shift, page, page);
    TsiClass* none[2] = {&table->c[0], &table->c[TSI_CLASS_CONT]};
    for (unsigned i = 0; i < 2; i++) {
        *none[i] = *large;
        none[i]->full = 0; /* no address starts an object */
        none[i]->line_mask = 0;
    }
}

unsigned tsi_class_aligned(const TsiClassTable* table, size_t size, size_t align) {
    unsigned best = 0;
    if (size > TSI_SMALL_MAX || align > TSI_SMALL_MAX) return 0;
    for (unsigned cls = 1; cls <= TSI_SMALL_CLASSES; cls++) {
        const TsiClass* shape = &table->c[cls];
        if (shape->size < size || (size_t)1 << shape->unit_shift < align) continue;
        if (best == 0 || shape->size < table->c[best].size) best = cls;
    }
    return best;
}
