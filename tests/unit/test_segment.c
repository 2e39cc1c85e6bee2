/*
 * test_segment.c - publishing: what is published and when, slots, and systems that refuse.
 *
 * The process makes its segment once; `start_over` lets it forget that, as a fork child does. The clock stands still
 * but for what a test lets pass, so an allocator's next publication is one slow call (a trim) after the time was moved
 * on.
 */
#define _GNU_SOURCE
#include "frozen.h"

#include "slab_diagnostics.h"
#include "slab_segment.h"
#include "slab_stats.h"

#include "api/segment.h"
#include "os/shared.h"
#include "stats/metrics.h"
#include "stats/report.h"
#include "stats/segment_rows.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif

static unsigned memfd_calls;
static bool memfd_fails;

static int fake_memfd(const char* name) {
    memfd_calls++;
    errno = EPERM;
    return memfd_fails ? -1 : real_memfd(name);
}

static void set_up(void) {
    memfd_calls = 0;
    memfd_fails = false;
    freeze(fake_memfd);
}

static SlabAllocator* create(void) {
    SlabOptions o = kit_options();
    o.segment = 1;
    SlabAllocator* a = kit_create_with(&o);
    REQUIRE_STR(slab_last_error(), "");
    return a;
}

static SlabSegment* open_own(void) {
    SlabSegment* s = slab_segment_open((uint32_t)getpid());
    if (s == NULL) fprintf(stderr, "%s\n", slab_last_error());
    REQUIRE(s != NULL);
    return s;
}

static SlabSegmentView view_of(SlabSegment* s, uint32_t slot) {
    SlabSegmentView v;
    REQUIRE_EQ(slab_segment_read(s, slot, &v), SLAB_SEGMENT_OK);
    return v;
}

static SlabSegmentHeader header_of(SlabSegment* s) {
    SlabSegmentHeader h;
    REQUIRE(slab_segment_header(s, &h));
    return h;
}

/* ---- what ---- */

static bool is_of_the_moment(const TsiMetric* m) {
    static const char* const keys[] = {"timestamp_ns", "uptime_ns", "segment_publications", "rss_bytes_current",
                                       "age_ns",       "age_sec",   "metadata_bytes",       "publication",
                                       "figures_ns",   "phases_ns"};
    for (size_t n = 0; n < sizeof keys / sizeof *keys; n++)
        if (strcmp(keys[n], m->key) == 0) return true;
    return false;
}

static void same_value(const TsiMetric* m, const void* row, const SlabSegmentValue* v) {
    TsiValue want = tsi_metric_value(m, row);
    bool same = want.u == v->u;
    if (m->type == SLAB_SEGMENT_STRING) same = strncmp(want.s, v->text, 31) == 0;
    else if (m->type == SLAB_SEGMENT_F64) same = memcmp(&want.f, &v->f, sizeof want.f) == 0;
    else if (tsi_metric_is_array(m))
        same = v->entries == tsi_metric_entries(m) && memcmp(want.a, v->counts, m->bytes) == 0;
    if (!same && !is_of_the_moment(m)) FAIL("%s is not what was published", m->key);
}

static void rows_are_those_of_the_report(void) {
    SlabAllocator* a = create();
    void* p[40];
    epoch_domain_t* d = epoch_domain_begin(a, "GET /users");
    kit_take(a, 100, p, 40);
    slab_free(a, p[0]);
    slab_free(a, p[0]); /* a refusal */
    pass_seconds(1);
    slab_trim(a);
    SlabSegment* s = open_own();
    REQUIRE(view_of(s, 0).number >= 2);
    REQUIRE(view_of(s, 0).serial == tsi_arena(a)->serial);
    TsiReport r;
    REQUIRE(tsi_report_take(tsi_arena(a), &r));
    const SlabSegmentMetric* metrics;
    const SlabSegmentScope* scopes;
    REQUIRE_EQ(slab_segment_metrics(s, &metrics), TSI_METRICS);
    REQUIRE_EQ(slab_segment_scopes(s, &scopes), TSI_SECTIONS);
    for (uint32_t i = 0; i < TSI_METRICS; i++) {
        const TsiMetric* m = &tsi_metrics[i];
        TsiRows rows = tsi_report_rows(&r, (TsiSection)m->section);
        REQUIRE_STR(metrics[i].name, m->key);
        REQUIRE_STR(scopes[metrics[i].scope].key, tsi_sections[m->section].key);
        REQUIRE_EQ(slab_segment_rows(s, metrics[i].scope).count, rows.count);
        REQUIRE_EQ(slab_segment_rows(s, metrics[i].scope).left_out, 0);
        SlabSegmentValue v;
        for (uint32_t n = 0; n < rows.count; n++) {
            REQUIRE(slab_segment_value(s, i, n, &v));
            same_value(m, rows.first + n * rows.bytes, &v);
        }
        REQUIRE(!slab_segment_value(s, i, rows.count, &v));
    }
    tsi_report_drop(&r);
    slab_segment_close(s);
    epoch_domain_end(d);
    slab_allocator_free(a);
}

