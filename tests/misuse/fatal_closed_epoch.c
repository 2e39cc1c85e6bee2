/* With misuse_fatal an allocation in an epoch that has ended ends the program. */
#include "fatal.h"

static void misuse(SlabAllocator* a) {
    EpochId was = epoch_current(a);
    slab_epoch_set_label(a, was, "(1) thirty-one bytes of a label!");
    (void)slab_malloc(a, 10);
    epoch_advance(a);
    will_say("label \"(1) thirty-one bytes of a label\"", "closed_epoch");
    (void)slab_malloc_epoch(a, 10, was);
}
