/*
 * test_segment_profile.c - the heap profile in shared memory: what is published and when, slots, and systems that refuse.
 *
 * As in test_segment.c the clock stands still but for what a test lets pass, and a trim is a call that publishes.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "contract/shown_profile.h"

#include "slab_diagnostics.h"

#include "heap/fork.h"
#include "heap/profile.h"
#include "stats/segment.h"
#include "stats/segment_profile.h"

#include <math.h>

enum { MEAN = 512, ROOM = 1 << 23 };

static uint64_t frozen_at;
static uint64_t frozen_clock(void) { return frozen_at + clock_skip; }
static uint64_t (*real_coarse)(void);
static int (*real_memfd)(const char*);
static int (*real_reserve_file)(int, size_t, size_t);
static const char* refused; /* the name of the memfd that the system has none of */
static unsigned reserve_calls, reserve_fails;
static uint64_t copy[ROOM / sizeof(uint64_t)];

static int fake_memfd(const char* name) {
    errno = EMFILE;
    return refused != NULL && strcmp(name, refused) == 0 ? -1 : real_memfd(name);
}
static int fake_reserve_file(int fd, size_t offset, size_t bytes) {
    return ++reserve_calls == reserve_fails ? ENOSPC : real_reserve_file(fd, offset, bytes);
}
/* Stands still for so many looks, then each takes ten milliseconds. */
static unsigned looks, quick_looks;
static uint64_t slow_clock(void) {
    if (++looks > quick_looks) clock_skip += 10000000;
    return frozen_clock();
}

static int set_up(void** state) {
    set_clock(state);
    tsi_segment_init();
    tsi_fork_drop_segment(); /* what an earlier test has left */
    real_coarse = tsi_os.coarse_ns;
    real_memfd = tsi_os.memfd;
    real_reserve_file = tsi_os.reserve_file;
    frozen_at = real_now();
    tsi_os.now_ns = tsi_os.quick_ns = tsi_os.coarse_ns = frozen_clock;
    tsi_os.memfd = fake_memfd;
    tsi_os.reserve_file = fake_reserve_file;
    refused = NULL;
    reserve_calls = reserve_fails = 0;
    return 0;
}
static int take_down(void** state) {
    tsi_os.coarse_ns = real_coarse;
    tsi_os.memfd = real_memfd;
    tsi_os.reserve_file = real_reserve_file;
    return reset_clock(state);
}

static SlabAllocator* create(uint64_t mean) {
    SlabOptions o = unit_options();
    o.segment = 1;
    o.profile_bytes = mean;
    SlabAllocator* a = slab_allocator_create_with(&o);
    assert_non_null(a);
    return a;
}
static uint64_t failures(SlabAllocator* a) { return tsi_segment_health(tsi_arena(a)).failures; }
static uint64_t publications(SlabAllocator* a) { return tsi_segment_health(tsi_arena(a)).publications; }

static const SlabProfileBuffer* read_slot(unsigned slot, const char* label, double* allocated, double* in_use) {
    Shown s = shown_open();
    assert_non_null(s.base);
    size_t n = shown_read(&s, slot, copy, sizeof copy);
    shown_close(&s);
    assert_int_not_equal(n, 0);
    const char* wrong = shown_check(copy, n, label, allocated, in_use);
    if (wrong != NULL) fail_msg("%s", wrong);
    return (const SlabProfileBuffer*)(const void*)copy;
}
static uint64_t number_in(unsigned slot) {
    double any;
    return read_slot(slot, NULL, &any, &any)->number;
}
static uint64_t state_of(unsigned slot) {
    Shown s = shown_open();
    assert_non_null(s.base);
    uint64_t state = shown_slot(&s, slot).state;
    shown_close(&s);
    return state;
}

static void near(double got, double want) {
    if (fabs(got - want) > 0.15 * want) fail_msg("%g instead of %g", got, want);
}

/* ---- what ---- */

