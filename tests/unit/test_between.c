/*
 * test_between.c - what another thread does between any two instructions of a call.
 *
 * A call is run once with a trap after each instruction, to know its path. Then for each instruction of the library on that
 * path it is run again, with a breakpoint there: the handler has the worker do something, until that is done or waits for a
 * lock that the call holds, and the call goes on. So what comes between is tried everywhere, and nothing is left to chance.
 *
 * What the worker does can be halved: it stands at one of its atomic instructions as the call begins, having looked at
 * everything before, and does the rest where the call stops.
 */
#define _GNU_SOURCE
#include "kit/one.h"
#include "kit/step.h"

#include "account/charge.h"
#include "heap/close.h"
#include "heap/finish.h"
#include "heap/late_frees.h"
#include "heap/partial.h"
#include "heap/put_off.h"
#include "threads/registry.h"
#include "heap/settle.h"
#include "stats/report_walk.h"

#include <link.h>
#include <semaphore.h>
#include <slab_lane.h>
#include <sys/mman.h>
#include <ucontext.h>

#if CAN_STEP
enum { TRAP = 0x100, BREAKPOINT = 0xcc };
static greg_t* registers_in(void* context) { return ((ucontext_t*)context)->uc_mcontext.gregs; }
#else
enum { TRAP = 0, BREAKPOINT = 0, REG_RIP = 0, REG_EFL = 0 };
#define greg_t long long /* some systems have a type of this name without such registers */
static greg_t* registers_in(void* context) { return context; }
#endif

/* ---- a call, and what comes between ---- */

enum { STEPS_MAX = 1 << 16, HALVES_MAX = 3 /* and before any lock is held */, LOCKED = 0xf0 /* the prefix of atomic instructions */ };
enum { PLACES_MAX = 128 };
extern char __executable_start, etext; /* the program, and the library in it */

/* A thread's breakpoint, and the path on which it is. */
typedef struct Stop {
    uint8_t* path[STEPS_MAX]; /* instructions of the library, in the order in which they were run */
    unsigned steps;
    bool learning;
    uint8_t* at;     /* NULL: none */
    uint8_t there;   /* what it stands for */
    unsigned passes; /* before the thread is to stop there */
    bool stopped;
} Stop;

static struct Between {
    pthread_t worker;
    sem_t go, halved, rest, done;
    void (*meanwhile)(void); /* NULL: the worker is to end */
    _Atomic bool finished;
    Stop call, other;
    struct sigaction before;
} between;

static _Thread_local bool is_worker;

static void stop_at(Stop* s, unsigned step) {
    s->at = s->path[step];
    s->there = *s->at;
    s->passes = 0;
    for (unsigned n = 0; n < step; n++) s->passes += s->path[n] == s->at;
}

/* What the thread does, with its breakpoint, or learning its path. */
static void watched(Stop* s, void (*fn)(void)) {
    s->stopped = false;
    if (s->at != NULL) *s->at = BREAKPOINT;
    if (s->learning) kit_trap(true);
    fn();
    if (s->learning) kit_trap(false);
    if (s->at != NULL) *s->at = s->there;
}

static void* work(void* unused) {
    (void)unused;
    is_worker = true;
    for (;;) {
        while (sem_wait(&between.go) != 0) {}
        if (between.meanwhile == NULL) return NULL;
        watched(&between.other, between.meanwhile);
        tsi_store_release(&between.finished, true);
        sem_post(&between.halved); /* where it did not stop */
        sem_post(&between.done);
    }
}

static bool waits_for_us(void) {
    const TsiPhases* phases = &arena->phases;
    uint32_t waiters = tsi_load_relaxed(&arena->space.lock.waiters) | tsi_load_relaxed(&phases->ring_lock.waiters);
    const TsiTable* tables[] = {&phases->incs, &phases->ends, &phases->labels.records, &arena->heaps, &arena->rooms, &arena->domains, &arena->bindings};
    for (unsigned n = 0; n < sizeof tables / sizeof *tables; n++) waiters |= tsi_load_relaxed(&tables[n]->lock.waiters);
    for (unsigned n = 0; n < TSI_STRIPES; n++) waiters |= tsi_load_relaxed(&tsi_stripes[n].lock.waiters);
    return waiters != 0;
}

static void go_on(void) { sem_post(between.other.at != NULL ? &between.rest : &between.go); }

/* No function of the system is called before the breakpoint is gone: it may stand on the way there. */
static void on_trap(int sig, siginfo_t* info, void* context) {
    (void)sig;
    (void)info;
    Stop* s = is_worker ? &between.other : &between.call;
    greg_t* r = registers_in(context);
    uint8_t* ip = (uint8_t*)(uintptr_t)r[REG_RIP];
    if (s->learning) {
        bool ours = ip >= (uint8_t*)&__executable_start && ip < (uint8_t*)&etext;
        if (ours && s->steps < STEPS_MAX) s->path[s->steps++] = ip;
        return;
    }
    if (ip - 1 != s->at || *s->at != BREAKPOINT) { /* one further, and not yet */
        *s->at = BREAKPOINT;
        r[REG_EFL] &= ~TRAP;
        return;
    }
    *s->at = s->there;
    r[REG_RIP]--;
    if (s->passes-- != 0) {
        r[REG_EFL] |= TRAP;
        return;
    }
    int saved = errno;
    s->stopped = true;
    if (is_worker) {
        sem_post(&between.halved);
        while (sem_wait(&between.rest) != 0) {}
    } else {
        go_on();
        while (!tsi_load_acquire(&between.finished) && !waits_for_us()) sched_yield();
    }
    errno = saved;
}

/* What is tried: `call` with `meanwhile` in between, after `ready` and before `look`. */
typedef struct Try {
    void (*ready)(void);
    void (*call)(void);
    void (*meanwhile)(void);
    void (*look)(void);
    bool halved;
} Try;

static void once(const Try* t) {
    t->ready();
    between.meanwhile = t->meanwhile;
    between.finished = false;
    while (sem_trywait(&between.halved) == 0) {}
    bool before = between.other.at != NULL || between.other.learning; /* it begins, or is done */
    if (before) {
        sem_post(&between.go);
        while (sem_wait(&between.halved) != 0) {}
    }
    watched(&between.call, t->call);
    if (!between.call.stopped && (!before || between.other.stopped)) go_on();
    while (sem_wait(&between.done) != 0) {}
    while (sem_trywait(&between.rest) == 0) {} /* where it did not stop */
    t->look();
    kit_check(a);
}

/* The path of either where the other comes later, after what is made once. */
static void learn(const Try* t) {
    between.call.at = between.other.at = NULL;
    between.call.steps = between.other.steps = 0;
    for (unsigned lap = 0; lap < 5; lap++) {
        between.call.learning = lap == 3;
        between.other.learning = lap == 4;
        once(t);
    }
    between.other.learning = false;
}

