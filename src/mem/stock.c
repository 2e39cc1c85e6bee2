/* stock.c - see stock.h. */
#include "mem/stock.h"

#include "mem/chunk.h"
#include "mem/purge.h"
#include "os/clock.h"

enum {
    WORDS = TSI_STOCK_UNITS / 64,
    CHUNK_BYTES = 1 << TSI_CHUNK_SHIFT,
    SLOT_SHIFT = 24,           /* log2 of nanoseconds: 17 ms */
    COLD_TICKS = 6,            /* as long as bytes given back are remembered */
    TOGETHER_BYTES = 64 << 10, /* less than this does not go back alone */
    BALANCE = 3,               /* 1/3 of what slabs regret together is worth keeping: decisions 0031, 0066 */
    LOOK = 64                  /* chunks that are compared for the coldest */
};

/* Sets or clears the chunk's bit among those with pages in the stock, by its own bits of pages. [pool lock held] */
static void mark(TsiSpace* s, uint32_t chunk) {
    tsi_word_set(&s->bits[chunk / 64].stocked, chunk % 64, tsi_chunk_has_stock(&s->chunks[chunk]));
}

/* Returns the pages below page `end` of a chunk, a bit each, of those that word `word` of its bits stands for.
 * [any thread, needs no lock] */
static uint64_t units_below(unsigned word, unsigned end) {
    unsigned low = word * 64;
    return end >= low + 64 ? ~0ull : end > low ? (1ull << (end - low)) - 1 : 0;
}

/* Returns the tick, of 17 ms, that a time in nanoseconds lies in; modulo 2^32. [any thread, needs no lock] */
static uint32_t tick_of(uint64_t ns) { return (uint32_t)(ns >> SLOT_SHIFT); }

/* ---- the budget ---- */

uint64_t tsi_stock_reserve(TsiSpace* s, uint64_t bytes, uint64_t step) {
    int64_t left = tsi_load_relaxed(&s->stock.left);
    uint64_t got;
    do {
        got = left <= 0 ? 0 : (uint64_t)left < bytes ? (uint64_t)left / step * step : bytes;
    } while (got != 0 && !atomic_compare_exchange_weak_explicit(&s->stock.left, &left, left - (int64_t)got,
                                                                memory_order_relaxed, memory_order_relaxed));
    return got;
}

/* Sets the budget to `to` bytes, at least stock.start, and changes `left` by the difference, below 0 too. Lent room
 * beyond `to` is lent no more. Gives no pages back. [pool lock held] */
static void set_budget_locked(TsiSpace* s, uint64_t to) {
    TSI_HOLDS(&s->lock);
    TsiStock* stock = &s->stock;
    uint64_t was = tsi_load_relaxed(&stock->budget);
    tsi_store_relaxed(&stock->budget, to);
    if (stock->lent > to - stock->start) stock->lent = to - stock->start;
    (void)tsi_add_relaxed(&stock->left, (int64_t)to - (int64_t)was);
}

/* Takes back `bytes` of lent room, or all that is lent: lowers stock.lent and the budget by it. Gives no pages back.
 * [pool lock held] */
static void take_back_locked(TsiSpace* s, uint64_t bytes) {
    TSI_HOLDS(&s->lock);
    if (bytes > s->stock.lent) bytes = s->stock.lent;
    s->stock.lent -= bytes;
    set_budget_locked(s, tsi_load_relaxed(&s->stock.budget) - bytes);
}

/* Moves stock->gone_tick on to `tick`, and takes what is TSI_STOCK_SLOTS ticks old or more out of `gone` and `rued`,
 * the bytes that went back and those regretted, and of their sums. [pool lock held] */
static void age_locked(TsiSpace* s, uint32_t tick) {
    TSI_HOLDS(&s->lock);
    TsiStock* stock = &s->stock;
    for (unsigned n = 0; n < TSI_STOCK_SLOTS && stock->gone_tick != tick; n++) {
        uint32_t oldest = ++stock->gone_tick % TSI_STOCK_SLOTS;
        stock->gone_sum -= stock->gone[oldest];
        stock->rued_sum -= stock->rued[oldest];
        stock->gone[oldest] = stock->rued[oldest] = 0;
    }
    stock->gone_tick = tick;
}

