/* test_heap.c - birth, look-up, adoption and end of heaps; regions; rooms that are made anew. */
#define KIT_RING_BY_CLASS
#include "kit/one.h"

#include "heap/heap.h"
#include "mem/region.h"

enum { SIZE = 1024, SLOTS = 16, SLAB = SLOTS * SIZE };

static KitWorker worker;

static TsiInc* inc_of(EpochId id) {
    return tsi_inc(&arena->phases, tsi_ref_index(tsi_phases_resolve(&arena->phases, id)));
}
static unsigned heaps_of(EpochId id) { return tsi_load_relaxed(&inc_of(id)->heap_count); }
static unsigned detached_of(EpochId id) { return tsi_load_relaxed(&inc_of(id)->detached); }
static unsigned state_of(TsiHeap* h) { return tsi_heap_state(tsi_load_seq(&h->word)); }

static void take(void** p, unsigned n) {
    for (unsigned i = 0; i < n; i++) REQUIRE((p[i] = slab_malloc(a, SIZE)) != NULL);
}

typedef struct Batch {
    void* p[4 * SLOTS];
    unsigned n;
    TsiHeap* h;
} Batch;

static void batch_take(void* arg) {
    Batch* b = arg;
    for (unsigned i = 0; i < b->n; i++) b->p[i] = slab_malloc(a, SIZE);
    b->h = kit_binding(a)->heap;
}
static void* batch_thread(void* arg) {
    batch_take(arg);
    return NULL;
}

static void a_heap_for_each_thread_and_epoch(void) {
    void* p[1];
    Batch other = {.n = 1};
    REQUIRE_EQ(heaps_of(0), 0);
    take(p, 1);
    TsiHeap* mine = kit_binding(a)->heap;
    REQUIRE_EQ(heaps_of(0), 1);
    REQUIRE_EQ(state_of(mine), TSI_HEAP_LIVE);
    kit_worker_start(&worker);
    kit_worker_run(&worker, batch_take, &other);
    REQUIRE_EQ(heaps_of(0), 2);
    REQUIRE_NE(mine, other.h);
    REQUIRE_EQ(tsi_tag_index(kit_tag(a, p[0])), mine->index);
    REQUIRE_EQ(tsi_tag_index(kit_tag(a, other.p[0])), other.h->index);
    REQUIRE(slab_malloc_epoch(a, SIZE, 3) != NULL);
    REQUIRE_EQ(heaps_of(3), 1);
    REQUIRE_EQ(kit_binding(a)->heap, mine); /* a named epoch does not change the ambient one */
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    REQUIRE_EQ(heaps_of(0), 0);
    kit_check(a);
    kit_worker_stop(&worker);
}

/* What a thread leaves behind goes on under the next one that needs its epoch. */
static void adoption(void) {
    Batch other = {.n = SLOTS + 4};
    kit_on_thread(batch_thread, &other);
    REQUIRE_EQ(heaps_of(0), 1);
    REQUIRE_EQ(detached_of(0), 1);
    REQUIRE_EQ(state_of(other.h), TSI_HEAP_DETACHED);
    kit_check(a);
    for (unsigned i = 0; i < 8; i++) REQUIRE(slab_free_checked(a, other.p[i]));
    void* q[12 + 8];
    take(q, 20);
    REQUIRE_EQ(heaps_of(0), 1);
    REQUIRE_EQ(detached_of(0), 0);
    REQUIRE_EQ(kit_binding(a)->heap, other.h);
    REQUIRE_EQ(state_of(other.h), TSI_HEAP_LIVE);
    REQUIRE_EQ(kit_committed_now(a), 2 * SLAB); /* every free slot of both slabs was used */
    REQUIRE_EQ(kit_live(a), 2 * SLOTS);
    kit_check(a);
    for (unsigned i = 8; i < SLOTS + 4; i++) REQUIRE(slab_free_checked(a, other.p[i])); /* as the owner now */
    slab_trim(a);
    kit_check(a);
}

