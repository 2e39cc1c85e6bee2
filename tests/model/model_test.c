/*
 * model_test.c - random programs against the reference.
 *
 * One run: a seed chooses two allocators' options and then every operation. With several threads
 * the turn goes from thread to thread, so that the run stays deterministic and every figure exact
 * although objects are freed by strangers, scopes change hands and threads are born and die: only
 * the holder of the turn moves, and a thread that leaves is joined before the next turn.
 *
 * Usage: model_test [--seed N] [--ops N] [--threads N] [--verbose]
 * Without --seed or --threads a fixed set of runs is made. TSLAB_TEST_SCALE multiplies operations.
 */
#include <signal.h>
#include <unistd.h>

#include "ops_domains.h"
#include "ops_misuse.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { CHECK_EVERY = 250, CHECK_ALL_EVERY = 2500 };

/* ---- operations ------------------------------------------------------------------------- */

struct op {
    unsigned weight;
    void (*run)(struct world* w);
};

/* Allocation and single frees are drawn apart, by mood. */
static const struct op ops[] = {
    {70, op_alloc_many},
    {60, op_free_many},
    {110, op_realloc},
    {10, op_realloc_null},
    {70, op_ask},
    {40, op_ask_dead},
    {110, op_misuse},
    {16, op_advance},
    {14, op_close},
    {12, op_close_era},
    {10, op_close_gone},
    {12, op_label},
    {10, op_refcount},
    {30, op_on_end},
    {8, op_upkeep},
    {6, op_small_questions},
    {40, op_domain_create},
    {10, op_domain_wrap},
    {60, op_domain_enter},
    {70, op_domain_exit},
    {25, op_domain_end},
    {20, op_domain_destroy},
    {6, op_domain_force_close},
    {15, op_domain_reset},
    {25, op_domain_detach},
    {25, op_domain_attach},
    {50, op_domain_malloc},
    {8, op_domain_close_ex},
};

static void one_op(struct world* w) {
    if (w->op >= w->mood_until) {
        static const int moods[] = {80, 65, 55, 45, 20};
        w->mood = moods[below(w, 5)];
        w->mood_until = w->op + 100 + below(w, 2500);
    }
    if (chance(w, 70)) {
        if (chance(w, (unsigned)w->mood))
            op_alloc(w);
        else
            op_free(w);
    } else {
        unsigned total = 0, pick;
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) total += ops[i].weight;
        pick = (unsigned)below(w, total);
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            if (pick < ops[i].weight) {
                ops[i].run(w);
                break;
            }
            pick -= ops[i].weight;
        }
    }
    settle(w);
    w->op++;
    if (w->op % CHECK_ALL_EVERY == 0)
        check_everything(w);
    else if (w->op % CHECK_EVERY == 0)
        check_invariants(w);
}

static void take_turn(struct world* w) {
    uint64_t n = 1 + below(w, chance(w, 10) ? 80 : 12);
    while (n-- > 0 && w->op < w->ops) one_op(w);
    if (w->actor->slot == 0 || !chance(w, 2)) return;
    note(w, "thread leaves with %u scopes", w->actor->depth);
    for (unsigned i = 0; i < w->actor->depth; i++) w->actor->stack[i]->inc->releasing = true;
    w->actor->leaving = true;
}

/* ---- threads ---------------------------------------------------------------------------- */

static void* actor_main(void* arg) {
    struct actor* t = arg;
    for (;;) {
        while (sem_wait(&t->go) != 0) {
        }
        if (t->w->stopping) t->leaving = true;
        if (!t->leaving) take_turn(t->w);
        bool leaving = t->leaving;
        sem_post(&t->w->turn_over);
        if (leaving) return NULL; /* joined: the library's thread-exit work belongs to this turn */
    }
}

static void give_turn(struct world* w, struct actor* t) {
    w->actor = t;
    if (t->slot == 0) {
        take_turn(w);
        return;
    }
    if (!t->alive) {
        note(w, "thread is born");
        t->leaving = false;
        t->alive = true;
        sem_init(&t->go, 0, 0);
        if (pthread_create(&t->thread, NULL, actor_main, t) != 0) FAIL(w, "no thread");
    }
    sem_post(&t->go);
    while (sem_wait(&w->turn_over) != 0) {
    }
    if (!t->leaving) return;
    pthread_join(t->thread, NULL);
    sem_destroy(&t->go);
    t->alive = false;
    leave_all(w, t);
    settle(w);
}

