/* test_space.c - chunks, slabs, large objects and purges of one reservation, without any heap. */
#include "fake_os.h"
#include "kit/inside.h"

#include "mem/chunk.h"
#include "mem/large.h"
#include "mem/pool.h"
#include "mem/purge.h"
#include "mem/region.h"
#include "mem/space.h"
#include "mem/chunk_pages.h"

enum { CHUNKS = 16, CLASS_64 = 1, CLASS_1024 = 12 };

static TsiSpace space;
static TsiSpaceConfig config;

static void open_space(void) {
    fake_os_clear();
    tsi_os.strict_commit = false;
    config =
        (TsiSpaceConfig){.reserve_bytes = (uint64_t)CHUNKS << TSI_CHUNK_SHIFT, .purge_policy = SLAB_PURGE_DONTNEED};
    REQUIRE(tsi_space_init(&space, &config));
}

static void close_space(void) {
    tsi_space_destroy(&space);
    REQUIRE_EQ(fake_os.misaligned, 0);
}

static void reopen(int policy, bool prefault, bool strict) {
    tsi_space_destroy(&space);
    config.purge_policy = policy;
    config.prefault = prefault;
    tsi_os.strict_commit = strict;
    REQUIRE(tsi_space_init(&space, &config));
    fake_os_clear();
}

/* As a space that is too large to be usable from the start: the first commit, of all of it, is refused. */
static void reopen_in_steps(bool strict) {
    tsi_space_destroy(&space);
    config.purge_policy = SLAB_PURGE_DONTNEED;
    config.prefault = false;
    tsi_os.strict_commit = strict;
    fake_os_clear();
    if (!strict) fake_os_fail(FAKE_COMMIT, 1, false);
    REQUIRE(tsi_space_init(&space, &config));
    fake_os_clear();
}

static uint32_t take(unsigned cls) {
    uint32_t id = UINT32_MAX;
    REQUIRE(tsi_space_take(&space, cls, 0, &id));
    REQUIRE_EQ(tsi_tag_state(tsi_load_relaxed(&tsi_slab(&space, id)->tag)), TSI_SLAB_POOL);
    return id;
}

static const char* runs(void) { return fake_os_runs(space.base, space.payload_bytes); }

static void fresh_slabs_in_address_order(void) {
    unsigned n = tsi_chunk_slab_count(&space, CLASS_1024);
    for (unsigned i = 0; i < n + 1; i++) REQUIRE_EQ(take(CLASS_1024), i < n ? i : 1u << 8);
    REQUIRE_EQ(take(CLASS_64), 2u << 8);
    REQUIRE_EQ(tsi_load_relaxed(&space.chunk_high), 3);
    REQUIRE_EQ(tsi_load_relaxed(&space.committed_bytes),
               (n + 1) * space.classes->c[CLASS_1024].slab_bytes + space.classes->c[CLASS_64].slab_bytes);
}

static void given_slabs_come_first(void) {
    uint32_t ids[4];
    for (unsigned i = 0; i < 4; i++) ids[i] = take(CLASS_64);
    tsi_space_give(&space, &ids[1], 2);
    REQUIRE_EQ(space.chunks[0].free_count, tsi_chunk_slab_count(&space, CLASS_64) - 2);
    REQUIRE_EQ(take(CLASS_64), ids[2]);
    REQUIRE_EQ(take(CLASS_64), ids[1]);
    REQUIRE_EQ(take(CLASS_64), ids[3] + 1);
}

static void an_empty_chunk_serves_any_class(void) {
    TsiPlace at;
    uint32_t id = take(CLASS_64);
    uint8_t* p = tsi_slab_payload(&space, &space.classes->c[CLASS_64], id);
    REQUIRE_EQ(tsi_space_locate(&space, p, &at), TSI_PLACE_OK);
    REQUIRE_EQ(tsi_space_locate(&space, p + 1, &at), TSI_PLACE_INTERIOR);
    REQUIRE_EQ(tsi_space_locate(&space, p + (1 << TSI_CHUNK_SHIFT), &at), TSI_PLACE_FOREIGN);
    REQUIRE_EQ(tsi_space_locate(&space, space.base - 16, &at), TSI_PLACE_FOREIGN);
    REQUIRE_EQ(tsi_space_locate(&space, space.base + space.payload_bytes, &at), TSI_PLACE_FOREIGN);
    tsi_space_give(&space, &id, 1);
    REQUIRE_EQ(tsi_chunk_class(&space, 0), 0);
    REQUIRE_EQ(tsi_space_locate(&space, p, &at), TSI_PLACE_GONE);
    REQUIRE_EQ(take(CLASS_1024), 0);
    REQUIRE_EQ(tsi_chunk_class(&space, 0), CLASS_1024);
}

