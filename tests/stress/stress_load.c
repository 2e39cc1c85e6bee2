/*
 * stress_load.c - much of everything, and nothing drifts: what a process that runs for months does, counted in
 * operations.
 *
 *   ring      objects come and go while the ring turns, so that each id is used again and again; then nothing is live,
 *             as many bytes are committed as half-way, and the resident size is that of half-way within a hundredth
 *   loop      an event loop with 50,000 requests open on one thread: objects of each request keep what was written into
 *             them, and committed bytes and resident size at the end are those of half-way, as far as the drawn requests
 *             differ
 *   many      millions of small objects live at once; half are freed in an order drawn at random, the others are whole;
 *             the figures of the allocator and the walk of its phases count exactly the live ones
 *   transfer  32 threads that die and are born again hand objects to each other; each object is whole when it is freed
 *
 * A name as an argument runs that one alone. TSLAB_TEST_SCALE=1000 makes ring 10^9 operations with 10^5 turns, many ten
 * million objects (which is its most), and the loop some minutes. TSLAB_TEST_SECONDS=3600 gives ring and loop an hour each
 * instead, and TSLAB_TEST_TRACE=FILE has a line of their figures for each second, which tools/plot_soak.py draws.
 */
#include "stress.h"

#include <string.h>
#include <time.h>

/* Not with pages that platforms/pages.c pretends: the kernel's are smaller, and fill up one by one. */
static bool measured(void) {
    return !CHECK_TSAN && !CHECK_ASAN && getenv("TSLAB_TEST_PAGE") == NULL && slab_rss_bytes() != 0;
}

static uint64_t committed(SlabAllocator* a) {
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    return g.committed_bytes;
}

static uint64_t live_objects(SlabAllocator* a) {
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    return g.live_objects;
}

/* ---- how long, and what is written down meanwhile --------------------------------------- */

struct course {
    SlabAllocator* a;
    const char* name;
    FILE* trace;       /* or NULL */
    uint64_t begun_ns; /* monotonic */
    uint64_t for_ns;   /* 0: most steps decide */
    uint64_t traced;   /* seconds of the last line */
    uint64_t steps, most;
    bool half; /* course_half has said so */
};

static uint64_t monotonic_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct course course_begin(SlabAllocator* a, const char* name, uint64_t steps) {
    const char* seconds = getenv("TSLAB_TEST_SECONDS");
    const char* file = getenv("TSLAB_TEST_TRACE");
    struct course c = {.a = a, .name = name, .begun_ns = monotonic_ns(), .traced = UINT64_MAX, .most = steps};
    if (seconds != NULL) c.for_ns = strtoull(seconds, NULL, 10) * 1000000000u;
    if (file != NULL) {
        REQUIRE_OR((c.trace = fopen(file, "a")) != NULL, "%s cannot be written", file);
        if (ftell(c.trace) == 0)
            (void)fputs("load,seconds,steps,live_objects,committed_bytes,resident_bytes\n", c.trace);
    }
    return c;
}

static void course_trace(struct course* c, uint64_t seconds) {
    if (c->trace == NULL || seconds == c->traced) return;
    c->traced = seconds;
    SlabGlobalStats g;
    slab_stats_global(c->a, &g);
    (void)fprintf(c->trace, "%s,%llu,%llu,%llu,%llu,%llu\n", c->name, (unsigned long long)seconds,
                  (unsigned long long)c->steps, (unsigned long long)g.live_objects,
                  (unsigned long long)g.committed_bytes, (unsigned long long)slab_rss_bytes());
    (void)fflush(c->trace); /* a run of hours that is ended by hand has its figures */
}

/* Counts a step. Returns false after the last one. */
static bool course_goes_on(struct course* c) {
    c->steps++;
    bool timed = c->for_ns != 0 || c->trace != NULL;
    uint64_t spent = timed && c->steps % 256 == 0 ? monotonic_ns() - c->begun_ns : 0;
    if (spent != 0) course_trace(c, spent / 1000000000u);
    bool on = c->for_ns != 0 ? spent < c->for_ns : c->steps < c->most;
    if (!on && c->trace != NULL) REQUIRE_OR(fclose(c->trace) == 0, "the trace cannot be written");
    return on;
}

