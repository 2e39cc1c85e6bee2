/*
 * gate.c - accepts, counts, and ends what takes too long.
 *
 * A place is taken by accept() and freed by gate_ended(). A socket that the library drops before it began to look
 * after it ends without a word; its number comes back from a later accept(), and that frees the place. Only sockets
 * that have begun are shut down, under the lock that gate_ended() takes before they are closed, so a shutdown never
 * meets another file.
 */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/flags.h"
#include "gate.h"
#include "measure.h"

enum { FDS_KEPT = 24, BACKLOG = 4096, REST_NS = 100000000 };
#define MINUTE_NS 60000000000ull

/* ---- the socket ---- */

/* Descriptors that connections may not have: standard streams, the library's, /proc files that snapshots read. */
static unsigned affordable(unsigned wanted) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
    rlim_t most = limit.rlim_cur > FDS_KEPT + 1 ? limit.rlim_cur - FDS_KEPT : 1;
    if (wanted <= most) return wanted;
    fprintf(stderr, "%s: at most %u connections, not %u: the limit of open files is %llu\n", program_name,
            (unsigned)most, wanted, (unsigned long long)limit.rlim_cur);
    return (unsigned)most;
}

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
    pthread_mutex_init(&g->lock, NULL);
    g->places = calloc(g->max, sizeof *g->places);
    g->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (g->places == NULL || g->wake < 0) return fprintf(stderr, "%s: %s\n", program_name, strerror(errno)), false;
    for (unsigned n = 0; n < g->max; n++) g->places[n].fd = -1;
    if (listen_at(g, o)) return true;
    int port = ntohs(o->address.any.sa_family == AF_INET6 ? o->address.v6.sin6_port : o->address.v4.sin_port);
    fprintf(stderr, "%s: cannot listen at port %d: %s%s\n", program_name, port, strerror(errno),
            errno == EADDRINUSE ? "; --listen=127.0.0.1:0 takes a free one" : "");
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

static struct place* find(struct gate* g, int fd) {
    for (unsigned n = 0; n < g->max; n++)
        if (g->places[n].fd == fd) return &g->places[n];
    return NULL;
}

static void take_place(struct gate* g, int fd) {
    pthread_mutex_lock(&g->lock);
    struct place* p = find(g, fd); /* dropped without a word */
    if (p == NULL) {
        p = find(g, -1); /* there is one: only this thread takes them, and it looked */
        g->used++;
    }
    *p = (struct place){.fd = fd, .since_ns = now_ns()};
    pthread_mutex_unlock(&g->lock);
}

void gate_begun(struct gate* g, int fd) {
    pthread_mutex_lock(&g->lock);
    struct place* p = find(g, fd);
    if (p != NULL) p->begun = true;
    pthread_mutex_unlock(&g->lock);
}

void gate_ended(struct gate* g, int fd) {
    pthread_mutex_lock(&g->lock);
    struct place* p = find(g, fd);
    if (p != NULL) {
        p->fd = -1;
        g->used--;
    }
    pthread_mutex_unlock(&g->lock);
    if (p != NULL) (void)!write(g->wake, &(uint64_t){1}, sizeof(uint64_t));
}

unsigned gate_used(struct gate* g) {
    pthread_mutex_lock(&g->lock);
    unsigned used = g->used;
    pthread_mutex_unlock(&g->lock);
    return used;
}

/* Ends who is late; when the next one will be. */
static uint64_t end_late(struct gate* g, uint64_t now) {
    uint64_t next = UINT64_MAX;
    pthread_mutex_lock(&g->lock);
    for (unsigned n = 0; n < g->max && g->used != 0; n++) {
        struct place* p = &g->places[n];
        if (p->fd < 0 || p->late) continue;
        if (now - p->since_ns < g->timeout_ns) {
            if (p->since_ns + g->timeout_ns < next) next = p->since_ns + g->timeout_ns;
        } else if (p->begun) {
            (void)shutdown(p->fd, SHUT_RDWR);
            p->late = true;
            atomic_fetch_add(&g->timed_out, 1);
        } else {
            next = now + REST_NS;
        }
    }
    pthread_mutex_unlock(&g->lock);
    return next;
}

/* ---- waiting ---- */

static void complain(struct gate* g, int error, uint64_t now) {
    atomic_fetch_add(&g->accept_failures, 1);
    g->rest_until_ns = now + REST_NS;
    if (g->complained_ns != 0 && now - g->complained_ns < MINUTE_NS) return;
    g->complained_ns = now;
    fprintf(stderr, "%s: nobody can connect: %s; trying again ten times a second\n", program_name, strerror(error));
}

static void accept_some(struct gate* g, gate_take* take, void* ctx) {
    while (gate_used(g) < g->max) {
        struct sockaddr_storage address;
        socklen_t size = sizeof address;
        int fd = accept4(g->listener, (struct sockaddr*)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            bool of_one = errno == ECONNABORTED || errno == EINTR || errno == EPROTO || errno == EPERM;
            if (of_one) continue;
            if (errno != EAGAIN) complain(g, errno, now_ns());
            return;
        }
        atomic_fetch_add(&g->accepted, 1);
        take_place(g, fd);
        if (!take(ctx, fd, (struct sockaddr*)&address, size)) gate_ended(g, fd);
    }
}

static int milliseconds(uint64_t now, uint64_t then) {
    uint64_t ms = then > now ? (then - now) / 1000000 + 1 : 0;
    return ms < 3600000 ? (int)ms : 3600000;
}

void gate_wait(struct gate* g, int signals, uint64_t until_ns, gate_take* take, void* ctx) {
    for (;;) {
        uint64_t now = now_ns(), next = end_late(g, now);
        bool full = gate_used(g) >= g->max, resting = now < g->rest_until_ns, looking = !full && !resting;
        if (now >= until_ns || (g->listener < 0 && gate_used(g) == 0)) return;
        if (until_ns < next) next = until_ns;
        if (resting && g->rest_until_ns < next) next = g->rest_until_ns;
        struct pollfd fds[] = {{signals, POLLIN, 0}, {g->wake, POLLIN, 0}, {looking ? g->listener : -1, POLLIN, 0}};
        if (poll(fds, 3, milliseconds(now, next)) < 0 && errno != EINTR) return;
        if (fds[0].revents != 0) return;
        uint64_t ignored;
        if (fds[1].revents != 0) (void)!read(g->wake, &ignored, sizeof ignored);
        if (fds[2].revents != 0) accept_some(g, take, ctx);
    }
}
