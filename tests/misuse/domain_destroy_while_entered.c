/* Destroying a domain with somebody inside. */
#include "misuse.h"

CAUSES(r, r->domain_order, 1)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    void* p = slab_malloc(a, 100);
    epoch_domain_destroy(d);
    bool ok = epoch_domain_current() == d && slab_usable_size(a, p) == 112;
    epoch_domain_end(d);
    return ok;
}
