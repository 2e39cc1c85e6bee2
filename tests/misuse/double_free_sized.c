/* The second free is a sized one. */
#include "misuse.h"

CAUSES(r, r->double_free, 1)

static bool misuse(SlabAllocator* a) {
    void* p = slab_malloc(a, 100);
    slab_free_sized(a, p, 100);
    slab_free_sized(a, kit_hide(p), 100);
    return slab_usable_size(a, kit_hide(p)) == 0;
}
