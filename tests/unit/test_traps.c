/*
 * test_traps.c - the traps of the design that one thread at a time can step into, one test each. The other
 * lines of that list need an interleaving; README.md says which model or test has them.
 */
#define KIT_RING_BY_CLASS
#include "fake_os.h"
#include "kit/one.h"

#include "heap/free.h"
#include "heap/heap.h"
#include "state/bracket.h"
#include "threads/registry.h"
#include "heap/room.h"

#include "slab_stats.h"

static void open_allocator(void) {
    kit_open_cold();
    fake_os_clear();
}

typedef struct Free {
    void* p;
    bool freed;
} Free;
static void* free_it(void* arg) {
    Free* f = arg;
    f->freed = slab_free_checked(a, f->p);
    return NULL;
}
static bool free_elsewhere(void* p) {
    Free f = {p, false};
    kit_on_thread(free_it, &f);
    return f.freed;
}

/* Trap 1: a remote free, then the owner's free of the same pointer, or the other way round. */
static void a_pointer_freed_by_two_sides(void) {
    enum { N = 64 };
    void *p[N], *q[N];
    for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = kit_hide(slab_malloc(a, 128))) != NULL);
    for (unsigned n = 0; n < N; n += 2) {
        bool remote_first = n % 4 == 0;
        REQUIRE(remote_first ? free_elsewhere(p[n]) : slab_free_checked(a, p[n]));
        REQUIRE(!(remote_first ? slab_free_checked(a, p[n]) : free_elsewhere(p[n])));
        REQUIRE(!slab_free_checked(a, p[n]));
    }
    REQUIRE_EQ(kit_refusals(a).double_free, N);
    REQUIRE_EQ(kit_live(a), N / 2);
    for (unsigned n = 0; n < N; n++) q[n] = kit_hide(slab_malloc(a, 128));
    for (unsigned n = 0; n < N; n++) { /* nobody got what somebody has */
        for (unsigned m = 0; m < n; m++) REQUIRE_NE(q[n], q[m]);
        for (unsigned m = 1; m < N; m += 2) REQUIRE_NE(q[n], p[m]);
    }
}

/* Trap 2: a free that passed its checks before the epoch was released frees nobody else's object. */
static void a_free_that_slept_through_a_release(void) {
    void* p = slab_malloc(a, 1000);
    TsiPlace at = kit_place(a, p);
    uint32_t seq = tsi_tag_seq(kit_tag(a, p));
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    (void)epoch_advance_id(a);
    void* q = slab_malloc(a, 1000);
    TsiPlace now = kit_place(a, q);
    REQUIRE_EQ(now.line_id, at.line_id); /* a stranger has the slot */
    REQUIRE_EQ(now.slot, at.slot);
    REQUIRE_EQ(tsi_free_place(tsi_arena(a), kit_binding(a), &at, seq, false), SLAB_MISUSE_STALE_FREE);
    REQUIRE_EQ(tsi_free_place(tsi_arena(a), NULL, &at, seq, false), SLAB_MISUSE_STALE_FREE);
    /* The compare-exchange itself, had the checks been before the release: */
    _Atomic uint64_t* word = &tsi_remote(&tsi_arena(a)->space, at.line_id)[at.slot >> 5];
    uint64_t slept = tsi_remote_fresh(at.slot >> 5, seq);
    REQUIRE(!tsi_cas_seq(word, &slept, slept | tsi_remote_bit(at.slot)));
    REQUIRE(slab_free_checked(a, q));
}

/* Trap 9: a pair that is allocated and freed on one slot leaves its trace in the counts. */
static void a_hot_pair_is_counted(void) {
    enum { N = 100003 };
    EpochReceipt r;
    for (unsigned n = 0; n < N; n++) slab_free(a, slab_malloc(a, 128));
    REQUIRE(epoch_close_ex(a, 0, EPOCH_DRAIN, &r));
    REQUIRE_EQ(r.objects_allocated, N);
    REQUIRE_EQ(r.objects_freed, N);
    REQUIRE_EQ(r.bytes_allocated, (uint64_t)N * 128);
    REQUIRE_EQ(r.objects_escaped, 0);
}

