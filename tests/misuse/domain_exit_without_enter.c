/* Leaving a scope nobody entered. */
#include "misuse.h"

CAUSES(r, r->domain_order, 1)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_create(a);
    epoch_domain_exit(d);
    bool ok = d->refcount == 0 && epoch_domain_malloc(d, 100) != NULL;
    epoch_domain_destroy(d);
    return ok;
}
