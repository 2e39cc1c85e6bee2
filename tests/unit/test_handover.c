/*
 * test_handover.c - sweeps of what other threads own, and what owners inside a call hand over as they leave.
 *
 * An owner that is inside a call is played by a thread that opens a bracket and then stops. Objects of 1024
 * bytes, 16 to a slab.
 */
#define KIT_RING_BY_CLASS
#include "fake_os.h"
#include "kit/one.h"

#include "state/bracket.h"
#include "heap/heap.h"
#include "heap/ready.h"

enum { SIZE = 1024, SLOTS = 16, SLAB = SLOTS * SIZE };

static KitWorker worker;

static void open_allocator(void) {
    kit_worker_start(&worker);
    kit_open_cold();
    fake_os_clear();
}
static void close_allocator(void) {
    kit_worker_stop(&worker);
    kit_close();
    REQUIRE_EQ(fake_os.misaligned, 0);
}
static void take(void** p, unsigned n) { kit_take(a, SIZE, p, n); }
static EpochReceipt end(EpochId id, EpochCloseMode mode) { return kit_end(a, id, mode); }

/* ---- owners inside a call ---- */

typedef struct Inside {
    void* p[2 * SLOTS];
    unsigned n;
    TsiBinding* b;
    TsiHeap* h;
    bool all, live, named; /* named: objects of the epoch with the id 0, current or not */
} Inside;

static void inside_take(void* arg) {
    Inside* in = arg;
    for (unsigned i = 0; i < in->n; i++) in->p[i] = in->named ? slab_malloc_epoch(a, SIZE, 0) : slab_malloc(a, SIZE);
    in->b = kit_binding(a);
    in->h = in->b->heap;
}
/* As the first half of a call: the bracket is open on the line of p[0] when this returns. */
static void inside_enter(void* arg) {
    Inside* in = arg;
    TsiLine* l = tsi_line(space, kit_place(a, in->p[0]).line_id);
    in->live = tsi_bracket_enter(in->b, in->h, in->all ? tsi_busy_all(in->h) : tsi_busy_line(l));
}
static void inside_leave(void* arg) {
    Inside* in = arg;
    tsi_bracket_leave(in->b, in->h);
}
static void nothing(void* arg) { (void)arg; }

static void an_idle_owner_is_swept_by_the_closer(void) {
    Inside in = {.n = 2 * SLOTS};
    kit_worker_run(&worker, inside_take, &in);
    fake_os_clear();
    EpochReceipt r = end(0, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, 2 * SLOTS);
    REQUIRE_EQ(r.slabs_returned, 2);
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(fake_os.barriers, 1); /* another thread owned something */
    REQUIRE_EQ(kit_committed_now(a), 0);
    (void)epoch_advance_id(a);
    kit_worker_run(&worker, inside_take, &in); /* and goes on in the next epoch */
    REQUIRE(in.p[0] != NULL);
    fake_os_clear();
    void* mine = slab_malloc(a, SIZE);
    epoch_domain_t* d = epoch_domain_create(a);
    REQUIRE(mine != NULL && d != NULL && epoch_domain_malloc(d, SIZE) != NULL);
    epoch_domain_destroy(d);
    REQUIRE_EQ(fake_os.barriers, 0); /* nobody else in this one */
}

static void a_named_slab_is_left_to_its_owner(void) {
    Inside in = {.n = 2 * SLOTS};
    kit_worker_run(&worker, inside_take, &in);
    kit_worker_run(&worker, inside_enter, &in);
    REQUIRE(in.live);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.slabs_returned, 1);
    REQUIRE_EQ(r.slabs_deferred, 1);
    REQUIRE_EQ(r.objects_released, SLOTS);
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, &r)); /* still not all */
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.objects_allocated, SLOTS);
    REQUIRE_EQ(r.slabs_deferred, 1);
    REQUIRE_EQ(r.bytes_deferred, SLAB);
    kit_worker_run(&worker, inside_leave, &in);
    REQUIRE_EQ(kit_committed_now(a), 0);
    r = end(0, EPOCH_RELEASE); /* now it is */
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(r.bytes_deferred, 0);
    REQUIRE_EQ(r.objects_allocated, 2 * SLOTS);
    REQUIRE_EQ(r.objects_released, 2 * SLOTS);
    in.named = true;
    kit_worker_run(&worker, inside_take, &in);
    REQUIRE_NULL(in.p[0]);
    in.named = false;
    kit_worker_run(&worker, inside_take, &in);
    REQUIRE(in.p[0] != NULL);
}

