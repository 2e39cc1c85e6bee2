/*
 * outside.c - a process with three allocators, each of which has something that is easily overlooked. Does one step for each line of
 * its standard input and answers with a line; ends with the input.
 *
 *   allocator 0   made first, holds nothing but one object
 *   allocator 1   holds 1,000 objects of 4,000 bytes
 *   allocator 2   has 600 labels with ten objects each, which ended with their phases
 *
 *   "burst"       allocator 1 gets 100 MiB in 1 MiB each; nothing is published
 *   "drain"       in allocator 1 as many phases of "many" end as DRAINING says, with an object in each, and it publishes
 *   "destroy"     allocator 0 is destroyed
 *   "again"       the process runs this program anew, as the same process
 */
#include <epoch_domain.h>
#include <slab_alloc.h>
#include <slab_stats.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static SlabAllocator* make(void) {
    SlabOptions o = {.struct_size = sizeof o, .segment = 1, .max_labels = 4096};
    return slab_allocator_create_with(&o);
}

static int take(SlabAllocator* a, unsigned count, size_t size) {
    unsigned taken = 0;
    for (unsigned n = 0; n < count; n++) taken += slab_malloc(a, size) != NULL;
    return taken == count;
}

static void phases(SlabAllocator* a) {
    for (unsigned n = 0; n < 600; n++) {
        char name[32];
        (void)snprintf(name, sizeof name, "route-%u", n);
        epoch_domain_t* d = epoch_domain_begin(a, name);
        (void)take(a, 10, 100);
        epoch_domain_end(d);
    }
}

enum { DRAINING = 130000 };

static int drain(SlabAllocator* a) {
    unsigned ended = 0;
    for (unsigned n = 0; n < DRAINING; n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "many");
        ended += take(a, 1, 100) && epoch_domain_drain(d, NULL);
    }
    return ended == DRAINING && slab_stats_publish(a);
}

int main(int argc, char** argv) {
    char line[64];
    SlabAllocator *first = make(), *second = make(), *third = make();
    (void)argc;
    if (first == NULL || second == NULL || third == NULL || !take(first, 1, 100) || !take(second, 1000, 4000)) return 1;
    phases(third);
    if (!slab_stats_publish(first) || !slab_stats_publish(second) || !slab_stats_publish(third)) return 1;
    do {
        if (puts("done") < 0 || fflush(stdout) != 0 || fgets(line, sizeof line, stdin) == NULL) break;
        if (strcmp(line, "burst\n") == 0 && !take(second, 100, 1 << 20)) return 1;
        if (strcmp(line, "drain\n") == 0 && !drain(second)) return 1;
        if (strcmp(line, "destroy\n") == 0) slab_allocator_free(first);
        if (strcmp(line, "again\n") == 0) (void)execv("/proc/self/exe", argv);
    } while (1);
    return 0;
}
