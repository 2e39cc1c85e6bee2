/*
 * gone_threads.c - threads that come, allocate and go leave no memory behind: what they, or others after them, have
 * emptied goes back, whoever frees it, wherever it was, and however often that happens.
 *
 * Committed bytes are compared, which the allocator counts: with a fixed budget for warm pages they are exact, so the
 * bounds hold on any machine.
 */
#include "kit/fixture.h"

enum { TEAM = 8, OBJECTS = 2000, ROUNDS = 6, TABLE = 16, TABLE_SIZE = 3000, WARM_BYTES = 1 << 20 };

typedef enum Frees { OWN, OTHERS, AFTERWARDS } Frees;
typedef enum Where { RING, DOMAIN, BY_ID } Where;

typedef struct Team {
    SlabAllocator* a;
    epoch_domain_t* domain;
    Where where;
    Frees frees;
    size_t (*size)(size_t round, size_t i);
    size_t round;
    pthread_barrier_t full;
    void* objects[TEAM][OBJECTS];
} Team;

static Team team;

static size_t of_one_class(size_t round, size_t i) {
    (void)round, (void)i;
    return 512;
}
static size_t of_several_classes(size_t round, size_t i) {
    (void)round;
    return (size_t)16 << i % 8;
}
static size_t of_another_class_each_round(size_t round, size_t i) {
    (void)i;
    return 128 + 160 * round;
}
static size_t large_now_and_then(size_t round, size_t i) {
    (void)round;
    return i % 200 == 0 ? 300000 : 256;
}

static uint64_t bytes_of_a_round(void) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < OBJECTS; i++) {
        bytes += TEAM * team.size(team.round, i);
    }
    return bytes;
}

static void* take(size_t size) {
    return team.where == BY_ID ? slab_malloc_epoch(team.a, size, epoch_current(team.a)) : slab_malloc(team.a, size);
}

static void free_all(size_t thread) {
    for (size_t i = 0; i < OBJECTS; i++) {
        CHECK(slab_free_checked(team.a, team.objects[thread][i]));
    }
}

static void* come_and_go(void* arg) {
    size_t thread = (size_t)(uintptr_t)arg;
    if (team.where == DOMAIN) {
        epoch_domain_enter(team.domain);
    }
    for (size_t i = 0; i < OBJECTS; i++) {
        void* p = take(team.size(team.round, i));
        if (CHECK(p != NULL)) {
            memset(p, 1, 16);
        }
        team.objects[thread][i] = p;
    }
    pthread_barrier_wait(&team.full);
    if (team.frees != AFTERWARDS) {
        free_all(team.frees == OWN ? thread : (thread + 1) % TEAM);
    }
    if (team.where == DOMAIN) {
        epoch_domain_exit(team.domain);
    }
    return NULL;
}

static void one_round(void) {
    pthread_t threads[TEAM];
    pthread_barrier_init(&team.full, NULL, TEAM);
    for (size_t t = 0; t < TEAM; t++) {
        threads[t] = kit_thread(come_and_go, (void*)(uintptr_t)t);
    }
    for (size_t t = 0; t < TEAM; t++) {
        pthread_join(threads[t], NULL);
    }
    pthread_barrier_destroy(&team.full);
    for (size_t t = 0; t < TEAM && team.frees == AFTERWARDS; t++) {
        free_all(t);
    }
}

static void open_team(Where where, Frees frees, size_t (*size)(size_t, size_t)) {
    SlabOptions o = kit_options();
    o.warm_bytes = WARM_BYTES;
    team.a = kit_create_with(&o);
    team.where = where;
    team.frees = frees;
    team.size = size;
    team.domain = where == DOMAIN ? epoch_domain_create_labeled(team.a, "open") : NULL;
    if (team.domain != NULL) { /* it stays open when they have left it */
        epoch_domain_enter(team.domain);
    }
}

static void close_team(void) {
    if (team.domain != NULL) {
        epoch_domain_exit(team.domain);
        epoch_domain_destroy(team.domain);
    }
    CHECK_EQ(kit_refused_frees(team.a), 0);
    slab_allocator_free(team.a);
}

/* After any number of rounds little is left: in shared mode, where no memory is a thread's own, what one round held. */
static void rounds(bool table) {
    for (team.round = 0; team.round < ROUNDS; team.round++) {
        one_round();
        for (size_t i = 0; i < TABLE && table; i++) {
            CHECK(take(TABLE_SIZE) != NULL);
        }
        uint64_t most = bytes_of_a_round() / 4 + WARM_BYTES + (2u << 20);
        CHECK_LE(kit_committed(team.a), kit_shared() ? 2 * bytes_of_a_round() + most : most);
    }
}

static void hold(Where where, Frees frees, size_t (*size)(size_t, size_t), bool table) {
    open_team(where, frees, size);
    rounds(table);
    close_team();
}

