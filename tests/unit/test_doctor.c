/* test_doctor.c - the doctor's text: of allocators, and of figures made up for it. */
#define KIT_RING_BY_CLASS
#include "clock.h"
#include "fake_os.h"

#include "slab_diagnostics.h"
#include "stats/doctor.h"

/* ---- text ---- */

typedef struct Text {
    char at[1 << 16];
    size_t used, calls, stop_after;
} Text;

static bool collect(void* ctx, const char* bytes, size_t n) {
    Text* t = ctx;
    REQUIRE(n != 0 && t->used + n < sizeof t->at);
    memcpy(t->at + t->used, bytes, n);
    t->used += n;
    t->at[t->used] = 0;
    return ++t->calls != t->stop_after;
}

static bool has(const Text* t, const char* words) { return strstr(t->at, words) != NULL; }

static unsigned actions(const Text* t) {
    unsigned n = 0;
    for (const char* at = t->at; (at = strstr(at, "   ACTION: ")) != NULL; at++) n++;
    return n;
}

/* ---- of allocators ---- */

static void a_healthy_allocator(void) {
    static Text t;
    SlabAllocator* a = kit_create();
    memset(&t, 0, sizeof t);
    for (int n = 0; n < 100; n++) slab_free(a, slab_malloc(a, 64));
    REQUIRE(slab_doctor(a, collect, &t));
    REQUIRE_HAS(t.at, "Leaks: none found");
    REQUIRE_HAS(t.at, "nothing was refused");
    REQUIRE_HAS(t.at, "Sampling: off");
    REQUIRE_HAS(t.at, "7. Labels: ");
    REQUIRE_HAS(t.at, "Nothing needs attention.");
    REQUIRE_EQ(actions(&t), 0);
    slab_allocator_free(a);
}

/* One of something is said as one, but for what labels say. */
static void one_is_no_plural(void) {
    static Text t;
    SlabAllocator* a = kit_create();
    memset(&t, 0, sizeof t);
    epoch_domain_t* d = epoch_domain_begin(a, "1 objects");
    REQUIRE(slab_malloc(a, 64) != NULL);
    REQUIRE(epoch_domain_drain(d, NULL));
    REQUIRE(slab_doctor_ex(a, 0, collect, &t));
    REQUIRE_HAS(t.at, ", 1 object live, ");
    REQUIRE_HAS(t.at, "1. Leaks: 1 object, ");
    REQUIRE_HAS(t.at, "\"1 objects\" leaks 1 object of ");
    REQUIRE_HAS(t.at, "\"1 objects\" in all: 1 ended phase holds 1 object in ");
    slab_allocator_free(a);
}

