/*
 * check.c - see check.h. The checks:
 *
 *   slabs    words are disjoint and within the class; each slab is in exactly the list its tag names
 *   lines    a line with PARKED is in no room; LISTED ones are in exactly one; current ones are neither
 *   heaps    chain length = slab_count; each is in its incarnation's list; counts agree
 *   phases   orphan list length = slab_count; detached count; a drained incarnation holds nothing
 *   space    committed bytes = slabs out of the pool, except retired ones; free counts of chunks; halves of pages that
 *            are in the pool, by bit and tag
 *   drains   the counts of an incarnation's orphans = their live objects; a phase that holds more than its label
 *            expects is marked
 *   charges  a phase's charge = bytes of its slabs; a label's, plus threads' pending bytes, less their grants = charges
 *            of its phases
 */
#include "stats/check.h"

#include "base/check.h"
#include "account/charge.h"
#include "heap/late_frees.h"
#include "state/liveness.h"
#include "state/names.h"
#include "heap/put_off.h"
#include "heap/line.h"
#include "mem/stock.h"
#include "mem/large.h"
#include "mem/parts.h"
#include "mem/quarantine.h"
#include "phase/draining.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#if defined TSI_DEBUG && __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

typedef unsigned long long Num;

typedef struct Check {
    TsiArena* a;
    char* why;
    size_t len;
    bool ok;
    uint64_t committed;
} Check;

/* Records the first invariant that does not hold: sets check->ok to false, and writes the text by a format of printf to
 * check->why, of check->len bytes. Does nothing if check->ok is false already. [no other thread in the allocator] */
static void fail(Check* check, const char* format, ...) {
    va_list args;
    if (!check->ok) return;
    check->ok = false;
    va_start(args, format);
    if (check->len != 0) (void)vsnprintf(check->why, check->len, format, args);
    va_end(args);
}

/* Fails if `found`, a count by the walk, is not `counted`, the one that is kept. of, id: kind and number of its owner,
 * `what`: its name, for the text. [no other thread in the allocator] */
static void check_count(Check* check, const char* of, uint32_t id, const char* what, uint64_t found, uint64_t counted) {
    if (found != counted) fail(check, "%s %u: %llu %s, counted %llu", of, id, (Num)found, what, (Num)counted);
}

/* Checks the words of the line number `id`, of class `cls` and in a slab whose tag has `seq`. heap_at: place of the
 * heap that owns the slab, its index * sizeof(TsiHeap), 0 if none does. Records the first failure by `fail`.
 * [no other thread in the allocator] */
static void check_line(Check* check, unsigned cls, uint32_t id, uint32_t seq, uint32_t heap_at) {
    TsiSpace* s = &check->a->space;
    TsiLine* l = tsi_line(s, id);
    uint64_t full = s->classes->c[cls].full, avail = tsi_load_relaxed(&l->avail);
    uint64_t words = tsi_load_relaxed(&l->freed), freed = words & full;
    uint64_t w0 = tsi_load_relaxed(&tsi_remote(s, id)[0]), w1 = tsi_load_relaxed(&tsi_remote(s, id)[1]);
    uint64_t bits = tsi_remote_bits(w0, w1);
    unsigned flags = tsi_load_relaxed(&l->flags);

    if (!tsi_remote_is(0, w0, seq) || !tsi_remote_is(1, w1, seq))
        fail(check, "line %u: remote words of another incarnation", id);
    if (((avail | bits) & ~full) != 0 || (words | full) != ~0ull) fail(check, "line %u: bits outside the class", id);
    if ((avail & freed) != 0) fail(check, "line %u: slots both ready and freed", id);
    if ((bits & (avail | freed)) != 0) fail(check, "line %u: slots freed twice", id);

    if (heap_at != 0 && (flags & TSI_LINE_PARKED) != 0 && (flags & TSI_LINE_LISTED) != 0)
        fail(check, "line %u: parked and listed", id);
    if (tsi_load_relaxed(&l->home) != heap_at) fail(check, "line %u: home in another heap", id);
    bool plain = (flags & (TSI_LINE_RETIRED | TSI_LINE_PARKED)) == 0 && !tsi_line_is_handled(l);
    if (tsi_load_relaxed(&l->heap_at) != (plain ? heap_at : 0))
        fail(check, "line %u: plain frees end in another heap", id);
    bool waits = heap_at != 0 && (flags & (TSI_LINE_PARKED | TSI_LINE_RETIRED)) == TSI_LINE_PARKED;
    if (waits && (avail | freed) != 0) fail(check, "line %u: parked, and its owner has slots there", id);
}

