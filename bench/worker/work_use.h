/*
 * work_use.h - phases as programs use them: handed from thread to thread, tiny, huge, with a buffer that grows, left in
 * numbers; general work inside a phase; threads that share an allocator. A backend without phases of its own frees the
 * objects one by one, as in work_phases.h. Included twice, as work_general.h.
 */

/* What the caller keeps of an object in a phase that ends in bulk: nothing. */
#define KEPT(place) (BK_BULK ? NULL : (place))

/* ---- handed over ------------------------------------------------------------------------ */

enum { ROW(HANDED) = 50, ROW(ON_THE_WAY) = 16 };

struct ROW(parcel) {
    struct BK(phase) ph;
    bk_ref list[ROW(HANDED)];
    void* at[ROW(HANDED)];
};

/* One thread begins phases and fills them, the other reads and ends them. */
struct ROW(belt) {
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    _Alignas(64) struct ROW(parcel) parcel[ROW(ON_THE_WAY)];
    uint64_t warm, n;
};

static void ROW(fill_belt)(struct ROW(belt) * belt, uint64_t n) {
    uint64_t at = atomic_load_explicit(&belt->head, memory_order_relaxed);
    for (uint64_t i = at; i < at + n; i++) {
        while (i - atomic_load_explicit(&belt->tail, memory_order_acquire) == ROW(ON_THE_WAY)) sched_yield();
        struct ROW(parcel)* parcel = &belt->parcel[i % ROW(ON_THE_WAY)];
        BK(scope_begin)(&parcel->ph, ROW(HANDED) * HOT_SIZE);
        for (unsigned k = 0; k < ROW(HANDED); k++) {
            parcel->at[k] = BK(scope_alloc)(&parcel->ph, HOT_SIZE, KEPT(&parcel->list[k]));
            TOUCH(parcel->at[k]);
        }
        BK(hand_over)(&parcel->ph);
        atomic_store_explicit(&belt->head, i + 1, memory_order_release); /* the emptier's load of head */
    }
}

static void ROW(empty_belt)(struct ROW(belt) * belt, uint64_t n) {
    uint64_t at = atomic_load_explicit(&belt->tail, memory_order_relaxed);
    for (uint64_t i = at; i < at + n; i++) {
        while (atomic_load_explicit(&belt->head, memory_order_acquire) == i) sched_yield();
        struct ROW(parcel)* parcel = &belt->parcel[i % ROW(ON_THE_WAY)];
        BK(take_over)(&parcel->ph);
        for (unsigned k = 0; k < ROW(HANDED); k++)
            if (!CHECKING && *(volatile char*)parcel->at[k] != 1) corrupt("a phase that was handed over has changed");
        BK(scope_end)(&parcel->ph, parcel->list, ROW(HANDED));
        atomic_store_explicit(&belt->tail, i + 1, memory_order_release); /* the filler's load of tail */
    }
}

static void ROW(belt_run)(struct ROW(belt) * belt, unsigned index, uint64_t n) {
    if (index == 0) ROW(fill_belt)(belt, n);
    else ROW(empty_belt)(belt, n);
}

static void ROW(belt_warm)(unsigned index, void* arg) {
    struct ROW(belt)* belt = arg;
    ROW(belt_run)(belt, index, belt->warm);
}

static void ROW(belt_body)(unsigned index, void* arg) {
    struct ROW(belt)* belt = arg;
    ROW(belt_run)(belt, index, belt->n);
}

static void ROW(handed_on)(const struct plan* plan, double* out) {
    static struct ROW(belt) belt;
    BK(start)();
    belt.n = laps_of(plan, 100000);
    belt.warm = belt.n / 10 + 1;
    struct crew crew = {.threads = 2, .warm = ROW(belt_warm), .body = ROW(belt_body), .arg = &belt};
    out[0] = crew_run(&crew) / (double)belt.n / 1000.0;
    if (plan->mode != PLAN_TIMED || !calls_count()) return;
    struct crew again = {.threads = 2, .warm = ROW(belt_warm), .body = ROW(belt_body), .arg = &belt};
    belt.n = belt.n / 10 + 1;
    crew_run(&again); /* warming up included in what is counted, and in what it is divided by */
    out[1] = (double)calls_membarrier / (double)(belt.n + belt.warm);
    out[2] = (double)calls_madvise / (double)(belt.n + belt.warm);
}

