/* test_heap.c - birth, look-up, adoption and end of heaps; regions; rooms that are made anew. */
#define UNIT_RING_BY_CLASS
#include "unit.h"

#include "heap/heap.h"
#include "mem/region.h"

enum { SIZE = 1024, SLOTS = 16, SLAB = SLOTS * SIZE };

static SlabAllocator* a;
static TsiArena* arena;
static UnitWorker worker;

static int open_allocator(void** state) {
    (void)state;
    a = unit_create_cold();
    arena = tsi_arena(a);
    return 0;
}
static int close_allocator(void** state) {
    (void)state;
    unit_check(a);
    slab_allocator_free(a);
    return 0;
}

static TsiInc* inc_of(EpochId id) {
    return tsi_inc(&arena->phases, tsi_ref_index(tsi_phases_resolve(&arena->phases, id)));
}
static unsigned heaps_of(EpochId id) { return tsi_load_relaxed(&inc_of(id)->heap_count); }
static unsigned detached_of(EpochId id) { return tsi_load_relaxed(&inc_of(id)->detached); }
static unsigned state_of(TsiHeap* h) { return tsi_heap_state(tsi_load_seq(&h->word)); }

static void take(void** p, unsigned n) {
    for (unsigned i = 0; i < n; i++) assert_non_null(p[i] = slab_malloc(a, SIZE));
}

typedef struct Batch {
    void* p[4 * SLOTS];
    unsigned n;
    TsiHeap* h;
} Batch;

static void batch_take(void* arg) {
    Batch* b = arg;
    for (unsigned i = 0; i < b->n; i++) b->p[i] = slab_malloc(a, SIZE);
    b->h = unit_binding(a)->heap;
}
static void* batch_thread(void* arg) {
    batch_take(arg);
    return NULL;
}

