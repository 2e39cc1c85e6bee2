/*
 * runs.c - runs of slab_lane.h by their public face: an object of a run is an object of its domain, the phase stays
 * while a run is open, and what it has made is counted, whoever frees it and however it ends.
 */
#include "kit/fixture.h"

#include <slab_lane.h>

static const size_t sizes[] = {1, 15, 16, 17, 64, 100, 1000, 1024, 1025, 4095, 4096, 4097, 5000, 70000, 300000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static epoch_domain_t* make(SlabAllocator* a, uint32_t more) {
    SlabDomainOptions o = {.struct_size = sizeof o, .label = "run", .flags = SLAB_DOMAIN_OWNER_ONLY | more};
    epoch_domain_t* d = epoch_domain_create_ex(a, &o);
    REQUIRE(d != NULL);
    return d;
}

static void objects_of_the_domain_of(SlabAllocator* a) {
    epoch_domain_t* d = make(a, 0);
    SlabRun run;
    void* p[8][SIZES];
    REQUIRE(slab_run_begin(&run, d));
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = 0; i < SIZES; i++) {
            p[round][i] = i % 5 == round % 5 ? epoch_domain_malloc(d, sizes[i]) : slab_run_malloc(&run, sizes[i]);
            REQUIRE(p[round][i] != NULL);
            CHECK_EQ((uintptr_t)p[round][i] % 16, 0);
            CHECK_GE(slab_usable_size(a, p[round][i]), sizes[i]);
            CHECK_EQ(kit_era_of(a, p[round][i]), d->epoch_era);
            kit_fill(p[round][i], sizes[i], round * SIZES + i);
        }
        if (round == 3) CHECK(slab_run_end(&run) && slab_run_begin(&run, d));
    }
    for (unsigned round = 0; round < 8; round++)
        for (unsigned i = 0; i < SIZES; i++) CHECK(kit_intact(p[round][i], sizes[i], round * SIZES + i));
    for (unsigned i = 0; i < SIZES; i++) { /* it grows, has a handle, is freed, and is not freed twice */
        void* q = slab_realloc(a, p[0][i], 2 * sizes[i]);
        REQUIRE(q != NULL);
        CHECK(kit_intact(q, sizes[i], i));
        CHECK(slab_free_checked(a, q));
        CHECK(!slab_free_checked(a, q));
        SlabHandle h = slab_ptr_handle(a, p[1][i]);
        CHECK(h != 0 && free_obj(a, h) && !free_obj(a, h));
        CHECK(slab_free_sized_checked(a, p[7][i], sizes[i]));
        CHECK(!slab_free_sized_checked(a, p[7][i], sizes[i]));
    }
    for (unsigned i = 0; i < SIZES; i++) REQUIRE((p[1][i] = slab_run_malloc(&run, sizes[i])) != NULL);
    SlabDomainStats s = {.struct_size = sizeof s};
    CHECK(epoch_domain_stats(d, &s));
    CHECK_EQ(s.live_objects, 6 * SIZES);
    CHECK(slab_run_end(&run));
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(d, &r));
    CHECK_EQ(r.objects_released, 6 * SIZES);
    CHECK_EQ(r.objects_allocated, r.objects_freed + r.objects_released);
    CHECK_EQ(r.bytes_allocated, r.bytes_freed + r.bytes_released);
    for (unsigned i = 0; i < SIZES; i++) CHECK(!slab_free_checked(a, p[2][i]));
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void objects_of_the_domain(void) {
    objects_of_the_domain_of(kit_create());
    SlabOptions o = kit_options(); /* where it calls */
    o.bump = 2;
    objects_of_the_domain_of(kit_create_with(&o));
    o = kit_options();
    o.shared = 1;
    objects_of_the_domain_of(kit_create_with(&o));
    o = kit_options();
    o.profile_bytes = 4096;
    objects_of_the_domain_of(kit_create_with(&o));
}

