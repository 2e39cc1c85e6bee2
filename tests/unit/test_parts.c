/*
 * test_parts.c - regions of half a page: which are taken, when their pages go back, who begins with one, and where there are none.
 */
#include "fake_os.h"
#include "kit/one.h"

#include "heap/bump.h"
#include "heap/heap.h"
#include "mem/parts.h"
#include "mem/pool.h"
#include "mem/stock.h"

#include <semaphore.h>

enum { PART = TSI_PART_BYTES, PAGE = 4096, SIZE = 100, OPEN = 40 };

static void open_with(SlabOptions o) {
    kit_open_with(o);
    fake_os_clear();
}
static void open_cold(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    open_with(o);
    REQUIRE_EQ(tsi_os.page_bytes, PAGE);
}
static void open_warm(void) {
    open_with(kit_options());
    REQUIRE_EQ(tsi_os.page_bytes, PAGE);
}

static uint32_t take(void) {
    uint32_t id;
    REQUIRE(tsi_space_take(space, TSI_CLASS_PART, 0, &id));
    return id;
}
static void give(uint32_t id) { (void)tsi_space_purge(space, &id, 1); }
static uint8_t* at(uint32_t id) { return tsi_slab_payload(space, &space->classes->c[TSI_CLASS_PART], id); }
static uint64_t purged(void) {
    uint64_t bytes = 0;
    for (unsigned n = 0; n < fake_os.run_count; n++)
        bytes += fake_os.runs[n].from - (uintptr_t)space->base < space->payload_bytes ? fake_os.runs[n].bytes : 0;
    return bytes;
}

/* ---- pages ---- */

static void a_page_goes_with_its_second_half(void) {
    uint32_t id[8];
    for (unsigned n = 0; n < 8; n++) REQUIRE_EQ(id[n] = take(), n);
    REQUIRE_EQ(kit_committed_now(a), 8 * PART);
    for (unsigned n = 0; n < 8; n++) REQUIRE_EQ(at(id[n]), space->base + n * PART);
    give(id[2]);
    REQUIRE_EQ(fake_os.run_count, 0);
    REQUIRE_EQ(kit_committed_now(a), 7 * PART);
    give(id[3]);
    REQUIRE_EQ(fake_os.run_count, 1);
    REQUIRE(fake_os.runs[0].from == (uintptr_t)space->base + PAGE && fake_os.runs[0].bytes == PAGE);
    uint32_t together[5] = {id[7], id[0], id[6], id[4], id[5]}; /* pages 2 and 3, and half of page 0 */
    REQUIRE_EQ(tsi_space_purge(space, together, 5), 2 * PAGE);
    REQUIRE_EQ(fake_os.run_count, 2);
    REQUIRE(fake_os.runs[1].from == (uintptr_t)space->base + 2 * PAGE && fake_os.runs[1].bytes == 2 * PAGE);
    REQUIRE_EQ(kit_committed_now(a), PART);
    REQUIRE_EQ(tsi_chunk_class(space, 0), TSI_CLASS_PART);
    give(id[1]);
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_EQ(tsi_chunk_class(space, 0), 0); /* with its last page */
}

static void a_half_of_a_used_page_is_taken_first(void) {
    uint32_t id[200];
    for (unsigned n = 0; n < 200; n++) id[n] = take();
    for (unsigned n = 0; n < 70; n++) give(id[n]); /* 35 whole pages */
    give(id[131]);
    give(id[180]);
    REQUIRE_EQ(take(), id[131]);
    REQUIRE_EQ(take(), id[180]);
    REQUIRE_EQ(take(), id[0]);
    REQUIRE_EQ(take(), id[1]);
    for (unsigned n = 0; n < 200; n++)
        if (n < 2 || n >= 70) give(id[n]);
}

