/*
 * work_threads.h - threads side by side, threads that free each other's objects, and frees that come
 * after the epoch was closed. Included twice, as work_general.h.
 */

struct ROW(crew_job) {
    uint64_t laps;
};

static void ROW(crew_warm)(unsigned index, void* arg) {
    bk_ref list[1000];
    (void)index, (void)arg;
    ROW(batch_cycle)(list, 1000);
}

static void ROW(crew_body)(unsigned index, void* arg) {
    struct ROW(crew_job)* job = arg;
    bk_ref list[1000];
    (void)index;
    for (uint64_t lap = 0; lap < job->laps; lap++) ROW(batch_cycle)(list, 1000);
}

static void ROW(threads)(const struct plan* plan, double* out) {
    BK(start)();
    for (unsigned k = 0; k < 5; k++) {
        unsigned threads = 1u << k;
        struct ROW(crew_job) job = {.laps = laps_of(plan, 8000 >> k)};
        struct crew crew = {.threads = threads, .warm = ROW(crew_warm), .body = ROW(crew_body), .arg = &job};
        double ns = crew_run(&crew);
        out[k] = threads * (double)job.laps * 2000.0 * 1000.0 / ns;
    }
}

/*
 * Two producers allocate and write, two consumers read and free; a ring of objects for each pair. Objects are handed over,
 * and their places given back, 64 at a time: with each alone, the row measures how long a cache line of the ring takes
 * from one processor to the other, and not the allocator.
 */
enum { ROW(PIPE) = 4096, ROW(HAND_OVER) = 64 };

struct ROW(line) {
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    _Alignas(64) bk_ref cell[ROW(PIPE)];
    uint64_t n;
};

/* Tells the other side how far this one is: after each batch, and at the end. */
static void ROW(tell)(_Atomic uint64_t* how_far, uint64_t done, uint64_t n) {
    if (done % ROW(HAND_OVER) == 0 || done == n) atomic_store_explicit(how_far, done, memory_order_release);
}

static void ROW(produce)(struct ROW(line) * line) {
    for (uint64_t i = 0, taken = 0; i < line->n; i++) {
        while (i - taken == ROW(PIPE)) {
            taken = atomic_load_explicit(&line->tail, memory_order_acquire);
            if (i - taken == ROW(PIPE)) sched_yield();
        }
        TOUCH(BK(alloc)(HOT_SIZE, &line->cell[i % ROW(PIPE)]));
        ROW(tell)(&line->head, i + 1, line->n);
    }
}

static void ROW(consume)(struct ROW(line) * line) {
    for (uint64_t i = 0, made = 0; i < line->n; i++) {
        while (made == i) {
            made = atomic_load_explicit(&line->head, memory_order_acquire);
            if (made == i) sched_yield();
        }
        bk_ref ref = line->cell[i % ROW(PIPE)];
        if (!CHECKING && *(volatile char*)bk_ptr(ref) != 1) corrupt("a consumer reads what no producer wrote");
        BK(free)(ref);
        ROW(tell)(&line->tail, i + 1, line->n);
    }
}

static void ROW(xthread_body)(unsigned index, void* arg) {
    struct ROW(line)* lines = arg;
    if (index % 2) ROW(consume)(&lines[index / 2]);
    else ROW(produce)(&lines[index / 2]);
}

static void ROW(xthread)(const struct plan* plan, double* out) {
    static struct ROW(line) lines[2];
    BK(start)();
    lines[0].n = lines[1].n = laps_of(plan, 2000000);
    for (unsigned k = 0; k < 2; k++) {
        struct crew crew = {.threads = 4 >> k, .body = ROW(xthread_body), .arg = lines};
        for (unsigned i = 0; i < 2; i++) lines[i].head = lines[i].tail = 0;
        out[k] = (4 >> k) * (double)lines[0].n * 1000.0 / crew_run(&crew);
    }
}

/* What a thread costs that has little. The threads run already, and have waited on a barrier, when the start is measured. */
enum { ROW(FEW_THREADS) = 16 };

struct ROW(few) {
    pthread_barrier_t gate;
    double before, high;
};

static void ROW(few_body)(unsigned index, void* arg) {
    struct ROW(few)* few = arg;
    bk_ref list[SMALL_OBJECTS];
    pthread_barrier_wait(&few->gate);
    if (index == 0) few->before = (double)resident_bytes();
    pthread_barrier_wait(&few->gate);
    for (unsigned i = 0; i < SMALL_OBJECTS; i++) TOUCH_LINES(BK(alloc)(small_sizes[i], &list[i]), small_sizes[i]);
    pthread_barrier_wait(&few->gate);
    if (index == 0) few->high = (double)resident_bytes();
    pthread_barrier_wait(&few->gate);
    for (unsigned i = 0; i < SMALL_OBJECTS; i++) BK(free)(list[i]);
}

