/* What a program outside the project looks like: valid C11 and C++17, public headers only. */
#include <epoch_domain.h>
#include <slab_alloc.h>
#include <slab_stats.h>

#include <stdio.h>
#include <string.h>
#ifdef __cplusplus
#include <tslab.hpp>
#endif

int main(void) {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", TSLAB_VERSION_MAJOR, TSLAB_VERSION_MINOR, TSLAB_VERSION_PATCH);
    if (strcmp(version, slab_version()) != 0) {
        fprintf(stderr, "headers are %s, the library is %s\n", version, slab_version());
        return 1;
    }
#ifdef __cplusplus
    if (tslab::scope(tslab::allocator()).end().objects_allocated != 0) return 1;
#endif
    SlabAllocator* a = slab_allocator_create();
    if (a == NULL) {
        fprintf(stderr, "%s\n", slab_last_error());
        return 1;
    }
    epoch_domain_t* domain = epoch_domain_begin(a, "consumer");
    char* text = (char*)slab_malloc(a, 100);
    if (domain == NULL || text == NULL) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    strcpy(text, "installed");
    puts(text);
    epoch_domain_end(domain);

    SlabGlobalStats stats;
    slab_stats_global(a, &stats);
    slab_allocator_free(a);
    return stats.live_objects == 0 ? 0 : 1;
}