static void what_has_no_room_is_counted(void) {
    enum { PHASES = 300 };
    epoch_domain_t* d[PHASES];
    SlabAllocator* a = create();
    for (unsigned n = 0; n < PHASES; n++) {
        d[n] = epoch_domain_create_labeled(a, NULL);
        REQUIRE(slab_malloc_epoch(a, 64, d[n]->epoch_id) != NULL);
    }
    pass_seconds(1);
    slab_trim(a);
    SlabSegment* s = open_own();
    (void)view_of(s, 0);
    const SlabSegmentScope* scopes;
    uint32_t count = slab_segment_scopes(s, &scopes), checked = 0;
    for (uint32_t n = 0; n < count; n++) {
        SlabSegmentRows rows = slab_segment_rows(s, n);
        if (strcmp(scopes[n].name, "PHASE") == 0) REQUIRE_EQ(rows.count + rows.left_out, PHASES), checked++;
        if (strcmp(scopes[n].name, "EPOCH") == 0)
            REQUIRE(rows.count == 256 && rows.left_out >= PHASES - 256), checked++;
        REQUIRE(rows.count <= scopes[n].capacity);
    }
    REQUIRE_EQ(checked, 2);
    slab_segment_close(s);
    for (unsigned n = 0; n < PHASES; n++) epoch_domain_destroy(d[n]);
    slab_allocator_free(a);
}

/* ---- labels without a row ---- */

/* A metric of a scope in what was read. */
static uint32_t metric_at(SlabSegment* s, const char* scope, const char* name) {
    const SlabSegmentScope* scopes;
    const SlabSegmentMetric* metrics;
    slab_segment_scopes(s, &scopes);
    uint32_t count = slab_segment_metrics(s, &metrics), n = 0;
    while (n < count && (strcmp(scopes[metrics[n].scope].name, scope) != 0 || strcmp(metrics[n].name, name) != 0)) n++;
    REQUIRE(n < count);
    return n;
}

static uint64_t number_at(SlabSegment* s, const char* scope, const char* name, uint32_t row) {
    SlabSegmentValue v;
    REQUIRE(slab_segment_value(s, metric_at(s, scope, name), row, &v));
    return v.u;
}

static SlabSegmentRows rows_of(SlabSegment* s, const char* scope) {
    const SlabSegmentMetric* metrics;
    slab_segment_metrics(s, &metrics);
    return slab_segment_rows(s, metrics[metric_at(s, scope, "label")].scope);
}

typedef struct Page {
    size_t bytes;
    char text[16 << 20];
} Page;
static Page page;

static bool to_page(void* ctx, const char* bytes, size_t n) {
    Page* p = ctx;
    REQUIRE(p->bytes + n < sizeof p->text);
    memcpy(p->text + p->bytes, bytes, n);
    p->text[p->bytes += n] = 0;
    return true;
}

static const char* page_of(SlabSegment* s,
                           bool (*write)(const SlabSegment*, bool (*)(void*, const char*, size_t), void*)) {
    page.bytes = 0;
    REQUIRE(write(s, to_page, &page));
    return page.text;
}

/* Phases of so many labels, one after the other: label k has k % 3 + 1 objects in its phase, of which it keeps one. */
static uint64_t phases_of_labels(SlabAllocator* a, unsigned labels) {
    uint64_t objects = 0;
    for (unsigned k = 0; k < labels; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, k == 0 ? "(rest)" : "route-%u", k); /* one is called like that row */
        epoch_domain_t* d = epoch_domain_begin(a, name);
        d->auto_close = false;
        for (unsigned n = 0; n <= k % 3; n++) objects += slab_malloc(a, 100) != NULL;
        epoch_domain_exit(d);
        REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL));
    }
    return objects;
}

