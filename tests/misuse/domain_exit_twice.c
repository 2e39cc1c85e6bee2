/* Leaving a scope once too often. */
#include "misuse.h"

CAUSES(r, r->domain_order, 1)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    epoch_domain_exit(d);
    epoch_domain_exit(d);
    bool ok = d->refcount == 0;
    epoch_domain_destroy(d);
    return ok;
}
