/*
 * serve.c - HTTP, by libmicrohttpd: epoll, in turns with the gate, which gives it its connections.
 *
 * Every connection gets one answer and is closed: there is no second request on it, so nothing that is smuggled behind
 * the first can be taken for one. What could be read in two ways is refused before anything else is looked at. A Host
 * that is not this server's own is refused, because it is how a page of the network reaches a server of this machine
 * (DNS rebinding): a browser sends the name it was told, whatever address it resolved to.
 *
 * /metrics is a quarter of a megabyte, and takes longer to make than to send. So an answer is also for all whose
 * connection began before it was begun to be made: nobody gets numbers from before the time he came, and a hundred who
 * come at a time cost one. Who connects and keeps silent does not get old numbers for that: SHARED_NS after it was made an
 * answer is for nobody else.
 *
 * Memory is bounded: connections x HEADER_BYTES, and one answer each.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/flags.h"
#include "measure.h"
#include "openmetrics.h"
#include "routes.h"

enum { HEADER_BYTES = 16384, HOST_SIZE = 256, SHARED_NS = 50000000 };

/* ---- what is refused ---- */

struct headers {
    unsigned hosts, lengths, encodings, odd;
    bool body;
    const char *host, *accept;
};

/* Returns true if a header's name is a token of HTTP. [any thread, needs no lock] */
static bool is_token(const char* s) {
    for (const char* c = s; *c; c++)
        if (*c <= ' ' || *c >= 127 || strchr("\"(),/:;<=>?@[\\]{}", *c)) return false;
    return *s != 0;
}

/* Notes a header of a request in the struct headers ctx. Returns MHD_YES: go on. [main thread] */
static enum MHD_Result look(void* ctx, enum MHD_ValueKind kind, const char* name, const char* value) {
    struct headers* h = ctx;
    (void)kind;
    if (value == NULL) value = "";
    if (!is_token(name)) h->odd++;
    if (strcasecmp(name, "Host") == 0) h->hosts++, h->host = value;
    if (strcasecmp(name, "Accept") == 0) h->accept = value;
    if (strcasecmp(name, "Transfer-Encoding") == 0) h->encodings++, h->body = true;
    if (strcasecmp(name, "Content-Length") == 0) h->lengths++, h->body |= strcmp(value, "0") != 0;
    return MHD_YES;
}

/* Writes the name or address of "name", "name:port", "[address]:port" to `out`, of HOST_SIZE bytes. Returns false when
 * it is none of them. [any thread, needs no lock] */
static bool host_name(const char* host, char* out) {
    const char *from = host + (*host == '['), *end = strchr(host, *host == '[' ? ']' : ':');
    const char* port = end == NULL ? "" : end + (*host == '[');
    if (*host == '[' && end == NULL) return false;
    size_t n = end == NULL ? strlen(from) : (size_t)(end - from);
    if (n == 0 || n >= HOST_SIZE) return false;
    if (*port != 0 && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))) return false;
    memcpy(out, from, n);
    out[n] = 0;
    return true;
}

/* Returns true for the address of the listener; where it listens at all of the machine's, for any address that is
 * written as numbers: a stranger who has only a name that he controls cannot make a browser send that.
 * [any thread, needs no lock] */
static bool is_own_address(const struct options* o, const char* name) {
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6};
    struct sockaddr_in a4 = {.sin_family = AF_INET};
    bool v4 = inet_pton(AF_INET, name, &a4.sin_addr) == 1;
    if (!v4 && inet_pton(AF_INET6, name, &a6.sin6_addr) != 1) return false;
    struct sockaddr* a = v4 ? (struct sockaddr*)(void*)&a4 : (struct sockaddr*)(void*)&a6;
    if (address_is_loopback(a)) return true;
    if (o->address.any.sa_family == AF_INET)
        return o->address.v4.sin_addr.s_addr == INADDR_ANY ||
               (v4 && a4.sin_addr.s_addr == o->address.v4.sin_addr.s_addr);
    return IN6_IS_ADDR_UNSPECIFIED(&o->address.v6.sin6_addr) ||
           (!v4 && memcmp(&a6.sin6_addr, &o->address.v6.sin6_addr, sizeof a6.sin6_addr) == 0);
}