/* At one instruction in `wide`, or in kit_stride(3) where that is more; below scale 1 at about PLACES_MAX places. */
static void everywhere_by(Try t, unsigned wide) {
    unsigned stride = wide * kit_stride(1) > kit_stride(3) ? wide * kit_stride(1) : kit_stride(3);
    struct sigaction sa;
    unsigned stops = 0, laps = 0, halves = 0;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_trap;
    sa.sa_flags = SA_SIGINFO;
    REQUIRE_EQ(sigaction(SIGTRAP, &sa, &between.before), 0);
    learn(&t);
    bool large = slab_page_size() > 4096;
    if (check_scale() < 1 && between.call.steps / stride > PLACES_MAX) stride = between.call.steps / PLACES_MAX;
    for (unsigned half = 0; half < (t.halved ? between.other.steps : 1) && halves < HALVES_MAX; half++) {
        if (t.halved && *between.other.path[half] != LOCKED) continue;
        for (unsigned k = kit_first(stride, half); k < between.call.steps; k += stride, laps++) {
            stop_at(&between.call, k);
            if (t.halved) stop_at(&between.other, half);
            once(&t);
            stops += between.call.stopped;
        }
        halves++;
    }
    REQUIRE_EQ(sigaction(SIGTRAP, &between.before, NULL), 0);
    printf("stopped %u times, %u asked, %u halves\n", stops, laps, halves);
    /* A call that meets the other in its bracket leaves out the other's lines: most of the path where pages are large. */
    REQUIRE(!CAN_STEP || (between.call.steps > 40 && stops > laps / (t.halved && large ? 40 : 10)));
}

static void everywhere(Try t) { everywhere_by(t, 1); }

/* A stride that meets a path of so many steps once at least. */
static unsigned at_most(unsigned stride, unsigned steps) { return stride < steps ? stride : steps > 0 ? steps : 1; }

/* The other stands at one of its instructions as the call begins, and does the rest at one of the call's: so many pairs of these. */
static void crossed(Try t) {
    unsigned most = check_scale() > 1 ? 40000 : check_scale() >= 1 ? 2000 : 100, stride = 1, stops = 0, laps = 0;
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_trap;
    sa.sa_flags = SA_SIGINFO;
    REQUIRE_EQ(sigaction(SIGTRAP, &sa, &between.before), 0);
    learn(&t);
    while (between.other.steps * between.call.steps / (stride * stride) > (CHECK_ASAN ? most / 4 : most)) stride++;
    unsigned by = at_most(stride, between.other.steps), fine = at_most(stride, between.call.steps);
    for (unsigned half = kit_first(by, 1); half < between.other.steps; half += by) {
        for (unsigned k = kit_first(fine, half); k < between.call.steps; k += fine, laps++) {
            stop_at(&between.other, half);
            stop_at(&between.call, k);
            once(&t);
            stops += between.call.stopped && between.other.stopped;
        }
    }
    between.other.at = between.call.at = NULL;
    REQUIRE_EQ(sigaction(SIGTRAP, &between.before, NULL), 0);
    printf("stopped %u times both, %u asked\n", stops, laps);
    /* With large pages a sum may leave out most of the path, like a call of everywhere_by. */
    REQUIRE(!CAN_STEP || stops > laps / (slab_page_size() > 4096 ? 40 : 10));
}

/* ---- allocators ---- */

static epoch_domain_t *neighbour, *d;
static size_t size;
static uint64_t rest; /* bytes committed when everything of a try has gone */

static void open_with(uint8_t bump, size_t bytes) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    o.bump = bump;
    o.by_malloc = 2; /* an object is what lies in the slot, with AddressSanitizer, too */
    kit_open_with(o);
    size = bytes;
    neighbour = epoch_domain_create(a); /* so that chunks keep their class */
    REQUIRE(epoch_domain_malloc(neighbour, size) != NULL);
    rest = kit_committed_now(a);
    sem_init(&between.go, 0, 0);
    sem_init(&between.halved, 0, 0);
    sem_init(&between.rest, 0, 0);
    sem_init(&between.done, 0, 0);
    between.worker = kit_thread(work, NULL);
}
enum { SMALL = 48 }; /* a slab is a page */
static void open_regions(void) { open_with(0, SMALL); }
static void open_classes(void) { open_with(TSI_BUMP_OFF, SMALL); }
static void open_paged(void) { open_with(TSI_BUMP_OFF, slab_page_size() / 4); } /* a slab is several */
static void close_allocator(void) {
    between.meanwhile = NULL;
    sem_post(&between.go);
    pthread_join(between.worker, NULL);
    slab_allocator_free(a);
}

/* ---- before ---- */

static void *p[2], *third;
static bool freed[2];
static EpochReceipt receipt;

static void two(void) {
    memset(freed, 0, sizeof freed);
    REQUIRE((d = epoch_domain_create_labeled(a, "between")) != NULL);
    for (unsigned k = 0; k < 2; k++) REQUIRE((p[k] = epoch_domain_malloc(d, size)) != NULL);
}
static void give_second(void) {
    REQUIRE(slab_free_checked(a, p[1]));
    freed[1] = true;
}
static void one(void) {
    two();
    give_second();
}
/* Of the worker. */
static void let_them(void (*fn)(void)) {
    between.meanwhile = fn;
    between.finished = false;
    Stop* s = &between.other;
    uint8_t* at = s->at;
    bool learning = s->learning, stopped = s->stopped;
    s->at = NULL;
    s->learning = false;
    sem_post(&between.go);
    while (sem_wait(&between.done) != 0) {}
    s->at = at;
    s->learning = learning;
    s->stopped = stopped;
}
static void one_of_theirs(void) { let_them(one); }
static void two_late(void) {
    two();
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL));
}
static void one_late(void) {
    two_late();
    give_second();
}
static void two_late_of_three(void) {
    two();
    REQUIRE((third = epoch_domain_malloc(d, size)) != NULL);
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL));
    REQUIRE(slab_free_checked(a, third));
}

/* The second has grown where it is, and may again. */
static void two_that_grow(void) {
    two();
    REQUIRE_EQ(kit_hide(slab_realloc(a, p[1], 2 * size)), p[1]);
    memset(p[1], 7, 2 * size);
}

/* ---- what is done ---- */

static void grow_second(void) {
    void* q = slab_realloc(a, p[1], 4 * size);
    if (q != NULL) p[1] = q;
}

static void free_first(void) { freed[0] |= slab_free_checked(a, p[0]); }
static void free_second(void) { freed[1] |= slab_free_checked(a, p[1]); }
/* Its slab goes, and is another phase's. */
static epoch_domain_t* next;
static void free_first_and_go_on(void) {
    free_first();
    next = epoch_domain_create(a);
    (void)epoch_domain_malloc(next, size);
}
static bool freed_again;
static void free_first_again(void) { freed_again = slab_free_checked(a, p[0]); }
static void end_it(EpochCloseMode mode) { (void)tsi_epoch_end(arena, tsi_phases_resolve(&arena->phases, d->epoch_id), mode, TSI_END_SCOPE, &receipt); }
static void drain(void) { end_it(EPOCH_DRAIN); }
static void release(void) { end_it(EPOCH_RELEASE); }
static void count(void) { tsi_late_count(arena); }
static void thin(void) { tsi_put_off_no_more(tsi_binding_get(arena, false)); }
static void trim(void) { slab_trim(a); }

