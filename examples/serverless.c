/*
 * serverless.c - one process is invoked again and again, as a serverless runtime does it: each invocation is a phase,
 * and what the process keeps between them is made outside of it.
 *
 * Claim: from the 100th of 10,000 invocations on, resident size stays within 150 KiB. Beside it the same with malloc and
 * a free for each object. Each side runs in a process of its own.
 *
 *     cc -O2 serverless.c $(pkg-config --cflags --libs temporal-slab) && ./a.out
 */
#include <epoch_domain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INVOCATIONS = 10000, WARM = 100, CACHED = 64, OBJECTS_MAX = 600 };

static SlabAllocator* slab; /* NULL: malloc */
static void* made[OBJECTS_MAX];
static size_t made_count;
static unsigned long frees;
static uint64_t seed = 88172645463325252ull;

static uint64_t below(uint64_t n) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed % n;
}

/* Resident bytes; the quicker counters of the kernel are off by hundreds of KiB. */
static long resident(void) {
    char line[256];
    long kib = 0;
    FILE* f = fopen("/proc/self/smaps_rollup", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "Rss: %ld kB", &kib) == 1) break;
    if (f != NULL) fclose(f);
    return kib * 1024;
}

static void* filled(void* p, size_t size) {
    if (p == NULL) exit(3);
    return memset(p, 1, size);
}

/* Of the invocation: nobody frees it where phases end. */
static void* make(size_t size) {
    if (slab != NULL) return filled(slab_malloc(slab, size), size);
    return made[made_count++] = filled(malloc(size), size);
}

/* Of the process: a connection, a compiled template. */
static void keep(void** place, size_t size) {
    if (slab != NULL) {
        slab_free(slab, *place);
        *place = filled(slab_malloc_outside(slab, size), size);
    } else {
        free(*place);
        *place = filled(malloc(size), size);
    }
    frees++;
}

static void work(void** cache) {
    for (uint64_t n = 20 + below(20); n != 0; n--) make(16 + below(100));    /* headers */
    for (uint64_t n = 100 + below(300); n != 0; n--) make(32 + below(200)); /* the parsed event */
    make(1000 + below(60000));                                              /* the answer */
    if (below(20) == 0) keep(&cache[below(CACHED)], (size_t)512 << below(3));
}

static void invoke(void** cache) {
    if (slab != NULL) {
        SLAB_SCOPE(slab, "invoke");
        work(cache);
        return; /* all of it ends here */
    }
    work(cache);
    for (; made_count != 0; frees++) free(made[--made_count]);
}

typedef struct Outcome {
    long first, least, most;
    unsigned long frees;
} Outcome;

static Outcome run(void) {
    static void* cache[CACHED];
    Outcome o = {0, 0, 0, 0};
    for (int i = 0; i < CACHED; i++) keep(&cache[i], (size_t)512 << i % 3); /* the cold start */
    (void)resident(); /* what it takes itself */
    for (int i = 1; i <= INVOCATIONS; i++) {
        invoke(cache);
        if (i % WARM != 0) continue;
        long now = resident();
        if (o.first == 0) o.first = o.least = o.most = now;
        if (now < o.least) o.least = now;
        if (now > o.most) o.most = now;
    }
    o.frees = frees;
    return o;
}

/* In a child, so that neither side starts with what the other has left. */
static Outcome in_a_process(bool phases) {
    Outcome o = {0, 0, 0, 0};
    int ends[2], status = 0;
    if (pipe(ends) != 0) exit(3);
    pid_t child = fork();
    if (child == 0) {
        if (phases && (slab = slab_allocator_create()) == NULL) exit(3);
        o = run();
        _exit(write(ends[1], &o, sizeof o) == (ssize_t)sizeof o ? 0 : 3);
    }
    if (child < 0 || read(ends[0], &o, sizeof o) != (ssize_t)sizeof o || waitpid(child, &status, 0) != child || status != 0) exit(3);
    close(ends[0]), close(ends[1]);
    return o;
}

int main(void) {
    Outcome with = in_a_process(true), without = in_a_process(false);
    printf("%d invocations; resident KiB after the %dth, and least and most from there on\n", INVOCATIONS, WARM);
    printf("phases  %6ld  %6ld..%ld, a range of %ld KiB; %lu objects freed singly\n", with.first / 1024, with.least / 1024, with.most / 1024,
           (with.most - with.least) / 1024, with.frees);
    printf("malloc  %6ld  %6ld..%ld, a range of %ld KiB; %lu objects freed singly\n", without.first / 1024, without.least / 1024,
           without.most / 1024, (without.most - without.least) / 1024, without.frees);
    if (with.first == 0) return puts("skipped: no /proc/self/smaps_rollup here"), 77;
    bool holds = with.most - with.least <= 150 * 1024;
    puts(holds ? "claim holds: within 150 KiB" : "claim FAILS: more than 150 KiB");
    return holds ? 0 : 1;
}
