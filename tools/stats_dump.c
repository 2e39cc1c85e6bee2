/*
 * stats_dump.c - the statistics of an allocator at work: JSON on standard output, text on standard error.
 *
 * A program that embeds the library calls slab_stats_json and slab_doctor itself. This one brings a small server-like
 * workload with it, to see what the numbers look like, and for whatever reads them to be tried on:
 *
 *   clean   requests of four routes, one phase each, everything freed before the phase ends
 *   leak    the same, and one route keeps one object in a hundred
 *   mixed   the leak, and sessions that outlive requests in a phase of their own, a little late freeing,
 *           and a few mistakes that the allocator refuses
 *
 * With --pid it runs no workload but shows what a process with a statistics segment has published of each of its
 * allocators, and how old that is.
 *
 * Exit status: 0, 1 when something could not be read, written or made, 2 for a wrong command line.
 */
#define _GNU_SOURCE
#include <slab_alloc.h>
#include <slab_diagnostics.h>
#include <slab_segment.h>
#include <slab_stats.h>

#include "common/flags.h"
#include "epoch_domain.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- command line ---- */

typedef struct Options {
    bool json, text, doctor;
    const char* pattern;
    double seconds;
    unsigned pid; /* 0: the workload */
} Options;

static void print_help(const struct command_line* c) {
    printf("usage: %s [options]\n"
           "Runs a small workload on a temporal-slab allocator and writes the allocator's statistics.\n\n",
           program_name);
    flags_print(c, c->tables[0]);
    flags_print(c, c->tables[1]);
    printf("  --help, --version\n");
}

/* -1 to go on, else the exit status. */
static int read_options(Options* o, int argc, char** argv) {
    struct flag streams[] = {
        {"--json", FLAG_SWITCH, &o->json, .argument = ", --no-json",
         .help = "write statistics as JSON to standard output (default: yes)"},
        {"--no-json", FLAG_CLEAR, &o->json, .help = ""},
        {"--text", FLAG_SWITCH, &o->text, .argument = ", --no-text",
         .help = "write statistics as text to standard error (default: yes)"},
        {"--no-text", FLAG_CLEAR, &o->text, .help = ""},
        {.name = NULL},
    };
    struct flag flags[] = {
        {"--doctor", FLAG_SWITCH, &o->doctor,
         .help = "write a diagnosis to standard error: leaks, slow paths, reclamation, health"},
        {"--pattern", FLAG_WORD, &o->pattern, .words = FLAG_WORDS("leak", "clean", "mixed"), .argument = "NAME",
         .help = "run this workload: leak, clean or mixed (default: mixed)"},
        {"--seconds", FLAG_REAL, &o->seconds, .most = 1e6,
         .help = "run the workload for this many seconds (default: 1)"},
        {"--pid", FLAG_UNSIGNED, &o->pid, .least = 1, .most = INT32_MAX,
         .help = "run no workload; write the statistics of process N, started with the option segment=1"},
        {.name = NULL},
    };
    int status = flags_read(
        &(struct command_line){"stats_dump", slab_version(), print_help, 23, ' ', {streams, flags}, argc, argv});
    for (const struct flag* f = flags; status < 0 && o->pid != 0 && f->to != &o->pid; f++)
        if (f->given) return flags_wrong("%s cannot be combined with --pid", f->name), 2;
    if (status >= 0 || o->json || o->text || o->doctor) return status;
    if (o->pid != 0)
        return flags_wrong("with --no-json and --no-text, there is nothing to write about process %u", o->pid), 2;
    fprintf(stderr,
            "%s: with --no-json and --no-text, nothing is written; only other processes can read the workload's "
            "statistics (TSLAB_OPTIONS=segment=1)\n",
            program_name);
    return status;
}

/* ---- workload ---- */

enum { REQUEST_OBJECTS = 100, SESSIONS = 400, REQUESTS_PER_SECOND = 200, LAG = 8 };

