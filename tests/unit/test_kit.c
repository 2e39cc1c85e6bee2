/*
 * test_kit.c - the assertions themselves: runs this program again with a case that fails, and looks at what it said, what
 * it ended by and what it still did.
 */
#include "kit/fixture.h"

#include <signal.h>
#include <sys/resource.h>

/* ---- what fails ---- */

static void nothing_wrong(void) {
    CHECK(true);
    REQUIRE_EQ(2 + 2, 4);
    REQUIRE_BETWEEN(5, 5, 5);
    REQUIRE_STR("a", "a");
    CHECK_HAS("abc", "bc");
    CHECK_NULL(NULL);
}

static void each_goes_on(void) {
    const char* text = "one";
    CHECK(text[0] == 't');
    CHECK_EQ(2 + 2, 5);
    CHECK_NE(sizeof(char), 1);
    CHECK_LE(UINT64_MAX, 1);
    CHECK_GE(0, 7);
    CHECK_GT(7, 7);
    CHECK_BETWEEN(text[0], 1, 2);
    CHECK_NULL((void*)(uintptr_t)16);
    CHECK_STR(text, "two");
    CHECK_HAS(text, "two");
    CHECK_STR(NULL, text);
    puts("the end");
}

static void deep(int n) {
    if (n > 0) deep(n - 1);
    REQUIRE_GE(n, 1);
}
static void leaves_from_any_depth(void) {
    deep(3);
    puts("the end");
}
static void tidy(void) { puts("tidied up"); }
static void unprepared(void) { FAIL("no %s", "tools"); }
static void nothing_without_tools(void) { puts("the end"); }
static void skips(void) {
    SKIP("only %d of them", 3);
    puts("the end");
}

static void* checks(void* unused) {
    CHECK_EQ(1, 2);
    return unused;
}
static void* requires(void* unused) {
    REQUIRE_EQ(1, 2);
    return unused;
}
static void on_another_thread(void) { kit_on_thread(checks, NULL); }
static void given_up_by_another_thread(void) { kit_on_thread(requires, NULL); }

static void fails_in_it(void* unused) {
    (void)unused;
    REQUIRE_OR(getppid() == 0, "a child of %s", "somebody");
    puts("the end");
}
static void dies_in_it(void* unused) {
    (void)unused;
    raise(SIGKILL);
}
static void skips_in_it(void* unused) {
    (void)unused;
    SKIP("children have none");
}
static void in_a_child(void) {
    CHECK(!check_child(fails_in_it, NULL));
    CHECK(!check_child(dies_in_it, NULL));
}
static void skipped_by_a_child(void) { CHECK(check_child(skips_in_it, NULL)); }

static void many(void) {
    for (int i = 0; i < 100; i++) CHECK_EQ(i, -1);
}

static const CheckCase broken[] = {
    CHECK_CASE(nothing_wrong),
    CHECK_CASE(each_goes_on),
    CHECK_CASE_WITH(leaves_from_any_depth, NULL, tidy),
    CHECK_CASE_WITH(nothing_without_tools, unprepared, tidy),
    CHECK_CASE(skips),
    CHECK_CASE(on_another_thread),
    CHECK_CASE(given_up_by_another_thread),
    CHECK_CASE(in_a_child),
    CHECK_CASE(skipped_by_a_child),
    CHECK_CASE(many),
};

/* ---- what is said of it ---- */

static char said[16384];

