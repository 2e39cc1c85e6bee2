/*
 * loop.c - see server.h. Each loop has a listening socket of its own on the same port (SO_REUSEPORT), so the kernel deals
 * connections out, and a connection stays with its loop. Other threads put requests into the inbox and write a byte to
 * `wake` if it was empty.
 */
#define _GNU_SOURCE
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096, BODY_MAX = 1 << 20, TICK_MS = 100 };

static bool complain(const char* what) {
    fprintf(stderr, "tslab_server: %s: %s\n", what, strerror(errno));
    return false;
}

/* Returns a socket that listens on the server's port, which is chosen now if it is 0; or -1. */
static int listening(Server* server) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)server->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr*)&at, sizeof at) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr*)&at, &size) != 0) {
        complain("listen");
        if (fd >= 0) close(fd);
        return -1;
    }
    server->port = ntohs(at.sin_port);
    return fd;
}

static void arrives(struct evhttp_request* http, void* ctx) { request_begin(ctx, http); }

static void look_into_inbox(evutil_socket_t fd, short what, void* ctx) {
    Loop* loop = ctx;
    char bytes[64];
    (void)what;
    while (read(fd, bytes, sizeof bytes) > 0) {}
    for (Request *r = queue_take_all(&loop->inbox, false), *next; r != NULL; r = next) {
        next = r->next;
        request_continue(r);
    }
}

static void ticks(evutil_socket_t fd, short what, void* ctx) {
    Loop* loop = ctx;
    (void)fd, (void)what;
    if (loop == loop->server->loop) sessions_sweep();
    if (!atomic_load_explicit(&loop->server->ends, memory_order_relaxed)) return;
    if (loop->socket != NULL) evhttp_del_accept_socket(loop->http, loop->socket);
    loop->socket = NULL;
    if (atomic_load_explicit(&loop->open, memory_order_relaxed) == 0) event_base_loopbreak(loop->base);
}

bool loop_open(Loop* loop, Server* server) {
    loop->server = server;
    queue_open(&loop->inbox);
    loop->reader = reader_open(server->database);
    loop->base = event_base_new();
    loop->http = loop->base ? evhttp_new(loop->base) : NULL;
    if (loop->reader == NULL || loop->http == NULL) return false;
    evhttp_set_allowed_methods(loop->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
    evhttp_set_max_body_size(loop->http, BODY_MAX);
    evhttp_set_gencb(loop->http, arrives, loop);
    if (pipe2(loop->wake, O_NONBLOCK | O_CLOEXEC) != 0) return complain("pipe");
    loop->woken = event_new(loop->base, loop->wake[0], EV_READ | EV_PERSIST, look_into_inbox, loop);
    loop->tick = event_new(loop->base, -1, EV_PERSIST, ticks, loop);
    struct timeval each = {0, TICK_MS * 1000};
    int fd = listening(server);
    if (loop->woken == NULL || loop->tick == NULL || fd < 0) return false;
    loop->socket = evhttp_accept_socket_with_handle(loop->http, fd);
    return loop->socket != NULL && event_add(loop->woken, NULL) == 0 && event_add(loop->tick, &each) == 0;
}

static void* serves(void* ctx) {
    event_base_dispatch(((Loop*)ctx)->base);
    return NULL;
}

bool loop_start(Loop* loop) { return pthread_create(&loop->thread, NULL, serves, loop) == 0 || complain("thread"); }

void loop_give(Request* request) {
    Loop* loop = request->loop;
    if (queue_give(&loop->inbox, request) && write(loop->wake[1], "", 1) < 0 && errno != EAGAIN) complain("wake");
}

void loop_wait(Loop* loop) { pthread_join(loop->thread, NULL); }

void loop_close(Loop* loop) {
    evhttp_free(loop->http);
    event_free(loop->woken);
    event_free(loop->tick);
    event_base_free(loop->base);
    close(loop->wake[0]);
    close(loop->wake[1]);
    reader_close(loop->reader);
}
