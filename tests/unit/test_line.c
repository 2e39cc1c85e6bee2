/*
 * test_line.c - how lines are refilled, parked and told of free slots.
 *
 * The class of 1024 bytes is used throughout: one line of 16 slots a slab, at most 8 slots a refill, and 4
 * free slots before a parked line is used again.
 */
#define KIT_RING_BY_CLASS
#include "kit/one.h"

#include "state/bracket.h"
#include "heap/heap.h"
#include "heap/line.h"
#include "heap/room.h"
#include "mem/region.h"

enum { CLS = 12, SIZE = 1024, SLOTS = 16, THRESHOLD = 4 };

static const TsiClass* c;

static void open_allocator(void) {
    kit_open_cold();
    c = &space->classes->c[CLS];
}

static void take(void** p, unsigned n) {
    for (unsigned i = 0; i < n; i++) REQUIRE((p[i] = slab_malloc(a, SIZE)) != NULL);
}

static uint32_t line_of(const void* p) { return kit_place(a, p).line_id; }
static uint64_t bit_of(const void* p) { return 1ull << kit_place(a, p).slot; }
static TsiLine* line(uint32_t id) { return tsi_line(space, id); }
static uint64_t avail(uint32_t id) { return tsi_load_relaxed(&line(id)->avail); }
static uint64_t freed(uint32_t id) { return tsi_load_relaxed(&line(id)->freed) & c->full; }
static uint64_t remote(uint32_t id) {
    return tsi_remote_bits(tsi_load_relaxed(&tsi_remote(space, id)[0]), tsi_load_relaxed(&tsi_remote(space, id)[1]));
}
static bool token(uint32_t id) { return (tsi_load_relaxed(&tsi_remote(space, id)[0]) & TSI_REMOTE_TOKEN) != 0; }
/* How a line's slab is named in an inbox, and its link: 0 = in none, 1 = the only one there. */
static uint32_t inbox_name(uint32_t id) { return (id >> 10 << 8 | (id & (TSI_CHUNK_LINES - 1))) + 2; }
static uint32_t linked(uint32_t id) { return tsi_load_relaxed(&tsi_slab(space, inbox_name(id) - 2)->inbox); }
static unsigned flags(uint32_t id) { return tsi_load_relaxed(&line(id)->flags); }
static bool is_plain(uint32_t id) { return tsi_load_relaxed(&line(id)->heap_at) != 0; }

typedef struct Frees {
    void** p;
    unsigned n, done;
} Frees;

static void free_some(void* arg) {
    Frees* f = arg;
    for (unsigned i = 0; i < f->n; i++) f->done += slab_free_checked(a, f->p[i]);
}
static void* free_thread(void* arg) {
    free_some(arg);
    return NULL;
}
static void free_elsewhere(void** p, unsigned n) {
    Frees f = {p, n, 0};
    kit_on_thread(free_thread, &f);
    REQUIRE_EQ(f.done, n);
}

/* Fills one line and has it parked by the allocation after it. */
static uint32_t parked_line(void** p) {
    take(p, SLOTS + 1);
    uint32_t id = line_of(p[0]);
    REQUIRE_EQ(line_of(p[SLOTS - 1]), id);
    REQUIRE_NE(line_of(p[SLOTS]), id);
    REQUIRE_EQ(flags(id), TSI_LINE_PARKED | TSI_LINE_ARMED);
    REQUIRE(token(id));
    return id;
}

static void the_class_is_as_said(void) {
    REQUIRE_EQ(c->size, SIZE);
    REQUIRE_EQ(c->slots, SLOTS);
    REQUIRE_EQ(c->threshold, THRESHOLD);
    REQUIRE_EQ(c->lines_log2, 0);
}

static void a_line_is_handed_out_from_its_lowest_slot(void) {
    void* p[SLOTS];
    take(p, 1);
    uint32_t id = line_of(p[0]);
    REQUIRE_EQ(avail(id), 0xfffe);
    REQUIRE_EQ(freed(id), 0);
    REQUIRE_EQ(tsi_load_relaxed(&line(id)->issued), SLOTS);
    take(p + 1, SLOTS - 1);
    for (unsigned i = 0; i < SLOTS; i++) REQUIRE_EQ(kit_place(a, p[i]).slot, i);
    REQUIRE_EQ(avail(id) | freed(id) | remote(id), 0);
    REQUIRE_EQ(tsi_load_relaxed(&line(id)->issued), SLOTS);
}

