/*
 * test_nameless.c - calls that ask for a handle where there is none: no memory for counts, or no generations left. They return
 * NULL, and receipts, labels and counters have nothing of them.
 */
#include "fake_os.h"
#include "kit/one.h"

#include "mem/handle.h"

enum { SMALL = 100, LARGE = 400000, TRIES = 10 };

static void open_with(bool shared, bool profiled) {
    fake_os_install(0, false, false);
    SlabOptions o = kit_options();
    o.bump = TSI_BUMP_OFF; /* regions need no counts */
    o.shared = shared;
    if (profiled) o.profile_bytes = 1ull << 40; /* lines come by its refills, and nothing is sampled */
    kit_open_with(o);
}
static void open_owned(void) { open_with(false, false); }
static void open_shared(void) { open_with(true, false); }
static void open_profiled(void) { open_with(false, true); }

static SlabLabelStats label_of(const char* name) {
    SlabLabelStats rows[8];
    size_t n = slab_stats_labels(a, rows, 8);
    for (size_t i = 0; i < n && i < 8; i++)
        if (strcmp(rows[i].label, name) == 0) return rows[i];
    REQUIRE(!"no such label");
    return rows[0];
}

static void no_trace(size_t size) {
    epoch_domain_t* d = epoch_domain_begin(a, "nameless");
    void *other = slab_malloc(a, size), *p = slab_malloc(a, size);
    SlabHandle h = 5;
    REQUIRE(other != NULL && p != NULL);
    slab_free(a, other); /* its chunk is committed */
    SlabLabelStats was = label_of("nameless");
    SlabRefusals refused = kit_refusals(a);
    fake_os_fail(FAKE_COMMIT, 1, true);
    for (unsigned n = 0; n < TRIES; n++) {
        errno = 0;
        REQUIRE_NULL(alloc_obj(a, (uint32_t)size, &h));
        REQUIRE_EQ(errno, ENOMEM);
    }
    REQUIRE(fake_os_heal());
    SlabLabelStats is = label_of("nameless");
    REQUIRE_EQ(is.objects_allocated, was.objects_allocated);
    REQUIRE_EQ(is.bytes_allocated, was.bytes_allocated);
    REQUIRE_EQ(is.objects_freed, was.objects_freed);
    REQUIRE_EQ(is.live_objects, was.live_objects);
    REQUIRE_EQ(is.peak_bytes, was.peak_bytes);
    if (size == SMALL) REQUIRE_EQ(is.slow_path_hits, was.slow_path_hits);
    REQUIRE_EQ(kit_refusals(a).out_of_memory, refused.out_of_memory + TRIES);
    kit_check(a);
    void* q = alloc_obj(a, (uint32_t)size, &h);
    REQUIRE(q != NULL);
    REQUIRE_EQ(slab_handle_ptr(a, h), q);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    REQUIRE_EQ(r.objects_allocated, 3);
    REQUIRE_EQ(r.objects_freed, 1);
    REQUIRE_EQ(r.objects_escaped, 2);
    epoch_domain_end(d);
}
static void small_objects(void) { no_trace(SMALL); }
static void large_objects(void) { no_trace(LARGE); }

/* Lines without generations are passed over. */
static void lines_without_generations(void) {
    epoch_domain_t* d = epoch_domain_begin(a, "spent");
    void* p = kit_hide(slab_malloc(a, SMALL));
    SlabHandle h;
    tsi_store_relaxed(&tsi_slab(space, kit_place(a, p).slab_id)->gen_base, TSI_GEN_LIMIT);
    for (unsigned n = 0; n < TRIES; n++) {
        void* q = alloc_obj(a, SMALL, &h);
        REQUIRE(q != NULL);
        REQUIRE_EQ(slab_handle_ptr(a, h), q);
    }
    kit_check(a);
    EpochReceipt r = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, TRIES + 1);
    REQUIRE_EQ(r.objects_freed, 0);
    epoch_domain_end(d);
}

/* A large object where the chunk has none left: no handle, and the call ends. */
static void large_without_generations(void) {
    epoch_domain_t* d = epoch_domain_begin(a, "spent");
    void* p = kit_hide(slab_malloc(a, LARGE));
    SlabHandle h;
    TsiPlace at = kit_place(a, p);
    slab_free(a, p);
    tsi_store_relaxed(&space->chunks[tsi_slab_chunk(at.slab_id)].gen_floor, TSI_GEN_LIMIT);
    REQUIRE_NULL(alloc_obj(a, LARGE, &h));
    p = kit_hide(slab_malloc(a, LARGE));
    REQUIRE(p != NULL);
    EpochReceipt r = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, 2);
    REQUIRE_EQ(r.objects_freed, 1);
    epoch_domain_end(d);
}

static const CheckCase tests[] = {
    CHECK_CASE_WITH(small_objects, open_owned, kit_close),
    {"small_objects_shared", small_objects, open_shared, kit_close},
    {"small_objects_profiled", small_objects, open_profiled, kit_close},
    CHECK_CASE_WITH(large_objects, open_owned, kit_close),
    {"large_objects_shared", large_objects, open_shared, kit_close},
    CHECK_CASE_WITH(lines_without_generations, open_owned, kit_close),
    CHECK_CASE_WITH(large_without_generations, open_owned, kit_close),
};

int main(int argc, char** argv) { return CHECK_RUN(argc, argv, tests); }
