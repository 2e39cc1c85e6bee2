/*
 * probe.c - is a preloaded allocator really in force? probe general|checked|profiler|phase LIBRARY
 *
 * For a general peer, a checked one, and one with a profiler, malloc must come from the library; some memory is then allocated,
 * written and freed on two threads. A checked one must refuse a doubled free. A phase peer must be loaded. Prints the version
 * the library gives, if it can.
 * Exit code 1, and why, when it is not in force.
 */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/identify.h"

static void* churn(void* arg) {
    static const size_t sizes[] = {1, 16, 100, 1000, 5000, 100000, 3000000};
    for (int round = 0; round < 50; round++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char* p = malloc(sizes[i]);
            if (!p) return NULL;
            memset(p, round, sizes[i]);
            if (p[sizes[i] / 2] != round) return NULL;
            free(p);
        }
    return arg;
}

/* In a child, which it may end: an object that is freed twice must not be handed out twice. */
static bool refuses_doubled_frees(void) {
    enum { OBJECTS = 4000, SIZE = 128 };
    static void* volatile list[OBJECTS];
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        void* volatile doubled = NULL;
        close(2); /* what it says of it */
        for (int i = 0; i < 100; i++) list[i] = malloc(SIZE);
        doubled = list[50];
        free(list[50]);
        free(doubled);
        for (int i = 0; i < OBJECTS; i++) {
            list[i] = malloc(SIZE);
            for (int k = 0; k < i; k++)
                if (list[k] == list[i]) _exit(1);
        }
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) || WEXITSTATUS(status) == 0;
}

static int loaded(struct dl_phdr_info* info, size_t size, void* path) {
    (void)size;
    return info->dlpi_name && info->dlpi_name[0] && identify_same_file(info->dlpi_name, path);
}

int main(int argc, char** argv) {
    char version[64], token = 0;
    if (argc != 3) return 2;
    if (strcmp(argv[1], "phase") != 0) {
        const char* file = identify_file_of("malloc");
        if (!identify_same_file(file, argv[2])) return printf("malloc is served by %s", file), 1;
        if (strcmp(identify_file_of("free"), file) != 0) return printf("free is served by somebody else"), 1;
    } else if (!dl_iterate_phdr(loaded, argv[2])) {
        return printf("it is not loaded"), 1;
    }
    pthread_t other;
    void* well = NULL;
    if (pthread_create(&other, NULL, churn, &token) != 0 || pthread_join(other, &well) != 0 || !well || !churn(&token))
        return printf("what was written is not read back"), 1;
    if (strcmp(argv[1], "checked") == 0 && !refuses_doubled_frees())
        return printf("it hands out an object that was freed twice to two owners"), 1;
    identify_version(version, sizeof version);
    printf("%s", version);
    return 0;
}
