/* A large object freed twice: its memory may be gone already. */
#include "misuse.h"

CAUSES(r, r->double_free + r->stale_free, 2)

static bool misuse(SlabAllocator* a) {
    void* p = slab_malloc(a, 5u << 20);
    slab_free(a, p);
    return !slab_free_checked(a, kit_hide(p)) && !free_elsewhere(a, kit_hide(p));
}
