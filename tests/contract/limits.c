/*
 * limits.c - the world says no: no address space, no memory, pages that cannot be returned. An
 * allocation is refused with ENOMEM and counted, what is live stays whole, and it all works again
 * once there is room.
 *
 * Limits are set in children. Objects are chained through themselves, so that the test needs no
 * memory of its own while there is none.
 */
#include "kit/fixture.h"

#include <sys/mman.h>
#include <sys/resource.h>

typedef struct Link {
    struct Link* next;
    size_t size;
    uint64_t seed;
} Link;

static const size_t mixed_sizes[] = {32, 64, 100, 128, 700, 3000, 20000, 150000};

/* Allocates until refused (or `most` objects); returns how many. */
static size_t fill_up(SlabAllocator* a, Link** chain, size_t size, size_t most, uint64_t* bytes) {
    size_t n = 0;
    *bytes = 0;
    for (; n < most; n++) {
        size_t this_size = size != 0 ? size : mixed_sizes[n % 8];
        errno = 0;
        Link* link = slab_malloc(a, this_size);
        if (link == NULL) {
            CHECK_EQ(errno, ENOMEM);
            break;
        }
        link->next = *chain;
        link->size = this_size;
        link->seed = n;
        kit_fill(link + 1, this_size > 256 ? 64 : this_size - sizeof *link, n);
        *chain = link;
        *bytes += this_size;
    }
    return n;
}

static void free_chain(SlabAllocator* a, Link** chain, size_t n) {
    for (; n > 0 && *chain != NULL; n--) {
        Link* link = *chain;
        *chain = link->next;
        CHECK(kit_intact(link + 1, link->size > 256 ? 64 : link->size - sizeof *link, link->seed));
        CHECK(slab_free_checked(a, link));
    }
}

/* What every refused caller may rely on. */
static void check_full_allocator(SlabAllocator* a, Link* live) {
    SlabHandle h = 9;
    uint64_t before = kit_refusals(a).out_of_memory;
    errno = 0;
    CHECK_NULL(slab_malloc(a, PTRDIFF_MAX / 2));
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_NULL(alloc_obj(a, UINT32_MAX, &h));
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(h, 0);
    errno = 0;
    CHECK_NULL(slab_realloc(a, live, PTRDIFF_MAX / 2));
    CHECK_EQ(errno, ENOMEM);
    CHECK_NE(slab_usable_size(a, live), 0);
    CHECK_NULL(slab_calloc(a, PTRDIFF_MAX / 16, 8));
    CHECK_EQ(errno, ENOMEM);
    CHECK_NULL(slab_aligned_alloc(a, (size_t)1 << 30, PTRDIFF_MAX / 2));
    CHECK_EQ(errno, ENOMEM);
    CHECK_GE(kit_refusals(a).out_of_memory, before + 5);
    epoch_domain_t* d = epoch_domain_begin(a, "when full"); /* may or may not fit */
    if (d != NULL) {
        slab_free(a, slab_malloc(a, 100));
        epoch_domain_end(d);
    }
    epoch_advance(a); /* never fails */
    CHECK_EQ(kit_refused_frees(a), 0);
}

/* Full, partly emptied, full again, emptied, as much as at first. */
static void full_and_back(SlabAllocator* a, size_t size, uint64_t least_bytes) {
    Link* chain = NULL;
    uint64_t first = 0, bytes = 0;
    size_t n = fill_up(a, &chain, size, SIZE_MAX, &first);
    CHECK_GT(n, 0);
    CHECK_GE(first, least_bytes);
    CHECK_GT(kit_refusals(a).out_of_memory, 0);
    REQUIRE(chain != NULL);
    check_full_allocator(a, chain);
    CHECK_EQ(kit_live(a), n);
    free_chain(a, &chain, n / 2);
    CHECK_EQ(kit_live(a), n - n / 2);
    size_t more = fill_up(a, &chain, size, SIZE_MAX, &bytes);
    CHECK_GT(more, 0);
    free_chain(a, &chain, SIZE_MAX);
    CHECK_EQ(kit_live(a), 0);
    for (EpochId id = 0; id < 16; id++) {
        epoch_close(a, id);
    }
    epoch_advance(a);
    slab_trim(a); /* the budget may have learned from large objects that came again at once */
    CHECK_LE(kit_committed(a), KIT_WARM_BYTES);
    n = fill_up(a, &chain, size, SIZE_MAX, &bytes);
    CHECK_GE(bytes, first - first / 8);
    free_chain(a, &chain, SIZE_MAX);
    CHECK_EQ(kit_refused_frees(a), 0);
}

static SlabAllocator* reserve_16_mib(void) {
    SlabOptions o = kit_options();
    o.reserve_bytes = 16 * KIT_MIB;
    return kit_create_with(&o);
}

