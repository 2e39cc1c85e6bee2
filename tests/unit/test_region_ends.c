/* test_region_ends.c - objects of regions that grow or have handles, and what a drain gives back. */
#include "regions.h"

#include "mem/handle.h"

/* ---- pages of what is left ---- */

/* A drain keeps each page that the last object of a region reaches into, though it may be the only one that lives. */
static void the_last_object_keeps_its_pages(void) {
    enum { BYTES = 3000, N = 5 };
    uint8_t* q[N];
    EpochReceipt r;
    void* first = make(4096); /* uses up a region of a page */
    for (unsigned n = 0; n < N; n++) memset(q[n] = make(BYTES), 7, BYTES);
    REQUIRE_EQ(kit_place(a, q[0]).slab_id, kit_place(a, q[N - 1]).slab_id);
    REQUIRE(slab_free_checked(a, first));
    give((void**)q, N - 1);
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    REQUIRE_EQ(r.objects_escaped, 1);
    for (unsigned i = 0; i < BYTES; i++) REQUIRE_EQ(q[N - 1][i], 7);
    give((void**)q + N - 1, 1);
}

/* ---- growth in place ---- */

static void* grow_elsewhere(void* q) { return slab_realloc(a, q, 900); }

static void the_last_object_grows_where_it_is(void) {
    uint8_t *q = make(100), *r;
    pthread_t t;
    void* moved = NULL;
    memset(q, 7, 100);
    for (size_t bytes = 200; bytes <= 3800; bytes += 200) {
        r = kit_hide(slab_realloc(a, q, bytes));
        REQUIRE_EQ(r, q);
        REQUIRE_EQ(slab_usable_size(a, q), (bytes + 15) / 16 * 16);
        memset(q + bytes - 200, 7, 200);
        refused(q + 112, SLAB_MISUSE_INTERIOR_POINTER);
    }
    REQUIRE_EQ(make(16), q + 3808);         /* behind all of it */
    r = kit_hide(slab_realloc(a, q, 3900)); /* not the last any more */
    REQUIRE_NE(r, q);
    for (unsigned i = 0; i < 3800; i++) REQUIRE_EQ(r[i], 7);
    refused(q, SLAB_MISUSE_DOUBLE_FREE);
    REQUIRE_EQ(slab_realloc(a, r, 16384 - 64), r); /* beyond the sizes that begin in a region */
    REQUIRE_EQ(slab_usable_size(a, r), 16384 - 64);
    q = kit_hide(slab_realloc(a, r, 16384 + 1)); /* no room */
    REQUIRE_NE(q, r);
    for (unsigned i = 0; i < 3800; i++) REQUIRE_EQ(q[i], 7);
    (void)make(100);
    q = make(100);
    size_t all = space->classes->c[kit_place(a, q).cls].slab_bytes;
    REQUIRE_NE(kit_hide(slab_realloc(a, q, all)), q); /* as large as its region, where it does not begin */
    q = make(100);
    memset(q, 8, 100);
    REQUIRE_EQ(pthread_create(&t, NULL, grow_elsewhere, q), 0); /* another thread does not own it */
    REQUIRE_EQ(pthread_join(t, &moved), 0);
    REQUIRE(moved != NULL && moved != q);
    for (unsigned i = 0; i < 100; i++) REQUIRE_EQ(((uint8_t*)moved)[i], 8);
    kit_check(a);
    EpochReceipt receipt = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(receipt.objects_allocated, 9);
    REQUIRE_EQ(receipt.objects_freed, 4);
}