/* Frees by the owner and by others meet in one refill; below the minimum nothing moves. */
static void a_refill_merges_remote_and_freed(void) {
    void *p[SLOTS], *theirs[3];
    take(p, SLOTS);
    uint32_t id = line_of(p[0]);
    uint64_t word = tsi_load_relaxed(&tsi_remote(space, id)[0]);
    theirs[0] = p[9], theirs[1] = p[12], theirs[2] = p[2];
    slab_free(a, p[3]);
    slab_free(a, p[5]);
    free_elsewhere(theirs, 3);
    REQUIRE_EQ(freed(id), bit_of(p[3]) | bit_of(p[5]));
    REQUIRE_EQ(remote(id), bit_of(p[2]) | bit_of(p[9]) | bit_of(p[12]));
    REQUIRE_EQ(tsi_line_free_bits(space, line(id), id), 0x122c);
    REQUIRE_EQ(tsi_line_refill(kit_binding(a), line(id), c, 6), 0);
    REQUIRE_EQ(avail(id), 0);
    REQUIRE_EQ(tsi_popcount(remote(id)), 3);
    REQUIRE_EQ(tsi_line_refill(kit_binding(a), line(id), c, 5), 5);
    REQUIRE_EQ(avail(id), 0x122c);
    REQUIRE_EQ(freed(id) | remote(id), 0);
    REQUIRE(tsi_load_relaxed(&tsi_remote(space, id)[0]) == word); /* still of this incarnation */
    REQUIRE_EQ(tsi_load_relaxed(&line(id)->issued), SLOTS + 5);
    REQUIRE_EQ(kit_hide(slab_malloc(a, SIZE)) == p[2], 1);
}

/* Two racing frees of one object, one by the owner, can both pass: the merge finds it, one slot comes back. */
static void a_doubled_slot_is_found_at_the_merge(void) {
    void* p[SLOTS];
    take(p, SLOTS);
    uint32_t id = line_of(p[0]);
    for (unsigned i = 0; i < 5; i++) slab_free(a, p[i]);
    tsi_add_seq(&tsi_remote(space, id)[0],
                tsi_remote_bit(kit_place(a, p[2]).slot)); /* as the other free would have left it */
    REQUIRE_EQ(tsi_line_refill(kit_binding(a), line(id), c, THRESHOLD), 5);
    REQUIRE_EQ(avail(id), 0x1f);
    REQUIRE_EQ(remote(id) | freed(id), 0);
    REQUIRE_EQ(kit_refusals(a).late_double_free, 1);
    REQUIRE_EQ(kit_live(a), SLOTS - 5);
}

/* The owner's frees of a parked line are as strict as any. */
static void a_parked_line_refuses_what_is_free(void) {
    void* p[SLOTS + 1];
    uint32_t id = parked_line(p);
    free_elsewhere(p + 1, 1);
    REQUIRE(!is_plain(id));
    REQUIRE(!slab_free_checked(a, p[1]));
    REQUIRE(!slab_free_checked(a, (char*)p[2] + 8));
    REQUIRE(!slab_free_checked(a, (char*)p[2] + SIZE / 2));
    REQUIRE_EQ(flags(id), TSI_LINE_PARKED | TSI_LINE_ARMED);
    REQUIRE(slab_free_checked(a, p[0]));
    REQUIRE(!slab_free_checked(a, p[0]));
    REQUIRE_EQ(kit_refusals(a).double_free, 2);
    REQUIRE_EQ(kit_refusals(a).interior_pointer, 2);
    REQUIRE_EQ(kit_live(a), SLOTS - 1);
    kit_check(a);
}

