/*
 * test_shared.c - shared mode: the controller, threads that stand still inside of a bank, who is waited for, lines that come
 * back.
 *
 * A thread stands still as calls do in test_stopped: the page of the line it is about to read is unreadable, and the
 * handler of the fault waits for what another thread does meanwhile.
 */
#define KIT_RING_BY_CLASS
#include "fake_os.h"
#include "kit/inside.h"

#include "state/bracket.h"
#include "threads/bank.h"
#include "mem/handle.h"

#include <signal.h>
#include <sys/mman.h>

enum { SIZE = 1024, SLOTS = 16, HERE = 5, WINDOW = 1 << 18, APART = 50, PATIENCE = 120000 /* looks, 1 ms apart */ };

static SlabAllocator* a;
static TsiArena* arena;
static KitWorker worker;

static void open_allocator(void) {
    SlabOptions o = kit_options();
    o.shared = 1;
    o.warm_bytes = UINT64_MAX;
    a = slab_allocator_create_with(&o);
    REQUIRE(a != NULL);
    arena = tsi_arena(a);
    kit_worker_start(&worker);
}
static void close_allocator(void) {
    kit_worker_stop(&worker);
    kit_check(a);
    slab_allocator_free(a);
}

static TsiHeap* heap_of(const void* p) { return tsi_heap(arena, tsi_tag_index(kit_tag(a, p))); }
static TsiLine* line_of(const void* p) { return tsi_line(&arena->space, kit_place(a, p).line_id); }
static SlabClassStats class_of(size_t bytes) {
    void* p = slab_malloc(a, bytes);
    SlabClassStats c;
    slab_stats_class(a, kit_place(a, p).cls - 1, &c);
    slab_free(a, p);
    return c;
}
static void alloc_here(void* out) { *(void**)out = slab_malloc_epoch(a, SIZE, HERE); }
static void alloc_and_free_here(void* unused) {
    (void)unused;
    slab_free(a, slab_malloc_epoch(a, SIZE, HERE));
}

/* ---- the controller ---- */

/* A window, with so many of 1000 allocations that had to wait. */
static void windows(unsigned n, unsigned waited) {
    for (; n != 0; n--) tsi_bank_note(arena, WINDOW, (uint64_t)WINDOW * waited / 1000);
}
static void scan_is(uint32_t mode, uint32_t checks, uint32_t switches) {
    for (uint32_t cls = 0; cls < 10; cls++) { /* there is one for all of them */
        SlabClassStats c;
        slab_stats_class(a, cls, &c);
        REQUIRE_EQ(c.scan_mode, mode);
        REQUIRE_EQ(c.scan_adapt_checks, checks);
        REQUIRE_EQ(c.scan_adapt_switches, switches);
    }
}

static void the_controller_spreads_and_gathers(void) {
    scan_is(0, 0, 0);
    tsi_bank_note(arena, WINDOW - 1, WINDOW);
    scan_is(0, 0, 0); /* the window is not full */
    tsi_bank_note(arena, 1, 0);
    scan_is(1, 1, 1);
    windows(APART - 1, 0); /* below, and too early */
    scan_is(1, APART, 1);
    windows(1, 0);
    scan_is(0, APART + 1, 2);
    windows(APART - 1, 1000); /* above, and too early again */
    scan_is(0, 2 * APART, 2);
    windows(1, 1000);
    scan_is(1, 2 * APART + 1, 3);
}

static void the_controller_keeps_between(void) {
    windows(3, 300); /* not above */
    scan_is(0, 3, 0);
    windows(1, 301);
    scan_is(1, 4, 1);
    windows(APART + 10, 200);
    windows(1, 101); /* not below */
    scan_is(1, APART + 15, 1);
    windows(1, 99);
    scan_is(0, APART + 16, 2);
    windows(APART + 10, 200);
    scan_is(0, 2 * APART + 26, 2);
}

