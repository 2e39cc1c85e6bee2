/*
 * clock_steps.c - the clock is set forward and back under the library: a process that was frozen, or moved to another
 * machine, where CLOCK_MONOTONIC counts from another beginning.
 *
 * The clock comes through the library's table (os/os.h) and stands still but for what a case lets pass, so nothing here
 * depends on how fast the machine is. After each step, by which the clock goes up to ten hours either way:
 *
 *   - no age, duration or waiting time is negative, which would read as centuries
 *   - empty slabs and warm pages go back by time (decay_ms) as they did before
 *   - the segment goes on being published
 */
#include "kit/one.h"

#include "slab_diagnostics.h"
#include "slab_segment.h"
#include "slab_stats.h"

#include "stats/segment.h"

#define SECOND 1000000000ll
#define HOUR (3600 * SECOND)
/* More than all steps forward together, and less than the last bucket of a histogram. */
#define SANE ((uint64_t)HOUR * 30)

enum { SIZE = 512, N = 3000, MS = 500, KEPT = 40 };

static _Atomic int64_t clock_ns;
static uint64_t clock_now(void) { return (uint64_t)atomic_load(&clock_ns); }
static uint64_t no_time(void) { return 0; }
static void pass(int64_t ns) { atomic_fetch_add(&clock_ns, ns); }

static const int64_t steps[] = {HOUR,   -2 * HOUR, 30 * SECOND, -10 * SECOND, -1,           1,          -900000,
                                900000, -1000000,  -2000000,    10 * HOUR,    -10 * HOUR,   SECOND,     -SECOND,
                                -HOUR,  HOUR,      HOUR,        -7 * HOUR,    -600000000ll, 600000000ll};
enum { STEPS = sizeof steps / sizeof *steps };

static TsiOs real;
static void open_with(SlabOptions o) {
    (void)slab_page_size(); /* the table is filled */
    real = tsi_os;
    atomic_store(&clock_ns, (int64_t)(1000 * HOUR));
    tsi_os.now_ns = tsi_os.quick_ns = tsi_os.coarse_ns = clock_now;
    tsi_os.thread_ns = no_time;
    kit_open_with(o);
}
static void close_it(void) {
    kit_close();
    tsi_os = real;
}

/* ---- decay ---- */

static void fill_and_empty(void* arg) {
    void* p[N];
    (void)arg;
    for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = slab_malloc(a, SIZE)) != NULL);
    for (unsigned n = 0; n < N; n++) REQUIRE(slab_free_checked(a, p[n]));
}
static void read_statistics(void) { (void)kit_global(a); }

/* All that is empty has gone after a while in which statistics are read. */
static void decays(const char* when, unsigned step) {
    for (unsigned n = 0; n < 8 && kit_committed_now(a) != 0; n++) {
        pass(2 * MS * 1000000ll);
        read_statistics();
    }
    uint64_t left = kit_committed_now(a);
    if (left != 0)
        CHECK_OR_LEAVE_(
            (check_failed(__FILE__, __LINE__, "%" PRIu64 " bytes stay after %s %u", left, when, step), false));
}
static SlabOptions with_decay(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    o.bump = KIT_BY_CLASS;
    o.decay_ms = MS;
    return o;
}

/* The step comes before the memory is freed, or after that. */
static void empty_slabs_go_back_by_time(void) {
    open_with(with_decay());
    for (unsigned n = 0; n < STEPS; n++) {
        pass(steps[n]);
        fill_and_empty(NULL);
        decays("step", n);
    }
    for (unsigned n = 0; n < STEPS; n++) {
        fill_and_empty(NULL);
        pass(steps[n]);
        decays("late step", n);
    }
    close_it();
}

/* Those of a thread that does nothing any more. */
static void an_idle_threads_slabs_go_back(void) {
    KitWorker w;
    open_with(with_decay());
    kit_worker_start(&w);
    for (unsigned n = 0; n < STEPS; n++) {
        kit_worker_run(&w, fill_and_empty, NULL);
        pass(steps[n]);
        decays("step", n);
    }
    kit_worker_stop(&w);
    close_it();
}

