/*
 * test_lent.c - heaps that a detach lends: who takes them, and what others do after each instruction of a detach, an
 * attach and the calls in between.
 *
 * The processor traps after each instruction between step() and stop(). At the one that is asked for, the handler has
 * another thread do something to the phase, and waits for it. Detach, attach and what is stepped here take no lock.
 */
#include "kit/one.h"
#include "kit/step.h"

#include "heap/heap.h"

enum { SIZE = 64 };

static KitWorker worker;
static epoch_domain_t* d;

static void open_allocator(void) {
    kit_worker_start(&worker);
    kit_open_cold();
}
static void open_warm(void) {
    kit_worker_start(&worker);
    kit_open_with(kit_options());
}
static void close_allocator(void) {
    kit_worker_stop(&worker);
    kit_close();
}

static TsiHeap* heap_of(EpochId id) {
    TsiInc* i = tsi_inc(&arena->phases, tsi_ref_index(tsi_phases_resolve(&arena->phases, id)));
    REQUIRE_EQ(tsi_load_relaxed(&i->heap_count), 1);
    return tsi_heap(arena, i->heaps - 1);
}
static unsigned state_of(TsiHeap* h) { return tsi_heap_state(tsi_load_seq(&h->word)); }
static uint64_t barriers(void) { return tsi_load_relaxed(&arena->barriers); }

static void begin_with(unsigned n) {
    REQUIRE((d = epoch_domain_begin(a, "lent")) != NULL);
    for (unsigned i = 0; i < n; i++) REQUIRE(slab_malloc(a, SIZE) != NULL);
}

static void the_thread_takes_it_back(void) {
    begin_with(3);
    TsiHeap* h = heap_of(d->epoch_id);
    uint64_t slow = tsi_load_relaxed(&h->slow), took = tsi_load_relaxed(&arena->tickets);
    for (unsigned i = 0; i < 10; i++) {
        REQUIRE(epoch_domain_detach(d));
        REQUIRE_EQ(state_of(h), TSI_HEAP_LENT);
        kit_check(a);
        REQUIRE(epoch_domain_attach(d));
        REQUIRE_EQ(state_of(h), TSI_HEAP_LIVE);
        REQUIRE(slab_malloc(a, SIZE) != NULL);
    }
    REQUIRE_EQ(tsi_load_relaxed(&h->slow), slow);
    REQUIRE(epoch_domain_detach(d));
    REQUIRE(epoch_domain_malloc(d, SIZE) != NULL); /* by the domain, without a scope */
    REQUIRE_EQ(state_of(h), TSI_HEAP_LIVE);
    REQUIRE(epoch_domain_attach(d));
    EpochReceipt r;
    REQUIRE(epoch_domain_end_ex(d, &r));
    REQUIRE_EQ(r.objects_released, 14);
    REQUIRE_EQ(tsi_load_relaxed(&arena->tickets), took); /* a straight end, without a sweep */
}

/* Phases after the first have a heap that waited. */
static void heaps_that_waited(void) {
    for (unsigned i = 0; i < 3; i++) the_thread_takes_it_back();
}

/* By an id nothing leads to it but the look under the stripe. */
static void one_heap_by_every_way(void) {
    begin_with(3);
    TsiHeap* h = heap_of(d->epoch_id);
    REQUIRE(epoch_domain_detach(d));
    REQUIRE(slab_malloc_epoch(a, SIZE, d->epoch_id) != NULL);
    REQUIRE_EQ(heap_of(d->epoch_id), h);
    REQUIRE_EQ(state_of(h), TSI_HEAP_LIVE);
    REQUIRE(epoch_domain_attach(d));
    REQUIRE(epoch_domain_end(d));
}

static void* take_there(void* unused) {
    REQUIRE(epoch_domain_malloc(d, SIZE) != NULL);
    return unused;
}

/* A thread that has left a heap there; ours is lent, and is taken before that one. */
static void ones_own_first(void) {
    begin_with(3);
    TsiHeap* h = heap_of(d->epoch_id);
    kit_on_thread(take_there, NULL);
    REQUIRE(epoch_domain_detach(d));
    REQUIRE_EQ(state_of(h), TSI_HEAP_LENT);
    REQUIRE(slab_malloc_epoch(a, SIZE, d->epoch_id) != NULL);
    REQUIRE_EQ(state_of(h), TSI_HEAP_LIVE);
    REQUIRE(epoch_domain_attach(d));
    EpochReceipt r;
    REQUIRE(epoch_domain_end_ex(d, &r));
    REQUIRE_EQ(r.objects_released, 5);
}

static void attach_and_take(void* p) {
    REQUIRE(epoch_domain_attach(d));
    *(void**)p = slab_malloc(a, SIZE);
    REQUIRE(epoch_domain_detach(d));
}

