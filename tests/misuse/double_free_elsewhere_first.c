/* Freed by another thread, then by its owner. */
#include "misuse.h"

CAUSES(r, r->double_free, 1)

static bool misuse(SlabAllocator* a) {
    void* p = slab_malloc(a, 100);
    return free_elsewhere(a, p) && !slab_free_checked(a, kit_hide(p));
}