/* What real allocations tell it, in parts of the window. */
static void allocations_are_noted(void) {
    for (unsigned n = 0; n < 1023; n++) slab_free(a, slab_malloc(a, SIZE + n % 3 * SIZE));
    REQUIRE_EQ(tsi_load_relaxed(&arena->scan.allocations), 0);
    slab_free(a, slab_malloc(a, SIZE));
    REQUIRE_EQ(tsi_load_relaxed(&arena->scan.allocations), 1024);
    REQUIRE_EQ(tsi_load_relaxed(&arena->scan.waits), 0);
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    REQUIRE_EQ(g.total_bitmap_alloc_attempts, 1024);
    REQUIRE_EQ(g.total_bitmap_alloc_cas_retries, 0);
}

static _Atomic bool allocated;
static void* alloc_one(void* out) {
    alloc_here(out);
    atomic_store(&allocated, true);
    return NULL;
}

/* Who finds the bank held is counted, for the class and its label, and tells the controller. */
static void waits_are_counted(void) {
    slab_epoch_set_label(a, HERE, "here");
    void *p = slab_malloc_epoch(a, SIZE, HERE), *q = NULL;
    pthread_t t;
    REQUIRE(tsi_lock_try(&arena->bank[0].lock));
    atomic_store(&allocated, false);
    REQUIRE_EQ(pthread_create(&t, NULL, alloc_one, &q), 0);
    /* Until it has met the lock. It sleeps there for a while only: who misses that finds it gone to another bank. */
    for (unsigned looks = 0; looks < PATIENCE; looks++) {
        if (tsi_load_seq(&arena->bank[0].lock.waiters) != 0 || atomic_load(&allocated)) break;
        (void)usleep(1000);
    }
    tsi_lock_give(&arena->bank[0].lock);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    REQUIRE(q != NULL);
    SlabClassStats c;
    slab_stats_class(a, kit_place(a, p).cls - 1, &c);
    REQUIRE_EQ(c.bitmap_alloc_attempts, 2);
    REQUIRE_EQ(c.bitmap_alloc_cas_retries, 1);
    REQUIRE_EQ(c.bitmap_alloc_cas_retries_by_label[1], 1);
    (void)kit_end(a, HERE, EPOCH_RELEASE);
}

static void hold_bank(void* lock) { tsi_lock_take(lock); }
static void give_bank(void* lock) { tsi_lock_give(lock); }

/* A thread that was looking, or in a bank, when its process forked is in none of them in the child. */
static void a_child_has_its_own_banks(void) {
    int status;
    void* p = slab_malloc_epoch(a, SIZE, HERE);
    tsi_store_relaxed(&arena->scan.looking, 1);
    kit_worker_run(&worker, hold_bank, &arena->bank[0].lock);
    pid_t child = fork();
    REQUIRE_NE(child, -1);
    if (child == 0) {
        windows(1, 1000);
        void* q = slab_malloc_epoch(a, SIZE, HERE);
        bool ok = tsi_load_relaxed(&arena->scan.spread) == 1 && q != NULL && slab_free_checked(a, p);
        EpochReceipt r;
        ok = ok && epoch_close_ex(a, HERE, EPOCH_RELEASE, &r) && r.objects_allocated == 2 && r.objects_released == 1;
        _exit(ok && r.slabs_deferred == 0 ? 0 : 1);
    }
    kit_worker_run(&worker, give_bank, &arena->bank[0].lock);
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE_EQ(status, 0);
    windows(1, 1000);
    scan_is(0, 0, 0);
    tsi_store_relaxed(&arena->scan.looking, 0);
    (void)kit_end(a, HERE, EPOCH_RELEASE);
}

typedef struct Text {
    char bytes[1 << 18];
    size_t n;
} Text;
static bool add_text(void* ctx, const char* bytes, size_t n) {
    Text* t = ctx;
    if (n >= sizeof t->bytes - t->n) return false;
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    t->bytes[t->n] = 0;
    return true;
}

static void the_controller_is_reported(void) {
    static Text t;
    windows(1, 500);
    windows(2, 200);
    t.n = 0;
    REQUIRE(slab_stats_json(a, add_text, &t));
    REQUIRE(strstr(t.bytes, "\"scan_mode\":1") != NULL);
    REQUIRE(strstr(t.bytes, "\"scan_adapt_checks\":3") != NULL);
    REQUIRE(strstr(t.bytes, "\"scan_adapt_switches\":1") != NULL);
}

