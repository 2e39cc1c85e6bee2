/*
 * run.h - a run of the model: two allocators opened, turns given to the actors until the operations or the
 * input are used up, everything ended and taken down, with the books compared along the way.
 *
 * With several threads the turn goes from thread to thread, so that the run stays deterministic and every
 * figure exact although objects are freed by strangers, scopes change hands and threads are born and die:
 * only the holder of the turn moves, and a thread that leaves is joined before the next turn. What an
 * operation is, w->pick decides.
 */
#ifndef MODEL_RUN_H
#define MODEL_RUN_H

#include "ops_budgets.h"
#include "ops_domains.h"
#include "ops_lanes.h"
#include "ops_misuse.h"
#include "ops_moves.h"

enum { CHECK_EVERY = 250, CHECK_ALL_EVERY = 2500 };

/* ---- turns ------------------------------------------------------------------------------ */

static void one_op(struct world* w) {
    w->pick(w);
    settle(w);
    w->op++;
    if (w->op % CHECK_ALL_EVERY == 0) check_everything(w);
    else if (w->op % CHECK_EVERY == 0) check_invariants(w);
}

static void actor_ends(struct world* w, const struct actor* t) {
    for (unsigned i = 0; i < t->depth; i++) t->stack[i]->inc->releasing = true;
    owned_end(w, t);
}

static void take_turn(struct world* w) {
    draw_anew(w, DRAWS_TURN);
    uint64_t n = 1 + below(w, chance(w, 10) ? 80 : 12);
    while (n-- > 0 && w->op < w->ops) one_op(w);
    draw_anew(w, DRAWS_LEAVE);
    if (w->actor->slot == 0 || !chance(w, 2)) return;
    note(w, "thread leaves with %u scopes", w->actor->depth);
    actor_ends(w, w->actor);
    w->actor->leaving = true;
}

/* ---- threads ---------------------------------------------------------------------------- */

static void* actor_main(void* arg) {
    struct actor* t = arg;
    for (;;) {
        while (sem_wait(&t->go) != 0) {}
        if (t->w->stopping) t->leaving = true;
        if (!t->leaving) take_turn(t->w);
        t->sampled = slab_stats_thread();
        bool leaving = t->leaving;
        sem_post(&t->w->turn_over);
        if (leaving) return NULL; /* joined: the library's thread-exit work belongs to this turn */
    }
}

/* Its heaps are nobody's, and its slabs may have gone: what a second free meets is not known any more. */
static void actor_left(struct world* w, const struct actor* t) {
    for (int i = 0; i < SIDES; i++) {
        struct side* s = &w->side[i];
        for (size_t k = 0; k < s->n_incs; k++) s->incs[k]->users &= ~((uint64_t)1 << t->slot);
        for (unsigned k = 0; k < DEAD_KEPT; k++) s->dead[k].plain = false;
    }
}

static void give_turn(struct world* w, struct actor* t) {
    w->actor = t;
    if (t->slot == 0) {
        take_turn(w);
        t->sampled = slab_stats_thread();
        return;
    }
    if (!t->alive) {
        note(w, "thread is born");
        t->leaving = false;
        t->alive = true;
        memset(&t->sampled, 0, sizeof t->sampled);
        sem_init(&t->go, 0, 0);
        t->thread = kit_thread(actor_main, t);
    }
    sem_post(&t->go);
    while (sem_wait(&w->turn_over) != 0) {}
    if (!t->leaving) return;
    pthread_join(t->thread, NULL);
    sem_destroy(&t->go);
    t->alive = false;
    add_samples(&w->sampled_gone, &t->sampled);
    actor_left(w, t);
    leave_all(w, t);
    settle(w);
}

/* ---- one run ---------------------------------------------------------------------------- */

static void misuse_told(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx) {
    struct side* s = ctx;
    (void)where;
    if (a == s->a && what < SLAB_MISUSE_COUNT) s->told[what]++;
}

