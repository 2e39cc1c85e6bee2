/*
 * test_segment_profile.c - the heap profile in shared memory: what is published and when, slots, and systems that refuse.
 *
 * As in test_segment.c the clock stands still but for what a test lets pass, and a trim is a call that publishes.
 */
#define _GNU_SOURCE
#include "frozen.h"
#include "contract/shown_profile.h"

#include "slab_diagnostics.h"

#include "observe/profile.h"
#include "stats/segment_profile.h"
#include "stats/segment_rows.h"

#include <math.h>

enum { MEAN = 512, ROOM = 1 << 23 };

static const char* refused; /* the name of the memfd that the system has none of */
static uint64_t copy[ROOM / sizeof(uint64_t)];

static int fake_memfd(const char* name) {
    errno = EMFILE;
    return refused != NULL && strcmp(name, refused) == 0 ? -1 : real_memfd(name);
}
/* Stands still for so many looks, then each takes ten milliseconds. */
static unsigned looks, quick_looks;
static uint64_t slow_clock(void) {
    if (++looks > quick_looks) clock_skip += 10000000;
    return frozen_clock();
}

static void set_up(void) {
    refused = NULL;
    freeze(fake_memfd);
}

static SlabAllocator* create(uint64_t mean) {
    SlabOptions o = kit_options();
    o.segment = 1;
    o.profile_bytes = mean;
    return kit_create_with(&o);
}

static const SlabProfileBuffer* read_slot(unsigned slot, const char* label, double* allocated, double* in_use) {
    Shown s = shown_open();
    REQUIRE(s.base != NULL);
    size_t n = shown_read(&s, slot, copy, sizeof copy);
    shown_close(&s);
    REQUIRE_NE(n, 0);
    const char* wrong = shown_check(copy, n, label, allocated, in_use);
    if (wrong != NULL) FAIL("%s", wrong);
    return (const SlabProfileBuffer*)(const void*)copy;
}
static uint64_t number_in(unsigned slot) {
    double any;
    return read_slot(slot, NULL, &any, &any)->number;
}
static uint64_t state_of(unsigned slot) {
    Shown s = shown_open();
    REQUIRE(s.base != NULL);
    uint64_t state = shown_slot(&s, slot).state;
    shown_close(&s);
    return state;
}

static void near(double got, double want) {
    if (fabs(got - want) > 0.15 * want) FAIL("%g instead of %g", got, want);
}

/* ---- what ---- */

static void what_was_sampled_is_shown(void) {
    enum { N = 4000 };
    static void* p[N];
    double allocated, in_use;
    SlabAllocator* a = create(MEAN);
    epoch_domain_t* d = epoch_domain_begin(a, "GET /users");
    kit_take(a, 200, p, N);
    uint64_t size = slab_usable_size(a, p[0]);
    for (unsigned n = 0; n < N / 2; n++) slab_free(a, p[n]);
    epoch_domain_t* e = epoch_domain_begin(a, "other");
    REQUIRE(slab_malloc(a, 100000) != NULL);
    epoch_domain_end(e);
    pass_seconds(1);
    slab_trim(a);
    const SlabProfileBuffer* b = read_slot(0, "GET /users", &allocated, &in_use);
    near(allocated, (double)(N * size));
    near(in_use, (double)(N / 2 * size));
    REQUIRE_EQ(b->period, MEAN);
    REQUIRE(b->serial == tsi_arena(a)->serial);
    REQUIRE(b->begun_ns == frozen_clock());
    REQUIRE_EQ(b->lost_stacks + b->lost_live, 0);
    TsiProfileStack* stacks = calloc(TSI_PROFILE_STACKS, sizeof *stacks);
    TsiProfileLive* live = calloc(TSI_PROFILE_LIVE, sizeof *live);
    TsiProfileCounts counts;
    REQUIRE(stacks != NULL && live != NULL);
    tsi_profile_copy(tsi_arena(a), stacks, live, &counts);
    REQUIRE(b->samples == counts.samples && b->stacks == counts.stack_count && b->live == counts.live_count);
    const SlabProfileLive* rows = (const SlabProfileLive*)(const void*)(b + 1);
    for (uint32_t n = 0; n < counts.live_count; n++)
        REQUIRE(rows[n].bytes == live[n].bytes && rows[n].era == live[n].era && rows[n].stack == live[n].stack &&
                rows[n].size_class == live[n].cls - 1);
    const char* at = (const char*)(rows + b->live);
    for (uint32_t n = 0; n < counts.stack_count; n++) {
        SlabProfileStack s;
        memcpy(&s, at, sizeof s);
        REQUIRE(s.depth == stacks[n].depth && s.objects == stacks[n].objects);
        REQUIRE(memcmp(at + sizeof s, stacks[n].frames, s.depth * sizeof(uint64_t)) == 0);
        at += sizeof s + s.depth * sizeof(uint64_t);
    }
    free(stacks);
    free(live);
    epoch_domain_end(d);
    slab_allocator_free(a);
}

