/*
 * table.c - see table.h. Static functions after "init" run under the table's lock.
 */
#include "os/table.h"

#include "base/check.h"
#include "os/clock.h"

#include <string.h>

enum {
    WORD = 64,
    KEEP_BYTES = 96 << 10,
    KEEP_LEAST = 32,
    SPARE = 64,
    SPARE_LARGE = 8,
    RUN_BYTES = 256 << 10,
    WHOLE_BYTES = 16 << 20,       /* largest table that is made writable as a whole */
    WHOLE_GROUND_BYTES = 32 << 20 /* largest ground that is made writable as a whole */
};
enum { VAIN_NS = 100000000, SECOND_NS = 1000000000 };

/* ---- bits ---- */

/* Returns the bytes that the bookkeeping of 64 records takes, with their values aside if the table has such.
 * [any thread, needs no lock] */
static size_t bits_stride(const TsiTable* table) {
    return sizeof(TsiTableBits) + (table->aside ? WORD * sizeof(uint16_t) : 0);
}

/* Returns the place of the bits of records `word` * 64 and up, 64 of them; they are committed if they do not lie in
 * *table itself. [table lock held, except to find the place] */
static TsiTableBits* bits_at(TsiTable* table, uint32_t word) {
    if (!table->aside && word < TSI_TABLE_FIRST) return &table->first[word];
    return (TsiTableBits*)(void*)(table->bits + word * bits_stride(table));
}

_Atomic uint16_t* tsi_table_aside(const TsiTable* table, uint32_t index) {
    uint8_t* word = table->bits + (size_t)(index / WORD) * bits_stride(table);
    return (_Atomic uint16_t*)(void*)(word + sizeof(TsiTableBits)) + index % WORD;
}

/* Makes the bits of records `word` * 64 and up, 64 of them, writable, and all before them; does nothing if they are.
 * Returns true, or false if the system refuses. [table lock held] */
static bool bits_commit(TsiTable* table, uint32_t word) {
    size_t need = ((size_t)word + 1) * bits_stride(table);
    if ((!table->aside && word < TSI_TABLE_FIRST) || need <= table->bits_committed) return true;
    size_t to = tsi_align_up(need, tsi_os.page_bytes);
    if (tsi_os.commit(table->bits + table->bits_committed, to - table->bits_committed) != 0) return false;
    table->bits_committed = to;
    return true;
}

/* Returns the bits, in the word number `word`, of the records that lie in [from, to): bit 0 is record `word` * 64. The
 * word holds at least one of them. [any thread, needs no lock] */
static uint64_t mask(uint32_t word, uint32_t from, uint32_t to) {
    uint32_t first = word * WORD;
    uint64_t bits = from > first ? ~0ull << (from - first) : ~0ull;
    if (to - first < WORD) bits &= (1ull << (to - first)) - 1;
    return bits;
}

/* ---- init ---- */

/* Clears *table and sets all fields that do not depend on its place, by stride, capacity and `aside` (values beside the
 * records); base and bits are NULL. tsi_os_init has run. [before the table is shared] */
static void shape(TsiTable* table, size_t stride, uint32_t capacity, bool aside) {
    size_t page = tsi_os.page_bytes;
    memset(table, 0, sizeof *table);
    tsi_lock_init(&table->lock, TSI_LOCK_TABLE);

    table->stride = stride >= page ? tsi_align_up(stride, page) : stride;
    table->capacity = capacity;
    table->aside = aside;

    size_t odd = table->stride & ~(table->stride - 1); /* the largest power of two that divides it */
    table->unit = odd >= page ? 1 : (uint32_t)(page / odd);
    table->keep = (uint32_t)(KEEP_BYTES / table->stride);
    if (table->keep < KEEP_LEAST) table->keep = KEEP_LEAST;
    /* Fewer than are kept: otherwise taking and giving one record would meet pages that have gone. */
    table->spare = table->keep > 2 * SPARE ? SPARE : SPARE_LARGE;

    table->bytes_reserved = tsi_align_up((uint64_t)table->stride * capacity, page);
    table->bits_reserved = tsi_align_up(((uint64_t)capacity + WORD - 1) / WORD * bits_stride(table), page);
}

