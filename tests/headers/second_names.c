/*
 * second_names.c - what is stored through the pointer that an allocation returned is there when the object is reached
 * by another way: by its handle, or by a walk over its epoch. Compiled at several levels by second_names.sh: a compiler
 * that is told that no other way leads to the object drops the store.
 */
#include <epoch_domain.h>
#include <slab_diagnostics.h>
#include <stdio.h>

typedef struct Pair {
    int first, second;
} Pair;

static int failures;
static void check(bool ok, const char* what) {
    if (!ok) failures += printf("failed: %s\n", what) > 0;
}

/* Each stores in a function of its own, where nothing else is done with the pointer. */
#define STORES(p)               \
    do {                        \
        Pair* to = (p);         \
        if (to == NULL) return; \
        to->first = 3;          \
        to->second = 4;         \
    } while (0)
#define BY_HANDLE(call)                                             \
    do {                                                            \
        SlabHandle h;                                               \
        STORES(call);                                               \
        const Pair* q = slab_handle_ptr(a, h);                      \
        check(q != NULL && q->first == 3 && q->second == 4, #call); \
    } while (0)

static void by_handle(SlabAllocator* a) { BY_HANDLE(alloc_obj(a, sizeof(Pair), &h)); }
static void by_handle_of_epoch(SlabAllocator* a) { BY_HANDLE(alloc_obj_epoch(a, sizeof(Pair), epoch_current(a), &h)); }
static void by_handle_of_domain(SlabAllocator* a) {
    SLAB_SCOPE(a, "handles");
    BY_HANDLE(alloc_obj(a, sizeof(Pair), &h));
}

static bool add(const SlabLiveObject* object, void* sum) {
    const Pair* q = object->address;
    *(int*)sum += q->first * 10 + q->second;
    return true;
}
#define BY_WALK(call)                                                               \
    do {                                                                            \
        epoch_domain_t* d = epoch_domain_begin(a, "walked");                        \
        int sum = 0;                                                                \
        if (d == NULL) return;                                                      \
        STORES(call);                                                               \
        check(slab_epoch_walk(a, d->epoch_id, add, &sum) == 1 && sum == 34, #call); \
        epoch_domain_end(d);                                                        \
    } while (0)

static void walk_malloc(SlabAllocator* a) { BY_WALK(slab_malloc(a, sizeof(Pair))); }
static void walk_calloc(SlabAllocator* a) { BY_WALK(slab_calloc(a, 1, sizeof(Pair))); }
static void walk_epoch(SlabAllocator* a) { BY_WALK(slab_malloc_epoch(a, sizeof(Pair), d->epoch_id)); }
static void walk_aligned(SlabAllocator* a) { BY_WALK(slab_aligned_alloc(a, 64, sizeof(Pair))); }
static void walk_domain(SlabAllocator* a) { BY_WALK(epoch_domain_malloc(d, sizeof(Pair))); }
static void walk_new(SlabAllocator* a) { BY_WALK(SLAB_NEW(a, Pair)); }

int main(void) {
    SlabAllocator* a = slab_allocator_create();
    if (a == NULL) return puts(slab_last_error()), 1;
    by_handle(a);
    by_handle_of_epoch(a);
    by_handle_of_domain(a);
    walk_malloc(a);
    walk_calloc(a);
    walk_epoch(a);
    walk_aligned(a);
    walk_domain(a);
    walk_new(a);
    slab_allocator_free(a);
    return failures != 0;
}