typedef struct World {
    SlabAllocator* a;
    bool leaks, mixed;
    uint64_t requests, random;
    epoch_domain_t* sessions;
    void* session[SESSIONS];
    void* late[LAG]; /* the last request's object that is freed some requests later */
} World;

static uint64_t next_random(World* w) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

static void replace_session(World* w) {
    void** slot = &w->session[next_random(w) % SESSIONS];
    slab_free(w->a, *slot);
    *slot = slab_malloc_epoch(w->a, 256, w->sessions->epoch_id);
}

static void mistakes(World* w) {
    void* p = slab_malloc(w->a, 100);
    slab_free(w->a, p);
    slab_free(w->a, p);
    (void)free_obj(w->a, 12345);
}

static void request(World* w) {
    static const char* const routes[] = {"GET /users", "GET /search", "POST /orders", "GET /health"};
    unsigned route = (unsigned)(w->requests++ % 4);
    void* objects[REQUEST_OBJECTS];
    EpochId id = epoch_current(w->a);
    slab_epoch_set_label(w->a, id, routes[route]);
    for (unsigned n = 0; n < REQUEST_OBJECTS; n++) {
        objects[n] = slab_malloc(w->a, 32 + next_random(w) % 480);
        if (objects[n] != NULL) memset(objects[n], (int)n, 32);
    }
    unsigned keep = w->leaks && route == 2 ? 1 : 0; /* of a hundred */
    void** late = &w->late[w->requests % LAG];
    for (unsigned n = keep; n < REQUEST_OBJECTS; n++) {
        if (w->mixed && n == REQUEST_OBJECTS - 1) {
            slab_free(w->a, *late);
            *late = objects[n];
        } else {
            slab_free(w->a, objects[n]);
        }
    }
    epoch_advance(w->a);
    epoch_close(w->a, id);
    if (w->mixed) replace_session(w);
    if (w->mixed && w->requests % 100 == 1) mistakes(w); /* the first too, however slow the machine is */
}

static void run(World* w, double seconds) {
    uint64_t start = slab_now_ns(), end = start + (uint64_t)(seconds * 1e9);
    do {
        request(w);
        uint64_t due = start + w->requests * (1000000000u / REQUESTS_PER_SECOND), now = slab_now_ns();
        if (due > end) due = end;
        if (due > now) {
            struct timespec pause = {(time_t)((due - now) / 1000000000u), (long)((due - now) % 1000000000u)};
            (void)nanosleep(&pause, NULL);
        }
    } while (slab_now_ns() < end);
}

/* ---- output ---- */

static bool to_file(void* ctx, const char* bytes, size_t n) { return fwrite(bytes, 1, n, ctx) == n; }

/* What went wrong with a stream, or 0. */
static int finish(FILE* f, const char* name) {
    if (fflush(f) == 0 && !ferror(f)) return 0;
    fprintf(stderr, "%s: %s: %s\n", program_name, name, strerror(errno != 0 ? errno : EIO));
    return 1;
}

static int write_json(SlabAllocator* a) {
    errno = 0;
    bool ok = slab_stats_json(a, to_file, stdout);
    if (ok)
        (void)fputc('\n', stdout);
    else if (!ferror(stdout))
        fprintf(stderr, "%s: no statistics: %s\n", program_name, strerror(errno));
    return finish(stdout, "standard output") != 0 || !ok;
}

/* What is written as text, of this process or another one. */
typedef struct Figures {
    SlabGlobalStats global;
    SlabClassStats* classes;
    SlabLabelStats* labels;
    size_t class_count, label_count;
} Figures;

/* A field that is written as text, behind its words or below its heading. Scopes and metrics of a segment have the
 * names of the structures' fields, so the same table says what is read there. */
