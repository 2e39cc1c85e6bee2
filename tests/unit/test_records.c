/*
 * test_records.c - an allocator whose records have gone back to the system: what stale pointers, ids and eras meet,
 * what is told of threads that have left, and which loads give nothing back.
 */
#include "fake_os.h"
#include "kit/one.h"

#include "api/domain.h"
#include "heap/records.h"
#include "heap/warm.h"

#include <fcntl.h>

enum { MANY = 2000, TEAM = 60 };

static void open_allocator(void) {
    SlabOptions o = kit_options();
    o.reserve_bytes = 0; /* room for the records of MANY */
    fake_os_clear();
    kit_open_with(o);
}
static void close_allocator(void) { slab_allocator_free(a); }

static unsigned purges_in(const TsiTable* t) {
    unsigned n = 0;
    for (unsigned i = 0; i < fake_os.run_count; i++) n += fake_os.runs[i].from - (uintptr_t)t->base < t->bytes_reserved;
    return n;
}

static unsigned purges_of_records(void) {
    const TsiTable* const tables[] = {&arena->phases.incs, &arena->phases.ends, &arena->heaps,
                                      &arena->rooms,       &arena->domains,     &arena->bindings};
    unsigned n = 0;
    for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++) n += purges_in(tables[i]);
    return n;
}

static epoch_domain_t* domains[MANY];

static void open_many(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        REQUIRE((domains[i] = epoch_domain_create(a)) != NULL);
        REQUIRE(epoch_domain_malloc(domains[i], 100) != NULL);
    }
}

static void end_many(unsigned n) {
    for (unsigned i = 0; i < n; i++) epoch_domain_destroy(domains[i]);
}

/* Phases one after the other, one in the other, and many at once: nothing of records goes back, so nothing of them
 * has to be fetched again. */
static void steady_loads_keep_their_records(void) {
    for (unsigned i = 0; i < 20000; i++) {
        epoch_domain_t* d = epoch_domain_begin(a, "one");
        for (unsigned k = 0; k < 10; k++) REQUIRE(slab_malloc(a, 100) != NULL);
        epoch_domain_end(d);
    }
    for (unsigned lap = 0; lap < 100; lap++) {
        for (unsigned i = 0; i < 100; i++) REQUIRE((domains[i] = epoch_domain_begin(a, "nested")) != NULL);
        for (unsigned i = 100; i != 0; i--) epoch_domain_end(domains[i - 1]);
    }
    for (unsigned lap = 0; lap < 30; lap++) {
        open_many(150);
        end_many(150);
    }
    REQUIRE_EQ(purges_of_records(), 0);
    open_many(MANY);
    end_many(MANY);
    REQUIRE(purges_in(&arena->phases.incs) > 0 && purges_in(&arena->domains) > 0 && purges_in(&arena->heaps) > 0);
    REQUIRE(arena->domains.filled <= 2 * arena->domains.taken + arena->domains.keep);
    kit_check(a);
}

/* Pointers, ids and eras of ended domains are refused, each under its cause, before their records go back, while they
 * are with the system and after they have been taken again. */