/* From thread to thread, without a membarrier, a second heap or a room. */
static void another_thread_takes_it(void) {
    uint64_t before = barriers();
    begin_with(3);
    TsiHeap* h = heap_of(d->epoch_id);
    REQUIRE(epoch_domain_detach(d));
    for (unsigned i = 0; i < 5; i++) {
        void* p = NULL;
        kit_worker_run(&worker, attach_and_take, &p);
        REQUIRE(p != NULL);
        REQUIRE_EQ(heap_of(d->epoch_id), h);
        REQUIRE_EQ(state_of(h), TSI_HEAP_LENT);
        REQUIRE(epoch_domain_attach(d));
        REQUIRE(slab_malloc(a, SIZE) != NULL);
        REQUIRE_EQ(heap_of(d->epoch_id), h);
        REQUIRE_NULL(h->room);
        REQUIRE(epoch_domain_detach(d));
    }
    REQUIRE_EQ(barriers(), before);
    EpochReceipt r = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, 13);
    REQUIRE_EQ(r.interrupts, 0);
    REQUIRE_EQ(barriers(), before);
    REQUIRE(epoch_domain_attach(d));
    REQUIRE_NULL(slab_malloc(a, SIZE));
    REQUIRE(epoch_domain_end(d));
}

static void free_it(void* p) { REQUIRE(slab_free_checked(a, p)); }

/* Frees of a lent heap's objects, by its lender and by others; a region that they empty goes, as of any heap that
 * nobody owns. */
static void late_frees(void) {
    void* p[4];
    REQUIRE((d = epoch_domain_begin(a, "lent")) != NULL);
    for (unsigned i = 0; i < 4; i++) REQUIRE((p[i] = slab_malloc(a, SIZE)) != NULL);
    TsiHeap* h = heap_of(d->epoch_id);
    REQUIRE(epoch_domain_detach(d));
    free_it(p[0]);
    REQUIRE(!slab_free_checked(a, p[0]));
    kit_worker_run(&worker, free_it, p[1]);
    REQUIRE_EQ(state_of(h), TSI_HEAP_LENT);
    REQUIRE(epoch_domain_attach(d));
    free_it(p[2]);
    REQUIRE(epoch_domain_detach(d));
    kit_worker_run(&worker, free_it, p[3]);
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE(epoch_domain_attach(d));
    REQUIRE(slab_malloc(a, SIZE) != NULL);
    EpochReceipt r;
    REQUIRE(epoch_domain_end_ex(d, &r));
    REQUIRE_EQ(r.objects_freed, 4);
    REQUIRE_EQ(r.objects_released, 1);
}

/* A heap with a room is nobody's after a detach: its lines wait for tokens. */
static void a_room_is_not_lent(void) {
    begin_with(1);
    REQUIRE(slab_malloc(a, 5000) != NULL);
    TsiHeap* h = heap_of(d->epoch_id);
    REQUIRE(epoch_domain_detach(d));
    REQUIRE_EQ(state_of(h), TSI_HEAP_DETACHED);
    REQUIRE(epoch_domain_attach(d));
    REQUIRE(epoch_domain_end(d));
}

static void trims_find_it(void) {
    begin_with(3);
    TsiHeap* h = heap_of(d->epoch_id);
    REQUIRE(epoch_domain_detach(d));
    slab_trim(a);
    REQUIRE_EQ(state_of(h), TSI_HEAP_DETACHED);
    REQUIRE(epoch_domain_attach(d));
    REQUIRE(slab_malloc(a, SIZE) != NULL);
    REQUIRE_EQ(heap_of(d->epoch_id), h);
    EpochReceipt r;
    REQUIRE(epoch_domain_end_ex(d, &r));
    REQUIRE_EQ(r.objects_released, 4);
}

static void* lend_and_exit(void* unused) {
    begin_with(3);
    REQUIRE(epoch_domain_detach(d));
    return unused;
}

static void a_thread_exits(void) {
    kit_on_thread(lend_and_exit, NULL);
    kit_check(a);
    REQUIRE(epoch_domain_attach(d));
    REQUIRE(slab_malloc(a, SIZE) != NULL);
    REQUIRE(heap_of(d->epoch_id) != NULL);
    REQUIRE(epoch_domain_detach(d));
    kit_on_thread(lend_and_exit, NULL); /* a phase more; its thread has the binding of the one before */
    slab_trim(a);
    REQUIRE(epoch_domain_attach(d));
    REQUIRE(epoch_domain_end(d));
}

