/*
 * phase.h - marks phases in a program that is not linked with temporal-slab.
 *
 *     #include <temporal_slab/phase.h>
 *
 *     tslab_phase* phase = tslab_phase_begin("GET /page");
 *     handle(request);                     // with the malloc of every library that it calls
 *     tslab_phase_end(phase);
 *
 * If libtemporal_slab_preload.so is loaded, the allocations that the thread makes between the two calls belong to the
 * phase. This includes the malloc calls of every library. tslab_phase_end ends the phase, which makes the memory of
 * freed objects available again. Objects that are still live escape from the phase. Escaped objects stay valid until
 * they are freed, and are counted under the label of the phase.
 *
 * Without the preload library, the functions have no effect. You can therefore ship a program with these calls and run
 * it with or without preloading. This header includes only standard headers and needs no library at link time. You may
 * copy it into your own source tree.
 *
 * Threads: tslab_phase_begin enters the phase on the calling thread only. Phases nest: end the innermost phase first.
 * In an event loop, use tslab_phase_suspend to leave the phase of a request without ending it, and tslab_phase_resume
 * to enter it again on any thread. Any thread may also end a suspended phase. If a thread exits inside a phase, the
 * phase ends.
 *
 * Do not leave a phase by longjmp or an exception; call tslab_phase_end first. In C++, tslab::phase_scope ends the
 * phase even if an exception is thrown.
 *
 * Errors: tslab_phase_begin returns NULL if the preload library is not loaded, leaves malloc to libc, or cannot
 * allocate memory. Functions that take a phase accept NULL, and then have no effect. They return true if they took
 * effect. No function changes errno.
 *
 * Labels longer than 31 bytes are truncated. If there are already 256 labels, phases with a new label are counted under
 * "(other)". Use the route of a request as its label, not the full URL.
 *
 * Complexity: each call, except tslab_phase_expect and tslab_phase_gate, costs about as much as two calls to malloc. In
 * addition, ending a phase takes time in proportion to the memory that becomes available again.
 */
#ifndef TEMPORAL_SLAB_PHASE_H
#define TEMPORAL_SLAB_PHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tslab_phase tslab_phase;

/* Counts of objects and bytes in a phase that has ended. Byte counts are in usable bytes (malloc_usable_size). For
 * both objects and bytes, allocated = freed + escaped. */
typedef struct tslab_phase_account {
    uint64_t objects_allocated, bytes_allocated, objects_freed, bytes_freed, objects_escaped, bytes_escaped;
} tslab_phase_account;

/* Sets `out` to the address of a function of the preload library, or to NULL if that library is not loaded. Reads the
 * address from the global offset table, because a program linked at a fixed address cannot test the address of a weak
 * function directly. */
