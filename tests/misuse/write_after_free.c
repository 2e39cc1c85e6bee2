/* Written to after its free, by an allocator that fills: told of the next object there. */
#define MISUSE_FILLS
#include "misuse.h"

CAUSES(r, r->write_after_end, 1)

static bool misuse(SlabAllocator* a) {
    enum { MOST = 64 };
    volatile unsigned char *p = slab_malloc(a, 8192), *q = NULL; /* beyond what lies in regions */
    slab_free(a, (void*)(uintptr_t)p);
    ((volatile unsigned char*)kit_hide((void*)(uintptr_t)p))[4000] = 1;
    for (unsigned n = 0; n < MOST && q != p; n++) q = slab_malloc(a, 8192);
    return q == p && q[4000] == 0;
}
