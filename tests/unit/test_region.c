/*
 * test_region.c - objects of domains: lives of regions and their generations, sums, refusals, renewal.
 *
 * What needs several threads at once is set up word by word, as a call leaves it that stands still. Handles, growth and ends are in
 * test_region_ends.c; policies, budgets and chunks that change what they serve in test_region_chunk.c.
 */
#include "regions.h"

#include "heap/free.h"
#include "mem/large.h"
#include "mem/pool.h"
#include "mem/rest.h"

/* ---- lives ---- */

static uint32_t open_one(unsigned cls, TsiRegion** r) {
    uint32_t id;
    REQUIRE(tsi_space_take(space, cls, 0, &id));
    REQUIRE(tsi_region_open(space, cls, id, 0));
    *r = tsi_region(space, id);
    return id;
}
static uint64_t live_bits(uint32_t id) { return tsi_region_live64(space, id, 0); }

/* 63 generations, then the map is cleared: a byte of the first one is no object of the next first one. */
static void generations_are_used_in_turn(void) {
    TsiRegion* r;
    uint32_t id = open_one(TSI_CLASS_REGION, &r);
    for (unsigned n = 0; n < 3 * TSI_GEN_BYTE; n++) {
        unsigned gen = n % TSI_GEN_BYTE + 1;
        REQUIRE_EQ(r->gen, gen);
        REQUIRE_EQ(tsi_region_gen(tsi_load_relaxed(&r->word)), gen);
        REQUIRE_EQ(live_bits(id), 0);
        bool dense = n == 0; /* starts where the next life of this generation has none */
        uint32_t bytes = dense ? 16 : 256;
        for (unsigned k = 0; k < 16; k++)
            REQUIRE_EQ(tsi_bump_take(r, tsi_load_relaxed(&r->rel), bytes), r->base + k * bytes);
        for (unsigned k = 0; k < 16; k++) REQUIRE_EQ(tsi_region_size_at(space, id, k * bytes / 16), bytes);
        REQUIRE_EQ(live_bits(id), dense ? 0xffff : 0x0001000100010001);
        TsiRegionSum sum = tsi_region_end(space, id);
        REQUIRE_EQ(sum.live, 16);
        REQUIRE_EQ(sum.issued_bytes, 16 * bytes);
        bool last = gen == TSI_GEN_BYTE;
        REQUIRE_EQ(tsi_region_gen(tsi_load_relaxed(&r->word)), last ? 0 : gen + 1);
        TsiPlace first = kit_place(a, r->base);
        REQUIRE_NE(tsi_granule_check(space, &first), TSI_FREE_OK);
        REQUIRE_EQ(live_bits(id), 0);
        if (last) REQUIRE_EQ(tsi_region_end(space, id).issued, 0); /* it is over, whoever asks */
        REQUIRE(tsi_region_open(space, TSI_CLASS_REGION, id, 0));
        REQUIRE_EQ(tsi_region_sum(space, id).issued, 0);
        REQUIRE(tsi_region_is_empty(space, id));
    }
    tsi_space_purge(space, &id, 1);
}

/* A freer that slept through an end keeps the map from being cleared: then the region is not used again. */
static void a_late_freer_blocks_the_last_life(void) {
    TsiRegion* r;
    uint32_t id = open_one(TSI_CLASS_REGION, &r);
    tsi_add_relaxed(&r->word, 2 * TSI_REGION_ENTERED);
    (void)tsi_region_end(space, id);
    REQUIRE_EQ(tsi_load_relaxed(&r->late), 2);
    while (tsi_region_gen(tsi_load_relaxed(&r->word)) != 0) {
        REQUIRE(tsi_region_open(space, TSI_CLASS_REGION, id, 0)); /* other generations may go on */
        (void)tsi_region_end(space, id);
    }
    REQUIRE(!tsi_region_open(space, TSI_CLASS_REGION, id, 0));
    tsi_sub_relaxed(&r->late, 1);
    REQUIRE(!tsi_region_open(space, TSI_CLASS_REGION, id, 0));
    tsi_sub_relaxed(&r->late, 1);
    REQUIRE(tsi_region_open(space, TSI_CLASS_REGION, id, 0));
    REQUIRE_EQ(r->gen, 1);
    (void)tsi_region_end(space, id);
    tsi_space_purge(space, &id, 1);
}

static unsigned state_of(uint32_t id) { return tsi_tag_state(tsi_load_relaxed(&tsi_slab(space, id)->tag)); }

