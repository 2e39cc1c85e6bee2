/*
 * plan.c - which loads are run.
 *
 * routing    the published experiment: 80 of 4000 sessions replaced per request (2 %), epochs of 1000 requests, closed
 *            4 epochs later; sessions in the epochs of the requests (mixed), in a domain (isolated), and glibc; all
 *            arms equally long
 * lifetimes  the same with fewer replacements, so that sessions live longer compared with the lag; the last load is the
 *            worst that routing can do: one session an epoch
 * sweep      100 epochs of 50 requests, a share p of the sessions routed wrongly, for three meanings of "a session":
 *            one an epoch, one a request (both live to the end), and the pool
 * granules   the same shares, decided for every object of a slab
 */
#include "drainability.h"

enum { BATCH = 1000, REQUESTS = 200000, QUICK_REQUESTS = 10000, LAG = 4, SWEEP_EPOCHS = 100, SWEEP_BATCH = 50 };

const double sweep_steps[SWEEP_STEPS] = {0, .01, .05, .1, .25, .5, 1};
const double published_dsr[SWEEP_STEPS] = {1, 1, .98, .95, .77, .54, 0};
const char* const section_names[SECTIONS + 1] = {"routing", "lifetimes", "sweep", "granules"};

/* The three arms that answer a question of routing. */
static struct load routed(const struct results* r, unsigned arm, double replaced, unsigned batch) {
    static const char* const names[ROUTING_ARMS] = {"mixed", "isolated", "glibc"};
    return (struct load){.name = names[arm],
                         .glibc = arm == ARM_GLIBC,
                         .p = arm == ARM_ISOLATED ? 0 : 1,
                         .replaced = replaced,
                         .batch = batch,
                         .epochs = (unsigned)(r->requests / batch),
                         .lag = LAG,
                         .seed = r->seed};
}

static void fill_lifetimes(struct results* r) {
    static const struct {
        double replaced;
        unsigned batch;
        bool quick;
    } life[LIFETIMES] = {{20, BATCH, false}, {12, BATCH, true}, {10, BATCH, false},  {8, BATCH, false},
                         {4, BATCH, true},   {1, BATCH, false}, {.02, BATCH, false}, {.1, 10, true}};
    for (unsigned i = 0; i < LIFETIMES; i++)
        for (unsigned k = 0; k < ROUTING_ARMS && (life[i].quick || !r->quick); k++)
            r->lifetimes[i][k].load = routed(r, k, life[i].replaced, life[i].batch);
}

static void fill_sweep(struct results* r) {
    static const struct load kinds[SWEEPS] = {{.name = "one session an epoch", .libc_coin = true, .endless = 1},
                                              {.name = "one session a request", .endless = SWEEP_BATCH},
                                              {.name = "pool", .replaced = POOL * .02, .lag = LAG}};
    for (unsigned i = 0; i < SWEEPS; i++)
        for (unsigned k = 0; k < SWEEP_STEPS; k++) {
            struct load* l = &r->sweep[i][k].load;
            *l = kinds[i];
            l->p = sweep_steps[k];
            l->batch = SWEEP_BATCH;
            l->epochs = SWEEP_EPOCHS;
            l->seed = r->seed;
        }
}

void plan_fill(struct results* r) {
    static const unsigned sizes[GRANULE_SIZES] = {65536, 16384, 2048, SESSION_BYTES};
    if (r->requests == 0) r->requests = r->quick ? QUICK_REQUESTS : REQUESTS;
    for (unsigned k = 0; k < ROUTING_ARMS; k++) r->routing[k].load = routed(r, k, POOL * .02, BATCH);
    fill_lifetimes(r);
    fill_sweep(r);
    for (unsigned i = 0; i < GRANULE_SIZES; i++)
        for (unsigned k = 0; k < SWEEP_STEPS; k++)
            r->granules[i][k] = (struct granule){.size = sizes[i], .p = sweep_steps[k]};
}
