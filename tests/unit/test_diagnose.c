/* test_diagnose.c - leaks, the walk, the slow path and the log of closes. */
#define KIT_RING_BY_CLASS
#include "clock.h"
#include "fake_os.h"

#include "slab_diagnostics.h"
#include "stats/diagnose.h"

/* ---- leaks ---- */

static void rows_by_class_and_size(void) {
    SlabAllocator* a = kit_create_cold();
    EpochLeakReport r;
    slab_epoch_set_label(a, 1, "keeps");
    for (int n = 0; n < 3; n++) REQUIRE(slab_malloc_epoch(a, 128, 1) != NULL);
    for (int n = 0; n < 300; n++) REQUIRE(slab_malloc_epoch(a, 500, 1) != NULL);
    REQUIRE(slab_malloc_epoch(a, 3 << 20, 1) != NULL);
    REQUIRE(slab_malloc_epoch(a, 64, 2) != NULL); /* stays open */
    slab_free(a, slab_malloc_epoch(a, 64, 3));
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 0, 10, &r), 0); /* all are open */
    REQUIRE_NULL(r.candidates);
    epoch_close(a, 1);
    epoch_close(a, 3);
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 0, 2, &r), 3);
    REQUIRE_EQ(r.version, SLAB_DIAGNOSTICS_VERSION);
    REQUIRE_EQ(r.candidate_count, 3);
    REQUIRE_EQ(r.top_count, 2);
    REQUIRE_EQ(r.candidates[0].class_index, TSI_CLASS_LARGE - 1);
    REQUIRE_EQ(r.candidates[0].estimated_rss_bytes, 3 << 20);
    REQUIRE_EQ(r.candidates[0].full_slab_count, 1);
    const EpochLeakCandidate* c = &r.candidates[1];
    REQUIRE_EQ(c->object_size, 512);
    REQUIRE_EQ(c->alloc_count, 300);
    REQUIRE_EQ(c->epoch_id, 1);
    REQUIRE_EQ(c->epoch_era, epoch_era(a, 1));
    REQUIRE_STR(c->label, "keeps");
    SlabEpochStats e;
    slab_stats_epoch(a, c->class_index, 1, &e);
    REQUIRE_EQ(c->full_slab_count, e.full_slab_count);
    REQUIRE_EQ(c->partial_slab_count, e.partial_slab_count);
    REQUIRE_EQ(c->estimated_rss_bytes, e.estimated_rss_bytes);
    free(r.candidates);
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 0, 0, &r), 3);
    REQUIRE_NULL(r.candidates);
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 0, 1, NULL), 3);
    slab_allocator_free(a);
}

static void the_threshold_is_an_age(void) {
    SlabAllocator* a = kit_create();
    EpochLeakReport r;
    REQUIRE(slab_malloc_epoch(a, 64, 0) != NULL); /* the first incarnation of id 0 is as old as the allocator */
    pass_seconds(50);
    REQUIRE(slab_malloc_epoch(a, 64, 1) != NULL);
    epoch_close(a, 0);
    epoch_close(a, 1);
    pass_seconds(20);
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 71, 10, NULL), 0);
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 60, 10, &r), 1);
    REQUIRE_EQ(r.threshold_sec, 60);
    REQUIRE_EQ(r.candidates[0].epoch_id, 0);
    REQUIRE_EQ(r.candidates[0].age_sec, 70);
    free(r.candidates);
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 20, 10, NULL), 2);
    slab_allocator_free(a);
}

/* A region counts with the class that fills most of it, its objects each under their own. */
static void regions(void) {
    SlabAllocator* a = kit_create_cold();
    EpochLeakReport r;
    epoch_domain_t* d = epoch_domain_create_labeled(a, "bumped");
    d->auto_close = false;
    epoch_domain_enter(d);
    for (int n = 0; n < 3; n++) REQUIRE(slab_malloc(a, 10) != NULL);
    REQUIRE(slab_malloc(a, 700) != NULL);
    REQUIRE(slab_malloc(a, 100) != NULL);
    void* gone = slab_malloc(a, 250);
    REQUIRE_EQ(kit_place(a, gone).cls, TSI_CLASS_REGION);
    slab_free(a, gone);
    epoch_domain_exit(d);
    epoch_close(a, d->epoch_id);
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 0, 10, &r), 3);
    uint64_t objects = 0, bytes = 0;
    for (unsigned n = 0; n < 3; n++) {
        REQUIRE_STR(r.candidates[n].label, "bumped");
        objects += r.candidates[n].alloc_count;
        bytes += r.candidates[n].estimated_rss_bytes;
    }
    REQUIRE_EQ(objects, 5);
    REQUIRE_EQ(bytes, slab_page_size());
    REQUIRE_EQ(r.candidates[0].object_size, 768);
    REQUIRE_EQ(r.candidates[0].partial_slab_count, 1);
    REQUIRE_EQ(r.candidates[1].object_size, 16);
    REQUIRE_EQ(r.candidates[1].alloc_count, 3);
    free(r.candidates);
    epoch_domain_destroy(d);
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 0, 10, NULL), 0);
    slab_allocator_free(a);
}

