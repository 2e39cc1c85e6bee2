/* Freed by its owner, then by another thread. */
#include "misuse.h"

CAUSES(r, r->double_free, 1)

static bool misuse(SlabAllocator* a) {
    void* p = slab_malloc(a, 100);
    return slab_free_checked(a, p) && !free_elsewhere(a, kit_hide(p));
}
