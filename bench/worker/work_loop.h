/*
 * work_loop.h - an event loop: many requests are open on one thread, and each event allocates in one of them. All is
 * drawn beforehand, so that nothing but allocation is timed. A backend without phases of its own frees the objects of a
 * request one by one, as in work_phases.h; a way of naming a phase that it lacks is its only one. Included twice, as
 * work_general.h.
 */

enum { ROW(LOOP_STEPS) = 1 << 16, ROW(LOOP_SIZES) = 1 << 14, ROW(LOOP_MOST) = 128 };

/* How the event names its request, or how the request ends. */
enum ROW(loop_way) { ROW(BY_DOMAIN), ROW(BY_SCOPE), ROW(BY_ID), ROW(SINGLY), ROW(LOOP_WAYS) };

struct ROW(loop_request) {
    struct BK(phase) ph;
    uint32_t events_left, objects;
    bk_ref list[ROW(LOOP_MOST)];
};

struct ROW(loop_step) {
    uint32_t request;        /* which one */
    uint8_t objects, events; /* that the event makes; that the request has which begins in this one's place */
    bool frees;              /* the object made last */
};

struct ROW(loop) {
    enum ROW(loop_way) way;
    unsigned open;
    struct ROW(loop_request) * requests;
    struct ROW(loop_step) * steps;
    uint16_t* sizes;
    uint32_t next_size;
};

/* Sizes are log-uniform from 40 to 700 bytes. */
static void ROW(loop_draw)(struct ROW(loop) * loop) {
    uint64_t seed = seeded(8);
    for (unsigned i = 0; i < ROW(LOOP_SIZES); i++)
        loop->sizes[i] = (uint16_t)(40.0 * pow(700.0 / 40.0, (double)(next_random(&seed) % 65536) / 65535.0));
    for (unsigned i = 0; i < ROW(LOOP_STEPS); i++)
        loop->steps[i] = (struct ROW(loop_step)){.request = next_random(&seed) % loop->open,
                                                 .objects = (uint8_t)(1 + next_random(&seed) % 6),
                                                 .events = (uint8_t)(4 + next_random(&seed) % 17),
                                                 .frees = next_random(&seed) % 4 == 0};
}

static void ROW(loop_begin)(struct ROW(loop) * loop, struct ROW(loop_request) * r, uint32_t events) {
    r->events_left = events;
    r->objects = 0;
    if (loop->way == ROW(BY_SCOPE)) BK(scope_begin)(&r->ph, 42 * 230);
    else BK(phase_open)(&r->ph, 42 * 230);
}

static void ROW(loop_end)(struct ROW(loop) * loop, struct ROW(loop_request) * r) {
    bool singly = loop->way == ROW(SINGLY);
    for (uint32_t i = r->objects; singly && i-- > 0;) BK(phase_free)(&r->ph, r->list[i]);
    if (loop->way == ROW(BY_SCOPE)) BK(scope_end)(&r->ph, r->list, r->objects);
    else BK(phase_end)(&r->ph, r->list, singly ? 0 : r->objects);
}

static void ROW(loop_object)(struct ROW(loop) * loop, struct ROW(loop_request) * r) {
    size_t size = loop->sizes[loop->next_size++ % ROW(LOOP_SIZES)];
    bk_ref* kept = &r->list[r->objects++];
    char* p = loop->way == ROW(BY_SCOPE) ? BK(scope_alloc)(&r->ph, size, kept)
              : loop->way == ROW(BY_ID)  ? BK(phase_alloc_id)(&r->ph, size, kept)
                                         : BK(phase_alloc)(&r->ph, size, kept);
    if (CHECKING) return; /* the pattern is all the writing that objects get */
    *(volatile uint64_t*)(void*)p = size;
    *(volatile char*)(p + size - 1) = 1;
}

static void ROW(loop_event)(struct ROW(loop) * loop, const struct ROW(loop_step) * step) {
    struct ROW(loop_request)* r = &loop->requests[step->request];
    if (loop->way == ROW(BY_SCOPE)) BK(take_over)(&r->ph);
    for (unsigned n = step->objects; n != 0 && r->objects < ROW(LOOP_MOST); n--) ROW(loop_object)(loop, r);
    if (BK_PHASE_FREE && step->frees && r->objects >= 2) BK(phase_free)(&r->ph, r->list[--r->objects]);
    if (--r->events_left == 0) {
        ROW(loop_end)(loop, r);
        ROW(loop_begin)(loop, r, step->events);
    }
    if (loop->way == ROW(BY_SCOPE)) BK(hand_over)(&r->ph);
}

static double ROW(loop_events)(struct ROW(loop) * loop, uint64_t from, uint64_t events) {
    uint64_t start = now_ns();
    for (uint64_t n = from; n < from + events; n++) ROW(loop_event)(loop, &loop->steps[n % ROW(LOOP_STEPS)]);
    return (double)(now_ns() - start) / (double)events;
}

/* One in ten events is warm-up. Nanoseconds an event; *resident, where it is not NULL, in MiB over those before. */
static double ROW(loop_run)(const struct plan* plan, struct ROW(loop) * loop, double* resident) {
    uint64_t events = laps_of(plan, 2000000), warm = plan->mode == PLAN_COUNTED ? 0 : events / 10;
    ROW(loop_draw)(loop);
    loop->next_size = 0;
    uint64_t before = resident_bytes();
    for (unsigned i = 0; i < loop->open; i++) {
        ROW(loop_begin)(loop, &loop->requests[i], 1 + i % 20);
        if (loop->way == ROW(BY_SCOPE)) BK(hand_over)(&loop->requests[i].ph);
    }
    if (warm != 0) (void)ROW(loop_events)(loop, 0, warm);
    double ns = ROW(loop_events)(loop, warm, events - warm);
    if (resident != NULL) *resident = mib_over(resident_bytes(), before);
    for (unsigned i = 0; i < loop->open; i++) {
        if (loop->way == ROW(BY_SCOPE)) BK(take_over)(&loop->requests[i].ph);
        ROW(loop_end)(loop, &loop->requests[i]);
    }
    return ns;
}

/* The many come first: what is resident then is theirs alone. */
static void ROW(event_loop)(const struct plan* plan, double* out) {
    unsigned many = objects_of(plan, 5000);
    struct ROW(loop) loop = {.requests = touched(many * sizeof *loop.requests),
                             .steps = touched(ROW(LOOP_STEPS) * sizeof *loop.steps),
                             .sizes = touched(ROW(LOOP_SIZES) * sizeof *loop.sizes)};
    BK(start)();
    for (unsigned few = plan->mode == PLAN_COUNTED; few <= 1; few++)
        for (unsigned way = 0; way < ROW(LOOP_WAYS); way++) {
            if (way != 0 && plan->mode == PLAN_COUNTED) return;
            if (way == ROW(SINGLY) && !BK_PHASE_FREE) continue;
            loop.way = (enum ROW(loop_way))way;
            loop.open = few ? 64 : many;
            out[(few ? 0 : ROW(LOOP_WAYS)) + way] =
                ROW(loop_run)(plan, &loop, few || way != 0 ? NULL : &out[2 * ROW(LOOP_WAYS)]);
        }
}
