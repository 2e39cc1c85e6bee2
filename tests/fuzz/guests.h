/*
 * guests.h - short-lived allocators beside the two of the model: made in every way with any options, used for a
 * few calls, destroyed with objects live, domains open and scopes on the stack.
 *
 * Of a guest only its live objects are known. With a small reservation it may run out of memory at any time, so
 * NULL with ENOMEM is right whenever a good request is refused. One that could not be made is inert.
 */
#ifndef FUZZ_GUESTS_H
#define FUZZ_GUESTS_H

#include "base/bits.h"
#include "hostile_epochs.h"

enum { GUEST_MOST = 48, GUEST_CALLS = 40 };

struct guest {
    SlabAllocator* a;
    SlabAllocator storage;
    bool reports;
    struct {
        unsigned char* p;
        size_t usable;
        uint64_t seed;
    } live[GUEST_MOST];
    unsigned n;
    epoch_domain_t* scope; /* entered, or NULL */
    uint64_t told;         /* objects that leak_fn was told of */
};

static void guest_leak(SlabAllocator* a, const char* label, uint64_t era, uint64_t objects, uint64_t bytes, void* ctx) {
    struct guest* g = ctx;
    g->told += a == g->a && label && era > 0 && bytes >= objects ? objects : 1u << 30;
}

/* Options good or bad; `good` as docs/options.md has it. */
static inline bool guest_options(struct world* w, struct guest* g, SlabOptions* o) {
    static const uint64_t reserves[] = {0, 16u << 20, 64u << 20, 1u << 30};
    bool odd = chance(w, 40);
    *o = (SlabOptions){.struct_size = sizeof *o, .leak_fn = guest_leak, .leak_ctx = g};
    o->ring_size = odd ? (uint32_t)any_number(w) : (uint32_t)below(w, 20);
    o->purge_policy = (uint32_t)below(w, odd ? 5 : 3);
    o->reserve_bytes = odd ? any_number(w) : reserves[below(w, 4)];
    o->warm_bytes = any_number(w);
    o->slab_bytes = odd ? (uint32_t)any_number(w) : 4096u << below(w, 5);
    o->prefault = (uint8_t)below(w, odd ? 4 : 2);
    o->leak_report = (uint8_t)below(w, odd ? 4 : 2);
    o->huge_pages = (uint8_t)below(w, odd ? 4 : 2);
    o->numa_local = (uint8_t)below(w, odd ? 4 : 2);
    o->segment = (uint8_t)below(w, odd ? 4 : 2);
    o->reserved_[0] = odd && chance(w, 10);
    o->misuse_fatal = odd && chance(w, 10) ? 2 : 0; /* never 1: it would do as it says */
    if (odd && chance(w, 20)) o->struct_size = below(w, sizeof *o + 1);
    size_t sees = o->struct_size;
    if (sees < offsetof(SlabOptions, ring_size) + 4) return false;
    if (sees < sizeof *o) { /* fields half seen are nobody's business here: all or none after ring_size */
        *o = (SlabOptions){.struct_size = offsetof(SlabOptions, ring_size) + 4, .ring_size = o->ring_size};
    }
    bool slab = o->slab_bytes == 0 || (o->slab_bytes >= 4096 && o->slab_bytes <= 65536 && tsi_is_pow2(o->slab_bytes));
    bool reserve = o->reserve_bytes == 0 || (o->reserve_bytes >= 16u << 20 && o->reserve_bytes <= (uint64_t)64 << 30);
    return (o->ring_size == 0 || (o->ring_size >= 2 && o->ring_size <= 1024)) && o->purge_policy <= 2 && slab &&
           reserve && o->prefault <= 1 && o->leak_report <= 1 && o->huge_pages <= 1 && o->numa_local <= 1 &&
           o->segment <= 1 && o->reserved_[0] == 0 && o->misuse_fatal == 0;
}

