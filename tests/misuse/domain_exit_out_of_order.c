/* Leaving the outer scope first. */
#include "misuse.h"

CAUSES(r, r->domain_order, 1)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* outer = epoch_domain_begin(a, NULL);
    epoch_domain_t* inner = epoch_domain_begin(a, NULL);
    void* p = slab_malloc(a, 100);
    epoch_domain_exit(outer);
    bool ok = epoch_domain_current() == inner && outer->refcount == 1 && slab_usable_size(a, p) == 112;
    epoch_domain_end(inner);
    epoch_domain_end(outer);
    return ok;
}
