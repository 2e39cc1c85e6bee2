/*
 * phase.h - phases for a program that is not linked with temporal-slab.
 *
 *     #include <temporal_slab/phase.h>
 *
 *     tslab_phase* phase = tslab_phase_begin("GET /page");
 *     handle(request);                     // with the malloc of every library that it calls
 *     tslab_phase_end(phase);
 *
 * Under libtemporal_slab_preload.so, everything that the thread allocates in between by malloc and its relatives, in
 * any library, goes to a phase of that label. The end drains the phase: pages of freed objects are returned. Live
 * objects escape, stay valid until they are freed, and are counted under the label. Without the preload library, each
 * call here reads a word that is 0, and does nothing. So a program can be built and shipped with these calls, for use
 * with and without preloading. This file needs no other file and nothing to link; it may be copied into a program's own
 * source.
 *
 * Threads: the thread that begins a phase enters it; other threads allocate where they are. Phases nest: the last one
 * begun is the first to end. An event loop takes a request's phase off the thread with tslab_phase_suspend and puts it
 * on any thread with tslab_phase_resume; any thread may end a suspended phase. A thread that exits inside a phase ends
 * that phase. Leave a phase only by its end, not by longjmp or an exception; in C++, tslab::phase_scope ends the phase
 * after an exception too.
 *
 * Errors: tslab_phase_begin returns NULL without the library or without memory. Every call accepts NULL for a phase and
 * does nothing. The other calls return true if they took effect. errno does not change. Labels have at most 31 bytes,
 * and after 256 labels new ones count as "(other)": use the route, not the full address of a request. Each call costs
 * about two mallocs; an end costs as much as it has to give back.
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

/* Figures of a phase, from its end. Bytes are usable bytes (malloc_usable_size). allocated = freed + escaped. */
typedef struct tslab_phase_account {
    uint64_t objects_allocated, bytes_allocated, objects_freed, bytes_freed, objects_escaped, bytes_escaped;
} tslab_phase_account;

/* Sets `out` to the preload library's function, or to NULL, through the table that the loader fills. Otherwise a
 * program at a fixed address could not ask for the address of a weak function. */
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
/* Begins a phase and enters it. The label is copied; NULL means no label. Returns the phase, or NULL on failure. */
static inline tslab_phase* tslab_phase_begin(const char* label) {
    TSLAB_PHASE_FIND_(tslab_phase_begin_fn_, begin, tslab_preload_phase_begin);
    return begin != NULL ? begin(label) : NULL;
}
/* Ends a phase by draining. The phase must be the thread's innermost one or a suspended one; otherwise it goes on, and
 * the result is false. Fills *out (may be NULL), with zeros if there is no library. */
static inline bool tslab_phase_end_account(tslab_phase* phase, tslab_phase_account* out) {
    TSLAB_PHASE_FIND_(tslab_phase_end_fn_, end, tslab_preload_phase_end);
    if (end != NULL && phase != NULL) return end(phase, out, sizeof *out);
    if (out != NULL) {
        out->objects_allocated = out->bytes_allocated = out->objects_freed = out->bytes_freed = 0;
        out->objects_escaped = out->bytes_escaped = 0;
    }
    return false;
}
/* Ends a phase like tslab_phase_end_account, but without an account. */
static inline bool tslab_phase_end(tslab_phase* phase) { return tslab_phase_end_account(phase, NULL); }
/* Takes the thread's innermost phase off the thread without ending the phase. Returns false if `phase` is not the
 * innermost. */
static inline bool tslab_phase_suspend(tslab_phase* phase) {
    TSLAB_PHASE_FIND_(tslab_phase_fn_, suspend, tslab_preload_phase_suspend);
    return suspend != NULL && phase != NULL && suspend(phase);
}
/* Enters a suspended phase, once for each time that it was suspended. Returns false if the phase is not suspended. */
static inline bool tslab_phase_resume(tslab_phase* phase) {
    TSLAB_PHASE_FIND_(tslab_phase_fn_, resume, tslab_preload_phase_resume);
    return resume != NULL && phase != NULL && resume(phase);
}
/* Leaves all phases until tslab_phase_outer_leave, without ending them. Meanwhile the thread's allocations belong to
 * the process, for example those of a cache that is filled in the middle of a request. These calls nest. */
static inline bool tslab_phase_outer(void) {
    TSLAB_PHASE_FIND_(tslab_phase_outer_fn_, outer, tslab_preload_phase_outer);
    return outer != NULL && outer();
}
/* Ends the innermost tslab_phase_outer. */
static inline bool tslab_phase_outer_leave(void) {
    TSLAB_PHASE_FIND_(tslab_phase_outer_fn_, leave, tslab_preload_phase_outer_leave);
    return leave != NULL && leave();
}
/* Lets each phase of the label leave behind, without an alarm, up to `objects` objects with `bytes` usable bytes in
 * total, for example a response that is sent later. If both are 0, the allowance is withdrawn. Returns false without a
 * library or a label. */
static inline bool tslab_phase_expect(const char* label, uint32_t objects, uint64_t bytes) {
    TSLAB_PHASE_FIND_(tslab_phase_expect_fn_, expect, tslab_preload_phase_expect);
    return expect != NULL && expect(label, objects, bytes);
}

/* Tests for leaks: calls round(ctx) `warm_up` times, then `rounds` times. Returns false if a label retains more after
 * one of the latter rounds than after every round before, by more than `objects` objects or `bytes` bytes; otherwise
 * returns true. The test is slab_gate of <slab_diagnostics.h>. Without the preload library nothing runs, and the result
 * is true, so ask tslab_phase_is_there first. If the result is false, `why` (of why_bytes bytes, may be NULL) gets the
 * reason in a sentence. */
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
/* A guard that begins a phase for a block, and ends the phase however the block is left. */
class phase_scope {
  public:
    explicit phase_scope(const char* label) : phase_(tslab_phase_begin(label)) {}
    ~phase_scope() { tslab_phase_end(phase_); }
    phase_scope(const phase_scope&) = delete;
    phase_scope& operator=(const phase_scope&) = delete;

  private:
    tslab_phase* phase_;
};

/* A guard that keeps the thread outside all phases for a block. */
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
