/* gate.c - slab_gate: what it lets pass, what it does not, and what it says of it. */
#include "kit/fixture.h"

#include "os/os.h"

#include <errno.h>
#include <slab_diagnostics.h>

static SlabAllocator* a;

typedef struct Work {
    unsigned round, leaks_from, objects; /* from that round on each leaves so many objects */
    unsigned every;
    const char *label, *also; /* of a phase that leaves nothing, if any */
    bool outside;
    int error; /* that is expected of a gate that does not pass; 0: ERANGE */
    void* cache[4];
} Work;

static void work(void* ctx) {
    Work* w = ctx;
    w->round++;
    epoch_domain_t* d = epoch_domain_begin(a, w->label);
    REQUIRE(d != NULL);
    for (unsigned n = 0; n < 50; n++) slab_free(a, slab_malloc(a, 100));
    /* A cache of four: what is replaced was another phase's. */
    slab_free(a, w->cache[w->round % 4]);
    REQUIRE((w->cache[w->round % 4] = slab_malloc(a, 200)) != NULL);
    if (w->leaks_from != 0 && w->round >= w->leaks_from && w->round % w->every == 0)
        for (unsigned n = 0; n < w->objects; n++)
            REQUIRE((w->outside ? slab_malloc_outside(a, 64) : slab_malloc(a, 64)) != NULL);
    REQUIRE(epoch_domain_drain(d, NULL));
    if (w->also == NULL) return;
    REQUIRE((d = epoch_domain_begin(a, w->also)) != NULL);
    slab_free(a, slab_malloc(a, 100));
    REQUIRE(epoch_domain_end(d));
}

static bool gate(Work* w, SlabGateOptions o, char why[256]) {
    w->label = w->label != NULL ? w->label : "GET";
    if (w->every == 0) w->every = 1;
    o.struct_size = sizeof o;
    a = kit_create();
    errno = 0;
    bool passed = slab_gate(a, &o, work, w, why, 256);
    CHECK_EQ(errno, passed ? 0 : w->error != 0 ? w->error : ERANGE);
    slab_allocator_free(a);
    return passed;
}

static void what_is_kept_passes(void) {
    char why[256] = "?";
    Work w = {0};
    SlabGateOptions o = {.warm_up = 4};
    CHECK(gate(&w, o, why));
    CHECK_STR(why, "");
    CHECK_EQ(w.round, 9);
    /* In the warm-up anything may be left. */
    Work early = {.leaks_from = 1, .objects = 100, .every = 3};
    o.warm_up = 5, o.rounds = 1;
    CHECK(!gate(&early, o, why)); /* the sixth */
    early = (Work){.leaks_from = 1, .objects = 100, .every = 5};
    CHECK(gate(&early, o, why));
    CHECK_EQ(early.round, 6);
}

static void a_leak_does_not(void) {
    char why[256];
    Work w = {.leaks_from = 1, .objects = 1};
    SlabGateOptions o = {.warm_up = 4};
    CHECK(!gate(&w, o, why));
    CHECK_EQ(w.round, 5); /* at once */
    CHECK_STR(why, "\"GET\" retains 9 objects (1152 bytes) after round 1, up from at most 8 (1088 bytes); its phases: 0 open, "
                   "5 draining");
    /* One that leaks each third time, and one whose objects are made outside. */
    w = (Work){.leaks_from = 1, .objects = 1, .every = 3};
    CHECK(!gate(&w, o, why));
    CHECK_EQ(w.round, 6);
    w = (Work){.leaks_from = 1, .objects = 1, .outside = true};
    CHECK(!gate(&w, o, why));
    CHECK_HAS(why, "\"(unlabeled)\" retains 5 objects (320 bytes) after round 1");
    CHECK_HAS(why, "; made outside of scopes, most by \"GET\"");
}

static void so_much_may_stay(void) {
    char why[256];
    SlabGateOptions o = {.warm_up = 4, .objects = 2, .bytes = 128};
    Work w = {.leaks_from = 1, .objects = 2};
    CHECK(gate(&w, o, why));
    w = (Work){.leaks_from = 1, .objects = 3};
    CHECK(!gate(&w, o, why));
    o = (SlabGateOptions){.warm_up = 4, .objects = 100};
    w = (Work){.leaks_from = 5, .objects = 10};
    CHECK(!gate(&w, o, why)); /* 640 bytes on top of 832 */
    w = (Work){.leaks_from = 5, .objects = 3};
    o.rounds = 1;
    CHECK(gate(&w, o, why)); /* less than a quarter */
    o.bytes = 640;
    w = (Work){.leaks_from = 5, .objects = 10};
    CHECK(gate(&w, o, why));
    o = (SlabGateOptions){.warm_up = 4, .label = "POST"};
    w = (Work){.leaks_from = 1, .objects = 3, .also = "POST"};
    CHECK(gate(&w, o, why)); /* it is another's */
    w = (Work){.leaks_from = 1, .objects = 3, .label = "POST"};
    CHECK(!gate(&w, o, why));
}

