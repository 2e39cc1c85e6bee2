/*
 * by_malloc.c - the option by_malloc: each object is a block of malloc, to the byte, and everything else is as without
 * it: phases, receipts, handles, refusals. Blocks go back to malloc with what they stand for, whoever ends it.
 */
#include "kit/fixture.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slab_diagnostics.h>

static SlabAllocator* create(uint8_t by_malloc, uint8_t shared) {
    SlabOptions o = {.struct_size = sizeof o, .by_malloc = by_malloc, .shared = shared};
    SlabAllocator* a = slab_allocator_create_with(&o);
    REQUIRE(a != NULL);
    return a;
}

/* Bytes that malloc has given and not got back, as far as it tells: a sanitizer's says 0, and musl's nothing. */
#ifdef __GLIBC__
static size_t in_malloc(void) { return mallinfo2().uordblks; }
#else
static size_t in_malloc(void) { return 0; }
#endif

static void sizes_are_those_asked_for(void) {
    SlabAllocator* a = create(1, 0);
    for (size_t size = 1; size <= 3 * KIT_MIB; size += 1 + size / 3) {
        char* p = slab_malloc(a, kit_size(size));
        REQUIRE(p != NULL);
        memset(p, 1, size);
        CHECK_EQ(slab_usable_size(a, p), size);
        slab_free_sized(a, p, size + 1);
        CHECK_EQ(slab_usable_size(a, p), size);
        slab_free_sized(a, p, size);
        CHECK_EQ(slab_usable_size(a, kit_hide(p)), 0);
    }
    for (size_t alignment = 1; alignment <= 8 * KIT_MIB; alignment *= 2) {
        char* p = slab_aligned_alloc(a, alignment, 40);
        REQUIRE(p != NULL);
        memset(p, 1, 40);
        CHECK_EQ((uintptr_t)p % alignment, 0);
        CHECK(slab_owns(a, p));
        CHECK(slab_free_checked(a, p));
    }
    unsigned char* zeroed = slab_calloc(a, 1, KIT_MIB);
    REQUIRE(zeroed != NULL);
    for (size_t i = 0; i < KIT_MIB; i++)
        if (zeroed[i] != 0) CHECK_EQ(i, KIT_MIB);
    slab_allocator_free(a);
}

/* What happens in a phase of each, as the receipt has it. */
static EpochReceipt of_a_phase(SlabAllocator* a) {
    void* kept[200];
    EpochReceipt r;
    uint64_t dice = 7;
    epoch_domain_t* d = epoch_domain_begin(a, "figures");
    for (unsigned n = 0; n < 2000; n++) {
        SlabHandle h = 0;
        size_t size = kit_rand_size(&dice, 300000);
        void* p = n % 3 == 0 ? alloc_obj(a, (uint32_t)size, &h) : slab_malloc(a, size);
        REQUIRE(p != NULL);
        if (n % 3 == 0) CHECK(slab_handle_ptr(a, h) == p && slab_ptr_handle(a, p) == h);
        if (n >= 200 && n % 3 == 0) CHECK(free_obj(a, h) && !free_obj(a, h) && slab_handle_ptr(a, h) == NULL);
        else if (n >= 200) CHECK(slab_free_checked(a, p));
        else kept[n] = p;
    }
    for (unsigned n = 0; n < 100; n++) slab_free(a, kept[n]);
    CHECK(epoch_domain_end_ex(d, &r));
    return r;
}

static void receipts_are_the_same(void) {
    for (uint8_t shared = 0; shared < 2; shared++) {
        SlabAllocator *with = create(1, shared), *without = create(2, shared);
        EpochReceipt w = of_a_phase(with), o = of_a_phase(without);
        CHECK_EQ(w.objects_allocated, o.objects_allocated);
        CHECK_EQ(w.objects_freed, o.objects_freed);
        CHECK_EQ(w.objects_released, o.objects_released);
        CHECK_EQ(w.bytes_allocated, o.bytes_allocated);
        CHECK_EQ(w.bytes_released, o.bytes_released);
        slab_allocator_free(with);
        slab_allocator_free(without);
    }
}

static SlabRefusals refusals(SlabAllocator* a) {
    SlabRefusals r;
    slab_stats_refusals(a, &r);
    return r;
}

