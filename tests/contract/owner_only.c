/*
 * owner_only.c - domains that are one thread's alone: what others are refused, and what becomes of them without that
 * thread.
 */
#include "kit/fixture.h"

static epoch_domain_t* make(SlabAllocator* a, uint32_t more) {
    SlabDomainOptions o = {.struct_size = sizeof o, .label = "mine", .flags = SLAB_DOMAIN_OWNER_ONLY | more};
    epoch_domain_t* d = epoch_domain_create_ex(a, &o);
    REQUIRE(d != NULL);
    return d;
}

typedef struct Other {
    SlabAllocator* a;
    epoch_domain_t* d;
    void* p; /* an object of its phase, which is freed */
    void* q; /* another one, which stays */
    void* large;
} Other;

/* The call has failed with EBUSY, and counted one misuse. */
#define REFUSED(call)                                           \
    do {                                                        \
        uint64_t before_ = kit_refusals(o->a).domain_order;     \
        errno = 0;                                              \
        bool ok_ = (bool)(call);                                \
        int error_ = errno;                                     \
        CHECK(!ok_);                                            \
        CHECK_EQ(error_, EBUSY);                                \
        CHECK_EQ(slab_error(), SLAB_ERROR_BUSY);                \
        CHECK_EQ(kit_refusals(o->a).domain_order, before_ + 1); \
    } while (0)

static void* other_main(void* arg) {
    Other* o = arg;
    EpochReceipt r;
    SlabHandle h;
    EpochId id = o->d->epoch_id;
    uint64_t era = epoch_domain_era(o->d);
    for (unsigned turn = 0; turn < 2; turn++) {
        static const size_t sizes[] = {16, 700, 5000, 100000, 400000};
        for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; n++) {
            REFUSED(epoch_domain_malloc(o->d, sizes[n]));
            REFUSED(epoch_domain_calloc(o->d, 1, sizes[n]));
            REFUSED(epoch_domain_aligned_alloc(o->d, 64, sizes[n]));
            REFUSED(epoch_domain_alloc_obj(o->d, sizes[n], 16, &h));
            REFUSED(slab_malloc_epoch(o->a, sizes[n], id));
        }
        REFUSED(slab_realloc(o->a, o->q, 100000)); /* where p lies nothing more is to be had */
        REFUSED(slab_realloc(o->a, o->large, 2000000));
        REFUSED(epoch_domain_end(o->d));
        uint64_t misuses = kit_refusals(o->a).domain_order;
        CHECK_EQ(slab_realloc(o->a, o->large, 300000), o->large); /* a block that shrinks stays, as ever */
        CHECK_EQ(slab_realloc(o->a, o->q, 20), o->q);
        CHECK_EQ(kit_refusals(o->a).domain_order, misuses);
        REFUSED(epoch_domain_enter(o->d));
        REFUSED(epoch_domain_attach(o->d));
        REFUSED(epoch_domain_switch(o->d, NULL));
        REFUSED(epoch_domain_reset(o->d));
        REFUSED(epoch_domain_force_close(o->d));
        REFUSED(epoch_domain_drain(o->d, &r));
        REFUSED(epoch_domain_end_ex(o->d, &r));
        REFUSED(epoch_domain_destroy_ex(o->d, &r));
        REFUSED(epoch_domain_destroy(o->d));
        REFUSED(epoch_close_ex(o->a, id, EPOCH_RELEASE, &r));
        REFUSED(epoch_close_ex(o->a, id, EPOCH_DRAIN, &r));
        REFUSED(epoch_close_era(o->a, era, EPOCH_RELEASE, &r));
        void* mine = slab_malloc(o->a, 700); /* from here on the thread has heaps */
        CHECK(slab_free_checked(o->a, mine));
    }
    errno = 0;
    CHECK_NULL(epoch_domain_wrap(o->a, id, true));
    CHECK_EQ(errno, EBUSY);
    CHECK(slab_free_checked(o->a, o->p));
    CHECK(!slab_free_checked(o->a, o->p));
    SlabDomainStats s = {.struct_size = sizeof s};
    CHECK(epoch_domain_stats(o->d, &s));
    CHECK_EQ(s.live_objects, 2);
    return NULL;
}

