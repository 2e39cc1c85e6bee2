/*
 * theory.c - what the loads should give, from their parameters alone.
 *
 * Of an epoch, n sessions are candidates for living at its boundary, each with probability x, independently of each
 * other: n * x survive, and P(drainable) = (1 - x)^n.
 *
 * Pool. Each of N = POOL places is replaced with probability 1/N per draw; d = replaced * batch draws are made in an
 * epoch, which hit N * (1 - (1 - 1/N)^d) places on average (in the first epoch the pool is filled: all N). A session
 * lives at the boundary if none of the lag * d draws since hit it, and was routed wrongly with probability p:
 *
 *     n = N * (1 - (1 - 1/N)^d)     x = p * (1 - 1/N)^(lag * d)
 *
 * The number of places hit is taken as its mean, and places as independent; both are a little wrong (a draw that hits
 * one place misses the others).
 *
 * Endless sessions. All of an epoch live at its boundary if routed wrongly: x = p, P(drainable) = (1 - p)^n. With
 * n = 1, one decision per epoch, that is 1 - p.
 *
 * Slabs. If each survivor lies in any of the epoch's s slabs of its class with the same probability, a given slab is
 * spared by a candidate with probability 1 - x/s, so that s * (1 - (1 - x/s)^n) slabs are pinned. A slab of k slots,
 * each of which lives on with probability p, drains with probability (1 - p)^k: 1 - p only for slabs of one object.
 */
#include <math.h>

#include "drainability.h"

struct chance {
    double x; /* of one candidate */
    double n;
};

static struct chance surviving(const struct load* l, unsigned epoch) {
    if (l->endless) return (struct chance){l->p, l->endless};
    double missed = 1 - 1.0 / POOL, draws = l->replaced * l->batch;
    return (struct chance){l->p * pow(missed, draws * l->lag), epoch == 0 ? POOL : POOL * (1 - pow(missed, draws))};
}

double theory_drains(const struct load* l, unsigned epoch) {
    struct chance c = surviving(l, epoch);
    return pow(1 - c.x, c.n);
}

double theory_pinned(const struct load* l, unsigned epoch, double slabs) {
    struct chance c = surviving(l, epoch);
    return slabs > 0 ? slabs * (1 - pow(1 - c.x / slabs, c.n)) : 0;
}

double theory_slab(double p, unsigned per_slab) { return pow(1 - p, per_slab); }
