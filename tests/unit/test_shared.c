/*
 * test_shared.c - shared mode: the controller, ends beside claims that stand still, who is waited for, lines that come back.
 *
 * A claim stands still as calls do in test_stopped: the page of the line it is about to read is unreadable, and the
 * handler of the fault lets another thread begin its close before it makes the page readable again. That thread waits, so
 * here the handler does not wait for its end, but until the heap is HELD.
 */
#define UNIT_RING_BY_CLASS
#include "fake_os.h"
#include "unit.h"

#include "heap/shared.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

enum { SIZE = 1024, SLOTS = 16, HERE = 5, WINDOW = 1 << 18, APART = 50 };

static SlabAllocator* a;
static TsiArena* arena;
static UnitWorker worker;

static int open_allocator(void** state) {
    (void)state;
    SlabOptions o = unit_options();
    o.shared = 1;
    o.warm_bytes = UINT64_MAX;
    a = slab_allocator_create_with(&o);
    assert_non_null(a);
    arena = tsi_arena(a);
    unit_worker_start(&worker);
    return 0;
}
static int close_allocator(void** state) {
    (void)state;
    unit_worker_stop(&worker);
    unit_check(a);
    slab_allocator_free(a);
    return 0;
}

static TsiHeap* heap_of(const void* p) { return tsi_heap(arena, tsi_tag_index(unit_tag(a, p))); }
static TsiLine* line_of(const void* p) { return tsi_line(&arena->space, unit_place(a, p).line_id); }
static SlabClassStats class_of(size_t bytes) {
    void* p = slab_malloc(a, bytes);
    SlabClassStats c;
    slab_stats_class(a, unit_place(a, p).cls - 1, &c);
    slab_free(a, p);
    return c;
}
static EpochId next_id = HERE;
static void alloc_here(void* out) { *(void**)out = slab_malloc_epoch(a, SIZE, HERE); }
static void alloc_next(void* out) { *(void**)out = slab_malloc_epoch(a, SIZE, next_id); }
static void alloc_and_free_here(void* unused) {
    (void)unused;
    slab_free(a, slab_malloc_epoch(a, SIZE, HERE));
}

/* ---- the controller ---- */

/* One window of a class, with so many of 1000 allocations repeated once. */
static void windows(unsigned cls, unsigned n, unsigned repeated) {
    for (; n != 0; n--) tsi_scan_note(arena, cls, WINDOW, (uint64_t)WINDOW * repeated / 1000);
}
static void scan_is(unsigned cls, uint32_t mode, uint32_t checks, uint32_t switches) {
    SlabClassStats c;
    slab_stats_class(a, cls - 1, &c);
    assert_int_equal(c.scan_mode, mode);
    assert_int_equal(c.scan_adapt_checks, checks);
    assert_int_equal(c.scan_adapt_switches, switches);
}

static void the_controller_spreads_and_gathers(void** state) {
    (void)state;
    enum { CLS = 7 };
    scan_is(CLS, 0, 0, 0);
    tsi_scan_note(arena, CLS, WINDOW - 1, WINDOW);
    scan_is(CLS, 0, 0, 0); /* the window is not full */
    tsi_scan_note(arena, CLS, 1, 0);
    scan_is(CLS, 1, 1, 1);
    windows(CLS, APART - 1, 0); /* below, and too early */
    scan_is(CLS, 1, APART, 1);
    windows(CLS, 1, 0);
    scan_is(CLS, 0, APART + 1, 2);
    windows(CLS, APART - 1, 1000); /* above, and too early again */
    scan_is(CLS, 0, 2 * APART, 2);
    windows(CLS, 1, 1000);
    scan_is(CLS, 1, 2 * APART + 1, 3);
    scan_is(CLS + 1, 0, 0, 0); /* each class for itself */
}

