/*
 * system_calls.c - the k-th call of each kind to the system fails, once or for ever, in a whole life of the library: an
 * allocator with a segment and a profile, objects of all sizes, handles, domains, lanes, a ring that turns, threads, a
 * fork, all reports and a reader of the segment.
 *
 * Each k has a process of its own, so the first calls of a process have their turn as well. What has to hold:
 *
 *   - a call that fails does so as its header says, and only for want of memory does an allocation fail
 *   - an object keeps what was written in it; frees, advances and closes never fail; receipts balance
 *   - the allocator's own checker finds nothing wrong, during the fault and after it
 *   - when the fault is over everything works, for each k
 *
 * In the short form the distance from one k to the next grows; with TSLAB_TEST_SCALE=2 each k has its turn.
 */
#define KIT_RESERVE_BYTES ((uint64_t)1 << 30)

#include "calls.h"

#include "kit/inside.h"

#include "slab_diagnostics.h"
#include "slab_lane.h"
#include "slab_segment.h"
#include "slab_stats.h"

#include <signal.h>
#include <sys/wait.h>

enum { OBJECTS = 512, DOMAINS = 24, SECONDS = 120, NOT_REACHED = 9 };

static Call kind; /* that fails */
static SlabAllocator* a;
static uint8_t* at[OBJECTS];
static size_t bytes_at[OBJECTS];
static unsigned count;
static uint64_t refused;

/* ---- objects ---- */

/* Returns true if p is an object; it is refused only if the system has refused memory. */
static bool got(const void* p) {
    if (p != NULL) return true;
    REQUIRE_OR(errno == ENOMEM, "refused with %s", strerror(errno));
    REQUIRE_OR(calls_struck() && call_kinds[kind].memory, "refused without a reason");
    refused++;
    return false;
}
static void* keep(void* p, size_t bytes) {
    if (!got(p)) return NULL;
    if (count == OBJECTS) count = 0; /* those before end with their epoch */
    memset(p, (int)(count & 0xff), bytes < 64 ? bytes : 64);
    ((uint8_t*)p)[bytes - 1] = (uint8_t)count;
    bytes_at[count] = bytes;
    return at[count++] = p;
}
static void take(size_t bytes) { (void)keep(slab_malloc(a, bytes), bytes); }
static void drop(unsigned n) {
    if (at[n] == NULL) return;
    REQUIRE_EQ(at[n][0], n & 0xff);
    REQUIRE_EQ(at[n][bytes_at[n] - 1], n & 0xff);
    REQUIRE(slab_free_checked(a, at[n]));
    at[n] = NULL;
}

static void objects(void) {
    for (size_t bytes = 16; bytes <= 200000; bytes += bytes / 3 + 16) take(bytes);
    for (unsigned n = 0; n < 60; n++) take(1000);
    take(300000);
    take(2 << 20);
    for (unsigned n = count - 1, i = 0; count > 0 && i < 3 && at[n] != NULL; i++) { /* pages move from place to place */
        (void)got(slab_malloc(a, 300000)); /* a neighbour, so that it has no room to grow */
        uint8_t* p = slab_realloc(a, at[n], bytes_at[n] * 2);
        if (!got(p)) break;
        at[n] = p;
        bytes_at[n] *= 2;
        p[bytes_at[n] - 1] = (uint8_t)n;
    }
    (void)keep(slab_aligned_alloc(a, 1 << 20, 5000), 5000);
    (void)keep(slab_calloc(a, 100, 50), 5000);
    for (unsigned n = 0; n < count; n += 7) {
        if (at[n] == NULL || bytes_at[n] > 1 << 20) continue;
        uint8_t* p = slab_realloc(a, at[n], bytes_at[n] * 2);
        if (!got(p)) continue; /* the block is as it was */
        REQUIRE_EQ(p[0], n & 0xff);
        at[n] = p;
        bytes_at[n] *= 2;
        p[bytes_at[n] - 1] = (uint8_t)n;
    }
    for (unsigned n = 0; n < 20; n++) {
        SlabHandle h = 7;
        void* p = alloc_obj(a, 40 + n * 100, &h);
        REQUIRE(got(p) == (h != 0));
        if (h == 0) continue;
        REQUIRE_EQ(slab_handle_ptr(a, h), p);
        REQUIRE(free_obj(a, h));
        REQUIRE(!free_obj(a, h));
    }
}

/* ---- phases ---- */

static _Atomic unsigned cleaned;
static void cleanup(void* arg) { atomic_fetch_add((_Atomic unsigned*)arg, 1); }

