/* child.h - one worker process: started, listened to, ended. */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <signal.h>

#include "runner/results.h"

enum child_state { CHILD_DONE, CHILD_CANNOT, CHILD_CORRUPT, CHILD_FAILED, CHILD_INTERRUPTED };

struct child_result {
    enum child_state state;
    char text[TEXT]; /* why, unless CHILD_DONE */
    double value[MAX_METRICS];
    char version[64], malloc_from[512], profiler[64];
    double collected; /* instructions that callgrind counted; NAN */
};

/* Runs words[0] with the backend's library preloaded and its environment, for so many seconds at most. */
void child_run(const char* const* words, const struct backend* backend, unsigned seconds, struct child_result* out);

/* Set by the handler of SIGINT and SIGTERM: a worker that runs is killed and the run ends. */
extern volatile sig_atomic_t interrupted;

#endif
