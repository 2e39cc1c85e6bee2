/* With misuse_fatal a double free ends the program. */
#include "fatal.h"

static void misuse(SlabAllocator* a) {
    void* p = slab_malloc(a, 100);
    slab_free(a, p);
    slab_free(a, hide(p));
}