static void the_controller_keeps_between(void** state) {
    (void)state;
    enum { CLS = 3 };
    windows(CLS, 3, 300); /* not above */
    scan_is(CLS, 0, 3, 0);
    windows(CLS, 1, 301);
    scan_is(CLS, 1, 4, 1);
    windows(CLS, APART + 10, 200);
    windows(CLS, 1, 101); /* not below */
    scan_is(CLS, 1, APART + 15, 1);
    windows(CLS, 1, 99);
    scan_is(CLS, 0, APART + 16, 2);
    windows(CLS, APART + 10, 200);
    scan_is(CLS, 0, 2 * APART + 26, 2);
}

/* What real allocations tell it, in parts of the window. */
static void allocations_are_noted(void** state) {
    (void)state;
    void* p = slab_malloc(a, SIZE);
    unsigned cls = unit_place(a, p).cls;
    slab_free(a, p);
    for (unsigned n = 1; n < 1023; n++) slab_free(a, slab_malloc(a, SIZE));
    assert_int_equal(tsi_load_relaxed(&arena->scan[cls].allocations), 0);
    slab_free(a, slab_malloc(a, SIZE));
    assert_int_equal(tsi_load_relaxed(&arena->scan[cls].allocations), 1024);
    assert_int_equal(tsi_load_relaxed(&arena->scan[cls].retries), 0);
}

