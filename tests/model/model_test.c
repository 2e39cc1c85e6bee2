/*
 * model_test.c - random programs against the reference.
 *
 * One run (run.h): a seed chooses two allocators' options and then every operation, whose threads take turns.
 *
 * Usage: model_test [--seed N] [--ops N] [--threads N] [--keep LIST] [--planted] [--verbose]
 * Without --seed or --threads a fixed set of runs is made. TSLAB_TEST_SCALE multiplies operations. --keep runs only the
 * operations of the list, such as 3,17-20, each as in the run with all of them: shrink.py finds the fewest that fail.
 * --planted fails after a misuse, a drained domain and a realloc, in this order: so that shrink.py can be tested.
 */
#define CHECK_DIVISOR (CHECK_TSAN || CHECK_ASAN ? 4 : 1)
#include "ops_forks.h"

#include <signal.h>

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
    {8, op_grow_large},
    {70, op_ask},
    {40, op_ask_dead},
    {110, op_misuse},
    {16, op_advance},
    {14, op_close},
    {12, op_close_era},
    {10, op_close_gone},
    {14, op_label},
    {6, op_budget},
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
    {12, op_domain_end_ex},
    {12, op_domain_drain},
    {6, op_domain_force_close},
    {15, op_domain_reset},
    {25, op_domain_detach},
    {25, op_domain_attach},
    {50, op_domain_malloc},
    {8, op_domain_close_ex},
    {30, op_move},
    {6, op_move_dead},
    {20, op_outside},
    {12, op_outer},
    {40, op_domain_ways},
    {10, op_domain_stats},
    {30, op_domain_create_ex},
    {4, op_wrap_owned},
    {12, op_domain_destroy_ex},
    {25, op_domain_switch},
    {1, op_fork},
};

static bool planted; /* --planted: see above */

static void fail_if_planted(void (*ran)(struct world*)) {
    static void (*const order[])(struct world*) = {op_misuse, op_domain_drain, op_realloc};
    static unsigned reached;
    if (planted && ran == order[reached]) reached++;
    REQUIRE_OR(reached < sizeof order / sizeof *order, "the fault that was planted");
}

static void pick_by_weight(struct world* w) {
    draw_anew(w, DRAWS_MOOD);
    if (w->op >= w->mood_until) {
        static const int moods[] = {80, 65, 55, 45, 20};
        w->mood = moods[below(w, 5)];
        w->mood_until = w->op + 100 + below(w, 2500);
    }
    if (w->kept && !w->kept[w->op]) return;
    draw_anew(w, DRAWS_OPERATION);
    if (chance(w, 70)) {
        if (chance(w, (unsigned)w->mood)) op_alloc(w);
        else op_free(w);
    } else {
        unsigned total = 0, pick;
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) total += ops[i].weight;
        pick = (unsigned)below(w, total);
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            if (pick < ops[i].weight) {
                ops[i].run(w);
                fail_if_planted(ops[i].run);
                break;
            }
            pick -= ops[i].weight;
        }
    }
}

/* ---- one run ---------------------------------------------------------------------------- */

static void on_crash(int signal_number) {
    signal(signal_number, SIG_DFL);
    fprintf(stderr, "FAILED: signal %d in operation %llu\n", signal_number, (unsigned long long)told_of->op);
    print_journal(told_of);
    fflush(stderr);
    raise(signal_number);
}

static void run_world(uint64_t seed, uint64_t n_ops, int threads, const uint8_t* kept, bool verbose) {
    struct world* w = world_new(threads);
    w->seed = seed, w->dice = kit_mix(seed + 1), w->ops = n_ops, w->kept = kept, w->pick = pick_by_weight;
    world_run(w);
    world_end(w);
    if (verbose)
        fprintf(stderr,
                "seed %llu: %llu operations, %d threads, %llu objects (%llu at most live), %llu turned away, "
                "%llu over budget, %llu incarnations, %llu cleanups\n",
                (unsigned long long)seed, (unsigned long long)w->op, threads, (unsigned long long)w->born,
                (unsigned long long)w->most_live, (unsigned long long)w->turned_away, (unsigned long long)w->over,
                (unsigned long long)w->phases, (unsigned long long)w->cleanups_ran);
    free(w);
}

/* ---- command line ----------------------------------------------------------------------- */

static const char usage[] =
    "usage: model_test [--seed N] [--ops N] [--threads 1..16] [--keep LIST] [--planted] [--verbose]\n";

/* Returns an array of n with a 1 for each operation in the list, or NULL if it is none. */
static uint8_t* read_kept(const char* list, uint64_t n) {
    uint8_t* kept = must_alloc(n + 1);
    while (*list != 0) {
        char* rest;
        uint64_t from = strtoull(list, &rest, 10), to = from;
        if (rest == list) return NULL;
        if (*rest == '-') to = strtoull(list = rest + 1, &rest, 10);
        if (rest == list || to < from || (*rest != ',' && *rest != 0)) return NULL;
        for (uint64_t i = from; i <= to && i < n; i++) kept[i] = 1;
        list = *rest == ',' ? rest + 1 : rest;
    }
    return kept;
}

int main(int argc, char** argv) {
    uint64_t seed = 0, n_ops = 0;
    int threads = 0;
    bool seeded = false, verbose = false;
    const char* keep = NULL;
    for (int i = 1; i < argc; i++) {
        const char* value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--verbose") == 0) verbose = true;
        else if (strcmp(argv[i], "--planted") == 0) planted = true;
        else if (strcmp(argv[i], "--keep") == 0 && value) keep = argv[++i];
        else if (strcmp(argv[i], "--seed") == 0 && value) seed = strtoull(argv[++i], NULL, 0), seeded = true;
        else if (strcmp(argv[i], "--ops") == 0 && value) n_ops = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--threads") == 0 && value) threads = atoi(argv[++i]);
        else {
            fprintf(stderr, "model_test: '%s' is not understood\n%s", argv[i], usage);
            return 2;
        }
    }
    uint8_t* kept = keep ? read_kept(keep, n_ops) : NULL;
    if (threads < 0 || threads > MAX_ACTORS || (keep && (!kept || !n_ops || !seeded))) {
        fputs(usage, stderr);
        return 2;
    }
    unsetenv(
        "TSLAB_OPTIONS"); /* it would have the last word, and the reference expects the options that the seed chose */
    if (!(CHECK_TSAN || CHECK_ASAN)) {
        signal(SIGSEGV, on_crash);
        signal(SIGBUS, on_crash);
        signal(SIGABRT, on_crash);
    }
    if (seeded || threads) {
        run_world(seed, n_ops ? n_ops : check_count(100000), threads ? threads : 1, kept, true);
        free(kept);
        puts("model: ok");
        return 0;
    }
    static const int crowd[] = {1, 2, 4, 8};
    for (uint64_t k = 0; k < 16; k++) run_world(1 + k, n_ops ? n_ops : check_count(40000), crowd[k % 4], NULL, verbose);
    puts("model: ok");
    return 0;
}