/* All that a chunk has, and no more: the next one is of another chunk. Nothing lies in the other half of its addresses. */
static void a_chunk_has_256(void) {
    uint32_t id[TSI_CHUNK_SLABS + 1];
    TsiPlace place;
    for (unsigned n = 0; n <= TSI_CHUNK_SLABS; n++) id[n] = take();
    REQUIRE_EQ(id[TSI_CHUNK_SLABS - 1], TSI_CHUNK_SLABS - 1);
    REQUIRE_EQ(id[TSI_CHUNK_SLABS], 1 << 8);
    REQUIRE_EQ(tsi_space_locate(space, space->base + TSI_CHUNK_SLABS * PART - 16, &place), TSI_PLACE_OK);
    REQUIRE_EQ(place.slab_id, TSI_CHUNK_SLABS - 1);
    for (uint32_t from = TSI_CHUNK_SLABS * PART; from < 1u << TSI_CHUNK_SHIFT; from += 512) {
        REQUIRE_EQ(tsi_space_locate(space, space->base + from, &place), TSI_PLACE_GONE);
        REQUIRE_EQ(tsi_load_relaxed(&tsi_entries_of(space, 0)[from >> TSI_LINE_MIN_SHIFT]), 0);
        REQUIRE(!slab_free_checked(a, space->base + from));
        /* A handle that is made up */
        uint32_t granule = from >> TSI_GRANULE_SHIFT;
        REQUIRE(!free_obj(a, tsi_handle_make(tsi_arena(a)->secret, granule, 0)));
    }
    (void)tsi_space_purge(space, id, TSI_CHUNK_SLABS + 1);
}

static uint32_t meanwhile[4];
static void take_meanwhile(void* unused) {
    (void)unused;
    for (unsigned n = 0; n < 4; n++) meanwhile[n] = take();
}

/* Whoever takes parts while a page is on its way gets none of it, though one half was in the pool before. */
static void nobody_has_a_page_that_goes(void) {
    uint32_t id[4];
    for (unsigned n = 0; n < 4; n++) id[n] = take();
    give(id[1]);
    fake_os.at_call[FAKE_PURGE] = take_meanwhile;
    give(id[0]);
    for (unsigned n = 0; n < 4; n++) REQUIRE_EQ(meanwhile[n], 4 + n);
    REQUIRE_EQ(take(), id[0]);
    for (unsigned n = 0; n < 4; n++) give(meanwhile[n]);
    for (unsigned n = 0; n < 4; n++)
        if (n != 1) give(id[n]);
}

/* The page that goes has a half that was never used. What is taken meanwhile is known to have been: a fork child, and the
 * floors of a chunk that leaves its class, look no further than that. */
static void a_half_that_was_never_used_goes_with_its_page(void) {
    uint32_t id[3];
    for (unsigned n = 0; n < 3; n++) id[n] = take();
    fake_os.at_call[FAKE_PURGE] = take_meanwhile;
    give(id[2]);
    for (unsigned n = 0; n < 4; n++) REQUIRE_EQ(meanwhile[n], 4 + n);
    REQUIRE_EQ(space->chunks[0].fresh, 8);
    REQUIRE_EQ(take(), id[2]);
    REQUIRE_EQ(take(), 3);
    for (unsigned n = 0; n < 4; n++) give(meanwhile[n]);
    for (unsigned n = 0; n < 3; n++) give(id[n]);
    give(3);
}

/* The last free half of a chunk is claimed: the chunk has nothing to hand out meanwhile. */
static void a_claim_may_take_a_chunks_last(void) {
    uint32_t id[TSI_CHUNK_SLABS];
    for (unsigned n = 0; n < TSI_CHUNK_SLABS; n++) id[n] = take();
    give(id[9]);
    fake_os.at_call[FAKE_PURGE] = take_meanwhile;
    give(id[8]);
    for (unsigned n = 0; n < 4; n++) REQUIRE_EQ(meanwhile[n], (1 << 8) + n);
    (void)tsi_space_purge(space, meanwhile, 4);
    for (unsigned n = 0; n < TSI_CHUNK_SLABS; n++)
        if (n != 8 && n != 9) give(id[n]);
}

