/*
 * temporal_slab/pcre2.h - patterns and match data of PCRE2 in a phase. Header only; PCRE2 10.
 *
 *     #define PCRE2_CODE_UNIT_WIDTH 8                     // or 16 or 32, before this header
 *     pcre2_general_context* g = tslab_pcre2_context(domain);
 *
 * Everything made with the context lives in that domain, whatever scope the thread is in: compile contexts
 * (pcre2_compile_context_create(g)), patterns that pcre2_compile makes with them, match contexts, match data and
 * tables. The domain need not be entered. Objects made without a context (NULL) come from malloc as before. Match data
 * made from a pattern without a context (pcre2_match_data_create_from_pattern(code, NULL)) goes where the pattern is.
 *
 * To end the objects: end the domain. Before that, objects may be freed singly, but need not be.
 *
 * You may not
 *   - end the domain with a pattern that pcre2_jit_compile has translated, or with a JIT stack: machine code and such
 *     stacks are not in the phase, because PCRE2 maps them itself. Give them back by pcre2_code_free and
 *     pcre2_jit_stack_free before the end;
 *   - use a pattern, match data or the context after the domain has ended. Compile patterns that all requests share
 *     with a context of a domain that lives as long, or without a context. Match them with match data of the request's
 *     context.
 *
 * Errors: if memory runs out or a hard budget of the domain would be exceeded, PCRE2 returns NULL,
 * PCRE2_ERROR_HEAP_FAILED or PCRE2_ERROR_NOMEMORY. Thread safety: as for PCRE2 itself; several threads may use a
 * context at the same time. Complexity: a hook costs an epoch_domain_malloc or slab_free.
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

/* Makes a context whose memory, including its own, is in the domain. The context ends with the domain, or earlier by
 * pcre2_general_context_free. Returns NULL if memory runs out or d is NULL. O(1). */
static inline pcre2_general_context* tslab_pcre2_context(epoch_domain_t* d) {
    return d != NULL ? pcre2_general_context_create(tslab_pcre2_malloc, tslab_pcre2_free, d) : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
