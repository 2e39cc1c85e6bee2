/*
 * process.c - a process from its first to its last call: constructors before main, threads with destructors, forks
 * beside threads that allocate, handlers of exit. Nothing is allocated twice, lost or refused on the way.
 */
#include "preload/preloaded.h"

#include <pthread.h>

/* ---- before main ---- */

enum { EARLY = 300 };
static char* early[EARLY];
static bool early_ours;

__attribute__((constructor)) static void before_main(void) {
    for (int i = 0; i < EARLY; i++) {
        early[i] = malloc((size_t)i * 11);
        pre_fill(early[i], (size_t)i * 11, (unsigned)i);
    }
    early_ours = pre_is_ours(early[0]);
}

static void constructors(void) {
    pre_require();
    CHECK(early_ours);
    for (int i = 0; i < EARLY; i++) {
        CHECK(pre_is_filled(early[i], (size_t)i * 11, (unsigned)i));
        free(early[i]);
    }
}

/* ---- threads that end ---- */

enum { KEYS = 48, THREADS = 8, ROUNDS = 3 };
static pthread_key_t keys[KEYS];
static _Atomic unsigned ended;

/* Called for each key, round after round: frees what it has, and takes something new in all rounds but the last. */
static void end_of_key(void* value) {
    char* p = value;
    unsigned round = (unsigned char)p[1], key = (unsigned char)p[0];
    CHECK_GE(malloc_usable_size(p), 40);
    free(malloc(1000 + key));
    free(p);
    atomic_fetch_add(&ended, 1);
    if (round + 1 >= ROUNDS) return;
    p = malloc(40);
    p[0] = (char)key;
    p[1] = (char)(round + 1);
    pthread_setspecific(keys[key], p);
}

extern int __cxa_thread_atexit_impl(void (*fn)(void*), void* arg, void* dso);
extern void* __dso_handle;
static void end_of_local(void* p) {
    free(p);
    free(malloc(77));
    atomic_fetch_add(&ended, 1);
}

static void* thread_main(void* arg) {
    (void)arg;
    for (unsigned k = 0; k < KEYS; k++) {
        char* p = malloc(40);
        p[0] = (char)k;
        p[1] = 0;
        REQUIRE_EQ(pthread_setspecific(keys[k], p), 0);
    }
    __cxa_thread_atexit_impl(end_of_local, malloc(5000), &__dso_handle);
    return strdup("handed on");
}

/* Keys beyond the first 32: libc callocs for them in pthread_setspecific. */
static void thread_ends(void) {
    for (unsigned k = 0; k < KEYS; k++) REQUIRE_EQ(pthread_key_create(&keys[k], end_of_key), 0);
    for (unsigned n = 0; n < check_count(5); n++) {
        pthread_t t[THREADS];
        for (int i = 0; i < THREADS; i++) REQUIRE_EQ(pthread_create(&t[i], NULL, thread_main, NULL), 0);
        for (int i = 0; i < THREADS; i++) {
            void* text;
            pthread_join(t[i], &text);
            CHECK_STR(text, "handed on");
            free(text);
        }
        CHECK_EQ(atomic_exchange(&ended, 0), THREADS * (KEYS * ROUNDS + 1));
    }
    for (unsigned k = 0; k < KEYS; k++) pthread_key_delete(keys[k]);
}

/* A thread that only frees. */
static void* frees(void* arg) {
    void** p = arg;
    for (int i = 0; i < 1000; i++) free(p[i]);
    return NULL;
}
static void freed_elsewhere(void) {
    void* p[1000];
    pthread_t t;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 1000; i++) memset(p[i] = malloc((size_t)i + 1), i, (size_t)i + 1);
        REQUIRE_EQ(pthread_create(&t, NULL, frees, p), 0);
        pthread_join(t, NULL);
    }
}

/* ---- fork ---- */

