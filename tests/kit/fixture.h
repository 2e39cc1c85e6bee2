/*
 * fixture.h - what tests do with an allocator through the public headers: make one with options, read its numbers, fill
 * and compare contents, run threads, throw dice. Tests that look inside take inside.h.
 *
 * kit_hide launders a pointer: the compiler may assume that a fresh object equals no earlier
 * pointer, and these programs compare exactly such pointers.
 */
#ifndef TESTS_KIT_FIXTURE_H
#define TESTS_KIT_FIXTURE_H

#include "kit/check.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <epoch_domain.h>
#include <slab_alloc.h>
#include <slab_stats.h>

#define KIT_MIB ((size_t)1 << 20)
/* Warm pages an allocator with default options may keep. */
#define KIT_WARM_BYTES KIT_MIB

static inline void* kit_hide(const void* p) {
    uintptr_t v = (uintptr_t)p;
    __asm__ volatile("" : "+r"(v));
    return (void*)v;
}

static inline size_t kit_size(size_t n) {
    __asm__ volatile("" : "+r"(n));
    return n;
}

/* ---- dice: repeatable, any state will do ---- */

static inline uint64_t kit_mix(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t kit_rand(uint64_t* state) { return kit_mix(*state += 0x9e3779b97f4a7c15u); }

/* A size between 1 and max, small ones likelier. */
static inline size_t kit_rand_size(uint64_t* state, size_t max) {
    size_t top = (size_t)1 << (4 + kit_rand(state) % 17);
    if (top > max) {
        top = max;
    }
    return 1 + (size_t)(kit_rand(state) % top);
}

/* ---- contents ---- */

static inline unsigned char kit_byte(uint64_t seed, size_t i) {
    uint64_t x = (seed + i) * 0x9E3779B97F4A7C15ull;
    return (unsigned char)(x >> 56);
}

__attribute__((noinline, unused)) static void kit_fill(void* p, size_t n, uint64_t seed) {
    unsigned char* bytes = p;
    for (size_t i = 0; i < n; i++) {
        bytes[i] = kit_byte(seed, i);
    }
}

__attribute__((noinline, unused)) static bool kit_intact(const void* p, size_t n, uint64_t seed) {
    const unsigned char* bytes = p;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != kit_byte(seed, i)) {
            return false;
        }
    }
    return true;
}

__attribute__((noinline, unused)) static bool kit_all_zero(const void* p, size_t n) {
    const unsigned char* bytes = p;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* ---- allocators ---- */

static inline SlabAllocator* kit_create_with(const SlabOptions* options) {
    SlabAllocator* a = slab_allocator_create_with(options);
    REQUIRE_OR(a != NULL, "no allocator: %s", slab_last_error());
    return a;
}

/* A program may define, before it includes this: KIT_RESERVE_BYTES, for all its allocators; KIT_RING_BY_CLASS when it
 * knows how lines and slabs of classes lie. Then objects of the ring's epochs lie by size class from the first one on,
 * where otherwise those of a thread's first 12 KiB lie in regions. */
#ifndef KIT_RESERVE_BYTES
#define KIT_RESERVE_BYTES 0
#endif
enum { KIT_BY_CLASS = 3 };
#ifdef KIT_RING_BY_CLASS
enum { KIT_BUMP = KIT_BY_CLASS };
#else
enum { KIT_BUMP = 0 };
#endif

static inline SlabOptions kit_options(void) {
    SlabOptions o;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.reserve_bytes = KIT_RESERVE_BYTES;
    o.bump = KIT_BUMP;
    return o;
}

static inline SlabAllocator* kit_create(void) {
    SlabOptions o = kit_options();
    return kit_create_with(&o);
}

/* As of programs with KIT_RING_BY_CLASS. */
static inline SlabAllocator* kit_create_by_class(void) {
    SlabOptions o = kit_options();
    o.bump = KIT_BY_CLASS;
    return kit_create_with(&o);
}

/* Without warm pages, so that what is committed is what epochs hold. */
static inline SlabAllocator* kit_create_cold(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    return kit_create_with(&o);
}

/* n objects of `size` bytes, each filled with its number. */
static inline void kit_take(SlabAllocator* a, size_t size, void** p, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        REQUIRE((p[i] = slab_malloc(a, size)) != NULL);
        memset(p[i], (int)i, size);
    }
}

/* ---- its numbers ---- */

static inline SlabGlobalStats kit_global(SlabAllocator* a) {
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    return g;
}

/* TSLAB_OPTIONS says that the ring's epochs allocate by size class from the first object on. */
static inline bool kit_by_class(void) {
    const char* text = getenv("TSLAB_OPTIONS");
    return text != NULL && (strstr(text, "shared=1") != NULL || strstr(text, "bump=3") != NULL);
}
/* The program runs with TSLAB_OPTIONS=shared=1. */
static inline bool kit_shared(void) {
    const char* text = getenv("TSLAB_OPTIONS");
    return text != NULL && strstr(text, "shared=1") != NULL;
}

