/* An object freed by its handle, then by its pointer. */
#include "misuse.h"

CAUSES(r, r->double_free, 1)

static bool misuse(SlabAllocator* a) {
    SlabHandle h = 0;
    void* p = alloc_obj(a, 100, &h);
    return free_obj(a, h) && !slab_free_checked(a, kit_hide(p));
}
