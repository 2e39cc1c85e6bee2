/*
 * fatal.h - frame of the programs that show misuse_fatal: the program defines
 * `static void misuse(SlabAllocator* a)`; run in a child, it must end by SIGABRT with the option, after it has said on
 * standard error what will_say has told, and nothing else, and live on in silence without it.
 */
#ifndef TESTS_FATAL_H
#define TESTS_FATAL_H

#include "kit/fixture.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void misuse(SlabAllocator* a);

static char* expected; /* shared with the child */

/* what: "double_free, pointer 0x1234" and such; label: "label \"x\"" or "no label". */
__attribute__((unused, format(printf, 2, 3))) static void will_say(const char* label, const char* what, ...) {
    va_list args;
    char text[200];
    va_start(args, what);
    vsnprintf(text, sizeof text, what, args);
    va_end(args);
    snprintf(expected, 512, "temporal-slab: %s, %s: aborting, because misuse_fatal is set\n", text, label);
}

static int status_with(uint8_t fatal, char said[512]) {
    int ends[2];
    size_t n = 0;
    if (pipe(ends) != 0) {
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(CHECK_CHILD_SECONDS);
        SlabOptions o = kit_options();
        o.misuse_fatal = fatal;
        SlabAllocator* a = kit_create_with(&o);
        misuse(a);
        _exit(slab_malloc(a, 100) != NULL ? 0 : 4);
    }
    int status = -1;
    close(ends[1]);
    for (ssize_t got; n < 511 && (got = read(ends[0], said + n, 511 - n)) > 0;) {
        n += (size_t)got;
    }
    said[n] = 0;
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return -1;
    }
    return status;
}

int main(void) {
    char said[512], silent[512];
    expected = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(expected != MAP_FAILED);
    int tolerant = status_with(0, silent);
    memset(expected, 0, 512);
    int fatal = status_with(1, said);
    CHECK(WIFSIGNALED(fatal));
    CHECK_EQ(WTERMSIG(fatal), SIGABRT);
    CHECK_EQ(tolerant, 0);
    CHECK_STR(said, expected);
    CHECK_STR(silent, "");
    return check_failures() != 0;
}

#endif
