/*
 * server.h - what the parts of tslab_server share.
 *
 * A shop over HTTP: libevent serves the connections, json-c reads and writes the bodies, a Lua handler answers, SQLite
 * keeps products and orders. The program is linked with nothing of temporal-slab. It includes <temporal_slab/phase.h>,
 * whose calls do nothing unless libtemporal_slab_preload.so is preloaded, so one binary runs under any malloc.
 *
 *     connection   libevent's, as long as it is open                   no phase
 *     session      a user's, until it has rested for some seconds      made in the outer scope
 *     statement, page cache   SQLite's, as long as the process         made in the outer scope
 *     request      interpreter, JSON trees, rows, answer               a phase of its own, labelled by route
 *
 * Threads: one for each loop, which has thousands of connections and hundreds of open requests; one that writes orders, all
 * that wait in one transaction; one that makes reports, so that no loop waits for them. A request is in the hands of one
 * thread at a time. It is handed over by a queue, with its phase suspended.
 */
#ifndef SERVER_H
#define SERVER_H

#include <temporal_slab/phase.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <lua.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Request Request;
typedef struct Loop Loop;
typedef struct Queue Queue;
typedef struct Reader Reader;
typedef struct Server Server;

/* ---- routes.c: which handler answers what, and what has been counted of it ---- */

typedef enum Place { ON_THE_LOOP, ON_THE_HELPER } Place;

typedef struct Route {
    const char* label; /* method and path; the label of its phases */
    const char* handler;
    Place place;
    char* code; /* the handler, compiled */
    size_t code_bytes;
    atomic_uint_fast64_t requests, failures, phases;
    atomic_uint_fast64_t objects_allocated, bytes_allocated, objects_freed, bytes_freed, objects_escaped, bytes_escaped;
} Route;

/* Compiles the handlers of the folder. Returns false, with a line on standard error, if one does not compile. */
bool routes_open(const char* folder);
void routes_close(void);
/* Returns the route of a method and a path of `path_bytes` bytes, or NULL. */
Route* routes_find(const char* method, const char* path, size_t path_bytes);
/* Adds what the end of a phase has told. [any thread] */
void routes_count(Route* route, bool failed, const tslab_phase_account* account);
/* Returns all figures as JSON, which the caller frees. [any thread] */
char* routes_figures(const Server* server);

/* ---- queue.c: requests on their way to a thread ---- */

struct Queue {
    pthread_mutex_t lock; /* guards all fields */
    pthread_cond_t filled;
    Request *first, **last;
    bool closed;
};

void queue_open(Queue* queue);
/* Returns true if the queue was empty. [any thread] */
bool queue_give(Queue* queue, Request* request);
/* Takes all that is there, in order; with `waits` not before there is something. NULL: nothing, or closed and empty. */
Request* queue_take_all(Queue* queue, bool waits);
void queue_close(Queue* queue);

/* ---- store.c: products and orders in SQLite; every call is made in the outer scope ---- */

typedef struct Value {
    enum { VALUE_NULL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT } kind;
    int64_t integer;
    double real;
    const char* text;
    size_t bytes;
} Value;

enum { VALUES_MAX = 8 };

/* Opens the file, and fills it where it has no products. Returns false, with a line on standard error. */
bool store_open(const char* path, unsigned products);
Reader* reader_open(const char* path);
void reader_close(Reader* reader);
/* Begins a query, one at a time for each reader. Returns NULL, or what is wrong. */
const char* reader_begin(Reader* reader, const char* sql, const Value* values, int count);
/* Steps to the next row: 1 there is one, 0 there is none, -1 an error, which reader_error tells. */
int reader_step(Reader* reader);
int reader_columns(Reader* reader);
/* Returns a column of the row, valid until the next step. */
Value reader_value(Reader* reader, int column);
const char* reader_error(Reader* reader);
void reader_end(Reader* reader);
/* Writes what the requests of the queue want written, all that wait in one transaction, until the queue is closed. */
bool writer_start(const char* path, Queue* queue);
void writer_stop(void);

/* ---- sessions.c: what the server keeps of its users ---- */

void sessions_open(unsigned rest_seconds);
/* Keeps `text` as the session of the user, in place of what was there. Returns its bytes and its copy in `*copy`, which
 * the caller frees: memory of the request. [any thread] */
size_t sessions_touch(const char* user, const char* text, size_t bytes, char** copy);
/* Ends sessions that nobody has touched for the time. [any thread] */
void sessions_sweep(void);
size_t sessions_count(void);
void sessions_close(void);

/* ---- request.c: the life of a request ---- */

typedef enum State {
    RUNS,         /* its handler has not come to a wait yet */
    WAITS_TIME,   /* for the loop's timer */
    WAITS_COMMIT, /* for the writer */
    DONE          /* the answer is there */
} State;

struct Request {
    struct evhttp_request* http; /* [loop] */
    Loop* loop;
    Route* route;
    tslab_phase* phase;
    lua_State *interpreter, *handler;
    Reader* reader; /* of the thread that runs the handler */
    State state;
    int status;
    char* answer;
    size_t answer_bytes;
    struct event timer;
    long wait_ms;
    int yielded;     /* values on the handler's stack while it waits */
    const char* sql; /* what is to be written; its text and that of the values is among them */
    Value values[VALUES_MAX];
    int value_count;
    bool written;
    Request* next; /* in a queue */
};

/* Begins a request: a phase, and its handler. Answers itself where there is no such route. [loop] */
void request_begin(Loop* loop, struct evhttp_request* http);
/* Goes on with a request that comes from a queue or a timer, its phase suspended. [loop] */
void request_continue(Request* request);
/* Runs a suspended request up to its next wait or its end, and suspends it. [helper] */
void request_run_elsewhere(Request* request, Reader* reader);

/* ---- handlers.c: what handlers call; json.c: Lua values from and to JSON ---- */

void handlers_install(lua_State* lua, Request* request);
void json_push(lua_State* lua, const char* text, size_t bytes); /* raises an error for what is no JSON */
char* json_text(lua_State* lua, int at, size_t* bytes);         /* the caller frees it; raises errors */

/* ---- loop.c: connections and the requests that are open on them ---- */

struct Loop {
    Server* server;
    struct event_base* base;
    struct evhttp* http;
    struct evhttp_bound_socket* socket;
    Queue inbox; /* of requests that others have done with */
    struct event *woken, *tick;
    int wake[2];
    Reader* reader;
    pthread_t thread;
    atomic_uint_fast32_t open, open_max; /* requests */
};

struct Server {
    const char *folder, *database;
    unsigned loops, port, products, rest_seconds;
    bool phases;
    Loop* loop; /* of them */
    Queue writes, reports;
    atomic_bool ends;
    atomic_uint_fast64_t refused; /* calls of phases that said false where there is the library */
};

bool loop_open(Loop* loop, Server* server);
bool loop_start(Loop* loop);
/* Hands a request to its loop. [any thread] */
void loop_give(Request* request);
void loop_wait(Loop* loop);
void loop_close(Loop* loop);

#endif
