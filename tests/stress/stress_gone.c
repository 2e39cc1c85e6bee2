/*
 * stress_gone.c - threads come, allocate, free what others have left, and go; heaps without an owner are emptied by
 * some while others take them over. In the ring, and in a domain that stays open all the while.
 *
 * When the last object has been freed nothing is left but what is kept warm, without a trim: each slab went with its
 * thread or with the free that emptied it.
 */
#include "stress.h"

enum { THREADS = 8, LIVES = 60, SHELF = 4096, WARM_BYTES = 1 << 20 };

static SlabAllocator* a;
static epoch_domain_t* domain;
static _Atomic(struct parcel*) shelf[SHELF];

static void give(struct parcel* parcel) {
    if (parcel == NULL) return;
    parcel_check(parcel);
    REQUIRE_OR(slab_free_checked(a, parcel), "free of live %p refused", (void*)parcel);
}

static void live(struct slot* self) {
    struct dice* d = &self->dice;
    bool inside = chance(d, 2), takes = !chance(d, 3);
    if (inside) REQUIRE_OR(epoch_domain_enter(domain), "cannot enter");
    for (uint64_t i = 0; i < self->ops_per_life; i++) {
        size_t size = parcel_size(d);
        struct parcel* parcel = takes ? parcel_make(slab_malloc(a, size), size, roll(d)) : NULL;
        REQUIRE_OR(!takes || parcel != NULL, "no memory");
        give(atomic_exchange(&shelf[below(d, SHELF)], parcel));
    }
    if (inside) REQUIRE_OR(epoch_domain_exit(domain), "cannot leave");
}

int main(void) {
    SlabOptions o = {.struct_size = sizeof o, .warm_bytes = WARM_BYTES};
    a = slab_allocator_create_with(&o);
    REQUIRE_OR(a, "no allocator: %s", slab_last_error());
    domain = epoch_domain_create_labeled(a, "open");
    REQUIRE_OR(domain && epoch_domain_enter(domain), "no domain");
    for (int round = 0; round < 4; round++) {
        run_slots(THREADS, LIVES, check_count(240000) / THREADS / LIVES, 11 + (uint64_t)round, live, NULL);
        kit_check(a);
        for (unsigned i = 0; i < SHELF; i++) give(atomic_exchange(&shelf[i], NULL));
        SlabGlobalStats g;
        slab_stats_global(a, &g);
        REQUIRE_OR(g.live_objects == 0, "%llu objects live", (unsigned long long)g.live_objects);
        REQUIRE_OR(kit_shared() || g.committed_bytes <= WARM_BYTES, "%llu bytes are left of what is gone",
                   (unsigned long long)g.committed_bytes);
    }
    check_no_misuse(a);
    REQUIRE_OR(epoch_domain_exit(domain), "cannot leave");
    epoch_domain_destroy(domain);
    slab_allocator_free(a);
    puts("stress_gone: ok");
    return 0;
}
