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

enum process_part { PROCESS_STATS, PROCESS_METRICS, PROCESS_HEALTH };

struct process_question {
    uint32_t pid;
    int allocator; /* -1: the first that lives and has published */
    enum process_part what;
    double stale_after_s; /* health: older figures are not; 0: never */
};

/* What one allocator of a process has published last, or whether it still does. The status: 200, or that of a failure,
 * of which `why` says more in a sentence without a full stop. */
unsigned process_text(const struct process_question* q, struct text* out, char* why, size_t why_size);

#endif
