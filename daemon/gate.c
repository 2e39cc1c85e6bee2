/*
 * gate.c - accepts, counts, and ends what takes too long.
 *
 * A place is taken by accept() and freed by gate_ended(), before its socket is closed: a shutdown never meets another
 * file. All of it is the main thread's, answers too.
 */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/flags.h"
#include "gate.h"
#include "measure.h"

enum { FDS_KEPT = 24, BACKLOG = 4096, REST_NS = 100000000 };
#define MINUTE_NS 60000000000ull

/* ---- the socket ---- */

/* Returns how many connections can be open at a time: `wanted`, or fewer, after a complaint, if the limit of open files
 * leaves less beside those that we need: standard streams, the library's, /proc files that snapshots read.
 * [main thread] */
static unsigned affordable(unsigned wanted) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
    rlim_t most = limit.rlim_cur > FDS_KEPT + 1 ? limit.rlim_cur - FDS_KEPT : 1;
    if (wanted <= most) return wanted;
    fprintf(stderr, "%s: at most %u connections, not %u, because the limit of open files is %llu\n", program_name,
            (unsigned)most, wanted, (unsigned long long)limit.rlim_cur);
    return (unsigned)most;
}

/* Opens the listener. Returns false, with errno, if it cannot. [main thread] */
static bool listen_at(struct gate* g, const struct options* o) {
    bool v6 = o->address.any.sa_family == AF_INET6;
    int yes = 1;
    g->listener = socket(o->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (g->listener < 0) return false;
    (void)setsockopt(g->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (v6) (void)setsockopt(g->listener, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    return bind(g->listener, &o->address.any, v6 ? sizeof o->address.v6 : sizeof o->address.v4) == 0 &&
           listen(g->listener, BACKLOG) == 0;
}

bool gate_open(struct gate* g, const struct options* o) {
    *g = (struct gate){.max = affordable(o->max_connections), .timeout_ns = (uint64_t)(o->timeout_s * 1e9)};
    g->places = calloc(g->max, sizeof *g->places);
    if (g->places == NULL) return fprintf(stderr, "%s: %s\n", program_name, strerror(errno)), false;
    for (unsigned n = 0; n < g->max; n++) g->places[n].fd = -1;
    if (listen_at(g, o)) return true;
    int port = ntohs(o->address.any.sa_family == AF_INET6 ? o->address.v6.sin6_port : o->address.v4.sin_port);
    fprintf(stderr, "%s: cannot listen on port %d: %s%s\n", program_name, port, strerror(errno),
            errno == EADDRINUSE ? "; --listen=127.0.0.1:0 chooses a free port" : "");
    return false;
}

void gate_name(const struct gate* g, char* out, size_t size) {
    struct sockaddr_in6 a6; /* the larger one */
    socklen_t n = sizeof a6;
    char host[INET6_ADDRSTRLEN] = "?";
    struct sockaddr_in* a4 = (struct sockaddr_in*)(void*)&a6;
    memset(&a6, 0, sizeof a6);
    if (getsockname(g->listener, (struct sockaddr*)(void*)&a6, &n) != 0) a4->sin_family = AF_INET;
    bool v6 = a6.sin6_family == AF_INET6;
    (void)inet_ntop(a6.sin6_family, v6 ? (void*)&a6.sin6_addr : (void*)&a4->sin_addr, host, sizeof host);
    (void)snprintf(out, size, v6 ? "[%s]:%d" : "%s:%d", host, ntohs(v6 ? a6.sin6_port : a4->sin_port));
}

void gate_shut(struct gate* g) {
    if (g->listener >= 0) close(g->listener);
    g->listener = -1;
}

/* ---- places ---- */

/* Returns the place of a descriptor, -1 for a free one; NULL if there is none. [main thread] */
static struct place* find(struct gate* g, int fd) {
    for (unsigned n = 0; n < g->max; n++)
        if (g->places[n].fd == fd) return &g->places[n];
    return NULL;
}

/* Gives a connection a place; there is a free one. [main thread] */
static void take_place(struct gate* g, int fd) {
    *find(g, -1) = (struct place){.fd = fd, .since_ns = now_ns()}; /* there is one: accept_some() looked */
    g->used++;
}

void gate_ended(struct gate* g, int fd) {
    struct place* p = find(g, fd);
    if (p == NULL) return;
    p->fd = -1;
    g->used--;
}

/* Shuts connections down that have outlived their time at `now` ns. Returns when the next one will have, UINT64_MAX if
 * there is none. [main thread] */
static uint64_t end_late(struct gate* g, uint64_t now) {
    uint64_t next = UINT64_MAX;
    for (unsigned n = 0; n < g->max && g->used != 0; n++) {
        struct place* p = &g->places[n];
        if (p->fd < 0 || p->late) continue;
        if (now - p->since_ns < g->timeout_ns) {
            if (p->since_ns + g->timeout_ns < next) next = p->since_ns + g->timeout_ns;
        } else {
            (void)shutdown(p->fd, SHUT_RDWR);
            p->late = true;
            g->timed_out++;
        }
    }
    return next;
}

/* ---- waiting ---- */

/* Counts a failed accept, lets the listener rest, and complains once a minute. error: an errno value; now: ns of the
 * clock. [main thread] */
static void complain(struct gate* g, int error, uint64_t now) {
    g->accept_failures++;
    g->rest_until_ns = now + REST_NS;
    if (g->complained_ns != 0 && now - g->complained_ns < MINUTE_NS) return;
    g->complained_ns = now;
    fprintf(stderr, "%s: cannot accept connections: %s; retrying ten times per second\n", program_name,
            strerror(error));
}

/* Accepts connections while there are places, and hands them to the keeper. [main thread] */
static void accept_some(struct gate* g, const struct keeper* k) {
    while (g->used < g->max) {
        struct sockaddr_storage address;
        socklen_t size = sizeof address;
        int fd = accept4(g->listener, (struct sockaddr*)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            bool of_one = errno == ECONNABORTED || errno == EINTR || errno == EPROTO || errno == EPERM;
            if (of_one) continue;
            if (errno != EAGAIN) complain(g, errno, now_ns());
            return;
        }
        g->accepted++;
        take_place(g, fd);
        if (!k->take(k->ctx, fd, (struct sockaddr*)&address, size)) gate_ended(g, fd);
    }
}

/* Returns the milliseconds from `now` until `then`, both in ns, rounded up; at most an hour.
 * [any thread, needs no lock] */
static int milliseconds(uint64_t now, uint64_t then) {
    uint64_t ms = then > now ? (then - now) / 1000000 + 1 : 0;
    return ms < 3600000 ? (int)ms : 3600000;
}

void gate_wait(struct gate* g, int signals, uint64_t until_ns, const struct keeper* k) {
    for (;;) {
        uint64_t rest_ns = k->run(k->ctx), now = now_ns(), next = end_late(g, now);
        bool resting = now < g->rest_until_ns, looking = g->used < g->max && !resting;
        if (now >= until_ns || (g->listener < 0 && g->used == 0)) return;
        if (until_ns < next) next = until_ns;
        if (resting && g->rest_until_ns < next) next = g->rest_until_ns;
        if (rest_ns < next - now) next = now + rest_ns;

        struct pollfd fds[] = {{signals, POLLIN, 0}, {k->ready, POLLIN, 0}, {looking ? g->listener : -1, POLLIN, 0}};
        if (poll(fds, 3, next == now ? 0 : milliseconds(now, next)) < 0 && errno != EINTR) return;
        if (fds[0].revents != 0) return;
        if (fds[2].revents != 0) accept_some(g, k);
    }
}
