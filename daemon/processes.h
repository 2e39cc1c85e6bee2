/*
 * processes.h - the statistics segments of this user's processes.
 */
#ifndef TSLABD_PROCESSES_H
#define TSLABD_PROCESSES_H

#include <stdint.h>

#include "text.h"

/* The list as it was last made; zeros before that. */
struct processes {
    struct text list;
    uint64_t made_ns;
};

/* JSON: processes with a segment, as they were a second ago at most. False without memory. */
bool processes_list(struct processes* p, struct text* out);

enum { PROCESS_STATS, PROCESS_METRICS };

/* What one allocator of a process has published last; allocator -1: the first that lives and has. The status: 200, or that of
 * a failure, of which `why` says more in a sentence without a full stop. */
unsigned process_text(uint32_t pid, int allocator, int what, struct text* out, char* why, size_t why_size);

#endif
