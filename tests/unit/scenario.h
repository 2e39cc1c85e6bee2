/*
 * scenario.h - one whole life of an allocator, from create to destroy, that tolerates lack of memory.
 *
 * Every call either succeeds or fails the documented way (NULL and ENOMEM); frees and closes never
 * fail. Contents are patterns checked before each free. The scenario keeps going after a failure, so a
 * fault at any call is followed by much that must still work. Used with faults by test_oom and without
 * by test_pages.
 */
#ifndef TESTS_UNIT_SCENARIO_H
#define TESTS_UNIT_SCENARIO_H

#include "fake_os.h"
#include "kit/inside.h"

enum { SCENARIO_OBJECTS = 4096, SCENARIO_DOMAINS = 300, SCENARIO_DEPTH = 40, SCENARIO_HANDLES = 64 };

typedef struct Scenario {
    SlabAllocator* a;
    uint8_t* at[SCENARIO_OBJECTS];
    size_t bytes[SCENARIO_OBJECTS];
    unsigned count;
    uint64_t refused;  /* allocations that found no memory */
    const char* wrong; /* first thing that went wrong on the other thread */
} Scenario;

static void scenario_keep(Scenario* r, void* p, size_t bytes) {
    REQUIRE(r->count < SCENARIO_OBJECTS);
    memset(p, (int)(r->count & 0xff), bytes < 64 ? bytes : 64);
    ((uint8_t*)p)[bytes - 1] = (uint8_t)r->count;
    r->at[r->count] = p;
    r->bytes[r->count++] = bytes;
}

/* Success, or no memory. */
static bool scenario_got(Scenario* r, const void* p) {
    if (p != NULL) return true;
    REQUIRE_EQ(errno, ENOMEM);
    r->refused++;
    return false;
}

static void scenario_take(Scenario* r, size_t bytes) {
    errno = 0;
    void* p = slab_malloc(r->a, bytes);
    if (scenario_got(r, p)) scenario_keep(r, p, bytes);
}

static void scenario_verify(const Scenario* r, unsigned n) {
    REQUIRE_EQ(r->at[n][0], n & 0xff);
    REQUIRE_EQ(r->at[n][r->bytes[n] - 1], n & 0xff);
}

static void scenario_drop(Scenario* r, unsigned n) {
    if (r->at[n] == NULL) return;
    scenario_verify(r, n);
    REQUIRE(slab_free_checked(r->a, r->at[n])); /* a free needs no memory */
    r->at[n] = NULL;
}

/* Every class, enough of some to fill lines, and large objects. */
static void scenario_sizes(Scenario* r) {
    for (size_t bytes = 16; bytes <= TSI_SMALL_MAX; bytes += bytes < 1024 ? 16 : bytes / 4) {
        for (unsigned n = bytes <= 1024 ? 5 : 2; n != 0; n--) scenario_take(r, bytes);
    }
    for (unsigned n = 0; n < 200; n++) scenario_take(r, 1000);
    static const size_t large[] = {TSI_SMALL_MAX + 1, 1 << 20, (1 << 20) + 1, 3 << 20};
    for (unsigned i = 0; i < 4; i++) scenario_take(r, large[i]);
    errno = 0;
    void* p = slab_aligned_alloc(r->a, 1 << 21, 5000);
    if (scenario_got(r, p)) {
        REQUIRE_EQ((uintptr_t)p & ((1 << 21) - 1), 0);
        scenario_keep(r, p, 5000);
    }
    errno = 0;
    p = slab_calloc(r->a, 10, 500);
    if (scenario_got(r, p)) {
        for (unsigned i = 0; i < 5000; i++) REQUIRE_EQ(((uint8_t*)p)[i], 0);
        scenario_keep(r, p, 5000);
    }
}

static void scenario_resize(Scenario* r) {
    for (unsigned n = 0; n < r->count; n += 9) {
        if (r->at[n] == NULL || r->bytes[n] > 10000) continue;
        errno = 0;
        uint8_t* p = slab_realloc(r->a, r->at[n], r->bytes[n] * 3);
        if (!scenario_got(r, p)) { /* the block is as it was */
            scenario_verify(r, n);
            continue;
        }
        REQUIRE_EQ(p[0], n & 0xff);
        r->at[n] = p;
        r->bytes[n] *= 3;
        p[r->bytes[n] - 1] = (uint8_t)n;
    }
}

static void scenario_handles(Scenario* r) {
    SlabHandle h[SCENARIO_HANDLES] = {0};
    void* p[SCENARIO_HANDLES];
    for (unsigned i = 0; i < SCENARIO_HANDLES; i++) {
        errno = 0;
        p[i] = alloc_obj(r->a, 40 + i * 30, &h[i]);
        bool got = scenario_got(r, p[i]);
        REQUIRE(got == (h[i] != 0));
        if (got) REQUIRE_EQ(slab_handle_ptr(r->a, h[i]), p[i]);
    }
    for (unsigned i = 0; i < SCENARIO_HANDLES; i++) {
        if (h[i] == 0) continue;
        if (i % 2 == 0)
            REQUIRE(free_obj(r->a, h[i]));
        else
            REQUIRE(slab_free_checked(r->a, p[i]));
        REQUIRE(!free_obj(r->a, h[i]));
        REQUIRE_NULL(slab_handle_ptr(r->a, h[i]));
    }
}

