/* The handle of another allocator. */
#include "misuse.h"

CAUSES(r, r->bad_handle + r->stale_handle, 1)

static bool misuse(SlabAllocator* a) {
    SlabAllocator* other = slab_allocator_create();
    SlabHandle h = 0, mine = 0;
    bool ok = alloc_obj(other, 100, &h) != NULL && alloc_obj(a, 100, &mine) != NULL;
    ok = ok && !free_obj(a, h) && free_obj(other, h) && free_obj(a, mine);
    slab_allocator_free(other);
    return ok;
}
