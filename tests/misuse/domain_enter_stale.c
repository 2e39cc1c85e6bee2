/* Entering a borrowed epoch that the ring has moved past. */
#include "misuse.h"

CAUSES(r, r->domain_stale, 1)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_wrap(a, 3, true);
    for (int i = 0; i < 20; i++) {
        epoch_advance(a);
    }
    epoch_domain_enter(d);
    bool ok = epoch_domain_current() == NULL && d->refcount == 0;
    epoch_domain_destroy(d);
    return ok;
}
