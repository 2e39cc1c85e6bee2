/*
 * request_http.h - the same requests through real sockets: a small HTTP/1.1 server and its clients in one process.
 *
 * One connection per client, kept alive, on 127.0.0.1 and a port that the system picks; one server thread per connection.
 * The server knows GET /work/N and answers with a JSON body; 404 and 400 for the rest. Request text and response are
 * objects of the allocator too. A client times from before its write to after the last byte of the answer, and checks it.
 */
#ifndef SUITE_REQUEST_HTTP_H
#define SUITE_REQUEST_HTTP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "request_load.h"

enum { HTTP_HEAD_BYTES = 1024 };

static _Noreturn void http_fail(const char* what) {
    fprintf(stderr, "%s: %s: %s\n", suite.program, what, strerror(errno));
    exit(1);
}

/* Reads on until the text has `end` in it, or so many bytes after it; 0 when the other side has left. */
static size_t http_read_head(int fd, char* text, size_t room) {
    size_t n = 0;
    while (n + 1 < room) {
        ssize_t got = recv(fd, text + n, room - 1 - n, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        n += (size_t)got;
        text[n] = 0;
        if (strstr(text, "\r\n\r\n")) return n;
    }
    return 0;
}

static bool http_write(int fd, const char* text, size_t n) {
    while (n > 0) {
        ssize_t put = send(fd, text, n, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        text += put;
        n -= (size_t)put;
    }
    return true;
}

static int http_answer(char* out, const char* status, const char* body) {
    return snprintf(out, HTTP_HEAD_BYTES,
                    "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(body), body);
}

static int http_respond(const char* head, char* out) {
    unsigned long long r = 0;
    char body[96];
    if (strncmp(head, "GET ", 4) != 0) return http_answer(out, "400 Bad Request", "{}");
    if (sscanf(head + 4, "/work/%llu HTTP/1.1", &r) != 1 || r >= load.n) return http_answer(out, "404 Not Found", "{}");
    (void)snprintf(body, sizeof body, "{\"request\":%llu,\"sum\":%llu}", r, (unsigned long long)load_serve(r));
    return http_answer(out, "200 OK", body);
}

static void* http_server(void* arg) {
    int fd = *(int*)arg;
    char buffer[HTTP_HEAD_BYTES];
    size_t n;
    while ((n = http_read_head(fd, buffer, sizeof buffer)) > 0) {
        char* head = heap_need(n + 1);
        memcpy(head, buffer, n + 1);
        char* out = heap_need(HTTP_HEAD_BYTES);
        int length = http_respond(head, out);
        bool sent = http_write(fd, out, (size_t)length);
        heap_free(out);
        heap_free(head);
        if (!sent) break;
    }
    close(fd);
    return NULL;
}

static uint64_t http_expected(uint64_t r) {
    uint64_t sum = r;
    for (int i = 0; i < REQUEST_OBJECTS; i++) sum += load.request[r].size[i];
    return sum;
}

struct http_client {
    int fd, served_by;
    pthread_t thread, server;
    struct latency* latency;
};

static void* http_client(void* arg) {
    struct http_client* c = arg;
    char text[HTTP_HEAD_BYTES];
    unsigned long long got_r = 0, got_sum = 0;
    uint64_t r;
    while (load_take(&r)) {
        int n = snprintf(text, sizeof text, "GET /work/%llu HTTP/1.1\r\nHost: localhost\r\n\r\n", (unsigned long long)r);
        uint64_t t = ticks();
        if (!http_write(c->fd, text, (size_t)n) || !http_read_head(c->fd, text, sizeof text)) http_fail("connection lost");
        latency_add(c->latency, t, ticks());
        const char* body = strstr(text, "\r\n\r\n");
        bool whole = body && sscanf(body + 4, "{\"request\":%llu,\"sum\":%llu}", &got_r, &got_sum) == 2;
        if (strncmp(text, "HTTP/1.1 200 ", 13) != 0 || !whole || got_r != r || got_sum != http_expected(r)) {
            fprintf(stderr, "%s: request %llu got a wrong answer: %.60s\n", suite.program, (unsigned long long)r, text);
            exit(1);
        }
    }
    shutdown(c->fd, SHUT_WR);
    return NULL;
}

static int http_listen(struct sockaddr_in* at) {
    socklen_t length = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || bind(fd, (struct sockaddr*)at, sizeof *at) != 0 || listen(fd, MOST_THREADS) != 0 ||
        getsockname(fd, (struct sockaddr*)at, &length) != 0)
        http_fail("cannot listen on 127.0.0.1");
    return fd;
}

static void http_connect(struct http_client* c, int listener, const struct sockaddr_in* at) {
    int yes = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr*)at, sizeof *at) != 0) http_fail("cannot connect");
    c->served_by = accept(listener, NULL, NULL);
    if (c->served_by < 0) http_fail("cannot accept");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(c->served_by, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/* Runs all requests over `threads` connections. */
static void http_run(uint64_t threads, struct latency* latency) {
    struct http_client clients[MOST_THREADS];
    struct sockaddr_in at;
    int listener = http_listen(&at);
    for (uint64_t i = 0; i < threads; i++) {
        clients[i].latency = &latency[i];
        http_connect(&clients[i], listener, &at);
    }
    close(listener);
    for (uint64_t i = 0; i < threads; i++) {
        clients[i].server = suite_thread(http_server, &clients[i].served_by);
        clients[i].thread = suite_thread(http_client, &clients[i]);
    }
    for (uint64_t i = 0; i < threads; i++) {
        pthread_join(clients[i].thread, NULL);
        pthread_join(clients[i].server, NULL);
        close(clients[i].fd);
    }
}

#endif
