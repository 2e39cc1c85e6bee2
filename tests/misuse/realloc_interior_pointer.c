/* Resizing from the middle of an object. */
#include "misuse.h"

CAUSES(r, r->interior_pointer, 1)

static bool misuse(SlabAllocator* a) {
    char* p = slab_malloc(a, 100);
    memset(p, 7, 100);
    errno = 0;
    bool ok = slab_realloc(a, p + 16, 5000) == NULL && errno == EINVAL;
    return ok && p[0] == 7 && p[99] == 7 && slab_free_checked(a, p);
}