/* Checks the marks and counts of handles of the line number `id`, of class `cls`, against `tag`, that of its slab.
 * Records the first failure by `fail`. [no other thread in the allocator] */
static void check_handles(Check* check, unsigned cls, uint32_t id, uint64_t tag) {
    TsiSpace* s = &check->a->space;
    TsiLine* l = tsi_line(s, id);
    if ((tag & TSI_SLAB_HANDLED) == 0) {
        if (tsi_line_is_handled(l)) fail(check, "line %u: marked for handles, and its slab is not", id);
        return;
    }
    uint64_t bits = tsi_remote_bits(tsi_load_relaxed(&l->remote[0]), tsi_load_relaxed(&l->remote[1]));
    uint64_t used = s->classes->c[cls].full & ~(tsi_load_relaxed(&l->freed) | bits);
    for (; used != 0; used &= used - 1) {
        uint32_t count = tsi_count_of(tsi_load_relaxed(&tsi_counts(s, id)[tsi_ctz64(used)]), tsi_tag_seq(tag));
        if ((count & 1) != 0) fail(check, "line %u: a slot that is live or ready has an odd count", id);
    }
}

/* Checks the region of the slab number `id`, which a run has claimed: it is counted as full, and has at least as many
 * objects by its map as are counted: those of the run are not yet. Records the first failure by `fail`.
 * [no other thread in the allocator] */
static void check_claimed(Check* check, uint32_t id, uint32_t objects) {
    const TsiRegion* r = tsi_region(&check->a->space, id);
    uint32_t issued = tsi_load_relaxed(&r->issued), rel = tsi_load_relaxed(&r->rel);
    if (rel != tsi_region_room(r)) fail(check, "region %u: claimed, and %u bytes are used", id, rel);
    if (objects < issued) fail(check, "region %u: claimed, with %u objects, counted %u", id, objects, issued);
}

/* Checks the region of the slab number `id`, of class `cls`: its generation, that no object starts beyond its end,
 * that the counts of objects issued and freed, and of gaps, are those of the map, and that nobody frees in it. heap_at:
 * place of the heap that owns it, its index * sizeof(TsiHeap), 0 if none does. A life that has ended is passed by.
 * Records the first failure by `fail`. [no other thread in the allocator] */
static void check_region(Check* check, uint32_t id, unsigned cls, uint32_t heap_at) {
    TsiSpace* s = &check->a->space;
    const TsiRegion* r = tsi_region(s, id);
    uint64_t word = tsi_load_relaxed(&r->word);
    unsigned gen = tsi_region_gen(word), owned_by = tsi_load_relaxed(&r->heap_at);
    uint32_t objects = 0, own = 0, other = 0, gaps = 0, granules = s->classes->c[cls].slab_bytes >> TSI_GRANULE_SHIFT;
    uint32_t end = tsi_load_relaxed(&r->rel) >> TSI_GRANULE_SHIFT;

    if (owned_by != 0 && owned_by != heap_at) fail(check, "region %u: plain frees end in another heap", id);
    if (tsi_region_entered(word) != 0) fail(check, "region %u: somebody frees in it", id);
    if (gen == 0) return; /* ended, and to be cleared */
    if (gen != tsi_region_life(r)) fail(check, "region %u: generation %u, its owner's %u", id, gen, tsi_region_life(r));
    if (end > granules) fail(check, "region %u: %u granules used of %u", id, end, granules);

    bool in_gap = false, claimed = tsi_load_relaxed(&r->claimed);
    for (uint32_t g = 0; g < granules && check->ok; g++) {
        unsigned byte = tsi_load_relaxed(&tsi_load_relaxed(&r->map)[g]);
        bool starts = (byte & TSI_GEN_BYTE) == gen && (g != end || byte != (gen | TSI_MARK_GAP)); /* R1 in region.h */
        if (starts && g >= end) fail(check, "region %u: an object starts at %u, beyond %u", id, g, end);
        if (starts) in_gap = byte == (gen | TSI_MARK_GAP);
        gaps += in_gap && g < end;
        if (!starts || in_gap) continue;
        objects++;
        own += (byte & TSI_MARK_OWN) != 0;
        other += (byte & TSI_MARK_OTHER) != 0;
    }

    if (r->solo && (objects != 1 || tsi_load_relaxed(&r->rel) == 0))
        fail(check, "region %u: %u objects are alone", id, objects);
    if (claimed) check_claimed(check, id, objects); /* R5 */
    else check_count(check, "region", id, "objects", objects, tsi_load_relaxed(&r->issued));
    if (!claimed) check_count(check, "region", id, "granules of gaps", gaps, tsi_load_relaxed(&r->gap_granules));
    check_count(check, "region", id, "freed by its owner", own, tsi_load_relaxed(&r->freed));
    check_count(check, "region", id, "freed by others", other, tsi_region_objects(word));
}