static void a_full_reservation(void) {
    static const size_t sizes[] = {32, 128, 768, 5000, 100000, 400000, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        SlabAllocator* a = reserve_16_mib();
        CHECK_LE(kit_global(a).reserved_bytes, 64 * KIT_MIB);
        /* Objects over 256 KiB lie 1 MiB apart; a mixture ends when its largest does not fit. */
        full_and_back(a, sizes[i], sizes[i] == 0 || sizes[i] > 256 * 1024 ? 4 * KIT_MIB : 8 * KIT_MIB);
        slab_allocator_free(a);
    }
}

/* Memory that one class had is there for another, once it is empty. */
static void classes_take_over_from_each_other(void) {
    static const size_t sizes[] = {64, 3000, 768, 200000, 100, 1000000, 32};
    SlabAllocator* a = reserve_16_mib();
    uint64_t without_trim = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        Link* chain = NULL;
        uint64_t bytes = 0;
        size_t n = fill_up(a, &chain, sizes[i], SIZE_MAX, &bytes);
        without_trim += i > 0 && bytes >= 8 * KIT_MIB;
        if (bytes < 8 * KIT_MIB) {
            slab_trim(a);
            uint64_t more = 0;
            n += fill_up(a, &chain, sizes[i], SIZE_MAX, &more);
            bytes += more;
        }
        CHECK_GE(bytes, 8 * KIT_MIB);
        CHECK_EQ(kit_live(a), n);
        free_chain(a, &chain, SIZE_MAX);
        CHECK_EQ(kit_live(a), 0);
    }
    NOTE("%" PRIu64 " of 6 changes of class needed no trim", without_trim);
    slab_allocator_free(a);
}

static SlabAllocator* crowded;

static void* crowd_main(void* arg) {
    size_t rounds = *(size_t*)arg;
    for (size_t r = 0; r < rounds; r++) {
        Link* chain = NULL;
        uint64_t bytes = 0;
        (void)fill_up(crowded, &chain, 0, SIZE_MAX, &bytes);
        free_chain(crowded, &chain, SIZE_MAX);
    }
    return NULL;
}

static void several_threads_run_out_at_once(void) {
    pthread_t threads[4];
    size_t rounds = check_count(40);
    crowded = reserve_16_mib();
    for (int t = 0; t < 4; t++) {
        threads[t] = kit_thread(crowd_main, &rounds);
    }
    for (int t = 0; t < 4; t++) {
        pthread_join(threads[t], NULL);
    }
    CHECK_EQ(kit_live(crowded), 0);
    CHECK_GT(kit_refusals(crowded).out_of_memory, 0);
    CHECK_EQ(kit_refused_frees(crowded), 0);
    slab_trim(crowded);
    CHECK_EQ(kit_committed(crowded), 0);
    slab_allocator_free(crowded);
}

/* ---- limits of the system, in children ---- */

static uint64_t status_bytes(const char* key) {
    char line[256];
    unsigned long kib = 0;
    FILE* f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = strtoul(line + strlen(key) + 1, NULL, 10);
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return (uint64_t)kib * 1024;
}

/* Sets a soft limit to what is in use plus `room`; false when the system does not enforce it. */
static bool limit(int resource, const char* key, uint64_t room) {
    struct rlimit r;
    getrlimit(resource, &r);
    r.rlim_cur = status_bytes(key) + room;
    if (setrlimit(resource, &r) != 0) {
        return false;
    }
    void* p =
        mmap(NULL, room + 64 * KIT_MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) {
        munmap(p, room + 64 * KIT_MIB);
        return false;
    }
    return true;
}

static void unlimit(int resource) {
    struct rlimit r;
    getrlimit(resource, &r);
    r.rlim_cur = r.rlim_max;
    setrlimit(resource, &r);
}

#define NEEDS_LIMITS()                                                      \
    do {                                                                    \
        if (CHECK_TSAN || CHECK_ASAN) {                                     \
            SKIP("a sanitizer cannot live under a limit of address space"); \
        }                                                                   \
    } while (0)

static void small_address_space(void* arg) {
    (void)arg;
    if (!limit(RLIMIT_AS, "VmSize:", 256 * KIT_MIB)) {
        SKIP("RLIMIT_AS is not enforced here");
    }
    SlabAllocator* a = kit_create();
    SlabGlobalStats g = kit_global(a);
    CHECK_LE(g.reserved_bytes, 256 * KIT_MIB);
    CHECK_GE(g.reserved_bytes, 16 * KIT_MIB);
    NOTE("reserved %" PRIu64 " MiB of 256", g.reserved_bytes / KIT_MIB);
    full_and_back(a, 128, 16 * KIT_MIB);
    full_and_back(a, 0, 16 * KIT_MIB);
    slab_allocator_free(a);
    unlimit(RLIMIT_AS);
    a = kit_create();
    CHECK(slab_malloc(a, 100) != NULL);
    slab_allocator_free(a);
}