#if defined(__GNUC__) && defined(__ELF__) && defined(__x86_64__)
#define TSLAB_PHASE_FIND_(type, out, name) \
    type out;                              \
    __asm__(".weak " #name "\n\tmovq " #name "@GOTPCREL(%%rip), %0" : "=r"(out))
#elif defined(__GNUC__) && defined(__ELF__) && defined(__aarch64__)
#define TSLAB_PHASE_FIND_(type, out, name) \
    type out;                              \
    __asm__(".weak " #name "\n\tadrp %0, :got:" #name "\n\tldr %0, [%0, :got_lo12:" #name "]" : "=r"(out))
#elif defined(__GNUC__) && defined(__ELF__)
#define TSLAB_PHASE_FIND_(type, out, name)                  \
    extern __typeof__(*(type)0) name __attribute__((weak)); \
    type out = name
#else
#define TSLAB_PHASE_FIND_(type, out, name) type out = NULL
#endif

typedef tslab_phase* (*tslab_phase_begin_fn_)(const char*);
typedef bool (*tslab_phase_end_fn_)(tslab_phase*, tslab_phase_account*, size_t);
typedef bool (*tslab_phase_fn_)(tslab_phase*);
typedef bool (*tslab_phase_outer_fn_)(void);
typedef bool (*tslab_phase_expect_fn_)(const char*, uint32_t, uint64_t);
typedef bool (*tslab_phase_gate_fn_)(uint32_t, uint32_t, uint64_t, uint64_t, void (*)(void*), void*, char*, size_t);

/* Returns true if the preload library is loaded. */
static inline bool tslab_phase_is_there(void) {
    TSLAB_PHASE_FIND_(tslab_phase_begin_fn_, begin, tslab_preload_phase_begin);
    return begin != NULL;
}
/* Begins a phase and enters it on the calling thread. Copies the label; NULL means no label. Returns the phase, or NULL
 * on failure. */
static inline tslab_phase* tslab_phase_begin(const char* label) {
    TSLAB_PHASE_FIND_(tslab_phase_begin_fn_, begin, tslab_preload_phase_begin);
    return begin != NULL ? begin(label) : NULL;
}
/* Ends a phase without freeing its live objects, and writes the counts of the phase to *out (may be NULL). The phase
 * must be the thread's innermost phase or a suspended phase. Returns true on success. On failure, leaves the phase
 * open, fills *out with zeros and returns false. */
static inline bool tslab_phase_end_account(tslab_phase* phase, tslab_phase_account* out) {
    TSLAB_PHASE_FIND_(tslab_phase_end_fn_, end, tslab_preload_phase_end);
    if (end != NULL && phase != NULL) return end(phase, out, sizeof *out);
    if (out != NULL) {
        out->objects_allocated = out->bytes_allocated = out->objects_freed = out->bytes_freed = 0;
        out->objects_escaped = out->bytes_escaped = 0;
    }
    return false;
}
/* Ends a phase like tslab_phase_end_account, but reports no counts. */
static inline bool tslab_phase_end(tslab_phase* phase) { return tslab_phase_end_account(phase, NULL); }
/* Leaves the thread's innermost phase without ending it. Returns false and changes nothing if `phase` is not the
 * innermost phase. */
static inline bool tslab_phase_suspend(tslab_phase* phase) {
    TSLAB_PHASE_FIND_(tslab_phase_fn_, suspend, tslab_preload_phase_suspend);
    return suspend != NULL && phase != NULL && suspend(phase);
}
/* Enters a suspended phase on the calling thread. Each call to tslab_phase_suspend allows one call to
 * tslab_phase_resume. Returns false if the phase is not suspended or memory runs out. */
static inline bool tslab_phase_resume(tslab_phase* phase) {
    TSLAB_PHASE_FIND_(tslab_phase_fn_, resume, tslab_preload_phase_resume);
    return resume != NULL && phase != NULL && resume(phase);
}
/* Makes the thread allocate outside all phases until it calls tslab_phase_outer_leave. No phase ends. For example, a
 * program can fill a cache this way during a request. Calls to tslab_phase_outer can be nested. Returns true on
 * success. Returns false if the preload library is not loaded or memory runs out. */
static inline bool tslab_phase_outer(void) {
    TSLAB_PHASE_FIND_(tslab_phase_outer_fn_, outer, tslab_preload_phase_outer);
    return outer != NULL && outer();
}
/* Restores the phases that the thread was in before the matching call to tslab_phase_outer. Returns false and changes
 * nothing if there was no matching call, or if the thread has entered a phase since that call and is still inside
 * it. */
static inline bool tslab_phase_outer_leave(void) {
    TSLAB_PHASE_FIND_(tslab_phase_outer_fn_, leave, tslab_preload_phase_outer_leave);
    return leave != NULL && leave();
}
/* Allows up to `objects` objects, with up to `bytes` usable bytes in total, to escape from each phase with this label.
 * Reports and alerts then mention such a phase only if it exceeds one of these limits. Use this function for objects
 * that are meant to outlive their phase, such as a response that is sent later. If both limits are 0, the call
 * withdraws earlier limits. Returns false if the preload library is not loaded, the label is NULL or empty, or there is
 * no room for another label. */
static inline bool tslab_phase_expect(const char* label, uint32_t objects, uint64_t bytes) {
    TSLAB_PHASE_FIND_(tslab_phase_expect_fn_, expect, tslab_preload_phase_expect);
    return expect != NULL && expect(label, objects, bytes);
}

/* Tests for leaks with slab_gate (<slab_diagnostics.h>). Calls round(ctx) `warm_up` times (0: 3 times), then up to
 * `rounds` more times (0: 5 times). After each round that follows the warm-up, counts the objects and bytes that each
 * label retains. The test fails, and stops, if a label's number of objects exceeds its earlier maximum by more than
 * `objects`, or if a label's bytes exceed their earlier maximum by more than 25 % plus `bytes`. Returns true if the
 * test passes. Otherwise, returns false and writes the reason, as a sentence, to `why` (may be NULL), a buffer of
 * why_bytes bytes. Without the preload library, returns true and never calls `round`, so check tslab_phase_is_there
 * first. */
static inline bool tslab_phase_gate(uint32_t warm_up, uint32_t rounds, uint64_t objects, uint64_t bytes,
                                    void (*round)(void* ctx), void* ctx, char* why, size_t why_bytes) {
    TSLAB_PHASE_FIND_(tslab_phase_gate_fn_, gate, tslab_preload_phase_gate);
    if (gate != NULL) return gate(warm_up, rounds, objects, bytes, round, ctx, why, why_bytes);
    if (why != NULL && why_bytes != 0) why[0] = 0;
    return true;
}

#ifdef __cplusplus
}

namespace tslab {
/* A guard that begins a phase and ends it when the enclosing block is left, including by an exception. */
class phase_scope {
  public:
    explicit phase_scope(const char* label) : phase_(tslab_phase_begin(label)) {}
    ~phase_scope() { tslab_phase_end(phase_); }
    phase_scope(const phase_scope&) = delete;
    phase_scope& operator=(const phase_scope&) = delete;

  private:
    tslab_phase* phase_;
};

/* A guard that keeps the thread outside all phases until the enclosing block is left. */
class outer_scope {
  public:
    outer_scope() : in_(tslab_phase_outer()) {}
    ~outer_scope() {
        if (in_) tslab_phase_outer_leave();
    }
    outer_scope(const outer_scope&) = delete;
    outer_scope& operator=(const outer_scope&) = delete;

  private:
    bool in_;
};
} /* namespace tslab */
#endif
#endif
