/*
 * temporal_slab/cjson.h - cJSON's memory goes to the phase that the thread is in. Header only; cJSON 1.7.
 *
 *     tslab_cjson_init(allocator);
 *
 * The hooks of cJSON are the process's and know no context. Once they are set each item and each printed text is an
 * object of that allocator: in its innermost domain that the calling thread has entered, or, outside of any, in its
 * current ring epoch. cJSON keeps nothing of its own between calls, so a tree may end with its phase, without
 * cJSON_Delete.
 *
 * You may not
 *   - free text of cJSON_Print with free(): cJSON_free (or slab_free) does it;
 *   - give items to cJSON_Delete that were made before the call: they are refused and counted, and stay allocated;
 *   - add an item of a phase to a tree that outlives it, nor use an item or text after its phase has ended;
 *   - change a tree that lives longer while inside of a phase: new values (cJSON_SetValuestring,
 *     cJSON_AddStringToObject) would lie in the phase. Enter the scope of the tree for that:
 *         epoch_domain_enter(session);               // auto_close false; or epoch_domain_wrap of a ring epoch
 *         cJSON_AddItemToObject(kept, "user", cJSON_Duplicate(item, true));
 *         epoch_domain_exit(session);
 *
 * To end it: cJSON_InitHooks(NULL), once nothing of cJSON is live, before the allocator is freed.
 *
 * Errors: cJSON returns NULL without memory or over a hard budget, and frees what it had begun.
 * Thread safety: call tslab_cjson_init before other threads use cJSON. The allocator belongs to the source file that
 * made the call; the last call of all counts. Complexity: a hook costs a slab_malloc or slab_free.
 */
#ifndef TEMPORAL_SLAB_CJSON_H
#define TEMPORAL_SLAB_CJSON_H

#include <epoch_domain.h>
#ifndef cJSON__h /* a program may have its own copy, and include that first */
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

/* Sets the hooks. The allocator stays the caller's and must outlive their use. Returns false and sets nothing if a is
 * NULL. */
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