/* What is left is no object: nobody frees it, nor what lies behind. */
static void what_is_left_is_no_object(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = make(a, 0);
    SlabRun run;
    REQUIRE(slab_run_begin(&run, d));
    for (unsigned n = 0; n < 3000; n++) {
        char* p = slab_run_malloc(&run, 48);
        REQUIRE(p != NULL);
        CHECK_EQ(slab_usable_size(a, p), 48);
        CHECK(!slab_free_checked(a, kit_hide(p + 48)));
        CHECK(!slab_free_checked(a, kit_hide(p + 64)));
        if (n % 8 == 0) CHECK(slab_free_checked(a, p)); /* few: all of it is bumped */
    }
    CHECK(slab_run_end(&run));
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(d, &r));
    CHECK_EQ(r.objects_allocated, 3000);
    CHECK_EQ(r.bytes_allocated, 3000 * 48);
    CHECK_EQ(r.objects_freed, 375);
    CHECK_EQ(r.bytes_freed, 375 * 48);
    slab_allocator_free(a);
}

/* All that the run has made is freed, and its region is used on, not anew. */
static void what_is_empty_is_the_runs(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = make(a, 0);
    SlabRun run;
    uint64_t made = 0;
    CHECK(epoch_domain_enter(d));
    REQUIRE(slab_run_begin(&run, d));
    for (unsigned n = 0; n < 400; n++) {
        unsigned char* p[40];
        for (unsigned i = 0; i < 40; i++) {
            REQUIRE((p[i] = slab_run_malloc(&run, 100)) != NULL);
            kit_fill(p[i], 100, i);
        }
        for (unsigned i = 0; i < 40; i += 2) CHECK(slab_free_checked(a, p[i]));
        for (unsigned i = 1; i < 40; i += 2) { /* meanwhile others come and go in the heap */
            void* q = slab_malloc(a, 3000);
            CHECK(q != NULL && slab_free_checked(a, q));
            CHECK(kit_intact(p[i], 100, i));
            if (n % 3 != 0) CHECK(slab_free_checked(a, p[i]));
        }
        if (n % 50 == 0) slab_trim(a);
        made += 60;
    }
    CHECK(slab_run_end(&run));
    EpochReceipt r;
    CHECK(epoch_domain_end_ex(d, &r));
    CHECK_EQ(r.objects_allocated, made);
    CHECK_EQ(r.objects_released, 134 * 20);
    slab_allocator_free(a);
}

/* ---- what is refused ---- */

#define REFUSED(call, code)                                  \
    do {                                                     \
        uint64_t before_ = kit_refusals(a).domain_order;     \
        errno = 0;                                           \
        bool ok_ = (bool)(call);                             \
        int error_ = errno;                                  \
        CHECK(!ok_);                                         \
        CHECK_EQ(error_, code);                              \
        CHECK_EQ(kit_refusals(a).domain_order, before_ + 1); \
        CHECK(slab_last_error() != NULL);                    \
    } while (0)

typedef struct Other {
    SlabAllocator* a;
    epoch_domain_t* d;
    SlabRun* run;
} Other;

static void* others_try(void* arg) {
    Other* o = arg;
    SlabAllocator* a = o->a;
    SlabRun mine;
    REFUSED(slab_run_begin(&mine, o->d), EBUSY);
    REFUSED(slab_run_malloc(&mine, 64) != NULL || slab_run_begin(&mine, o->d), EBUSY); /* it is none */
    SlabRun copy = *o->run;
    REFUSED(slab_run_malloc_called(copy, 64).got_, EBUSY);
    REFUSED(slab_run_end(&copy), EBUSY);
    REFUSED(epoch_domain_destroy(o->d), EBUSY);
    return NULL;
}

