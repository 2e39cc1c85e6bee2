/*
 * serve.c - see serve.h. Everything that can raise a Lua error runs inside one lua_pcall, the
 * opening of the libraries included; a request that fails answers 500 with the message.
 */
#define _GNU_SOURCE /* memmem */
#include "serve.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILURES_SHOWN 5u

/* ---- scripts: compiled once, in the program's own memory ---------------------------------- */

static int keep_code(lua_State* L, const void* piece, size_t len, void* ud) {
    (void)L;
    Script* script = ud;
    char* grown = realloc(script->code, script->len + len);
    if (!grown) return 1;
    memcpy(grown + script->len, piece, len);
    script->code = grown;
    script->len += len;
    return 0;
}

static bool compile(lua_State* L, Script* script, const char* dir, const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.lua", dir, name);
    bool ok = luaL_loadfile(L, path) == LUA_OK;
    if (!ok)
        fprintf(stderr, "tslab_demo: %s\nThe handlers are in demo/handlers of the source: --handlers DIR\n",
                lua_tostring(L, -1));
    ok = ok && lua_dump(L, keep_code, script, 0) == 0;
    lua_pop(L, 1);
    return ok;
}

bool server_compile(Server* server, const char* dir) {
    lua_State* L = luaL_newstate();
    bool ok = L && compile(L, &server->common, dir, "common");
    for (int r = 0; ok && r < ROUTE_COUNT; r++) ok = compile(L, &server->handlers[r], dir, ROUTES[r].script);
    if (L) lua_close(L);
    return ok;
}

void server_forget_scripts(Server* server) {
    free(server->common.code);
    for (int r = 0; r < ROUTE_COUNT; r++) free(server->handlers[r].code);
}

/* ---- reading the request ------------------------------------------------------------------ */

/* Finds route, query and body in the text. No allocation: slices of `text`. */
static void read_request(Request* request, const char* text, size_t len) {
    const char* end = text + len;
    const char* method_end = memchr(text, ' ', len);
    const char* target = method_end ? method_end + 1 : end;
    const char* target_end = memchr(target, ' ', (size_t)(end - target));
    if (!target_end) target_end = end;
    const char* mark = memchr(target, '?', (size_t)(target_end - target));
    request->route = route_find(text, (size_t)((mark ? mark : target_end) - text));
    request->query = mark ? mark + 1 : target_end;
    request->query_len = (size_t)(target_end - request->query);
    const char* blank = memmem(target_end, (size_t)(end - target_end), "\r\n\r\n", 4);
    request->body = blank ? blank + 4 : end;
    request->body_len = (size_t)(end - request->body);
}

/* Pushes {params = {name = value, ...}, body = text}. */
static void push_request(lua_State* L, const Request* request) {
    lua_createtable(L, 0, 2);
    lua_createtable(L, 0, 4);
    const char* at = request->query;
    const char* end = at + request->query_len;
    while (at < end) {
        const char* stop = memchr(at, '&', (size_t)(end - at));
        if (!stop) stop = end;
        const char* equals = memchr(at, '=', (size_t)(stop - at));
        if (equals) {
            lua_pushlstring(L, at, (size_t)(equals - at));
            lua_pushlstring(L, equals + 1, (size_t)(stop - equals - 1));
            lua_rawset(L, -3);
        }
        at = stop + 1;
    }
    lua_setfield(L, -2, "params");
    lua_pushlstring(L, request->body, request->body_len);
    lua_setfield(L, -2, "body");
}

/* ---- running the handler ------------------------------------------------------------------ */

/* Pushes the script as a function. */
static void load_script(lua_State* L, const Script* script, const char* name) {
    if (luaL_loadbufferx(L, script->code, script->len, name, "b") != LUA_OK) lua_error(L);
}

/* Runs in protected mode: leaves status and answer text in the request. */
static int run_handler(lua_State* L) {
    static const luaL_Reg libraries[] = {{LUA_GNAME, luaopen_base},
                                         {LUA_TABLIBNAME, luaopen_table},
                                         {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_UTF8LIBNAME, luaopen_utf8},
                                         {LUA_MATHLIBNAME, luaopen_math}};
    Request* request = demo_request(L);
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
        lua_pop(L, 1);
    }
    demo_open_bindings(L);
    load_script(L, &request->server->common, "common");
    lua_call(L, 0, 1);
    lua_setglobal(L, "common");
    load_script(L, &request->server->handlers[request->route], ROUTES[request->route].script);
    push_request(L, request);
    lua_call(L, 1, 2);
    request->status = (int)luaL_checkinteger(L, -2);
    demo_encode_answer(L);
    return 0;
}

/* Status and text, eight bytes at a time; never 0. */
static uint64_t checksum(int status, const char* text, size_t len) {
    uint64_t h = 0x9e3779b97f4a7c15u ^ (uint64_t)status ^ (uint64_t)len << 16;
    while (len) {
        size_t take = len < 8 ? len : 8;
        uint64_t word = 0;
        memcpy(&word, text, take);
        h = (h ^ word) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
        text += take;
        len -= take;
    }
    return h ? h : 1;
}

static void answer_with(Answer* answer, int status, const char* text, size_t len) {
    answer->status = status;
    answer->len = len;
    answer->checksum = checksum(status, text, len);
}

static void run_in_lua(Request* request, Answer* answer) {
    static const char short_of_memory[] = "{\"error\":\"memory is short\"}";
    lua_State* L = lua_newstate(backend_lua_alloc, NULL);
    if (!L) {
        answer_with(answer, 500, short_of_memory, sizeof short_of_memory - 1);
        return;
    }
    *(Request**)lua_getextraspace(L) = request;
    lua_pushcfunction(L, run_handler);
    if (lua_pcall(L, 0, 0, 0) == LUA_OK) {
        answer_with(answer, request->status, request->answer, request->answer_len);
    } else {
        const char* message = lua_tostring(L, -1);
        message = message ? message : "error";
        answer_with(answer, 500, message, strlen(message));
        if (atomic_fetch_add(&request->server->failures, 1) < FAILURES_SHOWN)
            fprintf(stderr, "tslab_demo: %s: %s\n", ROUTES[request->route].label, message);
    }
    demo_drop(request);
    if (request->singly) lua_close(L);
}

void serve(Server* server, const char* text, size_t len, Answer* answer) {
    static const char not_found[] = "{\"error\":\"no such route\"}";
    static const char short_of_memory[] = "{\"error\":\"memory is short\"}";
    Request request = {.server = server};
    read_request(&request, text, len);
    memset(answer, 0, sizeof *answer);
    answer->route = request.route;
    if (request.route == ROUTE_COUNT) {
        answer_with(answer, 404, not_found, sizeof not_found - 1);
        return;
    }
    Phase phase;
    bool leaks = leak_chosen(&server->leak, request.route);
    request.singly = leaks || !backend_ends_in_bulk();
    if (!phase_open(&phase, ROUTES[request.route].label, leaks)) {
        answer_with(answer, 500, short_of_memory, sizeof short_of_memory - 1);
        return;
    }
    run_in_lua(&request, answer);
    if (leaks) answer->leaked = leak_entry(&server->leak, answer->status, text, len);
    answer->has_receipt = phase_close(&phase, &answer->receipt);
}