/* ---- ten objects and their end ---------------------------------------------------------- */

enum { ROW(OPEN) = 15 };

struct ROW(tiny) {
    struct BK(phase) ph;
    bk_ref list[SMALL_OBJECTS];
};

/* Objects are kept where they will be freed singly, by the caller or at the end. */
static void ROW(begin_tiny)(struct ROW(tiny) * t, bool singly) {
    BK(phase_open)(&t->ph, SMALL_BYTES);
    for (unsigned i = 0; i < SMALL_OBJECTS; i++)
        TOUCH(BK(phase_alloc)(&t->ph, small_sizes[i], singly || !BK_BULK ? &t->list[i] : NULL));
}

static void ROW(end_tiny)(struct ROW(tiny) * t, bool singly) {
    for (unsigned i = 0; singly && i < SMALL_OBJECTS; i++) BK(phase_free)(&t->ph, t->list[i]);
    BK(phase_end)(&t->ph, t->list, singly ? 0 : SMALL_OBJECTS);
}

/* Fifteen are open; each lap begins one more and ends the oldest. */
static double ROW(tiny_phases)(uint64_t laps, bool singly) {
    struct ROW(tiny) ring[ROW(OPEN) + 1];
    for (unsigned i = 0; i < ROW(OPEN); i++) ROW(begin_tiny)(&ring[i], singly);
    uint64_t start = now_ns();
    for (uint64_t lap = 0; lap < laps; lap++) {
        ROW(begin_tiny)(&ring[(lap + ROW(OPEN)) % (ROW(OPEN) + 1)], singly);
        ROW(end_tiny)(&ring[lap % (ROW(OPEN) + 1)], singly);
    }
    double ns = (double)(now_ns() - start);
    for (unsigned i = 0; i < ROW(OPEN); i++) ROW(end_tiny)(&ring[(laps + i) % (ROW(OPEN) + 1)], singly);
    return ns / (double)laps;
}

static void ROW(phase10)(const struct plan* plan, double* out) {
    uint64_t n = laps_of(plan, 500000);
    bool both = plan->mode != PLAN_COUNTED && BK_PHASE_FREE;
    BK(start)();
    for (int singly = 0; singly <= both; singly++) {
        if (plan->mode != PLAN_COUNTED) ROW(tiny_phases)(n / 10 + 1, singly);
        out[singly] = ROW(tiny_phases)(n, singly);
    }
}

/* A name in place of LABEL: who has no labels does the same work. */
static double ROW(labelled_phases)(uint64_t laps, unsigned labels) {
    static char names[256][32];
    static uint8_t turns[1 << 14];
    uint64_t seed = seeded(9);
    for (unsigned k = 0; k < labels; k++) (void)snprintf(names[k], sizeof names[k], "GET /items/%u/detail", k);
    for (unsigned n = 0; n < sizeof turns; n++) turns[n] = (uint8_t)(next_random(&seed) % labels);
    struct ROW(tiny) t;
    uint64_t start = now_ns();
    for (uint64_t lap = 0; lap < laps; lap++) {
        BK_PHASE_LABEL(names[turns[lap % sizeof turns]]);
        ROW(begin_tiny)(&t, false);
        ROW(end_tiny)(&t, false);
    }
    return (double)(now_ns() - start) / (double)laps;
}

static void ROW(labels)(const struct plan* plan, double* out) {
    uint64_t n = laps_of(plan, 500000);
    BK(start)();
    for (int many = 0; many <= (plan->mode != PLAN_COUNTED); many++) {
        if (plan->mode != PLAN_COUNTED) (void)ROW(labelled_phases)(n / 10 + 1, many ? 256 : 16);
        out[many] = ROW(labelled_phases)(n, many ? 256 : 16);
    }
}

/* ---- one that is large ------------------------------------------------------------------ */

