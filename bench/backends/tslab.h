/*
 * tslab.h - temporal-slab by pointer: one allocator with default options, plain objects in the current epoch, a phase
 * is a domain that ends in bulk.
 *
 *   TSLAB_SAMPLED   the library times one allocation in SAMPLING_PERIOD
 *   TSLAB_LABELLED  all is allocated under a label: each thread is in a labelled domain, and phases have labels
 *   TSLAB_SINGLY    the objects of a domain are freed one by one before it ends; rows in phases only
 */
#include "epoch_domain.h"
#include "slab_alloc.h"
#include "slab_stats.h"

typedef void* bk_ref;

#ifdef TSLAB_SINGLY
#define BK_GENERAL 0
#define BK_BULK 0
#else
#define BK_GENERAL 1
#define BK_BULK 1
#endif
#define BK_PHASES 1
#define BK_PHASE_FREE 1
#define BK_SCOPES 1
#define BK_OURS 1
#ifdef TSLAB_LABELLED
#define BK_LABELS 1
#define LABEL "phase"
#else
#define LABEL NULL
#endif

static SlabAllocator* bk_allocator;

static const char* bk_version(void) { return slab_version(); }

#ifdef TSLAB_LABELLED
static epoch_domain_t* bk_domain; /* where every thread is */

static void bk_enter(void) { epoch_domain_enter(bk_domain); }

static void bk_leave(void) { epoch_domain_exit(bk_domain); }

static void bk_label(unsigned k) {
    char label[32];
    snprintf(label, sizeof label, "part-%u", k);
    if (bk_domain) bk_leave();
    if (!(bk_domain = epoch_domain_create_labeled(bk_allocator, label))) cannot("no domain");
    bk_domain->auto_close = false; /* what is allocated stays when the last thread has left */
    bk_enter();
}
#endif

static inline void bk_start(void) {
    SlabOptions options = {.struct_size = sizeof options};
#ifdef TSLAB_SAMPLED
    options.sampling_period = SAMPLING_PERIOD;
#endif
    bk_allocator = slab_allocator_create_with(&options);
    if (!bk_allocator) cannot(slab_last_error());
#ifdef TSLAB_LABELLED
    bk_label(0);
    thread_begins = bk_enter, thread_ends = bk_leave;
#endif
}

static inline void* bk_ptr(bk_ref ref) { return ref; }

#if BK_GENERAL
static inline void* bk_alloc(size_t size, bk_ref* ref) { return *ref = slab_malloc(bk_allocator, size); }

static inline void bk_free(bk_ref ref) { slab_free(bk_allocator, ref); }
#endif

struct bk_phase {
    epoch_domain_t* domain;
};

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    (void)hint;
    if (!(ph->domain = epoch_domain_create_labeled(bk_allocator, LABEL))) cannot("no domain");
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    void* p = epoch_domain_malloc(ph->domain, size);
    if (ref) *ref = p;
    return p;
}

static inline void bk_phase_free(struct bk_phase* ph, bk_ref ref) {
    (void)ph;
    slab_free(bk_allocator, ref);
}

static inline void bk_free_list(bk_ref* list, size_t n) {
    for (size_t i = 0; !BK_BULK && i < n; i++) slab_free(bk_allocator, list[i]);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    bk_free_list(list, n);
    epoch_domain_destroy(ph->domain);
}

/* As the thread's scope, allocations need not name it. */
static inline void bk_scope_begin(struct bk_phase* ph, size_t hint) {
    (void)hint;
    if (!(ph->domain = epoch_domain_begin(bk_allocator, LABEL))) cannot("no domain");
}

static inline void* bk_scope_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    (void)ph;
    void* p = slab_malloc(bk_allocator, size);
    if (ref) *ref = p;
    return p;
}

#define bk_scope_free bk_phase_free

static inline void bk_scope_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    bk_free_list(list, n);
    epoch_domain_end(ph->domain);
}

static inline uint64_t bk_held_bytes(void) {
    SlabGlobalStats g;
    slab_stats_global(bk_allocator, &g);
    return g.committed_bytes;
}
