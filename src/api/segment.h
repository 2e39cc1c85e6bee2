/*
 * segment.h - the reader of a segment: record and functions that its three files share.
 *
 * segment_find.c finds the file of a process and decides whether to trust it, segment_read.c checks the tables and
 * copies publications, segment_text.c makes a report of a copy. Nothing of a segment is used before it was copied and
 * checked: any process may have written it, and may still be writing.
 */
#ifndef TSI_API_SEGMENT_H
#define TSI_API_SEGMENT_H

#include "slab_segment.h"

struct SlabSegment {
    int fd;
    const uint8_t* map; /* NULL: a file that could shrink, read by pread */
    size_t bytes;
    uint32_t pid;             /* as the reader sees it */
    SlabSegmentHeader header; /* as it was when it was opened */
    uint32_t scope_count, metric_count, slot_count;
    SlabSegmentScope* scopes; /* own copies, all in `memory` */
    SlabSegmentMetric* metrics;
    uint64_t* copy;    /* of a buffer */
    size_t copy_bytes; /* room, and bytes a buffer has at least by the scopes */
    bool filled;
    uint32_t slot, state; /* that was copied, and its SlabSegmentState */
    bool changed;         /* the allocator has changed since the figures of the copy were taken */
    void* memory;
    size_t memory_bytes;
};

/* A process, as /proc shows it. */
typedef struct TsiProcess {
    uint32_t pid, uid;
    uint64_t inner_pid; /* as the process sees itself */
    uint64_t start_time;
    bool stopped; /* by a signal or a tracer */
} TsiProcess;
/* Sets *out to the process `pid` by /proc: its owner, whether it is stopped, its start in ticks since boot, and its id
 * in its own namespace (`pid` if the system does not tell). Returns true; false if there is no such process, or it has
 * ended and waits for its parent, and *out means nothing then. [any thread, needs no lock] */
bool tsi_process_poll(uint32_t pid, TsiProcess* out);

/* Returns true if `mount` may be on a machine that does not answer, by `mountinfo`, the file with a process's list of
 * mounts: it is of such a kind, or neither in the list nor `memory`, the kernel's mount of memory files. -1 for either:
 * not known; without `memory` a mount that is not listed is not far. [any thread, no lock held] */
bool tsi_segment_is_far(long mount, long memory, const char* mountinfo);

/* Copies `bytes` bytes, a multiple of 8, from `offset`, a multiple of 8, of the segment to `to`: by acquire loads, or
 * by pread. Returns true; false for other numbers, beyond the end, or if the file cannot be read, and `to` may be
 * filled in part then. [any thread, needs no lock] */
bool tsi_segment_copy(const SlabSegment* segment, uint64_t offset, void* to, size_t bytes);
/* Result of tsi_segment_try, beside 0 and errno values: the segment is another process's. */
enum { TSI_SEGMENT_FOREIGN = -1 };
/* Checks the open file in segment->fd, whose bytes and map are set: header and tables, and copies these to memory that
 * it maps, segment->memory; `process` is the one that must have written it. Returns 0; an errno value with a sentence
 * in slab_last_error; or TSI_SEGMENT_FOREIGN: the segment of another process. Otherwise than with 0 the caller drops
 * fd, map and memory, as far as they are set. [no other user of segment] */
int tsi_segment_try(SlabSegment* segment, const TsiProcess* process);

#endif