static void retired_halves_go_with_the_other(void) {
    uint32_t id[6];
    for (unsigned n = 0; n < 6; n++) id[n] = take();
    tsi_parts_retire(space, id[0]);
    REQUIRE_EQ(fake_os.run_count, 0); /* the other is used */
    give(id[1]);
    REQUIRE_EQ(purged(), PAGE);
    give(id[3]);
    tsi_parts_retire(space, id[2]); /* the other is in the pool, and stays there */
    REQUIRE_EQ(purged(), 2 * PAGE);
    tsi_parts_retire(space, id[4]);
    tsi_parts_retire(space, id[5]);
    REQUIRE_EQ(purged(), 3 * PAGE);
    REQUIRE_EQ(take(), id[1]);
    REQUIRE_EQ(take(), id[3]);
    REQUIRE_EQ(take(), 6);
    give(6);
    give(id[3]);
    REQUIRE_EQ(purged(), 5 * PAGE); /* again with the retired one */
    give(id[1]);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* ---- phases ---- */

static void* object[OPEN];
static epoch_domain_t* begin_of(unsigned n, size_t bytes) {
    epoch_domain_t* d = epoch_domain_create_labeled(a, "small");
    REQUIRE(d != NULL);
    for (size_t left = bytes; left >= SIZE; left -= SIZE) {
        REQUIRE((object[n] = kit_hide(epoch_domain_malloc(d, SIZE))) != NULL);
        memset(object[n], (int)n, SIZE);
    }
    return d;
}
static bool is_part(const void* p) { return kit_place(a, p).cls == TSI_CLASS_PART; }
static void phase_of(size_t bytes) { epoch_domain_destroy(begin_of(0, bytes)); }

/* The first of a label has a page; those that follow while it is open have what it has needed so far. */
static void open_phases_tell(void) {
    epoch_domain_t* d[OPEN];
    for (unsigned n = 0; n < OPEN; n++) {
        d[n] = begin_of(n, 1000);
        REQUIRE_EQ(is_part(object[n]), n != 0);
    }
    REQUIRE_EQ(kit_committed_now(a), PAGE + (OPEN - 1) * PART);
    kit_check(a);
    for (unsigned n = 0; n < OPEN; n++) {
        REQUIRE_EQ(*(uint8_t*)object[n], n);
        REQUIRE_EQ(slab_usable_size(a, object[n]), 112);
        epoch_domain_destroy(d[n]);
        kit_check(a);
    }
    REQUIRE_EQ(kit_live(a), 0);
}

/* Phases that have ended tell: four small ones in a row, and none that was larger since. */
static void ended_phases_tell(void) {
    for (unsigned n = 0; n < 3; n++) phase_of(1000);
    epoch_domain_t* d = begin_of(0, 1000);
    REQUIRE(!is_part(object[0]));
    epoch_domain_destroy(d);
    slab_trim(a); /* or it waits with its page */
    d = begin_of(0, 1000);
    REQUIRE(is_part(object[0]));
    epoch_domain_t* other = begin_of(1, 6000); /* goes on in larger ones */
    REQUIRE(!is_part(object[1]));
    kit_check(a);
    epoch_domain_destroy(other);
    epoch_domain_destroy(d);
    slab_trim(a);
    d = begin_of(0, 1000);
    REQUIRE(!is_part(object[0]));
    epoch_domain_destroy(d);
}

/* A region that waits with its page is better than half of a page that has to be taken. */
static void waiting_pages_are_used_first(void) {
    for (unsigned n = 0; n < 10; n++) phase_of(1000);
    uint64_t committed = kit_committed_now(a);
    epoch_domain_t* d = begin_of(0, 1000);
    REQUIRE(!is_part(object[0]));
    REQUIRE_EQ(kit_committed_now(a), committed);
    epoch_domain_t* other = begin_of(1, 1000);
    REQUIRE(is_part(object[1]));
    epoch_domain_destroy(other);
    epoch_domain_destroy(d);
    REQUIRE_EQ(kit_binding(a)->ready_count[TSI_RANK_PART], 1);
    REQUIRE_EQ(kit_binding(a)->ready_count[TSI_RANK_PAGE], 1);
}

/* Objects that live on in one half keep the page; what the other half had goes with the last of them. */
static void survivors_keep_the_page(void) {
    epoch_domain_t* d[3];
    for (unsigned n = 0; n < 3; n++) d[n] = begin_of(n, 1000);
    REQUIRE(is_part(object[1]) && is_part(object[2]));
    REQUIRE((uintptr_t)object[1] / PAGE == (uintptr_t)object[2] / PAGE);
    EpochReceipt r = kit_end(a, d[1]->epoch_id, EPOCH_DRAIN);
    REQUIRE_EQ(r.objects_escaped, 10);
    REQUIRE_EQ(r.slabs_returned, 0);
    r = kit_end(a, d[2]->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(r.bytes_returned, PART);
    epoch_domain_destroy(d[2]);
    slab_trim(a);
    REQUIRE_EQ(purged(), 0);
    kit_check(a);
    uint8_t* first = (uint8_t*)((uintptr_t)object[1] & ~(uintptr_t)(PART - 1));
    for (unsigned n = 0; n < 10; n++) {
        uint8_t* p = first + 112 * n;
        for (unsigned k = 0; k < SIZE; k++) REQUIRE_EQ(p[k], 1);
        REQUIRE_EQ(purged(), 0);
        REQUIRE(slab_free_checked(a, p));
        REQUIRE(!slab_free_checked(a, p));
    }
    REQUIRE_EQ(purged(), PAGE);
    epoch_domain_destroy(d[1]);
    epoch_domain_destroy(d[0]);
}

/* A phase that outgrows its part goes on in a page, then in regions four times as large each. */
static void a_larger_phase_goes_on(void) {
    epoch_domain_t *first = begin_of(0, 1000), *d = begin_of(1, 1000);
    unsigned cls = TSI_CLASS_PART, next = TSI_RANK_PART;
    for (unsigned n = 0; n < 3000; n++) {
        void* p = kit_hide(epoch_domain_malloc(d, SIZE));
        REQUIRE(p != NULL);
        if (kit_place(a, p).cls != cls) REQUIRE_EQ(cls = kit_place(a, p).cls, tsi_region_class(++next));
    }
    REQUIRE_EQ(next, 4);
    epoch_domain_destroy(d);
    epoch_domain_destroy(first);
}

/* An object of more than a part in a phase that would begin with one. */
static void a_large_first_object_has_a_page(void) {
    epoch_domain_t *first = begin_of(0, 1000), *d = epoch_domain_create_labeled(a, "small");
    void* p = kit_hide(epoch_domain_malloc(d, 3000));
    REQUIRE(p != NULL);
    REQUIRE_EQ(kit_place(a, p).cls, TSI_CLASS_REGION);
    epoch_domain_destroy(d);
    epoch_domain_destroy(first);
}

/* ---- many at a time ---- */

enum { MANY = 2000, FEW = 50, EACH = 9000 };
static epoch_domain_t* open_ones[MANY];
static char label_of[MANY][8];

static void half_of(epoch_domain_t* d) {
    for (unsigned bytes = 0; bytes < EACH / 2; bytes += SIZE) REQUIRE(epoch_domain_malloc(d, SIZE) != NULL);
}
static epoch_domain_t* half_begun(unsigned n) {
    epoch_domain_t* d = epoch_domain_create_labeled(a, label_of[n]);
    REQUIRE(d != NULL);
    half_of(d);
    return d;
}

/* `count` phases of 9,000 bytes each are open, half full; so many of them end in turn, and others take their places.
 * Committed bytes once all are full. */
static uint64_t interleave(unsigned count, unsigned more, bool labels) {
    for (unsigned n = 0; n < count; n++) snprintf(label_of[n], sizeof label_of[n], labels ? "%u" : "request", n);
    for (unsigned n = 0; n < count; n++) open_ones[n] = half_begun(n);
    for (unsigned k = 0; k < more; k++) {
        half_of(open_ones[k % count]);
        REQUIRE(epoch_domain_destroy(open_ones[k % count]));
        open_ones[k % count] = half_begun(k % count);
    }
    for (unsigned n = 0; n < count; n++) half_of(open_ones[n]);
    uint64_t committed = kit_committed_now(a);
    for (unsigned n = 0; n < count; n++) REQUIRE(epoch_domain_destroy(open_ones[n]));
    return committed;
}

/* A phase of 9,000 bytes has three pages; where few are open it has four, in one piece. */
static void many_open_phases_hold_pages(void) {
    REQUIRE_EQ(interleave(MANY, 2 * MANY, false), 3 * PAGE * MANY);
    REQUIRE_EQ(interleave(MANY, 2 * MANY, true), 3 * PAGE * MANY);
}
static void few_open_phases_do_not(void) { REQUIRE_EQ(interleave(FEW, 8 * FEW, false), 4 * PAGE * FEW); }
/* Before the first of them has ended. */
static void many_that_none_has_ended(void) { REQUIRE_GE(3 * PAGE * MANY + 3 * PAGE * 600, interleave(MANY, 0, false)); }
/* What a thread has learned from many it forgets with the few that follow. */
static void few_after_many(void) {
    (void)interleave(MANY, MANY, false);
    REQUIRE_EQ(interleave(FEW, 8 * FEW, false), 4 * PAGE * FEW);
}

/* ---- the stock ---- */

/* Pages that were kept are used for parts as well, once both halves are there; parts do not go there. */
static void parts_lie_in_pages_that_were_kept(void) {
    SlabOptions o = kit_options();
    uint32_t id, part[4];
    slab_allocator_free(a);
    open_with(o);
    REQUIRE(tsi_stock_learns(space));
    REQUIRE(tsi_space_take(space, tsi_region_class(3), 0, &id));
    REQUIRE_EQ(tsi_stock_choose(space, &id, 1, false), 1);
    tsi_space_keep(space, &id, 1);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.bytes), 64 << 10);
    for (unsigned n = 0; n < 4; n++) part[n] = take();
    REQUIRE_EQ(part[0] >> 8, id >> 8);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.bytes), (64 << 10) - 2 * PAGE);
    REQUIRE_EQ(kit_committed_now(a), (64 << 10) - 2 * PAGE + 4 * PART);
    uint32_t mixed[5] = {part[3], part[1], part[0], part[2], 0};
    REQUIRE(tsi_space_take(space, tsi_region_class(3), 0, &mixed[4]));
    id = mixed[4];
    REQUIRE_EQ(tsi_stock_choose(space, mixed, 5, true), 1);
    REQUIRE_EQ(mixed[0], id);
    tsi_space_keep(space, mixed, 1);
    fake_os_clear();
    (void)tsi_space_purge(space, mixed + 1, 4);
    REQUIRE_EQ(purged(), 2 * PAGE);
    (void)tsi_stock_give_back(space, UINT64_MAX);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* A page joins the stock with its second half, as far as there is room, and comes out of it with its first. */
