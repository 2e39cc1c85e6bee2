/*
 * small_phases.c - many small phases open at once: what they cost, that none of it stays, and that phases that share pages of the
 * system do not share anything else.
 */
#include "kit/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

enum { PHASES = 10000, OBJECTS = 10, SIZE = 160, PHASE_BYTES = OBJECTS * SIZE, MOST_RESIDENT = 3600 };

static epoch_domain_t* domains[PHASES];
static unsigned char* object[PHASES][OBJECTS];

static void fill(SlabAllocator* a, size_t i) {
    domains[i] = epoch_domain_create_labeled(a, "small");
    REQUIRE(domains[i] != NULL);
    for (size_t k = 0; k < OBJECTS; k++) {
        object[i][k] = epoch_domain_malloc(domains[i], SIZE);
        REQUIRE(object[i][k] != NULL);
        for (size_t at = 0; at < SIZE; at++) object[i][k][at] = kit_byte(i * OBJECTS + k, at);
    }
}
static bool is_whole(size_t i, size_t k) {
    for (size_t at = 0; at < SIZE; at++) {
        if (object[i][k][at] != kit_byte(i * OBJECTS + k, at)) {
            return false;
        }
    }
    return true;
}
static void all_whole(size_t from, size_t step) {
    size_t broken = 0;
    for (size_t i = from; i < PHASES; i += step) {
        for (size_t k = 0; k < OBJECTS; k++) {
            broken += !is_whole(i, k);
        }
    }
    CHECK_EQ(broken, 0);
}

/* An open phase costs at most so much, and nothing of it stays, in whatever order they end. */
static void cost(void* arg) {
    size_t step = *(size_t*)arg;
    if (CHECK_TSAN || CHECK_ASAN) {
        SKIP("resident size means nothing in an instrumented build");
    }
    memset(domains, 1, sizeof domains);
    memset(object, 1, sizeof object);
    SlabAllocator* a = kit_create();
    uint64_t before = slab_rss_bytes();
    if (before == 0) {
        SKIP("the system does not tell the resident size");
    }
    for (size_t i = 0; i < PHASES; i++) {
        fill(a, i);
    }
    uint64_t full = slab_rss_bytes(), committed = kit_committed(a);
    NOTE("an open phase: %" PRIu64 " resident bytes, %" PRIu64 " committed", (full - before) / PHASES, committed / PHASES);
    if (!kit_shared() && slab_page_size() == 4096) {
        CHECK_LE(committed, (uint64_t)PHASES * 2048 + 64 * 1024);
        CHECK_LE(full - before, (uint64_t)PHASES * MOST_RESIDENT);
    }
    for (size_t from = 0; from < step; from++) {
        for (size_t i = from; i < PHASES; i += step) {
            epoch_domain_destroy(domains[i]);
        }
        for (size_t rest = from + 1; rest < step; rest++) {
            all_whole(rest, step);
        }
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_LE(kit_committed(a), KIT_WARM_BYTES);
    slab_trim(a);
    CHECK_EQ(kit_committed(a), 0);
    CHECK_LE(slab_rss_bytes(), before + KIT_MIB);
    slab_allocator_free(a);
}

static void small_phases_cost_little(void) {
    CHECK_NEEDS_OVERCOMMIT();
    size_t steps[] = {1, 2, 3};
    for (size_t n = 0; n < 3; n++) {
        check_child(cost, &steps[n]);
    }
}

/* Every second phase drains with an object that lives on; those beside them end. A late free, by another thread, ends each. */
static void* free_survivors(void* arg) {
    SlabAllocator* a = arg;
    for (size_t i = 0; i < PHASES; i += 2) {
        CHECK(is_whole(i, i % OBJECTS));
        CHECK(slab_free_checked(a, object[i][i % OBJECTS]));
        CHECK(!slab_free_checked(a, object[i][i % OBJECTS]));
    }
    return NULL;
}
static void survivors(void) {
    SlabAllocator* a = kit_create_cold();
    for (size_t i = 0; i < PHASES; i++) {
        fill(a, i);
    }
    for (size_t i = 0; i < PHASES; i += 2) {
        EpochReceipt r;
        for (size_t k = 0; k < OBJECTS; k++) {
            if (k != i % OBJECTS) {
                slab_free(a, object[i][k]);
            }
        }
        CHECK(epoch_close_ex(a, domains[i]->epoch_id, EPOCH_DRAIN, &r));
        CHECK_EQ(r.objects_escaped, 1);
    }
    for (size_t i = 1; i < PHASES; i += 2) {
        epoch_domain_destroy(domains[i]);
    }
    slab_trim(a);
    CHECK_EQ(kit_live(a), PHASES / 2);
    CHECK_GE(kit_committed(a), PHASES / 2 * (uint64_t)SIZE);
    /* New phases lie beside the survivors. */
    for (size_t i = 1; i < PHASES; i += 2) {
        fill(a, i);
    }
    all_whole(1, 2);
    kit_on_thread(free_survivors, a);
    all_whole(1, 2);
    CHECK_EQ(kit_live(a), PHASES / 2 * OBJECTS);
    for (size_t i = 0; i < PHASES; i++) {
        epoch_domain_destroy(domains[i]);
    }
    slab_trim(a);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

/* A child ends and begins phases in pages that it shares with none of its parent's any more. */
static void in_child(SlabAllocator* a) {
    for (size_t i = 0; i < PHASES; i += 3) {
        epoch_domain_destroy(domains[i]);
        fill(a, i);
    }
    all_whole(0, 1);
    for (size_t i = 0; i < PHASES; i++) {
        epoch_domain_destroy(domains[i]);
    }
    slab_trim(a);
    CHECK_EQ(kit_committed(a), 0);
    _exit(check_failures() != 0);
}
static void children(void) {
    SlabAllocator* a = kit_create();
    for (size_t i = 0; i < PHASES; i++) {
        fill(a, i);
    }
    pid_t pid = fork();
    int status = 1;
    if (pid == 0) {
        in_child(a);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    all_whole(0, 1);
    for (size_t i = 0; i < PHASES; i++) {
        epoch_domain_destroy(domains[i]);
    }
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(small_phases_cost_little),
    CHECK_CASE(survivors),
    CHECK_CASE(children),
};
CHECK_MAIN(cases)