/* Records that `bytes` went back at `ns`, on the coarse clock, for want of budget: adds them to stock.gone of that tick
 * and to gone_sum, after age_locked. Taken again within TSI_STOCK_SLOTS ticks, they are regret. [pool lock held] */
static void note_gone_locked(TsiSpace* s, uint64_t bytes, uint64_t ns) {
    TSI_HOLDS(&s->lock);
    TsiStock* stock = &s->stock;
    age_locked(s, tick_of(ns));
    stock->gone[stock->gone_tick % TSI_STOCK_SLOTS] += bytes;
    stock->gone_sum += bytes;
}

/* Counts as regret as many of the `bytes` taken from the system as stock->gone has of the last TSI_STOCK_SLOTS ticks,
 * which it takes out there, newest first. Raises the learned budget by them, up to the limit; unless `large`, for a
 * large object, no further than to the recent regret / BALANCE. Changes nothing but the ticks if there is no regret.
 * [pool lock held] */
static void regret_locked(TsiSpace* s, uint64_t bytes, bool large) {
    TSI_HOLDS(&s->lock);
    TsiStock* stock = &s->stock;
    uint64_t ns = tsi_os.coarse_ns(), regretted = 0;
    age_locked(s, tick_of(ns));

    for (uint32_t n = 0; n < TSI_STOCK_SLOTS && regretted < bytes; n++) {
        uint64_t* gone = &stock->gone[(stock->gone_tick - n) % TSI_STOCK_SLOTS];
        uint64_t more = *gone < bytes - regretted ? *gone : bytes - regretted;
        *gone -= more;
        regretted += more;
    }

    if (regretted == 0) return;
    stock->gone_sum -= regretted;
    stock->rued[stock->gone_tick % TSI_STOCK_SLOTS] += regretted;
    stock->rued_sum += regretted;
    tsi_store_relaxed(&stock->regretted, tsi_load_relaxed(&stock->regretted) + regretted);
    tsi_store_relaxed(&stock->used_ns, ns);

    uint64_t budget = tsi_load_relaxed(&stock->budget), learned = budget - stock->lent, to = learned + regretted,
             most = large ? stock->limit : stock->rued_sum / BALANCE;
    if (to > most) to = most;
    if (to > stock->limit - stock->lent) to = stock->limit - stock->lent;
    if (to > learned) set_budget_locked(s, budget + (to - learned));
}

/* ---- pages ---- */

/* Sets or clears the bits of a range of whole pages in its chunks' `stock`; sets stock_tick of each chunk to `tick`,
 * and marks those that get pages as kept. Returns the bytes whose bit has changed, which the caller adds to stock.bytes
 * or subtracts. [pool lock held] */
static size_t change_locked(TsiSpace* s, const uint8_t* p, size_t bytes, bool set, uint32_t tick) {
    TSI_HOLDS(&s->lock);
    size_t at = (size_t)(p - s->base), end = at + bytes, changed = 0;
    while (at < end) {
        uint32_t chunk = (uint32_t)(at >> TSI_CHUNK_SHIFT);
        size_t low = (size_t)chunk << TSI_CHUNK_SHIFT, high = low + (1u << TSI_CHUNK_SHIFT);
        if (high > end) high = end;
        TsiChunk* record = &s->chunks[chunk];

        unsigned from = (unsigned)((at - low) >> TSI_STOCK_SHIFT), to = (unsigned)((high - low) >> TSI_STOCK_SHIFT);
        for (unsigned n = 0; n < WORDS && (set || tsi_chunk_is_stocked(s, chunk)); n++) {
            uint64_t m = units_below(n, to) & ~units_below(n, from) & (set ? ~record->stock[n] : record->stock[n]);
            record->stock[n] ^= m;
            changed += (size_t)tsi_popcount(m) << TSI_STOCK_SHIFT;
        }

        record->stock_tick = tick;
        if (set) tsi_space_mark_kept(record);
        mark(s, chunk);
        at = high;
    }
    return changed;
}

