/*
 * macros.c - the macros of the public headers, and what compilers are told of allocation functions. Compiled as C and as C++ by
 * macros.sh, with optimisation: attributes show in what folds to a constant.
 */
#include <epoch_domain.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
#define WIDE alignas(64)
#else
#define WIDE _Alignas(64)
#endif

struct point {
    WIDE double x;
    double y;
};

static int failures;
static void check(bool ok, const char* what) {
    if (!ok) failures += printf("failed: %s\n", what) > 0;
}

static size_t size_of(const void* p) { return p != NULL ? 1 : 0; }
/* Compilers forget the size of what has side effects: not of a variable. */
#define KNOWN(call, n)                                      \
    do {                                                    \
        void* of_it = (call);                               \
        check(__builtin_object_size(of_it, 0) == (n), #call); \
    } while (0)
#define ALIGNED(call, n)                                                       \
    do {                                                                       \
        void* at = (call);                                                     \
        check(__builtin_constant_p((uintptr_t)at & ((n) - 1)) != 0, #call); \
    } while (0)

static uint64_t inner(SlabAllocator* a) {
    SLAB_SCOPE(a, "inner");
    struct point* p = SLAB_NEW(a, struct point);
    check(p != NULL && ((uintptr_t)p & 63) == 0, "SLAB_NEW");
    return epoch_domain_current()->epoch_era;
}

int main(void) {
    SlabAllocator* a = slab_allocator_create();
    if (a == NULL) return puts(slab_last_error()), 1;
    {
        SLAB_SCOPE(a, "outer");
        epoch_domain_t* d = epoch_domain_current();
        check(inner(a) != d->epoch_era, "SLAB_SCOPE");
        check(epoch_domain_current() == d, "the end of SLAB_SCOPE");
        int* many = SLAB_NEW_ARRAY(a, int, 100);
        check(many != NULL, "SLAB_NEW_ARRAY");
        KNOWN(slab_malloc(a, 10), 10);
        KNOWN(slab_malloc_epoch(a, 10, 0), 10);
        KNOWN(slab_malloc_outside(a, 10), 10);
        KNOWN(alloc_obj(a, 10, NULL), 10);
        KNOWN(slab_calloc(a, 3, 4), 12);
        KNOWN(slab_aligned_alloc(a, 64, 100), 100);
        KNOWN(slab_realloc(a, NULL, 20), 20);
        KNOWN(slab_memdup(a, "abc", 4), 4);
        KNOWN(epoch_domain_malloc(d, 10), 10);
        KNOWN(epoch_domain_calloc(d, 3, 4), 12);
        KNOWN(epoch_domain_realloc(d, NULL, 20), 20);
        KNOWN(epoch_domain_memdup(d, "abc", 4), 4);
        ALIGNED(slab_malloc(a, 10), 16);
        ALIGNED(epoch_domain_realloc(d, NULL, 10), 16);
        ALIGNED(slab_strdup(a, "x"), 16);
        ALIGNED(slab_aligned_alloc(a, 256, 10), 256);
        char* text = epoch_domain_asprintf(d, "%d", 5);
        check(size_of(text) == 1 && strcmp(text, "5") == 0, "epoch_domain_asprintf");
#ifdef IGNORES
        slab_realloc(a, text, 100);
#endif
#ifdef BAD_FORMAT
        (void)slab_asprintf(a, "%s", 5);
#endif
    }
    check(epoch_domain_current() == NULL, "the end of the outer SLAB_SCOPE");
    slab_allocator_free(a);
    return failures != 0;
}
