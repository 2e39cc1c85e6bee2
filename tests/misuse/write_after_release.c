/* Written to after the release of its phase, by an allocator that fills: told of an object of a later phase there. */
#define MISUSE_FILLS
#include "misuse.h"

CAUSES(r, r->write_after_end, 1)

static volatile unsigned char* in_phase(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, "short");
    volatile unsigned char* p = slab_malloc(a, 3000);
    return epoch_domain_end(d) ? p : NULL;
}

static bool misuse(SlabAllocator* a) {
    enum { MOST = 4096 };
    volatile unsigned char *p = in_phase(a), *q = NULL;
    ((volatile unsigned char*)kit_hide((void*)(uintptr_t)p))[2999] = 1;
    for (unsigned n = 0; n < MOST && q != p; n++) q = in_phase(a);
    return q == p;
}