/* A thread with a heap of its own takes over others before it asks for memory. */
static void adopting_more(void) {
    Batch other[3];
    void* q[SLOTS];
    take(q, SLOTS);
    TsiHeap* mine = kit_binding(a)->heap;
    unsigned workers = 3;
    KitWorker w[3];
    for (unsigned i = 0; i < workers; i++) { /* all at once, or the second would adopt from the first */
        other[i].n = SLOTS / 2;
        kit_worker_start(&w[i]);
        kit_worker_run(&w[i], batch_take, &other[i]);
    }
    for (unsigned i = 0; i < workers; i++) kit_worker_stop(&w[i]);
    REQUIRE_EQ(heaps_of(0), 4);
    REQUIRE_EQ(detached_of(0), 3);
    uint64_t before = kit_committed_now(a);
    for (unsigned i = 0; i < workers; i++) take(q, SLOTS / 2);
    REQUIRE_EQ(kit_committed_now(a), before);
    REQUIRE_EQ(detached_of(0), 0);
    for (unsigned i = 0; i < workers; i++) {
        REQUIRE_EQ(state_of(other[i].h), TSI_HEAP_LIVE);
        REQUIRE_EQ(other[i].h->primary, mine->index);
        REQUIRE_NULL(other[i].h->room);
    }
    kit_check(a);
    take(q, 1);
    REQUIRE_EQ(kit_committed_now(a), before + SLAB);
    for (unsigned i = 0; i < workers; i++)
        for (unsigned n = 0; n < SLOTS / 2; n++) REQUIRE(slab_free_checked(a, other[i].p[n]));
    kit_check(a);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.objects_allocated, SLOTS + 2 * 3 * (SLOTS / 2) + 1);
    REQUIRE_EQ(r.objects_freed, 3 * (SLOTS / 2));
    REQUIRE_EQ(heaps_of(0), 0);
}

/* Heaps of an epoch that was advanced are let go, not adopted. */
static void retired_heaps_are_not_adopted(void) {
    void* p[SLOTS / 2];
    take(p, SLOTS / 2);
    TsiHeap* old = kit_binding(a)->heap;
    (void)epoch_advance_id(a);
    REQUIRE_EQ(state_of(old), TSI_HEAP_RETIRE);
    void* q = slab_malloc(a, SIZE);
    REQUIRE_EQ(state_of(old), TSI_HEAP_DETACHED);
    REQUIRE_NE(tsi_tag_index(kit_tag(a, q)), old->index);
    REQUIRE_EQ(detached_of(0), 1);
    kit_check(a);
    /* An owner's free is then another thread's, and the last one returns the slab. */
    for (unsigned i = 0; i < SLOTS / 2; i++) REQUIRE(slab_free_checked(a, p[i]));
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    kit_check(a);
}

/* A thread finds its heaps again however many epochs it uses in turn. */
/* Each phase leads to its heap, however many are open: its later objects find it. */
static void look_up_beyond_the_cache(void) {
    enum { N = 3 * TSI_HEAP_CACHE };
    epoch_domain_t* d[N];
    for (unsigned i = 0; i < N; i++) REQUIRE((d[i] = epoch_domain_create(a)) != NULL);
    for (unsigned lap = 0; lap < 3; lap++)
        for (unsigned i = 0; i < N; i++) REQUIRE(epoch_domain_malloc(d[i], SIZE) != NULL);
    for (unsigned i = 0; i < N; i++) {
        REQUIRE_EQ(heaps_of(d[i]->epoch_id), 1);
        REQUIRE(slab_malloc_epoch(a, 64, d[i]->epoch_id) != NULL);
        TsiHeap* h = tsi_heap_cached(kit_binding(a), tsi_phases_resolve(&arena->phases, d[i]->epoch_id));
        REQUIRE(h != NULL);
        REQUIRE_LE(tsi_load_relaxed(&h->slow), 2);
        EpochReceipt r;
        REQUIRE(epoch_close_ex(a, d[i]->epoch_id, EPOCH_RELEASE, &r));
        REQUIRE_EQ(r.objects_released, 4);
        epoch_domain_destroy(d[i]);
    }
    REQUIRE_EQ(kit_committed_now(a), 0);
}

static void records_are_used_again(void) {
    for (unsigned i = 0; i < 5000; i++) {
        epoch_domain_t* d = epoch_domain_create(a);
        REQUIRE(epoch_domain_malloc(d, i % 3 == 0 ? 2000 : 64) != NULL);
        epoch_domain_destroy(d);
    }
    REQUIRE(tsi_table_used(&arena->heaps) <= 200);
    REQUIRE(tsi_table_used(&arena->rooms) <= 200);
    REQUIRE(tsi_table_used(&arena->phases.incs) <= 200);
    REQUIRE(tsi_table_used(&arena->domains) <= 200);
}