/* Returns true if the slab number `slab_id` is in the chain that begins with `head`, a slab's number + 1, 0 for none;
 * false also if the chain has a cycle before it. [no other thread in the allocator] */
static bool in_chain(Check* check, uint32_t head, uint32_t slab_id) {
    uint32_t n = 0;
    for (uint32_t at = head; at != 0; at = tsi_slab(&check->a->space, at - 1)->next) {
        if (at - 1 == slab_id) return true;
        if (++n > 1u << 24) break;
    }
    return false;
}

/* Checks the tag of the slab number `id`, of class `cls`, and its region or lines and handles, and that an orphan is
 * listed if its list is short; adds its bytes to check->committed. Slabs in the pool, retired ones and the inside of
 * large objects pass, and add nothing. Records the first failure by `fail`. [no other thread in the allocator] */
static void check_slab(Check* check, uint32_t id, unsigned cls) {
    TsiSpace* s = &check->a->space;
    const TsiClass* shape = &s->classes->c[cls];
    uint64_t tag = tsi_load_relaxed(&tsi_slab(s, id)->tag);
    unsigned state = tsi_tag_state(tag);
    if (state == TSI_SLAB_POOL || state == TSI_SLAB_RETIRED || state == TSI_SLAB_INSIDE) return;

    check->committed += tsi_slab_bytes(s, cls, id);
    if (state == TSI_SLAB_PURGING || state == TSI_SLAB_PARTIAL)
        fail(check, "slab %u: claimed, and nobody works on it", id);
    if (state != TSI_SLAB_OWNED && state != TSI_SLAB_ORPHAN) return;

    uint32_t heap_at = state == TSI_SLAB_OWNED ? tsi_tag_index(tag) * (uint32_t)sizeof(TsiHeap) : 0;
    bool region = tsi_class_is_region(cls);
    if (region) check_region(check, id, cls, heap_at);
    for (uint32_t i = 0, first = tsi_first_line(shape, id); !region && i < 1u << shape->lines_log2; i++) {
        check_line(check, cls, first + i, tsi_tag_seq(tag), heap_at);
        check_handles(check, cls, first + i, tag);
    }

    if (state == TSI_SLAB_OWNED) {
        if (tsi_tag_index(tag) >= tsi_table_used(&check->a->heaps)) fail(check, "slab %u: no such heap", id);
    } else {
        TsiInc* inc = tsi_inc(&check->a->phases, tsi_tag_index(tag));
        if (tsi_inc_era(inc) == 0) fail(check, "slab %u: orphan of a reused incarnation", id);
        /* Membership both ways is known from the counts; look the slab up only in short lists. */
        else if (tsi_load_relaxed(&inc->slab_count) < 64 && !in_chain(check, inc->orphans, id))
            fail(check, "slab %u: orphan not listed", id);
    }
}

/* Returns true if the stock has the page of p, an address of the payload. [no other thread in the allocator] */
static bool is_kept(const TsiSpace* s, const uint8_t* p) {
    size_t at = (size_t)(p - s->base) >> TSI_STOCK_SHIFT, in_chunk = at & (TSI_STOCK_UNITS - 1);
    return s->chunks[at / TSI_STOCK_UNITS].stock[in_chunk / 64] >> (in_chunk % 64) & 1;
}

