/*
 * hardened.c - the hardened form. With fill_freed the memory of an object is zero from its end on, however it ends, and a
 * byte that a program writes there afterwards is told before the memory is an object again.
 */
#include "kit/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

enum { ALL_SIZES = 400000 };

static SlabAllocator* a;

typedef struct Told {
    unsigned times;
    SlabMisuse what;
    const void* where;
} Told;
static Told told;
static void tell(SlabAllocator* of, SlabMisuse what, const void* where, void* ctx) {
    CHECK(of == a && ctx == &told);
    told = (Told){told.times + 1, what, where};
}

static SlabOptions filling(void) {
    SlabOptions o = kit_options();
    o.fill_freed = 1;
    o.misuse_fn = tell;
    o.misuse_ctx = &told;
    return o;
}
static void open_with(SlabOptions o) {
    told = (Told){0};
    a = kit_create_with(&o);
}
static void open_it(void) { open_with(filling()); }
static void open_classes(void) {
    SlabOptions o = filling();
    o.bump = 2;
    open_with(o);
}
static void open_shared(void) {
    SlabOptions o = filling();
    o.shared = 1;
    open_with(o);
}
static void open_lazy(void) {
    SlabOptions o = filling();
    o.purge_policy = SLAB_PURGE_FREE;
    open_with(o);
}
static void open_never(void) {
    SlabOptions o = filling();
    o.purge_policy = SLAB_PURGE_NEVER;
    open_with(o);
}
static void close_it(void) {
    CHECK_EQ(kit_refusals(a).write_after_end, told.times);
    slab_allocator_free(a);
}

/* A new object, whose memory has to be zero, filled. */
static unsigned char* made(size_t size) {
    unsigned char* p = slab_malloc(a, size);
    REQUIRE(p != NULL);
    if (size <= 262144) CHECK(kit_all_zero(p, slab_usable_size(a, p)));
    memset(p, 0xA5, size <= 262144 ? slab_usable_size(a, p) : size);
    return p;
}
/* The memory of an ended object, read as an attacker would. */
static bool is_zero(const unsigned char* p, size_t size) { return kit_all_zero(kit_hide(p), size); }

static void* frees(void* p) {
    CHECK(slab_free_checked(a, p));
    return NULL;
}
static void* frees_handle(void* handle) {
    CHECK(free_obj(a, *(SlabHandle*)handle));
    return NULL;
}

/* Ends one object in each way that there is. */
static void ends_each_way(size_t size) {
    SlabHandle h = 0;
    unsigned char* p = made(size);
    CHECK(slab_free_checked(a, p));
    CHECK(is_zero(p, size));

    p = made(size);
    slab_free_sized(a, p, size);
    CHECK(is_zero(p, size));

    p = made(size);
    kit_on_thread(frees, p);
    CHECK(is_zero(p, size));

    for (int other = 0; other < 2; other++) {
        p = alloc_obj(a, (uint32_t)size, &h);
        REQUIRE(p != NULL && h != 0);
        memset(p, 0xA5, size);
        if (other) kit_on_thread(frees_handle, &h);
        else (void)frees_handle(&h);
        CHECK(is_zero(p, size));
    }

    unsigned char* q = made(size);
    p = slab_realloc(a, q, 2 * size);
    REQUIRE(p != NULL && p[size - 1] == 0xA5);
    if (p != q) CHECK(is_zero(q, size));
    CHECK(slab_free_checked(a, p));
    CHECK(is_zero(p, size));
}
static void each_way(void) {
    for (size_t size = 1; size < ALL_SIZES; size += size / 5 + 1) ends_each_way(size);
    epoch_domain_t* d = epoch_domain_begin(a, "in a domain");
    for (size_t size = 1; size < ALL_SIZES; size += size / 5 + 1) ends_each_way(size);
    CHECK(epoch_domain_end(d));
    CHECK_EQ(told.times, 0);
    CHECK_EQ(kit_live(a), 0);
}

