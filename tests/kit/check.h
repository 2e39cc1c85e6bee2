/*
 * check.h - assertions of every C test, and the runner of cases.
 *
 *   CHECK...    says where, what and both values when it does not hold, and goes on; its value is whether it held
 *   REQUIRE...  says the same, and then nothing behind it is done
 *   FAIL, SKIP  say why, and then nothing behind them is done
 *
 * The suffixes are the same for both: none (a condition), _EQ _NE _LE _GE _GT (whole numbers and pointers), _BETWEEN,
 * _NULL, _STR, and _HAS (a text, a part of it). REQUIRE_OR has words of its own for the condition.
 *
 * A program is a table of named cases and CHECK_MAIN: without arguments it runs every case, with names only those, with
 * --list it prints them. The last line is always "N passed, M failed". A program without cases, which does one thing in
 * its main, looks at check_failures.
 *
 * Any thread may do any of these. What REQUIRE ends is the case, on the thread that runs it; a forked child; else,
 * where nobody could take over, the program, by abort (SKIP: by 77). Code for a child goes through check_child, which turns the child's
 * failures, signals and hangs into a failure of the case.
 *
 * TSLAB_TEST_SCALE (default 1; `make test` has less, `make check` more) multiplies loop counts given through check_count.
 */
#ifndef TESTS_KIT_CHECK_H
#define TESTS_KIT_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
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

/* What part of the work an instrumented build does; a program may define another one. */
#ifndef CHECK_DIVISOR
#define CHECK_DIVISOR (CHECK_TSAN || CHECK_ASAN ? 8 : 1)
#endif

enum { CHECK_SHOWN_MAX = 20, CHECK_EXIT_SKIP = 77, CHECK_CHILD_SECONDS = 300 /* a child that lives longer hangs; more above scale 1 */ };

typedef struct CheckCase {
    const char* name;
    void (*run)(void);
    void (*before)(void); /* NULL: nothing; when it fails, the others do not run */
    void (*after)(void);  /* NULL: nothing; runs after a failure, too */
} CheckCase;

