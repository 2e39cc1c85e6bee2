/*
 * one.h - one allocator a case: kit_open... and kit_close are what comes before and after it, or parts of that.
 */
#ifndef TESTS_KIT_ONE_H
#define TESTS_KIT_ONE_H

#include "kit/inside.h"

static SlabAllocator* a;
__attribute__((unused)) static TsiArena* arena;
__attribute__((unused)) static TsiSpace* space;

static inline void kit_open_with(SlabOptions o) {
    a = kit_create_with(&o);
    arena = tsi_arena(a);
    space = &arena->space;
}
static inline void kit_open_cold(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    kit_open_with(o);
}

static inline void kit_close(void) {
    kit_check(a);
    slab_allocator_free(a);
}

#endif
