/* Allocating in closed and in left epochs. */
#include "misuse.h"

CAUSES(r, r->closed_epoch, 3)

static bool misuse(SlabAllocator* a) {
    epoch_close(a, 3);
    errno = 0;
    bool ok = slab_malloc_epoch(a, 100, 3) == NULL && errno == ESTALE;
    epoch_advance(a);
    ok = ok && slab_malloc_epoch(a, 100, 0) == NULL;
    epoch_close(a, epoch_current(a));
    return ok && slab_malloc(a, 100) == NULL && errno == ESTALE;
}
