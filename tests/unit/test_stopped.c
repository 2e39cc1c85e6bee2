/*
 * test_stopped.c - real calls that stand still inside their bracket while another thread closes epochs.
 *
 * A fast path names a line and then reads it. Here the line's page is unreadable when the call comes, so that it
 * faults just between the two. The handler makes the page readable, has the worker do what the test wants done, and
 * returns: the call goes on. The fault is synchronous, in code that holds no lock, so the handler may wait.
 *
 * What stands still names a line that is not, or no longer, its own heap's: of another heap of the same thread, of a
 * chunk that has another class by now, or none; or it holds a record that is given out again.
 */
#define KIT_RING_BY_CLASS
#include "fake_os.h"
#include "kit/one.h"

#include "state/bracket.h"
#include "mem/region.h"

#include <signal.h>
#include <sys/mman.h>

enum { SIZE = 1024, SLOTS = 16, SLAB = SLOTS * SIZE, TINY = 16, TINIES = 64 * 600, HERE = 5 };

static KitWorker worker;

static struct Stop {
    pthread_t owner;
    uint8_t* page; /* NULL = none */
    size_t bytes;
    void (*meanwhile)(void*);
    uint64_t named;             /* busy while the call stood still, 0 when it did not */
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
    stop.named = tsi_load_seq(&tsi_tls.binding->busy);
    kit_worker_run(&worker, stop.meanwhile, NULL);
}

/* The next call that reads the page of these words stands still while the worker does `meanwhile`. */
static void stop_at(const void* l, void (*meanwhile)(void*)) {
    stop.named = 0;
    stop.owner = pthread_self();
    stop.meanwhile = meanwhile;
    stop.bytes = (size_t)sysconf(_SC_PAGESIZE);
    stop.page = (uint8_t*)((uintptr_t)l & ~(uintptr_t)(stop.bytes - 1));
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_fault;
    sa.sa_flags = SA_SIGINFO;
    REQUIRE_EQ(sigaction(SIGSEGV, &sa, &stop.before[0]), 0);
    REQUIRE_EQ(sigaction(SIGBUS, &sa, &stop.before[1]), 0);
    REQUIRE_EQ(mprotect(stop.page, stop.bytes, PROT_NONE), 0);
}
/* It did, and named that. */
static void stopped_naming(uint64_t busy) {
    REQUIRE_EQ(sigaction(SIGSEGV, &stop.before[0], NULL), 0);
    REQUIRE_EQ(sigaction(SIGBUS, &stop.before[1], NULL), 0);
    REQUIRE_NULL(stop.page);
    REQUIRE_EQ(stop.named, busy);
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->busy), 0);
    kit_check(a);
}
static void stopped_at(TsiLine* l) { stopped_naming(tsi_busy_line(l)); }

static void open_allocator(void) {
    kit_worker_start(&worker);
    kit_open_cold();
}
static void close_allocator(void) {
    kit_worker_stop(&worker);
    kit_close();
}

static TsiLine* line_of(void* p) { return tsi_line(space, kit_place(a, p).line_id); }

/* ---- what the worker does ---- */

static EpochReceipt receipt;
static void* made[TINIES];

static void advance_and_release(void* arg) {
    (void)arg;
    EpochId old = epoch_current(a);
    epoch_advance(a);
    (void)epoch_close_ex(a, old, EPOCH_RELEASE, NULL);
}
static void release_here(void* arg) {
    (void)arg;
    (void)epoch_close_ex(a, HERE, EPOCH_RELEASE, &receipt);
}
static void make_tinies(void* arg) {
    (void)arg;
    for (unsigned n = 0; n < TINIES; n++) made[n] = slab_malloc_epoch(a, TINY, HERE);
}

/* Everything of epoch HERE has gone, and is counted. */
static void nothing_is_left_here(uint64_t allocated) {
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, HERE, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.objects_allocated, allocated);
    REQUIRE_EQ(r.objects_released, allocated);
    REQUIRE_EQ(r.slabs_deferred, 0);
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    REQUIRE_EQ(g.draining_phases, 0);
    kit_check(a);
}