static void the_doctor_names_the_leak(void) {
    static Text t;
    SlabAllocator* a = kit_create();
    memset(&t, 0, sizeof t);
    EpochId id = epoch_advance_id(a);
    slab_epoch_set_label(a, id, "GET /x\n");
    for (int n = 0; n < 40; n++) REQUIRE(slab_malloc(a, 128) != NULL);
    slab_epoch_set_label(a, epoch_advance_id(a), "held");
    slab_epoch_inc_refcount(a, epoch_current(a));
    REQUIRE(slab_malloc(a, 128) != NULL);
    epoch_close(a, epoch_current(a));
    epoch_advance(a);
    REQUIRE(slab_doctor(a, collect, &t));
    REQUIRE_HAS(t.at, "Leaks: none found: no ended phase of 60 s or more holds an object.");
    REQUIRE_HAS(t.at, "Too young to judge: 41 objects");
    memset(&t, 0, sizeof t);
    REQUIRE(slab_doctor_ex(a, 0, collect, &t)); /* whoever knows that all is over need not wait */
    REQUIRE_HAS(t.at, "1. Leaks: 41 objects, ");
    REQUIRE_HAS(t.at, " of slabs, in ended phases.\n");
    REQUIRE_HAS(t.at, "ACTION: \"GET /x?\"");
    REQUIRE_EQ(actions(&t), 2);
    REQUIRE_NULL(strstr(t.at, "Too young"));
    pass_seconds(5);
    memset(&t, 0, sizeof t);
    REQUIRE(slab_doctor_ex(a, 6, collect, &t));
    REQUIRE_HAS(t.at, "Leaks: none found: no ended phase of 6 s or more");
    memset(&t, 0, sizeof t);
    REQUIRE(slab_doctor_ex(a, 5, collect, &t));
    REQUIRE_HAS(t.at, "in ended phases of 5 s or more.\n");
    REQUIRE_EQ(actions(&t), 2);
    pass_seconds(56);
    memset(&t, 0, sizeof t);
    REQUIRE(slab_doctor(a, collect, &t));
    REQUIRE_HAS(t.at, "1. \"GET /x?\", class 2 (128 B): 40 live");
    REQUIRE_HAS(t.at, "never closed");
    REQUIRE_HAS(t.at, "2. \"held\"");
    REQUIRE_HAS(t.at, "with 1 open reference to it");
    REQUIRE_EQ(actions(&t), 2);
    REQUIRE_HAS(t.at, "\n2 things need attention: see ACTION below.\n1. Leaks: ");
    REQUIRE_HAS(t.at, "\"held\" in all: 1 ended phase holds 1 object in ");
    epoch_close(a, id);
    memset(&t, 0, sizeof t);
    REQUIRE(slab_doctor(a, collect, &t));
    REQUIRE_HAS(t.at, "slab_epoch_walk_era(a, 17,");
    memset(&t, 0, sizeof t);
    t.stop_after = 1;
    REQUIRE(!slab_doctor(a, collect, &t));
    REQUIRE_EQ(t.calls, 1);
    slab_allocator_free(a);
}

/* A little in each of many phases is one leak. */
static void phases_of_one_label(void) {
    static Text t;
    SlabAllocator* a = kit_create();
    for (int n = 0; n < 40; n++) {
        EpochId id = epoch_current(a);
        slab_epoch_set_label(a, id, n % 2 == 0 ? "even" : n == 1 ? "once" : "odd");
        if (n % 2 == 0 || n == 1) REQUIRE(slab_malloc(a, n == 1 ? 2000 : 128) != NULL);
        epoch_advance(a);
        epoch_close(a, id);
        if (n == 19) pass_seconds(100);
    }
    memset(&t, 0, sizeof t);
    REQUIRE(slab_doctor(a, collect, &t));
    REQUIRE_HAS(
        t.at,
        "1. \"even\", class 2 (128 B): 10 live in 10 slabs of 80.0 KiB; 10 phases, the oldest 100 s, epoch 0, era 1;");
    REQUIRE_HAS(t.at, "2. \"once\"");
    REQUIRE_HAS(t.at, "Too young to judge: 10 objects, 80.0 KiB of slabs, most of it under \"even\"");
    REQUIRE_EQ(actions(&t), 2);
    memset(&t, 0, sizeof t);
    REQUIRE(slab_doctor_ex(a, 0, collect, &t)); /* of any age: one row */
    REQUIRE_HAS(t.at, "1. \"even\", class 2 (128 B): 20 live in 20 slabs of 160.0 KiB; 20 phases, the oldest 100 s");
    REQUIRE_EQ(actions(&t), 2);
    slab_allocator_free(a);
}

static void refusals_and_options(void) {
    static Text t;
    memset(&t, 0, sizeof t);
    setenv("TSLAB_OPTIONS", "ring_size=1,no_such_thing=1", 1);
    SlabAllocator* a = kit_create();
    unsetenv("TSLAB_OPTIONS");
    epoch_close(a, 1);
    REQUIRE_NULL(slab_malloc_epoch(a, 64, 1));
    void* p = slab_malloc(a, 64);
    slab_free(a, p);
    slab_free(a, p);
    REQUIRE(slab_doctor(a, collect, &t));
    REQUIRE_HAS(t.at, "ACTION: double_free 1:");
    REQUIRE_HAS(t.at, "ACTION: closed_epoch 1:");
    REQUIRE_HAS(t.at, "ACTION: 2 words of TSLAB_OPTIONS");
    REQUIRE_EQ(actions(&t), 3);
    slab_allocator_free(a);
}

