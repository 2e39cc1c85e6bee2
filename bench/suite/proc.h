/*
 * proc.h - what the kernel says about this process's memory, and memory for the harness itself.
 *
 * The harness keeps its tables in anonymous mappings of its own, touched before anything is measured: they are a constant
 * part of resident memory, known exactly (harness_kb), and ask nothing of the allocator under test.
 */
#ifndef SUITE_PROC_H
#define SUITE_PROC_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* KiB. */
struct rss {
    uint64_t total, anon, file, shmem, peak;
};

static uint64_t proc_field(const char* text, const char* name) {
    const char* at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static inline struct rss rss_now(void) {
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    return (struct rss){.total = proc_field(text, "\nVmRSS:"),
                        .anon = proc_field(text, "\nRssAnon:"),
                        .file = proc_field(text, "\nRssFile:"),
                        .shmem = proc_field(text, "\nRssShmem:"),
                        .peak = proc_field(text, "\nVmHWM:")};
}

static _Atomic uint64_t harness_bytes;

/* Zeroed, resident, never given back. */
static inline void* harness_memory(size_t bytes) {
    void* p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "no memory for the harness (%zu bytes)\n", bytes);
        exit(3);
    }
    for (size_t i = 0; i < bytes; i += 4096) ((volatile char*)p)[i] = 0;
    harness_bytes += bytes;
    return p;
}

#endif
