/*
 * many.c - many allocators in one process, made and destroyed while threads come and go. A thread
 * that used an allocator which is gone must not find its caches again in a new allocator at the
 * same address.
 */
#include "kit/fixture.h"

#include <sys/mman.h>

static SlabAllocator* small_reservation(void) {
    SlabOptions o = kit_options();
    o.reserve_bytes = 16 * KIT_MIB;
    return slab_allocator_create_with(&o);
}

static void hold_many(SlabAllocator* (*make)(void), size_t count) {
    static SlabAllocator* set[1000];
    static void* kept[1000];
    static SlabHandle handle[1000];
    for (size_t i = 0; i < count; i++) {
        set[i] = make();
        if (!CHECK(set[i] != NULL)) {
            fprintf(stderr, "  allocator %zu: %s\n", i, slab_last_error());
            count = i;
            break;
        }
        kept[i] = slab_malloc(set[i], 100);
        CHECK(kept[i] != NULL);
        CHECK(alloc_obj(set[i], 700, &handle[i]) != NULL);
        kit_fill(kept[i], 100, i);
    }
    for (size_t i = 0; i < count; i++) {
        CHECK(kit_intact(kept[i], 100, i));
        CHECK(slab_owns(set[i], kept[i]));
        CHECK(!slab_owns(set[(i + 1) % count], kept[i]) || count == 1);
        CHECK(!slab_free_checked(set[(i + 17) % count], kept[i]) || count <= 17);
        CHECK(!free_obj(set[(i + 17) % count], handle[i]) || count <= 17);
    }
    for (size_t i = 0; i < count; i++) { /* not in the order of creation */
        size_t k = (i * 389) % count;
        CHECK(slab_free_checked(set[k], kept[k]));
        CHECK(free_obj(set[k], handle[k]));
        CHECK_EQ(kit_live(set[k]), 0);
    }
    for (size_t i = 0; i < count; i++) {
        slab_allocator_free(set[(i * 389) % count]);
    }
}

static void a_thousand_at_once(void) {
    if (CHECK_TSAN || CHECK_ASAN) {
        NOTE("a sanitizer leaves little address space: the allocators reserve 16 MiB each");
        hold_many(small_reservation, 1000);
        return;
    }
    hold_many(slab_allocator_create, 1000);
    hold_many(slab_allocator_create, 1000); /* nothing of the first thousand is missing */
}

static void* thread_of_many(void* arg) {
    SlabAllocator** set = arg;
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 100; i++) {
            void* p = slab_malloc(set[i], 64 + i);
            CHECK(p != NULL);
            CHECK(slab_free_checked(set[i], p));
        }
    }
    return NULL;
}

static void many_allocators_many_threads(void) {
    static SlabAllocator* set[100];
    pthread_t threads[4];
    for (size_t i = 0; i < 100; i++) {
        set[i] = small_reservation();
        REQUIRE(set[i] != NULL);
    }
    for (int wave = 0; wave < 5; wave++) {
        for (int t = 0; t < 4; t++) {
            threads[t] = kit_thread(thread_of_many, set);
        }
        for (int t = 0; t < 4; t++) {
            pthread_join(threads[t], NULL);
        }
    }
    for (size_t i = 0; i < 100; i++) {
        CHECK_EQ(kit_live(set[i]), 0);
        CHECK_EQ(kit_refused_frees(set[i]), 0);
        slab_allocator_free(set[i]);
    }
}

/* Every thread has allocators of its own, made and destroyed in a loop, and short-lived helper
 * threads which use them. */
static void* helper(void* arg) {
    SlabAllocator* a = arg;
    epoch_domain_t* d = epoch_domain_begin(a, "helper");
    CHECK(slab_malloc(a, 300) != NULL);
    epoch_domain_end(d);
    void* p = slab_malloc(a, 300);
    CHECK(p != NULL);
    return p;
}

static void* make_and_destroy(void* arg) {
    size_t rounds = *(size_t*)arg;
    for (size_t i = 0; i < rounds; i++) {
        SlabAllocator* a = small_reservation();
        if (!CHECK(a != NULL)) {
            return NULL;
        }
        void* mine = slab_malloc(a, 100);
        void* theirs = NULL;
        pthread_join(kit_thread(helper, a), &theirs);
        CHECK_EQ(kit_live(a), 2);
        CHECK(slab_free_checked(a, theirs));
        if (i % 2 == 0) {
            CHECK(slab_free_checked(a, mine));
        }
        slab_allocator_free(a);
    }
    return NULL;
}

static void created_and_destroyed_by_several_threads(void) {
    pthread_t threads[4];
    size_t rounds = check_count(400);
    for (int t = 0; t < 4; t++) {
        threads[t] = kit_thread(make_and_destroy, &rounds);
    }
    for (int t = 0; t < 4; t++) {
        pthread_join(threads[t], NULL);
    }
}

