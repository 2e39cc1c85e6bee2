/* routes.c - see server.h. */
#define _GNU_SOURCE
#include "server.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static Route routes[] = {
    {.label = "GET /products", .handler = "products"},
    {.label = "GET /product", .handler = "product"},
    {.label = "GET /report", .handler = "report", .place = ON_THE_HELPER},
    {.label = "POST /order", .handler = "order"},
    {.label = "POST /session", .handler = "session"},
};
enum { ROUTES = sizeof routes / sizeof *routes };

static int keep_code(lua_State* lua, const void* piece, size_t bytes, void* to) {
    Route* route = to;
    char* grown = realloc(route->code, route->code_bytes + bytes);
    (void)lua;
    if (grown == NULL) return 1;
    memcpy(grown + route->code_bytes, piece, bytes);
    route->code = grown;
    route->code_bytes += bytes;
    return 0;
}

bool routes_open(const char* folder) {
    lua_State* lua = luaL_newstate();
    bool ok = lua != NULL;
    for (int n = 0; n < ROUTES && ok; n++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.lua", folder, routes[n].handler);
        ok = luaL_loadfile(lua, path) == LUA_OK && lua_dump(lua, keep_code, &routes[n], 0) == 0;
        if (!ok) fprintf(stderr, "tslab_server: %s\n", lua_tostring(lua, -1));
        lua_pop(lua, 1);
    }
    if (lua != NULL) lua_close(lua);
    return ok;
}

void routes_close(void) {
    for (int n = 0; n < ROUTES; n++) free(routes[n].code);
}

Route* routes_find(const char* method, const char* path, size_t path_bytes) {
    size_t method_bytes = strlen(method);
    for (int n = 0; n < ROUTES; n++) {
        const char* label = routes[n].label;
        if (strncmp(label, method, method_bytes) == 0 && label[method_bytes] == ' ' &&
            strlen(label) == method_bytes + 1 + path_bytes && memcmp(label + method_bytes + 1, path, path_bytes) == 0)
            return &routes[n];
    }
    return NULL;
}

static void add(atomic_uint_fast64_t* to, uint64_t n) { atomic_fetch_add_explicit(to, n, memory_order_relaxed); }

void routes_count(Route* route, bool failed, const tslab_phase_account* account) {
    add(&route->requests, 1);
    if (failed) add(&route->failures, 1);
    if (account == NULL) return;
    add(&route->phases, 1);
    add(&route->objects_allocated, account->objects_allocated);
    add(&route->bytes_allocated, account->bytes_allocated);
    add(&route->objects_freed, account->objects_freed);
    add(&route->bytes_freed, account->bytes_freed);
    add(&route->objects_escaped, account->objects_escaped);
    add(&route->bytes_escaped, account->bytes_escaped);
}

static unsigned long long of(atomic_uint_fast64_t* n) { return atomic_load_explicit(n, memory_order_relaxed); }

static void print_route(FILE* to, Route* r) {
    fprintf(to,
            "\"%s\":{\"requests\":%llu,\"failures\":%llu,\"phases\":%llu,\"objects_allocated\":%llu,\"bytes_"
            "allocated\":%llu,",
            r->label, of(&r->requests), of(&r->failures), of(&r->phases), of(&r->objects_allocated),
            of(&r->bytes_allocated));
    fprintf(to, "\"objects_freed\":%llu,\"bytes_freed\":%llu,\"objects_escaped\":%llu,\"bytes_escaped\":%llu}",
            of(&r->objects_freed), of(&r->bytes_freed), of(&r->objects_escaped), of(&r->bytes_escaped));
}

char* routes_figures(const Server* server) {
    char* text = NULL;
    size_t bytes;
    FILE* to = open_memstream(&text, &bytes);
    if (to == NULL) return NULL;
    unsigned long open = 0, most = 0;
    for (unsigned n = 0; n < server->loops; n++) {
        open += atomic_load_explicit(&server->loop[n].open, memory_order_relaxed);
        most += atomic_load_explicit(&server->loop[n].open_max, memory_order_relaxed);
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    fprintf(to,
            "{\"library\":%s,\"refused\":%llu,\"open\":%lu,\"open_max\":%lu,\"sessions\":%zu,\"user_us\":%lld,\"system_"
            "us\":%lld,\"faults\":%ld,",
            tslab_phase_is_there() ? "true" : "false", of((atomic_uint_fast64_t*)&server->refused), open, most,
            sessions_count(), used.ru_utime.tv_sec * 1000000ll + used.ru_utime.tv_usec,
            used.ru_stime.tv_sec * 1000000ll + used.ru_stime.tv_usec, used.ru_minflt);
    fprintf(to, "\"routes\":{");
    for (int n = 0; n < ROUTES; n++) {
        if (n != 0) fputc(',', to);
        print_route(to, &routes[n]);
    }
    fprintf(to, "}}\n");
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
