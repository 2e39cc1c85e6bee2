/* sheets.c - see sheets.h. */
#include "observe/sheets.h"

#include "os/fault.h"
#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RECORDS = 1 << 17, RECORDS_SAMPLED = 1 << 12, TOLD_MAX = 64, CELLS = 512 };
enum { SLACK_BYTE = 0xC5 };
static const size_t most_bytes = (size_t)16 << 30, sampled_bytes = (size_t)1 << 30, least_bytes = (size_t)64 << 20,
                    align_most = TSI_STAND_IN_ALIGN_MAX;

typedef enum State { SHEET_FREE, SHEET_OPEN, SHEET_CLOSED, SHEET_TAIL /* of the sheet `head` */ } State;

typedef struct Sheet {
    TsiRef ref;
    uint64_t serial; /* of the sheet: no other has it */
    uint64_t ended_ns, closed_ns;
    uint32_t state, count; /* of places */
    uint32_t used, live;
    uint32_t head;          /* place */
    uint32_t older, newer;  /* sheets of the same record of incarnations, opened before and after: place + 1 */
    bool released, guarded; /* guarded: of one object of `used` bytes */
    uint16_t slack;         /* bytes from the guarded object's end to its guard page */
    char label[TSI_LABEL_BYTES];
} Sheet;

/* An object; the records are used in turn. */
typedef struct Record {
    uint64_t serial; /* of its sheet */
    size_t offset, size;
    unsigned depth;
    uintptr_t frames[TSI_SHEET_FRAMES];
} Record;

typedef struct Cell {
    struct Cell* next;
    uint8_t rest[TSI_SHEET_CELL - sizeof(struct Cell*)];
} Cell;

typedef struct TsiSheets {
    TsiArena* arena;
    uint8_t *base, *reserved;
    size_t reserved_bytes;
    uint32_t places, next;
    uint32_t guards, guards_most; /* guarded sheets that are open, at most */
    uint32_t records_most;        /* a power of two */
    uint64_t serials, records;
    Sheet* sheets;
    Record* record;   /* records_most */
    uint32_t* newest; /* of an incarnation's record: place + 1 */
    uint32_t* current;
    uint32_t incs;
    Cell* cells;
    void* blocks; /* of cells, chained by their first word */
} TsiSheets;

TsiLock tsi_stand_in_lock = TSI_LOCK_OF(STAND_INS);

/* The process's tables, in which a fault is looked up. */
static _Atomic(TsiSheets*) known[TOLD_MAX];

/* Returns the bytes of the array of sheets, by sheets->places. [any thread, needs no lock] */
static size_t sheets_bytes(const TsiSheets* sheets) { return sheets->places * sizeof(Sheet); }
/* Returns the bytes of the array of records. [any thread, needs no lock] */
static size_t records_bytes(const TsiSheets* sheets) { return sheets->records_most * sizeof(Record); }

/* Returns the bytes of an array with a word for each incarnation's record, by sheets->incs.
 * [any thread, needs no lock] */
static size_t incs_bytes(const TsiSheets* sheets) { return sheets->incs * sizeof(uint32_t); }

/* ---- faults ---- */

bool tsi_sheets_own(const TsiSheets* sheets, const void* p) {
    return (uintptr_t)p - (uintptr_t)sheets->base < (size_t)sheets->places * TSI_SHEET_BYTES;
}

/* Returns the offset in bytes, from the first of `count` sheets in a row, of the guard page, which is their last.
 * [any thread, needs no lock] */
static size_t guard_offset(uint32_t count) { return (size_t)count * TSI_SHEET_BYTES - tsi_os.page_bytes; }

/* Returns the offset in bytes of the object of a guarded sheet, from the first of its row.
 * [any thread, needs no lock] */
static size_t guarded_offset(const Sheet* sheet) { return guard_offset(sheet->count) - sheet->slack - sheet->used; }

/* Returns the record of the object at `offset` bytes from the beginning of the sheet's row, or else of the nearest
 * object before it; NULL if there is none any more. sheet: the first of its row.
 * [stand-in lock held; or signal handler, whose report may then be garbled] */