/* A phase that meets such a region takes another. The region rests until its freer has left: no trim gives it back
 * before, and the first one afterwards does. */
static void a_blocked_region_rests(void) {
    void* first = make(SIZE);
    TsiRegion* r = region_of(first);
    uint32_t id = kit_place(a, first).slab_id;
    tsi_store_relaxed(&r->map[0], TSI_GEN_BYTE);
    r->gen = TSI_GEN_BYTE;
    tsi_store_relaxed(&r->word, (uint64_t)TSI_GEN_BYTE << TSI_REGION_GEN_SHIFT | TSI_REGION_ENTERED);
    end(EPOCH_RELEASE, 1, 0, SIZE);
    REQUIRE_EQ(tsi_load_relaxed(&r->late), 1);
    epoch_domain_destroy(d);
    d = epoch_domain_create(a);
    void* next = make(SIZE);
    REQUIRE_NE(kit_place(a, next).slab_id, id);
    REQUIRE_EQ(tsi_load_relaxed(&space->resting), id + 1);
    REQUIRE_EQ(kit_committed_now(a), 2 * TSI_REGION_MIN);
    fill(p, ALL); /* takes more regions, not that one */
    for (unsigned i = 0; i < ALL; i++) REQUIRE_NE(kit_place(a, p[i]).slab_id, id);
    slab_trim(a);
    REQUIRE_EQ(state_of(id), TSI_SLAB_WARM);
    tsi_store_relaxed(&r->late, 0);
    slab_trim(a);
    REQUIRE_EQ(tsi_load_relaxed(&space->resting), 0);
    REQUIRE_EQ(state_of(id), TSI_SLAB_POOL);
    REQUIRE_EQ(kit_refusals(a).retired_slabs, 0);
    kit_check(a);
    end(EPOCH_RELEASE, ALL + 1, 0, (ALL + 1) * SIZE);
}

/* Of each size: whoever takes a slab next gives back what can be used again, and only that. A half that shares its page
 * leaves the other one alone. */
static void the_next_taking_looks_at_what_rests(void) {
    for (unsigned rank = 0; rank < TSI_RANK_HUGE; rank++) {
        unsigned cls = tsi_region_class(rank);
        TsiRegion *r, *other, *third;
        uint32_t id = open_one(cls, &r), second = open_one(cls, &other), last = open_one(cls, &third);
        size_t bytes = space->classes->c[cls].slab_bytes;
        for (unsigned n = 0; n < 2; n++) {
            TsiRegion* blocked = n == 0 ? r : third;
            blocked->gen = TSI_GEN_BYTE;
            tsi_store_relaxed(&blocked->word, (uint64_t)TSI_GEN_BYTE << TSI_REGION_GEN_SHIFT | TSI_REGION_ENTERED);
            (void)tsi_region_end(space, n == 0 ? id : last);
            REQUIRE(!tsi_region_open(space, cls, n == 0 ? id : last, 0));
            tsi_rest(space, n == 0 ? id : last);
        }
        REQUIRE_EQ(kit_committed_now(a), 3 * bytes);
        tsi_store_relaxed(&r->late, 0);
        void* q = slab_malloc(a, 8192); /* in a slab of a class */
        REQUIRE(q != NULL);
        REQUIRE_EQ(state_of(id), TSI_SLAB_POOL);
        REQUIRE_EQ(state_of(last), TSI_SLAB_WARM);
        REQUIRE_EQ(tsi_load_relaxed(&space->resting), last + 1);
        REQUIRE_EQ(tsi_load_relaxed(&other->word), 1ull << TSI_REGION_GEN_SHIFT); /* it goes on */
        tsi_store_relaxed(&third->late, 0);
        slab_free(a, q);
        slab_trim(a);
        REQUIRE_EQ(tsi_load_relaxed(&space->resting), 0);
        REQUIRE_EQ(kit_committed_now(a), bytes);
        (void)tsi_region_end(space, second);
        tsi_space_purge(space, &second, 1);
        REQUIRE_EQ(kit_committed_now(a), 0);
        slab_trim(a);
        for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&space->chunk_high); chunk++)
            REQUIRE_EQ(tsi_chunk_class(space, chunk), 0);
    }
}