/* What a release has left to the owner stays released, whatever else closes it. */
static void a_weaker_close_changes_nothing(void) {
    Inside in = {.n = 2 * SLOTS};
    EpochReceipt r;
    kit_worker_run(&worker, inside_take, &in);
    kit_worker_run(&worker, inside_enter, &in);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, &r));
    REQUIRE_EQ(r.slabs_deferred, 1);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_DRAIN, &r));
    kit_worker_run(&worker, inside_leave, &in);
    REQUIRE_EQ(kit_committed_now(a), 0);
    r = end(0, EPOCH_DRAIN);
    REQUIRE_EQ(r.objects_released, 2 * SLOTS);
    REQUIRE_EQ(r.objects_escaped, 0);
}

/* Inside the slow path the whole heap is the owner's, and a stronger close in between decides what it does. */
static void a_named_heap_is_left_to_its_owner(void) {
    for (unsigned lap = 0; lap < 2; lap++) {
        Inside in = {.n = 2 * SLOTS, .all = true};
        EpochId id = epoch_current(a);
        kit_worker_run(&worker, inside_take, &in);
        kit_worker_run(&worker, inside_enter, &in);
        EpochReceipt r;
        REQUIRE(epoch_close_ex(a, id, EPOCH_DRAIN, &r));
        REQUIRE_EQ(r.slabs_returned, 0);
        REQUIRE_EQ(r.slabs_deferred, 2);
        if (lap == 1) REQUIRE(epoch_close_ex(a, id, EPOCH_RELEASE, &r));
        REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
        kit_worker_run(&worker, inside_leave, &in);
        REQUIRE_EQ(kit_committed_now(a), lap == 0 ? 2 * SLAB : 0);
        r = end(id, lap == 0 ? EPOCH_DRAIN : EPOCH_RELEASE);
        REQUIRE_EQ(r.objects_allocated, 2 * SLOTS);
        REQUIRE_EQ(lap == 0 ? r.objects_escaped : r.objects_released, 2 * SLOTS);
        (void)end(id, EPOCH_RELEASE);
        REQUIRE_EQ(kit_committed_now(a), 0);
        (void)epoch_advance_id(a);
    }
}

static void* close_epoch_1(void* receipt) {
    (void)epoch_close_ex(a, 1, EPOCH_RELEASE, receipt);
    return NULL;
}
static void close_meanwhile(void* receipt) { kit_on_thread(close_epoch_1, receipt); }

/* A heap that has no slab yet, and will have one when the call returns. */
static void a_first_slab_that_is_on_its_way(void) {
    EpochReceipt r = {.version = 0};
    REQUIRE(slab_malloc(a, 64) != NULL);
    (void)epoch_advance_id(a);
    space->usable[TSI_STRIP_PAYLOAD] = 1; /* as if no more of it were */
    fake_os_interrupt_call(FAKE_COMMIT, close_meanwhile, &r);
    REQUIRE(slab_malloc(a, SIZE) != NULL); /* of another class: a new chunk */
    REQUIRE_EQ(r.version, 2);
    REQUIRE_EQ(r.epoch_id, 1);
    REQUIRE_EQ(r.objects_allocated, 0);
    REQUIRE_EQ(r.slabs_deferred, 1);
    r = end(1, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, 1);
    REQUIRE_EQ(r.objects_released, 1);
    REQUIRE_EQ(r.slabs_deferred, 0);
}

/* ---- owners of several heaps of one epoch ---- */

static void* take_and_go(void* arg) {
    inside_take(arg);
    return NULL;
}
static void adopt_one_more(void* arg) {
    Inside* in = arg;
    in->live = tsi_heap_adopt_more(in->b, in->h, tsi_class_of(SIZE));
}
static TsiHeap* heap_of(const void* p) { return tsi_heap(tsi_arena(a), tsi_tag_index(kit_tag(a, p))); }