/* ---- afterwards ---- */

static void all_is_gone(void) {
    REQUIRE_EQ(kit_committed_now(a), rest);
    REQUIRE_EQ(kit_live(a), 1);
    epoch_domain_destroy(d);
}
static void both_are_gone(void) {
    REQUIRE(freed[0] && freed[1]);
    all_is_gone();
}
/* Who frees the last while its slab becomes an orphan ends the slab's life: the drain tells of both all the same. */
static void both_were_counted(void) {
    KIT_BALANCED(&receipt);
    REQUIRE_EQ(receipt.objects_allocated, 2);
    both_are_gone();
}
static void the_next_goes_on(void) {
    kit_check(a);
    REQUIRE_EQ(kit_live(a), 2);
    epoch_domain_destroy(next);
    both_are_gone();
}
/* Its page, where it had one, went with it. */
static void the_first_is_left(void) {
    REQUIRE(!freed[0] && freed[1]);
    kit_check(a);
    REQUIRE_EQ(kit_live(a), 2);
    free_first();
    both_are_gone();
}
/* It grew where it was before the phase ended, or moved to the thread's epoch. */
static void it_has_grown(void) {
    KIT_BALANCED(&receipt);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(r.objects_allocated - r.objects_freed, r.objects_escaped);
    REQUIRE_EQ(slab_usable_size(a, p[1]), 4 * size);
    for (size_t n = 0; n < 2 * size; n++) REQUIRE_EQ(((uint8_t*)p[1])[n], 7);
    free_first();
    give_second();
    slab_trim(a);
    both_are_gone();
}
/* The same, of a phase that was released: it is gone, or moved. */
static void it_grew_or_ended(void) {
    KIT_BALANCED(&receipt);
    (void)slab_free_checked(a, p[1]);
    slab_trim(a);
    all_is_gone();
}
/* Of two frees of one object one was right. */
static void it_was_freed_once(void) {
    REQUIRE_EQ(freed[0] + freed_again, 1);
    freed[0] = true;
    REQUIRE_EQ(kit_live(a), 2);
    give_second();
    both_are_gone();
}
/* An end tells of each object once: its free was in time, or it was refused. */
static void it_ended_once(void) {
    KIT_BALANCED(&receipt);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(r.objects_freed, 1 + freed[0]);
    REQUIRE_EQ(r.objects_released, !freed[0]);
    all_is_gone();
}
/* A trim takes what is empty and nothing else. */
static void the_second_is_left(void) {
    REQUIRE(freed[0] && !freed[1]);
    REQUIRE_EQ(kit_live(a), 2);
    REQUIRE_EQ(slab_usable_size(a, p[1]), size);
    give_second();
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    REQUIRE_EQ(r.objects_freed, 2);
    both_are_gone();
}

/* ---- tests ---- */

/* The last object of a slab goes while the slab is on its way to the orphans: either sees the other. */
static void a_last_free_while_it_drains(void) {
    everywhere((Try){one, drain, free_first, both_were_counted, false});
    everywhere((Try){one, drain, free_first, both_were_counted, true});
}
static void a_drain_while_the_last_is_freed(void) {
    everywhere((Try){one, free_first, drain, both_are_gone, false});
    everywhere((Try){one_of_theirs, free_first, drain, both_are_gone, false});
}
static void a_free_while_it_is_released(void) {
    everywhere((Try){one, release, free_first, it_ended_once, false});
    everywhere((Try){one, release, free_first, it_ended_once, true});
}
static void a_release_while_it_is_freed(void) {
    everywhere((Try){one, free_first, release, it_ended_once, false});
    everywhere((Try){one_of_theirs, free_first, release, it_ended_once, false});
}
/* Of two late frees one is the last, whichever. */
static void two_last_frees(void) {
    everywhere((Try){two_late, free_first, free_second, both_are_gone, false});
    everywhere((Try){two_late, free_first, free_second, both_are_gone, true});
}
static void one_object_freed_twice(void) {
    everywhere((Try){two_late, free_first, free_first_again, it_was_freed_once, false});
    everywhere((Try){two_late, free_first, free_first_again, it_was_freed_once, true});
}
/* The last object goes while the pages beside it do: its freer leaves the slab to who gives them back. */
static void one_ended(void) {
    one();
    drain();
}
static void a_last_free_while_pages_go(void) {
    one_ended();
    bool later = tsi_binding_get(arena, false)->put_off_count != 0; /* pages of 64 KiB are too much to wait */
    free_first();
    both_are_gone();
    everywhere(later ? (Try){one_ended, thin, free_first, both_are_gone, false} : (Try){one, drain, free_first, both_are_gone, false});
}
/* What drains is counted while the slab goes. */
static void a_last_free_while_it_is_counted(void) {
    everywhere((Try){one_late, count, free_first_and_go_on, the_next_goes_on, false});
}
static void a_free_while_it_is_counted(void) {
    everywhere((Try){two_late_of_three, count, free_second, the_first_is_left, false});
}
static void a_count_while_the_last_is_freed(void) {
    everywhere((Try){one_late, free_first, count, both_are_gone, false});
}

/* ---- a phase gets another label ---- */

/* What all labels together have told, and what the test knows. */
typedef struct Told {
    uint64_t allocated, freed, released, live, live_bytes, bytes_allocated, bytes_freed, bytes_ended;
} Told;
static Told told_before;
static unsigned made, frees;
static uint64_t bytes_made, bytes_freed_more;

