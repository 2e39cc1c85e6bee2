/* run_tslab.c - the rows for temporal-slab, with those that only it can do. */
#include <sys/mman.h>

#include "measure.h"

#include "backend_tslab.h"

#include "phases.h"

static void work_handle_pair(const struct plan* plan, double* out) {
    bk_start();
    uint64_t n = 10000000 / plan->divisor, start = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        SlabHandle h;
        touch(alloc_obj(bk_allocator, HOT_SIZE, &h));
        if (!free_obj(bk_allocator, h)) abort();
    }
    out[0] = (double)(now_ns() - start) / (double)n;
}

/* ---- closing ---------------------------------------------------------------------------- */

/* The ring moves on, and what it leaves, never used, is closed. */
static void work_close_empty(const struct plan* plan, double* out) {
    static struct histogram h;
    struct timer timer = timer_calibrate();
    memset(&h, 0, sizeof h);
    bk_start();
    for (unsigned i = 0; i < 200000 / plan->divisor; i++) {
        EpochId old = epoch_current(bk_allocator);
        epoch_advance(bk_allocator);
        uint64_t t = ticks();
        epoch_close(bk_allocator, old);
        hist_add(&h, timer_net(&timer, t, ticks()));
    }
    out[0] = timer_ns(&timer, &h, 50);
    out[1] = timer_ns(&timer, &h, 99);
}

/* 10,000 slabs, emptied; beside it what the kernel takes for as many pages in one call. */
static void work_close_slabs(const struct plan* plan, double* out) {
    enum { SLABS = 10000, SIZE = 64 }; /* 64 of these fill a page, the least slab */
    (void)plan;
    SlabOptions options = {.struct_size = sizeof options, .slab_bytes = 4096};
    bk_allocator = slab_allocator_create_with(&options);
    if (!bk_allocator) abort();
    SlabClassStats k;
    slab_stats_class(bk_allocator, 0, &k);
    size_t per_slab = k.slab_bytes / SIZE, n = SLABS * per_slab;
    void** list = touched(n * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = slab_malloc(bk_allocator, SIZE);
        touch(list[i]);
    }
    for (size_t i = 0; i < n; i++) slab_free(bk_allocator, list[i]);
    EpochReceipt r;
    uint64_t start = now_ns();
    if (!epoch_close_ex(bk_allocator, 0, EPOCH_DRAIN, &r)) abort();
    out[0] = (double)(now_ns() - start) / 1e6;

    char* pages = mmap(NULL, r.bytes_returned, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) abort();
    madvise(pages, r.bytes_returned, MADV_NOHUGEPAGE);
    touch_lines(pages, r.bytes_returned);
    start = now_ns();
    madvise(pages, r.bytes_returned, MADV_DONTNEED);
    out[1] = (double)(now_ns() - start) / 1e6;
    out[2] = out[0] - out[1];
    out[3] = (double)r.slabs_returned;
    out[4] = (double)r.bytes_returned / 1048576.0;
}

/* ---- domains ---------------------------------------------------------------------------- */

static double domain_cycles(const char* label, unsigned n) {
    uint64_t start = 0;
    for (unsigned i = 0; i < n + n / 10; i++) {
        if (i == n / 10) start = now_ns();
        epoch_domain_t* d =
            label ? epoch_domain_create_labeled(bk_allocator, label) : epoch_domain_create(bk_allocator);
        epoch_domain_enter(d);
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
    }
    return (double)(now_ns() - start) / n;
}

static void work_domain(const struct plan* plan, double* out) {
    bk_start();
    out[0] = domain_cycles(NULL, 1000000 / plan->divisor);
    out[1] = domain_cycles("GET /index", 1000000 / plan->divisor);
}

/* A domain in which two running threads hold objects, ended by one of them. */
struct partner {
    _Atomic int step; /* 1: go in, 2: am in, 3: over */
    epoch_domain_t* domain;
};