/* Trap 10: handle, free by pointer, new object on the slot, old handle. */
static void a_pointer_free_ends_the_handle(void) {
    SlabHandle old, fresh;
    void *p = kit_hide(alloc_obj(a, 64, &old)), *q = NULL, *more[15];
    for (unsigned n = 0; n < 15; n++) REQUIRE((more[n] = slab_malloc(a, 64)) != NULL);
    REQUIRE(slab_free_checked(a, p));
    for (unsigned n = 0; n < 15; n++) REQUIRE(slab_free_checked(a, more[n])); /* enough for the line to be used again */
    for (unsigned n = 0; n < 200 && q != p; n++) q = kit_hide(slab_malloc(a, 64));
    REQUIRE_EQ(q, p);
    REQUIRE(!free_obj(a, old));
    REQUIRE_NULL(slab_handle_ptr(a, old));
    REQUIRE_EQ(slab_usable_size(a, q), 64);
    fresh = slab_ptr_handle(a, q);
    REQUIRE_NE(fresh, old);
    REQUIRE(free_elsewhere(q)); /* and so with another thread's */
    REQUIRE(!free_obj(a, fresh));
    REQUIRE_EQ(kit_refusals(a).stale_handle, 2);
}

/* Trap 11: fresh allocators issue different handles for their first objects. */
static void allocators_do_not_share_handles(void) {
    enum { N = 50 };
    SlabAllocator* b[N];
    SlabHandle h[N];
    for (unsigned n = 0; n < N; n++) {
        b[n] = kit_create();
        REQUIRE(alloc_obj(b[n], 64, &h[n]) != NULL);
    }
    for (unsigned n = 0; n < N; n++)
        for (unsigned m = 0; m < N; m++) {
            if (m == n) continue;
            REQUIRE(h[n] != h[m]);
            REQUIRE_NULL(slab_handle_ptr(b[m], h[n]));
        }
    for (unsigned n = 0; n < N; n++) REQUIRE(free_obj(b[n], h[n]));
    for (unsigned n = 0; n < N; n++) slab_allocator_free(b[n]);
}

/* Trap 12: one-object phases on one slab: no incarnation number wraps within 2^17 of them. */
static void short_incarnations(SlabOptions o) {
    SlabAllocator* warm = slab_allocator_create_with(&o);
    SlabHandle first = 0;
    void* p = NULL;
    uint32_t slab_id = 0, seq = 0;
    for (unsigned n = 0; n < 1u << 17; n++) {
        epoch_domain_t* d = epoch_domain_create(warm);
        SlabHandle h;
        void* q = kit_hide(alloc_obj_epoch(warm, 64, d->epoch_id, &h));
        REQUIRE(q != NULL);
        if (n == 0) {
            p = q;
            first = h;
            slab_id = kit_place(warm, p).slab_id;
            REQUIRE_EQ(tsi_class_is_region(kit_place(warm, p).cls), o.bump != 2);
            seq = tsi_tag_seq(kit_tag(warm, p));
        } else {
            REQUIRE(q == p && h != first);
            REQUIRE(tsi_tag_seq(tsi_load_relaxed(&tsi_slab(&tsi_arena(warm)->space, slab_id)->tag)) != seq);
            uint64_t word = tsi_load_relaxed(tsi_remote(&tsi_arena(warm)->space, kit_place(warm, p).line_id));
            if (o.bump == 2) REQUIRE(!tsi_remote_is(0, word, seq));
            if (n % 0x1000 < 2) REQUIRE(!free_obj(warm, first));
        }
        epoch_domain_destroy(d);
    }
    slab_allocator_free(warm);
}
static void short_incarnations_do_not_wrap(void) {
    short_incarnations(kit_options()); /* whose regions pass through all of their generations 2000 times */
    SlabOptions o = kit_options();
    o.bump = 2;
    short_incarnations(o);
}