static void ROW(big_phase)(const struct plan* plan, double* out) {
    unsigned n = objects_of(plan, 100000);
    uint64_t laps = laps_of(plan, 50) + 1, busy = 0;
    bk_ref* list = touched(n * sizeof *list);
    double most = -1e9, high = -1e9;
    BK(start)();
    uint64_t before = resident_bytes();
    for (uint64_t lap = 0; lap < laps; lap++) {
        struct BK(phase) ph;
        uint64_t start = now_ns();
        BK(scope_begin)(&ph, (size_t)n * HOT_SIZE);
        for (unsigned i = 0; i < n; i++) TOUCH(BK(scope_alloc)(&ph, HOT_SIZE, KEPT(&list[i])));
        uint64_t filled = now_ns(), full = resident_bytes(), end = now_ns();
        BK(scope_end)(&ph, list, n);
        uint64_t ns = now_ns() - end + filled - start;
        double left = mib_over(resident_bytes(), before);
        if (left > most) most = left;
        if (mib_over(full, before) > high) high = mib_over(full, before);
        if (lap == 0) out[1] = (double)ns / n;
        busy += lap ? ns : 0;
    }
    if (laps > 1) out[0] = (double)busy / n / (double)(laps - 1);
    out[2] = high;
    out[3] = most;
}

/* ---- general work inside a phase -------------------------------------------------------- */

#if BK_PHASE_FREE
static double ROW(pairs_inside)(struct BK(phase) * ph, uint64_t n) {
    bk_ref ref;
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        TOUCH(BK(scope_alloc)(ph, HOT_SIZE, &ref));
        BK(scope_free)(ph, ref);
    }
    return (double)(now_ns() - start) / (double)n;
}

static double ROW(replace_inside)(struct BK(phase) * ph, bk_ref* list, const uint32_t* at, uint64_t n) {
    uint64_t start = now_ns();
    for (uint64_t k = 0; k < n; k++) {
        uint32_t i = at[k % ROW(DRAWN)];
        BK(scope_free)(ph, list[i]);
        TOUCH(BK(scope_alloc)(ph, eight_sizes[(i + k) & 7], &list[i]));
    }
    return (double)(now_ns() - start) / (double)n;
}

static void ROW(inside_body)(unsigned index, void* arg) {
    struct ROW(crew_job)* job = arg;
    bk_ref list[1000];
    struct BK(phase) ph;
    (void)index;
    BK(scope_begin)(&ph, sizeof list / sizeof *list * HOT_SIZE);
    for (uint64_t lap = 0; lap < job->laps; lap++) {
        for (int i = 0; i < 1000; i++) TOUCH(BK(scope_alloc)(&ph, HOT_SIZE, &list[i]));
        for (int i = 0; i < 1000; i++) BK(scope_free)(&ph, list[i]);
    }
    BK(scope_end)(&ph, NULL, 0);
}

static void ROW(in_domain)(const struct plan* plan, double* out) {
    uint64_t pairs = laps_of(plan, 10000000), turns = laps_of(plan, 2000000);
    unsigned slots = objects_of(plan, 100000);
    struct BK(phase) ph;
    BK(start)();
    BK(scope_begin)(&ph, HOT_SIZE);
    if (plan->mode != PLAN_COUNTED) ROW(pairs_inside)(&ph, 10000);
    out[0] = ROW(pairs_inside)(&ph, pairs);
    BK(scope_end)(&ph, NULL, 0);
    if (plan->mode == PLAN_COUNTED) return;
    bk_ref* list = touched(slots * sizeof *list);
    uint32_t* at = drawn(ROW(DRAWN), slots, 7);
    BK(scope_begin)(&ph, (size_t)slots * 236);
    for (unsigned i = 0; i < slots; i++) TOUCH(BK(scope_alloc)(&ph, eight_sizes[i & 7], &list[i]));
    ROW(replace_inside)(&ph, list, at, turns / 4 + 1);
    out[1] = ROW(replace_inside)(&ph, list, at, turns);
    BK(scope_end)(&ph, list, slots);
    for (unsigned k = 0; k < 2; k++) {
        struct ROW(crew_job) job = {.laps = laps_of(plan, 8000 >> k)};
        struct crew crew = {.threads = 1u << k, .body = ROW(inside_body), .arg = &job};
        out[2 + k] = (1u << k) * (double)job.laps * 2000.0 * 1000.0 / crew_run(&crew);
    }
}
#endif

