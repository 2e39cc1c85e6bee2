/* Batches in an arena of jemalloc, which is reset after each. */
#include <jemalloc/jemalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned batch; /* the arena */

static void* must(void* p) {
    if (p == NULL) exit(3);
    return p;
}

static char* keep(const char* text) {
    size_t n = strlen(text) + 1;
    return memcpy(must(mallocx(n, MALLOCX_ARENA(batch) | MALLOCX_TCACHE_NONE)), text, n);
}

static size_t held(void) {
    char name[64];
    uint64_t epoch = 1;
    size_t bytes = 0, n = sizeof bytes;
    mallctl("epoch", NULL, NULL, &epoch, sizeof epoch); /* take the statistics anew */
    snprintf(name, sizeof name, "stats.arenas.%u.small.allocated", batch);
    if (mallctl(name, &bytes, &n, NULL, 0) != 0) exit(3);
    return bytes;
}

int main(void) {
    size_t n = sizeof batch;
    if (mallctl("arenas.create", &batch, &n, NULL, 0) != 0) return 3;
    char reset[64], row[64];
    snprintf(reset, sizeof reset, "arena.%u.reset", batch);
    for (int i = 1; i <= 3; i++) {
        const char* longest = "";
        for (int k = 0; k < i * 40; k++) {
            snprintf(row, sizeof row, "row %d of batch %d", k * k % 113, i);
            char* kept = keep(row);
            if (strlen(kept) > strlen(longest)) longest = kept;
        }
        printf("batch %d: %s, memory held: %s\n", i, longest, held() > 0 ? "yes" : "no");
        if (mallctl(reset, NULL, NULL, NULL, 0) != 0) return 3;
        printf("  reset, memory held: %s\n", held() > 0 ? "yes" : "no");
    }
}
