/*
 * stress_ready.c - small phases one after the other on every thread, while their memory is asked for from everywhere.
 *
 * Each worker begins and ends phases of a few objects and checks what is in them. The first object of a phase, which
 * starts its region, is shown to the others: they ask for handles of it and free by these, late or not. So what starts a
 * region may be freed by others at any time, whichever object of its phase it is: where they have freed the first one
 * early, a trim may take the region, and the next object starts another. All other objects are their phase's alone, so a
 * free that reaches one shows. One thread trims, one reads statistics. Every receipt balances.
 */
#include "stress.h"

enum { WORKERS = 4, SHOWN = 64, MOST = 8, SMALLEST_REGION = 2048 };

static SlabAllocator* a;
static _Atomic(void*) shown[SHOWN];
static _Atomic SlabHandle handles[SHOWN];
static _Atomic int working;
static _Atomic uint64_t freed_by_others;

/* What others have shown is freed, by handle or by pointer, or a handle of it is asked for: it may be over by now. */
static void meddle(struct dice* d) {
    unsigned at = (unsigned)below(d, SHOWN);
    void* p = atomic_load(&shown[at]);
    SlabHandle h = atomic_exchange(&handles[at], 0);
    if (h != 0 && free_obj(a, h)) atomic_fetch_add(&freed_by_others, 1);
    if (p != NULL && chance(d, 4)) atomic_store(&handles[below(d, SHOWN)], slab_ptr_handle(a, p));
}

static bool may_start_a_region(const void* p) { return (uintptr_t)p % SMALLEST_REGION == 0; }

static void phase(struct slot* self) {
    struct dice* d = &self->dice;
    void* p[MOST];
    size_t size[MOST];
    unsigned n = 1 + (unsigned)below(d, MOST), mine = (unsigned)below(d, SHOWN);
    epoch_domain_t* domain = epoch_domain_create_labeled(a, chance(d, 2) ? "one" : "other");
    REQUIRE_OR(domain, "no domain");
    epoch_domain_enter(domain);
    for (unsigned k = 0; k < n; k++) {
        size[k] = 16 + 16 * below(d, 24); /* all fit into the smallest region */
        REQUIRE_OR((p[k] = slab_malloc(a, size[k])) != NULL, "no object");
        if (!may_start_a_region(p[k])) cookie_write(p[k], size[k], roll(d));
    }
    atomic_store(&shown[mine], p[0]);
    meddle(d);
    for (unsigned k = 1; k < n; k++) {
        if (may_start_a_region(p[k])) continue;
        cookie_check(p[k], size[k]);
        if (chance(d, 3)) REQUIRE_OR(slab_free_checked(a, p[k]), "free of live %p refused", p[k]);
    }
    epoch_domain_exit(domain);
    EpochReceipt r;
    REQUIRE_OR(epoch_domain_receipt(domain, &r), "no receipt");
    REQUIRE_OR(r.objects_allocated == n &&
                   r.objects_allocated == r.objects_freed + r.objects_released + r.objects_escaped,
               "receipt: %llu allocated, %llu freed, %llu released, of %u", (unsigned long long)r.objects_allocated,
               (unsigned long long)r.objects_freed, (unsigned long long)r.objects_released, n);
    REQUIRE_OR(r.bytes_allocated == r.bytes_freed + r.bytes_released, "receipt: bytes do not balance");
    epoch_domain_destroy(domain);
}

static void live(struct slot* self) {
    SlabGlobalStats g;
    if (self->index < WORKERS) {
        for (uint64_t k = 0; k < self->ops_per_life; k++) phase(self);
        atomic_fetch_sub(&working, 1);
    } else if (self->index == WORKERS) {
        while (atomic_load(&working) > 0) slab_trim(a);
    } else {
        while (atomic_load(&working) > 0) slab_stats_global(a, &g);
    }
}

int main(void) {
    a = kit_create();
    for (unsigned life = 0; life < 4; life++) {
        atomic_store(&working, WORKERS);
        run_slots(WORKERS + 2, 1, check_count(40000) / 4 + 1, life, live, NULL);
        kit_check(a);
    }
    slab_trim(a);
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    REQUIRE_OR(g.live_objects == 0 && g.committed_bytes == 0, "%llu objects, %llu bytes are left",
               (unsigned long long)g.live_objects, (unsigned long long)g.committed_bytes);
    slab_allocator_free(a);
    puts("stress_ready: ok");
    return 0;
}