/* Half of a huge page that rests goes without the other one, which goes on. */
static void half_of_a_huge_page_rests(void) {
    uint32_t ids[2];
    REQUIRE(tsi_space_take_huge(space, 0, ids));
    for (unsigned n = 0; n < 2; n++) REQUIRE(tsi_region_open(space, TSI_CLASS_HUGE, ids[n], 0));
    TsiRegion* r = tsi_region(space, ids[0]);
    r->gen = TSI_GEN_BYTE;
    tsi_store_relaxed(&r->word, (uint64_t)TSI_GEN_BYTE << TSI_REGION_GEN_SHIFT | TSI_REGION_ENTERED);
    (void)tsi_region_end(space, ids[0]);
    REQUIRE(!tsi_region_open(space, TSI_CLASS_HUGE, ids[0], 0));
    tsi_rest(space, ids[0]);
    tsi_rest_poll(space);
    REQUIRE_EQ(state_of(ids[0]), TSI_SLAB_WARM);
    tsi_store_relaxed(&r->late, 0);
    tsi_rest_poll(space);
    REQUIRE_EQ(tsi_load_relaxed(&space->resting), 0);
    REQUIRE_EQ(tsi_chunk_class(space, tsi_slab_chunk(ids[0])), 0);
    REQUIRE(!space->chunks[tsi_slab_chunk(ids[0])].huge);
    REQUIRE_EQ(kit_committed_now(a), TSI_REGION_MAX);
    (void)tsi_region_end(space, ids[1]);
    tsi_space_purge(space, &ids[1], 1);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* Late questions: where the record's page has gone zeros stand for its map, and may be read for as many granules as the
 * largest region has. */
static void no_map_is_as_large_as_any(void) {
    TsiRegion gone = {.size_log2 = 0};
    for (unsigned rank = 0; rank < TSI_REGION_SIZES; rank++) {
        size_t granules = space->classes->c[tsi_region_class(rank)].slab_bytes >> TSI_GRANULE_SHIFT;
        REQUIRE(granules + TSI_MAP_READ <= sizeof tsi_no_map);
    }
    REQUIRE_EQ(tsi_region_map(&gone), tsi_no_map);
    uint32_t last = (TSI_REGION_MAX >> TSI_GRANULE_SHIFT) - 1;
    REQUIRE_EQ(tsi_region_granules_in(&gone, last, last + 1, 1), 1);
}

/* ---- sums ---- */

static void nothing_was_freed(void) {
    size_t bytes = 0;
    for (unsigned i = 1; i <= 300; i++) {
        p[i] = make(i);
        bytes += (i + 15) / 16 * 16;
    }
    EpochReceipt r = end(EPOCH_RELEASE, 300, 0, bytes);
    REQUIRE_EQ(r.objects_released, 300);
    REQUIRE_EQ(r.bytes_released, bytes);
}

/* Some by the owner, some by others, of several sizes. */
static void some_were_freed(void) {
    size_t bytes = 0, freed = 0;
    for (unsigned i = 0; i < 300; i++) {
        p[i] = make(i + 1);
        size_t usable = (i + 16) / 16 * 16;
        REQUIRE_EQ(slab_usable_size(a, p[i]), usable);
        bytes += usable;
        if (i % 3 != 2) freed += usable;
    }
    for (unsigned i = 0; i < 300; i += 3) give(p + i, 1);
    for (unsigned i = 1; i < 300; i += 3) give_elsewhere(p + i, 1);
    kit_check(a);
    REQUIRE_EQ(kit_live(a), 100);
    EpochReceipt r = end(EPOCH_RELEASE, 300, 200, bytes);
    REQUIRE_EQ(r.bytes_freed, freed);
    REQUIRE_EQ(r.bytes_released, bytes - freed);
}

/* Behind the last object of a region that others free lies the first of the next region, of the same generation. */
static void others_free_the_last_of_a_region(void) {
    enum { BYTES = 112, N = TSI_REGION_MIN / BYTES };
    for (unsigned i = 0; i < N; i++) p[i] = make(BYTES);
    TsiRegion* r = region_of(p[N - 1]);
    epoch_domain_t* other = epoch_domain_create(a);
    void* q = epoch_domain_malloc(other, BYTES);
    REQUIRE_EQ(region_of(p[0]), r);
    REQUIRE_EQ(region_of(q), r + 1);
    REQUIRE_EQ(region_of(q)->gen, r->gen);
    give_elsewhere(p + N - 1, 1);
    REQUIRE_EQ(tsi_region_granules(tsi_load_relaxed(&r->word)), BYTES / TSI_GRANULE);
    epoch_domain_destroy(other);
    end(EPOCH_RELEASE, N, 1, N * BYTES);
}

/* A gap before an aligned object is no object: not counted, not freed, and it ends the one before it. */
static void gaps_are_no_objects(void) {
    size_t bytes = 0;
    unsigned n = 0, gaps = 0;
    for (size_t align = 16; align <= TSI_BUMP_ALIGN_MAX; align *= 2) {
        p[n++] = make(16);
        uint8_t* q = p[n++] = slab_aligned_alloc_epoch(a, align, 40, d->epoch_id);
        REQUIRE_EQ((uintptr_t)q % align, 0);
        REQUIRE(region_of(q) != NULL);
        REQUIRE_EQ(slab_usable_size(a, p[n - 2]), 16);
        REQUIRE_EQ(slab_usable_size(a, q), 48);
        if (q != (uint8_t*)p[n - 2] + 16) {
            gaps++;
            REQUIRE(!slab_free_checked(a, (uint8_t*)p[n - 2] + 16));
            REQUIRE_EQ(slab_usable_size(a, (uint8_t*)p[n - 2] + 16), 0);
        }
        bytes += 16 + 48;
    }
    REQUIRE_EQ(kit_live(a), n);
    kit_check(a);
    REQUIRE(gaps >= 5);
    REQUIRE_EQ(kit_refusals(a).double_free + kit_refusals(a).interior_pointer, gaps);
    give(p, 1);
    give_elsewhere(p + 3, 1);
    EpochReceipt r = end(EPOCH_DRAIN, n, 2, bytes);
    REQUIRE_EQ(r.bytes_freed, 16 + 48);
    REQUIRE_EQ(r.objects_escaped, n - 2);
    for (unsigned i = 1; i < n; i++)
        if (i != 3) REQUIRE(slab_free_checked(a, p[i]));
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* The owner and another thread have freed one object at the same time: both were told so, and the end finds it. */
static void an_object_freed_by_two_sides(void) {
    fill(p, 3);
    TsiRegion* r = region_of(p[0]);
    give(p + 1, 1);
    tsi_add_relaxed(&r->word, TSI_REGION_OBJECT + SIZE / TSI_GRANULE); /* the other one, whose mark was overwritten */
    give(p, 1);
    /* three frees of three objects: the map knows that one lives */
    REQUIRE(!tsi_region_is_empty(space, kit_place(a, p[0]).slab_id));
    EpochReceipt receipt;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &receipt));
    KIT_BALANCED(&receipt);
    REQUIRE_EQ(receipt.objects_allocated, 3);
    REQUIRE_EQ(receipt.objects_freed, 2);
    REQUIRE_EQ(receipt.objects_released, 1);
    REQUIRE_EQ(kit_refusals(a).late_double_free, 1);
}

