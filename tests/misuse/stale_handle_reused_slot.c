/* A handle whose slot has been given to a new object, by handle and by pointer. */
#include "misuse.h"

CAUSES(r, r->stale_handle, 2)

static bool misuse(SlabAllocator* a) {
    SlabHandle old = 0, now = 0;
    void* p = alloc_obj(a, 700, &old);
    bool ok = free_obj(a, old);
    void* q = alloc_obj(a, 700, &now);
    for (int i = 0; i < 200 && kit_hide(q) != kit_hide(p); i++) {
        q = alloc_obj(a, 700, &now);
    }
    ok = ok && !free_obj(a, old) && slab_handle_ptr(a, now) == q && free_obj(a, now);
    for (int i = 0; i < 200; i++) {
        q = slab_malloc(a, 700);
        if (kit_hide(q) == kit_hide(p)) {
            break;
        }
    }
    return ok && !free_obj(a, old) && slab_usable_size(a, q) == 768;
}
