/*
 * test_nodes.c - memory nodes and huge pages: what is asked of the system, for which addresses and when, and who gets
 * which slab. The machine pretends to have two nodes; every thread runs where fake_os.node says.
 */
#include "fake_os.h"
#include "kit/inside.h"

#include "mem/large.h"
#include "mem/pool.h"
#include "mem/space.h"

enum { CHUNKS = 9, CLASS_64 = 1, CLASS_1024 = 12, MIB = 1 << 20 };

static TsiSpace space;
static unsigned real_nodes;

static void open_as(bool huge, bool local, unsigned nodes) {
    TsiSpaceConfig config = {
        .reserve_bytes = (uint64_t)CHUNKS << TSI_CHUNK_SHIFT, .huge_pages = huge, .numa_local = local};
    tsi_os.nodes = nodes;
    fake_os_clear();
    fake_os.node = 0;
    /* of all of it: as a space that is too large to be usable from the start */
    if (!tsi_os.strict_commit) fake_os_fail(FAKE_COMMIT, 1, false);
    REQUIRE(tsi_space_init(&space, &config));
    (void)fake_os_heal();
}
static void close_it(void) {
    tsi_space_destroy(&space);
    tsi_os.nodes = real_nodes;
    REQUIRE_EQ(fake_os.misaligned, 0);
}
static uint32_t take_on(unsigned node, unsigned cls) {
    uint32_t id = UINT32_MAX;
    fake_os.node = node;
    REQUIRE(tsi_space_take(&space, cls, 0, &id));
    return id;
}
static uint8_t* payload(uint32_t chunk) { return space.base + (size_t)chunk * MIB; }
/* The n-th wish, from 0. */
static void require_wish(unsigned n, const void* from, size_t bytes, int node) {
    REQUIRE(n < fake_os.wish_count);
    REQUIRE_EQ(fake_os.wishes[n].from, from);
    REQUIRE_EQ(fake_os.wishes[n].bytes, bytes);
    REQUIRE_EQ(fake_os.wishes[n].node, node);
}

static void nothing_is_asked_for_by_default(void) {
    open_as(false, false, 2);
    REQUIRE_EQ(take_on(1, CLASS_64), 0);
    REQUIRE_EQ(take_on(0, CLASS_64), 1);
    REQUIRE_EQ(fake_os.wish_count, 0);
    close_it();
    open_as(false, true, 1); /* one node: nothing to choose */
    (void)take_on(0, CLASS_64);
    REQUIRE_EQ(fake_os.wish_count, 0);
    close_it();
}

static void each_node_has_chunks_of_its_own(void) {
    open_as(false, true, 2);
    REQUIRE_EQ(take_on(0, CLASS_64), 0);
    require_wish(0, payload(0), MIB, 0);
    require_wish(1, tsi_meta_of(&space, 0), 1 << TSI_META_SHIFT, 0);
    uint32_t other = take_on(1, CLASS_64);
    REQUIRE_EQ(other, 1 << 8);
    require_wish(2, payload(1), MIB, 1);
    require_wish(3, tsi_meta_of(&space, 1), 1 << TSI_META_SHIFT, 1);
    REQUIRE_EQ(take_on(0, CLASS_64), 1);
    REQUIRE_EQ(take_on(1, CLASS_64), (1 << 8) + 1);
    REQUIRE_EQ(fake_os.wish_count, 4); /* once for a chunk */
    tsi_space_give(&space, &other, 1);
    REQUIRE_EQ(take_on(0, CLASS_64), 2); /* not what the other node gave back */
    REQUIRE_EQ(take_on(1, CLASS_64), other);
    close_it();
}

/* A chunk that is empty belongs to nobody: the next node asks for it anew. */
static void an_empty_chunk_moves(void) {
    open_as(false, true, 2);
    uint32_t id = take_on(0, CLASS_64);
    tsi_space_give(&space, &id, 1);
    fake_os_clear();
    REQUIRE_EQ(take_on(0, CLASS_1024), 0);
    REQUIRE_EQ(fake_os.wish_count, 0); /* the kernel knows */
    id = 0;
    tsi_space_give(&space, &id, 1);
    REQUIRE_EQ(take_on(1, CLASS_1024), 0);
    require_wish(0, payload(0), MIB, 1);
    close_it();
}