static void what_was_sampled_is_shown(void** state) {
    enum { N = 4000 };
    static void* p[N];
    double allocated, in_use;
    (void)state;
    SlabAllocator* a = create(MEAN);
    epoch_domain_t* d = epoch_domain_begin(a, "GET /users");
    unit_take(a, 200, p, N);
    uint64_t size = slab_usable_size(a, p[0]);
    for (unsigned n = 0; n < N / 2; n++) slab_free(a, p[n]);
    epoch_domain_t* e = epoch_domain_begin(a, "other");
    assert_non_null(slab_malloc(a, 100000));
    epoch_domain_end(e);
    pass_seconds(1);
    slab_trim(a);
    const SlabProfileBuffer* b = read_slot(0, "GET /users", &allocated, &in_use);
    near(allocated, (double)(N * size));
    near(in_use, (double)(N / 2 * size));
    assert_int_equal(b->period, MEAN);
    assert_true(b->serial == tsi_arena(a)->serial);
    assert_true(b->begun_ns == frozen_clock());
    assert_int_equal(b->lost_stacks + b->lost_live, 0);
    TsiProfileStack* stacks = calloc(TSI_PROFILE_STACKS, sizeof *stacks);
    TsiProfileLive* live = calloc(TSI_PROFILE_LIVE, sizeof *live);
    TsiProfileCounts counts;
    assert_true(stacks != NULL && live != NULL);
    tsi_profile_copy(tsi_arena(a), stacks, live, &counts);
    assert_true(b->samples == counts.samples && b->stacks == counts.stack_count && b->live == counts.live_count);
    const SlabProfileLive* rows = (const SlabProfileLive*)(const void*)(b + 1);
    for (uint32_t n = 0; n < counts.live_count; n++)
        assert_true(rows[n].bytes == live[n].bytes && rows[n].era == live[n].era && rows[n].stack == live[n].stack && rows[n].size_class == live[n].cls - 1);
    const char* at = (const char*)(rows + b->live);
    for (uint32_t n = 0; n < counts.stack_count; n++) {
        SlabProfileStack s;
        memcpy(&s, at, sizeof s);
        assert_true(s.depth == stacks[n].depth && s.objects == stacks[n].objects);
        assert_memory_equal(at + sizeof s, stacks[n].frames, s.depth * sizeof(uint64_t));
        at += sizeof s + s.depth * sizeof(uint64_t);
    }
    free(stacks);
    free(live);
    epoch_domain_end(d);
    slab_allocator_free(a);
}

static void nothing_is_made_without_the_option(void** state) {
    (void)state;
    SlabAllocator* a = create(0);
    pass_seconds(1);
    slab_trim(a);
    assert_int_equal(publications(a), 2);
    assert_null(shown_open().base);
    slab_allocator_free(a);
    SlabOptions o = unit_options();
    o.profile_bytes = MEAN; /* a profile, and no segment */
    a = slab_allocator_create_with(&o);
    pass_seconds(1);
    slab_trim(a);
    assert_null(shown_open().base);
    slab_allocator_free(a);
}

/* ---- when ---- */

static void not_too_often(void** state) {
    (void)state;
    SlabAllocator *plain = create(0), *a = create(MEAN);
    clock_skip += TSI_SEGMENT_PERIOD_NS;
    quick_looks = UINT32_MAX;
    tsi_os.now_ns = slow_clock;
    looks = 0;
    slab_trim(plain);
    quick_looks = looks; /* of the rows; what follows is the profile's */
    assert_true(quick_looks > 2);
    assert_int_equal(number_in(1), 1);
    looks = 0;
    slab_trim(a); /* it seems to take 20 ms and more */
    tsi_os.now_ns = frozen_clock;
    assert_true(looks > quick_looks);
    uint64_t rows = publications(a);
    assert_int_equal(number_in(1), 2);
    for (unsigned n = 1; n <= 19; n++) { /* 1.9 of at least two seconds */
        clock_skip += TSI_SEGMENT_PERIOD_NS;
        slab_trim(a);
    }
    assert_int_equal(number_in(1), 2);
    assert_int_equal(publications(a), rows + 19); /* the rows' pause is their own */
    pass_seconds(2);
    slab_trim(a);
    assert_int_equal(number_in(1), 3);
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
    assert_true(read_slot(0, NULL, &any, &any)->number == n / 2);
    return frozen_clock();
}

static void the_one_before_stays_whole(void** state) {
    static void* p[100];
    (void)state;
    SlabAllocator* a = create(MEAN);
    halves = 0;
    tsi_os.now_ns = watching_clock;
    for (unsigned n = 1; n <= 4; n++) {
        unit_take(a, 1000, p, 100);
        pass_seconds(1);
        slab_trim(a);
        assert_int_equal(halves, n);
    }
    tsi_os.now_ns = frozen_clock;
    slab_allocator_free(a);
}

/* ---- slots ---- */