/* Returns the bytes that records and bookkeeping take together, whole pages, after `shape`.
 * [any thread, needs no lock] */
static size_t room(const TsiTable* table) { return table->bytes_reserved + table->bits_reserved; }

/* Sets the place of a table that `shape` has set up: room(table) bytes from `base` on. whole: true if they are writable
 * already. [before the table is shared] */
static void lay(TsiTable* table, uint8_t* base, bool whole) {
    table->base = base;
    table->bits = base + table->bytes_reserved;
    if (!whole) return;
    table->bytes_committed = table->bytes_reserved;
    table->bits_committed = table->bits_reserved;
}

/* Makes `bytes` from `base` on writable at once, if writable memory costs nothing (tsi_os_counts_writable) and they are
 * at most `most`: the system counts mappings. Returns true if it has; false otherwise, and steps are committed as
 * needed. [before the range is shared] */
static bool commit_whole(uint8_t* base, size_t bytes, size_t most) {
    return bytes <= most && !tsi_os_counts_writable() && tsi_os.commit(base, bytes) == 0;
}

/* Sets *table to an empty table of `capacity` records of `stride` bytes with a reservation of its own. aside: true if
 * each has 16 bits that stay when its page goes. Returns false if the system refuses; table->base is NULL then.
 * [before the table is shared] */
static bool init(TsiTable* table, size_t stride, uint32_t capacity, bool aside) {
    shape(table, stride, capacity, aside);
    uint8_t* base = tsi_os.reserve(room(table));
    if (base != NULL) lay(table, base, commit_whole(base, room(table), WHOLE_BYTES));
    return base != NULL;
}

size_t tsi_table_room(size_t stride, uint32_t capacity, bool aside) {
    TsiTable table;
    shape(&table, stride, capacity, aside);
    return room(&table);
}

bool tsi_ground_reserve(TsiGround* ground, size_t bytes) {
    ground->base = ground->at = tsi_os.reserve(bytes);
    if (ground->base == NULL) return false;
    ground->end = ground->base + bytes;
    ground->whole = commit_whole(ground->base, bytes, WHOLE_GROUND_BYTES);
    return true;
}

void tsi_ground_drop(TsiGround* ground) {
    if (ground->base != NULL) tsi_os.unmap(ground->base, (size_t)(ground->end - ground->base));
    ground->base = NULL;
}

void tsi_table_init_in(TsiTable* table, TsiGround* ground, size_t stride, uint32_t capacity, bool aside) {
    shape(table, stride, capacity, aside);
    TSI_CHECK(room(table) <= (size_t)(ground->end - ground->at));
    table->lies = true;
    lay(table, ground->at, ground->whole);
    ground->at += room(table);
}

bool tsi_table_init(TsiTable* table, size_t stride, uint32_t capacity) { return init(table, stride, capacity, false); }
bool tsi_table_init_aside(TsiTable* table, size_t stride, uint32_t capacity) {
    return init(table, stride, capacity, true);
}

void tsi_table_destroy(TsiTable* table) {
    if (table->base != NULL && !table->lies) tsi_os.unmap(table->base, room(table));
    table->base = NULL;
}

/* Makes the record `index` writable, and all before it: in steps of 64 KiB (2^16 bytes), doubling up to 2 MiB, so that
 * a small allocator stays small. Does nothing if it is writable. Returns true, or false if the system refuses.
 * [table lock held] */
static bool table_grow(TsiTable* table, uint32_t index) {
    size_t need = ((size_t)index + 1) * table->stride;
    if (need <= table->bytes_committed) return true;
    size_t step = table->bytes_committed < TSI_KIB(64) ? TSI_KIB(64) : table->bytes_committed;
    if (step > TSI_MIB(2)) step = TSI_MIB(2);
    size_t to = tsi_align_up(table->bytes_committed + step, tsi_os.page_bytes);
    if (to < need) to = tsi_align_up(need, tsi_os.page_bytes);
    if (to > table->bytes_reserved) to = table->bytes_reserved;
    if (tsi_os.commit(table->base + table->bytes_committed, to - table->bytes_committed) != 0) return false;
    table->bytes_committed = to;
    return true;
}

/* ---- take and give ---- */