/* A thread with a heap that waits for its next phase begins none by it that is another's alone. */
static void* is_ready(void* arg) {
    Other* o = arg;
    for (unsigned n = 0; n < 8; n++) {
        epoch_domain_t* d = epoch_domain_create_labeled(o->a, "mine");
        CHECK(epoch_domain_malloc(d, 64) != NULL);
        CHECK(epoch_domain_destroy(d));
    }
    REFUSED(epoch_domain_malloc(o->d, 64));
    REFUSED(slab_malloc_epoch(o->a, 64, o->d->epoch_id));
    return NULL;
}
static void an_empty_one_is_refused(void) {
    SlabAllocator* a = kit_create();
    for (unsigned n = 0; n < 4; n++) {
        Other o = {a, make(a, 0), NULL, NULL, NULL};
        kit_on_thread(is_ready, &o);
        CHECK_EQ(kit_live(a), 0);
        CHECK(n % 2 == 0 || epoch_domain_malloc(o.d, 64) != NULL);
        CHECK(epoch_domain_destroy(o.d));
    }
    slab_allocator_free(a);
}

/* Nothing that others try changes anything but what they free; then the owner does all of it. */
static void others_are_refused(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = make(a, SLAB_DOMAIN_KEEP);
    Other o = {a, d, epoch_domain_malloc(d, 100), epoch_domain_malloc(d, 200), epoch_domain_malloc(d, 1000000)};
    memset(o.q, 7, 200);
    pthread_join(kit_thread(other_main, &o), NULL);
    CHECK_EQ(((unsigned char*)o.q)[199], 7);
    CHECK(epoch_domain_enter(d));
    CHECK(slab_malloc(a, 300) != NULL);
    CHECK(epoch_domain_detach(d));
    CHECK(epoch_domain_attach(d));
    CHECK(slab_malloc_epoch(a, 300, d->epoch_id) != NULL);
    CHECK(epoch_domain_exit(d));
    EpochReceipt r;
    CHECK(epoch_domain_reset(d));
    CHECK(epoch_domain_receipt(d, &r));
    CHECK_EQ(r.objects_allocated, 5);
    CHECK_EQ(r.objects_freed, 1);
    o.p = epoch_domain_malloc(d, 100), o.q = epoch_domain_malloc(d, 200), o.large = epoch_domain_malloc(d, 1000000);
    pthread_join(kit_thread(other_main, &o), NULL); /* the next incarnation is no other */
    CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r));
    CHECK_EQ(r.objects_released, 2);
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

static void* uses_it(void* arg) {
    Other* o = arg;
    o->p = epoch_domain_malloc(o->d, 50);
    CHECK(o->p != NULL);
    return NULL;
}

/* Records of incarnations and domains that were one thread's alone are anybody's in their next lives. */
static void the_next_phase_is_anybodys(void) {
    SlabAllocator* a = kit_create();
    for (unsigned n = 0; n < 200; n++) {
        epoch_domain_t* d = make(a, n % 2 ? SLAB_DOMAIN_UNTIMED : 0);
        if (n % 3 != 0) CHECK(epoch_domain_malloc(d, 100) != NULL);
        CHECK(epoch_domain_destroy(d));
    }
    for (unsigned n = 0; n < 200; n++) {
        Other o = {a, epoch_domain_create(a), NULL, NULL, NULL};
        if (n % 50 == 0) pthread_join(kit_thread(uses_it, &o), NULL);
        CHECK(epoch_domain_malloc(o.d, 100) != NULL);
        CHECK(epoch_domain_destroy(o.d));
    }
    CHECK_EQ(kit_refusals(a).domain_order, 0);
    slab_allocator_free(a);
}

/* What escapes a drain is freed and ended by anybody. */
static void* ends_by_era(void* arg) {
    Other* o = arg;
    EpochReceipt r;
    CHECK(epoch_close_era(o->a, (uint64_t)(uintptr_t)o->q, EPOCH_RELEASE, &r));
    CHECK_EQ(r.objects_released, 1);
    return NULL;
}
static void what_has_drained_is_anybodys(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = make(a, 0);
    Other o = {a, d, epoch_domain_malloc(d, 100), NULL, NULL};
    uint64_t era = epoch_domain_era(d);
    EpochReceipt r;
    CHECK(epoch_domain_drain(d, &r));
    CHECK_EQ(r.objects_escaped, 1);
    o.q = (void*)(uintptr_t)era;
    pthread_join(kit_thread(ends_by_era, &o), NULL);
    slab_allocator_free(a);
}

/* ---- without its thread ---- */

static void* makes_and_goes(void* arg) {
    Other* o = arg;
    o->d = make(o->a, SLAB_DOMAIN_KEEP);
    o->p = epoch_domain_malloc(o->d, 100);
    CHECK(epoch_domain_enter(o->d));
    CHECK(slab_malloc(o->a, 5000) != NULL);
    if (o->q != NULL) CHECK(epoch_domain_detach(o->d));
    return NULL;
}