static void a_page_is_kept_with_its_second_half(void) {
    uint32_t part[8], two[2];
    uint64_t start = space->stock.start;
    slab_allocator_free(a);
    open_with(kit_options());
    for (unsigned n = 0; n < 8; n++) part[n] = take();
    fake_os_clear();
    two[0] = part[0], two[1] = part[2];
    REQUIRE_EQ(tsi_space_release(space, two, 2, true), 0);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.bytes), 0); /* the other halves are used */
    REQUIRE_EQ(kit_committed_now(a), 6 * PART);
    two[0] = part[3], two[1] = part[1];
    REQUIRE_EQ(tsi_space_release(space, two, 2, true), 0);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.bytes), 2 * PAGE);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.left), (int64_t)start - 2 * PAGE);
    REQUIRE_EQ(kit_committed_now(a), 2 * PAGE + 4 * PART);
    uint32_t again = take(), other = take();
    REQUIRE_EQ(again | 1, other | 1);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.bytes), PAGE);
    REQUIRE_EQ(kit_committed_now(a), PAGE + 6 * PART);
    REQUIRE_EQ(purged(), 0);
    /* Without room a page goes, and that is remembered; one whose other half is never used again goes, too. */
    uint64_t all = tsi_stock_reserve(space, UINT64_MAX / 2, 1);
    REQUIRE(all > 0);
    two[0] = again, two[1] = other;
    REQUIRE_EQ(tsi_space_release(space, two, 2, false), PAGE);
    REQUIRE_EQ(space->stock.gone_sum, 0);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.bytes), PAGE);
    two[0] = part[4], two[1] = part[5];
    REQUIRE_EQ(tsi_space_release(space, two, 2, true), 0); /* the page that was there makes room for it */
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.bytes), PAGE);
    REQUIRE_EQ(space->stock.gone_sum, PAGE);
    REQUIRE_EQ(purged(), 2 * PAGE);
    tsi_stock_unreserve(space, all);
    tsi_parts_retire(space, part[6]);
    uint64_t kept = tsi_load_relaxed(&space->stock.bytes);
    REQUIRE_EQ(tsi_space_release(space, &part[7], 1, true), PAGE);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.bytes), kept);
    (void)tsi_stock_give_back(space, UINT64_MAX);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* All of a page in the stock counts as committed: none is kept that would take it over the limit. */
