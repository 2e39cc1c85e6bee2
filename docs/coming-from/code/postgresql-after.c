/* The same in nested phases, with the errors that jump. */
#include <epoch_domain.h>
#include <setjmp.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static SlabAllocator* slab;
static char* kept; /* of the report, longer than a query */
static jmp_buf on_error;

static void* must(void* p) { /* allocations return NULL, where palloc jumps */
    if (p == NULL) exit(3);
    return p;
}

static void close_cursor(void* name) { /* runs when the query's memory has gone: its name is the report's */
    printf("  closed %s\n", (char*)name);
    slab_free(slab, name);
}

static void query(epoch_domain_t* report, int n) {
    epoch_domain_t* query = must(epoch_domain_begin(slab, "query"));
    if (!epoch_domain_on_end(query, close_cursor, must(epoch_domain_asprintf(report, "cursor %d", n)))) exit(3);
    epoch_domain_t* row = must(epoch_domain_begin(slab, "row"));
    size_t bytes = 0;
    for (int i = 1; i <= 3; i++) {
        char* text = must(slab_asprintf(slab, "row %d of query %d", i, n));
        if (n == 2 && i == 2) longjmp(on_error, 1);
        if (n == 3 && i == 3) kept = must(epoch_domain_strdup(report, text));
        bytes += strlen(text);
        epoch_domain_reset(row);
    }
    epoch_domain_end(row); /* a phase does not end those inside of it */
    epoch_domain_end(query);
    printf("query %d: %zu bytes\n", n, bytes);
}

static void try_query(epoch_domain_t* report, int n) {
    if (setjmp(on_error) == 0) {
        query(report, n);
        return;
    }
    while (epoch_domain_current() != report) epoch_domain_end(epoch_domain_current());
    printf("query %d failed\n", n);
}

int main(void) {
    slab = must(slab_allocator_create());
    epoch_domain_t* report = must(epoch_domain_begin(slab, "report"));
    for (int n = 1; n <= 3; n++) try_query(report, n);
    printf("kept: %s\n", kept);
    epoch_domain_end(report);
    SlabGlobalStats left;
    slab_stats_global(slab, &left);
    slab_allocator_free(slab);
    return left.live_objects != 0;
}
