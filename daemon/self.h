/*
 * self.h - the server's own metrics.
 */
#ifndef TSLABD_SELF_H
#define TSLABD_SELF_H

#include "gate.h"
#include "text.h"

enum { SELF_ROUTES = 8 };

struct self {
    struct gate* gate;
    uint64_t snapshot_ns_sum, snapshots, snapshot_failures; /* of the source's metrics */
    struct {
        const char* route; /* "other": of no route */
        uint64_t codes[8];
    } answers[SELF_ROUTES];
};

/* Counts an answer by route, a text that stays, and status. code: the status of HTTP. [main thread] */
void self_answered(struct self* s, const char* route, unsigned code);
/* Writes HELP and TYPE of the family tslabd_`name`: each that is no number of the library begins here.
 * [no other user of t] */
void self_family(struct text* t, const char* name, const char* type, const char* help);
/* Writes the server's own metrics. [main thread] */
void self_metrics(const struct self* s, struct text* t);

#endif