static void a_heap_for_each_thread_and_epoch(void** state) {
    (void)state;
    void* p[1];
    Batch other = {.n = 1};
    assert_int_equal(heaps_of(0), 0);
    take(p, 1);
    TsiHeap* mine = unit_binding(a)->heap;
    assert_int_equal(heaps_of(0), 1);
    assert_int_equal(state_of(mine), TSI_HEAP_LIVE);
    unit_worker_start(&worker);
    unit_worker_run(&worker, batch_take, &other);
    assert_int_equal(heaps_of(0), 2);
    assert_ptr_not_equal(mine, other.h);
    assert_int_equal(tsi_tag_index(unit_tag(a, p[0])), mine->index);
    assert_int_equal(tsi_tag_index(unit_tag(a, other.p[0])), other.h->index);
    assert_non_null(slab_malloc_epoch(a, SIZE, 3));
    assert_int_equal(heaps_of(3), 1);
    assert_ptr_equal(unit_binding(a)->heap, mine); /* a named epoch does not change the ambient one */
    assert_true(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    assert_int_equal(heaps_of(0), 0);
    unit_check(a);
    unit_worker_stop(&worker);
}

/* What a thread leaves behind goes on under the next one that needs its epoch. */
static void adoption(void** state) {
    (void)state;
    Batch other = {.n = SLOTS + 4};
    unit_on_thread(batch_thread, &other);
    assert_int_equal(heaps_of(0), 1);
    assert_int_equal(detached_of(0), 1);
    assert_int_equal(state_of(other.h), TSI_HEAP_DETACHED);
    unit_check(a);
    for (unsigned i = 0; i < 8; i++) assert_true(slab_free_checked(a, other.p[i]));
    void* q[12 + 8];
    take(q, 20);
    assert_int_equal(heaps_of(0), 1);
    assert_int_equal(detached_of(0), 0);
    assert_ptr_equal(unit_binding(a)->heap, other.h);
    assert_int_equal(state_of(other.h), TSI_HEAP_LIVE);
    assert_int_equal(unit_committed(a), 2 * SLAB); /* every free slot of both slabs was used */
    assert_int_equal(unit_live(a), 2 * SLOTS);
    unit_check(a);
    for (unsigned i = 8; i < SLOTS + 4; i++) assert_true(slab_free_checked(a, other.p[i])); /* as the owner now */
    slab_trim(a);
    unit_check(a);
}

/* A thread with a heap of its own takes over others before it asks for memory. */
static void adopting_more(void** state) {
    (void)state;
    Batch other[3];
    void* q[SLOTS];
    take(q, SLOTS);
    TsiHeap* mine = unit_binding(a)->heap;
    unsigned workers = 3;
    UnitWorker w[3];
    for (unsigned i = 0; i < workers; i++) { /* all at once, or the second would adopt from the first */
        other[i].n = SLOTS / 2;
        unit_worker_start(&w[i]);
        unit_worker_run(&w[i], batch_take, &other[i]);
    }
    for (unsigned i = 0; i < workers; i++) unit_worker_stop(&w[i]);
    assert_int_equal(heaps_of(0), 4);
    assert_int_equal(detached_of(0), 3);
    uint64_t before = unit_committed(a);
    for (unsigned i = 0; i < workers; i++) take(q, SLOTS / 2);
    assert_int_equal(unit_committed(a), before);
    assert_int_equal(detached_of(0), 0);
    for (unsigned i = 0; i < workers; i++) {
        assert_int_equal(state_of(other[i].h), TSI_HEAP_LIVE);
        assert_int_equal(other[i].h->primary, mine->index);
        assert_null(other[i].h->room);
    }
    unit_check(a);
    take(q, 1);
    assert_int_equal(unit_committed(a), before + SLAB);
    for (unsigned i = 0; i < workers; i++)
        for (unsigned n = 0; n < SLOTS / 2; n++) assert_true(slab_free_checked(a, other[i].p[n]));
    unit_check(a);
    EpochReceipt r;
    assert_true(epoch_close_ex(a, 0, EPOCH_RELEASE, &r));
    unit_balanced(&r);
    assert_int_equal(r.objects_allocated, SLOTS + 2 * 3 * (SLOTS / 2) + 1);
    assert_int_equal(r.objects_freed, 3 * (SLOTS / 2));
    assert_int_equal(heaps_of(0), 0);
}

/* Heaps of an epoch that was advanced are let go, not adopted. */
static void retired_heaps_are_not_adopted(void** state) {
    (void)state;
    void* p[SLOTS / 2];
    take(p, SLOTS / 2);
    TsiHeap* old = unit_binding(a)->heap;
    (void)epoch_advance_id(a);
    assert_int_equal(state_of(old), TSI_HEAP_RETIRE);
    void* q = slab_malloc(a, SIZE);
    assert_int_equal(state_of(old), TSI_HEAP_DETACHED);
    assert_int_not_equal(tsi_tag_index(unit_tag(a, q)), old->index);
    assert_int_equal(detached_of(0), 1);
    unit_check(a);
    /* An owner's free is then another thread's, and the last one returns the slab. */
    for (unsigned i = 0; i < SLOTS / 2; i++) assert_true(slab_free_checked(a, p[i]));
    assert_int_equal(unit_committed(a), SLAB);
    unit_check(a);
}

/* A thread finds its heaps again however many epochs it uses in turn. */
static void look_up_beyond_the_cache(void** state) {
    (void)state;
    enum { N = 3 * TSI_HEAP_CACHE };
    epoch_domain_t* d[N];
    for (unsigned i = 0; i < N; i++) assert_non_null(d[i] = epoch_domain_create(a));
    for (unsigned lap = 0; lap < 3; lap++)
        for (unsigned i = 0; i < N; i++) assert_non_null(epoch_domain_malloc(d[i], SIZE));
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(heaps_of(d[i]->epoch_id), 1);
        EpochReceipt r;
        assert_true(epoch_close_ex(a, d[i]->epoch_id, EPOCH_RELEASE, &r));
        assert_int_equal(r.objects_released, 3);
        epoch_domain_destroy(d[i]);
    }
    assert_int_equal(unit_committed(a), 0);
}

static void records_are_used_again(void** state) {
    (void)state;
    for (unsigned i = 0; i < 5000; i++) {
        epoch_domain_t* d = epoch_domain_create(a);
        assert_non_null(epoch_domain_malloc(d, i % 3 == 0 ? 2000 : 64));
        epoch_domain_destroy(d);
    }
    assert_true(tsi_table_used(&arena->heaps) <= 200);
    assert_true(tsi_table_used(&arena->rooms) <= 200);
    assert_true(tsi_table_used(&arena->phases.incs) <= 200);
    assert_true(tsi_table_used(&arena->domains) <= 200);
}

