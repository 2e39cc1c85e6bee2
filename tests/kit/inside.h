/*
 * inside.h - fixture.h, and what a test sees through the internal headers: the checker, where an object lies.
 */
#ifndef TESTS_KIT_INSIDE_H
#define TESTS_KIT_INSIDE_H

#include "api/internal.h"
#include "stats/check.h"

/* Small reservations: there are many of them, and some are used up. */
#ifndef KIT_RESERVE_BYTES
#define KIT_RESERVE_BYTES (TSI_RESERVE_MIN * 16)
#endif

#include "kit/fixture.h"

/* The allocator's own checker finds nothing wrong. */
static inline void kit_check_at(SlabAllocator* a, const char* file, int line) {
    char why[256] = "";
    if (tsi_check_allocator(a, why, sizeof why)) return;
    check_failed(file, line, "the allocator's own checker: %s", why);
    check_leave();
}
#define kit_check(a) kit_check_at((a), __FILE__, __LINE__)

/* As it stands: no call of the library looks at anything else. */
static inline uint64_t kit_committed_now(SlabAllocator* a) {
    return tsi_load_relaxed(&tsi_arena(a)->space.committed_bytes);
}

static inline EpochReceipt kit_end(SlabAllocator* a, EpochId id, EpochCloseMode mode) {
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, id, mode, &r));
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.epoch_id, id);
    kit_check(a);
    return r;
}

/* The classes that have slabs, one after the other: those of sizes, then those of regions. */
static inline unsigned kit_class_after(unsigned cls) { return cls == TSI_CLASS_REGION ? TSI_CLASS_CONT + 1 : cls + 1; }

/* Where an object lies. */
static inline TsiPlace kit_place(SlabAllocator* a, const void* p) {
    TsiPlace at = {0, 0, 0, 0};
    REQUIRE_EQ(tsi_space_locate(&tsi_arena(a)->space, p, &at), TSI_PLACE_OK);
    return at;
}
static inline uint64_t kit_tag(SlabAllocator* a, const void* p) {
    return tsi_load_seq(&tsi_slab(&tsi_arena(a)->space, kit_place(a, p).slab_id)->tag);
}
static inline TsiBinding* kit_binding(SlabAllocator* a) { return tsi_binding_get(tsi_arena(a), false); }

#endif
