/* With misuse_fatal the free of a stack pointer ends the program. */
#include "fatal.h"

static void misuse(SlabAllocator* a) {
    char local[64] = {0};
    will_say("no label", "foreign_pointer, pointer %p", (void*)local);
    slab_free(a, kit_hide(local));
}