/* Sets one option of a list such as shared=1,bump=3, and returns what follows; NULL if it is none of these. */
static const char* force_option(SlabOptions* o, const char* list) {
    static const struct {
        const char* name;
        size_t at;
    } bytes[] = {{"shared", offsetof(SlabOptions, shared)},
                 {"bump", offsetof(SlabOptions, bump)},
                 {"fill_freed", offsetof(SlabOptions, fill_freed)},
                 {"random_order", offsetof(SlabOptions, random_order)},
                 {"by_malloc", offsetof(SlabOptions, by_malloc)},
                 {"late_access", offsetof(SlabOptions, late_access)},
                 {"guard_period", offsetof(SlabOptions, guard_period)},
                 {"guard_sampling", offsetof(SlabOptions, guard_sampling)},
                 {"purge_policy", offsetof(SlabOptions, purge_policy)}};
    for (unsigned k = 0; k < sizeof bytes / sizeof *bytes; k++) {
        size_t n = strlen(bytes[k].name);
        if (strncmp(list, bytes[k].name, n) != 0 || list[n] != '=') continue;
        char* rest;
        unsigned long value = strtoul(list + n + 1, &rest, 10);
        if (rest == list + n + 1 || value > 255 || (*rest != ',' && *rest != 0)) return NULL;
        ((uint8_t*)o)[bytes[k].at] = (uint8_t)value; /* some have more bytes, of which this is the first */
        return *rest == ',' ? rest + 1 : rest;
    }
    return NULL;
}

static bool force_options(SlabOptions* o, const char* list) {
    while (list && *list) list = force_option(o, list);
    return list != NULL;
}

enum { STAND_INS = 1270 /* such that the fixed seeds have all kinds, and those in kept/ none */ };

/* Now and then objects are elsewhere than in their slots. Drawn apart from the other options, which a seed gives as before. */
static void draw_stand_ins(SlabOptions* o, uint64_t dice) {
    uint64_t kind = dice % 100, much = dice / 100;
    if (kind < 8) o->by_malloc = 1;
    else if (kind < 12) o->late_access = 1;
    else if (kind < 18) o->guard_period = 1 + (uint32_t)(much % 9);
    else if (kind < 26) o->guard_sampling = (uint32_t)16 << much % 6;
}

static void side_open(struct world* w, int index) {
    struct side* s = &w->side[index];
    static const uint32_t rings[] = {0, 0, 2, 3, 5, 16, 64}, slabs[] = {0, 0, 0, 4096, 16384, 65536};
    static const uint64_t warm[] = {0, 0, UINT64_MAX, 64 << 10, 8 << 20};
    static const uint32_t labels[] = {0, 0, 3, 4, 6, 12};
    s->options.struct_size = sizeof s->options;
    s->options.by_malloc = 2; /* objects stay in their slots, also under a tool */
    s->options.ring_size = rings[below(w, 7)];
    s->options.slab_bytes = slabs[below(w, 6)];
    s->options.warm_bytes = warm[below(w, 5)];
    s->options.purge_policy = chance(w, 80) ? SLAB_PURGE_DONTNEED : (uint32_t)(1 + below(w, 2));
    s->options.prefault = chance(w, 10);
    s->options.max_labels = labels[below(w, 6)];
    s->options.sampling_period = chance(w, 20) ? 16 + (uint32_t)below(w, 200) : 0;
    s->options.profile_bytes = chance(w, 20) ? (uint64_t)512 << below(w, 8) : 0;
    if (!w->fed && chance(w, 20)) s->options.max_bytes = ((uint64_t)64 << 10) << below(w, 11);
    s->options.shared = chance(w, 30);
    s->options.fill_freed = chance(w, 20);
    s->options.random_order = chance(w, 10);
    s->options.quarantine_bytes = chance(w, 20) ? (uint64_t)65536 << below(w, 8) : 0;
    s->options.bump = chance(w, 30) ? BUMP_OFF : chance(w, 20) ? BUMP_DOMAINS : (uint8_t)below(w, 2);
    if (!w->fed) draw_stand_ins(&s->options, kit_mix(w->seed + STAND_INS * (1 + (uint64_t)index)));
    if (w->forced) REQUIRE_OR(force_options(&s->options, w->forced), "options '%s'", w->forced);
    if (s->options.random_order) s->options.bump = BUMP_OFF; /* as it implies */
    s->options.misuse_fn = misuse_told;
    s->options.misuse_ctx = s;
    accounts_open(s, s->options.max_labels ? s->options.max_labels : MOST_LABELS);
    s->created_ns = slab_now_ns();
    s->a = slab_allocator_create_with(&s->options);
    REQUIRE_OR(s->a, "no allocator: %s", slab_last_error());
    s->ring_size = s->options.ring_size ? s->options.ring_size : 16;
    s->current = epoch_current(s->a);
    REQUIRE_OR(s->current == 0, "the first epoch is %u", s->current);
    for (uint32_t id = 0; id < s->ring_size; id++) {
        s->ring[id] = ref_open(w, index, epoch_era(s->a, id), id, true, "");
        check_named(s, s->ring[id]);
    }
}