static const Record* record_of(const TsiSheets* sheets, const Sheet* sheet, size_t offset) {
    const Record* before = NULL; /* the object before the address, if it is in none */
    for (uint32_t n = 0; n < sheets->records_most; n++) {
        const Record* record = &sheets->record[n];
        if (record->serial != sheet->serial || record->offset > offset) continue;
        if (before == NULL || record->offset > before->offset) before = record;
    }
    return before;
}

typedef struct Words {
    char at[4096];
    size_t used;
} Words;

#define PUT(w, ...)                                                                     \
    do {                                                                                \
        int n_ = snprintf((w)->at + (w)->used, sizeof(w)->at - (w)->used, __VA_ARGS__); \
        if (n_ > 0) (w)->used += (size_t)n_;                                            \
        if ((w)->used >= sizeof(w)->at) (w)->used = sizeof(w)->at - 1;                  \
    } while (0)

/* Adds a line to the text: `before`, then the name of the code at pc, or its address if there is no name; nothing if
 * pc is 0. Text that has no room is cut. [no other user of words] */
static void put_code(Words* words, const char* before, uintptr_t pc) {
    char name[256];
    if (pc == 0) return;
    (void)tsi_os_code_name(pc, name, sizeof name);
    PUT(words, "%s%s\n", before, name);
}

/* Adds to the text the time from since_ns, of the clock, until now, cut to a whole number with its unit: us below
 * 10,000 us, ms below 10,000 ms, otherwise s; 0 us if the clock was set back. [no other user of words] */
static void put_ago(Words* words, uint64_t since_ns) {
    uint64_t now = tsi_os.now_ns(), us = (now > since_ns ? now - since_ns : 0) / 1000;
    if (us < 10000) PUT(words, "%" PRIu64 " us", us);
    else if (us < 10000000) PUT(words, "%" PRIu64 " ms", us / 1000);
    else PUT(words, "%" PRIu64 " s", us / 1000000);
}

/* Clears the text and begins it anew: `what` has happened, then the sheet's label and era, without a newline.
 * [no other user of words] */
static void put_phase(Words* words, const char* what, const Sheet* sheet) {
    words->used = 0;
    PUT(words, "temporal-slab: %s phase \"%s\" (era %" PRIu64 ")", what, sheet->label, tsi_ref_era(sheet->ref));
}

/* Adds to the text a line for each caller that allocated the object of *record; nothing if record is NULL.
 * [no other user of words] */
static void put_callers(Words* words, const Record* record) {
    for (unsigned n = 0; record != NULL && n < record->depth; n++)
        put_code(words, n == 0 ? "  allocated at  " : "                ", record->frames[n]);
}

/* Reports on standard error an access to `address`, by the code at pc (0: not known), in the row of a guarded sheet,
 * its first, whose object lives. [signal handler] */
static void tell_beside(const TsiSheets* sheets, const Sheet* sheet, const void* address, uintptr_t pc) {
    static Words words; /* as in tell */
    size_t offset = (size_t)((const uint8_t*)address - sheets->base) - (size_t)sheet->head * TSI_SHEET_BYTES;
    size_t begin = guarded_offset(sheet);
    const Record* record = record_of(sheets, sheet, begin);

    put_phase(&words, "access beside an object of", sheet);
    if (offset < begin)
        PUT(&words, ": %p is %zu bytes before an object of %u bytes\n", address, begin - offset, sheet->used);
    else
        PUT(&words, ": %p is %zu bytes behind an object of %u bytes\n", address, offset - begin - sheet->used,
            sheet->used);
    put_code(&words, "  touched at    ", pc);
    put_callers(&words, record);
    tsi_os.complain(words.at, words.used);
}

/* Reports on standard error an access to `address`, by the code at pc (0: not known), in the row of a sheet, its first,
 * that is closed: the phase and when it ended, the object there or before, and its callers. [signal handler] */
