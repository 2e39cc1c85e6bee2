/*
 * world.h - the state of one model run: the reference's tables, the dice, the journal.
 *
 * A run owns two allocators ("sides"), so that foreign pointers, foreign handles and domains
 * nested across allocators occur. Of each side the reference remembers
 *
 *     incarnation   one life of an epoch id: era, state, label, object and byte balance
 *     object        pointer, size asked for, usable size, fill seed, handle, incarnation
 *     dead object   a pointer and handle that must be refused from now on
 *     account       what was booked under a label, and its budget
 *
 * and beside them the domains and the actors (threads) with their stacks of scopes. Nothing here
 * calls the library: reference.h keeps the books, ops_*.h drive the library, expect.h compares.
 *
 * All choices come from one generator, drawn by whoever has the turn, so a seed replays a run. A fuzzer
 * puts its input in the generator's place (`fed`): each choice takes as many bytes as its range needs, and
 * the run ends with the input.
 */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "kit/inside.h"

#include "slab_lane.h"

#include <semaphore.h>

enum {
    SIDES = 2,
    MAX_RING = 64,
    MAX_ACTORS = 16,
    MAX_STACK = 80, /* deeper than the 33 scopes at which older designs gave up */
    MAX_DOMAINS = 40,
    MAX_CLEANUPS = 6,
    DEAD_KEPT = 256,
    DEAD_DOMAINS = 16,
    GONE_KEPT = 64,
    LANES_KEPT = 16,
    MOST_LABELS = 256,
    LARGE_OVER = 256 << 10, /* objects of more bytes have pages of their own */
    BUMPED_MOST = 4096,     /* larger ones are not born in regions */
    BUMPED_ALIGN = 1024,
    ALONE_MOST = 128 << 10, /* when they have grown they may have a region alone */
    SETTLED = 64 << 10,     /* bytes that a phase bumps, whatever it frees */
    BUMP_OFF = 2,
    BUMP_DOMAINS = 3,
    LOG_LINES = 30,
    LOG_WIDTH = 160
};

enum inc_state { INC_ACTIVE, INC_ADVANCED, INC_CLOSED, INC_RELEASED };

/* Causes of refusal, in the order of SlabRefusals; the first SLAB_MISUSE_COUNT equal SlabMisuse. */
enum {
    CAUSE_LATE_DOUBLE = SLAB_MISUSE_COUNT,
    CAUSE_NO_MEMORY,
    CAUSE_RETIRED,
    CAUSE_ENVIRONMENT,
    CAUSE_BUDGET,
    CAUSE_COUNT
};
#define BIT(c) (1u << (c))

struct world;
struct inc;

struct cleanup {
    struct world* w;
    struct inc* inc;
    unsigned index; /* order of registration within the incarnation */
};

struct balance {
    uint64_t allocated, freed, released, live;
};

/* A budget. */
struct limit {
    uint64_t soft, hard;
    uint64_t allowed;                /* above `hard`: committed before it was set, or brought along by a relabelling */
    uint64_t late;                   /* what threads may have had pending when it was set */
    uint64_t told_soft, told_before; /* in all; before it was set */
    bool mute;                       /* no function to tell */
    bool passed;                     /* `soft` was passed already when it was set */
    const void* ctx;                 /* what its function is told */
};

/* What the reference knows of a label: sums of the past, the incarnations under it that are open, and what lives. */
struct account {
    char name[32];
    struct balance objects, bytes;
    uint64_t objects_escaped, bytes_escaped;
    uint64_t open, ended, ended_held; /* held: they had objects */
    uint64_t ended_timed;             /* of those that had objects: without the untimed ones */
    uint64_t opened_most;             /* incarnations that were ever under it */
    uint64_t swallowed, large;        /* large: such objects born */
    uint64_t most_live;               /* bytes */
    uint64_t closed_least, pinned_least;
    uint64_t refused_least;
    uint64_t over; /* allocations refused by its budget, a phase's, or max_bytes */
    struct limit limit;
    bool muted; /* a budget of it had no function once */
};

struct inc {
    int side;
    uint64_t era;
    EpochId id;
    bool ring;  /* a ring id, else a domain's own epoch */
    bool named; /* the id still means this incarnation */
    enum inc_state state;
    char label[32];
    unsigned account; /* index in side.accounts */
    struct balance objects, bytes;
    uint64_t large_live, most_live; /* objects; bytes */
    uint64_t opened_ns, used_ns;    /* it was opened after the one, had its first object before the other (0: none) */
    uint64_t users;                 /* actors that were inside or tried to allocate, and have not left since; a bit each */
    uint64_t classed;               /* classes that have had objects, regions apart; a bit each */
    uint64_t gaps_most;             /* bytes that alignment and runs may have left free in regions */
    unsigned owner;                 /* slot + 1 of the only actor that may use it while it is active; 0: all may */
    bool untimed;                   /* SLAB_DOMAIN_UNTIMED */
    bool unlimited;                 /* it allocated where no hard limit was */
    bool tried;                     /* an allocation was refused for a budget */
    bool drained;                   /* escapes were counted */
    bool ran;                       /* a run was open in it */
    bool asked, measured;           /* closed by id or era; when objects lived in it */
    struct limit limit;
    uint64_t refcount;
    unsigned scopes; /* domain scopes bound to it, all domains together */
    unsigned pins;   /* domains that refer to it */
    struct cleanup* cleanups[MAX_CLEANUPS];
    unsigned n_cleanups, n_ran;
    bool releasing; /* inside a library call that ends its objects */
};

