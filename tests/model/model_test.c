/*
 * model_test.c - random programs against the reference.
 *
 * One run (run.h): a seed chooses two allocators' options and then every operation, whose threads take turns.
 *
 * Usage: model_test [--seed N] [--ops N] [--threads N] [--keep LIST] [--options LIST] [--planted] [--list] [--verbose]
 *        model_test --replay FILE
 * Without --seed or --threads a fixed set of runs is made. TSLAB_TEST_SCALE multiplies operations. --keep runs only the
 * operations of the list, such as 3,17-20, each as in the run with all of them: shrink.py finds the fewest that fail.
 * --replay runs what shrink.py has saved of such a run: kept/ has those that noticed a fault. A file names each operation
 * that it keeps, so that it stays the same program when the table below changes. --list tells these names.
 * --options gives both allocators these options whatever the seed says, such as shared=1,bump=3.
 * --planted fails after a misuse, a drained domain and a realloc, in this order: so that shrink.py can be tested.
 */
#define CHECK_DIVISOR (CHECK_TSAN ? 8 : CHECK_ASAN ? 4 : 1)
#include "ops_forks.h"

#include <signal.h>

/* ---- operations ------------------------------------------------------------------------- */

struct op {
    unsigned weight;
    void (*run)(struct world* w);
    const char* name;
};
#define OP(weight, name) \
    { weight, op_##name, #name }

/* The first two are drawn apart, by mood. */
static const struct op ops[] = {
    OP(0, alloc),
    OP(0, free),
    OP(70, alloc_many),
    OP(60, free_many),
    OP(110, realloc),
    OP(10, realloc_null),
    OP(8, grow_large),
    OP(70, ask),
    OP(40, ask_dead),
    OP(110, misuse),
    OP(16, advance),
    OP(14, close),
    OP(12, close_era),
    OP(10, close_gone),
    OP(14, label),
    OP(6, budget),
    OP(10, refcount),
    OP(30, on_end),
    OP(8, upkeep),
    OP(6, small_questions),
    OP(40, domain_create),
    OP(10, domain_wrap),
    OP(60, domain_enter),
    OP(70, domain_exit),
    OP(25, domain_end),
    OP(20, domain_destroy),
    OP(12, domain_end_ex),
    OP(12, domain_drain),
    OP(6, domain_force_close),
    OP(15, domain_reset),
    OP(25, domain_detach),
    OP(25, domain_attach),
    OP(50, domain_malloc),
    OP(8, domain_close_ex),
    OP(30, move),
    OP(6, move_dead),
    OP(20, outside),
    OP(12, outer),
    OP(15, lane),
    OP(25, run),
    OP(90, run_on),
    OP(40, domain_ways),
    OP(10, domain_stats),
    OP(30, domain_create_ex),
    OP(8, churn),
    OP(4, wrap_owned),
    OP(12, domain_destroy_ex),
    OP(25, domain_switch),
    OP(1, fork),
};

static bool planted; /* --planted: see above */

static void fail_if_planted(void (*ran)(struct world*)) {
    static void (*const order[])(struct world*) = {op_misuse, op_domain_drain, op_realloc};
    static unsigned reached;
    if (planted && ran == order[reached]) reached++;
    REQUIRE_OR(reached < sizeof order / sizeof *order, "the fault that was planted");
}

/* What w->kept says of an operation: it runs as drawn, or, from KEPT_AS on, as that one of the table. */
enum { KEPT = 1, KEPT_AS = 2, OPS = sizeof ops / sizeof *ops };
static bool lists;         /* --list: see above */
static const char* forced; /* --options: see above */

/* Draws twice, whatever comes of it: so operations that are named draw as those that were drawn. */
static const struct op* drawn(struct world* w) {
    if (chance(w, 70)) return &ops[chance(w, (unsigned)w->mood) ? 0 : 1];
    unsigned total = 0, at = 0;
    for (size_t i = 0; i < OPS; i++) total += ops[i].weight;
    unsigned pick = (unsigned)below(w, total);
    while (pick >= ops[at].weight) pick -= ops[at++].weight;
    return &ops[at];
}

static void pick_by_weight(struct world* w) {
    draw_anew(w, DRAWS_MOOD);
    if (w->op >= w->mood_until) {
        static const int moods[] = {80, 65, 55, 45, 20};
        w->mood = moods[below(w, 5)];
        w->mood_until = w->op + 100 + below(w, 2500);
    }
    unsigned kept = w->kept ? w->kept[w->op] : KEPT;
    if (kept == 0) return;
    draw_anew(w, DRAWS_OPERATION);
    const struct op* op = drawn(w);
    if (kept >= KEPT_AS) op = &ops[kept - KEPT_AS];
    if (lists) fprintf(stderr, "  op %llu %s\n", (unsigned long long)w->op, op->name);
    op->run(w);
    fail_if_planted(op->run);
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
    w->seed = seed, w->dice = kit_mix(seed + 1), w->ops = n_ops, w->kept = kept, w->forced = forced,
    w->pick = pick_by_weight;
    world_run(w);
    world_end(w);
    if (verbose)
        fprintf(stderr,
                "seed %llu: %llu operations, %d threads, %llu objects (%llu at most live), %llu turned away, "
                "%llu over budget, %llu incarnations, %llu cleanups, %llu runs of memory that went on\n",
                (unsigned long long)seed, (unsigned long long)w->op, threads, (unsigned long long)w->born,
                (unsigned long long)w->most_live, (unsigned long long)w->turned_away, (unsigned long long)w->over,
                (unsigned long long)w->phases, (unsigned long long)w->cleanups_ran, (unsigned long long)w->runs_on);
    free(w);
}

/* ---- command line ----------------------------------------------------------------------- */

static const char usage[] =
    "usage: model_test [--seed N] [--ops N] [--threads 1..16] [--keep LIST] [--options LIST] [--planted] [--list]\n"
    "                  [--verbose]\n"
    "       model_test --replay FILE\n";

/* Returns an array of n with a 1 for each operation in the list, or NULL if it is none. */
static uint8_t* read_kept(const char* list, uint64_t n) {
    uint8_t* kept = must_alloc(n + 1);
    while (*list != 0) {
        char* rest;
        uint64_t from = strtoull(list, &rest, 10), to = from;
        if (rest == list) return NULL;
        if (*rest == '-') to = strtoull(list = rest + 1, &rest, 10);
        if (rest == list || to < from || (*rest != ',' && *rest != 0)) return NULL;
        for (uint64_t i = from; i <= to && i < n; i++) kept[i] = KEPT;
        list = *rest == ',' ? rest + 1 : rest;
    }
    return kept;
}

/* A saved run: lines of "seed N", "threads N" and "ops N", then "op N NAME" for each operation; # begins a comment. */
struct saved {
    unsigned long long seed, threads, ops;
    uint8_t* kept;
};

static bool read_saved_line(struct saved* saved, const char* line) {
    unsigned long long at;
    char name[64];
    unsigned k = 0;
    if (*line == '#' || *line == '\n') return true;
    if (sscanf(line, "seed %llu", &saved->seed) == 1) return true;
    if (sscanf(line, "threads %llu", &saved->threads) == 1) return true;
    if (sscanf(line, "ops %llu", &saved->ops) == 1) {
        saved->kept = saved->kept || saved->ops > 1u << 28 ? saved->kept : must_alloc(saved->ops + 1);
        return saved->kept != NULL;
    }
    if (sscanf(line, "op %llu %63s", &at, name) != 2 || !saved->kept || at >= saved->ops) return false;
    while (k < OPS && strcmp(ops[k].name, name) != 0) k++;
    if (k < OPS) saved->kept[at] = (uint8_t)(KEPT_AS + k);
    return k < OPS;
}

/* Returns the exit code: 0 if the run that the file has passes, 2 if there is none. */
static int replay(const char* path) {
    struct saved saved = {.threads = 1};
    char line[256];
    FILE* file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "model_test: %s: %s\n", path, strerror(errno));
        return 2;
    }
    for (unsigned n = 1; fgets(line, sizeof line, file); n++) {
        if (read_saved_line(&saved, line)) continue;
        fprintf(stderr, "model_test: %s:%u is not understood: %s", path, n, line);
        return 2;
    }
    fclose(file);
    if (!saved.kept || saved.threads < 1 || saved.threads > MAX_ACTORS) {
        fprintf(stderr, "model_test: %s holds no run\n", path);
        return 2;
    }
    run_world(saved.seed, saved.ops, (int)saved.threads, saved.kept, true);
    free(saved.kept);
    puts("model: ok");
    return 0;
}

