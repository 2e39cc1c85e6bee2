/* test_size_class.c - the class tables for every page size and slab size: exhaustive where that is cheap. */
#define KIT_RING_BY_CLASS
#include "kit/inside.h"

#include "mem/size_class.h"

static const size_t page_sizes[] = {4096, 16384, 65536};
static const size_t slab_sizes[] = {0, 4096, 16384, 65536};
static TsiClassTable table;

static void for_each_table(void (*fn)(size_t page, size_t slab)) {
    for (unsigned p = 0; p < 3; p++)
        for (unsigned s = 0; s < 4; s++) {
            tsi_class_table_init(&table, page_sizes[p], slab_sizes[s]);
            fn(page_sizes[p], slab_sizes[s]);
        }
}

static void fixed_classes(void) {
    static const uint32_t sizes[SLAB_FIXED_CLASSES] = {64, 96, 128, 192, 256, 384, 512, 768};
    tsi_class_table_init(&table, 4096, 0);
    for (unsigned i = 0; i < SLAB_FIXED_CLASSES; i++) REQUIRE_EQ(table.c[i + 1].size, sizes[i]);
}

/* Every size gets the smallest class that holds it. */
static void every_size_gets_the_smallest_class(void) {
    tsi_class_table_init(&table, 4096, 0);
    for (size_t size = 1; size <= TSI_SMALL_MAX; size++) {
        unsigned cls = tsi_class_of(size), best = 0;
        for (unsigned i = 1; i <= TSI_SMALL_CLASSES; i++)
            if (table.c[i].size >= size && (best == 0 || table.c[i].size < table.c[best].size)) best = i;
        if (cls != best) FAIL("size %zu: class %u, smallest is %u", size, cls, best);
    }
    REQUIRE_EQ(tsi_class_of(0), 0);
    REQUIRE_EQ(tsi_class_of(TSI_SMALL_MAX + 1), 0);
    REQUIRE_EQ(tsi_class_of(SIZE_MAX), 0);
}

/* No class wastes more than a quarter on the sizes it serves. */
static void inner_waste_is_bounded(void) {
    tsi_class_table_init(&table, 4096, 0);
    for (size_t size = 129; size <= TSI_SMALL_MAX; size++) REQUIRE(table.c[tsi_class_of(size)].size <= size + size / 2);
}

static void slots_of_lines(size_t page, size_t slab) {
    (void)slab;
    for (unsigned cls = 1; cls < TSI_CLASSES; cls = kit_class_after(cls)) {
        const TsiClass* c = &table.c[cls];
        uint32_t line = 1u << c->line_shift, end = 0;
        unsigned slots = 0;
        for (unsigned slot = 0; slot < TSI_LINE_SLOTS; slot++) {
            uint32_t at = tsi_class_offset(c, slot);
            if ((c->full >> slot & 1) == 0) {
                REQUIRE(at >= line || !tsi_class_starts(c, at)); /* a hole */
                continue;
            }
            REQUIRE(at >= end); /* they ascend and do not overlap */
            end = at + c->size;
            REQUIRE(end <= line);
            REQUIRE_EQ(at % (1u << c->unit_shift), 0);
            REQUIRE_EQ(at % 16, 0);
            REQUIRE_EQ(tsi_class_slot(c, at), slot);
            REQUIRE(tsi_class_starts(c, at));
            /* One survivor pins as few pages as its size needs. */
            if (c->size <= 1024 && page == 4096) REQUIRE_EQ(at / 4096, (end - 1) / 4096);
            slots++;
        }
        REQUIRE_EQ(slots, c->slots);
        REQUIRE(slots > 0 && c->threshold >= 1 && c->threshold <= slots);
    }
}
static void slots_fit_their_lines(void) { for_each_table(slots_of_lines); }