/* Raises table->limit until more than `spare` records below it are free (U4), or as far as there are records and memory
 * for their bits. Does nothing if that holds already. [table lock held] */
static void widen(TsiTable* table) {
    while (table->low_free <= table->spare && table->limit < table->capacity &&
           bits_commit(table, table->limit / WORD)) {
        uint32_t word = table->limit / WORD, bit = table->limit % WORD;
        uint64_t taken = bits_at(table, word)->taken;
        uint32_t free = WORD - tsi_popcount(taken);
        if (bit == 0 && table->capacity - table->limit >= WORD && table->low_free + free <= table->spare) {
            table->low_free += free;
            table->limit += WORD;
        } else {
            table->low_free += !(taken >> bit & 1);
            table->limit++;
        }
    }
}

/* Returns the first free record in [from, to), or `to` if none is free; the bits of all these are committed.
 * [table lock held] */
static uint32_t next_free(TsiTable* table, uint32_t from, uint32_t to) {
    for (uint32_t word = from / WORD; word * WORD < to; word++) {
        uint64_t free = ~bits_at(table, word)->taken & mask(word, from, to);
        if (free != 0) return word * WORD + tsi_ctz64(free);
    }
    return to;
}

/* Finds a free record below the limit and makes it writable: the next in turn, or without memory the first that is
 * committed. Returns true, with *index set to it; false, with *index left alone, if there is none. Does not take it.
 * [table lock held] */
static bool find(TsiTable* table, uint32_t* index) {
    uint32_t at = next_free(table, table->turn, table->limit);
    if (at == table->limit) at = next_free(table, 0, table->limit);
    if (at == table->limit) return false;
    if (!table_grow(table, at)) { /* better early reuse than failure */
        uint32_t committed = (uint32_t)(table->bytes_committed / table->stride);
        if (committed > table->limit) committed = table->limit;
        at = next_free(table, 0, committed);
        if (at == committed) return false;
    }
    *index = at;
    return true;
}

/* Returns how many records of [first, end), which lie in one unit, are filled; 0 if any of them is taken. `end`: that
 * of the unit, or the number of records ever taken if that is less. [table lock held] */
static uint32_t unit_idle(TsiTable* table, uint32_t first, uint32_t end) {
    uint32_t filled = 0;
    for (uint32_t word = first / WORD; word * WORD < end; word++) {
        uint64_t in = mask(word, first, end);
        const TsiTableBits* bits = bits_at(table, word);
        if ((bits->taken & in) != 0) return 0;
        filled += tsi_popcount(bits->filled & in);
    }
    return filled;
}

/* Returns how many records of the unit that holds `index` are filled; 0 if any of the unit is taken.
 * [table lock held] */
static uint32_t idle_around(TsiTable* table, uint32_t index) {
    uint32_t first = index - index % table->unit, end = first + table->unit, used = tsi_load_relaxed(&table->used);
    return unit_idle(table, first, end < used ? end : used);
}

/* Notes that a record without a page was filled: learns to keep one more, up to `learned_most`, if pages went back less
 * than a tenth of a second ago and have not all been filled again; after a longer time forgets what went back.
 * [table lock held] */
static void note_filled_locked(TsiTable* table) {
    TSI_HOLDS(&table->lock);
    uint32_t learned = tsi_load_relaxed(&table->learned);
    if (table->gone == 0) return;
    uint64_t now = tsi_os.coarse_ns();
    if (now - table->gone_ns > VAIN_NS) {
        table->gone = 0;
        return;
    }
    table->gone--;
    table->learned_used_ns = now;
    if (learned < table->learned_most) tsi_store_relaxed(&table->learned, learned + 1);
}

/* Counts `records` whose pages have just gone back, for note_filled_locked; does nothing in a table that does not
 * learn. [table lock held] */
static void note_gone_locked(TsiTable* table, uint32_t records) {
    TSI_HOLDS(&table->lock);
    if (table->learned_most == 0) return;
    uint64_t now = tsi_os.coarse_ns();
    table->gone = now - table->gone_ns > VAIN_NS ? records : table->gone + records;
    table->gone_ns = now;
}