static Told told_now(void) {
    SlabLabelStats rows[4];
    size_t n = slab_stats_labels(a, rows, 4);
    Told t = {0, 0, 0, 0, 0, 0, 0, 0};
    REQUIRE(n <= 4);
    for (size_t k = 0; k < n; k++) {
        t.allocated += rows[k].objects_allocated;
        t.freed += rows[k].objects_freed;
        t.released += rows[k].objects_released;
        t.live += rows[k].live_objects;
        t.live_bytes += rows[k].live_bytes;
        t.bytes_allocated += rows[k].bytes_allocated;
        t.bytes_freed += rows[k].bytes_freed;
        t.bytes_ended += rows[k].bytes_freed + rows[k].bytes_released;
    }
    return t;
}
/* The phase has been released: the labels have heard of each object once. */
static void labels_were_told(void) {
    Told now = told_now();
    REQUIRE_EQ(now.allocated - told_before.allocated, made);
    REQUIRE_EQ(now.freed - told_before.freed, frees);
    REQUIRE_EQ(now.released - told_before.released, made - frees);
    REQUIRE_EQ(now.live, told_before.live);
    REQUIRE_EQ(now.live_bytes, told_before.live_bytes);
    REQUIRE_EQ(now.bytes_allocated - told_before.bytes_allocated, now.bytes_ended - told_before.bytes_ended);
}
static void labels_have_both(void) {
    made = 2;
    frees = (unsigned)freed[0] + freed[1];
    labels_were_told();
    all_is_gone();
}
static void relabel(void) { slab_epoch_set_label(a, d->epoch_id, "another"); }
static void relabel_and_release(void) {
    relabel();
    release();
}
static void one_of_theirs_told(void) {
    told_before = told_now();
    one_of_theirs();
}
/* A thread gives pages of their slab back, and meanwhile the phase is released, which leaves the slab to that thread. */
static void released_while_pages_go(void) {
    _Atomic uint64_t* tag = &tsi_slab(&arena->space, kit_place(a, p[0]).slab_id)->tag;
    REQUIRE_EQ(tsi_tag_state(tsi_load_seq(tag)), TSI_SLAB_ORPHAN);
    tsi_store_seq(tag, (tsi_load_seq(tag) & ~(uint64_t)TSI_SLAB_STATE) | TSI_SLAB_PARTIAL);
    release();
    REQUIRE_EQ(receipt.slabs_deferred, 1);
}
static void two_while_pages_go(void) {
    told_before = told_now();
    two_late();
    released_while_pages_go();
}
static void let_go(void) {
    uint32_t id = kit_place(a, p[0]).slab_id;
    tsi_slab_complete(arena, tsi_binding_get(arena, false), id, tsi_partial_let_go(&arena->space, id));
}
/* The same, of which the owner has freed one and another thread one, and that thread has let go of the slab. */
static uint32_t slab_of_first;
static void four_let_go(void) {
    void* q[2];
    told_before = told_now();
    two();
    for (unsigned k = 0; k < 2; k++) REQUIRE((q[k] = epoch_domain_malloc(d, size)) != NULL);
    REQUIRE(slab_free_checked(a, q[0]));
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL));
    REQUIRE(slab_free_checked(a, q[1]));
    made = 4;
    frees = 2;
    released_while_pages_go();
    slab_of_first = kit_place(a, p[0]).slab_id;
    (void)tsi_partial_let_go(&arena->space, slab_of_first);
}
static void complete(void) {
    tsi_slab_complete(arena, tsi_binding_get(arena, false), slab_of_first, tsi_load_seq(&tsi_slab(&arena->space, slab_of_first)->tag));
}
static void count_and_relabel(void) {
    count();
    relabel();
}
static void all_were_told(void) {
    labels_were_told();
    all_is_gone();
}
static void a_relabelling_while_one_is_freed(void) {
    everywhere((Try){one_of_theirs_told, free_first, relabel_and_release, labels_have_both, false});
}
static void a_relabelling_while_a_slab_goes(void) {
    everywhere_by((Try){two_while_pages_go, let_go, relabel, labels_have_both, false}, 7);
    everywhere_by((Try){four_let_go, count_and_relabel, complete, all_were_told, false}, 61);
}

/* Another label, and the first one again, while somebody reads. */
static void one_told(void) {
    told_before = told_now();
    one();
    made = 2;
    frees = 1;
}
static void there_and_back(void) {
    relabel();
    for (unsigned k = 0; k < 3; k++) made += epoch_domain_malloc(d, size) != NULL;
    frees += slab_free_checked(a, p[0]);
    slab_epoch_set_label(a, d->epoch_id, "between");
}
static void read_labels(void) { (void)told_now(); }
static void all_are_released(void) {
    release();
    all_were_told();
}
static void two_relabellings_while_it_is_read(void) {
    everywhere_by((Try){one_told, read_labels, there_and_back, all_are_released, false}, 401); /* a long way */
}

