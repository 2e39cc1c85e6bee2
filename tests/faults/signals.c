/*
 * signals.c - a process under load that is interrupted all the time: by signals of a timer at 1 kHz on each of its
 * threads, with and without SA_RESTART, and by SIGSTOP and SIGCONT from outside.
 *
 * Signals break into system calls (EINTR) and into any instruction. Their handlers do not use the library, which is not
 * for handlers (docs/semantics.md); they count. Every object is whole when it is freed, and the accounts come out even.
 * The work is counted in operations; it goes on until enough signals have come, too.
 */
#define CHECK_DIVISOR 1
#include "kit/inside.h"

#include "slab_segment.h"
#include "slab_stats.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { WORKERS = 4, OBJECTS = 64, SECONDS = 600 };

static SlabAllocator* a;
static _Atomic uint64_t signals;
static size_t ops, wanted;
static _Atomic(uint64_t*) table[OBJECTS];

static void count_signal(int number) {
    (void)number;
    atomic_fetch_add(&signals, 1);
}

/* ---- the load ---- */

static uint64_t* make(uint64_t* p, size_t words, uint64_t seed) {
    REQUIRE(p != NULL);
    p[0] = words;
    for (size_t n = 1; n < words; n++) p[n] = seed + n * 0x9e3779b97f4a7c15u;
    if (words > 1) p[1] = seed;
    return p;
}
static void end(uint64_t* p) {
    if (p == NULL) return;
    size_t words = p[0];
    REQUIRE(words >= 2 && words < 4096);
    for (size_t n = 2; n < words; n++) REQUIRE_EQ(p[n], p[1] + n * 0x9e3779b97f4a7c15u);
    REQUIRE(slab_free_checked(a, p));
}

static void* load(void* arg) {
    uint64_t dice = 5 + (uint64_t)(uintptr_t)arg;
    for (size_t n = 0; n < ops || atomic_load(&signals) < wanted; n++) {
        size_t words = 2 + kit_rand(&dice) % (n % 50 == 0 ? 4000 : 200);
        end(atomic_exchange(&table[kit_rand(&dice) % OBJECTS], make(slab_malloc_outside(a, words * 8), words, n)));
        if (n % 16 != 0) continue;
        epoch_domain_t* d = epoch_domain_begin(a, "signals");
        REQUIRE(d != NULL);
        uint64_t* p = make(slab_malloc(a, 160), 20, n);
        void* large = n % 512 == 0 ? slab_malloc(a, 400000) : NULL;
        if (large != NULL) memset(large, 1, 400000);
        if (n % 32 == 0) end(p);
        REQUIRE(epoch_domain_end(d));
        if (n % 256 == 0) epoch_advance(a);
        if (n % 1024 == 0) slab_trim(a);
        if (n % 2048 == 0) (void)slab_stats_publish(a);
    }
    return NULL;
}

static SlabAllocator* create(void) {
    SlabOptions o = kit_options();
    o.segment = 1;
    o.decay_ms = 1;
    return kit_create_with(&o);
}

static void comes_out_even(void) {
    for (unsigned n = 0; n < OBJECTS; n++) end(atomic_exchange(&table[n], NULL));
    REQUIRE_EQ(kit_live(a), 0);
    REQUIRE_EQ(kit_refused_frees(a), 0);
    REQUIRE_EQ(kit_refusals(a).out_of_memory, 0);
    for (EpochId id = 0; id < 16; id++) epoch_close_ex(a, id, EPOCH_RELEASE, NULL);
    slab_trim(a);
    REQUIRE_EQ(kit_committed(a), 0);
    kit_check(a);
    slab_allocator_free(a);
}

/* ---- a timer ---- */

static void* interrupted_load(void* arg) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    struct itimerspec each = {{0, 1000000}, {0, 1000000}};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    REQUIRE_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    REQUIRE_EQ(timer_settime(timer, 0, &each, NULL), 0);
    load(arg);
    REQUIRE_EQ(timer_delete(timer), 0);
    return NULL;
}

static void under_a_timer(int flags) {
    struct sigaction act = {.sa_handler = count_signal, .sa_flags = flags}, was;
    pthread_t t[WORKERS];
    ops = check_count(60000);
    wanted = check_count(1000);
    atomic_store(&signals, 0);
    REQUIRE_EQ(sigaction(SIGALRM, &act, &was), 0);
    a = create();
    for (size_t n = 0; n < WORKERS; n++) t[n] = kit_thread(interrupted_load, (void*)(n * 17));
    for (unsigned n = 0; n < WORKERS; n++) pthread_join(t[n], NULL);
    REQUIRE_EQ(sigaction(SIGALRM, &was, NULL), 0);
    printf("  %" PRIu64 " signals\n", atomic_load(&signals));
    comes_out_even();
}
static void signals_that_restart_calls(void) { under_a_timer(SA_RESTART); }
static void signals_that_end_calls(void) { under_a_timer(0); }

/* ---- stops ---- */

static void* counted_load(void* arg) { return load(arg); }
static void working(void* arg) {
    int to = *(int*)arg;
    pthread_t t[WORKERS];
    char c = 0;
    alarm(SECONDS);
    a = create();
    for (size_t n = 0; n < WORKERS; n++) t[n] = kit_thread(counted_load, (void*)(n * 17));
    for (unsigned n = 0; n < WORKERS; n++) pthread_join(t[n], NULL);
    comes_out_even();
    REQUIRE_EQ(write(to, &c, 1), 1);
}

/* From outside: stopped and sent on, and read while it stands still, until it has done its work. */
static void stopped_and_continued(void) {
    int pipes[2], status = -1;
    size_t stops = check_count(200), done = 0, read_stopped = 0;
    ops = check_count(100000);
    wanted = 0;
    REQUIRE_EQ(pipe(pipes), 0);
    fflush(NULL);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        working(&pipes[1]);
        _exit(check_failures() != 0);
    }
    close(pipes[1]);
    while (done < stops) {
        siginfo_t what = {0};
        if (kill(pid, SIGSTOP) != 0) break;
        REQUIRE_EQ(waitid(P_PID, (id_t)pid, &what, WSTOPPED | WEXITED | WNOWAIT), 0);
        if (what.si_code != CLD_STOPPED) break; /* it has ended before that */
        REQUIRE_EQ(waitid(P_PID, (id_t)pid, &what, WSTOPPED), 0);
        if (done % 10 == 0) {
            SlabSegment* s = slab_segment_open((uint32_t)pid);
            SlabSegmentView view;
            if (s != NULL && slab_segment_read(s, 0, &view) == SLAB_SEGMENT_OK) read_stopped++;
            if (s != NULL) REQUIRE_EQ(slab_segment_process(s), SLAB_PROCESS_STOPPED);
            slab_segment_close(s);
        }
        REQUIRE_EQ(kill(pid, SIGCONT), 0);
        done++;
        kit_sleep_us(500);
    }
    (void)kill(pid, SIGCONT);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    close(pipes[0]);
    printf("  %zu stops; its segment was read in %zu of them\n", done, read_stopped);
    REQUIRE_EQ(status, 0);
    REQUIRE_GT(done, 0);
}

static const CheckCase cases[] = {
    CHECK_CASE(signals_that_restart_calls),
    CHECK_CASE(signals_that_end_calls),
    CHECK_CASE(stopped_and_continued),
};
CHECK_MAIN(cases)
