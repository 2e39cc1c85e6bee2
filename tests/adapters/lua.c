/*
 * lua.c - program.lua in states of phases: one is closed before its phase ends, one just ends with it.
 */
#include <temporal_slab/lua.h>

#include "adapters/adapter.h"

#include <lauxlib.h>
#include <lualib.h>

static const unsigned long adapter_least = 300000;

static int emit(lua_State* L) {
    Text* out = *(Text**)lua_getextraspace(L);
    for (int i = 1; i <= lua_gettop(L); i++) {
        size_t n;
        const char* text = luaL_tolstring(L, i, &n);
        text_add(out, text, n);
        text_add(out, " ", 1);
        lua_pop(L, 1);
    }
    text_add(out, "\n", 1);
    return 0;
}

static int program(lua_State* L) {
    const Text* code = adapter_file(ADAPTERS_DIR "/program.lua");
    const Text* source = adapter_file("/usr/share/iso-codes/json/iso_3166-2.json");
    luaL_openlibs(L);
    lua_register(L, "emit", emit);
    if (luaL_loadbufferx(L, code->bytes, code->size, "@program.lua", "t") != LUA_OK) return lua_error(L);
    lua_pushlstring(L, source->bytes, source->size);
    lua_call(L, 1, 0);
    return 0;
}

/* LUA_OK or what went wrong. */
static int run_program(lua_State* L, Text* out) {
    *(Text**)lua_getextraspace(L) = out;
    lua_pushcfunction(L, program); /* no memory is needed for that */
    int status = lua_pcall(L, 0, 0, 0);
    if (status != LUA_OK) fprintf(stderr, "lua: %s\n", lua_tostring(L, -1));
    return status;
}

static void adapter_install(SlabAllocator* a) { (void)a; }
static void adapter_remove(SlabAllocator* a) { (void)a; }

static void adapter_run(Text* out, SlabAllocator* a) {
    for (int closes = 0; closes < 2; closes++) {
        epoch_domain_t* d = adapter_create(a, "script");
        lua_State* L = d != NULL ? tslab_lua_newstate(d) : luaL_newstate();
        REQUIRE(L != NULL);
        REQUIRE(run_program(L, out) == LUA_OK);
        if (closes || d == NULL) lua_close(L);
        EpochReceipt r = adapter_end(d);
        if (d != NULL) REQUIRE(closes ? r.objects_released == 0 : r.objects_released > 10000);
    }
}

/* Before Lua 5.4 nothing that shrinks may fail. */
static void shrink(SlabAllocator* a) {
    epoch_domain_t* d = adapter_create(a, "full");
    REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, 1 << 20, NULL, NULL));
    char* p = tslab_lua_alloc(d, NULL, 0, 200000);
    REQUIRE(p != NULL);
    memset(p, 'x', 200000);
    for (size_t size = 65536; size >= 16; size /= 2)
        while (tslab_lua_alloc(d, NULL, 0, size) != NULL) {}
    REQUIRE(tslab_lua_alloc(d, p, 200000, 400000) == NULL);
    REQUIRE((p = tslab_lua_alloc(d, p, 200000, 5000)) != NULL && p[4999] == 'x');
    REQUIRE(tslab_lua_alloc(d, p, 5000, 0) == NULL && tslab_lua_alloc(d, NULL, 0, 0) == NULL);
    REQUIRE(adapter_end(d).objects_freed == 1);
}

static void adapter_starve(SlabAllocator* a) {
    shrink(a);
    unsigned states = 0, refused = 0;
    REQUIRE(tslab_lua_newstate(NULL) == NULL);
    for (size_t budget = 4096; budget <= 4 << 20; budget *= 4) {
        Text out = {NULL, 0, 0};
        epoch_domain_t* d = adapter_create(a, "hungry script");
        REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, budget, NULL, NULL));
        lua_State* L = tslab_lua_newstate(d);
        if (L != NULL) {
            states++;
            *(Text**)lua_getextraspace(L) = &out;
            lua_pushcfunction(L, program);
            int status = lua_pcall(L, 0, 0, 0);
            REQUIRE(status == LUA_ERRMEM);
            REQUIRE(lua_gc(L, LUA_GCCOLLECT, 0) == 0 && strcmp(lua_tostring(L, -1), "not enough memory") == 0);
            refused++;
            lua_close(L);
        }
        (void)adapter_end(d);
        free(out.bytes);
    }
    REQUIRE(states >= 3 && refused == states);
}
