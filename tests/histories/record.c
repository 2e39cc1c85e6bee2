/*
 * record.c - records histories of the library: which calls overlapped, and what each returned.
 *
 * In each history a few threads make 160 calls at random on phases that they share: they allocate with handles and
 * by pointer, free the handles of each other, some of them twice, look handles up, drain and release the phases, and
 * attach and detach a domain. They enter, leave, reset and force another one, whose last exit ends its phase; they move
 * the ring on, close its epochs and allocate in them; and they allocate under a budget. A call is stamped before it and after it by one counter, so two calls overlap unless one's
 * second stamp is below the other's first. At the end, with the threads at rest, the live objects of each phase are
 * counted. The checker (checker/main.go) decides whether some order of the calls explains all results.
 *
 * usage: record HISTORIES SEED [LIE]
 * A line is "THREAD CALLED RETURNED OPERATION PHASE ARGUMENT RESULT"; "history SEED" begins one, "end" ends it. LIE
 * changes one result in each history into one that the contract forbids: `double` (a second free succeeds), `late` (an
 * allocation succeeds after a release), `twice` (two live objects have one address), `lost` (a free of a live object is
 * refused), `phantom` (the count at the end is too high), `turn` (the ring has gone elsewhere), `stay` (a scope could not be
 * left), `over` (an allocation over the budget succeeds).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* REG_EFL */
#endif
#define KIT_RESERVE_BYTES 0
#include "kit/inside.h"
#include "kit/step.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#if CAN_STEP
#include <ucontext.h>
#endif

enum { THREADS = 4, CALLS = 40, PHASES = 4, PRIVATE = 3, TOKENS = 2, SHARED = 24, HISTORIES_AN_ALLOCATOR = 50 };
enum { RING = 8, LIMITED = 2, AT_THE_END = 2 + LIMITED }; /* LIMITED: objects under the budget that a thread may have */
enum { LIMITED_BYTES = 300 << 10, LIMIT = 2 };            /* each has pages of its own */

struct call {
    uint64_t called, returned, argument, result, handle;
    const char* what;
    unsigned phase;
};

static SlabAllocator* a;
static epoch_domain_t *phase[PHASES], *tokens, *room, *limited;
static uint64_t era[PHASES];
static _Atomic uint64_t stamps;
static _Atomic uint64_t handles[SHARED]; /* of objects that any thread may free */
static struct call calls[THREADS][CALLS];
static unsigned made[THREADS];
static uint64_t seeds[THREADS];
static pthread_barrier_t barrier;
static uint64_t ring_at, ring_open, ring_current; /* the ring as a history begins; open: a bit each */

static uint64_t stamp(void) { return atomic_fetch_add(&stamps, 1); }

/* ---- calls that overlap ----------------------------------------------------------------- */

/* A call takes less time than a thread takes to wake, so threads that only run would make their calls one after the other.
 * One call in STOPPED stops after some of its instructions, until others have made calls or have had many chances to. */
enum { STOPPED = 8, STAMPS_MEANWHILE = 16, CHANCES = 32 };

static _Thread_local unsigned instructions_left;

static void wait_for_others(uint64_t most) {
    uint64_t until = atomic_load(&stamps) + most;
    for (unsigned i = 0; i < CHANCES && atomic_load(&stamps) < until; i++) sched_yield();
}