/* Objects that end with their phase: released at once, or after a drain by late frees. */
enum { IN_PHASE = 600 };
static void ends_with_phase(size_t most, bool drained) {
    static unsigned char* p[IN_PHASE];
    static size_t size[IN_PHASE];
    uint64_t dice = most;
    epoch_domain_t* d = epoch_domain_begin(a, "phase");
    for (unsigned n = 0; n < IN_PHASE; n++) p[n] = made(size[n] = kit_rand_size(&dice, most));
    for (unsigned n = 0; n < IN_PHASE; n += 3) slab_free(a, p[n]);
    if (drained) {
        CHECK(epoch_domain_drain(d, NULL));
        for (unsigned n = 0; n < IN_PHASE; n++) {
            if (n % 3 == 0) continue;
            if (n % 2 == 0) slab_free(a, p[n]);
            else kit_on_thread(frees, p[n]);
        }
    } else {
        CHECK(epoch_domain_end(d));
    }
    for (unsigned n = 0; n < IN_PHASE; n++) CHECK(is_zero(p[n], size[n]));
}
static void with_the_phase(void) {
    for (int round = 0; round < 3; round++) {
        ends_with_phase(300, false);
        ends_with_phase(40000, false);
        ends_with_phase(300, true);
        ends_with_phase(40000, true);
    }
    for (unsigned n = 0; n < 500; n++) (void)made(n + 1); /* of the ring, and of another thread's heap */
    CHECK(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, NULL));
    for (unsigned n = 0; n < 500; n++) slab_free(a, made(n + 1));
    CHECK_EQ(told.times, 0);
    CHECK_EQ(kit_live(a), 0);
}

/* One byte written after the end is told of the next object there, once, and that object is zero. */
static void written(size_t size, size_t at) {
    enum { MOST = 4096 };
    static unsigned char* others[MOST];
    unsigned was = told.times, count = 0;
    unsigned char* q = NULL;
    for (unsigned n = 0; n < 64; n++) others[n] = made(size); /* lines are used again when enough is free there */
    unsigned char* p = others[20];
    for (unsigned n = 0; n < 64; n++) slab_free(a, others[n]);
    ((volatile unsigned char*)kit_hide(p))[at] = 1;
    while (count < MOST && q != p) others[count++] = q = made(size);
    REQUIRE(q == p);
    CHECK_EQ(told.times, was + 1);
    CHECK_EQ(told.what, SLAB_MISUSE_WRITE_AFTER_END);
    CHECK(told.where == p);
    while (count != 0) slab_free(a, others[--count]);
}
static void written_after_free(void) {
    for (size_t size = 16; size <= 4096; size *= 4) {
        written(size, 0);
        written(size, size - 1);
        written(size, size / 2);
    }
}
static void written_after_phase(void) {
    for (unsigned n = 1; n <= 20; n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "one object");
        unsigned char* p = made(500);
        CHECK(epoch_domain_end(d));
        ((volatile unsigned char*)kit_hide(p))[499] = 1;
        d = epoch_domain_begin(a, "one object");
        unsigned char* q = made(500);
        CHECK(epoch_domain_end(d));
        if (q != p) continue; /* its page went to the system, or another is first */
        CHECK_EQ(told.what, SLAB_MISUSE_WRITE_AFTER_END);
        CHECK(told.where == p);
        return;
    }
    CHECK(false);
}

/* Threads that begin and release phases, and free by handle objects of phases that others release meanwhile, and each
 * other's of the ring by pointer: no object is zeroed that lives, and none is told. */