static void slabs_of_classes(size_t page, size_t slab) {
    for (unsigned cls = 1; cls < TSI_CLASSES; cls = kit_class_after(cls)) {
        const TsiClass* c = &table.c[cls];
        REQUIRE(tsi_is_pow2(c->slab_bytes));
        bool part = cls == TSI_CLASS_PART && page == 4096; /* else a page has one owner */
        if (part)
            REQUIRE_EQ(2 * c->slab_bytes, page);
        else
            REQUIRE_EQ(c->slab_bytes % page, 0);
        if (cls <= TSI_SMALL_CLASSES) REQUIRE(c->slab_bytes >= slab);
        REQUIRE(c->slab_bytes <= 1u << TSI_CHUNK_SHIFT);
        REQUIRE_EQ(c->slab_bytes >> c->lines_log2, 1u << c->line_shift);
        REQUIRE((1u << TSI_CHUNK_SHIFT) >> c->line_shift <= 1024); /* lines of a chunk */
        REQUIRE((1u << TSI_CHUNK_SHIFT) / c->slab_bytes <=
                (part ? 512 : 256)); /* slabs of a chunk; parts use half of it */
        /* Slots fill at least 15/16 of a line up to 8 KiB; the tail of larger cells is never touched. */
        if (c->size <= 8192) REQUIRE((uint64_t)c->slots * c->size * 16 >= ((uint64_t)15 << c->line_shift));
    }
}
static void slabs_are_whole_pages_and_cells(void) { for_each_table(slabs_of_classes); }

/* Whatever the line offset: it is the start of a slot or it is refused. */
static void interior_addresses_are_refused(void) {
    tsi_class_table_init(&table, 4096, 0);
    for (unsigned cls = 1; cls < TSI_CLASSES; cls = kit_class_after(cls)) {
        const TsiClass* c = &table.c[cls];
        unsigned starts = 0;
        for (uint32_t in = 0; in < 1u << c->line_shift; in++) {
            unsigned slot = tsi_class_slot(c, in);
            REQUIRE(slot < TSI_LINE_SLOTS);
            bool is_start = (c->full >> slot & 1) != 0 && tsi_class_offset(c, slot) == in;
            REQUIRE_EQ(tsi_class_starts(c, in), is_start);
            starts += is_start;
        }
        REQUIRE_EQ(starts, c->slots);
    }
}

static void aligned_classes(void) {
    static const size_t sizes[] = {1, 16, 24, 48, 64, 65, 100, 128, 192, 300, 1000, 4096, 5000, 65536, 100000, 262144};
    tsi_class_table_init(&table, 4096, 0);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t align = 16; align <= TSI_SMALL_MAX; align *= 2) {
            unsigned cls = tsi_class_aligned(&table, sizes[i], align);
            REQUIRE_NE(cls, 0); /* a class of a power of two always will do */
            const TsiClass* c = &table.c[cls];
            REQUIRE(c->size >= sizes[i]);
            for (unsigned slot = 0; slot < TSI_LINE_SLOTS; slot++)
                if (c->full >> slot & 1) REQUIRE_EQ(tsi_class_offset(c, slot) % align, 0);
            REQUIRE((1u << c->line_shift) % align == 0 || c->slots == 1);
        }
    REQUIRE_EQ(tsi_class_aligned(&table, TSI_SMALL_MAX + 1, 16), 0);
    REQUIRE_EQ(tsi_class_aligned(&table, 64, TSI_SMALL_MAX * 2), 0);
}

/* A class that is a power of two is aligned to its size. */
static void natural_alignment(void) {
    SlabAllocator* a = kit_create();
    for (size_t size = 16; size <= TSI_SMALL_MAX; size *= 2)
        for (unsigned n = 0; n < 5; n++) {
            void* p = slab_malloc(a, size);
            REQUIRE(p != NULL);
            REQUIRE_EQ((uintptr_t)p % size, 0);
        }
    for (size_t align = 16; align <= 4u << 20; align *= 2) {
        void* p = slab_aligned_alloc(a, align, 100);
        REQUIRE(p != NULL);
        REQUIRE_EQ((uintptr_t)p % align, 0);
        REQUIRE(slab_free_checked(a, p));
    }
    slab_allocator_free(a);
}

/* Kinds of chunks that have no slots refuse every offset. */
static void classes_without_slots(void) {
    static const unsigned none[] = {0, TSI_CLASS_CONT};
    tsi_class_table_init(&table, 4096, 0);
    for (unsigned i = 0; i < 2; i++) REQUIRE_EQ(table.c[none[i]].full, 0);
    REQUIRE_EQ(table.c[TSI_CLASS_LARGE].slots, 1);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(fixed_classes),
        CHECK_CASE(every_size_gets_the_smallest_class),
        CHECK_CASE(inner_waste_is_bounded),
        CHECK_CASE(slots_fit_their_lines),
        CHECK_CASE(slabs_are_whole_pages_and_cells),
        CHECK_CASE(interior_addresses_are_refused),
        CHECK_CASE(aligned_classes),
        CHECK_CASE(natural_alignment),
        CHECK_CASE(classes_without_slots),
    };
    (void)slab_page_size(); /* fills the table of small sizes */
    return CHECK_RUN(argc, argv, tests);
}
