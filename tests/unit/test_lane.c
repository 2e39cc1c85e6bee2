/*
 * test_lane.c - lanes: when the inlined path is taken and when it is not, what a stale lane does, and what others do after each
 * instruction of it.
 *
 * A call of the library leaves its allocator at hand (TsiThread.owner), and the inlined path does not: so after a use of another
 * allocator the test sees whether there was one.
 */
#include "kit/one.h"
#include "kit/step.h"

#include "state/bracket.h"
#include "heap/heap.h"

#include <slab_lane.h>

enum { SIZE = 64 };

static KitWorker worker;
static SlabAllocator* other;
static epoch_domain_t* d;
static SlabLane lane, second;

static void open_allocator(void) {
    kit_worker_start(&worker);
    kit_open_cold();
    other = kit_create();
}
static void close_allocator(void) {
    kit_worker_stop(&worker);
    slab_allocator_free(other);
    kit_close();
}

static void look_elsewhere(void) {
    REQUIRE(slab_malloc(other, SIZE) != NULL);
    REQUIRE_EQ((uintptr_t)tsi_load_relaxed(&tsi_tls.record->owner), (uintptr_t)other);
}
static bool was_called(void) { return tsi_load_relaxed(&tsi_tls.record->owner) != other; }

/* Allocates from the lane. Returns true if that was a call. */
static bool calls(SlabLane* l, size_t size) {
    look_elsewhere();
    void* p = slab_lane_malloc(l, size);
    REQUIRE(p != NULL);
    bool called = was_called();
    memset(p, 7, size);
    REQUIRE_GE(slab_usable_size(a, p), size);
    return called;
}
static bool inlines(void) { return SLAB_LANE_INLINE != 0; }

static void begin(void) {
    REQUIRE(slab_lane_begin(&lane, a, "lane"));
    d = lane.domain;
}
/* Exactly so many objects were made there and none freed. */
static void end_with(unsigned n) {
    EpochReceipt r;
    kit_check(a);
    REQUIRE(epoch_domain_end_ex(d, &r));
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.objects_allocated, n);
    REQUIRE_EQ(r.objects_released, n);
}

static void it_inlines_after_the_first(void) {
    begin();
    REQUIRE(calls(&lane, SIZE));
    for (unsigned n = 1; n <= 20; n++) REQUIRE_EQ(calls(&lane, n), !inlines());
    REQUIRE(calls(&lane, 4097));
    REQUIRE_EQ(calls(&lane, 16), !inlines());
    end_with(23);
}

/* What was allocated by the domain first is the lane's to go on with. */
static void it_is_filled_as_it_opens(void) {
    REQUIRE((d = epoch_domain_begin(a, "lane")) != NULL);
    REQUIRE(epoch_domain_malloc(d, SIZE) != NULL);
    REQUIRE(slab_lane_open(&lane, d));
    REQUIRE_EQ(calls(&lane, SIZE), !inlines());
    end_with(2);
}

/* A region after the other, and of all objects none lies on another. */
static void regions_are_used_up(void) {
    enum { N = 4000 };
    static unsigned char* p[N];
    unsigned called = 0;
    begin();
    for (unsigned n = 0; n < N; n++) {
        size_t size = 1 + (n * 37) % 900;
        look_elsewhere();
        REQUIRE((p[n] = slab_lane_malloc(&lane, size)) != NULL);
        called += was_called();
        memset(p[n], (int)n, size);
    }
    for (unsigned n = 0; n < N; n++)
        for (size_t k = 0; k < 1 + (n * 37) % 900; k++) REQUIRE_EQ(p[n][k], (unsigned char)n);
    if (inlines()) REQUIRE_BETWEEN(called, 2, 60);
    kit_check(a);
    for (unsigned n = 0; n < N; n += 2) REQUIRE(slab_free_checked(a, p[n]));
    EpochReceipt r;
    REQUIRE(epoch_domain_end_ex(d, &r));
    REQUIRE_EQ(r.objects_freed, N / 2);
    REQUIRE_EQ(r.objects_released, N / 2);
}