/* Checks that the pages that a thread's drains have put off add up: D2 of heap/put_off.h; passes a binding that no
 * thread uses. Records the first failure by `fail`. [no other thread in the allocator] */
static void check_put_off(Check* check, const TsiBinding* b) {
    uint64_t bytes = 0;
    if (!tsi_load_relaxed(&b->in_use)) return;
    for (unsigned n = 0; n < b->put_off_count; n++)
        bytes += b->put_off[(b->put_off_first + n) % TSI_PUT_OFF_PHASES].bytes;
    if (bytes != b->put_off_bytes || bytes > TSI_PUT_OFF_BYTES)
        fail(check, "binding %u: %u bytes put off, %llu in entries", b->index, b->put_off_bytes, (Num)bytes);
}

/* Checks that no slab out of the pool has pages in the stock (stock.h, K1), that no chunk is held, that the budget is
 * what is granted, kept and left (K2, K4), and by check_put_off what drains have put off; adds the stock's bytes to
 * check->committed. Records the first failure by `fail`. [no other thread in the allocator] */
static void check_stock(Check* check) {
    TsiSpace* s = &check->a->space;
    uint64_t kept = 0, granted = 0;
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        uint64_t here = 0;
        unsigned cls = tsi_chunk_class(s, chunk);
        for (unsigned n = 0; n < TSI_STOCK_UNITS / 64; n++) here += tsi_popcount(s->chunks[chunk].stock[n]);
        kept += here << TSI_STOCK_SHIFT;
        if ((here != 0) != tsi_chunk_is_stocked(s, chunk)) fail(check, "chunk %u: in the stock or not", chunk);
        if (s->chunks[chunk].held) fail(check, "chunk %u: held, and nobody gives its pages back", chunk);
        if (here != 0 && tsi_load_relaxed(&s->chunks[chunk].dirty) == 0) fail(check, "chunk %u: taken for zero", chunk);
        bool has_slabs = here != 0 && cls != 0 && cls != TSI_CLASS_CONT;
        for (uint32_t i = 0; has_slabs && i < tsi_chunk_slab_count(s, cls); i++) {
            uint32_t id = tsi_slab_id(chunk, i);
            if (tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, id)->tag)) == TSI_SLAB_POOL) continue;
            if (tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, id)->tag)) == TSI_SLAB_INSIDE) continue;
            const uint8_t* p = tsi_slab_payload(s, &s->classes->c[cls], id);
            for (size_t at = 0, bytes = tsi_slab_bytes(s, cls, id); at < bytes; at += (size_t)1 << TSI_STOCK_SHIFT)
                if (is_kept(s, p + at)) fail(check, "slab %u: in use, and its pages are in the stock", id);
        }
    }

    for (uint32_t n = 0; n < tsi_table_used(&check->a->bindings); n++) {
        const TsiWarm* warm = &((TsiBinding*)tsi_table_at(&check->a->bindings, n))->warm;
        granted += warm->quota + tsi_load_relaxed(&warm->lent);
        check_put_off(check, tsi_table_at(&check->a->bindings, n));
    }

    if (kept != tsi_load_relaxed(&s->stock.bytes))
        fail(check, "stock: %llu bytes by bits, counted %llu", (Num)kept, (Num)tsi_load_relaxed(&s->stock.bytes));
    if ((int64_t)(kept + granted) + tsi_load_relaxed(&s->stock.left) != (int64_t)tsi_load_relaxed(&s->stock.budget))
        fail(check, "budget %llu: %llu kept, %llu granted, %lld left", (Num)tsi_load_relaxed(&s->stock.budget),
             (Num)kept, (Num)granted, (long long)tsi_load_relaxed(&s->stock.left));
    if (tsi_stock_learns(s) && s->stock.start + s->stock.lent > tsi_load_relaxed(&s->stock.budget)) /* K4 */
        fail(check, "budget %llu: %llu lent", (Num)tsi_load_relaxed(&s->stock.budget), (Num)s->stock.lent);
    check->committed += kept;
}

/* Checks that the slabs in the quarantine's list are WARM, that their bytes are its sum and within its limit, and that
 * the last one is its last (quarantine.h, K5). Records the first failure by `fail`.
 * [no other thread in the allocator] */
