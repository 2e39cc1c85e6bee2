/* The last object of a drained phase freed twice: its slab is gone. */
#include "misuse.h"

CAUSES(r, r->double_free + r->stale_free, 1)

static bool misuse(SlabAllocator* a) {
    void* p = slab_malloc_epoch(a, 100, 3);
    epoch_close(a, 3);
    return slab_free_checked(a, p) && !slab_free_checked(a, kit_hide(p));
}