int main(int argc, char** argv) {
    uint64_t seed = 0, n_ops = 0;
    int threads = 0;
    bool seeded = false, verbose = false;
    const char *keep = NULL, *saved = NULL;
    for (int i = 1; i < argc; i++) {
        const char* value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--verbose") == 0) verbose = true;
        else if (strcmp(argv[i], "--planted") == 0) planted = true;
        else if (strcmp(argv[i], "--list") == 0) lists = true;
        else if (strcmp(argv[i], "--replay") == 0 && value && argc == 3) saved = argv[++i];
        else if (strcmp(argv[i], "--keep") == 0 && value) keep = argv[++i];
        else if (strcmp(argv[i], "--options") == 0 && value) forced = argv[++i];
        else if (strcmp(argv[i], "--seed") == 0 && value) seed = strtoull(argv[++i], NULL, 0), seeded = true;
        else if (strcmp(argv[i], "--ops") == 0 && value) n_ops = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--threads") == 0 && value) threads = atoi(argv[++i]);
        else {
            fprintf(stderr, "model_test: '%s' is not understood\n%s", argv[i], usage);
            return 2;
        }
    }
    uint8_t* kept = keep ? read_kept(keep, n_ops) : NULL;
    SlabOptions tried = {.struct_size = sizeof tried};
    if (!force_options(&tried, forced ? forced : "") || threads < 0 || threads > MAX_ACTORS ||
        (keep && (!kept || !n_ops || !seeded))) {
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
    if (saved) return replay(saved);
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
