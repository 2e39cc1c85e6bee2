/*
 * test_decay.c - empty slabs of phases that go on go back by time: when, whose, and by which calls.
 *
 * The clock stands still but for what a case lets pass. Nothing is kept warm, so what is committed is what heaps hold.
 */
#include "kit/one.h"

#include "heap/decay.h"
#include "heap/warm.h"

#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 512, N = 3000, MS = 500 };

static uint64_t clock_ns, processor_ns;
static uint64_t (*real_coarse)(void), (*real_thread)(void);
static uint64_t clock_now(void) { return clock_ns; }
static uint64_t processor_now(void) { return processor_ns; }
static void pass_ms(uint64_t ms) { clock_ns += ms * 1000000; }

static SlabOptions with_decay(uint32_t ms) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    o.bump = KIT_BY_CLASS;
    o.decay_ms = ms;
    return o;
}
static void set_clock(void) {
    (void)slab_page_size(); /* the table is filled */
    real_coarse = tsi_os.coarse_ns;
    real_thread = tsi_os.thread_ns;
    clock_ns = real_coarse();
    tsi_os.coarse_ns = clock_now;
    tsi_os.thread_ns = processor_now;
}
static void open_with(SlabOptions o) {
    set_clock();
    kit_open_with(o);
}
static void close_it(void) {
    kit_close();
    tsi_os.coarse_ns = real_coarse;
    tsi_os.thread_ns = real_thread;
}

static void fill(void** p) {
    for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = slab_malloc(a, SIZE)) != NULL);
}
static void empty(void** p) {
    for (unsigned n = 0; n < N; n++) REQUIRE(slab_free_checked(a, p[n]));
}
static void fill_and_empty(void* arg) {
    void* p[N];
    (void)arg;
    fill(p);
    empty(p);
}
static void read_statistics(void) {
    SlabGlobalStats g;
    slab_stats_global(a, &g);
}

/* A reader looks when the time has come, and not before. */
static void a_reader_looks_when_it_is_due(void) {
    open_with(with_decay(MS));
    fill_and_empty(NULL);
    uint64_t full = kit_committed_now(a);
    REQUIRE_GE(full, (uint64_t)SIZE * N);
    pass_ms(MS - 1);
    read_statistics();
    REQUIRE_EQ(kit_committed_now(a), full);
    pass_ms(1);
    read_statistics();
    REQUIRE_EQ(kit_committed_now(a), 0);
    fill_and_empty(NULL); /* the next one is due as long after */
    pass_ms(MS - 1);
    read_statistics();
    REQUIRE_EQ(kit_committed_now(a), full);
    close_it();
}

static int (*real_purge)(void*, size_t, TsiPurgeHow);
static int interrupted_purge(void* p, size_t bytes, TsiPurgeHow how) { /* others have the processor for a quarter of a second */
    tsi_os.purge = real_purge;
    pass_ms(250);
    processor_ns += 1000000;
    return real_purge(p, bytes, how);
}

/* The next look is due 128 times later than this one took of the processor, however long the thread waited for it. */
static void what_a_look_costs_is_the_processor_time(void) {
    open_with(with_decay(MS));
    fill_and_empty(NULL);
    uint64_t full = kit_committed_now(a);
    pass_ms(MS);
    real_purge = tsi_os.purge;
    tsi_os.purge = interrupted_purge;
    read_statistics();
    REQUIRE(tsi_os.purge == real_purge);
    REQUIRE_EQ(kit_committed_now(a), 0);
    fill_and_empty(NULL);
    pass_ms(MS + 127);
    read_statistics();
    REQUIRE_EQ(kit_committed_now(a), full);
    pass_ms(1);
    read_statistics();
    REQUIRE_EQ(kit_committed_now(a), 0);
    close_it();
}

static void what_lives_stays(void) {
    void *p[N], *kept;
    open_with(with_decay(MS));
    kept = slab_malloc(a, SIZE);
    fill(p);
    kit_fill(kept, SIZE, 7);
    empty(p);
    pass_ms(MS);
    read_statistics();
    size_t slab = tsi_slab_class(space, kit_place(a, kept).slab_id)->slab_bytes;
    REQUIRE_EQ(kit_committed_now(a), slab);
    REQUIRE(kit_intact(kept, SIZE, 7));
    REQUIRE(slab_free_checked(a, kept));
    REQUIRE(!slab_free_checked(a, kept));
    close_it();
}

static void without_the_option_nothing_goes(void) {
    open_with(with_decay(0));
    fill_and_empty(NULL);
    uint64_t full = kit_committed_now(a);
    pass_ms(86400000);
    read_statistics();
    for (unsigned n = 0; n < 100; n++) tsi_decay_step(kit_binding(a));
    REQUIRE_EQ(kit_committed_now(a), full);
    close_it();
}

