/*
 * budgets.c - who is told of a budget, when, how often, and what a refusal leaves behind.
 */
#include "kit/fixture.h"

typedef struct Told {
    unsigned soft, hard;
    uint64_t bytes;
    void* victim; /* freed when told of a hard limit */
} Told;

static void told(SlabAllocator* a, EpochId epoch, uint64_t bytes, bool hard, void* ctx) {
    Told* t = ctx;
    (void)epoch;
    if (hard) t->hard++;
    else t->soft++;
    t->bytes = bytes;
    if (hard && t->victim != NULL) CHECK(slab_free_checked(a, t->victim));
    if (hard) t->victim = NULL;
}

static SlabLabelStats label_row(SlabAllocator* a, const char* label) {
    static SlabLabelStats rows[64];
    static const SlabLabelStats none;
    size_t n = slab_stats_labels(a, rows, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        if (strcmp(rows[i].label, label) == 0) return rows[i];
    return none;
}

/* One slab passes the limit of the phase and that of its label. */
static void both_are_told_of_one_slab(void) {
    SlabAllocator* a = kit_create();
    Told phase = {0, 0, 0, NULL}, label = {0, 0, 0, NULL};
    slab_epoch_set_label(a, 1, "two");
    CHECK(slab_label_set_budget(a, "two", 1000, 0, told, &label));
    CHECK(slab_epoch_set_budget(a, 1, 2000, 0, told, &phase));
    CHECK(slab_malloc_epoch(a, 300000, 1) != NULL);
    CHECK_EQ(phase.soft, 1);
    CHECK_EQ(label.soft, 1);
    CHECK_EQ(label_row(a, "two").budget_warnings, 1);
    slab_allocator_free(a);
}

/* The phase's function makes room, then the label's limit is in the way: it is told, too. */
static void each_is_told_before_the_end(void) {
    SlabAllocator* a = kit_create();
    Told phase = {0, 0, 0, NULL}, label = {0, 0, 0, NULL};
    slab_epoch_set_label(a, 2, "two"); /* another phase of the label holds some of its bytes */
    CHECK(slab_label_set_budget(a, "two", 0, 1 << 20, told, &label));
    slab_epoch_set_label(a, 1, "two");
    CHECK(slab_malloc_epoch(a, 400 << 10, 2) != NULL);
    phase.victim = slab_malloc_epoch(a, 512 << 10, 1);
    CHECK(slab_epoch_set_budget(a, 1, 0, 700 << 10, told, &phase));
    CHECK(phase.victim != NULL);
    CHECK_NULL(slab_malloc_epoch(a, 650 << 10, 1));
    CHECK_EQ(errno, EDQUOT);
    CHECK_EQ(phase.hard, 1);
    CHECK_EQ(label.hard, 1);
    CHECK_EQ(label.bytes, 400 << 10); /* what is committed when it is told */
    slab_allocator_free(a);
}

static void a_refusal_is_counted_once(void) {
    SlabAllocator* a = kit_create();
    Told t = {0, 0, 0, NULL};
    CHECK(slab_label_set_budget(a, "one", 0, 1 << 20, told, &t));
    slab_epoch_set_label(a, 1, "one");
    t.victim = slab_malloc_epoch(a, 600 << 10, 1);
    CHECK(slab_malloc_epoch(a, 600 << 10, 1) != NULL); /* room was made: not refused */
    CHECK_EQ(t.hard, 1);
    CHECK_EQ(label_row(a, "one").budget_refusals, 0);
    CHECK_NULL(slab_malloc_epoch(a, 600 << 10, 1));
    CHECK_EQ(t.hard, 2);
    CHECK_EQ(label_row(a, "one").budget_refusals, 1);
    CHECK_EQ(kit_refusals(a).over_budget, 1);
    slab_allocator_free(a);
}

/* What is told of is what is in the way of the smallest piece of memory that would have done: the label has nothing
 * left for a page. That the phase has not enough for a slab of the class does not matter. */
static void least_told(bool shared) {
    SlabOptions o = kit_options();
    o.shared = shared;
    SlabAllocator* a = kit_create_with(&o);
    Told phase = {0, 0, 0, NULL}, label = {0, 0, 0, NULL};
    epoch_domain_t *full = epoch_domain_create_labeled(a, "tight"), *d = epoch_domain_create_labeled(a, "tight");
    while (label_row(a, "tight").committed_bytes < 64 << 10) CHECK(epoch_domain_malloc(full, 1000) != NULL);
    CHECK(slab_label_set_budget(a, "tight", 0, 64 << 10, told, &label));
    CHECK(slab_epoch_set_budget(a, d->epoch_id, 0, 4 << 10, told, &phase));
    CHECK_NULL(epoch_domain_malloc(d, 1500));
    CHECK_EQ(errno, EDQUOT);
    CHECK_EQ(phase.hard, 0);
    CHECK_EQ(label.hard, 1);
    CHECK_EQ(label_row(a, "tight").budget_refusals, 1);
    epoch_domain_destroy(d);
    epoch_domain_destroy(full);
    slab_allocator_free(a);
}

static void the_least_that_would_do_is_told_of(void) {
    least_told(false);
    least_told(true);
}

/* An allocation that found no memory was never there: no peak, no warning. */
static void what_was_refused_is_in_no_peak(void) {
    SlabOptions o = kit_options();
    o.max_bytes = 1 << 20;
    SlabAllocator* a = kit_create_with(&o);
    Told t = {0, 0, 0, NULL};
    SlabPhaseStats p[4];
    slab_epoch_set_label(a, 1, "greedy");
    CHECK(slab_epoch_set_budget(a, 1, 2 << 20, 0, told, &t));
    CHECK_NULL(slab_malloc_epoch(a, 64 << 20, 1));
    CHECK_EQ(errno, EDQUOT);
    CHECK_EQ(label_row(a, "greedy").peak_bytes, 0);
    CHECK_EQ(slab_stats_phases(a, p, 4), 0);
    CHECK_EQ(t.soft, 0);
    CHECK(slab_malloc_epoch(a, 100, 1) != NULL);
    CHECK_EQ(slab_stats_phases(a, p, 4), 1);
    CHECK_LE(p[0].peak_bytes, 1 << 20);
    slab_allocator_free(a);
}

/* The object that would pass a soft limit finds no address space: that is no budget's doing. */
static void a_soft_limit_refuses_nothing(void) {
    SlabOptions o = kit_options();
    Told t = {0, 0, 0, NULL};
    o.reserve_bytes = 16 << 20;
    SlabAllocator* a = kit_create_with(&o);
    CHECK(slab_epoch_set_budget(a, 1, 16 << 20, 0, told, &t));
    for (int i = 0; i < 16; i++) CHECK(slab_malloc_epoch(a, 1 << 20, 1) != NULL);
    CHECK_NULL(slab_malloc_epoch(a, 1 << 20, 1));
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(t.soft, 0);
    CHECK_EQ(kit_refusals(a).over_budget, 0);
    CHECK_EQ(kit_refusals(a).out_of_memory, 1);
    slab_allocator_free(a);
}

/* What just fits is allowed: in a phase, in a label, in the allocator. */
static void what_just_fits_is_allowed(void) {
    for (int whose = 0; whose < 3; whose++) {
        SlabOptions o = kit_options();
        if (whose == 2) o.max_bytes = 1 << 20;
        SlabAllocator* a = kit_create_with(&o);
        slab_epoch_set_label(a, 1, "fits");
        if (whose == 0) CHECK(slab_epoch_set_budget(a, 1, 0, 1 << 20, NULL, NULL));
        if (whose == 1) CHECK(slab_label_set_budget(a, "fits", 0, 1 << 20, NULL, NULL));
        CHECK(slab_malloc_epoch(a, 512 << 10, 1) != NULL);
        CHECK(slab_malloc_epoch(a, 512 << 10, 1) != NULL);
        CHECK_NULL(slab_malloc_epoch(a, 300000, 1));
        CHECK_EQ(errno, EDQUOT);
        slab_allocator_free(a);
    }
}

/* A soft limit is told of by what passes it: not by what reaches it, nor by what comes after. */
static void a_soft_limit_is_passed_once(void) {
    for (int whose = 0; whose < 2; whose++) {
        SlabAllocator* a = kit_create();
        Told t = {0, 0, 0, NULL};
        void* p[4];
        slab_epoch_set_label(a, 1, "soft");
        if (whose == 0) CHECK(slab_epoch_set_budget(a, 1, 512 << 10, 0, told, &t));
        else CHECK(slab_label_set_budget(a, "soft", 512 << 10, 0, told, &t));
        for (unsigned n = 0; n < 4; n++) {
            CHECK((p[n] = slab_malloc_epoch(a, 512 << 10, 1)) != NULL);
            CHECK_EQ(t.soft, n != 0);
        }
        CHECK_EQ(t.bytes, 1 << 20);
        for (unsigned n = 0; n < 4; n++) CHECK(slab_free_checked(a, p[n]));
        for (unsigned n = 0; n < 2; n++) CHECK(slab_malloc_epoch(a, 512 << 10, 1) != NULL);
        CHECK_EQ(t.soft, 2); /* once more, from below */
        slab_allocator_free(a);
    }
}

/* What a label's limit refuses is not the phase's either. */
static void what_a_label_refuses_is_charged_to_nobody(void) {
    SlabAllocator* a = kit_create();
    slab_epoch_set_label(a, 1, "one");
    CHECK(slab_label_set_budget(a, "one", 0, 1 << 20, NULL, NULL));
    void* p = slab_malloc_epoch(a, 800 << 10, 1);
    CHECK_NULL(slab_malloc_epoch(a, 600 << 10, 1));
    CHECK(slab_free_checked(a, p));
    CHECK(slab_epoch_set_budget(a, 1, 0, 700 << 10, NULL, NULL));
    CHECK(slab_malloc_epoch(a, 650 << 10, 1) != NULL);
    slab_allocator_free(a);
}

/* Slabs that are empty are in nobody's way, whatever epoch keeps them. */
static void empty_slabs_make_room(void) {
    enum { N = 3000 };
    static void* p[N];
    SlabOptions o = kit_options();
    o.max_bytes = 1 << 20;
    SlabAllocator* a = kit_create_with(&o);
    for (unsigned turn = 0; turn < 3; turn++) { /* each look for room is a new one */
        for (unsigned n = 0; n < N; n++) CHECK((p[n] = slab_malloc_epoch(a, 256, 1)) != NULL);
        CHECK_NULL(slab_malloc_epoch(a, 800 << 10, 2));
        for (unsigned n = 0; n < N; n++) CHECK(slab_free_checked(a, p[n]));
        void* large = slab_malloc_epoch(a, 800 << 10, 2);
        CHECK(large != NULL);
        slab_free(a, large);
    }
    CHECK_EQ(kit_refusals(a).over_budget, 3);
    slab_allocator_free(a);
}

typedef struct Crowd {
    SlabAllocator* a;
    size_t size;
    _Atomic uint64_t over, other;
} Crowd;

/* Fills up, and gives back half of what it has when it is refused: the others are refused beside that. */
static void* crowd_main(void* arg) {
    enum { HELD = 256 };
    Crowd* c = arg;
    void* held[HELD];
    size_t n = 0;
    for (size_t round = check_count(20000); round != 0; round--) {
        errno = 0;
        if (n < HELD && (held[n] = slab_malloc(c->a, c->size)) != NULL) {
            n++;
            continue;
        }
        if (n < HELD) atomic_fetch_add(errno == EDQUOT ? &c->over : &c->other, 1);
        for (size_t keep = n / 2; n > keep;) slab_free(c->a, held[--n]);
    }
    while (n != 0) slab_free(c->a, held[--n]);
    return NULL;
}

/* There is memory and address space enough: each refusal is one by max_bytes, also where another thread has made room
 * before the refused one looks. */
static void whoever_is_refused_by_max_bytes_is_told_so(void) {
    static const size_t sizes[] = {16 << 10, 200 << 10, 300 << 10};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        SlabOptions o = kit_options();
        o.max_bytes = 1 << 20;
        o.warm_bytes = UINT64_MAX;
        Crowd c = {.a = kit_create_with(&o), .size = sizes[n]};
        pthread_t threads[4];
        for (unsigned t = 0; t < 4; t++) threads[t] = kit_thread(crowd_main, &c);
        for (unsigned t = 0; t < 4; t++) pthread_join(threads[t], NULL);
        CHECK_GT(c.over, 0);
        CHECK_EQ(c.other, 0);
        NOTE("%zu bytes each: %" PRIu64 " refused with EDQUOT, %" PRIu64 " with another error", c.size,
             (uint64_t)c.over, (uint64_t)c.other);
        CHECK_EQ(kit_refusals(c.a).over_budget, c.over);
        CHECK_EQ(kit_refusals(c.a).out_of_memory, 0);
        slab_allocator_free(c.a);
    }
}

