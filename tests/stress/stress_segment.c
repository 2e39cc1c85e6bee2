/*
 * stress_segment.c - the statistics segment read by another process: while eight threads publish as fast as they can, while
 * the process is stopped in the middle of it, and after forks.
 *
 * The clock by which a slow call knows that it is time is replaced by one that always says so: publications then follow
 * each other without a pause, and a reader often meets one that is being written. One that falls asleep in a copy finds
 * it overwritten when it wakes.
 */
#include "kit/fixture.h"

#include "api/segment.h"
#include "os/os.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

enum { THREADS = 8, LABELS = 4 };

static uint64_t always(void) { return UINT64_MAX / 2; }

static SlabAllocator* create(void) {
    SlabOptions o = kit_options();
    o.segment = 1;
    (void)slab_page_size(); /* the table is filled */
    tsi_os.coarse_ns = always;
    return kit_create_with(&o);
}

/* ---- a process at work ---- */

static _Atomic int over;

static void* worker_main(void* arg) {
    static const char* const labels[LABELS] = {"GET /users", "GET /search", "POST /orders", "sessions"};
    SlabAllocator* a = arg;
    void* kept[64] = {0};
    uint64_t rng = (uint64_t)(uintptr_t)&rng | 1;
    while (!atomic_load(&over)) {
        epoch_domain_t* d = epoch_domain_begin(a, labels[kit_rand(&rng) % LABELS]);
        for (int i = 0; i < 200; i++) {
            void* p = slab_malloc(a, kit_rand_size(&rng, 3000));
            if (i % 3 == 0) slab_free(a, p);
        }
        epoch_domain_end(d);
        void** slot = &kept[kit_rand(&rng) % 64];
        slab_free(a, *slot);
        *slot = slab_malloc(a, kit_rand_size(&rng, 2000));
    }
    for (int i = 0; i < 64; i++) slab_free(a, kept[i]);
    return NULL;
}

typedef struct Process {
    pid_t pid;
    int tell; /* closed: stop */
} Process;

static void at_work(int ready, int stop, unsigned threads) {
    pthread_t t[THREADS];
    char c = 0;
    alarm(300 + (unsigned)(300 * check_scale())); /* where nobody is left to tell it to end */
    SlabAllocator* a = create();
    for (unsigned i = 0; i < threads; i++) t[i] = kit_thread(worker_main, a);
    CHECK_EQ(write(ready, &c, 1), 1);
    while (read(stop, &c, 1) < 0 && errno == EINTR) {
    }
    atomic_store(&over, 1);
    for (unsigned i = 0; i < threads; i++) pthread_join(t[i], NULL);
    slab_allocator_free(a);
}