/* A thread allocates in the bank of its number when spread, and all in one when not. */
static void threads_are_spread_over_banks(void) {
    void *p = slab_malloc_epoch(a, SIZE, HERE), *q;
    kit_worker_run(&worker, alloc_here, &q);
    REQUIRE_EQ(line_of(p), line_of(q));
    windows(1, 1000);
    void* r = slab_malloc_epoch(a, SIZE, HERE);
    kit_worker_run(&worker, alloc_here, &q);
    REQUIRE_NE(heap_of(r), heap_of(q));
    windows(APART, 0);
    kit_worker_run(&worker, alloc_here, &q);
    REQUIRE_EQ(heap_of(q), heap_of(p));
    EpochReceipt e = kit_end(a, HERE, EPOCH_RELEASE); /* of all banks */
    REQUIRE_EQ(e.objects_released, 5);
    REQUIRE_EQ(e.slabs_deferred, 0);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* ---- threads that stand still in a bank ---- */

static struct Stop {
    pthread_t owner;
    uint8_t* page; /* NULL = none */
    size_t bytes;
    uint64_t named;
    EpochReceipt receipt;
    void (*meanwhile)(void*);
    void* result;
    struct sigaction before[2]; /* a sanitizer has handlers of its own */
} stop;

static void on_fault(int sig, siginfo_t* info, void* context) {
    (void)context;
    uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)stop.page;
    if (stop.page == NULL || at >= stop.bytes || !pthread_equal(pthread_self(), stop.owner)) {
        (void)signal(sig, SIG_DFL); /* a fault nobody asked for: it comes again, and ends the program */
        return;
    }
    (void)mprotect(stop.page, stop.bytes, PROT_READ | PROT_WRITE);
    stop.page = NULL;
    stop.named = tsi_load_seq(&tsi_bank_binding(&arena->bank[0])->busy);
    kit_worker_run(&worker, stop.meanwhile, &stop.result);
}

/* The next call that reads what lies there stands still inside, while another thread does `meanwhile`. */
static void stop_at(const void* there, void (*meanwhile)(void*)) {
    memset(&stop, 0, sizeof stop);
    stop.owner = pthread_self();
    stop.meanwhile = meanwhile;
    stop.bytes = (size_t)sysconf(_SC_PAGESIZE);
    stop.page = (uint8_t*)((uintptr_t)there & ~(uintptr_t)(stop.bytes - 1));
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_fault;
    sa.sa_flags = SA_SIGINFO;
    REQUIRE_EQ(sigaction(SIGSEGV, &sa, &stop.before[0]), 0);
    REQUIRE_EQ(sigaction(SIGBUS, &sa, &stop.before[1]), 0);
    REQUIRE_EQ(mprotect(stop.page, stop.bytes, PROT_NONE), 0);
}
static void stopped(void) {
    REQUIRE_EQ(sigaction(SIGSEGV, &stop.before[0], NULL), 0);
    REQUIRE_EQ(sigaction(SIGBUS, &stop.before[1], NULL), 0);
    REQUIRE_NULL(stop.page);
    REQUIRE_NE(stop.named, 0);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_bank_binding(&arena->bank[0])->busy), 0);
    REQUIRE_NULL(tsi_tls.bank);
    REQUIRE(!tsi_lock_is_held(&arena->bank[0].lock));
    kit_check(a);
}

/* Others allocate in another bank, and go on there. */
static void a_stopped_thread_keeps_nobody_from_allocating(void) {
    void* p = slab_malloc_epoch(a, SIZE, HERE);
    stop_at(line_of(p), alloc_here);
    void* q = slab_malloc_epoch(a, SIZE, HERE);
    stopped();
    REQUIRE_EQ(heap_of(q), heap_of(p));
    REQUIRE(stop.result != NULL);
    REQUIRE_NE(heap_of(stop.result), heap_of(p));
    kit_worker_run(&worker, alloc_here, &stop.result);
    REQUIRE_NE(heap_of(stop.result), heap_of(p));
    REQUIRE_EQ(kit_end(a, HERE, EPOCH_DRAIN).objects_escaped, 4);
}