static void check_quarantine(Check* check) {
    TsiSpace* s = &check->a->space;
    uint64_t bytes = 0;
    uint32_t last = 0;
    for (uint32_t at = s->quarantine.first; at != 0; at = tsi_slab(s, at - 1)->next) {
        unsigned state = tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, at - 1)->tag));
        if (state != TSI_SLAB_WARM) fail(check, "slab %u: in the quarantine, in state %u", at - 1, state);
        bytes += tsi_slab_class(s, at - 1)->slab_bytes;
        last = at;
    }
    if (bytes != tsi_quarantine_bytes(s) || last != s->quarantine.last || bytes > s->quarantine.most)
        fail(check, "quarantine: %llu bytes of %llu, counted %llu", (Num)bytes, (Num)s->quarantine.most,
             (Num)tsi_quarantine_bytes(s));
}

/* Checks large objects, by their first units (large.h, V1 to V3): that bits and tags agree on which units are used and
 * which are inside of an object, that each object has at least the units that its bytes need, and the sum of the units
 * set aside. Records the first failure by `fail`. [no other thread in the allocator] */
static void check_units(Check* check) {
    TsiSpace* s = &check->a->space;
    unsigned per_chunk = tsi_chunk_slab_count(s, TSI_CLASS_LARGE);
    uint64_t aside = 0;
    uint32_t left = 0; /* units of the object that the walk is in */

    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high) && check->ok; chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk);
        bool open = cls == TSI_CLASS_LARGE && s->chunks[chunk].units != (1u << per_chunk) - 1;
        if (open != tsi_chunk_is_open(s, chunk)) fail(check, "chunk %u: open to large objects or not", chunk);
        if (cls == TSI_CLASS_CONT) {
            if (left < per_chunk) fail(check, "chunk %u: no large object fills it", chunk);
            left -= per_chunk;
        }

        for (uint32_t i = 0; cls == TSI_CLASS_LARGE && i < per_chunk; i++) {
            uint32_t id = tsi_slab_id(chunk, i);
            bool used = s->chunks[chunk].units >> i & 1;
            unsigned state = tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, id)->tag));
            if (used == (state == TSI_SLAB_POOL)) fail(check, "unit %u: used, by its bit or by its tag", id);
            if (used && (state == TSI_SLAB_INSIDE) != (left != 0))
                fail(check, "unit %u: inside of an object or not", id);
            if (!used && left != 0) fail(check, "unit %u: free, and inside of an object", id);
            if (used && left == 0) {
                uint32_t needs = tsi_large_units(s, tsi_slab_bytes(s, cls, id));
                left = tsi_large_span(s, id);
                if (left < needs) fail(check, "unit %u: %u units, where it needs %u", id, left, needs);
                aside += tsi_units_aside(s, tsi_unit_position(s, id), needs, left);
            }
            left -= left != 0;
        }
        if (cls != TSI_CLASS_LARGE && cls != TSI_CLASS_CONT && left != 0)
            fail(check, "chunk %u: a large object reaches into it", chunk);
    }

    check_count(check, "large objects", 0, "units set aside", aside, s->set_aside);
}

/* Checks all chunks and slabs, large objects, the stock, the quarantine, and that check->committed, 0 on entry, ends
 * up as the committed bytes. Records the first failure by `fail`. [no other thread in the allocator] */
static void check_space(Check* check) {
    TsiSpace* s = &check->a->space;
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk), pooled = 0;
        if (cls == 0 || cls == TSI_CLASS_CONT) continue;
        unsigned n = tsi_chunk_slab_count(s, cls);
        for (uint32_t i = 0; i < n; i++) {
            bool in = tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, tsi_slab_id(chunk, i))->tag)) == TSI_SLAB_POOL;
            pooled += in;
            if (!in && tsi_parts_share(s, cls) && i >= s->chunks[chunk].fresh)
                fail(check, "slab %u: used, and not known to have been", tsi_slab_id(chunk, i));
            check_slab(check, tsi_slab_id(chunk, i), cls);
            if (tsi_parts_share(s, cls) && in != (s->chunks[chunk].parts[i / 64] >> i % 64 & 1))
                fail(check, "slab %u: in the pool, by its bit or by its tag", tsi_slab_id(chunk, i));
        }
        if (cls != TSI_CLASS_LARGE)
            check_count(check, "chunk", chunk, "slabs in the pool", pooled, s->chunks[chunk].free_count);
    }

    check_units(check);
    check_stock(check);
    check_quarantine(check);
    if (check->committed != tsi_load_relaxed(&s->committed_bytes))
        fail(check, "committed bytes: %llu by tags, counted %llu", (Num)check->committed,
             (Num)tsi_load_relaxed(&s->committed_bytes));
}

