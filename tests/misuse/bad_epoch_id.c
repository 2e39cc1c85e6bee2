/* Epoch ids that name nothing. */
#include "misuse.h"

CAUSES(r, r->bad_epoch, 3)

static bool misuse(SlabAllocator* a) {
    SlabHandle h = 9;
    errno = 0;
    bool ok = slab_malloc_epoch(a, 100, 16) == NULL && errno == EINVAL;
    ok = ok && alloc_obj_epoch(a, 100, 1000000, &h) == NULL && h == 0;
    return ok && slab_malloc_epoch(a, 100, 0x7FFFFFFFu) == NULL;
}
