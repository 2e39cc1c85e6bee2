/*
 * limits.c - what a process may have comes to its end while the library works, and is there again: mappings
 * (vm.max_map_count), address space (RLIMIT_AS), writable memory (RLIMIT_DATA), a kernel that charges what may be
 * written (overcommit_memory = 2), the memory of a control group.
 *
 * Nothing crashes and nobody waits. Allocations are refused with ENOMEM, or with EDQUOT by a budget; what lives stays
 * whole; frees and ends do not fail; and when there is room again, all of it works as before. Each case has a process
 * of its own.
 *
 * A setting that belongs to the whole system is never changed: what is not set here is skipped with the reason, and the
 * library is told by its table (os/os.h) that it is set.
 */
#define CHECK_DIVISOR 1
#include "kit/inside.h"

#include "slab_stats.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "unit/fake_os.h"

typedef struct Link {
    struct Link* next;
    size_t size;
    uint64_t seed;
} Link;

static SlabAllocator* a;

/* ---- a load that takes a refusal ---- */

static Link* chain;
static uint64_t refused;

static bool got(const void* p) {
    if (p != NULL) return true;
    REQUIRE_OR(errno == ENOMEM || errno == EDQUOT, "refused with %s", strerror(errno));
    refused++;
    return false;
}
static bool take(size_t size, uint64_t seed) {
    Link* l = slab_malloc_outside(a, size);
    if (!got(l)) return false;
    kit_fill(l + 1, size - sizeof *l < 64 ? size - sizeof *l : 64, seed);
    *l = (Link){chain, size, seed};
    chain = l;
    return true;
}
static void drop(void) {
    Link* l = chain;
    chain = l->next;
    REQUIRE(kit_intact(l + 1, l->size - sizeof *l < 64 ? l->size - sizeof *l : 64, l->seed));
    REQUIRE(slab_free_checked(a, l));
}

/* Phases, handles, large objects, a ring that turns. */
static void round_of_everything(uint64_t seed) {
    static const size_t sizes[] = {40, 100, 700, 3000, 20000, 150000, 600000};
    uint64_t dice = seed;
    for (unsigned n = 0; n < 40; n++) {
        (void)take(sizes[kit_rand(&dice) % 7], dice);
        if (chain != NULL && n % 2 == 1) drop();
    }
    SlabHandle h = 0;
    bool have = got(alloc_obj(a, 500, &h));
    REQUIRE(have == (h != 0));
    epoch_domain_t* d = epoch_domain_begin(a, "tight");
    if (got(d)) {
        EpochReceipt r;
        for (unsigned n = 0; n < 7; n++) (void)got(slab_malloc(a, sizes[n]));
        REQUIRE(seed % 2 == 0 ? epoch_domain_end_ex(d, &r) : epoch_domain_drain(d, &r));
        KIT_BALANCED(&r);
        if (seed % 2 != 0) (void)epoch_close_era(a, r.epoch_era, EPOCH_RELEASE, NULL);
    }
    if (have) REQUIRE(free_obj(a, h));
    if (seed % 8 == 0) epoch_advance(a);
    if (seed % 16 == 0) slab_trim(a);
}

/* All that is left is freed; there is room again, so a whole round is refused nothing. */
static void works_again(void) {
    while (chain != NULL) drop();
    for (EpochId id = 0; id < 16; id++) REQUIRE(epoch_close_ex(a, id, EPOCH_DRAIN, NULL));
    REQUIRE_EQ(kit_live(a), 0);
    kit_check(a);
    uint64_t before = refused;
    for (unsigned n = 0; n < 20; n++) round_of_everything(n);
    REQUIRE_EQ(refused, before);
    while (chain != NULL) drop();
    REQUIRE_EQ(kit_live(a), 0);
    REQUIRE_EQ(kit_refused_frees(a), 0);
    kit_check(a);
    slab_allocator_free(a);
}

/* ---- mappings ---- */

static uint64_t setting(const char* path) {
    uint64_t n = 0;
    FILE* f = fopen(path, "r");
    if (f == NULL || fscanf(f, "%" SCNu64, &n) != 1) n = 0;
    if (f != NULL) fclose(f);
    return n;
}