static void tell(const TsiSheets* sheets, const Sheet* sheet, const void* address, uintptr_t pc) {
    static Words words; /* too large for a signal's stack; two threads that fault at once may garble it */
    size_t offset = (size_t)((const uint8_t*)address - sheets->base) - (size_t)sheet->head * TSI_SHEET_BYTES;
    const Record* record = record_of(sheets, sheet, offset);

    put_phase(&words, "late access to", sheet);
    PUT(&words, ", ");
    if (sheet->ended_ns != 0) {
        PUT(&words, "%s ", sheet->released ? "released" : "drained");
        put_ago(&words, sheet->ended_ns);
        PUT(&words, " ago");
    } else {
        PUT(&words, "still open: all objects of this block were freed ");
        put_ago(&words, sheet->closed_ns);
        PUT(&words, " ago");
    }

    if (record != NULL && offset < record->offset + record->size)
        PUT(&words, ": %p is %zu bytes into an object of %zu bytes\n", address, offset - record->offset, record->size);
    else if (record != NULL)
        PUT(&words, ": %p is %zu bytes behind an object of %zu bytes\n", address,
            offset - record->offset - record->size, record->size);
    else PUT(&words, ": %p is in an object that is not known any more\n", address);

    put_code(&words, "  touched at    ", pc);
    put_callers(&words, record);
    tsi_os.complain(words.at, words.used);
}

/* Reports the access to `address` by the code at pc (0: not known), if the address is in a sheet of a living allocator
 * and that explains the fault: the sheet is closed, or guards a living object. Otherwise does nothing.
 * [signal handler] */
static void on_fault(const void* address, uintptr_t pc) {
    for (unsigned n = 0; n < TOLD_MAX; n++) {
        const TsiSheets* sheets =
            tsi_load_acquire(&known[n]); /* pairs with the release in tsi_sheets_open: it is whole */
        if (sheets == NULL || !tsi_sheets_own(sheets, address)) continue;
        const Sheet* sheet = &sheets->sheets[((const uint8_t*)address - sheets->base) / TSI_SHEET_BYTES];
        if (sheet->state == SHEET_TAIL) {
            const Sheet* head = &sheets->sheets[sheet->head];
            if (head->serial != sheet->serial) return;
            sheet = head;
        }
        if (sheet->state == SHEET_CLOSED) tell(sheets, sheet, address, pc);
        else if (sheet->state == SHEET_OPEN && sheet->guarded) tell_beside(sheets, sheet, address, pc);
    }
}

/* ---- open, close ---- */

TsiSheets* tsi_sheets_open(TsiArena* a) {
    size_t bytes = a->samples_guards ? sampled_bytes : most_bytes;
    TsiSheets* sheets = tsi_os_map(sizeof *sheets);
    if (sheets == NULL) return NULL;
    sheets->guards_most = a->samples_guards ? TSI_GUARDS_SAMPLED_MAX : TSI_GUARDS_MAX;
    sheets->records_most = a->samples_guards ? RECORDS_SAMPLED : RECORDS;
    sheets->arena = a;
    sheets->incs = a->phases.incs.capacity;

    while ((sheets->reserved = tsi_os.reserve(bytes + align_most)) == NULL && bytes > least_bytes) bytes /= 2;
    sheets->reserved_bytes = bytes + align_most;
    sheets->base = (uint8_t*)tsi_align_up((uintptr_t)sheets->reserved, align_most);
    sheets->places = (uint32_t)(bytes / TSI_SHEET_BYTES);

    sheets->sheets = tsi_os_map(sheets_bytes(sheets));
    sheets->record = tsi_os_map(records_bytes(sheets));
    sheets->newest = tsi_os_map(incs_bytes(sheets));
    sheets->current = tsi_os_map(incs_bytes(sheets));

    bool mapped = sheets->sheets != NULL && sheets->record != NULL;
    bool indexed = sheets->newest != NULL && sheets->current != NULL;
    bool whole = sheets->reserved != NULL && mapped && indexed;

    tsi_lock_take(&tsi_stand_in_lock); /* one thread at a time installs the handler */
    bool watched = whole && tsi_os_on_fault(on_fault);
    for (unsigned n = 0; n < TOLD_MAX && watched; n++) {
        if (tsi_load_relaxed(&known[n]) != NULL) continue;
        tsi_store_release(&known[n], sheets); /* pairs with on_fault */
        break;
    }
    tsi_lock_give(&tsi_stand_in_lock);

    if (watched) return sheets;
    tsi_sheets_close(sheets);
    return NULL;
}