/* An address of an unused chunk is no slot, at any offset that the table filler could be taken for. */
static void no_slot_in_a_chunk_without_class(void) {
    TsiPlace at;
    (void)take(CLASS_64);
    for (size_t off = 0; off < 1u << TSI_CHUNK_SHIFT; off += 16)
        REQUIRE_EQ(tsi_space_locate(&space, space.base + (5u << TSI_CHUNK_SHIFT) + off, &at), TSI_PLACE_FOREIGN);
}

/* After a change of class every slab starts above what any slab of the chunk has used. */
static void floors_survive_a_change_of_class(void) {
    uint32_t ids[8];
    for (unsigned i = 0; i < 8; i++) ids[i] = take(CLASS_64);
    tsi_store_relaxed(&tsi_slab(&space, ids[3])->tag, tsi_tag(70, 0, TSI_SLAB_PURGING));
    tsi_store_relaxed(&tsi_slab(&space, ids[6])->gen_base, 900);
    tsi_space_give(&space, ids, 8);
    for (unsigned lap = 0; lap < 2; lap++) {
        unsigned cls = lap == 0 ? CLASS_1024 : 30;
        unsigned n = tsi_chunk_slab_count(&space, cls);
        uint32_t other[TSI_CHUNK_SLABS];
        for (unsigned i = 0; i < n; i++) {
            other[i] = take(cls);
            REQUIRE_EQ(other[i] >> 8, 0);
            REQUIRE(tsi_tag_seq(tsi_load_relaxed(&tsi_slab(&space, other[i])->tag)) >= 70);
            REQUIRE(tsi_load_relaxed(&tsi_slab(&space, other[i])->gen_base) >= 900);
        }
        tsi_space_give(&space, other, n);
    }
    uint32_t large;
    REQUIRE(tsi_space_take_large(&space, 1 << 20, 1, false, 0, &large));
    REQUIRE_EQ(large, 0);
    REQUIRE(tsi_tag_seq(tsi_load_relaxed(&tsi_slab(&space, large)->tag)) >= 70);
    REQUIRE(tsi_load_relaxed(&tsi_slab(&space, large)->gen_base) >= 900);
    tsi_store_relaxed(&tsi_slab(&space, large)->tag, tsi_tag(200, 0, TSI_SLAB_PURGING));
    tsi_space_give_large(&space, large, false);
    for (unsigned i = 0; i < 4; i++)
        REQUIRE(tsi_tag_seq(tsi_load_relaxed(&tsi_slab(&space, take(CLASS_64))->tag)) >= 200);
}

/* Adjoining slabs are one run, whatever order they come in; runs ascend. */
static void purges_are_sorted_runs(void) {
    uint32_t id[16], out[8];
    for (unsigned i = 0; i < 16; i++) id[i] = take(CLASS_1024); /* 4 pages each */
    static const unsigned order[8] = {9, 1, 3, 8, 2, 15, 0, 5};
    for (unsigned i = 0; i < 8; i++) out[i] = id[order[i]];
    fake_os_clear();
    tsi_space_purge(&space, out, 8);
    REQUIRE_STR(runs(), "[0x0-0xf][0x14-0x17][0x20-0x27][0x3c-0x3f]");
    REQUIRE_STR(fake_os_pages(space.base, 24), "xxxxxxxxxxxxxxxx....xxxx");
    REQUIRE_EQ(tsi_load_relaxed(&space.purge_calls), 4);
    REQUIRE_EQ(tsi_load_relaxed(&space.purge_bytes), 8 * 16384);
    fake_os_clear();
    tsi_space_purge_pages(&space, space.base + 0x10000, 4096);
    REQUIRE_STR(runs(), "[0x10-0x10]");
}

/* Slabs of different classes in neighbouring chunks join as well. */
static void runs_cross_chunks(void) {
    static uint32_t id[TSI_CHUNK_SLABS + 1];
    unsigned n = tsi_chunk_slab_count(&space, CLASS_1024);
    for (unsigned i = 0; i < n; i++) id[i] = take(CLASS_1024);
    uint32_t out[3] = {take(CLASS_64), id[n - 1], id[n - 2]};
    fake_os_clear();
    tsi_space_purge(&space, out, 3);
    REQUIRE_STR(runs(), "[0xf8-0x101]");
}