static void refusals_are_the_same(void) {
    SlabAllocator *a = create(1, 0), *b = create(1, 0);
    void* heap = malloc(100);
    char *p = slab_malloc(a, 100), *q = slab_malloc(a, 3 * KIT_MIB);
    CHECK(!slab_free_checked(b, p) && !slab_free_checked(a, heap));
    CHECK_EQ(refusals(a).foreign_pointer + refusals(b).foreign_pointer, 2);
    CHECK(slab_owns(a, p + 16) && slab_owns(a, q + KIT_MIB) && !slab_owns(b, p) && !slab_owns(a, heap));
    CHECK(!slab_free_checked(a, p + 16) && !slab_free_checked(a, q + KIT_MIB));
    CHECK_EQ(refusals(a).interior_pointer, 2);
    CHECK(slab_free_checked(a, p) && !slab_free_checked(a, kit_hide(p)));
    CHECK_NULL(slab_realloc(a, kit_hide(p), 10));
    CHECK_EQ(refusals(a).double_free, 2);
    CHECK(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, NULL));
    CHECK(!slab_free_checked(a, kit_hide(q)));
    CHECK_EQ(refusals(a).stale_free, 1);
    free(heap);
    slab_allocator_free(a);
    slab_allocator_free(b);
}

static void blocks_move_in_each_realloc(void) {
    SlabAllocator* a = create(1, 0);
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    char* p = slab_malloc(a, 1);
    p[0] = 1;
    for (size_t size = 2; size <= 10000; size++) {
        char* q = slab_realloc(a, p, size);
        REQUIRE(q != NULL);
        CHECK(q != kit_hide(p) && slab_usable_size(a, q) == size && q[size - 2] == (char)(size - 1));
        q[size - 1] = (char)size;
        p = q;
    }
    for (size_t size = 10000; size > 0; size -= 100) {
        p = slab_realloc(a, p, size);
        REQUIRE(p != NULL);
        CHECK(slab_usable_size(a, p) == size && p[size - 1] == (char)size);
    }
    CHECK_NULL(slab_realloc(a, p, 0));
    CHECK_EQ(kit_live(a), 0);
    CHECK(epoch_domain_end(d));
    slab_allocator_free(a);
}

static bool note(const SlabLiveObject* o, void* ctx) {
    void** found = ctx;
    *found = o->usable_bytes == 123 ? o->address : NULL;
    return true;
}

static void walks_and_drains_have_the_programs_pointers(void) {
    SlabAllocator* a = create(1, 0);
    EpochReceipt r;
    void* found = NULL;
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    char* p = slab_malloc(a, 123);
    memset(p, 5, 123);
    CHECK_EQ(slab_epoch_walk(a, d->epoch_id, note, &found), 1);
    CHECK(found == p);
    CHECK(epoch_domain_drain(d, &r) && r.objects_escaped == 1);
    CHECK_EQ(p[122], 5);
    CHECK(slab_free_checked(a, p));
    slab_allocator_free(a);
}

enum { MANY = 10000, BYTES = 3000 };

static void fill(SlabAllocator* a) {
    for (int n = 0; n < MANY; n++) REQUIRE(slab_malloc(a, BYTES) != NULL);
}

static void blocks_go_back_to_malloc(void) {
    size_t before = in_malloc();
    SlabAllocator* a = create(1, 0);
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    fill(a);
    size_t full = in_malloc();
    if (full == 0) NOTE("this malloc does not tell what it has given");
    else CHECK_GE(full, before + (size_t)MANY * BYTES);
    CHECK(epoch_domain_reset(d));
    CHECK_LE(in_malloc(), before + 2 * KIT_MIB);
    fill(a);
    CHECK(epoch_domain_end(d));
    CHECK_LE(in_malloc(), before + 2 * KIT_MIB);
    fill(a);
    slab_allocator_free(a);
    CHECK_LE(in_malloc(), before + 2 * KIT_MIB);
}

/* ---- threads ---- */

typedef struct Race {
    SlabAllocator* a;
    _Atomic bool stop;
    uint64_t seed;
} Race;