/* ---- of figures ---- */

/* Everything that only a synthetic report can show. */
typedef struct Figures {
    TsiReport report;
    TsiLeaks leaks;
    SlabClassStats classes[1];
    SlabLabelStats labels[3];
    EpochReclamation closes[4];
    SlowPathAttribution slow[1];
    TsiDoctorView view;
} Figures;

static void figures(Figures* f) {
    memset(f, 0, sizeof *f);
    f->report.classes = f->classes;
    f->report.class_count = 1;
    f->report.labels = f->labels;
    f->report.label_count = 3;
    f->report.max_labels = 3;
    strcpy(f->labels[1].label, "busy");
    strcpy(f->labels[2].label, "(other)");
    f->view = (TsiDoctorView){.report = &f->report, .leaks = &f->leaks, .slow = f->slow, .closes = f->closes};
}

static Text* text_of(Figures* f) {
    static Text t;
    memset(&t, 0, sizeof t);
    REQUIRE(tsi_doctor_write(&f->view, collect, &t));
    return &t;
}

static void pages_that_the_kernel_kept(void) {
    static Figures f;
    figures(&f);
    f.view.close_count = 3;
    for (unsigned n = 0; n < 3; n++) {
        f.closes[n] = (EpochReclamation){
            .class_index = n, .epoch_era = n < 2 ? 7 : 8, .slabs_recycled = 5, .bytes_madvised = 5 << 20};
        f.closes[n].rss_before = f.closes[n].rss_after = 100 << 20;
    }
    Text* t = text_of(&f);
    REQUIRE_HAS(t->at, "era 7: 10 slabs, 10.0 MiB returned to the system; RSS 100.0 MiB -> 100.0 MiB");
    REQUIRE_HAS(t->at, "2 closes returned pages, but RSS did not fall: check transparent huge pages");
    REQUIRE_HAS(t->at, "memory cgroup");
    f.view.purge_policy = SLAB_PURGE_FREE;
    REQUIRE_HAS(text_of(&f)->at, "MADV_FREE");
    for (unsigned n = 0; n < 3; n++) {
        f.closes[n].rss_after = 90 << 20;
        f.closes[n].rss_delta = 10 << 20;
    }
    t = text_of(&f);
    REQUIRE_HAS(t->at, "(fell by 10.0 MiB)");
    REQUIRE_EQ(actions(t), 0);
    f.report.global.total_madvise_failures = 3;
    REQUIRE_HAS(text_of(&f)->at, "ACTION: 3 of the calls failed");
}