/* The first free of a line that has issued handles unparks it as well, be it by handle or by pointer. */
static void counted_frees_unpark_a_line(void) {
    SlabHandle h[2 * SLOTS + 1];
    void* p[2 * SLOTS + 1];
    for (unsigned i = 0; i <= 2 * SLOTS; i++) REQUIRE((p[i] = alloc_obj(a, SIZE, &h[i])) != NULL);
    for (unsigned k = 0; k < 2; k++) {
        uint32_t id = line_of(p[k * SLOTS]);
        REQUIRE_EQ(flags(id) & (TSI_LINE_PARKED | TSI_LINE_LISTED), TSI_LINE_PARKED);
        for (unsigned i = k; i < k + THRESHOLD; i++) {
            REQUIRE(!is_plain(id));
            if (i % 2 == 0)
                REQUIRE(free_obj(a, h[k * SLOTS + i]));
            else
                REQUIRE(slab_free_checked(a, p[k * SLOTS + i]));
            REQUIRE(!free_obj(a, h[k * SLOTS + i]));
            REQUIRE(!slab_free_checked(a, p[k * SLOTS + i]));
            REQUIRE_EQ(flags(id) & (TSI_LINE_PARKED | TSI_LINE_LISTED), TSI_LINE_LISTED);
            kit_check(a);
        }
    }
}

/* Objects of several sizes side by side: freed by their owner, each once, by nothing but their start. */
static void regions_are_as_strict(void) {
    enum { N = 12 };
    static const uint16_t sizes[] = {64, 96, 300, 16};
    void* p[N];
    SlabHandle h;
    epoch_domain_t* d = epoch_domain_begin(a, "side by side");
    for (unsigned i = 0; i < N; i++) {
        REQUIRE((p[i] = slab_malloc(a, sizes[i % 4])) != NULL);
        REQUIRE_EQ(kit_place(a, p[i]).cls, TSI_CLASS_REGION);
    }
    TsiRegion* r = tsi_region(space, kit_place(a, p[0]).slab_id);
    uint32_t heap_at = tsi_heap_at(kit_binding(a)->heap);
    REQUIRE_EQ(tsi_load_relaxed(&r->heap_at), heap_at);
    for (unsigned i = 0; i < 4; i++) REQUIRE(slab_free_checked(a, p[i]));
    free_elsewhere(p + 4, 1);
    for (unsigned i = 0; i < 5; i++) REQUIRE(!slab_free_checked(a, p[i]));
    REQUIRE(!slab_free_checked(a, (char*)p[6] + TSI_GRANULE)); /* a granule that no object starts in */
    REQUIRE_EQ(kit_refusals(a).double_free, 5);
    REQUIRE_EQ(kit_refusals(a).interior_pointer, 1);
    REQUIRE_EQ(tsi_load_relaxed(&r->freed), 4);
    REQUIRE_EQ(tsi_region_objects(tsi_load_relaxed(&r->word)), 1);
    REQUIRE_EQ(tsi_load_relaxed(&r->heap_at), heap_at);
    REQUIRE((h = slab_ptr_handle(a, p[7])) != 0); /* from here on all frees meet in the map */
    REQUIRE_EQ(tsi_load_relaxed(&r->heap_at), 0);
    REQUIRE(slab_free_checked(a, p[7]));
    REQUIRE_EQ(tsi_region_objects(tsi_load_relaxed(&r->word)), 2);
    REQUIRE(!free_obj(a, h));
    kit_check(a);
    EpochReceipt receipt;
    epoch_domain_exit(d);
    REQUIRE(epoch_domain_receipt(d, &receipt));
    epoch_domain_destroy(d);
    REQUIRE_EQ(receipt.objects_allocated, N);
    REQUIRE_EQ(receipt.objects_freed, 6);
    REQUIRE_EQ(receipt.objects_released, N - 6);
}