/* With a budget of warm pages, which falls by time to its least. */
static void warm_pages_go_back_by_time(void) {
    SlabOptions o = kit_options();
    o.decay_ms = MS;
    open_with(o);
    uint64_t first = 0;
    for (unsigned n = 0; n < STEPS; n++) {
        for (unsigned i = 0; i < 50; i++) fill_and_empty(NULL);
        pass(steps[n]);
        for (unsigned i = 0; i < 400; i++) {
            pass(2 * MS * 1000000ll);
            read_statistics();
        }
        uint64_t left = kit_committed_now(a);
        if (n == 0) first = left;
        if (left > first) FAIL("%" PRIu64 " bytes stay after step %u, and %" PRIu64 " at first", left, n, first);
    }
    close_it();
}

/* ---- ages ---- */

static void is_sane(const char* what, uint64_t ns, unsigned step) {
    if (ns >= SANE) FAIL("%.30s after step %u is %" PRIu64 " ns", what, step, ns);
}
static void are_sane(const char* what, const uint64_t* histogram, unsigned step) {
    for (unsigned n = 0; n < SLAB_HISTOGRAM_BUCKETS; n++)
        if (histogram[n] != 0) is_sane(what, (uint64_t)1 << n, step);
}

typedef struct Text {
    size_t bytes;
    char text[8 << 20];
} Text;
static bool keep_text(void* ctx, const char* text, size_t n) {
    Text* t = ctx;
    REQUIRE(t->bytes + n < sizeof t->text);
    memcpy(t->text + t->bytes, text, n);
    t->text[t->bytes += n] = 0;
    return true;
}
/* Every length of time in a document; those named here are readings of a clock, and a forecast. */
static void times_are_sane(const char* json, unsigned step) {
    static const char* const readings[] = {"timestamp_ns", "figures_ns\"",  "phases_ns\"",
                                           "closed_ns",    "open_since_ns", "limit_ns"};
    for (const char* at = json; (at = strstr(at, "_ns\":")) != NULL; at += 5) {
        const char* name = at;
        while (name > json && name[-1] != '"') name--;
        bool reading = false;
        for (size_t n = 0; n < sizeof readings / sizeof *readings; n++)
            reading |= strncmp(name, readings[n], strlen(readings[n])) == 0;
        if (reading) continue;
        is_sane(name, strtoull(at + 5, NULL, 10), step);
    }
}
static bool swallow(void* ctx, const char* text, size_t n) {
    *(uint64_t*)ctx += n + (text[0] == 0);
    return true;
}

static void ages_are_sane(unsigned step) {
    static SlabPhaseStats phases[KEPT * STEPS];
    static SlabLabelStats labels[64];
    SlabGlobalStats g = kit_global(a);
    SlabSamplingStats sampling;
    EpochLeakReport leaks;
    uint64_t written = 0;
    is_sane("growth_ns", g.growth_ns, step);
    is_sane("pace_10s_ns", g.pace_10s_ns, step);
    is_sane("pace_100s_ns", g.pace_100s_ns, step);
    size_t n = slab_stats_phases(a, phases, sizeof phases / sizeof *phases);
    REQUIRE(n <= sizeof phases / sizeof *phases);
    while (n-- > 0) is_sane("age_ns", phases[n].age_ns, step);
    n = slab_stats_labels(a, labels, 64);
    REQUIRE(n <= 64);
    while (n-- > 0) {
        is_sane("oldest_draining_ns", labels[n].oldest_draining_ns, step);
        is_sane("oldest_unexpected_ns", labels[n].oldest_unexpected_ns, step);
        for (unsigned i = 0; i < 3; i++) is_sane("worst_ages_ns", labels[n].worst_ages_ns[i], step);
        is_sane("alloc_wall_ns_sum", labels[n].alloc_wall_ns_sum, step);
        is_sane("alloc_wait_ns_sum", labels[n].alloc_wait_ns_sum, step);
        is_sane("growth_ns", labels[n].growth_ns, step);
        are_sane("duration_ns", labels[n].duration_ns, step);
        are_sane("draining_age_ns", labels[n].draining_age_ns, step);
    }
    slab_stats_sampling(a, &sampling);
    is_sane("alloc_wall_ns_max", sampling.sum.alloc_wall_ns_max, step);
    is_sane("lock_wait_ns_max", sampling.lock_wait_ns_max, step);
    is_sane("lock_hold_ns_max", sampling.lock_hold_ns_max, step);
    for (uint32_t cls = 0; cls <= TSI_CLASS_LARGE; cls++) {
        SlabClassStats c;
        slab_stats_class(a, cls, &c);
        is_sane("epoch_close_total_ns", c.epoch_close_total_ns, step);
    }
    (void)slab_detect_epoch_leaks(a, 0, KEPT * STEPS, &leaks);
    for (uint32_t i = 0; i < leaks.top_count; i++) is_sane("age_sec", leaks.candidates[i].age_sec * SECOND, step);
    free(leaks.candidates);
    REQUIRE(slab_doctor(a, swallow, &written));
    static Text json;
    json.bytes = 0;
    REQUIRE(slab_stats_json_all(a, keep_text, &json));
    times_are_sane(json.text, step);
    REQUIRE(slab_profile_write(a, swallow, &written) != 0);
}

