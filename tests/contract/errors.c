/*
 * errors.c - slab_error: why the last NULL or false was, whatever has become of errno since; and allocators with several
 * holders.
 */
#include "kit/fixture.h"

#include <stdatomic.h>
#include <sys/mman.h>

#define REFUSED(call, error, number)               \
    do {                                           \
        CHECK(slab_malloc(a, 1) != NULL);          \
        errno = 0;                                 \
        CHECK(!(call));                            \
        CHECK_EQ(slab_error(), error);             \
        CHECK(errno == (number) || (number) == 0); \
    } while (0)

static void of_objects(void) {
    SlabOptions o = kit_options();
    o.max_bytes = 1 << 20;
    SlabAllocator* a = kit_create_with(&o);
    char local[64];
    REFUSED(slab_malloc(a, kit_size(0)), SLAB_ERROR_SIZE, EINVAL);
    REFUSED(slab_malloc(a, kit_size(SIZE_MAX)), SLAB_ERROR_SIZE, ENOMEM);
    REFUSED(slab_calloc(a, kit_size(SIZE_MAX), 2), SLAB_ERROR_SIZE, ENOMEM);
    REFUSED(slab_aligned_alloc(a, kit_size(48), 10), SLAB_ERROR_SIZE, EINVAL);
    REFUSED(slab_malloc(NULL, 10), SLAB_ERROR_ARGUMENT, EINVAL);
    REFUSED(slab_malloc_epoch(NULL, 10, 0), SLAB_ERROR_ARGUMENT, EINVAL);
    REFUSED(slab_malloc_epoch(a, 10, 5000), SLAB_ERROR_EPOCH, EINVAL);
    REFUSED(slab_malloc(a, 2 << 20), SLAB_ERROR_BUDGET, EDQUOT);
    REFUSED(slab_realloc(a, local, 10), SLAB_ERROR_OBJECT, EINVAL);
    REFUSED(slab_free_checked(a, local), SLAB_ERROR_OBJECT, 0);
    REFUSED(slab_free_sized_checked(a, local, 8), SLAB_ERROR_OBJECT, 0);
    REFUSED(free_obj(a, 12345678), SLAB_ERROR_OBJECT, 0);
    REFUSED(epoch_close_ex(a, 5000, EPOCH_DRAIN, NULL), SLAB_ERROR_EPOCH, 0);
    REFUSED(epoch_close_era(a, 1ull << 40, EPOCH_DRAIN, NULL), SLAB_ERROR_EPOCH, 0);
    EpochId id = epoch_current(a);
    epoch_advance(a);
    REFUSED(slab_malloc_epoch(a, 10, id), SLAB_ERROR_ENDED, ESTALE);
    REFUSED(slab_epoch_set_budget(a, epoch_current(a), 2, 1, NULL, NULL), SLAB_ERROR_ARGUMENT, EINVAL);
    REFUSED(slab_stats_json(a, NULL, NULL), SLAB_ERROR_ARGUMENT, EINVAL);
    SlabOptions bad = kit_options();
    bad.ring_size = 1;
    REFUSED(slab_malloc(a, 2 << 20), SLAB_ERROR_BUDGET, EDQUOT);
    REFUSED(slab_allocator_create_with(&bad), SLAB_ERROR_ARGUMENT, EINVAL);
    /* What succeeds leaves it, as what only asks does. */
    REFUSED(slab_malloc(a, kit_size(0)), SLAB_ERROR_SIZE, EINVAL);
    CHECK(slab_malloc(a, 10) != NULL);
    CHECK(!slab_owns(a, local));
    CHECK_EQ(slab_usable_size(a, local), 0);
    errno = EPIPE;
    CHECK_EQ(slab_error(), SLAB_ERROR_SIZE);
    slab_allocator_free(a);
    CHECK_EQ(slab_error(), SLAB_ERROR_SIZE);
}

static void* nothing_yet(void* arg) {
    (void)arg;
    return (void*)(uintptr_t)(unsigned)slab_error();
}