/* A call that names the object's own phase leaves it there; one that names another phase does not. */
static void a_named_phase_keeps_its_own(void) {
    epoch_domain_t* other = epoch_domain_create(a);
    uint8_t* q = make(100);
    REQUIRE_EQ(epoch_domain_realloc(d, q, 1000), q);
    REQUIRE_EQ(slab_usable_size(a, q), 1008);
    REQUIRE_EQ(slab_realloc_epoch(a, q, 2000, d->epoch_id), q);
    memset(q, 7, 2000);
    uint8_t* r = kit_hide(epoch_domain_realloc(other, q, 2100));
    REQUIRE_NE(r, q);
    for (unsigned i = 0; i < 2000; i++) REQUIRE_EQ(r[i], 7);
    refused(q, SLAB_MISUSE_DOUBLE_FREE);
    EpochReceipt receipt = kit_end(a, other->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(receipt.objects_released, 1);
    REQUIRE_NULL(epoch_domain_realloc(other, make(16), 32)); /* ended */
    epoch_domain_destroy(other);
}

/* An object with a handle keeps it, wherever realloc leaves it; one that was freed grows nowhere. */
static void growth_and_handles(void) {
    SlabHandle h;
    uint8_t* q = alloc_obj_epoch(a, 100, d->epoch_id, &h);
    uint8_t* r = kit_hide(slab_realloc(a, q, 500));
    REQUIRE(r != NULL);
    REQUIRE_EQ(slab_handle_ptr(a, h), r == q ? q : NULL);
    REQUIRE(slab_free_checked(a, r));
    REQUIRE_NULL(slab_handle_ptr(a, h));
    REQUIRE_NULL(slab_realloc(a, r, 600));
    REQUIRE_EQ(errno, EINVAL);
}

/* Grown to `bytes`; whether it stayed. What it held is there. */
static uint8_t* grow(uint8_t* q, size_t bytes, bool stays) {
    size_t had = slab_usable_size(a, q);
    memset(q, 9, had);
    uint8_t* r = kit_hide(slab_realloc(a, q, bytes));
    REQUIRE(r != NULL);
    REQUIRE_EQ(r == q, stays);
    for (size_t i = 0; i < had; i++) REQUIRE_EQ(r[i], 9);
    REQUIRE(slab_usable_size(a, r) >= bytes);
    kit_check(a);
    return r;
}

/* Beyond the sizes that are bumped, each has a region with room; others go on where they were. */
static void a_large_one_grows_alone(void) {
    uint8_t *q = make(100), *small = make(16);
    uint8_t* r = grow(q, 330, false); /* not the last: with room as in the class of a quarter more */
    REQUIRE_EQ(slab_usable_size(a, r), 448);
    REQUIRE_EQ(r, small + 16);
    (void)grow(r, 448, true);
    q = grow(grow(r, 464, true), 5000, false);
    TsiRegion* first = region_of(q);
    REQUIRE(first->solo && first != region_of(small));
    REQUIRE_EQ(first->size_log2, 14);
    REQUIRE_EQ(region_of(make(16)), region_of(small));
    REQUIRE_NULL(slab_realloc(a, q + 1, 6000));
    REQUIRE_EQ(errno, EINVAL);
    for (size_t bytes = 5200; bytes < 16384; bytes += 200) (void)grow(q, bytes, true);
    (void)grow(q, 16384, true);
    r = grow(q, 16385, false);
    REQUIRE_EQ(region_of(r)->size_log2, 16);
    refused(q, SLAB_MISUSE_DOUBLE_FREE);
    REQUIRE(first->in_empties);
    q = grow(make(16), 4097, false); /* in what the other has left */
    REQUIRE_EQ(region_of(q), first);
    refused(q + 4096, SLAB_MISUSE_INTERIOR_POINTER);
    REQUIRE(slab_free_checked(a, q));
    refused(q, SLAB_MISUSE_DOUBLE_FREE);
    r = grow(grow(r, 65536, true), 128 << 10, false);
    REQUIRE_EQ(region_of(r)->size_log2, 18);
    REQUIRE_EQ(slab_handle_ptr(a, slab_ptr_handle(a, r)), r);
    (void)grow(r, 200 << 10, true); /* with a handle, as well */
    q = grow(make(16), (128 << 10) + 1, false);
    REQUIRE_EQ(kit_place(a, q).cls, TSI_CLASS_LARGE); /* with room to grow on */
    EpochReceipt receipt = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(receipt.objects_allocated, 11);
    REQUIRE_EQ(receipt.objects_freed, 7);
}

static uint8_t* not_last(void) {
    uint8_t* q = make(16);
    (void)make(16);
    return grow(q, 5000, false);
}

/* As many as that, also where small ones go by class by now; then classes serve. Spare ones are taken again, also those that others
 * have freed once they were found. */
static void so_many_are_alone(void) {
    enum { ALONE = 16 };
    void* q[ALONE + 1];
    for (unsigned lap = 0; lap < 3; lap++) {
        for (unsigned i = 0; i < ALONE + 1; i++) q[i] = not_last();
        for (unsigned i = 0; i < ALONE; i++) REQUIRE(region_of(q[i])->solo);
        REQUIRE_EQ(kit_place(a, q[ALONE]).cls, tsi_class_of(5000 + 5000 / 2));
        for (unsigned i = 0; lap == 1 && i < 4 * ALL; i++) { /* much of it is freed, and no region empty */
            p[i] = make(SIZE);
            if (i % 3 != 0) REQUIRE(slab_free_checked(a, p[i]));
        }
        REQUIRE_EQ(tsi_class_is_region(kit_place(a, make(SIZE)).cls), lap == 0);
        uint64_t committed = kit_committed_now(a);
        give(q, ALONE + 1);
        REQUIRE_EQ(kit_committed_now(a), committed);
    }
    for (unsigned i = 0; i < ALONE; i++) q[i] = not_last();
    give_elsewhere(q, ALONE);
    q[0] = not_last();
    REQUIRE_EQ(kit_place(a, q[0]).cls, tsi_class_of(5000 + 5000 / 2)); /* nobody has looked */
    slab_trim(a);
    q[0] = not_last();
    REQUIRE(region_of(q[0])->solo);
}

/* Where a budget leaves less room, the region is smaller; then it is a class's turn. */
static void alone_near_a_budget(void) {
    uint8_t* q = make(16);
    REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, 40 << 10, NULL, NULL));
    q = grow(q, 14000, false);
    REQUIRE_EQ(region_of(q)->size_log2, 14);
    REQUIRE_NULL(slab_realloc(a, q, 16385));
    REQUIRE_EQ(errno, EDQUOT);
    (void)grow(q, 16384, true);
}