/* A thread that adopts has taken a heap's record for nothing. */
static void an_adoption_keeps_no_record(void** state) {
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        Batch other = {.n = 1};
        void* p[1];
        EpochId id = epoch_current(a);
        unit_on_thread(batch_thread, &other);
        take(p, 1);
        assert_ptr_equal(unit_binding(a)->heap, other.h);
        (void)epoch_advance_id(a);
        epoch_close(a, id);
    }
    assert_true(tsi_table_used(&arena->heaps) <= 200);
}

/* A domain whose epoch was ended by its id opens another one as it is entered: the record of the first goes back. */
static void entering_anew_keeps_no_record(void** state) {
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        epoch_domain_t* d = epoch_domain_create(a);
        assert_non_null(epoch_domain_malloc(d, SIZE));
        uint64_t era = d->epoch_era;
        assert_true(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, NULL));
        epoch_domain_enter(d);
        assert_int_not_equal(d->epoch_era, era);
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
    }
    assert_true(tsi_table_used(&arena->phases.incs) <= 200);
}

/* ---- regions ---- */

static bool in_a_region(const void* p) { return tsi_class_is_region(unit_place(a, p).cls); }

static void the_first_slab_of_a_domain_is_a_region(void** state) {
    (void)state;
    static const size_t sizes[] = {1, 64, 65, 100, 128, 200, 256, 400, 512, 600, 768};
    enum { N = sizeof sizes / sizeof sizes[0] };
    uint8_t* p[N];
    epoch_domain_t* d = epoch_domain_create(a);
    uint8_t* end = NULL;
    for (unsigned i = 0; i < N; i++) {
        assert_non_null(p[i] = epoch_domain_malloc(d, sizes[i]));
        assert_int_equal(unit_place(a, p[i]).cls, TSI_CLASS_REGION);
        size_t usable = slab_usable_size(a, p[i]);
        assert_int_equal(usable, (sizes[i] + TSI_GRANULE - 1) / TSI_GRANULE * TSI_GRANULE);
        assert_int_equal((uintptr_t)p[i] % TSI_GRANULE, 0);
        if (end != NULL) assert_ptr_equal(p[i], end);
        end = p[i] + usable;
        memset(p[i], (int)i, usable);
    }
    assert_int_equal(unit_committed(a), tsi_os.page_bytes); /* one page, whatever the sizes */
    void* next = epoch_domain_malloc(d, 4096);
    assert_int_equal(unit_place(a, next).cls, tsi_region_class(2)); /* four times as large */
    assert_int_equal(unit_committed(a), tsi_os.page_bytes + 4 * TSI_REGION_MIN);
    void* large = epoch_domain_malloc(d, 4097);
    assert_false(in_a_region(large));
    for (unsigned i = 0; i < N; i++) {
        for (size_t n = 0; n < sizes[i]; n++) assert_int_equal(p[i][n], i);
        assert_false(slab_free_checked(a, p[i] + 8));
        if (sizes[i] > 16) assert_false(slab_free_checked(a, p[i] + 16)); /* a granule, no start */
        assert_true(slab_free_checked(a, p[i]));
        assert_false(slab_free_checked(a, p[i]));
    }
    assert_int_equal(unit_refusals(a).double_free, N);
    assert_int_equal(unit_refusals(a).interior_pointer, 2 * N - 1);
    unit_check(a);
    epoch_domain_destroy(d);
    assert_int_equal(unit_committed(a), 0);
}

/* What is freed is not handed out again before the region is used up. A pair over and over makes the regions larger, to 64 KiB,
 * and from there on uses the same one. */