static void of_domains(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create(a);
    REFUSED(epoch_domain_create(NULL), SLAB_ERROR_ARGUMENT, EINVAL);
    REFUSED(epoch_domain_enter(NULL), SLAB_ERROR_ARGUMENT, EINVAL);
    REFUSED(epoch_domain_malloc(NULL, 10), SLAB_ERROR_ARGUMENT, EINVAL);
    REFUSED(epoch_domain_exit(d), SLAB_ERROR_ORDER, EINVAL);
    REFUSED(epoch_domain_attach(d), SLAB_ERROR_ORDER, EINVAL);
    CHECK(epoch_domain_enter(d));
    REFUSED(epoch_domain_destroy(d), SLAB_ERROR_BUSY, EBUSY);
    REFUSED(epoch_domain_force_close(d), SLAB_ERROR_BUSY, EBUSY);
    CHECK(epoch_domain_exit(d));
    REFUSED(epoch_domain_malloc(d, 10), SLAB_ERROR_ENDED, ESTALE);
    epoch_domain_t* borrowed = epoch_domain_wrap(a, epoch_current(a), false);
    REFUSED(epoch_domain_reset(borrowed), SLAB_ERROR_ARGUMENT, EINVAL);
    CHECK(epoch_domain_destroy(borrowed));
    CHECK(epoch_domain_destroy(d));
    REFUSED(epoch_domain_enter(d), SLAB_ERROR_ENDED, ESTALE);
    pthread_t thread;
    void* there;
    REQUIRE(pthread_create(&thread, NULL, nothing_yet, NULL) == 0);
    CHECK(pthread_join(thread, &there) == 0);
    CHECK_EQ((uintptr_t)there, SLAB_ERROR_NONE); /* each thread has its own */
    slab_allocator_free(a);
}

static void sized(void) {
    static const size_t sizes[] = {1, 16, 17, 100, 300, 700, 4096, 5000, 100000, 300000};
    for (int in_domain = 0; in_domain < 2; in_domain++) {
        SlabAllocator* a = kit_create();
        epoch_domain_t* d = in_domain ? epoch_domain_begin(a, NULL) : NULL;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            void* before = slab_malloc(a, sizes[i]);
            void* p = slab_malloc(a, sizes[i]);
            CHECK(slab_malloc(a, sizes[i]) != NULL);
            size_t usable = slab_usable_size(a, p);
            CHECK(!slab_free_sized_checked(a, p, usable + 1));
            CHECK_EQ(slab_error(), SLAB_ERROR_OBJECT);
            CHECK_EQ(slab_usable_size(a, p), usable);
            CHECK(slab_free_sized_checked(a, p, i % 2 ? usable : sizes[i]));
            CHECK(!slab_free_sized_checked(a, kit_hide(p), sizes[i]));
            CHECK(slab_free_sized_checked(a, before, 0));
        }
        SlabRefusals r = kit_refusals(a);
        CHECK_EQ(r.size_mismatch, sizeof sizes / sizeof *sizes);
        CHECK_EQ(kit_live(a), sizeof sizes / sizeof *sizes);
        CHECK(slab_free_sized_checked(a, NULL, 10));
        CHECK(d == NULL || epoch_domain_end(d));
        slab_allocator_free(a);
    }
}

static void of_no_bytes(void) {
    SlabAllocator* a = kit_create();
    void *p = slab_malloc0(a, kit_size(0)), *q = slab_malloc0(a, 100);
    CHECK(p != NULL && q != NULL && p != q);
    CHECK_GE(slab_usable_size(a, p), 1);
    CHECK(slab_free_checked(a, p) && slab_free_checked(a, q));
    CHECK_NULL(slab_malloc0(NULL, 0));
    CHECK_NULL(slab_malloc0(a, kit_size(SIZE_MAX)));
    CHECK_EQ(slab_error(), SLAB_ERROR_SIZE);
    slab_allocator_free(a);
}

static void named_domain(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create(a);
    for (size_t alignment = 1; alignment <= (size_t)1 << 20; alignment *= 2) {
        SlabHandle h;
        char* p = epoch_domain_alloc_obj(d, 100, alignment, &h);
        CHECK(p != NULL && (uintptr_t)p % alignment == 0);
        CHECK_EQ(kit_era_of(a, p), d->epoch_era);
        CHECK(slab_handle_ptr(a, h) == kit_hide(p));
        char* q = epoch_domain_aligned_alloc(d, alignment, 100);
        CHECK(q != NULL && (uintptr_t)q % alignment == 0);
        CHECK_EQ(kit_era_of(a, q), d->epoch_era);
        CHECK(free_obj(a, h) && !free_obj(a, h));
    }
    SlabHandle large;
    char* p = epoch_domain_alloc_obj(d, 3 << 20, 16, &large);
    CHECK(p != NULL && slab_handle_ptr(a, large) == kit_hide(p));
    CHECK(epoch_domain_alloc_obj(d, 10, 8, NULL) != NULL);
    static const size_t bad[] = {0, 3, 24, (size_t)1 << 31};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        SlabHandle h = 5;
        errno = 0;
        CHECK_NULL(epoch_domain_alloc_obj(d, 10, bad[i], &h));
        CHECK_EQ(errno, EINVAL);
        CHECK_EQ(h, 0);
        errno = 0;
        CHECK_NULL(epoch_domain_aligned_alloc(d, kit_size(bad[i]), 10));
        CHECK_EQ(errno, EINVAL);
    }
    CHECK(epoch_domain_force_close(d));
    SlabHandle h = 5;
    CHECK_NULL(epoch_domain_alloc_obj(d, 10, 16, &h));
    CHECK_EQ(errno, ESTALE);
    CHECK_EQ(h, 0);
    CHECK_NULL(epoch_domain_aligned_alloc(d, 64, 10));
    CHECK_NULL(slab_handle_ptr(a, large));
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