/* A thread that was looking when its process forked looks no more in the child. */
static void a_child_has_its_own_controller(void** state) {
    (void)state;
    enum { CLS = 7 };
    int status;
    tsi_store_relaxed(&arena->scan[CLS].looking, 1);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0) {
        windows(CLS, 1, 1000);
        _exit(tsi_load_relaxed(&arena->scan[CLS].spread) == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    windows(CLS, 1, 1000);
    scan_is(CLS, 0, 0, 0);
    tsi_store_relaxed(&arena->scan[CLS].looking, 0);
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

static void the_controller_is_reported(void** state) {
    (void)state;
    static Text t;
    unsigned cls = unit_place(a, slab_malloc(a, SIZE)).cls;
    windows(cls, 1, 500);
    windows(cls, 2, 200);
    t.n = 0;
    assert_true(slab_stats_json(a, add_text, &t));
    assert_non_null(strstr(t.bytes, "\"scan_mode\":1"));
    assert_non_null(strstr(t.bytes, "\"scan_adapt_checks\":3"));
    assert_non_null(strstr(t.bytes, "\"scan_adapt_switches\":1"));
}

/* A thread takes from the lane of its number when spread, and all from one when not. */
static void threads_are_spread_over_lines(void** state) {
    (void)state;
    void *p = slab_malloc_epoch(a, SIZE, HERE), *q;
    unsigned cls = unit_place(a, p).cls;
    unit_worker_run(&worker, alloc_here, &q);
    assert_ptr_equal(line_of(p), line_of(q));
    windows(cls, 1, 1000);
    slab_free(a, p);
    slab_free(a, q);
    p = slab_malloc_epoch(a, SIZE, HERE);
    unit_worker_run(&worker, alloc_here, &q);
    assert_ptr_not_equal(line_of(p), line_of(q));
    windows(cls, APART, 0);
    slab_free(a, p);
    slab_free(a, q);
    /* The lines of the others are used before a slab is taken. */
    uint64_t committed = unit_committed(a);
    for (unsigned n = 0; n < 2 * SLOTS; n++) assert_non_null(slab_malloc_epoch(a, SIZE, HERE));
    assert_int_equal(unit_committed(a), committed);
    assert_int_equal(unit_end(a, HERE, EPOCH_RELEASE).objects_allocated, 4 + 2 * SLOTS);
}

/* ---- ends beside claims ---- */

static struct Stop {
    pthread_t owner, closer;
    uint8_t* page; /* NULL = none */
    size_t bytes;
    uint64_t named;
    TsiHeap* heap;
    EpochCloseMode mode;
    EpochReceipt receipt;
    _Atomic bool may_close, closed;
    bool was_closed; /* before the claim went on */
    struct sigaction before[2]; /* cmocka has handlers of its own, anew for each test */
} stop;

static void* close_beside(void* unused) {
    (void)unused;
    while (!atomic_load(&stop.may_close)) usleep(100);
    (void)epoch_close_ex(a, HERE, stop.mode, &stop.receipt);
    atomic_store(&stop.closed, true);
    return NULL;
}

static void on_fault(int sig, siginfo_t* info, void* context) {
    (void)context;
    uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)stop.page;
    if (stop.page == NULL || at >= stop.bytes || !pthread_equal(pthread_self(), stop.owner)) {
        (void)signal(sig, SIG_DFL); /* a fault nobody asked for: it comes again, and ends the program */
        return;
    }
    (void)mprotect(stop.page, stop.bytes, PROT_READ | PROT_WRITE);
    stop.page = NULL;
    stop.named = tsi_load_seq(&unit_binding(a)->busy);
    atomic_store(&stop.may_close, true);
    uint64_t held = 0;
    for (unsigned looks = 0; held == 0 && !atomic_load(&stop.closed); looks++) {
        held = tsi_load_seq(&stop.heap->word) == TSI_HELD_WORD;
        sched_yield();
    }
    for (unsigned looks = 0; looks < 200 && !atomic_load(&stop.closed); looks++) usleep(100); /* it would have gone on by now */
    stop.was_closed = atomic_load(&stop.closed);
}

/* The next call that reads what lies there stands still inside, while another thread closes HERE. */
static void stop_at(const void* there, TsiHeap* h, EpochCloseMode mode) {
    memset(&stop, 0, sizeof stop);
    stop.owner = pthread_self();
    stop.mode = mode;
    stop.heap = h;
    stop.bytes = (size_t)sysconf(_SC_PAGESIZE);
    stop.page = (uint8_t*)((uintptr_t)there & ~(uintptr_t)(stop.bytes - 1));
    assert_int_equal(pthread_create(&stop.closer, NULL, close_beside, NULL), 0);
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_fault;
    sa.sa_flags = SA_SIGINFO;
    assert_int_equal(sigaction(SIGSEGV, &sa, &stop.before[0]), 0);
    assert_int_equal(sigaction(SIGBUS, &sa, &stop.before[1]), 0);
    assert_int_equal(mprotect(stop.page, stop.bytes, PROT_NONE), 0);
}
static void stopped(void) {
    assert_int_equal(sigaction(SIGSEGV, &stop.before[0], NULL), 0);
    assert_int_equal(sigaction(SIGBUS, &stop.before[1], NULL), 0);
    assert_null(stop.page);
    assert_int_equal(pthread_join(stop.closer, NULL), 0);
    assert_int_equal(tsi_load_relaxed(&unit_binding(a)->busy), 0);
    unit_balanced(&stop.receipt);
    unit_check(a);
}

static void an_end_waits_for_a_claim(EpochCloseMode mode) {
    void *p = slab_malloc_epoch(a, SIZE, HERE), *q;
    unit_worker_run(&worker, alloc_here, &q);
    slab_free(a, q);
    TsiHeap* h = heap_of(p);
    stop_at(line_of(p), h, mode);
    void* r = slab_malloc_epoch(a, SIZE, HERE);
    stopped();
    assert_int_equal(stop.named, tsi_busy_all(h));
    assert_false(stop.was_closed);
    assert_non_null(r); /* it was claimed before the end, which counts it */
    assert_int_equal(stop.receipt.objects_allocated, 3);
    assert_int_equal(stop.receipt.objects_freed, 1);
    assert_int_equal(stop.receipt.slabs_deferred, 0);
    if (mode == EPOCH_RELEASE) {
        assert_int_equal(stop.receipt.objects_released, 2);
        assert_int_equal(slab_usable_size(a, r), 0);
        assert_int_equal(unit_committed(a), 0);
    } else {
        assert_int_equal(stop.receipt.objects_escaped, 2);
        assert_true(slab_free_checked(a, r));
        assert_true(slab_free_checked(a, p));
        assert_int_equal(unit_committed(a), 0);
    }
}
static void a_drain_waits_for_a_claim(void** state) {
    (void)state;
    an_end_waits_for_a_claim(EPOCH_DRAIN);
}
static void a_release_waits_for_a_claim(void** state) {
    (void)state;
    an_end_waits_for_a_claim(EPOCH_RELEASE);
}

/* Who comes by while it is HELD does not name it, however often it looks: so an end is not kept from going on. */
static void* alloc_one(void* out) {
    alloc_here(out);
    return NULL;
}
static uint64_t locks_of(unsigned cls) {
    return tsi_load_relaxed(&arena->space.lock_fast[cls][0]) + tsi_load_relaxed(&arena->space.lock_contended[cls][0]);
}
static void a_held_heap_is_not_named(void** state) {
    (void)state;
    void *p = slab_malloc_epoch(a, SIZE, HERE), *q = NULL;
    unit_worker_run(&worker, alloc_here, &q);
    TsiHeap* h = heap_of(p);
    tsi_store_seq(&h->word, TSI_HELD_WORD);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, alloc_one, &q), 0);
    unsigned named = 0, cls = unit_place(a, p).cls;
    uint64_t before = locks_of(cls);
    while (locks_of(cls) - before < 3000) { /* so often it has come by */
        for (uint32_t n = 0; n < tsi_table_used(&arena->bindings); n++)
            named += tsi_load_seq(&((TsiBinding*)tsi_table_at(&arena->bindings, n))->busy) != 0;
    }
    tsi_store_seq(&h->word, TSI_SHARED_WORD);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(named, 0);
    assert_non_null(q);
    assert_int_equal(unit_end(a, HERE, EPOCH_DRAIN).objects_escaped, 3);
}