static void no_page_is_kept_over_the_limit(void) {
    enum { LIMIT = 1 << 20 };
    SlabOptions o = kit_options();
    uint32_t others[64], two[2];
    unsigned n_others = 0;
    o.max_bytes = LIMIT;
    slab_allocator_free(a);
    open_with(o);
    for (unsigned n = 0; n < 2; n++) two[n] = take();
    REQUIRE_EQ(tsi_space_release(space, &two[0], 1, true), 0);
    while (kit_committed_now(a) + (64 << 10) <= LIMIT)
        REQUIRE(tsi_space_take(space, tsi_region_class(3), 0, &others[n_others++]));
    while (kit_committed_now(a) + PAGE <= LIMIT)
        REQUIRE(tsi_space_take(space, tsi_region_class(1), 0, &others[n_others++]));
    REQUIRE_EQ(kit_committed_now(a), LIMIT - PART);
    uint32_t more = take(); /* of the same page */
    REQUIRE_EQ(more, two[0]);
    REQUIRE_EQ(kit_committed_now(a), LIMIT);
    REQUIRE_EQ(tsi_space_release(space, &two[1], 1, true), 0);
    uint32_t third = take();
    REQUIRE_EQ(third, two[1]);
    tsi_add_relaxed(&space->committed_bytes, PART); /* as if another thread had taken it meanwhile */
    REQUIRE_EQ(tsi_space_release(space, two, 2, true), PAGE);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.bytes), 0);
    tsi_sub_relaxed(&space->committed_bytes, PART);
    (void)tsi_space_purge(space, others, n_others);
}