/* What ends count is what is drawn to be freed, by the owner, by others, or by both at once: with few frees and with
 * many, of small objects and of large ones, beside starts that an earlier life has left beyond the end. */
static void ends_count_what_was_freed(void) {
    enum { OBJECTS = 256, LIVES = 300 };
    uint64_t rng = 11;
    TsiRegion* r;
    uint32_t id = open_one(tsi_region_class(TSI_RANK_PAGE + 2), &r);
    for (unsigned life = 0; life < LIVES; life++) {
        unsigned one_in = 1 + (unsigned)(kit_rand(&rng) % 90), who = life % 4, twice = 0;
        TsiRegionSum want = {0, 0, 0, 0, 0};
        uint64_t others = 0;
        for (unsigned k = kit_rand(&rng) % OBJECTS; k != 0; k--) {
            uint32_t bytes = 16 * (uint32_t)(1 + kit_rand(&rng) % 15), rel = tsi_load_relaxed(&r->rel);
            (void)tsi_bump_take(r, rel, bytes);
            want.issued++;
            want.issued_bytes += bytes;
            bool freed = kit_rand(&rng) % one_in == 0, own = who == 0 || who == 3 || (who == 2 && k % 2 == 0);
            bool other = freed && (!own || (who == 3 && k % 2 == 0));
            want.live += !freed;
            want.live_bytes += freed ? 0 : bytes;
            if (freed) tsi_store_relaxed(&r->map[rel / 16], (uint8_t)(r->gen | (own ? TSI_MARK_OWN : TSI_MARK_OTHER)));
            if (freed && own) tsi_store_relaxed(&r->freed, tsi_load_relaxed(&r->freed) + 1);
            if (other) others += TSI_REGION_OBJECT + bytes / 16;
            twice += own && other;
        }
        tsi_add_relaxed(&r->word, others);
        TsiRegionSum sum = tsi_region_end(space, id);
        CHECK_EQ(sum.issued, want.issued);
        CHECK_EQ(sum.issued_bytes, want.issued_bytes);
        CHECK_EQ(sum.live, want.live);
        CHECK_EQ(sum.live_bytes, want.live_bytes);
        REQUIRE_EQ(sum.twice, twice);
        REQUIRE(tsi_region_open(space, tsi_region_class(TSI_RANK_PAGE + 2), id, 0));
    }
    (void)tsi_region_end(space, id);
    tsi_space_purge(space, &id, 1);
}