static void the_owners_first_free_unparks_a_line(void) {
    void *p[SLOTS + 1], *q[THRESHOLD + SLOTS];
    uint32_t id = parked_line(p);
    REQUIRE(!is_plain(id));
    for (unsigned i = 0; i < THRESHOLD; i++) {
        slab_free(a, p[i]);
        REQUIRE_EQ(flags(id), TSI_LINE_LISTED | TSI_LINE_ARMED); /* the token stays out: T1 */
        REQUIRE(is_plain(id));
    }
    REQUIRE(token(id));
    kit_check(a);
    take(q, SLOTS - 1 + THRESHOLD); /* the rest of the current line, then this one again */
    for (unsigned i = 0; i < THRESHOLD; i++) REQUIRE_EQ(kit_hide(q[SLOTS - 1 + i]), p[i]);
    take(q, 1);
    REQUIRE_EQ(flags(id), TSI_LINE_PARKED | TSI_LINE_ARMED);
    REQUIRE(token(id));
    PerfCounters n;
    get_perf_counters(a, CLS - 1, &n);
    REQUIRE_EQ(n.list_move_partial_to_full, 3);
    REQUIRE_EQ(n.list_move_full_to_partial, 1);
}

/* Lines are used in the order of their first frees; one with less than the threshold waits on, and others go first. */
static void lines_wait_in_a_queue(void) {
    enum { LINES = 4 };
    void *p[LINES * SLOTS + SLOTS], *q[SLOTS];
    take(p, LINES * SLOTS + SLOTS);
    static const unsigned order[LINES] = {2, 0, 3, 1};
    for (unsigned i = 0; i < LINES; i++) slab_free(a, p[order[i] * SLOTS]);
    for (unsigned i = 0; i < LINES; i++)
        for (unsigned n = 1; i != 1 && n < THRESHOLD; n++) slab_free(a, p[order[i] * SLOTS + n]);
    static const unsigned used[] = {2, 3, 1}; /* 0 has one free slot only */
    for (unsigned i = 0; i < LINES - 1; i++) {
        take(q, THRESHOLD);
        for (unsigned n = 0; n < THRESHOLD; n++) REQUIRE_EQ(line_of(q[n]), line_of(p[used[i] * SLOTS]));
        kit_check(a);
    }
    REQUIRE_EQ(flags(line_of(p[0])) & TSI_LINE_LISTED, TSI_LINE_LISTED);
    for (unsigned n = 1; n < THRESHOLD; n++) slab_free(a, p[n]);
    take(q, THRESHOLD);
    REQUIRE_EQ(line_of(q[0]), line_of(p[0]));
    kit_check(a);
}

enum { CHURNED = 2 * TSI_ROOM_LOOKS + 1 };
/* Whether an allocation comes from a line of these, each of which has `n` slots freed, or from a slab of its own. */
static bool comes_from_the_queue(void** p, unsigned n) {
    for (unsigned i = 0; i < CHURNED; i++)
        for (unsigned k = 0; k < n; k++) slab_free(a, p[i * SLOTS + k]);
    void* q = slab_malloc(a, SIZE);
    REQUIRE(q != NULL);
    for (unsigned i = 0; i < CHURNED; i++)
        if (line_of(q) == line_of(p[i * SLOTS + SLOTS - 1])) return true;
    return false;
}
/* Full lines, the last of them current. */
static void churn(void** p, unsigned lines_given) {
    take(p, CHURNED * SLOTS + SLOTS);
    for (unsigned n = 0; n < lines_given; n++) {
        void** of = p + n % CHURNED * SLOTS;
        for (unsigned k = 0; k < THRESHOLD; k++) slab_free(a, of[k]);
        take(of, THRESHOLD);
        REQUIRE_EQ(line_of(of[0]), line_of(of[SLOTS - 1]));
    }
}

/* Poor lines in a row are a reason for a new slab, but in a room whose queue has served for long they have to be very poor. */
static void a_settled_room_makes_do(void) {
    void* p[CHURNED * SLOTS + SLOTS];
    churn(p, TSI_ROOM_SETTLED - 1);
    REQUIRE(!comes_from_the_queue(p, THRESHOLD / 2));
    kit_close(), open_allocator();
    churn(p, TSI_ROOM_SETTLED);
    REQUIRE(comes_from_the_queue(p, THRESHOLD / 2));
    kit_close(), open_allocator();
    churn(p, TSI_ROOM_SETTLED);
    REQUIRE(!comes_from_the_queue(p, THRESHOLD / 2 - 1));
    kit_close(), open_allocator();
    churn(p, 2 * TSI_ROOM_SETTLED);
    take(p, SLOTS); /* what a new slab has, which makes it one that grows again */
    churn(p, 1);
    REQUIRE(!comes_from_the_queue(p, THRESHOLD / 2));
}

