/* json.c - Lua values from JSON text and to it, by json-c's trees. Arrays are tables with elements 1 to n, or a table with the
 * metatable "json.array" where they may be empty. Keys of objects are written in order, so that an answer is always the same. */
#include "server.h"

#include <json-c/json.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16 };

static void push_value(lua_State* lua, struct json_object* value) {
    luaL_checkstack(lua, 4, "JSON is too deep");
    switch (json_object_get_type(value)) {
    case json_type_null:
        lua_pushnil(lua);
        break;
    case json_type_boolean:
        lua_pushboolean(lua, json_object_get_boolean(value));
        break;
    case json_type_double:
        lua_pushnumber(lua, json_object_get_double(value));
        break;
    case json_type_int:
        lua_pushinteger(lua, json_object_get_int64(value));
        break;
    case json_type_string:
        lua_pushlstring(lua, json_object_get_string(value), (size_t)json_object_get_string_len(value));
        break;
    case json_type_array:
        lua_createtable(lua, (int)json_object_array_length(value), 0);
        for (size_t n = 0; n < json_object_array_length(value); n++) {
            push_value(lua, json_object_array_get_idx(value, n));
            lua_rawseti(lua, -2, (lua_Integer)n + 1);
        }
        break;
    case json_type_object:
        lua_newtable(lua);
        json_object_object_foreach(value, key, member) {
            lua_pushstring(lua, key);
            push_value(lua, member);
            lua_rawset(lua, -3);
        }
        break;
    }
}

/* Trees belong to a userdata while Lua runs, which may leave by an error at any allocation. */
static int tree_gc(lua_State* lua) {
    struct json_object** tree = lua_touserdata(lua, 1);
    json_object_put(*tree);
    *tree = NULL;
    return 0;
}

static struct json_object** push_tree(lua_State* lua) {
    struct json_object** tree = lua_newuserdatauv(lua, sizeof *tree, 0);
    *tree = NULL;
    if (luaL_newmetatable(lua, "json.tree")) {
        lua_pushcfunction(lua, tree_gc);
        lua_setfield(lua, -2, "__gc");
    }
    lua_setmetatable(lua, -2);
    return tree;
}

static void drop_tree(lua_State* lua, struct json_object** tree, int at) {
    json_object_put(*tree);
    *tree = NULL;
    lua_remove(lua, at);
}

void json_push(lua_State* lua, const char* text, size_t bytes) {
    struct json_object** tree = push_tree(lua);
    int at = lua_gettop(lua);
    struct json_tokener* tokener = json_tokener_new_ex(DEPTH_MAX);
    if (tokener == NULL) luaL_error(lua, "no memory");
    *tree = json_tokener_parse_ex(tokener, text, (int)bytes);
    bool ok = json_tokener_get_error(tokener) == json_tokener_success;
    json_tokener_free(tokener);
    if (!ok) luaL_error(lua, "the body is no JSON");
    push_value(lua, *tree);
    drop_tree(lua, tree, at);
}

static struct json_object* value_at(lua_State* lua, int at, int depth);

static bool is_array(lua_State* lua, int at) {
    if (lua_getmetatable(lua, at)) {
        luaL_getmetatable(lua, "json.array");
        bool same = lua_rawequal(lua, -1, -2);
        lua_pop(lua, 2);
        if (same) return true;
    }
    return lua_rawlen(lua, at) > 0;
}

static int by_name(const void* a, const void* b) { return strcmp(*(const char* const*)a, *(const char* const*)b); }

/* Adds the members of the table at `at` in the order of their names. */
static void add_members(lua_State* lua, int at, struct json_object* object, int depth) {
    size_t n = 0;
    for (lua_pushnil(lua); lua_next(lua, at); lua_pop(lua, 1)) {
        if (lua_type(lua, -2) != LUA_TSTRING) luaL_error(lua, "a key of an object is no string");
        n++;
    }
    const char** names = lua_newuserdatauv(lua, (n + 1) * sizeof *names, 0);
    n = 0;
    for (lua_pushnil(lua); lua_next(lua, at); lua_pop(lua, 1)) names[n++] = lua_tostring(lua, -2);
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        lua_getfield(lua, at, names[i]);
        json_object_object_add(object, names[i], value_at(lua, lua_gettop(lua), depth + 1));
        lua_pop(lua, 1);
    }
    lua_pop(lua, 1);
}

static struct json_object* value_at(lua_State* lua, int at, int depth) {
    if (depth > DEPTH_MAX) luaL_error(lua, "JSON is too deep");
    luaL_checkstack(lua, 8, "JSON is too deep");
    size_t bytes;
    const char* text;
    switch (lua_type(lua, at)) {
    case LUA_TBOOLEAN:
        return json_object_new_boolean(lua_toboolean(lua, at));
    case LUA_TNUMBER:
        return lua_isinteger(lua, at) ? json_object_new_int64(lua_tointeger(lua, at))
                                      : json_object_new_double(lua_tonumber(lua, at));
    case LUA_TSTRING:
        text = lua_tolstring(lua, at, &bytes);
        return json_object_new_string_len(text, (int)bytes);
    case LUA_TTABLE:
        break;
    default:
        return NULL;
    }
    struct json_object** tree = push_tree(lua);
    int mine = lua_gettop(lua);
    if (is_array(lua, at)) {
        *tree = json_object_new_array();
        for (lua_Integer n = 1, last = (lua_Integer)lua_rawlen(lua, at); n <= last; n++) {
            lua_rawgeti(lua, at, n);
            json_object_array_add(*tree, value_at(lua, lua_gettop(lua), depth + 1));
            lua_pop(lua, 1);
        }
    } else {
        *tree = json_object_new_object();
        add_members(lua, at, *tree, depth);
    }
    struct json_object* made = *tree;
    *tree = NULL; /* the caller's now */
    lua_remove(lua, mine);
    return made;
}

char* json_text(lua_State* lua, int at, size_t* bytes) {
    at = lua_absindex(lua, at);
    struct json_object** tree = push_tree(lua);
    int mine = lua_gettop(lua);
    *tree = value_at(lua, at, 0);
    const char* text = json_object_to_json_string_length(*tree, JSON_C_TO_STRING_PLAIN, bytes);
    char* copy = text ? malloc(*bytes) : NULL;
    if (copy == NULL) luaL_error(lua, "no memory");
    memcpy(copy, text, *bytes);
    drop_tree(lua, tree, mine);
    return copy;
}