/* ---- one run ---------------------------------------------------------------------------- */

static void misuse_told(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx) {
    struct side* s = ctx;
    (void)where;
    if (a == s->a && what < SLAB_MISUSE_COUNT) s->told[what]++;
}

static void side_open(struct world* w, int index) {
    struct side* s = &w->side[index];
    static const uint32_t rings[] = {0, 0, 2, 3, 5, 16, 64}, slabs[] = {0, 0, 0, 4096, 16384, 65536};
    static const uint64_t warm[] = {0, 0, UINT64_MAX, 64 << 10, 8 << 20};
    s->options.struct_size = sizeof s->options;
    s->options.ring_size = rings[below(w, 7)];
    s->options.slab_bytes = slabs[below(w, 6)];
    s->options.warm_bytes = warm[below(w, 5)];
    s->options.purge_policy = chance(w, 80) ? SLAB_PURGE_DONTNEED : (uint32_t)(1 + below(w, 2));
    s->options.prefault = chance(w, 10);
    s->options.misuse_fn = misuse_told;
    s->options.misuse_ctx = s;
    s->a = slab_allocator_create_with(&s->options);
    REQUIRE(w, s->a, "no allocator: %s", slab_last_error());
    s->ring_size = s->options.ring_size ? s->options.ring_size : 16;
    s->current = epoch_current(s->a);
    REQUIRE(w, s->current == 0, "the first epoch is %u", s->current);
    for (uint32_t id = 0; id < s->ring_size; id++) {
        s->ring[id] = ref_open(w, index, epoch_era(s->a, id), id, true, "");
        check_named(w, s, s->ring[id]);
    }
}

/* Ends everything that is open or holds something. */
static void side_end(struct world* w, struct side* s) {
    for (size_t i = s->n_incs; i-- > 0;) {
        struct inc* inc = s->incs[i];
        if (inc->state == INC_RELEASED && !(inc->ring && inc->named)) continue;
        uint64_t bytes = ending(inc);
        EpochReceipt r;
        bool sure = inc->named || inc->objects.live > 0;
        note(w, "last close s%d era %llu", side_index(w, s), (unsigned long long)inc->era);
        bool done = epoch_close_era(s->a, inc->era, EPOCH_RELEASE, &r);
        REQUIRE(w, done || !sure, "last close of era %llu refused", (unsigned long long)inc->era);
        ended(w, inc, EPOCH_RELEASE);
        if (done)
            check_receipt(w, &r, inc, bytes);
        else
            want(s, BIT(SLAB_MISUSE_BAD_EPOCH), 0, 1);
        check_refusals(w, s);
        check_cleanups(w, inc);
    }
}

/* Expects nothing left, and takes the allocator down. */
static void side_shut(struct world* w, struct side* s) {
    SlabGlobalStats g;
    slab_stats_global(s->a, &g);
    REQUIRE(w, g.live_objects == 0 && g.live_bytes == 0, "%llu objects left after the end",
            (unsigned long long)g.live_objects);
    uint64_t warm = s->options.warm_bytes == 0            ? 1u << 20
                    : s->options.warm_bytes == UINT64_MAX ? 0
                                                          : s->options.warm_bytes;
    if (s->options.purge_policy != SLAB_PURGE_NEVER)
        REQUIRE(w, g.committed_bytes <= warm, "%llu bytes committed after the end, %llu may stay warm",
                (unsigned long long)g.committed_bytes, (unsigned long long)warm);
    slab_allocator_free(s->a);
    for (size_t i = 0; i < s->n_incs; i++) {
        for (unsigned c = 0; c < s->incs[i]->n_cleanups; c++) free(s->incs[i]->cleanups[c]);
        free(s->incs[i]);
    }
    free(s->incs);
    free(s->objs);
    free(s->sorted);
    free(s->era_used);
}

static struct world* running;

static void on_crash(int signal_number) {
    signal(signal_number, SIG_DFL);
    fprintf(stderr, "FAILED: signal %d in operation %llu\n", signal_number, (unsigned long long)running->op);
    print_journal(running);
    fflush(stderr);
    raise(signal_number);
}

