/* Forcing the end of a borrowed epoch that the ring has moved past. */
#include "misuse.h"

CAUSES(r, r->domain_stale, 1)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_wrap(a, 0, true);
    for (int i = 0; i < 16; i++) {
        epoch_advance(a);
    }
    epoch_domain_force_close(d);
    bool ok = epoch_state(a, 0) == EPOCH_ACTIVE && slab_malloc(a, 100) != NULL;
    epoch_domain_destroy(d);
    return ok;
}