/* ---- grants: a label with a budget, and phases on many threads ---- */

enum { HARD = 1 << 20, GRANTED = 8 };

typedef struct Idle {
    SlabAllocator* a;
    pthread_barrier_t here, go;
} Idle;

static void small_phase(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, "granted");
    CHECK(d != NULL && epoch_domain_malloc(d, 100) != NULL);
    CHECK(epoch_domain_end(d));
}

/* Is granted a part of the budget, and stays without using it. */
static void* idle_main(void* arg) {
    Idle* i = arg;
    for (unsigned n = 0; n < 10; n++) small_phase(i->a);
    pthread_barrier_wait(&i->here);
    pthread_barrier_wait(&i->go);
    return NULL;
}

/* Fills the label up; what it has then. */
static uint64_t fill_label(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, "granted");
    size_t n = 0;
    for (; epoch_domain_malloc(d, 1000) != NULL; n++) CHECK(n < HARD / 1000);
    CHECK_EQ(errno, EDQUOT);
    uint64_t bytes = label_row(a, "granted").committed_bytes;
    CHECK_LE(bytes, HARD);
    CHECK(epoch_domain_end(d));
    return bytes;
}

static void what_others_do_not_use_makes_room(void) {
    Idle i = {.a = kit_create()};
    pthread_t threads[GRANTED];
    CHECK(slab_label_set_budget(i.a, "granted", 0, HARD, NULL, NULL));
    pthread_barrier_init(&i.here, NULL, GRANTED + 1);
    pthread_barrier_init(&i.go, NULL, GRANTED + 1);
    for (unsigned t = 0; t < GRANTED; t++) threads[t] = kit_thread(idle_main, &i);
    pthread_barrier_wait(&i.here);
    CHECK_GT(fill_label(i.a), HARD - (8 << 10)); /* all but less than two pages */
    pthread_barrier_wait(&i.go);
    for (unsigned t = 0; t < GRANTED; t++) pthread_join(threads[t], NULL);
    CHECK_GT(fill_label(i.a), HARD - (8 << 10)); /* and nothing went with the threads */
    CHECK_EQ(label_row(i.a, "granted").committed_bytes, 0);
    pthread_barrier_destroy(&i.here);
    pthread_barrier_destroy(&i.go);
    slab_allocator_free(i.a);
}