static void other_nodes_help_out(void) {
    open_as(false, true, 2);
    unsigned n = tsi_chunk_slab_count(&space, CLASS_1024);
    for (unsigned i = 0; i < CHUNKS * n - 1; i++) (void)take_on(0, CLASS_1024);
    REQUIRE_EQ(take_on(1, CLASS_1024), (CHUNKS - 1) << 8 | (n - 1));
    uint32_t id = 0;
    fake_os.node = 1;
    REQUIRE(!tsi_space_take(&space, CLASS_1024, 0, &id));
    close_it();
}

static void large_objects_too(void) {
    uint32_t id = 0;
    open_as(false, true, 2);
    fake_os.node = 1;
    REQUIRE(tsi_space_take_large(&space, 3 * MIB - 100, 16, false, 0, &id));
    require_wish(0, payload(0), 3 * MIB, 1);
    require_wish(1, tsi_meta_of(&space, 0), 3 << TSI_META_SHIFT, 1);
    tsi_space_give_large(&space, id, false);
    close_it();
}

static void more_nodes_than_are_told_apart(void) {
    open_as(false, true, 12);
    REQUIRE_EQ(space.nodes, TSI_NODES_MAX);
    uint32_t id = take_on(11, CLASS_64);
    REQUIRE_EQ(space.chunks[id >> 8].node, 11 % TSI_NODES_MAX);
    require_wish(0, payload(id >> 8), MIB, 11); /* its own memory nevertheless */
    require_wish(1, tsi_meta_of(&space, id >> 8), 1 << TSI_META_SHIFT, 11);
    close_it();
}

/* Huge pages lie on their own multiples, and are writable as a whole. */
static void huge_pages_are_committed_whole(void) {
    open_as(true, false, 1);
    REQUIRE_EQ((uintptr_t)space.base % (2 * MIB), 0);
    require_wish(0, space.base, (size_t)CHUNKS * MIB, -1);
    unsigned n = tsi_chunk_slab_count(&space, CLASS_1024);
    for (unsigned i = 0; i < 2 * n; i++) (void)take_on(0, CLASS_1024);
    REQUIRE_EQ(space.usable[TSI_STRIP_PAYLOAD] % 2, 0);
    for (unsigned i = 2 * n; i < CHUNKS * n; i++)
        *tsi_slab_payload(&space, &space.classes->c[CLASS_1024], take_on(0, CLASS_1024)) = 1;
    close_it();
}

static void a_half_that_was_committed_before(void) {
    uint32_t large = 0;
    open_as(true, false, 1);
    REQUIRE(tsi_space_take_large(&space, MIB, 16, false, 0, &large));
    *payload(0) = 1;
    REQUIRE_EQ(take_on(0, CLASS_64), 1 << 8); /* the other half of it */
    *payload(1) = 1;
    tsi_space_give_large(&space, large, false);
    REQUIRE_EQ(take_on(0, CLASS_1024), 0);
    *payload(0) = 1;
    close_it();
}

/* A commit that fails leaves nothing half done. */
static void a_failed_commit_of_a_pair(void) {
    uint32_t id = 0;
    open_as(true, false, 1);
    fake_os_fail(FAKE_COMMIT, 1, true);
    REQUIRE(!tsi_space_take(&space, CLASS_64, 0, &id));
    REQUIRE(fake_os_heal());
    REQUIRE_EQ(take_on(0, CLASS_64), 0);
    *payload(0) = *payload(1) = 1;
    close_it();
}

/* A kernel that charges what is writable gets pages back as addresses that are mapped anew: it knows of no wish then. */
static void wishes_outlive_a_strict_kernels_purge(void) {
    uint32_t id = 0;
    size_t page = tsi_os.page_bytes;
    tsi_os.strict_commit = true;
    open_as(true, true, 2);
    size_t slab = space.classes->c[CLASS_1024].slab_bytes;
    uint32_t kept = take_on(1, CLASS_1024);
    id = take_on(1, CLASS_1024);
    fake_os_clear();
    tsi_space_purge(&space, &id, 1);
    require_wish(0, payload(0) + slab, slab, -1);
    require_wish(1, payload(0) + slab, slab, 1);
    REQUIRE_EQ(fake_os.wish_count, 2);
    tsi_space_purge(&space, &kept, 1);
    fake_os.node = 0;
    REQUIRE(tsi_space_take_large(&space, MIB + page, 16, false, 0, &id));
    fake_os_clear();
    tsi_space_give_large(&space, id, false);
    require_wish(0, payload(0), MIB + page, -1);
    require_wish(1, payload(0), MIB, 0);
    require_wish(2, payload(1), page, 0);
    close_it();
    open_as(false, false, 2);
    id = take_on(1, CLASS_1024);
    tsi_space_purge(&space, &id, 1);
    REQUIRE_EQ(fake_os.wish_count, 0);
    close_it();
    tsi_os.strict_commit = false;
}