size_t tsi_stock_take_locked(TsiSpace* s, const uint8_t* p, size_t bytes, bool large) {
    TSI_HOLDS(&s->lock);
    TsiStock* stock = &s->stock;
    uint64_t kept = tsi_load_relaxed(&stock->bytes);
    size_t found = 0;
    if (kept != 0) {
        uint64_t ns = tsi_os.coarse_ns();
        found = change_locked(s, p, bytes, false, tick_of(ns));
        tsi_store_relaxed(&stock->bytes, kept - found);
        tsi_stock_unreserve(s, found);
        take_back_locked(s, found);
        if (found != 0 && kept - found < tsi_load_relaxed(&stock->budget) / 2) tsi_store_relaxed(&stock->used_ns, ns);
    }
    if (stock->gone_sum != 0 && found < bytes) regret_locked(s, bytes - found, large);
    return found;
}

void tsi_stock_put_locked(TsiSpace* s, const uint8_t* p, size_t bytes) {
    TSI_HOLDS(&s->lock);
    (void)change_locked(s, p, bytes, true, tick_of(tsi_os.coarse_ns()));
    tsi_store_relaxed(&s->stock.bytes, tsi_load_relaxed(&s->stock.bytes) + bytes);
}

uint32_t tsi_stock_chunk_locked(const TsiSpace* s, unsigned cls, unsigned node) {
    TSI_HOLDS(&s->lock);
    uint32_t found = TSI_STOCK_NONE, words = (tsi_load_relaxed(&s->chunk_high) + 63) / 64;
    if (tsi_load_relaxed(&s->stock.bytes) == 0) return found;
    for (uint32_t n = 0; n < words; n++) {
        for (uint64_t w = s->bits[n].stocked & ~s->bits[n].used; w != 0; w &= w - 1) {
            uint32_t chunk = n << 6 | tsi_ctz64(w);
            const TsiChunk* record = &s->chunks[chunk];
            if (s->nodes != 1 && record->asked_node != node + 1) continue;
            if (tsi_parts_share(s, cls) && (record->stock[0] | record->stock[1]) == 0)
                continue; /* parts use half of a chunk */
            if (!tsi_class_is_region(cls) || record->region_class == cls) return chunk;
            if (found == TSI_STOCK_NONE) found = chunk; /* its map must be cleared first */
        }
    }
    return found;
}

/* ---- giving back ---- */

/* Returns, of the chunks with pages in the stock that are not held, the one whose stock_tick is the oldest; with
 * `cold`, it is at least COLD_TICKS old. Returns TSI_STOCK_NONE if there is none. Looks from stock.hand on, at about
 * LOOK chunks, and then moves the hand behind them. tick: now. [pool lock held] */
static uint32_t coldest_locked(TsiSpace* s, bool cold, uint32_t tick) {
    TSI_HOLDS(&s->lock);
    uint32_t words = (tsi_load_relaxed(&s->chunk_high) + 63) / 64, found = TSI_STOCK_NONE, looked = 0, most = 0;
    for (uint32_t n = 0; n < words && looked < LOOK; n++) {
        uint32_t at = (s->stock.hand + n) % words;
        for (uint64_t w = s->bits[at].stocked; w != 0; w &= w - 1) {
            uint32_t chunk = at << 6 | tsi_ctz64(w), age = tick - s->chunks[chunk].stock_tick;
            looked++;
            bool warm = cold && age < COLD_TICKS, warmer = found != TSI_STOCK_NONE && age < most;
            if (s->chunks[chunk].held || warm || warmer) continue;
            found = chunk;
            most = age;
        }
        if (looked >= LOOK) s->stock.hand = at + 1;
    }
    return found;
}

/* Gives the pages of a chunk whose bits are set, a bit for each TSI_STOCK_SHIFT's bytes, back to the system, adjoining
 * ones in one call, counted for class cls. The stock's own bits and sums are the caller's.
 * [chunk held, no pool lock held] */
