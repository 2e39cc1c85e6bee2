/* Pointers into a large object. */
#include "misuse.h"

CAUSES(r, r->interior_pointer, 3)

static bool misuse(SlabAllocator* a) {
    char* p = slab_malloc(a, 5u << 20);
    bool ok = !slab_free_checked(a, p + 4096) && !slab_free_checked(a, p + (1u << 20)) &&
              !slab_free_checked(a, p + (5u << 20) - 1);
    return ok && slab_free_checked(a, p);
}
