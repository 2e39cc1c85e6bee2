/*
 * fuzz_http.c - any bytes on a connection of tslabd, and answers as they must be.
 *
 * The server is tslabd's own: serve.c and routes.c over libmicrohttpd, with a source whose texts come from the input. A
 * connection is a pair of sockets; the bytes are sent in pieces, and after each one the server does what it can. The
 * first bytes of an input say how: texts of the source that fail or are empty, an end of the sending side before the
 * answer is read, HTTP tokens in place of bytes.
 *
 * Held: what comes back is nothing (the connection was closed), or a whole answer: a status line that tslabd or
 * libmicrohttpd has, Content-Length bytes, all security headers where tslabd answers, and 200 only for a request whose
 * line names one of its routes and whose Host it accepts. Nothing stays open.
 */
#define _GNU_SOURCE
#include "daemon/routes.h"

#include "fuzz/input.h"
#include "fuzz/text.h"

#include "measure.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

enum { REQUEST_MOST = 1 << 15, ANSWER_MOST = 1 << 19 };

static struct options options = {.max_connections = 4, .timeout_s = 10};
static struct place places[4];
static struct gate gate;
static struct server server;
static struct keeper keeper;

/* ---- the source ---- */

static struct {
    bool metrics_fail, stats_fail, doctor_fails, still, young;
    unsigned lines;
} source_of;

static bool metrics(void* self, struct text* t) {
    (void)self;
    for (unsigned n = 0; n <= source_of.lines; n++)
        text_format(t,
                    "# HELP temporal_slab_x%u_total A \"number\".\n# TYPE temporal_slab_x%u_total counter\n"
                    "temporal_slab_x%u_total{label=\"a,le=\\\"1\\\"}\",le=\"%u\"} %u\n",
                    n, n, n, n, n);
    return !source_of.metrics_fail;
}
static bool stats(void* self, struct text* t) {
    return (void)self, text_put(t, "{\"version\":3}\n"), !source_of.stats_fail;
}
static bool doctor(void* self, struct text* t) {
    return (void)self, text_put(t, "Nothing to do.\n"), !source_of.doctor_fails;
}
static bool ready(void* self) { return (void)self, !source_of.young; }
static bool moves(void* self, char* why, size_t size) {
    (void)self;
    (void)snprintf(why, size, "the load stands still");
    return !source_of.still;
}
static struct source source = {"idle", &source, metrics, stats, doctor, ready, moves};

/* ---- the server ---- */

int LLVMFuzzerInitialize(int* argc, char*** argv) {
    (void)argc, (void)argv;
    options.address.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(8080)};
    options.address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    options.hosts[0] = "metrics.example";
    options.host_count = 1;
    gate = (struct gate){.listener = -1, .max = 4, .timeout_ns = 10000000000, .places = places};
    for (unsigned n = 0; n < 4; n++) places[n].fd = -1;
    server = (struct server){.options = &options, .source = &source, .gate = &gate};
    REQUIRE_OR(server_begin(&server, &keeper), "the server does not begin");
    return 0;
}

/* ---- a request ---- */

static const char* const words[] = {
    "GET / HTTP/1.1\r\n",
    "GET /metrics HTTP/1.1\r\n",
    "HEAD /stats.json HTTP/1.1\r\n",
    "GET /doctor HTTP/1.0\r\n",
    "GET /healthz HTTP/1.1\r\n",
    "GET /readyz?x=1 HTTP/1.1\r\n",
    "POST /metrics HTTP/1.1\r\n",
    "Host: localhost:8080\r\n",
    "Host: 127.0.0.1\r\n",
    "Host: metrics.example:1\r\n",
    "Host: [::1]:8080\r\n",
    "Host: example.org\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Accept: application/openmetrics-text; version=1.0.0; q=0.7, text/plain;q=0.3\r\n",
    "Accept: */*\r\n",
    "Connection: keep-alive\r\n",
    "Expect: 100-continue\r\n",
    "\r\n",
    "\r\n\r\n",
    "GET ",
    "OPTIONS ",
    " HTTP/1.1\r\n",
    " HTTP/0.9\r\n",
    "/metrics",
    "%00",
    "/..%2f",
    ": ",
    "0\r\n\r\n",
    "5\r\nabcde\r\n",
    "Host",
};
enum { WORDS = sizeof words / sizeof *words, FIRST_WORD = 0x80 };

/* The bytes 0x80 to 0x9f are words; 0xff sends what there is, and the server works. */
typedef struct Request {
    size_t size;
    char bytes[REQUEST_MOST];
} Request;

static void add(Request* r, const char* bytes, size_t n) {
    if (n > sizeof r->bytes - 1 - r->size) n = sizeof r->bytes - 1 - r->size;
    memcpy(r->bytes + r->size, bytes, n);
    r->size += n;
    r->bytes[r->size] = 0;
}

static void work(void) {
    for (unsigned n = 0; n < 3; n++) (void)keeper.run(keeper.ctx);
}

/* Sends what the socket takes; a server that has closed is no error. */
static void send_all(int fd, Request* r, size_t* sent) {
    while (*sent < r->size) {
        ssize_t n = send(fd, r->bytes + *sent, r->size - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) break;
        *sent += (size_t)n;
        work();
    }
    work();
}

