/*
 * environment.c - options through TSLAB_OPTIONS="name=value,...". The program runs itself again
 * with the variable set; TSLAB_TEST_ROLE names the function that looks at the result. What the
 * library does not understand is ignored and counted, never fatal.
 */
#include "kit/fixture.h"

#include <signal.h>
#include <sys/resource.h>

typedef struct Expected {
    const char* options;
    uint32_t ring;
    uint64_t bad;
} Expected;

static const Expected table[] = {
    {"", 16, 0},
    {"ring_size=4", 4, 0},
    {"ring_size=4,warm_bytes=2m", 4, 0},
    {"warm_bytes=64k,ring_size=1024", 1024, 0},
    {"reserve_bytes=32m", 16, 0},
    {"reserve_bytes=1g,slab_bytes=8k", 16, 0},
    {"reserve_bytes=1G,slab_bytes=8K,warm_bytes=2M", 16, 0},
    {"prefault=1,leak_report=0,misuse_fatal=0", 16, 0},
    {"ring_size=0,max_bytes=0,slab_bytes=0k", 16, 0},
    {"no_such_option=1", 16, 1},
    {"no_such_option=1,ring_size=4", 4, 1},
    {"ring_size=4,no_such_option=1,nor_this=2", 4, 2},
    {"ring_size=1", 16, 1},
    {"ring_size=1025", 16, 1},
    {"ring_size=abc", 16, 1},
    {"ring_size=", 16, 1},
    {"ring_size", 16, 1},
    {"ring_size=-4", 16, 1},
    {"ring_size=4x", 16, 1},
    {"ring_size=99999999999999999999999", 16, 1},
    {"ring_size=18446744073709551620", 16, 1},
    {"=4", 16, 1},
    {"slab_bytes=5000", 16, 1},
    {"reserve_bytes=1", 16, 1},
    {"warm_bytes=12q", 16, 1},
    {"warm_bytes=12MB", 16, 1},
    {"warm_bytes=99999999999999g", 16, 1},
    {"ring_size=abc,ring_size=8", 8, 1},
    {"misuse_fn=1", 16, 1},
    {"struct_size=1", 16, 1},
};
enum { ROWS = sizeof table / sizeof table[0] };

static int look_at_row(size_t row) {
    const Expected* e = &table[row];
    check_state.name = e->options;
    SlabAllocator* a = slab_allocator_create();
    CHECK(a != NULL);
    CHECK_EQ(kit_global(a).active_epoch_count, e->ring);
    CHECK_EQ(kit_refusals(a).bad_environment, e->bad);
    void* p = slab_malloc(a, 100);
    CHECK(p != NULL);
    CHECK(slab_free_checked(a, p));
    slab_allocator_free(a);
    return check_failures() != 0;
}

/* The environment overrides the struct; both may fill in what the other leaves out. */
static int look_at_override(void) {
    SlabOptions o = kit_options();
    o.ring_size = 8;
    o.reserve_bytes = 64 * KIT_MIB;
    SlabAllocator* a = slab_allocator_create_with(&o);
    CHECK(a != NULL);
    SlabGlobalStats g = kit_global(a);
    CHECK_EQ(g.active_epoch_count, 4);
    CHECK_LE(g.reserved_bytes, 256 * KIT_MIB);
    slab_allocator_free(a);
    o.ring_size = 1; /* a bad struct stays bad */
    errno = 0;
    SlabAllocator* bad = slab_allocator_create_with(&o);
    CHECK(bad == NULL || kit_global(bad).active_epoch_count == 4);
    slab_allocator_free(bad);
    return check_failures() != 0;
}

static int misuse_with_fatal(void) {
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    SlabAllocator* a = slab_allocator_create();
    void* p = slab_malloc(a, 100);
    slab_free(a, p);
    slab_free(a, kit_hide(p));
    return 0;
}

static int look_at_reservation(void) {
    SlabAllocator* a = slab_allocator_create();
    CHECK(a != NULL);
    CHECK_LE(kit_global(a).reserved_bytes, 128 * KIT_MIB);
    size_t n = 0;
    while (n < 1000 && slab_malloc(a, KIT_MIB) != NULL) {
        n++;
    }
    CHECK_GE(n, 16);
    CHECK_LE(n, 32);
    return check_failures() != 0;
}

