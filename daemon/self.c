/*
 * self.c - the server's own metrics, prefix tslabd_: how it is asked, and what a snapshot costs.
 */
#include <inttypes.h>
#include <string.h>

#include "self.h"

static const unsigned codes[8] = {200, 400, 403, 404, 405, 502, 503}; /* the rest: none of ours */

void self_answered(struct self* s, const char* route, unsigned code) {
    unsigned r = 0, c = 0;
    while (r < SELF_ROUTES - 1 && s->answers[r].route != NULL && strcmp(s->answers[r].route, route) != 0) r++;
    while (c < 7 && codes[c] != code) c++;
    s->answers[r].route = route;
    s->answers[r].codes[c]++;
}

void self_family(struct text* t, const char* name, const char* type, const char* help) {
    text_format(t, "# HELP tslabd_%s %s\n# TYPE tslabd_%s %s\n", name, help, name, type);
}

/* Writes a family with one number. [no other user of t] */
static void number(struct text* t, const char* name, const char* type, const char* help, uint64_t v) {
    self_family(t, name, type, help);
    text_format(t, "tslabd_%s %" PRIu64 "\n", name, v);
}

void self_metrics(const struct self* s, struct text* t) {
    struct gate* g = s->gate;
    self_family(t, "http_requests_total", "counter", "HTTP responses, by route and status.");
    for (unsigned r = 0; r < SELF_ROUTES && s->answers[r].route != NULL; r++)
        for (unsigned c = 0; c < 8; c++)
            if (s->answers[r].codes[c] != 0)
                text_format(t, "tslabd_http_requests_total{route=\"%s\",code=\"%u\"} %" PRIu64 "\n",
                            s->answers[r].route, codes[c], s->answers[r].codes[c]);

    number(t, "connections", "gauge", "Connections open now, this one included.", g->used);
    number(t, "connections_max", "gauge", "Permitted number of open connections.", g->max);
    number(t, "connections_accepted_total", "counter", "Connections accepted.", g->accepted);
    number(t, "connections_timed_out_total", "counter", "Connections closed at the time limit.", g->timed_out);
    number(t, "accept_failures_total", "counter", "Connections that failed for lack of file descriptors or memory.",
           g->accept_failures);

    number(t, "snapshots_total", "counter", "Snapshots taken for /metrics, this one included.", s->snapshots);
    number(t, "snapshot_failures_total", "counter", "Snapshots that could not be taken.", s->snapshot_failures);
    self_family(t, "snapshot_seconds_total", "counter", "Time that snapshots for /metrics took, this one included.");
    text_format(t, "tslabd_snapshot_seconds_total %.9f\n", (double)s->snapshot_ns_sum / 1e9);
}