/* The same where the region is used again. */
static void a_doubled_free_before_a_renewal(void) {
    fill(p, ALL);
    TsiRegion* r = region_of(p[ALL - 1]);
    give(p + FIRST + SECOND, THIRD);
    tsi_add_relaxed(&r->word, TSI_REGION_OBJECT + SIZE / TSI_GRANULE);
    REQUIRE_EQ(make(SIZE), p[FIRST + SECOND]); /* used again, in place */
    REQUIRE_EQ(kit_refusals(a).late_double_free, 1);
    kit_check(a);
    end(EPOCH_RELEASE, ALL + 1, THIRD, (ALL + 1) * SIZE);
}

/* A free that was marked and not counted when its region ended has failed: what it wanted to free lived to the end. */
static void a_free_that_the_end_overtakes(void) {
    fill(p, 4);
    TsiRegion* r = region_of(p[0]);
    give(p, 1);
    tsi_add_relaxed(&r->word, TSI_REGION_ENTERED);
    tsi_store_relaxed(&r->map[1 * SIZE / TSI_GRANULE], (uint8_t)(r->gen | TSI_MARK_OTHER));
    EpochReceipt receipt;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &receipt));
    KIT_BALANCED(&receipt);
    REQUIRE_EQ(receipt.objects_freed, 1);
    REQUIRE_EQ(receipt.objects_released, 3);
    REQUIRE_EQ(receipt.bytes_released, 3 * SIZE);
    REQUIRE_EQ(kit_refusals(a).late_double_free, 0);
    REQUIRE_EQ(tsi_load_relaxed(&r->late), 1);
    tsi_store_relaxed(&r->late, 0);
}

/* ---- sizes and refusals ---- */

static void every_size_to_the_granule(void) {
    for (size_t bytes = 1; bytes <= TSI_BUMP_MAX; bytes += bytes < 300 ? 1 : 37) {
        void* q = make(bytes);
        REQUIRE(region_of(q) != NULL);
        REQUIRE_EQ(slab_usable_size(a, q), (bytes + 15) / 16 * 16);
        REQUIRE_EQ((uintptr_t)q % 16, 0);
    }
    REQUIRE_EQ(slab_usable_size(a, make(TSI_BUMP_MAX)), TSI_BUMP_MAX);
    REQUIRE(!tsi_class_is_region(kit_place(a, make(TSI_BUMP_MAX + 1)).cls));
    REQUIRE(
        !tsi_class_is_region(kit_place(a, slab_aligned_alloc_epoch(a, 2 * TSI_BUMP_ALIGN_MAX, 64, d->epoch_id)).cls));
}

/* What is asked for in a good size has no byte more, wherever the object goes. */
static void a_good_size_is_kept(void) {
    for (size_t bytes = 1; bytes < 6000; bytes += 13) {
        size_t good = slab_good_size(a, bytes);
        REQUIRE(good >= bytes);
        REQUIRE_EQ(slab_usable_size(a, make(good)), good);
    }
}

static void nothing_but_starts_is_freed(void) {
    uint8_t *q = make(100), *last = make(40);
    refused(q + 1, SLAB_MISUSE_INTERIOR_POINTER);
    refused(q + 8, SLAB_MISUSE_INTERIOR_POINTER);
    refused(q + 16, SLAB_MISUSE_INTERIOR_POINTER);
    refused(q + 96, SLAB_MISUSE_INTERIOR_POINTER);
    refused(last + 32, SLAB_MISUSE_INTERIOR_POINTER);
    refused(last + 48, SLAB_MISUSE_STALE_FREE); /* nothing has begun there yet */
    refused(last + 56, SLAB_MISUSE_INTERIOR_POINTER);
    refused(q - 112 + 4096, SLAB_MISUSE_STALE_FREE);
    REQUIRE(slab_free_checked(a, q));
    refused(q, SLAB_MISUSE_DOUBLE_FREE);
    refused(q + 16, SLAB_MISUSE_INTERIOR_POINTER);
    give_elsewhere((void**)&last, 1);
    refused(last, SLAB_MISUSE_DOUBLE_FREE);
    end(EPOCH_RELEASE, 2, 2, 112 + 48);
    refused(q, SLAB_MISUSE_STALE_FREE);
}

