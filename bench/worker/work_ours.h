/*
 * work_ours.h - what only temporal-slab can do: ends of epochs, and of domains that threads hold. These rows keep no
 * contents; they are compiled once.
 */
#ifndef BENCH_WORK_OURS_H
#define BENCH_WORK_OURS_H

/* The ring moves on, and what it leaves, never used, is closed. */
static void row_close_empty(const struct plan* plan, double* out) {
    static struct histogram h;
    struct timer timer = timer_calibrate();
    bk_start();
    for (uint64_t i = 0; i < laps_of(plan, 200000); i++) {
        EpochId old = bk_advance();
        uint64_t t = ticks();
        epoch_close(bk_allocator, old);
        hist_add(&h, timer_net(&timer, t, ticks()));
    }
    out[0] = timer_ns(&timer, &h, 50);
    out[1] = timer_ns(&timer, &h, 99);
}

/* Fills and empties so many slabs of a page in the current epoch, then closes it; nanoseconds. */
static double close_slabs(unsigned slabs, EpochReceipt* receipt) {
    enum { SIZE = 64 }; /* 64 of these fill a page, the least slab */
    SlabClassStats k;
    slab_stats_class(bk_allocator, 0, &k);
    size_t n = slabs * (size_t)(k.slab_bytes / SIZE);
    void** list = touched(n * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = slab_malloc(bk_allocator, SIZE);
        if (!list[i]) cannot("no memory");
        touch(list[i]);
    }
    for (size_t i = 0; i < n; i++) slab_free(bk_allocator, list[i]);
    EpochId old = bk_advance();
    uint64_t start = now_ns();
    if (!epoch_close_ex(bk_allocator, old, EPOCH_DRAIN, receipt)) corrupt("an epoch could not be closed");
    double ns = (double)(now_ns() - start);
    munmap(list, n * sizeof *list);
    return ns;
}

static void start_with_pages(void) {
    SlabOptions options = {.struct_size = sizeof options, .slab_bytes = 4096};
    bk_allocator = slab_allocator_create_with(&options);
    if (!bk_allocator) cannot(slab_last_error());
    slab_epoch_set_label(bk_allocator, epoch_current(bk_allocator), RING_LABEL);
}

/* 10,000 slabs; beside it what the kernel takes for as many pages in one call. */
static void row_close_slabs(const struct plan* plan, double* out) {
    EpochReceipt r;
    (void)plan;
    start_with_pages();
    out[0] = close_slabs(10000, &r) / 1e6;
    char* pages = mmap(NULL, r.bytes_returned, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) cannot("no memory");
    madvise(pages, r.bytes_returned, MADV_NOHUGEPAGE);
    touch_lines(pages, r.bytes_returned);
    uint64_t start = now_ns();
    madvise(pages, r.bytes_returned, MADV_DONTNEED);
    out[1] = (double)(now_ns() - start) / 1e6;
    out[2] = out[0] - out[1];
    out[3] = (double)r.slabs_returned;
    out[4] = (double)r.bytes_returned / 1048576.0;
}

static void row_close_cost(const struct plan* plan, double* out) {
    EpochReceipt r;
    start_with_pages();
    for (unsigned k = 0, slabs = 10; k < (plan->full ? 5 : 4); k++, slabs *= 10) {
        double best = 0;
        for (int i = 0; i < 3; i++) { /* the best of three: one close is a single event */
            double ns = close_slabs(slabs, &r);
            if (i == 0 || ns < best) best = ns;
        }
        out[k] = best / 1000.0;
    }
}

/* Requests that end in bulk, on one allocator that all threads share and on one allocator each. */
#if BK_BY_POINTER
struct sharing {
    SlabAllocator *one, *each[4];
    uint64_t laps;
    const uint16_t* sizes;
};

static void requests_on(SlabAllocator* a, const uint16_t* sizes, uint64_t laps) {
    for (uint64_t r = 0; r < laps; r++) {
        epoch_domain_t* d = epoch_domain_begin(a, LABEL);
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++) touch_lines(slab_malloc(a, sizes[i]), sizes[i]);
        epoch_domain_end(d);
    }
}

static void sharing_warm(unsigned index, void* arg) {
    struct sharing* s = arg;
    requests_on(s->one ? s->one : s->each[index], s->sizes, s->laps / 10 + 1);
}

static void sharing_body(unsigned index, void* arg) {
    struct sharing* s = arg;
    requests_on(s->one ? s->one : s->each[index], s->sizes, s->laps);
}

static void row_shared_ours(const struct plan* plan, double* out) {
    uint16_t sizes[REQUEST_OBJECTS];
    struct sharing s = {.laps = laps_of(plan, 20000), .sizes = sizes};
    draw_sizes(sizes, REQUEST_OBJECTS);
    bk_start();
    for (int i = 0; i < 4; i++) s.each[i] = bk_new_allocator();
    for (unsigned k = 0; k < 5; k++) {
        unsigned threads = k < 3 ? 1u << k : 1u << (k - 2);
        s.one = k < 3 ? bk_allocator : NULL;
        struct crew crew = {.threads = threads, .warm = sharing_warm, .body = sharing_body, .arg = &s};
        out[k] = threads * (double)s.laps * 1e6 / crew_run(&crew);
    }
}
#endif

/* Two running threads hold objects of a domain while a third ends it. */
struct partner {
    _Alignas(64) _Atomic int step; /* 1: go in, 2: am in, 3: over */
    epoch_domain_t* domain;
    unsigned index;
};

static void* partner_main(void* arg) {
    struct partner* p = arg;
    pin_member(p->index, 2);
    for (;;) {
        int step = atomic_load(&p->step);
        if (step == 3) return NULL;
        if (step == 1) {
            epoch_domain_enter(p->domain);
            touch(slab_malloc(bk_allocator, HOT_SIZE));
            epoch_domain_exit(p->domain);
            atomic_store(&p->step, 2);
        }
        void* q = slab_malloc(bk_allocator, HOT_SIZE); /* keeps running, elsewhere */
        touch(q);
        slab_free(bk_allocator, q);
    }
}

static void row_domain_shared(const struct plan* plan, double* out) {
    static struct histogram h;
    static struct partner partners[2];
    struct timer timer = timer_calibrate();
    pthread_t ids[2];
    bk_start();
    for (unsigned k = 0; k < 2; k++) {
        partners[k].index = k;
        if (pthread_create(&ids[k], NULL, partner_main, &partners[k]) != 0) cannot("no threads");
    }
    for (uint64_t i = 0; i < laps_of(plan, 2000); i++) {
        epoch_domain_t* d = epoch_domain_begin(bk_allocator, LABEL);
        touch(slab_malloc(bk_allocator, HOT_SIZE));
        for (unsigned k = 0; k < 2; k++) {
            partners[k].domain = d;
            atomic_store(&partners[k].step, 1);
        }
        for (unsigned k = 0; k < 2; k++)
            while (atomic_load(&partners[k].step) != 2) sched_yield();
        uint64_t t = ticks();
        epoch_domain_end(d);
        hist_add(&h, timer_net(&timer, t, ticks()));
    }
    for (unsigned k = 0; k < 2; k++) {
        atomic_store(&partners[k].step, 3);
        pthread_join(ids[k], NULL);
    }
    out[0] = timer_ns(&timer, &h, 50) / 1000.0;
    out[1] = timer_ns(&timer, &h, 99) / 1000.0;
}

#endif
