/* Resizing a local array. */
#include "misuse.h"

CAUSES(r, r->foreign_pointer, 1)

static bool misuse(SlabAllocator* a) {
    char local[64] = {5};
    errno = 0;
    return slab_realloc(a, kit_hide(local), 5000) == NULL && errno == EINVAL && local[0] == 5;
}
