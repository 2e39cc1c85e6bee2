/*
 * stand_in.h - objects as tools see them: a block of malloc in place of each slot.
 *
 * AddressSanitizer, Valgrind and the like track the blocks of malloc and free: they report a use after free with the
 * stacks of both, and an access beyond the end. They know nothing of slots in pages of ours. So, if such a tool is
 * present or the option by_malloc asks for it, the program gets as its object a block that malloc has made, the
 * object's stand-in. The slot is taken as always and holds nothing but the block's address: phases, handles, budgets,
 * figures and refusals go by slots, and are the same as without stand-ins. The block goes back to malloc when its
 * object is freed or its phase released; how long its bytes are kept from other use then is up to the tool.
 *
 *   the program's pointer --tsi_slot_of--> slot --everything behind--> slot --tsi_object_at--> the program's pointer
 *
 * An allocator has stand-ins from its creation to its end, or never. If it has, fast paths find no binding, like in
 * shared mode, so each call comes by here; without, no fast path has an instruction for it.
 *
 * Invariants. ST1: a block is in the tree exactly as long as we have it from malloc. ST2: the block of an object is
 * freed once, by the thread that takes its record off the tree. ST3: when a phase has been released no block of it is
 * left, and no slot that it had is written for it: the end changes the state and then reads the list of the phase; an
 * allocation reads the state, and only in a phase that has not been released writes the slot, in one hold of the lock,
 * and enters the list. So one of the two takes the block, and the slot's next object writes it later.
 *
 * With the option late_access a block is not malloc's, but lies on a sheet (sheets.h), whose pages cannot be touched
 * when all on it have ended.
 *
 * With the option guard_period only the objects whose turn it is have blocks, on sheets of their own; all others are in
 * their slots, whose first word is cleared as they are given, ST4: no earlier object's block is read there.
 *
 * With the option guard_sampling likewise, but for production: an allocator has few guards, threads count down to the
 * next by themselves, and a call that meets none takes no lock. So slots are given without a look at their first word,
 * and the word of a guarded object's slot is cleared before the slot is free: ST5, a word that leads to a block is in
 * the slot of the object that has the block, and in the incarnation in which the block was made. The word is written
 * under the stripe of the phase, in which the phase has not been released: an end claims slots under the stripe.
 *
 * A limit: objects aligned to more than TSI_STAND_IN_ALIGN_MAX stay in their slots, unseen.
 */
#ifndef TSI_OBSERVE_STAND_IN_H
#define TSI_OBSERVE_STAND_IN_H

#include "state/arena.h"
#include "state/liveness.h"
#include "observe/sheets.h"

/* Values of SlabOptions.by_malloc; 0: if a tool is present. */
enum { TSI_BY_MALLOC_ALWAYS = 1, TSI_BY_MALLOC_NEVER = 2 };

/* Returns the sheets of the allocator's stand-ins; NULL if it has no stand-ins, or they are malloc's.
 * [any thread, needs no lock] */
struct TsiSheets* tsi_stand_in_sheets(const TsiArena* a);
/* Records on the sheets of the incarnation `ref` that it was drained; escaped objects live on. Does nothing without
 * sheets. a->stand_ins is not NULL. [any thread, no lock held, no bracket open] */
void tsi_stand_ins_drained(TsiArena* a, TsiRef ref);
/* Gives the allocator stand-ins (a->stand_ins, NULL before) if a tool is present or by_malloc asks, with late_access,
 * or with guard_period or guard_sampling; otherwise does nothing. Sets a->samples_guards: true if guard_sampling alone
 * is why. Opens their sheets, unless blocks are malloc's. Returns true, or false without memory; tsi_stand_ins_close
 * undoes the half then. [before the allocator is shared, no lock held] */
bool tsi_stand_ins_open(TsiArena* a);
/* Frees all blocks of the allocator and its tables of stand-ins, and sets a->stand_ins to NULL; does nothing if that is
 * NULL. [no other thread in the allocator, no lock held] */
void tsi_stand_ins_close(TsiArena* a);

/* Counts an allocation. Returns true if its object must have a sheet of its own: one in guard_period of all threads,
 * or, with guard_sampling, after a random number of the thread's, guard_sampling on average, which it draws anew then.
 * b: the thread's binding in the allocator; NULL on an exiting thread that has given it back: then no object is a
 * sample. a->stand_ins is not NULL. Takes the stand-in lock with guard_period only. [own thread, no lock held] */
bool tsi_stand_in_due(TsiArena* a, TsiBinding* b);
/* Makes the stand-in of an object of `size` bytes, aligned to `align`, that has just been given the slot, in the
 * incarnation `ref`, and writes its address into the slot. due: tsi_stand_in_due returned true. Returns its block; the
 * slot if the object stays there: `align` is beyond TSI_STAND_IN_ALIGN_MAX, or only guarded objects have blocks and it
 * is not `due` or none can be made; NULL with errno ENOMEM if there is no memory for a block; errno stays otherwise.
 * In an incarnation that was released meanwhile the block is freed already, and the slot left alone. a->stand_ins is
 * not NULL. Takes the stand-in lock, with sampled guards under the stripe of the phase.
 * [any thread, no lock held, no bracket open] */