/* An end that comes by while a trim holds the heap: its receipt has what lives there, and defers nothing. */
static void ends_while_held(EpochCloseMode mode) {
    void* p[3];
    for (unsigned n = 0; n < 3; n++) assert_non_null(p[n] = slab_malloc_epoch(a, SIZE, HERE));
    slab_free(a, p[0]);
    TsiHeap* h = heap_of(p[1]);
    memset(&stop, 0, sizeof stop);
    stop.mode = mode;
    tsi_store_seq(&h->word, TSI_HELD_WORD);
    assert_int_equal(pthread_create(&stop.closer, NULL, close_beside, NULL), 0);
    atomic_store(&stop.may_close, true);
    for (unsigned looks = 0; looks < 200 && !atomic_load(&stop.closed); looks++) usleep(100); /* it would have gone on by now */
    bool was_closed = atomic_load(&stop.closed);
    tsi_store_seq(&h->word, TSI_SHARED_WORD);
    assert_int_equal(pthread_join(stop.closer, NULL), 0);
    assert_false(was_closed);
    unit_balanced(&stop.receipt);
    assert_int_equal(stop.receipt.slabs_deferred, 0);
    assert_int_equal(stop.receipt.objects_allocated, 3);
    assert_int_equal(stop.receipt.objects_freed, 1);
    assert_int_equal(mode == EPOCH_RELEASE ? stop.receipt.objects_released : stop.receipt.objects_escaped, 2);
    unit_check(a);
}
static void a_drain_waits_for_a_trim(void** state) {
    (void)state;
    ends_while_held(EPOCH_DRAIN);
}
static void a_release_waits_for_a_trim(void** state) {
    (void)state;
    ends_while_held(EPOCH_RELEASE);
}

static void* trim(void* done) {
    slab_trim(a);
    atomic_store((_Atomic bool*)done, true);
    return NULL;
}

/* A thread that is cancelled while it waits for a claim goes on: nobody else would give back what it holds. */
static void a_wait_is_no_cancellation_point(void** state) {
    (void)state;
    void *p = slab_malloc_epoch(a, SIZE, HERE), *q, *ended;
    unit_worker_run(&worker, alloc_here, &q);
    TsiHeap* h = heap_of(p);
    TsiBinding* b = unit_binding(a);
    _Atomic bool done = false;
    pthread_t t;
    tsi_store_seq(&b->busy, tsi_busy_all(h)); /* as if inside a claim */
    assert_int_equal(pthread_create(&t, NULL, trim, &done), 0);
    while (tsi_load_seq(&h->word) != TSI_HELD_WORD) usleep(100);
    for (unsigned looks = 0; looks < 100; looks++) usleep(200); /* it sleeps by now */
    assert_int_equal(pthread_cancel(t), 0);
    for (unsigned looks = 0; looks < 100; looks++) usleep(200);
    tsi_store_seq(&b->busy, 0);
    assert_int_equal(pthread_join(t, &ended), 0);
    assert_true(atomic_load(&done));
    assert_int_equal(tsi_load_seq(&h->word), TSI_SHARED_WORD);
}

