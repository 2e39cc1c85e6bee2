/*
 * tslab.h - temporal-slab by pointer: plain objects in the current epoch of the ring, phases that end in bulk.
 *
 *   TSLAB_IN_DOMAIN  every thread is in a domain, and general work happens there instead of in the ring
 *   TSLAB_SINGLY     the objects of a domain are freed one by one before it ends; rows in phases only
 *   and those of ours.h
 */
typedef void* bk_ref;

#ifdef TSLAB_SINGLY
#define BK_GENERAL 0
#define BK_BULK 0
#else
#define BK_GENERAL 1
#define BK_BULK 1
#endif
#define BK_REALLOC 1
#define BK_BY_POINTER 1

#include "backends/ours.h"

#ifdef TSLAB_IN_DOMAIN
#define BK_LABELS 1

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
    bk_allocator = bk_new_allocator();
#ifdef TSLAB_IN_DOMAIN
    bk_label(0);
    thread_begins = bk_enter, thread_ends = bk_leave;
#endif
}

static inline void* bk_ptr(bk_ref ref) { return ref; }

#if BK_GENERAL
static inline void* bk_alloc(size_t size, bk_ref* ref) { return *ref = slab_malloc(bk_allocator, size); }

static inline void bk_free(bk_ref ref) { slab_free(bk_allocator, ref); }
#endif

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
#ifdef TSLAB_LANE
    void* p = slab_lane_malloc(&ph->lane, size);
#elif defined(TSLAB_RUN)
    void* p = slab_run_malloc(&ph->run, size);
#else
    void* p = epoch_domain_malloc(ph->domain, size);
#endif
    if (ref) *ref = p;
    return p;
}

/* By the id of the phase's epoch. */
static inline void* bk_phase_alloc_id(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return *ref = slab_malloc_epoch(bk_allocator, size, ph->domain->epoch_id);
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
#ifdef TSLAB_RUN
    slab_run_end(&ph->run);
#endif
    epoch_domain_destroy(ph->domain);
}

static inline void* bk_scope_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
#ifdef TSLAB_LANE
    void* p = slab_lane_malloc(&ph->lane, size);
#elif defined(TSLAB_RUN)
    void* p = slab_run_malloc(&ph->run, size);
#else
    (void)ph;
    void* p = slab_malloc(bk_allocator, size);
#endif
    if (ref) *ref = p;
    return p;
}

#define bk_scope_free bk_phase_free

static inline void* bk_scope_realloc(struct bk_phase* ph, bk_ref* ref, size_t old, size_t size) {
    (void)ph, (void)old;
    return *ref = slab_realloc(bk_allocator, *ref, size);
}

static inline void bk_scope_end(struct bk_phase* ph, bk_ref* list, size_t n) {
#ifdef TSLAB_RUN
    bk_phase_end(ph, list, n);
    return;
#endif
    bk_free_list(list, n);
    epoch_domain_end(ph->domain);
}