/* Returns true once, half-way. */
static bool course_half(struct course* c) {
    if (c->half) return false;
    if (c->for_ns != 0) c->half = c->steps % 256 == 0 && monotonic_ns() - c->begun_ns >= c->for_ns / 2;
    else c->half = c->steps == c->most / 2;
    return c->half;
}

/* ---- ring ------------------------------------------------------------------------------- */

enum { RING = 16, RING_OPS = 625, RING_LIVE = 64 };

static void ring(void) {
    SlabOptions o = kit_options();
    o.ring_size = RING;
    SlabAllocator* a = kit_create_with(&o);
    struct dice d = {.state = 11};
    uint64_t turns = check_count_whole(2 * RING * 100 / CHECK_DIVISOR), early = 0, rss = 0;
    void* live[RING_LIVE] = {0};

    struct course c = course_begin(a, "ring", turns);
    do {
        EpochId id = epoch_current(a);
        for (unsigned i = 0; i < RING_OPS; i++) {
            unsigned at = (unsigned)below(&d, RING_LIVE);
            if (live[at]) {
                slab_free(a, live[at]);
                live[at] = NULL;
            } else {
                size_t size = small_size(&d);
                REQUIRE_OR((live[at] = slab_malloc(a, size)) != NULL, "no memory");
                memset(live[at], 1, 8);
            }
        }
        for (unsigned i = 0; i < RING_LIVE; i++) {
            if (c.steps % 2 == 0) slab_free(a, live[i]); /* the others end with their epoch */
            live[i] = NULL;
        }
        epoch_advance(a);
        REQUIRE_OR(epoch_close_ex(a, id, EPOCH_RELEASE, NULL), "epoch %u was not open", id);
        if (course_half(&c)) {
            early = committed(a);
            rss = slab_rss_bytes();
        }
    } while (course_goes_on(&c));
    turns = c.steps;

    REQUIRE_OR(live_objects(a) == 0, "%llu objects are live", (unsigned long long)live_objects(a));
    REQUIRE_OR(committed(a) == early, "%llu bytes are committed, %llu were half-way", (unsigned long long)committed(a),
               (unsigned long long)early);
    uint64_t now = slab_rss_bytes();
    if (measured())
        REQUIRE_OR(now <= rss + rss / 100 + 65536, "%llu bytes resident, %llu half-way", (unsigned long long)now,
                   (unsigned long long)rss);
    printf(
        "ring: %llu operations, %llu turns of %u epochs; committed %llu bytes half-way and at the end, resident %llu "
        "and %llu\n",
        (unsigned long long)turns * RING_OPS, (unsigned long long)turns / RING, RING, (unsigned long long)early,
        (unsigned long long)rss, (unsigned long long)now);
    check_no_misuse(a);
    check_all_gone(a, RING);
    slab_allocator_free(a);
}

/* ---- loop ------------------------------------------------------------------------------- */

enum { LOOP_OPEN = 50000, LOOP_MOST = 128 };

struct request {
    epoch_domain_t* d;
    uint32_t objects, events_left;
    struct parcel* list[LOOP_MOST];
};

static struct request* requests;

static void request_begin(SlabAllocator* a, struct dice* d, struct request* r, uint32_t events) {
    (void)d;
    REQUIRE_OR((r->d = epoch_domain_create_labeled(a, "GET /")) != NULL, "no domain: %s", slab_last_error());
    r->objects = 0;
    r->events_left = events;
}

static void loop_event(SlabAllocator* a, struct dice* d, uint64_t number) {
    struct request* r = &requests[below(d, LOOP_OPEN)];
    for (uint64_t n = 1 + below(d, 6); n > 0 && r->objects < LOOP_MOST; n--) {
        size_t size = 40 + below(d, 300);
        struct parcel* p = parcel_make(epoch_domain_malloc(r->d, size), size & ~(size_t)7, number + n);
        REQUIRE_OR(p != NULL, "no memory");
        r->list[r->objects++] = p;
    }
    if (r->objects >= 2 && chance(d, 4)) {
        parcel_check(r->list[--r->objects]);
        slab_free(a, r->list[r->objects]);
    }
    if (--r->events_left != 0) return;
    for (uint32_t i = 0; i < r->objects; i++) parcel_check(r->list[i]);
    epoch_domain_destroy(r->d);
    request_begin(a, d, r, 4 + (uint32_t)below(d, 17));
}

