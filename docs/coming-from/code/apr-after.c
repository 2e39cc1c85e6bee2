/* The same in nested phases. A pool is a domain; the innermost one is where allocations go. */
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static SlabAllocator* slab;

static void* must(void* p) {
    if (p == NULL) exit(3);
    return p;
}

static void close_upload(void* name) { /* runs when the phase has gone: its name lies elsewhere */
    printf("  closed %s\n", (char*)name);
    slab_free(slab, name);
}

static void handle(epoch_domain_t* connection, epoch_domain_t* request, int i, const char** last) {
    char* upload = must(epoch_domain_asprintf(connection, "upload-%d", i));
    if (!epoch_domain_on_end(request, close_upload, upload)) exit(3);
    char* title = must(slab_asprintf(slab, "request %d", i)); /* in the request, the innermost phase */
    epoch_domain_t* scratch = must(epoch_domain_begin(slab, "scratch"));
    size_t bytes = 0;
    for (int row = 0; row < 3; row++) {
        bytes += strlen(must(slab_asprintf(slab, "row %d of %s", row, upload)));
        epoch_domain_reset(scratch);
    }
    epoch_domain_end(scratch); /* a phase does not end those inside of it */
    printf("%s: %zu bytes\n", title, bytes);
    if (i == 2) *last = must(epoch_domain_strdup(connection, upload));
}

int main(void) {
    slab = must(slab_allocator_create());
    const char* last = "none";
    epoch_domain_t* connection = must(epoch_domain_begin(slab, "connection"));
    for (int i = 1; i <= 3; i++) {
        epoch_domain_t* request = must(epoch_domain_begin(slab, "request"));
        handle(connection, request, i, &last);
        epoch_domain_end(request);
    }
    printf("remembered: %s\n", last);
    epoch_domain_end(connection);
    SlabGlobalStats left;
    slab_stats_global(slab, &left);
    slab_allocator_free(slab);
    return left.live_objects != 0;
}