static void purge_bits(TsiSpace* s, unsigned cls, uint32_t chunk, const uint64_t* bits) {
    uint8_t* base = tsi_chunk_base(s, chunk);
    for (unsigned at = 0; at < TSI_STOCK_UNITS;) {
        uint64_t w = bits[at / 64] >> at % 64;
        if (w == 0) {
            at = (at / 64 + 1) * 64;
            continue;
        }
        at += tsi_ctz64(w);
        unsigned from = at;
        while (at < TSI_STOCK_UNITS && tsi_bit_is(bits, at)) at++;
        (void)tsi_space_purge_range(s, cls, base + ((size_t)from << TSI_STOCK_SHIFT),
                                    (size_t)(at - from) << TSI_STOCK_SHIFT, true);
    }
}

/* Gives pages of a chunk's stock back to the system, the last ones first, until `most` bytes, rounded up to a page, are
 * reached or none is left; lowers stock.bytes and committed_bytes and gives their room back to the budget. Returns the
 * bytes. Drops the pool lock meanwhile, with the chunk held (K3); the caller has found record->held false.
 * [pool lock held] */
static uint64_t evict_locked(TsiSpace* s, uint32_t chunk, uint64_t most) {
    TSI_HOLDS(&s->lock);
    TsiChunk* record = &s->chunks[chunk];
    uint64_t bits[WORDS] = {0}, bytes = 0;

    for (unsigned n = WORDS; n-- > 0 && bytes < most;) {
        uint64_t units = tsi_align_up(most < CHUNK_BYTES ? most - bytes : CHUNK_BYTES, tsi_os.page_bytes) >>
                         TSI_STOCK_SHIFT,
                 have = tsi_popcount(record->stock[n]);
        uint64_t stay = have > units ? tsi_lowest_bits(record->stock[n], (unsigned)(have - units)) : 0;
        bits[n] = record->stock[n] & ~stay;
        record->stock[n] = stay;
        bytes += (uint64_t)tsi_popcount(bits[n]) << TSI_STOCK_SHIFT;
    }

    mark(s, chunk);
    tsi_store_relaxed(&s->stock.bytes, tsi_load_relaxed(&s->stock.bytes) - bytes);

    unsigned cls = record->last_class;
    tsi_chunk_hold_locked(s, chunk); /* K3 */
    tsi_space_give_begin(s);
    tsi_lock_give(&s->lock);
    purge_bits(s, cls, chunk, bits);
    tsi_lock_take(&s->lock);
    tsi_chunk_unhold_locked(s, chunk);
    tsi_sub_relaxed(&s->committed_bytes, bytes);
    tsi_space_give_end(s);
    tsi_stock_unreserve(s, bytes);
    return bytes;
}

/* Gives pages of the stock back to the system, chunk after chunk, the coldest of those compared first (coldest_locked),
 * of the last one only as many as needed, until `most` bytes have gone or there are no more. Returns the bytes that
 * went. Drops the pool lock meanwhile. Counts nothing as gone for want of budget. [pool lock held] */
static uint64_t evict_coldest_locked(TsiSpace* s, uint64_t most) {
    TSI_HOLDS(&s->lock);
    uint64_t freed = 0;
    uint32_t chunk;
    while (freed < most && (chunk = coldest_locked(s, false, tick_of(tsi_os.coarse_ns()))) != TSI_STOCK_NONE)
        freed += evict_locked(s, chunk, most - freed);
    return freed;
}

/* Evicts pages of the stock until `need` bytes have gone: chunks that are cold, whole; then, only if need is at most
 * TOGETHER_BYTES, TOGETHER_BYTES of the coldest one at once, to save system calls of many small phases. Fewer go if
 * there are no more. They count as gone for want of budget. Drops the pool lock meanwhile.
 * [any thread, no pool lock held] */
static void make_room(TsiSpace* s, uint64_t need) {
    uint64_t freed = 0, ns = tsi_os.coarse_ns();
    tsi_lock_take(&s->lock);
    for (bool cold = true; freed < need;) { /* cold ones whole */
        uint32_t chunk = coldest_locked(s, cold, tick_of(ns));
        if (chunk == TSI_STOCK_NONE && (!cold || need > TOGETHER_BYTES)) break;
        if (chunk == TSI_STOCK_NONE) cold = false;
        else freed += evict_locked(s, chunk, cold ? UINT64_MAX : TOGETHER_BYTES);
    }
    if (freed != 0) note_gone_locked(s, freed, ns);
    tsi_lock_give(&s->lock);
}

