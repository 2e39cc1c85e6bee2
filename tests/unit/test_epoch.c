/* test_epoch.c - records, ids and the ring, without heaps; then what the public calls make of ids. */
#include "fake_os.h"
#include "kit/inside.h"

#include "phase/eras.h"

#include <pthread.h>

enum { RING = 8, RECORDS = 200 };

static TsiPhases phases;
static TsiGround ground;

static void open_phases(void) {
    fake_os_clear();
    REQUIRE(tsi_ground_reserve(&ground, tsi_phases_room(RECORDS, 16)));
    REQUIRE(tsi_phases_init(&phases, &ground, RING, RECORDS, 16));
}
static void close_phases(void) {
    tsi_phases_destroy(&phases);
    tsi_ground_drop(&ground);
}

static bool step(TsiRef* was, TsiRef* displaced) {
    tsi_lock_take(&phases.ring_lock);
    bool moved = tsi_phases_step_locked(&phases, was, displaced);
    tsi_lock_give(&phases.ring_lock);
    return moved;
}

static void recycle(TsiRef ref) {
    tsi_store_release(&tsi_inc(&phases, tsi_ref_index(ref))->word, TSI_INC_RELEASED); /* era 0, as unpinning does */
    tsi_table_give(&phases.incs, tsi_ref_index(ref));
}

static TsiRef open_domain(EpochId* id) {
    uint32_t index;
    REQUIRE(tsi_table_take(&phases.incs, &index, 0));
    *id = tsi_domain_id(&phases, index);
    uint64_t era = tsi_add_relaxed(&phases.era_next, 1);
    tsi_inc_open(&phases, index, era, *id, TSI_LABEL_NONE, tsi_no_label, 0);
    return tsi_ref(era, index);
}

static void references(void) {
    TsiRef r = tsi_ref(0x3fffffffffffull, TSI_INC_MAX);
    REQUIRE_EQ(tsi_ref_index(r), TSI_INC_MAX);
    REQUIRE(tsi_ref_era(r) == 0x3fffffffffffull);
    REQUIRE(!tsi_ref_is_current(&phases, 0));
}

static void a_new_ring(void) {
    REQUIRE_EQ(tsi_load_relaxed(&phases.current), 0);
    for (EpochId id = 0; id < RING; id++) {
        TsiRef r = tsi_phases_resolve(&phases, id);
        REQUIRE_NE(r, 0);
        REQUIRE_EQ(tsi_ref_era(r), id + 1); /* eras start at 1 */
        REQUIRE(tsi_ref_is_active(&phases, r));
        REQUIRE(tsi_phases_find_era(&phases, id + 1) == r);
    }
    REQUIRE_EQ(tsi_phases_resolve(&phases, RING), 0);
    REQUIRE_EQ(tsi_phases_resolve(&phases, TSI_DOMAIN_ID_BIT - 1), 0);
    REQUIRE_EQ(tsi_phases_find_era(&phases, 0), 0);
    REQUIRE_EQ(tsi_phases_find_era(&phases, 1000), 0);
    REQUIRE(tsi_phases_current(&phases) == tsi_phases_resolve(&phases, 0));
}

/* Each step takes the next id, under a larger era, and tells who was current and who has lost the id. */
static void stepping(void) {
    uint64_t era = RING;
    for (unsigned n = 1; n <= 4 * RING; n++) {
        TsiRef was, displaced, before = tsi_phases_current(&phases), next = tsi_phases_resolve(&phases, n % RING);
        REQUIRE(step(&was, &displaced));
        REQUIRE(was == before);
        REQUIRE(displaced == next);
        REQUIRE_EQ(tsi_load_relaxed(&phases.current), n % RING);
        TsiRef now = tsi_phases_current(&phases);
        REQUIRE(tsi_phases_resolve(&phases, n % RING) == now);
        REQUIRE(tsi_ref_era(now) > era);
        era = tsi_ref_era(now);
        REQUIRE(tsi_ref_is_active(&phases, now));
        REQUIRE(tsi_ref_is_current(&phases, displaced)); /* alive as long as it is pinned */
        recycle(displaced);
        REQUIRE(!tsi_ref_is_current(&phases, displaced));
    }
    REQUIRE_EQ(tsi_load_relaxed(&phases.advances_refused), 0);
}

/* Without records the ring keeps its spare for one step; then it stays, and goes on when one is back. */
static void stepping_without_records(void) {
    uint32_t index, last = 0;
    while (tsi_table_take(&phases.incs, &index, 0)) last = index;
    TsiRef was, displaced;
    REQUIRE(step(&was, &displaced));
    EpochId now = tsi_load_relaxed(&phases.current);
    REQUIRE(!step(&was, &displaced));
    REQUIRE_EQ(tsi_load_relaxed(&phases.current), now);
    REQUIRE_EQ(tsi_load_relaxed(&phases.advances_refused), 1);
    tsi_table_give(&phases.incs, last);
    REQUIRE(step(&was, &displaced));
    REQUIRE_NE(tsi_load_relaxed(&phases.current), now);
}