/* ---- who is waited for ---- */

static uint64_t barriers(void) { return tsi_load_relaxed(&arena->barriers); }

static void the_only_user_waits_for_nobody(void** state) {
    (void)state;
    uint64_t asked = fake_os.barriers;
    assert_non_null(slab_malloc_epoch(a, SIZE, HERE));
    slab_trim(a);
    (void)unit_end(a, HERE, EPOCH_RELEASE);
    assert_int_equal(barriers(), 0);
    assert_int_equal(fake_os.barriers, asked);
    void* p;
    next_id = HERE + 1;
    assert_non_null(slab_malloc_epoch(a, SIZE, next_id));
    unit_worker_run(&worker, alloc_next, &p);
    (void)unit_end(a, next_id, EPOCH_RELEASE);
    assert_int_equal(barriers(), 1);
    assert_int_equal(fake_os.barriers, asked + tsi_os.has_membarrier);
    next_id = HERE + 2;
    unit_worker_run(&worker, alloc_next, &p); /* of which we are no user */
    (void)unit_end(a, next_id, EPOCH_RELEASE);
    assert_int_equal(barriers(), 2);
}

typedef struct Theirs {
    epoch_domain_t* domain;
    void* p;
} Theirs;
static void alloc_theirs(void* arg) {
    Theirs* t = arg;
    t->p = epoch_domain_malloc(t->domain, SIZE);
}

/* A record that serves incarnation after incarnation, while another thread remembers it from an earlier one. */
static void an_end_knows_of_users_from_before(void** state) {
    (void)state;
    unsigned same = 0;
    TsiHeap* last = NULL;
    for (unsigned n = 1; n <= 100; n++) {
        Theirs theirs = {epoch_domain_create(a), NULL};
        assert_non_null(theirs.domain);
        TsiHeap* h = heap_of(epoch_domain_malloc(theirs.domain, SIZE));
        same += h == last;
        last = h;
        assert_false(h->many);
        unit_worker_run(&worker, alloc_theirs, &theirs);
        assert_ptr_equal(heap_of(theirs.p), h);
        assert_true(h->many);
        uint64_t before = barriers();
        epoch_domain_destroy(theirs.domain);
        assert_int_equal(barriers(), before + 1);
    }
    assert_true(same > 50); /* it was the same record */
}

/* ---- lines ---- */

/* Used up, freed by others, and used again without a slab more. */
static void lines_come_back(void** state) {
    (void)state;
    enum { N = 40 * SLOTS };
    static void* p[N];
    for (unsigned n = 0; n < N; n++) assert_non_null(p[n] = slab_malloc_epoch(a, SIZE, HERE));
    uint64_t committed = 0;
    SlabClassStats before = class_of(SIZE);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned n = 0; n < N; n++) {
            slab_free(a, p[n]);
            unit_worker_run(&worker, alloc_and_free_here, NULL);
        }
        for (unsigned n = 0; n < N; n++) assert_non_null(p[n] = slab_malloc_epoch(a, SIZE, HERE));
        if (round == 0) { /* one more, while too little was free in any line */
            committed = unit_committed(a);
            before = class_of(SIZE);
        }
        assert_int_equal(unit_committed(a), committed);
        unit_check(a);
    }
    SlabClassStats after = class_of(SIZE);
    assert_int_equal(after.new_slab_count, before.new_slab_count);
    assert_int_equal(unit_end(a, HERE, EPOCH_DRAIN).objects_escaped, N);
}