static inline bool guest_open(struct world* w, struct guest* g) {
    SlabOptions o;
    unsigned how = (unsigned)below(w, 8);
    bool good = how < 3 || guest_options(w, g, &o);
    bool made = false;
    note(w, "guest made in way %u, options %s", how, good ? "good" : "bad");
    errno = 0;
    g->a = &g->storage;
    switch (how) {
    case 0:
        made = (g->a = slab_allocator_create()) != NULL;
        break;
    case 1:
        made = (g->a = slab_allocator_create_with(NULL)) != NULL;
        break;
    case 2:
        allocator_init(g->a);
        made = epoch_era(g->a, 0) != 0;
        break;
    case 3:
    case 4:
        made = allocator_init_with(g->a, &o);
        break;
    default:
        made = (g->a = slab_allocator_create_with(&o)) != NULL;
        break;
    }
    REQUIRE_OR(made == good, "a guest with %s options: %s", good ? "good" : "bad", slab_last_error());
    REQUIRE_OR(made || (errno == EINVAL && slab_last_error()[0]), "bad options: errno %d, '%s'", errno,
               slab_last_error());
    g->reports = how >= 3 && good && o.leak_report && o.leak_fn;
    return made;
}

/* An inert allocator, or none at all: nothing is given, nothing happens. */
static inline void guest_inert(struct world* w, SlabAllocator* a) {
    SlabHandle h = 7;
    SlabGlobalStats g;
    EpochReceipt r;
    size_t n = any_number(w);
    void* p = any_pointer(w, &w->side[0]);
    note(w, "inert guest %p", (void*)a);
    REQUIRE_OR(!slab_malloc(a, n) && !slab_malloc_epoch(a, n, 0) && !slab_calloc(a, 1, n) && !slab_realloc(a, p, n),
               "an inert allocator gave memory");
    REQUIRE_OR(!slab_aligned_alloc(a, 64, n) && !slab_realloc_epoch(a, p, n, 0) && !slab_calloc_epoch(a, n, n, 0) &&
                   !slab_aligned_alloc_epoch(a, n, n, 0) && !alloc_obj(a, (uint32_t)n, &h) && !h &&
                   !alloc_obj_epoch(a, (uint32_t)n, 0, NULL),
               "an inert allocator gave memory");
    REQUIRE_OR(slab_free_checked(a, NULL) && (!p || !slab_free_checked(a, p)) && !free_obj(a, n), "it freed");
    REQUIRE_OR(!slab_usable_size(a, p) && !slab_owns(a, p) && !slab_ptr_epoch(a, p, NULL, NULL) &&
                   !slab_handle_ptr(a, n) && !slab_ptr_handle(a, p) && !slab_good_size(a, n),
               "it knows %p", p);
    slab_free(a, p);
    slab_free_sized(a, p, n);
    REQUIRE_OR(!epoch_close_ex(a, 0, EPOCH_RELEASE, &r) && !epoch_close_era(a, n, EPOCH_DRAIN, &r), "it closed");
    REQUIRE_OR(!epoch_domain_create(a) && !epoch_domain_begin(a, "x") && !epoch_domain_wrap(a, 0, true) &&
                   !epoch_domain_create_labeled(a, "x"),
               "it has domains");
    REQUIRE_OR(!epoch_advance_id(a) && !epoch_current(a) && !epoch_era(a, 0) && epoch_state(a, 0) == EPOCH_CLOSING &&
                   !slab_epoch_get_refcount(a, 0) && !slab_epoch_on_end(a, 0, cleanup_runs, w),
               "it has epochs");
    slab_epoch_set_label(a, 0, "x");
    slab_epoch_inc_refcount(a, 0);
    slab_epoch_dec_refcount(a, 0);
    slab_trim(a);
    slab_thread_flush(a);
    slab_stats_global(a, &g);
    REQUIRE_OR(g.version == 0 && g.live_objects == 0, "it has statistics");
}