typedef struct Field {
    const char* words;
    int width;
    enum { PLAIN, KIB, MIB, TEXT } as;
    const char* name; /* NULL ends a table */
    size_t offset, bytes;
} Field;
#define FIELD(Row, field) #field, offsetof(Row, field), sizeof((Row*)0)->field
#define G(field) FIELD(SlabGlobalStats, field)
#define C(field) FIELD(SlabClassStats, field)
#define L(field) FIELD(SlabLabelStats, field)
static const Field global_fields[] = {
    {"memory    RSS ", 0, MIB, G(rss_bytes_current)}, {" MiB; slabs ", 0, PLAIN, G(net_slabs)},
    {", ", 0, KIB, G(committed_bytes)}, {" KiB committed; live ", 0, PLAIN, G(live_objects)},
    {" objects, ", 0, KIB, G(live_bytes)}, {" KiB; bookkeeping ", 0, KIB, G(metadata_bytes)},
    {" KiB\nphases    current id ", 0, PLAIN, G(current_epoch)}, {"; ", 0, PLAIN, G(open_phases)},
    {" open, ", 0, PLAIN, G(draining_phases)}, {" draining; of the ring ", 0, PLAIN, G(active_epoch_count)},
    {" open, ", 0, PLAIN, G(closing_epoch_count)}, {" closed\nslow path ", 0, PLAIN, G(total_slow_path_hits)},
    {" hits; ", 0, PLAIN, G(total_slow_cache_miss)}, {" missed, ", 0, PLAIN, G(total_slow_epoch_closed)},
    {" refused\nkernel    ", 0, PLAIN, G(total_madvise_calls)}, {" madvise calls, ", 0, MIB, G(total_madvise_bytes)},
    {" MiB, ", 0, PLAIN, G(total_madvise_failures)}, {.words = " failed\n"},
};
static const Field class_fields[] = {
    {"size", 9, PLAIN, C(object_size)}, {"slabs", 9, PLAIN, C(net_slabs)}, {"live KiB", 11, KIB, C(live_bytes)},
    {"held KiB", 11, KIB, C(committed_bytes)}, {"slow", 9, PLAIN, C(slow_path_hits)},
    {"miss", 9, PLAIN, C(slow_path_cache_miss)}, {"closed", 9, PLAIN, C(slow_path_epoch_closed)},
    {"null", 9, PLAIN, C(current_partial_null)}, {"full", 9, PLAIN, C(current_partial_full)}, {.words = "\n"},
};
static const Field label_fields[] = {
    {"label", -32, TEXT, L(label)}, {"phases", 9, PLAIN, L(phases_opened)},
    {"draining", 9, PLAIN, L(draining_phases)}, {"allocated", 11, PLAIN, L(objects_allocated)},
    {"live", 11, PLAIN, L(live_objects)}, {"live KiB", 11, KIB, L(live_bytes)},
    {"escaped", 11, PLAIN, L(objects_escaped)}, {.words = "\n"},
};

static void text_value(const Field* f, const void* row) {
    const char* at = (const char*)row + f->offset;
    uint32_t narrow;
    uint64_t wide;
    if (f->as == TEXT) {
        fprintf(stderr, "%*s", f->width, at);
        return;
    }
    if (f->bytes == sizeof narrow) memcpy(&narrow, at, sizeof narrow), wide = narrow;
    else memcpy(&wide, at, sizeof wide);
    if (f->as == PLAIN) fprintf(stderr, "%*" PRIu64, f->width, wide);
    else fprintf(stderr, "%*.1f", f->width, (double)wide / (f->as == KIB ? 1024 : 1048576));
}

static void text_row(const Field* f, const void* row) {
    for (; f->name != NULL; f++) text_value(f, row);
    fputs(f->words, stderr);
}

static void text_heads(const Field* f) {
    for (; f->name != NULL; f++) fprintf(stderr, "%*s", f->width, f->words);
    fputs(f->words, stderr);
}