/* A slot freed where fewer are free than a line needs to come back is not lost either: the next one brings both. */
static void a_line_waits_for_its_threshold(void** state) {
    (void)state;
    void* p[2 * SLOTS];
    for (unsigned n = 0; n < 2 * SLOTS; n++) assert_non_null(p[n] = slab_malloc_epoch(a, SIZE, HERE));
    TsiLine* l = line_of(p[0]);
    unsigned threshold = arena->space.classes->c[unit_place(a, p[0]).cls].threshold;
    assert_true(threshold > 1);
    TsiLanes* lanes = heap_of(p[0])->lanes;
    unsigned cls = unit_place(a, p[0]).cls;
    assert_int_not_equal(tsi_load_seq(&l->remote[0]) & TSI_REMOTE_TOKEN, 0);
    SlabClassStats row;
    for (unsigned n = 0; n + 1 < threshold; n++) slab_free(a, p[n]);
    assert_int_equal(lanes->head[cls], 0);
    slab_stats_class(a, cls - 1, &row);
    assert_int_equal(row.list_move_partial_to_full, 1);
    assert_int_equal(row.list_move_full_to_partial, 0);
    slab_free(a, p[threshold - 1]);
    slab_stats_class(a, cls - 1, &row);
    assert_int_equal(row.list_move_full_to_partial, 1);
    assert_int_equal(lanes->head[cls], tsi_line_id(&arena->space, l) + 1);
    assert_int_equal(tsi_load_seq(&l->remote[0]) & TSI_REMOTE_TOKEN, 0);
    for (unsigned n = 0; n < threshold; n++) assert_ptr_equal(line_of(p[n] = slab_malloc_epoch(a, SIZE, HERE)), l);
    (void)unit_end(a, HERE, EPOCH_RELEASE);
}

/* A freer that has a line's token comes by while a trim walks, which has looked at the line before. */
static void* free_it(void* p) {
    slab_free(a, p);
    return NULL;
}
static void a_token_met_by_a_trim(void** state) {
    (void)state;
    void* p[2 * SLOTS];
    for (unsigned n = 0; n < 2 * SLOTS; n++) assert_non_null(p[n] = slab_malloc_epoch(a, SIZE, HERE));
    TsiPlace at = unit_place(a, p[0]);
    TsiHeap* h = heap_of(p[0]);
    TsiLine* l = line_of(p[0]);
    unsigned threshold = arena->space.classes->c[at.cls].threshold;
    for (unsigned n = 0; n + 1 < threshold; n++) slab_free(a, p[n]);
    TsiInc* i = tsi_heap_inc(arena, h);
    pthread_t t;
    tsi_inc_take(i);
    tsi_store_seq(&h->word, tsi_heap_word(TSI_BINDINGS_MAX, TSI_HEAP_SEIZED));
    assert_int_equal(pthread_create(&t, NULL, free_it, p[threshold - 1]), 0);
    for (unsigned looks = 0; looks < 100; looks++) usleep(200); /* it has the token, and stands where it stands */
    tsi_store_seq(&h->word, TSI_SHARED_WORD);
    tsi_inc_give(i);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(h->lanes->head[at.cls], at.line_id + 1);
    assert_int_not_equal(tsi_load_relaxed(&l->flags) & TSI_LINE_LISTED, 0);
    (void)unit_end(a, HERE, EPOCH_RELEASE);
}