enum { HOLDERS = 4, TURNS = 2000 };

static void* hold(void* arg) {
    SlabAllocator* a = arg;
    for (int i = 0; i < TURNS; i++) {
        CHECK(slab_allocator_retain(a) == a);
        slab_free(a, slab_malloc(a, 100));
        slab_allocator_free(a);
    }
    slab_free(a, slab_malloc(a, 100));
    slab_allocator_free(a);
    return NULL;
}

static int ended;
static void count_end(void* arg) { ended += arg != NULL; }

static void several_holders(void) {
    SlabAllocator* a = kit_create();
    pthread_t threads[HOLDERS];
    CHECK(slab_epoch_on_end(a, epoch_current(a), count_end, a));
    for (int i = 0; i < HOLDERS; i++) {
        CHECK(slab_allocator_retain(a) == a);
        REQUIRE(pthread_create(&threads[i], NULL, hold, a) == 0);
    }
    for (int i = 0; i < HOLDERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQ(ended, 0);
    CHECK(slab_malloc(a, 100) != NULL);
    slab_allocator_free(a);
    CHECK_EQ(ended, 1);

    SlabAllocator own;
    allocator_init(&own);
    errno = 0;
    CHECK_NULL(slab_allocator_retain(&own));
    CHECK_EQ(errno, EINVAL);
    CHECK_NULL(slab_allocator_retain(NULL));
    CHECK_EQ(slab_error(), SLAB_ERROR_ARGUMENT);
    CHECK(slab_malloc(&own, 10) != NULL);
    allocator_destroy(&own);
}

/* Sentences with numbers are texts of their thread. */
static void say(uint32_t size) {
    SlabOptions o = {.struct_size = sizeof o, .ring_size = size};
    char number[16];
    snprintf(number, sizeof number, " %u ", size);
    CHECK_NULL(slab_allocator_create_with(&o));
    CHECK_HAS(slab_last_error(), number);
}

static pthread_key_t late_key;
static const char* late_text;
static void late(void* text) {
    CHECK(slab_last_error()[0] == 0 || slab_last_error() == text); /* whichever destructor runs first */
    say(60001);
    late_text = slab_last_error();
}

static void* speak(void* main_text) {
    CHECK_STR(slab_last_error(), "");
    CHECK_NULL(epoch_domain_create(NULL));
    CHECK_HAS(slab_last_error(), "NULL");
    say(60002);
    const char* text = slab_last_error();
    CHECK(text != main_text);
    say(60003);
    CHECK(slab_last_error() == text);
    REQUIRE(pthread_setspecific(late_key, text) == 0);
    return (void*)(uintptr_t)text;
}

static void sentences(void) {
    SlabAllocator* a = kit_create();
    CHECK_STR(slab_last_error(), "");
    say(60004);
    char* main_text = (char*)(uintptr_t)slab_last_error();
    REQUIRE(pthread_key_create(&late_key, late) == 0);
    pthread_t thread;
    void* text = NULL;
    REQUIRE(pthread_create(&thread, NULL, speak, main_text) == 0);
    REQUIRE(pthread_join(thread, &text) == 0);
    CHECK_HAS(main_text, " 60004 ");
    CHECK(late_text != NULL);
    /* Both texts of the thread went with it. */
    unsigned char in_core;
    for (int n = 0; n < 2; n++) {
        uintptr_t page = (uintptr_t)(n == 0 ? text : (void*)(uintptr_t)late_text) & ~(uintptr_t)(slab_page_size() - 1);
        errno = 0;
        CHECK(mincore((void*)page, 1, &in_core) == -1 && errno == ENOMEM);
    }
    SlabAllocator* b = kit_create();
    CHECK_STR(slab_last_error(), "");
    slab_allocator_free(b);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(of_objects),   CHECK_CASE(of_domains),      CHECK_CASE(sized),     CHECK_CASE(of_no_bytes),
    CHECK_CASE(named_domain), CHECK_CASE(several_holders), CHECK_CASE(sentences),
};
CHECK_MAIN(cases)