/* One live object of each size, replaced in turn: regions that are used again serve all of them, where each size class would
 * need a slab of its own. */
static void used_over_and_over_stays_within(void) {
    enum { SIZES = 24, TURNS = 20000, PHASE_HARD = 80 << 10, LABEL_HARD = 64 << 10, LEFT = 96 << 10 };
    static const size_t sizes[SIZES] = {16,   32,   48,   64,   96,   128,  192,  256,  384, 512, 768, 1024,
                                        1280, 1536, 1792, 2048, 2560, 3072, 3584, 4096, 80,  112, 160, 224};
    for (int by = 0; by < 3; by++) {
        SlabOptions o = kit_options();
        if (by == 2) o.max_bytes = 1 << 20;
        SlabAllocator* a = kit_create_with(&o);
        void *live[SIZES] = {NULL}, *rest[64] = {NULL};
        unsigned n = 0;
        if (by == 1) CHECK(slab_label_set_budget(a, "busy", 0, LABEL_HARD, NULL, NULL));
        epoch_domain_t* d = epoch_domain_create_labeled(a, "busy");
        if (by == 0) CHECK(slab_epoch_set_budget(a, d->epoch_id, 0, PHASE_HARD, NULL, NULL));
        if (by == 2) /* all but so much */
            while (n < 64 && kit_global(a).committed_bytes + LEFT < o.max_bytes)
                CHECK((rest[n++] = slab_malloc(a, 30000)) != NULL);
        for (int i = 0; i < TURNS; i++) {
            slab_free(a, live[i % SIZES]);
            if (!CHECK((live[i % SIZES] = epoch_domain_malloc(d, sizes[i % SIZES])) != NULL)) break;
        }
        epoch_domain_destroy(d);
        slab_allocator_free(a);
    }
}

