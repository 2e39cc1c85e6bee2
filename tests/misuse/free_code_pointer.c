/* The address of a function. */
#include "misuse.h"

CAUSES(r, r->foreign_pointer, 1)

static bool misuse(SlabAllocator* a) { return !slab_free_checked(a, kit_hide((const void*)(uintptr_t)&misuse)); }