/* Trap 13: an active epoch keeps its empty slabs through bursts. */
static void bursts_do_not_return_pages(void) {
    enum { N = 2000 };
    static void* p[N];
    uint64_t commits = 0;
    for (unsigned lap = 0; lap < 20; lap++) {
        for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = slab_malloc(a, 500)) != NULL);
        for (unsigned n = 0; n < N; n++) slab_free(a, p[n]);
        if (lap == 0) commits = fake_os.calls[FAKE_COMMIT];
    }
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
    REQUIRE_EQ(fake_os.calls[FAKE_COMMIT], commits);
}

/* Trap 14: an allocator at the address of a destroyed one does not meet its heaps. */
static void the_same_storage_again(void) {
    static SlabAllocator storage;
    SlabOptions o = kit_options();
    void* old = NULL;
    uint64_t serial = 0;
    for (unsigned n = 0; n < 50; n++) {
        REQUIRE(allocator_init_with(&storage, &o));
        REQUIRE(tsi_arena(&storage)->serial > serial);
        serial = tsi_arena(&storage)->serial;
        REQUIRE_EQ(kit_live(&storage), 0);
        if (n % 3 == 2) REQUIRE(!slab_free_checked(&storage, old)); /* before this thread is known to it */
        uint8_t* p = kit_hide(slab_malloc(&storage, 64));
        REQUIRE(p != NULL);
        memset(p, 1, 64);
        REQUIRE_EQ(kit_live(&storage), 1);
        REQUIRE_EQ(kit_binding(&storage)->arena, tsi_arena(&storage));
        if (n % 2 == 0) REQUIRE(slab_free_checked(&storage, p));
        old = p;
        kit_check(&storage);
        allocator_destroy(&storage);
        REQUIRE_NULL(slab_malloc(&storage, 64));
        REQUIRE(!slab_free_checked(&storage, old));
    }
}

/* Trap 16: a reference to an incarnation whose record has a new one allocates in neither. */
static void a_reference_that_slept(void) {
    epoch_domain_t* d = epoch_domain_create(a);
    TsiRef ref = tsi_phases_resolve(&tsi_arena(a)->phases, d->epoch_id);
    REQUIRE(tsi_alloc_ref(a, 64, ref) != NULL);
    epoch_domain_destroy(d);
    bool reused = false;
    for (unsigned n = 0; n < 1000 && !reused; n++) {
        d = epoch_domain_create(a);
        reused = (d->epoch_id & TSI_INC_MAX) == tsi_ref_index(ref);
        if (!reused) epoch_domain_destroy(d);
    }
    REQUIRE(reused);
    errno = 0;
    REQUIRE_NULL(tsi_alloc_ref(a, 64, ref));
    REQUIRE_EQ(errno, ESTALE);
    REQUIRE_EQ(kit_live(a), 0);
    epoch_domain_destroy(d);
}

/* Trap 17: live counts come from the words, so that they are never below zero, whoever freed. */
static void live_counts_are_exact(void) {
    enum { N = 40 };
    void* p[N];
    for (unsigned n = 0; n < N; n++) {
        REQUIRE((p[n] = slab_malloc(a, 300)) != NULL);
        REQUIRE_EQ(kit_live(a), n + 1);
    }
    for (unsigned n = 0; n < N; n++) {
        REQUIRE(n % 3 == 0 ? free_elsewhere(p[n]) : slab_free_checked(a, p[n]));
        REQUIRE(!slab_free_checked(a, p[n]));
        REQUIRE_EQ(kit_live(a), N - 1 - n);
    }
    SlabClassStats s;
    slab_stats_class(a, 5, &s);
    REQUIRE_EQ(s.live_bytes, 0);
}