static void free_it(void* p) { slab_free(a, p); }
static void free_kept(void* unused) {
    (void)unused;
    static void* kept;
    if (kept == NULL) kept = slab_malloc_epoch(a, SIZE, HERE);
    free_it(kept);
    kept = NULL;
}
/* A free does not wait at all: it is another thread's. */
static void a_stopped_thread_keeps_nobody_from_freeing(void) {
    void* p = slab_malloc_epoch(a, SIZE, HERE);
    kit_worker_run(&worker, free_kept, NULL);
    stop_at(line_of(p), free_kept);
    void* q = slab_malloc_epoch(a, SIZE, HERE);
    stopped();
    REQUIRE(q != NULL);
    REQUIRE_EQ(kit_end(a, HERE, EPOCH_DRAIN).objects_escaped, 2);
}

static EpochCloseMode mode_of_stop;
static void close_here(void* unused) {
    (void)unused;
    (void)epoch_close_ex(a, HERE, mode_of_stop, &stop.receipt);
}
/* An end does without the bank then, as in owned mode: what the thread is inside of is left to it. */
static void an_end_beside(EpochCloseMode mode) {
    void* p = slab_malloc_epoch(a, SIZE, HERE);
    mode_of_stop = mode;
    stop_at(line_of(p), close_here);
    void* q = slab_malloc_epoch(a, SIZE, HERE);
    stopped();
    REQUIRE_EQ(stop.receipt.slabs_deferred, 1);
    REQUIRE(q == NULL || mode == EPOCH_DRAIN || slab_usable_size(a, q) == 0);
    if (mode == EPOCH_DRAIN) {
        REQUIRE(slab_free_checked(a, p));
        REQUIRE(q == NULL || slab_free_checked(a, q));
    }
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_EQ(kit_live(a), 0);
}
static void a_drain_leaves_it_to_the_stopped(void) { an_end_beside(EPOCH_DRAIN); }
static void a_release_leaves_it_to_the_stopped(void) { an_end_beside(EPOCH_RELEASE); }

/* A trim waits for the bank once, not in each epoch again. Who waits for long begins with a membarrier, and so does each
 * sweep beside others. */
static uint64_t waits;
static void trim(void* unused) {
    (void)unused;
    uint64_t before = fake_os.barriers - tsi_load_relaxed(&arena->barriers);
    slab_trim(a);
    waits = fake_os.barriers - tsi_load_relaxed(&arena->barriers) - before;
}
static void a_trim_waits_for_the_stopped_once(void) {
    enum { EPOCHS = 15 };
    for (EpochId id = 0; id < EPOCHS; id++) REQUIRE(slab_malloc_epoch(a, SIZE, id) != NULL);
    void* p = slab_malloc_epoch(a, SIZE, HERE);
    stop_at(line_of(p), trim);
    REQUIRE(slab_malloc_epoch(a, SIZE, HERE) != NULL);
    stopped();
    REQUIRE(!tsi_os.has_membarrier || waits == 1);
    slab_trim(a);
    REQUIRE_EQ(kit_end(a, HERE, EPOCH_RELEASE).interrupts, 0); /* who comes by later has the bank again */
}

/* ---- functions of the program ---- */

static bool is_outside_of_banks(void) {
    bool held = false;
    for (unsigned n = 0; n < TSI_SHARED_BANKS; n++) held |= tsi_lock_is_held(&arena->bank[n].lock);
    return tsi_tls.bank == NULL && !held;
}
static unsigned cleanups;
static void* of_cleanup;
static void clean_up(void* unused) {
    (void)unused;
    REQUIRE(is_outside_of_banks());
    REQUIRE((of_cleanup = slab_malloc_epoch(a, SIZE, HERE + 1)) != NULL);
    kit_worker_run(&worker, alloc_and_free_here, NULL); /* nor is another thread kept out */
    cleanups++;
}
/* The end was left to the thread that stood still; the cleanup runs as it leaves its bracket. */
static void cleanups_run_outside_of_banks(void) {
    cleanups = 0;
    mode_of_stop = EPOCH_RELEASE;
    void* p = slab_malloc_epoch(a, SIZE, HERE);
    REQUIRE(slab_epoch_on_end(a, HERE, clean_up, NULL));
    stop_at(line_of(p), close_here);
    (void)slab_malloc_epoch(a, SIZE, HERE);
    stopped();
    REQUIRE_EQ(cleanups, 1);
    REQUIRE(slab_free_checked(a, of_cleanup));
}

