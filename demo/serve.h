/*
 * serve.h - one request, from its text to its answer.
 *
 *   phase_open(label of the route)
 *     lua_newstate        a fresh interpreter whose memory is the request's
 *     libraries, common.lua and the route's handler (compiled at start, loaded as bytecode)
 *     handler(request)    -> status, table; asks db.*, session.*, json.* on the way
 *     table -> cJSON tree -> text; the answer is sent (here: its checksum is taken)
 *     glibc only: lua_close, cJSON_Delete, free
 *   phase_close           with temporal-slab everything above ends here, in one step
 *
 * A request that leaks (leak.h) frees all but what it leaks singly, on temporal-slab too, and its phase drains.
 */
#ifndef DEMO_SERVE_H
#define DEMO_SERVE_H

#include "data.h"
#include "leak.h"
#include "routes.h"
#include "sessions.h"

#include <lua.h>
#include <stdatomic.h>

typedef struct Script {
    char* code; /* Lua bytecode */
    size_t len;
} Script;

typedef struct Server {
    Data data;
    Sessions sessions;
    Script common;
    Script handlers[ROUTE_COUNT];
    Leak leak;
    atomic_uint failures; /* only the first ones are told on stderr */
} Server;

/* A request being served. The three pointers below `server` name what would leak if a Lua error
 * unwound the stack past its owner. */
typedef struct Request {
    Server* server;
    cJSON* tree;
    char* text;
    Session* pinned;
    RouteId route;
    bool singly; /* what it made is freed singly: its end does not do that */
    const char *query, *body; /* not terminated */
    size_t query_len, body_len;
    int status;
    char* answer; /* from cJSON_Print; its length in answer_len */
    size_t answer_len;
} Request;

typedef struct Answer {
    RouteId route;
    int status;
    size_t len;
    uint64_t checksum; /* of status and text, never 0 */
    bool leaked;       /* left something behind */
    bool has_receipt;  /* false with glibc */
    EpochReceipt receipt;
} Answer;

/* Compiles common.lua and the handlers in `dir`. */
bool server_compile(Server* server, const char* dir);
void server_forget_scripts(Server* server);
/* Serves one request on the calling thread. */
void serve(Server* server, const char* text, size_t len, Answer* answer);

/* bindings.c: tells Lua of db, session and json. A Lua function: needs the Request in the state's extra space. */
int demo_open_bindings(lua_State* L);
Request* demo_request(lua_State* L);
/* Drops what the request still holds, and frees it when its end does not. */
void demo_drop(Request* request);
/* json.c: the value on the top of the stack as text in request->answer. */
void demo_encode_answer(lua_State* L);
int demo_open_json(lua_State* L);
void demo_push_json(lua_State* L, const cJSON* item);

#endif