static void ROW(few_objects)(const struct plan* plan, double* out) {
    struct ROW(few) few;
    (void)plan;
    BK(start)();
    pthread_barrier_init(&few.gate, NULL, ROW(FEW_THREADS));
    struct crew crew = {.threads = ROW(FEW_THREADS), .body = ROW(few_body), .arg = &few};
    crew_run(&crew);
    out[0] = (few.high - few.before) / 1024.0 / ROW(FEW_THREADS);
}

/* ---- threads that come and go ----------------------------------------------------------- */

enum {
    ROW(BURST_OBJECTS) = 5000,
    ROW(BURST_SIZE) = 512,
    ROW(BURST_ROUNDS) = 12,
    ROW(TABLE_GROWS) = 16,
    ROW(TABLE_SIZE) = 3000
};

struct ROW(burst) {
    pthread_barrier_t full;
    bk_ref* lists;
    unsigned n;
};

/* All threads have what they take at the same time. */
static void ROW(burst_body)(unsigned index, void* arg) {
    struct ROW(burst)* burst = arg;
    bk_ref* list = burst->lists + (size_t)index * burst->n;
    for (unsigned i = 0; i < burst->n; i++) TOUCH_LINES(BK(alloc)(ROW(BURST_SIZE), &list[i]), ROW(BURST_SIZE));
    pthread_barrier_wait(&burst->full);
    for (unsigned i = 0; i < burst->n; i++) BK(free)(list[i]);
}

static void ROW(thread_bursts)(const struct plan* plan, double* out) {
    struct ROW(burst) burst = {.n = objects_of(plan, ROW(BURST_OBJECTS))};
    bk_ref table[ROW(BURST_ROUNDS) * ROW(TABLE_GROWS)];
    unsigned kept = 0;
    double ns = 0;
    burst.lists = touched((size_t)ROW(FEW_THREADS) * burst.n * sizeof *burst.lists);
    BK(start)();
    pthread_barrier_init(&burst.full, NULL, ROW(FEW_THREADS));
    uint64_t before = resident_bytes();
    for (unsigned round = 0; round < ROW(BURST_ROUNDS); round++) {
        struct crew crew = {.threads = ROW(FEW_THREADS), .body = ROW(burst_body), .arg = &burst};
        ns += crew_run(&crew);
        for (unsigned i = 0; i < ROW(TABLE_GROWS); i++)
            TOUCH_LINES(BK(alloc)(ROW(TABLE_SIZE), &table[kept++]), ROW(TABLE_SIZE));
        if (round == 1) out[0] = mib_over(resident_bytes(), before);
    }
    out[1] = mib_over(resident_bytes(), before);
    out[2] = ns / ROW(BURST_ROUNDS) / 1e6;
    while (kept != 0) BK(free)(table[--kept]);
}

/* ---- late frees ------------------------------------------------------------------------- */

enum { ROW(LATE) = 100000 };

struct ROW(late) {
    bk_ref* list;
    const uint32_t* order;
    unsigned n;
};

static void ROW(late_fill)(struct ROW(late) * late) {
    for (unsigned i = 0; i < late->n; i++) TOUCH_LINES(BK(alloc)(HOT_SIZE, &late->list[i]), HOT_SIZE);
#if BK_OURS
    epoch_close(bk_allocator, bk_advance());
#endif
}

static void ROW(late_body)(unsigned index, void* arg) {
    struct ROW(late)* late = arg;
    (void)index;
    for (unsigned i = 0; i < late->n; i++) BK(free)(late->list[late->order[i]]);
}

static void ROW(late_frees)(const struct plan* plan, double* out) {
    unsigned n = objects_of(plan, ROW(LATE));
    struct ROW(late) late = {.n = n, .list = touched(n * sizeof *late.list), .order = shuffled(n, 3)};
    bk_ref ref;
    BK(start)();
    TOUCH(BK(alloc)(HOT_SIZE, &ref));
    BK(free)(ref);
    uint64_t before = resident_bytes();
    ROW(late_fill)(&late);
    uint64_t start = now_ns();
    ROW(late_body)(0, &late);
    out[0] = (double)(now_ns() - start) / n;
    ROW(late_fill)(&late);
    struct crew crew = {.threads = 1, .body = ROW(late_body), .arg = &late};
    out[1] = crew_run(&crew) / n;
    out[2] = mib_over(resident_bytes(), before);
}
