/*
 * sheets.h - late access: pages on which everything has ended cannot be touched; an access is reported with what was
 * there.
 *
 * With the option late_access an allocator has stand-ins (stand_in.h) that lie on sheets: 64 KiB of addresses each, or
 * a few of them for a large object, of one incarnation alone. A sheet is closed when its phase has ended and nothing on
 * it lives any more: its pages go back, and any access to its addresses faults. Then a report on standard error names
 * the phase and how long ago it ended, the object and where in it the address is, where it was allocated, and the code
 * that touches it; the process goes on to the handler of the fault, normally its end.
 *
 *   reservation  [sheet][sheet][sheet  sheet  sheet]...    taken in turn, so an address comes again after all others
 *
 * With the option guard_period each object whose turn it is has a sheet to itself: it ends at the sheet's last page,
 * which is never writable, like all others but its own. An access to them faults while the object lives, too; a byte
 * between its end and that page, where alignment leaves some, is found changed when the object ends. Its sheet is
 * closed then. At most TSI_GUARDS_MAX are open in an allocator, each two mappings more; with guard_sampling at most
 * TSI_GUARDS_SAMPLED_MAX, in a reservation of 1 GiB, with 4,096 stacks.
 *
 * Addresses are used again after the whole reservation; the latest 131,072 objects keep their stacks. A system call
 * with such an address fails with EFAULT, without a report. All calls take tsi_stand_in_lock; `_locked` functions hold
 * it.
 */
#ifndef TSI_OBSERVE_SHEETS_H
#define TSI_OBSERVE_SHEETS_H

#include "state/arena.h"
#include "os/lock.h"

/* Guards stand-ins and their sheets. Taken with no other lock held but a stripe, except for a fork. */
extern TsiLock tsi_stand_in_lock;

enum { TSI_STAND_IN_ALIGN_MAX = 1 << 20 };
enum { TSI_SHEET_BYTES = 1 << 16, TSI_SHEET_FRAMES = 12, TSI_SHEET_CELL = 96 };
enum { TSI_GUARDS_MAX = 4096, TSI_GUARDS_SAMPLED_MAX = 256, TSI_GUARD_BYTES_MAX = 1 << 20 };

/* Reserves the addresses of an allocator's sheets, half of them or less if the system refuses all, maps their tables,
 * and installs the handler that reports faults there; with TOLD_MAX allocators listed before, faults of this one are
 * not reported. Its incarnations are set up. Returns the sheets, which tsi_sheets_close gives back; NULL, with nothing
 * left mapped, without memory or if the system refuses the handler. Takes the stand-in lock.
 * [before the allocator is shared, no lock held] */
struct TsiSheets* tsi_sheets_open(TsiArena* a);
/* Gives back the reservation with all sheets, the cells and tables, and *sheets itself; takes it off the list of the
 * handler, so that faults there are not reported any more. Works on what tsi_sheets_open has made so far, too. Takes
 * the stand-in lock. [no other thread in the allocator, no lock held] */
void tsi_sheets_close(struct TsiSheets* sheets);

/* Takes a cell of TSI_SHEET_CELL bytes for a record, which tsi_sheet_cell_give gives back; its content is undefined.
 * Maps CELLS - 1 new ones if none is free; they stay mapped until tsi_sheets_close. Takes the stand-in lock. Returns
 * it, or NULL without memory. [any thread, no lock held] */
void* tsi_sheet_cell_take(struct TsiSheets* sheets);
/* Gives back a cell that tsi_sheet_cell_take has returned. Takes the stand-in lock.
 * [holder of the cell, no lock held] */
void tsi_sheet_cell_give(struct TsiSheets* sheets, void* cell);

/* Takes a block of at least `size` bytes (0: as for 1) for an object of the incarnation `ref`, aligned to `align`, a
 * power of two of at most TSI_STAND_IN_ALIGN_MAX, and at least to 16, adds 1 to the live ones of its sheet, and writes
 * a record of it without callers. Takes the stand-in lock. Returns it, which tsi_sheet_give ends, or NULL without
 * addresses or memory. [any thread, no lock held] */
void* tsi_sheet_take(struct TsiSheets* sheets, TsiRef ref, size_t size, size_t align);
/* Takes a block of `size` bytes for an object of the incarnation `ref`, aligned to `align`, a power of two, and at
 * least to 16, on a row of sheets of its own, as near before a guard page as the alignment allows; fills the bytes
 * between with a pattern that tsi_sheet_give checks, and writes a record without callers. Takes the stand-in lock.
 * Returns it; NULL without addresses or memory, for 0 and more than TSI_GUARD_BYTES_MAX bytes, for an alignment beyond
 * a page, and while sheets->guards_most are open. [any thread, no lock held] */
void* tsi_sheet_take_guarded(struct TsiSheets* sheets, TsiRef ref, size_t size, size_t align);
/* Adds to the record of a block the `depth` callers that allocated it, innermost first, TSI_SHEET_FRAMES at most;
 * `frames` is read only. Does nothing if TSI_SHEET_FRAMES * 64 other blocks were taken since. Takes the stand-in lock.
 * [holder of the block, no lock held] */
void tsi_sheet_note(struct TsiSheets* sheets, const void* block, const uintptr_t* frames, unsigned depth);
/* Ends the object of a block that tsi_sheet_take or tsi_sheet_take_guarded has returned: takes 1 off the live ones of
 * its sheet, and closes that if it was the last and the sheet is not being filled in a phase that goes on. Reports on
 * standard error a byte written behind a guarded object. Takes the stand-in lock.
 * [holder of the block, no lock held] */
void tsi_sheet_give(struct TsiSheets* sheets, void* block);
/* Records on the sheets of the incarnation `ref` that it has ended, now, and whether it was `released` (false:
 * drained); closes the one that was being filled if nothing lives there. The time of an earlier end stays. Takes the
 * stand-in lock. [any thread, no lock held] */
void tsi_sheets_ended(struct TsiSheets* sheets, TsiRef ref, bool released);

/* Returns true if p is in the reservation of sheets, whatever is there. [any thread, needs no lock; signal handler] */
bool tsi_sheets_own(const struct TsiSheets* sheets, const void* p);

#endif