static void where_pages_never_go_nobody_looks(void) {
    SlabOptions o = with_decay(MS);
    o.purge_policy = SLAB_PURGE_NEVER;
    open_with(o);
    fill_and_empty(NULL);
    uint64_t full = kit_committed_now(a);
    pass_ms(MS);
    read_statistics();
    REQUIRE_EQ(kit_committed_now(a), full);
    close_it();
}

/* One of its slow paths in some dozens asks for the time, and of a thread that is slow each second one. */
static void allocations_look(void) {
    void *p[N], *more[N];
    open_with(with_decay(MS));
    fill(p);
    empty(p);
    uint64_t full = kit_committed_now(a);
    pass_ms(MS);
    for (unsigned n = 0; n < N; n++) more[n] = slab_malloc(a, 64); /* a miss each 64, at least */
    REQUIRE_LE(kit_committed_now(a), full / 2);
    for (unsigned n = 0; n < N; n++) REQUIRE(slab_free_checked(a, more[n]));
    close_it();
}

/* A line that is used up has its first free on the slow path. */
static void frees_look(void) {
    void *p[N], *few[N];
    open_with(with_decay(MS));
    for (unsigned n = 0; n < N; n++) few[n] = slab_malloc(a, 64);
    fill(p);
    empty(p);
    uint64_t full = kit_committed_now(a);
    pass_ms(MS);
    for (unsigned n = 0; n < N; n++) REQUIRE(slab_free_checked(a, few[n]));
    REQUIRE_LE(kit_committed_now(a), full / 2);
    close_it();
}

/* A thread that counts slowly asks for the time at each second step. */
static void a_slow_thread_asks_each_time(void) {
    open_with(with_decay(MS));
    fill_and_empty(NULL);
    TsiBinding* b = kit_binding(a);
    for (unsigned n = 0; n < 64; n++) { /* more than it counts in a hurry */
        pass_ms(20);
        tsi_decay_step(b);
    }
    REQUIRE_LE(tsi_load_relaxed(&b->look_in), 2);
    fill_and_empty(NULL);
    pass_ms(MS);
    for (unsigned n = 0; n < 64; n++) tsi_decay_step(b);
    REQUIRE_EQ(kit_committed_now(a), 0);
    close_it();
}

/* What another thread has emptied is taken once that thread has made no call between two looks. */
static void idle_threads_are_seen_to(void) {
    KitWorker w;
    open_with(with_decay(MS));
    REQUIRE(slab_malloc(a, SIZE) != NULL); /* the caller has a binding */
    kit_worker_start(&w);
    kit_worker_run(&w, fill_and_empty, NULL);
    uint64_t full = kit_committed_now(a);
    pass_ms(MS);
    read_statistics();
    REQUIRE_LE(full - kit_committed_now(a), full / 8); /* it may be about to go on */
    pass_ms(MS);
    read_statistics();
    REQUIRE_LE(kit_committed_now(a), full / 8);
    kit_worker_run(&w, fill_and_empty, NULL); /* and goes on as before */
    kit_worker_stop(&w);
    close_it();
}

/* A heap of a thread that works is never taken from it by a look of another. */
static void busy_threads_are_left_alone(void) {
    KitWorker w;
    open_with(with_decay(MS));
    kit_worker_start(&w);
    for (unsigned n = 0; n < 10; n++) {
        kit_worker_run(&w, fill_and_empty, NULL);
        pass_ms(MS);
        uint64_t before = tsi_load_relaxed(&arena->barriers);
        tsi_decay_poll(arena, NULL);
        REQUIRE_EQ(tsi_load_relaxed(&arena->barriers), before);
    }
    kit_worker_stop(&w);
    close_it();
}

/* Small phases of domains keep their heaps; what is large and goes on is looked at like the ring's. */
static void open_domains_count_by_size(void) {
    open_with(with_decay(MS));
    epoch_domain_t *small = epoch_domain_create(a), *large = epoch_domain_create(a);
    void *p[N], *first = epoch_domain_malloc(small, SIZE);
    REQUIRE(slab_free_checked(a, first));
    for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = epoch_domain_malloc(large, SIZE)) != NULL);
    empty(p);
    uint64_t full = kit_committed_now(a);
    pass_ms(MS);
    read_statistics();
    REQUIRE_LE(kit_committed_now(a), full / 8);
    REQUIRE_NE(kit_committed_now(a), 0);
    REQUIRE(epoch_domain_malloc(large, SIZE) != NULL);
    epoch_domain_destroy(small);
    epoch_domain_destroy(large);
    close_it();
}

static SlabOptions that_learns(void) {
    SlabOptions o = with_decay(MS);
    o.warm_bytes = 0;
    return o;
}

