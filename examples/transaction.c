/*
 * transaction.c - queries inside of a transaction: each query is a phase within the transaction's phase.
 *
 * Claim: when a query ends, its memory goes within the call that ends it, whatever the transaction holds: 0 bytes of
 * its epoch are committed then, and the transaction's rows are untouched. Beside it the same with malloc: the query's
 * objects lie among the rows, so what it frees stays with the process. How long the end took (under 1 ms on a quiet
 * machine) is printed, and is not part of the claim.
 *
 *     cc -O2 transaction.c $(pkg-config --cflags --libs temporal-slab) && ./a.out
 */
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUERY_OBJECTS = 20000, SIZES = 4 };
static const unsigned rows_held[SIZES] = {0, 100, 10000, 100000};

static SlabAllocator* slab; /* NULL: malloc */

static void* filled(void* p, size_t size) {
    if (p == NULL) exit(3);
    return memset(p, 1, size);
}

static long resident(void) {
    char line[256];
    long kib = 0;
    FILE* f = fopen("/proc/self/smaps_rollup", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "Rss: %ld kB", &kib) == 1) break;
    if (f != NULL) fclose(f);
    return kib * 1024;
}

typedef struct Outcome {
    long grown;         /* resident bytes after the query, over those before it; rows apart */
    uint64_t held, committed; /* of the query's epoch: before its end, after it */
    uint64_t end_ns;
    bool rows_intact;
} Outcome;

static uint64_t committed(uint64_t era) {
    SlabPhaseStats rows[8];
    size_t n = slab_stats_phases(slab, rows, 8);
    for (size_t i = 0; i < n && i < 8; i++)
        if (rows[i].epoch_era == era) return rows[i].committed_bytes;
    return 0;
}

/* Objects of the query, and now and then a row that the transaction keeps. */
static void query(epoch_domain_t* transaction, char** rows, unsigned n, void** objects) {
    for (unsigned i = 0, row = 0; i < QUERY_OBJECTS; i++) {
        size_t size = 32 + i * 7 % 480;
        objects[i] = filled(slab != NULL ? slab_malloc(slab, size) : malloc(size), size);
        for (; row < (uint64_t)n * (i + 1) / QUERY_OBJECTS; row++)
            rows[row] = filled(transaction != NULL ? epoch_domain_malloc(transaction, 64) : malloc(64), 64);
    }
}

static Outcome run(unsigned n) {
    Outcome o = {.rows_intact = true};
    char** rows = calloc(n + 1, sizeof *rows);
    void** objects = calloc(QUERY_OBJECTS, sizeof *objects);
    if (rows == NULL || objects == NULL) exit(3);
    filled(objects, QUERY_OBJECTS * sizeof *objects), filled(rows, (n + 1) * sizeof *rows);
    epoch_domain_t* transaction = slab != NULL ? epoch_domain_begin(slab, "transaction") : NULL;
    (void)resident();
    long before = resident();
    epoch_domain_t* inner = slab != NULL ? epoch_domain_begin(slab, "query") : NULL;
    query(transaction, rows, n, objects);
    uint64_t era = slab != NULL ? inner->epoch_era : 0;
    if (slab != NULL) o.held = committed(era);
    uint64_t start = slab_now_ns();
    if (slab == NULL)
        for (unsigned i = 0; i < QUERY_OBJECTS; i++) free(objects[i]);
    else if (!epoch_domain_end(inner))
        exit(3);
    o.end_ns = slab_now_ns() - start;
    if (slab != NULL) o.committed = committed(era);
    o.grown = resident() - before - (long)n * 64;
    for (unsigned i = 0; i < n; i++) o.rows_intact &= rows[i][0] == 1 && rows[i][63] == 1;
    if (transaction != NULL && !epoch_domain_end(transaction)) exit(3);
    return o;
}

/* In a child, so that neither side starts with what the other has left. */
static Outcome in_a_process(bool phases, unsigned n) {
    Outcome o = {.rows_intact = false};
    int ends[2], status = 0;
    if (pipe(ends) != 0) exit(3);
    pid_t child = fork();
    if (child == 0) {
        SlabOptions options = {.struct_size = sizeof options, .warm_bytes = UINT64_MAX}; /* keep nothing for the next query */
        if (phases && (slab = slab_allocator_create_with(&options)) == NULL) exit(3);
        o = run(n);
        _exit(write(ends[1], &o, sizeof o) == (ssize_t)sizeof o ? 0 : 3);
    }
    if (child < 0 || read(ends[0], &o, sizeof o) != (ssize_t)sizeof o || waitpid(child, &status, 0) != child || status != 0) exit(3);
    close(ends[0]), close(ends[1]);
    return o;
}

int main(void) {
    bool holds = true;
    printf("a query of %d objects (5.4 MB): committed in its epoch before and after its end, and what the process\n", QUERY_OBJECTS);
    puts("grew by beside the bytes of the rows");
    puts("the transaction holds    phases: before -> after   resident grew    end took      malloc: resident grew    frees took");
    for (int i = 0; i < SIZES; i++) {
        Outcome with = in_a_process(true, rows_held[i]), without = in_a_process(false, rows_held[i]);
        printf("%10u rows       %8llu -> %llu bytes       %8ld KiB  %7llu us              %8ld KiB    %7llu us\n",
               rows_held[i], (unsigned long long)with.held, (unsigned long long)with.committed, with.grown / 1024,
               (unsigned long long)with.end_ns / 1000, without.grown / 1024, (unsigned long long)without.end_ns / 1000);
        holds = holds && with.held > 5000000 && with.committed == 0 && with.rows_intact;
    }
    puts(holds ? "claim holds: nothing of the query is committed after its end" : "claim FAILS");
    return holds ? 0 : 1;
}
