/* The same in phases: one that something outlives is ended by draining. */
#include <epoch_domain.h>
#include <slab_diagnostics.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Node {
    struct Node* next;
    long value;
} Node;

static SlabAllocator* slab;

static void* must(void* p) {
    if (p == NULL) exit(3);
    return p;
}

static bool count(const SlabLiveObject* object, void* n) {
    (void)object;
    ++*(int*)n;
    return true;
}

static char* run(int job) { /* a report that outlives the job, or NULL */
    epoch_domain_t* phase = must(epoch_domain_begin(slab, "job"));
    Node* list = NULL;
    long sum = 0;
    for (int i = 1; i <= 101; i++) {
        Node* node = must(SLAB_NEW(slab, Node));
        *node = (Node){list, (long)job * i};
        list = node;
        sum += node->value;
    }
    int blocks = 0;
    slab_epoch_walk(slab, phase->epoch_id, count, &blocks);
    printf("job %d: %d blocks\n", job, blocks);
    if (sum % 2 == 0) {
        epoch_domain_end(phase); /* all of it, without a look at an object */
        return NULL;
    }
    char* report = must(slab_asprintf(slab, "job %d has %ld", job, sum));
    for (Node *node = list, *next; node != NULL; node = next) {
        next = node->next;
        slab_free(slab, node);
    }
    epoch_domain_drain(phase, NULL); /* what lives stays where it is, until it is freed */
    return report;
}

int main(void) {
    slab = must(slab_allocator_create());
    for (int job = 1; job <= 3; job++) {
        char* report = run(job);
        printf("%s\n", report != NULL ? report : "no report");
        slab_free(slab, report);
    }
    SlabGlobalStats left;
    slab_stats_global(slab, &left);
    slab_allocator_free(slab);
    return left.live_objects != 0;
}