void tsi_sheets_close(TsiSheets* sheets) {
    tsi_lock_take(&tsi_stand_in_lock);
    for (unsigned n = 0; n < TOLD_MAX; n++)
        if (tsi_load_relaxed(&known[n]) == sheets) tsi_store_relaxed(&known[n], NULL);
    tsi_lock_give(&tsi_stand_in_lock);

    for (void *block = sheets->blocks, *next; block != NULL; block = next) {
        next = *(void**)block;
        tsi_os_drop(block, CELLS * sizeof(Cell));
    }

    if (sheets->reserved != NULL) tsi_os.unmap(sheets->reserved, sheets->reserved_bytes);
    tsi_os_drop(sheets->sheets, sheets_bytes(sheets));
    tsi_os_drop(sheets->record, records_bytes(sheets));
    tsi_os_drop(sheets->newest, incs_bytes(sheets));
    tsi_os_drop(sheets->current, incs_bytes(sheets));
    tsi_os_drop(sheets, sizeof *sheets);
}

/* ---- cells ---- */

void* tsi_sheet_cell_take(TsiSheets* sheets) {
    tsi_lock_take(&tsi_stand_in_lock);
    if (sheets->cells == NULL) {
        Cell* block = tsi_os_map(CELLS * sizeof *block);
        for (unsigned n = 1; block != NULL && n < CELLS; n++) { /* the first chains the blocks */
            block[n].next = sheets->cells;
            sheets->cells = &block[n];
        }
        if (block != NULL) {
            *(void**)(void*)block = sheets->blocks;
            sheets->blocks = block;
        }
    }

    Cell* cell = sheets->cells;
    if (cell != NULL) sheets->cells = cell->next;
    tsi_lock_give(&tsi_stand_in_lock);
    return cell;
}

void tsi_sheet_cell_give(TsiSheets* sheets, void* cell) {
    tsi_lock_take(&tsi_stand_in_lock);
    Cell* freed = cell;
    freed->next = sheets->cells;
    sheets->cells = freed;
    tsi_lock_give(&tsi_stand_in_lock);
}

/* ---- sheets ---- */

/* Returns the address of the sheet number `place`, open or not. [any thread, needs no lock] */
static uint8_t* address_of(const TsiSheets* sheets, uint32_t place) {
    return sheets->base + (size_t)place * TSI_SHEET_BYTES;
}

/* Returns true if the phase of a sheet, the first of its row, is not active any more: it was drained, released or
 * passed by the ring, or its record serves another phase by now. [any thread, needs no lock] */
static bool has_ended(const TsiSheets* sheets, const Sheet* sheet) {
    uint64_t word = tsi_load_relaxed(&tsi_inc(&sheets->arena->phases, tsi_ref_index(sheet->ref))->word);
    return word >> 2 != tsi_ref_era(sheet->ref) || (word & TSI_INC_STATE) != TSI_INC_ACTIVE;
}

/* Closes the row of sheets that begins with number `place`, an open one: sets its state and closed_ns and takes its
 * pages away, so that any access to them faults from here on; where the system refuses that, accesses go unseen. Its
 * addresses may be used again. [stand-in lock held] */
static void close_locked(TsiSheets* sheets, uint32_t place) {
    TSI_HOLDS(&tsi_stand_in_lock);
    Sheet* sheet = &sheets->sheets[place];
    sheet->state = SHEET_CLOSED;
    sheet->closed_ns = tsi_os.now_ns();
    (void)tsi_os.purge(address_of(sheets, place), (size_t)sheet->count * TSI_SHEET_BYTES, TSI_PURGE_UNCOMMIT);
}

/* Returns the first number of `count` sheets in a row that are free or closed, the next in turn whose address is a
 * multiple of `align`, a power of two; UINT32_MAX if there are none. Takes none of them. [stand-in lock held] */
