/* Jobs in heaps of mimalloc: most end with all that they made, some leave a report behind. */
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Node {
    struct Node* next;
    long value;
} Node;

static void* must(void* p) {
    if (p == NULL) exit(3);
    return p;
}

static bool count(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* n) {
    (void)heap, (void)area, (void)size;
    if (block != NULL) ++*(int*)n;
    return true;
}

static char* run(int job) { /* a report that outlives the job, or NULL */
    mi_heap_t* heap = must(mi_heap_new());
    Node* list = NULL;
    long sum = 0;
    for (int i = 1; i <= 101; i++) {
        Node* node = must(mi_heap_malloc_tp(heap, Node));
        *node = (Node){list, (long)job * i};
        list = node;
        sum += node->value;
    }
    int blocks = 0;
    mi_heap_visit_blocks(heap, true, count, &blocks);
    printf("job %d: %d blocks\n", job, blocks);
    if (sum % 2 == 0) {
        mi_heap_destroy(heap); /* all of it, without a look at a block */
        return NULL;
    }
    char* report = must(mi_heap_malloc(heap, 40));
    snprintf(report, 40, "job %d has %ld", job, sum);
    for (Node *node = list, *next; node != NULL; node = next) {
        next = node->next;
        mi_free(node);
    }
    mi_heap_delete(heap); /* what lives goes to the default heap */
    return report;
}

int main(void) {
    for (int job = 1; job <= 3; job++) {
        char* report = run(job);
        printf("%s\n", report != NULL ? report : "no report");
        mi_free(report);
    }
}
