/* With misuse_fatal an allocation of nothing ends the program. */
#include "fatal.h"

static void misuse(SlabAllocator* a) {
    will_say("no label", "bad_size");
    (void)slab_malloc(a, 0);
}