static void the_phase_stays(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t *d = make(a, 0), *e = make(a, SLAB_DOMAIN_KEEP);
    SlabRun run, second, none;
    memset(&none, 0, sizeof none);
    errno = 0;
    CHECK_NULL(slab_run_malloc(&none, 64));
    CHECK_EQ(errno, EINVAL);
    errno = 0;
    CHECK(!slab_run_end(&none));
    CHECK_EQ(errno, EINVAL);
    CHECK(!slab_run_begin(&none, NULL));
    CHECK_EQ(errno, EINVAL);
    epoch_domain_t* plain = epoch_domain_create(a);
    CHECK(!slab_run_begin(&none, plain));
    CHECK_EQ(errno, EINVAL);
    CHECK_HAS(slab_last_error(), "SLAB_DOMAIN_OWNER_ONLY");
    CHECK(epoch_domain_destroy(plain));

    CHECK(epoch_domain_enter(d));
    REQUIRE(slab_run_begin(&run, d));
    REQUIRE(slab_run_begin(&second, e));
    Other o = {a, d, &run};
    for (unsigned turn = 0; turn < 2; turn++) {
        EpochReceipt r;
        epoch_domain_t* from;
        for (unsigned n = 0; n < 100; n++)
            CHECK(slab_run_malloc(&run, 64) != NULL && slab_run_malloc(&second, 64) != NULL);
        errno = 0;
        CHECK_NULL(slab_run_malloc(&run, kit_size(0)));
        CHECK_EQ(errno, EINVAL);
        errno = 0;
        CHECK_NULL(slab_run_malloc(&run, kit_size(SIZE_MAX)));
        CHECK_EQ(errno, ENOMEM);
        REFUSED(slab_run_begin(&none, d), EBUSY);
        REFUSED(epoch_domain_enter(d), EBUSY);
        REFUSED(epoch_domain_exit(d), EBUSY);
        REFUSED(epoch_domain_end(d), EBUSY);
        REFUSED(epoch_domain_end_ex(d, &r), EBUSY);
        REFUSED(epoch_domain_drain(d, &r), EBUSY);
        REFUSED(epoch_domain_detach(d), EBUSY);
        REFUSED(epoch_domain_switch(NULL, &from), EBUSY);
        REFUSED(epoch_domain_switch(e, &from), EBUSY);
        REFUSED(epoch_domain_reset(d), EBUSY);
        REFUSED(epoch_domain_destroy(e), EBUSY);
        REFUSED(epoch_domain_destroy_ex(e, &r), EBUSY);
        REFUSED(epoch_domain_force_close(e), EBUSY);
        REFUSED(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r), EBUSY);
        REFUSED(epoch_close_ex(a, e->epoch_id, EPOCH_DRAIN, &r), EBUSY);
        REFUSED(epoch_close_era(a, d->epoch_era, EPOCH_RELEASE, &r), EBUSY);
        CHECK_HAS(slab_last_error(), "run");
        kit_on_thread(others_try, &o);
        slab_trim(a);
    }
    CHECK(slab_run_end(&second));
    CHECK(!slab_run_end(&second));
    CHECK_NULL(slab_run_malloc(&second, 64));
    CHECK(slab_run_end(&run));
    EpochReceipt r;
    CHECK(epoch_domain_end_ex(d, &r));
    CHECK_EQ(r.objects_released, 200);
    CHECK(epoch_domain_enter(e) && epoch_domain_exit(e) && epoch_domain_destroy_ex(e, &r));
    CHECK_EQ(r.objects_released, 200);
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void a_budget_holds(void) {
    SlabAllocator* a = kit_create();
    SlabDomainOptions o = {.struct_size = sizeof o, .flags = SLAB_DOMAIN_OWNER_ONLY, .hard_bytes = 64 << 10};
    epoch_domain_t* d = epoch_domain_create_ex(a, &o);
    SlabRun run;
    REQUIRE(d != NULL && slab_run_begin(&run, d));
    size_t n = 0;
    errno = 0;
    while (n < 100000 && slab_run_malloc(&run, 64) != NULL) n++;
    CHECK_EQ(errno, EDQUOT);
    CHECK_BETWEEN(n, 100, 1024);
    CHECK_NULL(slab_run_malloc(&run, 64));
    CHECK(slab_run_end(&run));
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(d, &r));
    CHECK_EQ(r.objects_released, n);
    CHECK_EQ(r.bytes_released, 64 * n);
    slab_allocator_free(a);
}

