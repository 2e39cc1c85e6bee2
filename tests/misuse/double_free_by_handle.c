/* One handle freed twice. */
#include "misuse.h"

CAUSES(r, r->stale_handle + r->double_free, 1)

static bool misuse(SlabAllocator* a) {
    SlabHandle h = 0;
    return alloc_obj(a, 100, &h) != NULL && free_obj(a, h) && !free_obj(a, h);
}
