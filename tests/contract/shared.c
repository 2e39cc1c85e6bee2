/*
 * shared.c - the option `shared`: threads allocate by turns from slabs that are no thread's. What is the same as without it is
 * held by running the other programs again with TSLAB_OPTIONS=shared=1; here is what is different, and what races only here.
 */
#include "kit/fixture.h"

enum { THREADS = 16, SIZE = 128, EACH = 4, HERE = 3 };

static SlabAllocator* create_as(bool shared, uint8_t bump) {
    SlabOptions o = kit_options();
    o.bump = bump;
    o.shared = shared;
    o.warm_bytes = UINT64_MAX;
    return kit_create_with(&o);
}
static SlabAllocator* create(bool shared) { return create_as(shared, 0); }

static SlabPhaseStats phase_of(SlabAllocator* a, EpochId id) {
    static SlabPhaseStats rows[64];
    SlabPhaseStats none;
    size_t n = slab_stats_phases(a, rows, 64);
    memset(&none, 0, sizeof none);
    for (size_t i = 0; i < n && i < 64; i++)
        if (rows[i].epoch_era == epoch_era(a, id)) return rows[i];
    return none;
}

/* ---- memory ---- */

static pthread_barrier_t all_there;

static void* few_objects(void* a) {
    static const size_t sizes[] = {32, 100, 500, 1000, 3000};
    for (unsigned n = 0; n < EACH * 5; n++) CHECK(slab_malloc_epoch(a, sizes[n % 5], HERE) != NULL);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    return NULL;
}

