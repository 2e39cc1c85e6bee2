/*
 * temporal_slab/lua.h - a Lua state whose memory is a phase. Header only; Lua 5.1 to 5.5.
 *
 *     lua_State* L = tslab_lua_newstate(domain);
 *
 * All memory of the state goes to that domain, whatever scope the thread is in. The objects of a collected heap point
 * to each other, so they must not lie in phases of different lengths. The domain need not be entered.
 *
 * To end the state: end the domain, which needs no walk over the objects, or call lua_close(L) first and then end the
 * domain. Only lua_close runs the script's pending __gc and __close, which also close files of io. After the domain
 * has ended, the state must not be used or closed.
 *
 * You may not
 *   - keep anything that lives in the state beyond the domain: strings of lua_tostring, userdata, references;
 *   - drain the domain (epoch_domain_drain) or reset it while the state is in use.
 * Copy out whatever must live longer, or give it a state in a domain of its own.
 *
 * Errors: if memory runs out or a hard budget of the domain would be exceeded, Lua gives LUA_ERRMEM after an emergency
 * collection. The state has no panic function; lua_atpanic sets one. Thread safety: as for Lua itself; states of
 * several threads may share a domain. Complexity: a call of the allocator costs an epoch_domain_malloc,
 * epoch_domain_realloc or slab_free.
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

/* Serves as lua_Alloc for lua_newstate and lua_setallocf; `domain` is an epoch_domain_t*. */
static inline void* tslab_lua_alloc(void* domain, void* p, size_t old_size, size_t new_size) {
    epoch_domain_t* d = (epoch_domain_t*)domain;
    (void)old_size; /* if p is NULL, a kind of object */
    if (new_size == 0) {
        slab_free(d->alloc, p);
        return NULL;
    }
    if (p == NULL) return epoch_domain_malloc(d, new_size);
    return epoch_domain_realloc(d, p, new_size); /* shrinking never fails, which Lua before 5.4 needs */
}

/* Makes a state in the domain, without libraries (luaL_openlibs opens them). Returns NULL if memory runs out or d is
 * NULL. The caller owns the state until it closes it or the domain ends. O(1). */
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