static void text_classes(const Figures* f) {
    fprintf(stderr, "\n%6s", "class");
    text_heads(class_fields);
    for (uint32_t n = 0; n < f->class_count; n++) {
        const SlabClassStats* c = &f->classes[n];
        if (c->net_slabs == 0 && c->slow_path_hits == 0) continue;
        fprintf(stderr, "%6u", n);
        text_row(class_fields, c);
    }
}

static void text_labels(const Figures* f) {
    fputc('\n', stderr);
    text_heads(label_fields);
    for (size_t n = 0; n < f->label_count; n++) {
        const SlabLabelStats* l = &f->labels[n];
        if (l->phases_opened == 0 && l->objects_allocated == 0) continue;
        text_row(label_fields, l);
    }
}

static void write_text(const Figures* f) {
    const Field* g = global_fields;
    for (; g->name != NULL; g++) {
        fputs(g->words, stderr);
        text_value(g, &f->global);
    }
    fputs(g->words, stderr);
    text_classes(f);
    text_labels(f);
    fputc('\n', stderr);
}

/* Room for tables; without memory there are none. */
static void tables_make(Figures* f, size_t classes, size_t labels) {
    f->classes = calloc(classes + 1, sizeof *f->classes);
    f->labels = calloc(labels + 1, sizeof *f->labels);
    f->class_count = f->classes != NULL ? classes : 0;
    f->label_count = f->labels != NULL ? labels : 0;
}

static void write_own_text(SlabAllocator* a, const World* w) {
    Figures f = {.classes = NULL};
    SlabClassStats c;
    uint32_t classes = 0;
    while (slab_stats_class(a, classes, &c), c.version != 0) classes++;
    tables_make(&f, classes, slab_stats_labels(a, NULL, 0));
    slab_stats_global(a, &f.global);
    for (uint32_t n = 0; n < f.class_count; n++) slab_stats_class(a, n, &f.classes[n]);
    size_t labels = slab_stats_labels(a, f.labels, f.label_count);
    if (labels < f.label_count) f.label_count = labels;
    fprintf(stderr, "temporal-slab %s after %" PRIu64 " requests\n", slab_version(), w->requests);
    write_text(&f);
    free(f.classes);
    free(f.labels);
}

static int dump(const World* w, const Options* o) {
    int failed = o->json ? write_json(w->a) : 0;
    if (o->text) write_own_text(w->a, w);
    if (o->doctor && !slab_doctor(w->a, to_file, stderr) && !ferror(stderr)) {
        fprintf(stderr, "%s: no diagnosis: %s\n", program_name, strerror(errno));
        failed = 1;
    }
    return failed | finish(stderr, "standard error");
}

/* ---- another process ---- */

static uint32_t scope_named(const SlabSegment* s, const char* name) {
    const SlabSegmentScope* scopes;
    uint32_t count = slab_segment_scopes(s, &scopes), n = 0;
    while (n < count && strcmp(scopes[n].name, name) != 0) n++;
    return n;
}

static void take_field(const SlabSegment* s, uint32_t metric, uint32_t type, const Field* f, void* rows, size_t bytes) {
    SlabSegmentValue v;
    for (uint32_t row = 0; slab_segment_value(s, metric, row, &v); row++) {
        char* to = (char*)rows + row * bytes + f->offset;
        uint32_t narrow = (uint32_t)v.u;
        if (type == SLAB_SEGMENT_STRING) memcpy(to, v.text, strnlen(v.text, f->bytes - 1));
        else memcpy(to, f->bytes == sizeof narrow ? (void*)&narrow : &v.u, f->bytes);
    }
}

/* Fills the fields of the rows that the copied publication has of a scope. */
static void take_fields(const SlabSegment* s, const char* scope, const Field* fields, void* rows, size_t bytes) {
    const SlabSegmentMetric* m;
    uint32_t count = slab_segment_metrics(s, &m), in = scope_named(s, scope);
    for (uint32_t n = 0; n < count; n++)
        for (const Field* f = fields; f->name != NULL; f++)
            if (m[n].scope == in && strcmp(m[n].name, f->name) == 0) take_field(s, n, m[n].type, f, rows, bytes);
}

