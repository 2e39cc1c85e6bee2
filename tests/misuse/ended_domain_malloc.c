/* Allocating in a domain whose epoch has ended. */
#include "misuse.h"

CAUSES(r, r->closed_epoch + r->domain_stale, 1)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    epoch_domain_exit(d);
    errno = 0;
    bool ok = epoch_domain_malloc(d, 100) == NULL && errno == ESTALE;
    epoch_domain_destroy(d);
    return ok;
}
