/*
 * files.c - files that are never seen half written, and the statistics document.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <slab_stats.h>

#include "synthetic.h"

bool out_open(struct out_file* o, const char* name) {
    struct stat st;
    bool in_place = stat(name, &st) == 0 && !S_ISREG(st.st_mode); /* a rename would replace a device */
    size_t room = strlen(name) + 32;
    *o = (struct out_file){.name = name};
    if (in_place) return (o->f = fopen(name, "w")) != NULL;
    o->temporary = malloc(room);
    if (o->temporary == NULL) return false;
    (void)snprintf(o->temporary, room, "%s.%ld.part", name, (long)getpid());
    o->f = fopen(o->temporary, "w");
    if (o->f != NULL) return true;
    free(o->temporary);
    o->temporary = NULL;
    return false;
}

bool out_close(struct out_file* o, bool keep) {
    errno = 0;
    bool good = fflush(o->f) == 0 && !ferror(o->f);
    int error = errno != 0 ? errno : EIO;
    if (fclose(o->f) != 0 && good) good = false, error = errno;
    if (o->temporary != NULL) {
        if (good && keep && rename(o->temporary, o->name) != 0) good = false, error = errno;
        if (!good || !keep) (void)remove(o->temporary);
        free(o->temporary);
    }
    errno = error;
    return good;
}

/* ---- statistics ---- */

struct document {
    FILE* f;
    const struct run* run;
    bool begun;
};

static void put_members(struct document* d, const char* before, const char* after) {
    const struct run* r = d->run;
    struct totals t = totals_now(r);
    fprintf(d->f,
            "%s\"benchmark_allocator\":\"%s\",\"benchmark_pattern\":\"%s\",\"benchmark_elapsed_ns\":%" PRIu64
            ",\"benchmark_requests_completed\":%" PRIu64 ",\"benchmark_objects_allocated\":%" PRIu64
            ",\"benchmark_objects_freed\":%" PRIu64 ",\"benchmark_objects_leaked\":%" PRIu64 "%s",
            before, r->s.use_malloc ? "malloc" : "tslab", r->s.pattern->name,
            (r->end_ns ? r->end_ns : now_ns()) - r->begin_ns, t.requests, t.allocated, t.freed, t.leaked, after);
}

/* The library's text, with our members after its first brace. */
static bool pass_on(void* ctx, const char* bytes, size_t n) {
    struct document* d = ctx;
    if (!d->begun && n != 0) {
        put_members(d, "{", ",");
        d->begun = true;
        bytes++, n--;
    }
    return fwrite(bytes, 1, n, d->f) == n;
}

bool stats_write(const struct run* r, const char* name) {
    struct out_file o;
    if (!out_open(&o, name)) return false;
    struct document d = {o.f, r, false};
    bool good = true;
    if (r->a != NULL)
        good = slab_stats_json(r->a, pass_on, &d);
    else
        put_members(&d, "{", "}");
    int error = errno;
    (void)fputc('\n', o.f);
    if (!out_close(&o, good)) return false;
    errno = error;
    return good;
}