bool tsi_table_take(TsiTable* table, uint32_t* index, uint32_t keep) {
    tsi_lock_take(&table->lock);
    widen(table);
    bool ok = table->capacity - table->taken > keep && find(table, index);

    if (ok) {
        TsiTableBits* bits = bits_at(table, *index / WORD);
        uint64_t bit = 1ull << (*index % WORD);
        table->idle -= idle_around(table, *index);
        bits->taken |= bit;
        if ((bits->filled & bit) == 0) {
            bits->filled |= bit;
            table->filled++;
            note_filled_locked(table);
            if (table->back != NULL) table->back(table, *index);
        }
        uint32_t learned = tsi_load_relaxed(&table->learned);
        if (TSI_UNLIKELY(learned != 0) && table->idle < learned / 2) table->learned_used_ns = tsi_os.coarse_ns();
        table->taken++;
        table->low_free--;
        table->turn = *index + 1;
        /* release: pairs with tsi_table_used */
        if (*index >= tsi_load_relaxed(&table->used)) tsi_store_release(&table->used, *index + 1);
    }

    tsi_lock_give(&table->lock);
    return ok;
}

/* Returns true if more records are idle than are worth keeping (2 * taken + keep + learned), and more than the last
 * search had to leave. [table lock held] */
static bool is_surplus(const TsiTable* table) {
    return table->idle > 2 * table->taken + table->keep + tsi_load_relaxed(&table->learned) &&
           table->idle > table->look_at;
}

void tsi_table_give(TsiTable* table, uint32_t index) {
    tsi_lock_take(&table->lock);
    bits_at(table, index / WORD)->taken &= ~(1ull << (index % WORD));
    table->taken--;
    table->idle += idle_around(table, index);
    if (index < table->limit) table->low_free++;
    if (is_surplus(table)) tsi_store_relaxed(&table->surplus, true); /* a hint */
    tsi_lock_give(&table->lock);
}

uint32_t tsi_table_taken(TsiTable* table) {
    tsi_lock_take(&table->lock);
    uint32_t taken = table->taken;
    tsi_lock_give(&table->lock);
    return taken;
}

/* ---- pages that go back ---- */

/* Returns the first record in [from, to) that is filled, taken or not; `to` if there is none. [table lock held] */
static uint32_t next_filled(TsiTable* table, uint32_t from, uint32_t to) {
    for (; from < to; from++)
        if (bits_at(table, from / WORD)->filled >> (from % WORD) & 1) break;
    return from;
}

/* Calls the table's `stay` for the filled records in [first, end), whose pages stay after all (U3); does nothing if it
 * has none. [table lock held] */
static void stay_all(TsiTable* table, uint32_t first, uint32_t end) {
    for (uint32_t at = first; table->stay != NULL && (at = next_filled(table, at, end)) < end; at++)
        table->stay(table, at);
}

/* Calls the table's `leave`, if it has one, for the filled records in [first, end), whose pages are about to go.
 * Returns true if all may go; false if one must stay, after calling `stay` for those before it. [table lock held] */
static bool leave_all(TsiTable* table, uint32_t first, uint32_t end) {
    for (uint32_t at = first; table->leave != NULL && (at = next_filled(table, at, end)) < end; at++) {
        if (table->leave(table, at)) continue;
        stay_all(table, first, at); /* U3 */
        return false;
    }
    return true;
}

/* Gives back the pages of n records from `first` on, whole units that are idle and whose records have left, and counts
 * these as not filled and not idle. used: number of records ever taken. Returns true; false if the system refuses,
 * after calling `stay` for all of them. [table lock held] */
static bool purge(TsiTable* table, uint32_t first, uint32_t n, uint32_t used) {
    uint32_t end = first + n < used ? first + n : used;
    size_t from = (size_t)first * table->stride, to = from + (size_t)n * table->stride;
    if (to > table->bytes_committed) to = table->bytes_committed;
    if (tsi_os.purge(table->base + from, to - from, TSI_PURGE_DONTNEED) != 0) {
        stay_all(table, first, end); /* U3 */
        return false;
    }

    uint32_t filled = table->filled;
    for (uint32_t word = first / WORD; word * WORD < end; word++) {
        TsiTableBits* bits = bits_at(table, word);
        uint64_t gone = bits->filled & mask(word, first, end);
        table->filled -= tsi_popcount(gone);
        table->idle -= tsi_popcount(gone);
        bits->filled &= ~gone;
    }
    note_gone_locked(table, filled - table->filled);
    return true;
}

