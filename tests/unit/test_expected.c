/*
 * test_expected.c - escapes that a label may have: which phases are told of, and by what.
 */
#include "clock.h"

#include "slab_diagnostics.h"

#include <errno.h>

enum { MOST = 64 };
static SlabAllocator* a;
static char text[1 << 16];
static size_t used;

static bool collect(void* ctx, const char* bytes, size_t n) {
    (void)ctx;
    REQUIRE(used + n < sizeof text);
    memcpy(text + used, bytes, n);
    text[used += n] = 0;
    return true;
}
static const char* doctor(unsigned leak_sec) {
    used = 0;
    REQUIRE(slab_doctor_ex(a, leak_sec, collect, NULL));
    return text;
}

static SlabLabelStats row_of(const char* label) {
    SlabLabelStats rows[MOST];
    size_t n = slab_stats_labels(a, rows, MOST);
    REQUIRE_LE(n, MOST);
    for (size_t k = 0; k < n; k++)
        if (strcmp(rows[k].label, label) == 0) return rows[k];
    REQUIRE_OR(false, "no label %s", label);
    return rows[0];
}

/* A phase that lets so many objects of 64 bytes escape; they are put at `to`. */
static void phase(const char* label, unsigned escapes, void** to) {
    epoch_domain_t* d = epoch_domain_begin(a, label);
    EpochReceipt r;
    REQUIRE(d != NULL);
    for (unsigned n = 0; n < 20; n++) {
        void* p = slab_malloc(a, 64);
        REQUIRE(p != NULL);
        if (n < escapes) to[n] = p;
        else slab_free(a, p);
    }
    REQUIRE(epoch_domain_drain(d, &r));
    REQUIRE_EQ(r.objects_escaped, escapes);
}

static void what_is_expected_is_no_alarm(void) {
    void* kept[3][20];
    a = kit_create();
    REQUIRE(slab_label_expect_escapes(a, "GET", 2, 128));
    phase("GET", 2, kept[0]);
    phase("GET", 0, kept[1]);
    phase("other", 1, kept[1]);
    pass_seconds(100);
    SlabLabelStats l = row_of("GET"), other = row_of("other");
    CHECK_EQ(l.expected_objects, 2);
    CHECK_EQ(l.expected_bytes, 128);
    CHECK_EQ(l.objects_escaped, 2);
    CHECK_EQ(l.draining_phases, 1);
    CHECK_GE(l.oldest_draining_ns, 100000000000u);
    CHECK_EQ(l.unexpected_phases, 0);
    CHECK_EQ(l.unexpected_draining_phases + l.unexpected_draining_objects + l.unexpected_draining_bytes, 0);
    CHECK_EQ(l.oldest_unexpected_ns, 0);
    CHECK_EQ(other.expected_objects + other.expected_bytes, 0);
    CHECK_EQ(other.unexpected_phases, 1);
    CHECK_EQ(other.unexpected_draining_objects, other.draining_objects);
    CHECK_EQ(other.oldest_unexpected_ns, other.oldest_draining_ns);
    CHECK_EQ(slab_detect_epoch_leaks(a, 60, 0, NULL), 1);
    CHECK_HAS(doctor(60), "\"other\" leaks 1 object of ");
    CHECK_HAS(text,
              "\"GET\": ended phases have let 2 objects (128 B) escape so far; still live: 2 in 1 phase, the oldest "
              "100 s old; expected per phase: up to 2 objects with 128 B in total.");
    CHECK_NULL(strstr(text, "\"GET\" leaks"));
    CHECK_NULL(strstr(text, "let more escape"));
    slab_free(a, kept[0][0]);
    slab_free(a, kept[0][1]);
    CHECK_EQ(row_of("GET").objects_escaped, 2); /* what drains is one figure, what escaped another */
    CHECK_EQ(row_of("GET").draining_phases, 0);
    CHECK_HAS(doctor(60), "\"GET\": ended phases have let 2 objects (128 B) escape so far; none of them is live; expected");
    kit_check(a);
    slab_allocator_free(a);
}

/* More objects, or larger ones, are told of until the last of them is freed. */
static void one_more_is_told_of(void) {
    void *kept[20], *few[20];
    a = kit_create();
    REQUIRE(slab_label_expect_escapes(a, "GET", 2, 128));
    phase("GET", 3, kept);
    pass_seconds(30);
    phase("GET", 2, few);
    pass_seconds(40);
    SlabLabelStats l = row_of("GET");
    CHECK_EQ(l.draining_phases, 2);
    CHECK_EQ(l.unexpected_phases, 1);
    CHECK_EQ(l.unexpected_draining_phases, 1);
    CHECK_EQ(l.unexpected_draining_objects, 3);
    CHECK_LE(l.unexpected_draining_bytes, l.draining_bytes);
    CHECK_GT(l.unexpected_draining_bytes, 0);
    CHECK_EQ(l.oldest_unexpected_ns, l.oldest_draining_ns);
    CHECK_EQ(slab_detect_epoch_leaks(a, 60, 0, NULL), 1);
    CHECK_HAS(doctor(60), "\"GET\" leaks 3 objects of ");
    CHECK_HAS(text, "ACTION: \"GET\": 1 of 2 ended phases let more escape than the expected 2 objects with 128 B");
    slab_free(a, kept[0]);
    slab_free(a, kept[1]);
    slab_trim(a); /* a report counts what is left */
    l = row_of("GET");
    CHECK_EQ(l.unexpected_draining_phases, 1);
    CHECK_HAS(doctor(60), "\"GET\" leaks 1 object of ");
    kit_check(a);
    slab_free(a, kept[2]);
    l = row_of("GET");
    CHECK_EQ(l.unexpected_draining_phases, 0);
    CHECK_EQ(l.oldest_unexpected_ns, 0);
    CHECK_EQ(l.draining_phases, 1);
    CHECK_EQ(l.unexpected_phases, 1);
    kit_check(a);
    slab_allocator_free(a);
}

