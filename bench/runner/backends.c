/*
 * backends.c - the table of backends, the manifest, and who really serves malloc.
 *
 * Peers come from the manifest that scripts/get-peers.sh writes (name, version, kind, library, reason); a peer
 * without a line there is missing, too, and says so.
 */
#define _GNU_SOURCE
#include "runner/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/identify.h"
#include "runner/child.h"

/* glibc is the first general one and tslab the first of ours: ratios are taken to and of them. */
static const struct {
    const char* name;
    enum group group;
    const char* worker;
    const char* only; /* rows, or NULL */
} table[] = {
    {"glibc", GROUP_GENERAL, "malloc", NULL},
    {"mimalloc", GROUP_GENERAL, "malloc", NULL},
    {"mimalloc2", GROUP_GENERAL, "malloc", NULL},
    {"jemalloc", GROUP_GENERAL, "malloc", NULL},
    {"tcmalloc", GROUP_GENERAL, "malloc", NULL},
    {"tbbmalloc", GROUP_GENERAL, "malloc", NULL},
    {"snmalloc", GROUP_GENERAL, "malloc", NULL},
    {"rpmalloc", GROUP_GENERAL, "malloc", NULL},
    {"scudo", GROUP_GENERAL, "malloc", NULL},
    {"mi-heap", GROUP_PHASE, "mi-heap", NULL},
    {"je-arena", GROUP_PHASE, "je-arena", NULL},
    {"rp-heap", GROUP_PHASE, "rp-heap", NULL},
    {"apr", GROUP_PHASE, "apr", NULL},
    {"talloc", GROUP_PHASE, "talloc", NULL},
    {"pmr", GROUP_PHASE, "pmr", NULL},
    {"obstack", GROUP_PHASE, "obstack", NULL},
    {"arena", GROUP_LIMIT, "arena", NULL},
    {"tslab", GROUP_OURS, "tslab", NULL},
    {"tslab-handle", GROUP_OURS, "tslab-handle", NULL},
    {"tslab-single", GROUP_OURS, "tslab-single", NULL},
    {"tslab-sampled", GROUP_OURS, "tslab-sampled",
     "pair batch batch_tail mixed threads xthread request request_bulk phase100 open_phases"},
    {"tslab-static", GROUP_OURS, "tslab-static", "pair batch mixed request request_bulk phase100 domain"},
};

enum { BACKENDS = sizeof table / sizeof *table };

_Static_assert((int)BACKENDS <= (int)MAX_BACKENDS, "room for every backend");

/* A path relative to the folder of this program; that is asked once, the file may be replaced while it runs. */
static const char* beside(const char* name) {
    static char folder[1024], path[1200];
    if (!folder[0]) {
        ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
        folder[n > 0 ? n : 0] = 0;
        char* slash = strrchr(folder, '/');
        if (!slash) slash = strcpy(folder, ".") + 1;
        *slash = 0;
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void worker_path(const struct backend* b, char* out, size_t size) {
    char name[64];
    snprintf(name, sizeof name, "bench_workers/tslab_worker_%s", b->worker);
    snprintf(out, size, "%s", beside(name));
}

int backend_find(const struct results* r, const char* name) {
    for (unsigned b = 0; b < r->n_backends; b++)
        if (strcmp(r->backends[b].name, name) == 0) return (int)b;
    return -1;
}

static bool word_in(const char* words, const char* word) {
    size_t n = strlen(word);
    for (const char* at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0)) return true;
    return false;
}

/* One line of the manifest; the fields are split at tabs, an empty one stays a field. */
static void take_line(struct results* r, char* line) {
    char* field[5] = {"", "", "", "", ""};
    line[strcspn(line, "\n")] = 0;
    for (int i = 0; i < 5 && line; i++) field[i] = strsep(&line, "\t");
    int at = backend_find(r, field[0]);
    if (at < 0 || r->backends[at].group == GROUP_OURS) return;
    struct backend* b = &r->backends[at];
    b->available = field[4][0] == 0;
    snprintf(b->reason, sizeof b->reason, "%s", field[4]);
    snprintf(b->version, sizeof b->version, "%s", field[1]);
    if (strcmp(field[3], "-") != 0) snprintf(b->library, sizeof b->library, "%s", field[3]);
}

void backends_read(struct results* r, const char* manifest) {
    r->n_backends = BACKENDS;
    for (unsigned i = 0; i < BACKENDS; i++) {
        struct backend* b = &r->backends[i];
        *b = (struct backend){.name = table[i].name, .group = table[i].group, .worker = table[i].worker};
        b->has_only = table[i].only;
        for (unsigned row = 0; b->has_only && row < ROW_COUNT; row++)
            b->only[row] = word_in(table[i].only, rows[row].name);
        b->available = b->group == GROUP_OURS || word_in("glibc pmr obstack arena", b->name); /* no library to fetch */
        if (!b->available) snprintf(b->reason, sizeof b->reason, "not fetched: run scripts/get-peers.sh");
    }
    FILE* f = fopen(manifest ? manifest : beside("../peers/peers.tsv"), "r");
    char line[2048];
    while (f && fgets(line, sizeof line, f)) take_line(r, line);
    if (f) fclose(f);
}

static void refuse(struct backend* b, const char* why) {
    b->available = false;
    snprintf(b->reason, sizeof b->reason, "%s", why);
}

static void identify_one(struct backend* b) {
    static struct child_result result;
    char path[1280];
    worker_path(b, path, sizeof path);
    if (access(path, X_OK) != 0) {
        refuse(b, "its worker was not built");
        return;
    }
    const char* const words[] = {path, "--identify", NULL};
    child_run(words, b->library, 10, &result);
    if (result.state != CHILD_DONE) {
        refuse(b, result.text[0] ? result.text : "its worker does not start");
        return;
    }
    snprintf(b->malloc_from, sizeof b->malloc_from, "%s", result.malloc_from);
    if (result.version[0]) snprintf(b->version, sizeof b->version, "%s", result.version);
    const char* expected = strrchr(b->library, ':') ? strrchr(b->library, ':') + 1 : b->library;
    if (b->group == GROUP_GENERAL && b->library[0] && !identify_same_file(expected, b->malloc_from))
        refuse(b, "its library does not serve malloc");
}

void backends_identify(struct results* r) {
    for (unsigned b = 0; b < r->n_backends; b++)
        if (r->backends[b].wanted && r->backends[b].available) identify_one(&r->backends[b]);
}