static void labels_without_a_row_are_added_up(void) {
    enum { MOST = 512, LABELS = 600, IDS = LABELS + 2 };
    SlabOptions o = kit_options();
    o.segment = 1;
    o.max_labels = 4096;
    SlabAllocator* a = kit_create_with(&o);
    REQUIRE_EQ(phases_of_labels(a, MOST - 2), 2 * (MOST - 2));
    REQUIRE(slab_stats_publish(a));
    SlabSegment* s = open_own();
    (void)view_of(s, 0);
    REQUIRE_EQ(rows_of(s, "LABEL").count, MOST); /* as many as there is room for, each with its own */
    REQUIRE_EQ(number_at(s, "DOCUMENT", "labels_left_out", 0), 0);
    uint64_t objects = 2 * (MOST - 2) + phases_of_labels(a, LABELS);
    REQUIRE(slab_stats_publish(a));
    (void)view_of(s, 0);
    SlabSegmentRows rows = rows_of(s, "LABEL");
    REQUIRE_EQ(rows.count, MOST);
    REQUIRE_EQ(rows.left_out, IDS - (MOST - 1));
    REQUIRE_EQ(number_at(s, "DOCUMENT", "labels_left_out", 0), IDS - (MOST - 1));
    REQUIRE_EQ(number_at(s, "REGISTRY", "count", 0), IDS);
    REQUIRE_EQ(number_at(s, "DOCUMENT", "objects_allocated", 0), objects);
    REQUIRE_EQ(number_at(s, "DOCUMENT", "phases_ended", 0), LABELS + MOST - 2);
    static const char* const summed[] = {"objects_allocated", "phases_ended", "draining_objects", "draining_bytes"};
    for (unsigned k = 0; k < sizeof summed / sizeof *summed; k++) {
        uint64_t sum = 0;
        uint32_t metric = metric_at(s, "LABEL", summed[k]);
        for (uint32_t n = 0; n < MOST; n++) {
            SlabSegmentValue one;
            REQUIRE(slab_segment_value(s, metric, n, &one));
            sum += one.u;
        }
        REQUIRE_EQ(sum, number_at(s, "DOCUMENT", summed[k], 0));
    }
    SlabSegmentValue v;
    REQUIRE(slab_segment_value(s, metric_at(s, "LABEL", "label"), MOST - 1, &v));
    REQUIRE_STR(v.text, "(rest)");
    REQUIRE_EQ(number_at(s, "LABEL", "label_id", MOST - 1), IDS); /* which no label has */
    REQUIRE_EQ(number_at(s, "LABEL", "phases_ended", MOST - 1) >= IDS - (MOST - 1) - 2, true);
    const char* text = page_of(s, slab_segment_prometheus);
    REQUIRE(strstr(text, "temporal_slab_labels_left_out 91\n") != NULL);
    REQUIRE(strstr(text, "temporal_slab_label_draining_objects{label=\"(rest)\"}") != NULL);
    REQUIRE(strstr(text, "temporal_slab_label_draining_objects{label=\"(rest) #1\"}") != NULL);
    REQUIRE(strstr(text, "temporal_slab_label_objects_allocated_total{label=\"(rest)\"}") == NULL); /* it would fall */
    text = page_of(s, slab_segment_json);
    REQUIRE(strstr(text, "\"labels_left_out\":91") != NULL && strstr(text, "\"count\":602") != NULL);
    slab_segment_close(s);
    slab_allocator_free(a);
}

/* ---- what was not published ---- */

static void* frees_all(void* arg) {
    void** p = arg;
    for (unsigned n = 0; p[n + 1] != NULL; n++) slab_free(p[0], p[n + 1]);
    return NULL;
}