static _Atomic SlabHandle handles[64];
static _Atomic(void*) boxes[64];
static void* works(void* arg) {
    uint64_t seed = (uintptr_t)arg, dice = seed;
    for (unsigned n = 0; n < check_count(400); n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "threads");
        unsigned char* own[40];
        size_t size[40];
        for (unsigned k = 0; k < 40; k++) {
            own[k] = slab_malloc(a, size[k] = kit_rand_size(&dice, 3000));
            REQUIRE(own[k] != NULL);
            CHECK(kit_all_zero(own[k], size[k]));
            kit_fill(own[k], size[k], seed + k);

            SlabHandle h = 0;
            unsigned char* p = alloc_obj(a, (uint32_t)kit_rand_size(&dice, 3000), &h);
            REQUIRE(p != NULL && p[0] == 0);
            h = atomic_exchange(&handles[kit_rand(&dice) % 64], h);
            if (h != 0) (void)free_obj(a, h); /* if its phase has ended it is refused */

            p = slab_malloc_outside(a, kit_rand_size(&dice, 3000));
            REQUIRE(p != NULL && p[0] == 0);
            p[0] = 1;
            CHECK(slab_free_checked(a, atomic_exchange(&boxes[kit_rand(&dice) % 64], p)));
        }
        for (unsigned k = 0; k < 40; k++) CHECK(kit_intact(own[k], size[k], seed + k));
        for (unsigned k = 0; k < 40; k += 2) CHECK(slab_free_checked(a, own[k]));
        CHECK(epoch_domain_end(d));
    }
    return NULL;
}
static void threads(void) {
    pthread_t t[4];
    for (uintptr_t n = 0; n < 4; n++) REQUIRE_EQ(pthread_create(&t[n], NULL, works, (void*)(n + 1)), 0);
    for (int n = 0; n < 4; n++) pthread_join(t[n], NULL);
    for (int n = 0; n < 64; n++) CHECK(slab_free_checked(a, atomic_exchange(&boxes[n], NULL)));
    for (int n = 0; n < 64; n++) (void)free_obj(a, atomic_exchange(&handles[n], 0));
    CHECK_EQ(kit_refusals(a).write_after_end, 0);
    CHECK_EQ(kit_live(a), 0);
    told.times = 0; /* stale handles were told */
}

/* ---- quarantine_bytes ---- */

enum { HELD = 1 << 20 };
static void open_held(void) {
    SlabOptions o = kit_options();
    o.quarantine_bytes = HELD;
    open_with(o);
}
static void open_held_shared(void) {
    SlabOptions o = kit_options();
    o.quarantine_bytes = HELD;
    o.shared = 1;
    open_with(o);
}
static void open_held_and_filled(void) {
    SlabOptions o = filling();
    o.quarantine_bytes = HELD;
    open_with(o);
}

static uint64_t held(void) { return kit_global(a).quarantine_bytes; }
/* The address of an object of a phase that has ended. */
static unsigned char* ended(size_t size) {
    epoch_domain_t* d = epoch_domain_begin(a, "short");
    unsigned char* p = slab_malloc(a, size);
    REQUIRE(p != NULL);
    memset(p, 7, size);
    CHECK(epoch_domain_end(d));
    return p;
}

/* No address of a phase comes again before HELD bytes have ended after it; each does some time. */
static void no_address_comes_soon(void) {
    enum { PHASES = 3000 };
    static uintptr_t page[PHASES];
    unsigned again = 0, pages = HELD / (unsigned)slab_page_size();
    for (unsigned n = 0; n < PHASES; n++) {
        page[n] = (uintptr_t)ended(3000) / slab_page_size();
        for (unsigned k = n >= pages ? n - pages + 1 : 0; k < n; k++) REQUIRE(page[k] != page[n]);
        for (unsigned k = 0; k + pages <= n; k++) again += page[k] == page[n];
        REQUIRE_LE(held(), HELD);
    }
    CHECK(again > 0);
    CHECK_EQ(held(), HELD);
    CHECK_LE(kit_committed(a), HELD + KIT_WARM_BYTES);
    CHECK_LE(held(), kit_global(a).warm_bytes);
}