static void run_world(uint64_t seed, uint64_t n_ops, int threads, bool verbose) {
    struct world* w = must_alloc(sizeof *w);
    w->seed = seed, w->dice = mix64(seed + 1), w->ops = n_ops, w->threads = threads;
    running = w;
    sem_init(&w->turn_over, 0, 0);
    for (int i = 0; i < threads; i++) w->actors[i].w = w, w->actors[i].slot = i;
    w->actors[0].thread = pthread_self(), w->actors[0].alive = true;
    w->actor = &w->actors[0];
    for (int i = 0; i < SIDES; i++) side_open(w, i);
    while (w->op < w->ops) give_turn(w, &w->actors[below(w, (uint64_t)threads)]);

    w->stopping = true;
    for (int i = 1; i < threads; i++) {
        if (!w->actors[i].alive) continue;
        w->actor = &w->actors[i];
        for (unsigned k = 0; k < w->actor->depth; k++) w->actor->stack[k]->inc->releasing = true;
        w->actor->leaving = true;
        give_turn(w, w->actor);
    }
    w->actor = &w->actors[0];
    while (w->actor->depth > 0) {
        exit_top(w);
        settle(w);
    }
    while (w->n_doms > 0) { /* detached scopes come home first */
        struct dom* d = w->doms[0];
        while (d->detached > 0) {
            REQUIRE(w, epoch_domain_attach(d->d), "attach of a detached scope refused");
            w->actor->stack[w->actor->depth++] = d;
            d->detached--;
            exit_top(w);
            settle(w);
        }
        if (d->own) ending(d->inc);
        epoch_domain_destroy(d->d);
        if (d->own) ref_release(w, d->inc), d->inc->releasing = false;
        ref_dom_drop(w, d);
        settle(w);
    }
    check_everything(w);
    for (int i = 0; i < SIDES; i++) side_end(w, &w->side[i]);
    check_everything(w);
    for (int i = 0; i < SIDES; i++) side_shut(w, &w->side[i]);
    if (verbose)
        fprintf(stderr,
                "seed %llu: %llu operations, %d threads, %llu objects (%llu at most live), %llu turned away, "
                "%llu incarnations, %llu cleanups\n",
                (unsigned long long)seed, (unsigned long long)w->op, threads, (unsigned long long)w->born,
                (unsigned long long)w->most_live, (unsigned long long)w->turned_away, (unsigned long long)w->phases,
                (unsigned long long)w->cleanups_ran);
    sem_destroy(&w->turn_over);
    running = NULL;
    free(w);
}

/* ---- command line ----------------------------------------------------------------------- */

static double scale(void) {
    const char* text = getenv("TSLAB_TEST_SCALE");
    double value = text ? strtod(text, NULL) : 1.0;
    return (value > 0 ? value : 1.0) * (SANITIZED ? 0.25 : 1.0);
}

static const char usage[] = "usage: model_test [--seed N] [--ops N] [--threads 1..16] [--verbose]\n";

int main(int argc, char** argv) {
    uint64_t seed = 0, n_ops = 0;
    int threads = 0;
    bool seeded = false, verbose = false;
    for (int i = 1; i < argc; i++) {
        const char* value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--seed") == 0 && value)
            seed = strtoull(argv[++i], NULL, 0), seeded = true;
        else if (strcmp(argv[i], "--ops") == 0 && value)
            n_ops = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--threads") == 0 && value)
            threads = atoi(argv[++i]);
        else {
            fprintf(stderr, "model_test: '%s' is not understood\n%s", argv[i], usage);
            return 2;
        }
    }
    if (threads < 0 || threads > MAX_ACTORS) {
        fputs(usage, stderr);
        return 2;
    }
    if (!SANITIZED) {
        signal(SIGSEGV, on_crash);
        signal(SIGBUS, on_crash);
        signal(SIGABRT, on_crash);
    }
    if (seeded || threads) {
        run_world(seed, n_ops ? n_ops : (uint64_t)(100000 * scale()), threads ? threads : 1, true);
        puts("model: ok");
        return 0;
    }
    static const int crowd[] = {1, 2, 4, 8};
    for (uint64_t k = 0; k < 16; k++)
        run_world(1 + k, n_ops ? n_ops : (uint64_t)(40000 * scale()), crowd[k % 4], verbose);
    puts("model: ok");
    return 0;
}