/* The clock stands still, so nobody publishes unless asked to. */
static void what_is_not_published_is_marked_of(SlabOptions o) {
    enum { OBJECTS = 3000 };
    static void* p[OBJECTS + 2];
    pthread_t other;
    o.struct_size = sizeof o;
    o.segment = 1;
    SlabAllocator* a = slab_allocator_create_with(&o);
    REQUIRE(a != NULL);
    SlabSegment* s = open_own();
#define MARKS(call)                      \
    do {                                 \
        REQUIRE(slab_stats_publish(a));  \
        REQUIRE(!view_of(s, 0).changed); \
        call;                            \
        REQUIRE(view_of(s, 0).changed);  \
    } while (0)
    for (unsigned round = 0; round < 3; round++) {
        size_t size = round == 0 ? 64 : round == 1 ? 4000 : 400000;
        unsigned count = round == 2 ? 20 : OBJECTS;
        for (unsigned way = 0; way < 3; way++) {
            epoch_domain_t* d = way == 1 ? epoch_domain_begin(a, "phase") : NULL;
            p[0] = a;
            MARKS(for (unsigned n = 1; n <= count; n++) REQUIRE((p[n] = slab_malloc(a, size)) != NULL));
            p[count + 1] = NULL;
            if (way != 2) MARKS((void)frees_all(p));
            else MARKS(REQUIRE_EQ(pthread_create(&other, NULL, frees_all, p) | pthread_join(other, NULL), 0));
            if (d != NULL) MARKS(epoch_domain_end(d));
        }
    }
    MARKS(slab_trim(a));
    MARKS(epoch_advance(a));
    REQUIRE(strstr(page_of(s, slab_segment_json), "\"changed_since\":true") != NULL);
    REQUIRE(strstr(page_of(s, slab_segment_prometheus), "temporal_slab_changed_since_figures 1\n") != NULL);
#undef MARKS
    slab_segment_close(s);
    slab_allocator_free(a);
}

static SlabAllocator* changes_of;

static uint64_t changing_rss(void) {
    tsi_changed(tsi_arena(changes_of));
    return 0;
}

/* Another thread's slow path comes by while the figures are taken: they may be without what it has done. */
static void what_changes_during_a_publication_is_marked(void) {
    SlabAllocator* a = changes_of = create();
    SlabSegment* s = open_own();
    uint64_t (*real)(void) = tsi_os.rss_bytes;
    tsi_os.rss_bytes = changing_rss;
    REQUIRE(slab_stats_publish(a));
    tsi_os.rss_bytes = real;
    REQUIRE(view_of(s, 0).changed);
    REQUIRE(slab_stats_publish(a));
    REQUIRE(!view_of(s, 0).changed);
    slab_segment_close(s);
    slab_allocator_free(a);
}

/* One that no handler was told of has the mark mapped, and nothing else of the segment. */
static void a_child_without_handlers_goes_on(void) {
    SlabAllocator* a = create();
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        for (unsigned n = 0; n < 10000; n++) slab_free(a, slab_malloc(a, 100 + n)); /* many sizes: many slow paths */
        _exit(slab_malloc(a, 1 << 20) != NULL ? 0 : 1);
    }
    int status = -1;
    REQUIRE(child > 0 && waitpid((pid_t)child, &status, 0) == child);
    REQUIRE_EQ(status, 0);
    slab_allocator_free(a);
}

static void what_is_not_published_is_marked(void) {
    what_is_not_published_is_marked_of((SlabOptions){0});
    start_over();
    what_is_not_published_is_marked_of((SlabOptions){.bump = 2});
    start_over();
    what_is_not_published_is_marked_of((SlabOptions){.shared = 1});
}

static uint64_t slow_clock(void) { return frozen_at + (clock_skip += 1000000); } /* each look takes a millisecond */

/* ---- while it is read ---- */

static SlabAllocator* torn_of;
static void* torn_page;

/* The reader has copied the first page of a publication and comes to the second. */
static void publish_twice(int signal) {
    (void)signal;
    REQUIRE_EQ(mprotect(torn_page, tsi_os.page_bytes, PROT_READ), 0);
    REQUIRE(slab_stats_publish(torn_of) && slab_stats_publish(torn_of)); /* into the other buffer, then into this one */
}

static void what_is_overwritten_while_it_is_copied_is_not_told(void) {
    struct sigaction act = {.sa_handler = publish_twice}, was;
    SlabSegmentSlot slot;
    SlabAllocator* a = torn_of = create();
    SlabSegment* s = open_own();
    REQUIRE(s->map != NULL);
    REQUIRE(tsi_segment_copy(s, s->header.slots.offset, &slot, sizeof slot));
    uint64_t n = view_of(s, 0).number;
    torn_page = (void*)(uintptr_t)(s->map + slot.buffer[n & 1] + tsi_os.page_bytes);
    REQUIRE_EQ(sigaction(SIGSEGV, &act, &was), 0);
    REQUIRE_EQ(mprotect(torn_page, tsi_os.page_bytes, PROT_NONE), 0);
    REQUIRE_EQ(view_of(s, 0).number, n + 2);
    REQUIRE_EQ(sigaction(SIGSEGV, &was, NULL), 0);
    slab_segment_close(s);
    slab_allocator_free(a);
}