static Process start(unsigned threads) {
    int ready[2], stop[2];
    char c;
    if (pipe(ready) != 0 || pipe(stop) != 0) exit(3);
    fflush(NULL);
    Process p = {fork(), stop[1]};
    if (p.pid == 0) {
        close(stop[1]);
        at_work(ready[1], stop[0], threads);
        _exit(check_failures() != 0);
    }
    close(ready[1]);
    close(stop[0]);
    CHECK_EQ(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return p;
}

static void end(Process p) {
    int status = 0;
    close(p.tell);
    CHECK_EQ(waitpid(p.pid, &status, 0), p.pid);
    CHECK_EQ(status, 0);
}

/* ---- what is in a publication ---- */

typedef struct Reading {
    SlabSegment* s;
    const SlabSegmentScope* scopes;
    const SlabSegmentMetric* metrics;
    uint32_t scope_count, metric_count;
    uint64_t number;
    uint64_t counters[256]; /* of the whole allocator, by metric */
} Reading;

static uint32_t scope_of(const Reading* r, const char* name) {
    for (uint32_t n = 0; n < r->scope_count; n++)
        if (strcmp(r->scopes[n].name, name) == 0) return n;
    CHECK(!"a scope of this name");
    return 0;
}

static uint64_t value(const Reading* r, const char* scope, const char* name, uint64_t row) {
    SlabSegmentValue v = {0};
    uint32_t at = scope_of(r, scope), n = 0;
    while (n < r->metric_count && (r->metrics[n].scope != at || strcmp(r->metrics[n].name, name) != 0)) n++;
    CHECK(slab_segment_value(r->s, n, (uint32_t)row, &v));
    return v.u;
}

static uint64_t rows(const Reading* r, const char* scope) { return slab_segment_rows(r->s, scope_of(r, scope)).count; }

static uint64_t sum(const Reading* r, const char* scope, const char* name) {
    uint64_t total = 0;
    for (uint64_t n = 0; n < rows(r, scope); n++) total += value(r, scope, name, n);
    return total;
}

/* An epoch and the phase of the same era are two views of one walk's sums. */
static void check_phases(const Reading* r) {
    for (uint64_t n = 0; n < rows(r, "EPOCH"); n++) {
        uint64_t era = value(r, "EPOCH", "epoch_era", n);
        for (uint64_t k = 0; k < rows(r, "PHASE"); k++) {
            if (value(r, "PHASE", "epoch_era", k) != era) continue;
            CHECK_EQ(value(r, "EPOCH", "total_partial_slabs", n) + value(r, "EPOCH", "total_full_slabs", n) +
                         value(r, "EPOCH", "reclaimable_slab_count", n),
                     value(r, "PHASE", "slabs", k));
            CHECK_EQ(value(r, "EPOCH", "estimated_rss_bytes", n), value(r, "PHASE", "committed_bytes", k));
            CHECK_EQ(value(r, "EPOCH", "alloc_count", n), value(r, "PHASE", "live_objects", k));
        }
    }
}

/* Nothing below 0; what counts only rises. */
static void check_numbers(Reading* r) {
    uint32_t global = scope_of(r, "GLOBAL");
    for (uint32_t n = 0; n < r->metric_count; n++) {
        const SlabSegmentMetric* m = &r->metrics[n];
        for (uint32_t row = 0; row < slab_segment_rows(r->s, m->scope).count; row++) {
            SlabSegmentValue v;
            CHECK(slab_segment_value(r->s, n, row, &v));
            CHECK_LE(v.u, INT64_MAX);
            for (uint32_t k = 0; k < v.entries; k++) CHECK_LE(v.counts[k], INT64_MAX);
            if (m->scope != global || m->kind != SLAB_SEGMENT_COUNTER || n >= 256) continue;
            CHECK_GE(v.u, r->counters[n]);
            r->counters[n] = v.u;
        }
    }
}

static void check_publication(Reading* r) {
    CHECK_EQ(sum(r, "CLASS", "net_slabs"), value(r, "GLOBAL", "net_slabs", 0));
    CHECK_EQ(sum(r, "CLASS", "committed_bytes") + value(r, "GLOBAL", "warm_stock_bytes", 0),
             value(r, "GLOBAL", "estimated_slab_rss_bytes", 0));
    CHECK_GE(sum(r, "CLASS", "slow_path_hits"), value(r, "GLOBAL", "total_slow_path_hits", 0));
    if (value(r, "DOCUMENT", "figures_ns", 0) == value(r, "DOCUMENT", "phases_ns", 0)) /* else the phases are of an earlier walk */
        CHECK_LE(sum(r, "PHASE", "slabs"), value(r, "GLOBAL", "net_slabs", 0));
    check_phases(r);
    check_numbers(r);
}

static bool reading_open(Reading* r, pid_t pid) {
    *r = (Reading){.s = slab_segment_open((uint32_t)pid)};
    if (r->s == NULL) fprintf(stderr, "  %s\n", slab_last_error());
    r->scope_count = slab_segment_scopes(r->s, &r->scopes);
    r->metric_count = slab_segment_metrics(r->s, &r->metrics);
    return CHECK(r->s != NULL);
}

/* True for a publication that was not seen before. */
static bool reading_next(Reading* r, SlabSegmentResult* result) {
    SlabSegmentView v;
    *result = slab_segment_read(r->s, 0, &v);
    if (*result != SLAB_SEGMENT_OK || v.number == r->number) return false;
    CHECK_GT(v.number, r->number);
    CHECK_GE(v.published_ns, v.begun_ns);
    r->number = v.number;
    check_publication(r);
    return true;
}

/* ---- cases ---- */

/* A reader that falls asleep in the middle of a copy, so that its buffer is written meanwhile. */
static void nap(int unused) {
    (void)unused;
    int saved = errno;
    kit_sleep_us(3000);
    errno = saved;
}

static void nap_within(unsigned us) {
    struct itimerval once = {.it_value.tv_usec = us};
    CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
}

static void read_while_threads_publish(void) {
    Process p = start(THREADS);
    Reading r;
    size_t accepted = 0, refused = 0, wanted = check_count(120);
    uint64_t rng = 7;
    CHECK(signal(SIGALRM, nap) != SIG_ERR);
    if (reading_open(&r, p.pid)) {
        /* Readings cost less than the process may be without a processor: time bounds them, not their number. */
        for (time_t end = time(NULL) + 120 + (time_t)wanted; accepted < wanted && time(NULL) < end;) {
            if (check_failures() != 0 || !slab_segment_alive(r.s)) break;
            SlabSegmentResult result;
            nap_within(1 + (unsigned)(kit_rand(&rng) % 100));
            accepted += reading_next(&r, &result);
            refused += result != SLAB_SEGMENT_OK;
        }
        nap_within(0);
        CHECK(signal(SIGALRM, SIG_DFL) != SIG_ERR);
        CHECK_EQ(accepted, wanted);
        CHECK(slab_segment_alive(r.s));
        NOTE("%zu publications of %" PRIu64 " read, %zu readings given up", accepted, r.number, refused);
    }
    end(p);
    CHECK(!slab_segment_alive(r.s)); /* and what is mapped can still be read */
    SlabSegmentView v;
    CHECK_EQ(slab_segment_read(r.s, 0, &v), SLAB_SEGMENT_OK);
    CHECK_EQ(v.state, SLAB_SEGMENT_ENDED);
    slab_segment_close(r.s);
}

static bool is_being_written(const Reading* r) {
    SlabSegmentSlot slot;
    return CHECK(tsi_segment_copy(r->s, r->s->header.slots.offset, &slot, sizeof slot)) && slot.sequence % 2 == 1;
}

static void read_while_stopped(void) {
    Process p = start(2);
    Reading r;
    size_t rounds = check_count(80), halfway = 0, n = 0;
    int status;
    if (reading_open(&r, p.pid)) {
        /* As often as wanted, and until it was met while it published: that takes luck. */
        for (; (n < rounds || halfway == 0) && n < 20000 && check_failures() == 0; n++) {
            SlabSegmentResult result;
            kit_sleep_us((unsigned)(n * 131) % 1000);
            CHECK_EQ(kill(p.pid, SIGSTOP), 0);
            CHECK_EQ(waitpid(p.pid, &status, WUNTRACED), p.pid);
            if (!CHECK(WIFSTOPPED(status))) break;
            halfway += is_being_written(&r);
            (void)reading_next(&r, &result);
            CHECK_EQ(result, SLAB_SEGMENT_OK);
            CHECK(slab_segment_alive(r.s));
            CHECK_EQ(kill(p.pid, SIGCONT), 0);
        }
        NOTE("stopped %zu times, %zu of them while it published", n, halfway);
        CHECK_GT(halfway, 0);
    }
    slab_segment_close(r.s);
    end(p);
}

/* ---- forks ---- */

static bool has_mapping(void) {
    char line[512];
    bool found = false;
    FILE* f = fopen("/proc/self/maps", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        found |= strstr(line, "temporal-slab") != NULL && strstr(line, "memfd") != NULL;
    if (f != NULL) fclose(f);
    return found;
}

static uint64_t number_of(pid_t pid) {
    SlabSegmentView v = {0};
    SlabSegmentHeader h;
    SlabSegment* s = slab_segment_open((uint32_t)pid);
    if (!CHECK(s != NULL)) fprintf(stderr, "  %s\n", slab_last_error());
    CHECK(slab_segment_header(s, &h) && h.pid == (uint64_t)pid);
    CHECK_EQ(slab_segment_read(s, 0, &v), SLAB_SEGMENT_OK);
    slab_segment_close(s);
    return v.number;
}

/* In a child: nothing is shown, and nothing of the parent's can be written, until it publishes itself. */
static void has_its_own(void* arg) {
    pid_t self = getpid();
    CHECK(!has_mapping());
    CHECK_NULL(slab_segment_open((uint32_t)self));
    CHECK_EQ(errno, ENOENT);
    slab_trim(arg);
    CHECK(has_mapping());
    CHECK_EQ(number_of(self), 1);
    slab_trim(arg);
    CHECK_EQ(number_of(self), 2);
}

static void of_a_child(void* arg) {
    has_its_own(arg);
    uint64_t mine = number_of(getpid());
    check_child(has_its_own, arg); /* and of a child's child */
    CHECK_EQ(number_of(getpid()), mine);
}

static void quiet_parent(void* unused) {
    (void)unused;
    SlabAllocator* a = create();
    slab_trim(a);
    CHECK(has_mapping());
    uint64_t before = number_of(getpid());
    check_child(of_a_child, a);
    CHECK_EQ(number_of(getpid()), before); /* nobody has written to it */
    slab_trim(a);
    CHECK_EQ(number_of(getpid()), before + 1);
    if (!CHECK_TSAN && !CHECK_ASAN) { /* without fork handlers: found out by the process id */
        int status = 1;
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            slab_trim(a);
            _exit(number_of(getpid()) != 1 || check_failures() != 0);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
        CHECK_EQ(number_of(getpid()), before + 1);
    }
    slab_allocator_free(a);
}

static void a_child_has_its_own(void) { check_child(quiet_parent, NULL); }

static void busy_parent(void* unused) {
    (void)unused;
    pthread_t t[THREADS];
    SlabAllocator* a = create();
    for (unsigned i = 0; i < THREADS; i++) t[i] = kit_thread(worker_main, a);
    for (size_t n = 0, rounds = check_count(12); n < rounds && check_failures() == 0; n++) {
        kit_sleep_us((unsigned)(n * 37) % 500);
        check_child(has_its_own, a);
    }
    atomic_store(&over, 1);
    for (unsigned i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    slab_allocator_free(a);
}

static void forks_while_threads_publish(void) {
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer does not follow a child of a threaded process");
    }
    check_child(busy_parent, NULL);
}

int main(int argc, char** argv) {
    static const CheckCase cases[] = {
        CHECK_CASE(read_while_threads_publish),
        CHECK_CASE(read_while_stopped),
        CHECK_CASE(a_child_has_its_own),
        CHECK_CASE(forks_while_threads_publish),
    };
    return check_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
