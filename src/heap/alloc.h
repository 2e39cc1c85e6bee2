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

/* Allocates by the whole slow path: gets binding, heap and in that a region, a line or a slab, after what waits for the
 * thread; removes what is in the way. Returns the object, with its incarnation in request->ref and its handle in
 * *request->handle; or NULL with errno, refused and counted. Changes *request.
 * [any thread, no lock held, no bracket open] */
void* tsi_alloc_slow(TsiArena* a, TsiRequest* request);

/* Allocates what is ready in the thread's bank, in shared mode. Returns NULL if nothing is, or the bank is not free.
 * size <= TSI_LUT_MAX; ref and handle as in TsiRequest. [own thread, no lock held, no bracket open] */
void* tsi_alloc_ready(TsiBinding* own, size_t size, TsiRef ref, SlabHandle* handle);

/* Takes a ready slot of the class's line in cur, the heap's current lines, into *out. Returns DONE; HANDOVER: done,
 * too, and the caller hands the heap over; MISSED: nothing done and the bracket open, since no slot is ready or the
 * heap was asked for. [owner, opens the bracket] */
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

/* Returns the heap's current lines, by class. [owner] */
TSI_INLINE TsiLine* const* tsi_cur_of(const TsiHeap* h) { return h->room != NULL ? h->room->cur : tsi_no_cur; }

/* Returns the phase of the thread's plain allocations: its innermost scope's in this arena, or the current epoch; 0:
 * none. [own thread, needs no lock] */
TsiRef tsi_ambient_ref(const TsiBinding* b);

/* Allocates by the short slow path after tsi_alloc_fast has missed: in that line, another, a region or a slab of the
 * heap, with *handle unless NULL. size <= TSI_SMALL_MAX. Returns NULL if it could not; the bracket may then be open:
 * the caller must call tsi_fast_leave. [owner, in the open bracket] */
void* tsi_alloc_nearby(TsiBinding* b, TsiHeap* h, size_t size, SlabHandle* handle);

#endif
