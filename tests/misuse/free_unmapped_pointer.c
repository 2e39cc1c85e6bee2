/* Addresses where nothing is mapped, and wild ones. */
#include "misuse.h"

#include <sys/mman.h>

CAUSES(r, r->foreign_pointer, 5)

static bool misuse(SlabAllocator* a) {
    char* p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 4096);
    return !slab_free_checked(a, kit_hide(p)) && !slab_free_checked(a, (void*)(uintptr_t)1) &&
           !slab_free_checked(a, (void*)(uintptr_t)4096) && !slab_free_checked(a, (void*)UINTPTR_MAX) &&
           !slab_free_checked(a, (void*)(uintptr_t)((uint64_t)1 << 47));
}
