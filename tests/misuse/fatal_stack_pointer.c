/* With misuse_fatal the free of a stack pointer ends the program. */
#include "fatal.h"

static void misuse(SlabAllocator* a) {
    char local[64] = {0};
    slab_free(a, hide(local));
}