/* The thread has a heap HERE. What it had in the current epoch is gone, but its ambient room still names the line
 * of the object that is returned. */
static void* leave_a_stale_room(size_t size, unsigned n) {
    void* p = NULL;
    REQUIRE(slab_malloc_epoch(a, 3000, HERE) != NULL);
    for (unsigned i = 0; i < n; i++) REQUIRE((p = slab_malloc(a, size)) != NULL);
    return kit_hide(p);
}

/* ---- a line of another heap of the thread ---- */

static void an_allocation_on_another_heaps_line(void) {
    void* p = leave_a_stale_room(SIZE, 1);
    TsiLine* l = line_of(p);
    kit_worker_run(&worker, advance_and_release, NULL);
    void* q = slab_malloc_epoch(a, SIZE, HERE); /* takes the same slab */
    REQUIRE_EQ(line_of(q), l);
    REQUIRE_EQ(kit_binding(a)->cur[kit_place(a, q).cls], l);
    stop_at(l, release_here);
    void* r = slab_malloc(a, SIZE);
    stopped_at(l);
    REQUIRE_EQ(receipt.slabs_deferred, 1); /* the line's slab was left to us ... */
    REQUIRE_EQ(receipt.objects_released, 1);
    REQUIRE(r != NULL);
    REQUIRE_EQ(slab_usable_size(a, q), 0);
    REQUIRE_EQ(kit_committed_now(a), SLAB); /* ... and has gone: this is r's */
    nothing_is_left_here(2);
    REQUIRE(slab_free_checked(a, r));
}

/* The same on the way of a free: by a pointer that ended with the epoch before. */
static void a_free_on_another_heaps_line(void) {
    void* p = leave_a_stale_room(SIZE, 1);
    TsiLine* l = line_of(p);
    kit_worker_run(&worker, advance_and_release, NULL);
    void* q = slab_malloc_epoch(a, SIZE, HERE);
    REQUIRE_EQ(line_of(q), l);
    stop_at(l, release_here);
    slab_free(a, p);
    stopped_at(l);
    REQUIRE_EQ(receipt.slabs_deferred, 1);
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_EQ(slab_usable_size(a, q), 0);
    nothing_is_left_here(2);
    REQUIRE_EQ(kit_refusals(a).stale_free, 1);
}

/* ---- a line that its chunk no longer has ---- */

static void an_allocation_on_a_line_of_another_class(size_t size, uint64_t bytes) {
    void* p = leave_a_stale_room(TINY, TINIES);
    TsiPlace at = kit_place(a, p);
    TsiLine* l = line_of(p);
    kit_worker_run(&worker, advance_and_release, NULL);
    void* q = slab_malloc_epoch(a, size, HERE); /* takes the chunk */
    TsiPlace now = kit_place(a, q);
    REQUIRE_EQ(tsi_line_chunk(now.line_id), tsi_line_chunk(at.line_id));
    REQUIRE_NE(now.cls, at.cls);
    REQUIRE((at.line_id & (TSI_CHUNK_LINES - 1)) >= tsi_chunk_slab_count(space, now.cls));
    REQUIRE_EQ(kit_binding(a)->cur[at.cls], l);
    REQUIRE(kit_committed_now(a) > bytes);
    stop_at(l, release_here);
    void* r = slab_malloc(a, TINY);
    stopped_at(l);
    REQUIRE_EQ(receipt.slabs_deferred, 0); /* the line is in no slab */
    REQUIRE_EQ(receipt.objects_released, 2);
    REQUIRE(r != NULL);
    nothing_is_left_here(2);
    REQUIRE(slab_free_checked(a, r));
}
static void an_allocation_where_slabs_are_fewer(void) { an_allocation_on_a_line_of_another_class(SIZE, SLAB); }
static void an_allocation_where_a_large_object_is(void) { an_allocation_on_a_line_of_another_class(300000, 300000); }