static void loop(void) {
    SlabAllocator* a = kit_create();
    struct dice d = {.state = 12};
    requests = calloc(LOOP_OPEN, sizeof *requests);
    REQUIRE_OR(requests != NULL, "no memory");
    for (unsigned i = 0; i < LOOP_OPEN; i++) request_begin(a, &d, &requests[i], 1 + i % 20);

    uint64_t events = 2000000 + (check_count(200000) - check_count(200000) / 10) / CHECK_DIVISOR, rss = 0, early = 0;
    if (CHECK_DIVISOR > 1) events = 100000;
    struct course c = course_begin(a, "loop", events);
    do {
        loop_event(a, &d, c.steps);
        if (course_half(&c)) {
            rss = slab_rss_bytes();
            early = committed(a);
        }
    } while (course_goes_on(&c));
    events = c.steps;

    /* Sums over 50,000 requests that are drawn anew: they differ by far less than a twentieth. */
    uint64_t now = slab_rss_bytes(), late = committed(a);
    if (CHECK_DIVISOR == 1)
        REQUIRE_OR(late <= early + early / 20, "%llu bytes are committed, %llu were half-way", (unsigned long long)late,
                   (unsigned long long)early);
    if (measured())
        REQUIRE_OR(now <= rss + rss / 20, "%llu bytes resident, %llu half-way", (unsigned long long)now,
                   (unsigned long long)rss);
    printf("loop: %llu events on %u open requests; committed %llu bytes half-way, %llu at the end, resident %llu and "
           "%llu\n",
           (unsigned long long)events, LOOP_OPEN, (unsigned long long)early, (unsigned long long)late,
           (unsigned long long)rss, (unsigned long long)now);
    for (unsigned i = 0; i < LOOP_OPEN; i++) epoch_domain_destroy(requests[i].d);
    free(requests);
    check_no_misuse(a);
    check_all_gone(a, RING);
    slab_allocator_free(a);
}

/* ---- many ------------------------------------------------------------------------------- */

enum { MANY_MOST = 10000000 };

static bool count_object(const SlabLiveObject* object, void* ctx) {
    ++*(uint64_t*)ctx;
    return object->usable_bytes >= 16;
}

static void many(void) {
    SlabAllocator* a = kit_create();
    struct dice d = {.state = 13};
    uint64_t count = check_count(1000000 / CHECK_DIVISOR), walked = 0;
    if (count > MANY_MOST) count = MANY_MOST;
    void** live = malloc(count * sizeof *live);
    uint8_t* sizes = malloc(count);
    REQUIRE_OR(live != NULL && sizes != NULL, "no memory");

    epoch_domain_t* domain = epoch_domain_create_labeled(a, "many");
    for (uint64_t i = 0; i < count; i++) {
        sizes[i] = (uint8_t)(16 + 8 * below(&d, 8));
        live[i] = i % 2 == 0 ? slab_malloc(a, sizes[i]) : epoch_domain_malloc(domain, sizes[i]);
        REQUIRE_OR(live[i] != NULL, "no memory for object %llu", (unsigned long long)i);
        cookie_write(live[i], sizes[i], i);
    }
    REQUIRE_OR(live_objects(a) == count, "%llu objects are live, %llu were made", (unsigned long long)live_objects(a),
               (unsigned long long)count);

    for (uint64_t i = count; i > 1; i--) { /* an order drawn at random; the cookie names the object's number */
        uint64_t with = below(&d, i);
        void* p = live[i - 1];
        uint8_t size = sizes[i - 1];
        live[i - 1] = live[with];
        sizes[i - 1] = sizes[with];
        live[with] = p;
        sizes[with] = size;
    }
    for (uint64_t i = 0; i < count / 2; i++) {
        cookie_check(live[i], sizes[i]);
        slab_free(a, live[i]);
    }
    for (uint64_t i = count / 2; i < count; i++) cookie_check(live[i], sizes[i]);
    uint64_t left = count - count / 2;
    REQUIRE_OR(live_objects(a) == left, "%llu objects are live, %llu should be", (unsigned long long)live_objects(a),
               (unsigned long long)left);

    slab_epoch_walk(a, epoch_current(a), count_object, &walked);
    slab_epoch_walk(a, domain->epoch_id, count_object, &walked);
    REQUIRE_OR(walked == left, "the walks found %llu objects of %llu", (unsigned long long)walked,
               (unsigned long long)left);
    printf("many: %llu objects live at once, %llu left and walked, %llu bytes committed\n", (unsigned long long)count,
           (unsigned long long)walked, (unsigned long long)committed(a));
    for (uint64_t i = count / 2; i < count; i++) slab_free(a, live[i]);
    epoch_domain_destroy(domain);
    free(live);
    free(sizes);
    check_no_misuse(a);
    check_all_gone(a, RING);
    slab_allocator_free(a);
}