static uint64_t standing_clock(void) { return 1000000000000; }

/* Thousands of phases that are open at once, again and again: their pages stay. */
static void bursts_of_small_phases_are_kept(void) {
    enum { MANY = 4000, LAPS = 12 };
    static epoch_domain_t* d[MANY];
    uint64_t (*coarse_ns)(void) = tsi_os.coarse_ns;
    tsi_os.coarse_ns = standing_clock; /* however busy the machine is */
    slab_allocator_free(a);
    open_with(kit_options());
    uint64_t went = 0;
    for (unsigned lap = 0; lap < LAPS; lap++) {
        fake_os_clear();
        for (unsigned n = 0; n < MANY; n++) {
            d[n] = epoch_domain_create_labeled(a, "small");
            REQUIRE(epoch_domain_malloc(d[n], SIZE) != NULL);
        }
        for (unsigned n = 0; n < MANY; n++) epoch_domain_destroy(d[n]);
        went = purged();
        if (lap == 0) REQUIRE(went > MANY * PART / 2);
    }
    REQUIRE(went < MANY * PART / 4);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    tsi_os.coarse_ns = coarse_ns;
}

/* ---- where there are none ---- */

static void none_where_commits_are_strict(void) {
    tsi_os.strict_commit = true;
    epoch_domain_t* d[OPEN];
    for (unsigned n = 0; n < 6; n++) phase_of(1000);
    for (unsigned n = 0; n < OPEN; n++) {
        d[n] = begin_of(n, 1000);
        REQUIRE(!is_part(object[n]));
    }
    for (unsigned n = 0; n < OPEN; n++) epoch_domain_destroy(d[n]);
    REQUIRE_EQ(fake_os.misaligned, 0);
    slab_allocator_free(a);
    tsi_os.strict_commit = false;
    open_with(kit_options());
}

/* ---- a fork ---- */

static sem_t in_purge, go_on;
static void wait_in_purge(void* unused) {
    (void)unused;
    sem_post(&in_purge);
    sem_wait(&go_on);
}
static void* end_elsewhere(void* arg) {
    uint32_t* id = arg;
    _Atomic uint64_t* tag = &tsi_slab(space, *id)->tag;
    tsi_store_relaxed(tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(tag)) + 1, 0, TSI_SLAB_PURGING));
    give(*id);
    return NULL;
}

