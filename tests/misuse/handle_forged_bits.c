/* A valid handle with each of its bits flipped in turn. */
#include "misuse.h"

CAUSES(r, r->bad_handle + r->stale_handle, 64)

static bool misuse(SlabAllocator* a) {
    SlabHandle h = 0;
    void* p = alloc_obj(a, 100, &h);
    bool ok = p != NULL;
    for (unsigned bit = 0; bit < 64; bit++) {
        ok = !free_obj(a, h ^ ((SlabHandle)1 << bit)) && ok;
    }
    return ok && slab_handle_ptr(a, h) == p && free_obj(a, h);
}
