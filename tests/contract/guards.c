/*
 * guards.c - option guard_period: one object in a period ends at a page that faults, and faults itself after its end;
 * an access is reported with object and phase; all other objects are as ever.
 */
#include "kit/said.h"
#include "kit/fixture.h"

enum { SHEET = 65536 }; /* bytes whose last page is the guard, if a page is smaller */

static SlabAllocator* a;

static SlabAllocator* with_period(uint32_t period) {
    SlabOptions o = kit_options();
    o.guard_period = period;
    return kit_create_with(&o);
}
static void open_it(void) { a = with_period(1); }
static void close_it(void) { slab_allocator_free(a); }

static char* made(size_t size) {
    char* p = slab_malloc(a, size);
    REQUIRE(p != NULL);
    memset(p, 7, size);
    return p;
}

static void reads(volatile char* p) { _exit(*p == 7 ? 7 : 8); }
static void writes(volatile char* p) { *p = 1; }
typedef struct Deed {
    void (*what)(volatile char*);
    char* p;
    void* then_frees;
} Deed;
static void do_it(void* arg) {
    Deed* deed = arg;
    deed->what(deed->p);
    slab_free(a, deed->then_frees);
    _exit(9);
}
static Said child(void (*what)(volatile char*), char* p, void* then_frees) {
    return kit_said(do_it, &(Deed){what, p, then_frees});
}
static bool faults(Said s, const char* text) {
    bool died = CHECK_TSAN ? s.status != 0 : WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGSEGV;
    return died && strstr(s.text, text) != NULL;
}

/* The byte behind the end faults, where the size leaves none to alignment; behind others a write is found at the end. */
static void beyond_the_end(void) {
    char* p = made(48);
    CHECK(kit_was_quiet(child(reads, p + 47, p), 7));
    CHECK(faults(child(reads, p + 48, p), "is 0 bytes behind an object of 48 bytes\n"));
    CHECK(faults(child(writes, p + 48, p), "temporal-slab: access beside an object of phase \"(unlabeled)\" (era "));
    CHECK_HAS(child(writes, p + 50, p).text, "is 2 bytes behind an object of 48 bytes\n");
    CHECK_HAS(child(writes, p + 48, p).text, "  allocated at  ");
    if (slab_page_size() < SHEET) /* else that is another sheet */
        CHECK(faults(child(reads, p - slab_page_size(), p), " bytes before an object of 48 bytes\n"));

    char* odd = made(41);
    CHECK_EQ((uintptr_t)odd % 16, 0);
    CHECK(kit_was_quiet(child(writes, odd + 40, odd), 9));
    Said s = child(writes, odd + 41, odd);
    CHECK(WIFEXITED(s.status) && WEXITSTATUS(s.status) == 9);
    CHECK_HAS(s.text, "temporal-slab: written beside an object of phase \"(unlabeled)\" (era ");
    CHECK_HAS(s.text, " is 0 bytes behind an object of 41 bytes, which ends now\n");
    CHECK_HAS(child(writes, odd + 45, odd).text, " is 4 bytes behind an object of 41 bytes");
    slab_free(a, odd);
    slab_free(a, p);
}

static void after_the_end(void) {
    char* p = made(100);
    slab_free(a, p);
    CHECK(faults(child(reads, p + 10, NULL), "is 10 bytes into an object of 100 bytes\n"));
    CHECK(faults(child(writes, p, NULL), "still open: all objects of this block were freed "));
    CHECK(!slab_free_checked(a, p));

    epoch_domain_t* d = epoch_domain_begin(a, "GET /page");
    p = made(100);
    CHECK(epoch_domain_end(d));
    CHECK(faults(child(writes, p + 99, NULL), "temporal-slab: late access to phase \"GET /page\" (era "));
    CHECK(faults(child(reads, p, NULL), "), released "));

    /* Others take nothing of its address. */
    for (int n = 0; n < 5000; n++) slab_free(a, made(100));
    CHECK(faults(child(reads, p, NULL), "is 0 bytes into an object of 100 bytes\n"));
}