/* Without memory for a slab the last free slot is found. */
static void without_memory_every_slot_counts(void) {
    enum { N = 64 };
    SlabOptions o = {.struct_size = sizeof o, .max_bytes = N * SIZE, .warm_bytes = 1, .bump = KIT_BUMP};
    SlabAllocator* small = slab_allocator_create_with(&o);
    void* p[N];
    for (unsigned i = 0; i < N; i++) REQUIRE((p[i] = slab_malloc(small, SIZE)) != NULL);
    REQUIRE_NULL(slab_malloc(small, SIZE));
    for (unsigned i = 0; i < N; i += SLOTS) {
        slab_free(small, p[i + 3]);
        REQUIRE_EQ(kit_hide(slab_malloc(small, SIZE)), p[i + 3]);
        REQUIRE_NULL(slab_malloc(small, SIZE));
    }
    kit_check(small);
    slab_allocator_free(small);
}

static void frees_of_others_tell_the_owner(void) {
    void *p[SLOTS + 1], *q[SLOTS];
    uint32_t id = parked_line(p);
    TsiBinding* b = kit_binding(a);
    free_elsewhere(p, THRESHOLD - 1);
    REQUIRE(token(id));
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), TSI_INBOX_EMPTY);
    free_elsewhere(p + THRESHOLD - 1, 1);
    REQUIRE(!token(id)); /* on its way */
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), inbox_name(id));
    REQUIRE_EQ(linked(id), 1);
    REQUIRE_EQ(flags(id), TSI_LINE_PARKED | TSI_LINE_ARMED);
    free_elsewhere(p + THRESHOLD, 2); /* linked once */
    REQUIRE_EQ(linked(id), 1);
    tsi_inbox_drain(b);
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), TSI_INBOX_EMPTY);
    REQUIRE_EQ(linked(id), 0);
    REQUIRE_EQ(flags(id), TSI_LINE_LISTED);
    kit_check(a);
    take(q, SLOTS - 1);
    take(q, 1);
    REQUIRE_EQ(line_of(q[0]), id);
    REQUIRE_EQ(kit_hide(q[0]), p[0]);
}

/* What a freer asks before it takes the token is asked again as it does: others may have been there meanwhile. */
static void a_token_is_taken_with_enough_slots(void) {
    void* p[SLOTS + 1];
    uint32_t id = parked_line(p), slab = inbox_name(id) - 2;
    TsiBinding* b = kit_binding(a);
    uint32_t seq = tsi_tag_seq(tsi_load_relaxed(&tsi_slab(space, slab)->tag));
    free_elsewhere(p, THRESHOLD - 1);
    REQUIRE(!tsi_line_disarm(space, id, seq, THRESHOLD));
    REQUIRE(token(id));
    tsi_store_relaxed(&tsi_slab(space, slab)->inbox, 1);
    free_elsewhere(p + THRESHOLD - 1, 1);
    tsi_line_notify(tsi_arena(a), id, slab, seq); /* whose link is taken by now */
    REQUIRE(token(id));
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), TSI_INBOX_EMPTY);
    tsi_store_relaxed(&tsi_slab(space, slab)->inbox, 0);
}

/* A freer that sees the link taken, after its bit, leaves the token where it is: who has taken it looks. */
static void a_taken_link_keeps_the_token(void) {
    void* p[SLOTS + 1];
    uint32_t id = parked_line(p);
    TsiBinding* b = kit_binding(a);
    _Atomic uint32_t* link = &tsi_slab(space, inbox_name(id) - 2)->inbox;
    tsi_store_relaxed(link, 1);
    free_elsewhere(p, THRESHOLD);
    REQUIRE(token(id));
    REQUIRE_EQ(linked(id), 1);
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), TSI_INBOX_EMPTY);
    tsi_store_relaxed(link, 0);
    free_elsewhere(p + THRESHOLD, 1);
    REQUIRE(!token(id));
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), inbox_name(id));
}