/* A kept id is refused, as one that was a domain's, whether its record's page has gone or not, until the record was
 * opened as often as the id can tell: 8192 times. Records are taken in turn, so that lies far away. */
static void ids_outlive_their_records(void) {
    EpochId id, next;
    TsiRef first[2 * RING]; /* beyond what shares a page with the ring */
    for (unsigned n = 0; n < 2 * RING; n++) first[n] = open_domain(&id);
    for (unsigned n = 0; n < 2 * RING; n++) recycle(first[n]);
    uint32_t index = id & TSI_INC_MAX;
    uint64_t openings = 0;
    for (unsigned again = 0; again < 1u << TSI_REUSE_BITS;) {
        if (openings % 97 == 0) tsi_table_tidy_slow(&phases.incs, true);
        REQUIRE_EQ(tsi_phases_resolve(&phases, id), 0);
        REQUIRE(tsi_phases_was_domain(&phases, id));
        TsiRef ref = open_domain(&next);
        openings++;
        again += tsi_ref_index(ref) == index;
        REQUIRE((next == id) == (again == 1u << TSI_REUSE_BITS));
        recycle(ref);
    }
    REQUIRE(openings > 16u << TSI_REUSE_BITS);
}

static void ids_of_domains(void) {
    EpochId id, other;
    TsiRef r = open_domain(&id), q = open_domain(&other);
    REQUIRE((id & TSI_DOMAIN_ID_BIT) != 0);
    REQUIRE_NE(id, other);
    REQUIRE(tsi_phases_resolve(&phases, id) == r);
    REQUIRE(tsi_phases_resolve(&phases, other) == q);
    REQUIRE(tsi_phases_was_domain(&phases, id));
    REQUIRE_EQ(tsi_phases_resolve(&phases, TSI_DOMAIN_ID_BIT), 0);           /* record 0 */
    REQUIRE_EQ(tsi_phases_resolve(&phases, TSI_DOMAIN_ID_BIT | RECORDS), 0); /* beyond all */
    REQUIRE_EQ(tsi_phases_resolve(&phases, UINT32_MAX), 0);
    recycle(r);
    REQUIRE_EQ(tsi_phases_resolve(&phases, id), 0);
    REQUIRE(tsi_phases_was_domain(&phases, id));
    REQUIRE(tsi_phases_resolve(&phases, other) == q);
}

/* However often a record is reused, an id of it does not name its later owners until the bits wrap. */
static void stale_ids_of_one_record(void) {
    EpochId first;
    TsiRef r = open_domain(&first);
    uint32_t index = tsi_ref_index(r);
    for (unsigned n = 1; n < 1u << TSI_REUSE_BITS; n++) {
        uint64_t era = tsi_add_relaxed(&phases.era_next, 1);
        EpochId id = tsi_domain_id(&phases, index);
        tsi_inc_open(&phases, index, era, id, TSI_LABEL_NONE, tsi_no_label, 0);
        REQUIRE_NE(id, first);
        REQUIRE_EQ(tsi_phases_resolve(&phases, first), 0);
        REQUIRE(tsi_phases_resolve(&phases, id) == tsi_ref(era, index));
        REQUIRE(!tsi_ref_is_active(&phases, r));
    }
    REQUIRE_EQ(tsi_domain_id(&phases, index), first);
}

/* Records come back late, so that the id of a phase that has ended stays unknown for a while. */
static void records_come_back_late(void) {
    EpochId id;
    TsiRef r = open_domain(&id);
    recycle(r);
    for (unsigned n = 0; n < 50; n++) {
        EpochId other;
        TsiRef q = open_domain(&other);
        REQUIRE_NE(tsi_ref_index(q), tsi_ref_index(r));
        recycle(q);
    }
}

static void states_are_monotone(void) {
    SlabAllocator* a = kit_create();
    uint64_t era = epoch_era(a, 0);
    TsiInc* i = tsi_inc(&tsi_arena(a)->phases, tsi_ref_index(tsi_phases_resolve(&tsi_arena(a)->phases, 0)));
    REQUIRE_EQ(tsi_inc_state(i), TSI_INC_ACTIVE);
    (void)epoch_advance_id(a);
    REQUIRE_EQ(tsi_inc_state(i), TSI_INC_ADVANCED);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_DRAIN, NULL));
    REQUIRE_EQ(tsi_inc_state(i), TSI_INC_CLOSED);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    REQUIRE_EQ(tsi_inc_state(i), TSI_INC_RELEASED);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_DRAIN, NULL));
    REQUIRE_EQ(tsi_inc_state(i), TSI_INC_RELEASED);
    REQUIRE_EQ(epoch_era(a, 0), era);
    slab_allocator_free(a);
}