/* A trim gives it back, and so does a request that finds no room. */
static void given_back(void) {
    for (unsigned n = 0; n < 100; n++) (void)ended(3000);
    CHECK(held() > 0);
    slab_trim(a);
    CHECK_EQ(held(), 0);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);

    SlabOptions o = kit_options();
    o.quarantine_bytes = (uint64_t)64 << 20;
    o.max_bytes = 1 << 20;
    open_with(o);
    for (unsigned n = 0; n < 2000; n++) (void)ended(3000);
    for (unsigned n = 0; n < 50; n++) (void)ended(200000);
    CHECK_EQ(kit_refusals(a).over_budget, 0);
}

/* Of all sizes and ways to end, slabs come back whole. */
static void all_that_ends(void) {
    uint64_t dice = 1;
    void* late[64];
    for (unsigned n = 0; n < 60; n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "mixed");
        for (unsigned k = 0; k < 200; k++) {
            void* p = slab_malloc(a, kit_rand_size(&dice, 100000));
            REQUIRE(p != NULL);
            if (k < 64) late[k] = p;
            else if (k % 2 == 0) slab_free(a, p);
        }
        if (n % 2 == 0) {
            CHECK(epoch_domain_drain(d, NULL) || true);
            for (unsigned k = 0; k < 64; k++) CHECK(slab_free_checked(a, late[k]));
            CHECK(epoch_close_ex(a, epoch_current(a), EPOCH_DRAIN, NULL));
        } else {
            CHECK(epoch_domain_end(d));
        }
        REQUIRE_LE(held(), HELD);
    }
    slab_trim(a);
    CHECK_EQ(held(), 0);
}

/* A write to what is held is found when it is used again. */
static void written_while_held(void) {
    unsigned char* p = ended(3000);
    CHECK(is_zero(p, 3000));
    ((volatile unsigned char*)kit_hide(p))[100] = 1;
    for (unsigned n = 0; n < 3000 && told.times == 0; n++) {
        unsigned char* q = ended(3000);
        CHECK((told.times != 0) == (q == p));
    }
    CHECK_EQ(told.times, 1);
    CHECK(told.where == p);
}

/* A child has none of what its parent holds; it begins its own. */
static void child_of_many(bool alone) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        bool ok = alone || held() == 0;
        for (unsigned n = 0; n < 1000; n++) (void)ended(3000);
        _exit(ok && held() <= HELD && kit_live(a) == 0 ? 0 : 1);
    }
    int status = -1;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
static void* waits_for_word(void* arg) {
    (void)ended(3000);
    while (!atomic_load((_Atomic bool*)arg)) sched_yield();
    return NULL;
}
static void forks(void) {
    _Atomic bool over = false;
    pthread_t t;
    for (unsigned n = 0; n < 100; n++) (void)ended(3000);
    child_of_many(true);
    REQUIRE_EQ(pthread_create(&t, NULL, waits_for_word, &over), 0);
    child_of_many(false);
    atomic_store(&over, true);
    pthread_join(t, NULL);
    CHECK(held() > 0);
}

/* ---- random_order, and all parts together ---- */

static void open_random(void) {
    SlabOptions o = kit_options();
    o.random_order = 1;
    open_with(o);
}
static void open_hardened(void) {
    SlabOptions o = kit_options();
    o.hardened = 1;
    o.misuse_fn = tell;
    o.misuse_ctx = &told;
    open_with(o);
}

/* Without guards, since these cases read what has ended. */
static void open_all_but_guards(void) {
    SlabOptions o = filling();
    o.random_order = 1;
    o.quarantine_bytes = HELD;
    open_with(o);
}