static void published_when_asked(void) {
    SlabOptions o = {.struct_size = sizeof o};
    SlabAllocator *a = create(), *quiet = slab_allocator_create_with(&o);
    uint64_t n = publications(a);
    REQUIRE(slab_stats_publish(a)); /* at once: the clock stands still */
    REQUIRE(slab_stats_publish(a));
    REQUIRE_EQ(publications(a), n + 2);
    REQUIRE(!slab_stats_publish(quiet));
    REQUIRE(!slab_stats_publish(NULL));
    slab_allocator_free(quiet);
    slab_allocator_free(a);
}

/* Each second at least, however long a walk over everything takes; that one as rarely as before. */
static void figures_do_not_wait_for_the_walk(void) {
    enum { PHASES = 300 };
    epoch_domain_t* d[PHASES];
    SlabAllocator* a = create();
    for (unsigned n = 0; n < PHASES; n++) {
        d[n] = epoch_domain_begin(a, "drains");
        d[n]->auto_close = false;
        REQUIRE(slab_malloc(a, 64) != NULL);
        epoch_domain_exit(d[n]);
    }
    tsi_os.now_ns = slow_clock; /* a walk seems to take some milliseconds */
    pass_seconds(1);
    slab_trim(a);
    tsi_os.now_ns = frozen_clock;
    uint64_t walked = tsi_arena(a)->seat.kept->phases_ns, n = publications(a);
    for (unsigned k = 0; k < PHASES; k++) REQUIRE(epoch_close_ex(a, d[k]->epoch_id, EPOCH_DRAIN, NULL));
    for (unsigned k = 1; k <= 3; k++) {
        tsi_arena(a)->seat.walk_due_ns = frozen_clock() + 1000000000 + TSI_SEGMENT_PERIOD_NS;
        pass_seconds(1);
        slab_trim(a);
        REQUIRE_EQ(publications(a), n + k);
    }
    REQUIRE_EQ(tsi_arena(a)->seat.kept->phases_ns, walked);
    SlabLabelStats rows[8];
    TsiReport r;
    REQUIRE(tsi_report_figures(tsi_arena(a), tsi_arena(a)->seat.kept, &r));
    REQUIRE(r.figures_ns - r.phases_ns >= 3000000000u && r.phase_count != 0);
    size_t labels = slab_stats_labels(a, rows, 8); /* by a walk over everything */
    REQUIRE_EQ(labels, r.label_count);
    for (size_t k = 0; k < labels; k++) {
        REQUIRE_EQ(r.labels[k].draining_phases, strcmp(rows[k].label, "drains") == 0 ? PHASES : 0);
        rows[k].lock_fast_acquire =
            r.labels[k].lock_fast_acquire; /* what settled phases have not posted yet is told by the walk */
        REQUIRE(memcmp(&r.labels[k], &rows[k], sizeof rows[k]) == 0); /* the clock stands still */
    }
    tsi_report_drop(&r);
    for (unsigned k = 0; k < PHASES; k++) epoch_domain_destroy(d[k]);
    slab_allocator_free(a);
}

/* ---- when ---- */

static void a_tenth_of_a_second_apart(void) {
    SlabAllocator* a = create();
    pass_seconds(1);
    slab_trim(a);
    REQUIRE_EQ(publications(a), 2);
    clock_skip += TSI_SEGMENT_PERIOD_NS - 1;
    slab_trim(a);
    REQUIRE_EQ(publications(a), 2);
    clock_skip += 1;
    slab_trim(a);
    REQUIRE_EQ(publications(a), 3);
    slab_allocator_free(a);
}

static void not_too_often(void) {
    SlabAllocator* a = create();
    REQUIRE_EQ(publications(a), 1);
    tsi_os.now_ns = slow_clock; /* a publication seems to take some milliseconds */
    clock_skip += 10 * TSI_SEGMENT_PERIOD_NS;
    uint64_t before = clock_skip;
    slab_trim(a);
    REQUIRE_EQ(publications(a), 2);
    uint64_t took = clock_skip - before;
    tsi_os.now_ns = frozen_clock;
    REQUIRE(took * TSI_SEGMENT_SHARE > 2 * TSI_SEGMENT_PERIOD_NS); /* so it is the share that counts */
    clock_skip += 2 * TSI_SEGMENT_PERIOD_NS;
    slab_trim(a);
    REQUIRE_EQ(publications(a), 2);
    clock_skip += took * TSI_SEGMENT_SHARE;
    slab_trim(a);
    REQUIRE_EQ(publications(a), 3);
    slab_allocator_free(a);
}