static int look_in_child(uint32_t part) {
    kit_check(a);
    unsigned calls = 0; /* once more: whether the parent's was made before the fork is not known */
    for (unsigned n = 0; n < fake_os.run_count; n++)
        calls += fake_os.runs[n].from == (uintptr_t)at(part & ~1u) && fake_os.runs[n].bytes == PAGE;
    if (calls != 1) return 1;
    if (take() != (part & ~1u) || take() != (part | 1)) return 2;
    return 0;
}

/* The thread that has claimed a page is gone: the child finds the half that it gave, and then the page. */
static void a_child_finishes_a_claim(void) {
    pthread_t t;
    uint32_t id[3];
    for (unsigned n = 0; n < 3; n++) id[n] = take();
    _Atomic uint64_t* third = &tsi_slab(space, id[2])->tag;
    tsi_store_relaxed(third, tsi_tag(1, 0, TSI_SLAB_WARM)); /* in use, as far as a child can tell; it will give it */
    sem_init(&in_purge, 0, 0);
    sem_init(&go_on, 0, 0);
    give(id[1]);
    fake_os.at_call[FAKE_PURGE] = wait_in_purge;
    REQUIRE_EQ(pthread_create(&t, NULL, end_elsewhere, &id[0]), 0);
    sem_wait(&in_purge);
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(look_in_child(id[0]));
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    sem_post(&go_on);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    REQUIRE_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    give(id[2]);
}

/* One half was in the hands of a thread that has vanished, the other has been used and is in the pool: nobody else will give the page. */
static void a_child_purges_what_was_in_hands(void) {
    uint32_t in_hands = take(), used = take();
    memset(at(used), 7, PART);
    give(used);
    REQUIRE_EQ(purged(), 0);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        kit_check(a);
        if (purged() != PAGE) _exit(1);
        if (take() != in_hands || take() != used) _exit(2);
        for (unsigned n = 0; n < PART; n++)
            if (at(used)[n] != 0) _exit(3);
        _exit(0);
    }
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    give(in_hands);
}

/* A half that is empty again is used again, but not for what does not fit into it: that has a region all the same. */
static void an_empty_half_is_too_small(void) {
    enum { LARGE = 3000 };
    epoch_domain_t* d[2] = {begin_of(0, SIZE), begin_of(1, SIZE)};
    REQUIRE(is_part(object[1]));
    unsigned n = 0;
    for (; n < 40; n++) REQUIRE(tsi_class_is_region(kit_place(a, epoch_domain_malloc(d[1], LARGE)).cls));
    REQUIRE(slab_free_checked(a, object[1]));
    for (; n < 200; n++) REQUIRE(tsi_class_is_region(kit_place(a, epoch_domain_malloc(d[1], LARGE)).cls));
    for (unsigned k = 0; k < 2; k++) epoch_domain_destroy(d[k]);
}

#define COLD(name) CHECK_CASE_WITH(name, open_cold, kit_close)
#define WARM(name) CHECK_CASE_WITH(name, open_warm, kit_close)

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        COLD(a_page_goes_with_its_second_half),
        COLD(a_half_of_a_used_page_is_taken_first),
        COLD(a_chunk_has_256),
        COLD(nobody_has_a_page_that_goes),
        COLD(a_half_that_was_never_used_goes_with_its_page),
        COLD(a_claim_may_take_a_chunks_last),
        COLD(retired_halves_go_with_the_other),
        COLD(open_phases_tell),
        WARM(ended_phases_tell),
        WARM(waiting_pages_are_used_first),
        COLD(survivors_keep_the_page),
        COLD(a_larger_phase_goes_on),
        COLD(a_large_first_object_has_a_page),
        COLD(an_empty_half_is_too_small),
        COLD(many_open_phases_hold_pages),
        COLD(few_open_phases_do_not),
        COLD(many_that_none_has_ended),
        COLD(few_after_many),
        WARM(parts_lie_in_pages_that_were_kept),
        WARM(a_page_is_kept_with_its_second_half),
        WARM(no_page_is_kept_over_the_limit),
        WARM(bursts_of_small_phases_are_kept),
        COLD(none_where_commits_are_strict),
        COLD(a_child_finishes_a_claim),
        COLD(a_child_purges_what_was_in_hands),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
