/* Closing what does not exist. */
#include "misuse.h"

CAUSES(r, r->bad_epoch, 2)

static bool misuse(SlabAllocator* a) {
    return !epoch_close_ex(a, 16, EPOCH_RELEASE, NULL) && !epoch_close_ex(a, 0x7FFFFFFFu, EPOCH_DRAIN, NULL);
}