static uint32_t find_locked(const TsiSheets* sheets, uint32_t count, uint32_t align) {
    TSI_HOLDS(&tsi_stand_in_lock);
    uint32_t from = sheets->next;
    for (uint32_t looked = 0, run = 0; looked < sheets->places + count; looked++, from++) {
        if (from >= sheets->places) from = run = 0;
        const Sheet* sheet = &sheets->sheets[from];
        const Sheet* head = sheet->state == SHEET_TAIL ? &sheets->sheets[sheet->head] : sheet;
        bool free = head->state != SHEET_OPEN || head->serial != sheet->serial;
        bool begins = (uintptr_t)address_of(sheets, from) % align == 0;
        run = free && (run != 0 || begins) ? run + 1 : 0;
        if (run == count) return from + 1 - count;
    }
    return UINT32_MAX;
}

/* Takes the sheet number `place` out of the chain of the record that it was opened for, before its addresses are used
 * again; does nothing if it is in none. [stand-in lock held] */
static void unlink_locked(TsiSheets* sheets, uint32_t place) {
    TSI_HOLDS(&tsi_stand_in_lock);
    const Sheet* sheet = &sheets->sheets[place];
    if (sheet->ref == 0) return; /* a free one, or a tail */
    if (sheet->newer != 0) sheets->sheets[sheet->newer - 1].older = sheet->older;
    else sheets->newest[tsi_ref_index(sheet->ref)] = sheet->older;
    if (sheet->older != 0) sheets->sheets[sheet->older - 1].newer = sheet->newer;
}

/* Opens `count` sheets in a row for the incarnation `ref`, at an address that is a multiple of `align`; the bytes from
 * offset `from` to `to`, whole pages, become writable. Sets them up as one row without objects, the newest of the
 * incarnation. Returns the number of the first; UINT32_MAX, with nothing changed, without addresses or memory.
 * [stand-in lock held] */
static uint32_t open_locked(TsiSheets* sheets, TsiRef ref, uint32_t count, uint32_t align, size_t from, size_t to) {
    TSI_HOLDS(&tsi_stand_in_lock);
    uint32_t place = find_locked(sheets, count, align), at = tsi_ref_index(ref);
    if (place == UINT32_MAX || tsi_os.commit(address_of(sheets, place) + from, to - from) != 0) return UINT32_MAX;

    for (uint32_t n = 0; n < count; n++) unlink_locked(sheets, place + n);

    sheets->next = place + count;
    Sheet* sheet = &sheets->sheets[place];
    *sheet = (Sheet){.ref = ref, .serial = ++sheets->serials, .state = SHEET_OPEN, .count = count, .head = place};
    memcpy(sheet->label, tsi_inc(&sheets->arena->phases, at)->label, sizeof sheet->label);
    if (sheet->label[0] == 0) memcpy(sheet->label, "(unlabeled)", sizeof "(unlabeled)");

    for (uint32_t n = 1; n < count; n++)
        sheets->sheets[place + n] = (Sheet){.serial = sheet->serial, .state = SHEET_TAIL, .head = place};

    sheet->older = sheets->newest[at];
    if (sheet->older != 0) sheets->sheets[sheet->older - 1].newer = place + 1;
    sheets->newest[at] = place + 1;
    return place;
}

/* Sets sheets->current of the incarnation's record `at` to 0, so that no sheet is filled for it, and closes the sheet
 * that was if nothing lives there; does nothing if none is being filled. [stand-in lock held] */
static void leave_current_locked(TsiSheets* sheets, uint32_t at) {
    TSI_HOLDS(&tsi_stand_in_lock);
    uint32_t place = sheets->current[at];
    sheets->current[at] = 0;
    if (place != 0 && sheets->sheets[place - 1].state == SHEET_OPEN && sheets->sheets[place - 1].live == 0)
        close_locked(sheets, place - 1);
}

/* Returns the number of a sheet of the incarnation `ref` with room for `bytes` bytes aligned to `align`: the one that
 * sheets->current names for it, or a new one, which replaces that there. More than a quarter of a sheet gets a row of
 * its own, which does not. UINT32_MAX without addresses or memory. Takes nothing of it. [stand-in lock held] */
