/*
 * temporal_slab/cjson.h - cJSON's memory goes to the phase that the thread is in. Header only; cJSON 1.7.
 *
 *     tslab_cjson_init(allocator);
 *
 * The hooks of cJSON are global to the process and have no context. Once they are set, each item and each printed text
 * is an object of that allocator. The object lies in the innermost domain of the allocator that the calling thread has
 * entered, or, outside any domain, in the current ring epoch. cJSON keeps nothing of its own between calls, so a tree
 * may end with its phase, without cJSON_Delete.
 *
 * You may not
 *   - free text of cJSON_Print with free(): use cJSON_free (or slab_free);
 *   - give cJSON_Delete items that were made before tslab_cjson_init: they are refused and counted, and stay allocated;
 *   - add an item of a phase to a tree that outlives the phase, or use an item or text after its phase has ended;
 *   - change a tree that lives longer while inside a phase: new values (cJSON_SetValuestring, cJSON_AddStringToObject)
 *         would lie in the phase. To change the tree, enter its scope: epoch_domain_enter(session);               //
 *         auto_close false; or epoch_domain_wrap of a ring epoch cJSON_AddItemToObject(kept, "user",
 *         cJSON_Duplicate(item, true)); epoch_domain_exit(session);
 *
 * To remove the hooks: call cJSON_InitHooks(NULL) once no cJSON item or text is live, and before the allocator is
 * freed.
 *
 * Errors: if memory runs out or a hard budget would be exceeded, cJSON returns NULL and frees what it had begun.
 * Thread safety: call tslab_cjson_init before other threads use cJSON. The source file that makes the call remembers
 * the allocator; the last call in the process applies.
 * Complexity: a hook costs a slab_malloc or slab_free.
 */
#ifndef TEMPORAL_SLAB_CJSON_H
#define TEMPORAL_SLAB_CJSON_H

#include <epoch_domain.h>
#ifndef cJSON__h /* a program may have its own copy, and include that copy first */
#include <cJSON.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

static inline SlabAllocator** tslab_cjson_allocator_(void) {
    static SlabAllocator* allocator;
    return &allocator;
}

static inline void* CJSON_CDECL tslab_cjson_malloc(size_t size) {
    return slab_malloc(*tslab_cjson_allocator_(), size != 0 ? size : 1);
}

static inline void CJSON_CDECL tslab_cjson_free(void* p) { slab_free(*tslab_cjson_allocator_(), p); }

/* Sets the hooks. The allocator stays the caller's and must outlive the use of cJSON. Returns false and sets nothing if
 * a is NULL. */
static inline bool tslab_cjson_init(SlabAllocator* a) {
    if (a == NULL) return false;
    *tslab_cjson_allocator_() = a;
    cJSON_Hooks hooks;
    hooks.malloc_fn = tslab_cjson_malloc;
    hooks.free_fn = tslab_cjson_free;
    cJSON_InitHooks(&hooks);
    return true;
}

#ifdef __cplusplus
}
#endif
#endif
