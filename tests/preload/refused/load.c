/* load.c - four threads that allocate, write, check and free, in phases that end meanwhile; 1 if an object was not as it was left. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <temporal_slab/phase.h>

/* Every object that was got holds what was written in it until its free; one that was refused is NULL. */
enum { KEPT = 64, TURNS = 3000 };
static int bad;

static void* load(void* from) {
    unsigned char* kept[KEPT] = {0};
    size_t bytes[KEPT] = {0};
    unsigned seed = (unsigned)(size_t)from;
    for (int n = 0; n < TURNS; n++) {
        seed = seed * 1103515245 + 12345;
        unsigned at = seed >> 16 & (KEPT - 1);
        if (kept[at])
            for (size_t i = 0; i < bytes[at]; i += bytes[at] / 2 + 1)
                if (kept[at][i] != (unsigned char)(at + (size_t)from)) __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
        free(kept[at]);
        bytes[at] = n % 200 == 199 ? 300000 + seed % 1000 : 1 + (seed >> 8) % 3000;
        kept[at] = malloc(bytes[at]);
        if (kept[at]) memset(kept[at], (int)(at + (size_t)from), bytes[at]);
    }
    for (int n = 0; n < KEPT; n++) free(kept[n]);
    return NULL;
}

int main(void) {
    for (int turn = 0; turn < 3; turn++) {
        pthread_t threads[3];
        int made[3];
        tslab_phase* phase = tslab_phase_begin("turn");
        for (size_t n = 0; n < 3; n++) made[n] = pthread_create(&threads[n], NULL, load, (void*)(n + 1)) == 0;
        load((void*)9);
        tslab_phase_end(phase);
        for (int n = 0; n < 3; n++)
            if (made[n]) pthread_join(threads[n], NULL);
    }
    return bad;
}
