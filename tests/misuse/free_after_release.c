/* An object of a phase that has been released. */
#include "misuse.h"

CAUSES(r, r->stale_free, 2)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    void* p = slab_malloc(a, 100);
    epoch_domain_end(d);
    return !slab_free_checked(a, kit_hide(p)) && !free_elsewhere(a, kit_hide(p));
}