static inline void guest_alloc(struct world* w, struct guest* g) {
    size_t size = chance(w, 70) ? 1 + below(w, 4000) : any_number(w);
    SlabHandle h = 1;
    errno = 0;
    if (g->n == GUEST_MOST) return;
    unsigned char* p = chance(w, 30) ? alloc_obj(g->a, (uint32_t)size, &h) : slab_malloc(g->a, size);
    if (!p) {
        REQUIRE_OR(errno == ENOMEM || size == 0 || (uint32_t)size == 0, "guest: %zu bytes, errno %d", size, errno);
        return;
    }
    size_t usable = slab_usable_size(g->a, p);
    REQUIRE_OR(usable >= (size <= usable ? size : (uint32_t)size) && h, "guest: %zu bytes, %zu usable", size, usable);
    for (unsigned i = 0; i < g->n; i++)
        REQUIRE_OR(p + usable <= g->live[i].p || g->live[i].p + g->live[i].usable <= p, "guest: objects overlap");
    if (usable > most_kept) {
        REQUIRE_OR(slab_free_checked(g->a, p), "guest: free of %p refused", (void*)p);
        return;
    }
    uint64_t seed = kit_mix(w->seed + ++w->born);
    pattern(p, usable, usable, seed, true);
    g->live[g->n].p = p, g->live[g->n].usable = usable, g->live[g->n++].seed = seed;
}

static inline void guest_free(struct world* w, struct guest* g) {
    if (g->n == 0) return;
    unsigned i = (unsigned)below(w, g->n);
    unsigned char* p = g->live[i].p;
    REQUIRE_OR(pattern(p, g->live[i].usable, g->live[i].usable, g->live[i].seed, false), "guest: contents changed");
    REQUIRE_OR(!slab_free_checked(w->side[0].a, p), "an allocator freed a guest's object");
    want_one(&w->side[0], BIT(SLAB_MISUSE_FOREIGN_POINTER));
    REQUIRE_OR(slab_free_checked(g->a, p), "guest: free of %p refused", (void*)p);
    REQUIRE_OR(!slab_free_checked(g->a, p), "guest: %p was freed twice", (void*)p);
    g->live[i] = g->live[--g->n];
}

static inline void guest_call(struct world* w, struct guest* g) {
    switch (below(w, 8)) {
    case 0:
        guest_free(w, g);
        break;
    case 1:
        epoch_advance(g->a);
        break;
    case 2:
        REQUIRE_OR(epoch_close_ex(g->a, epoch_current(g->a), EPOCH_DRAIN, NULL), "guest: close refused");
        epoch_advance(g->a);
        break;
    case 3:
        slab_trim(g->a);
        break;
    case 4: /* a scope that is left open: its allocator goes away under it */
        if (g->scope) break;
        g->scope = epoch_domain_begin(g->a, "guest");
        REQUIRE_OR(!g->scope || epoch_domain_current() == g->scope, "guest: the scope is not the innermost");
        break;
    default:
        guest_alloc(w, g);
        break;
    }
}

/* The whole life of a guest. */
static inline void op_guest(struct world* w) {
    struct guest* g = must_alloc(sizeof *g);
    if (!guest_open(w, g)) {
        guest_inert(w, g->a);
        allocator_destroy(g->a);
        free(g);
        return;
    }
    for (uint64_t n = below(w, GUEST_CALLS); n > 0; n--) guest_call(w, g);
    kit_check(g->a);
    for (unsigned i = 0; i < g->n; i++)
        REQUIRE_OR(pattern(g->live[i].p, g->live[i].usable, g->live[i].usable, g->live[i].seed, false),
                   "guest: contents changed");
    if (g->scope && chance(w, 50)) { /* releases what was allocated inside: the count below is not known */
        epoch_domain_end(g->scope);
        g->reports = false;
    }
    if (g->a == &g->storage) {
        allocator_destroy(g->a);
        guest_inert(w, g->a);
    } else {
        slab_allocator_free(g->a);
    }
    REQUIRE_OR(!g->reports || g->told == g->n, "guest: %llu objects leaked, %u due", (unsigned long long)g->told, g->n);
    check_scopes(w);
    free(g);
}

#endif