/* ---- a buffer that grows ---------------------------------------------------------------- */

static void ROW(grow_buffers)(uint64_t laps) {
    enum { STEPS = 50, STEP = 300 }; /* to 15 KB */
    for (uint64_t lap = 0; lap < laps; lap++) {
        struct BK(phase) ph;
        bk_ref ref;
        BK(scope_begin)(&ph, STEPS * STEP);
        TOUCH_LINES(BK(scope_alloc)(&ph, STEP, &ref), STEP);
        for (size_t size = STEP; size < STEPS * STEP; size += STEP) {
            char* p = BK(scope_realloc)(&ph, &ref, size, size + STEP);
            TOUCH_LINES(p + size, STEP);
        }
        BK(scope_end)(&ph, &ref, 1);
    }
}

static void ROW(realloc_grow)(const struct plan* plan, double* out) {
    uint64_t n = laps_of(plan, 50000);
    BK(start)();
    if (plan->mode != PLAN_COUNTED) ROW(grow_buffers)(n / 10 + 1);
    uint64_t start = now_ns();
    ROW(grow_buffers)(n);
    out[0] = (double)(now_ns() - start) / (double)n / 1000.0;
}

/* A buffer that grows by a fixed step until its input ends. Each step is written. */
static void ROW(grow_large)(const struct plan* plan, double* out) {
    const size_t step = 64 << 10, most = plan->mode == PLAN_CHECKED ? 2 << 20 : 32 << 20;
    uint64_t n = laps_of(plan, 5), moves = 0, longest = 0;
    BK(start)();
    uint64_t start = now_ns();
    for (uint64_t lap = 0; lap < n; lap++) {
        struct BK(phase) ph;
        bk_ref ref;
        BK(scope_begin)(&ph, most);
        char* p = BK(scope_alloc)(&ph, step, &ref);
        TOUCH_LINES(p, step);
        for (size_t size = step; size < most; size += step) {
            uint64_t before = now_ns();
            char* q = BK(scope_realloc)(&ph, &ref, size, size + step);
            uint64_t took = now_ns() - before;
            if (took > longest) longest = took;
            moves += q != p;
            p = q;
            TOUCH_LINES(p + size, step);
        }
        BK(scope_end)(&ph, &ref, 1);
    }
    out[0] = (double)(now_ns() - start) / (double)n / 1e6;
    out[1] = (double)moves / (double)n;
    out[2] = (double)longest / 1e6;
}

/* ---- what is left of many --------------------------------------------------------------- */

static void ROW(left_over)(const struct plan* plan, double* out) {
    unsigned n = objects_of(plan, 50000);
    struct ROW(tiny)* phases = touched(n * sizeof *phases);
    BK(start)();
    uint64_t before = resident_bytes();
    for (unsigned i = 0; i < n; i++) {
        ROW(begin_tiny)(&phases[i], false);
        if (i % 1024 == 1023) guard_memory("with phases open");
    }
    uint64_t high = resident_bytes();
    for (unsigned i = 0; i < n; i++) ROW(end_tiny)(&phases[i], false);
    out[0] = mib_over(high, before);
    out[1] = mib_over(resident_bytes(), before);
}

/* ---- the tail of an end ----------------------------------------------------------------- */

struct ROW(tail) {
    struct timer timer;
    uint64_t laps, longest_end[2], longest_alloc[2];
    const uint16_t* sizes;
    struct histogram ends[2];
};

static void ROW(tail_body)(unsigned index, void* arg) {
    struct ROW(tail)* tail = arg;
    bk_ref list[REQUEST_OBJECTS];
    for (uint64_t lap = 0; lap < tail->laps; lap++) {
        struct BK(phase) ph;
        BK(scope_begin)(&ph, REQUEST_BYTES);
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++) {
            uint64_t t = ticks();
            void* p = BK(scope_alloc)(&ph, tail->sizes[i], KEPT(&list[i]));
            uint64_t took = timer_net(&tail->timer, t, ticks());
            if (took > tail->longest_alloc[index]) tail->longest_alloc[index] = took;
            TOUCH_LINES(p, tail->sizes[i]);
        }
        uint64_t t = ticks();
        BK(scope_end)(&ph, list, REQUEST_OBJECTS);
        uint64_t took = timer_net(&tail->timer, t, ticks());
        hist_add(&tail->ends[index], took);
        if (took > tail->longest_end[index]) tail->longest_end[index] = took;
    }
}

