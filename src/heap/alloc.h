/*
 * alloc.h - allocation: the fast path inline, the rest behind tsi_alloc_slow.
 */
#ifndef TSI_HEAP_ALLOC_H
#define TSI_HEAP_ALLOC_H

#include "heap/fast.h"

/* stands for a reference: the ring's current epoch, whatever scope the thread is in */
#define TSI_REF_CURRENT (~(TsiRef)0)

/* An allocation that is asked for, of any class and size. */
typedef struct TsiRequest {
    size_t size, align; /* bytes; align: 1 where the size decides, or TSI_ALIGN_GROWS */
    TsiRef ref;         /* phase; 0: the thread's innermost scope of this arena, else the current epoch */
    unsigned cls;       /* of size and align; 0: a large object */
    bool prefer;        /* ref is only preferred: goes on as with 0 when that accepts no more */
    SlabHandle* handle; /* receives the object's handle; NULL: none is asked for */
} TsiRequest;

/* Allocates by the whole slow path: takes in the thread's inbox and sweeps a piece of what waits; gets binding, heap
 * and in that a region, a line or a slab; between two tries gives memory back and calls functions of budgets
 * (search.h), and cleanups may run. Returns the object, with its incarnation in request->ref and its handle in
 * *request->handle, unless that pointer is NULL. Otherwise returns NULL, counted as refused, with errno: ENOMEM;
 * EDQUOT, a budget; ESTALE, the phase accepts no more; EBUSY, it is another thread's alone. Then request->ref is 0
 * where `prefer` was given up. [any thread, no lock held, no bracket open] */
void* tsi_alloc_slow(TsiArena* a, TsiRequest* request);

/* Allocates, in shared mode, what is ready in the bank of `own`, the calling thread's own binding: in the heap's region
 * or current line or, where the phase has no heap there, in the region of a heap that waits. Tries the bank's lock
 * once. Returns the object, counted for the bank, with *handle unless NULL; or NULL, with *handle as it was, if nothing
 * is ready, the bank is not free, the phase is another thread's alone, or a slow path has other work to do first. size
 * <= TSI_LUT_MAX; ref as in TsiRequest. [own thread, no lock held, no bracket open] */
void* tsi_alloc_ready(TsiBinding* own, size_t size, TsiRef ref, SlabHandle* handle);

/* Takes the lowest ready slot of cur[cls], where cur is tsi_cur_of(h), into *out. Returns DONE; HANDOVER: done, too,
 * and the caller hands h over (tsi_alloc_left); MISSED: nothing done, *out as it was, and the bracket open with the
 * line in `busy`, since no slot is ready or h's word is not b->live_word. Counts nothing. [owner, opens the bracket] */
TSI_INLINE TsiFast tsi_alloc_fast(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, unsigned cls, void** out) {
    uint64_t live = b->live_word;
    TsiLine* l = cur[cls];
    tsi_bracket_name(b, tsi_busy_line(l));
    uint64_t avail = tsi_load_relaxed(&l->avail);
    if (TSI_UNLIKELY(avail == 0)) return TSI_FAST_MISSED;
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;
    tsi_store_relaxed(&l->avail, avail & (avail - 1));
    *out = l->base + (tsi_ctz64_wide(avail) << l->shift);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

/* Returns the heap's current lines, by class: those of its room, or without one tsi_no_cur, whose lines have no slot
 * ready. [owner] */
TSI_INLINE TsiLine* const* tsi_cur_of(const TsiHeap* h) { return h->room != NULL ? h->room->cur : tsi_no_cur; }

/* Returns the phase of the thread's plain allocations: its innermost scope's in this arena, or the current epoch; 0:
 * none. [own thread, needs no lock] */
TsiRef tsi_ambient_ref(const TsiBinding* b);

/* Allocates by the short slow path after tsi_alloc_fast or tsi_obj_fast has missed in h, with the line still in
 * b->busy: in that line; without a handle also in another line, a region or a new slab of the heap, with calls to
 * functions of soft budgets that it passes. size <= TSI_SMALL_MAX. Returns the object, with the bracket closed, one
 * step counted for decay.h, and *handle set unless NULL; or NULL if it could not: the bracket may then be open, and the
 * caller must call tsi_fast_leave. [owner, in the open bracket] */
void* tsi_alloc_nearby(TsiBinding* b, TsiHeap* h, size_t size, SlabHandle* handle);

#endif