struct obj {
    unsigned char* p;
    size_t asked, usable, reach; /* the second: of its slot or granules; the third: that its user has, less with a stand-in */
    void* slot;  /* where it would be, if that is elsewhere: its user has a block of malloc, or a place before a guard */
    bool large;  /* has pages of its own: for its size, or for its alignment */
    bool bumped; /* lies in a region */
    uint64_t seed;
    SlabHandle h;  /* 0: none issued yet */
    uint64_t walk; /* number of the walk that met it */
    struct inc* inc;
    size_t at; /* index in side.objs */
};

struct dead {
    void* p;
    SlabHandle h;
    size_t usable;
    uint64_t op; /* when it died */
    bool plain;  /* died by a single free in an ACTIVE incarnation */
};

struct gone {
    uint64_t era;
    struct balance objects, bytes;
};

struct side {
    SlabAllocator* a;
    SlabOptions options;
    uint32_t ring_size, current;
    struct inc* ring[MAX_RING];
    struct inc** incs;
    size_t n_incs, cap_incs;
    struct obj** objs;   /* any order: random choice */
    struct obj** sorted; /* by address: overlap, liveness of an address */
    size_t n_objs, cap_objs;
    uint64_t live_bytes, max_era, max_ring_era;
    uint8_t* era_used; /* a bit each: eras are never used again */
    uint64_t eras_known;
    struct dead dead[DEAD_KEPT];
    uint64_t n_dead;
    struct gone gone[GONE_KEPT];
    uint64_t n_gone;
    /* refusals: what was seen last, and what the running operation may add */
    uint64_t seen[CAUSE_COUNT];
    uint32_t want_mask;
    unsigned want_min, want_max;
    uint64_t told[SLAB_MISUSE_COUNT]; /* by the misuse callback */
    /* labels, in the order the library made their records: "(unlabeled)", "(other)", then as they came */
    struct account accounts[MOST_LABELS];
    unsigned n_accounts, max_labels;
    uint64_t created_ns, walks;
    struct {
        uint64_t objects, bytes; /* as asked for */
    } outside_least, outside_most; /* made outside of every scope by a thread inside of one */
    struct last* last; /* figures told last, see expect_report.h */
};

/* LOST: its phase has ended with the thread that began it; the domain may have gone on to others. */
enum run_state { RUN_NONE, RUN_OPEN, RUN_LOST };

struct dom {
    epoch_domain_t* d;
    int side;
    bool own, auto_close;
    bool entered, drained; /* borrowed: once at least; by its last exit */
    char label[32];
    struct inc* inc; /* the incarnation it is bound to; pinned */
    unsigned refcount, detached;
    unsigned owner;      /* slot + 1 of the only actor that may use it; 0: all may */
    bool untimed;        /* as its incarnations are */
    bool vanished;       /* its last incarnation was released in a fork child, which leaves no receipt */
    struct limit budget; /* which each of its incarnations begins with */
    SlabRun run;         /* never copied, but to be refused */
    enum run_state run_state;
    const TsiRegion* run_region; /* which it had last, and where it stood there */
    uintptr_t run_at;
};

/* A lane, kept from operation to operation, whatever becomes of its domain. */
struct lane {
    SlabLane lane;
    epoch_domain_t* d; /* NULL: not opened yet */
    int side;
    uint64_t era; /* of the incarnation it was opened in */
};

struct actor {
    struct world* w;
    int slot;
    bool alive, leaving;
    pthread_t thread;
    sem_t go;
    struct dom* stack[MAX_STACK];
    unsigned depth;
    ThreadStats sampled; /* at the end of its last turn */
};