static void bytes_count_too(void) {
    void* p;
    a = kit_create();
    REQUIRE(slab_label_expect_escapes(a, "GET", 5, 1000));
    epoch_domain_t* d = epoch_domain_begin(a, "GET");
    REQUIRE((p = slab_malloc(a, 100000)) != NULL);
    REQUIRE(epoch_domain_drain(d, NULL));
    CHECK_EQ(row_of("GET").unexpected_phases, 1);
    CHECK_EQ(row_of("GET").unexpected_draining_phases, 1);
    slab_free(a, p);
    CHECK_EQ(row_of("GET").unexpected_draining_phases, 0);
    slab_allocator_free(a);
}

/* The oldest of those that are told of, among many that are not, in each place. */
static void the_oldest_of_some(void) {
    enum { PHASES = 40 };
    for (unsigned which = 0; which < PHASES; which++) {
        void* kept[PHASES][20];
        a = kit_create();
        REQUIRE(slab_label_expect_escapes(a, "GET", 1, 1 << 20));
        for (unsigned n = 0; n < PHASES; n++) {
            phase("GET", n >= which && (n - which) % 7 == 0 ? 2 : 1, kept[n]);
            pass_seconds(1);
        }
        SlabLabelStats l = row_of("GET");
        CHECK_EQ(l.draining_phases, PHASES);
        CHECK_EQ(l.unexpected_draining_phases, (PHASES - which + 6) / 7);
        CHECK_EQ(l.unexpected_draining_objects, 2 * ((PHASES - which + 6) / 7));
        CHECK_EQ(l.oldest_unexpected_ns / 1000000000u, PHASES - which);
        kit_check(a);
        for (unsigned n = 0; n < PHASES; n++) slab_free(a, kept[n][0]);
        kit_check(a);
        CHECK_EQ(row_of("GET").unexpected_draining_phases, (PHASES - which + 6) / 7);
        slab_allocator_free(a);
    }
}

/* What drains already is judged by what it holds when something is said of its label. */
static void said_later_and_taken_back(void) {
    void *one[20], *three[20];
    a = kit_create();
    phase("GET", 1, one);
    phase("GET", 3, three);
    CHECK_EQ(row_of("GET").unexpected_draining_phases, 2);
    CHECK_EQ(row_of("GET").unexpected_phases, 2);
    REQUIRE(slab_label_expect_escapes(a, "GET", 2, 1000));
    kit_check(a);
    CHECK_EQ(row_of("GET").unexpected_draining_phases, 1);
    CHECK_EQ(row_of("GET").unexpected_draining_objects, 3);
    CHECK_EQ(row_of("GET").unexpected_phases, 2);
    REQUIRE(slab_label_expect_escapes(a, "GET", 3, 1000));
    CHECK_EQ(row_of("GET").unexpected_draining_phases, 0);
    REQUIRE(slab_label_expect_escapes(a, "GET", 0, 0));
    CHECK_EQ(row_of("GET").unexpected_draining_phases, 2);
    CHECK_EQ(row_of("GET").unexpected_draining_objects, 4);
    kit_check(a);
    slab_allocator_free(a);
}

/* Epochs of the ring that it has moved past: their slabs are still a heap's, and in no tree. */
static void epochs_of_the_ring(void) {
    a = kit_create();
    REQUIRE(slab_label_expect_escapes(a, "batch", 2, 1000));
    for (unsigned n = 2; n <= 3; n++) {
        EpochId id = epoch_advance_id(a);
        slab_epoch_set_label(a, id, "batch");
        for (unsigned k = 0; k < n; k++) REQUIRE(slab_malloc(a, 64) != NULL);
    }
    epoch_advance(a);
    pass_seconds(100);
    SlabLabelStats l = row_of("batch");
    CHECK_EQ(l.draining_phases, 2);
    CHECK_EQ(l.unexpected_draining_phases, 1);
    CHECK_EQ(l.unexpected_draining_objects, 3);
    CHECK_EQ(slab_detect_epoch_leaks(a, 60, 0, NULL), 1);
    kit_check(a);
    slab_allocator_free(a);
}

static void refusals(void) {
    SlabOptions o = kit_options();
    o.max_labels = 3;
    a = kit_create_with(&o);
    errno = 0;
    CHECK(!slab_label_expect_escapes(NULL, "GET", 1, 1));
    CHECK_EQ(errno, EINVAL);
    errno = 0;
    CHECK(!slab_label_expect_escapes(a, NULL, 1, 1));
    CHECK_EQ(errno, EINVAL);
    CHECK(!slab_label_expect_escapes(a, "", 1, 1));
    CHECK(slab_label_expect_escapes(a, "GET", UINT32_MAX, UINT64_MAX));
    errno = 0;
    CHECK(!slab_label_expect_escapes(a, "no room", 1, 1));
    CHECK_EQ(errno, ENOMEM);
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    static const CheckCase tests[] = {
        TEST(what_is_expected_is_no_alarm), TEST(one_more_is_told_of), TEST(bytes_count_too), TEST(the_oldest_of_some),
        TEST(said_later_and_taken_back),    TEST(epochs_of_the_ring),  TEST(refusals),
    };
    return CHECK_RUN(argc, argv, tests);
}