static uint64_t stopped_clock(void) {
    return frozen_at + (clock_skip += 600000000000);
} /* ten minutes pass at each look */

/* A debugger, a frozen control group: what it took was not its own time. */
static void a_process_that_was_stopped_goes_on(void) {
    SlabAllocator* a = create();
    pass_seconds(1);
    tsi_os.now_ns = stopped_clock;
    slab_trim(a);
    REQUIRE_EQ(publications(a), 2);
    tsi_os.now_ns = frozen_clock;
    clock_skip += TSI_SEGMENT_PAUSE_NS - 1;
    slab_trim(a);
    REQUIRE_EQ(publications(a), 2);
    pass_seconds(1);
    slab_trim(a);
    REQUIRE_EQ(publications(a), 3);
    slab_allocator_free(a);
}

static void at_every_kind_of_slow_call(void) {
    SlabAllocator* a = create();
    uint64_t n = publications(a);
#define PUBLISHES(call)                   \
    do {                                  \
        pass_seconds(1);                  \
        errno = 4711;                     \
        call;                             \
        REQUIRE_EQ(publications(a), ++n); \
        REQUIRE_EQ(errno, 4711);          \
    } while (0)
    PUBLISHES(REQUIRE(slab_malloc(a, 100) != NULL));
    PUBLISHES(for (unsigned k = 0; k < 2000; k++)
                  REQUIRE(slab_malloc(a, 100) != NULL)); /* without a binding or a heap to make */
    PUBLISHES(REQUIRE(slab_malloc(a, 1 << 20) != NULL));
    PUBLISHES(epoch_advance(a));
    PUBLISHES(epoch_close(a, 0));
    PUBLISHES(REQUIRE(epoch_close_era(a, epoch_era(a, 1), EPOCH_DRAIN, NULL)));
    PUBLISHES(slab_trim(a));
    pass_seconds(1);
    epoch_domain_t* d = epoch_domain_begin(a, "phase");
    void* p = slab_malloc(a, 100);
    n = publications(a);
    PUBLISHES(epoch_domain_end(d));
    REQUIRE(p != NULL);
    pass_seconds(1);
    REQUIRE(!tsi_lock_is_held(&tsi_segment_lock));
    tsi_lock_take(&tsi_segment_lock); /* somebody else is publishing: nobody waits */
    slab_trim(a);
    tsi_lock_give(&tsi_segment_lock);
    REQUIRE_EQ(publications(a), n);
    slab_allocator_free(a);
    a = kit_create(); /* not asked for */
    pass_seconds(1);
    slab_trim(a);
    REQUIRE_EQ(publications(a), 0);
    slab_allocator_free(a);
}

/* ---- slots ---- */

static void slots_run_out_and_cool_off(void) {
    SlabAllocator* a[SLAB_SEGMENT_SLOTS + 1];
    for (unsigned n = 0; n <= SLAB_SEGMENT_SLOTS; n++) a[n] = create();
    SlabAllocator* last = a[SLAB_SEGMENT_SLOTS];
    REQUIRE_EQ(publications(last), 0);
    REQUIRE_EQ(failures(last), 1);
    REQUIRE(slab_malloc(last, 100) != NULL);
    SlabSegment* s = open_own();
    REQUIRE_EQ(header_of(s).allocators_left_out, 1);
    uint64_t serial = view_of(s, 3).serial, number = view_of(s, 3).number;
    slab_allocator_free(a[3]);
    REQUIRE_EQ(view_of(s, 3).state, SLAB_SEGMENT_ENDED); /* still readable */
    clock_skip += 900000000; /* the last one would try again, but a tenth of a second is missing */
    tsi_store_relaxed(&tsi_arena(last)->seat.due_ns, 0);
    slab_trim(last);
    REQUIRE_EQ(publications(last), 0);
    REQUIRE(view_of(s, 3).serial == serial);
    pass_seconds(2);
    slab_trim(last);
    REQUIRE_EQ(publications(last), 1);
    REQUIRE(view_of(s, 3).serial == tsi_arena(last)->serial && view_of(s, 3).number == number + 1);
    REQUIRE_EQ(view_of(s, 3).state, SLAB_SEGMENT_LIVE);
    REQUIRE_EQ(header_of(s).allocators_left_out, 1);
    slab_segment_close(s);
    a[3] = last;
    for (unsigned n = 0; n < SLAB_SEGMENT_SLOTS; n++) slab_allocator_free(a[n]);
}