static void the_truth_table(void) {
    static Figures f;
    REQUIRE_EQ(tsi_sampling_verdict(10, 100, 0), TSI_VERDICT_ALLOCATOR);
    REQUIRE_EQ(tsi_sampling_verdict(74, 100, 0), TSI_VERDICT_ALLOCATOR);
    REQUIRE_EQ(tsi_sampling_verdict(75, 100, 0), TSI_VERDICT_BALANCED);
    REQUIRE_EQ(tsi_sampling_verdict(125, 100, 0), TSI_VERDICT_BALANCED);
    REQUIRE_EQ(tsi_sampling_verdict(126, 100, 0), TSI_VERDICT_SCHEDULER);
    REQUIRE_EQ(tsi_sampling_verdict(200, 100, 0), TSI_VERDICT_SCHEDULER);
    REQUIRE_EQ(tsi_sampling_verdict(201, 100, 0), TSI_VERDICT_HYPERVISOR);
    REQUIRE_EQ(tsi_sampling_verdict(1, 0, 0), TSI_VERDICT_HYPERVISOR);
    REQUIRE_EQ(tsi_sampling_verdict(100, 100, 100), TSI_VERDICT_BALANCED);
    REQUIRE_EQ(tsi_sampling_verdict(300, 100, 301), TSI_VERDICT_LOCKS);
    REQUIRE_EQ(tsi_sampling_verdict(10, 100, 101), TSI_VERDICT_LOCKS);
    figures(&f);
    SlabSamplingStats* s = &f.report.sampling;
    s->period = 1024;
    REQUIRE_HAS(text_of(&f)->at, "none so far");
    s->sum.alloc_samples = 1000;
    REQUIRE_HAS(text_of(&f)->at, "Verdict: none");
    s->sum.alloc_wall_ns_sum = 200000;
    s->sum.alloc_cpu_ns_sum = 190000;
    s->sum.alloc_wait_ns_sum = 10000;
    s->dropped = 4;
    REQUIRE_HAS(text_of(&f)->at, "on average 200 ns = cpu 190 + wait 10 + locks 0");
    REQUIRE_HAS(text_of(&f)->at, "4 dropped");
    REQUIRE_HAS(text_of(&f)->at, "Verdict: allocator");
    s->sum.alloc_wait_ns_sum = 190000;
    REQUIRE_HAS(text_of(&f)->at, "Verdict: balanced");
    s->sum.alloc_wait_ns_sum = 300000;
    REQUIRE_HAS(text_of(&f)->at, "Verdict: scheduler:");
    REQUIRE_EQ(actions(text_of(&f)), 1);
    s->sum.alloc_wait_ns_sum = 1800000;
    REQUIRE_HAS(text_of(&f)->at, "Verdict: scheduler or hypervisor");
    s->sum.alloc_wall_ns_sum = 5000000;
    REQUIRE_HAS(text_of(&f)->at, "Verdict: allocator: threads wait for its locks");
    REQUIRE_EQ(actions(text_of(&f)), 1);
    s->sum.alloc_samples = 3;
    REQUIRE_EQ(actions(text_of(&f)), 0); /* too few */
    s->lock_samples = 2;
    s->lock_wait_ns_sum = 500;
    REQUIRE_HAS(text_of(&f)->at, "Locks: 2 samples; waited for 250 ns");
}

static void thresholds_of_health(void) {
    static Figures f;
    REQUIRE_EQ(tsi_lock_health(0, 0), TSI_HEALTH_GOOD);
    REQUIRE_EQ(tsi_lock_health(149, 1000), TSI_HEALTH_GOOD);
    REQUIRE_EQ(tsi_lock_health(150, 1000), TSI_HEALTH_NORMAL);
    REQUIRE_EQ(tsi_lock_health(200, 1000), TSI_HEALTH_WATCH);
    REQUIRE_EQ(tsi_lock_health(300, 1000), TSI_HEALTH_WATCH);
    REQUIRE_EQ(tsi_lock_health(301, 1000), TSI_HEALTH_ACT);
    REQUIRE_EQ(tsi_retry_health(5, 0), TSI_HEALTH_GOOD);
    REQUIRE_EQ(tsi_retry_health(9, 1000), TSI_HEALTH_GOOD);
    REQUIRE_EQ(tsi_retry_health(10, 1000), TSI_HEALTH_NORMAL);
    REQUIRE_EQ(tsi_retry_health(50, 1000), TSI_HEALTH_WATCH);
    REQUIRE_EQ(tsi_retry_health(99, 1000), TSI_HEALTH_WATCH);
    REQUIRE_EQ(tsi_retry_health(100, 1000), TSI_HEALTH_ACT);
    figures(&f);
    REQUIRE_HAS(text_of(&f)->at, "Locks: 0 acquisitions on record, too few to judge; no free had to be retried");
    f.classes[0].lock_fast_acquire = 550;
    f.classes[0].lock_contended = 450;
    f.labels[1].lock_contended = 400;
    f.labels[1].objects_freed = 1000;
    f.labels[1].cas_retries = 20;
    REQUIRE_HAS(text_of(&f)->at,
                "45.0 % of 1000 acquisitions had to wait: act, most under \"busy\"; 0.0200 retries per free: normal");
    REQUIRE_EQ(actions(text_of(&f)), 1);
    f.labels[1].cas_retries = 200;
    REQUIRE_EQ(actions(text_of(&f)), 2);
}