static void* extra[8];
static void drop_mappings(uint8_t* p, size_t bytes) {
    REQUIRE_EQ(munmap(p, bytes), 0);
    for (unsigned k = 0; k < 8; k++) {
        if (extra[k] != NULL) REQUIRE_EQ(munmap(extra[k], slab_page_size()), 0);
        extra[k] = NULL;
    }
}

/* Pages that are readable by turns: each is a mapping of its own. Takes all that the process may have. Returns how many
 * pages are readable; they lie at *at, in *bytes. */
static size_t use_up_mappings(size_t most, uint8_t** at, size_t* bytes) {
    size_t page = slab_page_size(), n = 0;
    *bytes = 2 * most * page;
    uint8_t* p = *at = mmap(NULL, *bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(p != MAP_FAILED);
    while (n < most && mprotect(p + (2 * n + 1) * page, page, PROT_READ) == 0) n++;
    REQUIRE_OR(n < most, "%zu mappings more than the limit", n);
    /* A page more is one mapping more, if it can be merged with no neighbour. */
    for (unsigned k = 0; k < 8 && extra[k] == NULL; k++) {
        void* q = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (q == MAP_FAILED) break;
        extra[k] = q;
    }
    REQUIRE(mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    return n;
}

/* From none left to two dozen, two more each time. */
static void without_mappings(void* arg) {
    enum { MOST = 2000000, STEPS = 12 };
    const SlabOptions* o = arg;
    size_t most = setting("/proc/sys/vm/max_map_count"), page = slab_page_size(), bytes, none = 0;
    uint8_t* p;
    if (most == 0 || most > MOST) SKIP("vm.max_map_count is %zu: more than can be used up", most);
    a = kit_create_with(o);
    for (unsigned n = 0; n < 3; n++) round_of_everything(n);
    size_t readable = use_up_mappings(most, &p, &bytes);
    for (unsigned step = 0; step < STEPS; step++) {
        for (unsigned n = 0; n < 40; n++) round_of_everything(n);
        kit_check(a);
        SlabAllocator* second = slab_allocator_create_with(o);
        if (second == NULL) {
            REQUIRE_EQ(errno, ENOMEM);
            none++;
        }
        slab_allocator_free(second);
        readable--; /* and no mapping of its own any more, nor is what lies behind it */
        REQUIRE_EQ(mprotect(p + (2 * readable + 1) * page, page, PROT_NONE), 0);
    }
    drop_mappings(p, bytes);
    printf("  %zu mappings, of which 0 to 22 were left: %" PRIu64 " objects and %zu allocators were refused\n", most,
           refused, none);
    REQUIRE_GT(none, 0); /* a reservation takes a mapping or two */
    works_again();
}
static void mappings_are_used_up(void) {
    SlabOptions o = kit_options();
    check_child(without_mappings, &o);
}
/* Each object before a guard page: that takes mappings, and does without the guard where there are none. */
static void mappings_are_used_up_by_guards(void) {
    SlabOptions o = kit_options();
    o.guard_period = 1;
    check_child(without_mappings, &o);
}

/* ---- address space and writable memory ---- */

static uint64_t now_of(const char* key) {
    char line[256];
    uint64_t kib = 0;
    FILE* f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) kib = strtoull(line + strlen(key) + 1, NULL, 10);
    if (f != NULL) fclose(f);
    return kib * 1024;
}

typedef struct Limit {
    int resource;
    const char* key;
    bool strict; /* the kernel charges what may be written */
} Limit;

/* A stack that has to grow under the limit would end the child. */
__attribute__((noinline)) static void touch_stack(void) {
    volatile char deep[512 * 1024];
    for (size_t i = 0; i < sizeof deep; i += 1024) deep[i] = 0;
}

static void falls_and_rises(void* arg) {
    const Limit* limit = arg;
    struct rlimit r;
    touch_stack();
    if (limit->strict) fake_os_install(0, true, false);
    a = kit_create();
    for (unsigned n = 0; n < 3; n++) round_of_everything(n);
    REQUIRE_EQ(getrlimit(limit->resource, &r), 0);
    rlim_t was = r.rlim_cur;
    size_t rounds = check_count(60);
    uint64_t dice = 9;
    for (size_t n = 0; n < rounds; n++) { /* between nothing more than there is and a few MiB of it */
        r.rlim_cur = now_of(limit->key) + kit_rand(&dice) % 9 * (512 << 10);
        if (setrlimit(limit->resource, &r) != 0) SKIP("the limit cannot be set: %s", strerror(errno));
        for (unsigned i = 0; i < 20; i++) round_of_everything(n * 20 + i);
        if (n % 5 == 0) /* held, so that the next rounds begin with less */
            while (take(100000, n)) {}
        r.rlim_cur = was;
        REQUIRE_EQ(setrlimit(limit->resource, &r), 0);
        if (n % 5 == 4)
            while (chain != NULL) drop();
    }
    if (refused == 0) SKIP("the limit is not enforced here");
    printf("  %zu times, %" PRIu64 " refusals\n", rounds, refused);
    works_again();
}
static void address_space_falls(void) {
    Limit l = {RLIMIT_AS, "VmSize:", false};
    check_child(falls_and_rises, &l);
}
static void writable_memory_falls(void) {
    Limit l = {RLIMIT_DATA, "VmData:", false};
    check_child(falls_and_rises, &l);
}
/* As with overcommit_memory = 2: what may be written is charged, so it is given back as inaccessible, and taken again by
 * a call that the system may refuse; here it is the limit of data that refuses. */
static void what_may_be_written_is_charged(void) {
    Limit l = {RLIMIT_DATA, "VmData:", true};
    check_child(falls_and_rises, &l);
}

/* The kernel itself, where it is set so: its commit limit is used up by a mapping beside the library. */
static void overcommit(void* arg) {
    (void)arg;
    size_t bytes = (size_t)1 << 44;
    void* p = MAP_FAILED;
    a = kit_create();
    for (unsigned n = 0; n < 3; n++) round_of_everything(n);
    while (bytes >= slab_page_size()) { /* all that is left, in falling powers of two */
        void* q = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (q == MAP_FAILED) bytes /= 2;
        else p = q;
    }
    REQUIRE(p != MAP_FAILED);
    for (unsigned n = 0; n < 100; n++) round_of_everything(n);
    REQUIRE_GT(refused, 0);
    while (chain != NULL) drop();
    kit_check(a);
}
static void overcommit_is_refused(void) {
    uint64_t set = setting("/proc/sys/vm/overcommit_memory");
    if (set != 2)
        SKIP("vm.overcommit_memory is %" PRIu64 ", and the whole system's: with 2 a process of its own is tested", set);
    check_child(overcommit, NULL);
}

/* ---- a control group ---- */

/* Fills an allocator whose budget is below what the process may have, until it is refused, several times over. */
static void within_budget(uint64_t max_bytes) {
    SlabOptions o = kit_options();
    o.max_bytes = max_bytes;
    a = kit_create_with(&o);
    for (unsigned n = 0; n < 4; n++) {
        static const size_t sizes[] = {100, 3000, 150000, 600000};
        while (take(sizes[n], n)) memset((uint8_t*)(chain + 1) + 64, 1, chain->size - sizeof *chain - 64);
        REQUIRE_EQ(errno, EDQUOT);
        REQUIRE_LE(kit_committed(a), max_bytes);
        while (chain != NULL) drop();
        epoch_advance(a);
    }
    kit_check(a);
    REQUIRE_GE(kit_refusals(a).over_budget, 4);
}

enum { BUDGET_MIB = 64, ROOM_MIB = 16 };

/* What the process has had at most, by the kernel's own count, is within the budget and a room for all else: a group with
 * that limit has nobody to kill. */
static void budgeted(void* arg) {
    (void)arg;
    uint64_t before = now_of("VmRSS:");
    within_budget(BUDGET_MIB * KIT_MIB);
    uint64_t most = now_of("VmHWM:");
    printf("  %" PRIu64 " KiB resident at most, %" PRIu64 " before\n", most >> 10, before >> 10);
    if (most == 0) SKIP("/proc/self/status has no VmHWM");
    REQUIRE_LE(most, before + (BUDGET_MIB + ROOM_MIB) * KIT_MIB);
    slab_allocator_free(a);
}
static void a_budget_refuses_before_a_kill(void) { check_child(budgeted, NULL); }

/* ---- closes beside allocations, where the pages of an ended phase are read-only ---- */

static EpochId closing;

/* Allocates until the epoch is closed. An object may end before its allocation returns, so none is touched here. */
static void* allocates(void* arg) {
    size_t size = (size_t)(uintptr_t)arg;
    errno = 0;
    while (slab_malloc_epoch(a, size, closing) != NULL) {}
    return NULL;
}

static void closes_beside(void* arg) {
    enum { TEAM = 3 };
    static const size_t sizes[TEAM] = {64, 256, 3000};
    fake_os_install(0, true, false);
    a = kit_create_with(arg);
    for (size_t n = 0; n < check_count(300); n++) {
        pthread_t team[TEAM];
        closing = epoch_current(a);
        for (unsigned i = 0; i < TEAM; i++) team[i] = kit_thread(allocates, (void*)(uintptr_t)sizes[i]);
        for (size_t turns = n % 40; turns != 0; turns--) sched_yield();
        REQUIRE(epoch_close_ex(a, closing, EPOCH_RELEASE, NULL));
        for (unsigned i = 0; i < TEAM; i++) REQUIRE_EQ(pthread_join(team[i], NULL), 0);
    }
    REQUIRE_EQ(kit_live(a), 0);
    kit_check(a);
    slab_allocator_free(a);
}
static void closes_beside_allocations(void) {
    SlabOptions plain = kit_options(), hard = plain, blocks = plain, guards = plain, shared = plain;
    hard.fill_freed = hard.random_order = 1;
    blocks.by_malloc = 1;
    guards.guard_period = 50;
    shared.shared = hard.shared = 1;
    SlabOptions* all[] = {&plain, &hard, &blocks, &guards, &shared};
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) check_child(closes_beside, all[i]);
    hard.shared = 0;
    check_child(closes_beside, &hard);
}