static void nest(void) {
    epoch_domain_t* d[DOMAINS];
    unsigned registered = 0;
    atomic_store(&cleaned, 0);
    for (unsigned n = 0; n < DOMAINS; n++) {
        errno = 0;
        if (!got(d[n] = epoch_domain_begin(a, n % 2 ? "odd" : "even"))) continue;
        REQUIRE_EQ(epoch_domain_current(), d[n]);
        void* p = slab_malloc(a, 100 + n * 200);
        if (got(p)) memset(p, 1, 100);
        errno = 0;
        if (epoch_domain_on_end(d[n], cleanup, &cleaned)) registered++;
        else (void)got(NULL);
        (void)got(slab_malloc_outside(a, 64));
    }
    for (unsigned n = DOMAINS; n-- != 0;) {
        EpochReceipt r;
        if (d[n] == NULL) continue;
        REQUIRE(epoch_domain_end_ex(d[n], &r));
        KIT_BALANCED(&r);
    }
    REQUIRE_NULL(epoch_domain_current());
    REQUIRE_EQ(atomic_load(&cleaned), registered);
}

static void domains(void) {
    epoch_domain_t* d[DOMAINS];
    SlabDomainOptions o = {.struct_size = sizeof o, .label = "budget", .hard_bytes = 1 << 20};
    SlabLane lane;
    for (unsigned n = 0; n < DOMAINS; n++) {
        errno = 0;
        d[n] = n % 3 == 0 ? epoch_domain_create_ex(a, &o) : epoch_domain_create_labeled(a, "side");
        if (!got(d[n])) continue;
        for (unsigned i = 0; i < 5; i++) (void)got(epoch_domain_malloc(d[n], 100 + 900 * i));
        if (n % 2 == 0 && slab_lane_open(&lane, d[n]))
            for (unsigned i = 0; i < 20; i++) (void)got(slab_lane_malloc(&lane, 200));
    }
    for (unsigned n = 0; n < DOMAINS; n++) {
        EpochReceipt r;
        if (d[n] == NULL) continue;
        if (n % 4 == 1) {
            REQUIRE(epoch_domain_drain(d[n], &r));
            REQUIRE(epoch_close_era(a, r.epoch_era, EPOCH_RELEASE, NULL) || r.objects_escaped == 0);
        } else {
            REQUIRE(epoch_domain_destroy_ex(d[n], &r));
        }
        KIT_BALANCED(&r);
    }
    nest();
}

/* A domain that two threads are inside of by turns. */
static epoch_domain_t* carried;
static void carry(void* arg) {
    (void)arg;
    errno = 0;
    if (!epoch_domain_attach(carried)) {
        (void)got(NULL);
        return;
    }
    for (unsigned n = 0; n < 30; n++) (void)got(slab_malloc(a, 300));
    REQUIRE(epoch_domain_detach(carried));
}
static void carried_on(KitWorker* w) {
    errno = 0;
    if (!got(carried = epoch_domain_begin(a, "carried"))) return;
    REQUIRE(epoch_domain_detach(carried));
    kit_worker_run(w, carry, NULL);
    carry(NULL);
    while (!epoch_domain_attach(carried)) {
        (void)got(NULL);
        calls_heal(); /* or the scope stays detached, as it would until there is memory */
    }
    REQUIRE(epoch_domain_end(carried));
}

/* ---- the ring, beside a thread that stays inside of its epochs ---- */