/* A thread keeps records of some labels only: what it was granted for one that it leaves goes back. */
static void a_label_that_is_left_keeps_its_budget(void) {
    SlabAllocator* a = kit_create();
    CHECK(slab_label_set_budget(a, "granted", 0, HARD, NULL, NULL));
    for (unsigned n = 0; n < 40; n++) {
        char label[32];
        snprintf(label, sizeof label, "other %u", n);
        CHECK(slab_label_set_budget(a, label, 0, 4 * HARD, NULL, NULL));
        for (unsigned k = 0; k < 10; k++) small_phase(a);
        for (unsigned k = 0; k < 10; k++) {
            epoch_domain_t* d = epoch_domain_begin(a, label);
            CHECK(d != NULL && epoch_domain_malloc(d, 100) != NULL);
            CHECK(epoch_domain_end(d));
        }
    }
    CHECK_GT(fill_label(a), HARD - (8 << 10));
    slab_allocator_free(a);
}

static void count_soft(SlabAllocator* a, EpochId epoch, uint64_t bytes, bool hard, void* ctx) {
    (void)a, (void)epoch, (void)bytes, (void)hard;
    atomic_fetch_add((_Atomic unsigned*)ctx, 1);
}

/* Holds phases open from one barrier to the next. */
static void* opener_main(void* arg) {
    Idle* i = arg;
    epoch_domain_t* open[15];
    for (unsigned n = 0; n < 10; n++) small_phase(i->a);
    pthread_barrier_wait(&i->here);
    pthread_barrier_wait(&i->go); /* the budget is another now */
    for (unsigned n = 0; n < 15; n++) {
        open[n] = epoch_domain_create_labeled(i->a, "granted");
        CHECK(open[n] != NULL);
        if (epoch_domain_malloc(open[n], 3000) == NULL) CHECK_EQ(errno, EDQUOT);
    }
    pthread_barrier_wait(&i->here);
    pthread_barrier_wait(&i->go);
    for (unsigned n = 0; n < 15; n++) epoch_domain_destroy(open[n]);
    return NULL;
}

