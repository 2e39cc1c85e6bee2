/*
 * summary.c - medians, spreads and ratios.
 *
 * A ratio is taken within a repetition and then its median over the repetitions, so that a slow minute
 * of the machine weighs on both sides. It is one of costs: for a rate, theirs over ours. The best peer of
 * a repetition is the best of the groups general and phase in that very repetition. What being observed costs is a ratio
 * like the others, to the backend that is the same with nobody looking.
 */
#include <stdlib.h>

#include "runner/results.h"

static int by_value(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static double median_of(double* values, unsigned n) {
    if (n == 0) return NAN;
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double value_of(const struct results* r, unsigned row, unsigned backend, unsigned metric, unsigned i) {
    const struct cell* cell = &r->cells[row][backend];
    return cell->state == STATE_OK || cell->state == STATE_FAILED ? cell->value[metric][i] : NAN;
}

static bool better(const struct metric* m, double a, double b) { return m->sense == MORE ? a > b : a < b; }

static bool is_peer(const struct backend* b) { return b->group == GROUP_GENERAL || b->group == GROUP_PHASE; }

static double best_value(const struct results* r, unsigned row, unsigned metric, unsigned i) {
    double best = NAN;
    for (unsigned b = 0; b < r->n_backends; b++) {
        double v = value_of(r, row, b, metric, i);
        if (!is_peer(&r->backends[b]) || isnan(v)) continue;
        if (isnan(best) || better(&rows[row].metrics[metric], v, best)) best = v;
    }
    return best;
}

static int of_name(const struct results* r, enum group group) {
    for (unsigned b = 0; b < r->n_backends; b++)
        if (r->backends[b].group == group) return (int)b;
    return -1;
}

/* NAN unless both are positive: a quotient of nothing or of a shrinkage says nothing. */
static double cost_ratio(const struct metric* m, double own, double other) {
    if (!(own > 0) || !(other > 0)) return NAN;
    return m->sense == MORE ? other / own : own / other;
}

struct summary summarise(const struct results* r, unsigned row, unsigned backend, unsigned metric) {
    const struct metric* m = &rows[row].metrics[metric];
    double values[MAX_REPETITIONS], ratios[4][MAX_REPETITIONS];
    unsigned n = 0, n_ratios[4] = {0};
    int glibc = of_name(r, GROUP_GENERAL), limit = of_name(r, GROUP_LIMIT); /* glibc is the first general one */
    int off = r->backends[backend].off;
    for (unsigned i = 0; i < r->repetitions; i++) {
        double v = value_of(r, row, backend, metric, i);
        if (isnan(v)) continue;
        values[n++] = v;
        double others[4] = {glibc >= 0 ? value_of(r, row, (unsigned)glibc, metric, i) : NAN,
                            best_value(r, row, metric, i),
                            limit >= 0 ? value_of(r, row, (unsigned)limit, metric, i) : NAN,
                            off >= 0 ? value_of(r, row, (unsigned)off, metric, i) : NAN};
        for (int k = 0; k < 4; k++) {
            double ratio = cost_ratio(m, v, others[k]);
            if (!isnan(ratio)) ratios[k][n_ratios[k]++] = ratio;
        }
    }
    struct summary s = {.n = n, .median = median_of(values, n)};
    s.least = n ? values[0] : NAN;
    s.most = n ? values[n - 1] : NAN;
    s.spread = n && s.median != 0 ? (s.most - s.least) / fabs(s.median) : NAN;
    s.to_glibc = median_of(ratios[0], n_ratios[0]);
    s.to_best = median_of(ratios[1], n_ratios[1]);
    s.to_limit = median_of(ratios[2], n_ratios[2]);
    s.to_off = median_of(ratios[3], n_ratios[3]);
    return s;
}

double best_ratio_of_seed(const struct results* r, unsigned row, unsigned backend, unsigned metric, unsigned which) {
    double ratios[MAX_REPETITIONS];
    unsigned n = 0;
    for (unsigned i = which; i < r->repetitions; i += 2) {
        double ratio =
            cost_ratio(&rows[row].metrics[metric], value_of(r, row, backend, metric, i), best_value(r, row, metric, i));
        if (!isnan(ratio)) ratios[n++] = ratio;
    }
    return median_of(ratios, n);
}

static int best_of(const struct results* r, unsigned row, unsigned metric, bool peers_only) {
    int best = -1;
    double best_median = NAN;
    for (unsigned b = 0; b < r->n_backends; b++) {
        const struct backend* backend = &r->backends[b];
        if (!is_peer(backend) && (peers_only || backend->group != GROUP_OURS)) continue;
        double median = summarise(r, row, b, metric).median;
        if (isnan(median)) continue;
        if (best < 0 || better(&rows[row].metrics[metric], median, best_median)) best = (int)b, best_median = median;
    }
    return best;
}

int best_peer(const struct results* r, unsigned row, unsigned metric) { return best_of(r, row, metric, true); }

int winner(const struct results* r, unsigned row, unsigned metric) { return best_of(r, row, metric, false); }

int our_entry(const struct results* r, unsigned row, unsigned metric) {
    for (unsigned b = 0; b < r->n_backends; b++) /* "tslab" is the first of ours */
        if (r->backends[b].group == GROUP_OURS && summarise(r, row, b, metric).n) return (int)b;
    return -1;
}

bool metric_has_values(const struct results* r, unsigned row, unsigned metric) {
    for (unsigned b = 0; b < r->n_backends; b++)
        if (summarise(r, row, b, metric).n) return true;
    return false;
}

unsigned repetitions_of(const struct results* r, unsigned row) {
    return r->quick && rows[row].heavy ? 1 : r->repetitions;
}

const char* state_name(enum state state) {
    static const char* const names[] = {"none", "ok", "failed", "corrupt", "cannot", "missing"};
    return names[state];
}

const char* group_name(enum group group) {
    static const char* const names[] = {"general", "checked", "phase", "limit", "ours", "observed"};
    return names[group];
}