/* Labels are compared as phases have them, cut to 31 bytes and whole characters; one that no phase has had is told. */
static void the_label_is_a_phases(void) {
    char why[256];
    SlabGateOptions o = {.warm_up = 4};
    static const char umlauts[] = "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
                                  "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"; /* 32 bytes */
    static const char* const labels[] = {"a label of more than thirty-one bytes", umlauts, "(unlabeled)"};
    for (unsigned n = 0; n < 3; n++) {
        o.label = labels[n];
        Work w = {.leaks_from = 1, .objects = 3, .label = labels[n]};
        CHECK(!gate(&w, o, why));
    }
    static const char* const none[] = {"POST", "GE", "GET ", "get", ""};
    for (unsigned n = 0; n < 5; n++) {
        o.label = none[n];
        Work w = {.leaks_from = 1, .objects = 3, .error = ENOENT};
        CHECK(!gate(&w, o, why));
        CHECK_HAS(why, "no phase has had the label ");
        CHECK_EQ(w.round, 9);
    }
}

/* A limit of all there is stands for none. */
static void either_may_be_any_number(void) {
    char why[256];
    SlabGateOptions o = {.warm_up = 4, .objects = UINT64_MAX, .bytes = 1 << 20};
    Work w = {.leaks_from = 1, .objects = 3};
    CHECK(gate(&w, o, why));
    w = (Work){.leaks_from = 5, .objects = 40000};
    CHECK(!gate(&w, o, why));
    o = (SlabGateOptions){.warm_up = 4, .objects = 10, .bytes = UINT64_MAX};
    w = (Work){.leaks_from = 1, .objects = 3};
    CHECK(gate(&w, o, why));
    w = (Work){.leaks_from = 1, .objects = 30};
    CHECK(!gate(&w, o, why));
}

/* One label retains more objects of fewer bytes with each round, the other one a lot more bytes. */
static void more_and_less(void* ctx) {
    static void* large;
    Work* w = ctx;
    for (unsigned n = 0; n < 2; n++) {
        epoch_domain_t* d = epoch_domain_begin(a, n == 0 ? "less" : "more");
        REQUIRE(d != NULL);
        if (n == 0) {
            slab_free(a, large);
            REQUIRE((large = slab_malloc(a, 200000 - 20000 * (size_t)w->round)) != NULL);
            REQUIRE(slab_malloc(a, 16) != NULL);
        } else if (w->round >= 4) {
            REQUIRE(slab_malloc(a, 5000) != NULL);
        }
        REQUIRE(epoch_domain_drain(d, NULL));
    }
    w->round++;
}

static void the_worst_is_told(void) {
    char why[256];
    Work w = {0};
    SlabGateOptions o = {.struct_size = sizeof o, .warm_up = 4};
    a = kit_create();
    CHECK(!slab_gate(a, &o, more_and_less, &w, why, sizeof why));
    CHECK_HAS(why, "\"more\" retains 1 object (");
    slab_allocator_free(a);
}

static void* (*reserve)(size_t bytes);
static void* no_room(size_t bytes) {
    (void)bytes;
    errno = ENOMEM;
    return NULL;
}

/* Ends the memory for figures in its round, and leaks. */
static void starve(void* ctx) {
    unsigned* round = ctx;
    REQUIRE(slab_malloc(a, 100) != NULL);
    if (--*round == 0) tsi_os.reserve = no_room;
}

/* Who cannot look does not pass. */
static void without_figures_nothing_passes(void) {
    char why[256];
    SlabGateOptions o = {.struct_size = sizeof o, .warm_up = 3, .objects = UINT64_MAX, .bytes = UINT64_MAX};
    for (unsigned last = 3; last < 5; last++) {
        unsigned round = last;
        a = kit_create();
        reserve = tsi_os.reserve;
        errno = 0;
        CHECK(!slab_gate(a, &o, starve, &round, why, sizeof why));
        CHECK_EQ(errno, ENOMEM);
        CHECK_HAS(why, "no memory");
        tsi_os.reserve = reserve;
        slab_allocator_free(a);
    }
}

static void refusals(void) {
    char why[64];
    Work w = {.label = "GET"};
    SlabGateOptions o = {.struct_size = 1};
    a = kit_create();
    errno = 0;
    CHECK(!slab_gate(NULL, NULL, work, &w, why, sizeof why));
    CHECK_EQ(errno, EINVAL);
    CHECK_HAS(why, "NULL");
    CHECK(!slab_gate(a, NULL, NULL, &w, NULL, 0));
    CHECK(!slab_gate(a, &o, work, &w, why, sizeof why));
    CHECK_HAS(why, "struct_size");
    CHECK_EQ(w.round, 0);
    struct {
        SlabGateOptions o;
        uint64_t later;
    } longer = {.o = {.struct_size = sizeof longer}, .later = 1};
    CHECK(!slab_gate(a, &longer.o, work, &w, why, sizeof why));
    longer.later = 0;
    CHECK(slab_gate(a, &longer.o, work, &w, why, sizeof why) || errno == ERANGE);
    CHECK(!slab_gate(a, NULL, work, &w, why, 0) || w.round != 0);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(what_is_kept_passes),
    CHECK_CASE(a_leak_does_not),
    CHECK_CASE(so_much_may_stay),
    CHECK_CASE(the_label_is_a_phases),
    CHECK_CASE(either_may_be_any_number),
    CHECK_CASE(the_worst_is_told),
    CHECK_CASE(without_figures_nothing_passes),
    CHECK_CASE(refusals),
};
CHECK_MAIN(cases)
