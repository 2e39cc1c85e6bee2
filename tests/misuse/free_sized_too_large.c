/* A sized free with more bytes than the object has. */
#include "misuse.h"

CAUSES(r, r->size_mismatch, 2)

static bool misuse(SlabAllocator* a) {
    void* p = slab_malloc(a, 128);
    slab_free_sized(a, p, 129);
    slab_free_sized(a, p, kit_size(SIZE_MAX));
    return slab_usable_size(a, p) == 128 && slab_free_checked(a, p);
}