static void sorting(void) {
    uint32_t v[300], seed = 1;
    enum { ANYHOW, RISING, FALLING, RISING_BUT_LAST, FALLING_BUT_LAST, SHAPES };
    for (unsigned lap = 0; lap < 10 * SHAPES; lap++) {
        unsigned shape = lap % SHAPES, n = lap / SHAPES < 5 ? lap / SHAPES : 59 * (lap / SHAPES - 4);
        uint64_t before = 0, after = 0;
        for (unsigned i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            v[i] = shape == ANYHOW ? seed >> 24 : shape == RISING || shape == RISING_BUT_LAST ? 3 * i + 1 : 3 * (n - i);
            if (i == n - 1 && shape == RISING_BUT_LAST) v[i] = 2;
            if (i == n - 1 && shape == FALLING_BUT_LAST) v[i] = 3 * n;
            before += v[i];
        }
        tsi_sort_ids(v, n);
        for (unsigned i = 0; i < n; i++) {
            after += v[i];
            if (i != 0) REQUIRE(v[i - 1] <= v[i]);
        }
        REQUIRE_EQ(before, after);
    }
}

enum { UNIT = 1 << TSI_UNIT_SHIFT, UNITS = (1 << TSI_CHUNK_SHIFT) / UNIT };

static uint8_t* unit_at(uint32_t id) {
    TsiPlace at = tsi_large_place(id);
    return tsi_place_address(&space, &at);
}

static void large_objects_take_units(void) {
    uint32_t a, b, c, d, e;
    TsiPlace at;
    REQUIRE(tsi_space_take_large(&space, (5u << 20) / 2, 1, false, 0, &a));
    REQUIRE_EQ(a, 0);
    REQUIRE_EQ(tsi_large_span(&space, a), 5 * UNITS / 2);
    REQUIRE_EQ(tsi_chunk_class(&space, 0), TSI_CLASS_LARGE);
    REQUIRE_EQ(tsi_chunk_class(&space, 1), TSI_CLASS_CONT);
    REQUIRE_EQ(tsi_chunk_class(&space, 2), TSI_CLASS_LARGE);
    REQUIRE_EQ(tsi_slab_bytes(&space, TSI_CLASS_LARGE, a), (5u << 20) / 2);
    for (size_t off = UNIT; off < 5u << 19; off += UNIT)
        REQUIRE_EQ(tsi_space_locate(&space, space.base + off, &at), TSI_PLACE_INTERIOR);
    REQUIRE_EQ(tsi_space_locate(&space, space.base + 16, &at), TSI_PLACE_GONE); /* nobody has it yet */
    space.base[(5u << 20) / 2 - 1] = 1;
    /* the next ones share its last chunk */
    REQUIRE(tsi_space_take_large(&space, 300000, 1, false, 0, &b));
    REQUIRE_EQ(b, tsi_slab_id(2, UNITS / 2));
    REQUIRE(tsi_space_take_large(&space, 1, 1, false, 0, &e));
    REQUIRE_EQ(e, tsi_slab_id(2, UNITS / 2 + 5));
    REQUIRE(tsi_space_take_large(&space, 5000, 4u << 20, false, 0, &c));
    REQUIRE_EQ((uintptr_t)unit_at(c) & ((4u << 20) - 1), 0);
    REQUIRE(tsi_space_take_large(&space, 5000, 2 * UNIT, false, 0, &d));
    REQUIRE_EQ((uintptr_t)unit_at(d) & (2 * UNIT - 1), 0);
    REQUIRE(!tsi_space_take_large(&space, (size_t)CHUNKS << 20, 1, false, 0, &d));
    REQUIRE(!tsi_space_take_large(&space, (size_t)(CHUNKS + 1) << 20, 1, false, 0, &d));
    fake_os_clear();
    tsi_space_give_large(&space, a, false);
    REQUIRE_STR(runs(), "[0x0-0x27f]");
    REQUIRE_EQ(tsi_chunk_class(&space, 0), 0);
    REQUIRE_EQ(tsi_chunk_class(&space, 1), 0);
    REQUIRE_EQ(tsi_chunk_class(&space, 2), TSI_CLASS_LARGE);
    REQUIRE_EQ(tsi_space_locate(&space, space.base + (2u << 20), &at), TSI_PLACE_GONE);
    REQUIRE_EQ(take(CLASS_64), 0); /* low chunks first */
    REQUIRE(tsi_space_take_large(&space, 3u << 19, 1, false, 0, &d));
    REQUIRE_EQ(d, tsi_slab_id(1, 0)); /* with half of the chunk that others are in */
}