/* Another thread's object, which ends while it is freed, and with it the chunk's class. */
static void a_free_where_no_class_is(void) {
    kit_worker_run(&worker, make_tinies, NULL);
    void* p = made[TINIES - 1];
    REQUIRE(p != NULL);
    TsiLine* l = line_of(p);
    uint32_t chunk = tsi_line_chunk(kit_place(a, p).line_id);
    REQUIRE(slab_malloc(a, SIZE) != NULL); /* makes us known */
    stop_at(l, release_here);
    slab_free(a, p);
    stopped_at(l);
    REQUIRE_EQ(tsi_chunk_class(space, chunk), 0);
    REQUIRE_EQ(receipt.objects_released, TINIES);
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    nothing_is_left_here(TINIES);
    REQUIRE_EQ(kit_refusals(a).stale_free, 1);
}

/* ---- a resize whose epoch is left behind ---- */

static void advance_only(void* arg) {
    (void)arg;
    epoch_advance(a);
}

/* A block moves within its epoch, or, when the ring has just left that, into the present one: nobody asked for
 * an epoch, so none can be stale. Who names one is refused. Where brackets are fenced the call stands still in the slow
 * path, inside its bracket: it came before the advance. */
static void a_resize_beside_an_advance(void) {
    enum { SMALL = 512, LARGER = SIZE / 5 * 4 }; /* which with a quarter more is of that class */
    for (unsigned named = 0; named < 2; named++) {
        EpochId id = epoch_current(a), now = 0;
        uint8_t *p = slab_malloc(a, SMALL), *there = slab_malloc(a, SIZE);
        REQUIRE(p != NULL && there != NULL);
        memset(p, 0x5a, SMALL);
        TsiLine* l = line_of(there);
        TsiHeap* h = tsi_heap(tsi_arena(a), tsi_tag_index(kit_tag(a, there)));
        bool fenced = kit_binding(a)->live_word == TSI_FENCED;
        REQUIRE_NE(tsi_line_chunk(kit_place(a, p).line_id), tsi_line_chunk(kit_place(a, there).line_id));
        stop_at(l, advance_only);
        errno = 0;
        uint8_t* q = named ? slab_realloc_epoch(a, p, LARGER, id) : slab_realloc(a, p, LARGER);
        int error = errno;
        stopped_naming(fenced ? tsi_busy_all(h) : tsi_busy_line(l));
        bool refused = named && !fenced;
        REQUIRE_EQ(kit_refusals(a).closed_epoch, refused);
        if (refused) {
            REQUIRE_NULL(q);
            REQUIRE_EQ(error, ESTALE);
            REQUIRE_EQ(slab_usable_size(a, p), SMALL);
            q = p;
        } else {
            REQUIRE(q != NULL);
            REQUIRE_EQ(slab_usable_size(a, kit_hide(p)), 0);
            REQUIRE(slab_ptr_epoch(a, q, &now, NULL));
            REQUIRE_EQ(now, fenced ? id : epoch_current(a));
        }
        for (unsigned i = 0; i < SMALL; i++) REQUIRE_EQ(q[i], 0x5a);
        REQUIRE(slab_free_checked(a, q));
        REQUIRE(slab_free_checked(a, there));
    }
}

/* ---- a record that is used again meanwhile ---- */

static void* make_one(void* arg) {
    (void)arg;
    made[0] = slab_malloc_epoch(a, SIZE, HERE);
    return NULL;
}
static void make_another(void* arg) {
    (void)arg;
    made[1] = slab_malloc(a, SIZE);
}

/* An allocation adopts a heap without an owner while its epoch is released. As it lets go the epoch ends, and a cleanup
 * that allocates elsewhere is given the heap's record: the allocation must not take that for what it asked for. */