struct world {
    uint64_t seed, dice, ops, op;
    bool fed;             /* choices come from the input, not from the dice */
    const char* forced;   /* options whatever the seed says, such as shared=1,bump=3; NULL: none */
    const uint8_t* kept;  /* by operation: 0 leaves it out; NULL: none is left out */
    const uint8_t* input; /* a fuzzer's; NULL in the model test */
    size_t input_left;
    void (*pick)(struct world* w); /* chooses an operation and runs it */
    int threads;
    struct side side[SIDES];
    struct dom* doms[MAX_DOMAINS];
    unsigned n_doms;
    struct {
        epoch_domain_t* d;
        int side;
    } dead_doms[DEAD_DOMAINS]; /* destroyed */
    unsigned n_dead_doms;
    struct lane lanes[LANES_KEPT];
    struct actor actors[MAX_ACTORS];
    struct actor* actor; /* who has the turn */
    sem_t turn_over;
    bool stopping, in_cleanup;
    bool budgets;              /* some runs have them */
    const struct obj* in_call; /* a call on this object is under way: cleanups leave it alone */
    const struct obj* moved;   /* has another place now, and is about to be forgotten; NULL: none */
    struct dom* in_run;        /* an allocation of its run is under way */
    struct birth* birth;       /* the allocation that is under way, see ops_objects.h */
    bool strangers;            /* threads that are no actors have allocated */
    ThreadStats sampled_gone;  /* of threads that left */
    int mood;                  /* percent of object operations that allocate */
    uint64_t mood_until;
    uint64_t cleanups_ran, checks, born, turned_away, most_live, phases, over, runs_on; /* how much a run did */
    char log[LOG_LINES][LOG_WIDTH];
    uint64_t n_log;
    struct {
        const char *what, *name;
        uint64_t number;
    } about; /* the row of a report that is being compared */
};

/* ---- dice ------------------------------------------------------------------------------- */

/* What each operation draws, and each turn, begins anew: so the others stay what they are when one is left out. */
enum draws { DRAWS_TURN, DRAWS_LEAVE, DRAWS_NEXT, DRAWS_MOOD, DRAWS_OPERATION };

/* The next n bytes of the input as a number; zeros after its end, where the run stops. */
static inline uint64_t take_input(struct world* w, unsigned n) {
    uint64_t v = 0;
    for (; n > 0; n--) {
        v = v << 8 | (w->input_left ? *w->input : 0);
        if (w->input_left) w->input++, w->input_left--;
        else w->ops = w->op;
    }
    return v;
}

static inline uint64_t roll(struct world* w) {
    if (w->fed) return take_input(w, 8);
    return kit_rand(&w->dice);
}

static inline void draw_anew(struct world* w, enum draws what) {
    if (!w->fed) w->dice = kit_mix(kit_mix(w->seed + 1) + w->op * 8 + what);
}

static inline uint64_t below(struct world* w, uint64_t n) {
    if (n < 2) return w->fed || n == 0 ? 0 : roll(w) % n;
    if (!w->fed) return roll(w) % n;
    unsigned bytes = 1;
    while (bytes < 8 && (n - 1) >> (8 * bytes)) bytes++;
    return take_input(w, bytes) % n;
}

static inline bool chance(struct world* w, unsigned percent) { return below(w, 100) < percent; }

/* ---- journal and failure ---------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static inline void note(struct world* w, const char* format, ...) {
    char* line = w->log[w->n_log++ % LOG_LINES];
    int n = snprintf(line, LOG_WIDTH, "#%llu t%d ", (unsigned long long)w->op, w->actor ? w->actor->slot : 0);
    va_list args;
    va_start(args, format);
    vsnprintf(line + n, LOG_WIDTH - (size_t)n, format, args);
    va_end(args);
}

/* Labels have any bytes: not for a terminal. */
static inline void print_line(const char* line) {
    for (; *line; line++) fputc(*line >= ' ' && *line < 0x7f ? *line : '?', stderr);
    fputc('\n', stderr);
}

static inline void print_journal(const struct world* w) {
    fprintf(stderr, "  last operations, oldest first:\n");
    uint64_t first = w->n_log > LOG_LINES ? w->n_log - LOG_LINES : 0;
    for (uint64_t i = first; i < w->n_log; i++) fputs("    ", stderr), print_line(w->log[i % LOG_LINES]);
    if (!w->input)
        fprintf(stderr, "  replay: model_test --seed %llu --ops %llu --threads %d%s\n", (unsigned long long)w->seed,
                (unsigned long long)w->ops, w->threads,
                w->kept ? " and its --keep"
                        : "; tests/model/shrink.py with these finds the fewest operations that fail");
}

static const struct world* told_of; /* whose failures there may be */

/* What is added to one: of which run, and what that did last. */
static inline void tell_of_world(void) {
    const struct world* w = told_of;
    if (w->about.what)
        fprintf(stderr, "  of %s %llu ", w->about.what, (unsigned long long)w->about.number), print_line(w->about.name);
    fprintf(stderr, "  seed %llu, operation %llu, threads %d\n", (unsigned long long)w->seed, (unsigned long long)w->op,
            w->threads);
    print_journal(w);
    fflush(stderr);
    if (!w->input) _Exit(1); /* an abort is what a fuzzer takes for a finding */
}

static inline void about(struct world* w, const char* what, uint64_t number, const char* name) {
    w->about.what = what, w->about.number = number, w->about.name = name;
}

static inline void* must_alloc(size_t n) {
    void* p = calloc(1, n);
    if (!p) {
        fprintf(stderr, "the test itself is out of memory\n");
        _Exit(2);
    }
    return p;
}

#endif