/* Destroys an allocator at the first look at the clock that a publication takes; that look was before. */
static SlabAllocator* to_end;
static uint64_t ending_clock(void) {
    uint64_t now = frozen_clock();
    if (to_end == NULL) return now;
    if (tsi_lock_try(&tsi_segment_lock)) {
        tsi_lock_give(&tsi_segment_lock);
        return now;
    }
    SlabAllocator* a = to_end;
    to_end = NULL;
    clock_skip += 1000;
    slab_allocator_free(a);
    return now;
}

static void one_that_ends_while_a_slot_is_looked_for(void) {
    SlabAllocator* first = create();
    SlabSegment* s = open_own();
    uint64_t serial = view_of(s, 0).serial;
    tsi_os.now_ns = ending_clock;
    to_end = first;
    SlabAllocator* second = create();
    REQUIRE_NULL(to_end);
    REQUIRE_EQ(publications(second), 1);
    REQUIRE_EQ(view_of(s, 0).state, SLAB_SEGMENT_ENDED); /* for a second it can be read */
    REQUIRE(view_of(s, 0).serial == serial);
    REQUIRE(view_of(s, 1).serial == tsi_arena(second)->serial);
    slab_segment_close(s);
    slab_allocator_free(second);
}

/* ---- systems that refuse ---- */

static bool collect(void* ctx, const char* bytes, size_t n) {
    char* text = ctx;
    size_t used = strlen(text);
    if (used + n < 16384) memcpy(text + used, bytes, n), text[used + n] = 0;
    return true;
}

static void doctor_says(SlabAllocator* a, const char* what) {
    static char text[16384];
    text[0] = 0;
    REQUIRE(slab_doctor(a, collect, text));
    REQUIRE_HAS(text, what);
}

static void without_pages(void) {
    for (unsigned call = 1; call <= 2; call++) { /* those of the tables, those of the slot */
        start_over();
        reserve_calls = 0;
        reserve_fails = call;
        SlabAllocator* a = create();
        REQUIRE_EQ(publications(a), 0);
        REQUIRE_EQ(failures(a), 1);
        doctor_says(a, "ACTION: other processes cannot watch this allocator: reserving");
        REQUIRE(slab_malloc(a, 100) != NULL);
        pass_seconds(2);
        slab_trim(a); /* there are pages again */
        REQUIRE_EQ(publications(a), 1);
        REQUIRE_EQ(failures(a), 1);
        slab_allocator_free(a);
    }
}

/* Our descriptor and what it links to, found as a reader does. */
static int own_descriptor(char text[512]) {
    char path[64];
    for (int fd = 0; fd < 64; fd++) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, text, 511);
        text[n > 0 ? n : 0] = 0;
        /* The tree may lie in a folder temporal-slab, and a log of it be open. */
        if (strstr(text, "temporal-slab") == NULL) continue;
        if (strncmp(text, "/memfd:", 7) != 0 && strstr(text, "/segment.") == NULL) continue;
        REQUIRE((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        return fd;
    }
    FAIL("no descriptor of the segment");
    return -1;
}