/* The gap of a run moves on while it is counted. */
static SlabRun run;
static void owned_with_one_freed(void) {
    SlabDomainOptions o = {.struct_size = sizeof o, .label = "between", .flags = SLAB_DOMAIN_OWNER_ONLY};
    REQUIRE((d = epoch_domain_create_ex(a, &o)) != NULL);
    REQUIRE(epoch_domain_malloc(d, size) != NULL);
    REQUIRE(epoch_domain_aligned_alloc(d, 512, size) != NULL); /* behind a gap */
    REQUIRE(slab_run_begin(&run, d));
    for (unsigned k = 0; k < 2; k++) REQUIRE((p[k] = slab_run_malloc(&run, size)) != NULL);
    REQUIRE(slab_free_checked(a, p[1]));
    made = 4;
    frees = 1;
    bytes_made = 4 * size;
}
static void a_run_with_one_freed(void) {
    told_before = told_now();
    owned_with_one_freed();
}
static void begin_again(void) {
    REQUIRE(slab_run_end(&run));
    REQUIRE(slab_run_begin(&run, d));
}
static void bumped(size_t bytes, size_t align) {
    if (epoch_domain_aligned_alloc(d, align, bytes) == NULL) return;
    made++;
    bytes_made += bytes;
}
static void of_run(size_t bytes) {
    if (slab_run_malloc(&run, bytes) == NULL) return;
    made++;
    bytes_made += bytes;
}
static void take_of_run(void) {
    for (unsigned k = 0; k < 6; k++) of_run(size);
}
static void take_sizes_of_run(void) {
    of_run(16);
    of_run(160);
}
/* Leaves the gap of an alignment. */
static void align_and_begin(void) {
    REQUIRE(slab_run_end(&run));
    bumped(size, 256);
    REQUIRE(slab_run_begin(&run, d));
}
/* The first is freed before another lies behind it. */
static void bump_and_begin(void) {
    REQUIRE(slab_run_end(&run));
    void* q = epoch_domain_malloc(d, 16);
    made += q != NULL;
    bytes_made += q != NULL ? 16 : 0;
    bytes_freed_more = q != NULL && slab_free_checked(a, q) ? 16 : 0;
    frees += bytes_freed_more != 0;
    bumped(160, 16);
    bumped(32, 16);
    REQUIRE(slab_run_begin(&run, d));
}
static void the_run_was_told(void) {
    REQUIRE(slab_run_end(&run));
    relabel();
    EpochReceipt r;
    REQUIRE(epoch_domain_destroy_ex(d, &r));
    REQUIRE_EQ(r.bytes_allocated, bytes_made);
    REQUIRE_EQ(r.bytes_freed, size + bytes_freed_more);
    labels_were_told();
    REQUIRE_EQ(told_now().bytes_freed - told_before.bytes_freed, r.bytes_freed);
    bytes_freed_more = 0;
}
/* Its region is summed up. */
static TsiRegionSum summed;
static void sum_of_run(void) { summed = tsi_region_sum(&arena->space, kit_place(a, p[0]).slab_id); }
static void the_sum_was_no_more(void) {
    REQUIRE_BETWEEN(summed.issued, 3, made);
    REQUIRE_BETWEEN(summed.issued_bytes, 3 * size, bytes_made);
    REQUIRE(summed.live <= summed.issued && summed.live_bytes <= summed.issued_bytes);
    REQUIRE_BETWEEN(summed.issued - summed.live, 0, frees);
    REQUIRE_BETWEEN(summed.issued_bytes - summed.live_bytes, 0, size + bytes_freed_more);
    for (unsigned open = 2; open-- != 0;) { /* now it is exact */
        sum_of_run();
        REQUIRE_EQ(summed.issued, made);
        REQUIRE_EQ(summed.issued_bytes, bytes_made);
        REQUIRE_EQ(summed.live, made - frees);
        REQUIRE_EQ(summed.live_bytes, bytes_made - size - bytes_freed_more);
        if (open != 0) REQUIRE(slab_run_end(&run));
    }
    REQUIRE(epoch_domain_destroy(d));
    bytes_freed_more = 0;
}
static void owned_by_them(void) { let_them(owned_with_one_freed); }
static void their_sum_was_no_more(void) { let_them(the_sum_was_no_more); }
static void a_run_is_summed_up(void (*meanwhile)(void)) {
    everywhere((Try){owned_by_them, sum_of_run, meanwhile, their_sum_was_no_more, false});
    crossed((Try){owned_with_one_freed, meanwhile, sum_of_run, the_sum_was_no_more, true});
    crossed((Try){owned_by_them, sum_of_run, meanwhile, their_sum_was_no_more, true});
}
static void a_sum_while_a_run_allocates(void) {
    a_run_is_summed_up(take_of_run);
    a_run_is_summed_up(take_sizes_of_run);
}
static void a_sum_while_a_run_begins_again(void) {
    a_run_is_summed_up(begin_again);
    a_run_is_summed_up(align_and_begin);
    a_run_is_summed_up(bump_and_begin);
}
/* A region with a gap is emptied and begins again. */
static void two_around_a_gap(void) {
    REQUIRE((d = epoch_domain_create(a)) != NULL);
    REQUIRE((p[0] = epoch_domain_malloc(d, size)) != NULL);
    REQUIRE((p[1] = epoch_domain_aligned_alloc(d, 1024, size)) != NULL);
    REQUIRE_EQ(kit_place(a, p[0]).slab_id, kit_place(a, p[1]).slab_id);
}
static void free_both_and_begin_again(void) {
    TsiRegionSum ended;
    uint32_t slab_id = kit_place(a, p[0]).slab_id, at = tsi_load_relaxed(&tsi_region(&arena->space, slab_id)->heap_at);
    for (unsigned k = 0; k < 2; k++) REQUIRE(slab_free_checked(a, p[k]));
    REQUIRE(tsi_region_renew(&arena->space, slab_id, at, &ended));
    REQUIRE_EQ(ended.issued_bytes, 2 * size);
}
static void no_gap_was_summed(void) {
    REQUIRE(summed.issued <= 2 && summed.issued_bytes <= 2 * size);
    REQUIRE(epoch_domain_destroy(d));
}
static void a_sum_while_a_region_begins_again(void) {
    everywhere((Try){two_around_a_gap, free_both_and_begin_again, sum_of_run, no_gap_was_summed, false});
    crossed((Try){two_around_a_gap, free_both_and_begin_again, sum_of_run, no_gap_was_summed, true});
}
/* A life ends with an object that lives, one that was freed, and a gap; the next begins. */
static void one_beside_a_gap(void) {
    two_around_a_gap();
    REQUIRE(slab_free_checked(a, p[0]));
}
static void end_and_begin_again(void) {
    TsiRegionSum ended;
    TsiRegion* r = tsi_region(&arena->space, kit_place(a, p[1]).slab_id);
    uint32_t at = tsi_load_relaxed(&r->heap_at);
    REQUIRE(tsi_region_turn(r, &ended));
    tsi_store_relaxed(&r->heap_at, at);
    REQUIRE_EQ(ended.issued_bytes, 2 * size);
    REQUIRE_EQ(ended.live_bytes, size);
    REQUIRE_EQ(kit_hide(epoch_domain_malloc(d, size)), p[0]);
}
static void one_life_was_summed(void) {
    REQUIRE(summed.issued <= 2 && summed.issued_bytes <= 2 * size);
    REQUIRE(summed.issued - summed.live <= 1 && summed.issued_bytes - summed.live_bytes <= size);
    REQUIRE(epoch_domain_destroy(d));
}
static void a_sum_while_a_life_ends(void) {
    everywhere((Try){one_beside_a_gap, end_and_begin_again, sum_of_run, one_life_was_summed, false});
    crossed((Try){one_beside_a_gap, end_and_begin_again, sum_of_run, one_life_was_summed, true});
}
static void a_run_of_theirs(void) { let_them(a_run_with_one_freed); }
static void their_run_was_told(void) { let_them(the_run_was_told); }
static void a_relabelling_while_a_run_allocates(void) {
    everywhere((Try){a_run_with_one_freed, take_of_run, relabel, the_run_was_told, false});
    everywhere((Try){a_run_with_one_freed, take_of_run, read_labels, the_run_was_told, false});
    everywhere((Try){a_run_with_one_freed, begin_again, relabel, the_run_was_told, false});
    everywhere_by((Try){a_run_of_theirs, relabel, begin_again, their_run_was_told, false}, 97); /* a long way */
    everywhere_by((Try){a_run_of_theirs, relabel, align_and_begin, their_run_was_told, false}, 97);
}

/* What a drain tells as escaped is not freed by then. */
static void one_freed_by_them(void) {
    two();
    let_them(give_second);
}
static void at_most_one_escaped(void) {
    KIT_BALANCED(&receipt);
    REQUIRE(receipt.objects_escaped <= 1);
    both_were_counted();
}
static void a_last_free_while_escapes_are_counted(void) {
    everywhere((Try){one_freed_by_them, drain, free_first, at_most_one_escaped, false});
}

/* ---- what a snapshot tells of a slab ---- */

static TsiSlabSum told;
static TsiPlace theirs;
static uint64_t begun, given; /* allocations and frees of the worker */

static void fill_and_free(void) {
    const TsiClass* c = &arena->space.classes->c[tsi_class_of(size)];
    static void* q[TSI_LINE_SLOTS];
    REQUIRE((d = epoch_domain_create(a)) != NULL);
    for (begun = 0; begun < c->slots; begun++) REQUIRE((q[begun] = epoch_domain_malloc(d, size)) != NULL);
    theirs = kit_place(a, q[0]);
    for (given = 0; given < begun; given++) REQUIRE(slab_free_checked(a, q[given]));
}
static void a_line_of_theirs(void) { let_them(fill_and_free); }
static void take_one(void) {
    begun++; /* before */
    (void)epoch_domain_malloc(d, size);
}
static void sum_up(void) { told = tsi_slab_sum(&arena->space, theirs.cls, theirs.slab_id); }
/* Nothing was handed out that nobody asked for, or freed that nobody began to free. */
static void it_told_the_truth(void) {
    REQUIRE_BETWEEN(told.issued.objects, told.live.objects, begun);
    REQUIRE_BETWEEN(told.issued.objects - told.live.objects, 0, given);
    epoch_domain_destroy(d);
}
/* ---- lines that are refilled and parked ---- */

static void* line[TSI_LINE_SLOTS];
static unsigned slots;

