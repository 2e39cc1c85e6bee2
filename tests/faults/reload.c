/*
 * reload.c - the shared library is opened and closed again and again, by dlopen and dlclose, while threads that have used
 * it live on.
 *
 * What dlclose means here: it never unloads the library (slab_alloc.h, "unloading"; decision 0036), because threads that
 * have used it run its code as they exit. The library stays where it is, an open after that finds it there, with its
 * allocators, and nothing of the process grows. A library that is opened and closed without a call stays, too.
 */
#include "kit/check.h"

#include "epoch_domain.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#ifndef TSLAB_LIBRARY
#define TSLAB_LIBRARY "libtemporal_slab.so"
#endif

enum { TIMES = 1000, SHOWN = 8 };

typedef struct Library {
    void* handle;
    SlabAllocator* (*create)(void);
    void (*destroy)(SlabAllocator* a);
    void* (*take)(SlabAllocator* a, size_t size);
    void (*give)(SlabAllocator* a, void* p);
    epoch_domain_t* (*begin)(SlabAllocator* a, const char* label);
    bool (*end)(epoch_domain_t* d);
    EpochId (*current)(SlabAllocator* a);
    bool (*close_ex)(SlabAllocator* a, EpochId id, EpochCloseMode mode, EpochReceipt* out);
} Library;

static void* symbol(void* handle, const char* name) {
    void* p = dlsym(handle, name);
    REQUIRE_OR(p != NULL, "%s", dlerror());
    return p;
}
static Library open_library(void) {
    Library l = {.handle = dlopen(TSLAB_LIBRARY, RTLD_NOW | RTLD_LOCAL)};
    REQUIRE_OR(l.handle != NULL, "%s", dlerror());
    *(void**)&l.create = symbol(l.handle, "slab_allocator_create");
    *(void**)&l.destroy = symbol(l.handle, "slab_allocator_free");
    *(void**)&l.take = symbol(l.handle, "slab_malloc");
    *(void**)&l.give = symbol(l.handle, "slab_free");
    *(void**)&l.begin = symbol(l.handle, "epoch_domain_begin");
    *(void**)&l.end = symbol(l.handle, "epoch_domain_end");
    *(void**)&l.current = symbol(l.handle, "epoch_current");
    *(void**)&l.close_ex = symbol(l.handle, "epoch_close_ex");
    return l;
}

static unsigned count_lines(const char* path, const char* with) {
    char line[1024];
    unsigned n = 0;
    FILE* f = fopen(path, "r");
    REQUIRE(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) n += strstr(line, with) != NULL;
    fclose(f);
    return n;
}

/* Opened and closed, and never called. */
static void opened_for_nothing(void) {
    void* handle = dlopen(TSLAB_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_OR(handle != NULL, "%s", dlerror());
    void* create = symbol(handle, "slab_allocator_create");
    REQUIRE_EQ(dlclose(handle), 0);
    REQUIRE_GT(count_lines("/proc/self/maps", "libtemporal_slab.so"), 0);
    Library l = open_library();
    REQUIRE((void*)(uintptr_t)l.create == create);
    REQUIRE_EQ(dlclose(l.handle), 0);
}

/* A thread that has allocated, and exits when its library was closed for some time. */
typedef struct Guest {
    Library l;
    SlabAllocator* a;
    pthread_t thread;
    pthread_barrier_t worked, leaves;
    void* kept;
} Guest;

static void* guest_main(void* arg) {
    Guest* g = arg;
    g->kept = g->l.take(g->a, 100);
    REQUIRE(g->kept != NULL);
    memset(g->kept, 7, 100);
    REQUIRE(g->l.begin(g->a, "left open") != NULL && g->l.take(g->a, 1000) != NULL); /* its exit ends that */
    pthread_barrier_wait(&g->worked);
    pthread_barrier_wait(&g->leaves);
    return NULL;
}

static void one_time(const Library* l, SlabAllocator* a, EpochCloseMode mode) {
    EpochReceipt r;
    epoch_domain_t* d = l->begin(a, "plugin");
    REQUIRE(d != NULL);
    for (unsigned n = 0; n < 20; n++) REQUIRE(l->take(a, 50 + 100 * n) != NULL);
    REQUIRE(l->end(d));
    void* p = l->take(a, 300);
    REQUIRE(p != NULL);
    l->give(a, p);
    REQUIRE(l->close_ex(a, l->current(a), mode, &r));
    REQUIRE_EQ(r.objects_allocated, r.objects_freed + r.objects_released + r.objects_escaped);
}

static void opened_and_closed(void) {
    size_t times = check_count_whole(TIMES);
    Library first = open_library();
    SlabAllocator* lasting = first.create();
    REQUIRE(lasting != NULL);
    char* kept = first.take(lasting, 200);
    REQUIRE(kept != NULL);
    memset(kept, 5, 200);
    REQUIRE_EQ(dlclose(first.handle), 0);
    unsigned mapped = 0;
    for (size_t n = 0; n < times; n++) {
        Guest g;
        g.l = open_library();
        REQUIRE(g.l.take == first.take); /* it has not moved */
        g.a = g.l.create();
        REQUIRE(g.a != NULL);
        one_time(&g.l, g.a, EPOCH_RELEASE);
        one_time(&g.l, lasting, EPOCH_DRAIN);
        bool guest = n % 10 == 0;
        if (guest) {
            REQUIRE_EQ(pthread_barrier_init(&g.worked, NULL, 2), 0);
            REQUIRE_EQ(pthread_barrier_init(&g.leaves, NULL, 2), 0);
            REQUIRE_EQ(pthread_create(&g.thread, NULL, guest_main, &g), 0);
            pthread_barrier_wait(&g.worked);
        }
        if (n % 3 == 0) g.l.destroy(g.a);
        REQUIRE_EQ(dlclose(g.l.handle), 0);
        if (guest) {
            pthread_barrier_wait(&g.leaves);
            REQUIRE_EQ(pthread_join(g.thread, NULL), 0);
            pthread_barrier_destroy(&g.worked);
            pthread_barrier_destroy(&g.leaves);
        }
        if (n % 3 != 0) g.l.destroy(g.a); /* closed, and still there */
        if (n == times / 2) mapped = count_lines("/proc/self/maps", "-");
    }
    unsigned late = count_lines("/proc/self/maps", "-");
    printf("  %zu times; %u mappings half-way, %u at the end\n", times, mapped, late);
    REQUIRE_LE(late, mapped + 16);
    for (unsigned n = 0; n < 200; n++) REQUIRE_EQ(kept[n], 5);
    first.give(lasting, kept);
    first.destroy(lasting);
}

static const CheckCase cases[] = {CHECK_CASE(opened_for_nothing), CHECK_CASE(opened_and_closed)};
CHECK_MAIN(cases)