/* Returns true if a Host header names this server. [any thread, needs no lock] */
static bool host_is_ours(const struct options* o, const char* host) {
    char name[HOST_SIZE];
    if (!host_name(host, name)) return false;
    if (strcasecmp(name, "localhost") == 0 || is_own_address(o, name)) return true;
    for (unsigned n = 0; n < o->host_count; n++)
        if (strcasecmp(name, o->hosts[n]) == 0) return true;
    return false;
}

/* Makes an answer of fixed words, which stay. code: the status of HTTP. [no other user of out] */
static void refuse(struct answer* out, unsigned code, const char* words) {
    *out =
        (struct answer){.code = code, .type = "text/plain; charset=utf-8", .fixed = words, .fixed_size = strlen(words)};
}

/* Returns true if a request is answered by its route; otherwise makes *out the answer that it gets instead.
 * [main thread] */
static bool allowed(const struct server* s, const struct headers* h, const char* version, const char* method,
                    const struct route* route, struct answer* out) {
    bool get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0, new = strcmp(version, "HTTP/1.1") == 0;
    bool twice = h->lengths > 1 || h->encodings > 1 || (h->lengths != 0 && h->encodings != 0);

    if (h->odd != 0 || twice) refuse(out, 400, "The request is ambiguous.\n");
    else if (h->hosts > 1 || (h->hosts == 0 && new)) refuse(out, 400, "A request must have exactly one Host header.\n");
    else if (h->hosts == 1 && !host_is_ours(s->options, h->host))
        refuse(out, 403, "The Host header does not name this server; --allow-host=NAME accepts another name.\n");
    else if (route == NULL)
        refuse(out, 404,
               "This server has /, /metrics, /stats.json, /doctor, /healthz and /readyz; for a page, run tslab web.\n");
    else if (!get) refuse(out, 405, "Only GET and HEAD are allowed.\n");
    else if (h->body) refuse(out, 400, "A request must not have a body.\n");
    else return true;
    return false;
}

/* ---- answers ---- */

/* Makes a response of an answer, whose body it takes. Returns it; NULL when there is no memory. [main thread] */
static struct MHD_Response* respond(struct answer* a) {
    static const char* const fields[][2] = {
        {"Content-Security-Policy",
         "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
        {"Connection", "close"},
    };

    struct MHD_Response* r =
        a->fixed ? MHD_create_response_from_buffer(a->fixed_size, (void*)(uintptr_t)a->fixed, MHD_RESPMEM_PERSISTENT)
                 : MHD_create_response_from_buffer(a->body.size, a->body.bytes, MHD_RESPMEM_MUST_FREE);
    if (r == NULL) {
        if (!a->fixed) free(a->body.bytes);
        return NULL;
    }

    bool ok = MHD_add_response_header(r, "Content-Type", a->type) == MHD_YES;
    for (size_t n = 0; n < sizeof fields / sizeof *fields; n++)
        ok = MHD_add_response_header(r, fields[n][0], fields[n][1]) == MHD_YES && ok;
    if (a->code == 405) ok = MHD_add_response_header(r, "Allow", "GET, HEAD") == MHD_YES && ok;
    if (a->code == 503) ok = MHD_add_response_header(r, "Retry-After", "1") == MHD_YES && ok;

    if (ok) return r;
    MHD_destroy_response(r);
    return NULL;
}

/* Returns when the connection began, in ns of the clock: kept beside it in place of a pointer; 0 if not known.
 * [main thread] */
static uint64_t came_ns(struct MHD_Connection* c) {
    const union MHD_ConnectionInfo* info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? (uint64_t)(uintptr_t)info->socket_context : 0;
}

/* Returns true if the shared answer was begun after the connection came, and is not too old at `now` ns.
 * [main thread] */
static bool may_share(const struct shared* shared, struct MHD_Connection* c, uint64_t now) {
    return shared->response != NULL && came_ns(c) < shared->begun_ns && now < shared->until_ns;
}

/* Gives a shared answer back, if there is one. [main thread] */
static void forget(struct shared* shared) {
    if (shared->response != NULL) MHD_destroy_response(shared->response);
    shared->response = NULL;
}

/* Answers a request, by its route or with a refusal. Returns MHD_NO, which closes the connection, without memory.
 * [main thread] */
static enum MHD_Result handle(void* ctx, struct MHD_Connection* c, const char* url, const char* method,
                              const char* version, const char* upload, size_t* upload_size, void** state) {
    struct server* s = ctx;
    struct headers h = {0};
    struct answer a;
    (void)upload, (void)upload_size, (void)state; /* answered at once: a body is never read */
    (void)MHD_get_connection_values(c, MHD_HEADER_KIND, look, &h);
    const struct route* route = route_find(url);
    struct request r = {.path = url, .accept = h.accept};
    struct shared *shared = NULL, one = {.begun_ns = now_ns()};

    if (allowed(s, &h, version, method, route, &a)) {
        if (route->shared) shared = &s->shared[openmetrics_wanted(h.accept)];
        if (shared != NULL && may_share(shared, c, one.begun_ns)) {
            self_answered(&s->self, route->path, 200);
            return MHD_queue_response(c, 200, shared->response);
        }
        route->answer(s, &r, &a);
    }

    self_answered(&s->self, route != NULL ? route->path : "other", a.code);
    one.response = respond(&a);
    enum MHD_Result result = one.response != NULL ? MHD_queue_response(c, a.code, one.response) : MHD_NO;

    if (shared != NULL && a.code == 200) {
        forget(shared);
        one.until_ns = now_ns() + SHARED_NS; /* not since it was begun: the slower it was, the more are waiting */
        *shared = one;
    } else {
        forget(&one);
    }
    return result;
}

/* ---- the library ---- */

/* Notes when a connection began, and frees its place at the gate when it is closed. [main thread] */
static void noticed(void* ctx, struct MHD_Connection* c, void** began, enum MHD_ConnectionNotificationCode what) {
    struct server* s = ctx;
    const union MHD_ConnectionInfo* info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) *began = (void*)(uintptr_t)now_ns(); /* see came_ns() */
    if (info != NULL && what == MHD_CONNECTION_NOTIFY_CLOSED) gate_ended(s->gate, info->connect_fd);
}

