/*
 * synthetic.h - the vocabulary of synthetic_bench: a run of load/, watched, and what came out of it.
 *
 *   plan       what the command line asks for beside the load
 *   seen       what the main thread noticed while it ran
 *   outcome    the sums of all workers when nothing runs any more, the library's own numbers, and whether they agree
 */
#ifndef SYNTHETIC_H
#define SYNTHETIC_H

#include <signal.h>
#include <stdio.h>

#include "load/load.h"

struct plan {
    double duration_s, stats_s, progress_s;
    unsigned rss_sample_ms, leak_threshold_s;
    const char *stats_file, *json_file;
    bool doctor;
};

struct seen {
    bool interrupted;
    uint64_t rss_start, rss_peak, rss_end, rss_samples;
    double leak_named_s; /* below 0: not */
    char leak_named[32];
    uint64_t stats_written, stats_failed;
};

struct bench {
    struct run run;
    struct plan plan;
    struct seen seen;
};

/* -1 to go on, else the exit status. */
int settings_read(struct bench* b, int argc, char** argv);

/* ---- what came out ---- */

struct last_close { /* after the run: what lived is freed, and the ring's phase closed */
    uint64_t freed, bytes_returned, close_ns, rss_before, rss_after, drop_ns; /* drop_ns 0: not seen within a second */
};

/* When nothing runs: live objects are counted where they are kept. Complains on standard error of what does not agree;
 * the number of complaints. */
unsigned outcome_check(const struct run* r, struct totals* t);
struct last_close outcome_close(struct run* r, unsigned* complaints);
void report_text(const struct bench* b, const struct totals* t, const struct last_close* last, FILE* f);
bool report_json(const struct bench* b, const struct totals* t, const struct last_close* last, unsigned complaints,
                 FILE* f);

/* ---- files ---- */

/* A file that appears under its name complete: a regular file is written beside it and renamed. */
struct out_file {
    FILE* f;
    const char* name;
    char* temporary; /* NULL: written in place (a pipe, a device) */
};
bool out_open(struct out_file* o, const char* name); /* false: errno */
bool out_close(struct out_file* o, bool keep);       /* false: errno, and nothing changed under the name */
/* The library's document with members benchmark_*; errno when false. */
bool stats_write(const struct run* r, const char* name);

#endif