/* In the steady state, too: what was longest before is forgotten. */
static void ROW(tail_warm)(unsigned index, void* arg) {
    struct ROW(tail)* tail = arg;
    struct ROW(tail)* own = touched(sizeof *own);
    *own = (struct ROW(tail)){.timer = tail->timer, .laps = tail->laps / 10 + 1, .sizes = tail->sizes};
    ROW(tail_body)(index, own);
    munmap(own, sizeof *own);
}

static void ROW(end_tail)(const struct plan* plan, double* out) {
    static struct ROW(tail) tail;
    uint16_t sizes[REQUEST_OBJECTS];
    draw_sizes(sizes, REQUEST_OBJECTS);
    tail.timer = timer_calibrate();
    tail.laps = laps_of(plan, 50000);
    tail.sizes = sizes;
    BK(start)();
    memset(tail.ends, 0, sizeof tail.ends); /* resident before the threads begin */
    struct crew crew = {.threads = 2, .warm = ROW(tail_warm), .body = ROW(tail_body), .arg = &tail};
    crew_run(&crew);
    hist_merge(&tail.ends[0], &tail.ends[1]);
    static const double percents[3] = {50, 99, 99.99};
    for (int k = 0; k < 3; k++) out[k] = timer_ns(&tail.timer, &tail.ends[0], percents[k]) / 1000.0;
    out[3] = (double)larger(tail.longest_end[0], tail.longest_end[1]) * tail.timer.ns_per_tick / 1000.0;
    out[4] = (double)larger(tail.longest_alloc[0], tail.longest_alloc[1]) * tail.timer.ns_per_tick / 1000.0;
}

/* ---- the tail of everything a request does ---------------------------------------------- */

#if BK_GENERAL && BK_PHASE_FREE
enum { ROW(SESSIONS) = 64, ROW(SESSION_BYTES) = 200, ROW(BUFFER_MOST) = 8 << 10, ROW(LARGE_BYTES) = 300000 };
enum { ROW(DOES_BEGIN), ROW(DOES_ALLOC), ROW(DOES_REALLOC), ROW(DOES_FREE), ROW(DOES_END), ROW(DOES) };

struct ROW(calls) {
    struct timer timer;
    uint64_t laps, longest[2];
    const uint16_t* sizes;
    _Atomic(bk_ref)* sessions; /* of both threads; 0: none */
    struct histogram took[2][ROW(DOES)];
};

/* Times one call, and notes it as what it does. */
#define TIMED(what, call)                                         \
    do {                                                          \
        uint64_t since_ = ticks();                                \
        call;                                                     \
        uint64_t took_ = timer_net(&c->timer, since_, ticks());   \
        hist_add(&c->took[index][ROW(what)], took_);              \
        if (took_ > c->longest[index]) c->longest[index] = took_; \
    } while (0)

/* A buffer that doubles until it has the answer. */
static void ROW(calls_buffer)(struct ROW(calls) * c, unsigned index, struct BK(phase) * ph, bk_ref* ref) {
    char* p;
    TIMED(DOES_ALLOC, p = BK(scope_alloc)(ph, 256, ref));
    TOUCH_LINES(p, 256);
    for (size_t size = 256; size < ROW(BUFFER_MOST); size *= 2) {
        TIMED(DOES_REALLOC, p = BK(scope_realloc)(ph, ref, size, 2 * size));
        TOUCH_LINES(p + size, size);
    }
}

/* A session made outside of the request, in place of one that either thread has made. */
static void ROW(calls_session)(struct ROW(calls) * c, unsigned index, uint64_t* seed) {
    bk_ref ref;
    char* p;
    TIMED(DOES_ALLOC, p = BK(alloc)(ROW(SESSION_BYTES), &ref));
    TOUCH_LINES(p, ROW(SESSION_BYTES));
    ref = atomic_exchange(&c->sessions[next_random(seed) % ROW(SESSIONS)], ref);
    if (ref) TIMED(DOES_FREE, BK(free)(ref));
}

