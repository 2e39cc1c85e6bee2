/*
 * calls.c - most public calls once, in each mode, for checkers of uninitialised memory. Exit code 0 when the calls did what they
 * should; what the checker says is its own. With an argument, the program sets what it writes into objects: under the purge
 * policy `never` slab_calloc reads what was left in them, and Valgrind cannot be told that this is all the same.
 */
#include <epoch_domain.h>
#include <slab_alloc.h>
#include <slab_diagnostics.h>
#include <slab_stats.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(x)                                                          \
    do {                                                                 \
        if (!(x)) {                                                      \
            fprintf(stderr, "calls.c:%d: failed: %s\n", __LINE__, #x); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

static unsigned long total;
static bool set_all;

/* Branches on every byte. */
static bool eat(void* ctx, const char* bytes, size_t n) {
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) total++;
    }
    return true;
}

/* A frame of its own, with variables that nobody has set below and above it. */
__attribute__((noinline)) static void deep(SlabAllocator* a, unsigned levels) {
    volatile char unset[64];
    volatile char* keep = unset;
    (void)keep;
    if (levels != 0) {
        deep(a, levels - 1);
        return;
    }
    for (size_t i = 0; i < 500; i++) {
        void* p = slab_malloc(a, 16 + i * 37 % 2000);
        NEED(p != NULL);
        memset(p, 1, 16);
        if (i % 3 == 0) slab_free(a, p);
    }
}

static void* on_thread(void* arg) {
    SlabAllocator* a = arg;
    SlabHandle h;
    deep(a, 3);
    for (size_t i = 0; i < 200; i++) {
        void* p = alloc_obj(a, 100, &h);
        NEED(p != NULL && slab_handle_ptr(a, h) == p && free_obj(a, h) && !free_obj(a, h));
    }
    return NULL;
}

static void statistics(SlabAllocator* a) {
    static SlabLabelStats labels[64];
    static SlabPhaseStats phases[64];
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    NEED(g.live_objects != 0 && g.committed_bytes != 0 && g.metadata_bytes != 0);
    NEED(slab_stats_labels(a, labels, 64) >= 2 && labels[1].objects_allocated != 0);
    NEED(slab_stats_phases(a, phases, 64) >= 1);
    NEED(slab_stats_json(a, eat, NULL) && slab_stats_prometheus(a, eat, NULL));
    NEED(slab_doctor(a, eat, NULL));
    (void)slab_profile_write(a, eat, NULL);
}

static void zeros(SlabAllocator* a) {
    for (size_t size = 100; size < 3u << 20; size *= 7) {
        char* p = slab_malloc(a, size);
        char* unset = malloc(size);
        NEED(p != NULL && unset != NULL);
        if (set_all) memset(unset, 1, size);
        memcpy(p, unset, size); /* and as little known as that */
        free(unset);
        slab_free(a, p);
        slab_trim(a);
        p = slab_calloc(a, 1, size);
        NEED(p != NULL);
        for (size_t i = 0; i < size; i++) NEED(p[i] == 0);
        slab_free(a, p);
    }
}

static void with(SlabOptions o) {
    pthread_t t;
    EpochReceipt r;
    o.struct_size = sizeof o;
    SlabAllocator* a = slab_allocator_create_with(&o);
    NEED(a != NULL);
    slab_epoch_set_label(a, epoch_current(a), "first");
    zeros(a);
    deep(a, 5);
    NEED(pthread_create(&t, NULL, on_thread, a) == 0 && pthread_join(t, NULL) == 0);
    epoch_domain_t* d = epoch_domain_begin(a, "a domain");
    NEED(d != NULL);
    deep(a, 2);
    char* p = slab_realloc(a, slab_realloc(a, NULL, 100), 700000);
    NEED(p != NULL && slab_usable_size(a, p) >= 700000);
    statistics(a);
    epoch_domain_end(d);
    slab_free(a, &total);
    EpochId was = epoch_current(a);
    epoch_advance(a);
    NEED(epoch_close_ex(a, was, EPOCH_RELEASE, &r) && r.objects_allocated == r.objects_freed + r.objects_released);
    slab_free(a, slab_malloc(a, 10));
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    (void)argv;
    set_all = argc > 1;
    with((SlabOptions){.profile_bytes = 512});
    with((SlabOptions){.profile_bytes = 4096, .sampling_period = 16, .reserve_bytes = 64 << 20, .purge_policy = SLAB_PURGE_FREE});
    with((SlabOptions){.shared = 1, .segment = 1, .profile_bytes = 4096, .huge_pages = 1, .numa_local = 1});
    with((SlabOptions){.max_bytes = 32 << 20, .warm_bytes = UINT64_MAX, .purge_policy = SLAB_PURGE_NEVER, .prefault = 1});
    printf("%lu bytes of reports\n", total);
    return 0;
}
