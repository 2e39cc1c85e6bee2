/*
 * work_churn.h - phases in which one object in a thousand lives on for 200 phases. Included twice, as
 * work_general.h.
 *
 * Kept apart: survivors are allocated outside the phase, which ends in bulk (or, in general allocators,
 * object by object). A phase peer that can free singly keeps them in a heap of their own; one that cannot
 * has a keeping phase for each generation.
 * Left in: survivors are allocated among the others. The others are freed one by one where that is
 * possible; temporal-slab's phases are then epochs of the ring, closed one behind. A phase of a phase peer ends with its last
 * survivor.
 */

enum { ROW(LIFE) = 200, ROW(CHURN) = 50000, ROW(CHURN_SURVIVORS) = ROW(CHURN) / 1000, ROW(CHURN_SIZES) = 1 << 16 };

struct ROW(churn) {
    unsigned phases, life, objects, survivors, every;
    const uint16_t* sizes; /* drawn; wraps */
    bk_ref* list;          /* objects of this phase, in order */
    bk_ref* kept;          /* survivors of the last `life` phases, a line of them each */
    uint32_t* kept_bytes;
    struct BK(phase) * held; /* phases (or keeping phases) of the last `life` phases */
    struct BK(phase) keep;
    uint64_t base, live, busy_ns;
    double resident[20];
    unsigned samples;
};

static struct ROW(churn) ROW(churn_make)(const struct plan* plan) {
    struct ROW(churn) c = {.life = ROW(LIFE), .objects = ROW(CHURN), .survivors = ROW(CHURN_SURVIVORS), .every = 1000};
    if (plan->mode == PLAN_CHECKED) c.life = 10, c.objects = 1000, c.survivors = 50, c.every = 20;
    c.phases = plan->full ? 2 * c.life : c.life + 24;
    uint16_t* sizes = touched(ROW(CHURN_SIZES) * sizeof *sizes);
    uint64_t random = seeded(5);
    for (int i = 0; i < ROW(CHURN_SIZES); i++) sizes[i] = eight_sizes[next_random(&random) & 7];
    c.sizes = sizes;
    c.list = touched(c.objects * sizeof *c.list);
    c.kept = touched(c.life * c.survivors * sizeof *c.kept);
    c.kept_bytes = touched(c.life * sizeof *c.kept_bytes);
    c.held = touched(c.life * sizeof *c.held);
    memset(c.kept_bytes, 0, c.life * sizeof *c.kept_bytes);
    return c;
}

static void ROW(churn_sample)(struct ROW(churn) * c, unsigned phase) {
    if (phase % 16 == 15) guard_memory("with survivors of some phases");
    if (phase + 20 >= c->phases) c->resident[c->samples++] = (double)resident_bytes() - (double)c->base;
}

/* A second after the last phase, and one call later: what a pause gives back. */
static double ROW(churn_settled)(const struct ROW(churn) * c) {
    const struct timespec second = {.tv_sec = 1};
    bk_ref ref;
    nanosleep(&second, NULL);
#if BK_GENERAL
    TOUCH(BK(alloc)(HOT_SIZE, &ref));
    BK(free)(ref);
#else
    struct BK(phase) ph;
    BK(phase_open)(&ph, HOT_SIZE);
    TOUCH(BK(phase_alloc)(&ph, HOT_SIZE, &ref));
    BK(phase_end)(&ph, &ref, 1);
#endif
    return ((double)resident_bytes() - (double)c->base) / (double)c->live;
}

static void ROW(churn_report)(struct ROW(churn) * c, const struct plan* plan, double* out) {
    for (unsigned i = 1; i < c->samples; i++) /* few: insertion sort */
        for (unsigned k = i; k > 0 && c->resident[k - 1] > c->resident[k]; k--) {
            double other = c->resident[k];
            c->resident[k] = c->resident[k - 1], c->resident[k - 1] = other;
        }
    double resident = c->resident[c->samples / 2];
    out[0] = resident / (double)c->live;
    out[1] = mib(resident);
    out[2] = mib((double)c->live);
    out[3] = (double)c->busy_ns / c->phases / c->objects;
    if (plan->mode == PLAN_TIMED) out[4] = ROW(churn_settled)(c);
}

