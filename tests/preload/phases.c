/*
 * phases.c - phases under the preload library: to begin, end, nest, suspend and leave them, on threads that stay and that
 * go, in a fork child, and what is refused.
 */
#include "preload/preloaded.h"

#include "temporal_slab/phase.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void* (*volatile make)(size_t) = malloc; /* not known to the compiler */

static tslab_phase* begin(const char* label) {
    tslab_phase* phase = tslab_phase_begin(label);
    REQUIRE(phase != NULL);
    return phase;
}
static tslab_phase_account end(tslab_phase* phase) {
    tslab_phase_account a;
    REQUIRE(tslab_phase_end_account(phase, &a));
    CHECK_EQ(a.objects_allocated, a.objects_freed + a.objects_escaped);
    CHECK_EQ(a.bytes_allocated, a.bytes_freed + a.bytes_escaped);
    return a;
}

static void accounts(void) {
    pre_require();
    CHECK(tslab_phase_is_there());
    tslab_phase* phase = begin("accounts");
    char* p = make(100);
    char* text = strdup("in the phase, whoever calls malloc");
    size_t bytes = malloc_usable_size(p) + malloc_usable_size(text);
    free(p);
    tslab_phase_account a = end(phase);
    CHECK_EQ(a.objects_allocated, 2);
    CHECK_EQ(a.bytes_allocated, bytes);
    CHECK_EQ(a.objects_escaped, 1);
    CHECK_STR(text, "in the phase, whoever calls malloc"); /* as valid as before */
    free(text);
    a = end(begin(NULL));
    CHECK_EQ(a.objects_allocated, 0);
}

static void they_nest(void) {
    tslab_phase *one = begin("one"), *two = begin("two");
    free(make(50));
    errno = 77;
    CHECK(!tslab_phase_end(one)); /* not the innermost */
    CHECK(!tslab_phase_suspend(one));
    CHECK(!tslab_phase_resume(one));
    CHECK(!tslab_phase_resume(two));
    CHECK(!tslab_phase_end(NULL));
    CHECK(!tslab_phase_outer_leave());
    CHECK_EQ(errno, 77);
    CHECK_EQ(end(two).objects_allocated, 1);
    free(make(50));
    free(make(50));
    CHECK_EQ(end(one).objects_allocated, 2);
    CHECK_EQ(errno, 77);
}

static void outer_ones(void) {
    tslab_phase* phase = begin("outer");
    CHECK(tslab_phase_outer());
    free(make(10));
    CHECK(tslab_phase_outer());
    tslab_phase* inner = begin("inner");
    free(make(10));
    free(make(10));
    CHECK_EQ(end(inner).objects_allocated, 2);
    CHECK(!tslab_phase_end(phase));
    free(make(10));
    CHECK(tslab_phase_outer_leave());
    free(make(10));
    CHECK(tslab_phase_outer_leave());
    free(make(10));
    CHECK_EQ(end(phase).objects_allocated, 1);
}

/* One thread, many requests in turns; each is ended by whoever has it. */
static void* ends_it(void* phase) {
    CHECK_EQ(end(phase).objects_allocated, 2);
    return NULL;
}
static void* goes_on(void* phase) {
    REQUIRE(tslab_phase_resume(phase));
    free(make(33));
    REQUIRE(tslab_phase_suspend(phase));
    return NULL;
}
static void suspended_ones(void) {
    for (int n = 0; n < 20; n++) {
        pthread_t t;
        tslab_phase* phase = begin("suspended");
        void* p = make(33);
        REQUIRE(tslab_phase_suspend(phase));
        CHECK(!tslab_phase_suspend(phase));
        free(make(33)); /* the process's */
        REQUIRE_EQ(pthread_create(&t, NULL, goes_on, phase), 0);
        pthread_join(t, NULL);
        REQUIRE_EQ(pthread_create(&t, NULL, ends_it, phase), 0);
        pthread_join(t, NULL);
        pre_fill(p, 33, 1);
        free(p);
    }
}

/* A thread that exits inside of phases ends them by draining: what it made is as valid as before. */
static void* leaves(void* arg) {
    char** made = arg;
    for (int k = 0; k < 3; k++) {
        (void)begin("left");
        made[k] = make(200);
        pre_fill(made[k], 200, (unsigned)k);
    }
    (void)tslab_phase_outer();
    return NULL;
}
static void threads_that_leave(void) {
    char* made[40][3];
    for (int n = 0; n < 40; n++) {
        pthread_t t;
        REQUIRE_EQ(pthread_create(&t, NULL, leaves, made[n]), 0);
        pthread_join(t, NULL);
        for (int k = 0; k < 50; k++) free(make(200)); /* what had gone would be used again */
    }
    for (int n = 0; n < 40; n++)
        for (int k = 0; k < 3; k++) {
            CHECK(pre_is_filled(made[n][k], 200, (unsigned)k));
            free(made[n][k]);
        }
}