/* The step comes at the k-th reading from now, in the middle of a call. */
static int64_t step_ns;
static unsigned step_at;
static uint64_t stepping_clock(void) {
    if (step_at != 0 && --step_at == 0) pass(step_ns);
    return clock_now();
}
static void step_in(unsigned k, int64_t ns) {
    step_ns = ns;
    step_at = k;
    tsi_os.now_ns = tsi_os.quick_ns = stepping_clock;
}
/* Returns true if the clock was not read as often. */
static bool step_over(void) {
    bool waits = step_at != 0;
    step_at = 0;
    tsi_os.now_ns = tsi_os.quick_ns = clock_now;
    return waits;
}

static SlabOptions with_all(void) {
    SlabOptions o = kit_options();
    o.segment = 1;
    o.profile_bytes = 4096;
    o.escape_stacks = 1;
    o.sampling_period = 16;
    o.decay_ms = MS;
    return o;
}

/* Phases that begin before the step and end after it, or drain over it. */
static void phases_over_steps(void) {
    open_with(with_all());
    for (unsigned n = 0; n < STEPS; n++) {
        epoch_domain_t* d[KEPT];
        void* kept = NULL;
        EpochReceipt r;
        for (unsigned i = 0; i < KEPT; i++) {
            REQUIRE((d[i] = epoch_domain_create_labeled(a, i % 2 == 0 ? "over" : "drains")) != NULL);
            for (unsigned k = 0; k < 10; k++) REQUIRE((kept = epoch_domain_malloc(d[i], 3000)) != NULL);
        }
        void* in_ring = slab_malloc(a, 300);
        REQUIRE(epoch_domain_drain(d[1], &r));
        pass(steps[n]);
        ages_are_sane(n);
        for (unsigned i = 0; i < KEPT; i++) {
            if (i == 1) continue;
            REQUIRE(i % 2 == 0 ? epoch_domain_destroy_ex(d[i], &r) : epoch_domain_drain(d[i], &r));
            KIT_BALANCED(&r);
            is_sane("close_ns", r.close_ns, n);
        }
        REQUIRE(epoch_close_ex(a, epoch_current(a), EPOCH_DRAIN, &r));
        is_sane("close_ns", r.close_ns, n);
        ages_are_sane(n);
        pass(SECOND);
        ages_are_sane(n);
        REQUIRE(slab_free_checked(a, in_ring));
        REQUIRE(slab_free_checked(a, kept)); /* of the phase that was drained last */
        kit_check(a);
    }
    close_it();
}