/* What was granted by the old limits is not used under the new ones. */
static void a_smaller_budget_holds_at_once(void) {
    enum { LESS = 128 << 10 };
    for (unsigned soft = 0; soft < 2; soft++) {
        _Atomic unsigned told_soft = 0;
        Idle i = {.a = kit_create()};
        pthread_t threads[GRANTED];
        CHECK(slab_label_set_budget(i.a, "granted", soft ? 4 << 20 : 0, soft ? 0 : 4 << 20, NULL, NULL));
        pthread_barrier_init(&i.here, NULL, GRANTED + 1);
        pthread_barrier_init(&i.go, NULL, GRANTED + 1);
        for (unsigned t = 0; t < GRANTED; t++) threads[t] = kit_thread(opener_main, &i);
        pthread_barrier_wait(&i.here);
        CHECK(slab_label_set_budget(i.a, "granted", soft ? LESS : 0, soft ? 0 : LESS, count_soft, (void*)&told_soft));
        pthread_barrier_wait(&i.go);
        pthread_barrier_wait(&i.here);
        uint64_t bytes = label_row(i.a, "granted").committed_bytes;
        if (soft) CHECK_EQ(told_soft, 1);
        if (soft) CHECK_GT(bytes, LESS);
        else CHECK_LE(bytes, LESS);
        pthread_barrier_wait(&i.go);
        for (unsigned t = 0; t < GRANTED; t++) pthread_join(threads[t], NULL);
        pthread_barrier_destroy(&i.here);
        pthread_barrier_destroy(&i.go);
        slab_allocator_free(i.a);
    }
}

