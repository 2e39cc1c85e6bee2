/*
 * backends.c - the table of backends, the manifest, and who really serves malloc.
 *
 * Peers come from the manifest that scripts/get-peers.sh writes (name, version, kind, library, reason); a peer
 * without a line there is missing, too, and says so. Several backends may share a peer and differ in their environment:
 * a profiler that is on, and off. It is asked whether it is, so that nobody is measured asleep.
 */
#define _GNU_SOURCE
#include "runner/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/identify.h"
#include "runner/child.h"

#define OBSERVED_ROWS "pair mixed threads request snapshot"
#define SAMPLED "one in 524288 bytes"
#define ALL "every allocation"

/* gperftools' heap profiler; it never dumps by itself: no threshold is set, and workers leave by _exit. */
#define HEAP_PROFILER "HEAPPROFILE=/dev/null HEAP_PROFILE_ALLOCATION_INTERVAL=0 HEAP_PROFILE_INUSE_INTERVAL=0"

/* glibc is the first general one, arena the first limit and tslab the first of ours: ratios are taken to and of them. */
static const struct {
    const char* name;
    enum group group;
    const char* worker;
    const char* only;     /* rows, or NULL */
    const char* off;      /* who is the same without being observed */
    const char* profiler; /* what its profiler must say, see identify_profiler */
    const char* peer;     /* line in the manifest; NULL: of its own name */
    const char* environment;
    unsigned slower; /* 0: does all of the work */
} table[] = {
    {.name = "glibc", .group = GROUP_GENERAL, .worker = "malloc"},
    {.name = "mimalloc", .group = GROUP_GENERAL, .worker = "malloc"},
    {.name = "mimalloc2", .group = GROUP_GENERAL, .worker = "malloc"},
    {.name = "jemalloc", .group = GROUP_GENERAL, .worker = "malloc"},
    {.name = "tcmalloc", .group = GROUP_GENERAL, .worker = "malloc"},
    {.name = "tbbmalloc", .group = GROUP_GENERAL, .worker = "malloc"},
    {.name = "snmalloc", .group = GROUP_GENERAL, .worker = "malloc"},
    {.name = "rpmalloc", .group = GROUP_GENERAL, .worker = "malloc"},
    {.name = "snmalloc-checks", .group = GROUP_CHECKED, .worker = "malloc"},
    {.name = "mimalloc-secure", .group = GROUP_CHECKED, .worker = "malloc"},
    {.name = "scudo", .group = GROUP_CHECKED, .worker = "malloc"},
    {.name = "mi-heap", .group = GROUP_PHASE, .worker = "mi-heap"},
    {.name = "je-arena", .group = GROUP_PHASE, .worker = "je-arena"},
    {.name = "rp-heap", .group = GROUP_PHASE, .worker = "rp-heap"},
    {.name = "apr", .group = GROUP_PHASE, .worker = "apr"},
    {.name = "talloc", .group = GROUP_PHASE, .worker = "talloc"},
    {.name = "pmr", .group = GROUP_PHASE, .worker = "pmr"},
    {.name = "obstack", .group = GROUP_PHASE, .worker = "obstack"},
    {.name = "arena", .group = GROUP_LIMIT, .worker = "arena"},
    {.name = "arena-inlined", .group = GROUP_LIMIT, .worker = "arena-inlined"},
    {.name = "tslab", .group = GROUP_OURS, .worker = "tslab", .off = "tslab-unlabelled"},
    {.name = "tslab-handle", .group = GROUP_OURS, .worker = "tslab-handle"},
    {.name = "tslab-single", .group = GROUP_OURS, .worker = "tslab-single"},
    {.name = "tslab-sampled",
     .group = GROUP_OURS,
     .worker = "tslab-sampled",
     .only =
         "pair batch batch_tail mixed threads xthread request request_own request_bulk phase10 phase100 open_phases "
         "snapshot",
     .off = "tslab"},
    {.name = "tslab-domain",
     .group = GROUP_OURS,
     .worker = "tslab-domain",
     .only = "pair batch batch_tail mixed threads xthread request snapshot",
     .off = "tslab"},
    {.name = "tslab-unlabelled",
     .group = GROUP_OURS,
     .worker = "tslab-unlabelled",
     .only = "pair mixed threads request request_own request_bulk phase10 phase100 handed_on"},
    {.name = "tslab-huge",
     .group = GROUP_OURS,
     .worker = "tslab",
     .only = "batch batch_tail mixed live request request_bulk phase10 phase100 big_phase open_phases big_phases "
             "churn_apart churn_left rss",
     .environment = "TSLAB_OPTIONS=huge_pages=1"},
    {.name = "tslab-shared",
     .group = GROUP_OURS,
     .worker = "tslab",
     .only =
         "pair mixed threads xthread few_objects request request_own request_bulk shared_allocator phase10 phase100 "
         "domain open_phases rss",
     .environment = "TSLAB_OPTIONS=shared=1"},
    {.name = "tslab-lane",
     .group = GROUP_OURS,
     .worker = "tslab-lane",
     .only = "request_bulk phase10 event_loop phase100 big_phase handed_on"},
    {.name = "tslab-run",
     .group = GROUP_OURS,
     .worker = "tslab-run",
     .only = "request_bulk phase10 phase100 big_phase"},
    {.name = "tslab-static",
     .group = GROUP_OURS,
     .worker = "tslab-static",
     .only = "pair batch mixed request request_own request_bulk phase10 phase100 domain"},
    {.name = "jemalloc-prof-off",
     .group = GROUP_OBSERVED,
     .worker = "malloc",
     .only = OBSERVED_ROWS,
     .profiler = "off",
     .peer = "jemalloc-prof",
     .environment = "MALLOC_CONF=prof:false"},
    {.name = "jemalloc-prof",
     .group = GROUP_OBSERVED,
     .worker = "malloc",
     .only = OBSERVED_ROWS,
     .off = "jemalloc-prof-off",
     .profiler = SAMPLED,
     .peer = "jemalloc-prof",
     .environment = "MALLOC_CONF=prof:true,prof_active:true,lg_prof_sample:19"},
    {.name = "jemalloc-prof-all",
     .group = GROUP_OBSERVED,
     .worker = "malloc",
     .only = OBSERVED_ROWS,
     .off = "jemalloc-prof-off",
     .profiler = ALL,
     .peer = "jemalloc-prof",
     .environment = "MALLOC_CONF=prof:true,prof_active:true,lg_prof_sample:0",
     .slower = 50},
    {.name = "tcmalloc-prof-off",
     .group = GROUP_OBSERVED,
     .worker = "malloc",
     .only = OBSERVED_ROWS,
     .profiler = "off",
     .peer = "tcmalloc-prof",
     .environment = "TCMALLOC_SAMPLE_PARAMETER=0"},
    {.name = "tcmalloc-prof",
     .group = GROUP_OBSERVED,
     .worker = "malloc",
     .only = OBSERVED_ROWS,
     .off = "tcmalloc-prof-off",
     .profiler = SAMPLED,
     .peer = "tcmalloc-prof",
     .environment = "TCMALLOC_SAMPLE_PARAMETER=524288"},
    {.name = "tcmalloc-prof-all",
     .group = GROUP_OBSERVED,
     .worker = "malloc",
     .only = OBSERVED_ROWS,
     .off = "tcmalloc-prof-off",
     .profiler = ALL,
     .peer = "tcmalloc-prof",
     .environment = HEAP_PROFILER,
     .slower = 50},
};