/* Checks one list of lines in the room of the heap h, of class `cls`. at: the first line's number + 1, 0 for an empty
 * list. Records the first failure by `fail`. [no other thread in the allocator] */
static void check_listed(Check* check, TsiHeap* h, unsigned cls, uint32_t at) {
    TsiSpace* s = &check->a->space;
    for (uint32_t n = 0; at != 0 && check->ok; at = tsi_line(s, at - 1)->link) {
        TsiLine* l = tsi_line(s, at - 1);
        uint64_t tag = tsi_load_relaxed(&tsi_slab(s, tsi_slab_of_line(s, at - 1))->tag);
        if ((tsi_load_relaxed(&l->flags) & TSI_LINE_LISTED) == 0) fail(check, "line %u: in a room, not marked", at - 1);
        if (tsi_tag_state(tag) != TSI_SLAB_OWNED) fail(check, "line %u: in a room, slab not owned", at - 1);
        else if (tsi_load_relaxed(&tsi_heap(check->a, tsi_tag_index(tag))->word) != tsi_load_relaxed(&h->word))
            fail(check, "line %u: in a room of another owner", at - 1);
        if (tsi_class_of_line(s, at - 1) != cls) fail(check, "line %u: in a room of another class", at - 1);
        if (++n > 1u << 24) fail(check, "heap %u: room of class %u has a cycle", h->index, cls);
    }
}

/* Checks the current lines and the lists of the room of h, which has one: that current lines are neither parked nor
 * listed, and the lists by check_listed. Records the first failure by `fail`. [no other thread in the allocator] */
static void check_room(Check* check, TsiHeap* h) {
    for (unsigned cls = 1; cls <= TSI_SMALL_CLASSES; cls++) {
        TsiLine* cur = h->room->cur[cls];
        if (cur != tsi_no_cur[0] && (tsi_load_relaxed(&cur->flags) & (TSI_LINE_PARKED | TSI_LINE_LISTED)) != 0)
            fail(check, "heap %u: current line of class %u is parked or listed", h->index, cls);
        check_listed(check, h, cls, h->room->head[cls]);
        check_listed(check, h, cls, h->room->back[cls]);
    }
}

/* Checks the heap h, which is in the list of `inc`: its state and incarnation, that its slabs have its tag and are as
 * many as it counts, and its room if it has one. Adds the bytes of its slabs to *bytes. Records the first failure by
 * `fail`. [no other thread in the allocator] */
static void check_heap(Check* check, TsiInc* inc, TsiHeap* h, uint64_t* bytes) {
    TsiSpace* s = &check->a->space;
    uint64_t word = tsi_load_relaxed(&h->word);
    unsigned state = tsi_heap_state(word);
    uint32_t n = 0;
    /* A heap that a sweep without a membarrier has left (S3) may stay so for as long as its owner does nothing. */
    bool left = state == TSI_HEAP_REVOKED && h->revoker == TSI_NO_TICKET;
    bool passing = state == TSI_HEAP_SEIZED || state == TSI_HEAP_REVOKED;
    bool nobodys = state == TSI_HEAP_FREE || state == TSI_HEAP_DEAD;
    if ((passing && !left) || nobodys) fail(check, "heap %u: state %u in an incarnation's list", h->index, state);
    if (tsi_ref_index(tsi_load_relaxed(&h->ref)) != inc->index)
        fail(check, "heap %u: listed under another incarnation", h->index);

    for (uint32_t at = h->slabs; at != 0 && check->ok; at = tsi_slab(s, at - 1)->next) {
        uint64_t tag = tsi_load_relaxed(&tsi_slab(s, at - 1)->tag);
        if (tsi_tag_state(tag) != TSI_SLAB_OWNED || tsi_tag_index(tag) != h->index)
            fail(check, "heap %u: slab %u is not its own", h->index, at - 1);
        if (++n > 1u << 24) fail(check, "heap %u: cycle in its slabs", h->index);
        *bytes += tsi_slab_bytes(s, tsi_class_of_slab(s, at - 1), at - 1);
    }

    check_count(check, "heap", h->index, "slabs", n, tsi_load_relaxed(&h->slab_count));
    if (state == TSI_HEAP_LIVE && h->room != NULL) check_room(check, h);
    bool bare = h->room == NULL && h->regions == n && tsi_word_is(&h->key, tsi_load_relaxed(&h->ref));
    if (state == TSI_HEAP_LENT && !bare)
        fail(check, "heap %u: lent, and it needs more than its record", h->index); /* H3 */
}