/* More rows than the first table has room for, of incarnations the ring has long passed. */
static void many_rows(void) {
    enum { PHASES = 900 };
    SlabAllocator* a = kit_create();
    EpochLeakReport r;
    for (unsigned n = 0; n < PHASES; n++) {
        for (unsigned k = 0; k <= n % 3; k++) REQUIRE(slab_malloc(a, 4096 << k) != NULL);
        epoch_advance(a);
    }
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 0, UINT32_MAX, &r), PHASES * 2);
    REQUIRE_EQ(r.top_count, PHASES * 2);
    for (unsigned n = 1; n < r.top_count; n++) {
        REQUIRE(r.candidates[n - 1].estimated_rss_bytes >= r.candidates[n].estimated_rss_bytes);
        REQUIRE(r.candidates[n].alloc_count == 1 && r.candidates[n].epoch_era <= PHASES + 16);
    }
    free(r.candidates);
    slab_allocator_free(a);
}

static void without_memory(void) {
    SlabAllocator* a = kit_create();
    EpochLeakReport r;
    REQUIRE(slab_malloc_epoch(a, 64, 1) != NULL);
    epoch_close(a, 1);
    for (FakeCall what = FAKE_RESERVE; what <= FAKE_COMMIT; what++) {
        fake_os_fail(what, 1, true);
        errno = 0;
        REQUIRE_EQ(slab_detect_epoch_leaks(a, 0, 10, &r), 0);
        REQUIRE_EQ(errno, ENOMEM);
        REQUIRE_NULL(r.candidates);
        REQUIRE(fake_os_heal());
    }
    REQUIRE_EQ(slab_detect_epoch_leaks(a, 0, 10, NULL), 1);
    slab_allocator_free(a);
}

/* ---- walk ---- */

typedef struct Seen {
    SlabLiveObject at[400];
    size_t count, stop_after;
} Seen;

static bool see(const SlabLiveObject* o, void* ctx) {
    Seen* s = ctx;
    REQUIRE(s->count < 400);
    s->at[s->count++] = *o;
    return s->count != s->stop_after;
}

static const SlabLiveObject* seen_at(const Seen* s, const void* p) {
    for (size_t n = 0; n < s->count; n++)
        if (s->at[n].address == p) return &s->at[n];
    return NULL;
}

static void walk_tells_address_class_and_size(void) {
    static const size_t sizes[] = {1, 40, 64, 100, 128, 300, 512, 768, 1000, 5000, 100000, 300000, 2 << 20};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    static Seen s;
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create(a); /* the small ones go to regions */
    for (int where = 0; where < 2; where++) {
        void *p[SIZES], *q[SIZES];
        EpochId id = where == 0 ? d->epoch_id : 5;
        for (unsigned n = 0; n < SIZES; n++) {
            p[n] = slab_malloc_epoch(a, sizes[n], id);
            q[n] = slab_malloc_epoch(a, sizes[n], id);
            REQUIRE(q[n] != NULL);
        }
        for (unsigned n = 0; n < SIZES; n++) slab_free(a, q[n]);
        for (int closed = 0; closed < 2; closed++) {
            memset(&s, 0, sizeof s);
            REQUIRE_EQ(closed == 0 ? slab_epoch_walk(a, id, see, &s)
                                   : slab_epoch_walk_era(a, epoch_era(a, id), see, &s),
                       SIZES);
            for (unsigned n = 0; n < SIZES; n++) {
                const SlabLiveObject* o = seen_at(&s, p[n]);
                REQUIRE(o != NULL);
                REQUIRE_EQ(o->usable_bytes, slab_usable_size(a, p[n]));
                SlabClassStats c;
                slab_stats_class(a, o->class_index, &c);
                const TsiClass* classes = tsi_arena(a)->space.classes->c;
                REQUIRE(o->class_index == TSI_CLASS_LARGE - 1 ||
                        c.object_size == classes[tsi_class_of(o->usable_bytes)].size);
            }
            epoch_close(a, id);
        }
        memset(&s, 0, sizeof s);
        s.stop_after = 4;
        REQUIRE_EQ(slab_epoch_walk(a, id, see, &s), 4);
        REQUIRE_EQ(s.count, 4);
    }
    epoch_domain_destroy(d);
    REQUIRE_EQ(slab_epoch_walk(a, 99, see, &s), 0);
    REQUIRE_EQ(slab_epoch_walk(a, 6, NULL, NULL), 0);
    REQUIRE_EQ(slab_epoch_walk_era(a, 1 << 30, see, &s), 0);
    slab_allocator_free(a);
}