static unsigned misuses;
static void on_misuse(SlabAllocator* s, SlabMisuse what, const void* where, void* ctx) {
    (void)s, (void)where, (void)ctx;
    REQUIRE(is_outside_of_banks());
    misuses += what == SLAB_MISUSE_DOUBLE_FREE;
}
static void misuse_is_told_outside_of_banks(void) {
    misuses = 0;
    arena->options.misuse_fn = on_misuse;
    void* p = slab_malloc_epoch(a, SIZE, HERE);
    REQUIRE(slab_free_checked(a, p));
    REQUIRE(!slab_free_checked(a, p));
    REQUIRE_EQ(misuses, 1);
    REQUIRE(is_outside_of_banks());
    (void)kit_end(a, HERE, EPOCH_RELEASE);
}

/* A function of the program may use another allocator, which is then the one at hand: this one is not taken for it. */
static SlabAllocator* other;
static void use_other(void) {
    void* p = slab_malloc(other, SIZE);
    REQUIRE(slab_owns(other, p) && !slab_owns(a, p));
    slab_free(other, p);
}
static void on_misuse_elsewhere(SlabAllocator* s, SlabMisuse what, const void* where, void* ctx) {
    (void)s, (void)what, (void)where, (void)ctx;
    use_other();
}
static void another_allocator_is_used_meanwhile(void) {
    other = kit_create();
    arena->options.misuse_fn = on_misuse_elsewhere;
    void *p = slab_malloc_epoch(a, SIZE, HERE), *before = slab_malloc(other, SIZE);
    REQUIRE(slab_free_checked(a, p));
    REQUIRE(!slab_free_checked(a, p));
    use_other();
    REQUIRE(slab_free_checked(other, before));
    REQUIRE((p = slab_malloc_epoch(a, SIZE, HERE)) != NULL);
    REQUIRE(slab_owns(a, p));
    (void)kit_end(a, HERE, EPOCH_RELEASE);
    slab_allocator_free(other);
}

/* ---- who is waited for ---- */

/* Who holds the banks knows that nobody is inside of them: no membarrier, whoever has used them. */
static void ends_issue_no_barrier(void) {
    void* p;
    uint64_t asked = fake_os.barriers;
    REQUIRE(slab_malloc_epoch(a, SIZE, HERE) != NULL);
    kit_worker_run(&worker, alloc_here, &p);
    windows(1, 1000);
    REQUIRE(slab_malloc_epoch(a, SIZE, HERE) != NULL);
    kit_worker_run(&worker, alloc_here, &p);
    slab_trim(a);
    EpochReceipt r = kit_end(a, HERE, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, 4);
    REQUIRE_EQ(r.interrupts, 0);
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(tsi_load_relaxed(&arena->barriers), 0);
    REQUIRE_EQ(fake_os.barriers, asked);
}

/* ---- lines ---- */

/* Used up, freed by others, and used again without a slab more. */
static void lines_come_back(void) {
    enum { N = 40 * SLOTS };
    static void* p[N];
    for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = slab_malloc_epoch(a, SIZE, HERE)) != NULL);
    uint64_t committed = 0;
    SlabClassStats before = class_of(SIZE);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned n = 0; n < N; n++) {
            slab_free(a, p[n]);
            kit_worker_run(&worker, alloc_and_free_here, NULL);
        }
        for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = slab_malloc_epoch(a, SIZE, HERE)) != NULL);
        if (round == 0) { /* one more, while too little was free in any line */
            committed = kit_committed_now(a);
            before = class_of(SIZE);
        }
        REQUIRE_EQ(kit_committed_now(a), committed);
        kit_check(a);
    }
    SlabClassStats after = class_of(SIZE);
    REQUIRE_EQ(after.new_slab_count, before.new_slab_count);
    REQUIRE_EQ(kit_end(a, HERE, EPOCH_DRAIN).objects_escaped, N);
}

