/* A program in the names of the founding papers. The header below is all that it needs here. */
#include <slab_papers_compat.h>
#include <stdio.h>

static void request(SlabAllocator* a) { /* a scope with a label, made as it is entered */
    epoch_domain_t* domain = epoch_domain_enter(a, "GET /api/users");
    for (int i = 0; i < 100; i++)
        if (slab_malloc_epoch(a, 128, domain->epoch_id) == NULL) return;
    EpochStats epoch;
    slab_stats_epoch(a, domain->epoch_id, &epoch);
    printf("%s: %d objects\n", epoch.label, (int)epoch.alloc_count);
    printf("  entered: %s\n", epoch_domain_current() == domain ? "yes" : "no");
    printf("  memory: %s\n", epoch.estimated_rss_bytes >= 12800 ? "yes" : "no");
    epoch_domain_exit(domain);
    epoch_domain_destroy(domain);
}

int main(void) {
    SlabAllocator* a = slab_allocator_create();
    uint64_t start = now_ns();
    request(a);

    epoch_domain_t* batch = epoch_domain_create(a, "batch");
    epoch_domain_enter(batch);
    SlabHandle handle;
    if (alloc_obj_epoch(a, 200, batch->epoch_id, &handle) == NULL) return 3;
    bool freed = free_obj(a, handle);
    printf("freed by handle: %s\n", freed ? "yes" : "no");
    epoch_domain_exit(batch);
    epoch_domain_destroy(batch);

    EpochId ring = epoch_current(a);
    for (int i = 0; i < 100; i++)
        if (slab_malloc_epoch(a, 128, ring) == NULL) return 3;
    SizeClassStats class2;
    slab_stats_size_class(a, 2, &class2);
    printf("class 2: slow path %s, ", class2.slow_path_hits > 0 ? "taken" : "never");
    printf("contention %.0f %%\n", class2.contention_ratio * 100);
    epoch_advance(a);
    epoch_close(a, ring);
    SlabEpochStats by_class; /* four arguments as ever */
    slab_stats_epoch(a, 2, ring, &by_class);
    printf("closed: %d objects live\n", (int)by_class.alloc_count);
    printf("clock and resident size: %s\n", now_ns() >= start && read_rss_bytes_linux() > 0 ? "yes" : "no");
    slab_allocator_free(a);
}