#define CHECK_CASE(fn) CHECK_CASE_WITH(fn, NULL, NULL)
#define CHECK_CASE_WITH(fn, before, after) \
    { #fn, fn, before, after }

static struct {
    const char* name; /* of the case that runs; NULL: the program has none */
    _Atomic unsigned failures;
    _Atomic bool skipped;
    _Atomic bool runs;        /* and has not come to its end */
    pid_t process;            /* that runs it, and not a child of it */
    jmp_buf end;              /* of the step that runs */
    void (*last_words)(void); /* what a program adds to a failure that ends it; NULL: nothing */
} check_state;

static _Thread_local bool check_has_case; /* on the thread that runs it */

/* ---- failure ---- */

/* Of the case, or of a program without cases, so far. */
static inline unsigned check_failures(void) { return atomic_load(&check_state.failures); }

/* Counts, and says where and what in one line. */
__attribute__((format(printf, 3, 4))) static inline void check_failed(const char* file, int line, const char* format,
                                                                      ...) {
    unsigned before = atomic_fetch_add(&check_state.failures, 1);
    if (before >= CHECK_SHOWN_MAX) {
        if (before == CHECK_SHOWN_MAX) fputs("  (further failures are counted, not shown)\n", stderr);
        return;
    }
    va_list args;
    va_start(args, format);
    flockfile(stderr);
    if (check_state.name != NULL)
        fprintf(stderr, "%s:%d: %s: failed: ", file, line, check_state.name);
    else
        fprintf(stderr, "FAILED %s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(args);
}

__attribute__((noreturn)) static inline void check_leave(void) {
    bool child = check_state.name != NULL && getpid() != check_state.process;
    if (check_has_case && !child) longjmp(check_state.end, 1);
    bool failed = check_failures() != 0;
    if (failed && check_state.last_words != NULL) check_state.last_words();
    fflush(NULL);
    if (child) _exit(failed ? 1 : CHECK_EXIT_SKIP);
    if (!failed && check_state.name == NULL) exit(CHECK_EXIT_SKIP);
    abort();
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void check_skip(const char* format, ...) {
    va_list args;
    va_start(args, format);
    fputs("  skipped: ", stdout);
    vprintf(format, args);
    fputc('\n', stdout);
    va_end(args);
    atomic_store(&check_state.skipped, true);
    check_leave();
}

/* ---- assertions ---- */

static inline bool check_true(const char* file, int line, const char* text, bool ok) {
    if (!ok) check_failed(file, line, "%s", text);
    return ok;
}

typedef struct CheckNumber {
    char text[24];
} CheckNumber;

/* Large ones are bits and addresses mostly. */
static inline CheckNumber check_number(uint64_t value) {
    CheckNumber n;
    snprintf(n.text, sizeof n.text, value >> 32 != 0 ? "%#" PRIx64 : "%" PRIu64, value);
    return n;
}

static inline bool check_compare(const char* file, int line, const char* left, const char* op, const char* right,
                                 uint64_t l, uint64_t r) {
    bool ok = op[0] == '=' ? l == r : op[0] == '!' ? l != r : op[0] == '<' ? l <= r : op[1] == '=' ? l >= r : l > r;
    if (!ok)
        check_failed(file, line, "%s %s %s: %s against %s", left, op, right, check_number(l).text,
                     check_number(r).text);
    return ok;
}

static inline bool check_between(const char* file, int line, const char* text, uint64_t value, uint64_t least,
                                 uint64_t most) {
    bool ok = value >= least && value <= most;
    if (!ok)
        check_failed(file, line, "%s is %s, not between %s and %s", text, check_number(value).text,
                     check_number(least).text, check_number(most).text);
    return ok;
}

static inline bool check_strings(const char* file, int line, const char* left, const char* right, const char* l,
                                 const char* r) {
    bool ok = l != NULL && r != NULL && strcmp(l, r) == 0;
    if (!ok)
        check_failed(file, line, "%s equals %s: \"%s\" against \"%s\"", left, right, l != NULL ? l : "(null)",
                     r != NULL ? r : "(null)");
    return ok;
}

static inline bool check_has(const char* file, int line, const char* text, const char* part, const char* t,
                             const char* p) {
    bool ok = t != NULL && strstr(t, p) != NULL;
    if (!ok) check_failed(file, line, "%s has %s: \"%s\" is not in:\n%s", text, part, p, t != NULL ? t : "(null)");
    return ok;
}

/* Texts are made where the arguments are still what the test wrote. */
#define CHECK_TRUE_(text, x) check_true(__FILE__, __LINE__, text, (x))
#define CHECK_COMPARE_(left, a, op, right, b) \
    check_compare(__FILE__, __LINE__, left, op, right, (uint64_t)(a), (uint64_t)(b))
#define CHECK_BETWEEN_(text, x, least, most) \
    check_between(__FILE__, __LINE__, text, (uint64_t)(x), (uint64_t)(least), (uint64_t)(most))
#define CHECK_STR_(left, a, right, b) check_strings(__FILE__, __LINE__, left, right, (a), (b))
#define CHECK_HAS_(text, a, part, b) check_has(__FILE__, __LINE__, text, part, (a), (b))
#define CHECK_OR_LEAVE_(ok) ((ok) ? (void)0 : check_leave())

#define CHECK(x) CHECK_TRUE_(#x, x)
#define CHECK_EQ(a, b) CHECK_COMPARE_(#a, a, "==", #b, b)
#define CHECK_NE(a, b) CHECK_COMPARE_(#a, a, "!=", #b, b)
#define CHECK_LE(a, b) CHECK_COMPARE_(#a, a, "<=", #b, b)
#define CHECK_GE(a, b) CHECK_COMPARE_(#a, a, ">=", #b, b)
#define CHECK_GT(a, b) CHECK_COMPARE_(#a, a, ">", #b, b)
#define CHECK_BETWEEN(x, least, most) CHECK_BETWEEN_(#x, x, least, most)
#define CHECK_NULL(a) CHECK_COMPARE_(#a, a, "==", "NULL", NULL)
#define CHECK_STR(a, b) CHECK_STR_(#a, a, #b, b)
#define CHECK_HAS(text, part) CHECK_HAS_(#text, text, #part, part)

#define REQUIRE(x) CHECK_OR_LEAVE_(CHECK_TRUE_(#x, x))
#define REQUIRE_EQ(a, b) CHECK_OR_LEAVE_(CHECK_COMPARE_(#a, a, "==", #b, b))
#define REQUIRE_NE(a, b) CHECK_OR_LEAVE_(CHECK_COMPARE_(#a, a, "!=", #b, b))
#define REQUIRE_LE(a, b) CHECK_OR_LEAVE_(CHECK_COMPARE_(#a, a, "<=", #b, b))
#define REQUIRE_GE(a, b) CHECK_OR_LEAVE_(CHECK_COMPARE_(#a, a, ">=", #b, b))
#define REQUIRE_GT(a, b) CHECK_OR_LEAVE_(CHECK_COMPARE_(#a, a, ">", #b, b))
#define REQUIRE_BETWEEN(x, least, most) CHECK_OR_LEAVE_(CHECK_BETWEEN_(#x, x, least, most))
#define REQUIRE_NULL(a) CHECK_OR_LEAVE_(CHECK_COMPARE_(#a, a, "==", "NULL", NULL))
#define REQUIRE_STR(a, b) CHECK_OR_LEAVE_(CHECK_STR_(#a, a, #b, b))
#define REQUIRE_HAS(text, part) CHECK_OR_LEAVE_(CHECK_HAS_(#text, text, #part, part))
#define REQUIRE_OR(x, ...) ((x) ? (void)0 : FAIL(__VA_ARGS__))

#define FAIL(...) (check_failed(__FILE__, __LINE__, __VA_ARGS__), check_leave())
#define SKIP(...) check_skip(__VA_ARGS__)
#define NOTE(...)            \
    do {                     \
        printf("  note: ");  \
        printf(__VA_ARGS__); \
        printf("\n");        \
    } while (0)

/* ---- how much ---- */

static inline double check_scale(void) {
    const char* text = getenv("TSLAB_TEST_SCALE");
    if (text == NULL) return 1;
    char* end = NULL;
    double scale = strtod(text, &end);
    if (end != text && *end == 0 && scale > 0 && scale <= 1e6) return scale;
    fprintf(stderr, "TSLAB_TEST_SCALE is a number above 0 and at most 1000000, not '%s'\n", text);
    exit(2);
}

static inline size_t check_scaled(size_t at_one, double scale) {
    double n = (double)at_one * scale / CHECK_DIVISOR;
    return n < 1 ? 1 : (size_t)n;
}

/* A loop count at scale 1, scaled: of what is drawn or raced again in each turn. */
static inline size_t check_count(size_t at_one) { return check_scaled(at_one, check_scale()); }

/* Like check_count, but no less below scale 1: of turns that have to outnumber something, records or pages perhaps. */
static inline size_t check_count_whole(size_t at_one) {
    return check_scaled(at_one, check_scale() > 1 ? check_scale() : 1);
}

/* ---- the system ---- */

/* Returns true if the kernel charges what may be written (overcommit_memory = 2). The library then makes pages of ended
 * phases read-only, lets phases share none, and maps no more than it uses. */
static inline bool check_charges_writable(void) {
    FILE* f = fopen("/proc/sys/vm/overcommit_memory", "r");
    int how = f != NULL ? fgetc(f) : '0';
    if (f != NULL) fclose(f);
    return how == '2';
}
#define CHECK_NEEDS_OVERCOMMIT() \
    do {                         \
        if (check_charges_writable()) SKIP("the kernel charges what may be written"); \
    } while (0)

/* ---- children ---- */

/* Runs fn(arg) in a child, which is killed when it hangs. True when it exited without a failed
 * check; a child that SKIPs marks the case skipped. */
static inline bool check_child(void (*fn)(void*), void* arg) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm((unsigned)check_count_whole(CHECK_CHILD_SECONDS));
        atomic_store(&check_state.failures, 0);
        fn(arg);
        fflush(NULL);
        _exit(check_failures() != 0 ? 1 : atomic_load(&check_state.skipped) ? CHECK_EXIT_SKIP : 0);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == CHECK_EXIT_SKIP) {
        atomic_store(&check_state.skipped, true);
        return true;
    }
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    if (pid < 0)
        check_failed(__FILE__, __LINE__, "fork: %s", strerror(errno));
    else if (WIFSIGNALED(status))
        check_failed(__FILE__, __LINE__, "child ended by signal %d (%s)", WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
    else
        check_failed(__FILE__, __LINE__, "child exited with %d", WEXITSTATUS(status));
    return false;
}

/* ---- the runner ---- */

/* Whether it came to its end. */
static inline bool check_step(void (*step)(void)) {
    if (step == NULL) return true;
    if (setjmp(check_state.end) != 0) return false;
    step();
    return true;
}

typedef struct CheckTally {
    unsigned passed, failed, skipped;
} CheckTally;

static inline void check_run_case(const CheckCase* c, CheckTally* tally) {
    check_state.name = c->name;
    check_state.process = getpid();
    check_has_case = true;
    atomic_store(&check_state.runs, true);
    atomic_store(&check_state.failures, 0);
    atomic_store(&check_state.skipped, false);
    printf("%s\n", c->name);
    if (check_step(c->before)) {
        check_step(c->run);
        check_step(c->after);
    }
    check_has_case = false;
    atomic_store(&check_state.runs, false);
    unsigned failures = check_failures();
    if (failures != 0) {
        printf("  FAILED: %s (%u checks)\n", c->name, failures);
        tally->failed++;
    } else if (atomic_load(&check_state.skipped)) {
        tally->skipped++;
    } else {
        tally->passed++;
    }
}

static inline bool check_wanted(int argc, char** argv, const char* name) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return argc <= 1;
}

/* Somebody called exit in the middle of a case: says so, and who that was is on the stack of a debugger. */
static void check_at_exit(void) {
    if (atomic_load(&check_state.runs) && getpid() == check_state.process)
        fprintf(stderr, "%s: the program exits in the middle of it\n", check_state.name);
}

/* TSLAB_TEST_LEAVES has a line "CASE REASON" for each case that a platform leaves out (platforms/left_out.list). Says so
 * if `name` is one. */
static inline bool check_left_out(const char* name) {
    const char* line = getenv("TSLAB_TEST_LEAVES");
    size_t n = strlen(name);
    while (line != NULL && (strncmp(line, name, n) != 0 || line[n] != ' ')) {
        line = strchr(line, '\n');
        if (line != NULL) line++;
    }
    if (line != NULL) printf("%s\n  skipped: %.*s\n", name, (int)strcspn(line + n + 1, "\n"), line + n + 1);
    return line != NULL;
}

/* The exit status. */
static inline int check_main(int argc, char** argv, const CheckCase* cases, size_t count) {
    CheckTally tally = {0, 0, 0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(check_at_exit);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++) puts(cases[i].name);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (!check_wanted(argc, argv, cases[i].name)) continue;
        if (check_left_out(cases[i].name)) tally.skipped++;
        else check_run_case(&cases[i], &tally);
    }
    if (tally.skipped != 0) printf("%u skipped\n", tally.skipped);
    printf("%u passed, %u failed\n", tally.passed, tally.failed);
    return tally.failed != 0 ? 1 : tally.passed != 0 ? 0 : tally.skipped != 0 ? CHECK_EXIT_SKIP : 2;
}

/* For a main that does something else, too: the exit status. With arguments of its own it gives 0 and NULL. */
#define CHECK_RUN(argc, argv, table) check_main((argc), (argv), (table), sizeof(table) / sizeof((table)[0]))
#define CHECK_MAIN(table) \
    int main(int argc, char** argv) { return CHECK_RUN(argc, argv, table); }

#endif