static bool write_text(const char* folder, const char* name, const char* text) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE* f = fopen(path, "w");
    if (f == NULL) return false;
    bool ok = fputs(text, f) >= 0;
    return fclose(f) == 0 && ok;
}

/* TSLAB_TEST_GROUP names a folder of cgroup v2 or of v1's memory controller, empty and made for this test: the child goes
 * there. Without it there is no group that may be changed. */
static void grouped(void* arg) {
    const char* group = arg;
    char text[64];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)(BUDGET_MIB + ROOM_MIB) * KIT_MIB);
    if (!write_text(group, "memory.max", text) && !write_text(group, "memory.limit_in_bytes", text))
        SKIP("the group %s has no limit that may be written", group);
    (void)snprintf(text, sizeof text, "%d", (int)getpid());
    if (!write_text(group, "cgroup.procs", text)) SKIP("no process may go into the group %s", group);
    within_budget(BUDGET_MIB * KIT_MIB);
    slab_allocator_free(a);
}
static void a_budget_within_a_group(void) {
    const char* group = getenv("TSLAB_TEST_GROUP");
    if (group == NULL) SKIP("TSLAB_TEST_GROUP names no control group that may be limited");
    check_child(grouped, (void*)(uintptr_t)group);
}

static const CheckCase cases[] = {
    CHECK_CASE(mappings_are_used_up),
    CHECK_CASE(mappings_are_used_up_by_guards),
    CHECK_CASE(address_space_falls),
    CHECK_CASE(writable_memory_falls),
    CHECK_CASE(what_may_be_written_is_charged),
    CHECK_CASE(overcommit_is_refused),
    CHECK_CASE(closes_beside_allocations),
    CHECK_CASE(a_budget_refuses_before_a_kill),
    CHECK_CASE(a_budget_within_a_group),
};
CHECK_MAIN(cases)
