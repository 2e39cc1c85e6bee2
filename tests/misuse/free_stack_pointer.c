/* A pointer to the stack. */
#include "misuse.h"

CAUSES(r, r->foreign_pointer, 1)

static bool misuse(SlabAllocator* a) {
    char local[64] = {0};
    return !slab_free_checked(a, kit_hide(local + 16)) && local[16] == 0;
}