/* The step comes between two readings of one call: an end of each kind, slow allocations, a publication, a report. */
static void calls_over_steps(void) {
    enum { READINGS = 300, KINDS = 6 };
    open_with(with_all());
    for (unsigned n = 0; n < 2; n++) {
        for (unsigned what = 0; what < KINDS; what++) {
            bool over = false;
            for (unsigned k = 1; !over; k++) {
                EpochReceipt r = {.close_ns = 0};
                epoch_domain_t* d = epoch_domain_begin(a, "in the middle");
                REQUIRE(d != NULL && k < READINGS);
                for (unsigned i = 0; i < 20; i++) REQUIRE(slab_malloc(a, 3000) != NULL);
                REQUIRE(slab_malloc_outside(a, 5000) != NULL);
                step_in(k, steps[n]);
                if (what == 0) REQUIRE(epoch_domain_end_ex(d, &r));
                if (what == 1) REQUIRE(epoch_domain_drain(d, &r));
                if (what == 2) REQUIRE(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, &r));
                if (what == 3) fill_and_empty(NULL);
                if (what == 4) REQUIRE(slab_stats_publish(a));
                if (what == 5) ages_are_sane(n);
                over = step_over();
                if (what > 1) REQUIRE(epoch_domain_end(d));
                is_sane("close_ns", r.close_ns, n);
                ages_are_sane(n);
                atomic_store(&clock_ns, (int64_t)(1001 * HOUR));
            }
        }
    }
    close_it();
}

/* ---- locks ---- */

static _Atomic unsigned lock_readings, lock_inside;
static uint64_t falling_clock(void) {
    atomic_fetch_add(&lock_readings, 1);
    return (uint64_t)atomic_fetch_sub(&clock_ns, 1);
}
static void* take_lock(void* arg) {
    tsi_lock_take(arg);
    atomic_store(&lock_inside, 1);
    tsi_lock_give(arg);
    return NULL;
}

/* Each reading is 1 ns before the one before. A thread that waits for a lock goes on waiting. */
static void a_lock_is_waited_for(void) {
    open_with(kit_options());
    TsiLock* lock = &space->lock;
    tsi_lock_take(lock);
    tsi_os.now_ns = falling_clock;
    pthread_t t = kit_thread(take_lock, lock);
    while (atomic_load(&lock_readings) < 5 && atomic_load(&lock_inside) == 0) sched_yield();
    unsigned inside = atomic_load(&lock_inside);
    tsi_lock_give(lock);
    pthread_join(t, NULL);
    tsi_os.now_ns = clock_now;
    REQUIRE_EQ(inside, 0);
    REQUIRE_EQ(atomic_load(&lock_inside), 1);
    close_it();
}

/* ---- the segment ---- */

/* An allocator at work publishes again within some seconds by the clock, however it was set. */
static void the_segment_is_published(void) {
    SlabOptions o = kit_options();
    o.segment = 1;
    o.profile_bytes = 4096;
    open_with(o);
    for (unsigned n = 0; n < STEPS; n++) {
        pass(steps[n]);
        uint64_t before = tsi_segment_health(arena).publications;
        for (unsigned i = 0; i < 10; i++) {
            pass(SECOND);
            fill_and_empty(NULL);
            slab_trim(a);
        }
        if (tsi_segment_health(arena).publications == before) FAIL("nothing was published in 10 s after step %u", n);
        SlabSegment* s = slab_segment_open((uint32_t)getpid());
        SlabSegmentView view;
        uint64_t written = 0;
        REQUIRE(s != NULL);
        REQUIRE_EQ(slab_segment_read(s, 0, &view), SLAB_SEGMENT_OK);
        is_sane("cost_ns", view.cost_ns, n);
        REQUIRE(slab_segment_json(s, swallow, &written));
        slab_segment_close(s);
    }
    close_it();
}

static const CheckCase cases[] = {
    CHECK_CASE(empty_slabs_go_back_by_time),
    CHECK_CASE(an_idle_threads_slabs_go_back),
    CHECK_CASE(warm_pages_go_back_by_time),
    CHECK_CASE(phases_over_steps),
    CHECK_CASE(calls_over_steps),
    CHECK_CASE(a_lock_is_waited_for),
    CHECK_CASE(the_segment_is_published),
};
CHECK_MAIN(cases)