/* A thread that adopts has taken a heap's record for nothing. */
static void an_adoption_keeps_no_record(void) {
    for (unsigned i = 0; i < 300; i++) {
        Batch other = {.n = 1};
        void* p[1];
        EpochId id = epoch_current(a);
        kit_on_thread(batch_thread, &other);
        take(p, 1);
        REQUIRE_EQ(kit_binding(a)->heap, other.h);
        (void)epoch_advance_id(a);
        epoch_close(a, id);
    }
    REQUIRE(tsi_table_used(&arena->heaps) <= 200);
}

/* A domain whose epoch was ended by its id opens another one as it is entered: the record of the first goes back. */
static void entering_anew_keeps_no_record(void) {
    for (unsigned i = 0; i < 300; i++) {
        epoch_domain_t* d = epoch_domain_create(a);
        REQUIRE(epoch_domain_malloc(d, SIZE) != NULL);
        uint64_t era = d->epoch_era;
        REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, NULL));
        epoch_domain_enter(d);
        REQUIRE_NE(d->epoch_era, era);
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
    }
    REQUIRE(tsi_table_used(&arena->phases.incs) <= 200);
}

/* ---- regions ---- */

static bool in_a_region(const void* p) { return tsi_class_is_region(kit_place(a, p).cls); }