static void nothing_is_made_without_the_option(void) {
    SlabAllocator* a = create(0);
    pass_seconds(1);
    slab_trim(a);
    REQUIRE_EQ(publications(a), 2);
    REQUIRE_NULL(shown_open().base);
    slab_allocator_free(a);
    SlabOptions o = kit_options();
    o.profile_bytes = MEAN; /* a profile, and no segment */
    a = slab_allocator_create_with(&o);
    pass_seconds(1);
    slab_trim(a);
    REQUIRE_NULL(shown_open().base);
    slab_allocator_free(a);
}

/* What is made outside comes with the label of the scope that made it, and that with its stack. */
static void makers_are_shown(void) {
    enum { N = 4000 };
    double any;
    SlabAllocator* a = create(MEAN);
    epoch_domain_t* d = epoch_domain_begin(a, "POST /session");
    uint64_t size = 0;
    for (unsigned n = 0; n < N; n++) {
        void* p = slab_malloc_outside(a, 200);
        REQUIRE(p != NULL && slab_malloc(a, 200) != NULL);
        size = slab_usable_size(a, p);
    }
    epoch_domain_end(d);
    pass_seconds(1);
    slab_trim(a);
    const SlabProfileBuffer* b = read_slot(0, NULL, &any, &any);
    REQUIRE_NE(b->makers, 0);
    const SlabProfileMaker* m = (const SlabProfileMaker*)(const void*)((const char*)b + b->bytes) - b->makers;
    const SlabProfileLive* live = (const SlabProfileLive*)(const void*)(b + 1);
    double in_use = 0;
    for (uint64_t k = 0; k < b->makers; k++) {
        REQUIRE_STR(m[k].label, "POST /session");
        for (uint64_t n = 0; n < b->live; n++)
            if (live[n].stack == m[k].stack) in_use += (double)live[n].bytes * tsi_profile_weight(live[n].bytes, MEAN);
    }
    near(in_use, (double)(N * size));
    slab_allocator_free(a);
}

/* ---- when ---- */

static void not_too_often(void) {
    SlabAllocator *plain = create(0), *a = create(MEAN);
    clock_skip += TSI_SEGMENT_PERIOD_NS;
    quick_looks = UINT32_MAX;
    tsi_os.now_ns = slow_clock;
    looks = 0;
    slab_trim(plain);
    quick_looks = looks; /* of the rows; what follows is the profile's */
    REQUIRE(quick_looks > 2);
    REQUIRE_EQ(number_in(1), 1);
    looks = 0;
    slab_trim(a); /* it seems to take 20 ms and more */
    tsi_os.now_ns = frozen_clock;
    REQUIRE(looks > quick_looks);
    uint64_t rows = publications(a);
    REQUIRE_EQ(number_in(1), 2);
    for (unsigned n = 1; n <= 19; n++) { /* 1.9 of at least two seconds */
        clock_skip += TSI_SEGMENT_PERIOD_NS;
        slab_trim(a);
    }
    REQUIRE_EQ(number_in(1), 2);
    REQUIRE_EQ(publications(a), rows + 19); /* the rows' pause is their own */
    pass_seconds(2);
    slab_trim(a);
    REQUIRE_EQ(number_in(1), 3);
    slab_allocator_free(plain);
    slab_allocator_free(a);
}

/* The last look at the clock before a publication is complete: it says so, and the one before it is whole. */
static unsigned halves;
static uint64_t watching_clock(void) {
    double any;
    Shown s = shown_open();
    uint64_t n = s.base != NULL ? shown_slot(&s, 0).sequence : 0;
    shown_close(&s);
    if (n % 2 == 0 || n < 3) return frozen_clock();
    halves++;
    REQUIRE(read_slot(0, NULL, &any, &any)->number == n / 2);
    return frozen_clock();
}

static void the_one_before_stays_whole(void) {
    static void* p[100];
    SlabAllocator* a = create(MEAN);
    halves = 0;
    tsi_os.now_ns = watching_clock;
    for (unsigned n = 1; n <= 4; n++) {
        kit_take(a, 1000, p, 100);
        pass_seconds(1);
        slab_trim(a);
        REQUIRE_EQ(halves, n);
    }
    tsi_os.now_ns = frozen_clock;
    slab_allocator_free(a);
}

/* ---- slots ---- */

static void the_next_of_a_slot_shows_its_own_or_none(void) {
    SlabAllocator* a = create(MEAN);
    uint64_t serial = tsi_arena(a)->serial;
    double any;
    REQUIRE_EQ(state_of(0), SLAB_SEGMENT_LIVE);
    slab_allocator_free(a);
    REQUIRE_EQ(state_of(0), SLAB_SEGMENT_ENDED); /* and can be read */
    REQUIRE(read_slot(0, NULL, &any, &any)->serial == serial);
    pass_seconds(2);
    a = create(0);
    REQUIRE_EQ(state_of(0), SLAB_SEGMENT_FREE);
    slab_allocator_free(a);
    pass_seconds(2);
    a = create(MEAN);
    REQUIRE_EQ(state_of(0), SLAB_SEGMENT_LIVE);
    REQUIRE_EQ(read_slot(0, NULL, &any, &any)->number, 2);
    REQUIRE(read_slot(0, NULL, &any, &any)->serial == tsi_arena(a)->serial);
    SlabAllocator* b = create(MEAN);
    REQUIRE(read_slot(1, NULL, &any, &any)->serial == tsi_arena(b)->serial);
    slab_allocator_free(a);
    slab_allocator_free(b);
}