static void two_lanes_and_calls_by_turns(void) {
    begin();
    REQUIRE(calls(&lane, SIZE));
    REQUIRE(slab_lane_open(&second, d));
    for (unsigned n = 0; n < 15; n++) { /* of one region */
        REQUIRE_EQ(calls(&lane, SIZE), !inlines());
        REQUIRE_EQ(calls(&second, SIZE), !inlines());
        REQUIRE(epoch_domain_malloc(d, SIZE) != NULL);
    }
    end_with(46);
}

/* ---- where it calls ---- */

static void take_there(void* took) {
    for (unsigned n = 0; n < 10; n++) *(unsigned*)took += slab_lane_malloc(&lane, SIZE) != NULL;
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->busy), 0);
}
static void another_thread_calls(void) {
    begin();
    REQUIRE(calls(&lane, SIZE));
    unsigned took = 0;
    SlabLane was = lane;
    kit_worker_run(&worker, take_there, &took);
    REQUIRE_EQ(took, 10);
    REQUIRE_EQ(memcmp(&was, &lane, sizeof was), 0);
    REQUIRE_EQ(calls(&lane, SIZE), !inlines());
    end_with(12);
}

static void* open_and_exit(void* unused) {
    begin();
    REQUIRE(calls(&lane, SIZE));
    REQUIRE(epoch_domain_detach(d));
    return unused;
}
/* Threads get the stack, the binding and the heap of the one before: none of them inlines by its lane. */
static void* use_and_exit(void* unused) {
    REQUIRE(calls(&lane, SIZE));
    REQUIRE(calls(&lane, SIZE));
    return unused;
}
static void a_thread_that_has_gone(void) {
    kit_on_thread(open_and_exit, NULL);
    for (unsigned n = 0; n < 5; n++) kit_on_thread(use_and_exit, NULL);
    REQUIRE(calls(&lane, SIZE));
    REQUIRE(epoch_domain_attach(d));
    end_with(12);
}

static pthread_key_t key;
static bool late_call;
static void allocate_late(void* unused) {
    (void)unused;
    static unsigned rounds;
    if (rounds++ == 0) REQUIRE_EQ(pthread_setspecific(key, &key), 0); /* once more, behind the library's own */
    late_call = tsi_tls.number == 0 && slab_lane_malloc(&lane, SIZE) != NULL;
}
static void* allocate_and_exit(void* unused) {
    REQUIRE(slab_lane_open(&lane, d));
    (void)calls(&lane, SIZE);
    REQUIRE_EQ(calls(&lane, SIZE), !inlines());
    REQUIRE_EQ(pthread_setspecific(key, &key), 0);
    return unused;
}
static void a_thread_that_leaves_calls(void) {
    REQUIRE_EQ(pthread_key_create(&key, allocate_late), 0);
    REQUIRE((d = epoch_domain_create_labeled(a, "lane")) != NULL);
    kit_on_thread(allocate_and_exit, NULL);
    REQUIRE(late_call);
    REQUIRE_EQ(pthread_key_delete(key), 0);
    kit_check(a);
    REQUIRE(epoch_domain_destroy(d));
}

static void fenced_brackets_call(void) {
    begin();
    (void)calls(&lane, SIZE);
    tsi_binding_fence(kit_binding(a));
    REQUIRE(calls(&lane, SIZE));
    REQUIRE(slab_lane_open(&second, d));
    REQUIRE(calls(&second, SIZE));
    end_with(3);
}
/* A thread whose brackets are fenced stays so: not this one. */
static void* fence_there(void* unused) {
    fenced_brackets_call();
    return unused;
}
static void fenced(void) { kit_on_thread(fence_there, NULL); }