/* Pages that a look finds empty are still there for the next burst. Those that nobody has used by the next look go. */
static void what_was_emptied_waits_for_a_look(void) {
    open_with(that_learns());
    fill_and_empty(NULL);
    uint64_t full = kit_committed_now(a);
    REQUIRE_GT(full, KIT_WARM_BYTES);
    for (unsigned n = 0; n < 4; n++) {
        pass_ms(MS);
        read_statistics();
        REQUIRE_EQ(kit_committed_now(a), full);
        kit_check(a);
        uint64_t purged = tsi_load_relaxed(&space->purge_bytes);
        fill_and_empty(NULL); /* takes them, and no others */
        REQUIRE_EQ(kit_committed_now(a), full);
        REQUIRE_EQ(tsi_load_relaxed(&space->purge_bytes), purged);
    }
    pass_ms(MS);
    read_statistics();
    pass_ms(MS);
    read_statistics();
    REQUIRE_LE(kit_committed_now(a), KIT_WARM_BYTES);
    kit_check(a);
    close_it();
}

/* Pages that wait cost nothing at the peak: before a program has more than it had when they were emptied, they go. */
static void growth_takes_what_waits(void) {
    enum { OTHER = 2 * N, LITTLE = 128 << 10 }; /* 384 KiB of slabs */
    void *p[N], **more = malloc(OTHER * sizeof *more);
    open_with(that_learns());
    fill(p);
    for (unsigned n = 0; n < N; n++) /* both chunks keep their class */
        if (n != 0 && n != N - 1) REQUIRE(slab_free_checked(a, p[n]));
    uint64_t full = kit_committed_now(a);
    pass_ms(MS);
    read_statistics();
    REQUIRE_EQ(kit_committed_now(a), full);
    for (unsigned n = 0; n < OTHER; n++) {
        REQUIRE((more[n] = slab_malloc(a, 64)) != NULL);
        REQUIRE_LE(kit_committed_now(a), full + LITTLE);
    }
    kit_check(a);
    REQUIRE(slab_free_checked(a, p[0]) && slab_free_checked(a, p[N - 1]));
    for (unsigned n = 0; n < OTHER; n++) REQUIRE(slab_free_checked(a, more[n]));
    free(more);
    close_it();
}

/* Two sizes that take turns: after a while the one keeps its pages while the other is filled. */
static void turns_of_two_classes_keep_both(void) {
    enum { BYTES = 6 << 20, LESS = 512, MORE = 640, ROUNDS = 40 };
    static const size_t sizes[2] = {LESS, MORE};
    void** p = malloc(BYTES / LESS * sizeof *p);
    open_with(that_learns());
    uint64_t before = tsi_load_relaxed(&space->purge_bytes);
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t size = sizes[round % 2], n = BYTES / size, apart = (1 << 20) / size;
        for (size_t k = 0; k < n; k++) REQUIRE((p[k] = slab_malloc(a, size)) != NULL);
        for (size_t k = 0; k < n; k++)
            if (round >= 2 || k % apart != 0) REQUIRE(slab_free_checked(a, p[k])); /* some live on in each chunk */
    }
    REQUIRE_LE(tsi_load_relaxed(&space->purge_bytes) - before, 8u * BYTES);
    kit_check(a);
    free(p);
    close_it();
}

/* A budget that has risen falls by the looks alone, and stores that nobody uses go with it. */
static void the_budget_falls(void) {
    open_with(that_learns());
    fill_and_empty(NULL);
    pass_ms(MS);
    read_statistics();
    pass_ms(MS);
    read_statistics(); /* some stay: a store's share, and the stock */
    REQUIRE_LE(kit_committed_now(a), KIT_WARM_BYTES);
    for (unsigned n = 0; n < 30; n++) { /* by half each second */
        pass_ms(MS);
        read_statistics();
    }
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->warm.bytes), 0);
    REQUIRE_LE(tsi_load_relaxed(&space->stock.budget), KIT_WARM_BYTES);
    close_it();
}

/* Where the process forks while a look is under way, the child's are its own. */
static void a_child_looks(void) {
    open_with(with_decay(MS));
    fill_and_empty(NULL);
    tsi_store_relaxed(&arena->decay_due_ns, UINT64_MAX); /* as a look does */
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        pass_ms(MS);
        read_statistics();
        _exit(kit_committed_now(a) == 0 ? 0 : 1);
    }
    int status;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE_EQ(status, 0);
    close_it();
}

static const CheckCase cases[] = {
    CHECK_CASE(a_reader_looks_when_it_is_due),
    CHECK_CASE(what_a_look_costs_is_the_processor_time),
    CHECK_CASE(what_lives_stays),
    CHECK_CASE(without_the_option_nothing_goes),
    CHECK_CASE(where_pages_never_go_nobody_looks),
    CHECK_CASE(allocations_look),
    CHECK_CASE(frees_look),
    CHECK_CASE(a_slow_thread_asks_each_time),
    CHECK_CASE(idle_threads_are_seen_to),
    CHECK_CASE(busy_threads_are_left_alone),
    CHECK_CASE(open_domains_count_by_size),
    CHECK_CASE(what_was_emptied_waits_for_a_look),
    CHECK_CASE(growth_takes_what_waits),
    CHECK_CASE(turns_of_two_classes_keep_both),
    CHECK_CASE(the_budget_falls),
    CHECK_CASE(a_child_looks),
};
CHECK_MAIN(cases)
