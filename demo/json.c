/*
 * json.c - cJSON trees to Lua values and back: json.decode, json.encode, and the answer itself.
 *
 * Objects are encoded with their keys in order, so that an answer does not depend on the random
 * hash seed of its Lua state. A table is an array when it has a first element or was made by
 * json.array. While a tree is in work it hangs on request->tree: with glibc a Lua error would leak
 * it otherwise, with temporal-slab the phase takes it along.
 */
#include "serve.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 100
#define ARRAY_MARK "json.array"

static void drop_tree(Request* request) {
    if (request->singly) cJSON_Delete(request->tree);
    request->tree = NULL;
}

static void push_number(lua_State* L, double number) {
    lua_Integer whole;
    if (lua_numbertointeger(number, &whole) && (double)whole == number)
        lua_pushinteger(L, whole);
    else
        lua_pushnumber(L, number);
}

void demo_push_json(lua_State* L, const cJSON* item) {
    const cJSON* child;
    luaL_checkstack(L, 4, "JSON nested too deeply");
    if (cJSON_IsObject(item)) {
        lua_createtable(L, 0, cJSON_GetArraySize(item));
        cJSON_ArrayForEach(child, item) {
            demo_push_json(L, child);
            lua_setfield(L, -2, child->string);
        }
    } else if (cJSON_IsArray(item)) {
        lua_createtable(L, cJSON_GetArraySize(item), 0);
        lua_Integer i = 0;
        cJSON_ArrayForEach(child, item) {
            demo_push_json(L, child);
            lua_rawseti(L, -2, ++i);
        }
    } else if (cJSON_IsString(item)) {
        lua_pushstring(L, item->valuestring);
    } else if (cJSON_IsNumber(item)) {
        push_number(L, item->valuedouble);
    } else if (cJSON_IsBool(item)) {
        lua_pushboolean(L, cJSON_IsTrue(item));
    } else {
        lua_pushnil(L);
    }
}

/* json.decode(text) -> value, or nil and a message */
static int json_decode(lua_State* L) {
    size_t len;
    const char* text = luaL_checklstring(L, 1, &len);
    Request* request = demo_request(L);
    request->tree = cJSON_ParseWithLength(text, len);
    if (!request->tree) {
        lua_pushnil(L);
        lua_pushliteral(L, "not JSON");
        return 2;
    }
    demo_push_json(L, request->tree);
    drop_tree(request);
    return 1;
}

static cJSON* to_tree(lua_State* L, int index, int depth);

static cJSON* array_to_tree(lua_State* L, int index, int depth) {
    cJSON* array = cJSON_CreateArray();
    lua_Integer count = (lua_Integer)lua_rawlen(L, index);
    for (lua_Integer i = 1; array && i <= count; i++) {
        lua_rawgeti(L, index, i);
        cJSON* child = to_tree(L, lua_gettop(L), depth + 1);
        lua_pop(L, 1);
        if (!child || !cJSON_AddItemToArray(array, child)) {
            cJSON_Delete(child);
            cJSON_Delete(array);
            array = NULL;
        }
    }
    return array;
}

static int compare_keys(const void* left, const void* right) {
    return strcmp(*(const char* const*)left, *(const char* const*)right);
}

static size_t count_keys(lua_State* L, int index) {
    size_t count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) count++;
    return count;
}

static cJSON* object_to_tree(lua_State* L, int index, int depth) {
    size_t count = count_keys(L, index), used = 0;
    const char** keys = lua_newuserdatauv(L, (count ? count : 1) * sizeof *keys, 0);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING) keys[used++] = lua_tostring(L, -2); /* stays alive: the table holds it */
    qsort(keys, used, sizeof *keys, compare_keys);
    cJSON* object = cJSON_CreateObject();
    for (size_t k = 0; object && k < used; k++) {
        lua_getfield(L, index, keys[k]);
        cJSON* child = to_tree(L, lua_gettop(L), depth + 1);
        lua_pop(L, 1);
        if (!child || !cJSON_AddItemToObject(object, keys[k], child)) {
            cJSON_Delete(child);
            cJSON_Delete(object);
            object = NULL;
        }
    }
    lua_pop(L, 1);
    return object;
}

static bool is_array(lua_State* L, int index) {
    if (lua_rawgeti(L, index, 1) != LUA_TNIL) {
        lua_pop(L, 1);
        return true;
    }
    lua_pop(L, 1);
    if (!lua_getmetatable(L, index)) return false;
    luaL_getmetatable(L, ARRAY_MARK);
    bool marked = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return marked;
}

/* Builds bottom up, so a Lua error in here (only memory can cause one) loses a part of a tree; the
 * caller has checked the depth of the stack beforehand. NULL when memory is short. */
static cJSON* to_tree(lua_State* L, int index, int depth) {
    if (depth > DEPTH_MAX || !lua_checkstack(L, 6)) return NULL;
    switch (lua_type(L, index)) {
    case LUA_TTABLE:
        return is_array(L, index) ? array_to_tree(L, index, depth) : object_to_tree(L, index, depth);
    case LUA_TSTRING:
        return cJSON_CreateString(lua_tostring(L, index));
    case LUA_TNUMBER:
        return cJSON_CreateNumber(lua_tonumber(L, index));
    case LUA_TBOOLEAN:
        return cJSON_CreateBool(lua_toboolean(L, index));
    default:
        return cJSON_CreateNull();
    }
}

/* Text of the value at the top of the stack, in request->text. */
static void encode_top(lua_State* L) {
    Request* request = demo_request(L);
    request->tree = to_tree(L, lua_gettop(L), 0);
    if (!request->tree) luaL_error(L, "cannot encode: nested too deeply, or memory is short");
    request->text = cJSON_PrintUnformatted(request->tree);
    drop_tree(request);
    if (!request->text) luaL_error(L, "cannot encode: memory is short");
}

/* json.encode(value) -> text */
static int json_encode(lua_State* L) {
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    encode_top(L);
    Request* request = demo_request(L);
    lua_pushstring(L, request->text);
    if (request->singly) cJSON_free(request->text);
    request->text = NULL;
    return 1;
}

void demo_encode_answer(lua_State* L) {
    encode_top(L);
    Request* request = demo_request(L);
    request->answer = request->text;
    request->answer_len = strlen(request->answer);
    request->text = NULL;
}

/* json.array(t) -> t, encoded as an array even when it is empty */
static int json_array(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    luaL_setmetatable(L, ARRAY_MARK);
    return 1;
}

int demo_open_json(lua_State* L) {
    static const luaL_Reg functions[] = {
        {"decode", json_decode}, {"encode", json_encode}, {"array", json_array}, {NULL, NULL}};
    luaL_newmetatable(L, ARRAY_MARK);
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    lua_setglobal(L, "json");
    return 0;
}
