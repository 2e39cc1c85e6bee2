/* A pointer of the C library. */
#include "misuse.h"

CAUSES(r, r->foreign_pointer, 1)

static bool misuse(SlabAllocator* a) {
    char* p = malloc(100);
    bool ok = p != NULL && !slab_free_checked(a, kit_hide(p));
    free(p);
    return ok;
}
