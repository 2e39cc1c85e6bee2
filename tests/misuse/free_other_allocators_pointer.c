/* An object of another allocator. */
#include "misuse.h"

CAUSES(r, r->foreign_pointer, 2)

static bool misuse(SlabAllocator* a) {
    SlabAllocator* other = slab_allocator_create();
    char* p = slab_malloc(other, 100);
    char* large = slab_malloc(other, 5u << 20);
    bool ok = !slab_free_checked(a, p) && !slab_free_checked(a, large);
    ok = ok && slab_free_checked(other, p) && slab_free_checked(other, large);
    slab_allocator_free(other);
    return ok;
}