static void a_small_address_space_shrinks_the_reservation(void) {
    NEEDS_LIMITS();
    check_child(small_address_space, NULL);
}

static void no_address_space(void* arg) {
    (void)arg;
    static SlabAllocator storage;
    if (!limit(RLIMIT_AS, "VmSize:", 8 * KIT_MIB)) {
        SKIP("RLIMIT_AS is not enforced here");
    }
    for (int i = 0; i < 50; i++) {
        errno = 0;
        CHECK_NULL(slab_allocator_create());
        CHECK_EQ(errno, ENOMEM);
        CHECK(slab_last_error()[0] != '\0');
        CHECK(!allocator_init_with(&storage, NULL));
        CHECK_NULL(slab_malloc(&storage, 10));
        allocator_destroy(&storage);
    }
    allocator_init(&storage);
    CHECK_NULL(slab_malloc(&storage, 10));
    slab_free(&storage, &storage);
    unlimit(RLIMIT_AS);
    allocator_init(&storage);
    CHECK(slab_malloc(&storage, 10) != NULL);
    allocator_destroy(&storage);
}

static void no_address_space_at_all(void) {
    NEEDS_LIMITS();
    check_child(no_address_space, NULL);
}

static void small_data_segment(void* arg) {
    (void)arg;
    SlabAllocator* a = kit_create();
    CHECK(slab_malloc(a, 64) != NULL);
    if (!limit(RLIMIT_DATA, "VmData:", 48 * KIT_MIB)) {
        SKIP("RLIMIT_DATA is not enforced here");
    }
    Link* chain = NULL;
    uint64_t first = 0, bytes = 0;
    size_t n = fill_up(a, &chain, 500, 400000, &first);
    if (n == 400000) {
        NOTE("%zu objects fitted all the same: commitment is not charged as data", n);
    } else {
        CHECK_GT(kit_refusals(a).out_of_memory, 0);
        check_full_allocator(a, chain);
    }
    free_chain(a, &chain, SIZE_MAX);
    CHECK_EQ(kit_live(a), 1);
    slab_trim(a);
    n = fill_up(a, &chain, 500, 400000, &bytes);
    CHECK_GE(bytes, first - first / 8);
    free_chain(a, &chain, SIZE_MAX);
    unlimit(RLIMIT_DATA);
    n = fill_up(a, &chain, 500, 400000, &bytes);
    CHECK_EQ(n, 400000);
    free_chain(a, &chain, SIZE_MAX);
    slab_allocator_free(a);
}

static void a_small_data_segment(void) {
    NEEDS_LIMITS();
    check_child(small_data_segment, NULL);
}

static void nothing_to_do(void* arg) { (void)arg; }

static void* use_without_maps(void* arg) {
    SlabAllocator* a = arg;
    for (size_t size = 1; size < 32 * KIT_MIB; size += size / 3 + 1) {
        errno = 0;
        void* p = slab_malloc(a, size);
        CHECK(p != NULL || errno == ENOMEM);
        SlabHandle h = 7;
        errno = 0;
        void* q = alloc_obj(a, (uint32_t)size, &h);
        CHECK((q != NULL && h != 0) || (errno == ENOMEM && h == 0));
        errno = 0;
        void* r = slab_aligned_alloc(a, 4096, size);
        CHECK(r != NULL || errno == ENOMEM);
        errno = 0;
        epoch_domain_t* d = epoch_domain_begin(a, "tight");
        CHECK(d != NULL || errno == ENOMEM);
        if (d != NULL) {
            (void)slab_malloc(a, size);
            epoch_domain_end(d);
        }
        CHECK(slab_free_checked(a, p));
        CHECK(h == 0 || free_obj(a, h));
        CHECK(slab_free_checked(a, r));
        epoch_advance(a);
        (void)slab_epoch_on_end(a, epoch_current(a), nothing_to_do, NULL);
    }
    return NULL;
}

/* A stack that has to grow under the limit would end the child. */
__attribute__((noinline)) static void touch_stack(void) {
    volatile char deep[512 * 1024];
    for (size_t i = 0; i < sizeof deep; i += 1024) {
        deep[i] = 0;
    }
}

static void every_map_fails(void* arg) {
    bool warm = *(bool*)arg;
    touch_stack();
    SlabAllocator* a = kit_create();
    pthread_t t = kit_thread(use_without_maps, a); /* this one gets its thread record in time */
    pthread_join(t, NULL);
    if (!warm) {
        slab_allocator_free(a);
        a = kit_create();
    }
    if (!limit(RLIMIT_AS, "VmSize:", 0) || !limit(RLIMIT_DATA, "VmData:", 0)) {
        SKIP("RLIMIT_AS or RLIMIT_DATA is not enforced here");
    }
    use_without_maps(a);
    errno = 0;
    CHECK_NULL(slab_allocator_create());
    CHECK_EQ(errno, ENOMEM);
    unlimit(RLIMIT_AS);
    unlimit(RLIMIT_DATA);
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_refused_frees(a), 0);
    void* p = slab_malloc(a, 5 * KIT_MIB);
    CHECK(p != NULL);
    kit_fill(p, 5 * KIT_MIB, 1);
    CHECK(kit_intact(p, 5 * KIT_MIB, 1));
    CHECK(slab_free_checked(a, p));
    use_without_maps(a);
    slab_allocator_free(a);
}