static void its_thread_exits(void) {
    SlabAllocator* a = kit_create();
    for (unsigned n = 0; n < 4; n++) {
        Other o = {.a = a, .q = n % 2 ? a : NULL};
        pthread_join(kit_thread(makes_and_goes, &o), NULL);
        CHECK_EQ(kit_live(a), 0);
        errno = 0;
        CHECK_NULL(epoch_domain_malloc(o.d, 10));
        CHECK_EQ(errno, ESTALE);
        EpochReceipt r;
        CHECK(epoch_domain_receipt(o.d, &r));
        CHECK_EQ(r.objects_released, 2);
        CHECK(!slab_free_checked(a, o.p));
        if (n >= 2) { /* anybody's */
            CHECK(epoch_domain_enter(o.d));
            CHECK(slab_malloc(a, 10) != NULL);
            CHECK(epoch_domain_exit(o.d));
        }
        CHECK(epoch_domain_destroy(o.d));
        CHECK_EQ(kit_live(a), 0);
    }
    slab_allocator_free(a);
}

enum { TEAM = 3, SHARED = 64 };

typedef struct Load {
    SlabAllocator* a;
    _Atomic(epoch_domain_t*) d;
    _Atomic(void*) given[SHARED];
    _Atomic bool over;
    _Atomic uint64_t freed;
} Load;

/* ---- cleanups of what ends with its thread ---- */

enum { ALLOCATORS = 40 };
static SlabAllocator* all[ALLOCATORS];
static _Atomic unsigned cleanups;

/* Uses all allocators, and leaves the thread inside of one domain and with another one that is its alone. */
static void cleans_up(void* arg) {
    for (unsigned n = 0; n < ALLOCATORS; n++) CHECK(slab_malloc_outside(all[n], 100) != NULL);
    SlabAllocator* a = arg;
    if (atomic_fetch_add(&cleanups, 1) % 2 == 0) CHECK(epoch_domain_begin(a, "left open") != NULL);
    else CHECK(epoch_domain_malloc(make(a, 0), 50) != NULL);
}

static void* goes_with_cleanups(void* arg) {
    (void)arg;
    for (unsigned n = 0; n < ALLOCATORS; n += 3) {
        epoch_domain_t* d = make(all[n], 0);
        CHECK(epoch_domain_malloc(d, 100) != NULL);
        CHECK(slab_epoch_on_end(all[n], d->epoch_id, cleans_up, all[(n + 7) % ALLOCATORS]));
    }
    return NULL;
}

static void* stays_inside(void* arg) {
    Load* l = arg;
    epoch_domain_t* d = epoch_domain_begin(l->a, "stays");
    while (!atomic_load(&l->over)) {
        CHECK(slab_malloc(l->a, 40) != NULL);
        CHECK_EQ(epoch_domain_current(), d);
        CHECK(epoch_domain_reset(d));
    }
    CHECK(epoch_domain_end(d));
    return NULL;
}

/* Whatever they do, nothing is left to a thread that has gone, and other threads' scopes are theirs. */
static void its_cleanups_go_on(void) {
    Load l = {.a = kit_create()};
    pthread_t other = kit_thread(stays_inside, &l);
    for (unsigned n = 0; n < ALLOCATORS; n++) all[n] = kit_create();
    for (unsigned turn = 0; turn < 8; turn++) {
        atomic_store(&cleanups, turn);
        pthread_join(kit_thread(goes_with_cleanups, NULL), NULL);
        CHECK_EQ(atomic_load(&cleanups), turn + (ALLOCATORS + 2) / 3);
    }
    for (unsigned n = 0; n < ALLOCATORS; n++) {
        SlabGlobalStats g = kit_global(all[n]);
        CHECK_EQ(g.live_objects, 8 * ((ALLOCATORS + 2) / 3)); /* those in the ring: one a cleanup */
        slab_allocator_free(all[n]);
    }
    atomic_store(&l.over, true);
    pthread_join(other, NULL);
    slab_allocator_free(l.a);
}

typedef struct Forker {
    Other o;
    pthread_barrier_t meet;
} Forker;

static void* waits(void* arg) {
    Forker* f = arg;
    f->o.d = make(f->o.a, 0);
    f->o.p = epoch_domain_malloc(f->o.d, 100);
    CHECK(epoch_domain_enter(f->o.d));
    pthread_barrier_wait(&f->meet);
    pthread_barrier_wait(&f->meet);
    CHECK(slab_malloc(f->o.a, 50) != NULL);
    CHECK(epoch_domain_end(f->o.d));
    return NULL;
}

static void in_child(void* arg) {
    Forker* f = arg;
    epoch_domain_t* own = (epoch_domain_t*)f->o.q;
    CHECK(epoch_domain_malloc(own, 20) != NULL); /* of the thread that forked */
    CHECK(epoch_domain_destroy(own));
    errno = 0;
    CHECK_NULL(epoch_domain_malloc(f->o.d, 10));
    CHECK_EQ(errno, ESTALE);
    CHECK(!slab_free_checked(f->o.a, f->o.p));
    CHECK_EQ(kit_live(f->o.a), 0);
    CHECK(epoch_domain_destroy(f->o.d));
}