static void* partner_main(void* arg) {
    struct partner* p = arg;
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

static void work_domain_shared(const struct plan* plan, double* out) {
    static struct histogram h;
    static struct partner p;
    struct timer timer = timer_calibrate();
    pthread_t id;
    memset(&h, 0, sizeof h);
    bk_start();
    if (pthread_create(&id, NULL, partner_main, &p) != 0) abort();
    for (unsigned i = 0; i < 4000 / plan->divisor; i++) {
        p.domain = epoch_domain_begin(bk_allocator, NULL);
        touch(slab_malloc(bk_allocator, HOT_SIZE));
        atomic_store(&p.step, 1);
        while (atomic_load(&p.step) != 2) sched_yield();
        uint64_t t = ticks();
        epoch_domain_end(p.domain);
        hist_add(&h, timer_net(&timer, t, ticks()));
    }
    atomic_store(&p.step, 3);
    pthread_join(id, NULL);
    out[0] = timer_ns(&timer, &h, 50) / 1000.0;
    out[1] = timer_ns(&timer, &h, 99) / 1000.0;
}

/* ---- memory ----------------------------------------------------------------------------- */

/* As work_rss_pointer, every object made by handle. */
static void work_rss_handle(const struct plan* plan, double* out) {
    enum { OBJECTS = 300000 };
    (void)plan;
    SlabHandle* list = touched(OBJECTS * sizeof *list);
    bk_start();
    bk_free(bk_alloc(HOT_SIZE));
    uint64_t before = resident_bytes();
    epoch_domain_t* d = epoch_domain_create(bk_allocator);
    for (int i = 0; i < OBJECTS; i++)
        touch_lines(alloc_obj_epoch(bk_allocator, HOT_SIZE, d->epoch_id, &list[i]), HOT_SIZE);
    uint64_t high = resident_bytes();
    epoch_domain_destroy(d);
    uint64_t after = resident_bytes();
    out[0] = ((double)high - (double)before) / 1048576.0;
    out[1] = ((double)after - (double)before) / 1048576.0;
}

/* Phases of 5000 x 128 B on the ring, freed singly, closed one behind: do committed bytes grow? */
static void work_drift(const struct plan* plan, double* out) {
    enum { OBJECTS = 5000 };
    void** list = touched(OBJECTS * sizeof *list);
    unsigned cycles = 2000 / plan->divisor;
    bk_start();
    for (unsigned c = 1; c <= cycles; c++) {
        EpochId id = epoch_current(bk_allocator);
        for (int i = 0; i < OBJECTS; i++) {
            list[i] = bk_alloc(HOT_SIZE);
            touch(list[i]);
        }
        epoch_advance(bk_allocator);
        for (int i = 0; i < OBJECTS; i++) bk_free(list[i]);
        epoch_close(bk_allocator, id);
        if (c == cycles / 20) out[0] = (double)bk_held_bytes() / 1024.0;
    }
    out[1] = (double)bk_held_bytes() / 1024.0;
    out[2] = 100.0 * (out[1] - out[0]) / (out[0] > 0 ? out[0] : 1);
}

const struct backend BACKEND = {
    .name = BACKEND_NAME,
    .version = bk_version,
    .work = {[ROW_PAIR] = work_pair,
             [ROW_BATCH] = work_batch,
             [ROW_BATCH_TAIL] = work_batch_tail,
             [ROW_MIXED] = work_mixed,
             [ROW_REQUEST] = work_request,
             [ROW_REQUEST_BULK] = work_request_bulk,
             [ROW_HANDLE_PAIR] = work_handle_pair,
             [ROW_THREADS] = work_threads,
             [ROW_XTHREAD] = work_xthread,
             [ROW_CLOSE_EMPTY] = work_close_empty,
             [ROW_CLOSE_SLABS] = work_close_slabs,
             [ROW_DOMAIN] = work_domain,
             [ROW_DOMAIN_SHARED] = work_domain_shared,
             [ROW_RSS_POINTER] = work_rss_pointer,
             [ROW_RSS_HANDLE] = work_rss_handle,
             [ROW_DRIFT] = work_drift,
             [ROW_OPEN_PHASES] = work_open_phases},
};
