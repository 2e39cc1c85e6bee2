/* Pointers into an object. */
#include "misuse.h"

CAUSES(r, r->interior_pointer, 3)

static bool misuse(SlabAllocator* a) {
    char* p = slab_malloc(a, 128);
    bool ok = !slab_free_checked(a, p + 1) && !slab_free_checked(a, p + 16) && !slab_free_checked(a, p + 127);
    return ok && slab_usable_size(a, p) == 128 && slab_free_checked(a, p);
}