static int in_child(void) {
    REQUIRE(epoch_domain_attach(d));
    REQUIRE(slab_malloc(a, SIZE) != NULL);
    EpochReceipt r;
    REQUIRE(epoch_domain_end_ex(d, &r));
    REQUIRE_EQ(r.objects_released, 4);
    kit_check(a);
    return 0;
}

static void a_child_has_it(void) {
    begin_with(3);
    REQUIRE(epoch_domain_detach(d));
    int status = -1;
    pid_t child = fork();
    REQUIRE_NE(child, -1);
    if (child == 0) {
        (void)alarm(300);
        _exit(in_child());
    }
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    REQUIRE(epoch_domain_attach(d));
    REQUIRE(epoch_domain_end(d));
}

/* ---- after each instruction ---- */

typedef enum Deed { TRIM, CLOSE, TAKE, DEEDS } Deed;

static struct sigaction before;
static struct Stepped {
    unsigned at, steps; /* instruction at which the other thread does its deed; steps so far */
    Deed deed;
    bool done;
    unsigned theirs; /* objects of the other thread's */
    uint64_t released;
} stepped;

static void do_deed(void* unused) {
    (void)unused;
    EpochReceipt r = {0};
    if (stepped.deed == TRIM) slab_trim(a);
    else if (stepped.deed == TAKE) stepped.theirs += epoch_domain_malloc(d, SIZE) != NULL;
    else if (epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r)) stepped.released = r.objects_released;
    stepped.done = true;
}
static void on_step(int sig) {
    (void)sig;
    if (stepped.steps++ == stepped.at) kit_worker_run(&worker, do_deed, NULL);
}

/* An event: attached, an object made and one freed, detached. Returns how many it has made. */
static unsigned event(void* old, unsigned* freed) {
    unsigned made = 0;
    kit_trap(true);
    bool in = epoch_domain_attach(d);
    void* p = slab_malloc(a, SIZE);
    bool gone = slab_free_checked(a, old);
    bool out = epoch_domain_detach(d);
    kit_trap(false);
    REQUIRE(in && out);
    made += p != NULL;
    *freed += gone;
    return made;
}

static SlabLabelStats label_now(void) {
    static SlabLabelStats all[8];
    size_t n = slab_stats_labels(a, all, 8);
    for (size_t i = 0; i < n && i < 8; i++)
        if (strcmp(all[i].label, "lent") == 0) return all[i];
    return (SlabLabelStats){0};
}

/* Returns true if the event was over before the deed. */
static bool step_once(Deed deed, unsigned at) {
    SlabLabelStats then = label_now();
    stepped = (struct Stepped){.at = at, .deed = deed};
    void* old;
    REQUIRE((d = epoch_domain_begin(a, "lent")) != NULL);
    REQUIRE((old = slab_malloc(a, SIZE)) != NULL);
    REQUIRE(slab_malloc(a, SIZE) != NULL);
    REQUIRE(epoch_domain_detach(d));
    unsigned freed = 0, made = 2 + event(old, &freed);
    made += stepped.theirs;
    REQUIRE(epoch_domain_attach(d));
    REQUIRE(epoch_domain_end(d));
    SlabLabelStats now = label_now();
    REQUIRE_EQ(now.objects_allocated - then.objects_allocated, made);
    REQUIRE_EQ(now.objects_freed - then.objects_freed, freed);
    REQUIRE_EQ(now.objects_released - then.objects_released, made - freed);
    REQUIRE_EQ(now.live_objects, 0);
    REQUIRE_EQ(now.phases_open, 0);
    if (deed != CLOSE) REQUIRE_EQ(freed, 1);
    kit_check(a);
    return !stepped.done;
}

static void after_each_instruction(void) {
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_step;
    REQUIRE_EQ(sigaction(SIGTRAP, &sa, &before), 0);
    for (Deed deed = 0; deed < DEEDS; deed++) {
        unsigned stride = kit_stride(3), at = kit_first(stride, deed);
        while (!step_once(deed, at) && CAN_STEP) at += stride;
        if (CAN_STEP) REQUIRE_BETWEEN(at, 200, 20000);
    }
    REQUIRE_EQ(sigaction(SIGTRAP, &before, NULL), 0);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(the_thread_takes_it_back),
        TEST(one_heap_by_every_way),
        TEST(ones_own_first),
        TEST(another_thread_takes_it),
        TEST(late_frees),
        TEST(a_room_is_not_lent),
        TEST(trims_find_it),
        TEST(a_thread_exits),
        TEST(a_child_has_it),
        TEST(after_each_instruction),
        CHECK_CASE_WITH(heaps_that_waited, open_warm, close_allocator),
    };
    if (!CAN_STEP) puts("no trap after each instruction here: the calls are made, and others act before them");
    return CHECK_RUN(argc, argv, tests);
}