uint64_t tsi_stock_room(TsiSpace* s, uint64_t bytes, bool learn) {
    if (!tsi_stock_learns(s)) return 0;
    uint64_t got = tsi_stock_reserve(s, bytes, tsi_os.page_bytes);
    if (!learn || got == bytes || tsi_load_relaxed(&s->stock.bytes) == 0) return got;
    make_room(s, bytes - got);
    return got + tsi_stock_reserve(s, bytes - got, tsi_os.page_bytes);
}

/* Moves slabs that share pages, which parts.h decides on, behind the others. The others keep their order; the moved
 * ones may not. Returns the number of the others. [holder of the slabs] */
static unsigned without_parts(const TsiSpace* s, uint32_t* slab_ids, unsigned n) {
    unsigned whole = 0;
    for (unsigned i = 0; i < n; i++) {
        uint32_t id = slab_ids[i];
        if (tsi_slab_shares(s, id)) continue;
        slab_ids[i] = slab_ids[whole];
        slab_ids[whole++] = id;
    }
    return whole;
}

unsigned tsi_stock_choose(TsiSpace* s, uint32_t* slab_ids, unsigned n, bool learn) {
    uint64_t want = 0, bytes = 0;
    unsigned keep = 0;
    if (!tsi_stock_learns(s)) return 0;
    tsi_sort_ids(slab_ids, n); /* low addresses stay: the pool looks there first */
    n = without_parts(s, slab_ids, n);
    for (unsigned i = 0; i < n; i++) want += tsi_slab_class(s, slab_ids[i])->slab_bytes;

    uint64_t got = tsi_stock_room(s, want, learn);
    for (; keep < n; keep++) {
        size_t more = tsi_slab_class(s, slab_ids[keep])->slab_bytes;
        if (bytes + more > got) break;
        bytes += more;
    }
    if (got > bytes) tsi_stock_unreserve(s, got - bytes);
    if (learn && want > bytes) tsi_stock_note_gone(s, want - bytes);
    return keep;
}

void tsi_stock_note_gone(TsiSpace* s, uint64_t bytes) {
    tsi_lock_take(&s->lock);
    note_gone_locked(s, bytes, tsi_os.coarse_ns());
    tsi_lock_give(&s->lock);
}

void tsi_stock_poll(TsiSpace* s, uint64_t ns) {
    TsiStock* stock = &s->stock;
    uint64_t used = tsi_load_relaxed(&stock->used_ns);
    if (tsi_load_relaxed(&stock->budget) <= stock->start) return;
    if (!tsi_clock_is_due(ns, used + TSI_STOCK_SECOND, TSI_STOCK_SECOND)) return;

    tsi_lock_take(&s->lock);
    used = tsi_load_relaxed(&stock->used_ns);
    if (used > ns + TSI_STOCK_SECOND) tsi_store_relaxed(&stock->used_ns, ns); /* the clock was set back */
    uint64_t seconds = tsi_clock_between(used, ns) / TSI_STOCK_SECOND, budget = tsi_load_relaxed(&stock->budget);

    if (seconds != 0) {
        uint64_t to = seconds < 64 ? budget >> seconds : 0;
        set_budget_locked(s, to > stock->start ? to : stock->start);
        tsi_store_relaxed(&stock->used_ns, used + seconds * TSI_STOCK_SECOND);
        int64_t left = tsi_load_relaxed(&stock->left);
        uint64_t freed = evict_coldest_locked(s, left < 0 ? (uint64_t)-left : 0);
        if (freed != 0) note_gone_locked(s, freed, ns);
    }

    tsi_lock_give(&s->lock);
}

/* ---- what phases that go on have emptied ---- */