#if CAN_STEP
static void after_each(int signal_number, siginfo_t* info, void* context) {
    (void)signal_number, (void)info;
    if (instructions_left > 0 && --instructions_left > 0) return;
    int error = errno;
    ((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100LL; /* no more traps in this call */
    wait_for_others(STAMPS_MEANWHILE);
    errno = error;
}
static void stop_calls(void) {
    struct sigaction action = {.sa_sigaction = after_each, .sa_flags = SA_SIGINFO | SA_RESTART};
    REQUIRE_EQ(sigaction(SIGTRAP, &action, NULL), 0);
}
#else
static void stop_calls(void) {}
#endif

/* Stamps the beginning of a call, which may be stopped. */
static uint64_t begin_call(uint64_t* seed) {
    uint64_t draw = kit_rand(seed);
    if (draw % 4 == 0) sched_yield();
    uint64_t called = stamp();
    if (draw / 4 % STOPPED != 0) return called;
    instructions_left = 1 + (unsigned)(draw >> 32) % (16u << (draw >> 16) % 6);
    if (CAN_STEP) kit_trap(true);
    else wait_for_others(STAMPS_MEANWHILE);
    return called;
}

static size_t draw_size(uint64_t* seed) {
    static const uint16_t sizes[] = {16, 40, 64, 100, 256, 700, 1500, 4000, 6000};
    return sizes[kit_rand(seed) % (sizeof sizes / sizeof *sizes)];
}

static void note(unsigned thread, const char* what, unsigned in, uint64_t called, uint64_t argument, uint64_t result,
                 uint64_t handle) {
    kit_trap(false);
    calls[thread][made[thread]++] = (struct call){called, stamp(), argument, result, handle, what, in};
}

/* ---- calls ------------------------------------------------------------------------------ */

static void alloc_handle(unsigned thread, uint64_t* seed, unsigned in) {
    SlabHandle h = 0;
    size_t size = draw_size(seed);
    uint64_t called = begin_call(seed);
    void* p = epoch_domain_alloc_obj(phase[in], size, 16, &h);
    note(thread, "alloc", in, called, 0, (uintptr_t)p, h);
    if (h != 0) atomic_store(&handles[kit_rand(seed) % SHARED], h);
}

static void free_handle(unsigned thread, uint64_t* seed) {
    uint64_t h = atomic_load(&handles[kit_rand(seed) % SHARED]); /* it stays: others may free it, too */
    if (h == 0) return;
    uint64_t called = begin_call(seed);
    bool done = free_obj(a, h);
    note(thread, "free", 0, called, h, done, 0);
}

static void look_up(unsigned thread, uint64_t* seed) {
    uint64_t h = atomic_load(&handles[kit_rand(seed) % SHARED]);
    if (h == 0) return;
    uint64_t called = begin_call(seed);
    void* p = slab_handle_ptr(a, h);
    note(thread, "look", 0, called, h, (uintptr_t)p, 0);
}

static void end_phase(unsigned thread, uint64_t* seed, unsigned in, EpochCloseMode mode) {
    EpochReceipt receipt = {.slabs_deferred = 0};
    uint64_t called = begin_call(seed);
    bool done = epoch_close_era(a, era[in], mode, &receipt);
    note(thread, mode == EPOCH_DRAIN ? "drain" : "release", in, called, receipt.slabs_deferred, done, 0);
}

/* Objects by pointer are the thread's own, in a phase that is drained at most: a pointer that is freed beside a release
 * is the program's error. */
static void* alloc_pointer(unsigned thread, uint64_t* seed) {
    size_t size = draw_size(seed);
    uint64_t called = begin_call(seed);
    void* p = epoch_domain_malloc(phase[PRIVATE], size);
    note(thread, "malloc", PRIVATE, called, 0, (uintptr_t)p, 0);
    return p;
}

static void free_pointer(unsigned thread, uint64_t* seed, void* p) {
    uint64_t called = begin_call(seed);
    bool done = slab_free_checked(a, p);
    note(thread, "give", PRIVATE, called, (uintptr_t)p, done, 0);
}

static bool attach(unsigned thread, uint64_t* seed) {
    uint64_t called = begin_call(seed);
    bool done = epoch_domain_attach(tokens);
    note(thread, "attach", 0, called, 0, done, 0);
    return done;
}

static void detach(unsigned thread, uint64_t* seed) {
    uint64_t called = begin_call(seed);
    bool done = epoch_domain_detach(tokens);
    note(thread, "detach", 0, called, 0, done, 0);
}

/* What a thread has, and where it is. */
struct place {
    void *own, *charged[LIMITED];
    bool attached, entered; /* the second is the innermost scope of both */
};

static void enter_or_leave(unsigned thread, uint64_t* seed, struct place* at) {
    uint64_t called = begin_call(seed);
    bool done = at->entered ? epoch_domain_exit(room) : epoch_domain_enter(room);
    note(thread, at->entered ? "exit" : "enter", 0, called, 0, done, 0);
    at->entered = at->entered ? !done : done;
}

static void in_room(unsigned thread, uint64_t* seed, struct place* at) {
    uint64_t called, draw = kit_rand(seed) % 8, size = draw_size(seed);
    if (draw < 4) {
        enter_or_leave(thread, seed, at);
    } else if (draw < 6) {
        called = begin_call(seed);
        void* p = epoch_domain_malloc(room, size);
        note(thread, "rent", 0, called, 0, p != NULL, 0);
    } else if (at->entered) {
        called = begin_call(seed);
        bool done = epoch_domain_reset(room);
        note(thread, "reset", 0, called, 0, done, 0);
    } else {
        called = begin_call(seed);
        bool done = epoch_domain_force_close(room);
        note(thread, "force", 0, called, 0, done, 0);
    }
}

/* A whole life, by the call without an epoch: whatever the ring does meanwhile it succeeds, and realloc keeps the contents. */
static void whole_life(unsigned thread, uint64_t* seed) {
    size_t size = draw_size(seed), other = draw_size(seed);
    uint64_t called = begin_call(seed);
    unsigned char* p = slab_malloc(a, size);
    note(thread, "any", 0, called, 0, p != NULL, 0);
    if (p == NULL) return;
    kit_fill(p, size, called);
    unsigned char* q = slab_realloc(a, p, other);
    REQUIRE_OR(q != NULL, "realloc from %zu to %zu bytes failed with errno %d", size, other, errno);
    REQUIRE_OR(kit_intact(q, size < other ? size : other, called), "realloc from %zu to %zu bytes lost contents", size,
               other);
    REQUIRE(slab_free_checked(a, q));
}

static void in_ring(unsigned thread, uint64_t* seed) {
    uint64_t called, draw = kit_rand(seed) % 10;
    EpochId id = (EpochId)(kit_rand(seed) % RING);
    if (draw < 2) {
        called = begin_call(seed);
        note(thread, "advance", 0, called, 0, epoch_advance_id(a), 0);
    } else if (draw < 4) {
        called = begin_call(seed);
        note(thread, "current", 0, called, 0, epoch_current(a), 0);
    } else if (draw < 6) {
        if (draw == 4) id = epoch_current(a);
        called = begin_call(seed);
        bool done = epoch_close_ex(a, id, EPOCH_DRAIN, NULL);
        note(thread, "close", 0, called, id, done, 0);
    } else if (draw < 8) {
        whole_life(thread, seed);
    } else {
        size_t size = draw_size(seed);
        called = begin_call(seed);
        void* p = slab_malloc_epoch(a, size, id);
        note(thread, "place", 0, called, id, p != NULL, 0);
        REQUIRE(p == NULL || slab_free_checked(a, p));
    }
}

static void give_back(unsigned thread, uint64_t* seed, void** p) {
    uint64_t called = begin_call(seed);
    bool done = slab_free_checked(a, *p);
    note(thread, "credit", 0, called, 0, done, 0);
    *p = NULL;
}

static void under_budget(unsigned thread, uint64_t* seed, struct place* at) {
    void** p = &at->charged[kit_rand(seed) % LIMITED];
    if (*p != NULL) {
        give_back(thread, seed, p);
        return;
    }
    uint64_t called = begin_call(seed);
    *p = epoch_domain_malloc(limited, LIMITED_BYTES);
    note(thread, "charge", 0, called, 0, *p != NULL, 0);
}

static void one_call(unsigned thread, uint64_t* seed, struct place* at) {
    switch (kit_rand(seed) % 32) {
    case 0:
        end_phase(thread, seed, kit_rand(seed) % PHASES, EPOCH_DRAIN);
        break;
    case 1:
        end_phase(thread, seed, kit_rand(seed) % PRIVATE, EPOCH_RELEASE);
        break;
    case 2:
    case 3:
        if (at->entered) enter_or_leave(thread, seed, at);
        else if (at->attached) detach(thread, seed), at->attached = false;
        else at->attached = attach(thread, seed);
        break;
    case 4:
    case 5:
    case 6:
        if (at->own != NULL) free_pointer(thread, seed, at->own), at->own = NULL;
        else at->own = alloc_pointer(thread, seed);
        break;
    case 7:
    case 8:
        look_up(thread, seed);
        break;
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
        free_handle(thread, seed);
        break;
    case 14:
    case 15:
    case 16:
    case 17:
    case 18:
        in_ring(thread, seed);
        break;
    case 19:
    case 20:
    case 21:
    case 22:
        in_room(thread, seed, at);
        break;
    case 23:
    case 24:
    case 25:
        under_budget(thread, seed, at);
        break;
    default:
        alloc_handle(thread, seed, kit_rand(seed) % PHASES);
    }
}

static void* play(void* arg) {
    unsigned thread = (unsigned)(uintptr_t)arg;
    for (;;) {
        pthread_barrier_wait(&barrier);
        if (a == NULL) return NULL;
        uint64_t seed = seeds[thread];
        struct place at = {.own = NULL};
        while (made[thread] < CALLS - AT_THE_END) one_call(thread, &seed, &at);
        if (at.entered) enter_or_leave(thread, &seed, &at);
        if (at.attached) detach(thread, &seed);
        for (unsigned i = 0; i < LIMITED; i++)
            if (at.charged[i] != NULL) give_back(thread, &seed, &at.charged[i]);
        pthread_barrier_wait(&barrier);
    }
}

/* ---- histories -------------------------------------------------------------------------- */

static void begin(uint64_t seed) {
    for (unsigned i = 0; i < PHASES; i++) {
        REQUIRE_OR((phase[i] = epoch_domain_create(a)) != NULL, "no domain: %s", slab_last_error());
        era[i] = phase[i]->epoch_era;
    }
    REQUIRE_OR((tokens = epoch_domain_create(a)) != NULL, "no domain: %s", slab_last_error());
    SlabDomainOptions o = {.struct_size = sizeof o, .hard_bytes = LIMIT * LIMITED_BYTES};
    REQUIRE_OR((room = epoch_domain_create(a)) != NULL, "no domain: %s", slab_last_error());
    REQUIRE_OR((limited = epoch_domain_create_ex(a, &o)) != NULL, "no domain: %s", slab_last_error());
    for (unsigned i = 0; i < TOKENS; i++)
        REQUIRE_OR(epoch_domain_enter(tokens) && epoch_domain_detach(tokens), "no scope: %s", slab_last_error());
    for (unsigned i = 0; i < SHARED; i++) atomic_store(&handles[i], 0);
    for (unsigned i = 0; i < THREADS; i++) {
        made[i] = 0;
        seeds[i] = kit_mix(seed * THREADS + i);
    }
    atomic_store(&stamps, 1);
    ring_at = stamp(), ring_current = epoch_current(a), ring_open = 0;
    for (EpochId id = 0; id < RING; id++) ring_open |= (uint64_t)(epoch_state(a, id) == EPOCH_ACTIVE) << id;
    (void)stamp();
}

static void end(void) {
    for (unsigned i = 0; i < TOKENS; i++)
        REQUIRE_OR(epoch_domain_attach(tokens) && epoch_domain_exit(tokens), "a scope is missing: %s",
                   slab_last_error());
    REQUIRE(epoch_domain_destroy(tokens));
    REQUIRE(epoch_domain_destroy(room));
    REQUIRE(epoch_domain_destroy(limited));
    for (unsigned i = 0; i < PHASES; i++) {
        (void)epoch_close_era(a, era[i], EPOCH_RELEASE, NULL);
        REQUIRE(epoch_domain_destroy(phase[i]));
    }
    kit_check(a);
}

static bool count_one(const SlabLiveObject* object, void* ctx) {
    (void)object;
    ++*(uint64_t*)ctx;
    return true;
}

/* Changes one result of the history into a wrong one. Returns false if the history has nothing to change. */
static bool lie(const char* kind) {
    uint64_t released = UINT64_MAX, freed = 0, freed_at = 0, address = 0, address_at = 0;
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned t = 0; t < THREADS; t++)
            for (unsigned i = 0; i < made[t]; i++) {
                struct call* c = &calls[t][i];
                if (pass == 0) {
                    if (strcmp(c->what, "release") == 0 && c->phase == 0 && c->returned < released)
                        released = c->returned;
                    if (strcmp(c->what, "free") == 0 && c->result == 1 && freed == 0)
                        freed = c->argument, freed_at = c->returned;
                    if (strcmp(c->what, "malloc") == 0 && c->result != 0) address = c->result, address_at = c->returned;
                    if (strcmp(c->what, "give") == 0 && c->argument == address) address = 0;
                    continue;
                }
                if (strcmp(kind, "turn") == 0 && strcmp(c->what, "advance") == 0)
                    return c->result = (c->result + RING - 2) % RING, true;
                if (strcmp(kind, "stay") == 0 && strcmp(c->what, "exit") == 0 && c->result == 1)
                    return c->result = 0, true;
                if (strcmp(kind, "over") == 0 && strcmp(c->what, "charge") == 0 && c->result == 0)
                    return c->result = 1, true;
                bool free = strcmp(c->what, "free") == 0, alloc = strcmp(c->what, "alloc") == 0;
                if (strcmp(kind, "double") == 0 && free && c->result == 0 && c->argument == freed &&
                    c->called > freed_at)
                    return c->result = 1, true;
                if (strcmp(kind, "lost") == 0 && free && c->result == 1) return c->result = 0, true;
                if (strcmp(kind, "late") == 0 && alloc && c->phase == 0 && c->result == 0 && c->called > released)
                    return c->result = 0x1000, c->handle = 1, true;
                if (strcmp(kind, "twice") == 0 && address != 0 && alloc && c->result != 0 && c->called > address_at)
                    return c->result = address, true;
            }
    return false;
}

static void print(uint64_t seed, const char* kind) {
    bool phantom = kind != NULL && strcmp(kind, "phantom") == 0;
    if (kind != NULL && !phantom && !lie(kind)) return;
    printf("history %" PRIu64 "\n", seed);
    printf("%u %" PRIu64 " %" PRIu64 " ring 0 %" PRIu64 " %" PRIu64 " 0\n", THREADS, ring_at, ring_at + 1, ring_open,
           ring_current);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < made[t]; i++) {
            const struct call* c = &calls[t][i];
            printf("%u %" PRIu64 " %" PRIu64 " %s %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", t, c->called, c->returned,
                   c->what, c->phase, c->argument, c->result, c->handle);
        }
    for (unsigned i = 0; i < PHASES; i++) {
        uint64_t called = stamp(), live = 0;
        slab_epoch_walk_era(a, era[i], count_one, &live);
        printf("%u %" PRIu64 " %" PRIu64 " count %u 0 %" PRIu64 " 0\n", THREADS, called, stamp(), i, live + phantom);
    }
    puts("end");
}

int main(int argc, char** argv) {
    char* rest = NULL;
    uint64_t histories = argc > 2 ? strtoull(argv[1], &rest, 10) : 0, seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (argc < 3 || argc > 4 || histories == 0 || *rest != 0) {
        fputs("usage: record HISTORIES SEED [double|late|twice|lost|phantom|turn|stay|over]\n", stderr);
        return 2;
    }

    stop_calls();
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++) REQUIRE(pthread_create(&threads[i], NULL, play, (void*)(uintptr_t)i) == 0);
    for (uint64_t n = 0; n < histories; n++) {
        if (n % HISTORIES_AN_ALLOCATOR == 0) {
            if (a != NULL) slab_allocator_free(a);
            SlabOptions o = kit_options();
            o.ring_size = RING;
            a = kit_create_with(&o);
        }
        begin(seed + n);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        print(seed + n, argc > 3 ? argv[3] : NULL);
        end();
    }

    slab_allocator_free(a);
    a = NULL;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
