/*
 * phase.h - phases for a program that is not linked with temporal-slab.
 *
 *     #include <temporal_slab/phase.h>
 *
 *     tslab_phase* phase = tslab_phase_begin("GET /page");
 *     handle(request);                     // malloc of every library that it calls
 *     tslab_phase_end(phase);
 *
 * Under libtemporal_slab_preload.so all that the thread allocates in between, by malloc and its kin, in whatever
 * library, goes to a phase of that label. The end drains it: pages of freed objects go back; live objects escape, stay
 * valid until they are freed, and are counted under the label. Without the preload library each call here reads a word
 * that is 0, and does nothing. So a program can be built and delivered with these calls, for use with and without
 * preloading. This file needs no other file and nothing to link: it may be copied into a program's own source.
 *
 * Threads: a phase is entered by the thread that begins it; other threads allocate where they are. Phases nest, last
 * begun first ended. An event loop takes a request's phase off the thread with tslab_phase_suspend and puts it on any
 * thread with tslab_phase_resume; any thread may end a suspended phase. A thread that exits inside of a phase ends it.
 * Leave phases by their end: not by longjmp, nor by an exception (C++: tslab::phase_scope ends it then, too).
 *
 * Errors: tslab_phase_begin returns NULL without the library or without memory; every call accepts NULL for a phase and
 * does nothing. The other calls return true if they took effect. errno does not change. Labels: 31 bytes, 256 of them,
 * then "(other)": use the route, not the address that was asked for. Each call costs about two mallocs, an end as much
 * as it has to give back.
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

/* Figures of a phase, from its end. Bytes are usable ones (malloc_usable_size). allocated = freed + escaped. */
typedef struct tslab_phase_account {
    uint64_t objects_allocated, bytes_allocated, objects_freed, bytes_freed, objects_escaped, bytes_escaped;
} tslab_phase_account;

/* Sets `out` to the preload library's function, or NULL, by way of the table that the loader fills: otherwise a program
 * at a fixed address could not ask for the address of a weak function. */
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

/* Returns true if the preload library is there. */
static inline bool tslab_phase_is_there(void) {
    TSLAB_PHASE_FIND_(tslab_phase_begin_fn_, begin, tslab_preload_phase_begin);
    return begin != NULL;
}
/* Begins a phase and enters it. The label is copied; NULL is none. Returns the phase or NULL. */
static inline tslab_phase* tslab_phase_begin(const char* label) {
    TSLAB_PHASE_FIND_(tslab_phase_begin_fn_, begin, tslab_preload_phase_begin);
    return begin != NULL ? begin(label) : NULL;
}
/* Ends a phase by draining: the thread's innermost one, or a suspended one. Returns false if it is neither, and the
 * phase goes on. Fills *out (may be NULL), with 0 if there is no library. */
static inline bool tslab_phase_end_account(tslab_phase* phase, tslab_phase_account* out) {
    TSLAB_PHASE_FIND_(tslab_phase_end_fn_, end, tslab_preload_phase_end);
    if (end != NULL && phase != NULL) return end(phase, out, sizeof *out);
    if (out != NULL) {
        out->objects_allocated = out->bytes_allocated = out->objects_freed = out->bytes_freed = 0;
        out->objects_escaped = out->bytes_escaped = 0;
    }
    return false;
}
/* Ends a phase like tslab_phase_end_account, without an account. */
static inline bool tslab_phase_end(tslab_phase* phase) { return tslab_phase_end_account(phase, NULL); }
/* Takes the thread's innermost phase off the thread; it goes on. Returns false if `phase` is not the innermost. */
static inline bool tslab_phase_suspend(tslab_phase* phase) {
    TSLAB_PHASE_FIND_(tslab_phase_fn_, suspend, tslab_preload_phase_suspend);
    return suspend != NULL && phase != NULL && suspend(phase);
}
/* Enters a suspended phase, once for each time it was suspended. Returns false if it is not suspended. */
static inline bool tslab_phase_resume(tslab_phase* phase) {
    TSLAB_PHASE_FIND_(tslab_phase_fn_, resume, tslab_preload_phase_resume);
    return resume != NULL && phase != NULL && resume(phase);
}
/* Leaves all phases until tslab_phase_outer_leave, without ending them: the thread's allocations meanwhile belong to
 * the process, such as a cache that is filled in the middle of a request. Nests. */
static inline bool tslab_phase_outer(void) {
    TSLAB_PHASE_FIND_(tslab_phase_outer_fn_, outer, tslab_preload_phase_outer);
    return outer != NULL && outer();
}
/* Ends the innermost tslab_phase_outer. */
static inline bool tslab_phase_outer_leave(void) {
    TSLAB_PHASE_FIND_(tslab_phase_outer_fn_, leave, tslab_preload_phase_outer_leave);
    return leave != NULL && leave();
}
/* Lets each phase of the label leave `objects` objects of together `bytes` usable bytes behind without an alarm, such
 * as a response that is sent later. 0 and 0 take that back. Returns false without library or label. */
static inline bool tslab_phase_expect(const char* label, uint32_t objects, uint64_t bytes) {
    TSLAB_PHASE_FIND_(tslab_phase_expect_fn_, expect, tslab_preload_phase_expect);
    return expect != NULL && expect(label, objects, bytes);
}

/* Tests for leaks: calls round(ctx) `warm_up` times, then `rounds` times, and returns true if after none of the latter
 * a label retains more than after any round before, by more than `objects` objects and `bytes` bytes; slab_gate of
 * <slab_diagnostics.h>. Without the preload library nothing runs, and the result is true: ask tslab_phase_is_there.
 * `why` (of why_bytes, may be NULL) gets the reason of false in a sentence. */
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
/* Guard with a phase for a block: begins it, and ends it however the block is left. */
class phase_scope {
  public:
    explicit phase_scope(const char* label) : phase_(tslab_phase_begin(label)) {}
    ~phase_scope() { tslab_phase_end(phase_); }
    phase_scope(const phase_scope&) = delete;
    phase_scope& operator=(const phase_scope&) = delete;

  private:
    tslab_phase* phase_;
};

/* Guard that keeps the thread outside of all phases for a block. */
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