/* ---- the same storage, one allocator after the other ---- */

static SlabAllocator storage;

typedef struct Regular {
    pthread_barrier_t meet;
    _Atomic int over;
    void* p[4];
    SlabHandle h[4];
} Regular;

typedef struct Member {
    Regular* r;
    size_t index;
} Member;

/* A thread that outlives the allocators and uses each. */
static void* regular_main(void* arg) {
    Member* m = arg;
    Regular* r = m->r;
    SlabHandle old_handle = 0;
    for (;;) {
        pthread_barrier_wait(&r->meet);
        if (atomic_load(&r->over)) {
            return NULL;
        }
        for (size_t i = 0; i < 100; i++) {
            void* p = slab_malloc(&storage, 128);
            CHECK(p != NULL);
            kit_fill(p, 128, i);
            CHECK(slab_free_checked(&storage, p));
        }
        CHECK(old_handle == 0 || !free_obj(&storage, old_handle));
        r->p[m->index] = slab_malloc(&storage, 128);
        CHECK(alloc_obj(&storage, 500, &r->h[m->index]) != NULL);
        CHECK_EQ(slab_usable_size(&storage, r->p[m->index]), 128);
        old_handle = r->h[m->index];
        pthread_barrier_wait(&r->meet);
    }
}

static void a_successor_in_the_same_storage(void) {
    static Regular r;
    pthread_t threads[4];
    Member members[4];
    size_t rounds = check_count(300);
    pthread_barrier_init(&r.meet, NULL, 5);
    atomic_store(&r.over, 0);
    for (size_t t = 0; t < 4; t++) {
        members[t] = (Member){&r, t};
        threads[t] = kit_thread(regular_main, &members[t]);
    }
    SlabOptions o = kit_options();
    o.reserve_bytes = 64 * KIT_MIB;
    for (size_t i = 0; i < rounds; i++) {
        REQUIRE(allocator_init_with(&storage, i % 2 == 0 ? &o : NULL));
        CHECK_EQ(kit_live(&storage), 0);
        CHECK_EQ(kit_committed(&storage), 0);
        CHECK_EQ(epoch_current(&storage), 0);
        CHECK_EQ(epoch_era(&storage, 0), 1);
        pthread_barrier_wait(&r.meet);
        pthread_barrier_wait(&r.meet);
        CHECK_EQ(kit_live(&storage), 8);
        for (size_t t = 0; t < 4; t++) {
            CHECK(slab_free_checked(&storage, r.p[t]));
            CHECK(i % 2 == 0 || free_obj(&storage, r.h[t]));
        }
        CHECK_EQ(kit_live(&storage), i % 2 == 0 ? 4 : 0);
        allocator_destroy(&storage);
    }
    atomic_store(&r.over, 1);
    pthread_barrier_wait(&r.meet);
    for (size_t t = 0; t < 4; t++) {
        pthread_join(threads[t], NULL);
    }
    pthread_barrier_destroy(&r.meet);
}

/* ---- destroy unmaps everything ---- */

static uint64_t mapped_bytes(void) {
    FILE* f = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (f == NULL || fscanf(f, "%lu", &pages) != 1) {
        pages = 0;
    }
    if (f != NULL) {
        fclose(f);
    }
    return (uint64_t)pages * slab_page_size();
}

static void destroy_unmaps_everything(void) {
    if (CHECK_TSAN || CHECK_ASAN) {
        SKIP("a sanitizer maps memory of its own");
    }
    uint64_t before = 0, after = 0;
    for (int i = 0; i < 60; i++) {
        SlabAllocator* a = kit_create();
        for (size_t size = 16; size < 4 * KIT_MIB; size *= 3) {
            CHECK(slab_malloc(a, size) != NULL);
        }
        epoch_domain_t* d = epoch_domain_begin(a, "left open");
        CHECK(d != NULL && alloc_obj(a, 100, NULL) != NULL);
        unsigned char* p = slab_malloc(a, 100);
        unsigned char* page = (unsigned char*)((uintptr_t)p & ~(uintptr_t)(slab_page_size() - 1));
        slab_allocator_free(a);
        CHECK_EQ(msync(page, slab_page_size(), MS_ASYNC), -1); /* not mapped any more */
        CHECK_EQ(errno, ENOMEM);
        CHECK_NULL(epoch_domain_current());
        if (i == 9) {
            before = mapped_bytes();
        }
    }
    after = mapped_bytes();
    CHECK_LE(after, before + KIT_MIB);
}

static const CheckCase cases[] = {
    CHECK_CASE(a_thousand_at_once),
    CHECK_CASE(many_allocators_many_threads),
    CHECK_CASE(created_and_destroyed_by_several_threads),
    CHECK_CASE(a_successor_in_the_same_storage),
    CHECK_CASE(destroy_unmaps_everything),
};
CHECK_MAIN(cases)