/* ---- kept apart ------------------------------------------------------------------------- */

static void* ROW(keep_alloc)(struct ROW(churn) * c, unsigned generation, size_t size, bk_ref* ref) {
#if BK_GENERAL
    (void)c, (void)generation;
    return BK(alloc)(size, ref);
#elif BK_PHASE_FREE
    (void)generation;
    return BK(phase_alloc)(&c->keep, size, ref);
#else
    return BK(phase_alloc)(&c->held[generation], size, ref);
#endif
}

/* The generation that this one takes the place of is freed. */
static void ROW(keep_turn)(struct ROW(churn) * c, unsigned generation, bool first) {
    if (!first) {
        bk_ref* line = &c->kept[generation * c->survivors];
        (void)line;
#if BK_GENERAL
        for (unsigned i = 0; i < c->survivors; i++) BK(free)(line[i]);
#elif BK_PHASE_FREE
        for (unsigned i = 0; i < c->survivors; i++) BK(phase_free)(&c->keep, line[i]);
#else
        BK(phase_end)(&c->held[generation], line, 0);
#endif
        c->live -= c->kept_bytes[generation];
        c->kept_bytes[generation] = 0;
    }
#if !BK_GENERAL && !BK_PHASE_FREE
    BK(phase_open)(&c->held[generation], 12000);
#endif
}

static void ROW(churn_apart)(const struct plan* plan, double* out) {
    struct ROW(churn) c = ROW(churn_make)(plan);
    struct BK(phase) ph;
    uint32_t k = 0;
    BK(start)();
    c.base = resident_bytes();
#if !BK_GENERAL && BK_PHASE_FREE
    BK(phase_open)(&c.keep, 0);
#endif
    for (unsigned phase = 0; phase < c.phases; phase++) {
        unsigned generation = phase % c.life, n = 0, s = 0;
        uint64_t start = now_ns();
        ROW(keep_turn)(&c, generation, phase < c.life);
        BK(phase_open)(&ph, (size_t)c.objects * 236);
        for (unsigned i = 0; i < c.objects; i++) {
            size_t size = c.sizes[k++ % ROW(CHURN_SIZES)];
            if (i % c.every == 0) {
                TOUCH_LINES(ROW(keep_alloc)(&c, generation, size, &c.kept[generation * c.survivors + s++]), size);
                c.kept_bytes[generation] += (uint32_t)size;
            } else {
                TOUCH_LINES(BK(phase_alloc)(&ph, size, BK_BULK ? NULL : &c.list[n++]), size);
            }
        }
        c.live += c.kept_bytes[generation];
        BK(phase_end)(&ph, c.list, n);
        c.busy_ns += now_ns() - start;
        ROW(churn_sample)(&c, phase);
    }
    ROW(churn_report)(&c, plan, out);
}

/* ---- left in ---------------------------------------------------------------------------- */

static void* ROW(left_alloc)(struct ROW(churn) * c, unsigned generation, size_t size, bk_ref* ref) {
#if BK_GENERAL
    (void)c, (void)generation;
    return BK(alloc)(size, ref);
#else
    return BK(phase_alloc)(&c->held[generation], size, ref);
#endif
}

/* Of a phase that is over: all but the survivors are freed, where that is possible. */
static void ROW(left_free)(struct ROW(churn) * c, unsigned generation, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
#if BK_GENERAL
        (void)generation;
        BK(free)(c->list[i]);
#elif BK_PHASE_FREE
        BK(phase_free)(&c->held[generation], c->list[i]);
#else
        (void)c, (void)generation;
        break;
#endif
    }
}

static void ROW(left_turn)(struct ROW(churn) * c, unsigned generation, bool first) {
    if (!first) {
        bk_ref* line = &c->kept[generation * c->survivors];
#if BK_GENERAL
        for (unsigned i = 0; i < c->survivors; i++) BK(free)(line[i]);
#else
        BK(phase_end)(&c->held[generation], line, 0);
#endif
        c->live -= c->kept_bytes[generation];
        c->kept_bytes[generation] = 0;
    }
#if !BK_GENERAL
    BK(phase_open)(&c->held[generation], (size_t)c->objects * 236);
#endif
}

