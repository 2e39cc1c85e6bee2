/*
 * temporal_slab/pcre2.h - allocates patterns and match data of PCRE2 in a domain. Header-only, for PCRE2 10.
 *
 *     #define PCRE2_CODE_UNIT_WIDTH 8                     // or 16 or 32, before this header
 *     pcre2_general_context* g = tslab_pcre2_context(domain);
 *
 * Every object that is created with the context is allocated in `domain`, even while the thread is inside another
 * domain. These objects are:
 *
 *   - compile contexts (pcre2_compile_context_create(g)) and the patterns that pcre2_compile creates with them;
 *
 *   - match contexts, match data and tables.
 *
 * No thread needs to enter the domain. Objects that are created without a context (NULL) come from malloc as usual. The
 * call pcre2_match_data_create_from_pattern(code, NULL) allocates match data from the same source as the pattern: the
 * pattern's domain, or malloc.
 *
 * To destroy the objects, end the domain. You may free objects individually before that, but only JIT-compiled patterns
 * and JIT stacks require it.
 *
 * Rules:
 *
 *   - Before the domain ends, free JIT-compiled patterns (pcre2_jit_compile) with pcre2_code_free, and JIT stacks with
 *     pcre2_jit_stack_free. PCRE2 maps machine code and JIT stacks itself, so the end of the domain does not free them.
 *
 *   - Do not use a pattern, match data or the context after the domain has ended.
 *
 *   - If several requests share a pattern, compile the pattern without a context, or with the context of a domain that
 *     lives as long as the pattern. Use such a pattern with match data that was created with the context of the
 *     request.
 *
 * Errors: if memory runs out or an allocation would exceed a hard budget of the domain, PCRE2 returns NULL,
 * PCRE2_ERROR_HEAP_FAILED or PCRE2_ERROR_NOMEMORY.
 *
 * Thread safety: PCRE2's own rules apply. Several threads may use a context at the same time.
 *
 * Complexity: each hook call costs one epoch_domain_malloc or slab_free.
 */
#ifndef TEMPORAL_SLAB_PCRE2_H
#define TEMPORAL_SLAB_PCRE2_H

#include <epoch_domain.h>
#include <pcre2.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline void* tslab_pcre2_malloc(size_t size, void* domain) {
    return epoch_domain_malloc((epoch_domain_t*)domain, size != 0 ? size : 1);
}

static inline void tslab_pcre2_free(void* p, void* domain) { slab_free(((epoch_domain_t*)domain)->alloc, p); }

/* Creates a general context that allocates in the domain. The context itself is also allocated in the domain. The
 * context ends with the domain, or earlier if you call pcre2_general_context_free. Returns NULL if memory runs out or d
 * is NULL. O(1). */
static inline pcre2_general_context* tslab_pcre2_context(epoch_domain_t* d) {
    return d != NULL ? pcre2_general_context_create(tslab_pcre2_malloc, tslab_pcre2_free, d) : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