static void what_is_stale_stays_refused(void) {
    static epoch_domain_t* stale[MANY];
    static EpochId ids[MANY];
    static uint64_t eras[MANY];
    open_many(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        stale[i] = domains[i];
        ids[i] = domains[i]->epoch_id;
        eras[i] = domains[i]->epoch_era;
    }
    end_many(MANY);
    for (unsigned turn = 0; turn < 3; turn++) {
        if (turn == 1) slab_trim(a);
        if (turn == 1) REQUIRE(arena->phases.incs.filled < 100 && arena->domains.filled == 0);
        if (turn == 2) open_many(MANY);
        SlabRefusals before = kit_refusals(a);
        EpochReceipt r;
        for (unsigned i = 0; i < MANY; i++) {
            errno = 0;
            REQUIRE_NULL(slab_malloc_epoch(a, 10, ids[i]));
            REQUIRE_EQ(errno, ESTALE);
            REQUIRE(!epoch_close_era(a, eras[i], EPOCH_RELEASE, &r));
            if (turn == 2) continue; /* the pointers are other domains' */
            epoch_domain_enter(stale[i]);
            REQUIRE_NULL(epoch_domain_malloc(stale[i], 10));
            REQUIRE(!epoch_domain_reset(stale[i]));
            epoch_domain_destroy(stale[i]);
        }
        SlabRefusals after = kit_refusals(a);
        REQUIRE_EQ(after.closed_epoch - before.closed_epoch, MANY);
        REQUIRE_EQ(after.domain_stale - before.domain_stale, turn == 2 ? 0 : 4 * MANY);
    }
    for (unsigned i = 0; i < MANY; i++) REQUIRE(slab_ptr_epoch(a, epoch_domain_malloc(domains[i], 10), NULL, NULL));
    end_many(MANY);
    kit_check(a);
}

/* ---- threads ---- */

static pthread_barrier_t meet;

static void* work(void* arg) {
    void* p[300];
    for (unsigned i = 0; i < 300; i++) p[i] = slab_malloc(a, 16 + i * 7 % 3000);
    for (unsigned i = 0; i < 300; i++) {
        slab_free(a, p[i]);
        if (i == 7) slab_free(a, kit_hide(p[i])); /* refused: at once, before another thread has the slab */
    }
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    return arg;
}

static void waves(unsigned n) {
    pthread_t t[TEAM];
    REQUIRE_EQ(pthread_barrier_init(&meet, NULL, n + 1), 0);
    for (unsigned i = 0; i < n; i++) REQUIRE_EQ(pthread_create(&t[i], NULL, work, NULL), 0);
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    for (unsigned i = 0; i < n; i++) REQUIRE_EQ(pthread_join(t[i], NULL), 0);
    pthread_barrier_destroy(&meet);
}

/* What threads have counted is told when their records have gone, and not twice when those could not go. */
static void counters_outlive_their_threads(void) {
    enum { CLASSES = 8 };
    SlabClassStats was[CLASSES];
    waves(TEAM);
    REQUIRE(purges_in(&arena->bindings) > 0);
    REQUIRE(arena->bindings.filled <= arena->bindings.keep + 2);
    uint64_t refused = kit_refusals(a).double_free + kit_refusals(a).stale_free, slow = 0;
    REQUIRE_EQ(refused, TEAM);
    for (uint32_t c = 0; c < CLASSES; c++) {
        slab_stats_class(a, c, &was[c]);
        slow += was[c].slow_path_hits;
    }
    REQUIRE(slow > TEAM);
    for (unsigned turn = 0; turn < 2; turn++) {
        if (turn == 0) fake_os_fail(FAKE_PURGE, 1, true);
        else fake_os_heal();
        tsi_records_trim(arena, kit_binding(a));
        REQUIRE_EQ(kit_refusals(a).double_free + kit_refusals(a).stale_free, refused);
        for (uint32_t c = 0; c < CLASSES; c++) {
            SlabClassStats now;
            slab_stats_class(a, c, &now);
            REQUIRE_EQ(now.slow_path_hits, was[c].slow_path_hits);
            REQUIRE_EQ(now.new_slab_count, was[c].new_slab_count);
        }
    }
    REQUIRE(arena->bindings.filled <= 1);
    waves(TEAM / 2); /* and their records serve again */
    REQUIRE_EQ(kit_refusals(a).double_free + kit_refusals(a).stale_free, refused + TEAM / 2);
    kit_check(a);
}

/* A flush that came upon a thread as it exited may be in its store still: that record stays. A flush that comes when
 * the record has gone finds zeros, and leaves an open store. */
