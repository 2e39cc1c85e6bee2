/*
 * small.c - a program that does each thing that has a probe, and prints what the library itself says of it: a line
 * "NAME VALUE..." for each probe, in the units of tests/probes/attach.sh.
 *
 * One thread, so every number is exact.
 */
#include "epoch_domain.h"
#include "slab_diagnostics.h"
#include "slab_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Ends {
    uint64_t closes, freed, released, escaped, bytes_freed, bytes_released, bytes_escaped, returned, bytes_returned, escapes, escaped_first;
} Ends;

static void add(Ends* e, const EpochReceipt* r) {
    e->closes++;
    e->freed += r->objects_freed;
    e->released += r->objects_released;
    e->escaped += r->objects_escaped;
    e->bytes_freed += r->bytes_freed;
    e->bytes_released += r->bytes_released;
    e->bytes_escaped += r->bytes_escaped;
    e->returned += r->slabs_returned;
    e->bytes_returned += r->bytes_returned;
}

static void must(bool ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "small: %s\n", what);
    exit(1);
}

/* Domains that release; some stay empty, some are reset. */
static void requests(SlabAllocator* a, Ends* e, uint64_t* opens) {
    for (unsigned n = 0; n < 50; n++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, n % 2 != 0 ? "odd" : "even");
        EpochReceipt r;
        must(d != NULL, "no domain");
        ++*opens;
        epoch_domain_enter(d);
        for (unsigned k = 0; k < n % 5 * 40; k++) {
            void* p = slab_malloc(a, 16 + k * 7);
            if (k % 3 == 0) slab_free(a, p);
        }
        if (n % 10 == 4) {
            must(epoch_domain_reset(d), "reset");
            ++*opens;
            must(epoch_domain_receipt(d, &r), "no receipt");
            add(e, &r);
            must(slab_malloc(a, 100) != NULL, "malloc");
        }
        epoch_domain_exit(d);
        must(epoch_domain_receipt(d, &r), "no receipt");
        add(e, &r);
        epoch_domain_destroy(d);
    }
}

/* Ring epochs that drain, with objects that escape, and one that is drained twice. */
static void rounds(SlabAllocator* a, Ends* e, uint64_t* opens, uint64_t* advances) {
    static void* kept[20][50];
    EpochReceipt r;
    for (unsigned n = 0; n < 20; n++) {
        EpochId id = epoch_current(a);
        slab_epoch_set_label(a, id, "round");
        for (unsigned k = 0; k < 50; k++) kept[n][k] = slab_malloc(a, 64);
        void* large = slab_malloc(a, 1 << 20);
        epoch_advance(a);
        ++*opens, ++*advances;
        slab_free(a, large);
        for (unsigned k = n % 3; k < 50; k++) slab_free(a, kept[n][k]);
        must(epoch_close_ex(a, id, EPOCH_DRAIN, &r), "close");
        add(e, &r);
        if (r.objects_escaped != 0) e->escapes++, e->escaped_first += r.objects_escaped;
        if (n == 7) {
            must(epoch_close_ex(a, id, EPOCH_DRAIN, &r), "second close");
            add(e, &r);
        }
        for (unsigned k = 0; k < n % 3; k++) slab_free(a, kept[n][k]);
    }
}

static void mistakes(SlabAllocator* a) {
    EpochId old = epoch_current(a);
    void* p = slab_malloc(a, 64);
    must(slab_free_checked(a, p), "free");
    must(!slab_free_checked(a, p) && !slab_free_checked(a, &old), "refusals");
    must(slab_malloc(a, 0) == NULL && slab_malloc_epoch(a, 64, 1 << 20) == NULL, "bad size, bad epoch");
}

int main(void) {
    SlabOptions o = {.struct_size = sizeof o, .warm_bytes = UINT64_MAX, .reserve_bytes = 64 << 20};
    SlabAllocator* a = slab_allocator_create_with(&o);
    Ends e;
    uint64_t opens = 0, advances = 0, refusals[15];
    SlabGlobalStats g;
    SlabRefusals f;
    must(a != NULL, "no allocator");
    memset(&e, 0, sizeof e);
    requests(a, &e, &opens);
    rounds(a, &e, &opens, &advances);
    EpochId closed = epoch_current(a);
    epoch_advance(a);
    opens++, advances++;
    must(slab_malloc_epoch(a, 64, closed) == NULL, "a closed epoch");
    mistakes(a);
    must(slab_malloc(a, 1u << 30) == NULL, "more than there is");
    slab_stats_global(a, &g);
    slab_stats_refusals(a, &f);
    uint64_t slow_miss = 0, slow_closed = 0;
    for (uint32_t n = 0;; n++) {
        SlabClassStats c;
        slab_stats_class(a, n, &c);
        if (c.version == 0) break;
        slow_miss += c.slow_path_cache_miss;
        slow_closed += c.slow_path_epoch_closed;
    }
    printf("epoch_open %lu\n", opens);
    printf("epoch_advance %lu\n", advances);
    printf("epoch_close %lu\n", e.closes);
    printf("close_objects %lu %lu %lu\n", e.freed, e.released, e.escaped);
    printf("close_bytes %lu %lu %lu\n", e.bytes_freed, e.bytes_released, e.bytes_escaped);
    printf("close_slabs %lu %lu\n", e.returned, e.bytes_returned);
    printf("escape %lu %lu\n", e.escapes, e.escaped_first);
    printf("slow_path %lu %lu %lu\n", g.total_slow_path_hits, slow_miss, slow_closed);
    printf("purge %lu %lu\n", g.total_madvise_calls, g.total_madvise_bytes);
    memcpy(refusals, &f.stale_handle, sizeof refusals);
    printf("refusal");
    for (unsigned n = 0; n < 12; n++) printf(" %lu", refusals[n]);
    /* as in SlabMisuse, and then what is no misuse */
    printf(" %lu %lu %lu %lu\n", f.write_after_end, f.late_double_free, f.out_of_memory, f.over_budget);
    return 0; /* the allocator is left alone: what destroy ends has no receipt here */
}