/* Of all sizes and ways to be made; what does not lie on pages of its own is an object like any other. */
static void all_sizes(void) {
    SlabHandle h = 0;
    for (size_t size = 1; size < 3000000; size += size / 7 + 1) {
        char* p = made(size);
        CHECK(slab_usable_size(a, p) >= size && slab_owns(a, p) && p[size - 1] == 7);
        char* q = slab_calloc(a, 1, size);
        REQUIRE(q != NULL);
        CHECK(q[0] == 0 && q[size - 1] == 0);
        CHECK(!slab_free_checked(a, p + (size > 1 ? 1 : 100000)));
        p = slab_realloc(a, p, size + 3);
        REQUIRE(p != NULL && p[size - 1] == 7);
        CHECK(slab_free_checked(a, p) && !slab_free_checked(a, p) && slab_free_checked(a, q));
        for (size_t align = 16; align <= 65536; align *= 16) {
            p = slab_aligned_alloc(a, align, size);
            REQUIRE(p != NULL);
            CHECK_EQ((uintptr_t)p % align, 0);
            memset(p, 7, size);
            CHECK(slab_free_checked(a, p));
        }
    }
    char* p = alloc_obj(a, 64, &h);
    CHECK_EQ(slab_handle_ptr(a, h), p);
    CHECK_EQ(slab_ptr_handle(a, p), h);
    CHECK(free_obj(a, h) && !free_obj(a, h) && !slab_free_checked(a, p));
    CHECK_EQ(kit_live(a), 0);
}

/* More live objects than there are guards: the others are in their slots, and each is whole. */
static void more_than_there_are(void) {
    enum { N = 10000 };
    static char* p[N];
    unsigned guarded = 0;
    for (unsigned n = 0; n < N; n++) memset(p[n] = made(48), (int)n, 48);
    for (unsigned n = 0; n < N; n++) {
        for (unsigned k = 0; k < 48; k++) REQUIRE_EQ((unsigned char)p[n][k], (unsigned char)n);
        guarded += ((uintptr_t)p[n] + 48) % slab_page_size() == 0 && slab_usable_size(a, p[n]) == 48;
    }
    CHECK(guarded >= 4096 && guarded < N);
    for (unsigned n = 0; n < N; n++) CHECK(slab_free_checked(a, p[n]));
    char* again = made(48); /* theirs are free again */
    CHECK(faults(child(reads, again + 48, again), "is 0 bytes behind an object of 48 bytes\n"));
    slab_free(a, again);
    CHECK_EQ(kit_live(a), 0);
}

/* Exactly each tenth allocation; a handle of another object in a guarded one's slot leads to that other. */
static void one_in_ten(void) {
    SlabAllocator* outer = a;
    a = with_period(10);
    unsigned guarded = 0;
    for (unsigned n = 1; n <= 1000; n++) {
        SlabHandle h = 0;
        char* p = alloc_obj(a, 48, &h);
        REQUIRE(p != NULL);
        bool is = slab_usable_size(a, p) == 48 && (((uintptr_t)p + 48 + slab_page_size()) % SHEET) == 0;
        guarded += is;
        CHECK_EQ(is, n % 10 == 0);
        CHECK_EQ(slab_handle_ptr(a, h), p);
        if (n % 3 == 0) CHECK(free_obj(a, h));
        else CHECK(slab_free_checked(a, p));
        if (is) CHECK(faults(child(reads, p, NULL), "late access to phase"));
        CHECK_NULL(slab_handle_ptr(a, h));
    }
    CHECK_EQ(guarded, 100);
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
    a = outer;
}

/* Threads that begin and end phases, and free each other's objects. */
static void* _Atomic boxes[32];
static void* works(void* arg) {
    uint64_t dice = (uintptr_t)arg;
    for (unsigned n = 0; n < check_count(300); n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "threads");
        for (unsigned k = 0; k < 20; k++) {
            char* p = made(kit_rand_size(&dice, 5000));
            slab_free(a, atomic_exchange(&boxes[kit_rand(&dice) % 32], p));
        }
        CHECK(epoch_domain_drain(d, NULL));
    }
    return NULL;
}
static void threads_with(uint32_t period) {
    SlabAllocator* outer = a;
    pthread_t t[4];
    a = with_period(period);
    for (uintptr_t n = 0; n < 4; n++) REQUIRE_EQ(pthread_create(&t[n], NULL, works, (void*)(n + 1)), 0);
    for (int n = 0; n < 4; n++) pthread_join(t[n], NULL);
    for (int n = 0; n < 32; n++) slab_free(a, atomic_exchange(&boxes[n], NULL));
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
    a = outer;
}
static void threads(void) {
    threads_with(1);
    threads_with(7);
}

#define GUARDED(fn) CHECK_CASE_WITH(fn, open_it, close_it)
static const CheckCase cases[] = {
    GUARDED(beyond_the_end),      GUARDED(after_the_end), GUARDED(all_sizes),
    GUARDED(more_than_there_are), GUARDED(one_in_ten),    GUARDED(threads),
};
int main(int argc, char** argv) {
    if (CHECK_ASAN) { /* as in late_access.c */
        puts("skipped: AddressSanitizer handles faults itself");
        return 0;
    }
    return CHECK_RUN(argc, argv, cases);
}
