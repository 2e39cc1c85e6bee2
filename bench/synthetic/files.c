/*
 * files.c - files that are never seen half written, and the statistics document.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <slab_stats.h>

#include "common/json.h"
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

/* An object that is left open. */
static struct json put_members(FILE* f, const struct run* r) {
    struct json j = {.write = json_file, .ctx = f, .tight = true};
    struct totals t = totals_now(r);
    json_object(&j, NULL);
    json_text(&j, "benchmark_allocator", r->s.use_malloc ? "malloc" : "tslab");
    json_text(&j, "benchmark_pattern", r->s.pattern->name);
    json_count(&j, "benchmark_elapsed_ns", (r->end_ns ? r->end_ns : now_ns()) - r->begin_ns);
    json_count(&j, "benchmark_requests_completed", t.requests);
    json_count(&j, "benchmark_objects_allocated", t.allocated);
    json_count(&j, "benchmark_objects_freed", t.freed);
    json_count(&j, "benchmark_objects_leaked", t.leaked);
    return j;
}

/* The library's text, with our members after its first brace. */
static bool pass_on(void* ctx, const char* bytes, size_t n) {
    struct document* d = ctx;
    if (!d->begun && n != 0) {
        (void)put_members(d->f, d->run);
        (void)fputc(',', d->f);
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
    if (r->a != NULL) {
        good = slab_stats_json(r->a, pass_on, &d);
    } else {
        struct json j = put_members(o.f, r);
        json_close(&j);
    }
    int error = errno;
    (void)fputc('\n', o.f);
    if (!out_close(&o, good)) return false;
    errno = error;
    return good;
}
