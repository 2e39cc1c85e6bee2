/*
 * adapter.h - what the tests of the adapters share: text that grows, phases whose receipts are added up, and a main function
 * that runs the same work with malloc, in a process of its own, and in phases, and compares what both have written.
 *
 *   NAME                          the test: outputs are equal, receipts add up, nothing is left; then it runs out of memory
 *   NAME --only malloc|phase [N]  N rounds of one of the two: for callgrind
 *   NAME --cost [N]               processor time of N rounds of both, five times in turn, medians and their ratio
 *
 * A program defines adapter_run, which does the work once and adds to `out` what it found; `a` NULL means malloc. Text is
 * malloc's own, so that it counts on neither side.
 */
#ifndef TESTS_ADAPTERS_ADAPTER_H
#define TESTS_ADAPTERS_ADAPTER_H

#include "kit/check.h"

#include <epoch_domain.h>
#include <slab_stats.h>
#include <sys/resource.h>

/* ---- text ---- */

typedef struct Text {
    char* bytes;
    size_t size, room;
} Text;

static inline void text_add(Text* t, const void* bytes, size_t n) {
    if (t->room - t->size < n + 1) {
        t->room = 2 * (t->room + n + 1);
        t->bytes = realloc(t->bytes, t->room);
        REQUIRE(t->bytes != NULL);
    }
    memcpy(t->bytes + t->size, bytes, n);
    t->bytes[t->size += n] = 0;
}

static inline void text_string(Text* t, const char* string) { text_add(t, string, strlen(string)); }

__attribute__((format(printf, 2, 3))) static inline void text_format(Text* t, const char* format, ...) {
    char line[1000];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    REQUIRE(n >= 0 && (size_t)n < sizeof line);
    text_add(t, line, (size_t)n);
}

static inline void text_from(Text* t, int fd) {
    char piece[65536];
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) > 0) text_add(t, piece, (size_t)n);
    REQUIRE(n == 0);
}

/* A file, once for the process; who finds it missing skips. */
static inline const Text* adapter_file(const char* path) {
    static Text files[4];
    static const char* names[4];
    unsigned i = 0;
    while (i < 4 && names[i] != NULL && strcmp(names[i], path) != 0) i++;
    REQUIRE(i < 4);
    if (names[i] != NULL) return &files[i];
    FILE* f = fopen(path, "r");
    if (f == NULL) SKIP("no %s (Debian has it in iso-codes)", path);
    text_from(&files[i], fileno(f));
    fclose(f);
    names[i] = path;
    return &files[i];
}

/* ---- phases: NULL, and nothing, where the work is malloc's ---- */

static EpochReceipt adapter_sum; /* of all phases that ended */
static unsigned adapter_phases;
static uint64_t adapter_open; /* epochs of the ring */

static inline void adapter_count(const EpochReceipt* r) {
    REQUIRE(r->objects_allocated == r->objects_freed + r->objects_released + r->objects_escaped);
    REQUIRE(r->bytes_allocated == r->bytes_freed + r->bytes_released + r->bytes_escaped);
    REQUIRE(r->objects_escaped == 0 && r->slabs_deferred == 0);
    adapter_sum.objects_allocated += r->objects_allocated;
    adapter_sum.objects_freed += r->objects_freed;
    adapter_sum.objects_released += r->objects_released;
    adapter_sum.bytes_allocated += r->bytes_allocated;
    adapter_phases++;
}

/* Begins a phase that the thread is inside of. */
static inline epoch_domain_t* adapter_enter(SlabAllocator* a, const char* label) {
    epoch_domain_t* d = a != NULL ? epoch_domain_begin(a, label) : NULL;
    REQUIRE(a == NULL || d != NULL);
    return d;
}

static inline EpochReceipt adapter_leave(epoch_domain_t* d) {
    EpochReceipt r = {0};
    if (d == NULL) return r;
    REQUIRE(epoch_domain_end_ex(d, &r));
    adapter_count(&r);
    return r;
}

/* Makes one that nobody is inside of: adapters that are given a domain do not need that. */
static inline epoch_domain_t* adapter_create(SlabAllocator* a, const char* label) {
    epoch_domain_t* d = a != NULL ? epoch_domain_create_labeled(a, label) : NULL;
    REQUIRE(a == NULL || d != NULL);
    return d;
}

static inline EpochReceipt adapter_end(epoch_domain_t* d) {
    EpochReceipt r = {0};
    if (d == NULL) return r;
    REQUIRE(epoch_domain_force_close(d) && epoch_domain_receipt(d, &r) && epoch_domain_destroy(d));
    adapter_count(&r);
    return r;
}

/* ---- what a program defines ---- */

static const unsigned long adapter_least; /* objects that one round takes from the phases at least */
static void adapter_run(Text* out, SlabAllocator* a);
/* Called once before and after all rounds of a process: process-wide hooks. */
static void adapter_install(SlabAllocator* a);
static void adapter_remove(SlabAllocator* a);
/* Works under budgets of all sizes: each ends in the library's own error, or in the right answer. */
static void adapter_starve(SlabAllocator* a);

