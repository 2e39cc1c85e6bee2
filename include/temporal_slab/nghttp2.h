/*
 * temporal_slab/nghttp2.h - allocates an HTTP/2 session or a header compressor in a domain. Header-only, for nghttp2 1.
 *
 *     nghttp2_mem mem = tslab_nghttp2_mem(domain);
 *     nghttp2_session_server_new3(&session, callbacks, user_data, NULL, &mem);
 *
 * All memory of the session comes from `domain`, even while the thread is inside another domain. This includes streams,
 * header tables, queued frames and reference-counted buffers. nghttp2 copies `mem`, so the variable may go out of
 * scope. No thread needs to enter the domain.
 *
 * Use one domain per connection, because a session mixes memory of single requests with memory that all requests share.
 * Use the domain of a single request only for the allocations of your own callbacks.
 *
 * To destroy the session, end the domain, which frees the memory of all streams without visiting each stream. You may
 * call nghttp2_session_del before you end the domain. Only nghttp2_session_del calls on_stream_close_callback for
 * streams that are still open.
 *
 * Rules:
 *
 *   - Do not use or delete the session after the domain has ended.
 *
 *   - Do not keep an nghttp2_rcbuf (nghttp2_rcbuf_incref), or a pointer that a callback received, after the domain has
 *     ended. Copy the data instead.
 *
 *   - Objects created by nghttp2_option_new, nghttp2_session_callbacks_new and similar functions come from malloc, not
 *     from the domain. Free such objects as usual.
 *
 * Errors: if memory runs out or an allocation would exceed a hard budget of the domain, nghttp2 returns
 * NGHTTP2_ERR_NOMEM. After that, delete the session, or end the domain.
 *
 * Thread safety: as nghttp2 requires, only one thread at a time may use a session. Sessions that different threads use
 * may share a domain.
 *
 * Complexity: each hook call costs one epoch_domain_malloc, epoch_domain_calloc, epoch_domain_realloc or slab_free.
 */
#ifndef TEMPORAL_SLAB_NGHTTP2_H
#define TEMPORAL_SLAB_NGHTTP2_H

#include <epoch_domain.h>
#include <nghttp2/nghttp2.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline void* tslab_nghttp2_malloc(size_t size, void* domain) {
    return epoch_domain_malloc((epoch_domain_t*)domain, size != 0 ? size : 1);
}

static inline void tslab_nghttp2_free(void* p, void* domain) { slab_free(((epoch_domain_t*)domain)->alloc, p); }

static inline void* tslab_nghttp2_calloc(size_t n, size_t size, void* domain) {
    bool none = n == 0 || size == 0;
    return epoch_domain_calloc((epoch_domain_t*)domain, none ? 1 : n, none ? 1 : size);
}

static inline void* tslab_nghttp2_realloc(void* p, size_t size, void* domain) {
    return epoch_domain_realloc((epoch_domain_t*)domain, p, size != 0 || p != NULL ? size : 1);
}

/* Returns the allocation functions for a session or a header compressor. Pass the address of the result to
 * nghttp2_session_*_new3 or nghttp2_hd_*_new2. The caller owns the domain. If d is NULL, every allocation fails.
 * O(1). */
static inline nghttp2_mem tslab_nghttp2_mem(epoch_domain_t* d) {
    nghttp2_mem mem;
    mem.mem_user_data = d;
    mem.malloc = tslab_nghttp2_malloc;
    mem.free = tslab_nghttp2_free;
    mem.calloc = tslab_nghttp2_calloc;
    mem.realloc = tslab_nghttp2_realloc;
    return mem;
}

#ifdef __cplusplus
}
#endif
#endif
