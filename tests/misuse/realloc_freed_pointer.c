/* Resizing what has been freed. */
#include "misuse.h"

CAUSES(r, r->double_free, 2)

static bool misuse(SlabAllocator* a) {
    void* p = slab_malloc(a, 100);
    slab_free(a, p);
    errno = 0;
    bool ok = slab_realloc(a, kit_hide(p), 5000) == NULL && errno == EINVAL;
    return ok && slab_realloc_epoch(a, kit_hide(p), 5000, 1) == NULL;
}
