/*
 * temporal_slab/lua.h - allocates a Lua state in a domain. Header-only, for Lua 5.1 to 5.5.
 *
 *     lua_State* L = tslab_lua_newstate(domain);
 *
 * All memory of the state comes from `domain`, even while the thread is inside another domain. Objects of a
 * garbage-collected heap refer to each other, so they must not lie in phases that end at different times. No thread
 * needs to enter the domain.
 *
 * To destroy the state, end the domain, which frees all objects without visiting each object. You may call lua_close(L)
 * before you end the domain. Only lua_close runs pending __gc and __close metamethods, including those that close the
 * files of the io library. After the domain has ended, do not use or close the state.
 *
 * Rules:
 *
 *   - Do not keep a pointer into the state after the domain has ended. This applies to userdata and to strings returned
 *     by lua_tostring. Copy data that must live longer, or put it in another state with a domain of its own.
 *
 *   - Do not drain (epoch_domain_drain) or reset the domain while the state is in use.
 *
 * Errors: if memory runs out or an allocation would exceed a hard budget of the domain, Lua runs an emergency
 * collection. If the allocation still fails, Lua reports LUA_ERRMEM. The state has no panic function; call lua_atpanic
 * to set one.
 *
 * Thread safety: Lua's own rules apply. States that different threads use may share a domain.
 *
 * Complexity: each call to the allocator function costs one epoch_domain_malloc, epoch_domain_realloc or slab_free.
 */
#ifndef TEMPORAL_SLAB_LUA_H
#define TEMPORAL_SLAB_LUA_H

#include <epoch_domain.h>

#ifdef __cplusplus
#include <lua.hpp>
extern "C" {
#else
#include <lua.h>
#if LUA_VERSION_NUM >= 505
#include <lauxlib.h>
#endif
#endif

/* Allocates, resizes or frees a block of a Lua state. Pass this function as the lua_Alloc to lua_newstate or
 * lua_setallocf, with an epoch_domain_t* as the user data (`domain`). */
static inline void* tslab_lua_alloc(void* domain, void* p, size_t old_size, size_t new_size) {
    epoch_domain_t* d = (epoch_domain_t*)domain;
    (void)old_size; /* the type of the new object if p is NULL */
    if (new_size == 0) {
        slab_free(d->alloc, p);
        return NULL;
    }
    if (p == NULL) return epoch_domain_malloc(d, new_size);
    return epoch_domain_realloc(d, p, new_size); /* shrinking never fails, as Lua before 5.4 requires */
}

/* Creates a Lua state in the domain. Opens no libraries; call luaL_openlibs for that. Returns NULL if memory runs out
 * or d is NULL. The caller owns the state, which ends with lua_close or with the domain. O(1). */
static inline lua_State* tslab_lua_newstate(epoch_domain_t* d) {
#if LUA_VERSION_NUM >= 505
    return d != NULL ? lua_newstate(tslab_lua_alloc, d, luaL_makeseed(NULL)) : NULL;
#else
    return d != NULL ? lua_newstate(tslab_lua_alloc, d) : NULL;
#endif
}

#ifdef __cplusplus
}
#endif
#endif
