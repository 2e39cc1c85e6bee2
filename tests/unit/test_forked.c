/*
 * test_forked.c - what a child gets of what other threads were in the middle of.
 *
 * A thread in the middle of a call is one that the fake system stops inside of it, or whose words are set as
 * between two stores of the call. What a child finds is its exit code.
 */
#define KIT_RING_BY_CLASS
#include "fake_os.h"
#include "kit/one.h"

#include "api/domain.h"
#include "heap/heap.h"
#include "mem/pool.h"
#include "mem/region.h"
#include "mem/rest.h"

#include <slab_lane.h>

#include <semaphore.h>
#include <sys/resource.h>

enum { SIZE = 1024, SLOTS = 16, SLAB = SLOTS * SIZE };

static KitWorker worker;
static sem_t inside, go;

static void open_allocator(void) {
    sem_init(&inside, 0, 0);
    sem_init(&go, 0, 0);
    kit_worker_start(&worker);
    kit_open_cold();
    fake_os_clear();
}
static void close_allocator(void) {
    sem_post(&go); /* where a test has failed */
    kit_worker_stop(&worker);
    kit_close();
}

/* Exit code of a child that runs fn; 128 + the signal that ended it. */
static int in_child(int (*fn)(void*), void* arg) {
    int status = 0;
    pid_t child = fork();
    REQUIRE_NE(child, -1);
    if (child == 0) {
        (void)alarm(300); /* one that hangs is killed */
        _exit(fn(arg));
    }
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is_whole(void) {
    char why[160];
    bool ok = tsi_check_allocator(a, why, sizeof why);
    if (!ok) fprintf(stderr, "in the child: %s\n", why);
    return ok;
}

/* Stops its thread until the test says go. */
static void stop_here(void* unused) {
    (void)unused;
    sem_post(&inside);
    sem_wait(&go);
}

typedef struct Objects {
    void* p[8 * SLOTS];
    unsigned n;
} Objects;
static void take_them(void* arg) {
    Objects* o = arg;
    for (unsigned i = 0; i < o->n; i++) o->p[i] = slab_malloc(a, SIZE);
}
static void free_them(void* arg) {
    Objects* o = arg;
    for (unsigned i = 0; i < o->n; i++) slab_free(a, o->p[i]);
}
static void* free_them_on_a_thread(void* arg) {
    free_them(arg);
    return NULL;
}

/* ---- a region that rests ---- */

/* 0 when the region is in the pool: no freer sleeps in a child. */
static int nothing_rests(void* slab) {
    uint64_t tag = tsi_load_relaxed(&tsi_slab(space, *(uint32_t*)slab)->tag);
    if (tsi_load_relaxed(&space->resting) != 0) return 1;
    return tsi_tag_state(tag) != TSI_SLAB_POOL ? 2 : is_whole() ? 0 : 3;
}

static void a_region_that_rests(void) {
    uint32_t id;
    REQUIRE(tsi_space_take(space, TSI_CLASS_REGION, 0, &id));
    REQUIRE(tsi_region_open(space, TSI_CLASS_REGION, id, 0));
    TsiRegion* r = tsi_region(space, id);
    tsi_store_relaxed(&r->late, 1);
    tsi_rest(space, id);
    REQUIRE_EQ(in_child(nothing_rests, &id), 0);
    REQUIRE_EQ(tsi_load_relaxed(&space->resting), id + 1);
    tsi_store_relaxed(&r->late, 0);
    slab_trim(a);
    REQUIRE_EQ(tsi_load_relaxed(&space->resting), 0);
}

/* ---- a refill ---- */

/* 0 when nothing that is live has the address of something else. */
static int all_apart(void* unused) {
    (void)unused;
    Objects o = {.n = 4 * SLOTS};
    take_them(&o);
    for (unsigned i = 0; i < o.n; i++) {
        if (o.p[i] == NULL) return 2;
        for (unsigned k = 0; k < i; k++)
            if (o.p[k] == o.p[i]) return 1;
    }
    uint64_t live = kit_live(a);
    free_them(&o);
    return live != o.n ? 3 : kit_live(a) != 0 ? 4 : is_whole() ? 0 : 5;
}

static void a_refill_is_done_or_was_never(void) {
    Objects o = {.n = SLOTS};
    kit_worker_run(&worker, take_them, &o);
    TsiLine* l = tsi_line(&tsi_arena(a)->space, kit_place(a, o.p[0]).line_id);
    kit_worker_run(&worker, free_them, &o);
    uint64_t full = (1ull << SLOTS) - 1, words = tsi_load_relaxed(&l->freed), freed = words & full;
    uint64_t issued = tsi_load_relaxed(&l->issued);
    REQUIRE_NE(freed, 0);
    REQUIRE_EQ(tsi_load_relaxed(&l->avail), 0);
    REQUIRE_EQ(in_child(all_apart, NULL), 0);
    tsi_store_relaxed(&l->avail, freed);
    REQUIRE_EQ(in_child(all_apart, NULL), 0); /* shown, and still among the freed */
    tsi_store_relaxed(&l->freed, words & ~full);
    tsi_store_relaxed(&l->issued, issued + tsi_popcount(freed));
    REQUIRE_EQ(in_child(all_apart, NULL), 0);
}

/* ---- regions ---- */

typedef struct Bumped {
    epoch_domain_t* domain;
    void* p[4];
    unsigned live; /* that a child must find, by pointer: the first ones */
} Bumped;

static void bump_them(void* arg) {
    Bumped* u = arg;
    u->domain = epoch_domain_create(a);
    for (unsigned i = 0; i < 4; i++) u->p[i] = epoch_domain_malloc(u->domain, 64);
}

/* 0 when the objects that live are counted, each is freed once, and their region goes with the last one. */
static int bumped_are_exact(void* arg) {
    Bumped* u = arg;
    EpochReceipt r;
    if (!is_whole()) return 1;
    if (kit_live(a) != u->live) return 2;
    if (u->live > 0 && !slab_free_checked(a, u->p[0])) return 3;
    if (slab_free_checked(a, u->p[0])) return 4;
    for (unsigned i = 0; i < 100; i++) /* a heap of the child's own, or the one that is left */
        if (epoch_domain_malloc(u->domain, 64) == NULL) return 5;
    if (!is_whole()) return 6;
    if (!epoch_close_ex(a, u->domain->epoch_id, EPOCH_DRAIN, &r)) return 7;
    if (r.objects_escaped != u->live - 1 + 100 || r.bytes_escaped != r.objects_escaped * 64) return 8;
    for (unsigned i = 1; i < u->live; i++)
        if (!slab_free_checked(a, u->p[i]) || slab_free_checked(a, u->p[i])) return 9;
    if (!epoch_close_ex(a, u->domain->epoch_id, EPOCH_RELEASE, &r) || kit_live(a) != 0) return 10;
    return kit_committed_now(a) != 0 ? 11 : is_whole() ? 0 : 12;
}

static int five_are_live(void* unused) {
    (void)unused;
    return !is_whole() ? 1 : kit_live(a) != 5 ? 2 : 0;
}
/* 0 when the end of their phase tells of those that live, and of no other object. */
static int are_released_exactly(void* arg) {
    Bumped* u = arg;
    EpochReceipt r;
    if (!epoch_domain_destroy_ex(u->domain, &r)) return 1;
    if (r.objects_released != u->live || r.bytes_released != 64 * u->live) return 2;
    if (r.objects_allocated != u->live || r.objects_freed != 0) return 3;
    return r.bytes_allocated != r.bytes_released || r.bytes_freed != 0 ? 4 : is_whole() ? 0 : 5;
}
static int nobody_is_late(void* region) { return tsi_load_relaxed(&((TsiRegion*)region)->late) == 0 ? 0 : 1; }

/* A bump, a free by the owner, one by another thread: each between its stores. */
static void a_region_in_the_middle(void) {
    Bumped u = {.live = 4};
    kit_worker_run(&worker, bump_them, &u);
    TsiSpace* s = &tsi_arena(a)->space;
    uint32_t id = kit_place(a, u.p[0]).slab_id;
    TsiRegion* r = tsi_region(s, id);
    uint32_t rel = tsi_load_relaxed(&r->rel), granule = 3 * 64 / TSI_GRANULE;
    uint64_t word = tsi_load_relaxed(&r->word);
    REQUIRE_EQ(in_child(bumped_are_exact, &u), 0);
    tsi_store_relaxed(&r->map[rel >> TSI_GRANULE_SHIFT], r->gen); /* a start that is not reached yet */
    REQUIRE_EQ(in_child(bumped_are_exact, &u), 0);
    tsi_store_relaxed(&r->rel, rel + 64); /* reached, and not counted: it is an object, of nobody */
    u.live = 5;
    REQUIRE_EQ(in_child(five_are_live, NULL), 0);
    tsi_store_relaxed(&r->rel, rel);
    tsi_store_relaxed(&r->map[rel >> TSI_GRANULE_SHIFT], 0);
    u.live = 3;
    tsi_store_relaxed(&r->map[granule], (uint8_t)(r->gen | TSI_MARK_OWN)); /* freed by its owner, and not counted */
    REQUIRE_EQ(in_child(bumped_are_exact, &u), 0);
    tsi_store_relaxed(&r->word, word + TSI_REGION_ENTERED); /* by another thread, which has marked it */
    tsi_store_relaxed(&r->map[granule], (uint8_t)(r->gen | TSI_MARK_OTHER));
    REQUIRE_EQ(in_child(bumped_are_exact, &u), 0);
    u.live = 4; /* or not yet */
    tsi_store_relaxed(&r->map[granule], r->gen);
    REQUIRE_EQ(in_child(bumped_are_exact, &u), 0);
    tsi_store_relaxed(&r->word, word);
    tsi_store_relaxed(&r->late, 1); /* a freer that slept through an end has vanished as well */
    REQUIRE_EQ(in_child(nobody_is_late, r), 0);
    tsi_store_relaxed(&r->late, 0);
    epoch_domain_destroy(u.domain);
}

/* ---- runs ---- */

enum { BEFORE = 4, MADE = 6, BYTES = 64 }; /* objects: before the run begins, and in it; and one that is freed */
typedef struct Claimed {
    epoch_domain_t* domain;
    TsiRegion* region;
    SlabRun run;
} Claimed;

static epoch_domain_t* make_owned(void) {
    SlabDomainOptions o = {.struct_size = sizeof o, .label = "vanishes", .flags = SLAB_DOMAIN_OWNER_ONLY};
    epoch_domain_t* d = epoch_domain_create_ex(a, &o);
    for (unsigned i = 0; i < BEFORE; i++) REQUIRE(epoch_domain_malloc(d, BYTES) != NULL);
    return d;
}
static void open_a_run(void* arg) {
    Claimed* u = arg;
    u->domain = make_owned();
    REQUIRE(slab_run_begin(&u->run, u->domain));
    u->region = u->run.region_;
    REQUIRE(u->region != NULL);
}
static void make_in_it(void* arg) {
    Claimed* u = arg;
    for (unsigned i = 0; i < MADE; i++) REQUIRE(slab_run_malloc(&u->run, BYTES) != NULL);
    REQUIRE(slab_free_checked(a, slab_run_malloc(&u->run, BYTES)));
}
static void close_the_run(void* arg) {
    Claimed* u = arg;
    REQUIRE(slab_run_end(&u->run) && epoch_domain_destroy(u->domain));
}

/* 0 when the phase, whose thread is not here, has ended with so many objects. */
static int has_ended_with(void* objects) {
    static SlabLabelStats rows[8];
    uint64_t released = *(unsigned*)objects;
    if (kit_live(a) != 0) return 1;
    for (size_t n = slab_stats_labels(a, rows, 8); n != 0; n--) {
        const SlabLabelStats* l = &rows[n - 1];
        if (strcmp(l->label, "vanishes") != 0) continue;
        if (l->objects_allocated != l->objects_freed + l->objects_released) return 2;
        if (l->bytes_allocated != l->bytes_freed + l->bytes_released) return 3;
        if (l->objects_released != released || l->bytes_released != BYTES * released) return 4;
        return l->objects_freed > 1 ? 5 : is_whole() ? 0 : 6;
    }
    return 7;
}

/* The words of a region that a claim and its end write. */
typedef struct Words {
    uint32_t issued, rel;
} Words;
static Words words_of(TsiRegion* r) {
    return (Words){.issued = tsi_load_relaxed(&r->issued), .rel = tsi_load_relaxed(&r->rel)};
}
static void write_words(TsiRegion* r, Words w) {
    tsi_store_relaxed(&r->issued, w.issued);
    tsi_store_relaxed(&r->rel, w.rel);
}

/* A claim and its end, between any two of their stores. */
static void a_run_in_the_middle(void) {
    static Claimed u;
    kit_worker_run(&worker, open_a_run, &u);
    TsiRegion* r = u.region;
    _Atomic uint8_t* map = tsi_region_map(r);
    unsigned objects = BEFORE;
    uint32_t from = BEFORE * BYTES, at = from + (MADE + 1) * BYTES;
    REQUIRE_EQ(tsi_load_relaxed(&map[from / TSI_GRANULE]), (r->gen | TSI_MARK_GAP));
    Words all = words_of(r), w = all;
    for (unsigned step = 0; step <= 2; step++) { /* back from its end */
        if (step == 1) w.rel = from;
        if (step == 2) tsi_store_relaxed(&map[from / TSI_GRANULE], 0);
        write_words(r, w);
        REQUIRE_EQ(in_child(has_ended_with, &objects), 0);
    }
    tsi_store_relaxed(&map[from / TSI_GRANULE], (uint8_t)(r->gen | TSI_MARK_GAP));
    write_words(r, all);
    _Atomic uint8_t* next = &map[(from + 2048) / TSI_GRANULE];
    uint8_t there = tsi_load_relaxed(next);
    tsi_store_relaxed(next, (uint8_t)(r->gen | TSI_MARK_GAP)); /* the gap has moved on, and no object is there yet */
    REQUIRE_EQ(in_child(has_ended_with, &objects), 0);
    tsi_store_relaxed(next, there);

    kit_worker_run(&worker, make_in_it, &u);
    objects += MADE;
    all = w = words_of(r);
    for (unsigned step = 0; step <= 2; step++) {
        if (step == 1) w.rel = at;
        if (step == 2) w.issued += MADE + 1;
        write_words(r, w);
        REQUIRE_EQ(in_child(has_ended_with, &objects), 0);
    }
    write_words(r, all);
    kit_worker_run(&worker, close_the_run, &u);
}

/* An alignment's gap that its owner has counted, and not reached. */
static void a_gap_in_the_middle(void) {
    Bumped u = {.live = 4};
    kit_worker_run(&worker, bump_them, &u);
    TsiRegion* r = tsi_region(space, kit_place(a, u.p[0]).slab_id);
    REQUIRE_EQ(tsi_load_relaxed(&r->gap_granules), 0);
    tsi_store_relaxed(&r->map[tsi_load_relaxed(&r->rel) / TSI_GRANULE], (uint8_t)(r->gen | TSI_MARK_GAP));
    REQUIRE_EQ(in_child(are_released_exactly, &u), 0);
    tsi_store_relaxed(&r->gap_granules, 3);
    REQUIRE_EQ(in_child(are_released_exactly, &u), 0);
    tsi_store_relaxed(&r->gap_granules, 0);
    tsi_store_relaxed(&r->map[tsi_load_relaxed(&r->rel) / TSI_GRANULE], 0);
    epoch_domain_destroy(u.domain);
}

/* ---- phases of one thread ---- */

static void begin_to_destroy(void* arg) {
    Claimed* u = arg;
    u->domain = make_owned();
}
static int anybody_ends_it(void* domain) {
    epoch_domain_t* d = domain;
    EpochReceipt r;
    if (!epoch_close_era(a, d->epoch_era, EPOCH_RELEASE, &r)) return 1;
    if (r.objects_released != BEFORE || kit_live(a) != 0) return 2;
    return is_whole() ? 0 : 3;
}
static void destroy_it(void* arg) { REQUIRE(epoch_domain_destroy(((Claimed*)arg)->domain)); }

/* Its thread had begun to end it, and had not come to its phase. */
static void a_phase_of_one_thread_that_was_to_end(void) {
    static Claimed u;
    kit_worker_run(&worker, begin_to_destroy, &u);
    _Atomic uint32_t* left = &tsi_domain_of(u.domain)->left;
    REQUIRE_EQ(tsi_load_relaxed(left), TSI_DOMAIN_OWNED);
    tsi_store_relaxed(left, TSI_DOMAIN_GOING);
    REQUIRE_EQ(in_child(anybody_ends_it, u.domain), 0);
    tsi_store_relaxed(left, TSI_DOMAIN_OWNED);
    kit_worker_run(&worker, destroy_it, &u);
}

/* ---- tokens ---- */

/* 0 when what another thread frees is used again: no slab more than there was. */
static int used_again(void* arg) {
    Objects* o = arg;
    for (unsigned round = 0; round < 3; round++) {
        uint64_t was = kit_committed_now(a);
        pthread_t t;
        if (pthread_create(&t, NULL, free_them_on_a_thread, o) != 0 || pthread_join(t, NULL) != 0) return 2;
        take_them(o);
        if (kit_committed_now(a) > was) return 1;
    }
    return is_whole() ? 0 : 3;
}

static void use_again_in_a_child(void* arg) { *(int*)((void**)arg)[1] = in_child(used_again, ((void**)arg)[0]); }

/* Freed before the fork by a thread that brought the tokens to an inbox, which its owner never looks into again. */
static int filled_then_used_again(void* arg) {
    Objects* o = arg;
    uint64_t was = kit_committed_now(a);
    take_them(o);
    return kit_committed_now(a) > was ? 4 : used_again(o);
}

static void tokens_in_an_inbox(void) {
    Objects theirs = {.n = 8 * SLOTS}, mine = {.n = 8 * SLOTS};
    kit_worker_run(&worker, take_them, &theirs);
    free_them(&theirs);
    REQUIRE_EQ(in_child(filled_then_used_again, &theirs), 0);
    slab_trim(a);
    take_them(&mine);
    kit_worker_run(&worker, free_them, &mine); /* and in the inbox of the thread that forks */
    REQUIRE_EQ(in_child(filled_then_used_again, &mine), 0);
}

static void tokens_that_vanished_threads_had(void) {
    Objects o = {.n = 8 * SLOTS};
    take_them(&o);
    unsigned had = 0;
    for (unsigned i = 0; i < o.n; i += SLOTS) { /* as after tsi_line_disarm */
        _Atomic uint64_t* word = tsi_remote(&tsi_arena(a)->space, kit_place(a, o.p[i]).line_id);
        uint64_t w = tsi_load_relaxed(word);
        had += (w & TSI_REMOTE_TOKEN) != 0;
        tsi_store_relaxed(word, w & ~TSI_REMOTE_TOKEN);
    }
    REQUIRE(had >= 6); /* of all lines that are full and not the current one */
    int mine = in_child(used_again, &o), another = -1;
    REQUIRE_EQ(mine, 0);
    void* both[] = {&o, &another};
    kit_worker_run(&worker, use_again_in_a_child, both); /* whose heaps have lost their owner there */
    REQUIRE_EQ(another, 0);
    slab_trim(a); /* puts the lines in order again */
}

/* ---- pages ---- */

static long faults_here(void* unused) {
    (void)unused;
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 ? used.ru_minflt : -1;
}
/* Page faults of a child as it begins; 250 for more. */
static int few_faults(void* unused) {
    long n = faults_here(unused);
    return n >= 0 && n < 250 ? (int)n : 250;
}
static int faults_with_allocations(void* unused) {
    for (unsigned n = 0; n < 64; n++) slab_free(a, slab_malloc(a, SIZE));
    return few_faults(unused);
}

/* Lines that are full, lines with room, slabs in the pool: the more there are the more a child reads, and writes no
 * more. */
static void a_child_writes_as_little_however_much_there_is(void) {
    enum { N = 512 << 10 };
    static void* p[N];
    REQUIRE(slab_malloc(a, 64) != NULL);
    int little = in_child(few_faults, NULL);
    for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = slab_malloc(a, 64)) != NULL);
    for (unsigned n = 0; n < N; n++)
        if (n % 9 == 0 || (n / 4096) % 3 == 0) slab_free(a, p[n]);
    int much = in_child(few_faults, NULL);
    REQUIRE_LE(much, little + 48);
    REQUIRE_LE(in_child(faults_with_allocations, NULL), little + 64);
}

