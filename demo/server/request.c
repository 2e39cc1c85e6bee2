/*
 * request.c - see server.h. What a request allocates, its own record included, is in its phase, and freed before the phase
 * ends: without the library the frees are all there is. While it waits the phase is suspended: the thread serves others,
 * each in its own. libevent's calls are made outside, since timers, headers and answers are the connection's.
 */
#include "server.h"

#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- phases: counted where the library is there and says no ---- */

static void told(Server* server, bool done) {
    if (!done) atomic_fetch_add_explicit(&server->refused, 1, memory_order_relaxed);
}
static void suspend(Request* r) {
    if (r->phase != NULL) told(r->loop->server, tslab_phase_suspend(r->phase));
}
static void resume(Request* r) {
    if (r->phase != NULL) told(r->loop->server, tslab_phase_resume(r->phase));
}

/* ---- the handler ---- */

static const char* method_of(struct evhttp_request* http) {
    switch (evhttp_request_get_command(http)) {
    case EVHTTP_REQ_GET:
        return "GET";
    case EVHTTP_REQ_POST:
        return "POST";
    default:
        return "";
    }
}

static void push_query(lua_State* lua, const char* query) {
    lua_newtable(lua);
    struct evkeyvalq pairs;
    if (query == NULL || evhttp_parse_query_str(query, &pairs) != 0) return;
    for (struct evkeyval* pair = pairs.tqh_first; pair != NULL; pair = pair->next.tqe_next) {
        lua_pushstring(lua, pair->value); /* an error here loses the pairs: only where memory ends */
        lua_setfield(lua, -2, pair->key);
    }
    evhttp_clear_headers(&pairs);
}

static void push_body(lua_State* lua, struct evhttp_request* http) {
    struct evbuffer* in = evhttp_request_get_input_buffer(http);
    size_t bytes = evbuffer_get_length(in);
    if (bytes == 0) {
        lua_pushnil(lua);
        return;
    }
    char* text = lua_newuserdatauv(lua, bytes, 0);
    evbuffer_copyout(in, text, bytes);
    json_push(lua, text, bytes);
    lua_remove(lua, -2);
}

/* Makes the coroutine that runs the handler with {query, body}; it stays on the stack. In one protected call. */
static int prepare(lua_State* lua) {
    Request* r = lua_touserdata(lua, 1);
    handlers_install(lua, r);
    r->handler = lua_newthread(lua);
    if (luaL_loadbufferx(lua, r->route->code, r->route->code_bytes, r->route->handler, "b") != LUA_OK)
        return lua_error(lua);
    lua_newtable(lua);
    push_query(lua, evhttp_uri_get_query(evhttp_request_get_evhttp_uri(r->http)));
    lua_setfield(lua, -2, "query");
    push_body(lua, r->http);
    lua_setfield(lua, -2, "body");
    lua_xmove(lua, r->handler, 2);
    luaL_ref(lua, LUA_REGISTRYINDEX); /* the coroutine */
    return 0;
}

static int write_answer(lua_State* lua) { /* request, status, table */
    Request* r = lua_touserdata(lua, 1);
    r->status = (int)luaL_checkinteger(lua, 2);
    r->answer = json_text(lua, 3, &r->answer_bytes);
    return 0;
}

static void fail(Request* r, int status, const char* why) {
    char plain[200], text[256];
    snprintf(plain, sizeof plain, "%s", why != NULL ? why : "no memory");
    for (char* c = plain; *c; c++) /* what JSON would have to quote */
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = '\'';
    snprintf(text, sizeof text, "{\"error\":\"%s\"}", plain);
    free(r->answer);
    r->answer = strdup(text);
    r->answer_bytes = r->answer ? strlen(text) : 0;
    r->status = status;
    r->state = DONE;
}

/* Takes the handler to its next wait, or to the answer. [in the phase, any thread] */
static void run(Request* r) {
    int results = 0, arguments = r->state == WAITS_TIME ? 0 : 1;
    lua_pop(r->handler, r->yielded);
    if (r->state == WAITS_COMMIT) lua_pushboolean(r->handler, r->written);
    r->state = DONE;
    int status = lua_resume(r->handler, NULL, arguments, &results);
    if (status == LUA_YIELD) {
        r->yielded = results;
        if (r->state == DONE) fail(r, 500, "the handler has yielded");
        return;
    }
    reader_end(r->reader); /* one that an error has left */
    r->state = DONE;
    if (status != LUA_OK) {
        fail(r, 500, lua_tostring(r->handler, -1));
        return;
    }
    lua_State* lua = r->interpreter;
    lua_pushcfunction(lua, write_answer);
    lua_pushlightuserdata(lua, r);
    lua_xmove(r->handler, lua, results);
    if (lua_pcall(lua, 1 + results, 0, 0) != LUA_OK) fail(r, 500, lua_tostring(lua, -1));
}