static void large_objects_grow_where_they_are(void) {
    enum { MANY = 128 };
    uint32_t a, b, c;
    config.reserve_bytes = (uint64_t)MANY << TSI_CHUNK_SHIFT;
    reopen(SLAB_PURGE_DONTNEED, false, false);
    REQUIRE(tsi_space_take_large(&space, UNIT, 1, false, 0, &a));
    REQUIRE(tsi_space_grow_large(&space, a, 5 * UNIT)); /* nobody is behind it */
    REQUIRE(tsi_space_take_large(&space, UNIT, 1, false, 0, &b));
    uint32_t span = tsi_large_span(&space, a);
    REQUIRE_EQ(span, 5 * 16);
    REQUIRE_EQ(space.set_aside, span - UNITS);
    REQUIRE_EQ(b, tsi_slab_id(span / UNITS, span % UNITS)); /* what it may grow into is taken */
    REQUIRE(tsi_space_grow_large(&space, a, (size_t)span * UNIT));
    REQUIRE_EQ(space.set_aside, 0);
    REQUIRE(!tsi_space_grow_large(&space, a, (size_t)span * UNIT + 1));
    REQUIRE_EQ(tsi_slab_bytes(&space, TSI_CLASS_LARGE, a), (size_t)span * UNIT);
    REQUIRE_EQ(tsi_load_relaxed(&space.committed_bytes), ((size_t)span + 1) * UNIT);
    tsi_space_give_large(&space, b, false);
    REQUIRE(tsi_space_grow_large(&space, a, (size_t)span * UNIT + 1));
    REQUIRE(tsi_large_span(&space, a) > span + 1);
    /* What is set aside is there for whoever needs it, to the end of a chunk: by a large object, or by a slab. */
    size_t rest = (MANY - 6ull) << TSI_CHUNK_SHIFT;
    REQUIRE(tsi_space_take_large(&space, rest, 1, true, 0, &c));
    REQUIRE_EQ(space.set_aside, 0);
    tsi_space_give_large(&space, c, false);
    REQUIRE(tsi_space_take_large(&space, 1 << 20, 1, true, 0, &c));
    REQUIRE(space.set_aside > UNITS);
    uint32_t n = 0, id;
    while (tsi_space_take(&space, 40, 0, &id)) n++;
    REQUIRE_EQ(n, (MANY - 7) * tsi_chunk_slab_count(&space, 40));
    REQUIRE_EQ(space.set_aside, 0); /* the next search without success looks at no object */
    tsi_space_give_large(&space, c, false);
    tsi_space_give_large(&space, a, false);
    REQUIRE_EQ(space.set_aside, 0);
    REQUIRE_EQ(space.chunks_used, MANY - 7);
}

/* Pages that were kept behind an object are on their way to the system: it does not grow into them. */
static void nothing_grows_into_what_goes(void) {
    uint32_t a;
    REQUIRE(tsi_space_take_large(&space, UNIT / 2, 1, false, 0, &a));
    space.chunks[0].held = true;
    REQUIRE(!tsi_space_grow_large(&space, a, UNIT)); /* in its last unit */
    REQUIRE(!tsi_space_grow_large(&space, a, 3 * UNIT));
    space.chunks[0].held = false;
    REQUIRE(tsi_space_grow_large(&space, a, 3 * UNIT));
    space.chunks[0].held = true;
    REQUIRE(!tsi_space_grow_large(&space, a, 4 * UNIT)); /* in units that it has */
    space.chunks[0].held = false;
    tsi_space_give_large(&space, a, false);
}

static void everything_can_be_taken(void) {
    uint32_t id;
    unsigned n = 0;
    while (tsi_space_take(&space, 40, 0, &id)) n++;
    REQUIRE_EQ(n, CHUNKS * tsi_chunk_slab_count(&space, 40));
    REQUIRE(!tsi_space_take(&space, CLASS_64, 0, &id));
    REQUIRE(!tsi_space_take_large(&space, 1, 1, false, 0, &id));
    tsi_space_give(&space, &id, 1);
    REQUIRE_EQ(take(40), id);
}

static void failed_commits_change_nothing(void) {
    for (unsigned lap = 0; lap < 2; lap++) {
        reopen_in_steps(lap == 1);
        uint32_t id = 77;
        for (uint64_t k = 1; k <= 2; k++) {
            fake_os_fail(FAKE_COMMIT, k, true);
            REQUIRE(!tsi_space_take(&space, CLASS_64, 0, &id));
            REQUIRE_EQ(tsi_load_relaxed(&space.committed_bytes), 0);
            REQUIRE_EQ(id, 77);
            fake_os_fail(FAKE_COMMIT, 1, true);
            REQUIRE(!tsi_space_take_large(&space, 3u << 20, 1, false, 0, &id));
            REQUIRE_EQ(tsi_chunk_class(&space, 1), 0);
            REQUIRE_EQ(tsi_chunk_class(&space, 2), 0);
            fake_os_heal();
            if (lap == 0) reopen_in_steps(false);
            else break;
        }
        id = take(CLASS_64);
        *tsi_slab_payload(&space, &space.classes->c[CLASS_64], id) = 1;
        fake_os_fail(FAKE_COMMIT, 1, true);
        REQUIRE(!tsi_space_commit_counts(&space, 0));
        fake_os_heal();
        REQUIRE(tsi_space_commit_counts(&space, 0));
        REQUIRE(tsi_space_commit_counts(&space, 0));
        REQUIRE_EQ(tsi_load_relaxed(tsi_counts(&space, 0)), 0);
    }
}