static int room_is_kept(void* arg) {
    TsiHeap* h = arg;
    TsiBinding* b = kit_binding(a);
    bool same = tsi_load_relaxed(&h->word) == tsi_heap_word(b->index, TSI_HEAP_LIVE) && h->room != NULL;
    for (unsigned n = 0; n < 4 * SLOTS; n++)
        if (slab_malloc(a, SIZE) == NULL) return 2;
    return !same ? 1 : is_whole() ? 0 : 3;
}

/* F1 */
static void the_forking_thread_keeps_its_heap(void) {
    Objects o = {.n = 4 * SLOTS};
    take_them(&o);
    REQUIRE_EQ(in_child(room_is_kept, tsi_line_heap(kit_binding(a), tsi_line(space, kit_place(a, o.p[0]).line_id))), 0);
}

static int pool_is_whole(void* unused) {
    (void)unused;
    if (!is_whole()) return 1;
    uint64_t was = kit_committed_now(a);
    for (unsigned n = 0; n < 2 * SLOTS; n++)
        if (slab_malloc(a, SIZE) == NULL) return 2;
    return kit_committed_now(a) <= was + 2 * SLAB && is_whole() ? 0 : 3;
}

/* F3: a slab that a vanished thread was about to open. */
static void a_slab_between_the_pool_and_a_heap(void) {
    Objects o = {.n = 2 * SLOTS};
    take_them(&o);
    uint32_t id;
    REQUIRE_NE(tsi_space_take(space, 12, 0, &id), TSI_TAKEN_NOT);
    uint64_t was = kit_committed_now(a);
    REQUIRE_EQ(in_child(pool_is_whole, NULL), 0);
    tsi_space_give(space, &id, 1);
    REQUIRE_EQ(kit_committed_now(a), was - SLAB);
}

