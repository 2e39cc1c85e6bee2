/* NULL for every pointer argument: nothing happens, and nobody is there to count it. */
#include "misuse.h"

CAUSES(r, all_causes(r), 0)

static bool misuse(SlabAllocator* a) {
    SlabHandle h = 1;
    slab_free(a, NULL);
    slab_free(NULL, a);
    slab_free_sized(a, NULL, 5);
    bool ok = slab_free_checked(a, NULL) && alloc_obj(NULL, 10, &h) == NULL && h == 0;
    ok = ok && !free_obj(NULL, 5) && slab_malloc(NULL, 10) == NULL && slab_realloc(NULL, NULL, 10) == NULL;
    epoch_advance(NULL);
    epoch_close(NULL, 0);
    epoch_domain_enter(NULL);
    epoch_domain_exit(NULL);
    epoch_domain_destroy(NULL);
    epoch_domain_force_close(NULL);
    epoch_domain_end(NULL);
    slab_epoch_set_label(a, 1, NULL);
    slab_epoch_set_label(NULL, 1, "x");
    slab_stats_global(a, NULL);
    slab_allocator_free(NULL);
    return ok && epoch_domain_create(NULL) == NULL && epoch_close_ex(a, 2, EPOCH_DRAIN, NULL);
}
