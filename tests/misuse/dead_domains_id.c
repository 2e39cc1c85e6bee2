/* The epoch id of a domain that has been destroyed. */
#include "misuse.h"

CAUSES(r, r->closed_epoch + r->bad_epoch, 1)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_create(a);
    EpochId id = d->epoch_id;
    epoch_domain_destroy(d);
    return slab_malloc_epoch(a, 100, id) == NULL;
}