/* ---- the life ---- */

/* Sends the answer and frees all; the phase is the thread's innermost. [loop] */
static void finish(Request* r) {
    Route* route = r->route;
    Loop* loop = r->loop;
    tslab_phase* phase = r->phase;
    bool failed = r->status >= 500;
    lua_close(r->interpreter);

    bool out = tslab_phase_outer();
    struct evbuffer* body = evbuffer_new();
    if (body != NULL && r->answer != NULL) evbuffer_add(body, r->answer, r->answer_bytes);
    evhttp_add_header(evhttp_request_get_output_headers(r->http), "Content-Type", "application/json");
    evhttp_send_reply(r->http, r->status, r->status == 200 ? "OK" : r->status < 500 ? "Refused" : "Failed", body);
    if (body != NULL) evbuffer_free(body);
    if (out) tslab_phase_outer_leave();

    free(r->answer);
    free(r);
    tslab_phase_account account;
    bool ended = tslab_phase_end_account(phase, &account);
    if (phase != NULL) told(loop->server, ended);
    routes_count(route, failed, ended ? &account : NULL);
    atomic_fetch_sub_explicit(&loop->open, 1, memory_order_relaxed);
}

static void time_is_over(evutil_socket_t fd, short what, void* ctx) {
    (void)fd, (void)what;
    request_continue(ctx);
}

/* Does what the handler has come to. [loop, in the phase] */
static void settle(Request* r) {
    if (r->state == DONE) {
        finish(r);
        return;
    }
    suspend(r);
    if (r->state == WAITS_TIME) {
        struct timeval in = {r->wait_ms / 1000, r->wait_ms % 1000 * 1000};
        event_assign(&r->timer, r->loop->base, -1, 0, time_is_over, r);
        event_add(&r->timer, &in);
    } else queue_give(&r->loop->server->writes, r);
}

void request_continue(Request* r) {
    resume(r);
    if (r->state != DONE) {
        r->reader = r->loop->reader;
        run(r);
    }
    settle(r);
}

void request_run_elsewhere(Request* r, Reader* reader) {
    resume(r);
    r->reader = reader;
    run(r);
    if (r->state != DONE) fail(r, 500, "no waits in handlers of the helper");
    suspend(r);
}

static void refuse(struct evhttp_request* http, int status, const char* reason) {
    evhttp_send_reply(http, status, reason, NULL);
}

static void send_figures(Loop* loop, struct evhttp_request* http) {
    char* text = routes_figures(loop->server);
    struct evbuffer* body = evbuffer_new();
    if (text != NULL && body != NULL) evbuffer_add(body, text, strlen(text));
    evhttp_send_reply(http, 200, "OK", body);
    if (body != NULL) evbuffer_free(body);
    free(text);
}

void request_begin(Loop* loop, struct evhttp_request* http) {
    const char* path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(http));
    if (path == NULL) path = "";
    if (strcmp(path, "/figures") == 0) {
        send_figures(loop, http);
        return;
    }
    Route* route = routes_find(method_of(http), path, strlen(path));
    if (route == NULL) {
        refuse(http, 404, "Not Found");
        return;
    }
    tslab_phase* phase = loop->server->phases ? tslab_phase_begin(route->label) : NULL;
    Request* r = calloc(1, sizeof *r);
    lua_State* lua = r != NULL ? luaL_newstate() : NULL;
    if (lua == NULL) {
        free(r);
        tslab_phase_end(phase);
        refuse(http, 503, "No Memory");
        return;
    }
    r->http = http;
    r->loop = loop;
    r->route = route;
    r->phase = phase;
    r->interpreter = lua;
    r->reader = loop->reader;
    uint_fast32_t open = atomic_fetch_add_explicit(&loop->open, 1, memory_order_relaxed) + 1;
    if (open > atomic_load_explicit(&loop->open_max, memory_order_relaxed))
        atomic_store_explicit(&loop->open_max, open, memory_order_relaxed);

    lua_pushcfunction(lua, prepare);
    lua_pushlightuserdata(lua, r);
    if (lua_pcall(lua, 1, 0, 0) != LUA_OK) fail(r, 400, lua_tostring(lua, -1));
    else if (route->place == ON_THE_HELPER) {
        suspend(r);
        queue_give(&loop->server->reports, r);
        return;
    } else run(r);
    settle(r);
}