/* Of objects made one after the other few lie one behind the other, and two allocators have different orders. */
static unsigned neighbours(uintptr_t offset[], unsigned n) {
    unsigned count = 0;
    uintptr_t first = 0;
    for (unsigned i = 0; i < n; i++) {
        uintptr_t p = (uintptr_t)slab_malloc(a, 64);
        if (i == 0) first = p;
        offset[i] = p - first;
        count += i != 0 && offset[i] - offset[i - 1] == 64;
    }
    return count;
}
static void in_no_order(void) {
    enum { N = 2000 };
    static uintptr_t one[N], other[N];
    CHECK(neighbours(one, N) < N / 4);
    slab_allocator_free(a);
    open_random();
    CHECK(neighbours(other, N) < N / 4);
    CHECK(memcmp(one, other, sizeof one) != 0);
    slab_allocator_free(a);
    open_with(kit_options());
    CHECK(neighbours(one, N) > N * 3 / 4);
    for (unsigned n = 1; n <= 3000; n++) slab_free(a, slab_malloc(a, n));
}

/* The sum is what it says, and a part that is set stays as it is. */
static void the_sum_of_all(void) {
    unsigned char* p;
    for (unsigned n = 0; n < 3000; n++) (void)ended(3000);
    CHECK(held() > (4 << 20) - 70000 && held() <= 4 << 20);
    static uintptr_t one[1000];
    CHECK(neighbours(one, 1000) < 250);
    unsigned guarded = 0;
    for (unsigned n = 0; n < 100000; n++) {
        p = slab_malloc(a, 48);
        guarded += ((uintptr_t)p + 48 + slab_page_size()) % 65536 == 0 && slab_usable_size(a, p) == 48;
        slab_free(a, p);
    }
    CHECK(guarded >= 5 && guarded <= 80); /* 20 are to be expected */
    slab_allocator_free(a);

    SlabOptions o = kit_options();
    o.hardened = 1;
    o.quarantine_bytes = 128 << 10;
    o.misuse_fn = tell;
    o.misuse_ctx = &told;
    open_with(o);
    for (unsigned n = 0; n < 100; n++) (void)ended(3000);
    CHECK(held() > 0 && held() <= 128 << 10);
}

#define HELD_BACK(fn) CHECK_CASE_WITH(fn, open_held, close_it)
#define FILLS(fn) CHECK_CASE_WITH(fn, open_it, close_it)
#define BY_CLASS(fn) CHECK_CASE_WITH(fn, open_classes, close_it)
#define SHARED(fn) CHECK_CASE_WITH(fn, open_shared, close_it)
#define LAZY(fn) CHECK_CASE_WITH(fn, open_lazy, close_it)
#define NEVER(fn) CHECK_CASE_WITH(fn, open_never, close_it)
static const CheckCase cases[] = {
    FILLS(each_way),
    BY_CLASS(each_way),
    SHARED(each_way),
    FILLS(with_the_phase),
    BY_CLASS(with_the_phase),
    SHARED(with_the_phase),
    LAZY(each_way),
    LAZY(with_the_phase),
    NEVER(each_way),
    NEVER(with_the_phase),
    BY_CLASS(written_after_free),
    FILLS(written_after_phase),
    FILLS(threads),
    BY_CLASS(threads),
    SHARED(threads),
    HELD_BACK(no_address_comes_soon),
    HELD_BACK(given_back),
    HELD_BACK(all_that_ends),
    CHECK_CASE_WITH(all_that_ends, open_held_shared, close_it),
    CHECK_CASE_WITH(written_while_held, open_held_and_filled, close_it),
    CHECK_CASE_WITH(threads, open_held_and_filled, close_it),
    HELD_BACK(forks),
    CHECK_CASE_WITH(in_no_order, open_random, close_it),
    CHECK_CASE_WITH(each_way, open_all_but_guards, close_it),
    CHECK_CASE_WITH(with_the_phase, open_all_but_guards, close_it),
    CHECK_CASE_WITH(threads, open_hardened, close_it),
    CHECK_CASE_WITH(the_sum_of_all, open_hardened, close_it),
};
int main(int argc, char** argv) {
    if (CHECK_ASAN) { /* whose blocks of malloc are filled by itself */
        puts("skipped: objects are blocks of malloc");
        return 0;
    }
    return CHECK_RUN(argc, argv, cases);
}