static void the_first_slab_of_a_domain_is_a_region(void) {
    static const size_t sizes[] = {1, 64, 65, 100, 128, 200, 256, 400, 512, 600, 768};
    enum { N = sizeof sizes / sizeof sizes[0] };
    uint8_t* p[N];
    epoch_domain_t* d = epoch_domain_create(a);
    uint8_t* end = NULL;
    for (unsigned i = 0; i < N; i++) {
        REQUIRE((p[i] = epoch_domain_malloc(d, sizes[i])) != NULL);
        REQUIRE_EQ(kit_place(a, p[i]).cls, TSI_CLASS_REGION);
        size_t usable = slab_usable_size(a, p[i]);
        REQUIRE_EQ(usable, (sizes[i] + TSI_GRANULE - 1) / TSI_GRANULE * TSI_GRANULE);
        REQUIRE_EQ((uintptr_t)p[i] % TSI_GRANULE, 0);
        if (end != NULL) REQUIRE_EQ(p[i], end);
        end = p[i] + usable;
        memset(p[i], (int)i, usable);
    }
    REQUIRE_EQ(kit_committed_now(a), tsi_os.page_bytes); /* one page, whatever the sizes */
    void* next = epoch_domain_malloc(d, 4096);
    REQUIRE_EQ(kit_place(a, next).cls, tsi_region_class(2)); /* four times as large */
    REQUIRE_EQ(kit_committed_now(a), tsi_os.page_bytes + 4 * TSI_REGION_MIN);
    void* large = epoch_domain_malloc(d, 4097);
    REQUIRE(!in_a_region(large));
    for (unsigned i = 0; i < N; i++) {
        for (size_t n = 0; n < sizes[i]; n++) REQUIRE_EQ(p[i][n], i);
        REQUIRE(!slab_free_checked(a, p[i] + 8));
        if (sizes[i] > 16) REQUIRE(!slab_free_checked(a, p[i] + 16)); /* a granule, no start */
        REQUIRE(slab_free_checked(a, p[i]));
        REQUIRE(!slab_free_checked(a, p[i]));
    }
    REQUIRE_EQ(kit_refusals(a).double_free, N);
    REQUIRE_EQ(kit_refusals(a).interior_pointer, 2 * N - 1);
    kit_check(a);
    epoch_domain_destroy(d);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* What is freed is not handed out again before the region is used up. A pair over and over makes the regions larger, to 64 KiB,
 * and from there on uses the same one. It grows where it is: else the classes would take over. */
static void a_region_is_used_again_and_again(void) {
    enum {
        PAIR = 64,
        SMALLER = (4 + 16) * 1024 / PAIR,
        FIT = 64 * 1024 / PAIR,
        LIVES = 70
    }; /* more than generations */
    epoch_domain_t* d = epoch_domain_create(a);
    uint8_t* first = NULL;
    for (unsigned i = 0; i < SMALLER + LIVES * FIT; i++) {
        uint8_t* p = kit_hide(epoch_domain_malloc(d, PAIR / 2));
        REQUIRE_EQ(kit_hide(slab_realloc(a, p, PAIR)), p);
        if (i >= SMALLER) {
            if (i == SMALLER) first = p;
            REQUIRE_EQ(p, first + (i - SMALLER) % FIT * PAIR);
            REQUIRE_EQ(kit_place(a, p).cls, tsi_region_class(3));
        }
        REQUIRE(slab_free_checked(a, p));
        REQUIRE(!slab_free_checked(a, p));
    }
    REQUIRE_EQ(kit_committed_now(a), (4 + 16 + 64) * 1024);
    kit_check(a);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    REQUIRE_EQ(r.objects_allocated, SMALLER + LIVES * FIT);
    REQUIRE_EQ(r.objects_freed, SMALLER + LIVES * FIT);
    REQUIRE_EQ(r.bytes_allocated, (SMALLER + LIVES * FIT) * PAIR);
    epoch_domain_destroy(d);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* Bytes of the first region of a phase that takes so much, 64 bytes an object. */
static size_t first_region(const char* label, size_t bytes) {
    epoch_domain_t* d = epoch_domain_create_labeled(a, label);
    size_t first = 0;
    for (size_t at = 0; at < bytes; at += 64) {
        void* p = epoch_domain_malloc(d, 64);
        REQUIRE(p != NULL);
        if (at == 0) first = arena->space.classes->c[kit_place(a, p).cls].slab_bytes;
    }
    epoch_domain_destroy(d);
    return first;
}
static void first_region_elsewhere(void* bytes) { *(size_t*)bytes = first_region("much", 64); }

/* A thread remembers what the last phase of a label has needed: the next one of that label begins with such a region. */
static void a_label_tells_the_first_region(void) {
    size_t elsewhere = 0;
    REQUIRE_EQ(first_region("much", 4096), 4096); /* just fits */
    REQUIRE_EQ(first_region("much", 4096 + 64), 4096);
    REQUIRE_EQ(first_region("much", 16384), 16384);
    REQUIRE_EQ(first_region("much", 16384 + 64), 16384);
    REQUIRE_EQ(first_region("much", 2 << 20), 65536);
    REQUIRE_EQ(first_region("little", 64), 4096); /* another label */
    kit_worker_start(&worker);
    kit_worker_run(&worker, first_region_elsewhere, &elsewhere); /* another thread */
    kit_worker_stop(&worker);
    REQUIRE_EQ(elsewhere, 4096);
    EpochId old = epoch_current(a); /* a ring epoch that ends says nothing of domains */
    slab_epoch_set_label(a, old, "much");
    REQUIRE(slab_malloc(a, 64) != NULL);
    epoch_advance(a);
    epoch_close(a, old);
    REQUIRE_EQ(first_region("much", 64), 65536); /* the largest to begin with */
    REQUIRE_EQ(first_region("much", 64), 4096);
    (void)first_region("much", 2 << 20);
    for (unsigned n = 0; n < 2 * TSI_LEARNED; n++) { /* some share its place */
        char label[16];
        snprintf(label, sizeof label, "other %u", n);
        REQUIRE_EQ(first_region(label, 64), 4096);
    }
    kit_check(a);
}

static void ring_epochs_have_no_region(void) {
    for (size_t bytes = 1; bytes < 5000; bytes += 50) REQUIRE(!in_a_region(slab_malloc(a, bytes)));
}

/* A region goes with its last object, freed by whomever. */
static void a_drained_region(void) {
    epoch_domain_t* d = epoch_domain_create(a);
    void* p[3];
    for (unsigned i = 0; i < 3; i++) p[i] = epoch_domain_malloc(d, 100 * (i + 1));
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    REQUIRE_EQ(r.objects_escaped, 3);
    REQUIRE_EQ(r.bytes_escaped, 112 + 208 + 304);
    for (unsigned i = 0; i < 3; i++) {
        REQUIRE_EQ(kit_committed_now(a), tsi_os.page_bytes);
        REQUIRE(slab_free_checked(a, p[i]));
        REQUIRE(!slab_free_checked(a, p[i]));
    }
    REQUIRE_EQ(kit_committed_now(a), 0);
    epoch_domain_destroy(d);
}

/* ---- rooms ---- */

/* After a trim the owner's room is made anew: lines with slots ready, with enough freed ones, and full ones. */
static void a_room_is_rebuilt(void) {
    void *p[4 * SLOTS], *q[4 * SLOTS];
    take(p, 3 * SLOTS + 2);
    for (unsigned i = 0; i < 5; i++) slab_free(a, p[i]);         /* slab 0: above the threshold */
    for (unsigned i = 0; i < 2; i++) slab_free(a, p[SLOTS + i]); /* slab 1: below */
    TsiHeap* h = kit_binding(a)->heap;
    slab_trim(a);
    kit_check(a);
    REQUIRE_EQ(state_of(h), TSI_HEAP_DETACHED);
    take(q, 14 + 5);
    REQUIRE_EQ(kit_binding(a)->heap, h);
    REQUIRE_EQ(kit_committed_now(a), 4 * SLAB);
    take(q, 1);
    REQUIRE_EQ(kit_committed_now(a), 5 * SLAB); /* two slots below the threshold wait for more */
    kit_check(a);
    for (unsigned i = 2; i < 4; i++) slab_free(a, p[SLOTS + i]);
    take(q, SLOTS - 1 + 4);
    REQUIRE_EQ(kit_committed_now(a), 5 * SLAB);
    kit_check(a);
}

static void* free_batch(void* arg) {
    Batch* b = arg;
    for (unsigned i = 0; i < b->n; i++) REQUIRE(slab_free_checked(a, b->p[i]));
    return NULL;
}

/* Lines change between two slabs for ever: whichever way the change takes, and whoever freed, nothing is lost. */
static void lines_that_take_turns(void) {
    Batch turn[2] = {{.n = SLOTS}, {.n = SLOTS}};
    batch_take(&turn[0]);
    batch_take(&turn[1]); /* the second line is used up, and has never been parked */
    for (unsigned lap = 0; lap < 12; lap++) {
        Batch* b = &turn[lap % 2];
        uint32_t line = kit_place(a, b->p[0]).line_id;
        if (lap % 3 == 1) kit_on_thread(free_batch, b);
        else (void)free_batch(b);
        batch_take(b);
        for (unsigned i = 0; i < SLOTS; i++) REQUIRE_EQ(kit_place(a, b->p[i]).line_id, line);
        REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
        kit_check(a);
    }
}

/* A thread has had a heap as its first, by the epoch's id, and adopts it again as a further one: the id leads to the first
 * it has now, whose room both use. */
static void an_id_leads_to_the_first_heap(void) {
    EpochId here = epoch_current(a);
    void *mine[2], *p;
    Batch theirs = {.n = 1};
    epoch_domain_t* d = epoch_domain_wrap(a, here, false);
    for (unsigned i = 0; i < 2; i++) REQUIRE((mine[i] = slab_malloc_epoch(a, SIZE, here)) != NULL);
    for (unsigned i = 0; i < 2; i++) REQUIRE(epoch_domain_malloc(d, SIZE) != NULL); /* it leads to the first, too */
    TsiHeap* first = tsi_heap(arena, tsi_tag_index(kit_tag(a, mine[0])));
    kit_worker_start(&worker);
    kit_worker_run(&worker, batch_take, &theirs);
    TsiHeap* other = tsi_heap(arena, tsi_tag_index(kit_tag(a, theirs.p[0])));
    REQUIRE_NE(first, other);
    slab_trim(a);             /* our heap is nobody's */
    kit_worker_stop(&worker); /* and theirs */
    REQUIRE_EQ(detached_of(here), 2);
    REQUIRE((p = slab_malloc(a, SIZE)) != NULL);
    TsiHeap* now = tsi_heap(arena, tsi_tag_index(kit_tag(a, p)));
    for (unsigned i = 0; i < 2 * SLOTS && detached_of(here) != 0; i++) REQUIRE(slab_malloc(a, SIZE) != NULL);
    REQUIRE_EQ(detached_of(here), 0);
    TsiHeap* further = now == first ? other : first;
    REQUIRE_EQ(further->primary, now->index);
    REQUIRE(slab_malloc_epoch(a, SIZE, here) != NULL); /* found anew */
    uint64_t slow = tsi_load_relaxed(&now->slow) + tsi_load_relaxed(&further->slow);
    for (unsigned i = 0; i < 2 * SLOTS; i++) REQUIRE(slab_malloc_epoch(a, SIZE, here) != NULL);
    REQUIRE_BETWEEN(tsi_load_relaxed(&now->slow) + tsi_load_relaxed(&further->slow) - slow, 1,
                    3);     /* for used-up lines only */
    REQUIRE_EQ(now, other); /* or this shows nothing */
    for (unsigned i = 0; i < 2 * SLOTS; i++) REQUIRE(epoch_domain_malloc(d, SIZE) != NULL);
    REQUIRE_NULL(further->room);
    REQUIRE(epoch_domain_destroy(d));
    kit_check(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, kit_open_cold, kit_close)
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
    return CHECK_RUN(argc, argv, tests);
}
