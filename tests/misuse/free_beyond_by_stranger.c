/* Pointers into what the allocator has reserved and never used, freed by threads that have never allocated, and by one
 * that has. */
#include "misuse.h"

enum { BEYOND = 64 << 20 };

CAUSES(r, r->foreign_pointer, 6)

static bool misuse(SlabAllocator* a) {
    char* p = slab_malloc(a, 64);
    bool refused = p != NULL;
    for (size_t n = 1; n <= 3; n++) {
        char* wild = kit_hide(p + n * BEYOND);
        refused = !free_elsewhere(a, wild) && !slab_free_checked(a, wild) && refused;
    }
    return refused && slab_free_checked(a, p);
}