/* ---- slow path ---- */

static SlowPathAttribution judged(uint64_t miss, uint64_t closed, uint64_t null, uint64_t full, unsigned warm,
                                  uint32_t class_index) {
    SlowPathAttribution s = {.class_index = class_index, .total_slow_path_hits = miss + closed + null + full};
    s.cache_miss_count = miss;
    s.epoch_closed_count = closed;
    s.partial_null_count = null;
    s.partial_full_count = full;
    tsi_slow_path_judge(&s, warm);
    return s;
}

static void recommendations(void) {
    SlowPathAttribution s = judged(51, 20, 20, 9, 0, 2);
    REQUIRE(s.cache_miss_pct > 50.9 && s.cache_miss_pct < 51.1 && s.partial_full_pct > 8.9 && s.partial_full_pct < 9.1);
    REQUIRE_HAS(s.recommendation, "Larger cache");
    REQUIRE_HAS(judged(51, 20, 20, 9, 80, 2).recommendation, "Growth");
    REQUIRE_HAS(judged(10, 0, 0, 0, 0, TSI_CLASS_LARGE - 1).recommendation, "Large objects");
    REQUIRE_HAS(judged(20, 51, 20, 9, 0, 2).recommendation, "rotation");
    REQUIRE_HAS(judged(20, 9, 51, 20, 0, 2).recommendation, "empty cache");
    REQUIRE_HAS(judged(20, 9, 20, 51, 0, 2).recommendation, "too small");
    REQUIRE_HAS(judged(50, 50, 0, 0, 0, 2).recommendation, "No cause");
    REQUIRE_HAS(judged(0, 0, 0, 0, 0, 2).recommendation, "No cause");
}

static void slow_path_of_an_allocator(void) {
    SlabAllocator* a = kit_create();
    SlowPathReport r;
    slab_analyze_slow_path(a, &r);
    REQUIRE_EQ(r.class_count, 0);
    REQUIRE_NULL(r.classes);
    epoch_close(a, 1);
    for (int n = 0; n < 9; n++) REQUIRE_NULL(slab_malloc_epoch(a, 64, 1));
    for (int n = 0; n < 500; n++) REQUIRE(slab_malloc(a, 256) != NULL);
    slab_analyze_slow_path(a, &r);
    REQUIRE_EQ(r.version, SLAB_DIAGNOSTICS_VERSION);
    REQUIRE_EQ(r.class_count, 2);
    REQUIRE_EQ(r.classes[0].object_size, 64);
    REQUIRE_EQ(r.classes[0].epoch_closed_count, 9);
    REQUIRE_HAS(r.classes[0].recommendation, "rotation");
    for (unsigned n = 0; n < 2; n++) {
        const SlowPathAttribution* s = &r.classes[n];
        REQUIRE_EQ(s->cache_miss_count + s->epoch_closed_count + s->partial_null_count + s->partial_full_count,
                   s->total_slow_path_hits);
    }
    free(r.classes);
    slab_allocator_free(a);
}

/* ---- reclamation ---- */

static void the_log_keeps_the_last(void) {
    static TsiCloseLog log;
    static EpochReclamation out[TSI_CLOSELOG_ROWS];
    memset(&log, 0, sizeof log);
    REQUIRE_EQ(tsi_closelog_copy(&log, out), 0);
    for (uint64_t n = 1; n <= 1000; n++) {
        tsi_closelog_note(&log, (EpochReclamation){.epoch_era = n}, &(TsiCloseTally){.c[1].scanned = 1});
        uint32_t rows = tsi_closelog_copy(&log, out);
        REQUIRE_EQ(rows, n < TSI_CLOSELOG_ROWS ? n : TSI_CLOSELOG_ROWS);
        REQUIRE_EQ(out[rows - 1].epoch_era, n);
        REQUIRE_EQ(out[0].epoch_era, n - rows + 1);
    }
}

/* Whole ends: the newest first. */
static void the_log_of_ends_keeps_the_last(void) {
    static TsiCloseLog log;
    static TsiCloseRow out[TSI_CLOSES];
    memset(&log, 0, sizeof log);
    REQUIRE_EQ(tsi_closelog_ends(&log, out), 0);
    for (uint64_t n = 1; n <= 3 * TSI_CLOSES; n++) {
        TsiCloseRow row = {.epoch_era = n};
        tsi_closelog_end(&log, &row);
        uint32_t rows = tsi_closelog_ends(&log, out);
        REQUIRE_EQ(rows, n < TSI_CLOSES ? n : TSI_CLOSES);
        for (uint64_t k = 0; k < rows; k++) REQUIRE_EQ(out[k].epoch_era, n - k);
    }
}