/* Trap 18: a free by another thread, granted or refused, writes nothing into the object. */
static void a_remote_free_does_not_write(void) {
    void* p[8];
    for (unsigned n = 0; n < 8; n++) {
        REQUIRE((p[n] = kit_hide(slab_malloc(a, 256))) != NULL);
        memset(p[n], 0x5a, 256);
    }
    for (unsigned n = 0; n < 8; n++) {
        if (n % 2 == 0) REQUIRE(slab_free_checked(a, p[n]));
        bool ok = free_elsewhere(p[n]);
        REQUIRE(ok == (n % 2 != 0));
    }
    for (unsigned n = 0; n < 8; n++) { /* the epoch is active: its pages are still there */
        volatile const uint8_t* bytes = p[n];
        for (unsigned i = 0; i < 256; i++) REQUIRE_EQ(bytes[i], 0x5a);
    }
}

/* Trap 20: callbacks run outside brackets: what they allocate and free does not end an outer one. */
typedef struct Nested {
    unsigned calls, inside;
} Nested;
static void nested_work(Nested* n) {
    TsiBinding* b = kit_binding(a);
    n->calls++;
    if (b != NULL && tsi_load_relaxed(&b->busy) != 0) n->inside++;
    for (size_t bytes = 16; bytes < 5000; bytes *= 2) slab_free(a, slab_malloc_epoch(a, bytes, 5));
}
static void on_misuse(SlabAllocator* owner, SlabMisuse what, const void* where, void* ctx) {
    (void)owner, (void)what, (void)where;
    nested_work(ctx);
}
static void on_end(void* ctx) { nested_work(ctx); }

static void callbacks_are_outside_brackets(void) {
    Nested n = {0, 0};
    SlabAllocator* was = a;
    SlabOptions o = kit_options();
    o.misuse_fn = on_misuse;
    o.misuse_ctx = &n;
    a = kit_create_with(&o);
    void *p = slab_malloc(a, 64), *q = slab_malloc(a, 2000);
    REQUIRE(slab_free_checked(a, p));
    REQUIRE(!slab_free_checked(a, p));
    REQUIRE(!slab_free_checked(a, (char*)q + 16));
    REQUIRE(!slab_free_checked(a, &n));
    REQUIRE(!free_obj(a, 12345));
    REQUIRE_NULL(slab_malloc(a, 0));
    REQUIRE_NULL(slab_malloc_epoch(a, 64, 99));
    slab_free_sized(a, q, 1 << 20);
    REQUIRE_EQ(n.calls, 7);
    REQUIRE(slab_epoch_on_end(a, 0, on_end, &n));
    REQUIRE(epoch_close_ex(a, 0, EPOCH_DRAIN, NULL)); /* q lives on */
    REQUIRE_EQ(n.calls, 7);
    REQUIRE_NULL(slab_malloc_epoch(a, 64, 0));
    REQUIRE_EQ(n.calls, 8);
    REQUIRE(slab_free_checked(a, q)); /* the last object: the cleanup runs inside this call */
    REQUIRE_EQ(n.calls, 9);
    REQUIRE_EQ(n.inside, 0);
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->busy), 0);
    kit_check(a);
    slab_allocator_free(a);
    a = was;
}

/* A line that still names its old heap: the record lives again, for the same thread and another epoch. */
static void a_slab_that_left_its_heap(void) {
    void* p = slab_malloc(a, 1000);
    uint32_t heap = tsi_tag_index(kit_tag(a, p));
    REQUIRE(epoch_close_ex(a, 0, EPOCH_DRAIN, NULL)); /* p escapes */
    REQUIRE_EQ(tsi_tag_state(kit_tag(a, p)), TSI_SLAB_ORPHAN);
    (void)epoch_advance_id(a);
    void* q = slab_malloc(a, 1000);
    REQUIRE_EQ(tsi_tag_index(kit_tag(a, q)), heap);
    TsiPlace at = kit_place(a, p);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_line(&tsi_arena(a)->space, at.line_id)->heap_at), 0);
    REQUIRE(slab_free_checked(a, p)); /* a late free: it returns the slab */
    unsigned now = tsi_tag_state(tsi_load_seq(&tsi_slab(&tsi_arena(a)->space, at.slab_id)->tag));
    REQUIRE(now == TSI_SLAB_WARM || now == TSI_SLAB_POOL);
    REQUIRE(slab_free_checked(a, q));
}