/* Ends everything that is open or holds something. */
static void side_end(struct world* w, struct side* s) {
    for (size_t i = s->n_incs; i-- > 0;) {
        struct inc* inc = s->incs[i];
        if (inc->state == INC_RELEASED && !(inc->ring && inc->named)) continue;
        uint64_t bytes = ending(inc);
        EpochReceipt r;
        asked(inc);
        bool sure = inc->named || inc->objects.live > 0;
        note(w, "last close s%d era %llu", side_index(w, s), (unsigned long long)inc->era);
        bool done = epoch_close_era(s->a, inc->era, EPOCH_RELEASE, &r);
        REQUIRE_OR(done || !sure, "last close of era %llu refused", (unsigned long long)inc->era);
        ended(w, inc, EPOCH_RELEASE);
        if (done) check_receipt(&r, inc, bytes);
        else want(s, BIT(SLAB_MISUSE_BAD_EPOCH), 0, 1);
        check_refusals(s);
        check_cleanups(inc);
    }
}

/* Expects nothing left, and takes the allocator down. */
static void side_shut(struct side* s) {
    SlabGlobalStats g;
    slab_stats_global(s->a, &g);
    REQUIRE_OR(g.live_objects == 0 && g.live_bytes == 0, "%llu objects left after the end",
               (unsigned long long)g.live_objects);
    uint64_t warm = warm_learns(s) ? g.warm_budget_bytes : warm_start(s);
    if (s->options.purge_policy != SLAB_PURGE_NEVER)
        REQUIRE_OR(g.committed_bytes <= warm + s->options.quarantine_bytes,
                   "%llu bytes committed after the end, %llu may stay warm", (unsigned long long)g.committed_bytes,
                   (unsigned long long)warm);
    slab_allocator_free(s->a);
    for (size_t i = 0; i < s->n_incs; i++) {
        for (unsigned c = 0; c < s->incs[i]->n_cleanups; c++) free(s->incs[i]->cleanups[c]);
        free(s->incs[i]);
    }
    free(s->incs);
    free(s->objs);
    free(s->sorted);
    free(s->era_used);
    growth_forget(s);
}

/* What the library takes for random follows from the seed too: by sampling it decides where objects lie. */
static uint64_t library_dice;
static uint64_t random_of_seed(void) { return kit_mix(library_dice += 0x9e3779b97f4a7c15u); }

static struct world* world_new(int threads) {
    struct world* w = must_alloc(sizeof *w);
    w->threads = threads;
    told_of = w;
    check_state.last_words = tell_of_world;
    check_decided();
    sem_init(&w->turn_over, 0, 0);
    for (int i = 0; i < threads; i++) w->actors[i].w = w, w->actors[i].slot = i;
    w->actors[0].thread = pthread_self(), w->actors[0].alive = true;
    w->actor = &w->actors[0];
    return w;
}

static void world_run(struct world* w) {
    (void)slab_page_size(); /* the table is filled */
    library_dice = kit_mix(w->seed + 2);
    tsi_os.random = random_of_seed;
    w->budgets = !w->fed && chance(w, 60);
    for (int i = 0; i < SIDES; i++) side_open(w, i);
    while (w->op < w->ops) {
        draw_anew(w, DRAWS_NEXT);
        give_turn(w, &w->actors[below(w, (uint64_t)w->threads)]);
    }
}

/* The threads leave, every scope and domain ends. */
static void world_leave(struct world* w) {
    w->stopping = true;
    for (int i = 1; i < w->threads; i++) {
        if (!w->actors[i].alive) continue;
        w->actor = &w->actors[i];
        actor_ends(w, w->actor);
        w->actor->leaving = true;
        give_turn(w, w->actor);
    }
    w->actor = &w->actors[0];
    runs_end(w);
    while (w->actor->depth > 0) {
        exit_top(w);
        settle(w);
    }
    while (w->n_doms > 0) { /* detached scopes come home first */
        struct dom* d = w->doms[0];
        while (d->detached > 0) {
            REQUIRE_OR(epoch_domain_attach(d->d), "attach of a detached scope refused");
            w->actor->stack[w->actor->depth++] = d;
            d->detached--;
            exit_top(w);
            settle(w);
        }
        note(w, "last destroy s%d %s era %llu", d->side, d->own ? "own" : "borrowed", (unsigned long long)d->inc->era);
        destroy_dom(w, d);
        settle(w);
    }
}

/* Ends a run: nothing may be left. */
static void world_end(struct world* w) {
    world_leave(w);
    check_everything(w);
    for (int i = 0; i < SIDES; i++) side_end(w, &w->side[i]);
    check_everything(w);
    for (int i = 0; i < SIDES; i++) side_shut(&w->side[i]);
    sem_destroy(&w->turn_over);
}

#endif
