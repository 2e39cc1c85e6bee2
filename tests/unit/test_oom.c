/*
 * test_oom.c - every call to the system fails once, and then every call from some point on.
 *
 * For k = 1, 2, ... the k-th reserve, commit or purge of a whole scenario fails (see scenario.h for what has to
 * hold), until the scenario ends without meeting the fault. The same again with all calls from the
 * k-th on, under pretended systems, and for the first allocator of a process.
 */
#include "scenario.h"

#if defined(__SANITIZE_THREAD__)
#define SLOW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOW 1
#endif
#endif
#ifndef SLOW
#define SLOW 0
#endif

/* Where a whole life takes long, not every k. */
enum { CALLS_MAX = 20000, STRIDE = SLOW ? 11 : 1 };

static SlabOptions options;

static void each_call(FakeCall what, bool on, unsigned step) {
    uint64_t k = 1;
    for (;; k += step * STRIDE) {
        REQUIRE(k < CALLS_MAX);
        fake_os_clear();
        fake_os_fail(what, k, on);
        if (!scenario_run(&options)) break;
    }
    REQUIRE(k > 1); /* the scenario does make such calls */
    REQUIRE_EQ(fake_os.misaligned, 0);
}

static void reserve_fails_once(void) { each_call(FAKE_RESERVE, false, 1); }
static void reserve_fails_for_good(void) { each_call(FAKE_RESERVE, true, 1); }
static void commit_fails_once(void) { each_call(FAKE_COMMIT, false, tsi_os.strict_commit ? 7 : 1); }
static void commit_fails_for_good(void) { each_call(FAKE_COMMIT, true, tsi_os.strict_commit ? 7 : 1); }
static void purge_fails_once(void) { each_call(FAKE_PURGE, false, 13); }
static void purge_fails_for_good(void) { each_call(FAKE_PURGE, true, 53); }

/* A failed purge is counted; the slabs are reused all the same. */
static void failed_purges_are_counted(void) {
    SlabAllocator* a = kit_create_cold();
    SlabGlobalStats g;
    fake_os_clear();
    for (unsigned n = 0; n < 100; n++) REQUIRE(slab_malloc(a, 4000) != NULL);
    fake_os_fail(FAKE_PURGE, 1, true);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    slab_stats_global(a, &g);
    REQUIRE(g.total_madvise_failures > 0);
    REQUIRE_EQ(g.total_madvise_failures, g.total_madvise_calls);
    REQUIRE_EQ(g.total_madvise_bytes, 0);
    fake_os_heal();
    (void)epoch_advance_id(a);
    for (unsigned n = 0; n < 100; n++) REQUIRE(slab_malloc(a, 4000) != NULL);
    kit_check(a);
    slab_allocator_free(a);
}

/* An enter that finds no room for its scope counts nowhere: the domain's end does not drain the epoch it borrows. */
static void enters_without_memory_do_not_count(void) {
    enum { SCOPES_MAX = 1 << 20 };
    SlabAllocator* a = kit_create_cold();
    epoch_domain_t* outer = epoch_domain_create(a);
    EpochId current = epoch_current(a);
    epoch_domain_t* borrowed = epoch_domain_wrap(a, current, true);
    REQUIRE(outer != NULL && borrowed != NULL);
    fake_os_clear();
    REQUIRE(epoch_domain_enter(outer)); /* its epoch is open */
    unsigned inside = 1;
    for (unsigned way = 0; way < 2; way++) {
        fake_os_fail(way == 0 ? FAKE_RESERVE : FAKE_COMMIT, 1, true);
        while (inside < SCOPES_MAX && epoch_domain_enter(outer)) inside++;
        if (!fake_os_heal()) continue; /* scopes need no such call here */
        REQUIRE_EQ(errno, ENOMEM);
        fake_os_fail(way == 0 ? FAKE_RESERVE : FAKE_COMMIT, 1, true);
        errno = 0;
        REQUIRE(!epoch_domain_enter(borrowed));
        REQUIRE_EQ(errno, ENOMEM);
        REQUIRE(fake_os_heal());
        REQUIRE(!epoch_domain_exit(borrowed));
    }
    REQUIRE(inside < SCOPES_MAX); /* one of the two has struck */
    epoch_domain_destroy(borrowed);
    REQUIRE_EQ(epoch_state(a, current), EPOCH_ACTIVE);
    REQUIRE(epoch_domain_enter(outer)); /* there is memory now */
    for (inside++; inside != 0; inside--) REQUIRE(epoch_domain_exit(outer));
    REQUIRE(!epoch_domain_exit(outer));
    kit_check(a);
    slab_allocator_free(a);
}

