/* The same pointer freed twice on one thread. */
#include "misuse.h"

CAUSES(r, r->double_free, 2)

static bool misuse(SlabAllocator* a) {
    void* p = slab_malloc(a, 100);
    slab_free(a, p);
    slab_free(a, kit_hide(p));
    return !slab_free_checked(a, kit_hide(p));
}