/* A bracket that names the whole epoch keeps all of its thread's heaps there, whichever of them it is opened on. */
static void a_named_heap_stands_for_its_owners_others(void) {
    Inside in = {.n = SLOTS, .all = true}, left = {.n = SLOTS / 2};
    EpochReceipt r;
    kit_worker_run(&worker, inside_take, &in);
    kit_on_thread(take_and_go, &left);
    kit_worker_run(&worker, inside_enter, &in);
    kit_worker_run(&worker, adopt_one_more, &in);
    REQUIRE(in.live);
    REQUIRE_NE(heap_of(left.p[0]), in.h);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, &r));
    REQUIRE_EQ(r.slabs_returned, 0);
    REQUIRE_EQ(r.slabs_deferred, 2);
    REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
    kit_worker_run(&worker, inside_leave, &in);
    REQUIRE_EQ(kit_committed_now(a), 0);
    r = end(0, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, SLOTS + SLOTS / 2);
    REQUIRE_EQ(r.slabs_deferred, 0);
}

static void adopt_meanwhile(void* arg) { kit_worker_run(&worker, adopt_one_more, arg); }

/* The owner has adopted another heap since one was asked for: as it leaves it lets both go, because the room that goes with the
 * one has the lines of the other. */
static void all_heaps_of_a_room_are_handed_over(void) {
    Inside in = {.n = SLOTS, .all = true}, left = {.n = SLOTS / 2};
    kit_worker_run(&worker, inside_take, &in);
    kit_on_thread(take_and_go, &left);
    TsiHeap* other = heap_of(left.p[0]);
    kit_worker_run(&worker, inside_enter, &in);
    in.live = false;
    fake_os_interrupt(adopt_meanwhile, &in);
    slab_trim(a); /* between its two holds the owner adopts */
    REQUIRE(in.live);
    REQUIRE_EQ(tsi_heap_state(tsi_load_seq(&in.h->word)), TSI_HEAP_REVOKED);
    REQUIRE_EQ(tsi_heap_state(tsi_load_seq(&other->word)), TSI_HEAP_LIVE);
    kit_worker_run(&worker, inside_leave, &in);
    REQUIRE_EQ(tsi_heap_state(tsi_load_seq(&in.h->word)), TSI_HEAP_DETACHED);
    REQUIRE_EQ(tsi_heap_state(tsi_load_seq(&other->word)), TSI_HEAP_DETACHED);
    kit_check(a);
    in.n = SLOTS / 2;
    kit_worker_run(&worker, inside_take, &in); /* and both are found again */
    REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
}

/* ---- ... and elsewhere ---- */

/* A bracket on another epoch does not defer anything. */
static void a_bracket_elsewhere_is_no_hindrance(void) {
    Inside in = {.n = SLOTS}, next = {.n = SLOTS};
    kit_worker_run(&worker, inside_take, &in);
    (void)epoch_advance_id(a);
    kit_worker_run(&worker, inside_take, &next);
    kit_worker_run(&worker, inside_enter, &next);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, &r));
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(r.objects_released, SLOTS);
    kit_worker_run(&worker, inside_leave, &next);
    REQUIRE_EQ(kit_committed_now(a), SLAB);
}

/* As a fast path whose first check fails: of the heap of an epoch that has ended, on a line of another one. */
static void inside_name(void* arg) {
    Inside* in = arg;
    tsi_bracket_name(in->b, tsi_busy_line(tsi_line(space, kit_place(a, in->p[0]).line_id)));
}
static void inside_miss(void* arg) {
    Inside* in = arg;
    tsi_bracket_missed(in->b);
}

/* The heap that the line lies in is what the owner hands over, not the one it had asked. */
static void a_named_line_of_another_heap(void) {
    Inside old = {.n = SLOTS}, next = {.n = 2 * SLOTS};
    kit_worker_run(&worker, inside_take, &old);
    (void)epoch_advance_id(a);
    kit_worker_run(&worker, inside_take, &next);
    (void)end(0, EPOCH_RELEASE);
    kit_worker_run(&worker, inside_name, &next);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, 1, EPOCH_RELEASE, &r));
    REQUIRE_EQ(r.slabs_deferred, 1);
    REQUIRE_EQ(r.objects_released, SLOTS);
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    kit_worker_run(&worker, inside_miss, &next);
    REQUIRE_EQ(tsi_load_relaxed(&next.b->busy), 0);
    REQUIRE_EQ(kit_committed_now(a), 0);
    r = end(1, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, 2 * SLOTS);
    REQUIRE_EQ(r.slabs_deferred, 0);
}