static void no_map_succeeds_any_more(void) {
    bool no = false, yes = true;
    NEEDS_LIMITS();
    check_child(every_map_fails, &no);
    check_child(every_map_fails, &yes);
}

/* Locked pages cannot be given back: madvise fails. Memory is reused all the same, is zero where
 * it must be, and the failures are counted. */
static void locked_pages(void* arg) {
    enum { COUNT = 2000 };
    static void* kept[COUNT];
    (void)arg;
    SlabAllocator* a = kit_create_cold();
    for (int round = 0; round < 3; round++) {
        epoch_domain_t* d = epoch_domain_begin(a, "locked");
        uintptr_t low = UINTPTR_MAX, high = 0;
        for (size_t i = 0; i < COUNT; i++) {
            kept[i] = slab_calloc(a, 1, 500);
            REQUIRE(kept[i] != NULL);
            CHECK(kit_all_zero(kept[i], 500));
            memset(kept[i], 0xDD, 500);
            low = (uintptr_t)kept[i] < low ? (uintptr_t)kept[i] : low;
            high = (uintptr_t)kept[i] + 500 > high ? (uintptr_t)kept[i] + 500 : high;
        }
        low &= ~(uintptr_t)(slab_page_size() - 1);
        if (high - low > 4 * COUNT * 512 || mlock((void*)low, high - low) != 0) {
            SKIP("cannot lock %zu KiB: %s", (size_t)(high - low) >> 10, strerror(errno));
        }
        epoch_domain_end(d);
        CHECK_EQ(kit_live(a), 0);
    }
    SlabGlobalStats g = kit_global(a);
    NOTE("%" PRIu64 " madvise calls, %" PRIu64 " failed", g.total_madvise_calls, g.total_madvise_failures);
    CHECK_GT(g.total_madvise_failures, 0);
    slab_allocator_free(a);
}

static void pages_that_cannot_be_returned(void) {
    if (CHECK_TSAN || CHECK_ASAN) {
        SKIP("sanitizers turn mlock into nothing");
    }
    check_child(locked_pages, NULL);
}

/* A reset needs a record for the fresh incarnation. Without one it does nothing: also not to the last receipt. */
static void a_reset_without_records(void) {
    SlabOptions o = {.struct_size = sizeof o, .reserve_bytes = 16 * KIT_MIB};
    SlabAllocator* a = kit_create_with(&o);
    epoch_domain_t* frame = epoch_domain_begin(a, "frame");
    REQUIRE(frame != NULL);
    EpochReceipt before, after;
    CHECK(slab_malloc(a, 100) != NULL);
    CHECK(epoch_domain_reset(frame));
    void* p = slab_malloc(a, 100);
    CHECK(epoch_domain_receipt(frame, &before));
    uint64_t era = frame->epoch_era;
    epoch_domain_t* last = NULL;
    for (epoch_domain_t* d = epoch_domain_create(a); d != NULL; d = epoch_domain_create(a)) {
        last = d;
    }
    CHECK_EQ(errno, ENOMEM);
    CHECK(!epoch_domain_reset(frame));
    CHECK_EQ(frame->epoch_era, era);
    CHECK_EQ(slab_usable_size(a, p), 112);
    CHECK(epoch_domain_receipt(frame, &after));
    CHECK_EQ(after.epoch_era, before.epoch_era);
    CHECK_EQ(after.objects_released, before.objects_released);
    epoch_domain_destroy(last);
    CHECK(epoch_domain_reset(frame)); /* and it works again */
    CHECK(epoch_domain_receipt(frame, &after));
    CHECK_EQ(after.epoch_era, era);
    CHECK_EQ(after.objects_released, 1);
    epoch_domain_end(frame);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(a_reset_without_records),
    CHECK_CASE(a_full_reservation),
    CHECK_CASE(classes_take_over_from_each_other),
    CHECK_CASE(several_threads_run_out_at_once),
    CHECK_CASE(a_small_address_space_shrinks_the_reservation),
    CHECK_CASE(no_address_space_at_all),
    CHECK_CASE(a_small_data_segment),
    CHECK_CASE(no_map_succeeds_any_more),
    CHECK_CASE(pages_that_cannot_be_returned),
};
CHECK_MAIN(cases)
