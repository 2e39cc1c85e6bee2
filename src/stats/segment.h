/*
 * segment.h - an allocator's statistics in shared memory; the layout is that of slab_segment.h.
 *
 * A publication is a copy of a TsiReport; nothing is counted in shared memory. Calls of the floor above that have left
 * the fast path come by here as they return, with no lock held and no bracket open; one of them publishes when it is
 * time.
 */
#ifndef TSI_STATS_SEGMENT_H
#define TSI_STATS_SEGMENT_H

#include "state/arena.h"

/* Has fork children forget the process's segment; a second call does nothing. [any thread, no lock held] */
void tsi_segment_init(void);
/* Publishes a new allocator for the first time, if the option `segment` is set and no other thread publishes; otherwise
 * does nothing. Preserves errno. [any thread, no lock held, no bracket open] */
void tsi_segment_begin(TsiArena* a);
/* Ends an allocator's publications, if it has a slot in this process's segment, and frees what walks have found; its
 * slot may be another's after a second. [no other thread in the allocator] */
void tsi_segment_end(TsiArena* a);

/* Publishes now, after waiting for the publication under way. Returns true if it has; false if it cannot, which
 * tsi_segment_health tells, or the option `segment` is not set. Preserves errno.
 * [any thread, no lock held, no bracket open] */
bool tsi_segment_publish(TsiArena* a);
/* Publishes if it is time for the allocator and the process and no other thread does; otherwise, or if that fails,
 * tells readers that something has changed. The option `segment` is set. Preserves errno.
 * [any thread, no lock held, no bracket open] */
void tsi_segment_poll(TsiArena* a);
/* Publishes when it is time, and otherwise tells readers that something has changed; does nothing unless the option
 * `segment` is set. Preserves errno. [any thread, no lock held, no bracket open] */
TSI_INLINE void tsi_segment_tick(TsiArena* a) {
    if (TSI_UNLIKELY(a->options.segment != 0)) tsi_segment_poll(a);
}

/* The state of an allocator's publications. */
typedef struct TsiSegmentHealth {
    bool asked;
    uint64_t publications, failures;
    const char* what; /* the last failure in the process, or NULL */
    int error;        /* errno value, or 0 */
} TsiSegmentHealth;
/* Returns the state of an allocator's publications: `asked`, the option `segment`; its publications and failures; and
 * the last failure of any allocator of the process, `what` NULL if there was none. [any thread, needs no lock] */
TsiSegmentHealth tsi_segment_health(TsiArena* a);

#endif