/* Threads that never allocated free as strictly as others, and find what is to be told. */
static void* free_unbound(void* arg) {
    Frees* f = arg;
    REQUIRE_NULL(tsi_tls.thread);
    for (unsigned i = 0; i < f->n; i++) {
        REQUIRE(!slab_free_checked(a, (char*)f->p[i] + 16)); /* no object's start */
        f->done += slab_free_checked(a, f->p[i]);
        REQUIRE(!slab_free_checked(a, f->p[i]));
    }
    REQUIRE(slab_free_checked(a, NULL));
    REQUIRE(!slab_free_checked(a, &f));
    REQUIRE_NULL(tsi_tls.thread);
    return NULL;
}
static void a_thread_that_only_frees(void) {
    void* p[SLOTS + 1];
    uint32_t id = parked_line(p);
    Frees f = {p, SLOTS, 0};
    kit_on_thread(free_unbound, &f);
    REQUIRE_EQ(f.done, SLOTS);
    REQUIRE_EQ(remote(id), c->full);
    REQUIRE(!token(id));
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->inbox), inbox_name(id));
}

/* What others have freed before stays, and is taken in with the owner's. */
static void an_unparked_line_has_what_others_freed(void) {
    void *p[SLOTS + 1], *q[SLOTS];
    uint32_t id = parked_line(p);
    free_elsewhere(p, THRESHOLD - 1);
    REQUIRE_EQ(flags(id), TSI_LINE_PARKED | TSI_LINE_ARMED);
    kit_check(a);
    slab_free(a, p[THRESHOLD - 1]);
    REQUIRE_EQ(flags(id), TSI_LINE_LISTED | TSI_LINE_ARMED);
    kit_check(a);
    take(q, SLOTS - 1);
    take(q, THRESHOLD);
    for (unsigned i = 0; i < THRESHOLD; i++) REQUIRE_EQ(kit_hide(q[i]), p[i]);
}

/* What an inbox tells may be over: the line was filed, used up and parked since. */
static void an_inbox_that_tells_what_is_over(void) {
    void *p[SLOTS + 1], *q[SLOTS];
    uint32_t id = parked_line(p);
    TsiBinding* b = kit_binding(a);
    free_elsewhere(p, THRESHOLD);
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), inbox_name(id));
    TsiHeap* h = tsi_line_heap(b, line(id));
    REQUIRE(tsi_bracket_enter(b, h, tsi_busy_all(h))); /* as the owner's free does, without a look at the inbox */
    tsi_line_freed(b, line(id), kit_place(a, p[THRESHOLD]).slot);
    REQUIRE_EQ(flags(id), TSI_LINE_LISTED | TSI_LINE_ARMED);
    unsigned n;
    REQUIRE_EQ(tsi_room_pop(space, h->room, c, CLS, THRESHOLD, THRESHOLD, &n), line(id));
    REQUIRE_EQ(n, THRESHOLD + 1);
    REQUIRE_EQ(tsi_line_refill(b, line(id), c, THRESHOLD), THRESHOLD + 1);
    tsi_store_relaxed(&line(id)->avail, 0); /* handed out */
    REQUIRE(tsi_line_leave(b, CLS, line(id)));
    tsi_bracket_leave(b, h);
    REQUIRE_EQ(flags(id), TSI_LINE_PARKED | TSI_LINE_ARMED);
    REQUIRE(!token(id)); /* on its way */
    tsi_inbox_drain(b);
    REQUIRE_EQ(flags(id), TSI_LINE_PARKED | TSI_LINE_ARMED);
    REQUIRE(token(id));
    kit_check(a);
    take(q, SLOTS - 1);
    take(q, 1);
    REQUIRE_NE(line_of(q[0]), id);
    REQUIRE_EQ(slab_stats_thread().repair_count, 0);
    for (unsigned i = 0; i <= THRESHOLD; i++) REQUIRE(slab_free_checked(a, p[i])); /* they live again */
}

static void a_line_with_room_is_not_parked(void) {
    void* p[SLOTS];
    take(p, SLOTS);
    uint32_t id = line_of(p[0]);
    free_elsewhere(p, THRESHOLD); /* after the refill that found nothing, say */
    REQUIRE(!tsi_line_leave(kit_binding(a), CLS, line(id)));
    REQUIRE(!token(id)); /* it was not armed */
    REQUIRE_EQ(flags(id), 0);
    REQUIRE(is_plain(id));
}