/* Handles that run out retire the line, then the slab. */
static void spent_lines_hand_out_no_more(void) {
    SlabHandle h;
    void* p = slab_malloc(a, 1000);
    TsiPlace at = kit_place(a, p);
    TsiSlab* slab = tsi_slab(&arena->space, at.slab_id);
    slab_free(a, p);
    tsi_store_relaxed(&slab->gen_base, TSI_GEN_LIMIT - 2); /* as after some 2^30 reuses */
    for (unsigned n = 0; n < 200; n++) {                   /* goes on, elsewhere in the end */
        REQUIRE((p = alloc_obj(a, 1000, &h)) != NULL);
        REQUIRE_EQ(slab_handle_ptr(a, h), p);
        REQUIRE(free_obj(a, h));
    }
    REQUIRE_NE(kit_place(a, p).slab_id, at.slab_id);
    REQUIRE_NE(tsi_load_relaxed(&tsi_line(&arena->space, at.line_id)->flags) & TSI_LINE_RETIRED, 0);
    kit_check(a);
    for (unsigned n = 0; n < 3 * SLOTS; n++) { /* not for plain objects either, nor after a trim */
        REQUIRE((p = slab_malloc(a, 1000)) != NULL);
        REQUIRE_NE(kit_place(a, p).line_id, at.line_id);
        if (n == SLOTS) slab_trim(a);
    }
    kit_check(a);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    REQUIRE_EQ(kit_refusals(a).retired_slabs, 1);
}

/* ---- trim ---- */

static void a_trim_keeps_what_lives(void) {
    void *p[4 * SLOTS], *q;
    kit_worker_run(&worker, alloc_here, &q);
    for (unsigned n = 0; n < 4 * SLOTS; n++) REQUIRE((p[n] = slab_malloc_epoch(a, SIZE, HERE)) != NULL);
    uint64_t full = kit_committed_now(a);
    for (unsigned n = SLOTS; n < 4 * SLOTS; n++) slab_free(a, p[n]);
    slab_trim(a);
    REQUIRE(kit_committed_now(a) < full);
    kit_check(a);
    REQUIRE(slab_usable_size(a, q) >= SIZE);
    for (unsigned n = SLOTS; n < 4 * SLOTS; n++) REQUIRE((p[n] = slab_malloc_epoch(a, SIZE, HERE)) != NULL);
    REQUIRE(kit_committed_now(a) <= full);
    EpochReceipt r = kit_end(a, HERE, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, 1 + 7 * SLOTS);
    REQUIRE_EQ(r.objects_freed, 3 * SLOTS);
    REQUIRE_EQ(r.objects_released, 1 + 4 * SLOTS);
}

#define TEST(fn) CHECK_CASE_WITH(fn, open_allocator, close_allocator)
static const CheckCase tests[] = {
    TEST(the_controller_spreads_and_gathers),
    TEST(the_controller_keeps_between),
    TEST(allocations_are_noted),
    TEST(waits_are_counted),
    TEST(a_child_has_its_own_banks),
    TEST(the_controller_is_reported),
    TEST(threads_are_spread_over_banks),
    TEST(a_stopped_thread_keeps_nobody_from_allocating),
    TEST(a_stopped_thread_keeps_nobody_from_freeing),
    TEST(a_drain_leaves_it_to_the_stopped),
    TEST(a_release_leaves_it_to_the_stopped),
    TEST(a_trim_waits_for_the_stopped_once),
    TEST(cleanups_run_outside_of_banks),
    TEST(misuse_is_told_outside_of_banks),
    TEST(another_allocator_is_used_meanwhile),
    TEST(ends_issue_no_barrier),
    TEST(lines_come_back),
    TEST(spent_lines_hand_out_no_more),
    TEST(a_trim_keeps_what_lives),
};

static void without_membarrier(void) { REQUIRE_EQ(kit_rerun("fenced"), 0); }

int main(int argc, char** argv) {
    const CheckCase systems[] = {CHECK_CASE(without_membarrier)};
    bool fenced = argc > 1 && strcmp(argv[1], "fenced") == 0;
    fake_os_install(0, false, fenced);
    int failed = CHECK_RUN(0, NULL, tests);
    if (fenced) return failed;
    return failed + CHECK_RUN(0, NULL, systems);
}