static void closes_leave_rows(void) {
    SlabAllocator* a = kit_create_cold();
    ReclamationReport r;
    SlabGlobalStats g;
    slab_epoch_set_label(a, 4, "batch");
    void* kept = slab_malloc_epoch(a, 1000, 4);
    for (int n = 0; n < 1000; n++) slab_free(a, memset(slab_malloc_epoch(a, 64, 4), 1, 64));
    slab_free(a, slab_malloc_epoch(a, 1 << 20, 4)); /* gone before the close: no activity of it */
    void* big = memset(slab_malloc_epoch(a, 1 << 20, 5), 1, 1 << 20);
    epoch_close(a, 4);
    REQUIRE(epoch_close_ex(a, 5, EPOCH_RELEASE, NULL));
    epoch_close(a, 6); /* held nothing */
    epoch_domain_t* d = epoch_domain_begin(a, "domain");
    REQUIRE(slab_malloc(a, 64) != NULL);
    epoch_domain_end(d); /* not logged */
    slab_analyze_reclamation(a, &r);
    slab_stats_global(a, &g);
    REQUIRE_EQ(r.total_madvise_calls, g.total_madvise_calls);
    REQUIRE_EQ(r.total_madvise_bytes, g.total_madvise_bytes);
    REQUIRE_EQ(r.epoch_count, 3);
    const EpochReclamation *small = &r.epochs[0], *thousand = &r.epochs[1], *large = &r.epochs[2];
    REQUIRE_EQ(small->class_index, 0);
    REQUIRE_EQ(small->epoch_id, 4);
    REQUIRE_EQ(small->epoch_era, epoch_era(a, 4));
    REQUIRE_STR(small->label, "batch");
    REQUIRE_EQ(small->slabs_recycled, 1);
    SlabClassStats c;
    slab_stats_class(a, 0, &c);
    REQUIRE_EQ(small->bytes_madvised, c.slab_bytes);
    REQUIRE(small->was_closed && small->rss_before != 0);
    REQUIRE(small->rss_delta == (int64_t)(small->rss_before - small->rss_after));
    REQUIRE_EQ(thousand->slabs_recycled, 0); /* looked at, and pinned by what is kept */
    REQUIRE_EQ(large->class_index, TSI_CLASS_LARGE - 1);
    REQUIRE_EQ(large->slabs_recycled, 1);
    REQUIRE_EQ(large->bytes_madvised, 1 << 20);
    REQUIRE(large->rss_delta > 0);
    free(r.epochs);
    REQUIRE(!slab_free_checked(a, big));
    REQUIRE(slab_free_checked(a, kept));
    kit_check(a);
    slab_allocator_free(a);
}

static void a_policy_of_never_asks_nothing(void) {
    SlabOptions o = kit_options();
    o.purge_policy = SLAB_PURGE_NEVER;
    o.warm_bytes = UINT64_MAX;
    SlabAllocator* a = slab_allocator_create_with(&o);
    ReclamationReport r;
    slab_free(a, slab_malloc_epoch(a, 64, 4));
    epoch_close(a, 4);
    slab_analyze_reclamation(a, &r);
    REQUIRE_EQ(r.epoch_count, 1);
    REQUIRE_EQ(r.epochs[0].slabs_recycled, 1);
    REQUIRE_EQ(r.epochs[0].bytes_madvised, 0);
    free(r.epochs);
    slab_allocator_free(a);
}

static void nothing_given(void) {
    EpochLeakReport leaks;
    SlowPathReport slow;
    ReclamationReport closes;
    REQUIRE_EQ(slab_detect_epoch_leaks(NULL, 0, 10, &leaks), 0);
    REQUIRE(leaks.version == SLAB_DIAGNOSTICS_VERSION && leaks.candidates == NULL);
    slab_analyze_slow_path(NULL, &slow);
    REQUIRE(slow.class_count == 0 && slow.classes == NULL);
    slab_analyze_reclamation(NULL, &closes);
    REQUIRE(closes.epoch_count == 0 && closes.epochs == NULL);
    REQUIRE_EQ(slab_epoch_walk(NULL, 0, see, NULL), 0);
    REQUIRE_EQ(slab_epoch_walk_era(NULL, 1, see, NULL), 0);
    SlabAllocator* a = kit_create();
    slab_analyze_slow_path(a, NULL);
    slab_analyze_reclamation(a, NULL);
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        TEST(rows_by_class_and_size),
        TEST(the_threshold_is_an_age),
        TEST(regions),
        TEST(many_rows),
        TEST(without_memory),
        TEST(walk_tells_address_class_and_size),
        TEST(recommendations),
        TEST(slow_path_of_an_allocator),
        TEST(the_log_keeps_the_last),
        TEST(the_log_of_ends_keeps_the_last),
        TEST(closes_leave_rows),
        TEST(a_policy_of_never_asks_nothing),
        TEST(nothing_given),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