static void a_child_shows_its_own(void) {
    SlabAllocator* a = create(MEAN);
    pid_t pid = fork();
    if (pid == 0) {
        bool none = shown_open().base == NULL;
        pass_seconds(1);
        slab_trim(a);
        Shown s = shown_open();
        SlabSegmentHeader h = {.pid = 0};
        if (s.base != NULL) shown_copy(&s, 0, &h, sizeof h);
        _exit(none && h.pid == (uint64_t)getpid() ? 0 : 1);
    }
    int status;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    REQUIRE_EQ(status, 0);
    REQUIRE_EQ(number_in(0), 1);
    slab_allocator_free(a);
}

/* ---- systems that refuse ---- */

static bool collect(void* ctx, const char* bytes, size_t n) {
    char* text = ctx;
    size_t used = strlen(text);
    if (used + n < 16384) memcpy(text + used, bytes, n), text[used + n] = 0;
    return true;
}

static void without_pages(void) {
    static char text[16384];
    reserve_fails = 4; /* the segment's tables and slot, the profile's head; now a buffer */
    SlabAllocator* a = create(MEAN);
    REQUIRE_EQ(reserve_calls, 4);
    REQUIRE_EQ(publications(a), 1); /* the rows are there */
    REQUIRE_EQ(failures(a), 1);
    REQUIRE_EQ(state_of(0), SLAB_SEGMENT_FREE);
    REQUIRE(slab_doctor(a, collect, text));
    REQUIRE_HAS(text, "reserving pages for the profile");
    reserve_fails = reserve_calls + 1; /* and still none a tenth of a second later: that is not tried */
    clock_skip += TSI_SEGMENT_PERIOD_NS;
    slab_trim(a);
    REQUIRE_EQ(publications(a), 2);
    REQUIRE_EQ(failures(a), 1);
    reserve_fails = 0;
    pass_seconds(2);
    slab_trim(a);
    REQUIRE_EQ(failures(a), 1);
    REQUIRE_EQ(number_in(0), 1);
    slab_allocator_free(a);
}

static void without_a_memfd(void) {
    char folder[] = "/tmp/profile-test-XXXXXX", sub[64];
    REQUIRE(mkdtemp(folder) != NULL);
    (void)snprintf(sub, sizeof sub, "%s/temporal-slab", folder);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    refused = "tslab-profile";
    SlabAllocator* a = create(MEAN);
    REQUIRE_EQ(failures(a), 0);
    REQUIRE_EQ(number_in(0), 1);
    slab_allocator_free(a);
    REQUIRE_EQ(rmdir(sub), 0); /* made, and nothing was left in it */
    REQUIRE_EQ(rmdir(folder), 0);
    unsetenv("XDG_RUNTIME_DIR");
}

/* Pages of a buffer are reserved as far as a profile needs them. */
static void it_grows(void) {
    enum { N = 20000 };
    static void* p[N];
    double allocated, in_use;
    struct stat before, after;
    SlabAllocator* a = create(MEAN);
    Shown s = shown_open();
    REQUIRE_EQ(fstat(s.fd, &before), 0);
    REQUIRE((size_t)before.st_size > 32 * tsi_share_profile_most());
    REQUIRE(before.st_blocks * 512 < 256 << 10);
    kit_take(a, 1000, p, N);
    for (unsigned n = 0; n < 2; n++) {
        pass_seconds(1);
        slab_trim(a);
        (void)read_slot(0, NULL, &allocated, &in_use);
        near(in_use, (double)N * (double)slab_usable_size(a, p[0]));
    }
    REQUIRE_EQ(fstat(s.fd, &after), 0);
    REQUIRE(after.st_blocks > before.st_blocks && after.st_size == before.st_size);
    shown_close(&s);
    slab_allocator_free(a);
}

#undef TEST
#define TEST(fn) CHECK_CASE_WITH(fn, set_up, thaw)

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        TEST(what_was_sampled_is_shown),
        TEST(makers_are_shown),
        TEST(nothing_is_made_without_the_option),
        TEST(not_too_often),
        TEST(the_one_before_stays_whole),
        TEST(the_next_of_a_slot_shows_its_own_or_none),
        TEST(a_child_shows_its_own),
        TEST(without_pages),
        TEST(without_a_memfd),
        TEST(it_grows),
    };
    return CHECK_RUN(argc, argv, tests);
}