/* ---- renewal ---- */

/* The current region is empty as it is used up: it is used again where it is. */
static void a_region_is_renewed_in_place(void) {
    fill(p, ALL);
    void** third = p + FIRST + SECOND;
    TsiRegion* r = region_of(third[0]);
    unsigned gen = r->gen;
    uint64_t committed = kit_committed_now(a);
    give(third, THIRD / 2);
    give_elsewhere(third + THIRD / 2, THIRD / 2);
    uint8_t* q = make(100);
    REQUIRE_EQ(q, third[0]);
    REQUIRE_EQ(r->gen, gen + 1);
    REQUIRE_EQ(kit_committed_now(a), committed);
    refused(third[1], SLAB_MISUSE_INTERIOR_POINTER);
    refused(third[7], SLAB_MISUSE_STALE_FREE); /* beyond what this life has used */
    refused(third[THIRD - 1], SLAB_MISUSE_STALE_FREE);
    REQUIRE(slab_free_checked(a, q));
    end(EPOCH_RELEASE, ALL + 1, THIRD + 1, ALL * SIZE + 112);
}

static void a_region_with_a_survivor_is_not_renewed(void) {
    fill(p, ALL);
    void** third = p + FIRST + SECOND;
    give(third, 5);
    give(third + 6, THIRD - 6);
    uint8_t* q = make(SIZE);
    REQUIRE_NE(kit_place(a, q).slab_id, kit_place(a, third[5]).slab_id);
    for (unsigned i = 0; i < SIZE; i++) REQUIRE_EQ(((uint8_t*)third[5])[i], (FIRST + SECOND + 5) & 0xff);
    REQUIRE(slab_free_checked(a, third[5]));
    end(EPOCH_RELEASE, ALL + 1, THIRD, (ALL + 1) * SIZE);
}

/* One that the owner has emptied since it was left comes before a new one. */
static void spare_regions_are_used_first(void) {
    fill(p, ALL);
    uint64_t committed = kit_committed_now(a);
    give(p, FIRST + SECOND);
    REQUIRE(region_of(p[0])->in_empties && region_of(p[FIRST])->in_empties);
    REQUIRE(!(region_of(p[ALL - 1])->in_empties));
    kit_check(a);
    fill(p + ALL, SECOND);
    REQUIRE_EQ(p[ALL], p[FIRST]); /* the last one that fell empty */
    fill(p + ALL + SECOND, FIRST);
    REQUIRE_EQ(p[ALL + SECOND], p[0]);
    REQUIRE_EQ(kit_committed_now(a), committed);
    (void)make(SIZE);
    REQUIRE(kit_committed_now(a) > committed);
    for (unsigned i = 0; i < SIZE; i++) REQUIRE_EQ(((uint8_t*)p[ALL - 1])[i], (ALL - 1) & 0xff);
    end(EPOCH_RELEASE, ALL + SECOND + FIRST + 1, FIRST + SECOND, (ALL + SECOND + FIRST + 1) * SIZE);
}

/* However many regions came after it. */
static void spare_regions_are_not_searched(void) {
    enum { LATER = 20 * 262144 / 4096 };
    fill(p, ALL);
    for (unsigned i = 0; i < LATER; i++) (void)make(4096);
    give(p, FIRST);
    REQUIRE_EQ(make(SIZE), p[0]); /* the current region is used up to the byte */
    EpochReceipt r = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, ALL + LATER + 1);
    REQUIRE_EQ(r.objects_freed, FIRST);
}