void tsi_stock_lend(TsiSpace* s, uint64_t bytes) {
    TsiStock* stock = &s->stock;
    if (!tsi_stock_learns(s)) return;
    tsi_lock_take(&s->lock);
    uint64_t budget = tsi_load_relaxed(&stock->budget), more = 0;
    int64_t lacks = (int64_t)bytes - tsi_load_relaxed(&stock->left);
    if (lacks > 0) more = (uint64_t)lacks < stock->limit - budget ? (uint64_t)lacks : stock->limit - budget;
    set_budget_locked(s, budget + more);
    stock->lent += more;
    if (more != 0) tsi_store_relaxed(&stock->used_ns, tsi_os.coarse_ns());
    uint64_t committed = tsi_load_relaxed(&s->committed_bytes);
    if (committed > tsi_load_relaxed(&stock->high)) tsi_store_relaxed(&stock->high, committed);
    tsi_lock_give(&s->lock);
}

/* Returns true if tsi_stock_grown_now has given back more than `committed` bytes within COLD_TICKS, about a tenth of a
 * second: pages are missed at once. After that time clears stock.grown_bytes, and the count begins anew.
 * [pool lock held] */
static bool turns_over_locked(TsiSpace* s, uint64_t committed) {
    TSI_HOLDS(&s->lock);
    TsiStock* stock = &s->stock;
    uint32_t tick = tick_of(tsi_os.coarse_ns());
    if (tick - stock->grown_tick >= COLD_TICKS) {
        stock->grown_tick = tick;
        stock->grown_bytes = 0;
    }
    return stock->grown_bytes > committed;
}

void tsi_stock_grown_now(TsiSpace* s) {
    TsiStock* stock = &s->stock;
    if (tsi_load_relaxed(&stock->bytes) <= TOGETHER_BYTES) { /* a hint */
        tsi_store_relaxed(&stock->high, tsi_load_relaxed(&s->committed_bytes));
        return;
    }

    tsi_lock_take(&s->lock);
    uint64_t committed = tsi_load_relaxed(&s->committed_bytes), high = tsi_load_relaxed(&stock->high),
             kept = tsi_load_relaxed(&stock->bytes);

    if (committed > high && kept > TOGETHER_BYTES && !turns_over_locked(s, high)) {
        uint64_t need = committed - high < TOGETHER_BYTES ? TOGETHER_BYTES : committed - high,
                 freed = evict_coldest_locked(s, need < kept ? need : kept);
        stock->grown_bytes += freed;
        take_back_locked(s, freed);
    }

    committed = tsi_load_relaxed(&s->committed_bytes);
    if (committed > high) tsi_store_relaxed(&stock->high, committed);
    tsi_lock_give(&s->lock);
}

void tsi_stock_settle(TsiSpace* s) {
    TsiStock* stock = &s->stock;
    if (!tsi_stock_learns(s)) return;
    tsi_lock_take(&s->lock);
    uint32_t words = (tsi_load_relaxed(&s->chunk_high) + 63) / 64,
             since = tick_of(tsi_os.coarse_ns()) - stock->looked_tick;
    uint64_t lent = stock->lent, freed = 0;

    for (uint32_t chunk = 0; chunk < words * 64 && freed < lent; chunk++) {
        if (s->bits[chunk / 64].stocked == 0) chunk |= 63; /* none in this word */
        else if (tsi_chunk_is_stocked(s, chunk) && !s->chunks[chunk].held &&
                 tick_of(tsi_os.coarse_ns()) - s->chunks[chunk].stock_tick >= since)
            freed += evict_locked(s, chunk, lent - freed);
    }

    int64_t left = tsi_load_relaxed(&stock->left);
    take_back_locked(s, left > 0 ? (uint64_t)left : 0); /* for pages that went, and room never filled */
    tsi_lock_give(&s->lock);
}

void tsi_stock_looked(TsiSpace* s) {
    tsi_lock_take(&s->lock);
    s->stock.looked_tick = tick_of(tsi_os.coarse_ns());
    tsi_lock_give(&s->lock);
}

uint64_t tsi_stock_give_back(TsiSpace* s, uint64_t bytes) {
    if (tsi_load_relaxed(&s->stock.bytes) == 0) return 0;
    tsi_lock_take(&s->lock);
    uint64_t freed = evict_coldest_locked(s, bytes);
    tsi_lock_give(&s->lock);
    return freed;
}
