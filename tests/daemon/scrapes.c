/*
 * scrapes.c - asks a server of 127.0.0.1 for one path, over and over, on some connections at a time, and says how long
 * answers took.
 *
 * Closed loop, one thread, epoll: each place connects, asks, reads until the server closes, and begins again until all
 * requests are done. tslabd answers once a connection, so a request here is a connection as well: its time is from
 * connect() to the end of the answer, waiting for a place among the server's connections included. An answer counts as
 * good when it has status 200 and as many bytes as its Content-Length says.
 *
 * Usage: scrapes PORT CONNECTIONS REQUESTS [PATH [ACCEPT]]      prints one line of JSON
 * Exit status: 0 every answer was good, 1 one was not, or did not come, 2 wrong command line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_SIZE = 4096, PATIENCE_MS = 60000, STATUS_MAX = 600, EVENTS = 256, PIECE = 1 << 20 };

struct place {
    int fd;
    bool asked;
    uint64_t since_ns, got;
    size_t head_bytes; /* of the answer's beginning, kept to find status and length in */
    char head[HEAD_SIZE + 1];
};

static struct {
    struct sockaddr_in server;
    char request[1024];
    uint32_t connections, begun, done, wanted, statuses[STATUS_MAX], lost;
    uint64_t bytes;
    uint64_t* took_ns;
    struct place* places;
    int poll;
} run;

static uint64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char* what) {
    fprintf(stderr, "scrapes: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void begin(struct place* p) {
    p->asked = false, p->got = 0, p->head_bytes = 0, p->since_ns = now_ns();
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->fd < 0) die("socket");
    if (connect(p->fd, (struct sockaddr*)(void*)&run.server, sizeof run.server) != 0 && errno != EINPROGRESS)
        die("connect");
    struct epoll_event e = {.events = EPOLLOUT, .data.ptr = p};
    if (epoll_ctl(run.poll, EPOLL_CTL_ADD, p->fd, &e) != 0) die("epoll");
    run.begun++;
}

/* The status of a whole answer; 0 when it is none, or was cut short. */
static unsigned status_of(struct place* p) {
    p->head[p->head_bytes] = 0;
    char *end = strstr(p->head, "\r\n\r\n"), *length = strstr(p->head, "\r\nContent-Length: ");
    unsigned status = 0;
    if (end == NULL || length == NULL || length > end || sscanf(p->head, "HTTP/1.1 %3u", &status) != 1) return 0;
    uint64_t body = strtoull(length + strlen("\r\nContent-Length: "), NULL, 10);
    return (uint64_t)(end + 4 - p->head) + body == p->got && status < STATUS_MAX ? status : 0;
}

static void end(struct place* p) {
    unsigned status = status_of(p);
    close(p->fd);
    run.statuses[status]++;
    run.lost += status == 0;
    run.bytes += p->got;
    run.took_ns[run.done++] = now_ns() - p->since_ns;
    if (run.begun < run.wanted) begin(p);
}

static void ask(struct place* p) {
    size_t size = strlen(run.request);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    if (send(p->fd, run.request, size, MSG_NOSIGNAL) != (ssize_t)size) { /* small, and the socket is empty */
        end(p);
        return;
    }
    p->asked = true;
    if (epoll_ctl(run.poll, EPOLL_CTL_MOD, p->fd, &e) != 0) die("epoll");
}

/* The beginning is kept; of the rest the kernel only counts the bytes, so that the reader is not what is measured. */
static void take(struct place* p) {
    for (;;) {
        size_t room = HEAD_SIZE - p->head_bytes;
        ssize_t n = room != 0 ? recv(p->fd, p->head + p->head_bytes, room, 0) : recv(p->fd, NULL, PIECE, MSG_TRUNC);
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) break;
        if (room != 0) p->head_bytes += (size_t)n;
        p->got += (uint64_t)n;
    }
    end(p);
}

static int ascending(const void* a, const void* b) {
    uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
    return x < y ? -1 : x > y;
}

static double ms_at(double share) {
    uint32_t k = (uint32_t)(share * run.done);
    return run.done == 0 ? 0 : (double)run.took_ns[k < run.done ? k : run.done - 1] / 1e6;
}

static bool report(double seconds) {
    qsort(run.took_ns, run.done, sizeof *run.took_ns, ascending);
    printf("{\"connections\":%u,\"asked\":%u,\"answered\":%u,\"lost\":%u,\"status\":{", run.connections, run.wanted,
           run.done - run.lost, run.lost + run.wanted - run.done);
    const char* comma = "";
    for (unsigned s = 1; s < STATUS_MAX; s++)
        if (run.statuses[s] != 0) printf("%s\"%u\":%u", comma, s, run.statuses[s]), comma = ",";
    printf("},\"bytes\":%llu,\"seconds\":%.2f,\"per_s\":%.0f,\"p50_ms\":%.2f,\"p90_ms\":%.2f,\"p99_ms\":%.2f,"
           "\"p999_ms\":%.2f,\"max_ms\":%.2f}\n",
           (unsigned long long)run.bytes, seconds, run.done / seconds, ms_at(0.5), ms_at(0.9), ms_at(0.99),
           ms_at(0.999), ms_at(1));
    return run.statuses[200] == run.wanted;
}

static uint32_t positive(const char* s) {
    char* rest;
    unsigned long v = strtoul(s, &rest, 10);
    if (*s < '0' || *s > '9' || *rest != 0 || v == 0 || v > 100000000) {
        fprintf(stderr, "usage: scrapes PORT CONNECTIONS REQUESTS [PATH [ACCEPT]]\n");
        exit(2);
    }
    return (uint32_t)v;
}

int main(int argc, char** argv) {
    if (argc < 4 || argc > 6) (void)positive("");
    run.server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)positive(argv[1]))};
    run.server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    run.connections = positive(argv[2]), run.wanted = positive(argv[3]);
    int size = snprintf(run.request, sizeof run.request, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n\r\n",
                        argc > 4 ? argv[4] : "/metrics", argc > 5 ? argv[5] : "*/*");
    if (size < 0 || (size_t)size >= sizeof run.request) return fprintf(stderr, "scrapes: PATH is too long\n"), 2;
    run.took_ns = calloc(run.wanted, sizeof *run.took_ns);
    run.places = calloc(run.connections, sizeof *run.places);
    run.poll = epoll_create1(EPOLL_CLOEXEC);
    if (run.took_ns == NULL || run.places == NULL || run.poll < 0) die("beginning");
    uint64_t from = now_ns();
    for (uint32_t n = 0; n < run.connections && run.begun < run.wanted; n++) begin(&run.places[n]);
    while (run.done < run.wanted) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(run.poll, events, EVENTS, PATIENCE_MS);
        if (ready < 0 && errno != EINTR) die("epoll");
        if (ready == 0) break; /* a minute in which nothing comes */
        for (int n = 0; n < ready; n++) {
            struct place* p = events[n].data.ptr;
            if (p->asked)
                take(p);
            else if (events[n].events & EPOLLOUT && !(events[n].events & EPOLLERR))
                ask(p);
            else
                end(p);
        }
    }
    return report((double)(now_ns() - from) / 1e9) ? 0 : 1;
}
