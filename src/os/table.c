/*
 * table.c - see table.h. Static functions after "init" run under the table's lock.
 */
#include "os/table.h"

#include "base/check.h"

#include <string.h>

enum {
    WORD = 64,
    KEEP_BYTES = 96 << 10,
    KEEP_LEAST = 32,
    SPARE = 64,
    SPARE_LARGE = 8,
    RUN_BYTES = 256 << 10,
    WHOLE_BYTES = 16 << 20,       /* largest table that is made writable as a whole */
    WHOLE_GROUND_BYTES = 32 << 20 /* largest ground of a small allocator likewise */
};
enum { VAIN_NS = 100000000, SECOND_NS = 1000000000 };

/* ---- bits ---- */

static size_t bits_stride(const TsiTable* t) { return sizeof(TsiTableBits) + (t->aside ? WORD * sizeof(uint16_t) : 0); }

static TsiTableBits* bits_at(TsiTable* t, uint32_t word) {
    if (!t->aside && word < TSI_TABLE_FIRST) return &t->first[word];
    return (TsiTableBits*)(void*)(t->bits + word * bits_stride(t));
}

_Atomic uint16_t* tsi_table_aside(const TsiTable* t, uint32_t index) {
    uint8_t* word = t->bits + (size_t)(index / WORD) * bits_stride(t);
    return (_Atomic uint16_t*)(void*)(word + sizeof(TsiTableBits)) + index % WORD;
}

static bool bits_commit(TsiTable* t, uint32_t word) {
    size_t need = ((size_t)word + 1) * bits_stride(t);
    if ((!t->aside && word < TSI_TABLE_FIRST) || need <= t->bits_committed) return true;
    size_t to = tsi_align_up(need, tsi_os.page_bytes);
    if (tsi_os.commit(t->bits + t->bits_committed, to - t->bits_committed) != 0) return false;
    t->bits_committed = to;
    return true;
}

/* Returns the bits of the records of a word that lie in [from, to). */
static uint64_t mask(uint32_t word, uint32_t from, uint32_t to) {
    uint32_t first = word * WORD;
    uint64_t bits = from > first ? ~0ull << (from - first) : ~0ull;
    if (to - first < WORD) bits &= (1ull << (to - first)) - 1;
    return bits;
}

/* ---- init ---- */

/* Sets all fields except those of its place. */
static void shape(TsiTable* t, size_t stride, uint32_t capacity, bool aside) {
    size_t page = tsi_os.page_bytes;
    memset(t, 0, sizeof *t);
    tsi_lock_init(&t->lock, TSI_LOCK_TABLE);

    t->stride = stride >= page ? tsi_align_up(stride, page) : stride;
    t->capacity = capacity;
    t->aside = aside;

    size_t odd = t->stride & ~(t->stride - 1); /* the largest power of two that divides it */
    t->unit = odd >= page ? 1 : (uint32_t)(page / odd);
    t->keep = (uint32_t)(KEEP_BYTES / t->stride);
    if (t->keep < KEEP_LEAST) t->keep = KEEP_LEAST;
    /* Fewer than are kept: otherwise taking and giving one record would meet pages that have gone. */
    t->spare = t->keep > 2 * SPARE ? SPARE : SPARE_LARGE;

    t->bytes_reserved = tsi_align_up((uint64_t)t->stride * capacity, page);
    t->bits_reserved = tsi_align_up(((uint64_t)capacity + WORD - 1) / WORD * bits_stride(t), page);
}

static size_t room(const TsiTable* t) { return t->bytes_reserved + t->bits_reserved; }

static void lay(TsiTable* t, uint8_t* base, bool whole) {
    t->base = base;
    t->bits = base + t->bytes_reserved;
    if (!whole) return;
    t->bytes_committed = t->bytes_reserved;
    t->bits_committed = t->bits_reserved;
}

/* Commits all at once if that costs nothing: the system counts mappings. */
static bool commit_whole(uint8_t* base, size_t bytes, size_t most) {
    return bytes <= most && !tsi_os_counts_writable() && tsi_os.commit(base, bytes) == 0;
}

static bool init(TsiTable* t, size_t stride, uint32_t capacity, bool aside) {
    shape(t, stride, capacity, aside);
    uint8_t* base = tsi_os.reserve(room(t));
    if (base != NULL) lay(t, base, commit_whole(base, room(t), WHOLE_BYTES));
    return base != NULL;
}