static SlabRun told_run;
static unsigned told;
/* Uses the run, whose allocation this is in, and the domain. */
static void uses_the_run(SlabAllocator* a, EpochId id, uint64_t bytes, bool hard, void* ctx) {
    epoch_domain_t* d = ctx;
    SlabRun second;
    (void)id, (void)bytes, (void)hard;
    told++;
    REFUSED(slab_run_malloc(&told_run, 80), EBUSY);
    REFUSED(slab_run_malloc(&told_run, 5000), EBUSY);
    REFUSED(slab_run_begin(&second, d), EBUSY);
    REFUSED(epoch_domain_reset(d), EBUSY);
    REFUSED(slab_run_end(&told_run), EBUSY);
    void* p = epoch_domain_malloc(d, 80);
    REQUIRE(p != NULL);
    memset(p, 1, 80);
}

/* A function that an allocation of the run calls uses the run in vain: by a large object, and as its regions take more.
 */
static void the_run_is_left_alone_by_what_it_calls(void) {
    enum { FIRST = 16, ALL = 64 };
    for (unsigned large = 0; large < 2; large++) {
        SlabAllocator* a = kit_create();
        epoch_domain_t* d = make(a, 0);
        size_t bytes = large ? 4 * KIT_MIB : 80;
        void* p[ALL];
        uint64_t made = ALL;
        REQUIRE(slab_run_begin(&told_run, d));
        for (unsigned i = 0; i < FIRST; i++) REQUIRE((p[i] = slab_run_malloc(&told_run, 80)) != NULL);
        CHECK(slab_epoch_set_budget(a, d->epoch_id, 64 << 10, 0, uses_the_run, d));
        for (told = 0; told == 0 && made < 100000; made++) {
            unsigned char* q = slab_run_malloc(&told_run, bytes);
            REQUIRE(q != NULL);
            q[0] = q[bytes - 1] = 2;
        }
        CHECK_EQ(told, 1);
        made++; /* the function's own */
        for (unsigned i = FIRST; i < ALL; i++) {
            REQUIRE((p[i] = slab_run_malloc(&told_run, 80)) != NULL);
            kit_fill(p[i], 80, i);
        }
        for (unsigned i = FIRST; i < ALL; i++) CHECK(kit_intact(p[i], 80, i));
        CHECK(slab_run_end(&told_run));
        EpochReceipt r;
        CHECK(epoch_domain_destroy_ex(d, &r));
        CHECK_EQ(r.objects_allocated, made);
        CHECK_EQ(r.objects_freed, 0);
        CHECK_EQ(r.objects_released, made);
        CHECK_EQ(r.bytes_freed, 0);
        slab_allocator_free(a);
    }
}

/* ---- without its thread, and in a child ---- */

static void* goes_with_an_open_run(void* arg) {
    Other* o = arg;
    SlabRun run;
    o->d = make(o->a, SLAB_DOMAIN_KEEP);
    for (unsigned n = 0; n < 7; n++) CHECK(epoch_domain_malloc(o->d, 32) != NULL);
    REQUIRE(slab_run_begin(&run, o->d));
    for (unsigned n = 0; n < 1000; n++) {
        void* p = slab_run_malloc(&run, 100);
        CHECK(p != NULL);
        if (n % 10 == 0) CHECK(slab_free_checked(o->a, p));
    }
    return NULL;
}

static void its_thread_exits(void) {
    SlabAllocator* a = kit_create();
    for (unsigned n = 0; n < 4; n++) {
        Other o = {.a = a};
        kit_on_thread(goes_with_an_open_run, &o);
        EpochReceipt r;
        CHECK(epoch_domain_receipt(o.d, &r));
        CHECK_EQ(r.objects_allocated, 1007);
        CHECK_EQ(r.bytes_allocated, 7 * 32 + 1000 * 112);
        CHECK_EQ(r.objects_freed, 100);
        CHECK_EQ(r.objects_released, 907);
        CHECK_EQ(r.bytes_released, 7 * 32 + 900 * 112);
        CHECK(epoch_domain_enter(o.d) && epoch_domain_exit(o.d)); /* it is anybody's */
        CHECK(epoch_domain_destroy(o.d));
        CHECK_EQ(kit_live(a), 0);
    }
    slab_allocator_free(a);
}