/* Handles of one line, frees by the slow path in another of the same slab: its counts move, and must move back however
 * the line is taken in again. */
static void counts_of_a_line_without_handles(void) {
    enum { N = 128, LAPS = 3 }; /* two lines of 64 slots: one slab */
    void* p[N];
    for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = slab_malloc(a, 64)) != NULL);
    REQUIRE_EQ(kit_place(a, p[0]).slab_id, kit_place(a, p[N - 1]).slab_id);
    REQUIRE_NE(kit_place(a, p[0]).line_id, kit_place(a, p[N - 1]).line_id);
    SlabHandle h = slab_ptr_handle(a, p[0]);
    REQUIRE(h != 0);
    for (unsigned lap = 0; lap < LAPS; lap++) {
        for (unsigned n = N / 2; n < N; n++) slab_free_sized(a, p[n], 64);
        for (unsigned n = N / 2; n < N; n++) REQUIRE((p[n] = slab_malloc(a, 64)) != NULL);
    }
    REQUIRE_EQ(kit_refusals(a).double_free, 0);
    REQUIRE_EQ(kit_live(a), N);
    REQUIRE(free_obj(a, h));
    kit_check(a);
}

typedef struct Stale {
    void* p;
    TsiFast found;
    bool freed;
} Stale;

static void stale_free_begins(void* arg) {
    Stale* f = arg;
    TsiHeap* h;
    unsigned at;
    TsiBinding* b = tsi_binding_get(tsi_arena(a), true);
    f->found = tsi_free_fast(b, f->p, &h, &at);
}

static void stale_free_goes_on(void* arg) {
    Stale* f = arg;
    f->freed = tsi_free_missed(tsi_binding_get(tsi_arena(a), true), f->p);
}

/* A free of what is no object any more sleeps between finding the line's words and using them; the chunk has another class
 * by then, in which these words are a line elsewhere. */
static void a_chunk_changes_class_under_a_stale_free(void) {
    enum { FAR = (768 << 10) + 128, NEAR = (96 << 10) + 128, COUNT = 40000, CHUNK = (1 << TSI_CHUNK_SHIFT) - 1 };
    static void *p[COUNT], *q;
    TsiSpace* s = &tsi_arena(a)->space;
    Stale f = {NULL, TSI_FAST_NOT_FOUND, true};
    KitWorker w;
    for (unsigned n = 0; n < COUNT; n++) {
        REQUIRE((p[n] = slab_malloc(a, 128)) != NULL);
        if ((((uintptr_t)p[n] - (uintptr_t)s->base) & CHUNK) == FAR) f.p = p[n];
    }
    REQUIRE(f.p != NULL);
    uintptr_t chunk = (uintptr_t)f.p - FAR;
    kit_worker_start(&w);
    kit_worker_run(&w, stale_free_begins, &f);
    REQUIRE_EQ(f.found, TSI_FAST_MISSED);
    for (unsigned n = 0; n < COUNT; n++) slab_free(a, p[n]);
    slab_trim(a);
    for (unsigned n = 0; n < 300000 && q == NULL; n++) {
        void* one = slab_malloc(a, 16);
        if ((uintptr_t)one == chunk + NEAR) q = one;
    }
    REQUIRE(q != NULL); /* in the line that has the words now */
    kit_worker_run(&w, stale_free_goes_on, &f);
    REQUIRE(!f.freed);
    REQUIRE(slab_free_checked(a, q));
    kit_worker_stop(&w);
    kit_check(a);
}