size_t tsi_table_room(size_t stride, uint32_t capacity, bool aside) {
    TsiTable t;
    shape(&t, stride, capacity, aside);
    return room(&t);
}

bool tsi_ground_reserve(TsiGround* g, size_t bytes) {
    g->base = g->at = tsi_os.reserve(bytes);
    if (g->base == NULL) return false;
    g->end = g->base + bytes;
    g->whole = commit_whole(g->base, bytes, WHOLE_GROUND_BYTES);
    return true;
}

void tsi_ground_drop(TsiGround* g) {
    if (g->base != NULL) tsi_os.unmap(g->base, (size_t)(g->end - g->base));
    g->base = NULL;
}

void tsi_table_init_in(TsiTable* t, TsiGround* g, size_t stride, uint32_t capacity, bool aside) {
    shape(t, stride, capacity, aside);
    TSI_CHECK(room(t) <= (size_t)(g->end - g->at));
    t->lies = true;
    lay(t, g->at, g->whole);
    g->at += room(t);
}

bool tsi_table_init(TsiTable* t, size_t stride, uint32_t capacity) { return init(t, stride, capacity, false); }
bool tsi_table_init_aside(TsiTable* t, size_t stride, uint32_t capacity) { return init(t, stride, capacity, true); }

void tsi_table_destroy(TsiTable* t) {
    if (t->base != NULL && !t->lies) tsi_os.unmap(t->base, room(t));
    t->base = NULL;
}

/* Commits a little more each time, so that a small allocator stays small. */
static bool table_grow(TsiTable* t, uint32_t index) {
    size_t need = ((size_t)index + 1) * t->stride;
    if (need <= t->bytes_committed) return true;
    size_t step = t->bytes_committed < TSI_KIB(64) ? TSI_KIB(64) : t->bytes_committed;
    if (step > TSI_MIB(2)) step = TSI_MIB(2);
    size_t to = tsi_align_up(t->bytes_committed + step, tsi_os.page_bytes);
    if (to < need) to = tsi_align_up(need, tsi_os.page_bytes);
    if (to > t->bytes_reserved) to = t->bytes_reserved;
    if (tsi_os.commit(t->base + t->bytes_committed, to - t->bytes_committed) != 0) return false;
    t->bytes_committed = to;
    return true;
}

/* ---- take and give ---- */

/* Raises the limit until more than `spare` records below it are free (U4). */
static void widen(TsiTable* t) {
    while (t->low_free <= t->spare && t->limit < t->capacity && bits_commit(t, t->limit / WORD)) {
        uint32_t word = t->limit / WORD, bit = t->limit % WORD;
        uint64_t taken = bits_at(t, word)->taken;
        uint32_t free = WORD - tsi_popcount(taken);
        if (bit == 0 && t->capacity - t->limit >= WORD && t->low_free + free <= t->spare) {
            t->low_free += free;
            t->limit += WORD;
        } else {
            t->low_free += !(taken >> bit & 1);
            t->limit++;
        }
    }
}

/* Returns the first free record in [from, to), or `to`. */
static uint32_t next_free(TsiTable* t, uint32_t from, uint32_t to) {
    for (uint32_t word = from / WORD; word * WORD < to; word++) {
        uint64_t free = ~bits_at(t, word)->taken & mask(word, from, to);
        if (free != 0) return word * WORD + tsi_ctz64(free);
    }
    return to;
}

static bool find(TsiTable* t, uint32_t* index) {
    uint32_t at = next_free(t, t->turn, t->limit);
    if (at == t->limit) at = next_free(t, 0, t->limit);
    if (at == t->limit) return false;
    if (!table_grow(t, at)) { /* better early reuse than failure */
        uint32_t committed = (uint32_t)(t->bytes_committed / t->stride);
        if (committed > t->limit) committed = t->limit;
        at = next_free(t, 0, committed);
        if (at == committed) return false;
    }
    *index = at;
    return true;
}

/* Returns the filled records of a unit, or 0 if one is taken. end: of the unit, or of all ever taken. */
static uint32_t unit_idle(TsiTable* t, uint32_t first, uint32_t end) {
    uint32_t filled = 0;
    for (uint32_t word = first / WORD; word * WORD < end; word++) {
        uint64_t in = mask(word, first, end);
        const TsiTableBits* bits = bits_at(t, word);
        if ((bits->taken & in) != 0) return 0;
        filled += tsi_popcount(bits->filled & in);
    }
    return filled;
}