static void what_they_free(void) {
    for (Where where = RING; where <= BY_ID; where++) {
        hold(where, OWN, of_one_class, true);
        hold(where, OWN, of_several_classes, true);
        hold(where, OWN, of_another_class_each_round, true);
        hold(where, OWN, large_now_and_then, true);
    }
}

static void what_they_free_of_others(void) {
    for (Where where = RING; where <= BY_ID; where++) {
        hold(where, OTHERS, of_one_class, true);
        hold(where, OTHERS, of_several_classes, false);
    }
}

/* Nobody takes the heaps over before the frees: each goes as it is emptied. */
static void what_is_freed_after_them(void) {
    for (Where where = RING; where <= BY_ID; where++) {
        hold(where, AFTERWARDS, of_one_class, true);
        hold(where, AFTERWARDS, of_several_classes, false);
        hold(where, AFTERWARDS, of_another_class_each_round, true);
    }
}

/* The epoch is advanced while they have objects there: what is empty when they go goes with them. */
static void* leave_an_advanced_epoch(void* arg) {
    size_t thread = (size_t)(uintptr_t)arg;
    for (size_t i = 0; i < OBJECTS; i++) {
        team.objects[thread][i] = take(512);
    }
    pthread_barrier_wait(&team.full);
    pthread_barrier_wait(&team.full);
    free_all(thread);
    return NULL;
}

static void in_an_epoch_that_was_advanced(void) {
    pthread_t threads[TEAM];
    open_team(RING, OWN, of_one_class);
    for (size_t round = 0; round < 3; round++) {
        pthread_barrier_init(&team.full, NULL, TEAM + 1);
        for (size_t t = 0; t < TEAM; t++) {
            threads[t] = kit_thread(leave_an_advanced_epoch, (void*)(uintptr_t)t);
        }
        pthread_barrier_wait(&team.full);
        epoch_advance(team.a);
        pthread_barrier_wait(&team.full);
        for (size_t t = 0; t < TEAM; t++) {
            pthread_join(threads[t], NULL);
        }
        pthread_barrier_destroy(&team.full);
        uint64_t most = bytes_of_a_round() / 4 + WARM_BYTES;
        CHECK_LE(kit_committed(team.a), kit_shared() ? 4 * bytes_of_a_round() : most);
    }
    close_team();
}

/* ---- heaps that a thread takes over ---- */

static void* take_most(void* arg) {
    size_t thread = (size_t)(uintptr_t)arg;
    for (size_t i = 0; i < OBJECTS; i++) {
        team.objects[thread][i] = take(512);
    }
    for (size_t i = 0; i < 64; i++) { /* room for the table in each heap */
        CHECK(slab_free_checked(team.a, take(TABLE_SIZE)));
    }
    void* stays = take(TABLE_SIZE);
    CHECK(stays != NULL);
    return NULL;
}

/* What one thread takes over for its room it frees as its owner, without a look at what is empty: a scavenge has it,
 * once there are some hundred slabs, so what is left is a few rounds and not all twelve. */
static void what_is_freed_by_who_takes_over(void) {
    open_team(RING, AFTERWARDS, of_one_class);
    for (team.round = 0; team.round < 2 * ROUNDS; team.round++) {
        for (size_t t = 0; t < TEAM; t++) {
            kit_on_thread(take_most, (void*)(uintptr_t)t);
        }
        for (size_t i = 0; i < 4 * TABLE; i++) {
            CHECK(take(TABLE_SIZE) != NULL);
        }
        for (size_t t = 0; t < TEAM; t++) {
            free_all(t);
        }
        uint64_t table = (team.round + 1) * (4 * TABLE + TEAM) * 4096, round = bytes_of_a_round();
        CHECK_LE(kit_committed(team.a), 4 * round + table + WARM_BYTES);
    }
    close_team();
}

/* The slots that threads leave are used again: memory does not grow by a slab for each that comes. */
static void* leave_one(void* arg) {
    (void)arg;
    for (size_t i = 0; i < 200; i++) {
        void* p = take(64);
        if (CHECK(p != NULL) && i != 0) {
            CHECK(slab_free_checked(team.a, p));
        }
    }
    return NULL;
}

static void room_that_they_leave_is_found(void) {
    open_team(RING, OWN, of_one_class);
    for (size_t i = 0; i < 300; i++) {
        kit_on_thread(leave_one, NULL);
    }
    CHECK_LE(kit_committed(team.a), WARM_BYTES + (1u << 20));
    CHECK_EQ(kit_live(team.a), 300);
    close_team();
}

static const CheckCase cases[] = {
    CHECK_CASE(what_they_free),
    CHECK_CASE(what_they_free_of_others),
    CHECK_CASE(what_is_freed_after_them),
    CHECK_CASE(in_an_epoch_that_was_advanced),
    CHECK_CASE(what_is_freed_by_who_takes_over),
    CHECK_CASE(room_that_they_leave_is_found),
};
CHECK_MAIN(cases)