static void nobody_else_writes(void) {
    enum { NEEDED = F_SEAL_SHRINK | F_SEAL_GROW };
    char text[512];
    struct stat st;
    int input = dup(0);
    for (unsigned n = 0; n < 2; n++) {
        start_over();
        if (n == 1) close(0); /* a program that has closed its input does not find us there */
        SlabAllocator* a = create();
        int fd = own_descriptor(text);
        REQUIRE(fd > 2);
        REQUIRE(strncmp(text, "/memfd:temporal-slab", 20) == 0);
        REQUIRE(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0600);
        REQUIRE_EQ(fcntl(fd, F_GET_SEALS) & NEEDED, NEEDED);
        REQUIRE(ftruncate(fd, 4096) != 0 && errno == EPERM);
        if ((fcntl(fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE) != 0) /* Linux 5.1 */
            REQUIRE(pwrite(fd, "x", 1, 0) != 1 && errno == EPERM);
        else printf("this kernel has no F_SEAL_FUTURE_WRITE: others of the user could write\n");
        slab_allocator_free(a);
    }
    REQUIRE(input < 0 || dup2(input, 0) == 0);
    if (input >= 0) close(input);
}

static void in_a_folder(void) {
    char folder[] = "/tmp/segment-test-XXXXXX", sub[64], text[512];
    REQUIRE(mkdtemp(folder) != NULL);
    (void)snprintf(sub, sizeof sub, "%s/temporal-slab", folder);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    memfd_fails = true;
    /* 0: not there yet; 1: there; 2: others may enter; 3: a link to a folder that would do; 4: a file */
    for (unsigned how = 0; how < 5; how++) {
        start_over();
        if (how == 2) REQUIRE_EQ(chmod(sub, 0755), 0);
        if (how == 3) REQUIRE(rmdir(sub) == 0 && chmod(folder, 0700) == 0 && symlink(folder, sub) == 0);
        if (how == 4) REQUIRE(unlink(sub) == 0 && mknod(sub, S_IFREG | 0600, 0) == 0);
        SlabAllocator* a = create();
        REQUIRE_EQ(publications(a), 1);
        SlabSegment* s = open_own();
        (void)own_descriptor(text);
        bool ours = strncmp(text, sub, strlen(sub)) == 0;
        if (ours != (how < 2)) FAIL("case %u: %s", how, text);
        REQUIRE_EQ(view_of(s, 0).number, 1);
        slab_segment_close(s);
        start_over();
        pass_seconds(2);
        errno = 4711; /* what making the segment has met is nobody's business */
        slab_trim(a);
        REQUIRE_EQ(errno, 4711);
        REQUIRE_EQ(publications(a), 2);
        slab_allocator_free(a);
    }
    REQUIRE_EQ(unlink(sub), 0);
    REQUIRE_EQ(rmdir(folder), 0); /* nothing was left in it */
    unsetenv("XDG_RUNTIME_DIR");
}

static void under_a_limit_of_file_sizes(void) {
    struct rlimit was, limit;
    REQUIRE_EQ(getrlimit(RLIMIT_FSIZE, &was), 0);
    limit = was;
    limit.rlim_cur = 1 << 20;
    REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    SlabAllocator* a = create(); /* beyond it ftruncate is SIGXFSZ */
    REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &was), 0);
    REQUIRE_EQ(failures(a), 1);
    REQUIRE_EQ(memfd_calls, 0);
    doctor_says(a, "limit on the size of files (RLIMIT_FSIZE)");
    REQUIRE_NULL(slab_segment_open((uint32_t)getpid()));
    slab_allocator_free(a);
}

/* A program that closed what it did not open may find its own file under our number: a child must not close that. */
static void a_foreign_descriptor_is_left_alone(void) {
    TsiShared m;
    const char* what;
    REQUIRE_EQ(tsi_shared_open(&m, "temporal-slab", "segment", 1 << 20, 4096, &what), 0);
    int fd = m.fd;
    REQUIRE_EQ(close(fd), 0);
    REQUIRE_EQ(open("/dev/null", O_RDONLY), fd);
    tsi_shared_forget(&m);
    REQUIRE_EQ(close(fd), 0);
}

#undef TEST
#define TEST(fn) CHECK_CASE_WITH(fn, set_up, thaw)

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        TEST(rows_are_those_of_the_report),
        TEST(what_has_no_room_is_counted),
        TEST(labels_without_a_row_are_added_up),
        TEST(what_is_not_published_is_marked),
        TEST(what_changes_during_a_publication_is_marked),
        TEST(a_child_without_handlers_goes_on),
        TEST(what_is_overwritten_while_it_is_copied_is_not_told),
        TEST(published_when_asked),
        TEST(figures_do_not_wait_for_the_walk),
        TEST(not_too_often),
        TEST(a_process_that_was_stopped_goes_on),
        TEST(a_tenth_of_a_second_apart),
        TEST(at_every_kind_of_slow_call),
        TEST(slots_run_out_and_cool_off),
        TEST(one_that_ends_while_a_slot_is_looked_for),
        TEST(without_pages),
        TEST(nobody_else_writes),
        TEST(in_a_folder),
        TEST(under_a_limit_of_file_sizes),
        TEST(a_foreign_descriptor_is_left_alone),
    };
    return CHECK_RUN(argc, argv, tests);
}