/* Checks an incarnation's counts of draining objects against `held`, what its orphans hold by their words. Records the
 * first failure by `fail`. [no other thread in the allocator] */
static void check_drain(Check* check, TsiInc* inc, TsiHolding held) {
    unsigned state = tsi_inc_state(inc);
    bool drains = held.objects != 0 && state != TSI_INC_ACTIVE && state != TSI_INC_RELEASED;
    if (memcmp(&inc->holding, &held, sizeof held) != 0)
        fail(check, "incarnation %u: orphans hold %llu objects of %llu bytes, counted %llu of %llu", inc->index,
             (Num)held.objects, (Num)held.live_bytes, (Num)inc->holding.objects, (Num)inc->holding.live_bytes);
    if (inc->draining.label != (drains ? tsi_inc_label(inc) + 1 : 0))
        fail(check, "incarnation %u: draining under label %u", inc->index, inc->draining.label);
    if (drains && memcmp(&inc->draining.held, &held, sizeof held) != 0)
        fail(check, "incarnation %u: its label was told of other objects", inc->index);
    TsiExpected expected = tsi_draining_expected(tsi_label(&check->a->phases.labels, tsi_inc_label(inc)));
    bool over = drains && tsi_is_unexpected(&expected, held.objects, held.live_bytes);
    if (over && !inc->draining.over) fail(check, "incarnation %u: holds more than expected, unmarked", inc->index);
}

/* Checks an incarnation that is not free: each heap by check_heap, the links and states of its orphans, its counts of
 * heaps, detached heaps and orphans, what it says of objects that orphans hold and have issued, and that its charge is
 * the bytes of all its slabs. Records the first failure by `fail`. [no other thread in the allocator] */
static void check_inc(Check* check, TsiInc* inc) {
    uint32_t heaps = 0, detached = 0, orphans = 0;
    TsiTotals issued = {0, 0};
    TsiHolding held = {0, 0, 0};
    uint64_t bytes = 0, charge = tsi_load_relaxed(&inc->charge) & TSI_CHARGE_MASK;

    for (uint32_t at = inc->heaps; at != 0 && check->ok; at = tsi_heap(check->a, at - 1)->inc_next, heaps++) {
        TsiHeap* h = tsi_heap(check->a, at - 1);
        check_heap(check, inc, h, &bytes);
        if (tsi_heap_state(tsi_load_relaxed(&h->word)) == TSI_HEAP_DETACHED) detached++;
    }

    for (uint32_t at = inc->orphans, prev = 0; at != 0 && check->ok;
         prev = at, at = tsi_slab(&check->a->space, at - 1)->next, orphans++) {
        if (tsi_slab(&check->a->space, at - 1)->prev != prev)
            fail(check, "incarnation %u: orphan list is broken", inc->index);
        if (tsi_tag_state(tsi_load_relaxed(&tsi_slab(&check->a->space, at - 1)->tag)) != TSI_SLAB_ORPHAN)
            fail(check, "incarnation %u: slab %u in its orphan list is none", inc->index, at - 1);
        unsigned cls = tsi_class_of_slab(&check->a->space, at - 1);
        TsiSlabSum sum = tsi_slab_sum(&check->a->space, cls, at - 1);
        tsi_totals_add(&issued, sum.issued);
        uint64_t slab_bytes = tsi_slab_bytes(&check->a->space, cls, at - 1);
        tsi_holding_add(&held, (TsiHolding){sum.live.objects, sum.live.bytes, slab_bytes});
    }

    bytes += held.slab_bytes;
    check_drain(check, inc, held);
    if (issued.objects != inc->orphaned.objects || issued.bytes != inc->orphaned.bytes)
        fail(check, "incarnation %u: orphans have issued %llu objects, counted %llu", inc->index, (Num)issued.objects,
             (Num)inc->orphaned.objects);

    if (bytes != charge) fail(check, "incarnation %u: %llu bytes, charged %llu", inc->index, (Num)bytes, (Num)charge);
    check_count(check, "incarnation", inc->index, "heaps", heaps, tsi_load_relaxed(&inc->heap_count));
    check_count(check, "incarnation", inc->index, "detached", detached, tsi_load_relaxed(&inc->detached));
    check_count(check, "incarnation", inc->index, "orphans", orphans, tsi_load_relaxed(&inc->slab_count));
    if (inc->drained && (heaps != 0 || orphans != 0))
        fail(check, "incarnation %u: drained, and holds slabs", inc->index);
}