/* ---- ends ---- */

static _Atomic unsigned cleanups;
static void cleanup(void* unused) {
    (void)unused;
    tsi_add_relaxed(&cleanups, 1);
}
static void* a_phase(void* unused) {
    (void)unused;
    epoch_domain_t* d = epoch_domain_begin(a, "phase");
    (void)slab_epoch_on_end(a, d->epoch_id, cleanup, NULL);
    (void)slab_malloc(a, 300000); /* not what the first slab holds */
    epoch_domain_end(d);
    return NULL;
}
static int cleanups_were_run(void* unused) {
    (void)unused;
    return (int)tsi_load_relaxed(&cleanups);
}

static void cleanups_of_a_phase_that_was_ending(void) {
    pthread_t t;
    tsi_store_relaxed(&cleanups, 0);
    fake_os_interrupt_call(FAKE_PURGE, stop_here, NULL);
    REQUIRE_EQ(pthread_create(&t, NULL, a_phase, NULL), 0);
    sem_wait(&inside);
    REQUIRE_EQ(tsi_load_relaxed(&cleanups), 0);
    REQUIRE_EQ(in_child(cleanups_were_run, NULL), 1);
    sem_post(&go);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    REQUIRE_EQ(tsi_load_relaxed(&cleanups), 1);
}