/* ---- an answer ---- */

static const char* header(const char* answer, const char* name) {
    size_t n = strlen(name);
    for (const char* line = strstr(answer, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, n) == 0 && line[2 + n] == ':') return line + 2 + n + 2;
    return NULL;
}

static bool is_route(const Request* r) {
    static const char* const paths[] = {"/", "/metrics", "/stats.json", "/doctor", "/healthz", "/readyz"};
    char path[64] = "";
    const char* from = r->bytes + strspn(r->bytes, "\r\n");
    if (sscanf(from, "%*[A-Z] %63[^ ?]", path) != 1) return false;
    for (unsigned n = 0; n < sizeof paths / sizeof *paths; n++)
        if (strcmp(path, paths[n]) == 0) return true;
    return false;
}

static void check_answer(const Request* r, char* answer, size_t size) {
    static const char* const needed[] = {"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options",
                                         "Cache-Control"};
    static const unsigned ours[] = {200, 400, 403, 404, 405, 503};
    unsigned code = 0;
    bool known = false, all = true;
    answer[size] = 0;
    if (size == 0) return;
    if (strncmp(answer, "HTTP/1.1 100", 12) == 0) { /* go on: the request may never have */
        char* behind = strstr(answer, "\r\n\r\n");
        REQUIRE_OR(behind != NULL, "100 without an end");
        memmove(answer, behind + 4, size - (size_t)(behind + 4 - answer) + 1);
        if (answer[0] == 0) return;
    }
    REQUIRE_OR(sscanf(answer, "HTTP/1.%*1[01] %3u ", &code) == 1, "no status line: %.60s", answer);
    char* body = strstr(answer, "\r\n\r\n");
    REQUIRE_OR(body != NULL, "an answer without an end of its headers: %.200s", answer);
    body[2] = 0;
    for (unsigned n = 0; n < sizeof needed / sizeof *needed; n++) all &= header(answer, needed[n]) != NULL;
    for (unsigned n = 0; n < sizeof ours / sizeof *ours; n++) known |= code == ours[n];
    REQUIRE_OR(all ? known : code >= 400 && code < 600, "status %u, headers of tslabd: %d", code, all);
    const char* length = header(answer, "Content-Length");
    REQUIRE_OR(length != NULL, "an answer without a length, status %u", code);
    bool empty = strncmp(r->bytes + strspn(r->bytes, "\r\n"), "HEAD", 4) == 0;
    size_t has = strlen(body + 4), want = strtoul(length, NULL, 10);
    if (!all)
        return; /* libmicrohttpd 0.9.75 sends the headers of a refusal of its own twice, if more follows a request */
    REQUIRE_OR(has == want || (empty && has == 0), "status %u: %zu bytes of %zu", code, has, want);
    if (code != 200) return;
    const char* host = strcasestr(r->bytes, "Host:");
    REQUIRE_OR(is_route(r), "200 for %.80s", r->bytes);
    REQUIRE_OR(host != NULL || strstr(r->bytes, "HTTP/1.0") != NULL, "200 without a Host: %.200s", r->bytes);
}

static size_t receive(int fd, char* to) {
    size_t size = 0;
    for (unsigned idle = 0; idle < 3;) {
        ssize_t n = recv(fd, to + size, ANSWER_MOST - 1 - size, MSG_DONTWAIT);
        if (n == 0) break;
        if (n > 0) size += (size_t)n, idle = 0;
        else idle++;
        work();
    }
    return size;
}

/* ---- one input ---- */

static void set_up(Input* in) {
    uint64_t how = take(in, 1);
    source_of.metrics_fail = how % 16 == 1;
    source_of.stats_fail = how % 16 == 2;
    source_of.doctor_fails = how % 16 == 3;
    source_of.still = how % 16 == 4;
    source_of.young = how % 16 == 5;
    server.draining = how % 16 == 6;
    source_of.lines = how % 16 == 7 ? 1000 : (unsigned)how / 16;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static Request r;
    static char answer[ANSWER_MOST];
    Input in = {data, size};
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int ends[2];
    r.size = 0, r.bytes[0] = 0;
    set_up(&in);
    REQUIRE_OR(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "no sockets");
    places[0] = (struct place){.fd = ends[1], .since_ns = now_ns()};
    gate.used = 1;
    REQUIRE_OR(keeper.take(keeper.ctx, ends[1], (struct sockaddr*)&from, sizeof from), "not taken");
    size_t sent = 0;
    while (in.left != 0) {
        uint8_t byte = (uint8_t)take(&in, 1);
        if (byte == 0xff) send_all(ends[0], &r, &sent);
        else if (byte >= FIRST_WORD && byte < FIRST_WORD + WORDS)
            add(&r, words[byte - FIRST_WORD], strlen(words[byte - FIRST_WORD]));
        else add(&r, (const char*)&byte, 1);
    }
    send_all(ends[0], &r, &sent);
    (void)shutdown(ends[0], SHUT_WR);
    work();
    size_t got = receive(ends[0], answer);
    close(ends[0]);
    for (unsigned n = 0; n < 8 && gate.used != 0; n++) work();
    REQUIRE_OR(gate.used == 0, "a connection stays open");
    if (memchr(r.bytes, 0, r.size) == NULL) check_answer(&r, answer, got);
    return 0;
}