/* Lists that are wrong cannot come about; made wrong by hand they are mended and counted. */
static void lists_made_wrong(void) {
    enum { N = 128 };
    TsiArena* arena = tsi_arena(a);
    TsiSpace* s = &arena->space;
    void* p[N];
    for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = slab_malloc(a, 64)) != NULL); /* two full lines */
    TsiPlace full = kit_place(a, p[0]);
    TsiHeap* h = tsi_heap(arena, tsi_tag_index(kit_tag(a, p[0])));
    ThreadStats before = slab_stats_thread();
    tsi_room_push(arena, h->room, full.cls, tsi_line(s, full.line_id), true); /* says that there is room */
    REQUIRE(slab_malloc(a, 64) != NULL);
    ThreadStats after = slab_stats_thread();
    REQUIRE_EQ(after.repair_count - before.repair_count, 1);
    REQUIRE_EQ(after.repair_reason_full_bitmap - before.repair_reason_full_bitmap, 1);
    kit_check(a);

    void* other = slab_malloc_epoch(a, 64, 5);
    TsiPlace strange = kit_place(a, other);
    TsiLine* l = tsi_line(s, strange.line_id);
    l->link = h->room->head[strange.cls];
    h->room->head[strange.cls] = strange.line_id + 1; /* another heap's line */
    for (unsigned n = 0; n < 2 * N; n++) {
        void* q = slab_malloc(a, 64);
        REQUIRE(q != NULL);
        REQUIRE_EQ(tsi_tag_index(kit_tag(a, q)), h->index);
    }
    after = slab_stats_thread();
    REQUIRE_EQ(after.repair_count - before.repair_count, 2);
    REQUIRE_EQ(after.repair_reason_list_mismatch - before.repair_reason_list_mismatch, 1);
    REQUIRE(slab_free_checked(a, other));
    kit_check(a);
}

static SlabAllocator* used;
static void use_it(void* arg) {
    (void)arg;
    (void)slab_malloc(used, 64);
}

/* A thread that exits leaves the allocators that live, not one that has the place of another that it used. */
static void another_in_the_place_of_ours(void) {
    SlabOptions o = kit_options();
    KitWorker w;
    o.reserve_bytes = TSI_RESERVE_MIN;
    kit_worker_start(&w);
    used = kit_create_with(&o);
    kit_worker_run(&w, use_it, NULL);
    uint32_t slot = tsi_arena(used)->slot, taken = slot + 1;
    slab_allocator_free(used);
    SlabAllocator* next = NULL;
    for (unsigned n = 0; n < 1000 && taken != slot; n++) { /* places are used again late */
        if (next != NULL) slab_allocator_free(next);
        next = kit_create_with(&o);
        taken = tsi_arena(next)->slot;
    }
    REQUIRE_EQ(taken, slot);
    REQUIRE(slab_malloc(next, 64) != NULL);
    kit_worker_stop(&w);
    REQUIRE(tsi_load_relaxed(&kit_binding(next)->in_use)); /* ours, though it may lie where theirs did */
    kit_check(next);
    REQUIRE_EQ(kit_live(next), 1);
    slab_allocator_free(next);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, kit_close)
        TEST(a_pointer_freed_by_two_sides),
        TEST(a_free_that_slept_through_a_release),
        TEST(a_hot_pair_is_counted),
        TEST(a_pointer_free_ends_the_handle),
        TEST(allocators_do_not_share_handles),
        TEST(short_incarnations_do_not_wrap),
        TEST(bursts_do_not_return_pages),
        TEST(the_same_storage_again),
        TEST(a_reference_that_slept),
        TEST(live_counts_are_exact),
        TEST(a_remote_free_does_not_write),
        TEST(callbacks_are_outside_brackets),
        TEST(a_slab_that_left_its_heap),
        TEST(counts_of_a_line_without_handles),
        TEST(a_chunk_changes_class_under_a_stale_free),
        TEST(lists_made_wrong),
        TEST(another_in_the_place_of_ours),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