static void ROW(churn_left)(const struct plan* plan, double* out) {
    struct ROW(churn) c = ROW(churn_make)(plan);
    uint32_t k = 0;
    BK(start)();
    c.base = resident_bytes();
    for (unsigned phase = 0; phase < c.phases; phase++) {
        unsigned generation = phase % c.life, n = 0, s = 0;
        uint64_t start = now_ns();
        ROW(left_turn)(&c, generation, phase < c.life);
        for (unsigned i = 0; i < c.objects; i++) {
            size_t size = c.sizes[k++ % ROW(CHURN_SIZES)];
            bool lives = i % c.every == 0;
            bk_ref* ref = lives ? &c.kept[generation * c.survivors + s++] : &c.list[n++];
            TOUCH_LINES(ROW(left_alloc)(&c, generation, size, ref), size);
            if (lives) c.kept_bytes[generation] += (uint32_t)size;
        }
        c.live += c.kept_bytes[generation];
        ROW(left_free)(&c, generation, n);
#if BK_OURS
        epoch_close(bk_allocator, bk_advance());
#endif
        c.busy_ns += now_ns() - start;
        ROW(churn_sample)(&c, phase);
    }
    ROW(churn_report)(&c, plan, out);
}

/* ---- one of each phase ------------------------------------------------------------------ */

enum { ROW(SURVIVOR_PHASES) = 20000, ROW(SURVIVOR_OBJECTS) = 40 };

static void ROW(survivor_phase)(bk_ref* kept, uint64_t* random) {
    bk_ref list[ROW(SURVIVOR_OBJECTS)];
#if BK_OURS
    epoch_domain_t* phase = epoch_domain_begin(bk_allocator, "request");
    if (phase == NULL) cannot("no phase");
#endif
    for (unsigned i = 0; i < ROW(SURVIVOR_OBJECTS); i++) {
        size_t size = 16 + next_random(random) % 685;
        TOUCH_LINES(BK(alloc)(size, i == ROW(SURVIVOR_OBJECTS) / 2 ? kept : &list[i]), size);
    }
    for (unsigned i = 0; i < ROW(SURVIVOR_OBJECTS); i++)
        if (i != ROW(SURVIVOR_OBJECTS) / 2) BK(free)(list[i]);
#if BK_OURS
    epoch_domain_drain(phase, NULL);
#endif
}

/* What a survivor costs for as long as it lives: its page, the tables that describe it, the record of its phase. */
static void ROW(survivors)(const struct plan* plan, double* out) {
    unsigned n = objects_of(plan, ROW(SURVIVOR_PHASES));
    bk_ref* kept = touched(n * sizeof *kept);
    uint64_t random = seeded(6);
    BK(start)();
    uint64_t before = resident_bytes(), start = now_ns();
    for (unsigned i = 0; i < n; i++) ROW(survivor_phase)(&kept[i], &random);
    out[1] = (double)(now_ns() - start) / n / 1000.0;
    out[0] = ((double)resident_bytes() - (double)before) / n;
    for (unsigned i = 0; i < n; i++) BK(free)(kept[i]);
}

/* ---- drift ------------------------------------------------------------------------------ */

/* Phases of 5000 x 128 B, freed singly; ours on the ring, closed one behind: do the bytes that are held grow? */
static void ROW(drift)(const struct plan* plan, double* out) {
    enum { OBJECTS = 5000 };
    bk_ref* list = touched(OBJECTS * sizeof *list);
    uint64_t cycles = laps_of(plan, 2000);
    BK(start)();
    for (uint64_t c = 1; c <= cycles; c++) {
        for (int i = 0; i < OBJECTS; i++) TOUCH(BK(alloc)(HOT_SIZE, &list[i]));
#if BK_OURS
        EpochId id = bk_advance();
#endif
        for (int i = 0; i < OBJECTS; i++) BK(free)(list[i]);
#if BK_OURS
        epoch_close(bk_allocator, id);
#endif
        if (c == cycles / 20 + (cycles < 20)) out[0] = (double)bk_held_bytes() / 1024.0;
    }
    out[1] = (double)bk_held_bytes() / 1024.0;
    out[2] = 100.0 * (out[1] - out[0]) / (out[0] > 0 ? out[0] : 1);
}