/* So does one that others have emptied, or the owner and others together. */
static void emptied_regions_are_found(void) {
    fill(p, ALL);
    uint64_t committed = kit_committed_now(a);
    give_elsewhere(p, FIRST);
    give(p + FIRST, SECOND / 2);
    give_elsewhere(p + FIRST + SECOND / 2, SECOND / 2);
    fill(p + ALL, FIRST + SECOND);
    REQUIRE_EQ(kit_committed_now(a), committed);
    kit_check(a);
    (void)make(SIZE);
    REQUIRE(kit_committed_now(a) > committed);
    end(EPOCH_RELEASE, ALL + FIRST + SECOND + 1, FIRST + SECOND, (ALL + FIRST + SECOND + 1) * SIZE);
}

/* However many regions came after it: each look goes on where the one before has ended. Class slabs between them do not count. */
static void emptied_regions_are_not_missed(void) {
    enum { LATER = 20 * 262144 / 4096, SOON = 6 * 262144 / 4096 };
    fill(p, ALL);
    for (unsigned i = 0; i < LATER; i++) {
        (void)make(4096);
        if (i % 16 == 0) (void)make(200000);
    }
    give_elsewhere(p, FIRST);
    unsigned n = 0;
    while (n < SOON && make(SIZE) != p[0]) n++, (void)make(4096 - SIZE);
    REQUIRE(n < SOON);
    EpochReceipt r = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_freed, FIRST);
}

/* ---- the classes take over ---- */

/* Objects before the first one of a class, where one of `every` is freed; MOST where there is none. */
enum { MOST = 4 * ALL };
static void give_one(void* q) { slab_free(a, q); }
static unsigned bumped_objects(unsigned every, bool elsewhere) {
    KitWorker other;
    epoch_domain_t* was = d;
    unsigned n = 0, freed = 0;
    d = epoch_domain_create(a);
    kit_worker_start(&other);
    for (; n < MOST; n++) {
        p[n] = make(SIZE);
        if (!tsi_class_is_region(kit_place(a, p[n]).cls)) break;
        if (n % every != 0) continue;
        freed++;
        if (elsewhere) kit_worker_run(&other, give_one, p[n]);
        else give(p + n, 1);
    }
    kit_check(a);
    kit_worker_stop(&other);
    unsigned more = n == MOST ? 0 : 1;
    for (unsigned i = 0; i < 100 && more != 0; i++) /* to the end of the phase */
        REQUIRE(!tsi_class_is_region(kit_place(a, make(SIZE)).cls));
    if (more != 0) more += 100;
    EpochReceipt r = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, n + more);
    REQUIRE_EQ(r.objects_freed, freed);
    epoch_domain_destroy(d);
    d = was;
    return n;
}

/* More than a quarter was freed when 64 KiB have been bumped, and no region is empty. */
static void classes_take_over(void) {
    REQUIRE_EQ(bumped_objects(2, false), ALL);
    slab_thread_flush(a);
    REQUIRE_EQ(bumped_objects(3, true), SECOND * 4); /* the phase before it of the label began with 64 KiB */
    REQUIRE_EQ(bumped_objects(4, false), MOST);      /* a quarter is not more than a quarter */
    REQUIRE_EQ(bumped_objects(5, true), MOST);
}

/* Half of the starts are gaps, and hundreds of kilobytes are bumped: nobody has freed anything. */
static void gaps_are_not_frees(void) {
    for (unsigned n = 0; n < 600; n++) {
        void* p = slab_aligned_alloc_epoch(a, 1024, SIZE, d->epoch_id);
        REQUIRE(tsi_class_is_region(kit_place(a, p).cls));
    }
}

/* Objects that a new phase of a label allocates and frees at once, before the first one of a class. `more` follow. */
enum { PAIRS_MOST = 2 * MOST };
static unsigned pairs_bumped(const char* label, unsigned more) {
    epoch_domain_t* phase = epoch_domain_create_labeled(a, label);
    unsigned n = 0;
    for (bool there = true; there && n < PAIRS_MOST; n += there) {
        void* q = epoch_domain_malloc(phase, SIZE);
        there = tsi_class_is_region(kit_place(a, q).cls);
        give(&q, 1);
    }
    for (unsigned i = 0; i < more; i++) {
        void* q = epoch_domain_malloc(phase, SIZE);
        REQUIRE(!tsi_class_is_region(kit_place(a, q).cls)); /* to the end of the phase */
        give(&q, 1);
    }
    kit_check(a);
    epoch_domain_destroy(phase);
    return n;
}

/* They do, too, where nothing is left in regions as they are used up, time and again: those of 4, 16 and 64 KiB, and
 * the last one until 256 KiB were in such. */