static void a_region_is_used_again_and_again(void** state) {
    (void)state;
    enum { PAIR = 64, SMALLER = (4 + 16) * 1024 / PAIR, FIT = 64 * 1024 / PAIR, LIVES = 70 }; /* more than generations */
    epoch_domain_t* d = epoch_domain_create(a);
    uint8_t* first = NULL;
    for (unsigned i = 0; i < SMALLER + LIVES * FIT; i++) {
        uint8_t* p = unit_hide(epoch_domain_malloc(d, PAIR));
        if (i >= SMALLER) {
            if (i == SMALLER) first = p;
            assert_ptr_equal(p, first + (i - SMALLER) % FIT * PAIR);
            assert_int_equal(unit_place(a, p).cls, tsi_region_class(3));
        }
        assert_true(slab_free_checked(a, p));
        assert_false(slab_free_checked(a, p));
    }
    assert_int_equal(unit_committed(a), (4 + 16 + 64) * 1024);
    unit_check(a);
    EpochReceipt r;
    assert_true(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    assert_int_equal(r.objects_allocated, SMALLER + LIVES * FIT);
    assert_int_equal(r.objects_freed, SMALLER + LIVES * FIT);
    assert_int_equal(r.bytes_allocated, (SMALLER + LIVES * FIT) * PAIR);
    epoch_domain_destroy(d);
    assert_int_equal(unit_committed(a), 0);
}

/* Bytes of the first region of a phase that takes so much, 64 bytes an object. */
static size_t first_region(const char* label, size_t bytes) {
    epoch_domain_t* d = epoch_domain_create_labeled(a, label);
    size_t first = 0;
    for (size_t at = 0; at < bytes; at += 64) {
        void* p = epoch_domain_malloc(d, 64);
        assert_non_null(p);
        if (at == 0) first = arena->space.classes->c[unit_place(a, p).cls].slab_bytes;
    }
    epoch_domain_destroy(d);
    return first;
}
static void first_region_elsewhere(void* bytes) { *(size_t*)bytes = first_region("much", 64); }

/* A thread remembers what the last phase of a label has needed: the next one of that label begins with such a region. */
static void a_label_tells_the_first_region(void** state) {
    (void)state;
    size_t elsewhere = 0;
    assert_int_equal(first_region("much", 4096), 4096); /* just fits */
    assert_int_equal(first_region("much", 4096 + 64), 4096);
    assert_int_equal(first_region("much", 16384), 16384);
    assert_int_equal(first_region("much", 16384 + 64), 16384);
    assert_int_equal(first_region("much", 2 << 20), 65536);
    assert_int_equal(first_region("little", 64), 4096); /* another label */
    unit_worker_start(&worker);
    unit_worker_run(&worker, first_region_elsewhere, &elsewhere); /* another thread */
    unit_worker_stop(&worker);
    assert_int_equal(elsewhere, 4096);
    EpochId old = epoch_current(a); /* a ring epoch that ends says nothing of domains */
    slab_epoch_set_label(a, old, "much");
    assert_non_null(slab_malloc(a, 64));
    epoch_advance(a);
    epoch_close(a, old);
    assert_int_equal(first_region("much", 64), 65536); /* the largest to begin with */
    assert_int_equal(first_region("much", 64), 4096);
    (void)first_region("much", 2 << 20);
    for (unsigned n = 0; n < 2 * TSI_LEARNED; n++) { /* some share its place */
        char label[16];
        snprintf(label, sizeof label, "other %u", n);
        assert_int_equal(first_region(label, 64), 4096);
    }
    unit_check(a);
}

static void ring_epochs_have_no_region(void** state) {
    (void)state;
    for (size_t bytes = 1; bytes < 5000; bytes += 50) assert_false(in_a_region(slab_malloc(a, bytes)));
}

/* A region goes with its last object, freed by whomever. */
static void a_drained_region(void** state) {
    (void)state;
    epoch_domain_t* d = epoch_domain_create(a);
    void* p[3];
    for (unsigned i = 0; i < 3; i++) p[i] = epoch_domain_malloc(d, 100 * (i + 1));
    EpochReceipt r;
    assert_true(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    assert_int_equal(r.objects_escaped, 3);
    assert_int_equal(r.bytes_escaped, 112 + 208 + 304);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(unit_committed(a), tsi_os.page_bytes);
        assert_true(slab_free_checked(a, p[i]));
        assert_false(slab_free_checked(a, p[i]));
    }
    assert_int_equal(unit_committed(a), 0);
    epoch_domain_destroy(d);
}

/* ---- rooms ---- */

/* After a trim the owner's room is made anew: lines with slots ready, with enough freed ones, and full ones. */
static void a_room_is_rebuilt(void** state) {
    (void)state;
    void *p[4 * SLOTS], *q[4 * SLOTS];
    take(p, 3 * SLOTS + 2);
    for (unsigned i = 0; i < 5; i++) slab_free(a, p[i]);         /* slab 0: above the threshold */
    for (unsigned i = 0; i < 2; i++) slab_free(a, p[SLOTS + i]); /* slab 1: below */
    TsiHeap* h = unit_binding(a)->heap;
    slab_trim(a);
    unit_check(a);
    assert_int_equal(state_of(h), TSI_HEAP_DETACHED);
    take(q, 14 + 5);
    assert_ptr_equal(unit_binding(a)->heap, h);
    assert_int_equal(unit_committed(a), 4 * SLAB);
    take(q, 1);
    assert_int_equal(unit_committed(a), 5 * SLAB); /* two slots below the threshold wait for more */
    unit_check(a);
    for (unsigned i = 2; i < 4; i++) slab_free(a, p[SLOTS + i]);
    take(q, SLOTS - 1 + 4);
    assert_int_equal(unit_committed(a), 5 * SLAB);
    unit_check(a);
}

static void* free_batch(void* arg) {
    Batch* b = arg;
    for (unsigned i = 0; i < b->n; i++) assert_true(slab_free_checked(a, b->p[i]));
    return NULL;
}

/* Lines change between two slabs for ever: whichever way the change takes, and whoever freed, nothing is lost. */
static void lines_that_take_turns(void** state) {
    (void)state;
    Batch turn[2] = {{.n = SLOTS}, {.n = SLOTS}};
    batch_take(&turn[0]);
    batch_take(&turn[1]); /* the second line is used up, and has never been parked */
    for (unsigned lap = 0; lap < 12; lap++) {
        Batch* b = &turn[lap % 2];
        uint32_t line = unit_place(a, b->p[0]).line_id;
        if (lap % 3 == 1) unit_on_thread(free_batch, b);
        else (void)free_batch(b);
        batch_take(b);
        for (unsigned i = 0; i < SLOTS; i++) assert_int_equal(unit_place(a, b->p[i]).line_id, line);
        assert_int_equal(unit_committed(a), 2 * SLAB);
        unit_check(a);
    }
}

/* A thread has had a heap as its first, by the epoch's id, and adopts it again as a further one: the id leads to the first
 * it has now, whose room both use. */
static void an_id_leads_to_the_first_heap(void** state) {
    (void)state;
    EpochId here = epoch_current(a);
    void *mine[2], *p;
    Batch theirs = {.n = 1};
    for (unsigned i = 0; i < 2; i++) assert_non_null(mine[i] = slab_malloc_epoch(a, SIZE, here));
    TsiHeap* first = tsi_heap(arena, tsi_tag_index(unit_tag(a, mine[0])));
    unit_worker_start(&worker);
    unit_worker_run(&worker, batch_take, &theirs);
    TsiHeap* other = tsi_heap(arena, tsi_tag_index(unit_tag(a, theirs.p[0])));
    assert_ptr_not_equal(first, other);
    slab_trim(a); /* our heap is nobody's */
    unit_worker_stop(&worker); /* and theirs */
    assert_int_equal(detached_of(here), 2);
    assert_non_null(p = slab_malloc(a, SIZE));
    TsiHeap* now = tsi_heap(arena, tsi_tag_index(unit_tag(a, p)));
    for (unsigned i = 0; i < 2 * SLOTS && detached_of(here) != 0; i++) assert_non_null(slab_malloc(a, SIZE));
    assert_int_equal(detached_of(here), 0);
    TsiHeap* further = now == first ? other : first;
    assert_int_equal(further->primary, now->index);
    assert_non_null(slab_malloc_epoch(a, SIZE, here)); /* found anew */
    uint64_t slow = tsi_load_relaxed(&now->slow) + tsi_load_relaxed(&further->slow);
    for (unsigned i = 0; i < 2 * SLOTS; i++) assert_non_null(slab_malloc_epoch(a, SIZE, here));
    assert_in_range(tsi_load_relaxed(&now->slow) + tsi_load_relaxed(&further->slow) - slow, 1, 3); /* for used-up lines only */
    assert_null(further->room);
    assert_ptr_equal(now, other); /* or this shows nothing */
    unit_check(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_allocator, close_allocator)
        TEST(a_heap_for_each_thread_and_epoch),
        TEST(adoption),
        TEST(adopting_more),
        TEST(an_id_leads_to_the_first_heap),
        TEST(retired_heaps_are_not_adopted),
        TEST(look_up_beyond_the_cache),
        TEST(records_are_used_again),
        TEST(an_adoption_keeps_no_record),
        TEST(entering_anew_keeps_no_record),
        TEST(the_first_slab_of_a_domain_is_a_region),
        TEST(a_region_is_used_again_and_again),
        TEST(a_label_tells_the_first_region),
        TEST(ring_epochs_have_no_region),
        TEST(a_drained_region),
        TEST(a_room_is_rebuilt),
        TEST(lines_that_take_turns),
    };
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