/* All of a line, half of it freed by its owner and a quarter by another thread. */
static void a_used_up_line(void) {
    slots = arena->space.classes->c[tsi_class_of(size)].slots;
    freed_again = false;
    REQUIRE((d = epoch_domain_create(a)) != NULL);
    for (unsigned n = 0; n < slots; n++) REQUIRE((line[n] = epoch_domain_malloc(d, size)) != NULL);
    for (unsigned n = 0; n < slots / 2; n++) REQUIRE(slab_free_checked(a, line[n]));
}
static void free_a_quarter(void) {
    for (unsigned n = slots / 2; n < slots / 2 + slots / 4; n++) REQUIRE(slab_free_checked(a, line[n]));
}
static void a_line_to_refill(void) {
    a_used_up_line();
    let_them(free_a_quarter);
}
static void take_some(void) { (void)epoch_domain_malloc(d, size); }
/* The highest of what was freed: a refill hands out the lowest. */
static void free_own_again(void) { freed_again |= slab_free_checked(a, line[slots / 2 - 1]); }
static void free_theirs_again(void) { freed_again |= slab_free_checked(a, line[slots / 2 + slots / 4 - 1]); }
static void it_was_refused(void) {
    REQUIRE(!freed_again);
    epoch_domain_destroy(d);
}
/* What is free is seen to be, wherever its bit is just now. */
static void a_second_free_while_a_line_is_refilled(void) {
    everywhere((Try){a_line_to_refill, take_some, free_own_again, it_was_refused, false});
    everywhere((Try){a_line_to_refill, take_some, free_theirs_again, it_was_refused, false});
}

static void a_full_line(void) {
    slots = arena->space.classes->c[tsi_class_of(size)].slots;
    REQUIRE((d = epoch_domain_create(a)) != NULL);
    for (unsigned n = 0; n < slots; n++) REQUIRE((line[n] = epoch_domain_malloc(d, size)) != NULL);
}
static void free_the_line(void) {
    for (unsigned n = 0; n < slots; n++) REQUIRE(slab_free_checked(a, line[n]));
}
/* The owner hears of it: what is taken next is of the line, not of more memory. */
static void the_line_is_found(void) {
    const TsiClass* c = &arena->space.classes->c[tsi_class_of(size)];
    uint64_t before = kit_committed_now(a);
    unsigned lines = 1u << c->lines_log2;
    for (unsigned n = 0; n < lines * slots - 1; n++) REQUIRE(epoch_domain_malloc(d, size) != NULL);
    REQUIRE_EQ(kit_committed_now(a), before);
    epoch_domain_destroy(d);
}
static void a_line_is_parked_while_others_free(void) {
    everywhere((Try){a_full_line, take_some, free_the_line, the_line_is_found, false});
}

static SlabHandle handle;
static void one_of_theirs_for_a_handle(void) {
    one_of_theirs();
    handle = 0;
}
static void ask_for_its_handle(void) { handle = slab_ptr_handle(a, p[0]); }
static void its_handle_has_ended(void) {
    REQUIRE(freed[0]);
    REQUIRE_NULL(slab_handle_ptr(a, handle));
    REQUIRE(!free_obj(a, handle));
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    both_are_gone();
}
/* The owner frees by pointer what another thread asks the handle of. */
static void a_free_while_its_handle_is_made(void) {
    everywhere((Try){one_of_theirs_for_a_handle, ask_for_its_handle, free_first, its_handle_has_ended, false});
}

/* ---- frees by handle ---- */

static SlabHandle of[2];

static void two_by_handle(void) {
    memset(freed, 0, sizeof freed);
    freed_again = false;
    REQUIRE((d = epoch_domain_create_labeled(a, "between")) != NULL);
    for (unsigned k = 0; k < 2; k++) REQUIRE((p[k] = alloc_obj_epoch(a, (uint32_t)size, d->epoch_id, &of[k])) != NULL);
}
static void one_by_handle(void) {
    two_by_handle();
    freed[1] = free_obj(a, of[1]);
}
static void two_of_theirs_by_handle(void) { let_them(two_by_handle); }
static void one_of_theirs_by_handle(void) { let_them(one_by_handle); }

static void free_by_handle(void) { freed[0] |= free_obj(a, of[0]); }
static void free_by_handle_again(void) { freed_again = free_obj(a, of[0]); }

/* Of two frees by one handle one was right, and was counted once. */
static void the_handle_was_good_once(void) {
    REQUIRE_EQ(freed[0] + freed_again, 1);
    REQUIRE(!free_obj(a, of[0]));
    kit_check(a);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    REQUIRE_EQ(r.objects_freed, 1);
    REQUIRE_EQ(r.objects_escaped, 1);
    freed[0] = true;
    freed[1] = free_obj(a, of[1]);
    both_are_gone();
}

/* By the owner and by another thread, either of them at any point of the other. */
static void a_handle_freed_by_two(void) {
    everywhere((Try){two_by_handle, free_by_handle, free_by_handle_again, the_handle_was_good_once, false});
    everywhere((Try){two_by_handle, free_by_handle, free_by_handle_again, the_handle_was_good_once, true});
    everywhere((Try){two_of_theirs_by_handle, free_by_handle, free_by_handle_again, the_handle_was_good_once, false});
    everywhere((Try){two_of_theirs_by_handle, free_by_handle, free_by_handle_again, the_handle_was_good_once, true});
}
/* Another thread ends the phase at any point of the owner's free; the owner frees at any point of the end, also when it
 * has stood in its bracket since before. */
static void a_drain_while_a_handle_is_freed(void) {
    everywhere((Try){one_by_handle, free_by_handle, drain, both_are_gone, false});
    everywhere_by((Try){one_of_theirs_by_handle, drain, free_by_handle, both_are_gone, false}, 11); /* a long way */
    everywhere_by((Try){one_of_theirs_by_handle, drain, free_by_handle, both_are_gone, true}, 11);
}
static void a_release_while_a_handle_is_freed(void) {
    everywhere((Try){one_by_handle, free_by_handle, release, it_ended_once, false});
    everywhere_by((Try){one_of_theirs_by_handle, release, free_by_handle, it_ended_once, false}, 11);
}
static void a_trim_while_a_handle_is_freed(void) {
    everywhere((Try){two_by_handle, free_by_handle, trim, the_second_is_left, false});
    everywhere_by((Try){two_of_theirs_by_handle, trim, free_by_handle, the_second_is_left, false}, 31);
    everywhere_by((Try){two_of_theirs_by_handle, trim, free_by_handle, the_second_is_left, true}, 31);
}

/* An object has ended, in a place that has been used before, and will be again: in regions the last of those that a phase
 * takes one by one begins again when it is full. */
