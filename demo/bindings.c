/*
 * bindings.c - what handlers may ask for: db.* (reference data), session.* (the cache).
 *
 *   db.country(code | n)      the n-th (from 1) or named country, or nil
 *   db.countries()            how many there are
 *   db.currency(code)         or nil
 *   db.subdivisions(country)  array
 *   db.languages(prefix)      array of those whose alpha-3 code begins so
 *   db.find(prefix, most)     array of {code, kind, name}: a word of the name begins so
 *   db.source(kind)           the whole source file, read and parsed afresh
 *   session.get(user)         the document, or nil
 *   session.put(user, text)
 *
 * Tables handed out are copies in the request's memory.
 */
#include "serve.h"

#include <lauxlib.h>
#include <string.h>

Request* demo_request(lua_State* L) { return *(Request**)lua_getextraspace(L); }

void demo_drop(Request* request) {
    if (request->pinned) sessions_unpin(&request->server->sessions, request->pinned);
    if (request->singly) {
        cJSON_Delete(request->tree);
        backend_free(request->text);
        backend_free(request->answer);
    }
    request->pinned = NULL;
    request->tree = NULL;
    request->text = request->answer = NULL;
}

static int push_array(lua_State* L, DataSpan span) {
    lua_createtable(L, (int)span.count, 0);
    for (size_t i = 0; i < span.count; i++) {
        demo_push_json(L, span.rows[i].item);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static DataSpan codes(lua_State* L, DataKind kind) { return demo_request(L)->server->data.by_code[kind]; }

static int push_exact(lua_State* L, DataKind kind) {
    const char* code = luaL_checkstring(L, 1);
    DataSpan found = data_range(codes(L, kind), code);
    if (found.count && strcmp(found.rows[0].key, code) == 0)
        demo_push_json(L, found.rows[0].item);
    else
        lua_pushnil(L);
    return 1;
}

static int db_country(lua_State* L) {
    if (lua_type(L, 1) != LUA_TNUMBER) return push_exact(L, DATA_COUNTRY);
    DataSpan all = codes(L, DATA_COUNTRY);
    lua_Integer n = luaL_checkinteger(L, 1);
    luaL_argcheck(L, n >= 1 && (size_t)n <= all.count, 1, "no such country");
    demo_push_json(L, all.rows[n - 1].item);
    return 1;
}

static int db_countries(lua_State* L) {
    lua_pushinteger(L, (lua_Integer)codes(L, DATA_COUNTRY).count);
    return 1;
}

static int db_currency(lua_State* L) { return push_exact(L, DATA_CURRENCY); }

static int db_subdivisions(lua_State* L) {
    char prefix[8] = "";
    size_t len;
    const char* country = luaL_checklstring(L, 1, &len);
    luaL_argcheck(L, len == 2, 1, "two letters");
    memcpy(prefix, country, 2);
    prefix[2] = '-';
    return push_array(L, data_range(codes(L, DATA_SUBDIVISION), prefix));
}

static int db_languages(lua_State* L) {
    return push_array(L, data_range(codes(L, DATA_LANGUAGE), luaL_checkstring(L, 1)));
}

static int db_find(lua_State* L) {
    DataSpan found = data_range(demo_request(L)->server->data.words, luaL_checkstring(L, 1));
    lua_Integer most = luaL_optinteger(L, 2, 100);
    size_t count = most > 0 && (size_t)most < found.count ? (size_t)most : found.count;
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        const DataRow* row = &found.rows[i];
        lua_createtable(L, 0, 3);
        lua_pushstring(L, data_code(row));
        lua_setfield(L, -2, "code");
        lua_pushstring(L, data_kind_name(row->kind));
        lua_setfield(L, -2, "kind");
        lua_pushstring(L, data_text(row->item, "name"));
        lua_setfield(L, -2, "name");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int db_source(lua_State* L) {
    Request* request = demo_request(L);
    DataKind kind = data_kind_of(luaL_checkstring(L, 1));
    luaL_argcheck(L, kind != DATA_KINDS, 1, "no such kind");
    size_t len = 0;
    request->text = data_read_source(&request->server->data, kind, &len);
    request->tree = request->text ? cJSON_ParseWithLength(request->text, len) : NULL;
    if (!request->tree) return luaL_error(L, "cannot read the source of %s", data_kind_name(kind));
    demo_push_json(L, request->tree);
    if (request->singly) {
        cJSON_Delete(request->tree);
        backend_free(request->text);
    }
    request->tree = NULL;
    request->text = NULL;
    return 1;
}

static int session_get(lua_State* L) {
    size_t len;
    const char* user = luaL_checklstring(L, 1, &len);
    Request* request = demo_request(L);
    Session* session = sessions_pin(&request->server->sessions, user, len);
    if (!session) {
        lua_pushnil(L);
        return 1;
    }
    request->pinned = session; /* demo_drop unpins it should the next line fail */
    lua_pushlstring(L, session->document, session->document_len);
    request->pinned = NULL;
    sessions_unpin(&request->server->sessions, session);
    return 1;
}

static int session_put(lua_State* L) {
    size_t user_len, document_len;
    const char* user = luaL_checklstring(L, 1, &user_len);
    const char* document = luaL_checklstring(L, 2, &document_len);
    if (!sessions_put(&demo_request(L)->server->sessions, user, user_len, document, document_len))
        return luaL_error(L, "no memory for a session");
    return 0;
}

int demo_open_bindings(lua_State* L) {
    static const luaL_Reg db[] = {{"country", db_country},     {"countries", db_countries},
                                  {"currency", db_currency},   {"subdivisions", db_subdivisions},
                                  {"languages", db_languages}, {"find", db_find},
                                  {"source", db_source},       {NULL, NULL}};
    static const luaL_Reg session[] = {{"get", session_get}, {"put", session_put}, {NULL, NULL}};
    demo_open_json(L);
    luaL_newlib(L, db);
    lua_setglobal(L, "db");
    luaL_newlib(L, session);
    lua_setglobal(L, "session");
    return 0;
}