static SlabPhaseStats with_many_threads(bool shared, uint8_t bump) {
    SlabAllocator* a = create_as(shared, bump);
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) t[i] = kit_thread(few_objects, a);
    pthread_barrier_wait(&all_there);
    SlabPhaseStats row = phase_of(a, HERE);
    CHECK_EQ(row.committed_bytes, kit_committed(a));
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    EpochReceipt r;
    CHECK(epoch_close_ex(a, HERE, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    CHECK_EQ(r.objects_released, THREADS * EACH * 5);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
    return row;
}

static void many_threads_need_few_slabs(void) {
    REQUIRE(pthread_barrier_init(&all_there, NULL, THREADS + 1) == 0);
    SlabPhaseStats owned = with_many_threads(false, 3), shared = with_many_threads(true, 3);
    SlabPhaseStats first = with_many_threads(false, 0), both = with_many_threads(true, 0);
    NOTE("%d threads of %d objects: %" PRIu64 " slabs, %" PRIu64 " KiB; shared %" PRIu64 " slabs, %" PRIu64 " KiB",
         THREADS, EACH * 5, owned.slabs, owned.committed_bytes >> 10, shared.slabs, shared.committed_bytes >> 10);
    CHECK_EQ(owned.slabs, THREADS * 5);
    CHECK_EQ(first.slabs, THREADS * (5 + 3)); /* three regions of a thread's own, which have not been enough */
    CHECK_EQ(both.slabs, shared.slabs);
    CHECK_LE(shared.slabs * 2, owned.slabs);
    CHECK_LE(shared.committed_bytes * 2, owned.committed_bytes);
    CHECK_EQ(owned.threads, THREADS);
    CHECK_EQ(shared.threads, 0);
    pthread_barrier_destroy(&all_there);
}

/* ---- ends beside allocations ---- */

typedef struct Actor {
    SlabAllocator* a;
    EpochId id;
    uint64_t rng;
    uint64_t allocated, freed; /* while the epoch accepted them */
    _Atomic int* going;
    void* kept[64];
} Actor;

/* Allocates until it is refused, and frees some; what it frees last is before its last allocation. */
static void* act(void* arg) {
    Actor* x = arg;
    atomic_fetch_add(x->going, 1);
    for (;;) {
        uint64_t r = kit_rand(&x->rng);
        void** at = &x->kept[r % 64];
        void* p = slab_malloc_epoch(x->a, r % 200 == 0 ? 300000 : 1 + r / 64 % 900, x->id);
        if (p == NULL) return NULL;
        x->allocated++;
        memset(p, (int)r, 1);
        if (*at != NULL && slab_free_checked(x->a, *at)) x->freed++;
        *at = p;
    }
}

static void* keep_trimming(void* arg) {
    Actor* x = arg;
    while (atomic_load(x->going) != 0) slab_trim(x->a);
    return NULL;
}

static void close_beside(EpochCloseMode mode, bool trims) {
    enum { ACTORS = 4 };
    static Actor x[ACTORS], trimmer;
    if (mode == EPOCH_RELEASE) CHECK_NEEDS_OVERCOMMIT(); /* objects are written that may have ended */
    SlabAllocator* a = create(true);
    size_t told = 0, rounds = check_count(40), round = 0;
    /* A busy machine has threads stand in their banks for long: so many rounds more that half of `rounds` are exact. */
    for (; (round < rounds || told <= rounds / 2) && round < 50 * rounds; round++) {
        _Atomic int going = 0, trimming = trims;
        epoch_domain_t* d = epoch_domain_create(a);
        REQUIRE(d != NULL);
        pthread_t t[ACTORS], with;
        for (unsigned i = 0; i < ACTORS; i++) {
            memset(&x[i], 0, sizeof x[i]);
            x[i].a = a;
            x[i].id = d->epoch_id;
            x[i].rng = 1000 * round + i + 1;
            x[i].going = &going;
            t[i] = kit_thread(act, &x[i]);
        }
        kit_await(&going, ACTORS);
        trimmer.a = a;
        trimmer.going = &trimming;
        if (trims) with = kit_thread(keep_trimming, &trimmer);
        kit_sleep_us((unsigned)(round * 37 % 1500));
        EpochReceipt r;
        CHECK(epoch_close_ex(a, d->epoch_id, mode, &r));
        uint64_t allocated = 0, freed = 0;
        for (unsigned i = 0; i < ACTORS; i++) {
            pthread_join(t[i], NULL);
            allocated += x[i].allocated;
            freed += x[i].freed;
        }
        atomic_store(&trimming, 0);
        if (trims) pthread_join(with, NULL);
        KIT_BALANCED(&r);
        /* Else a large object whose free is under way, or a thread that has stood in a bank for a tenth of a second. */
        bool exact = r.slabs_deferred == 0;
        told += exact;
        CHECK_LE(r.objects_allocated, allocated);
        if (exact) CHECK_EQ(r.objects_allocated, allocated);
        CHECK_LE(r.objects_freed, freed); /* a free may come after the close, of what it told as escaped */
        if (exact && mode == EPOCH_RELEASE) CHECK_EQ(r.objects_freed, freed);
        if (mode == EPOCH_DRAIN) {
            CHECK_EQ(kit_live(a), allocated - freed);
            for (unsigned i = 0; i < ACTORS; i++)
                for (unsigned n = 0; n < 64; n++) CHECK(x[i].kept[n] == NULL || slab_free_checked(a, x[i].kept[n]));
        }
        CHECK_EQ(kit_live(a), 0);
        CHECK_EQ(kit_committed(a), 0);
        epoch_domain_destroy(d);
    }
    NOTE("%zu of %zu ends told of every object", told, round);
    CHECK_GT(told, rounds / 2);
    slab_allocator_free(a);
}
static void drains_count_every_object(void) { close_beside(EPOCH_DRAIN, false); }
static void releases_count_every_object(void) { close_beside(EPOCH_RELEASE, false); }
/* Also of a heap that the trim had when the end came by. */
static void drains_beside_trims_count_every_object(void) { close_beside(EPOCH_DRAIN, true); }
static void releases_beside_trims_count_every_object(void) { close_beside(EPOCH_RELEASE, true); }

/* ---- trims ---- */

typedef struct Neighbour {
    SlabAllocator* a;
    _Atomic int stop;
    uint64_t allocated;
} Neighbour;

static void* keep_allocating(void* arg) {
    Neighbour* n = arg;
    void* p[50];
    while (atomic_load(&n->stop) == 0) {
        for (unsigned i = 0; i < 50; i++) {
            p[i] = slab_malloc_epoch(n->a, SIZE, HERE);
            CHECK(p[i] != NULL);
            if (p[i] != NULL) memset(p[i], 0x5a, SIZE);
        }
        n->allocated += 50;
        for (unsigned i = 0; i < 50; i++) {
            CHECK(p[i] != NULL && kit_hide(p[i]) != NULL && ((unsigned char*)p[i])[SIZE - 1] == 0x5a);
            CHECK(slab_free_checked(n->a, p[i]));
        }
    }
    return NULL;
}

static void trims_beside_allocations(void) {
    enum { COUNT = 20000 }; /* some 600 slabs; the neighbours' 100 objects keep 100 at most */
    static void* kept[COUNT];
    Neighbour n[2] = {{create(true), 0, 0}, {NULL, 0, 0}};
    SlabAllocator* a = n[1].a = n[0].a;
    pthread_t t[2] = {kit_thread(keep_allocating, &n[0]), kit_thread(keep_allocating, &n[1])};
    uint64_t mine = 0;
    for (size_t round = 0, rounds = check_count(24); round < rounds; round++) {
        for (unsigned i = 0; i < COUNT; i++) kept[i] = slab_malloc_epoch(a, SIZE, HERE);
        mine += COUNT;
        uint64_t full = kit_committed(a);
        CHECK_GE(full, COUNT * SIZE);
        for (unsigned i = 0; i < COUNT; i++) CHECK(slab_free_checked(a, kept[i]));
        slab_trim(a);
        CHECK_LE(kit_committed(a), full / 2);
    }
    atomic_store(&n[0].stop, 1);
    atomic_store(&n[1].stop, 1);
    for (unsigned i = 0; i < 2; i++) pthread_join(t[i], NULL);
    EpochReceipt r;
    CHECK(epoch_close_ex(a, HERE, EPOCH_DRAIN, &r));
    CHECK_EQ(r.objects_allocated, mine + n[0].allocated + n[1].allocated);
    CHECK_EQ(r.objects_freed, r.objects_allocated);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

/* A thread that flushes gives back what it keeps of its own: nothing of the epoch's. */
static void a_flush_leaves_the_epoch(void) {
    SlabAllocator* a = create(true);
    void* p[200];
    for (unsigned i = 0; i < 200; i++) p[i] = slab_malloc_epoch(a, SIZE, HERE);
    for (unsigned i = 0; i < 200; i++) slab_free(a, p[i]);
    uint64_t committed = kit_committed(a);
    CHECK_GT(committed, 0);
    slab_thread_flush(a);
    CHECK_EQ(kit_committed(a), committed);
    slab_trim(a);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

/* ---- handles ---- */

typedef struct Reuse {
    SlabAllocator* a;
    void *p, *q;
    SlabHandle h;
} Reuse;

static void* free_and_use_again(void* arg) {
    Reuse* u = arg;
    void* p[500];
    for (unsigned n = 0; n < 500; n++) p[n] = slab_malloc_epoch(u->a, SIZE, HERE);
    CHECK(free_obj(u->a, u->h));
    for (unsigned n = 0; n < 500; n++) slab_free(u->a, p[n]); /* a line comes back when enough of it is free */
    for (unsigned n = 0; n < 1000 && kit_hide(u->q) != kit_hide(u->p); n++) u->q = slab_malloc_epoch(u->a, SIZE, HERE);
    return NULL;
}

static void a_handle_ends_with_its_object(void) {
    Reuse u = {create(true), NULL, NULL, 0};
    u.p = alloc_obj_epoch(u.a, SIZE, HERE, &u.h);
    CHECK(u.p != NULL && slab_handle_ptr(u.a, u.h) == u.p);
    kit_on_thread(free_and_use_again, &u);
    CHECK_EQ(kit_hide(u.q), kit_hide(u.p));
    CHECK_NULL(slab_handle_ptr(u.a, u.h));
    CHECK(!free_obj(u.a, u.h));
    CHECK_EQ(kit_refusals(u.a).stale_handle, 1);
    CHECK(slab_free_checked(u.a, u.q));
    CHECK(!slab_free_checked(u.a, u.q));
    slab_allocator_free(u.a);
}

/* ---- budgets ---- */

static void* until_refused(void* arg) {
    Actor* x = arg;
    while (slab_malloc_epoch(x->a, SIZE, x->id) != NULL) x->allocated++;
    CHECK_EQ(errno, EDQUOT);
    return NULL;
}

static uint64_t fill(SlabAllocator* a) {
    enum { ACTORS = 4 };
    Actor x[ACTORS];
    pthread_t t[ACTORS];
    uint64_t n = 0;
    for (unsigned i = 0; i < ACTORS; i++) {
        x[i].a = a;
        x[i].id = HERE;
        x[i].allocated = 0;
        t[i] = kit_thread(until_refused, &x[i]);
    }
    for (unsigned i = 0; i < ACTORS; i++) {
        pthread_join(t[i], NULL);
        n += x[i].allocated;
    }
    return n;
}

static void budgets_hold_for_all_threads(void) {
    SlabAllocator* a = create(true);
    slab_epoch_set_label(a, HERE, "tight");
    REQUIRE(slab_epoch_set_budget(a, HERE, 0, 256 << 10, NULL, NULL));
    uint64_t n = fill(a);
    CHECK_EQ(n, (256 << 10) / SIZE); /* each slab to its last slot */
    CHECK_EQ(phase_of(a, HERE).committed_bytes, 256 << 10);
    CHECK_EQ(kit_refusals(a).over_budget, 4);
    EpochReceipt r;
    CHECK(epoch_close_ex(a, HERE, EPOCH_RELEASE, &r));
    CHECK_EQ(r.objects_released, n);
    slab_allocator_free(a);
    SlabOptions o = kit_options();
    o.shared = 1;
    o.max_bytes = 256 << 10;
    a = kit_create_with(&o);
    CHECK_EQ(fill(a), (256 << 10) / SIZE);
    CHECK_EQ(kit_committed(a), 256 << 10);
    slab_allocator_free(a);
}

/* ---- numbers ---- */

static void* churn(void* arg) {
    Actor* x = arg;
    void* p[40];
    for (size_t n = 0; n < check_count(4000); n++) {
        for (unsigned i = 0; i < 40; i++) p[i] = slab_malloc_epoch(x->a, SIZE, x->id);
        for (unsigned i = 0; i < 40; i++) slab_free(x->a, p[i]);
    }
    return NULL;
}

static void numbers_by_label_are_the_classes(void) {
    SlabAllocator* a = create(true);
    Actor x[4];
    pthread_t t[4];
    slab_epoch_set_label(a, 1, "one");
    slab_epoch_set_label(a, 2, "two");
    for (unsigned i = 0; i < 4; i++) {
        x[i].a = a;
        x[i].id = 1 + i % 2;
        t[i] = kit_thread(churn, &x[i]);
    }
    for (unsigned i = 0; i < 4; i++) pthread_join(t[i], NULL);
    uint64_t locks = 0, tries = 0;
    SlabClassStats c;
    uint32_t cls = 0;
    for (slab_stats_class(a, cls, &c); c.version != 0; slab_stats_class(a, ++cls, &c)) {
        uint64_t fast = 0, contended = 0, allocs = 0, frees = 0;
        for (unsigned l = 0; l < 16; l++) {
            fast += c.lock_fast_acquire_by_label[l];
            contended += c.lock_contended_by_label[l];
            allocs += c.bitmap_alloc_cas_retries_by_label[l];
            frees += c.bitmap_free_cas_retries_by_label[l];
        }
        CHECK_EQ(fast, c.lock_fast_acquire);
        CHECK_EQ(contended, c.lock_contended);
        CHECK_EQ(allocs, c.bitmap_alloc_cas_retries);
        CHECK_EQ(frees, c.bitmap_free_cas_retries);
        /* Each replaced line under the stripe, each slab under the pool's lock. */
        CHECK_GE(fast + contended, c.current_partial_cas_attempts + c.new_slab_count);
        locks += fast + contended;
        tries += c.bitmap_alloc_attempts;
    }
    NOTE("%" PRIu64 " claims, %" PRIu64 " locks", tries, locks);
    CHECK_GT(locks, 0);
    CHECK_GE(tries, 4 * 40 * check_count(4000));
    slab_allocator_free(a);
}

static void* grow(void* arg) {
    for (size_t n = 0; n < check_count(300); n++) {
        epoch_domain_t* d = epoch_domain_create(arg);
        if (d == NULL) break;
        for (unsigned i = 0; i < 4000; i++) CHECK(slab_malloc_epoch(arg, 4096, d->epoch_id) != NULL);
        epoch_domain_destroy(d);
    }
    return NULL;
}

/* Threads under different stripes count their locks in one place: nothing gets lost. */
static void every_lock_is_counted(void) {
    enum { GROWERS = 4 };
    SlabOptions o = kit_options();
    o.shared = 1;
    o.bump = 2; /* slabs of classes alone */
    SlabAllocator* a = kit_create_with(&o);
    pthread_t t[GROWERS];
    for (unsigned i = 0; i < GROWERS; i++) t[i] = kit_thread(grow, a);
    for (unsigned i = 0; i < GROWERS; i++) pthread_join(t[i], NULL);
    SlabClassStats c;
    uint64_t slabs = 0;
    for (uint32_t cls = 0; slab_stats_class(a, cls, &c), c.version != 0; cls++, slabs += c.new_slab_count)
        CHECK_GE(c.lock_fast_acquire + c.lock_contended,
                 c.current_partial_cas_attempts + c.new_slab_count - c.empty_slab_recycled);
    CHECK_GE(slabs, GROWERS * check_count(300) * 4000 / 64); /* at most 64 objects each */
    slab_allocator_free(a);
}

/* ---- domains, large objects, children ---- */

static void* in_domain(void* arg) {
    epoch_domain_t* d = arg;
    for (unsigned i = 0; i < 3; i++) CHECK(epoch_domain_malloc(d, 64) != NULL);
    return NULL;
}

static void a_domain_of_many_threads_is_one_page(void) {
    SlabAllocator* a = create(true);
    epoch_domain_t* d = epoch_domain_create(a);
    REQUIRE(d != NULL);
    for (unsigned i = 0; i < 10; i++) kit_on_thread(in_domain, d);
    CHECK_EQ(kit_committed(a), slab_page_size()); /* they lie side by side in the mixed slab */
    void* large = epoch_domain_malloc(d, 500000);
    CHECK(large != NULL && slab_usable_size(a, large) >= 500000);
    EpochReceipt r;
    CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    CHECK_EQ(r.objects_released, 31);
    CHECK_EQ(kit_committed(a), 0);
    epoch_domain_destroy(d);
    slab_allocator_free(a);
}

static void in_child(void* arg) {
    Actor* x = arg;
    void* p[300];
    for (unsigned i = 0; i < 300; i++) CHECK((p[i] = slab_malloc_epoch(x->a, SIZE, x->id)) != NULL);
    for (unsigned i = 0; i < 300; i += 2) CHECK(slab_free_checked(x->a, p[i]));
    for (unsigned i = 0; i < 64; i++) CHECK(x->kept[i] == NULL || slab_free_checked(x->a, x->kept[i]));
    EpochReceipt r;
    CHECK(epoch_close_ex(x->a, x->id, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    CHECK_GE(r.objects_allocated, 300 + 64);
    slab_trim(x->a);
    CHECK_EQ(kit_live(x->a), 0);
    CHECK_EQ(kit_committed(x->a), 0);
}

/* Its lock is taken as it begins and as it ends, by whatever call. */
static void a_small_phase_ends_straight(void) {
    enum { PHASES = 200 };
    static SlabLabelStats rows[8];
    SlabAllocator* a = create(true);
    for (unsigned n = 0; n < PHASES; n++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, "small");
        CHECK(epoch_domain_malloc(d, 100) != NULL);
        if (n % 2 == 0) epoch_domain_enter(d), epoch_domain_exit(d);
        epoch_domain_destroy(d);
    }
    size_t labels = slab_stats_labels(a, rows, 8), at = 0;
    while (at < labels && strcmp(rows[at].label, "small") != 0) at++;
    CHECK(at < labels);
    CHECK_EQ(rows[at].lock_fast_acquire + rows[at].lock_contended, 2 * PHASES);
    slab_allocator_free(a);
}

static void children_of_claims(void) {
    Neighbour n = {create(true), 0, 0};
    pthread_t t = kit_thread(keep_allocating, &n);
    Actor x;
    memset(&x, 0, sizeof x);
    x.a = n.a;
    x.id = HERE;
    for (unsigned i = 0; i < 64; i++) x.kept[i] = slab_malloc_epoch(x.a, SIZE, HERE);
    for (size_t i = 0; i < check_count(16); i++) check_child(in_child, &x);
    atomic_store(&n.stop, 1);
    pthread_join(t, NULL);
    CHECK_EQ(kit_live(n.a), 64);
    slab_allocator_free(n.a);
}

static const CheckCase cases[] = {
    CHECK_CASE(many_threads_need_few_slabs),
    CHECK_CASE(drains_count_every_object),
    CHECK_CASE(drains_beside_trims_count_every_object),
    CHECK_CASE(releases_beside_trims_count_every_object),
    CHECK_CASE(releases_count_every_object),
    CHECK_CASE(trims_beside_allocations),
    CHECK_CASE(a_flush_leaves_the_epoch),
    CHECK_CASE(a_handle_ends_with_its_object),
    CHECK_CASE(budgets_hold_for_all_threads),
    CHECK_CASE(numbers_by_label_are_the_classes),
    CHECK_CASE(every_lock_is_counted),
    CHECK_CASE(a_small_phase_ends_straight),
    CHECK_CASE(a_domain_of_many_threads_is_one_page),
    CHECK_CASE(children_of_claims),
};
CHECK_MAIN(cases)
