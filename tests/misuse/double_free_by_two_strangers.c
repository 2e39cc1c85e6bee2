/* Freed by two threads in turn, neither of them its owner. */
#include "misuse.h"

CAUSES(r, r->double_free, 1)

static bool misuse(SlabAllocator* a) {
    void* p = slab_malloc(a, 100);
    return free_elsewhere(a, p) && !free_elsewhere(a, kit_hide(p));
}
