/*
 * stand_in.h - objects as tools see them: a block of malloc in place of each slot.
 *
 * AddressSanitizer, Valgrind and the like know what malloc has given and free has taken back: they report a use after
 * that with the stacks of both, and an access beyond the end. Of slots in pages of ours they know nothing. So, where
 * such a tool is there or the option by_malloc asks for it, an object of an allocator is given to the program as a
 * block that malloc has made for it, its stand-in. The slot is taken as ever and holds nothing but the block's address:
 * phases, handles, budgets, figures and refusals go by slots, and are what they are without stand-ins. The block goes
 * back to malloc when its object is freed or its phase released; how long its bytes are kept from other use then is up
 * to the tool.
 *
 *   the program's pointer --tsi_slot_of--> slot --everything behind--> slot --tsi_object_at--> the program's pointer
 *
 * An allocator has stand-ins from its creation to its end, or never. Where it has, no binding is at hand for a fast
 * path, as in shared mode, so each call comes by here; without, no fast path has an instruction for it.
 *
 * Invariants. ST1: a block is in the tree exactly as long as malloc has given it to us. ST2: the block of an object is
 * freed once, by whoever takes its record off the tree. ST3: when a phase has been released no block of it is left,
 * and no slot that it had is written for it: the end changes the state and then looks at the list of the phase; an
 * allocation looks at the state, and only in a phase that has not been released writes the slot, in one hold of the
 * lock, and enters the list. So one of the two takes the block, and whoever gets the slot next writes it later.
 *
 * With the option late_access a block is not malloc's, but lies on a sheet (sheets.h), whose pages cannot be touched
 * when all on it have ended.
 *
 * What is not done: objects aligned to more than TSI_STAND_IN_ALIGN_MAX stay in their slots, unseen.
 */
#ifndef TSI_OBSERVE_STAND_IN_H
#define TSI_OBSERVE_STAND_IN_H

#include "state/arena.h"
#include "state/living.h"
#include "observe/sheets.h"

/* Of SlabOptions.by_malloc; 0: when a tool is there. */
enum { TSI_BY_MALLOC_ALWAYS = 1, TSI_BY_MALLOC_NEVER = 2 };

/* The sheets that the stand-ins lie on, or NULL: they are malloc's. [any thread] */
struct TsiSheets* tsi_stand_in_sheets(const TsiArena* a);
/* An incarnation has been drained: what escapes lives on. [no lock, no bracket] */
void tsi_stand_ins_drained(TsiArena* a, TsiRef ref);
/* Gives the allocator stand-ins where its options, or the tool that is there, want them. False without memory.
 * [nobody knows of the allocator yet] */
bool tsi_stand_ins_open(TsiArena* a);
/* Frees all blocks of the allocator. [destroy] */
void tsi_stand_ins_close(TsiArena* a);

/* Makes the stand-in of an object of `size` bytes that has just been given the slot, in the incarnation `ref`: returns
 * its block; the slot where that has to do; NULL with errno ENOMEM where malloc refuses. [no lock, no bracket] */
void* tsi_stand_in_make(TsiArena* a, void* slot, TsiRef ref, size_t size, size_t align);
/* Frees the block of an object whose slot has been freed. [no lock, no bracket] */
void tsi_stand_in_drop(TsiArena* a, void* block, const void* slot);
/* Frees all blocks of an incarnation that has been released. [no lock, no bracket] */
void tsi_stand_ins_end(TsiArena* a, TsiRef ref);

/* Returns what a pointer that leads to no object is refused as: `foreign`, or what it was until its block was freed, as
 * far as that is still known. [any thread] */
SlabMisuse tsi_stand_in_misuse(const TsiArena* a, const void* p, SlabMisuse foreign);

/* What tsi_slot_of and the next two return where the allocator has stand-ins. [any thread] */
void* tsi_stand_in_slot(const TsiArena* a, const void* p);
void* tsi_stand_in_block(const TsiArena* a, void* slot);
size_t tsi_stand_in_bytes(const TsiArena* a, void* slot, size_t usable);

/* Returns where the library looks for what the program has at p: the address in the slot that corresponds to p, where
 * p is in the block of a live object, else p. */
TSI_INLINE void* tsi_slot_of(const TsiArena* a, const void* p) {
    return TSI_LIKELY(a->stand_ins == NULL) ? (void*)(uintptr_t)p : tsi_stand_in_slot(a, p);
}
/* Returns where the program has the live object of a place. */
TSI_INLINE void* tsi_object_at(const TsiArena* a, const TsiPlace* at) {
    void* slot = tsi_place_address(&a->space, at);
    return TSI_LIKELY(a->stand_ins == NULL) ? slot : tsi_stand_in_block(a, slot);
}
/* Returns the bytes that the program may use of the live object of a place. */
TSI_INLINE size_t tsi_object_bytes(const TsiArena* a, const TsiPlace* at) {
    size_t usable = tsi_place_bytes(&a->space, at);
    return TSI_LIKELY(a->stand_ins == NULL) ? usable : tsi_stand_in_bytes(a, tsi_place_address(&a->space, at), usable);
}

#endif