/* Returns unit_idle of a record's unit. */
static uint32_t idle_around(TsiTable* t, uint32_t index) {
    uint32_t first = index - index % t->unit, end = first + t->unit, used = tsi_load_relaxed(&t->used);
    return unit_idle(t, first, end < used ? end : used);
}

/* Learns to keep one more record if one without a page is filled soon after pages went back. */
static void note_filled_locked(TsiTable* t) {
    TSI_HOLDS(&t->lock);
    uint32_t learned = tsi_load_relaxed(&t->learned);
    if (t->gone == 0) return;
    uint64_t now = tsi_os.coarse_ns();
    if (now - t->gone_ns > VAIN_NS) {
        t->gone = 0;
        return;
    }
    t->gone--;
    t->learned_used_ns = now;
    if (learned < t->learned_most) tsi_store_relaxed(&t->learned, learned + 1);
}

static void note_gone_locked(TsiTable* t, uint32_t records) {
    TSI_HOLDS(&t->lock);
    if (t->learned_most == 0) return;
    uint64_t now = tsi_os.coarse_ns();
    t->gone = now - t->gone_ns > VAIN_NS ? records : t->gone + records;
    t->gone_ns = now;
}

bool tsi_table_take(TsiTable* t, uint32_t* index, uint32_t keep) {
    tsi_lock_take(&t->lock);
    widen(t);
    bool ok = t->capacity - t->taken > keep && find(t, index);

    if (ok) {
        TsiTableBits* bits = bits_at(t, *index / WORD);
        uint64_t bit = 1ull << (*index % WORD);
        t->idle -= idle_around(t, *index);
        bits->taken |= bit;
        if ((bits->filled & bit) == 0) {
            bits->filled |= bit;
            t->filled++;
            note_filled_locked(t);
            if (t->back != NULL) t->back(t, *index);
        }
        uint32_t learned = tsi_load_relaxed(&t->learned);
        if (TSI_UNLIKELY(learned != 0) && t->idle < learned / 2) t->learned_used_ns = tsi_os.coarse_ns();
        t->taken++;
        t->low_free--;
        t->turn = *index + 1;
        /* release: pairs with tsi_table_used */
        if (*index >= tsi_load_relaxed(&t->used)) tsi_store_release(&t->used, *index + 1);
    }

    tsi_lock_give(&t->lock);
    return ok;
}

static bool is_surplus(const TsiTable* t) {
    return t->idle > 2 * t->taken + t->keep + tsi_load_relaxed(&t->learned) && t->idle > t->look_at;
}

void tsi_table_give(TsiTable* t, uint32_t index) {
    tsi_lock_take(&t->lock);
    bits_at(t, index / WORD)->taken &= ~(1ull << (index % WORD));
    t->taken--;
    t->idle += idle_around(t, index);
    if (index < t->limit) t->low_free++;
    if (is_surplus(t)) tsi_store_relaxed(&t->surplus, true); /* a hint */
    tsi_lock_give(&t->lock);
}

uint32_t tsi_table_taken(TsiTable* t) {
    tsi_lock_take(&t->lock);
    uint32_t taken = t->taken;
    tsi_lock_give(&t->lock);
    return taken;
}

/* ---- pages that go back ---- */

/* Returns the next filled record in [from, to), or `to`. */
static uint32_t next_filled(TsiTable* t, uint32_t from, uint32_t to) {
    for (; from < to; from++)
        if (bits_at(t, from / WORD)->filled >> (from % WORD) & 1) break;
    return from;
}

static void stay_all(TsiTable* t, uint32_t first, uint32_t end) {
    for (uint32_t at = first; t->stay != NULL && (at = next_filled(t, at, end)) < end; at++) t->stay(t, at);
}

/* Calls `leave` of filled records. Returns false if one must stay, after undoing the others. */
static bool leave_all(TsiTable* t, uint32_t first, uint32_t end) {
    for (uint32_t at = first; t->leave != NULL && (at = next_filled(t, at, end)) < end; at++) {
        if (t->leave(t, at)) continue;
        stay_all(t, first, at); /* U3 */
        return false;
    }
    return true;
}