/* Handles that run out retire the line, then the slab. */
static void spent_lines_hand_out_no_more(void** state) {
    (void)state;
    SlabHandle h;
    void* p = slab_malloc(a, 1000);
    TsiPlace at = unit_place(a, p);
    TsiSlab* slab = tsi_slab(&arena->space, at.slab_id);
    slab_free(a, p);
    tsi_store_relaxed(&slab->gen_base, TSI_GEN_LIMIT - 2); /* as after some 2^30 reuses */
    for (unsigned n = 0; n < 200; n++) { /* goes on, elsewhere in the end */
        assert_non_null(p = alloc_obj(a, 1000, &h));
        assert_ptr_equal(slab_handle_ptr(a, h), p);
        assert_true(free_obj(a, h));
    }
    assert_int_not_equal(unit_place(a, p).slab_id, at.slab_id);
    assert_int_not_equal(tsi_load_relaxed(&tsi_line(&arena->space, at.line_id)->flags) & TSI_LINE_RETIRED, 0);
    unit_check(a);
    for (unsigned n = 0; n < 3 * SLOTS; n++) { /* not for plain objects either, nor after a trim */
        assert_non_null(p = slab_malloc(a, 1000));
        assert_int_not_equal(unit_place(a, p).line_id, at.line_id);
        if (n == SLOTS) slab_trim(a);
    }
    unit_check(a);
    assert_true(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    assert_int_equal(unit_refusals(a).retired_slabs, 1);
}

/* ---- trim ---- */

static void a_trim_keeps_what_lives(void** state) {
    (void)state;
    void *p[4 * SLOTS], *q;
    unit_worker_run(&worker, alloc_here, &q);
    for (unsigned n = 0; n < 4 * SLOTS; n++) assert_non_null(p[n] = slab_malloc_epoch(a, SIZE, HERE));
    uint64_t full = unit_committed(a);
    for (unsigned n = SLOTS; n < 4 * SLOTS; n++) slab_free(a, p[n]);
    slab_trim(a);
    assert_true(unit_committed(a) < full);
    unit_check(a);
    assert_int_equal(tsi_load_relaxed(&heap_of(q)->word), TSI_SHARED_WORD);
    for (unsigned n = SLOTS; n < 4 * SLOTS; n++) assert_non_null(p[n] = slab_malloc_epoch(a, SIZE, HERE));
    assert_true(unit_committed(a) <= full);
    EpochReceipt r = unit_end(a, HERE, EPOCH_RELEASE);
    assert_int_equal(r.objects_allocated, 1 + 7 * SLOTS);
    assert_int_equal(r.objects_freed, 3 * SLOTS);
    assert_int_equal(r.objects_released, 1 + 4 * SLOTS);
}

/* Also what was too little for a line to come back. */
static void a_trim_lists_every_free_slot(void** state) {
    (void)state;
    void *p[2 * SLOTS], *q;
    for (unsigned n = 0; n < 2 * SLOTS; n++) assert_non_null(p[n] = slab_malloc_epoch(a, SIZE, HERE));
    slab_free(a, p[0]);
    slab_trim(a);
    assert_non_null(q = slab_malloc_epoch(a, SIZE, HERE));
    assert_ptr_equal(q, p[0]);
    (void)unit_end(a, HERE, EPOCH_RELEASE);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, open_allocator, close_allocator)
static const struct CMUnitTest tests[] = {
    TEST(the_controller_spreads_and_gathers), TEST(the_controller_keeps_between), TEST(allocations_are_noted),
    TEST(a_child_has_its_own_controller), TEST(the_controller_is_reported), TEST(threads_are_spread_over_lines), TEST(a_drain_waits_for_a_claim),
    TEST(a_release_waits_for_a_claim), TEST(a_held_heap_is_not_named),
    TEST(a_drain_waits_for_a_trim), TEST(a_release_waits_for_a_trim),
    TEST(a_wait_is_no_cancellation_point), TEST(the_only_user_waits_for_nobody),
    TEST(an_end_knows_of_users_from_before), TEST(lines_come_back), TEST(a_line_waits_for_its_threshold),
    TEST(a_token_met_by_a_trim), TEST(spent_lines_hand_out_no_more), TEST(a_trim_keeps_what_lives),
    TEST(a_trim_lists_every_free_slot),
};

static void without_membarrier(void** state) {
    (void)state;
    assert_int_equal(unit_rerun("fenced"), 0);
}

int main(int argc, char** argv) {
    const struct CMUnitTest systems[] = {cmocka_unit_test(without_membarrier)};
    bool fenced = argc > 1 && strcmp(argv[1], "fenced") == 0;
    fake_os_install(0, false, fenced);
    int failed = cmocka_run_group_tests_name(fenced ? "fenced" : "shared", tests, NULL, NULL);
    if (fenced) return failed;
    return failed + cmocka_run_group_tests_name("systems", systems, NULL, NULL);
}
