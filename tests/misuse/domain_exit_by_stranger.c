/* Leaving a scope that another thread entered. */
#include "misuse.h"

CAUSES(r, r->domain_order, 1)

static void* stranger(void* d) {
    epoch_domain_exit(d);
    return NULL;
}

static bool misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    pthread_t t;
    if (pthread_create(&t, NULL, stranger, d) != 0) {
        return false;
    }
    pthread_join(t, NULL);
    bool ok = d->refcount == 1 && epoch_domain_current() == d;
    epoch_domain_end(d);
    return ok;
}