/* A soft limit is passed when what phases have passes it, however much is granted. */
static void a_grant_passes_no_soft_limit(void) {
    _Atomic unsigned soft = 0;
    Idle i = {.a = kit_create()};
    pthread_t threads[GRANTED];
    CHECK(slab_label_set_budget(i.a, "granted", 600 << 10, 0, count_soft, (void*)&soft));
    pthread_barrier_init(&i.here, NULL, GRANTED + 1);
    pthread_barrier_init(&i.go, NULL, GRANTED + 1);
    for (unsigned t = 0; t < GRANTED; t++) threads[t] = kit_thread(idle_main, &i);
    pthread_barrier_wait(&i.here);
    epoch_domain_t* d = epoch_domain_begin(i.a, "granted");
    while (label_row(i.a, "granted").committed_bytes <= 500 << 10) {
        CHECK_EQ(soft, 0);
        CHECK(epoch_domain_malloc(d, 1000) != NULL);
    }
    while (label_row(i.a, "granted").committed_bytes <= 600 << 10) CHECK(epoch_domain_malloc(d, 1000) != NULL);
    CHECK_EQ(soft, 1);
    CHECK(epoch_domain_end(d));
    pthread_barrier_wait(&i.go);
    for (unsigned t = 0; t < GRANTED; t++) pthread_join(threads[t], NULL);
    pthread_barrier_destroy(&i.here);
    pthread_barrier_destroy(&i.go);
    slab_allocator_free(i.a);
}

/* Phases of all sizes, on all threads, below and at the limit. */
static void* phases_main(void* arg) {
    SlabAllocator* a = arg;
    for (size_t round = check_count(3000); round != 0; round--) {
        epoch_domain_t* d = epoch_domain_begin(a, "granted");
        size_t n = round % 16 == 0 ? 400 : round % 7 + 1;
        for (errno = 0; n != 0 && epoch_domain_malloc(d, 500) != NULL;) n--;
        CHECK(n == 0 || errno == EDQUOT);
        CHECK(epoch_domain_end(d));
    }
    return NULL;
}

/* A phase that joins a label brings it near its limit; what the thread was granted before does not hide that it is
 * passed then. */
static void relabelled_phases_pass_no_soft_limit(void) {
    enum { SOFT = 400 << 10, MOVED = 350 << 10 };
    SlabAllocator* a = kit_create();
    Told t = {0, 0, 0, NULL};
    slab_epoch_set_label(a, 1, "joined");
    CHECK(slab_label_set_budget(a, "joined", SOFT, 0, told, &t));
    CHECK(slab_malloc_epoch(a, 100, 1) != NULL); /* far from the limit: granted 64 KiB */
    CHECK(slab_malloc_epoch(a, MOVED, 2) != NULL);
    slab_epoch_set_label(a, 2, "joined");
    CHECK_EQ(t.soft, 0);
    CHECK_LE(label_row(a, "joined").committed_bytes, SOFT);
    while (label_row(a, "joined").committed_bytes <= SOFT) CHECK(slab_malloc_epoch(a, 100, 1) != NULL);
    CHECK_EQ(t.soft, 1);
    slab_allocator_free(a);
}

static void a_hard_limit_holds_for_all_threads(void) {
    SlabAllocator* a = kit_create();
    pthread_t threads[6];
    CHECK(slab_label_set_budget(a, "granted", 400 << 10, 500 << 10, NULL, NULL));
    for (unsigned t = 0; t < 6; t++) threads[t] = kit_thread(phases_main, a);
    for (unsigned t = 0; t < 6; t++) pthread_join(threads[t], NULL);
    CHECK_LE(label_row(a, "granted").peak_bytes, 500 << 10);
    CHECK_EQ(label_row(a, "granted").committed_bytes, 0);
    slab_allocator_free(a);
}