static void a_flush_beside_an_exit(void) {
    waves(1);
    TsiBinding* late = NULL;
    for (uint32_t n = 0; n < tsi_table_used(&arena->bindings); n++) {
        TsiBinding* b = tsi_table_at(&arena->bindings, n);
        if (!tsi_load_relaxed(&b->in_use) && b->arena == arena) late = b;
    }
    REQUIRE(late != NULL);
    REQUIRE(tsi_warm_lock(&late->warm));
    tsi_records_trim(arena, kit_binding(a));
    REQUIRE(late->arena == arena);
    tsi_warm_unlock(&late->warm);
    tsi_records_trim(arena, kit_binding(a));
    REQUIRE(late->arena == NULL);
    REQUIRE(tsi_warm_flush(arena, late));
    REQUIRE_EQ(tsi_load_relaxed(&late->warm.busy), 0);
    waves(TEAM / 2);
    kit_check(a);
}

/* ---- fork ---- */

/* The child looks at every record, and fetches no page for those that are with the system. */
static void a_child_fetches_nothing(void) {
    open_many(MANY);
    end_many(MANY);
    slab_trim(a);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        unsigned filled = 0;
        const TsiTable* const tables[] = {&arena->phases.incs, &arena->heaps, &arena->domains};
        int fd = -1;
        char path[] = "/proc/self/pagemap";
        fd = open(path, 0);
        for (unsigned n = 0; n < 3; n++) {
            for (size_t at = tables[n]->bytes_committed / 8; at < tables[n]->bytes_committed; at += tsi_os.page_bytes) {
                uint64_t page = 0; /* anonymous pages that are present are "exclusive"; the page of zeros is not */
                if (pread(fd, &page, 8, (off_t)(((uintptr_t)tables[n]->base + at) / tsi_os.page_bytes * 8)) != 8) _exit(77);
                filled += page >> 63 != 0 && (page >> 56 & 1) != 0;
            }
        }
        _exit(filled != 0);
    }
    int status = 0;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
}

static uint64_t told_ns;
static uint64_t told_clock(void) { return told_ns; }

/* Phases without objects, whose pages nobody takes or keeps: what their records have learned falls all the same, whether
 * phases with objects or without come afterwards. */
static void records_of_bursts_go_back(void) {
    uint64_t (*coarse_ns)(void) = tsi_os.coarse_ns;
    told_ns = coarse_ns() + 1000000000; /* the allocator has read the clock before */
    tsi_os.coarse_ns = told_clock;
    for (unsigned objects = 0; objects < 2; objects++) {
        for (unsigned lap = 0; lap < 6; lap++) {
            for (unsigned i = 0; i < MANY; i++) REQUIRE((domains[i] = epoch_domain_create(a)) != NULL);
            end_many(MANY);
        }
        uint32_t learned = tsi_load_relaxed(&arena->phases.incs.learned);
        REQUIRE(learned > MANY / 2);
        REQUIRE(tsi_load_relaxed(&arena->space.stock.budget) <= arena->space.stock.start);
        for (unsigned second = 0; second < 16; second++) {
            told_ns += 1000000000;
            open_many(objects * 10);
            end_many(objects * 10);
            for (unsigned i = 0; objects == 0 && i < 100; i++) REQUIRE((domains[i] = epoch_domain_create(a)) != NULL);
            if (objects == 0) end_many(100);
        }
        uint32_t needed = objects == 0 ? 100 : 0; /* in each second */
        REQUIRE(tsi_load_relaxed(&arena->phases.incs.learned) <= needed);
        REQUIRE(tsi_load_relaxed(&arena->domains.learned) <= needed);
        REQUIRE(arena->phases.incs.filled < MANY / 2);
        REQUIRE(objects == 0 || !tsi_load_relaxed(&arena->records_learned));
    }
    tsi_os.coarse_ns = coarse_ns;
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(steady_loads_keep_their_records),
        TEST(records_of_bursts_go_back),
        TEST(what_is_stale_stays_refused),
        TEST(counters_outlive_their_threads),
    TEST(a_flush_beside_an_exit),
        TEST(a_child_fetches_nothing),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
