/*
 * gate.h - the listening socket, and the connections that came through it.
 *
 * The main thread waits here, accepts, and hands connections to the HTTP library, whose thread tells of their begin and
 * end. At the limit, and for a moment after an accept that failed for want of something (descriptors, memory), the socket
 * is not looked at: the kernel keeps who waits, and nothing spins. A connection that outlives its time is shut down,
 * whatever it does: a client that sends a byte a second keeps its place no longer than another.
 */
#ifndef TSLABD_GATE_H
#define TSLABD_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "options.h"

struct place {
    int fd; /* -1: free */
    bool begun, late;
    uint64_t since_ns;
};

struct gate {
    int listener, wake; /* listener -1: closed; wake: an eventfd, a place was freed */
    unsigned max, used; /* under the lock */
    uint64_t timeout_ns, rest_until_ns, complained_ns;
    struct place* places;
    pthread_mutex_t lock; /* of places and used; held for a look, or a shutdown() of a place's socket */
    _Atomic uint64_t accepted, timed_out, accept_failures;
};

/* Takes a connection over, or closes it and returns false. */
typedef bool gate_take(void* ctx, int fd, const struct sockaddr* address, socklen_t size);

/* Listens. False after a complaint on standard error. */
bool gate_open(struct gate* g, const struct options* o);
/* Where it listens, as in a URL: "127.0.0.1:8080". */
void gate_name(const struct gate* g, char* out, size_t size);
/* Accepts until `signals` can be read, `until_ns` has come, or, with the listener closed, no connection is left. */
void gate_wait(struct gate* g, int signals, uint64_t until_ns, gate_take* take, void* ctx);
/* Nobody is accepted any more. */
void gate_shut(struct gate* g);
unsigned gate_used(struct gate* g);

/* Of the HTTP library's thread: a socket is looked after; it is about to be closed. */
void gate_begun(struct gate* g, int fd);
void gate_ended(struct gate* g, int fd);

#endif
