/*
 * serve.h - HTTP: what is refused, and which route answers.
 */
#ifndef TSLABD_SERVE_H
#define TSLABD_SERVE_H

#include "gate.h"
#include "self.h"
#include "source.h"

struct MHD_Daemon;
struct MHD_Response;

/* An answer that whoever had asked before it was begun may have, too; see serve.c. */
struct shared {
    struct MHD_Response* response;
    uint64_t begun_ns, until_ns;
};

struct server {
    const struct options* options;
    struct source* source;
    struct gate* gate;
    struct self self;
    struct MHD_Daemon* http;
    struct shared shared[2]; /* of /metrics by format */
    bool draining;
};

/* Begins to answer, by *k. Returns false after a complaint on standard error. [main thread] */
bool server_begin(struct server* s, struct keeper* k);
/* Closes what is open, and gives the shared answers back. [main thread] */
void server_end(struct server* s);

#endif
