/*
 * temporal_slab/nghttp2.h - an HTTP/2 session, or a header compressor, whose memory is a phase. Header only; nghttp2 1.
 *
 *     nghttp2_mem mem = tslab_nghttp2_mem(domain);
 *     nghttp2_session_server_new3(&session, callbacks, user_data, NULL, &mem);
 *
 * Everything that the session allocates goes to that domain, whatever scope the thread is in: streams, header tables,
 * waiting frames, reference-counted buffers. nghttp2 copies the structure. The domain need not be entered. The phase is
 * a connection here, because a session mixes memory for one request with memory for all. So a request's phase is only
 * for the allocations of the program's own callbacks.
 *
 * To end the session: end the domain, which needs no walk over the streams, or call nghttp2_session_del first. Only
 * the latter calls on_stream_close_callback for streams that are still open.
 *
 * You may not
 *   - use or delete the session after the domain has ended;
 *   - keep an nghttp2_rcbuf (nghttp2_rcbuf_incref) or a pointer from a callback beyond the domain: copy the data;
 *   - expect memory of nghttp2_option_new, nghttp2_session_callbacks_new and similar calls here: they use malloc.
 *
 * Errors: if memory runs out or a hard budget of the domain would be exceeded, nghttp2 returns NGHTTP2_ERR_NOMEM. Then
 * delete the session, or end it with its domain. Thread safety: as for nghttp2 itself, a session belongs to one thread
 * at a time. Sessions of several threads may share a domain. Complexity: a hook costs an epoch_domain_malloc,
 * epoch_domain_calloc, epoch_domain_realloc or slab_free.
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

/* Returns the allocator for nghttp2_session_*_new3 and nghttp2_hd_*_new2, to be passed by address. The domain stays the
 * caller's. If d is NULL, every allocation fails. O(1). */
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
