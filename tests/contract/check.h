/*
 * check.h - the few macros and the runner that the contract programs share.
 *
 * A program is a table of named cases. Its main is check_main: without arguments it runs every
 * case, with names it runs only those, with --list it prints them. A failed CHECK prints where,
 * what and both values, and the case goes on; a failed REQUIRE leaves the case. SKIP says why a
 * case cannot run here and leaves it. The last line is always "N passed, M failed".
 *
 * CHECK may be used from any thread. Code that runs in a forked child goes through check_child,
 * which turns the child's failures, signals and hangs into a failure of the case.
 *
 * TSLAB_TEST_SCALE (default 1) multiplies loop counts given through check_count.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define CHECK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHECK_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CHECK_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECK_ASAN 1
#endif
#endif
#ifndef CHECK_TSAN
#define CHECK_TSAN 0
#endif
#ifndef CHECK_ASAN
#define CHECK_ASAN 0
#endif

enum { CHECK_SHOWN_MAX = 20, CHECK_EXIT_SKIP = 77, CHECK_CHILD_SECONDS = 300 /* a child that lives longer hangs */ };

typedef struct CheckCase {
    const char* name;
    void (*run)(void);
} CheckCase;

#define CHECK_CASE(fn) \
    { #fn, fn }

typedef struct CheckState {
    const char* name;
    _Atomic unsigned failures;
    _Atomic bool skipped;
} CheckState;

static CheckState check_state;

/* Counts a failure and says whether it should still be printed. */
static inline bool check_note_failure(void) {
    unsigned before = atomic_fetch_add(&check_state.failures, 1);
    if (before == CHECK_SHOWN_MAX) {
        fprintf(stderr, "  (further failures of %s are counted, not shown)\n", check_state.name);
    }
    return before < CHECK_SHOWN_MAX;
}

static inline bool check_true(bool ok, const char* file, int line, const char* text) {
    if (!ok && check_note_failure()) {
        fprintf(stderr, "%s:%d: %s: failed: %s\n", file, line, check_state.name, text);
    }
    return ok;
}

typedef enum CheckOp { CHECK_OP_EQ, CHECK_OP_NE, CHECK_OP_LE, CHECK_OP_GE, CHECK_OP_GT } CheckOp;

static inline bool check_compare(CheckOp op, const char* file, int line, const char* left, const char* right,
                                 uint64_t lv, uint64_t rv) {
    static const char* const signs[] = {"==", "!=", "<=", ">=", ">"};
    bool ok = op == CHECK_OP_EQ   ? lv == rv
              : op == CHECK_OP_NE ? lv != rv
              : op == CHECK_OP_LE ? lv <= rv
              : op == CHECK_OP_GE ? lv >= rv
                                  : lv > rv;
    if (!ok && check_note_failure()) {
        fprintf(stderr, "%s:%d: %s: failed: %s %s %s: %" PRIu64 " against %" PRIu64 "\n", file, line, check_state.name,
                left, signs[op], right, lv, rv);
    }
    return ok;
}

static inline bool check_pointers(bool equal, const char* file, int line, const char* left, const char* right,
                                  const void* lv, const void* rv) {
    bool ok = (lv == rv) == equal;
    if (!ok && check_note_failure()) {
        fprintf(stderr, "%s:%d: %s: failed: %s %s %s: %p against %p\n", file, line, check_state.name, left,
                equal ? "==" : "!=", right, lv, rv);
    }
    return ok;
}

static inline bool check_strings(const char* file, int line, const char* left, const char* right, const char* lv,
                                 const char* rv) {
    bool ok = lv != NULL && rv != NULL && strcmp(lv, rv) == 0;
    if (!ok && check_note_failure()) {
        fprintf(stderr, "%s:%d: %s: failed: %s equals %s: \"%s\" against \"%s\"\n", file, line, check_state.name, left,
                right, lv != NULL ? lv : "(null)", rv != NULL ? rv : "(null)");
    }
    return ok;
}

#define CHECK(x) check_true((x), __FILE__, __LINE__, #x)
#define CHECK_INT(op, a, b) check_compare((op), __FILE__, __LINE__, #a, #b, (uint64_t)(a), (uint64_t)(b))
#define CHECK_EQ(a, b) CHECK_INT(CHECK_OP_EQ, a, b)
#define CHECK_NE(a, b) CHECK_INT(CHECK_OP_NE, a, b)
#define CHECK_LE(a, b) CHECK_INT(CHECK_OP_LE, a, b)
#define CHECK_GE(a, b) CHECK_INT(CHECK_OP_GE, a, b)
#define CHECK_GT(a, b) CHECK_INT(CHECK_OP_GT, a, b)
#define CHECK_PTR_EQ(a, b) check_pointers(true, __FILE__, __LINE__, #a, #b, (a), (b))
#define CHECK_PTR_NE(a, b) check_pointers(false, __FILE__, __LINE__, #a, #b, (a), (b))
#define CHECK_NULL(a) check_pointers(true, __FILE__, __LINE__, #a, "NULL", (a), NULL)
#define CHECK_STR(a, b) check_strings(__FILE__, __LINE__, #a, #b, (a), (b))
#define REQUIRE(x)                                      \
    do {                                                \
        if (!check_true((x), __FILE__, __LINE__, #x)) { \
            return;                                     \
        }                                               \
    } while (0)
#define NOTE(...)            \
    do {                     \
        printf("  note: ");  \
        printf(__VA_ARGS__); \
        printf("\n");        \
    } while (0)
#define SKIP(...)                                 \
    do {                                          \
        printf("  skipped: ");                    \
        printf(__VA_ARGS__);                      \
        printf("\n");                             \
        atomic_store(&check_state.skipped, true); \
        return;                                   \
    } while (0)

static inline unsigned long check_scale(void) {
    const char* text = getenv("TSLAB_TEST_SCALE");
    unsigned long scale = text != NULL ? strtoul(text, NULL, 10) : 1;
    return scale >= 1 && scale <= 1000000 ? scale : 1;
}

/* A loop count at scale 1, scaled; an instrumented build runs an eighth of it. */
static inline size_t check_count(size_t at_one) {
    size_t n = at_one * check_scale();
    if (CHECK_TSAN || CHECK_ASAN) {
        n /= 8;
    }
    return n > 0 ? n : 1;
}

/* Runs fn(arg) in a child, which is killed when it hangs. True when it exited without a failed
 * check; a child that SKIPs marks the case skipped. */
static inline bool check_child(void (*fn)(void*), void* arg) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        fprintf(stderr, "  fork: %s\n", strerror(errno));
        check_note_failure();
        return false;
    }
    if (pid == 0) {
        alarm(CHECK_CHILD_SECONDS);
        atomic_store(&check_state.failures, 0);
        fn(arg);
        fflush(NULL);
        _exit(atomic_load(&check_state.failures) != 0      ? 1
              : atomic_load(&check_state.skipped) != false ? CHECK_EXIT_SKIP
                                                           : 0);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_EXIT_SKIP) {
        atomic_store(&check_state.skipped, true);
        return true;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return true;
    }
    if (check_note_failure()) {
        if (WIFSIGNALED(status)) {
            fprintf(stderr, "  %s: child ended by signal %d (%s)\n", check_state.name, WTERMSIG(status),
                    strsignal(WTERMSIG(status)));
        } else {
            fprintf(stderr, "  %s: child exited with %d\n", check_state.name, WEXITSTATUS(status));
        }
    }
    return false;
}

static inline bool check_wanted(int argc, char** argv, const char* name) {
    if (argc <= 1) {
        return true;
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static inline int check_main(int argc, char** argv, const CheckCase* cases, size_t count) {
    unsigned passed = 0, failed = 0, skipped = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++) {
            puts(cases[i].name);
        }
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (!check_wanted(argc, argv, cases[i].name)) {
            continue;
        }
        check_state.name = cases[i].name;
        atomic_store(&check_state.failures, 0);
        atomic_store(&check_state.skipped, false);
        printf("%s\n", cases[i].name);
        cases[i].run();
        unsigned failures = atomic_load(&check_state.failures);
        if (failures != 0) {
            printf("  FAILED: %s (%u checks)\n", cases[i].name, failures);
            failed++;
        } else if (atomic_load(&check_state.skipped)) {
            skipped++;
        } else {
            passed++;
        }
    }
    if (skipped != 0) {
        printf("%u skipped\n", skipped);
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0 ? 1 : passed != 0 ? 0 : skipped != 0 ? CHECK_EXIT_SKIP : 2;
}

#define CHECK_MAIN(table) \
    int main(int argc, char** argv) { return check_main(argc, argv, (table), sizeof(table) / sizeof((table)[0])); }

#endif
