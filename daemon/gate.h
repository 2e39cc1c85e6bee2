/*
 * gate.h - the listening socket, and the connections that came through it.
 *
 * The main thread waits here, accepts, and lets the HTTP library answer. At the limit, and for a moment after an
 * accept that failed for want of something (descriptors, memory), the socket is not looked at: the kernel keeps
 * clients that wait, and nothing spins. A connection that outlives its time is shut down, whatever it does: a client
 * that sends a byte a second keeps its place no longer than another.
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

/* The server behind the gate: it answers on connections that the gate has accepted. */
struct keeper {
    void* ctx;
    int ready; /* readable when there is something to do for run() */
    /* Takes a connection over and returns true, or closes it and returns false. */
    bool (*take)(void* ctx, int fd, const struct sockaddr* address, socklen_t size);
    /* Does what can be done without waiting. Returns the nanoseconds until it has to run again at the latest. */
    uint64_t (*run)(void* ctx);
};

/* Makes the table of places and listens. Returns false after a complaint on standard error. [main thread] */
bool gate_open(struct gate* g, const struct options* o);
/* Writes to `out`, of `size` bytes, where it listens, as in a URL: "127.0.0.1:8080". [main thread] */
void gate_name(const struct gate* g, char* out, size_t size);
/* Accepts and answers until `signals` can be read, `until_ns` has come, or, with the listener closed, no connection is
 * left. [main thread] */
void gate_wait(struct gate* g, int signals, uint64_t until_ns, const struct keeper* k);
/* Closes the listener: no client is accepted any more. [main thread] */
void gate_shut(struct gate* g);
/* Frees the place of a connection that was taken and is about to be closed. [main thread] */
void gate_ended(struct gate* g, int fd);

#endif