static void work_beside(void* arg) {
    (void)arg;
    for (unsigned n = 0; n < count; n += 3) drop(n);
    for (unsigned n = 0; n < 40; n++) (void)got(slab_malloc(a, 50 + n * 60)); /* end with the epoch */
}
static void flush(void* arg) {
    (void)arg;
    slab_thread_flush(a);
}
static void turn(KitWorker* w) {
    EpochReceipt r;
    EpochId old = epoch_current(a);
    kit_worker_run(w, work_beside, NULL);
    EpochId next = epoch_advance_id(a);
    REQUIRE_NE(old, next);
    take(2000);
    REQUIRE(epoch_close_ex(a, old, EPOCH_DRAIN, &r));
    KIT_BALANCED(&r);
    kit_check(a);
    for (unsigned n = 0; n < count; n++) drop(n);
    REQUIRE(epoch_close_ex(a, old, EPOCH_RELEASE, NULL));
    kit_worker_run(w, work_beside, NULL);
    for (size_t bytes = 64; bytes < 100000; bytes *= 2) (void)got(slab_malloc(a, bytes));
    REQUIRE(epoch_close_ex(a, next, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    /* Without a membarrier what another thread has is left to that thread, until its next slow path. */
    if (kind == CALL_MEMBARRIER && calls_struck()) kit_worker_run(w, flush, NULL);
    REQUIRE_EQ(kit_live(a), 0);
    kit_check(a);
}

/* ---- reports ---- */

static bool swallow(void* ctx, const char* text, size_t n) {
    *(uint64_t*)ctx += n + (text[0] == 0);
    return true;
}
/* Returns true if a report was written; only a call that has failed keeps it from that. */
static bool told(bool ok) {
    if (!ok) REQUIRE(calls_struck());
    return ok;
}
static void read_segment(void) {
    SlabSegment* s = slab_segment_open((uint32_t)getpid());
    SlabSegmentView view;
    uint64_t n = 0;
    if (!told(s != NULL)) {
        REQUIRE(slab_last_error()[0] != 0);
        return;
    }
    if (told(slab_segment_read(s, 0, &view) == SLAB_SEGMENT_OK)) {
        (void)told(slab_segment_json(s, swallow, &n));
        (void)told(slab_segment_prometheus_all(s, swallow, &n));
    }
    (void)told(slab_segment_process(s) == SLAB_PROCESS_RUNNING);
    slab_segment_close(s);
}
static void reports(void) {
    EpochLeakReport leaks;
    SlowPathReport slow;
    ReclamationReport back;
    uint64_t n = 0;
    calls_malloc = true;
    (void)told(slab_stats_publish(a));
    read_segment();
    (void)told(slab_stats_json_all(a, swallow, &n));
    (void)told(slab_stats_prometheus(a, swallow, &n));
    (void)told(slab_doctor(a, swallow, &n));
    (void)told(slab_profile_write(a, swallow, &n) != 0);
    (void)slab_detect_epoch_leaks(a, 0, 10, &leaks);
    slab_analyze_slow_path(a, &slow);
    slab_analyze_reclamation(a, &back);
    calls_malloc = false;
    free(leaks.candidates);
    free(slow.classes);
    free(back.epochs);
    SlabRefusals r;
    slab_stats_refusals(a, &r);
    REQUIRE_EQ(kit_refused_frees(a) - r.stale_handle, 0); /* handles are freed twice on purpose */
    REQUIRE(r.out_of_memory <= refused);
    /* What labels count agrees with itself. */
    static SlabLabelStats labels[64];
    size_t found = slab_stats_labels(a, labels, 64);
    REQUIRE(found <= 64 && (found > 0 || calls_struck()));
    for (size_t i = 0; i < found; i++)
        REQUIRE_EQ(labels[i].objects_allocated,
                   labels[i].objects_freed + labels[i].objects_released + labels[i].live_objects);
}

/* ---- a child ---- */

static void forked(void) {
    fflush(NULL);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        alarm(SECONDS);
        for (unsigned n = 0; n < count; n++) drop(n);
        for (unsigned n = 0; n < 50; n++) {
            void* p = slab_malloc(a, 100 + n * 100);
            if (got(p)) REQUIRE(slab_free_checked(a, p));
        }
        epoch_domain_t* d = epoch_domain_begin(a, "child");
        if (got(d)) REQUIRE(epoch_domain_end(d));
        EpochReceipt r;
        REQUIRE(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, &r));
        KIT_BALANCED(&r);
        kit_check(a);
        _exit(check_failures() != 0);
    }
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    REQUIRE_OR(status == 0, "a child ends with status %#x", (unsigned)status);
}

/* ---- a life ---- */

static void body(KitWorker* w) {
    count = 0;
    memset(at, 0, sizeof at);
    objects();
    kit_check(a);
    domains();
    carried_on(w);
    kit_check(a);
    reports();
    forked();
    turn(w);
    slab_trim(a);
    slab_thread_flush(a);
    reports();
    kit_check(a);
}

static SlabAllocator* make(void) {
    SlabOptions o = kit_options();
    o.segment = 1;
    o.profile_bytes = 4096;
    o.decay_ms = 1;
    o.numa_local = 1;
    o.quiet = 1;
    return slab_allocator_create_with(&o);
}

/* In a process that has not used the library. */
static int life(Call which, uint64_t k, bool on) {
    KitWorker worker;
    kind = which;
    calls_no_memfd = which == CALL_MKDIR || which == CALL_OPENAT || which == CALL_UNLINKAT || which == CALL_FOPEN;
    calls_fail(kind, k, on);
    errno = 0;
    a = make();
    if (a == NULL) {
        REQUIRE(calls_struck() && call_kinds[kind].memory);
        REQUIRE_EQ(errno, ENOMEM);
        REQUIRE(slab_last_error()[0] != 0);
    } else {
        kit_worker_start(&worker);
        body(&worker);
        kit_worker_stop(&worker);
        slab_allocator_free(a);
    }
    bool struck = calls_struck();
    calls_heal();

    /* Nothing is short any more. The profile and the segment may be without what the process did not get at first. */
    uint64_t before = refused;
    a = make();
    REQUIRE(a != NULL);
    kit_worker_start(&worker);
    body(&worker);
    kit_worker_stop(&worker);
    REQUIRE_EQ(refused, before);
    slab_allocator_free(a);
    return check_failures() != 0 ? 1 : struck ? 0 : NOT_REACHED;
}