static void fork_children(void) {
    tslab_phase *phase = begin("forks"), *other = begin("suspended at the fork");
    char* p = make(100);
    pre_fill(p, 100, 5);
    REQUIRE(tslab_phase_suspend(other));
    free(make(20));
    for (int n = 0; n < 10; n++) {
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            free(make(20));
            bool ok = end(phase).objects_allocated == 2 && end(other).objects_escaped == 1 && pre_is_filled(p, 100, 5);
            free(p);
            phase = tslab_phase_begin("of the child");
            free(make(20));
            ok &= tslab_phase_end(phase);
            _exit(ok ? 0 : 1);
        }
        int status;
        REQUIRE_EQ(waitpid(pid, &status, 0), pid);
        CHECK_EQ(status, 0);
    }
    CHECK_EQ(end(phase).objects_allocated, 1);
    CHECK_EQ(end(other).objects_escaped, 1);
    CHECK(pre_is_filled(p, 100, 5));
    free(p);
}

/* What libc and the loader keep is nobody's request's. */
static void* nothing(void* arg) { return arg; }
static void libc_keeps(void) {
    pthread_t t;
    tslab_phase* phase = begin("libc keeps");
    FILE* f = fopen("/proc/self/maps", "r");
    REQUIRE(f != NULL);
    int c = fgetc(f); /* with its buffer */
    void* library = dlopen("libm.so.6", RTLD_NOW);
    CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL || setlocale(LC_ALL, "C") != NULL);
    REQUIRE_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
    pthread_join(t, NULL);
    tslab_phase_account a = end(phase);
    CHECK_EQ(a.objects_allocated, 0);
    CHECK(c != EOF && library != NULL);
    fclose(f);
    dlclose(library);
    phase = begin("libc makes");
    char* line = NULL;
    size_t room = 0;
    f = fopen("/proc/self/maps", "r");
    REQUIRE(f != NULL && getline(&line, &room, f) > 0);
    fclose(f);
    a = end(phase);
    CHECK_EQ(a.objects_escaped, 1); /* the line is the caller's */
    free(line);
}

static void what_is_expected(void) {
    CHECK(tslab_phase_expect("expected", 1, 500));
    CHECK(!tslab_phase_expect(NULL, 1, 500));
    CHECK(!tslab_phase_expect("", 1, 500));
    CHECK(tslab_phase_expect("expected", 0, 0));
}

/* A leak of one object a round, which the label names, and none. */
static unsigned leaks;
static void round_of(void* ctx) {
    tslab_phase* phase = begin("gated");
    free(make(100));
    for (unsigned n = 0; n < *(unsigned*)ctx; n++) leaks += make(48) != NULL;
    (void)end(phase);
}
static void the_gate(void) {
    char why[256];
    unsigned none = 0, one = 1;
    errno = 77;
    CHECK(tslab_phase_gate(2, 5, 0, 0, round_of, &none, why, sizeof why));
    CHECK_STR(why, "");
    CHECK(!tslab_phase_gate(2, 5, 0, 0, round_of, &one, why, sizeof why));
    CHECK_HAS(why, "\"gated\" retains 3 objects (144 bytes) after round 1");
    CHECK_EQ(leaks, 3);
    CHECK(tslab_phase_gate(2, 5, 1, 48, round_of, &one, NULL, 0) || leaks > 3);
    CHECK_EQ(errno, 77);
}

/* Threads that begin and end phases, and free each other's objects, beside threads that have none. */
enum { THREADS = 6 };
static void* _Atomic boxes[64];
static void* works(void* arg) {
    unsigned seed = (unsigned)(uintptr_t)arg + 1;
    for (unsigned n = 0; n < check_count(3000); n++) {
        tslab_phase* phase = seed % 3 != 0 ? tslab_phase_begin("works") : NULL;
        for (unsigned k = 0; k < 20; k++) {
            seed = seed * 1103515245 + 12345;
            size_t size = 1 + (seed >> 16) % 600;
            char* p = make(size);
            *p = (char)size;
            p = atomic_exchange(&boxes[seed % 64], p);
            free(p);
        }
        if (phase != NULL) (void)end(phase);
    }
    return NULL;
}
static void threads_beside(void) {
    pthread_t t[THREADS];
    for (uintptr_t n = 0; n < THREADS; n++) REQUIRE_EQ(pthread_create(&t[n], NULL, works, (void*)n), 0);
    for (int n = 0; n < THREADS; n++) pthread_join(t[n], NULL);
    for (int n = 0; n < 64; n++) free(atomic_exchange(&boxes[n], NULL));
}

int main(int argc, char** argv) {
    static const CheckCase tests[] = {
        CHECK_CASE(accounts),       CHECK_CASE(they_nest),          CHECK_CASE(outer_ones),
        CHECK_CASE(suspended_ones), CHECK_CASE(threads_that_leave), CHECK_CASE(fork_children),
        CHECK_CASE(libc_keeps),     CHECK_CASE(what_is_expected),   CHECK_CASE(the_gate),
        CHECK_CASE(threads_beside),
    };
    return CHECK_RUN(argc, argv, tests);
}