/* Whatever a line id says: it is in a heap only where the chunk's present class has that line. */
static void lines_that_are_in_no_heap(void) {
    void *p = slab_malloc(a, SIZE), *big = slab_malloc(a, 300000), *other = slab_malloc(a, 20000);
    TsiArena* arena = tsi_arena(a);
    TsiHeap* mine = kit_binding(a)->heap;
    void* of[] = {p, big, other};
    for (unsigned n = 0; n < 3; n++) {
        TsiPlace at = kit_place(a, of[n]);
        uint32_t first = at.line_id & ~(uint32_t)(TSI_CHUNK_LINES - 1), slab_id = 0;
        const TsiClass* c = &space->classes->c[at.cls];
        for (uint32_t i = 0; i < TSI_CHUNK_LINES; i++) {
            bool in = at.cls < TSI_CLASS_LARGE && i >> c->lines_log2 == (at.slab_id & (TSI_CHUNK_SLABS - 1));
            TsiHeap* h = tsi_busy_heap(arena, tsi_busy_line(tsi_line(space, first + i)), &slab_id);
            REQUIRE_EQ(h, in ? mine : NULL);
            if (in) REQUIRE_EQ(slab_id, at.slab_id);
        }
    }
    uint32_t slab_id;
    static TsiLine elsewhere;
    REQUIRE_NULL(tsi_busy_heap(arena, tsi_busy_line(&elsewhere), &slab_id));
    (void)end(0, EPOCH_RELEASE); /* the chunks have no class now */
    for (uint32_t i = 0; i < 3 * TSI_CHUNK_LINES; i++)
        REQUIRE_NULL(tsi_busy_heap(arena, tsi_busy_line(tsi_line(space, i)), &slab_id));
}

