/* Allocating in closed and in left epochs. */
#include "misuse.h"

CAUSES(r, r->closed_epoch, 3)

static bool misuse(SlabAllocator* a) {
    epoch_close(a, 3);
    errno = 0;
    bool ok = slab_malloc_epoch(a, 100, 3) == NULL && errno == ESTALE;
    epoch_advance(a);
    ok = ok && slab_malloc_epoch(a, 100, 0) == NULL;
    EpochId was = epoch_current(a);
    epoch_close(a, was); /* the ring goes on */
    ok = ok && slab_malloc(a, 100) != NULL;
    return ok && slab_malloc_epoch(a, 100, was) == NULL && errno == ESTALE;
}