/* The kernel's flags of the mapping that an address lies in. */
static bool has_flag(const void* p, const char* flag) {
    char line[512];
    unsigned long low, high;
    bool here = false, has = false;
    FILE* f = fopen("/proc/self/smaps", "r");
    REQUIRE(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2) here = (uintptr_t)p >= low && (uintptr_t)p < high;
        else if (here && strncmp(line, "VmFlags:", 8) == 0) has = strstr(line, flag) != NULL;
    }
    fclose(f);
    return has;
}

/* Small pages stay small ones. */
static void what_is_uncommitted_is_as_reserved(void) {
    size_t page = tsi_os.page_bytes;
    uint8_t* p = fake_os.real.reserve(3 * page);
    REQUIRE(p != NULL);
    if (!has_flag(p, " nh")) {
        fake_os.real.unmap(p, 3 * page);
        SKIP("the kernel knows no huge pages");
    }
    REQUIRE_EQ(fake_os.real.commit(p, 3 * page), 0);
    p[page] = 1;
    REQUIRE_EQ(fake_os.real.purge(p + page, page, TSI_PURGE_UNCOMMIT), 0);
    REQUIRE(has_flag(p + page, " nh"));
    REQUIRE_EQ(fake_os.real.commit(p + page, page), 0);
    REQUIRE_EQ(p[page], 0);
    fake_os.real.unmap(p, 3 * page);
}

static void an_allocator_lives_with_both(void) {
    static void* p[3000];
    SlabOptions o = {.struct_size = sizeof o, .huge_pages = 1, .numa_local = 1, .reserve_bytes = 64 * MIB};
    tsi_os.nodes = 2;
    SlabAllocator* a = kit_create_with(&o);
    for (unsigned lap = 0; lap < 4; lap++) {
        EpochId id = epoch_current(a);
        fake_os.node = lap % 2;
        for (unsigned i = 0; i < 3000; i++) memset(p[i] = slab_malloc(a, 16 + i % 1500), 1, 16 + i % 1500);
        for (unsigned i = 0; i < 3000; i += 2) REQUIRE(slab_free_checked(a, p[i]));
        (void)epoch_advance_id(a);
        (void)kit_end(a, id, EPOCH_RELEASE);
        kit_check(a);
    }
    slab_allocator_free(a);
    tsi_os.nodes = real_nodes;
    REQUIRE_EQ(fake_os.misaligned, 0);
}

/* Bookkeeping is asked of a chunk's node whatever a page is. */
static void with_pages_of_16k(void) { REQUIRE_EQ(kit_rerun("16384"), 0); }
static void with_pages_of_64k(void) { REQUIRE_EQ(kit_rerun("65536"), 0); }

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(nothing_is_asked_for_by_default),
        CHECK_CASE(each_node_has_chunks_of_its_own),
        CHECK_CASE(an_empty_chunk_moves),
        CHECK_CASE(other_nodes_help_out),
        CHECK_CASE(large_objects_too),
        CHECK_CASE(more_nodes_than_are_told_apart),
        CHECK_CASE(huge_pages_are_committed_whole),
        CHECK_CASE(a_half_that_was_committed_before),
        CHECK_CASE(a_failed_commit_of_a_pair),
        CHECK_CASE(an_allocator_lives_with_both),
        CHECK_CASE(what_is_uncommitted_is_as_reserved),
        CHECK_CASE(wishes_outlive_a_strict_kernels_purge),
    };
    const CheckCase others[] = {CHECK_CASE(with_pages_of_16k), CHECK_CASE(with_pages_of_64k)};
    bool again = argc > 1 && argv[1][0] >= '1' && argv[1][0] <= '9'; /* a page size */
    fake_os_install(again ? strtoul(argv[1], NULL, 10) : 0, false, false);
    (void)slab_page_size(); /* the process's own tables */
    real_nodes = tsi_os.nodes;
    if (again) return CHECK_RUN(0, NULL, tests);
    int failed = CHECK_RUN(argc, argv, tests);
    return argc > 1 ? failed : failed + CHECK_RUN(argc, argv, others);
}
