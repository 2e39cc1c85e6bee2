/*
 * temporal_slab/pcre2.h - patterns and match data of PCRE2 in a phase. Header only; PCRE2 10.
 *
 *     #define PCRE2_CODE_UNIT_WIDTH 8                     // or 16 or 32, before this header
 *     pcre2_general_context* g = tslab_pcre2_context(domain);
 *
 * Everything made with the context lives in that domain, whatever scope the thread is in: compile contexts
 * (pcre2_compile_context_create(g)) and patterns that pcre2_compile makes with one, match contexts, match data, tables.
 * The domain need not be entered. Objects made without a context (NULL) are malloc's as before; match data made from a
 * pattern without a context of its own (pcre2_match_data_create_from_pattern(code, NULL)) goes where the pattern is.
 *
 * To end it: end the domain; nothing has to be freed singly, but may be, before that end.
 *
 * You may not
 *   - end the domain with a pattern that pcre2_jit_compile has translated, or with a JIT stack: machine code and such
 *     stacks are not in the phase, PCRE2 maps them itself. pcre2_code_free and pcre2_jit_stack_free give them back,
 *     before the end;
 *   - use a pattern, match data or the context after the domain has ended. Patterns that all requests share are
 *     compiled with a context of a domain that lives as long, or with none, and matched with match data of the
 *     request's context.
 *
 * Errors: a hard budget of the domain, like a lack of memory, gives NULL, PCRE2_ERROR_HEAP_FAILED or
 * PCRE2_ERROR_NOMEMORY.
 * Thread safety: PCRE2's own; contexts may be used by several threads at once.
 * Complexity: a hook costs an epoch_domain_malloc or slab_free.
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

/* Makes a context whose memory, its own included, is the domain's. The context ends with the domain, or before by
 * pcre2_general_context_free. Returns NULL if there is no memory or d is NULL. O(1). */
static inline pcre2_general_context* tslab_pcre2_context(epoch_domain_t* d) {
    return d != NULL ? pcre2_general_context_create(tslab_pcre2_malloc, tslab_pcre2_free, d) : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