/* What the heap remembers of growth is of the object that is the last now. */
static void growth_is_not_confused(void) {
    uint8_t* q = grow(make(16), 64, true);
    uint8_t* next = make(16);
    REQUIRE_EQ(next, q + 64);
    q = grow(q, 80, false);
    REQUIRE_EQ(q, next + 16);
    REQUIRE(slab_free_checked(a, next));
    next = grow(grow(make(16), 32, true), 48, true);
    REQUIRE(slab_free_checked(a, next));
    REQUIRE_NULL(slab_realloc(a, next, 50));
    REQUIRE_NULL(slab_realloc(a, next + 16, 50));
    /* The same region, and as much of it used, in another life: what grew then was the first object of it. */
    uint8_t* at = NULL;
    for (unsigned n = 0; n < 100000 && at == NULL; n++) {
        uint8_t* t = make(16);
        TsiRegion* r = region_of(t);
        if (r->size_log2 == 16 && t == tsi_load_relaxed(&r->base)) at = t;
        else REQUIRE(slab_free_checked(a, t));
    }
    REQUIRE(at != NULL);
    REQUIRE_EQ(grow(at, 160, true), at);
    REQUIRE(slab_free_checked(a, at));
    for (uint8_t* t = make(16); t != at; t = make(16)) REQUIRE(slab_free_checked(a, t));
    REQUIRE_EQ(make(64), at + 16);
    REQUIRE_EQ(make(80), at + 80);
    (void)grow(at, 100, false);
}