static void what_is_freed_at_once_goes_over(void) {
    REQUIRE_EQ(pairs_bumped("pairs", 0), ALL + 4 * THIRD);
    slab_thread_flush(a);
    REQUIRE_EQ(pairs_bumped("begins with 64 KiB", 0), ALL + 4 * THIRD);
    REQUIRE_EQ(pairs_bumped("begins with 64 KiB", 0), 5 * THIRD);
}

/* What grows where it is would have to move by class. */
static void growing_ones_stay(void) {
    for (unsigned i = 0; i < PAIRS_MOST; i++) {
        void* q = make(SIZE / 2);
        REQUIRE(tsi_class_is_region(kit_place(a, q).cls));
        q = slab_realloc(a, q, SIZE);
        give(&q, 1);
    }
}

/* With handles regions are faster than classes. */
static void handles_stay(void) {
    SlabHandle h;
    for (unsigned i = 0; i < PAIRS_MOST; i++) {
        void* q = alloc_obj_epoch(a, SIZE, d->epoch_id, &h);
        REQUIRE(tsi_class_is_region(kit_place(a, q).cls));
        REQUIRE(free_obj(a, h));
    }
}

/* A heap of more than 1 MiB would take as much again by class. */
static void large_heaps_stay(void) {
    enum { KEPT = (2 << 20) / 4096 };
    for (unsigned i = 0; i < KEPT; i++) (void)make(4096);
    for (unsigned i = 0; i < KEPT; i++) {
        void* q = make(4096);
        REQUIRE(tsi_class_is_region(kit_place(a, q).cls));
        give(&q, 1);
    }
}

/* Objects of a phase that frees none, before the first one of a class; MOST where there is none. */
static unsigned kept_bumped(const char* label, unsigned most) {
    epoch_domain_t* phase = epoch_domain_create_labeled(a, label);
    unsigned n = 0;
    while (n < most && tsi_class_is_region(kit_place(a, epoch_domain_malloc(phase, SIZE)).cls)) n++;
    epoch_domain_destroy(phase);
    return n;
}

/* The next phase of its label on this thread goes over at 64 KiB, until one of them was wrongly taken for such. */
static void labels_learn_what_goes_over(void) {
    enum { LESSONS = 4, MORE = 2 * MOST };
    (void)pairs_bumped("l", MORE);
    REQUIRE_EQ(kept_bumped("other", MOST), MOST);
    REQUIRE_EQ(kept_bumped("l", THIRD / 2), THIRD / 2); /* too short to teach anything */
    REQUIRE_EQ(pairs_bumped("l", MORE), THIRD);
    REQUIRE_EQ(kept_bumped("l", MOST), THIRD);
    REQUIRE_EQ(kept_bumped("l", MOST), MOST);
    for (unsigned i = 0; i < LESSONS; i++) {
        (void)pairs_bumped("l", MORE);
        REQUIRE_EQ(kept_bumped("l", MOST), MOST);
    }
    (void)pairs_bumped("l", MORE);
    REQUIRE_EQ(kept_bumped("l", MOST), THIRD);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(generations_are_used_in_turn),
        TEST(a_late_freer_blocks_the_last_life),
        TEST(a_blocked_region_rests),
        TEST(the_next_taking_looks_at_what_rests),
        TEST(half_of_a_huge_page_rests),
        TEST(no_map_is_as_large_as_any),
        TEST(nothing_was_freed),
        TEST(some_were_freed),
        TEST(others_free_the_last_of_a_region),
        TEST(gaps_are_no_objects),
        TEST(an_object_freed_by_two_sides),
        TEST(ends_count_what_was_freed),
        TEST(a_doubled_free_before_a_renewal),
        TEST(a_free_that_the_end_overtakes),
        TEST(every_size_to_the_granule),
        TEST(a_good_size_is_kept),
        TEST(nothing_but_starts_is_freed),
        TEST(a_region_is_renewed_in_place),
        TEST(a_region_with_a_survivor_is_not_renewed),
        TEST(spare_regions_are_used_first),
        TEST(spare_regions_are_not_searched),
        TEST(emptied_regions_are_found),
        TEST(emptied_regions_are_not_missed),
        TEST(classes_take_over),
        TEST(gaps_are_not_frees),
        TEST(what_is_freed_at_once_goes_over),
        TEST(growing_ones_stay),
        TEST(handles_stay),
        TEST(large_heaps_stay),
        TEST(labels_learn_what_goes_over),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
