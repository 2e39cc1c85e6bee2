/* Allocating in a domain that was destroyed, while the epoch that it had borrowed goes on. */
#include "misuse.h"

CAUSES(r, r->domain_stale, 1)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_wrap(a, epoch_current(a), false);
    bool ok = epoch_domain_malloc(d, 100) != NULL && epoch_domain_malloc(d, 100) != NULL;
    epoch_domain_destroy(d);
    errno = 0;
    return ok && epoch_domain_malloc(d, 100) == NULL && errno == ESTALE && slab_malloc(a, 100) != NULL;
}