static void in_a_fork_child(void) {
    Forker f = {.o = {.a = kit_create()}};
    epoch_domain_t* own = make(f.o.a, 0);
    CHECK(epoch_domain_malloc(own, 20) != NULL);
    f.o.q = own;
    pthread_barrier_init(&f.meet, NULL, 2);
    pthread_t thread = kit_thread(waits, &f);
    pthread_barrier_wait(&f.meet);
    CHECK(check_child(in_child, &f));
    pthread_barrier_wait(&f.meet);
    pthread_join(thread, NULL);
    CHECK(epoch_domain_destroy(own));
    slab_allocator_free(f.o.a);
}

/* ---- a trim ---- */

static void* trims(void* arg) {
    slab_trim(((Other*)arg)->a);
    return NULL;
}

static void a_trim_by_another_passes_it_by(void) {
    enum { OBJECTS = 2000 };
    static void* p[OBJECTS];
    SlabAllocator* a = kit_create_cold();
    Other o = {.a = a, .d = make(a, 0)};
    for (unsigned n = 0; n < OBJECTS; n++) p[n] = epoch_domain_malloc(o.d, 3000);
    for (unsigned n = 1; n < OBJECTS; n++) CHECK(slab_free_checked(a, p[n]));
    SlabDomainStats before = {.struct_size = sizeof before}, after = before;
    CHECK(epoch_domain_stats(o.d, &before));
    pthread_join(kit_thread(trims, &o), NULL);
    CHECK(epoch_domain_stats(o.d, &after));
    CHECK_EQ(after.committed_bytes, before.committed_bytes);
    slab_trim(a);
    CHECK(epoch_domain_stats(o.d, &after));
    CHECK(after.committed_bytes < before.committed_bytes);
    CHECK_EQ(after.live_objects, 1);
    CHECK(epoch_domain_destroy(o.d));
    slab_allocator_free(a);
}

/* ---- beside others that try ---- */

static void* tries(void* arg) {
    Load* l = arg;
    for (unsigned n = 0; !atomic_load(&l->over); n++) {
        epoch_domain_t* d = atomic_load(&l->d); /* its record stays, whatever it is by now */
        CHECK_NULL(epoch_domain_malloc(d, 100));
        CHECK(!epoch_domain_enter(d));
        if (n % 8 == 0) slab_trim(l->a);
        void* p = atomic_exchange(&l->given[n % SHARED], NULL);
        if (p != NULL && slab_free_checked(l->a, p)) atomic_fetch_add(&l->freed, 1);
    }
    return NULL;
}

/* Each receipt is what the owner and the others have done. */
static void beside_others_that_try(void) {
    Load l = {.a = kit_create()};
    epoch_domain_t* d = make(l.a, SLAB_DOMAIN_KEEP);
    atomic_store(&l.d, d);
    pthread_t team[TEAM];
    for (unsigned t = 0; t < TEAM; t++) team[t] = kit_thread(tries, &l);
    uint64_t made = 0, freed = 0, released = 0;
    uint64_t rng = 3;
    for (size_t turns = check_count(400); turns != 0; turns--) {
        for (unsigned n = 0; n < 100; n++, made++) {
            void* p = epoch_domain_malloc(d, kit_rand_size(&rng, 3000));
            REQUIRE(p != NULL);
            atomic_store(&l.given[kit_rand(&rng) % SHARED], p);
        }
        for (unsigned n = 0; n < SHARED; n++) atomic_store(&l.given[n], NULL);
        EpochReceipt r;
        CHECK(epoch_domain_reset(d));
        CHECK(epoch_domain_receipt(d, &r));
        KIT_BALANCED(&r);
        CHECK_EQ(r.objects_allocated, 100);
        freed += r.objects_freed;
        released += r.objects_released;
    }
    atomic_store(&l.over, true);
    for (unsigned t = 0; t < TEAM; t++) pthread_join(team[t], NULL);
    CHECK_EQ(freed + released, made);
    CHECK_EQ(freed, atomic_load(&l.freed));
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(l.a);
}

static const CheckCase cases[] = {
    CHECK_CASE(others_are_refused),
    CHECK_CASE(an_empty_one_is_refused),
    CHECK_CASE(the_next_phase_is_anybodys),
    CHECK_CASE(what_has_drained_is_anybodys),
    CHECK_CASE(its_thread_exits),
    CHECK_CASE(its_cleanups_go_on),
    CHECK_CASE(in_a_fork_child),
    CHECK_CASE(a_trim_by_another_passes_it_by),
    CHECK_CASE(beside_others_that_try),
};
CHECK_MAIN(cases)
