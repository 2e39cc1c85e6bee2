/*
 * temporal_slab/cjson.h - allocates the items and text of cJSON in the calling thread's phase. Header-only, for cJSON
 * 1.7.
 *
 *     tslab_cjson_init(allocator);
 *
 * cJSON's allocation hooks are global to the process and take no context argument. After tslab_cjson_init, the given
 * allocator provides the memory of every item and every printed text. This memory lies in the calling thread's
 * innermost domain of that allocator. If the thread is outside all domains of the allocator, the memory lies in the
 * current ring epoch (see epoch_domain.h). cJSON keeps no memory of its own between calls, so a tree can end with its
 * phase, without a call to cJSON_Delete.
 *
 * Rules:
 *
 *   - Use cJSON_free or slab_free, never free(), for the text that cJSON_Print returns.
 *
 *   - Do not call cJSON_Delete on an item that was created before tslab_cjson_init. The allocator refuses and counts
 *     the frees, and the item stays allocated.
 *
 *   - Do not add an item to a tree that outlives the phase of the item.
 *
 *   - Do not use an item or text after its phase has ended.
 *
 *   - Inside a phase, do not change a tree that outlives the phase. New values (cJSON_SetValuestring,
 *     cJSON_AddStringToObject) would be allocated in the phase and end with it. Enter the domain of the tree first, as
 *     in the example below. To keep the exit from releasing the tree, set auto_close of that domain to false, or create
 *     the domain from a ring epoch with epoch_domain_wrap.
 *
 *         epoch_domain_enter(session);
 *         cJSON_AddItemToObject(kept, "user", cJSON_Duplicate(item, true));
 *         epoch_domain_exit(session);
 *
 * To remove the hooks, call cJSON_InitHooks(NULL) when no cJSON item or text is live, and before you free the
 * allocator.
 *
 * Errors: if memory runs out or an allocation would exceed a hard budget, cJSON returns NULL and frees its partial
 * result.
 *
 * Thread safety: call tslab_cjson_init before other threads use cJSON. The most recent call, from any source file,
 * takes effect for the whole process.
 *
 * Complexity: each hook call costs one slab_malloc or slab_free.
 */
#ifndef TEMPORAL_SLAB_CJSON_H
#define TEMPORAL_SLAB_CJSON_H

#include <epoch_domain.h>
#ifndef cJSON__h /* the program may include its own copy of cJSON.h first */
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

/* Sets the hooks of cJSON. The caller owns the allocator and must not free it while cJSON is in use. Returns true; if a
 * is NULL, returns false and changes nothing. */
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
