/*
 * test_forked_alone.c - a child of a process that has no other thread: it goes on as its parent does.
 */
#define KIT_RING_BY_CLASS
#include "kit/one.h"

#include "heap/heap.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 64 << 10, SIZE = 200 };

static void* p[N];

/* Exit code of a child that runs fn. */
static int in_child(int (*fn)(void)) {
    int status = 0;
    pid_t child = fork();
    REQUIRE_NE(child, -1);
    if (child == 0) _exit(fn());
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int few_faults(void) {
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) == 0 && used.ru_minflt < 250 ? (int)used.ru_minflt : 250;
}

static int lives_on(void) {
    char why[160];
    for (unsigned n = 0; n < N; n += 3)
        if (!slab_free_checked(a, p[n]) || (p[n] = slab_malloc(a, SIZE)) == NULL) return 1;
    epoch_domain_t* d = epoch_domain_begin(a, "phase");
    if (slab_malloc(a, SIZE) == NULL || !epoch_domain_end(d)) return 2;
    EpochId was = epoch_current(a);
    (void)epoch_advance_id(a);
    if (!epoch_close_ex(a, was, EPOCH_RELEASE, NULL)) return 3;
    if (slab_free_checked(a, p[0])) return 4;
    return tsi_check_allocator(a, why, sizeof why) ? 0 : 5;
}

static void a_child_goes_on(void) {
    if (!tsi_os_is_alone()) SKIP("libc does not say that there is no other thread");
    int little = in_child(few_faults);
    for (unsigned n = 0; n < N; n++) REQUIRE((p[n] = slab_malloc(a, SIZE)) != NULL);
    for (unsigned n = 0; n < N; n += 7) {
        slab_free(a, p[n]);
        p[n] = NULL;
    }
    REQUIRE_LE(in_child(few_faults), little + 8);
    for (unsigned n = 0; n < N; n += 7) REQUIRE((p[n] = slab_malloc(a, SIZE)) != NULL);
    REQUIRE_EQ(in_child(lives_on), 0);
    for (unsigned n = 0; n < N; n++) REQUIRE(slab_free_checked(a, p[n])); /* the parent's are untouched */
}

static void* nothing(void* unused) { return unused; }

/* Run last: libc does not take it back. */
static void a_thread_is_noticed(void) {
    pthread_t t;
    REQUIRE_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
    bool alone = tsi_os_is_alone();
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    REQUIRE(!alone);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE_WITH(a_child_goes_on, kit_open_cold, kit_close),
        CHECK_CASE_WITH(a_thread_is_noticed, kit_open_cold, kit_close),
    };
    return CHECK_RUN(argc, argv, tests);
}
