/*
 * backend_check.h - what a backend's header left out: defaults, and refusals for what it has not.
 */
#ifndef BENCH_BACKEND_CHECK_H
#define BENCH_BACKEND_CHECK_H

#ifndef BK_ALIGN
#define BK_ALIGN 16
#endif

#ifndef BK_PHASE_LABEL
#define BK_PHASE_LABEL(text) ((void)(text))
#endif

#if !BK_LABELS
static inline void bk_label(unsigned k) { (void)k; }
#endif

#if !BK_GENERAL
static inline void* bk_alloc(size_t size, bk_ref* ref) {
    (void)size, (void)ref;
    cannot("it has no objects outside phases");
}

static inline void bk_free(bk_ref ref) {
    (void)ref;
    cannot("it has no objects outside phases");
}
#endif

#if !BK_PHASE_FREE
static inline void bk_phase_free(struct bk_phase* ph, bk_ref ref) {
    (void)ph, (void)ref;
    cannot("it frees nothing singly");
}
#endif

#if !BK_SCOPES
#define bk_scope_begin bk_phase_open
#define bk_scope_alloc bk_phase_alloc
#define bk_scope_free bk_phase_free
#define bk_scope_end bk_phase_end
#endif

/* What a program does that has only this: it copies, and frees the old one where that is possible. */
#if !BK_REALLOC
static inline void* bk_scope_realloc(struct bk_phase* ph, bk_ref* ref, size_t old, size_t size) {
    bk_ref grown;
    void* p = bk_scope_alloc(ph, size, &grown);
    memcpy(p, bk_ptr(*ref), old);
#if BK_PHASE_FREE
    bk_scope_free(ph, *ref);
#endif
    *ref = grown;
    return p;
}
#endif

#if !BK_OURS
#define bk_phase_alloc_id bk_phase_alloc

static inline void bk_hand_over(struct bk_phase* ph) { (void)ph; }

static inline void bk_take_over(struct bk_phase* ph) { (void)ph; }
#endif

#endif