/* What a function that is told of a budget may do to the phase that the allocation is for. */
typedef enum Deed { RESET, END, RELEASE, DRAIN, CLOSE_DOMAIN, ALLOCATE, RELABEL, LIFT, MISUSE, DEEDS } Deed;
typedef struct Doer {
    Deed deed;
    unsigned soft, hard, depth, misuses;
    void* object; /* that it has allocated */
} Doer;

static void do_it(SlabAllocator* a, EpochId epoch, uint64_t bytes, bool hard, void* ctx) {
    Doer* doer = ctx;
    epoch_domain_t* d = epoch_domain_current();
    (void)bytes;
    if (hard) doer->hard++;
    else doer->soft++;
    CHECK_EQ(doer->depth++, 0);
    if (doer->deed == RESET) CHECK(epoch_domain_reset(d));
    if (doer->deed == END) CHECK(epoch_domain_end(d));
    if (doer->deed == RELEASE) CHECK(epoch_close_ex(a, epoch, EPOCH_RELEASE, NULL));
    if (doer->deed == DRAIN) CHECK(epoch_close_ex(a, epoch, EPOCH_DRAIN, NULL));
    if (doer->deed == CLOSE_DOMAIN) CHECK(epoch_domain_exit(d) && epoch_domain_enter(d));
    if (doer->deed == ALLOCATE) doer->object = slab_malloc(a, 300000);
    if (doer->deed == RELABEL) slab_epoch_set_label(a, epoch, "other name");
    if (doer->deed == LIFT) CHECK(slab_label_set_budget(a, "lim", 0, 0, NULL, NULL));
    if (doer->deed == MISUSE) CHECK(!epoch_domain_attach(d));
    doer->depth--;
}

static uint64_t phases_in(const uint64_t* histogram) {
    uint64_t sum = 0;
    for (int n = 0; n < SLAB_HISTOGRAM_BUCKETS; n++) sum += histogram[n];
    return sum;
}

/* A label at its limit, and phases that never hold anything: they are in no histogram, whatever was done meanwhile. */
static void refused_phases(bool shared, Deed deed) {
    SlabOptions o = kit_options();
    o.shared = shared;
    SlabAllocator* a = kit_create_with(&o);
    Doer doer = {.deed = deed};
    CHECK(slab_label_set_budget(a, "lim", 0, 65536, NULL, NULL));
    epoch_domain_t* full = epoch_domain_begin(a, "lim");
    while (slab_malloc(a, 4096) != NULL) {}
    CHECK(epoch_domain_detach(full));
    CHECK(slab_label_set_budget(a, "lim", 0, 65536, do_it, &doer));
    for (int n = 0; n < 20; n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "lim");
        void* p = slab_malloc(a, 100);
        bool may = deed == END || deed == RELABEL || deed == LIFT; /* it goes elsewhere, or there is room now */
        CHECK_EQ(p != NULL, may);
        CHECK(p == NULL || slab_usable_size(a, p) >= 100);
        CHECK_EQ(p == NULL ? errno : 0, may ? 0 : deed == RELEASE || deed == DRAIN ? ESTALE : EDQUOT);
        if (deed != END) CHECK(epoch_domain_end(d));
        CHECK_NULL(epoch_domain_current());
        CHECK(slab_label_set_budget(a, "lim", 0, 65536, do_it, &doer)); /* that it may have lifted */
        CHECK_EQ(doer.hard, n + 1);
    }
    SlabLabelStats row = label_row(a, "lim");
    uint64_t held = deed == LIFT ? 20 : 0;
    CHECK_EQ(phases_in(row.duration_ns), held);
    CHECK_EQ(phases_in(row.peak_bytes_hist), held);
    CHECK_EQ(doer.depth, 0);
    slab_allocator_free(a);
}