/* The same where the thread is: a shorter way. */
static void growth_where_the_thread_is(void) {
    uint8_t* q = make(100);
    epoch_domain_enter(d);
    TsiHeap* h = kit_binding(a)->heap;
    REQUIRE_EQ(tsi_load_relaxed(&h->region), region_of(q));
    for (size_t bytes = 200; bytes < 1000; bytes += 50) {
        (void)grow(q, bytes, true);
        REQUIRE_EQ(tsi_load_relaxed(&h->last), q);
    }
    REQUIRE_EQ(slab_usable_size(a, q), 960);
    (void)grow(q, 700, true); /* nothing is given back */
    REQUIRE_EQ(slab_usable_size(a, q), 960);
    REQUIRE_EQ(slab_handle_ptr(a, slab_ptr_handle(a, q)), q);
    (void)grow(q, 1000, true);
    uint8_t* next = kit_hide(slab_malloc(a, 16));
    REQUIRE_EQ(next, q + 1008);
    uint8_t* r = grow(q, 1020, false);
    REQUIRE_EQ(r, next + 16);
    r = grow(grow(r, 1300, true), 1400, true);
    REQUIRE_EQ(tsi_load_relaxed(&h->last), r);
    give_elsewhere((void**)&r, 1); /* the owner does not know */
    REQUIRE_NULL(slab_realloc(a, r, 1500));
    REQUIRE_EQ(errno, EINVAL);
    r = grow(grow(grow(make(200), 300, true), 400, true), 8000, false);
    REQUIRE(region_of(r)->solo);
    r = grow(make(16), 32, true);
    REQUIRE_EQ(grow(r, 600, true), r);
    uint8_t* less = kit_hide(slab_realloc(a, r, 100)); /* moves down */
    REQUIRE_NE(less, r);
    REQUIRE_EQ(slab_usable_size(a, less), 112);
    REQUIRE_NULL(slab_realloc(a, less, 0));
    REQUIRE(slab_realloc(a, NULL, 10) != NULL);
    epoch_domain_exit(d);
}

/* ---- handles ---- */

static void one_of_two_frees(void) {
    SlabHandle h[4], of_pointer;
    void* q[4];
    for (unsigned i = 0; i < 4; i++) {
        REQUIRE((q[i] = alloc_obj_epoch(a, 100, d->epoch_id, &h[i])) != NULL);
        REQUIRE_EQ(slab_handle_ptr(a, h[i]), q[i]);
        REQUIRE(region_of(q[i]) != NULL);
        for (unsigned k = 0; k < i; k++) REQUIRE(h[i] != h[k]);
    }
    void* plain = make(100);
    REQUIRE((of_pointer = slab_ptr_handle(a, plain)) != 0);
    REQUIRE(slab_ptr_handle(a, plain) == of_pointer);
    REQUIRE(free_obj(a, h[0]));
    REQUIRE(slab_free_checked(a, q[1]));
    give_elsewhere(q + 2, 1);
    for (unsigned i = 0; i < 3; i++) {
        REQUIRE(!free_obj(a, h[i]));
        REQUIRE(!slab_free_checked(a, q[i]));
        REQUIRE_NULL(slab_handle_ptr(a, h[i]));
        REQUIRE(slab_ptr_handle(a, q[i]) == 0);
    }
    REQUIRE_EQ(kit_refusals(a).stale_handle, 3);
    REQUIRE_EQ(kit_refusals(a).double_free, 3);
    REQUIRE(!free_obj(a, h[3] ^ 16)); /* a bit of something */
    REQUIRE_EQ(slab_handle_ptr(a, h[3]), q[3]);
    REQUIRE(free_obj(a, of_pointer));
    kit_check(a);
    end(EPOCH_RELEASE, 5, 4, 5 * 112);
    REQUIRE(!free_obj(a, h[3]));
}

/* A life of a region has its own generation of handles: none of an earlier one names what lies there now. */
static void handles_end_with_the_life(void) {
    static SlabHandle h[ALL + 1];
    for (unsigned lap = 0; lap < 3; lap++) {
        for (unsigned i = 0; i < ALL; i++) {
            REQUIRE((p[i] = alloc_obj_epoch(a, SIZE, d->epoch_id, &h[i])) != NULL);
            if (i >= FIRST + SECOND) REQUIRE(region_of(p[i]) != NULL);
        }
        void* first = p[FIRST + SECOND];
        for (unsigned i = 0; i < ALL; i++) REQUIRE(free_obj(a, h[i]));
        uint8_t* q = kit_hide(alloc_obj_epoch(a, SIZE, d->epoch_id, &h[ALL]));
        if (lap == 0) REQUIRE_EQ(q, first);
        for (unsigned i = 0; i < ALL; i++) {
            REQUIRE(h[i] != h[ALL]);
            REQUIRE_NULL(slab_handle_ptr(a, h[i]));
            REQUIRE(!free_obj(a, h[i]));
        }
        REQUIRE(free_obj(a, h[ALL]));
        kit_check(a);
    }
    REQUIRE_EQ(kit_refusals(a).stale_handle, 3 * ALL);
}