static uint32_t roomy_locked(TsiSheets* sheets, TsiRef ref, size_t bytes, size_t align) {
    TSI_HOLDS(&tsi_stand_in_lock);
    uint32_t at = tsi_ref_index(ref), place = sheets->current[at];
    if (bytes > TSI_SHEET_BYTES / 4 || align > TSI_SHEET_BYTES / 4) {
        size_t all = (bytes + TSI_SHEET_BYTES - 1) / TSI_SHEET_BYTES;
        return all < sheets->places
                   ? open_locked(sheets, ref, (uint32_t)all, align > TSI_SHEET_BYTES ? (uint32_t)align : 1, 0,
                                 all * TSI_SHEET_BYTES)
                   : UINT32_MAX;
    }

    if (place != 0) {
        const Sheet* sheet = &sheets->sheets[place - 1];
        bool its = sheet->ref == ref && sheet->state == SHEET_OPEN;
        if (its && tsi_align_up(sheet->used, align) + bytes <= TSI_SHEET_BYTES) return place - 1;
        if (its) leave_current_locked(sheets, at);
    }

    place = open_locked(sheets, ref, 1, 1, 0, TSI_SHEET_BYTES);
    if (place != UINT32_MAX) sheets->current[at] = place + 1;
    return place;
}

/* Writes the record of an object of `size` bytes at `offset` bytes from the beginning of the sheet's row, over the
 * oldest of the sheets->records_most records, whose object is not known any more then; with depth 0, until
 * tsi_sheet_note adds callers. sheet: the first of its row. [stand-in lock held] */
static void record_locked(TsiSheets* sheets, const Sheet* sheet, size_t offset, size_t size) {
    TSI_HOLDS(&tsi_stand_in_lock);
    Record* record = &sheets->record[sheets->records++ % sheets->records_most];
    record->serial = sheet->serial;
    record->offset = offset;
    record->size = size;
    record->depth = 0;
}

void* tsi_sheet_take(TsiSheets* sheets, TsiRef ref, size_t size, size_t align) {
    size_t bytes = tsi_align_up(size != 0 ? size : 1, 16);
    if (align < 16) align = 16;

    tsi_lock_take(&tsi_stand_in_lock);
    uint32_t place = roomy_locked(sheets, ref, bytes, align);
    uint8_t* block = NULL;
    if (place != UINT32_MAX) {
        Sheet* sheet = &sheets->sheets[place];
        size_t offset = tsi_align_up(sheet->used, align);
        block = address_of(sheets, place) + offset;
        sheet->used = offset + bytes < UINT32_MAX ? (uint32_t)(offset + bytes) : UINT32_MAX;
        sheet->live++;
        record_locked(sheets, sheet, offset, size);
    }

    tsi_lock_give(&tsi_stand_in_lock);
    return block;
}

void* tsi_sheet_take_guarded(TsiSheets* sheets, TsiRef ref, size_t size, size_t align) {
    if (align < 16) align = 16;
    size_t page = tsi_os.page_bytes;
    bool can_be = size != 0 && size <= TSI_GUARD_BYTES_MAX && align <= page;
    if (!can_be || page > TSI_SHEET_BYTES) return NULL;
    uint32_t count = (uint32_t)((size + page + align + TSI_SHEET_BYTES - 1) / TSI_SHEET_BYTES);
    size_t to = guard_offset(count), offset = (to - size) & ~(align - 1);
    uint8_t* block = NULL;

    tsi_lock_take(&tsi_stand_in_lock);
    uint32_t place = sheets->guards < sheets->guards_most && count < sheets->places
                         ? open_locked(sheets, ref, count, 1, offset & ~(page - 1), to)
                         : UINT32_MAX;
    if (place != UINT32_MAX) {
        Sheet* sheet = &sheets->sheets[place];
        block = address_of(sheets, place) + offset;
        sheet->guarded = true;
        sheet->used = (uint32_t)size;
        sheet->live = 1;
        sheet->slack = (uint16_t)(to - offset - size);
        sheets->guards++;
        memset(block + size, SLACK_BYTE, sheet->slack);
        record_locked(sheets, sheet, offset, size);
    }

    tsi_lock_give(&tsi_stand_in_lock);
    return block;
}

/* Returns the offset from the guarded object's end of the first byte between that end and its guard page that is not
 * the pattern any more; sheet->slack if all are. [stand-in lock held] */
