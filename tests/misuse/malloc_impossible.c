/* Sizes no object can have. */
#include "misuse.h"

CAUSES(r, r->bad_size, 2)

static bool misuse(SlabAllocator* a) {
    return slab_malloc(a, kit_size(SIZE_MAX)) == NULL && slab_malloc(a, kit_size((size_t)PTRDIFF_MAX + 1)) == NULL;
}
