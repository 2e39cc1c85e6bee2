/*
 * phases.c - phases of the preloaded malloc, behind the calls of <temporal_slab/phase.h>.
 *
 * A phase is a domain of the process's allocator that the thread is inside of: malloc goes to the innermost one by its
 * fast path, from any caller. The end drains, so a program that frees its objects sooner or later works as well as
 * without phases. The library's own allocations are no malloc.
 *
 * No call changes errno, since programs do not expect it to change here. A thread's first call may have to make the
 * thread's record, for which libc may call malloc: malloc makes it then (malloc.c).
 */
#include "preload.h"

#include "slab_diagnostics.h"
#include "temporal_slab/phase.h"

#include <stdlib.h>
#include <string.h>

/* Returns the domain behind the program's name for a phase. [any thread, needs no lock] */
static epoch_domain_t* domain_of(tslab_phase* phase) { return (epoch_domain_t*)(void*)phase; }

tslab_phase* tslab_preload_phase_begin(const char* label);
bool tslab_preload_phase_end(tslab_phase* phase, tslab_phase_account* out, size_t size);
bool tslab_preload_phase_suspend(tslab_phase* phase);
bool tslab_preload_phase_resume(tslab_phase* phase);
bool tslab_preload_phase_outer(void);
bool tslab_preload_phase_outer_leave(void);
bool tslab_preload_phase_expect(const char* label, uint32_t objects, uint64_t bytes);
bool tslab_preload_phase_gate(uint32_t warm_up, uint32_t rounds, uint64_t objects, uint64_t bytes,
                              void (*round)(void* ctx), void* ctx, char* why, size_t why_bytes);

/* Returns true if the allocator is there, and the thread has its record, which this makes by a malloc if it has none;
 * false if libc's malloc serves. [own thread, no lock held, no bracket open] */
static bool ready(void) {
    if (!tsp_ready()) return false;
    if (TSI_UNLIKELY(tsi_malloc_is_new_here())) free(malloc(1));
    return true;
}

/* Begins a phase with the label (NULL: none), which the thread is inside of then. Returns it, or NULL if libc's malloc
 * serves or memory lacks. Preserves errno. [own thread, no lock held] */
TSP_API tslab_phase* tslab_preload_phase_begin(const char* label) {
    int saved = errno;
    epoch_domain_t* d = ready() ? tsi_malloc_begin(&tsp_heap, label) : NULL;
    errno = saved;
    return (tslab_phase*)(void*)d;
}

/* Returns true if the phase of the domain is the thread's innermost one; enters it if it is suspended, so that it can
 * be ended. False if the thread is in another one, and the phase is not suspended.
 * [own thread, no lock held, no bracket open] */
static bool is_inside(epoch_domain_t* d) { return epoch_domain_current() == d || epoch_domain_attach(d); }

/* Ends a phase by draining it, and writes its account to *out, unless NULL, of `size` bytes: the account that the
 * caller knows, which may have fewer or more members than this library's; further ones are 0. Returns true if it has
 * ended; false, with zeros in *out, if not: phase is NULL, not the innermost, or libc's malloc serves. Preserves errno.
 * [own thread, no lock held] */
TSP_API bool tslab_preload_phase_end(tslab_phase* phase, tslab_phase_account* out, size_t size) {
    EpochReceipt receipt;
    int saved = errno;
    bool inside = phase != NULL && ready() && is_inside(domain_of(phase));
    bool done = inside && epoch_domain_drain(domain_of(phase), out != NULL ? &receipt : NULL);
    errno = saved;
    if (out == NULL) return done;

    tslab_phase_account all = {0};
    if (done)
        all = (tslab_phase_account){receipt.objects_allocated, receipt.bytes_allocated, receipt.objects_freed,
                                    receipt.bytes_freed,       receipt.objects_escaped, receipt.bytes_escaped};

    memset(out, 0, size);
    memcpy(out, &all, size < sizeof all ? size : sizeof all);
    return done;
}

/* Leaves the phase, which goes on and can be resumed by any thread. Returns true; false, and changes nothing, if it is
 * NULL or not the innermost one. Preserves errno. [own thread, no lock held] */
TSP_API bool tslab_preload_phase_suspend(tslab_phase* phase) {
    int saved = errno;
    bool done = phase != NULL && tsp_ready() && epoch_domain_detach(domain_of(phase));
    errno = saved;
    return done;
}

/* Enters a suspended phase, which is the thread's innermost then. Returns true; false if it is NULL, no thread has
 * suspended it, or memory lacks. Preserves errno. [own thread, no lock held] */
TSP_API bool tslab_preload_phase_resume(tslab_phase* phase) {
    int saved = errno;
    bool done = phase != NULL && ready() && epoch_domain_attach(domain_of(phase));
    errno = saved;
    return done;
}

/* Leaves all phases until tslab_preload_phase_outer_leave. Returns true; false, and changes nothing, if libc's malloc
 * serves or memory lacks. Preserves errno. [own thread, no lock held] */
TSP_API bool tslab_preload_phase_outer(void) {
    int saved = errno;
    bool done = ready() && slab_scope_outer(&tsp_heap);
    errno = saved;
    return done;
}

/* Goes back into the phases that the thread's latest tslab_preload_phase_outer has left. Returns true; false, and
 * changes nothing, if it has left none, or has begun a phase since. Preserves errno. [own thread, no lock held] */
TSP_API bool tslab_preload_phase_outer_leave(void) {
    int saved = errno;
    bool done = tsp_ready() && slab_scope_outer_leave(&tsp_heap);
    errno = saved;
    return done;
}

/* Has ends of the label's phases expect that up to `objects` objects of `bytes` bytes in all escape. Returns true;
 * false without the allocator, a label, or room for one more label. Preserves errno. [any thread, no lock held] */
TSP_API bool tslab_preload_phase_expect(const char* label, uint32_t objects, uint64_t bytes) {
    int saved = errno;
    bool done = tsp_ready() && slab_label_expect_escapes(&tsp_heap, label, objects, bytes);
    errno = saved;
    return done;
}

/* Runs round(ctx) warm_up times and then `rounds` times (0: the number that slab_gate takes), and compares after each
 * of these what labels retain with the most before: `objects` objects and `bytes` bytes more may be. Returns true if no
 * label retains more than that, and, without a call of `round`, where libc's malloc serves; false with the reason in
 * `why`, of why_bytes bytes, or NULL: not written. Preserves errno. [own thread, no lock held] */
TSP_API bool tslab_preload_phase_gate(uint32_t warm_up, uint32_t rounds, uint64_t objects, uint64_t bytes,
                                      void (*round)(void* ctx), void* ctx, char* why, size_t why_bytes) {
    SlabGateOptions options = {
        .struct_size = sizeof options, .warm_up = warm_up, .rounds = rounds, .objects = objects, .bytes = bytes};
    int saved = errno;
    bool passed = !ready() || slab_gate(&tsp_heap, &options, round, ctx, why, why_bytes);
    errno = saved;
    return passed;
}