static void another_version_calls(void) {
    REQUIRE((d = epoch_domain_begin(a, "lane")) != NULL);
    REQUIRE(epoch_domain_malloc(d, SIZE) != NULL);
    for (unsigned v = 0; v < 3; v++) {
        REQUIRE(slab_lane_open_as(&lane, d, v));
        REQUIRE_EQ(calls(&lane, SIZE), !inlines() || v != SLAB_LANE_VERSION);
    }
    REQUIRE(slab_lane_begin_as(&second, a, "other", SLAB_LANE_VERSION + 1));
    REQUIRE(calls(&second, SIZE) && calls(&second, SIZE));
    REQUIRE(epoch_domain_end(second.domain));
    end_with(4);
}

static void with_option(SlabOptions o) {
    SlabAllocator* was = a;
    kit_open_with(o);
    begin();
    REQUIRE(calls(&lane, SIZE) && calls(&lane, SIZE) && calls(&lane, SIZE));
    end_with(3);
    slab_allocator_free(a);
    a = was;
    arena = tsi_arena(a);
}
static void options_that_call(void) {
    SlabOptions o = kit_options();
    o.shared = 1;
    with_option(o);
    o = kit_options();
    o.bump = TSI_BUMP_OFF;
    with_option(o);
}

/* Where classes have taken over no bracket is opened for nothing. */
static void an_epoch_of_the_ring(void) {
    epoch_domain_t* ring = epoch_domain_wrap(a, epoch_current(a), false);
    REQUIRE(ring != NULL && slab_lane_open(&lane, ring));
    unsigned n = 0;
    for (; n < 1000; n++) REQUIRE(slab_lane_malloc(&lane, SIZE) != NULL);
    REQUIRE(calls(&lane, SIZE));
    REQUIRE_EQ((uintptr_t)lane.heap_, (uintptr_t)&tsi_no_heap);
    REQUIRE_EQ(kit_live(a), n + 1);
    REQUIRE(epoch_domain_destroy(ring));
    REQUIRE_EQ(kit_end(a, epoch_current(a), EPOCH_RELEASE).objects_released, n + 1);
}

/* Each is recorded, as by the call. */
static void profiled(void) {
    SlabOptions o = kit_options();
    o.profile_bytes = 512;
    uint64_t recorded[2];
    for (int by_lane = 0; by_lane <= 1; by_lane++) {
        kit_open_with(o);
        begin();
        for (unsigned n = 0; n < 20000; n++)
            REQUIRE((by_lane ? slab_lane_malloc(&lane, SIZE) : epoch_domain_malloc(d, SIZE)) != NULL);
        recorded[by_lane] = arena->profile.samples;
        end_with(20000);
        slab_allocator_free(a);
    }
    a = NULL;
    REQUIRE_BETWEEN(recorded[1], recorded[0] / 2, recorded[0] * 2);
    kit_open_cold();
}

/* ---- lanes of phases that have ended ---- */

static void is_refused(SlabLane* l, int error) {
    errno = 0;
    REQUIRE_NULL(slab_lane_malloc(l, SIZE));
    REQUIRE_EQ(errno, error);
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->busy), 0);
}

static void stale_lanes_are_refused(void) {
    begin();
    (void)calls(&lane, SIZE);
    second = lane;
    REQUIRE(epoch_domain_reset(d));
    is_refused(&lane, ESTALE);
    REQUIRE(epoch_domain_malloc(d, SIZE) != NULL); /* from the heap that the lane has led to, perhaps */
    is_refused(&lane, ESTALE);
    is_refused(&second, ESTALE);
    REQUIRE(slab_lane_open(&lane, d));
    REQUIRE_EQ(calls(&lane, SIZE), !inlines());
    second = lane;
    end_with(2);
    is_refused(&second, ESTALE);
    for (unsigned n = 0; n < 20; n++) { /* domains and heaps are used again */
        begin();
        (void)calls(&lane, SIZE);
        is_refused(&second, ESTALE);
        end_with(1);
    }
    SlabLane none = {.domain = NULL};
    is_refused(&none, EINVAL);
    REQUIRE(!slab_lane_open(&none, NULL));
    REQUIRE_EQ(errno, EINVAL);
    REQUIRE(!slab_lane_open(&none, d));
    REQUIRE_EQ(errno, ESTALE);
    is_refused(&none, EINVAL);
    REQUIRE(!slab_lane_begin(&none, NULL, "lane"));
    is_refused(&none, EINVAL);
}

