/*
 * fatal.h - frame of the programs that show misuse_fatal: the program defines
 * `static void misuse(SlabAllocator* a)`; run in a child, it must end by SIGABRT with the option, after it has said on
 * standard error what will_say has told, and nothing else, and live on in silence without it.
 */
#ifndef TESTS_FATAL_H
#define TESTS_FATAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <epoch_domain.h>
#include <slab_alloc.h>

static void misuse(SlabAllocator* a);

__attribute__((unused)) static void* hide(const void* p) {
    uintptr_t v = (uintptr_t)p;
    __asm__ volatile("" : "+r"(v));
    return (void*)v;
}

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
        SlabOptions o;
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(300);
        memset(&o, 0, sizeof o);
        o.struct_size = sizeof o;
        o.misuse_fatal = fatal;
        SlabAllocator* a = slab_allocator_create_with(&o);
        if (a == NULL) {
            _exit(3);
        }
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
    if (expected == MAP_FAILED) {
        return 1;
    }
    int tolerant = status_with(0, silent);
    memset(expected, 0, 512);
    int fatal = status_with(1, said);
    if (!WIFSIGNALED(fatal) || WTERMSIG(fatal) != SIGABRT) {
        fprintf(stderr, "failed: with misuse_fatal: wait status %d, not SIGABRT\n", fatal);
        return 1;
    }
    if (!WIFEXITED(tolerant) || WEXITSTATUS(tolerant) != 0) {
        fprintf(stderr, "failed: without misuse_fatal: wait status %d\n", tolerant);
        return 1;
    }
    if (strcmp(said, expected) != 0 || silent[0] != 0) {
        fprintf(stderr, "failed: it said\n    %s  and should have said\n    %s  and without misuse_fatal nothing but said\n    %s\n", said, expected,
                silent);
        return 1;
    }
    return 0;
}

#endif
