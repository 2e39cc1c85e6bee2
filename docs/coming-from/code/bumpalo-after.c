/* The same frames in C, in a phase that is reset after each. */
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Particle {
    const char* name;
    int height;
} Particle;

static SlabAllocator* slab;

static void* must(void* p) {
    if (p == NULL) exit(3);
    return p;
}

static const char* frame(int n) {
    Particle** high = NULL;
    size_t count = 0, room = 0;
    for (int i = 0; i < 100; i++) {
        Particle* particle = must(SLAB_NEW(slab, Particle));
        *particle = (Particle){must(slab_asprintf(slab, "p%d", i)), i * n % 37};
        if (particle->height <= 30) continue;
        if (count == room) {
            room = room == 0 ? 4 : 2 * room;
            high = must(slab_realloc(slab, high, room * sizeof(Particle*)));
        }
        high[count++] = particle;
    }
    return must(slab_asprintf(slab, "frame %d: %zu of them high, %s first", n, count, high[0]->name));
}

int main(void) {
    slab = must(slab_allocator_create());
    epoch_domain_t* memory = must(epoch_domain_begin(slab, "frame"));
    char* longest = NULL; /* outlives its frame */
    for (int n = 1; n <= 3; n++) {
        const char* line = frame(n);
        printf("%s\n", line);
        if (longest == NULL || strlen(line) > strlen(longest)) {
            slab_free(slab, longest);
            longest = strcpy(must(slab_malloc_outside(slab, strlen(line) + 1)), line);
        }
        epoch_domain_reset(memory); /* line is gone from here on; no compiler says so */
    }
    epoch_domain_end(memory);
    printf("longest: %s\n", longest);
    slab_free(slab, longest);
    SlabGlobalStats left;
    slab_stats_global(slab, &left);
    slab_allocator_free(slab);
    return left.live_objects != 0;
}
