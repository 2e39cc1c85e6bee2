/*
 * handlers.c - what a Lua handler calls, besides Lua's own libraries of text, tables and numbers:
 *
 *     query(sql, value...)    rows as tables of columns, in order; the names are in the statement
 *     wait(ms)                lets the loop serve others meanwhile
 *     commit(sql, value...)   waits until it is written; true if it is
 *     session(user, table)    keeps the table as the user's session; returns what is kept, as a table
 *     array(table)            marks a table as a list, though it may be empty
 */
#include "server.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

/* Every coroutine has the extra space of its interpreter. */
static Request* request_of(lua_State* lua) {
    Request* request;
    memcpy(&request, lua_getextraspace(lua), sizeof request);
    return request;
}

/* Arguments from the second on; text stays Lua's. */
static int values_of(lua_State* lua, Value* values) {
    int count = lua_gettop(lua) - 1;
    luaL_argcheck(lua, count <= VALUES_MAX, VALUES_MAX + 2, "too many values");
    for (int n = 0; n < count; n++) {
        Value v = {.kind = VALUE_NULL};
        switch (lua_type(lua, n + 2)) {
        case LUA_TNIL:
            break;
        case LUA_TNUMBER:
            if (lua_isinteger(lua, n + 2)) v = (Value){.kind = VALUE_INTEGER, .integer = lua_tointeger(lua, n + 2)};
            else v = (Value){.kind = VALUE_REAL, .real = lua_tonumber(lua, n + 2)};
            break;
        case LUA_TSTRING:
            v.kind = VALUE_TEXT;
            v.text = lua_tolstring(lua, n + 2, &v.bytes);
            break;
        default:
            luaL_argerror(lua, n + 2, "a number, a text or nil");
        }
        values[n] = v;
    }
    return count;
}

static void push_row(lua_State* lua, Reader* reader) {
    int columns = reader_columns(reader);
    lua_createtable(lua, columns, 0);
    for (int n = 0; n < columns; n++) {
        Value v = reader_value(reader, n);
        switch (v.kind) {
        case VALUE_NULL:
            lua_pushboolean(lua, false);
            break;
        case VALUE_INTEGER:
            lua_pushinteger(lua, v.integer);
            break;
        case VALUE_REAL:
            lua_pushnumber(lua, v.real);
            break;
        case VALUE_TEXT:
            lua_pushlstring(lua, v.text, v.bytes);
            break;
        }
        lua_rawseti(lua, -2, n + 1);
    }
}

/* Raises an error where memory ends half-way; the query is ended then with the request. */
static int query(lua_State* lua) {
    Reader* reader = request_of(lua)->reader;
    const char* sql = luaL_checkstring(lua, 1);
    Value values[VALUES_MAX];
    const char* wrong = reader_begin(reader, sql, values, values_of(lua, values));
    if (wrong != NULL) return luaL_error(lua, "%s", wrong);
    lua_newtable(lua);
    int stepped;
    for (lua_Integer n = 1; (stepped = reader_step(reader)) > 0; n++) {
        push_row(lua, reader);
        lua_rawseti(lua, -2, n);
    }
    if (stepped < 0) lua_pushstring(lua, reader_error(reader));
    reader_end(reader);
    return stepped < 0 ? lua_error(lua) : 1;
}

static int wait(lua_State* lua) {
    Request* request = request_of(lua);
    lua_Integer ms = luaL_checkinteger(lua, 1);
    luaL_argcheck(lua, ms >= 0 && ms <= 60000, 1, "0 to 60000 milliseconds");
    request->state = WAITS_TIME;
    request->wait_ms = (long)ms;
    return lua_yield(lua, 0);
}

static int commit(lua_State* lua) {
    Request* request = request_of(lua);
    request->sql = luaL_checkstring(lua, 1);
    request->value_count = values_of(lua, request->values);
    request->state = WAITS_COMMIT;
    return lua_yield(lua, lua_gettop(lua)); /* which keeps the text */
}

static int keep_session(lua_State* lua) {
    const char* user = luaL_checkstring(lua, 1);
    luaL_checktype(lua, 2, LUA_TTABLE);
    size_t bytes, kept;
    char *text = json_text(lua, 2, &bytes), *copy;
    kept = sessions_touch(user, text, bytes, &copy);
    free(text);
    if (copy == NULL) return luaL_error(lua, "no memory");
    lua_pushlstring(lua, copy, kept); /* Lua's own before it is read, which may fail */
    free(copy);
    json_push(lua, lua_tostring(lua, -1), kept);
    return 1;
}

static int array(lua_State* lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_newmetatable(lua, "json.array");
    lua_setmetatable(lua, 1);
    lua_settop(lua, 1);
    return 1;
}

void handlers_install(lua_State* lua, Request* request) {
    static const luaL_Reg libraries[] = {{LUA_GNAME, luaopen_base},
                                         {LUA_TABLIBNAME, luaopen_table},
                                         {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_MATHLIBNAME, luaopen_math}};
    static const luaL_Reg functions[] = {
        {"query", query}, {"wait", wait}, {"commit", commit}, {"session", keep_session}, {"array", array}};
    memcpy(lua_getextraspace(lua), &request, sizeof request);
    for (size_t n = 0; n < sizeof libraries / sizeof *libraries; n++) {
        luaL_requiref(lua, libraries[n].name, libraries[n].func, 1);
        lua_pop(lua, 1);
    }
    for (size_t n = 0; n < sizeof functions / sizeof *functions; n++)
        lua_register(lua, functions[n].name, functions[n].func);
}
