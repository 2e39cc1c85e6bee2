/* A handle of a phase that has been released. */
#include "misuse.h"

CAUSES(r, r->stale_handle, 1)

static bool misuse(SlabAllocator* a) {
    SlabHandle h = 0;
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    bool ok = alloc_obj(a, 100, &h) != NULL;
    epoch_domain_end(d);
    return ok && !free_obj(a, h) && slab_handle_ptr(a, h) == NULL;
}