static unsigned written_behind(const TsiSheets* sheets, const Sheet* sheet) {
    const uint8_t* behind = address_of(sheets, sheet->head) + guarded_offset(sheet) + sheet->used;
    unsigned n = 0;
    while (n < sheet->slack && behind[n] == SLACK_BYTE) n++;
    return n;
}

/* Reports on standard error that a byte was written `behind` bytes behind the object at `block`, which ends now. sheet,
 * record: copies of the sheet and of the object's record, whose depth is 0 if it is not known.
 * [any thread, no lock held: naming code may wait for the loader, and the loader for malloc] */
static TSI_COLD void tell_written(const Sheet* sheet, const Record* record, const void* block, unsigned behind) {
    Words words;
    put_phase(&words, "written beside an object of", sheet);
    PUT(&words, ": %p is %u bytes behind an object of %u bytes, which ends now\n",
        (const void*)((const uint8_t*)block + sheet->used + behind), behind, sheet->used);
    put_callers(&words, record);
    tsi_os.complain(words.at, words.used);
}

void tsi_sheet_note(TsiSheets* sheets, const void* block, const uintptr_t* frames, unsigned depth) {
    tsi_lock_take(&tsi_stand_in_lock);
    const Sheet* sheet = &sheets->sheets[((const uint8_t*)block - sheets->base) / TSI_SHEET_BYTES];
    size_t offset = (size_t)((const uint8_t*)block - address_of(sheets, sheet->head));
    uint64_t first = sheets->records > TSI_SHEET_FRAMES * 64 ? sheets->records - TSI_SHEET_FRAMES * 64 : 0;
    for (uint64_t n = sheets->records; n-- > first;) { /* among the latest: others may have come in between */
        Record* record = &sheets->record[n % sheets->records_most];
        if (record->serial != sheet->serial || record->offset != offset) continue;
        record->depth = depth < TSI_SHEET_FRAMES ? depth : TSI_SHEET_FRAMES;
        memcpy(record->frames, frames, record->depth * sizeof *frames);
        break;
    }
    tsi_lock_give(&tsi_stand_in_lock);
}

void tsi_sheet_give(TsiSheets* sheets, void* block) {
    tsi_lock_take(&tsi_stand_in_lock);
    Sheet* sheet = &sheets->sheets[((uint8_t*)block - sheets->base) / TSI_SHEET_BYTES];
    if (sheet->state == SHEET_TAIL) sheet = &sheets->sheets[sheet->head];
    uint32_t at = tsi_ref_index(sheet->ref);
    bool filling = sheets->current[at] == sheet->head + 1 && !has_ended(sheets, sheet);

    Sheet was = *sheet;
    Record record = {.depth = 0};
    unsigned behind = was.slack;
    if (TSI_UNLIKELY(was.guarded)) {
        behind = written_behind(sheets, sheet);
        const Record* its = behind < was.slack ? record_of(sheets, sheet, guarded_offset(sheet)) : NULL;
        if (its != NULL) record = *its;
        sheets->guards--;
    }

    if (--sheet->live == 0 && !filling) close_locked(sheets, sheet->head);
    tsi_lock_give(&tsi_stand_in_lock);
    if (TSI_UNLIKELY(behind < was.slack)) tell_written(&was, &record, block, behind);
}

void tsi_sheets_ended(TsiSheets* sheets, TsiRef ref, bool released) {
    uint32_t at = tsi_ref_index(ref);
    uint64_t now = tsi_os.now_ns();
    tsi_lock_take(&tsi_stand_in_lock);
    uint32_t current = sheets->current[at];
    if (current != 0 && sheets->sheets[current - 1].ref == ref) leave_current_locked(sheets, at);

    for (uint32_t place = sheets->newest[at]; place != 0;) {
        Sheet* sheet = &sheets->sheets[place - 1];
        if (sheet->ref != ref) break; /* older ones are of earlier incarnations */
        TSI_CHECK(sheet->older == 0 || sheets->sheets[sheet->older - 1].newer == place);
        if (sheet->ended_ns == 0) sheet->ended_ns = now;
        sheet->released |= released;
        place = sheet->older;
    }

    tsi_lock_give(&tsi_stand_in_lock);
}