static void closed_phases_refuse(void) {
    begin();
    (void)calls(&lane, SIZE);
    (void)calls(&lane, SIZE);
    REQUIRE_EQ(kit_end(a, d->epoch_id, EPOCH_DRAIN).objects_escaped, 2);
    is_refused(&lane, ESTALE);
    REQUIRE(epoch_domain_exit(d));
    is_refused(&lane, ESTALE);
    REQUIRE(epoch_domain_enter(d)); /* a fresh incarnation */
    is_refused(&lane, ESTALE);
    REQUIRE(epoch_domain_destroy(d) || epoch_domain_end(d));
    REQUIRE_EQ(kit_refusals(a).closed_epoch, 3);
}

static void sizes_are_refused(void) {
    begin();
    (void)calls(&lane, SIZE);
    errno = 0;
    REQUIRE_NULL(slab_lane_malloc(&lane, kit_size(0)));
    REQUIRE_EQ(errno, EINVAL);
    errno = 0;
    REQUIRE_NULL(slab_lane_malloc(&lane, kit_size(SIZE_MAX)));
    REQUIRE_EQ(errno, ENOMEM);
    REQUIRE_NULL(slab_lane_malloc(&lane, kit_size(SIZE_MAX - 8)));
    end_with(1);
}

static void detach_and_attach(void) {
    begin();
    (void)calls(&lane, SIZE);
    for (unsigned n = 0; n < 5; n++) {
        REQUIRE(epoch_domain_detach(d));
        REQUIRE(n % 2 == 0 || calls(&lane, SIZE));
        REQUIRE(epoch_domain_attach(d));
        REQUIRE_EQ(calls(&lane, SIZE), !inlines());
    }
    end_with(8);
}

static int in_child(void) {
    (void)calls(&lane, SIZE); /* a child's heap may be asked for: then the first one calls */
    REQUIRE_EQ(calls(&lane, SIZE), !inlines());
    REQUIRE(calls(&second, SIZE)); /* of a thread that has vanished */
    kit_check(a);
    EpochReceipt r;
    REQUIRE(epoch_domain_end_ex(d, &r));
    REQUIRE_EQ(r.objects_released, 5);
    return 0;
}
static void open_there(void* unused) {
    (void)unused;
    REQUIRE(slab_lane_open(&second, d));
    REQUIRE(slab_lane_malloc(&second, SIZE) != NULL);
}
static void a_child_goes_on(void) {
    begin();
    (void)calls(&lane, SIZE);
    kit_worker_run(&worker, open_there, NULL);
    int status = -1;
    pid_t child = fork();
    REQUIRE_NE(child, -1);
    if (child == 0) {
        (void)alarm(300);
        _exit(in_child());
    }
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    REQUIRE_EQ(calls(&lane, SIZE), !inlines());
    end_with(3);
}

/* ---- after each instruction ---- */

typedef enum Deed { TRIM, RELEASE, DRAIN, TAKE, ADVANCE, DEEDS } Deed;

static struct sigaction before;
static struct Stepped {
    unsigned at, steps; /* instruction at which the other thread does its deed; steps so far */
    Deed deed;
    bool done;
    unsigned theirs; /* objects of the other thread's */
} stepped;

static void do_deed(void* unused) {
    (void)unused;
    uint64_t era = d->epoch_era;
    if (stepped.deed == TRIM) slab_trim(a);
    else if (stepped.deed == TAKE) stepped.theirs += epoch_domain_malloc(d, SIZE) != NULL;
    else if (stepped.deed == ADVANCE) epoch_advance(a);
    else (void)epoch_close_era(a, era, stepped.deed == RELEASE ? EPOCH_RELEASE : EPOCH_DRAIN, NULL);
    stepped.done = true;
}
static void on_step(int sig) {
    (void)sig;
    if (stepped.steps++ == stepped.at) kit_worker_run(&worker, do_deed, NULL);
}

