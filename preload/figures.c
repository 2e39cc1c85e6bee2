/*
 * figures.c - answers to programs that ask malloc about itself, in the terms of glibc.
 *
 *   arena = bytes that the allocator has from the system, uordblks = live bytes, fordblks = the rest
 */
#define _GNU_SOURCE
#include "preload.h"

#include "slab_stats.h"

#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

/* Gives empty memory back to the system. Returns 1 if any went back, otherwise 0, as without the allocator. The bytes
 * that `pad` asks to keep are not kept. Preserves errno. [any thread, no lock held] */
TSP_API int malloc_trim(size_t pad) {
    (void)pad;
    if (!tsp_ready()) return 0;
    int saved = errno;
    uint64_t before = tsi_malloc_committed(&tsp_heap);
    slab_trim(&tsp_heap);
    errno = saved;
    return tsi_malloc_committed(&tsp_heap) < before;
}

/* Accepts any parameter of glibc's algorithms with any value, without effect. Returns 1. [any thread, needs no lock] */
TSP_API int mallopt(int parameter, int value) {
    (void)parameter, (void)value;
    return 1;
}

/* Returns the allocator's figures of now, zeros if it is not there. Preserves errno. [any thread, no lock held] */
static SlabGlobalStats figures(void) {
    SlabGlobalStats stats = {0};
    int saved = errno;
    if (tsp_ready()) slab_stats_global(&tsp_heap, &stats);
    errno = saved;
    return stats;
}

/* Returns the bytes from the system that no live object has, by the figures *stats; 0 if live ones are more.
 * [any thread, needs no lock] */
static uint64_t rest(const SlabGlobalStats* stats) {
    return stats->committed_bytes > stats->live_bytes ? stats->committed_bytes - stats->live_bytes : 0;
}

struct mallinfo2 mallinfo2(void);

/* Returns the allocator's figures in glibc's terms, see the head of this file; other fields are 0, and all are without
 * the allocator. Preserves errno. [any thread, no lock held] */
TSP_API struct mallinfo2 mallinfo2(void) {
    SlabGlobalStats stats = figures();
    return (struct mallinfo2){.arena = stats.committed_bytes,
                              .ordblks = stats.net_slabs,
                              .uordblks = stats.live_bytes,
                              .fordblks = rest(&stats),
                              .keepcost = stats.warm_bytes};
}

/* Returns n, or INT_MAX if n is more. [any thread, needs no lock] */
static int in_int(uint64_t n) { return n < INT_MAX ? (int)n : INT_MAX; }

/* Returns the figures of mallinfo2, each cut to INT_MAX. Preserves errno. [any thread, no lock held] */
TSP_API struct mallinfo mallinfo(void) {
    struct mallinfo2 m = mallinfo2();
    return (struct mallinfo){.arena = in_int(m.arena),
                             .ordblks = in_int(m.ordblks),
                             .uordblks = in_int(m.uordblks),
                             .fordblks = in_int(m.fordblks),
                             .keepcost = in_int(m.keepcost)};
}

/* Writes the bytes from the system and the live ones to standard error, two lines; zeros without the allocator.
 * [any thread, no lock held] */
TSP_API void malloc_stats(void) {
    SlabGlobalStats stats = figures();
    char text[160];
    int n = snprintf(text, sizeof text, "system bytes     = %10" PRIu64 "\nin use bytes     = %10" PRIu64 "\n",
                     stats.committed_bytes, stats.live_bytes);
    if (n > 0) tsi_os.complain(text, (size_t)n);
}

/* Writes the allocator's figures as XML to the stream `out`, zeros without the allocator. Returns 0; EINVAL, and writes
 * nothing, unless options is 0; -1 if writing failed. [any thread, no lock held] */
TSP_API int malloc_info(int options, FILE* out) {
    if (options != 0) return EINVAL;
    SlabGlobalStats stats = figures();
    int n = fprintf(out,
                    "<malloc version=\"1\">\n<allocator name=\"temporal-slab\" version=\"%s\"/>\n"
                    "<total type=\"live\" count=\"%" PRIu64 "\" size=\"%" PRIu64 "\"/>\n"
                    "<total type=\"rest\" count=\"%" PRIu64 "\" size=\"%" PRIu64 "\"/>\n"
                    "<system type=\"current\" size=\"%" PRIu64 "\"/>\n</malloc>\n",
                    slab_version(), stats.live_objects, stats.live_bytes, stats.net_slabs, rest(&stats),
                    stats.committed_bytes);
    return n >= 0 ? 0 : -1;
}