static void allocators_have_their_own_handles(void) {
    enum { N = 20 };
    SlabAllocator* other[N];
    SlabHandle h[N];
    for (unsigned n = 0; n < N; n++) {
        REQUIRE((other[n] = kit_create_cold()) != NULL);
        epoch_domain_t* own = epoch_domain_create(other[n]);
        REQUIRE(alloc_obj_epoch(other[n], SIZE, own->epoch_id, &h[n]) != NULL); /* the first of the first region */
        for (unsigned k = 0; k < n; k++) {
            REQUIRE(h[k] != h[n]);
            REQUIRE_NULL(slab_handle_ptr(other[n], h[k]));
            REQUIRE(!free_obj(other[k], h[n]));
        }
    }
    for (unsigned n = 0; n < N; n++) REQUIRE(free_obj(other[n], h[n]));
    for (unsigned n = 0; n < N; n++) slab_allocator_free(other[n]);
}

/* Generations run out: handles come from elsewhere, and the region is used by nobody when its phase has ended. */
static void spent_generations(void) {
    SlabHandle h;
    void* q = make(SIZE);
    uint32_t id = kit_place(a, q).slab_id;
    tsi_store_relaxed(&tsi_slab(space, id)->gen_base, TSI_GEN_LIMIT);
    for (unsigned n = 0; n < 3 * FIRST; n++) {
        void* r = alloc_obj_epoch(a, SIZE, d->epoch_id, &h);
        REQUIRE(r != NULL);
        REQUIRE_NE(kit_place(a, r).slab_id, id);
        REQUIRE_EQ(slab_handle_ptr(a, h), r);
    }
    REQUIRE(slab_ptr_handle(a, q) == 0);
    kit_check(a);
    REQUIRE_EQ(kit_refusals(a).retired_slabs, 0);
    EpochReceipt r = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, 3 * FIRST + 1);
    REQUIRE_EQ(r.objects_freed, 0);
    REQUIRE_EQ(kit_refusals(a).retired_slabs, 1);
    REQUIRE_EQ(tsi_tag_state(tsi_load_relaxed(&tsi_slab(space, id)->tag)), TSI_SLAB_RETIRED);
}

/* A renewal that would spend the last generation does not take place. */
static void the_last_generation_is_not_renewed(void) {
    fill(p, ALL);
    void** third = p + FIRST + SECOND;
    REQUIRE(slab_ptr_handle(a, third[0]) != 0);
    uint32_t id = kit_place(a, third[0]).slab_id;
    tsi_store_relaxed(&tsi_slab(space, id)->gen_base, TSI_GEN_LIMIT - 1);
    give(third, THIRD);
    void* q = make(SIZE);
    REQUIRE_NE(kit_place(a, q).slab_id, id);
    kit_check(a);
    EpochReceipt r = kit_end(a, d->epoch_id, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, ALL + 1);
    REQUIRE_EQ(r.objects_freed, THIRD);
    REQUIRE_EQ(kit_refusals(a).retired_slabs, 1);
}

/* ---- drains ---- */

enum { PAGE_OBJECTS = 4096 / SIZE, MANY = 8192 };