/* Gives back the highest run of idle units below record *end, of about RUN_BYTES (256 KiB) at most, while more than
 * `target` records are idle. On entry *end is a multiple of the unit; on return the next search begins there. Returns
 * true if pages went back; false if there is no such run, or the system refuses. [table lock held] */
static bool purge_run(TsiTable* table, uint32_t* end, uint32_t target) {
    uint32_t high = 0, low = 0, most = (uint32_t)(RUN_BYTES / table->stride), filled = 0,
             used = tsi_load_relaxed(&table->used);

    while (*end != 0 && table->idle - filled > target) {
        uint32_t first = *end - table->unit, last = *end < used ? *end : used, idle = unit_idle(table, first, last);
        bool joins = idle != 0 && high - low < most && leave_all(table, first, last);
        if (!joins && high != 0) break;
        *end = first;
        if (!joins) continue;
        if (high == 0) high = first + table->unit;
        low = first;
        filled += idle;
    }

    return high != 0 && purge(table, low, high - low, used);
}

void tsi_table_tidy_slow(TsiTable* table, bool all) {
    uint32_t target = 0, end = UINT32_MAX;
    for (bool more = true; more;) {
        tsi_lock_take(&table->lock); /* given between runs: takers wait for one call at most */
        if (end == UINT32_MAX) {
            target = all ? 0 : table->taken + table->keep / 2 + tsi_load_relaxed(&table->learned);
            end = (tsi_load_relaxed(&table->used) + table->unit - 1) / table->unit * table->unit;
            table->limit = table->low_free = 0; /* from here on the lowest are taken */
            widen(table);
            if (table->turn >= table->limit) table->turn = 0;
        }

        more = purge_run(table, &end, target);
        if (!more) {
            if (all) { /* the caller asked for it, so nothing is learned from it */
                table->gone = 0;
                tsi_store_relaxed(&table->learned, 0);
            }
            table->look_at = table->idle > target ? table->idle + table->keep / 2 : 0;
            tsi_store_relaxed(&table->surplus, false);
        }
        tsi_lock_give(&table->lock);
    }
}

void tsi_table_poll(TsiTable* table, uint64_t now_ns) {
    if (tsi_load_relaxed(&table->learned) == 0) return;
    tsi_lock_take(&table->lock);
    if (table->learned_used_ns > now_ns + SECOND_NS) table->learned_used_ns = now_ns; /* the clock was set back */
    uint64_t seconds = tsi_clock_between(table->learned_used_ns, now_ns) / SECOND_NS;
    if (seconds != 0) {
        tsi_store_relaxed(&table->learned, seconds < 32 ? tsi_load_relaxed(&table->learned) >> seconds : 0);
        table->learned_used_ns += seconds * SECOND_NS;
        table->look_at = 0;
        if (is_surplus(table)) tsi_store_relaxed(&table->surplus, true);
    }
    tsi_lock_give(&table->lock);
}

/* Returns which of the 64 records from `word` * 64 on have pages, a bit each; the bits may be a moment old.
 * [any thread, needs no lock] */
TSI_TSAN_BLIND static uint64_t filled_now(TsiTable* table, uint32_t word) {
    return ((volatile TsiTableBits*)bits_at(table, word))->filled;
}

bool tsi_table_pages(TsiTable* table, uint32_t* at, TsiTablePages* out) {
    uint32_t used = tsi_table_used(table);
    while (*at < used) {
        uint32_t first = *at;
        uint64_t filled = 0;
        *at += table->unit > WORD ? table->unit : WORD;
        for (uint32_t word = first / WORD; word * WORD < *at && word * WORD < used; word++)
            filled |= filled_now(table, word);
        if (filled == 0) continue;
        *out = (TsiTablePages){table->base + (size_t)first * table->stride,
                               ((*at < used ? *at : used) - first) * table->stride};
        return true;
    }
    return false;
}

size_t tsi_table_bits_bytes(const TsiTable* table) {
    size_t words = (tsi_table_used(table) + WORD - 1) / WORD;
    return table->aside || words > TSI_TABLE_FIRST ? words * bits_stride(table) : 0;
}