/* ---- runs ---- */

static inline void adapter_rounds(Text* out, SlabAllocator* a, unsigned rounds) {
    adapter_install(a);
    while (rounds-- > 0) {
        out->size = 0;
        adapter_run(out, a);
    }
}

/* No call was refused, and nothing is live: no hook was given a pointer of another allocator or twice, nothing was forgotten. */
static inline void adapter_nothing_left(SlabAllocator* a) {
    SlabRefusals r;
    SlabGlobalStats g;
    slab_stats_refusals(a, &r);
    slab_stats_global(a, &g);
    REQUIRE(r.stale_handle + r.bad_handle + r.double_free + r.stale_free + r.interior_pointer + r.foreign_pointer == 0);
    REQUIRE(r.size_mismatch + r.bad_epoch + r.closed_epoch + r.bad_size + r.domain_order + r.domain_stale == 0);
    REQUIRE(r.late_double_free == 0 && r.out_of_memory == 0);
    REQUIRE(g.live_objects == 0 && g.live_bytes == 0 && g.open_phases == adapter_open && g.draining_phases == 0);
}

/* What the work writes with malloc, in a process that has never seen a hook. */
static inline Text adapter_with_malloc(void) {
    int ends[2];
    int status;
    Text all = {NULL, 0, 0};
    REQUIRE(pipe(ends) == 0);
    fflush(NULL);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        Text out = {NULL, 0, 0};
        size_t written = 0;
        close(ends[0]);
        adapter_rounds(&out, NULL, 1);
        adapter_remove(NULL);
        while (written < out.size) {
            ssize_t n = write(ends[1], out.bytes + written, out.size - written);
            if (n <= 0) _exit(1);
            written += (size_t)n;
        }
        _exit(0);
    }
    close(ends[1]);
    text_from(&all, ends[0]);
    close(ends[0]);
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return all;
}

static inline int adapter_only(bool phase, unsigned rounds) {
    Text out = {NULL, 0, 0};
    SlabAllocator* a = phase ? slab_allocator_create() : NULL;
    REQUIRE(!phase || a != NULL);
    adapter_rounds(&out, a, rounds);
    adapter_remove(a);
    free(out.bytes);
    slab_allocator_free(a);
    return 0;
}

static inline double adapter_seconds_of(bool phase, unsigned rounds) {
    struct rusage before, after;
    int status;
    REQUIRE(getrusage(RUSAGE_CHILDREN, &before) == 0);
    fflush(NULL);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(adapter_only(phase, rounds));
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(getrusage(RUSAGE_CHILDREN, &after) == 0);
    return (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
           (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
}

static inline int adapter_by_size(const void* a, const void* b) {
    return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static inline int adapter_cost(unsigned rounds) {
    double malloc_s[5], phase_s[5];
    for (int i = 0; i < 5; i++) {
        malloc_s[i] = adapter_seconds_of(false, rounds);
        phase_s[i] = adapter_seconds_of(true, rounds);
    }
    qsort(malloc_s, 5, sizeof malloc_s[0], adapter_by_size);
    qsort(phase_s, 5, sizeof phase_s[0], adapter_by_size);
    printf("malloc %.3f s  phase %.3f s  ratio %.3f\n", malloc_s[2], phase_s[2], phase_s[2] / malloc_s[2]);
    return 0;
}

static inline int adapter_test(void) {
    Text expected = adapter_with_malloc();
    Text out = {NULL, 0, 0};
    SlabAllocator* a = slab_allocator_create();
    SlabGlobalStats before;
    REQUIRE(a != NULL && expected.size != 0);
    slab_stats_global(a, &before);
    adapter_open = before.open_phases;
    adapter_rounds(&out, a, 2);
    REQUIRE(out.size == expected.size && memcmp(out.bytes, expected.bytes, out.size) == 0);
    adapter_starve(a);
    adapter_remove(a);
    printf("%zu bytes as with malloc; %u phases: %llu objects of %llu bytes, %llu freed, %llu ended with their phase\n",
           out.size, adapter_phases, (unsigned long long)adapter_sum.objects_allocated,
           (unsigned long long)adapter_sum.bytes_allocated, (unsigned long long)adapter_sum.objects_freed,
           (unsigned long long)adapter_sum.objects_released);
    REQUIRE(adapter_sum.objects_allocated >= 2 * adapter_least);
    adapter_nothing_left(a);
    free(out.bytes);
    free(expected.bytes);
    slab_allocator_free(a);
    return 0;
}

int main(int argc, char** argv) {
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[argc - 1]) : 0;
    if (argc > 2 && strcmp(argv[1], "--only") == 0)
        return adapter_only(strcmp(argv[2], "phase") == 0, argc > 3 ? rounds : 1);
    if (argc > 1 && strcmp(argv[1], "--cost") == 0) return adapter_cost(argc > 2 ? rounds : 5);
    return adapter_test();
}

#endif