/* Pages without a survivor go back at the close; survivors keep theirs, and their contents, until they are freed. */
static void dead_parts_are_given_back(void) {
    static uint8_t* q[MANY];
    unsigned kept = 0;
    for (unsigned i = 0; i < MANY; i++) memset(q[i] = make(SIZE), (int)(i % 251), SIZE);
    TsiRegion* r = region_of(q[MANY - 1]);
    unsigned last = (unsigned)(r->size_log2);
    REQUIRE_EQ(last, 18); /* 256 KiB: parts of a page */
    for (unsigned i = 0; i < MANY; i++) {
        if (i % (4 * PAGE_OBJECTS) != 0) REQUIRE(slab_free_checked(a, q[i]));
        else kept++;
    }
    fake_os_clear();
    EpochReceipt receipt;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &receipt));
    KIT_BALANCED(&receipt);
    REQUIRE_EQ(receipt.objects_escaped, kept);
    size_t gone = 0;
    for (unsigned i = 0; i < fake_os.run_count; i++) gone += fake_os.runs[i].bytes;
    REQUIRE(gone >= (size_t)MANY * SIZE - 2 * kept * 4096);
    for (unsigned i = 0; i < MANY; i += 4 * PAGE_OBJECTS) {
        for (unsigned k = 0; k < SIZE; k++) REQUIRE_EQ(q[i][k], i % 251);
        REQUIRE(slab_free_checked(a, q[i]));
        REQUIRE(!slab_free_checked(a, q[i]));
    }
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* An object that reaches into the next page holds both, freed last it gives both up, whichever page it starts in. */
static void late_frees_give_up_what_they_reach_into(void) {
    enum { GROUPS = 512 };
    static void *small[GROUPS], *wide[GROUPS], *behind[GROUPS];
    void* first = make(4096);               /* groups begin with regions */
    for (unsigned i = 0; i < GROUPS; i++) { /* of two pages: [small, wide across the edge, behind] */
        small[i] = make(16);
        wide[i] = make(4096);
        behind[i] = make(4080);
        REQUIRE_EQ((uintptr_t)small[i] % 8192, 0);
        REQUIRE_EQ(behind[i], (uint8_t*)wide[i] + 4096);
    }
    EpochReceipt receipt;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &receipt));
    fake_os_clear();
    give(behind, GROUPS);
    size_t gone = 0;
    for (unsigned i = 0; i < fake_os.run_count; i++) gone += fake_os.runs[i].bytes;
    REQUIRE_EQ(gone, 0); /* the wide ones reach into these pages */
    give(wide, GROUPS);
    for (unsigned i = 0; i < fake_os.run_count; i++) gone += fake_os.runs[i].bytes;
    REQUIRE(gone >= GROUPS / 2 * 4096); /* of the pages behind, most; the last ones wait for more */
    give(small, GROUPS);
    REQUIRE(slab_free_checked(a, first));
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* ---- others ---- */

/* A shared heap's region is as strict, and as exact. */
static void shared_regions(void) {
    SlabAllocator* own = a;
    TsiSpace* own_space = space;
    epoch_domain_t* own_domain = d;
    SlabOptions o = kit_options();
    o.shared = 1;
    o.warm_bytes = UINT64_MAX;
    a = kit_create_with(&o);
    space = &tsi_arena(a)->space;
    d = epoch_domain_create(a);
    fill(p, ALL);
    give(p, 10);
    give_elsewhere(p + 10, 10);
    refused(p[0], SLAB_MISUSE_DOUBLE_FREE);
    refused(p[10], SLAB_MISUSE_DOUBLE_FREE);
    refused((uint8_t*)p[30] + 16, SLAB_MISUSE_INTERIOR_POINTER);
    give(p + FIRST + SECOND, THIRD);
    REQUIRE_EQ(make(SIZE), p[FIRST + SECOND]);
    end(EPOCH_RELEASE, ALL + 1, 20 + THIRD, (ALL + 1) * SIZE);
    epoch_domain_destroy(d);
    REQUIRE_EQ(kit_committed_now(a), 0);
    slab_allocator_free(a);
    a = own;
    space = own_space;
    d = own_domain;
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(the_last_object_keeps_its_pages),
        TEST(the_last_object_grows_where_it_is),
        TEST(a_named_phase_keeps_its_own),
        TEST(growth_and_handles),
        TEST(a_large_one_grows_alone),
        TEST(so_many_are_alone),
        TEST(alone_near_a_budget),
        TEST(growth_is_not_confused),
        TEST(growth_where_the_thread_is),
        TEST(one_of_two_frees),
        TEST(handles_end_with_the_life),
        TEST(allocators_have_their_own_handles),
        TEST(spent_generations),
        TEST(the_last_generation_is_not_renewed),
        TEST(dead_parts_are_given_back),
        TEST(late_frees_give_up_what_they_reach_into),
        TEST(shared_regions),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