/* Returns the exit status of a life in a child. */
static int live(Call which, uint64_t k, bool on) {
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(SECONDS);
        _exit(life(which, k, on));
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 128 + (status & 0x7f);
}

static void each_k(Call which, bool on) {
    uint64_t k = 1, lives = 0;
    int status;
    while ((status = live(which, k, on)) != NOT_REACHED) {
        if (status != 0)
            FAIL("%s, %s from call %" PRIu64 " on: status %d", call_kinds[which].name, on ? "all" : "one", k, status);
        lives++;
        k += check_scale() >= 2 ? 1 : 1 + k / (check_scale() < 1 ? 1 : 4);
    }
    if (k == 1 && (which == CALL_NODES || which == CALL_FAULTS)) NOTE("this system has no use for the call");
    else REQUIRE(k > 1);
    printf("  %s, %s: refused in %" PRIu64 " lives, the call %" PRIu64 " is not reached\n", call_kinds[which].name,
           on ? "for ever" : "once", lives, k);
}

/* A life notices what the library does not, which is told here that memory can be written that cannot. */
static void a_refusal_that_nobody_is_told_of(void) {
    struct rlimit none = {0, 0};
    REQUIRE_EQ(setrlimit(RLIMIT_CORE, &none), 0);
    calls_lie = true;
    int status = live(CALL_MPROTECT, 1, true);
    calls_lie = false;
    REQUIRE_EQ(status, 128 + SIGSEGV);
}

/* ---- cases: one for each kind ---- */

static void both(Call which) {
    each_k(which, false);
    each_k(which, true);
}
#define EACH(fn, call) \
    static void fn(void) { both(call); }
EACH(maps, CALL_MMAP)
EACH(unmaps, CALL_MUNMAP)
EACH(commits, CALL_MPROTECT)
EACH(purges, CALL_MADVISE)
EACH(barriers, CALL_MEMBARRIER)
EACH(files_in_memory, CALL_MEMFD)
EACH(random_bits, CALL_RANDOM)
EACH(memory_nodes, CALL_NODES)
EACH(moves_of_pages, CALL_FAULTS)
EACH(settings_of_the_process, CALL_PRCTL)
EACH(limits, CALL_RLIMIT)
EACH(opens, CALL_OPEN)
EACH(reads, CALL_READ)
EACH(looks_at_files, CALL_STAT)
EACH(modes_of_files, CALL_FCHMOD)
EACH(lengths_of_files, CALL_FTRUNCATE)
EACH(seals, CALL_FCNTL)
EACH(pages_of_files, CALL_FALLOCATE)
EACH(own_folders, CALL_MKDIR)
EACH(names_of_files, CALL_UNLINKAT)
EACH(files_in_folders, CALL_OPENAT)
EACH(links, CALL_READLINKAT)
EACH(folders, CALL_OPENDIR)
EACH(streams, CALL_FOPEN)
EACH(keys_of_threads, CALL_KEY)
EACH(values_of_threads, CALL_SPECIFIC)
EACH(handlers_of_forks, CALL_ATFORK)
EACH(memory_of_reports, CALL_MALLOC)

static const CheckCase cases[] = {
    CHECK_CASE(a_refusal_that_nobody_is_told_of),
    CHECK_CASE(maps),
    CHECK_CASE(unmaps),
    CHECK_CASE(commits),
    CHECK_CASE(purges),
    CHECK_CASE(barriers),
    CHECK_CASE(files_in_memory),
    CHECK_CASE(random_bits),
    CHECK_CASE(memory_nodes),
    CHECK_CASE(moves_of_pages),
    CHECK_CASE(settings_of_the_process),
    CHECK_CASE(limits),
    CHECK_CASE(opens),
    CHECK_CASE(reads),
    CHECK_CASE(looks_at_files),
    CHECK_CASE(modes_of_files),
    CHECK_CASE(lengths_of_files),
    CHECK_CASE(seals),
    CHECK_CASE(pages_of_files),
    CHECK_CASE(own_folders),
    CHECK_CASE(names_of_files),
    CHECK_CASE(files_in_folders),
    CHECK_CASE(links),
    CHECK_CASE(folders),
    CHECK_CASE(streams),
    CHECK_CASE(keys_of_threads),
    CHECK_CASE(values_of_threads),
    CHECK_CASE(handlers_of_forks),
    CHECK_CASE(memory_of_reports),
};

/* `one KIND K [ever]` is one life alone, for a debugger. */
int main(int argc, char** argv) {
    for (unsigned n = 0; argc > 3 && strcmp(argv[1], "one") == 0 && n < CALLS; n++)
        if (strcmp(call_kinds[n].name, argv[2]) == 0) return life((Call)n, strtoull(argv[3], NULL, 10), argc > 4);
    return CHECK_RUN(argc, argv, cases);
}