static inline uint64_t kit_committed(SlabAllocator* a) { return kit_global(a).committed_bytes; }
static inline uint64_t kit_live(SlabAllocator* a) { return kit_global(a).live_objects; }

static inline SlabRefusals kit_refusals(SlabAllocator* a) {
    SlabRefusals r;
    slab_stats_refusals(a, &r);
    return r;
}

/* Refused frees of either kind, all causes. */
static inline uint64_t kit_refused_frees(SlabAllocator* a) {
    SlabRefusals r = kit_refusals(a);
    return r.stale_handle + r.bad_handle + r.double_free + r.stale_free + r.interior_pointer + r.foreign_pointer +
           r.size_mismatch;
}

static inline SlabEpochStats kit_epoch(SlabAllocator* a, uint32_t size_class, EpochId id) {
    SlabEpochStats s;
    slab_stats_epoch(a, size_class, id, &s);
    return s;
}

static inline uint64_t kit_era_of(SlabAllocator* a, const void* p) {
    uint64_t era = 0;
    return slab_ptr_epoch(a, p, NULL, &era) ? era : 0;
}

static inline void kit_check_balance(const EpochReceipt* r, const char* file, int line) {
    check_compare(file, line, "objects allocated", "==", "freed + released + escaped", r->objects_allocated,
                  r->objects_freed + r->objects_released + r->objects_escaped);
    check_compare(file, line, "bytes allocated", "==", "freed + released + escaped", r->bytes_allocated,
                  r->bytes_freed + r->bytes_released + r->bytes_escaped);
}
#define KIT_BALANCED(r) kit_check_balance((r), __FILE__, __LINE__)

/* ---- threads ---- */

static inline pthread_t kit_thread(void* (*fn)(void*), void* arg) {
    pthread_t t;
    int rc = pthread_create(&t, NULL, fn, arg);
    REQUIRE_OR(rc == 0, "pthread_create: %s", strerror(rc));
    return t;
}

/* Runs fn(arg) on a thread of its own, to its end. */
static inline void kit_on_thread(void* (*fn)(void*), void* arg) { pthread_join(kit_thread(fn, arg), NULL); }

/* A thread that stays and runs one piece at a time while the caller waits. */
typedef struct KitWorker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*fn)(void*); /* NULL = idle */
    void* arg;
    bool stop;
} KitWorker;

static inline void* kit_worker_main(void* arg) {
    KitWorker* w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (w->fn != NULL) {
            w->fn(w->arg);
            w->fn = NULL;
            pthread_cond_broadcast(&w->changed);
        }
        if (!w->stop && w->fn == NULL) pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static inline void kit_worker_start(KitWorker* w) {
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->thread = kit_thread(kit_worker_main, w);
}

static inline void kit_worker_run(KitWorker* w, void (*fn)(void*), void* arg) {
    pthread_mutex_lock(&w->lock);
    w->arg = arg;
    w->fn = fn;
    pthread_cond_broadcast(&w->changed);
    while (w->fn != NULL) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static inline void kit_worker_stop(KitWorker* w) {
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
}

static inline void kit_sleep_us(unsigned us) {
    struct timespec t = {.tv_sec = us / 1000000u, .tv_nsec = (long)(us % 1000000u) * 1000};
    nanosleep(&t, NULL);
}

static inline void kit_await(const _Atomic int* flag, int value) {
    while (atomic_load(flag) != value) {
        sched_yield();
    }
}

/* ---- processes ---- */

/* Puts this program, with the arguments `argv`, in place of the process; TSLAB_TEST_RUNNER has the words that come before
 * a program where the system cannot run it itself, as under an emulator. Returns only if it cannot. */
static inline void kit_exec_self(char* const argv[]) {
    enum { WORDS = 16 };
    const char* runner = getenv("TSLAB_TEST_RUNNER");
    if (runner == NULL) {
        (void)execv("/proc/self/exe", argv);
        return;
    }
    char text[512], path[512], *rest = NULL, *words[WORDS + 1];
    unsigned n = 0;
    snprintf(text, sizeof text, "%s", runner);
    for (char* at = strtok_r(text, " ", &rest); at != NULL && n < WORDS / 2; at = strtok_r(NULL, " ", &rest))
        words[n++] = at;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n == 0 || length < 0) return;
    path[length] = 0;
    words[n++] = path;
    for (unsigned i = 1; argv[i] != NULL && n < WORDS; i++) words[n++] = argv[i];
    words[n] = NULL;
    (void)execvp(words[0], words);
}

/* Runs this program again with one argument and returns its exit code, or 128 + the signal that ended it. */
static inline int kit_rerun(const char* argument) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        kit_exec_self((char*[]){"again", (char*)(uintptr_t)argument, NULL});
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