static void labels_without_room(void) {
    static Figures f;
    figures(&f);
    REQUIRE_HAS(text_of(&f)->at, "3 of 3 ids in use");
    f.labels[2].swallowed = 12;
    REQUIRE_HAS(text_of(&f)->at, "ACTION: 12 phases went to \"(other)\"");
}

static void slow_classes_in_order(void) {
    static SlowPathAttribution rows[20];
    static Figures f;
    figures(&f);
    for (unsigned n = 0; n < 20; n++) {
        rows[n] = (SlowPathAttribution){.class_index = n, .object_size = 16, .total_slow_path_hits = 1000 + n % 5};
        rows[n].epoch_closed_count = n == 4 ? 1000 : 0;
        tsi_slow_path_judge(&rows[n], 0);
    }
    f.view.slow = rows;
    f.view.slow_count = 20;
    Text* t = text_of(&f);
    REQUIRE(strstr(t->at, "class 4 ") < strstr(t->at, "class 9 ") &&
            strstr(t->at, "class 9 ") < strstr(t->at, "class 14 "));
    REQUIRE_HAS(t->at, "class 3 ");
    REQUIRE(!has(t, "class 12 ") && has(t, "and 10 classes with fewer hits"));
    REQUIRE_HAS(t->at, "ACTION: Fix the rotation");
}

static void words(void) {
    REQUIRE_STR(tsi_word_bytes(0).at, "0 B");
    REQUIRE_STR(tsi_word_bytes(1023).at, "1023 B");
    REQUIRE_STR(tsi_word_bytes(1536).at, "1.5 KiB");
    REQUIRE_STR(tsi_word_bytes(10 << 20).at, "10.0 MiB");
    REQUIRE_STR(tsi_word_bytes(UINT64_MAX).at, "15.9 EiB");
    REQUIRE_STR(tsi_word_class(TSI_CLASS_REGION - 1, 64).at, "regions");
    REQUIRE_STR(tsi_word_label("").at, "(unlabeled)");
    REQUIRE_STR(tsi_word_label("/login").at, "\"/login\"");
    REQUIRE_STR(tsi_word_label("5\" disk\"").at, "\"5' disk'\"");
    REQUIRE_STR(tsi_word_label("a\tb\x7f" "c\xc3\xa4 \xff\xc3\xe2\x82\xac\xe2\x82").at, "\"a?b?c\xc3\xa4 ??\xe2\x82\xac\?\?\"");
}

static void no_memory_no_text(void) {
    SlabAllocator* a = kit_create();
    static Text t;
    for (FakeCall what = FAKE_RESERVE; what <= FAKE_COMMIT; what++) {
        for (uint64_t k = 1; k <= 3; k++) {
            fake_os_fail(what, k, true);
            errno = 0;
            REQUIRE(!slab_doctor(a, collect, &t));
            REQUIRE_EQ(errno, ENOMEM);
            REQUIRE_EQ(t.used, 0);
            REQUIRE(fake_os_heal());
        }
    }
    errno = 0;
    REQUIRE(!slab_doctor(NULL, collect, &t));
    REQUIRE_EQ(errno, EINVAL);
    errno = 0;
    REQUIRE(!slab_doctor(a, NULL, NULL));
    REQUIRE_EQ(errno, EINVAL);
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        TEST(a_healthy_allocator),        TEST(the_doctor_names_the_leak),        TEST(one_is_no_plural),
        TEST(phases_of_one_label),        TEST(refusals_and_options),
        TEST(pages_that_the_kernel_kept), TEST(the_truth_table),
        TEST(thresholds_of_health),       TEST(labels_without_room),
        TEST(slow_classes_in_order),      TEST(words),
        TEST(no_memory_no_text),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