/* ---- transfer --------------------------------------------------------------------------- */

enum { TRANSFER_THREADS = MAX_SLOTS, TRANSFER_LIVES = 4, TRANSFER_CELLS = 1000 };

static SlabAllocator* between;
static _Atomic(struct parcel*) cells[TRANSFER_CELLS];
static _Atomic uint64_t made, ended;

static void transfer_one(struct dice* d) {
    size_t size = parcel_size(d);
    struct parcel* p = NULL;
    if (chance(d, 3)) {
        p = parcel_make(slab_malloc(between, size), size & ~(size_t)7, roll(d));
        REQUIRE_OR(p != NULL, "no memory");
        atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    }
    p = atomic_exchange(&cells[below(d, TRANSFER_CELLS)], p);
    if (p == NULL) return;
    parcel_check(p);
    slab_free(between, p);
    atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
}

static void transfer_life(struct slot* self) {
    epoch_domain_t* d = epoch_domain_create_labeled(between, "transfer");
    REQUIRE_OR(d != NULL, "no domain");
    for (uint64_t n = 0; n < self->ops_per_life; n++) {
        transfer_one(&self->dice);
        if (n % 64 == 0) { /* a phase of the thread's own beside it */
            struct parcel* p = parcel_make(epoch_domain_malloc(d, 256), 256, n);
            REQUIRE_OR(p != NULL, "no memory");
            parcel_check(p);
        }
    }
    epoch_domain_destroy(d);
}

static void transfer(void) {
    between = kit_create();
    made = ended = 0;
    uint64_t ops = check_count(4000) / CHECK_DIVISOR;
    run_slots(TRANSFER_THREADS, TRANSFER_LIVES, ops, 14, transfer_life, NULL);
    for (unsigned i = 0; i < TRANSFER_CELLS; i++) {
        struct parcel* p = atomic_exchange(&cells[i], NULL);
        if (p == NULL) continue;
        parcel_check(p);
        slab_free(between, p);
        ended++;
    }
    REQUIRE_OR(made == ended, "%llu objects made, %llu freed", (unsigned long long)made, (unsigned long long)ended);
    printf("transfer: %d threads, %d lives each, %llu objects handed on and whole\n", TRANSFER_THREADS, TRANSFER_LIVES,
           (unsigned long long)made);
    check_no_misuse(between);
    check_all_gone(between, RING);
    slab_allocator_free(between);
}

/* ---- which ------------------------------------------------------------------------------ */

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } loads[] = {{"ring", ring}, {"loop", loop}, {"many", many}, {"transfer", transfer}};
    bool found = argc < 2;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        if (argc > 1 && strcmp(argv[1], loads[i].name) != 0) continue;
        if (CHECK_TSAN && check_scale() < 1 && loads[i].run == loop) {
            puts("left out: the event loop under ThreadSanitizer, below scale 1");
            found = true;
            continue;
        }
        loads[i].run();
        found = true;
    }
    REQUIRE_OR(found, "no load is called %s: ring, loop, many, transfer", argv[1]);
    puts("stress_load: ok");
    return 0;
}
