/*
 * fatal.h - frame of the programs that show misuse_fatal: the program defines
 * `static void misuse(SlabAllocator* a)`; run in a child, it must end by SIGABRT with the option
 * and live on without it.
 */
#ifndef TESTS_FATAL_H
#define TESTS_FATAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int status_with(uint8_t fatal) {
    pid_t pid = fork();
    if (pid == 0) {
        SlabOptions o;
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(20);
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
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return -1;
    }
    return status;
}

int main(void) {
    int fatal = status_with(1), tolerant = status_with(0);
    if (!WIFSIGNALED(fatal) || WTERMSIG(fatal) != SIGABRT) {
        fprintf(stderr, "failed: with misuse_fatal: wait status %d, not SIGABRT\n", fatal);
        return 1;
    }
    if (!WIFEXITED(tolerant) || WEXITSTATUS(tolerant) != 0) {
        fprintf(stderr, "failed: without misuse_fatal: wait status %d\n", tolerant);
        return 1;
    }
    return 0;
}

#endif
