/*
 * routes.c - the routes and their answers. A text is made whole before its first byte is sent, so that an answer is
 * never cut short by what happens meanwhile.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"
#include "openmetrics.h"
#include "routes.h"

#define TEXT_LIMIT ((size_t)64 << 20)
#define PLAIN "text/plain; charset=utf-8"
#define JSON "application/json; charset=utf-8"

/* Makes an answer of fixed words, which stay. code: the status of HTTP. [no other user of out] */
static void say(struct answer* out, unsigned code, const char* words) {
    *out = (struct answer){.code = code, .type = PLAIN, .fixed = words, .fixed_size = strlen(words)};
}

/* Makes an answer of a text that `make` of the source writes; 503 when it cannot. type: the Content-Type.
 * [main thread] */
static void made(struct server* s, bool (*make)(void*, struct text*), const char* type, struct answer* out) {
    *out = (struct answer){.code = 200, .type = type, .body.limit = TEXT_LIMIT};
    if (make(s->source->self, &out->body) && !out->body.failed) return;
    free(out->body.bytes);
    say(out, 503,
        "There is not enough memory for this response, or it exceeds 64 MiB; /metrics contains the sums by label.\n");
}

/* Brings metrics into the format that is wanted; 503 without memory. [no other user of out] */
static void formatted(const struct request* r, struct answer* out) {
    if (!out->body.failed && openmetrics_wanted(r->accept)) {
        struct text open = {.limit = TEXT_LIMIT};
        openmetrics_write(&out->body, &open);
        free(out->body.bytes);
        out->body = open;
        out->type = TYPE_OPENMETRICS;
    }
    if (!out->body.failed) return;
    free(out->body.bytes);
    say(out, 503, "There is not enough memory for this response.\n");
}

/* Answers /metrics, and counts what the snapshot took. [main thread] */
static void metrics(struct server* s, const struct request* r, struct answer* out) {
    uint64_t from = now_ns();
    made(s, s->source->metrics, TYPE_TEXT, out);
    s->self.snapshots++;
    s->self.snapshot_ns_sum += now_ns() - from;
    s->self.snapshot_failures += out->code != 200;
    if (out->code != 200) return;
    self_metrics(&s->self, &out->body);
    formatted(r, out);
}

/* Answers /stats.json. [main thread] */
static void stats(struct server* s, const struct request* r, struct answer* out) {
    (void)r;
    made(s, s->source->stats, JSON, out);
}

/* Answers /doctor. [main thread] */
static void doctor(struct server* s, const struct request* r, struct answer* out) {
    (void)r;
    made(s, s->source->doctor, PLAIN, out);
}

/* Makes an answer of a complaint as a line, in place of what the answer was. code: the status of HTTP; why: the
 * sentence without its full stop. [no other user of out] */
static void complain(struct answer* out, unsigned code, const char* why) {
    free(out->body.bytes);
    *out = (struct answer){.code = code, .type = PLAIN, .body.limit = 4096};
    text_format(&out->body, "%s.\n", why);
    if (!out->body.failed) return;
    free(out->body.bytes);
    say(out, 503, "There is not enough memory for this response.\n");
}

/* Answers /healthz: 503 when the load stands still. [main thread] */
static void healthz(struct server* s, const struct request* r, struct answer* out) {
    char why[256];
    (void)r;
    say(out, 200, "ok\n");
    if (!s->source->moves(s->source->self, why, sizeof why)) complain(out, 503, why);
}

/* Answers /readyz: 503 while draining or before there are numbers. [main thread] */
static void readyz(struct server* s, const struct request* r, struct answer* out) {
    (void)r;
    if (s->draining) say(out, 503, "draining\n");
    else if (!s->source->ready(s->source->self)) say(out, 503, "no statistics yet\n");
    else say(out, 200, "ready\n");
}

/* Answers /: where to look; the page of any process is that of tslab web. [main thread] */
static void first(struct server* s, const struct request* r, struct answer* out) {
    (void)r;
    *out = (struct answer){.code = 200, .type = PLAIN, .body.limit = 4096};
    text_format(
        &out->body,
        "tslabd %ld, pattern %s: this server has /metrics, /stats.json, /doctor, /healthz and /readyz; for a page, "
        "run tslab web --pid %ld.\n",
        (long)getpid(), s->source->name, (long)getpid());
    if (!out->body.failed) return;
    free(out->body.bytes);
    say(out, 503, "There is not enough memory for this response.\n");
}

static const struct route routes[] = {
    {"/", first, false},        {"/metrics", metrics, true},  {"/stats.json", stats, false},
    {"/doctor", doctor, false}, {"/healthz", healthz, false}, {"/readyz", readyz, false},
};
_Static_assert(sizeof routes / sizeof *routes < SELF_ROUTES, "each route has a row of its own in self.h, and one more");

const struct route* route_find(const char* path) {
    for (size_t n = 0; n < sizeof routes / sizeof *routes; n++)
        if (strcmp(routes[n].path, path) == 0) return &routes[n];
    return NULL;
}