static void goes_on(void* arg) {
    Other* o = arg;
    for (unsigned n = 0; n < 2000; n++) {
        void* p = slab_run_malloc(o->run, 80);
        CHECK(p != NULL);
        if (n % 4 == 0) CHECK(slab_free_checked(o->a, p));
    }
    CHECK(slab_run_end(o->run));
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(o->d, &r));
    CHECK_EQ(r.objects_allocated, 2100);
    CHECK_EQ(r.objects_freed, 510);
    CHECK_EQ(r.bytes_allocated, 2100 * 80);
    CHECK_EQ(kit_live(o->a), 0);
}

static void* stays_open(void* arg) {
    pthread_barrier_t* meet = ((void**)arg)[0];
    SlabRun run;
    epoch_domain_t* d = make(((void**)arg)[1], 0);
    REQUIRE(slab_run_begin(&run, d));
    for (unsigned n = 0; n < 50; n++) CHECK(slab_run_malloc(&run, 48) != NULL);
    pthread_barrier_wait(meet);
    pthread_barrier_wait(meet);
    CHECK(slab_run_end(&run) && epoch_domain_destroy(d));
    return NULL;
}

static void a_child_goes_on(void) {
    SlabAllocator* a = kit_create();
    pthread_barrier_t meet;
    pthread_barrier_init(&meet, NULL, 2);
    void* given[2] = {&meet, a};
    pthread_t other = kit_thread(stays_open, given);
    pthread_barrier_wait(&meet);
    SlabRun run;
    Other o = {a, make(a, 0), &run};
    REQUIRE(slab_run_begin(&run, o.d));
    for (unsigned n = 0; n < 100; n++) {
        void* p = slab_run_malloc(&run, 80);
        CHECK(p != NULL);
        if (n % 10 == 0) CHECK(slab_free_checked(a, p));
    }
    CHECK(check_child(goes_on, &o));
    pthread_barrier_wait(&meet);
    pthread_join(other, NULL);
    goes_on(&o);
    pthread_barrier_destroy(&meet);
    slab_allocator_free(a);
}

/* ---- beside others ---- */

enum { THREADS = 3, PLACES = 64, BRIEF = 100000 };
typedef struct Load {
    SlabAllocator* a;
    _Atomic(void*) given[PLACES];
    _Atomic bool over;
    _Atomic uint64_t freed, freed_bytes;
    _Atomic unsigned freers;
    _Atomic uint64_t turns[THREADS]; /* of each of those that free */
} Load;

static void* frees(void* arg) {
    Load* l = arg;
    uint64_t dice = (uintptr_t)&dice;
    for (unsigned n = atomic_fetch_add(&l->freers, 1); !atomic_load(&l->over); atomic_fetch_add(&l->turns[n], 1)) {
        void* p = atomic_exchange(&l->given[kit_rand(&dice) % PLACES], NULL);
        if (p == NULL) {
            sched_yield();
            continue;
        }
        atomic_fetch_add(&l->freed_bytes, slab_usable_size(l->a, p));
        CHECK(slab_free_checked(l->a, p));
        atomic_fetch_add(&l->freed, 1);
    }
    return NULL;
}

/* Nobody is freeing what was taken from `given` before. */
static void await_freers(Load* l) {
    for (unsigned n = 0; n < atomic_load(&l->freers); n++) {
        uint64_t turns = atomic_load(&l->turns[n]);
        while (atomic_load(&l->turns[n]) < turns + 2) sched_yield();
    }
}