static void* leave_with_a_cleanup(void* unused) {
    (void)unused;
    epoch_domain_t* d = epoch_domain_begin(a, "left to the thread's end");
    (void)slab_malloc(a, SIZE);
    (void)slab_epoch_on_end(a, d->epoch_id, stop_here, NULL);
    return NULL;
}
static int ends(void* unused) {
    (void)unused;
    slab_allocator_free(a);
    return 0;
}
static void* fork_again(void* result) {
    (void)slab_malloc(a, SIZE);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(300);
        _exit(ends(NULL));
    }
    *(int*)result = child > 0 && waitpid(child, &status, 0) == child ? status : -1;
    return NULL;
}
static int ends_in_a_grandchild(void* unused) {
    (void)unused;
    pthread_t t;
    int status = -1;
    if (pthread_create(&t, NULL, fork_again, &status) != 0 || pthread_join(t, NULL) != 0) return 2;
    return status == 0 ? 0 : 1;
}

/* The child's next thread takes over a record of somebody who was leaving. */
static void a_thread_that_was_leaving(void) {
    pthread_t t;
    REQUIRE_EQ(pthread_create(&t, NULL, leave_with_a_cleanup, NULL), 0);
    sem_wait(&inside);
    REQUIRE_EQ(in_child(ends_in_a_grandchild, NULL), 0);
    sem_post(&go);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
}