/* Several lines in one inbox come out each once. */
static void an_inbox_holds_many(void) {
    enum { LINES = 20 };
    void* p[LINES * SLOTS + 1];
    take(p, LINES * SLOTS + 1);
    for (unsigned i = 0; i < LINES; i++) free_elsewhere(p + i * SLOTS, THRESHOLD + i % 3);
    tsi_inbox_drain(kit_binding(a));
    for (unsigned i = 0; i < LINES; i++) {
        REQUIRE_EQ(flags(line_of(p[i * SLOTS])), TSI_LINE_LISTED);
        REQUIRE_EQ(linked(line_of(p[i * SLOTS])), 0);
    }
    kit_check(a);
}

typedef struct Fill {
    void* p[SLOTS + THRESHOLD];
    TsiBinding* b;
    unsigned n;
} Fill;

static void fill_here(void* arg) {
    Fill* f = arg;
    for (unsigned i = 0; i < f->n; i++) f->p[i] = slab_malloc(a, SIZE);
    f->b = kit_binding(a);
}

/* The line's slab is returned while the line sits in our inbox, and another thread gets it: it is
 * linked to our inbox, cannot be linked to theirs, and is passed on when we look. */
static void a_line_outlives_its_slab_in_an_inbox(void) {
    void* p[SLOTS + 1];
    KitWorker w;
    Fill f = {.n = SLOTS + 1};
    uint32_t id = parked_line(p);
    free_elsewhere(p, THRESHOLD);
    TsiBinding* b = kit_binding(a);
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), inbox_name(id));
    uint64_t before = kit_tag(a, p[0]);
    REQUIRE(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, NULL));
    REQUIRE_EQ(kit_committed_now(a), 0);
    (void)epoch_advance_id(a);
    kit_worker_start(&w);
    kit_worker_run(&w, fill_here, &f);
    unsigned first = 0; /* of the worker's objects in our line */
    while (line_of(f.p[first]) != id) REQUIRE(++first < SLOTS);
    REQUIRE(tsi_tag_seq(kit_tag(a, f.p[first])) > tsi_tag_seq(before));
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), inbox_name(id));
    if (!token(id)) { /* the line that is current needs the other one to be full as well */
        Fill more = {.n = SLOTS};
        kit_worker_run(&w, fill_here, &more);
    }
    REQUIRE(token(id));
    for (unsigned i = 0; i < THRESHOLD; i++) REQUIRE(slab_free_checked(a, f.p[first + i]));
    REQUIRE(token(id)); /* put back: the line is linked elsewhere */
    REQUIRE_EQ(tsi_load_relaxed(&f.b->inbox), TSI_INBOX_EMPTY);
    tsi_inbox_drain(b);
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), TSI_INBOX_EMPTY);
    REQUIRE_EQ(tsi_load_relaxed(&f.b->inbox), inbox_name(id)); /* passed on */
    REQUIRE(!token(id));
    Fill again = {.n = SLOTS + THRESHOLD};
    kit_worker_run(&w, fill_here, &again);
    unsigned found = 0;
    for (unsigned i = 0; i < SLOTS + THRESHOLD; i++) found += line_of(again.p[i]) == id;
    REQUIRE_EQ(found, THRESHOLD);
    kit_check(a);
    kit_worker_stop(&w);
}

/* The same, but the slab's chunk now serves another class, or none. */
static void a_line_outlives_its_class_in_an_inbox(void) {
    void* p[SLOTS + 1];
    uint32_t id = parked_line(p);
    free_elsewhere(p, THRESHOLD);
    TsiBinding* b = kit_binding(a);
    REQUIRE(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, NULL));
    REQUIRE_EQ(tsi_chunk_class(space, id >> 10), 0);
    tsi_inbox_drain(b);
    REQUIRE_EQ(tsi_load_relaxed(&b->inbox), TSI_INBOX_EMPTY);
    REQUIRE_EQ(linked(id), 0);

    (void)epoch_advance_id(a);
    id = parked_line(p);
    free_elsewhere(p, THRESHOLD);
    REQUIRE(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, NULL));
    (void)epoch_advance_id(a);
    for (unsigned n = 0; n < 200; n++) REQUIRE(slab_malloc_epoch(a, 64, epoch_current(a)) != NULL);
    REQUIRE_EQ(linked(id), 0);
    kit_check(a);
}