static void a_heap_born_again_elsewhere(void) {
    REQUIRE_NE(epoch_current(a), HERE);
    kit_on_thread(make_one, NULL);
    REQUIRE(slab_malloc_epoch(a, SIZE, HERE + 1) != NULL); /* makes us known */
    REQUIRE(slab_epoch_on_end(a, HERE, make_another, NULL));
    TsiHeap* h = tsi_heap(tsi_arena(a), tsi_tag_index(kit_tag(a, made[0])));
    made[1] = NULL;
    stop_at(line_of(made[0]), release_here);
    errno = 0;
    void* p = slab_malloc_epoch(a, SIZE, HERE);
    int error = errno;
    stopped_naming(tsi_busy_all(h));
    REQUIRE_NULL(p);
    REQUIRE_EQ(error, ESTALE);
    REQUIRE(made[1] != NULL);
    REQUIRE_EQ(tsi_heap(tsi_arena(a), tsi_tag_index(kit_tag(a, made[1]))), h);
    REQUIRE(slab_free_checked(a, made[1]));
    nothing_is_left_here(1);
}

static epoch_domain_t* domain;
static void make_it_anew(void* arg) {
    (void)arg;
    epoch_domain_destroy(domain);
    domain = epoch_domain_create(a);
}

/* The last exit has let go of the domain and is ending its epoch; its receipt is not the next domain's. */
static void a_domain_made_anew_while_it_ends(void) {
    EpochReceipt r;
    kit_worker_run(&worker, make_another, NULL); /* makes it known */
    domain = epoch_domain_create(a);
    epoch_domain_t* before = kit_hide(domain);
    epoch_domain_enter(domain);
    void* p = slab_malloc(a, SIZE);
    stop_at(tsi_region(space, kit_place(a, p).slab_id), make_it_anew);
    epoch_domain_exit(domain);
    stopped_naming(0);
    REQUIRE_EQ(domain, before);
    REQUIRE_EQ(slab_usable_size(a, p), 0);
    REQUIRE(!epoch_domain_receipt(domain, &r));
    epoch_domain_destroy(domain);
    REQUIRE(slab_free_checked(a, made[1]));
}

static SlabHandle asked;
static void ask_for_a_handle(void* p) {
    (void)p;
    asked = slab_ptr_handle(a, made[0]);
}

/* The owner is about to free by pointer in a line that has issued no handle, and another thread asks for the object's: that
 * handle ends with the object, although the free does not count. */
static void a_first_handle_beside_a_free(void) {
    void* p = made[0] = slab_malloc(a, SIZE);
    kit_worker_run(&worker, make_another, NULL); /* makes it known */
    asked = 0;
    stop_at(line_of(p), ask_for_a_handle);
    slab_free(a, p);
    stopped_at(line_of(p));
    REQUIRE_NULL(slab_handle_ptr(a, asked));
    void* q[2 * SLOTS] = {NULL};
    unsigned n = 0;
    for (; n < SLOTS; n++) q[n] = slab_malloc(a, SIZE); /* uses up the line */
    for (unsigned k = 0; k < SLOTS - 1; k++) slab_free(a, q[k]);
    for (n = 0; n < 2 * SLOTS && (n == 0 || q[n - 1] != p); n++) q[n] = slab_malloc(a, SIZE);
    REQUIRE_EQ(q[n - 1], p); /* the slot is in use again */
    REQUIRE_NULL(slab_handle_ptr(a, asked));
    REQUIRE(!free_obj(a, asked));
    REQUIRE(slab_free_checked(a, q[n - 1]));
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(an_allocation_on_another_heaps_line),
        TEST(a_free_on_another_heaps_line),
        TEST(an_allocation_where_slabs_are_fewer),
        TEST(an_allocation_where_a_large_object_is),
        TEST(a_free_where_no_class_is),
        TEST(a_resize_beside_an_advance),
        TEST(a_heap_born_again_elsewhere),
        TEST(a_domain_made_anew_while_it_ends),
        TEST(a_first_handle_beside_a_free),
    };
    fake_os_install(0, false, false);
    int failed = CHECK_RUN(argc, argv, tests);
    fake_os_install(0, false, true); /* without membarrier fast paths name lines, too, and never go on */
    return failed + CHECK_RUN(argc, argv, tests);
}