/* ---- the warm store ---- */

static void* trim(void* arg) {
    slab_trim(arg);
    return NULL;
}
static void small_phase(SlabAllocator* warm) {
    epoch_domain_t* d = epoch_domain_begin(warm, "small");
    for (unsigned i = 0; i < 10 * SLOTS; i++) (void)slab_malloc(warm, SIZE);
    epoch_domain_end(d);
}
/* 0 when slabs of a phase serve the next one. */
static int stays_warm(void* warm) {
    for (unsigned n = 0; n < 3; n++) small_phase(warm);
    fake_os_clear();
    for (unsigned n = 0; n < 10; n++) small_phase(warm);
    return fake_os.calls[FAKE_PURGE] == 0 ? 0 : 1;
}

static void a_trim_that_had_the_warm_store(void) {
    SlabAllocator* warm = kit_create();
    pthread_t t;
    REQUIRE_EQ(stays_warm(warm), 0);
    fake_os_interrupt_call(FAKE_PURGE, stop_here, NULL);
    REQUIRE_EQ(pthread_create(&t, NULL, trim, warm), 0);
    sem_wait(&inside);
    REQUIRE_EQ(in_child(stays_warm, warm), 0);
    sem_post(&go);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    kit_check(warm);
    slab_allocator_free(warm);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(a_refill_is_done_or_was_never),
        TEST(a_region_in_the_middle),
        TEST(a_region_that_rests),
        TEST(a_run_in_the_middle),
        TEST(a_gap_in_the_middle),
        TEST(a_phase_of_one_thread_that_was_to_end),
        TEST(tokens_in_an_inbox),
        TEST(tokens_that_vanished_threads_had),
        TEST(a_child_writes_as_little_however_much_there_is),
        TEST(the_forking_thread_keeps_its_heap),
        TEST(a_slab_between_the_pool_and_a_heap),
        TEST(cleanups_of_a_phase_that_was_ending),
        TEST(a_thread_that_was_leaving),
        TEST(a_trim_that_had_the_warm_store),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
