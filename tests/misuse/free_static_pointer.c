/* A pointer to static storage. */
#include "misuse.h"

CAUSES(r, r->foreign_pointer, 1)

static bool misuse(SlabAllocator* a) {
    static char data[64];
    return !slab_free_checked(a, kit_hide(data)) && data[0] == 0;
}