static void* found;
static SlabHandle next_there;
static void* take_and_free(SlabHandle* h) {
    void* q = alloc_obj_epoch(a, (uint32_t)size, d->epoch_id, h);
    REQUIRE(q != NULL && free_obj(a, *h));
    return q;
}
static void one_that_has_ended(void) {
    REQUIRE((d = epoch_domain_create_labeled(a, "between")) != NULL);
    uint8_t *begins = NULL, *last = NULL;
    for (unsigned n = 0; n < 100000; n++, last = p[0]) {
        p[0] = take_and_free(&of[0]);
        if (p[0] == begins) return;
        if (last == NULL || (uint8_t*)p[0] != last + size) begins = p[0];
    }
    FAIL("no place is used again");
}
static void one_of_theirs_has_ended(void) { let_them(one_that_has_ended); }
static void use_its_place_again(void) {
    for (unsigned n = 0; n < 10000; n++) {
        void* q = alloc_obj_epoch(a, (uint32_t)size, d->epoch_id, &next_there);
        REQUIRE(q != NULL);
        if (q == p[0]) return;
        REQUIRE(free_obj(a, next_there));
    }
    FAIL("the place is not used again");
}
static void look_it_up(void) { found = slab_handle_ptr(a, of[0]); }
static void free_it_again(void) { freed_again = free_obj(a, of[0]); }
static void it_leads_to_nothing(void) {
    REQUIRE_NULL(found);
    REQUIRE(!freed_again);
    REQUIRE_EQ(slab_handle_ptr(a, next_there), p[0]);
    epoch_domain_destroy(d);
}
/* A handle whose object had ended before leads to no other, wherever the next one comes between. */
static void an_ended_handle_while_its_place_is_used_again(void) {
    found = NULL;
    freed_again = false;
    everywhere((Try){one_of_theirs_has_ended, look_it_up, use_its_place_again, it_leads_to_nothing, false});
    everywhere((Try){one_of_theirs_has_ended, free_it_again, use_its_place_again, it_leads_to_nothing, false});
}

/* The only object of a region that is full, in a phase where no handle was asked for. */
static SlabHandle asked;
static void one_of_a_full_region(void) {
    REQUIRE((d = epoch_domain_create_labeled(a, "between")) != NULL);
    uint8_t *begins = NULL, *last = NULL, *q = NULL;
    unsigned fits = 0;
    for (unsigned n = 0; n < 100000; n++, last = q) {
        REQUIRE((q = epoch_domain_malloc(d, size)) != NULL);
        if (q == begins) break;
        if (last == NULL || q != last + size) {
            begins = q;
            fits = 0;
        }
        fits++;
        REQUIRE(slab_free_checked(a, q));
    }
    REQUIRE(q == begins);
    p[0] = q;
    for (unsigned n = 1; n < fits; n++) REQUIRE(slab_free_checked(a, epoch_domain_malloc(d, size)));
    asked = 0;
}
static void end_it_and_begin_again(void) {
    REQUIRE(slab_free_checked(a, p[0]));
    p[1] = epoch_domain_malloc(d, size);
}
static void ask_for_it(void) { asked = slab_ptr_handle(a, p[0]); }
static void it_names_one_of_them(void) {
    SlabHandle now = slab_ptr_handle(a, p[1]);
    REQUIRE(now != 0);
    REQUIRE(asked == now || !free_obj(a, asked));
    REQUIRE(free_obj(a, now) && !free_obj(a, now));
    epoch_domain_destroy(d);
}
/* A handle is asked for as the object ends and its region begins again: nobody has asked for one there before. */
static void a_handle_is_asked_for_while_its_region_begins_again(void) {
    everywhere_by((Try){one_of_a_full_region, end_it_and_begin_again, ask_for_it, it_names_one_of_them, false}, 5); /* a long way */
    everywhere_by((Try){one_of_a_full_region, end_it_and_begin_again, ask_for_it, it_names_one_of_them, true}, 5);
}

static void a_sum_while_a_line_is_refilled(void) {
    everywhere((Try){a_line_of_theirs, sum_up, take_one, it_told_the_truth, false});
}

static void a_trim_while_one_is_freed(void) { everywhere((Try){two, free_first, trim, the_second_is_left, false}); }

static void an_end_while_one_grows(void) {
    everywhere((Try){two_that_grow, grow_second, drain, it_has_grown, false});
    everywhere((Try){two_that_grow, grow_second, drain, it_has_grown, true});
    everywhere((Try){two_that_grow, grow_second, release, it_grew_or_ended, false});
}
static void one_grows_while_it_ends(void) {
    everywhere((Try){two_that_grow, drain, grow_second, it_has_grown, false});
    everywhere((Try){two_that_grow, release, grow_second, it_grew_or_ended, false});
}

/* ---- what a thread has counted goes to its label ---- */

static SlabLabelStats accounts[3]; /* without a label, "(other)", and of the phases below */
static uint64_t ended;             /* of these */

static void end_a_phase(void) {
    epoch_domain_t* e = epoch_domain_create_labeled(a, "accounts");
    (void)epoch_domain_malloc(e, size);
    epoch_domain_destroy(e);
}
static void an_account_of_theirs(void) {
    let_them(end_a_phase);
    ended++;
}
static void move_account(void) { tsi_charges_flush(tsi_binding_get(arena, false)); }
static void read_accounts(void) {
    TsiReport r = {.labels = accounts, .label_count = 3};
    TsiWalk w = {.a = arena, .report = &r};
    tsi_labels_begin(&w);
}
/* Nothing is missing, nothing is told twice. */
static void all_is_told(void) {
    const SlabLabelStats* l = &accounts[2];
    uint64_t durations = 0;
    REQUIRE_STR(l->label, "accounts");
    for (unsigned n = 0; n < SLAB_HISTOGRAM_BUCKETS; n++) durations += l->duration_ns[n];
    REQUIRE_EQ(l->phases_ended, ended);
    REQUIRE_EQ(l->objects_allocated, ended);
    REQUIRE_EQ(l->objects_released, ended);
    REQUIRE_EQ(durations, ended);
}
static void an_account_moves_while_it_is_read(void) {
    ended = 0;
    everywhere_by((Try){an_account_of_theirs, read_accounts, move_account, all_is_told, false}, 11); /* a long way */
}

/* ---- the current epoch is closed ---- */

static EpochId was_current;
static void* unnamed;

static void an_epoch_is_current(void) {
    was_current = epoch_current(a);
    unnamed = NULL;
}
static void close_it(void) { epoch_close(a, was_current); }
static void take_unnamed(void) { unnamed = slab_malloc(a, size); }
static void the_ring_is_one_further(void) { REQUIRE_EQ(epoch_current(a), (was_current + 1) % 16); }
static void nobody_was_refused(void) {
    the_ring_is_one_further();
    REQUIRE(unnamed != NULL);
    REQUIRE(slab_free_checked(a, unnamed));
}
static void an_allocation_while_the_current_epoch_is_closed(void) {
    everywhere_by((Try){an_epoch_is_current, close_it, take_unnamed, nobody_was_refused, false}, 5); /* a long way */
}
/* By its id, which the next epoch has before it is current. */
static void move_on(void) { (void)epoch_advance(a); }
static void close_next(void) { epoch_close(a, (was_current + 1) % 16); }
static void the_current_one_is_open(void) {
    REQUIRE_EQ(epoch_state(a, epoch_current(a)), EPOCH_ACTIVE);
    take_unnamed();
    REQUIRE(unnamed != NULL);
    REQUIRE(slab_free_checked(a, unnamed));
}
static void a_close_of_the_next_epoch_while_the_ring_moves(void) {
    everywhere((Try){an_epoch_is_current, move_on, close_next, the_current_one_is_open, false});
    everywhere((Try){an_epoch_is_current, close_next, move_on, the_current_one_is_open, false});
}
static void two_closes_of_the_current_epoch(void) {
    everywhere((Try){an_epoch_is_current, close_it, close_it, the_ring_is_one_further, false});
}

