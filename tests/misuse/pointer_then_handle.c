/* An object freed by its pointer, then by its handle. */
#include "misuse.h"

CAUSES(r, r->stale_handle + r->double_free, 1)

static bool misuse(SlabAllocator* a) {
    SlabHandle h = 0;
    void* p = alloc_obj(a, 100, &h);
    return slab_free_checked(a, p) && !free_obj(a, h);
}
