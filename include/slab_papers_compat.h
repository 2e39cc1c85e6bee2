/*
 * slab_papers_compat.h - names from the founding papers for functions and types of this library.
 *
 * Include this header in a program that still uses the names from the papers "temporal-slab" and "Drainability". The
 * page docs/coming-from/papers.md lists all of these names. The header contains only types, inline functions and
 * macros, so the library exports no additional symbols. If the program also includes other headers of the library,
 * include this header last. The header omits functions whose meaning has changed. A program that calls one of these
 * functions does not compile, and the compiler's message names the replacement. The conventions are those of
 * slab_alloc.h, except that a NULL `out` is ignored.
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

/* Some fields of SlabClassStats. The field contention_ratio corresponds to lock_contention_rate. */
typedef struct SizeClassStats {
    uint64_t slow_path_hits, new_slab_count, lock_fast_acquire, lock_contended;
    double contention_ratio;
} SizeClassStats;

/* Fills *out with the figures of slab_stats_class. Does nothing if out is NULL. */
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

/* Some fields of SlabEpochStats, summed over the size classes. */
typedef struct EpochStats {
    uint64_t open_since_ns, alloc_count, estimated_rss_bytes;
    char label[32];
} EpochStats;

/* Fills *out with the figures of slab_stats_epoch, summed over the size classes, or with zeros for a bad id. Does
 * nothing if out is NULL. O(classes * slabs of the allocator). */
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

/* Select a function name by the number of arguments. */
#define SLAB_PAPERS_FIFTH_(a1, a2, a3, a4, name, ...) name
#define SLAB_PAPERS_THIRD_(a1, a2, name, ...) name

/* Calls the papers' function if the arguments are (a, epoch, &EpochStats), and the library's function if the arguments
 * are (a, size_class, epoch, &SlabEpochStats). */
#define slab_stats_epoch(...) \
    SLAB_PAPERS_FIFTH_(__VA_ARGS__, slab_stats_epoch, slab_papers_stats_epoch, 0, 0)(__VA_ARGS__)

/* Creates and enters a domain, like epoch_domain_begin, if the arguments are (a, "label"). Enters an existing domain if
 * the only argument is a domain. */
#define epoch_domain_enter(...) SLAB_PAPERS_THIRD_(__VA_ARGS__, epoch_domain_begin, epoch_domain_enter, 0)(__VA_ARGS__)

/* Calls epoch_domain_create_labeled if the arguments are (a, "label"). A call with only one argument does not
 * compile. */
#define epoch_domain_create(...)                                                          \
    SLAB_PAPERS_THIRD_(__VA_ARGS__, epoch_domain_create_labeled,                          \
                       epoch_domain_create_has_changed_see_docs_coming_from_papers_md, 0) \
    (__VA_ARGS__)

#ifdef SLAB_PAPERS_LEFT_OUT_
/* Causes a compile-time error in a program that calls the papers' epoch_domain_create with one argument. That function
 * made a domain of the current ring epoch, and the domain's objects stayed live after its last exit. */
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
