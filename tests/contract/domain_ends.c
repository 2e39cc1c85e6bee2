/*
 * domain_ends.c - ends that say whether they happened, and what of: bool results, epoch_domain_end_ex, epoch_domain_drain, and what a
 * receipt says since version 2.
 */
#include "kit/fixture.h"

#include <slab_diagnostics.h>

enum { MANY = 3000 };

static void calls_say_whether_they_happened(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create(a);
    epoch_domain_t* other = epoch_domain_create(a);
    CHECK(!epoch_domain_exit(d));
    CHECK(epoch_domain_enter(d));
    CHECK(epoch_domain_enter(other));
    CHECK(!epoch_domain_exit(d));
    CHECK(!epoch_domain_destroy(d));
    CHECK(!epoch_domain_force_close(d));
    CHECK(!epoch_domain_end(d)); /* its exit is refused, so there is no destroy: one refusal */
    CHECK_EQ(kit_refusals(a).domain_order, 5);
    CHECK_EQ(d->refcount, 1);
    CHECK(epoch_domain_end(other));
    CHECK(epoch_domain_enter(d)); /* twice */
    CHECK(!epoch_domain_end(d));  /* left once, not gone */
    CHECK_EQ(d->refcount, 1);
    CHECK(epoch_domain_exit(d));
    CHECK(!epoch_domain_force_close(d)); /* it has ended */
    CHECK(epoch_domain_destroy(d));
    CHECK(!epoch_domain_destroy(d));
    CHECK(!epoch_domain_enter(d));
    CHECK(!epoch_domain_end_ex(d, NULL));
    CHECK(!epoch_domain_drain(d, NULL));
    CHECK(!epoch_domain_enter(NULL));
    CHECK(!epoch_domain_exit(NULL));
    CHECK(!epoch_domain_end(NULL));
    CHECK(!epoch_domain_end_ex(NULL, NULL));
    CHECK(!epoch_domain_drain(NULL, NULL));
    CHECK(!epoch_domain_destroy(NULL));
    CHECK(!epoch_domain_force_close(NULL));
    epoch_domain_t* old = epoch_domain_wrap(a, 3, true);
    for (int i = 0; i < 20; i++) epoch_advance(a);
    CHECK(!epoch_domain_enter(old));
    CHECK(epoch_domain_destroy(old));
    slab_allocator_free(a);
}

#define CHECK_REFUSED(call, error, words)    \
    do {                                     \
        errno = 0;                           \
        CHECK(!(call));                      \
        CHECK_EQ(errno, error);              \
        CHECK_HAS(slab_last_error(), words); \
    } while (0)

static void a_function(void* arg) { (void)arg; }