static void* asks(void* arg) {
    Load* l = arg;
    for (unsigned n = 0; !atomic_load(&l->over); n++) {
        SlabGlobalStats g = kit_global(l->a);
        CHECK_LE(g.live_bytes, 1u << 30);
        CHECK_LE(g.live_objects, 1u << 30);
        if (n % 8 == 0) slab_trim(l->a);
        sched_yield();
    }
    return NULL;
}

/* Whoever frees what the run makes, its figures are those of the program. */
static void beside_others(void) {
    Load l = {.a = kit_create()};
    pthread_t t[THREADS];
    for (unsigned n = 0; n + 1 < THREADS; n++) t[n] = kit_thread(frees, &l);
    t[THREADS - 1] = kit_thread(asks, &l);
    uint64_t dice = 1, phases = check_count(60);
    for (uint64_t phase = 0; phase < phases; phase++) {
        epoch_domain_t* d = make(l.a, phase % 2 ? SLAB_DOMAIN_UNTIMED : 0);
        SlabRun run;
        uint64_t made = 0, bytes = 0, own = 0, own_bytes = 0, before = atomic_load(&l.freed),
                 bytes_before = atomic_load(&l.freed_bytes);
        REQUIRE(slab_run_begin(&run, d));
        for (unsigned n = 0; n < 3000; n++) {
            uint64_t r = kit_rand(&dice);
            size_t size = 1 + r % (r >> 40 & 7 ? 300 : 4500);
            bool by_run = (r >> 32 & 15) != 0;
            unsigned char* p = by_run ? slab_run_malloc(&run, size) : epoch_domain_malloc(d, size);
            REQUIRE(p != NULL);
            p[0] = p[size - 1] = (unsigned char)n;
            size_t usable = slab_usable_size(l.a, p);
            made++, bytes += usable;
            if ((r >> 36 & 3) == 0) {
                void* old = atomic_exchange(&l.given[r >> 48 & (PLACES - 1)], p);
                if (old != NULL) {
                    own++, own_bytes += slab_usable_size(l.a, old);
                    CHECK(slab_free_checked(l.a, old));
                }
            } else if ((r >> 36 & 3) == 1) {
                own++, own_bytes += usable;
                CHECK(slab_free_checked(l.a, p));
            }
        }
        for (unsigned n = 0; n < PLACES; n++) {
            void* p = atomic_exchange(&l.given[n], NULL);
            if (p == NULL) continue;
            own++, own_bytes += slab_usable_size(l.a, p);
            CHECK(slab_free_checked(l.a, p));
        }
        CHECK(slab_run_end(&run));
        await_freers(&l);
        SlabDomainStats s = {.struct_size = sizeof s};
        CHECK(epoch_domain_stats(d, &s));
        CHECK_EQ(s.live_objects + own + atomic_load(&l.freed) - before, made);
        EpochReceipt r;
        CHECK(epoch_domain_destroy_ex(d, &r));
        CHECK_EQ(r.objects_allocated, made);
        CHECK_EQ(r.bytes_allocated, bytes);
        CHECK_EQ(r.objects_freed, own + atomic_load(&l.freed) - before);
        CHECK_EQ(r.bytes_freed, own_bytes + atomic_load(&l.freed_bytes) - bytes_before);
    }
    atomic_store(&l.over, true);
    for (unsigned n = 0; n < THREADS; n++) pthread_join(t[n], NULL);
    CHECK_EQ(kit_live(l.a), 0);
    slab_allocator_free(l.a);
}

static void* asks_the_domain(void* arg) {
    Load* l = arg;
    epoch_domain_t* d = atomic_load(&l->given[0]);
    while (!atomic_load(&l->over)) {
        SlabDomainStats s = {.struct_size = sizeof s};
        CHECK(epoch_domain_stats(d, &s));
        CHECK_LE(s.live_objects, BRIEF + 1);
        CHECK_LE(s.live_bytes, 16 * BRIEF + KIT_MIB); /* a run's region at most is too much */
    }
    return NULL;
}