/* Drops the HTTP library's complaints: what a client did wrong is its business; standard error is not for strangers to
 * fill. [main thread] */
static void silent(void* ctx, const char* format, va_list args) { (void)ctx, (void)format, (void)args; }

/* Leaves a path as it was written, and returns its length. A route is its bytes: "%6detrics" is not "metrics", and
 * "%00" does not end it. [main thread] */
static size_t as_written(void* ctx, struct MHD_Connection* c, char* path) {
    (void)ctx, (void)c;
    return strlen(path);
}

/* Hands a connection to the HTTP library. Returns false, after closing it, if that refuses. [main thread] */
static bool take(void* server, int fd, const struct sockaddr* address, socklen_t size) {
    return MHD_add_connection(((struct server*)server)->http, fd, address, size) == MHD_YES;
}

/* Answers what can be answered without waiting. Returns the ns until it has to run again at the latest, UINT64_MAX if
 * no time is set. [main thread] */
static uint64_t run(void* server) {
    struct MHD_Daemon* http = ((struct server*)server)->http;
    unsigned long long ms;
    (void)MHD_run(http);
    return MHD_get_timeout(http, &ms) == MHD_YES ? (uint64_t)ms * 1000000 : UINT64_MAX;
}

/* Not by a thread of the library's own: 0.9.75 asks epoll for 128 events at a time, and when there are just as many it waits
 * for the next one before it looks at connections that it was given meanwhile. */
bool server_begin(struct server* s, struct keeper* k) {
    unsigned seconds = (unsigned)s->options->timeout_s + 1; /* the gate is sooner */
    s->self.gate = s->gate;
    s->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle, s,
                               MHD_OPTION_EXTERNAL_LOGGER, silent, NULL, MHD_OPTION_CONNECTION_LIMIT, s->gate->max + 1,
                               MHD_OPTION_CONNECTION_TIMEOUT, seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                               (size_t)HEADER_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
                               noticed, s, MHD_OPTION_UNESCAPE_CALLBACK, as_written, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo* info = s->http != NULL ? MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (info == NULL) return fprintf(stderr, "%s: the HTTP library failed to start\n", program_name), false;
    *k = (struct keeper){.ctx = s, .ready = info->epoll_fd, .take = take, .run = run};
    return true;
}

void server_end(struct server* s) {
    MHD_stop_daemon(s->http);
    forget(&s->shared[0]);
    forget(&s->shared[1]);
}
