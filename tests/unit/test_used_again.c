/*
 * test_used_again.c - a heap that grows: what is used again before memory is taken from the system.
 */
#define KIT_RING_BY_CLASS
#include "kit/one.h"

#include "state/bracket.h"
#include "heap/heap.h"
#include "heap/room.h"

enum { MIB = 1 << 20 };

static TsiLine* line_of(const void* p) { return tsi_line(space, kit_place(a, p).line_id); }

/* Objects of one size are freed, of another as many bytes are made: what the first ones had goes back on the way. */
static void what_one_class_has_left_another_does_not_wait_for(void) {
    /* some slabs more than those after which a look comes by itself */
    enum { N = 2240 * 8192 / 64, M = 16 * MIB / 128, KEPT = 1024 /* one of so many, so that few slabs keep one */ };
    static void *p[N], *q[M];
    for (unsigned i = 0; i < N; i++) REQUIRE((p[i] = slab_malloc(a, 64)) != NULL);
    uint64_t before = kit_committed_now(a), most = before;
    for (unsigned i = 0; i < N; i++)
        if (i % KEPT != 0) slab_free(a, p[i]);
    REQUIRE_GE(kit_committed_now(a), before); /* nothing goes by a free */
    for (unsigned i = 0; i < M; i++) {
        REQUIRE((q[i] = slab_malloc(a, 128)) != NULL);
        uint64_t now = i % 1024 == 0 ? kit_committed_now(a) : 0;
        if (now > most) most = now;
    }
    REQUIRE_LE(most, before + before / 4);
    kit_check(a);
    for (unsigned i = 0; i < N; i += KEPT) REQUIRE(slab_free_checked(a, p[i]));
    for (unsigned i = 0; i < M; i++) REQUIRE(slab_free_checked(a, q[i]));
}

/* Nothing was freed: nothing is looked for, however much the heap grows. */
static void growth_alone_looks_for_nothing(void) {
    enum { N = 16 * MIB / 64 };
    for (unsigned i = 0; i < 64; i++) REQUIRE(slab_malloc(a, 64) != NULL);
    TsiHeap* h = tsi_line_heap(kit_binding(a), line_of(slab_malloc(a, 64)));
    uint32_t takes = 0;
    for (unsigned i = 0; i < N; i++) {
        REQUIRE(slab_malloc(a, 64) != NULL);
        uint32_t now = tsi_load_relaxed(&h->takes);
        if (now > takes) takes = now;
        if (now < takes) break; /* a look has begun it anew */
    }
    /* the look that needs no frees comes at half of the slabs */
    REQUIRE_GT(takes, tsi_load_relaxed(&h->slab_count) / 2 - 2);
}

/* A line of large objects is used again for each slot that is free. */
static void a_slot_of_a_large_object_is_used_again(void) {
    enum { SIZE = 5000, LINES = 20, SLOTS = 12 };
    void* p[LINES * SLOTS];
    for (unsigned i = 0; i < LINES * SLOTS; i++) REQUIRE((p[i] = slab_malloc(a, SIZE)) != NULL);
    uint64_t before = kit_committed_now(a);
    for (unsigned i = 0; i < LINES; i++) slab_free(a, p[i * SLOTS + i % SLOTS]);
    for (unsigned i = 0; i < LINES; i++) REQUIRE((p[i * SLOTS + i % SLOTS] = slab_malloc(a, SIZE)) != NULL);
    REQUIRE_EQ(kit_committed_now(a), before);
    kit_check(a);
}

/* A program that has one large object of a size at a time touches few of its slab's pages; once it has had many, the
 * line is handed out whole. */
static void a_young_line_keeps_to_what_was_touched(void) {
    enum { SIZE = 2048, SLOTS = 8, BATCH = 4 };
    uint64_t slots = 0;
    for (unsigned i = 0; i < TSI_LINE_YOUNG; i++) {
        void* p = slab_malloc(a, SIZE);
        slots |= 1ull << kit_place(a, p).slot;
        slab_free(a, p);
    }
    REQUIRE_EQ(tsi_popcount(slots), BATCH);
    for (unsigned i = 0; i < SLOTS; i++) {
        void* p = slab_malloc(a, SIZE);
        slots |= 1ull << kit_place(a, p).slot;
        slab_free(a, p);
    }
    REQUIRE_EQ(tsi_popcount(slots), SLOTS);
    kit_check(a);
}

/* All of its slots can be had, young or not. */
static void a_young_line_has_all_its_slots(void) {
    enum { SIZE = 2048, SLOTS = 8 };
    void* p[SLOTS];
    for (unsigned i = 0; i < SLOTS; i++) REQUIRE((p[i] = slab_malloc(a, SIZE)) != NULL);
    for (unsigned i = 1; i < SLOTS; i++) REQUIRE_EQ(line_of(p[i]), line_of(p[0]));
    kit_check(a);
}

/* The first lines of the queue need `least` free slots, later ones `lower`. */
static void later_lines_need_less(void) {
    enum { SIZE = 64, SLOTS = 64, LINES = TSI_ROOM_LOOKS, FREE = 8, LEAST = 16 };
    void* p[(LINES + 1) * SLOTS + 1]; /* the last one is in the second line of a slab, which is current */
    const TsiClass* c = &space->classes->c[1];
    unsigned n;
    for (unsigned i = 0; i <= (LINES + 1) * SLOTS; i++) REQUIRE((p[i] = slab_malloc(a, SIZE)) != NULL);
    for (unsigned i = 0; i < LINES; i++)
        for (unsigned k = 0; k < FREE; k++) slab_free(a, p[i * SLOTS + k]);
    TsiBinding* b = kit_binding(a);
    TsiHeap* h = tsi_line_heap(b, line_of(p[0]));
    REQUIRE(tsi_bracket_enter(b, h, tsi_busy_all(h)));
    REQUIRE_NULL(tsi_room_pop(space, h->room, c, 1, LEAST, LEAST, &n));
    TsiLine* l = tsi_room_pop(space, h->room, c, 1, LEAST, FREE, &n);
    REQUIRE_EQ(l, line_of(p[TSI_ROOM_LOOKS / 2 * SLOTS]));
    REQUIRE_EQ(n, FREE);
    tsi_room_push(arena, h->room, 1, l, false);
    tsi_bracket_leave(b, h);
    kit_check(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, kit_open_cold, kit_close)
        TEST(what_one_class_has_left_another_does_not_wait_for),
        TEST(growth_alone_looks_for_nothing),
        TEST(a_slot_of_a_large_object_is_used_again),
        TEST(a_young_line_keeps_to_what_was_touched),
        TEST(a_young_line_has_all_its_slots),
        TEST(later_lines_need_less),
    };
    return CHECK_RUN(argc, argv, tests);
}
