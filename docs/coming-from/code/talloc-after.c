/* The same: each configuration is a phase that nobody is inside of. It is whole from the start, so nothing is stolen. */
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Config {
    epoch_domain_t* phase;
    int n;
    char* names[4];
} Config;

static SlabAllocator* slab;

static void* must(void* p) {
    if (p == NULL) exit(3);
    return p;
}

static void config_free(Config* c) { /* what a destructor looks at is looked at before the end */
    if (c == NULL) return;
    printf("configuration of %d gone\n", c->n);
    epoch_domain_destroy(c->phase);
}

static Config* load(const char* text) { /* NULL when there are too many names */
    SLAB_SCOPE(slab, "scratch");
    epoch_domain_t* phase = must(epoch_domain_create_labeled(slab, "configuration"));
    Config* c = must(epoch_domain_calloc(phase, 1, sizeof *c));
    c->phase = phase;
    char* rest = must(slab_strdup(slab, text));
    for (char* word = strtok(rest, " "); word != NULL; word = strtok(NULL, " ")) {
        if (c->n == 4) {
            config_free(c);
            return NULL;
        }
        c->names[c->n++] = must(epoch_domain_asprintf(phase, "<%s>", word));
    }
    return c;
}

int main(void) {
    const char* texts[] = {"ann bob", "a b c d e", "carol"};
    slab = must(slab_allocator_create());
    Config* current = NULL;
    for (int i = 0; i < 3; i++) {
        Config* next = load(texts[i]);
        if (next == NULL) {
            puts("refused");
            continue;
        }
        config_free(current);
        current = next;
        printf("%d names, first %s\n", current->n, current->names[0]);
    }
    config_free(current);
    SlabGlobalStats left;
    slab_stats_global(slab, &left);
    slab_allocator_free(slab);
    return left.live_objects != 0;
}
