/* The same batches in a phase that nobody is inside of, which is reset after each. */
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static SlabAllocator* slab;
static epoch_domain_t* batch;

static void* must(void* p) {
    if (p == NULL) exit(3);
    return p;
}

static uint64_t held(void) { /* of the label: of this batch and of all that were called so */
    SlabLabelStats labels[8];
    size_t n = slab_stats_labels(slab, labels, 8);
    for (size_t i = 0; i < n && i < 8; i++)
        if (strcmp(labels[i].label, "batch") == 0) return labels[i].live_bytes;
    return 0;
}

int main(void) {
    slab = must(slab_allocator_create());
    batch = must(epoch_domain_create_labeled(slab, "batch"));
    for (int i = 1; i <= 3; i++) {
        const char* longest = "";
        for (int k = 0; k < i * 40; k++) {
            char* kept = must(epoch_domain_asprintf(batch, "row %d of batch %d", k * k % 113, i));
            if (strlen(kept) > strlen(longest)) longest = kept;
        }
        printf("batch %d: %s, memory held: %s\n", i, longest, held() > 0 ? "yes" : "no");
        if (!epoch_domain_reset(batch)) return 3;
        printf("  reset, memory held: %s\n", held() > 0 ? "yes" : "no");
    }
    epoch_domain_destroy(batch);
    SlabGlobalStats left;
    slab_stats_global(slab, &left);
    slab_allocator_free(slab);
    return left.live_objects != 0;
}