static void ROW(calls_body)(unsigned index, void* arg) {
    struct ROW(calls)* c = arg;
    bk_ref list[REQUEST_OBJECTS + 2];
    uint64_t seed = seeded(40 + index);
    for (uint64_t lap = 0; lap < c->laps; lap++) {
        struct BK(phase) ph;
        unsigned n = 0;
        char* p;
        ROW(calls_session)(c, index, &seed); /* as the connection is made */
        TIMED(DOES_BEGIN, BK(scope_begin)(&ph, REQUEST_BYTES));
        ROW(calls_buffer)(c, index, &ph, &list[n++]);
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++) {
            TIMED(DOES_ALLOC, p = BK(scope_alloc)(&ph, c->sizes[i], &list[n]));
            TOUCH_LINES(p, c->sizes[i]);
            if (i % 4 != 3) n++;
            else TIMED(DOES_FREE, BK(scope_free)(&ph, list[n]));
        }
        if (lap % 64 == 0) {
            TIMED(DOES_ALLOC, p = BK(scope_alloc)(&ph, ROW(LARGE_BYTES), &list[n++]));
            TOUCH_LINES(p, ROW(LARGE_BYTES));
        }
        TIMED(DOES_END, BK(scope_end)(&ph, list, n));
    }
}
#undef TIMED

static void ROW(calls_warm)(unsigned index, void* arg) {
    struct ROW(calls)* c = arg;
    struct ROW(calls)* own = touched(sizeof *own);
    *own = (struct ROW(calls)){.timer = c->timer, .laps = c->laps / 10 + 1, .sizes = c->sizes, .sessions = c->sessions};
    ROW(calls_body)(index, own);
    munmap(own, sizeof *own);
}

static void ROW(request_tail)(const struct plan* plan, double* out) {
    static struct ROW(calls) c;
    static _Atomic(bk_ref) sessions[ROW(SESSIONS)];
    uint16_t sizes[REQUEST_OBJECTS];
    draw_sizes(sizes, REQUEST_OBJECTS);
    c.timer = timer_calibrate();
    c.laps = laps_of(plan, 50000);
    c.sizes = sizes;
    c.sessions = sessions;
    BK(start)();
    memset(c.took, 0, sizeof c.took); /* resident before the threads begin */
    struct crew crew = {.threads = 2, .warm = ROW(calls_warm), .body = ROW(calls_body), .arg = &c};
    crew_run(&crew);
    static struct histogram all;
    for (unsigned what = 0; what < ROW(DOES); what++) {
        hist_merge(&c.took[0][what], &c.took[1][what]);
        hist_merge(&all, &c.took[0][what]);
        out[what] = timer_ns(&c.timer, &c.took[0][what], 99.99) / 1000.0;
    }
    out[ROW(DOES)] = timer_ns(&c.timer, &all, 99.99) / 1000.0;
    out[ROW(DOES) + 1] = (double)larger(c.longest[0], c.longest[1]) * c.timer.ns_per_tick / 1000.0;
    for (unsigned n = 0; n < ROW(SESSIONS); n++)
        if (sessions[n]) BK(free)(sessions[n]);
}
#endif

/* ---- threads that share an allocator ---------------------------------------------------- */

/* Thousands of requests a second, all threads together. One allocator each is row_shared_ours. */
static void ROW(shared_allocator)(const struct plan* plan, double* out) {
    uint16_t sizes[REQUEST_OBJECTS];
    struct ROW(request_job) job = {.laps = laps_of(plan, 20000), .sizes = sizes};
    draw_sizes(sizes, REQUEST_OBJECTS);
    ROW(requests_run) = ROW(requests_bulk);
    BK(start)();
    for (unsigned k = 0; k < 3; k++) {
        struct crew crew = {.threads = 1u << k, .warm = ROW(requests_warm), .body = ROW(requests_body), .arg = &job};
        out[k] = (1u << k) * (double)job.laps * 1e6 / crew_run(&crew);
    }
}

#undef KEPT