/* Runs of an object each, while others ask what lives. */
static void figures_beside_brief_runs(void) {
    Load l = {.a = kit_create()};
    epoch_domain_t* d = make(l.a, 0);
    atomic_store(&l.given[0], d);
    CHECK(epoch_domain_malloc(d, 16) != NULL);
    pthread_t t[THREADS];
    for (unsigned n = 0; n < THREADS; n++) t[n] = kit_thread(asks_the_domain, &l);
    for (unsigned n = 1; n < BRIEF; n++) {
        SlabRun run;
        REQUIRE(slab_run_begin(&run, d));
        CHECK(slab_run_malloc(&run, 16) != NULL);
        CHECK(slab_run_end(&run));
    }
    atomic_store(&l.over, true);
    for (unsigned n = 0; n < THREADS; n++) pthread_join(t[n], NULL);
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(d, &r));
    CHECK_EQ(r.objects_allocated, BRIEF);
    CHECK_EQ(r.bytes_allocated, 16 * BRIEF);
    slab_allocator_free(l.a);
}

/* What the label of that name tells. */
static SlabLabelStats told_of(SlabAllocator* a, const char* label) {
    SlabLabelStats l[8];
    uint32_t n = slab_stats_labels(a, l, 8);
    for (uint32_t i = 0; i < n && i < 8; i++)
        if (strcmp(l[i].label, label) == 0) return l[i];
    return (SlabLabelStats){.version = 0};
}

/* Statistics beside an open run have all that it has made and that was freed; and a label that the phase leaves keeps
 * what has ended, and nothing that lives. */
static void figures_of_an_open_run(void) {
    enum { MADE = 20, FREED = 15, SIZE = 64 };
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = make(a, 0);
    SlabRun run;
    void* p[MADE];
    REQUIRE(epoch_domain_malloc(d, SIZE) != NULL);
    REQUIRE(slab_run_begin(&run, d));
    for (unsigned n = 0; n < MADE; n++) REQUIRE((p[n] = slab_run_malloc(&run, SIZE)) != NULL);
    SlabLabelStats l = told_of(a, "run");
    CHECK_EQ(l.objects_allocated, MADE + 1);
    CHECK_EQ(l.live_bytes, (MADE + 1) * SIZE);

    for (unsigned n = 0; n < FREED; n++) CHECK(slab_free_checked(a, p[n]));
    l = told_of(a, "run");
    CHECK_EQ(l.bytes_allocated, (MADE + 1) * SIZE);
    CHECK_EQ(l.bytes_freed, FREED * SIZE);
    CHECK_EQ(l.live_bytes, (MADE + 1 - FREED) * SIZE);

    slab_epoch_set_label(a, d->epoch_id, "other");
    l = told_of(a, "run");
    CHECK_EQ(l.bytes_allocated, (MADE + 1) * SIZE);
    CHECK_EQ(l.bytes_freed, FREED * SIZE);
    CHECK_EQ(l.live_bytes, 0);
    CHECK_EQ(told_of(a, "other").live_bytes, (MADE + 1 - FREED) * SIZE);

    CHECK(slab_run_end(&run));
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(d, &r));
    CHECK_EQ(r.bytes_allocated, (MADE + 1) * SIZE);
    CHECK_EQ(r.bytes_freed, FREED * SIZE);
    CHECK_EQ(told_of(a, "run").live_bytes + told_of(a, "other").live_bytes, 0);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(objects_of_the_domain),
    CHECK_CASE(what_is_left_is_no_object),
    CHECK_CASE(what_is_empty_is_the_runs),
    CHECK_CASE(the_phase_stays),
    CHECK_CASE(a_budget_holds),
    CHECK_CASE(the_run_is_left_alone_by_what_it_calls),
    CHECK_CASE(its_thread_exits),
    CHECK_CASE(a_child_goes_on),
    CHECK_CASE(beside_others),
    CHECK_CASE(figures_beside_brief_runs),
    CHECK_CASE(figures_of_an_open_run),
};
CHECK_MAIN(cases)
