/* Attaching a scope more often than it was detached. */
#include "misuse.h"

CAUSES(r, r->domain_order, 2)

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    bool ok = !epoch_domain_attach(d) && epoch_domain_detach(d) && epoch_domain_attach(d) && !epoch_domain_attach(d);
    ok = ok && d->refcount == 1 && epoch_domain_current() == d;
    epoch_domain_end(d);
    return ok;
}