/* Many small phases side by side, then a deep nest of them. */
static void scenario_domains(Scenario* r) {
    static epoch_domain_t* d[SCENARIO_DOMAINS];
    for (unsigned i = 0; i < SCENARIO_DOMAINS; i++) {
        errno = 0;
        d[i] = epoch_domain_create_labeled(r->a, "phase");
        if (!scenario_got(r, d[i])) continue;
        for (unsigned n = 0; n < 3; n++) {
            errno = 0;
            void* p = epoch_domain_malloc(d[i], n == 2 ? 1000 : 100);
            if (scenario_got(r, p)) memset(p, 0xee, 100);
        }
    }
    for (unsigned i = 0; i < SCENARIO_DOMAINS; i++) epoch_domain_destroy(d[i]);
    for (unsigned i = 0; i < SCENARIO_DEPTH; i++) {
        errno = 0;
        d[i] = epoch_domain_begin(r->a, "nest");
        if (!scenario_got(r, d[i])) continue;
        REQUIRE_EQ(epoch_domain_current(), d[i]);
        errno = 0;
        void* p = slab_malloc(r->a, 300);
        uint64_t era = 0;
        if (scenario_got(r, p)) {
            REQUIRE(slab_ptr_epoch(r->a, p, NULL, &era));
            REQUIRE_EQ(era, d[i]->epoch_era);
        }
    }
    for (unsigned i = SCENARIO_DEPTH; i-- != 0;) epoch_domain_end(d[i]);
    REQUIRE_NULL(epoch_domain_current());
}

/* On another thread: frees a third of what there is, leaves some of its own behind. */
static void* scenario_other(void* arg) {
    Scenario* r = arg;
    for (unsigned n = 0; n < r->count; n += 3) {
        if (r->at[n] != NULL && !slab_free_checked(r->a, r->at[n])) r->wrong = "a remote free was refused";
        r->at[n] = NULL;
    }
    for (size_t bytes = 50; bytes < 200000 && r->count < SCENARIO_OBJECTS; bytes += bytes / 3) {
        errno = 0;
        uint8_t* p = slab_malloc(r->a, bytes);
        if (p == NULL) {
            if (errno != ENOMEM) r->wrong = "NULL without ENOMEM";
            r->refused++;
            continue;
        }
        p[0] = p[bytes - 1] = (uint8_t)r->count;
        r->at[r->count] = p;
        r->bytes[r->count++] = bytes;
    }
    return NULL;
}

static void scenario_close(Scenario* r) {
    EpochId old = epoch_current(r->a), next = epoch_advance_id(r->a);
    EpochReceipt receipt;
    REQUIRE_NE(old, next); /* advance never fails */
    scenario_take(r, 2000);
    REQUIRE(epoch_close_ex(r->a, old, EPOCH_DRAIN, &receipt));
    KIT_BALANCED(&receipt);
    kit_check(r->a);
    for (unsigned n = 0; n < r->count; n++) scenario_drop(r, n);
    REQUIRE_EQ(kit_live(r->a), 0);
    kit_check(r->a);
    unsigned first = r->count;
    for (size_t bytes = 64; bytes < 100000; bytes *= 2) scenario_take(r, bytes);
    scenario_take(r, 1 << 20);
    REQUIRE(epoch_close_ex(r->a, next, EPOCH_RELEASE, &receipt));
    KIT_BALANCED(&receipt);
    REQUIRE_EQ(receipt.objects_released, r->count - first);
    REQUIRE_EQ(kit_live(r->a), 0);
    for (unsigned n = first; n < r->count; n++) r->at[n] = NULL;
    for (unsigned n = 0; n < 40; n++) {
        old = epoch_current(r->a);
        REQUIRE_NE(epoch_advance_id(r->a), old);
    }
}

/* Nothing is short any more: everything has to work. */
static void scenario_recovered(Scenario* r) {
    uint64_t refused = r->refused;
    unsigned first = r->count;
    scenario_sizes(r);
    scenario_handles(r);
    scenario_domains(r);
    REQUIRE_EQ(r->refused, refused);
    for (unsigned n = first; n < r->count; n++) scenario_drop(r, n);
    kit_check(r->a);
    r->count = first;
}

/* The whole life. The caller has set the fault; it is gone when this returns. True when it has struck. */
static bool scenario_run(const SlabOptions* options) {
    static Scenario r;
    memset(&r, 0, sizeof r);
    errno = 0;
    r.a = slab_allocator_create_with(options);
    if (r.a == NULL) {
        REQUIRE_EQ(errno, ENOMEM);
        REQUIRE(slab_last_error()[0] != 0);
        bool struck = fake_os_heal();
        REQUIRE(struck);
        r.a = slab_allocator_create_with(options);
        REQUIRE(r.a != NULL);
        scenario_recovered(&r);
        slab_allocator_free(r.a);
        return true;
    }
    scenario_sizes(&r);
    scenario_handles(&r);
    scenario_resize(&r);
    kit_check(r.a);
    scenario_domains(&r);
    kit_on_thread(scenario_other, &r);
    if (r.wrong != NULL) FAIL("%s", r.wrong);
    kit_check(r.a);
    for (unsigned n = 0; n < 100; n++) scenario_take(&r, 1000); /* adopts what the other thread has left */
    slab_trim(r.a);
    kit_check(r.a);
    scenario_close(&r);
    slab_thread_flush(r.a);
    slab_trim(r.a);
    kit_check(r.a);
    bool struck = fake_os_heal();
    if (!struck) REQUIRE_EQ(r.refused, 0);
    r.count = 0;
    scenario_recovered(&r);
    slab_allocator_free(r.a);
    return struck;
}

#endif