/* Of this program with that argument: the exit status, or 128 + the signal that ended it. */
static int run(const char* how, const char* name) {
    int ends[2], status = 0;
    REQUIRE_EQ(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        kit_exec_self((char*[]){"test_kit", (char*)(uintptr_t)how, (char*)(uintptr_t)name, NULL});
        _exit(127);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0;) n += (size_t)got;
    said[n] = 0;
    close(ends[0]);
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void a_case_that_passes(void) {
    REQUIRE_EQ(run("broken", "nothing_wrong"), 0);
    REQUIRE_STR(said, "nothing_wrong\n1 passed, 0 failed\n");
    REQUIRE_EQ(run("broken", "no_such_case"), 2);
}

static void every_kind_says_both_values(void) {
    static const char* const lines[] = {
        "test_kit.c:", ": each_goes_on: failed: text[0] == 't'\n", ": failed: 2 + 2 == 5: 4 against 5\n",
        ": failed: sizeof(char) != 1: 1 against 1\n", ": failed: UINT64_MAX <= 1: 0xffffffffffffffff against 1\n",
        ": failed: 0 >= 7: 0 against 7\n", ": failed: 7 > 7: 7 against 7\n",
        ": failed: text[0] is 111, not between 1 and 2\n", "== NULL: 16 against 0\n",
        ": failed: text equals \"two\": \"one\" against \"two\"\n", ": failed: text has \"two\": \"two\" is not in:\none\n",
        ": failed: NULL equals text: \"(null)\" against \"one\"\n", "the end\n", "  FAILED: each_goes_on (11 checks)\n",
        "0 passed, 1 failed\n"};
    REQUIRE_EQ(run("broken", "each_goes_on"), 1);
    for (size_t n = 0; n < sizeof lines / sizeof lines[0]; n++) CHECK_HAS(said, lines[n]);
}

static void what_is_behind_is_not_done(void) {
    REQUIRE_EQ(run("broken", "leaves_from_any_depth"), 1);
    REQUIRE_HAS(said, "failed: n >= 1: 0 against 1\n");
    REQUIRE_HAS(said, "tidied up\n");
    REQUIRE_HAS(said, "(1 checks)\n");
    REQUIRE_NULL(strstr(said, "the end"));
    REQUIRE_EQ(run("broken", "nothing_without_tools"), 1);
    REQUIRE_HAS(said, "nothing_without_tools: failed: no tools\n");
    REQUIRE_NULL(strstr(said, "the end"));
    REQUIRE_NULL(strstr(said, "tidied up"));
}

static void skips_have_a_reason(void) {
    REQUIRE_EQ(run("broken", "skips"), CHECK_EXIT_SKIP);
    REQUIRE_STR(said, "skips\n  skipped: only 3 of them\n1 skipped\n0 passed, 0 failed\n");
    REQUIRE_EQ(run("broken", "skipped_by_a_child"), CHECK_EXIT_SKIP);
    REQUIRE_HAS(said, "  skipped: children have none\n");
}

static void other_threads(void) {
    REQUIRE_EQ(run("broken", "on_another_thread"), 1);
    REQUIRE_HAS(said, "on_another_thread: failed: 1 == 2: 1 against 2\n");
    REQUIRE_HAS(said, "0 passed, 1 failed\n");
    REQUIRE_EQ(run("broken", "given_up_by_another_thread"), 128 + SIGABRT);
    REQUIRE_HAS(said, "given_up_by_another_thread: failed: 1 == 2: 1 against 2\n");
}

static void children(void) {
    REQUIRE_EQ(run("broken", "in_a_child"), 1);
    REQUIRE_HAS(said, "in_a_child: failed: a child of somebody\n");
    REQUIRE_HAS(said, "failed: child exited with 1\n");
    REQUIRE_HAS(said, "failed: child ended by signal 9 ");
    REQUIRE_HAS(said, "  FAILED: in_a_child (2 checks)\n0 passed, 1 failed\n");
    REQUIRE_NULL(strstr(said, "the end"));
}

static void not_all_of_many(void) {
    REQUIRE_EQ(run("broken", "many"), 1);
    REQUIRE_HAS(said, "failed: i == -1: 19 against 0xffffffffffffffff\n");
    REQUIRE_NULL(strstr(said, "i == -1: 20 "));
    REQUIRE_HAS(said, "(100 checks)\n");
}

static void programs_without_cases(void) {
    REQUIRE_EQ(run("plain", "check"), 1);
    REQUIRE_HAS(said, "FAILED ");
    REQUIRE_HAS(said, "test_kit.c:");
    REQUIRE_HAS(said, ": 1 == 2: 1 against 2\nthe end\n");
    REQUIRE_EQ(run("plain", "require"), 128 + SIGABRT);
    REQUIRE_HAS(said, ": plain 7\nlast words\n");
    REQUIRE_NULL(strstr(said, "the end"));
    REQUIRE_EQ(run("plain", "skip"), CHECK_EXIT_SKIP);
    REQUIRE_STR(said, "  skipped: nothing here\n");
    REQUIRE_NULL(strstr(said, "the end"));
}

static void last_words(void) { fputs("last words\n", stderr); }
static int plain(const char* how) {
    check_state.last_words = last_words;
    REQUIRE_OR(strcmp(how, "require") != 0, "plain %d", 7);
    if (strcmp(how, "skip") == 0) SKIP("nothing %s", "here");
    CHECK_EQ(1, 2);
    puts("the end");
    return check_failures() != 0;
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(a_case_that_passes),
        CHECK_CASE(every_kind_says_both_values),
        CHECK_CASE(what_is_behind_is_not_done),
        CHECK_CASE(skips_have_a_reason),
        CHECK_CASE(other_threads),
        CHECK_CASE(children),
        CHECK_CASE(not_all_of_many),
        CHECK_CASE(programs_without_cases),
    };
    if (argc > 2 && strcmp(argv[1], "plain") == 0) return plain(argv[2]);
    if (argc > 2 && strcmp(argv[1], "broken") == 0) return CHECK_RUN(argc - 1, argv + 1, broken);
    if (run("broken", "each_goes_on") != 1 || run("broken", "leaves_from_any_depth") != 1) {
        fputs("FAILED: failures are not counted, so nothing below would tell\n", stderr);
        return 1;
    }
    return CHECK_RUN(argc, argv, tests);
}