/* Checks that the bytes charged to the label with the record `at` are those of its phases, of grants and of threads'
 * pending sums. Records the first failure by `fail`. [no other thread in the allocator] */
static void check_label(Check* check, uint32_t at) {
    TsiLabel* label = tsi_label(&check->a->phases.labels, at);
    int64_t sum = (int64_t)tsi_load_relaxed(&label->committed);

    for (uint32_t n = 0; n < tsi_table_used(&check->a->bindings); n++) {
        const TsiBinding* b = tsi_table_at(&check->a->bindings, n);
        const TsiPending* pending = &b->pending[at % TSI_PENDING_LABELS];
        if ((uint32_t)tsi_load_relaxed(&pending->whose) == at + 1) sum += pending->bytes;
        uint64_t grant = tsi_load_relaxed(&pending->grant);
        if (grant >> TSI_BUDGET_SHIFT == at + 1) sum -= (int64_t)(grant & TSI_BUDGET_BYTES);
    }

    for (uint32_t n = 1; n < tsi_table_used(&check->a->phases.incs); n++) {
        TsiInc* inc = tsi_inc(&check->a->phases, n);
        if (tsi_inc_era(inc) == 0 || tsi_inc_label(inc) != at) continue;
        sum -= (int64_t)(tsi_load_relaxed(&inc->charge) & TSI_CHARGE_MASK);
    }
    if (sum != 0) fail(check, "label %u: charged with %lld bytes that its phases do not have", at, (long long)sum);
}

bool tsi_check_allocator(SlabAllocator* owner, char* why, size_t why_len) {
    TsiPublic* pub = (TsiPublic*)(void*)owner;
    Check check = {pub->arena, why, why_len, true, 0};
    if (check.a == NULL) return true;
    tsi_late_count(check.a);
    check_space(&check);
    for (uint32_t n = 1; n < tsi_table_used(&check.a->phases.incs); n++)
        if (tsi_inc_era(tsi_inc(&check.a->phases, n)) != 0) check_inc(&check, tsi_inc(&check.a->phases, n));
    for (uint32_t at = 0; at < tsi_table_used(&check.a->phases.labels.records); at++) check_label(&check, at);
    return check.ok;
}

#ifdef TSI_DEBUG

enum { RECORDS_A_CLOSE = 512 };

/* Returns true if the process has one thread; false if it has more, or if libc does not tell: glibc does from 2.32 on.
 * Changes nothing. [any thread, needs no lock] */
static bool is_alone(void) {
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded;
#else
    return false;
#endif
}

void tsi_check_closed(SlabAllocator* owner) {
    static uint64_t credit; /* of one thread */
    char why[160], text[256];
    TsiArena* a = ((TsiPublic*)(void*)owner)->arena;
    if (!is_alone() || a == NULL) return;

    uint64_t slabs = (uint64_t)TSI_CHUNK_SLABS * tsi_load_relaxed(&a->space.chunk_high);
    uint64_t cost = slabs + tsi_table_used(&a->phases.incs);
    credit += RECORDS_A_CLOSE;
    if (credit < cost) return;
    credit = 0;

    if (tsi_check_allocator(owner, why, sizeof why)) return;
    int n = snprintf(text, sizeof text, "temporal-slab: after a close: %s\n", why);
    tsi_os.complain(text, (size_t)n);
    TSI_CHECK(false);
}

#endif