static SlabLabelStats label_now(void) {
    static SlabLabelStats all[8];
    size_t n = slab_stats_labels(a, all, 8);
    for (size_t i = 0; i < n && i < 8; i++)
        if (strcmp(all[i].label, "lane") == 0) return all[i];
    return (SlabLabelStats){0};
}

enum { EVENTS = 3 };
/* Returns how many the two lanes have given. */
static unsigned event(void** p) {
    kit_trap(true);
    for (unsigned n = 0; n < EVENTS; n++) p[n] = slab_lane_malloc(n % 2 == 0 ? &lane : &second, SIZE);
    kit_trap(false);
    unsigned made = 0;
    for (unsigned n = 0; n < EVENTS; n++) made += p[n] != NULL;
    return made;
}

/* Returns true if the event was over before the deed. */
static bool step_once(Deed deed, unsigned at) {
    SlabLabelStats then = label_now();
    stepped = (struct Stepped){.at = at, .deed = deed};
    void* p[EVENTS];
    begin();
    REQUIRE(slab_lane_malloc(&lane, SIZE) != NULL);
    REQUIRE(slab_lane_open(&second, d));
    unsigned made = 1 + event(p), freed = 0;
    made += stepped.theirs;
    /* What the thread was inside of is settled before its call returns. */
    if (deed == RELEASE && stepped.done) REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE(deed == RELEASE || deed == DRAIN || made >= 1 + EVENTS);
    for (unsigned n = 0; n < EVENTS; n++) {
        if (p[n] == NULL) continue;
        bool alive = slab_ptr_epoch(a, p[n], NULL, NULL);
        REQUIRE(alive || deed == RELEASE);
        if (alive) memset(p[n], 7, SIZE);
        if (n == 1) freed += slab_free_checked(a, p[n]);
    }
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->busy), 0);
    REQUIRE(epoch_domain_end(d));
    SlabLabelStats now = label_now();
    REQUIRE_EQ(now.objects_allocated - then.objects_allocated, made);
    if (deed == DRAIN) {
        for (unsigned n = 0; n < EVENTS; n++)
            if (p[n] != NULL && n != 1) freed += slab_free_checked(a, p[n]);
        now = label_now();
        REQUIRE_EQ(now.objects_freed - then.objects_freed, freed);
    } else {
        REQUIRE_EQ(now.objects_freed - then.objects_freed, freed);
        REQUIRE_EQ(now.objects_released - then.objects_released, made - freed);
        REQUIRE_EQ(now.live_objects, 0);
    }
    REQUIRE_EQ(now.phases_open, 0);
    kit_check(a);
    return !stepped.done;
}

static void after_each_instruction(void) {
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_step;
    REQUIRE_EQ(sigaction(SIGTRAP, &sa, &before), 0);
    for (Deed deed = 0; deed < DEEDS; deed++) {
        unsigned stride = kit_stride(2), at = kit_first(stride, deed);
        while (!step_once(deed, at) && CAN_STEP) at += stride;
        if (CAN_STEP) REQUIRE_BETWEEN(at, 80, 20000);
    }
    REQUIRE_EQ(sigaction(SIGTRAP, &before, NULL), 0);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(it_inlines_after_the_first),
        TEST(it_is_filled_as_it_opens),
        TEST(regions_are_used_up),
        TEST(two_lanes_and_calls_by_turns),
        TEST(another_thread_calls),
        TEST(a_thread_that_has_gone),
        TEST(a_thread_that_leaves_calls),
        TEST(fenced),
        TEST(another_version_calls),
        TEST(options_that_call),
        TEST(an_epoch_of_the_ring),
        TEST(profiled),
        TEST(stale_lanes_are_refused),
        TEST(closed_phases_refuse),
        TEST(sizes_are_refused),
        TEST(detach_and_attach),
        TEST(a_child_goes_on),
        TEST(after_each_instruction),
    };
    if (!CAN_STEP) puts("no trap after each instruction here: the calls are made, and others act before them");
    return CHECK_RUN(argc, argv, tests);
}
