/* The same in the names of this library. */
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdio.h>
#include <string.h>

static SlabPhaseStats phase_of(SlabAllocator* a, uint64_t era) {
    SlabPhaseStats phases[16];
    size_t n = slab_stats_phases(a, phases, 16);
    for (size_t i = 0; i < n && i < 16; i++)
        if (phases[i].epoch_era == era) return phases[i];
    return (SlabPhaseStats){0};
}

static void request(SlabAllocator* a) {
    epoch_domain_t* domain = epoch_domain_begin(a, "GET /api/users");
    for (int i = 0; i < 100; i++)
        if (slab_malloc(a, 128) == NULL) return;
    SlabPhaseStats phase = phase_of(a, domain->epoch_era);
    printf("%s: %d objects\n", phase.label, (int)phase.live_objects);
    printf("  entered: %s\n", epoch_domain_current() == domain ? "yes" : "no");
    printf("  memory: %s\n", phase.committed_bytes >= 12800 ? "yes" : "no");
    epoch_domain_end(domain);
}

int main(void) {
    SlabAllocator* a = slab_allocator_create();
    uint64_t start = slab_now_ns();
    request(a);

    epoch_domain_t* batch = epoch_domain_begin(a, "batch");
    SlabHandle handle;
    if (alloc_obj(a, 200, &handle) == NULL) return 3;
    bool freed = free_obj(a, handle);
    printf("freed by handle: %s\n", freed ? "yes" : "no");
    epoch_domain_end(batch);

    EpochId ring = epoch_current(a);
    for (int i = 0; i < 100; i++)
        if (slab_malloc(a, 128) == NULL) return 3;
    SlabClassStats class2;
    slab_stats_class(a, 2, &class2);
    printf("class 2: slow path %s, ", class2.slow_path_hits > 0 ? "taken" : "never");
    printf("contention %.0f %%\n", class2.lock_contention_rate * 100);
    epoch_advance(a);
    EpochReceipt r;
    epoch_close_ex(a, ring, EPOCH_DRAIN, &r);
    printf("closed: %d objects live\n", (int)r.objects_escaped);
    printf("clock and resident size: %s\n", slab_now_ns() >= start && slab_rss_bytes() > 0 ? "yes" : "no");
    slab_allocator_free(a);
}
