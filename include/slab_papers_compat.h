/*
 * slab_papers_compat.h - names from the founding papers that are different here.
 *
 * This header is for a program that uses the papers' names, until it uses the new ones; docs/coming-from/papers.md has
 * the whole list. Everything here is inline or a macro, so the library gains no symbol. Include the header after the
 * other headers, or alone. Calls whose meaning has changed are left out on purpose: using one does not compile, and the
 * compiler's message says what to write instead. Conventions are as in slab_alloc.h; a NULL `out` is ignored.
 */
#ifndef SLAB_PAPERS_COMPAT_H
#define SLAB_PAPERS_COMPAT_H

#include "epoch_domain.h"
#include "slab_alloc.h"
#include "slab_stats.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__has_attribute)
#if __has_attribute(unavailable)
#define SLAB_PAPERS_LEFT_OUT_(text) __attribute__((unavailable(text)))
#elif __has_attribute(error)
#define SLAB_PAPERS_LEFT_OUT_(text) __attribute__((error(text)))
#endif
#endif

/* Returns slab_rss_bytes(). */
static inline uint64_t read_rss_bytes_linux(void) { return slab_rss_bytes(); }
/* Returns slab_now_ns(). */
static inline uint64_t now_ns(void) { return slab_now_ns(); }

/* Fields of SlabClassStats, where contention_ratio is called lock_contention_rate. */
typedef struct SizeClassStats {
    uint64_t slow_path_hits, new_slab_count, lock_fast_acquire, lock_contended;
    double contention_ratio;
} SizeClassStats;

/* Fills *out by slab_stats_class. */
static inline void slab_stats_size_class(SlabAllocator* a, uint32_t size_class, SizeClassStats* out) {
    SlabClassStats s;
    if (out == NULL) return;
    slab_stats_class(a, size_class, &s);
    out->slow_path_hits = s.slow_path_hits;
    out->new_slab_count = s.new_slab_count;
    out->lock_fast_acquire = s.lock_fast_acquire;
    out->lock_contended = s.lock_contended;
    out->contention_ratio = s.lock_contention_rate;
}

/* Fields of SlabEpochStats, summed over the classes. */
typedef struct EpochStats {
    uint64_t open_since_ns, alloc_count, estimated_rss_bytes;
    char label[32];
} EpochStats;

/* Fills *out by slab_stats_epoch, summed over the classes, or with zeros for a bad id. O(classes x slabs of the
 * allocator). */
static inline void slab_papers_stats_epoch(SlabAllocator* a, EpochId epoch, EpochStats* out) {
    SlabEpochStats s;
    uint32_t size_class = 0;
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    for (slab_stats_epoch(a, 0, epoch, &s); s.version != 0; slab_stats_epoch(a, ++size_class, epoch, &s)) {
        out->open_since_ns = s.open_since_ns;
        out->alloc_count += s.alloc_count;
        out->estimated_rss_bytes += s.estimated_rss_bytes;
        memcpy(out->label, s.label, sizeof out->label);
    }
}

/* Pick the name for the number of arguments. */
#define SLAB_PAPERS_FIFTH_(a1, a2, a3, a4, name, ...) name
#define SLAB_PAPERS_THIRD_(a1, a2, name, ...) name

/* Takes (a, epoch, &EpochStats) as in the papers, or (a, size_class, epoch, &SlabEpochStats). */
#define slab_stats_epoch(...) \
    SLAB_PAPERS_FIFTH_(__VA_ARGS__, slab_stats_epoch, slab_papers_stats_epoch, 0, 0)(__VA_ARGS__)

/* Takes (a, "label") to make and enter a domain by epoch_domain_begin, or (domain) to enter that domain. */
#define epoch_domain_enter(...) SLAB_PAPERS_THIRD_(__VA_ARGS__, epoch_domain_begin, epoch_domain_enter, 0)(__VA_ARGS__)

/* Takes (a, "label") for epoch_domain_create_labeled; (a) alone does not compile. */
#define epoch_domain_create(...)                                                          \
    SLAB_PAPERS_THIRD_(__VA_ARGS__, epoch_domain_create_labeled,                          \
                       epoch_domain_create_has_changed_see_docs_coming_from_papers_md, 0) \
    (__VA_ARGS__)

#ifdef SLAB_PAPERS_LEFT_OUT_
/* The papers' epoch_domain_create wrapped the current ring epoch and kept its objects at the last exit. */
SLAB_PAPERS_LEFT_OUT_("its last exit ends its objects now, see docs/coming-from/papers.md: write epoch_domain_wrap(a, "
                      "epoch_current(a), false) for the old meaning, epoch_domain_create_labeled(a, NULL) for the new")
static inline epoch_domain_t* epoch_domain_create_has_changed_see_docs_coming_from_papers_md(SlabAllocator* a) {
    return epoch_domain_create_labeled(a, NULL);
}
SLAB_PAPERS_LEFT_OUT_("there is no cache to print, see docs/coming-from/papers.md: slab_doctor has what is slow")
static inline void tls_print_stats(void) {}
#endif

#ifdef __cplusplus
}
#endif
#endif