/* A strip is usable from its beginning on, and one mapping whatever chunks are used. */
static void strips_have_no_gaps(void) {
    uint32_t far;
    reopen_in_steps(false);
    REQUIRE(tsi_space_take_large(&space, 1 << 20, 8u << 20, false, 0, &far));
    REQUIRE(tsi_space_commit_counts(&space, tsi_slab_chunk(far)));
    for (unsigned strip = 0; strip < TSI_STRIPS; strip++)
        REQUIRE(strip == TSI_STRIP_REGIONS || space.usable[strip] > tsi_slab_chunk(far));
    uint32_t region = take(tsi_region_class(TSI_RANK_PAGE));
    REQUIRE(space.usable[TSI_STRIP_REGIONS] > tsi_slab_chunk(region));
    for (uint32_t chunk = 0; chunk <= tsi_slab_chunk(far); chunk++) {
        *(volatile uint8_t*)tsi_chunk_base(&space, chunk) = 1;
        *(volatile uint8_t*)tsi_meta_of(&space, chunk) = 1;
    }
    /* Near a limit no more is asked for than is needed. */
    reopen_in_steps(false);
    fake_os_fail(FAKE_COMMIT, 1, false);
    (void)take(CLASS_64);
    REQUIRE_EQ(space.usable[TSI_STRIP_PAYLOAD], 1);
    /* Where writable memory is charged, each chunk has its own. */
    reopen_in_steps(true);
    (void)take(CLASS_64);
    for (unsigned strip = 0; strip < TSI_STRIPS; strip++) REQUIRE_EQ(space.usable[strip], 0);
}

static uint64_t charged, charge_most;

static int charge(void* p, size_t bytes) {
    if (charged + bytes > charge_most) return errno = ENOMEM, -1;
    charged += bytes;
    return fake_os.real.commit(p, bytes);
}

static uint64_t room_left(void) { return charge_most - charged; }

/* With a limit for what is writable nearly all of it serves objects: nothing is set apart for huge pages, and little is
 * made usable ahead. */
static void a_limit_is_used_up(void) {
    enum { RESERVED_MIB = 2048, SIZE = 300000 };
    static const unsigned limits[] = {200, 333, 512, 700, 1000};
    bool huge = tsi_os.has_huge;
    uint64_t (*room)(void) = tsi_os.data_room;
    int (*commit)(void*, size_t) = tsi_os.commit;
    unsigned used_up = 0, count = sizeof limits / sizeof *limits;
    tsi_os.has_huge = true;
    tsi_os.data_room = room_left;
    tsi_os.commit = charge;
    config.reserve_bytes = (uint64_t)RESERVED_MIB << 20;
    for (unsigned i = 0; i < count; i++) {
        tsi_space_destroy(&space);
        charged = 0;
        charge_most = (uint64_t)limits[i] << 20;
        uint64_t bytes = 0;
        bool made = tsi_space_init(&space, &config);
        for (uint32_t id; made && tsi_space_take_large(&space, SIZE, 1, false, 0, &id); bytes += SIZE) {}
        used_up += bytes >= charge_most / 4 * 3;
    }
    tsi_os.commit = commit;
    tsi_os.data_room = room;
    tsi_os.has_huge = huge;
    REQUIRE_EQ(used_up, count);
}

static void policies(void) {
    static const struct {
        int policy;
        bool strict;
        TsiPurgeHow how;
    } cases[] = {{SLAB_PURGE_DONTNEED, false, TSI_PURGE_DONTNEED},
                 {SLAB_PURGE_FREE, false, TSI_PURGE_LAZY},
                 {SLAB_PURGE_DONTNEED, true, TSI_PURGE_UNCHARGE}};
    for (unsigned i = 0; i < 3; i++) {
        reopen(cases[i].policy, false, cases[i].strict);
        uint32_t id[2] = {take(CLASS_64), take(CLASS_64)};
        fake_os_clear();
        tsi_space_purge(&space, id, 1);
        REQUIRE_EQ(fake_os.run_count, 1);
        REQUIRE_EQ(fake_os.runs[0].how, cases[i].how);
        *tsi_slab_payload(&space, &space.classes->c[CLASS_64], take(CLASS_64)) = 1; /* usable again */
    }
    reopen(SLAB_PURGE_NEVER, false, false);
    uint32_t id = take(CLASS_64);
    tsi_space_purge(&space, &id, 1);
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
    REQUIRE_EQ(tsi_load_relaxed(&space.purge_calls), 0);
}