static void write_others_text(const SlabSegment* s, const SlabSegmentView* v, uint32_t pid) {
    static const char* const states[] = {"running", "stopped", "ended"};
    SlabProcessState state = v->state == SLAB_SEGMENT_ENDED ? SLAB_PROCESS_ENDED : slab_segment_process(s);
    Figures f = {.classes = NULL};
    tables_make(&f, slab_segment_rows(s, scope_named(s, "CLASS")).count,
                slab_segment_rows(s, scope_named(s, "LABEL")).count);
    take_fields(s, "GLOBAL", global_fields, &f.global, sizeof f.global);
    if (f.class_count != 0) take_fields(s, "CLASS", class_fields, f.classes, sizeof *f.classes);
    if (f.label_count != 0) take_fields(s, "LABEL", label_fields, f.labels, sizeof *f.labels);
    fprintf(stderr, "process %u, allocator %u: %s; publication %" PRIu64 ", figures of %.1f s ago\n", pid, v->slot,
            states[state], v->number, (double)(int64_t)(slab_now_ns() - v->begun_ns) / 1e9);
    write_text(&f);
    free(f.classes);
    free(f.labels);
}

static bool write_slot(SlabSegment* s, uint32_t slot, uint32_t state, const Options* o) {
    SlabSegmentView v;
    SlabSegmentResult result = slab_segment_read(s, slot, &v);
    if (result == SLAB_SEGMENT_INCONSISTENT)
        fprintf(stderr, "%s: slot %u of process %u is inconsistent\n", program_name, slot, o->pid);
    if (result != SLAB_SEGMENT_OK || v.state != state) return false;
    if (o->text) write_others_text(s, &v, o->pid);
    errno = 0;
    if (!o->json) return true;
    if (slab_segment_json(s, to_file, stdout)) return fputc('\n', stdout) != EOF;
    if (!ferror(stdout)) fprintf(stderr, "%s: no statistics: %s\n", program_name, strerror(errno));
    return false;
}

/* Allocators that live, or those that have ended where none does. */
static int dump_process(const Options* o) {
    SlabSegment* s = slab_segment_open(o->pid);
    unsigned shown = 0;
    if (s == NULL) {
        fprintf(stderr, "%s: %s\n", program_name, slab_last_error());
        return 1;
    }
    for (uint32_t state = SLAB_SEGMENT_LIVE; state <= SLAB_SEGMENT_ENDED && shown == 0; state++)
        for (uint32_t slot = 0; slot < slab_segment_slots(s) && !ferror(stdout); slot++)
            shown += write_slot(s, slot, state, o);
    slab_segment_close(s);
    if (shown == 0 && !ferror(stdout)) fprintf(stderr, "%s: process %u publishes no allocator\n", program_name, o->pid);
    return finish(stdout, "standard output") | finish(stderr, "standard error") || shown == 0;
}

int main(int argc, char** argv) {
    Options o = {.json = true, .text = true, .pattern = "mixed", .seconds = 1};
    World w = {.random = 88172645463325252ull};
    (void)signal(SIGPIPE, SIG_IGN); /* a reader that leaves is an error like any other */
    int status = read_options(&o, argc, argv);
    if (status >= 0) return status;
    if (o.pid != 0) return dump_process(&o);
    w.a = slab_allocator_create();
    w.sessions = w.a != NULL ? epoch_domain_create_labeled(w.a, "sessions") : NULL;
    if (w.sessions == NULL) {
        fprintf(stderr, "%s: no allocator: %s\n", program_name, slab_last_error());
        return 1;
    }
    w.mixed = strcmp(o.pattern, "mixed") == 0;
    w.leaks = strcmp(o.pattern, "clean") != 0;
    run(&w, o.seconds);
    status = dump(&w, &o);
    epoch_domain_destroy(w.sessions);
    slab_allocator_free(w.a);
    return status;
}