void* tsi_stand_in_make(TsiArena* a, void* slot, TsiRef ref, size_t size, size_t align, bool due);
/* Sets the first word of the slot to NULL if guards are sampled and the word is `block`, before the slot is freed
 * (ST5); otherwise does nothing. [any thread, needs no lock] */
void tsi_stand_in_unlink(const TsiArena* a, void* slot, void* block);
/* Frees the block of an object whose slot has been freed, and records that a second free of it is a double free.
 * block: the address that the slot had as the object lived. Does nothing if an end has taken the stand-in off already,
 * or the object was in its slot and had no block. a->stand_ins is not NULL. Takes the stand-in lock.
 * [any thread, no lock held, no bracket open] */
void tsi_stand_in_drop(TsiArena* a, void* block, const void* slot);
/* Frees all blocks of the incarnation `ref`, which has been released, records that a later free of them is a stale
 * one, and, by tsi_sheets_ended, on its sheets that it has ended; clears its mark. a->stand_ins is not NULL. Takes the
 * stand-in lock. [any thread, no lock held, no bracket open] */
void tsi_stand_ins_end(TsiArena* a, TsiRef ref);

/* Returns the misuse that a free of p is, which leads to no object: `foreign`, what its address says; but if that is
 * SLAB_MISUSE_FOREIGN_POINTER and p is the block of one of the last GONE_KEPT stand-ins that ended, the misuse that
 * was recorded with it. a->stand_ins may be NULL. Takes the stand-in lock if it is not. [any thread, no lock held] */
SlabMisuse tsi_stand_in_misuse(const TsiArena* a, const void* p, SlabMisuse foreign);

/* Returns the address in the slot that corresponds to p, if p is in the block of a live object; otherwise p, which may
 * be any address. *seq: the slab's incarnation in which the block was made; 0 for p. a->stand_ins is not NULL.
 * [any thread, no lock held] */
void* tsi_stand_in_slot(const TsiArena* a, const void* p, uint32_t* seq);
/* Returns the block of the object in the slot; the slot if the object has none, or has ended. The slot can be read.
 * a->stand_ins is not NULL. Takes the stand-in lock, unless the slot's first word shows that there is no block.
 * [any thread, no lock held] */
void* tsi_stand_in_block(const TsiArena* a, void* slot);
/* Returns the bytes that were asked for with the block of the object in the slot; `usable`, the bytes of the slot, if
 * the object has none. The slot can be read. a->stand_ins is not NULL. Takes the stand-in lock, unless the slot's
 * first word shows that there is no block. [any thread, no lock held] */
size_t tsi_stand_in_bytes(const TsiArena* a, void* slot, size_t usable);

/* Returns the address in the slot that corresponds to the program's pointer p, if p is in the stand-in of a live
 * object; otherwise p, which may be any address. Takes the stand-in lock if the allocator has stand-ins.
 * [any thread, no lock held] */
TSI_INLINE void* tsi_slot_of(const TsiArena* a, const void* p) {
    uint32_t seq;
    return TSI_LIKELY(a->stand_ins == NULL) ? (void*)(uintptr_t)p : tsi_stand_in_slot(a, p, &seq);
}
/* Returns true if the program's pointer p is, or may be, a block rather than a slot: always with stand-ins, but with
 * sampled guards only if p is on a sheet; false without stand-ins. [any thread] */
TSI_INLINE bool tsi_is_stand_in(const TsiArena* a, const void* p) {
    return TSI_UNLIKELY(a->stand_ins != NULL) && (!a->samples_guards || tsi_sheets_own(tsi_stand_in_sheets(a), p));
}
/* Returns the program's pointer to the live object of the place *at: its stand-in if it has one, else its slot.
 * [any thread, no lock held] */
TSI_INLINE void* tsi_object_at(const TsiArena* a, const TsiPlace* at) {
    void* slot = tsi_place_address(&a->space, at);
    return TSI_LIKELY(a->stand_ins == NULL) ? slot : tsi_stand_in_block(a, slot);
}
/* Returns the bytes that the program may use of the live object of the place *at: those of its stand-in if it has one,
 * else of its slot. [any thread, no lock held] */
TSI_INLINE size_t tsi_object_bytes(const TsiArena* a, const TsiPlace* at) {
    size_t usable = tsi_place_bytes(&a->space, at);
    return TSI_LIKELY(a->stand_ins == NULL) ? usable : tsi_stand_in_bytes(a, tsi_place_address(&a->space, at), usable);
}

#endif