/* Takes, dirties the first page of each chunk, gives back; takes again and makes zero. Which pages were purged for that. */
static const char* zeroed_again(unsigned chunks) {
    uint32_t id;
    REQUIRE(tsi_space_take_large(&space, (size_t)chunks << TSI_CHUNK_SHIFT, 1, false, 0, &id));
    REQUIRE_EQ(id, 0);
    for (unsigned i = 0; i < chunks; i++) memset(space.base + ((size_t)i << TSI_CHUNK_SHIFT), 0xEE, tsi_os.page_bytes);
    tsi_space_give_large(&space, id, false);
    fake_os_heal();
    REQUIRE(tsi_space_take_large(&space, (size_t)chunks << TSI_CHUNK_SHIFT, 1, false, 0, &id));
    REQUIRE_EQ(id, 0);
    fake_os.run_count = 0;
    tsi_space_zero_large(&space, space.base, (size_t)chunks << TSI_CHUNK_SHIFT);
    for (unsigned i = 0; i < chunks << TSI_CHUNK_SHIFT; i++) REQUIRE_EQ(space.base[i], 0);
    return runs();
}

static void zeros_cost_what_dirt_there_is(void) {
    REQUIRE_STR(zeroed_again(3), ""); /* purged as it was given back */
    reopen(SLAB_PURGE_DONTNEED, false, true);
    REQUIRE_STR(zeroed_again(3), ""); /* mapped anew */
    reopen(SLAB_PURGE_FREE, false, false);
    REQUIRE_STR(zeroed_again(3), "[0x0-0x2ff]"); /* what MADV_FREE has got may be there still */
    reopen(SLAB_PURGE_NEVER, false, false);
    REQUIRE_STR(zeroed_again(3), ""); /* written */
    reopen(SLAB_PURGE_DONTNEED, false, false);
    fake_os_fail(FAKE_PURGE, 1, false);
    REQUIRE_STR(zeroed_again(3), "[0x0-0x2ff]"); /* the system had refused, and does no more */
    fake_os_clear();
    fake_os_fail(FAKE_PURGE, 1, true);
    tsi_space_give_large(&space, 0, false);
    uint32_t id;
    REQUIRE(tsi_space_take_large(&space, 2u << 20, 1, false, 0, &id));
    memset(space.base, 0xEE, 2u << 20);
    tsi_space_zero_large(&space, space.base, 2u << 20); /* it refuses always: written */
    for (unsigned i = 0; i < 2u << 20; i++) REQUIRE_EQ(space.base[i], 0);
    fake_os_heal();
}

/* Chunks are dirty by themselves: of an object that lies over some that are and some that are not, the clean are left. */
static void zeros_over_clean_and_dirty_chunks(void) {
    uint32_t a, b, c, d;
    REQUIRE(tsi_space_take_large(&space, 1u << 20, 1, false, 0, &a));
    REQUIRE(tsi_space_take_large(&space, 1u << 20, 1, false, 0, &b));
    REQUIRE(tsi_space_take_large(&space, 2u << 20, 1, false, 0, &c));
    memset(space.base, 0xEE, 4u << 20);
    fake_os_fail(FAKE_PURGE, 2, false);
    tsi_space_give_large(&space, a, false);
    tsi_space_give_large(&space, b, false);
    tsi_space_give_large(&space, c, false);
    REQUIRE(fake_os_heal());
    REQUIRE(tsi_space_take_large(&space, 4u << 20, 1, false, 0, &d));
    fake_os_clear();
    tsi_space_zero_large(&space, space.base, 4u << 20);
    REQUIRE_STR(runs(), "[0x100-0x1ff]");
    for (unsigned i = 0; i < 4u << 20; i++) REQUIRE_EQ(space.base[i], 0);
    tsi_space_give_large(&space, d, false); /* all of them purged: clean again */
    REQUIRE(tsi_space_take_large(&space, 4u << 20, 1, false, 0, &d));
    fake_os_clear();
    tsi_space_zero_large(&space, space.base, 4u << 20);
    REQUIRE_STR(runs(), "");
}

/* The same where the object begins in the middle of a clean chunk. */
static void zeros_from_the_middle_of_a_chunk(void) {
    uint32_t a, b, c;
    reopen(SLAB_PURGE_NEVER, false, false);
    REQUIRE(tsi_space_take_large(&space, 1u << 19, 1, false, 0, &a));
    REQUIRE(tsi_space_take_large(&space, 3u << 19, 1, false, 0, &b)); /* the rest of the chunk, and the next one */
    memset(space.base + (1u << 20), 0xEE, 1u << 20);
    tsi_space_give_large(&space, b, false);
    tsi_store_relaxed(&space.chunks[0].dirty, 0);
    REQUIRE(tsi_space_take_large(&space, 3u << 19, 1, false, 0, &c));
    REQUIRE_EQ(c, b);
    tsi_space_zero_large(&space, space.base + (1u << 19), 3u << 19);
    for (unsigned i = 1u << 19; i < 2u << 20; i++) REQUIRE_EQ(space.base[i], 0);
}