static _Atomic bool over;
static void* busy(void* arg) {
    unsigned seed = (unsigned)(uintptr_t)arg;
    void* table[64] = {0};
    while (!atomic_load(&over)) {
        unsigned at = (seed = seed * 1103515245u + 12345u) >> 16 & 63;
        size_t size = (seed >> 8 & 1023) * ((seed >> 20 & 15) == 0 ? 300 : 1);
        free(table[at]);
        table[at] = (seed & 1) != 0 ? malloc(size) : calloc(1, size);
    }
    for (int i = 0; i < 64; i++) free(table[i]);
    return NULL;
}

static void handler_allocates(void) { free(strdup("a handler of fork")); }

static void in_child(void* arg) {
    char** kept = arg;
    for (int i = 0; i < EARLY; i++) {
        REQUIRE(pre_is_filled(kept[i], (size_t)i * 5, (unsigned)i));
        kept[i] = realloc(kept[i], (size_t)i * 9 + 1);
        REQUIRE(pre_is_filled(kept[i], (size_t)i * 5, (unsigned)i));
    }
    for (int i = 0; i < EARLY; i++) free(kept[i]);
    for (int i = 0; i < 2000; i++) free(malloc((size_t)i * 3));
    pthread_t t;
    REQUIRE_EQ(pthread_create(&t, NULL, thread_main, NULL), 0);
    void* text;
    pthread_join(t, &text);
    free(text);
}

static void forks(void) {
    enum { BUSY = 4 };
    pthread_t t[BUSY];
    char* kept[EARLY];
    REQUIRE_EQ(pthread_atfork(handler_allocates, handler_allocates, handler_allocates), 0);
    for (unsigned k = 0; k < KEYS; k++) REQUIRE_EQ(pthread_key_create(&keys[k], end_of_key), 0);
    for (int i = 0; i < EARLY; i++) {
        kept[i] = malloc((size_t)i * 5);
        pre_fill(kept[i], (size_t)i * 5, (unsigned)i);
    }
    atomic_store(&over, false);
    for (int i = 0; i < BUSY; i++) REQUIRE_EQ(pthread_create(&t[i], NULL, busy, (void*)(uintptr_t)(i + 1)), 0);
    for (unsigned n = 0; n < check_count(20); n++)
        if (!check_child(in_child, kept)) break;
    atomic_store(&over, true);
    for (int i = 0; i < BUSY; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < EARLY; i++) {
        CHECK(pre_is_filled(kept[i], (size_t)i * 5, (unsigned)i));
        free(kept[i]);
    }
    for (unsigned k = 0; k < KEYS; k++) pthread_key_delete(keys[k]);
}

/* ---- exit ---- */

static char* late_text;
static void at_exit(void) {
    char* more = malloc(100000);
    snprintf(more, 100000, "%s, and more", late_text);
    free(late_text);
    (void)!write(3, more, strlen(more));
    free(more);
}
__attribute__((destructor)) static void after_main(void) { free(strdup("nobody reads this")); }

/* A process of its own, whose handler writes what is read here. */
static void exits(void) {
    int pipe_of[2];
    char text[64] = "";
    REQUIRE_EQ(pipe(pipe_of), 0);
    pid_t pid = fork();
    REQUIRE_GE(pid, 0);
    if (pid == 0) {
        dup2(pipe_of[1], 3);
        late_text = strdup("kept until the end");
        atexit(at_exit);
        exit(7);
    }
    close(pipe_of[1]);
    CHECK_GT(read(pipe_of[0], text, sizeof text - 1), 0);
    CHECK_STR(text, "kept until the end, and more");
    close(pipe_of[0]);
    int status;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(WEXITSTATUS(status), 7);
}

static const CheckCase cases[] = {
    CHECK_CASE(constructors), CHECK_CASE(thread_ends), CHECK_CASE(freed_elsewhere),
    CHECK_CASE(forks),        CHECK_CASE(exits),
};
CHECK_MAIN(cases)