/* A bracket that opens after the close is refused, and the call ends without touching anything. */
static void a_late_bracket_is_refused(void) {
    Inside in = {.n = SLOTS};
    kit_worker_run(&worker, inside_take, &in);
    (void)end(0, EPOCH_RELEASE);
    in.live = tsi_heap_is_live(in.b, in.h);
    REQUIRE(!in.live);
    in.named = true;
    kit_worker_run(&worker, inside_take, &in);
    REQUIRE_NULL(in.p[0]);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* An advance asks the owner to let go of the heap: it does as it comes by, and the next one adopts it not. */
static void an_advance_retires_heaps(void) {
    Inside in = {.n = SLOTS};
    kit_worker_run(&worker, inside_take, &in);
    uint64_t word = tsi_load_seq(&in.h->word);
    REQUIRE_EQ(tsi_heap_state(word), TSI_HEAP_LIVE);
    (void)epoch_advance_id(a);
    word = tsi_load_seq(&in.h->word);
    REQUIRE_EQ(tsi_heap_state(word), TSI_HEAP_RETIRE);
    in.n = 1;
    TsiHeap* old = in.h;
    kit_worker_run(&worker, inside_take, &in);
    REQUIRE_EQ(tsi_heap_state(tsi_load_seq(&old->word)), TSI_HEAP_DETACHED);
    kit_check(a);
    EpochReceipt r = end(0, EPOCH_RELEASE);
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(r.objects_released, SLOTS);
}

/* What was empty as the ring came round, of an owner who is asleep, goes with the next slow path of anybody. */
static void empties_that_the_ring_moves_past(void) {
    Inside in = {.n = 2 * SLOTS};
    kit_worker_run(&worker, inside_take, &in);
    for (unsigned i = 0; i < 2 * SLOTS; i++) REQUIRE(slab_free_checked(a, in.p[i]));
    REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
    for (unsigned i = 0; i < tsi_arena(a)->phases.ring_size; i++) (void)epoch_advance_id(a);
    void* mine;
    take(&mine, 1);
    REQUIRE_EQ(kit_committed_now(a), SLAB);
}

/* Half-full, then freed by another thread: the memory of a closed epoch goes without its owner. */
static void the_last_free_returns_the_slab(void) {
    for (unsigned bound = 0; bound < 2; bound++) {
        Inside in = {.n = SLOTS + 3};
        if (bound != 0) slab_free(a, slab_malloc(a, SIZE)); /* frees there go the straight way from here on */
        slab_trim(a);
        kit_worker_run(&worker, inside_take, &in);
        (void)epoch_advance_id(a); /* not closed: owned, RETIRE, its owner asleep */
        for (unsigned i = 0; i < SLOTS + 3; i++) REQUIRE(slab_free_checked(a, in.p[i]));
        REQUIRE_EQ(kit_committed_now(a), 0);
        kit_check(a);
    }
}

/* ---- trim ---- */

static void trim_of_other_threads_heaps(void) {
    Inside in = {.n = 2 * SLOTS};
    kit_worker_run(&worker, inside_take, &in);
    for (unsigned i = 0; i < SLOTS; i++) REQUIRE(slab_free_checked(a, in.p[i]));
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    kit_check(a);
    in.n = SLOTS;
    kit_worker_run(&worker, inside_take, &in); /* goes on in the same epoch */
    REQUIRE(in.p[SLOTS - 1] != NULL);
    REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
    kit_check(a);
    for (unsigned i = 0; i < 2 * SLOTS; i++) REQUIRE(slab_free_checked(a, in.p[i]));
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* Inside a call: its owner trims as it leaves, and then goes on. */
static void trim_while_the_owner_is_inside(void) {
    for (unsigned all = 0; all < 2; all++) {
        Inside in = {.n = 2 * SLOTS, .all = all != 0};
        kit_worker_run(&worker, inside_take, &in);
        for (unsigned i = 0; i < 2 * SLOTS; i++) REQUIRE(slab_free_checked(a, in.p[i]));
        kit_worker_run(&worker, inside_enter, &in);
        slab_trim(a);
        REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
        kit_worker_run(&worker, inside_leave, &in);
        REQUIRE_EQ(kit_committed_now(a), 0);
        kit_check(a);
        kit_worker_run(&worker, inside_take, &in);
        REQUIRE(in.p[0] != NULL);
        (void)end(epoch_current(a), EPOCH_RELEASE);
        (void)epoch_advance_id(a);
    }
    kit_worker_run(&worker, nothing, NULL);
}

static void flush_returns_the_callers_own(void) {
    void* p[2 * SLOTS];
    Inside in = {.n = SLOTS};
    kit_worker_run(&worker, inside_take, &in);
    for (unsigned i = 0; i < SLOTS; i++) REQUIRE(slab_free_checked(a, in.p[i]));
    take(p, 2 * SLOTS);
    for (unsigned i = 0; i < 2 * SLOTS; i++) slab_free(a, p[i]);
    REQUIRE_EQ(kit_committed_now(a), 3 * SLAB);
    slab_thread_flush(a);
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    kit_check(a);
}

/* ---- owners that come by between the two holds of a sweep ---- */

typedef struct Between {
    TsiBinding* b;
    EpochId id;
    TsiHeap* h;
    EpochReceipt receipt;
    bool done;
} Between;

static void enter_by_the_slow_path(void* arg) {
    Between* o = arg;
    o->b = kit_binding(a);
    TsiRef ref = tsi_resolve(tsi_arena(a), o->id);
    o->done =
        tsi_ready_heap(o->b, ref, true, &o->h) == TSI_BIRTH_OK && tsi_bracket_enter(o->b, o->h, tsi_busy_all(o->h));
}
static void leave_it(void* arg) {
    Between* o = arg;
    tsi_bracket_leave(o->b, o->h);
}
static void end_it(void* arg) {
    Between* o = arg;
    o->done = epoch_close_ex(a, o->id, EPOCH_RELEASE, &o->receipt);
}
static void the_owner_enters(void* arg) { kit_worker_run(&worker, enter_by_the_slow_path, arg); }
static void the_owner_ends_it(void* arg) { kit_worker_run(&worker, end_it, arg); }

/* The slow path, which has no heap to look at first, lets go of the one that is asked for: a second beside it would
 * make the sweep believe that its owner hands over as it leaves. */
static void no_second_heap_beside_one_asked_for(void) {
    Inside in = {.n = SLOTS};
    Between owner = {.id = epoch_current(a)};
    kit_worker_run(&worker, inside_take, &in);
    fake_os_interrupt(the_owner_enters, &owner);
    slab_trim(a);
    REQUIRE(owner.done);
    kit_worker_run(&worker, leave_it, &owner);
    REQUIRE_NE(tsi_heap_state(tsi_load_seq(&in.h->word)), TSI_HEAP_REVOKED);
    kit_check(a);
    EpochReceipt r = end(owner.id, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, SLOTS);
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* What it ends is gone at once, though a trim has asked for it. */
static void an_owner_ends_what_a_trim_has_asked_for(void) {
    Inside in = {.n = 2 * SLOTS};
    Between owner = {.id = epoch_current(a)};
    kit_worker_run(&worker, inside_take, &in);
    fake_os_interrupt(the_owner_ends_it, &owner);
    slab_trim(a);
    REQUIRE(owner.done);
    REQUIRE_EQ(owner.receipt.objects_released, 2 * SLOTS);
    REQUIRE_EQ(owner.receipt.slabs_returned, 2);
    REQUIRE_EQ(owner.receipt.slabs_deferred, 0);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* ---- word of slots freed in heaps that are asked for ---- */

static void take_elsewhere(void* arg) {
    Inside* in = arg;
    in->p[0] = slab_malloc_epoch(a, SIZE, epoch_current(a) + 2); /* the slow path of another heap */
    in->b = kit_binding(a);
}

/* An owner that was asked to let a heap go, by an advance or a trim, and works elsewhere: what others free in the heap comes to
 * its inbox once. It lets go then, or the word would come back to it in each slow path from there on. */
static void an_inbox_does_not_fill_again(void) {
    for (unsigned trim = 0; trim < 2; trim++) {
        Inside in = {.n = 2 * SLOTS}, away = {.n = 0};
        EpochId id = epoch_current(a);
        kit_worker_run(&worker, inside_take, &in); /* the first slab is full, and parked, once the second is taken */
        if (trim) slab_trim(a);
        else epoch_advance(a);
        REQUIRE_EQ(tsi_heap_state(tsi_load_seq(&in.h->word)), TSI_HEAP_RETIRE);
        for (unsigned i = 0; i < SLOTS; i++) REQUIRE(slab_free_checked(a, in.p[i]));
        REQUIRE_NE(tsi_load_relaxed(&in.b->inbox), TSI_INBOX_EMPTY);
        kit_worker_run(&worker, take_elsewhere, &away);
        REQUIRE_EQ(away.b, in.b);
        REQUIRE_EQ(tsi_load_relaxed(&in.b->inbox), TSI_INBOX_EMPTY);
        REQUIRE_NE(tsi_heap_state(tsi_load_seq(&in.h->word)), TSI_HEAP_RETIRE);
        REQUIRE(slab_free_checked(a, away.p[0]));
        kit_check(a);
        (void)end(id, EPOCH_RELEASE);
        (void)epoch_advance_id(a);
    }
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(an_idle_owner_is_swept_by_the_closer),
        TEST(a_named_slab_is_left_to_its_owner),
        TEST(a_weaker_close_changes_nothing),
        TEST(a_named_heap_is_left_to_its_owner),
        TEST(a_first_slab_that_is_on_its_way),
        TEST(a_named_heap_stands_for_its_owners_others),
        TEST(all_heaps_of_a_room_are_handed_over),
        TEST(a_bracket_elsewhere_is_no_hindrance),
        TEST(a_named_line_of_another_heap),
        TEST(lines_that_are_in_no_heap),
        TEST(a_late_bracket_is_refused),
        TEST(an_advance_retires_heaps),
        TEST(empties_that_the_ring_moves_past),
        TEST(the_last_free_returns_the_slab),
        TEST(trim_of_other_threads_heaps),
        TEST(trim_while_the_owner_is_inside),
        TEST(flush_returns_the_callers_own),
        TEST(no_second_heap_beside_one_asked_for),
        TEST(an_owner_ends_what_a_trim_has_asked_for),
        TEST(an_inbox_does_not_fill_again),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