static void labels_end_at_a_character(void) {
    static const struct {
        const char *in, *out;
    } cases[] = {
        {NULL, ""},
        {"", ""},
        {"short", "short"},
        {"0123456789012345678901234567890", "0123456789012345678901234567890"}, /* 31 */
        {"01234567890123456789012345678901", "0123456789012345678901234567890"},
        {"012345678901234567890123456789\xc3\xa9", "012345678901234567890123456789"},       /* 30 + 2 */
        {"01234567890123456789012345678\xc3\xa9", "01234567890123456789012345678\xc3\xa9"}, /* 29 + 2 */
        {"01234567890123456789012345678\xe2\x82\xac", "01234567890123456789012345678"},     /* 29 + 3 */
        {"0123456789012345678901234567\xe2\x82\xac", "0123456789012345678901234567\xe2\x82\xac"},
        {"0123456789012345678901234567\xf0\x9f\x99\x82z", "0123456789012345678901234567"}, /* 28 + 4 */
        {"012345678901234567890123456\xf0\x9f\x99\x82z", "012345678901234567890123456\xf0\x9f\x99\x82"},
    };
    for (unsigned n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char out[TSI_LABEL_BYTES];
        memset(out, 'x', sizeof out);
        tsi_label_copy(out, cases[n].in);
        REQUIRE_STR(out, cases[n].out);
        for (size_t i = strlen(out); i < sizeof out; i++) REQUIRE_EQ(out[i], 0);
    }
}

static void what_ids_mean_to_the_callers(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create_labeled(a, "x");
    EpochId id = d->epoch_id;
    EpochReceipt r;
    REQUIRE_EQ(epoch_era(a, id), d->epoch_era);
    REQUIRE_EQ(epoch_state(a, id), EPOCH_ACTIVE);
    REQUIRE(slab_malloc_epoch(a, 10, id) != NULL);
    epoch_domain_destroy(d);
    REQUIRE_EQ(epoch_era(a, id), 0);
    REQUIRE_EQ(epoch_state(a, id), EPOCH_CLOSING);
    errno = 0;
    REQUIRE_NULL(slab_malloc_epoch(a, 10, id));
    REQUIRE_EQ(errno, ESTALE);
    errno = 0;
    REQUIRE_NULL(slab_malloc_epoch(a, 10, 16)); /* beyond the ring */
    REQUIRE_EQ(errno, EINVAL);
    REQUIRE(!epoch_close_ex(a, id, EPOCH_DRAIN, &r));
    REQUIRE(!epoch_close_era(a, 99999, EPOCH_DRAIN, &r));
    REQUIRE_EQ(kit_refusals(a).bad_epoch, 2);
    slab_epoch_inc_refcount(a, 3);
    slab_epoch_inc_refcount(a, 3);
    slab_epoch_dec_refcount(a, 3);
    REQUIRE_EQ(slab_epoch_get_refcount(a, 3), 1);
    slab_epoch_dec_refcount(a, 3);
    slab_epoch_dec_refcount(a, 3);
    REQUIRE_EQ(slab_epoch_get_refcount(a, 3), 0);
    slab_allocator_free(a);
}

static void* advance_thread(void* arg) {
    (void)epoch_advance_id(arg);
    return NULL;
}

/* Whoever has the next id, and hears that it is current, gets objects of the new era, however far the advance has
 * come. */
static void an_id_names_the_new_era_at_once(void) {
    SlabAllocator* s = kit_create_cold();
    TsiPhases* p = &tsi_arena(s)->phases;
    EpochId now = epoch_current(s), next = now + 1;
    pthread_t t;
    uint64_t era = 0, old = 0;
    for (unsigned n = 0; n < 2; n++)
        REQUIRE(slab_ptr_epoch(s, slab_malloc_epoch(s, 64, next), NULL, &old)); /* at hand by its id */
    TsiInc* was = tsi_inc(p, tsi_ref_index(tsi_load_relaxed(&p->ring[now])));
    tsi_phase_lock(was);                  /* the advance waits here, once the ring has moved */
    tsi_lock_disown(tsi_inc_lock(was)); /* as another thread would have it: this one takes others meanwhile */
    REQUIRE_EQ(pthread_create(&t, NULL, advance_thread, s), 0);
    for (unsigned turn = 0; epoch_current(s) != next;) tsi_os_yield(&turn);
    uint64_t named = tsi_ref_era(tsi_load_relaxed(&p->ring[next]));
    void* q = slab_malloc_epoch(s, 64, next);
    tsi_lock_own(tsi_inc_lock(was));
    tsi_phase_unlock(was);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    REQUIRE(slab_ptr_epoch(s, q, NULL, &era));
    REQUIRE_EQ(era, named);
    REQUIRE_NE(era, old);
    kit_check(s);
    slab_allocator_free(s);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_phases, close_phases)
        TEST(references),
        TEST(a_new_ring),
        TEST(stepping),
        TEST(stepping_without_records),
        TEST(ids_of_domains),
        TEST(stale_ids_of_one_record),
        TEST(records_come_back_late),
        TEST(ids_outlive_their_records),
        CHECK_CASE(states_are_monotone),
        CHECK_CASE(labels_end_at_a_character),
        CHECK_CASE(what_ids_mean_to_the_callers),
        CHECK_CASE(an_id_names_the_new_era_at_once),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