static void* fill_thread(void* arg) {
    fill_here(arg);
    return NULL;
}

/* A line whose owner has left keeps its token in the word; the adopter finds the slots by looking. */
static void the_token_of_an_ownerless_line(void) {
    Fill f = {.n = SLOTS + 1};
    kit_on_thread(fill_thread, &f);
    uint32_t id = line_of(f.p[0]);
    REQUIRE(token(id));
    for (unsigned i = 0; i < THRESHOLD + 1; i++) REQUIRE(slab_free_checked(a, f.p[i]));
    REQUIRE(token(id));
    void* q[SLOTS + THRESHOLD];
    take(q, SLOTS + THRESHOLD);
    unsigned found = 0;
    for (unsigned i = 0; i < SLOTS + THRESHOLD; i++) found += line_of(q[i]) == id;
    REQUIRE_EQ(found, THRESHOLD + 1);
    kit_check(a);
}

/* Lines in the inbox of a thread that leaves are not lost. */
static void an_inbox_is_emptied_at_thread_exit(void) {
    KitWorker w;
    Fill f = {.n = SLOTS + 1};
    kit_worker_start(&w);
    kit_worker_run(&w, fill_here, &f);
    uint32_t id = line_of(f.p[0]);
    for (unsigned i = 0; i < THRESHOLD; i++) REQUIRE(slab_free_checked(a, f.p[i]));
    REQUIRE_EQ(tsi_load_relaxed(&f.b->inbox), inbox_name(id));
    kit_worker_stop(&w);
    REQUIRE_EQ(linked(id), 0);
    REQUIRE_EQ(tsi_load_relaxed(&f.b->inbox), TSI_INBOX_CLOSED);
    void* q[SLOTS + THRESHOLD - 1];
    take(q, SLOTS + THRESHOLD - 1);
    unsigned found = 0;
    for (unsigned i = 0; i < SLOTS + THRESHOLD - 1; i++) found += line_of(q[i]) == id;
    REQUIRE_EQ(found, THRESHOLD);
    /* Parked again under the new owner: its token works as before. */
    void* r[SLOTS];
    take(r, SLOTS);
    REQUIRE(token(id));
    free_elsewhere(f.p + THRESHOLD, THRESHOLD);
    tsi_inbox_drain(kit_binding(a));
    REQUIRE_EQ(flags(id) & TSI_LINE_PARKED, 0);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, kit_close)
        TEST(the_class_is_as_said),
        TEST(a_line_is_handed_out_from_its_lowest_slot),
        TEST(a_refill_merges_remote_and_freed),
        TEST(a_doubled_slot_is_found_at_the_merge),
        TEST(the_owners_first_free_unparks_a_line),
        TEST(lines_wait_in_a_queue),
        TEST(a_settled_room_makes_do),
        TEST(without_memory_every_slot_counts),
        TEST(a_token_is_taken_with_enough_slots),
        TEST(a_taken_link_keeps_the_token),
        TEST(a_thread_that_only_frees),
        TEST(an_unparked_line_has_what_others_freed),
        TEST(a_parked_line_refuses_what_is_free),
        TEST(counted_frees_unpark_a_line),
        TEST(regions_are_as_strict),
        TEST(frees_of_others_tell_the_owner),
        TEST(a_line_with_room_is_not_parked),
        TEST(an_inbox_that_tells_what_is_over),
        TEST(an_inbox_holds_many),
        TEST(a_line_outlives_its_slab_in_an_inbox),
        TEST(a_line_outlives_its_class_in_an_inbox),
        TEST(the_token_of_an_ownerless_line),
        TEST(an_inbox_is_emptied_at_thread_exit),
    };
    return CHECK_RUN(argc, argv, tests);
}