/* ---- lanes ---- */

enum { FILLED_MAX = 1 << 16 };
static SlabLane lane;
static void *filled[FILLED_MAX], *of_lane;
static unsigned fill;

static void a_lane(void) {
    two();
    REQUIRE(slab_lane_open(&lane, d));
    fill = 0;
    of_lane = NULL;
}
/* Its region has no room for one more. */
static void a_lane_at_the_end(void) {
    a_lane();
    const TsiRegion* r = tsi_region(&arena->space, kit_place(a, p[0]).slab_id);
    while (tsi_load_relaxed(&r->lim) - tsi_load_relaxed(&r->rel) >= size)
        REQUIRE((filled[fill++] = slab_lane_malloc(&lane, size)) != NULL);
}
static void take_by_lane(void) { of_lane = slab_lane_malloc(&lane, size); }

/* What the lane gave is in the accounts, once, and what it did not give is not. */
static void the_lane_was_told(void) {
    KIT_BALANCED(&receipt);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(r.objects_allocated, 2 + fill + (of_lane != NULL));
    REQUIRE_EQ(r.objects_released, r.objects_allocated);
    REQUIRE_NULL(slab_lane_malloc(&lane, size));
    all_is_gone();
}
static void the_lane_drained(void) {
    KIT_BALANCED(&receipt);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    REQUIRE_EQ(r.objects_allocated, 2 + fill + (of_lane != NULL));
    REQUIRE_EQ(r.objects_escaped, r.objects_allocated);
    for (unsigned n = 0; n < fill; n++) REQUIRE(slab_free_checked(a, filled[n]));
    REQUIRE(of_lane == NULL || slab_free_checked(a, of_lane));
    free_first();
    give_second();
    both_are_gone();
}
static void it_was_trimmed(void) {
    REQUIRE(of_lane != NULL);
    memset(&receipt, 0, sizeof receipt);
    the_lane_was_told();
}
static void an_end_while_a_lane_allocates(void) {
    everywhere((Try){a_lane, take_by_lane, release, the_lane_was_told, false});
    everywhere((Try){a_lane, take_by_lane, release, the_lane_was_told, true});
    everywhere((Try){a_lane, take_by_lane, drain, the_lane_drained, false});
    everywhere_by((Try){a_lane_at_the_end, take_by_lane, release, the_lane_was_told, false}, 31); /* a long way */
    everywhere_by((Try){a_lane_at_the_end, take_by_lane, drain, the_lane_drained, false}, 31);
}
static void a_trim_while_a_lane_allocates(void) {
    everywhere((Try){a_lane, take_by_lane, trim, it_was_trimmed, false});
    everywhere_by((Try){a_lane_at_the_end, take_by_lane, trim, it_was_trimmed, true}, 31);
}

static const CheckCase tests[] = {
#define IN(name, kind) \
    { #name "_" #kind, name, open_##kind, close_allocator }
#define IN_ALL(name) IN(name, regions), IN(name, classes), IN(name, paged)
    IN_ALL(a_last_free_while_it_drains),
    IN_ALL(a_drain_while_the_last_is_freed),
    IN_ALL(a_free_while_it_is_released),
    IN_ALL(a_release_while_it_is_freed),
    IN_ALL(two_last_frees),
    IN_ALL(one_object_freed_twice),
    IN(a_last_free_while_pages_go, paged),
    IN_ALL(a_last_free_while_it_is_counted),
    IN_ALL(a_free_while_it_is_counted),
    IN_ALL(a_count_while_the_last_is_freed),
    IN_ALL(a_trim_while_one_is_freed),
    IN_ALL(a_relabelling_while_one_is_freed),
    IN_ALL(a_relabelling_while_a_slab_goes),
    IN(two_relabellings_while_it_is_read, regions),
    IN(a_relabelling_while_a_run_allocates, regions),
    IN(a_sum_while_a_run_allocates, regions),
    IN(a_sum_while_a_run_begins_again, regions),
    IN(a_sum_while_a_region_begins_again, regions),
    IN(a_sum_while_a_life_ends, regions),
    IN_ALL(a_last_free_while_escapes_are_counted),
    IN(an_allocation_while_the_current_epoch_is_closed, classes),
    IN(a_close_of_the_next_epoch_while_the_ring_moves, classes),
    IN(two_closes_of_the_current_epoch, classes),
    IN_ALL(a_sum_while_a_line_is_refilled),
    IN(a_second_free_while_a_line_is_refilled, classes),
    IN(a_second_free_while_a_line_is_refilled, paged),
    IN(a_line_is_parked_while_others_free, classes),
    IN(a_line_is_parked_while_others_free, paged),
    IN_ALL(a_free_while_its_handle_is_made),
    IN_ALL(a_handle_freed_by_two),
    IN_ALL(a_drain_while_a_handle_is_freed),
    IN_ALL(a_release_while_a_handle_is_freed),
    IN_ALL(a_trim_while_a_handle_is_freed),
    IN_ALL(an_ended_handle_while_its_place_is_used_again),
    IN(a_handle_is_asked_for_while_its_region_begins_again, regions),
    IN(an_end_while_one_grows, regions),
    IN(one_grows_while_it_ends, regions),
    IN(an_account_moves_while_it_is_read, regions),
    IN(an_end_while_a_lane_allocates, regions),
    IN(a_trim_while_a_lane_allocates, regions),
};

/* Of the program, which comes first: 1, or -1 where the system refuses. Some linkers leave pages between segments unmapped. */
static int code_is_writable(struct dl_phdr_info* program, size_t n, void* unused) {
    (void)n;
    (void)unused;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (unsigned k = 0; k < program->dlpi_phnum; k++) {
        const ElfW(Phdr)* h = &program->dlpi_phdr[k];
        if (h->p_type != PT_LOAD || (h->p_flags & PF_X) == 0) continue;
        uintptr_t begin = program->dlpi_addr + h->p_vaddr, from = begin & ~(page - 1);
        if (mprotect((void*)from, begin + h->p_memsz - from, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return -1;
    }
    return 1;
}

int main(int argc, char** argv) {
    if (!CAN_STEP) puts("no breakpoints here: what comes between comes afterwards");
    else if (dl_iterate_phdr(code_is_writable, NULL) < 0) {
        puts("skipped: the system does not let a program write to its own code");
        return 77;
    }
    /* With AddressSanitizer a call is several times as long: below scale 1 those of regions only. */
    CheckCase some[sizeof tests / sizeof tests[0]];
    size_t n = 0;
    for (size_t k = 0; k < sizeof tests / sizeof tests[0]; k++)
        if (!CHECK_ASAN || check_scale() >= 1 || argc > 1 || tests[k].before == open_regions) some[n++] = tests[k];
    return check_main(argc, argv, some, n);
}
