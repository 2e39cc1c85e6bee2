/*
 * gate.h - the listening socket, and the connections that came through it.
 *
 * The main thread waits here, accepts, and lets the HTTP library answer. At the limit, and for a moment after an accept
 * that failed for want of something (descriptors, memory), the socket is not looked at: the kernel keeps who waits, and
 * nothing spins. A connection that outlives its time is shut down, whatever it does: a client that sends a byte a second
 * keeps its place no longer than another.
 */
#ifndef TSLABD_GATE_H
#define TSLABD_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "options.h"

struct place {
    int fd; /* -1: free */
    bool late;
    uint64_t since_ns;
};

struct gate {
    int listener; /* -1: closed */
    unsigned max, used;
    uint64_t timeout_ns, rest_until_ns, complained_ns;
    struct place* places;
    uint64_t accepted, timed_out, accept_failures;
};

/* Whoever looks after connections. */
struct keeper {
    void* ctx;
    int ready; /* readable when there is something to do for run() */
    /* Takes a connection over, or closes it and returns false. */
    bool (*take)(void* ctx, int fd, const struct sockaddr* address, socklen_t size);
    /* Does what can be done without waiting. Nanoseconds until it has to run again at the latest. */
    uint64_t (*run)(void* ctx);
};

/* Listens. False after a complaint on standard error. */
bool gate_open(struct gate* g, const struct options* o);
/* Where it listens, as in a URL: "127.0.0.1:8080". */
void gate_name(const struct gate* g, char* out, size_t size);
/* Accepts and answers until `signals` can be read, `until_ns` has come, or, with the listener closed, no connection is
 * left. */
void gate_wait(struct gate* g, int signals, uint64_t until_ns, const struct keeper* k);
/* Nobody is accepted any more. */
void gate_shut(struct gate* g);
/* A connection that was taken is about to be closed. */
void gate_ended(struct gate* g, int fd);

#endif
