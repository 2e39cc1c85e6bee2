/* A plugin with the static library inside. */
#include <slab_alloc.h>

__attribute__((visibility("default"))) int plugin_use(void);

static SlabAllocator* allocator;

__attribute__((constructor)) static void begin(void) { allocator = slab_allocator_create(); }

/* 1 when it worked. The calling thread is known to the library from here on. */
int plugin_use(void) {
    void* p = slab_malloc(allocator, 100);
    return p != NULL && slab_free_checked(allocator, p);
}