/* All pages of its bookkeeping; what old words are judged by is in its floors. */
static void an_empty_chunk_returns_all(void) {
    uint32_t id = take(CLASS_64);
    tsi_store_relaxed(&tsi_slab(&space, id)->tag, tsi_tag(9, 0, TSI_SLAB_PURGING));
    tsi_store_relaxed(&tsi_slab(&space, id)->gen_base, 70);
    tsi_store_relaxed(&tsi_line(&space, 0)->issued, 5);
    fake_os_clear();
    tsi_space_give(&space, &id, 1);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_line(&space, 0)->issued), 0);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_slab(&space, id)->tag), 0);
    REQUIRE(memcmp(fake_os_pages(tsi_meta_of(&space, 0), 19), "xxxxxxxxxxxxxxxxxx.", 19) == 0);
    REQUIRE_EQ(tsi_written_bytes(&space, 0) + tsi_written_entries(&space, 1), 0);
    for (unsigned turn = 0; turn < 2; turn++) {
        id = take(turn == 0 ? CLASS_64 : tsi_region_class(0));
        REQUIRE_EQ(id >> 8, 0);
        REQUIRE_EQ(tsi_tag_seq(tsi_load_relaxed(&tsi_slab(&space, id)->tag)), 9);
        REQUIRE_EQ(tsi_load_relaxed(&tsi_slab(&space, id)->gen_base), 70);
        tsi_space_give(&space, &id, 1);
    }
}

/* Where the system refuses, all is as it was, and links are nobody's. */
static void an_empty_chunk_that_cannot_go(void) {
    uint32_t id = take(CLASS_64);
    tsi_store_relaxed(&tsi_slab(&space, id)->tag, tsi_tag(9, 0, TSI_SLAB_PURGING));
    fake_os_fail(FAKE_PURGE, 1, true);
    tsi_space_give(&space, &id, 1);
    REQUIRE(fake_os_heal());
    REQUIRE_EQ(tsi_tag_seq(tsi_load_relaxed(&tsi_slab(&space, id)->tag)), 9);
    for (uint32_t i = 0; i < TSI_CHUNK_SLABS; i++) REQUIRE_EQ(tsi_load_relaxed(&tsi_slab(&space, i)->inbox), 0);
    tsi_chunks_leave(&space, 0);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_slab(&space, id)->tag), 0);
}

/* Of many at once; a few that come and go keep theirs. */
static void large_objects_leave_no_words(void) {
    uint32_t id[200], many = space.chunk_count < 200 ? space.chunk_count : 200;
    for (unsigned lap = 0; lap < 300; lap++) {
        REQUIRE(tsi_space_take_large(&space, 1 << 20, 1, false, 0, &id[lap % 2]));
        if (lap % 2 == 1) tsi_space_give_large(&space, id[1], false), tsi_space_give_large(&space, id[0], false);
    }
    for (unsigned i = 0; i < fake_os.run_count; i++)
        REQUIRE(!(fake_os.runs[i].from - (uintptr_t)space.meta < (uintptr_t)space.chunk_count << TSI_META_SHIFT));
    for (uint32_t i = 0; i < many; i++) REQUIRE(tsi_space_take_large(&space, 1 << 20, 1, false, 0, &id[i]));
    for (uint32_t i = 0; i < many; i++) tsi_space_give_large(&space, id[i], false);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < many; i++) bytes += tsi_written_bytes(&space, i);
    bytes += tsi_written_entries(&space, many);
    REQUIRE(many < 150 || bytes <= 130 * 2 * tsi_os.page_bytes);
    tsi_chunks_leave(&space, 0);
    for (uint32_t i = 0; i < many; i++) REQUIRE_EQ(tsi_written_bytes(&space, i), 0);
}

/* A slab in an inbox, whose link outlives it, keeps the pages of links. */
static void an_empty_chunk_with_a_slab_in_an_inbox(void) {
    uint32_t id = take(CLASS_64);
    tsi_store_relaxed(&tsi_slab(&space, id)->tag, tsi_tag(9, 0, TSI_SLAB_PURGING));
    tsi_store_relaxed(&tsi_line(&space, 0)->issued, 5);
    tsi_store_relaxed(&tsi_slab(&space, 3)->inbox, 1);
    fake_os_clear();
    tsi_space_give(&space, &id, 1);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_line(&space, 0)->issued), 0);
    REQUIRE_EQ(tsi_tag_seq(tsi_load_relaxed(&tsi_slab(&space, id)->tag)), 9);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_slab(&space, 3)->inbox), 1);
    REQUIRE(memcmp(fake_os_pages(tsi_meta_of(&space, 0), 10), "..xxxxxxxx", 10) == 0);
    for (uint32_t i = 0; i < TSI_CHUNK_SLABS; i++) REQUIRE_EQ(tsi_load_relaxed(&tsi_slab(&space, i)->inbox), i == 3);
    tsi_store_relaxed(&tsi_slab(&space, 3)->inbox, 0);
    tsi_chunks_leave(&space, 0);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_slab(&space, id)->tag), 0);
}