enum { BACKENDS = sizeof table / sizeof *table };

_Static_assert((int)BACKENDS <= (int)MAX_BACKENDS, "room for every backend");

/* The folder is asked for once: the file may be replaced while it runs. */
const char* beside(const char* name) {
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
    for (unsigned i = 0; i < r->n_backends; i++) {
        struct backend* b = &r->backends[i];
        if (b->group == GROUP_OURS || strcmp(b->peer, field[0]) != 0) continue;
        b->available = field[4][0] == 0;
        snprintf(b->reason, sizeof b->reason, "%s", field[4]);
        snprintf(b->version, sizeof b->version, "%s", field[1]);
        if (strcmp(field[3], "-") != 0) snprintf(b->library, sizeof b->library, "%s", field[3]);
    }
}

void backends_read(struct results* r, const char* manifest) {
    r->n_backends = BACKENDS;
    for (unsigned i = 0; i < BACKENDS; i++) {
        struct backend* b = &r->backends[i];
        *b = (struct backend){.name = table[i].name, .group = table[i].group, .worker = table[i].worker};
        b->peer = table[i].peer ? table[i].peer : b->name;
        b->environment = table[i].environment, b->profiler = table[i].profiler;
        b->slower = table[i].slower ? table[i].slower : 1;
        b->has_only = table[i].only;
        for (unsigned row = 0; b->has_only && row < ROW_COUNT; row++)
            b->only[row] = word_in(table[i].only, rows[row].name);
        b->available = b->group == GROUP_OURS || b->group == GROUP_LIMIT ||
                       word_in("glibc pmr obstack", b->name); /* no library to fetch */
        if (!b->available) snprintf(b->reason, sizeof b->reason, "not fetched: run scripts/get-peers.sh");
    }
    for (unsigned i = 0; i < BACKENDS; i++) r->backends[i].off = table[i].off ? backend_find(r, table[i].off) : -1;
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
    child_run(words, b, 10, &result);
    if (result.state != CHILD_DONE) {
        refuse(b, result.text[0] ? result.text : "its worker does not start");
        return;
    }
    snprintf(b->malloc_from, sizeof b->malloc_from, "%s", result.malloc_from);
    if (result.version[0]) snprintf(b->version, sizeof b->version, "%s", result.version);
    const char* expected = strrchr(b->library, ':') ? strrchr(b->library, ':') + 1 : b->library;
    bool serves = b->group == GROUP_GENERAL || b->group == GROUP_CHECKED || b->group == GROUP_OBSERVED;
    if (serves && b->library[0] && !identify_same_file(expected, b->malloc_from))
        refuse(b, "its library does not serve malloc");
    else if (b->profiler && strcmp(b->profiler, result.profiler) != 0)
        snprintf(b->reason, sizeof b->reason, "its profiler is '%s', not '%s'", result.profiler, b->profiler),
            b->available = false;
}

void backends_identify(struct results* r) {
    for (unsigned b = 0; b < r->n_backends; b++)
        if (r->backends[b].wanted && r->backends[b].available) identify_one(&r->backends[b]);
}