/* A reservation that is used up fails allocations, and works again after frees. */
static void reservation_exhausted(void) {
    SlabOptions o = kit_options();
    o.reserve_bytes = TSI_RESERVE_MIN;
    SlabAllocator* a = kit_create_with(&o);
    static void* p[16 * 1024];
    for (unsigned lap = 0; lap < 3; lap++) {
        unsigned n = 0;
        size_t bytes = lap == 0 ? 4000 : lap == 1 ? 200000 : 1 << 20;
        errno = 0;
        while (n < sizeof p / sizeof p[0] && (p[n] = slab_malloc(a, bytes)) != NULL) n++;
        REQUIRE_EQ(errno, ENOMEM);
        REQUIRE((n + 1) * bytes > TSI_RESERVE_MIN / 2);
        REQUIRE(kit_refusals(a).out_of_memory > lap);
        kit_check(a);
        while (n != 0) REQUIRE(slab_free_checked(a, p[--n]));
        slab_trim(a);
        REQUIRE_EQ(kit_committed_now(a), 0);
        kit_check(a);
    }
    slab_allocator_free(a);
}

/* In a process of its own: its first allocator meets the fault. */
static int first_allocator(const char* which) {
    FakeCall what = which[0] == 'r' ? FAKE_RESERVE : FAKE_COMMIT;
    uint64_t k = strtoull(which + 1, NULL, 10);
    SlabOptions o = kit_options();
    fake_os_install(0, false, false);
    fake_os_fail(what, k, false);
    errno = 0;
    SlabAllocator* a = slab_allocator_create_with(&o);
    void* p = a != NULL ? slab_malloc(a, 100) : NULL;
    if (p == NULL && errno != ENOMEM) return 2;
    slab_allocator_free(a);
    bool struck = fake_os_heal();
    a = slab_allocator_create_with(&o);
    if (a == NULL || slab_malloc(a, 100) == NULL) return 3; /* the fault is gone, and still nothing works */
    slab_allocator_free(a);
    return struck ? 0 : 1;
}

static void first_allocator_of_a_process(void) {
    static const char kinds[] = "rc";
    for (unsigned i = 0; i < 2; i++) {
        int code = 0;
        for (unsigned k = 1; code == 0; k++) {
            char argument[32];
            (void)snprintf(argument, sizeof argument, "first %c%u", kinds[i], k);
            code = kit_rerun(argument);
            if (code > 1) FAIL("%s: exit code %d", argument, code);
        }
    }
}

static void under_strict_commit(void) { REQUIRE_EQ(kit_rerun("strict"), 0); }

int main(int argc, char** argv) {
    const CheckCase all[] = {
        CHECK_CASE(reserve_fails_once),
        CHECK_CASE(reserve_fails_for_good),
        CHECK_CASE(commit_fails_once),
        CHECK_CASE(commit_fails_for_good),
        CHECK_CASE(purge_fails_once),
        CHECK_CASE(purge_fails_for_good),
        CHECK_CASE(failed_purges_are_counted),
        CHECK_CASE(enters_without_memory_do_not_count),
        CHECK_CASE(reservation_exhausted),
        CHECK_CASE(first_allocator_of_a_process),
        CHECK_CASE(under_strict_commit),
    };
    const CheckCase strict[] = {
        CHECK_CASE(commit_fails_once),
        CHECK_CASE(commit_fails_for_good),
        CHECK_CASE(purge_fails_for_good),
        CHECK_CASE(reservation_exhausted),
    };
    if (argc > 1 && strncmp(argv[1], "first ", 6) == 0) return first_allocator(argv[1] + 6);
    options = kit_options();
    bool is_strict = argc > 1 && strcmp(argv[1], "strict") == 0;
    fake_os_install(is_strict ? 16384 : 0, is_strict, is_strict);
    (void)slab_page_size(); /* the process's own tables: first_allocator_of_a_process is about those */
    if (is_strict) return CHECK_RUN(0, NULL, strict);
    return CHECK_RUN(0, NULL, all);
}