static void the_next_of_a_slot_shows_its_own_or_none(void** state) {
    (void)state;
    SlabAllocator* a = create(MEAN);
    uint64_t serial = tsi_arena(a)->serial;
    double any;
    assert_int_equal(state_of(0), SLAB_SEGMENT_LIVE);
    slab_allocator_free(a);
    assert_int_equal(state_of(0), SLAB_SEGMENT_ENDED); /* and can be read */
    assert_true(read_slot(0, NULL, &any, &any)->serial == serial);
    pass_seconds(2);
    a = create(0);
    assert_int_equal(state_of(0), SLAB_SEGMENT_FREE);
    slab_allocator_free(a);
    pass_seconds(2);
    a = create(MEAN);
    assert_int_equal(state_of(0), SLAB_SEGMENT_LIVE);
    assert_int_equal(read_slot(0, NULL, &any, &any)->number, 2);
    assert_true(read_slot(0, NULL, &any, &any)->serial == tsi_arena(a)->serial);
    SlabAllocator* b = create(MEAN);
    assert_true(read_slot(1, NULL, &any, &any)->serial == tsi_arena(b)->serial);
    slab_allocator_free(a);
    slab_allocator_free(b);
}

static void a_child_shows_its_own(void** state) {
    (void)state;
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
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(number_in(0), 1);
    slab_allocator_free(a);
}

/* ---- systems that refuse ---- */

static bool collect(void* ctx, const char* bytes, size_t n) {
    char* text = ctx;
    size_t used = strlen(text);
    if (used + n < 16384) memcpy(text + used, bytes, n), text[used + n] = 0;
    return true;
}

static void without_pages(void** state) {
    static char text[16384];
    (void)state;
    reserve_fails = 4; /* the segment's tables and slot, the profile's head; now a buffer */
    SlabAllocator* a = create(MEAN);
    assert_int_equal(reserve_calls, 4);
    assert_int_equal(publications(a), 1); /* the rows are there */
    assert_int_equal(failures(a), 1);
    assert_int_equal(state_of(0), SLAB_SEGMENT_FREE);
    assert_true(slab_doctor(a, collect, text));
    if (strstr(text, "reserving pages for the profile") == NULL) fail_msg("the doctor: %s", text);
    reserve_fails = reserve_calls + 1; /* and still none a tenth of a second later: that is not tried */
    clock_skip += TSI_SEGMENT_PERIOD_NS;
    slab_trim(a);
    assert_int_equal(publications(a), 2);
    assert_int_equal(failures(a), 1);
    reserve_fails = 0;
    pass_seconds(2);
    slab_trim(a);
    assert_int_equal(failures(a), 1);
    assert_int_equal(number_in(0), 1);
    slab_allocator_free(a);
}

static void without_a_memfd(void** state) {
    char folder[] = "/tmp/profile-test-XXXXXX", sub[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(sub, sizeof sub, "%s/temporal-slab", folder);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    refused = "tslab-profile";
    SlabAllocator* a = create(MEAN);
    assert_int_equal(failures(a), 0);
    assert_int_equal(number_in(0), 1);
    slab_allocator_free(a);
    assert_int_equal(rmdir(sub), 0); /* made, and nothing was left in it */
    assert_int_equal(rmdir(folder), 0);
    unsetenv("XDG_RUNTIME_DIR");
}

/* Pages of a buffer are reserved as far as a profile needs them. */
static void it_grows(void** state) {
    enum { N = 20000 };
    static void* p[N];
    double allocated, in_use;
    struct stat before, after;
    (void)state;
    SlabAllocator* a = create(MEAN);
    Shown s = shown_open();
    assert_int_equal(fstat(s.fd, &before), 0);
    assert_true((size_t)before.st_size > 32 * tsi_share_profile_most());
    assert_true(before.st_blocks * 512 < 256 << 10);
    unit_take(a, 1000, p, N);
    for (unsigned n = 0; n < 2; n++) {
        pass_seconds(1);
        slab_trim(a);
        (void)read_slot(0, NULL, &allocated, &in_use);
        near(in_use, (double)N * (double)slab_usable_size(a, p[0]));
    }
    assert_int_equal(fstat(s.fd, &after), 0);
    assert_true(after.st_blocks > before.st_blocks && after.st_size == before.st_size);
    shown_close(&s);
    slab_allocator_free(a);
}

#undef TEST
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, take_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_was_sampled_is_shown),
        TEST(nothing_is_made_without_the_option),
        TEST(not_too_often),
        TEST(the_one_before_stays_whole),
        TEST(the_next_of_a_slot_shows_its_own_or_none),
        TEST(a_child_shows_its_own),
        TEST(without_pages),
        TEST(without_a_memfd),
        TEST(it_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