/* Passing a soft limit: the object that comes of it is one that lives, in the phase where the thread is now. */
static void passed_softly(bool shared, Deed deed, size_t size) {
    SlabOptions o = kit_options();
    o.shared = shared;
    SlabAllocator* a = kit_create_with(&o);
    Doer doer = {.deed = deed};
    epoch_domain_t* d = epoch_domain_begin(a, "lim");
    CHECK(slab_malloc(a, 100) != NULL); /* so that the next one finds a heap at hand */
    CHECK(slab_label_set_budget(a, "lim", 20000, 0, do_it, &doer));
    for (int n = 0; n < 2000 && doer.soft == 0; n++) {
        SlabHandle h = 0;
        char* p = n % 2 == 0 ? slab_malloc(a, size) : alloc_obj(a, (uint32_t)size, &h);
        if (deed == RELEASE && doer.soft != 0) { /* the domain has nothing else to give */
            CHECK_NULL(p);
            CHECK_EQ(errno, ESTALE);
            break;
        }
        if (!CHECK(p != NULL)) break;
        memset(p, 1, size);
        CHECK_GE(slab_usable_size(a, p), size);
        if (deed == RESET || deed == CLOSE_DOMAIN) CHECK_EQ(kit_era_of(a, p), d->epoch_era);
        if (n % 2 != 0) CHECK_EQ(slab_handle_ptr(a, h), p);
    }
    CHECK_GE(doer.soft, 1);
    CHECK_LE(doer.soft, 2);
    CHECK_EQ(doer.depth, 0);
    if (deed != END) CHECK(epoch_domain_end(d));
    slab_allocator_free(a);
}

static void functions_that_end_the_phase(void) {
    for (int shared = 0; shared < 2; shared++) {
        for (Deed deed = 0; deed < DEEDS; deed++) {
            refused_phases(shared, deed);
            passed_softly(shared, deed, 100);
            passed_softly(shared, deed, 3000);
            passed_softly(shared, deed, 300000);
        }
    }
}

static void misuse_in_misuse(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx) {
    (void)where;
    CHECK_EQ(what, SLAB_MISUSE_FOREIGN_POINTER);
    ++*(unsigned*)ctx;
    CHECK(!slab_free_checked(a, kit_hide(ctx)));
}

static void misuse_by_the_function_that_is_told_of_it(void) {
    unsigned told_of = 0;
    SlabOptions o = kit_options();
    o.misuse_fn = misuse_in_misuse;
    o.misuse_ctx = &told_of;
    SlabAllocator* a = kit_create_with(&o);
    for (unsigned n = 1; n <= 3; n++) {
        CHECK(!slab_free_checked(a, kit_hide(&o)));
        CHECK_EQ(told_of, n);
        CHECK_EQ(kit_refusals(a).foreign_pointer, 2 * n); /* counted, and not told of */
    }
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(functions_that_end_the_phase),
    CHECK_CASE(misuse_by_the_function_that_is_told_of_it),
    CHECK_CASE(what_others_do_not_use_makes_room),
    CHECK_CASE(a_label_that_is_left_keeps_its_budget),
    CHECK_CASE(used_over_and_over_stays_within),
    CHECK_CASE(a_grant_passes_no_soft_limit),
    CHECK_CASE(a_smaller_budget_holds_at_once),
    CHECK_CASE(relabelled_phases_pass_no_soft_limit),
    CHECK_CASE(a_hard_limit_holds_for_all_threads),
    CHECK_CASE(both_are_told_of_one_slab),
    CHECK_CASE(each_is_told_before_the_end),
    CHECK_CASE(a_refusal_is_counted_once),
    CHECK_CASE(what_was_refused_is_in_no_peak),
    CHECK_CASE(a_soft_limit_refuses_nothing),
    CHECK_CASE(whoever_is_refused_by_max_bytes_is_told_so),
    CHECK_CASE(what_just_fits_is_allowed),
    CHECK_CASE(the_least_that_would_do_is_told_of),
    CHECK_CASE(empty_slabs_make_room),
    CHECK_CASE(a_soft_limit_is_passed_once),
    CHECK_CASE(what_a_label_refuses_is_charged_to_nobody),
};
CHECK_MAIN(cases)