/* Allocates where others release: what it gets may have ended, so it looks at nothing. */
static void* allocates(void* ctx) {
    Race* r = ctx;
    uint64_t dice = r->seed;
    for (int n = 0; n < 4000; n++) {
        SlabHandle h = 0;
        void* p = alloc_obj(r->a, (uint32_t)kit_rand_size(&dice, 4000), &h);
        if (p != NULL && n % 2 == 0) (void)free_obj(r->a, h);
        if (p != NULL && n % 2 != 0) (void)slab_usable_size(r->a, p);
    }
    return NULL;
}

static void* releases(void* ctx) {
    Race* r = ctx;
    for (int n = 0; n < 400; n++) (void)epoch_close_ex(r->a, epoch_current(r->a), EPOCH_RELEASE, NULL);
    return NULL;
}

static void no_block_outlives_a_release(void) {
    size_t before = in_malloc();
    for (uint8_t shared = 0; shared < 2; shared++) {
        Race r[3] = {{.a = create(1, shared), .seed = 1}};
        r[1] = (Race){.a = r[0].a, .seed = 2};
        r[2] = (Race){.a = r[0].a};
        pthread_t t[3];
        for (int n = 0; n < 3; n++) REQUIRE(pthread_create(&t[n], NULL, n < 2 ? allocates : releases, &r[n]) == 0);
        for (int n = 0; n < 3; n++) REQUIRE(pthread_join(t[n], NULL) == 0);
        CHECK(epoch_close_ex(r[0].a, epoch_current(r[0].a), EPOCH_RELEASE, NULL));
        CHECK_EQ(kit_live(r[0].a), 0);
        CHECK_LE(in_malloc(), before + 2 * KIT_MIB);
        slab_allocator_free(r[0].a);
    }
}

static void* forks(void* ctx) {
    SlabAllocator* a = ctx;
    for (int n = 0; n < 20; n++) {
        pid_t child = fork();
        if (child == 0) {
            epoch_domain_t* d = epoch_domain_begin(a, NULL);
            char* p = slab_malloc(a, 100);
            if (p != NULL) memset(p, 1, 100);
            _exit(p != NULL && epoch_domain_end(d) && slab_usable_size(a, kit_hide(p)) == 0 ? 0 : 1);
        }
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    return NULL;
}

static void children_have_the_blocks(void) {
    if (CHECK_TSAN || CHECK_ASAN) SKIP("a sanitizer's malloc may hang in a child of a threaded process");
    Race r = {.a = create(1, 0), .seed = 3};
    pthread_t t[2];
    REQUIRE(pthread_create(&t[0], NULL, allocates, &r) == 0 && pthread_create(&t[1], NULL, forks, r.a) == 0);
    for (int n = 0; n < 2; n++) REQUIRE(pthread_join(t[n], NULL) == 0);
    slab_allocator_free(r.a);
}

/* ---- malloc says no ---- */

static void malloc_refuses(void) {
    if (CHECK_TSAN || CHECK_ASAN) SKIP("a sanitizer cannot live under a limit of address space");
    pid_t child = fork();
    if (child == 0) {
        SlabAllocator* a = create(1, 0);
        struct rlimit now = {1, 1}; /* nothing more is mapped */
        SlabHandle h = 1;
        CHECK(slab_malloc(a, 100) != NULL);
        CHECK_EQ(setrlimit(RLIMIT_AS, &now), 0);
        errno = 0;
        CHECK_NULL(slab_malloc(a, 64 * KIT_MIB));
        CHECK_EQ(errno, ENOMEM);
        CHECK_NULL(alloc_obj(a, 64 << 20, &h));
        CHECK_EQ(h, 0);
        CHECK_EQ(kit_live(a), 1);
        _exit(check_failures() != 0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static const CheckCase cases[] = {
    CHECK_CASE(sizes_are_those_asked_for),
    CHECK_CASE(receipts_are_the_same),
    CHECK_CASE(refusals_are_the_same),
    CHECK_CASE(blocks_move_in_each_realloc),
    CHECK_CASE(walks_and_drains_have_the_programs_pointers),
    CHECK_CASE(blocks_go_back_to_malloc),
    CHECK_CASE(no_block_outlives_a_release),
    CHECK_CASE(children_have_the_blocks),
    CHECK_CASE(malloc_refuses),
};

int main(int argc, char** argv) {
    (void)unsetenv("TSLAB_OPTIONS"); /* each case says where it has stand-ins */
    return CHECK_RUN(argc, argv, cases);
}