static int look_at_warm(void) {
    SlabAllocator* a = slab_allocator_create();
    CHECK(a != NULL);
    for (size_t k = 0; k < 50000; k++) {
        CHECK(slab_malloc(a, 200) != NULL);
    }
    CHECK(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    CHECK_LE(kit_committed(a), 128 * 1024);
    return check_failures() != 0;
}

static void hear_nothing(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx) {
    (void)a, (void)what, (void)where, (void)ctx;
}

/* Two allocators; the second is told what the environment has wrong, too. */
static int create_twice(bool quiet, bool has_fn) {
    for (int n = 0; n < 2; n++) {
        SlabOptions o = kit_options();
        o.quiet = quiet;
        o.misuse_fn = has_fn ? hear_nothing : NULL;
        SlabAllocator* a = slab_allocator_create_with(&o);
        if (a == NULL || strstr(slab_last_error(), "segmant=1 is no option: segment?") == NULL) return 1;
        slab_allocator_free(a);
    }
    return 0;
}

static int play_role(const char* role) {
    check_state.name = role;
    alarm(300);
    if (strncmp(role, "row", 3) == 0) {
        return look_at_row(strtoul(role + 3, NULL, 10));
    }
    return strcmp(role, "override") == 0      ? look_at_override()
           : strcmp(role, "fatal") == 0       ? misuse_with_fatal()
           : strcmp(role, "reservation") == 0 ? look_at_reservation()
           : strcmp(role, "warm") == 0        ? look_at_warm()
           : strcmp(role, "create") == 0      ? create_twice(false, false)
           : strcmp(role, "quiet") == 0       ? create_twice(true, false)
           : strcmp(role, "misuse_fn") == 0   ? create_twice(false, true)
                                              : 3;
}

/* Wait status of this program run again with the options and the role. */
static int run_again(const char* options, const char* role) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("TSLAB_OPTIONS", options, 1);
        setenv("TSLAB_TEST_ROLE", role, 1);
        kit_exec_self((char*[]){"environment", NULL});
        _exit(127);
    }
    int status = -1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

static bool ran_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

static void names_and_values(void) {
    for (size_t i = 0; i < ROWS; i++) {
        char role[32];
        snprintf(role, sizeof role, "row%zu", i);
        if (!CHECK(ran_well(run_again(table[i].options, role)))) {
            fprintf(stderr, "  TSLAB_OPTIONS=\"%s\"\n", table[i].options);
        }
    }
}

static void the_environment_wins(void) { CHECK(ran_well(run_again("ring_size=4", "override"))); }

static void sizes_with_suffixes(void) {
    CHECK(ran_well(run_again("reserve_bytes=32m", "reservation")));
    CHECK(ran_well(run_again("reserve_bytes=32768k", "reservation")));
    CHECK(ran_well(run_again("reserve_bytes=33554432", "reservation")));
    CHECK(ran_well(run_again("warm_bytes=128k", "warm")));
    CHECK(ran_well(run_again("warm_bytes=131072", "warm")));
}

static void fatal_misuse(void) {
    int status = run_again("misuse_fatal=1", "fatal");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(ran_well(run_again("misuse_fatal=0", "fatal")));
}

static void a_very_long_value(void) {
    static char text[100001];
    memset(text, 'x', sizeof text - 1);
    int status = run_again(text, "warm");
    CHECK(WIFEXITED(status)); /* counted or not: no crash */
    for (size_t i = 0; i < sizeof text - 1; i++) {
        text[i] = i % 2 == 0 ? ',' : '=';
    }
    status = run_again(text, "warm");
    CHECK(WIFEXITED(status));
}

/* What the program writes to standard error. */
static void heard(const char* options, const char* role, int code, const char* expected) {
    int ends[2], saved = dup(STDERR_FILENO);
    char text[512] = "";
    REQUIRE(saved >= 0 && pipe(ends) == 0);
    dup2(ends[1], STDERR_FILENO); /* what is written fits into the pipe */
    int status = run_again(options, role);
    dup2(saved, STDERR_FILENO);
    close(ends[1]);
    close(saved);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    CHECK_GE(n, 0);
    close(ends[0]);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
    CHECK_STR(text, expected);
}

static void what_is_ignored_is_explained_once(void) {
    heard("segmant=1", "create", 0, "temporal-slab: ignored in TSLAB_OPTIONS: segmant=1 is no option: segment?\n");
    heard("ring_size=1,segmant=1,x", "create", 0,
          "temporal-slab: ignored in TSLAB_OPTIONS: ring_size=1 is not a number within 2..1024; segmant=1 is no "
          "option: segment?; x is no option\n");
    heard("segmant=1,quiet=1", "create", 0, "");
    heard("segmant=1", "quiet", 0, "");
    heard("segmant=1,quiet=0", "quiet", 0,
          "temporal-slab: ignored in TSLAB_OPTIONS: segmant=1 is no option: segment?\n");
    heard("segmant=1", "misuse_fn", 0, "");
    heard("", "create", 1, ""); /* no sentence, no line */
    heard("ring_size=4,segment=0", "create", 1, "");
}

static const CheckCase cases[] = {
    CHECK_CASE(what_is_ignored_is_explained_once),
    CHECK_CASE(names_and_values),
    CHECK_CASE(the_environment_wins),
    CHECK_CASE(sizes_with_suffixes),
    CHECK_CASE(fatal_misuse),
    CHECK_CASE(a_very_long_value),
};

int main(int argc, char** argv) {
    const char* role = getenv("TSLAB_TEST_ROLE");
    return role != NULL ? play_role(role) : check_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
