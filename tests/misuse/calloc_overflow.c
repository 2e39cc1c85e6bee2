/* An array whose bytes do not fit a size. */
#include "misuse.h"

CAUSES(r, r->bad_size, 2)

static bool misuse(SlabAllocator* a) {
    errno = 0;
    bool ok = slab_calloc(a, kit_size(SIZE_MAX / 2), 3) == NULL && errno == ENOMEM;
    return ok && slab_calloc_epoch(a, kit_size(SIZE_MAX / 4), SIZE_MAX / 4, 2) == NULL;
}