/* Every call that gives bool, each way it is refused. */
static void refusals_say_why(void) {
    SlabAllocator* a = kit_create();
    EpochReceipt r;
    CHECK_REFUSED(epoch_domain_enter(NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_exit(NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_destroy(NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_force_close(NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_end(NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_end_ex(NULL, NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_drain(NULL, NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_reset(NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_detach(NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_attach(NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_receipt(NULL, &r), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_on_end(NULL, a_function, NULL), EINVAL, "NULL");

    epoch_domain_t* d = epoch_domain_create(a);
    CHECK_REFUSED(epoch_domain_exit(d), EINVAL, "innermost");
    CHECK_REFUSED(epoch_domain_end(d), EINVAL, "innermost");
    CHECK_REFUSED(epoch_domain_end_ex(d, NULL), EINVAL, "innermost");
    CHECK_REFUSED(epoch_domain_detach(d), EINVAL, "innermost");
    CHECK_REFUSED(epoch_domain_attach(d), EINVAL, "detached");
    CHECK_REFUSED(epoch_domain_receipt(d, &r), EINVAL, "ended");
    CHECK_REFUSED(epoch_domain_receipt(d, NULL), EINVAL, "NULL");
    CHECK_REFUSED(epoch_domain_on_end(d, NULL, NULL), EINVAL, "NULL");
    CHECK(epoch_domain_enter(d) && epoch_domain_detach(d));
    CHECK_REFUSED(epoch_domain_destroy(d), EBUSY, "inside");
    CHECK_REFUSED(epoch_domain_force_close(d), EBUSY, "inside");
    CHECK_REFUSED(epoch_domain_reset(d), EBUSY, "inside");
    CHECK_REFUSED(epoch_domain_drain(d, NULL), EBUSY, "inside");
    CHECK(epoch_domain_enter(d));
    CHECK_REFUSED(epoch_domain_end_ex(d, NULL), EBUSY, "inside");
    uint64_t order = kit_refusals(a).domain_order;
    CHECK_REFUSED(epoch_domain_end(d), EBUSY, "inside"); /* left all the same */
    CHECK_EQ(kit_refusals(a).domain_order, order + 1);
    CHECK_NULL(epoch_domain_current());
    CHECK_EQ(d->refcount, 1);
    CHECK(epoch_domain_attach(d) && epoch_domain_exit(d));
    CHECK_REFUSED(epoch_domain_force_close(d), ESTALE, "ended");
    CHECK_REFUSED(epoch_domain_on_end(d, a_function, NULL), ESTALE, "ended");
    CHECK(epoch_domain_destroy(d));
    CHECK_REFUSED(epoch_domain_enter(d), ESTALE, "destroyed");
    CHECK_REFUSED(epoch_domain_end(d), ESTALE, "destroyed");
    CHECK_REFUSED(epoch_domain_reset(d), ESTALE, "destroyed");
    CHECK_REFUSED(epoch_domain_on_end(d, a_function, NULL), ESTALE, "destroyed");

    epoch_domain_t* borrowed = epoch_domain_wrap(a, 3, true);
    CHECK_REFUSED(epoch_domain_reset(borrowed), EINVAL, "borrows");
    for (int i = 0; i < 20; i++) epoch_advance(a);
    CHECK_REFUSED(epoch_domain_enter(borrowed), ESTALE, "ring");
    CHECK_REFUSED(epoch_domain_force_close(borrowed), ESTALE, "ring");
    CHECK_REFUSED(epoch_domain_drain(borrowed, NULL), ESTALE, "ring");
    errno = 77;
    CHECK(epoch_domain_destroy(borrowed));
    slab_free(a, kit_hide(&r)); /* frees leave it alone */
    CHECK_EQ(errno, 77);
    slab_allocator_free(a);
}

static void* leaves_and_ends(void* arg) {
    epoch_domain_t* d = arg;
    if (!CHECK(epoch_domain_attach(d))) return NULL;
    return epoch_domain_end(d) ? arg : NULL;
}

/* Of several threads that end a domain at once exactly one destroys it. */
static void the_last_one_out_destroys(void) {
    SlabAllocator* a = kit_create();
    for (int round = 0; round < 200; round++) {
        pthread_t threads[3];
        epoch_domain_t* d = epoch_domain_create(a);
        for (int t = 0; t < 3; t++) CHECK(epoch_domain_enter(d) && epoch_domain_detach(d));
        for (int t = 0; t < 3; t++) threads[t] = kit_thread(leaves_and_ends, d);
        int destroyed = 0;
        for (int t = 0; t < 3; t++) {
            void* result = NULL;
            pthread_join(threads[t], &result);
            destroyed += result != NULL;
        }
        CHECK_EQ(destroyed, 1);
        CHECK_REFUSED(epoch_domain_destroy(d), ESTALE, "destroyed");
    }
    slab_allocator_free(a);
}

static void ended_with_a_receipt(void) {
    SlabAllocator* a = kit_create_cold();
    for (int round = 0; round < 4; round++) {
        epoch_domain_t* d = epoch_domain_begin(a, "told");
        EpochId id = d->epoch_id;
        uint64_t era = d->epoch_era;
        bool empty = round == 0, keeps = round == 2;
        if (keeps) d->auto_close = false;
        for (int i = 0; i < MANY && !empty; i++) (void)slab_malloc(a, 100);
        if (!empty) slab_free(a, slab_malloc(a, 5000));
        EpochReceipt r;
        memset(&r, 0xEE, sizeof r);
        CHECK(epoch_domain_end_ex(d, &r));
        KIT_BALANCED(&r);
        CHECK_EQ(r.version, 2);
        CHECK_EQ(r.epoch_id, id);
        CHECK_EQ(r.epoch_era, era);
        CHECK_STR(r.label, "told");
        CHECK_EQ(r.objects_released, empty ? 0 : MANY);
        CHECK_EQ(r.objects_freed, empty ? 0 : 1);
        CHECK_EQ(r.interrupts, 0); /* nobody else was there */
        CHECK_NULL(epoch_domain_current());
        CHECK(!epoch_domain_exit(d)); /* gone */
        CHECK_EQ(kit_live(a), 0);
        CHECK_EQ(kit_committed(a), 0);
    }
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    CHECK(epoch_domain_end_ex(d, NULL));
    slab_allocator_free(a);
}

static void* ends_it(void* d) {
    EpochReceipt r;
    memset(&r, 0xEE, sizeof r);
    EpochReceipt before = r;
    CHECK(!epoch_domain_end_ex(d, &r));
    CHECK(!epoch_domain_drain(d, &r));
    CHECK_EQ(memcmp(&r, &before, sizeof r), 0);
    return NULL;
}

static void nothing_done_when_refused(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "stays");
    void* p = slab_malloc(a, 100);
    uint64_t era = d->epoch_era;
    kit_on_thread(ends_it, d); /* not its scope */
    epoch_domain_t* inner = epoch_domain_begin(a, "inner");
    CHECK(!epoch_domain_end_ex(d, NULL)); /* not innermost */
    CHECK(!epoch_domain_drain(d, NULL));
    CHECK(epoch_domain_end(inner));
    CHECK(epoch_domain_enter(d));
    CHECK(!epoch_domain_end_ex(d, NULL)); /* inside twice */
    CHECK(!epoch_domain_drain(d, NULL));
    CHECK(epoch_domain_detach(d));
    CHECK(!epoch_domain_end_ex(d, NULL)); /* somebody may attach it */
    CHECK(!epoch_domain_drain(d, NULL));
    CHECK(epoch_domain_attach(d) && epoch_domain_exit(d));
    CHECK_EQ(kit_refusals(a).domain_order, 8);
    CHECK_EQ(d->refcount, 1);
    CHECK_EQ(d->epoch_era, era);
    CHECK_EQ(epoch_domain_current(), d);
    CHECK_EQ(kit_era_of(a, slab_malloc(a, 10)), era);
    CHECK(slab_free_checked(a, p));
    CHECK(epoch_domain_end_ex(d, NULL));
    d = epoch_domain_create(a);
    CHECK(!epoch_domain_end_ex(d, NULL)); /* never entered: there is nothing to leave */
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

static void borrowed_epochs(void) {
    SlabAllocator* a = kit_create();
    EpochReceipt r;
    epoch_domain_t* d = epoch_domain_wrap(a, 2, true);
    epoch_domain_t* second = epoch_domain_wrap(a, 2, true);
    CHECK(epoch_domain_enter(second) && epoch_domain_enter(d));
    void* p = slab_malloc(a, 300);
    CHECK(!epoch_domain_drain(d, &r)); /* another domain is in the epoch */
    CHECK_EQ(kit_refusals(a).domain_order, 1);
    CHECK(epoch_domain_end_ex(d, &r)); /* leaves, and the epoch goes on, as with exit */
    CHECK_EQ(r.version, 2);
    CHECK_EQ(r.epoch_era, 0);
    CHECK_EQ(epoch_state(a, 2), EPOCH_ACTIVE);
    CHECK(epoch_domain_drain(second, &r));
    CHECK_EQ(r.epoch_id, 2);
    CHECK_EQ(r.objects_escaped, 1);
    CHECK_EQ(epoch_state(a, 2), EPOCH_CLOSING);
    CHECK(slab_free_checked(a, p));
    d = epoch_domain_wrap(a, 5, true);
    CHECK(epoch_domain_enter(d));
    CHECK(slab_malloc(a, 300) != NULL);
    CHECK(epoch_domain_end_ex(d, &r));
    CHECK_EQ(r.epoch_id, 5);
    CHECK_EQ(r.objects_escaped, 1);
    d = epoch_domain_wrap(a, 6, false); /* drain is what it says, whatever auto_close says */
    CHECK(epoch_domain_drain(d, NULL));
    CHECK_EQ(epoch_state(a, 6), EPOCH_CLOSING);
    d = epoch_domain_wrap(a, 7, true);
    for (int i = 0; i < 20; i++) epoch_advance(a);
    uint64_t stale = kit_refusals(a).domain_stale;
    CHECK(!epoch_domain_drain(d, NULL));
    CHECK_EQ(kit_refusals(a).domain_stale, stale + 1);
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

static _Atomic int cleaned;
static void count_clean(void* arg) {
    (void)arg;
    atomic_fetch_add(&cleaned, 1);
}

static void what_escapes_lives_until_it_is_freed(void) {
    for (int inside = 0; inside < 2; inside++) {
        SlabAllocator* a = kit_create_cold();
        epoch_domain_t* d = inside ? epoch_domain_begin(a, "drains") : epoch_domain_create_labeled(a, "drains");
        EpochId id = d->epoch_id;
        uint64_t era = d->epoch_era;
        unsigned char* kept[3];
        static const size_t sizes[] = {100, 6000, 300000};
        atomic_store(&cleaned, 0);
        CHECK(slab_epoch_on_end(a, id, count_clean, NULL));
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < 50; i++) slab_free(a, epoch_domain_malloc(d, sizes[k]));
            kept[k] = epoch_domain_malloc(d, sizes[k]);
            REQUIRE(kept[k] != NULL);
            kit_fill(kept[k], sizes[k], (uint64_t)k);
        }
        EpochReceipt r;
        CHECK(epoch_domain_drain(d, &r));
        KIT_BALANCED(&r);
        CHECK_STR(r.label, "drains");
        CHECK_EQ(r.epoch_era, era);
        CHECK_EQ(r.objects_escaped, 3);
        CHECK_EQ(r.objects_freed, 150);
        CHECK_EQ(r.objects_released, 0);
        CHECK_NULL(epoch_domain_current());
        CHECK(!epoch_domain_destroy(d)); /* gone; and what escaped is not */
        CHECK_EQ(kit_live(a), 3);
        errno = 0;
        CHECK_NULL(slab_malloc_epoch(a, 10, id));
        CHECK_EQ(errno, ESTALE);
        epoch_domain_t* next = epoch_domain_begin(a, "next"); /* the record is in use again */
        CHECK_NE(next->epoch_era, era);
        CHECK(slab_malloc(a, 100) != NULL);
        CHECK(epoch_domain_end(next));
        for (int k = 0; k < 3; k++) {
            CHECK_EQ(atomic_load(&cleaned), 0);
            CHECK(kit_intact(kept[k], sizes[k], (uint64_t)k));
            CHECK(slab_free_checked(a, kept[k]));
            CHECK(!slab_free_checked(a, kit_hide(kept[k])));
        }
        CHECK_EQ(atomic_load(&cleaned), 1);
        CHECK_EQ(kit_committed(a), 0);
        CHECK(!epoch_close_era(a, era, EPOCH_RELEASE, NULL)); /* its record is gone, too */
        slab_allocator_free(a);
    }
}

static void a_drained_one_is_released_by_its_era(void) {
    SlabAllocator* a = kit_create_cold();
    epoch_domain_t* d = epoch_domain_begin(a, "late");
    uint64_t era = d->epoch_era;
    void* p = slab_malloc(a, 100);
    CHECK(epoch_domain_drain(d, NULL));
    EpochReceipt r;
    CHECK(epoch_close_era(a, era, EPOCH_RELEASE, &r));
    CHECK_EQ(r.objects_released, 1);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    CHECK_EQ(kit_committed(a), 0);
    /* One that has ended before tells of that end. */
    d = epoch_domain_begin(a, "before");
    CHECK(slab_malloc(a, 100) != NULL);
    CHECK(epoch_domain_exit(d));
    CHECK(epoch_domain_drain(d, &r));
    CHECK_STR(r.label, "before");
    CHECK_EQ(r.objects_released, 1);
    d = epoch_domain_create_labeled(a, "empty");
    era = d->epoch_era;
    CHECK(epoch_domain_drain(d, &r));
    CHECK_STR(r.label, "empty");
    CHECK_EQ(r.epoch_era, era);
    CHECK_EQ(r.objects_allocated, 0);
    slab_allocator_free(a);
}

/* Domains that drain leave nothing behind once their objects are gone: the records of all of them are used again. */
static void records_do_not_leak(void) {
    SlabAllocator* a = kit_create();
    SlabPhaseStats rows[1];
    size_t rounds = check_count_whole(300000); /* more than there are records */
    void* kept = NULL;
    for (size_t i = 0; i < rounds; i++) {
        epoch_domain_t* d = epoch_domain_begin(a, "drained");
        if (d == NULL) {
            CHECK(d != NULL);
            break;
        }
        void* p = slab_malloc(a, 64);
        CHECK(epoch_domain_drain(d, NULL));
        slab_free(a, kept);
        kept = p;
    }
    slab_free(a, kept);
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(slab_stats_phases(a, rows, 1), 0);
    CHECK_EQ(kit_global(a).draining_phases, 0);
    slab_allocator_free(a);
}

typedef struct Passing {
    SlabAllocator* a;
    _Atomic(void*) escaped;
    _Atomic size_t freed; /* by the other thread */
    pthread_barrier_t meet;
    epoch_domain_t* d;
} Passing;

static void* frees_what_escaped(void* arg) {
    Passing* s = arg;
    for (size_t n = check_count(3000); n != 0;) {
        void* p = atomic_exchange(&s->escaped, NULL);
        if (p == NULL) {
            sched_yield();
            continue;
        }
        CHECK_EQ(*(uint64_t*)p, 0x1234);
        CHECK(slab_free_checked(s->a, p));
        atomic_fetch_add(&s->freed, 1);
        n--;
    }
    return NULL;
}

static void freed_by_others_while_it_drains(void) {
    Passing s = {.a = kit_create()};
    pthread_t t = kit_thread(frees_what_escaped, &s);
    for (size_t n = 1; n <= check_count(3000); n++) {
        epoch_domain_t* d = epoch_domain_begin(s.a, "passes");
        for (int i = 0; i < 20; i++) (void)slab_malloc(s.a, 48);
        uint64_t* p = slab_malloc(s.a, 64);
        *p = 0x1234;
        atomic_store(&s.escaped, p);
        EpochReceipt r;
        CHECK(epoch_domain_drain(d, &r));
        KIT_BALANCED(&r);
        CHECK(r.objects_escaped == 20 || r.objects_escaped == 21);
        CHECK(epoch_close_era(s.a, r.epoch_era, EPOCH_DRAIN, &r));
        while (atomic_load(&s.freed) != n) sched_yield(); /* a release would end it */
        (void)epoch_close_era(s.a, r.epoch_era, EPOCH_RELEASE, NULL);
    }
    pthread_join(t, NULL);
    slab_allocator_free(s.a);
}

static void* allocates_and_waits(void* arg) {
    Passing* s = arg;
    CHECK(slab_malloc_epoch(s->a, 100, s->d->epoch_id) != NULL);
    pthread_barrier_wait(&s->meet);
    pthread_barrier_wait(&s->meet);
    return NULL;
}

static void receipts_count_interrupts_and_regions(void) {
    SlabAllocator* a = kit_create_cold();
    for (int others = 0; others < 2; others++) {
        Passing s = {.a = a, .d = epoch_domain_begin(a, "counted")};
        pthread_t t = 0;
        pthread_barrier_init(&s.meet, NULL, 2);
        if (others) {
            t = kit_thread(allocates_and_waits, &s);
            pthread_barrier_wait(&s.meet);
        }
        for (int i = 0; i < 2000; i++) (void)slab_malloc(a, 100); /* regions, unless the option says otherwise */
        void* large = slab_malloc(a, 5000);                       /* a slab */
        EpochReceipt r;
        CHECK(large != NULL);
        CHECK(epoch_domain_end_ex(s.d, &r));
        CHECK_EQ(r.interrupts, kit_shared() ? 0 : others); /* who holds the banks knows that nobody is inside */
        if (kit_shared()) CHECK_LE(r.regions_returned, r.slabs_returned);
        else CHECK_GE(r.regions_returned, 1 + others);
        CHECK_GT(r.slabs_returned, r.regions_returned);
        if (others) {
            pthread_barrier_wait(&s.meet);
            pthread_join(t, NULL);
        }
        pthread_barrier_destroy(&s.meet);
    }
    SlabOptions o = kit_options();
    o.bump = 2;
    SlabAllocator* by_class = kit_create_with(&o);
    epoch_domain_t* d = epoch_domain_begin(by_class, NULL);
    CHECK(slab_malloc(by_class, 100) != NULL);
    EpochReceipt r;
    CHECK(epoch_domain_end_ex(d, &r));
    CHECK_EQ(r.regions_returned, 0);
    CHECK_EQ(r.slabs_returned, 1);
    slab_allocator_free(by_class);
    slab_allocator_free(a);
}

static void* exits_after_drain(void* arg) {
    Passing* s = arg;
    epoch_domain_t* d = epoch_domain_begin(s->a, "orphan");
    atomic_store(&s->escaped, slab_malloc(s->a, 64));
    CHECK(epoch_domain_drain(d, NULL));
    return NULL;
}

static void in_a_child(void* arg) {
    Passing* s = arg;
    void* p = atomic_load(&s->escaped);
    CHECK_EQ(kit_live(s->a), 2);
    CHECK(slab_free_checked(s->a, p));
    EpochReceipt r;
    CHECK(epoch_domain_drain(s->d, &r));
    CHECK_EQ(r.objects_escaped, 1);
    CHECK_EQ(kit_live(s->a), 1);
}

static void threads_and_children(void) {
    Passing s = {.a = kit_create()};
    kit_on_thread(exits_after_drain, &s);
    CHECK_EQ(kit_live(s.a), 1);
    s.d = epoch_domain_begin(s.a, "forks");
    CHECK(slab_malloc(s.a, 64) != NULL);
    check_child(in_a_child, &s);
    CHECK_EQ(kit_live(s.a), 2);
    CHECK(slab_free_checked(s.a, atomic_load(&s.escaped)));
    CHECK(epoch_domain_end_ex(s.d, NULL));
    CHECK_EQ(kit_live(s.a), 0);
    slab_allocator_free(s.a);
}

/* Cleanups of a domain that is being ended for good ask for it again. */
enum { AGAIN_DESTROY, AGAIN_DRAIN, AGAIN_END, AGAIN_ENTER, AGAIN_CLOSE, AGAIN_RESET, AGAINS };
typedef struct Again {
    epoch_domain_t* d;
    int how;
    bool ran, done;
} Again;
static void again(void* arg) {
    Again* g = arg;
    g->ran = true;
    if (g->how == AGAIN_DESTROY) g->done = epoch_domain_destroy(g->d);
    if (g->how == AGAIN_DRAIN) g->done = epoch_domain_drain(g->d, NULL);
    if (g->how == AGAIN_END) g->done = epoch_domain_end_ex(g->d, NULL);
    if (g->how == AGAIN_ENTER) g->done = epoch_domain_enter(g->d);
    if (g->how == AGAIN_CLOSE) g->done = epoch_domain_force_close(g->d);
    if (g->how == AGAIN_RESET) g->done = epoch_domain_reset(g->d);
}

static void ended_once(void) {
    SlabAllocator* a = kit_create();
    uint64_t open = kit_global(a).open_phases;
    for (int outer = AGAIN_DESTROY; outer <= AGAIN_END; outer++) {
        for (int how = 0; how < AGAINS; how++) {
            Again g = {.d = epoch_domain_begin(a, "once"), .how = how};
            g.d->auto_close = false;
            void* p = slab_malloc(a, 64);
            CHECK(epoch_domain_on_end(g.d, again, &g));
            if (outer == AGAIN_DRAIN) CHECK(slab_free_checked(a, p));
            if (outer == AGAIN_DESTROY) CHECK(epoch_domain_exit(g.d));
            CHECK(outer == AGAIN_DESTROY ? epoch_domain_destroy(g.d)
                  : outer == AGAIN_DRAIN ? epoch_domain_drain(g.d, NULL)
                                         : epoch_domain_end_ex(g.d, NULL));
            CHECK(g.ran && !g.done);
            CHECK_NULL(epoch_domain_current());
            epoch_domain_t *one = epoch_domain_create(a), *two = epoch_domain_create(a);
            CHECK(one != two);
            CHECK(epoch_domain_destroy(one) && epoch_domain_destroy(two));
            CHECK_EQ(kit_global(a).open_phases, open);
        }
    }
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(calls_say_whether_they_happened),
    CHECK_CASE(refusals_say_why),
    CHECK_CASE(the_last_one_out_destroys),
    CHECK_CASE(ended_with_a_receipt),
    CHECK_CASE(nothing_done_when_refused),
    CHECK_CASE(borrowed_epochs),
    CHECK_CASE(what_escapes_lives_until_it_is_freed),
    CHECK_CASE(a_drained_one_is_released_by_its_era),
    CHECK_CASE(records_do_not_leak),
    CHECK_CASE(freed_by_others_while_it_drains),
    CHECK_CASE(receipts_count_interrupts_and_regions),
    CHECK_CASE(threads_and_children),
    CHECK_CASE(ended_once),
};
CHECK_MAIN(cases)
