/* Size 0, by every way to allocate. */
#include "misuse.h"

CAUSES(r, r->bad_size, 5)

static bool misuse(SlabAllocator* a) {
    SlabHandle h = 9;
    errno = 0;
    bool ok = slab_malloc(a, 0) == NULL && errno == EINVAL;
    ok = ok && slab_malloc_epoch(a, 0, 1) == NULL && alloc_obj(a, 0, &h) == NULL && h == 0;
    return ok && slab_calloc(a, 0, 10) == NULL && slab_aligned_alloc(a, 64, 0) == NULL;
}