/* Gives back the pages of n records from `first` on, whose units are idle and have left. Returns false if refused. */
static bool purge(TsiTable* t, uint32_t first, uint32_t n, uint32_t used) {
    uint32_t end = first + n < used ? first + n : used;
    size_t from = (size_t)first * t->stride, to = from + (size_t)n * t->stride;
    if (to > t->bytes_committed) to = t->bytes_committed;
    if (tsi_os.purge(t->base + from, to - from, TSI_PURGE_DONTNEED) != 0) {
        stay_all(t, first, end); /* U3 */
        return false;
    }

    uint32_t filled = t->filled;
    for (uint32_t word = first / WORD; word * WORD < end; word++) {
        TsiTableBits* bits = bits_at(t, word);
        uint64_t gone = bits->filled & mask(word, first, end);
        t->filled -= tsi_popcount(gone);
        t->idle -= tsi_popcount(gone);
        bits->filled &= ~gone;
    }
    note_gone_locked(t, filled - t->filled);
    return true;
}

/* Gives back the highest run of idle units below *end, while more than `target` records are idle; the next search
 * begins at *end. Returns false if there is none. */
static bool purge_run(TsiTable* t, uint32_t* end, uint32_t target) {
    uint32_t high = 0, low = 0, most = (uint32_t)(RUN_BYTES / t->stride), filled = 0, used = tsi_load_relaxed(&t->used);

    while (*end != 0 && t->idle - filled > target) {
        uint32_t first = *end - t->unit, last = *end < used ? *end : used, idle = unit_idle(t, first, last);
        bool joins = idle != 0 && high - low < most && leave_all(t, first, last);
        if (!joins && high != 0) break;
        *end = first;
        if (!joins) continue;
        if (high == 0) high = first + t->unit;
        low = first;
        filled += idle;
    }

    return high != 0 && purge(t, low, high - low, used);
}

void tsi_table_tidy_slow(TsiTable* t, bool all) {
    uint32_t target = 0, end = UINT32_MAX;
    for (bool more = true; more;) {
        tsi_lock_take(&t->lock); /* given between runs: takers wait for one call at most */
        if (end == UINT32_MAX) {
            target = all ? 0 : t->taken + t->keep / 2 + tsi_load_relaxed(&t->learned);
            end = (tsi_load_relaxed(&t->used) + t->unit - 1) / t->unit * t->unit;
            t->limit = t->low_free = 0; /* from here on the lowest are taken */
            widen(t);
            if (t->turn >= t->limit) t->turn = 0;
        }
        more = purge_run(t, &end, target);
        if (!more) {
            if (all) { /* the caller asked for it, so nothing is learned from it */
                t->gone = 0;
                tsi_store_relaxed(&t->learned, 0);
            }
            t->look_at = t->idle > target ? t->idle + t->keep / 2 : 0;
            tsi_store_relaxed(&t->surplus, false);
        }
        tsi_lock_give(&t->lock);
    }
}

void tsi_table_poll(TsiTable* t, uint64_t now_ns) {
    if (tsi_load_relaxed(&t->learned) == 0) return;
    tsi_lock_take(&t->lock);
    uint64_t seconds = now_ns < t->learned_used_ns ? 0 : (now_ns - t->learned_used_ns) / SECOND_NS;
    if (seconds != 0) {
        tsi_store_relaxed(&t->learned, seconds < 32 ? tsi_load_relaxed(&t->learned) >> seconds : 0);
        t->learned_used_ns += seconds * SECOND_NS;
        t->look_at = 0;
        if (is_surplus(t)) tsi_store_relaxed(&t->surplus, true);
    }
    tsi_lock_give(&t->lock);
}

/* Reads bits without a lock; they may be a moment old. */
TSI_UNORDERED static uint64_t filled_now(TsiTable* t, uint32_t word) {
    return ((volatile TsiTableBits*)bits_at(t, word))->filled;
}

bool tsi_table_pages(TsiTable* t, uint32_t* at, TsiTablePages* out) {
    uint32_t used = tsi_table_used(t);
    while (*at < used) {
        uint32_t first = *at;
        uint64_t filled = 0;
        *at += t->unit > WORD ? t->unit : WORD;
        for (uint32_t word = first / WORD; word * WORD < *at && word * WORD < used; word++)
            filled |= filled_now(t, word);
        if (filled == 0) continue;
        *out = (TsiTablePages){t->base + (size_t)first * t->stride, ((*at < used ? *at : used) - first) * t->stride};
        return true;
    }
    return false;
}

size_t tsi_table_bits_bytes(const TsiTable* t) {
    size_t words = (tsi_table_used(t) + WORD - 1) / WORD;
    return t->aside || words > TSI_TABLE_FIRST ? words * bits_stride(t) : 0;
}