/* Each KiB of a slab leads to the words of its line or region; also where its chunk had another class before. */
static void entries_lead_to_words(void) {
    reopen(SLAB_PURGE_NEVER, false, false); /* so that words and entries stay as a chunk loses its class */
    for (unsigned cls = 1; cls < TSI_CLASSES; cls = kit_class_after(cls)) {
        const TsiClass* c = &space.classes->c[cls];
        bool region = tsi_class_is_region(cls);
        uint32_t id = take(cls);
        REQUIRE_EQ(id >> 8, 0); /* the same chunk for all */
        REQUIRE(tsi_load_relaxed(&space.covered) >= TSI_KIB(1024));
        for (uint32_t at = 0; at < c->slab_bytes; at += TSI_KIB(1)) {
            uint8_t* p = tsi_slab_payload(&space, c, id) + at;
            uint32_t entry = tsi_load_relaxed(&space.entries[(size_t)(p - space.base) >> TSI_LINE_MIN_SHIFT]);
            const void* words = space.words + (size_t)(entry & ~TSI_ENTRY_REGION) * sizeof(TsiLine);
            REQUIRE_EQ((entry & TSI_ENTRY_REGION) != 0, region);
            if (region) REQUIRE_EQ(words, tsi_region(&space, id));
            else REQUIRE_EQ(words, tsi_line(&space, tsi_first_line(c, id) + (at >> c->line_shift)));
        }
        tsi_space_give(&space, &id, 1);
        REQUIRE_EQ(tsi_chunk_class(&space, 0), 0);
    }
    REQUIRE_EQ(((const TsiLine*)(const void*)space.words)->heap_at, 0); /* entry 0 */
}

static void ids_and_addresses_agree(void) {
    for (unsigned cls = 1; cls < TSI_CLASSES; cls = kit_class_after(cls)) {
        const TsiClass* c = &space.classes->c[cls];
        uint32_t id = take(cls);
        (void)take(cls);
        for (uint32_t i = 0, first = tsi_first_line(c, id); i < 1u << c->lines_log2; i++) {
            REQUIRE_EQ(tsi_slab_of_line(&space, first + i), id);
            REQUIRE_EQ(tsi_line_id(&space, tsi_line(&space, first + i)), first + i);
            for (unsigned slot = 0; slot < TSI_LINE_SLOTS; slot++) {
                if ((c->full >> slot & 1) == 0) continue;
                TsiPlace in = {first + i, id, cls, slot}, out;
                REQUIRE_EQ(tsi_space_locate(&space, tsi_place_address(&space, &in), &out), TSI_PLACE_OK);
                REQUIRE(memcmp(&in, &out, sizeof in) == 0);
            }
        }
        if (cls % 12 == 0) reopen(SLAB_PURGE_DONTNEED, false, false); /* each class takes a chunk: start over */
    }
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_space, close_space)
        TEST(fresh_slabs_in_address_order),
        TEST(given_slabs_come_first),
        TEST(an_empty_chunk_serves_any_class),
        TEST(no_slot_in_a_chunk_without_class),
        TEST(floors_survive_a_change_of_class),
        TEST(purges_are_sorted_runs),
        TEST(runs_cross_chunks),
        TEST(sorting),
        TEST(large_objects_take_units),
        TEST(large_objects_grow_where_they_are),
        TEST(nothing_grows_into_what_goes),
        TEST(everything_can_be_taken),
        TEST(failed_commits_change_nothing),
        TEST(strips_have_no_gaps),
        TEST(a_limit_is_used_up),
        TEST(policies),
        TEST(zeros_cost_what_dirt_there_is),
        TEST(zeros_over_clean_and_dirty_chunks),
        TEST(zeros_from_the_middle_of_a_chunk),
        TEST(an_empty_chunk_returns_all),
        TEST(an_empty_chunk_that_cannot_go),
        TEST(an_empty_chunk_with_a_slab_in_an_inbox),
        TEST(large_objects_leave_no_words),
        TEST(entries_lead_to_words),
        TEST(ids_and_addresses_agree),
    };
    fake_os_install(0, false, false);
    (void)slab_page_size(); /* the process's own tables */
    return CHECK_RUN(argc, argv, tests);
}
