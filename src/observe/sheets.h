/*
 * sheets.h - late access: pages on which everything has ended cannot be touched, and who touches them is told what was
 * there.
 *
 * With the option late_access an allocator has stand-ins (stand_in.h) that lie on sheets: 64 KiB of addresses each, or
 * a few of them for a large object, of one incarnation alone. A sheet is closed when its phase has ended and nothing on
 * it lives any more: its pages go back, and whatever touches its addresses faults. Then a line on standard error says
 * which phase it was, how long ago it ended, where in which object the address is, where that was allocated, and who
 * touches it; the process goes on to whatever handles the fault, mostly its end.
 *
 *   reservation  [sheet][sheet][sheet  sheet  sheet]...    taken in turn, so an address comes again after all others
 *
 * Addresses are used again when the reservation has been gone through; the stacks of objects are kept for the latest
 * 131,072. A system call that is given such an address fails with EFAULT, and nothing is told. All calls take
 * tsi_stand_in_lock, which is held where that is said.
 */
#ifndef TSI_OBSERVE_SHEETS_H
#define TSI_OBSERVE_SHEETS_H

#include "state/arena.h"
#include "os/lock.h"

/* Of stand-ins and their sheets. Taken with no other lock held, but for a fork. */
extern TsiLock tsi_stand_in_lock;

enum { TSI_STAND_IN_ALIGN_MAX = 1 << 20 };
enum { TSI_SHEET_BYTES = 1 << 16, TSI_SHEET_FRAMES = 12, TSI_SHEET_CELL = 96 };

/* Reserves the addresses, and has faults told. NULL without memory. [nobody knows of the allocator yet] */
struct TsiSheets* tsi_sheets_open(TsiArena* a);
void tsi_sheets_close(struct TsiSheets* t);

/* A cell of TSI_SHEET_CELL bytes for a record, or NULL. [no lock] */
void* tsi_sheet_cell_take(struct TsiSheets* t);
void tsi_sheet_cell_give(struct TsiSheets* t, void* cell);

/* A block for an object of the incarnation, aligned to at least 16; NULL where there is no room. [no lock] */
void* tsi_sheet_take(struct TsiSheets* t, TsiRef ref, size_t size, size_t align);
/* Its callers, innermost first. [no lock] */
void tsi_sheet_note(struct TsiSheets* t, const void* block, const uintptr_t* frames, unsigned depth);
/* Its object has ended. [no lock] */
void tsi_sheet_give(struct TsiSheets* t, void* block);
/* The incarnation has ended. [no lock] */
void tsi_sheets_ended(struct TsiSheets* t, TsiRef ref, bool released);

/* Returns true if p is where sheets are. [any thread] */
bool tsi_sheets_own(const struct TsiSheets* t, const void* p);

#endif
