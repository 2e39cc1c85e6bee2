/* The same requests, each in a phase of its own: nothing of a request is freed singly. */
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Field {
    struct Field* next;
    char *name, *value;
} Field;

static SlabAllocator* slab;
static char* last_user; /* outlives its request */

static void* must(void* p) {
    if (p == NULL) exit(3);
    return p;
}

static Field* parse(const char* line) { /* NULL when malformed */
    Field* fields = NULL;
    while (*line != 0) {
        size_t n = strcspn(line, "&"), name = strcspn(line, "=");
        if (name >= n) return NULL;
        Field* f = must(SLAB_NEW(slab, Field));
        f->name = must(slab_strndup(slab, line, name));
        f->value = must(slab_strndup(slab, line + name + 1, n - name - 1));
        f->next = fields, fields = f;
        line += n + (line[n] == '&');
    }
    return fields;
}

static void serve(const char* line) {
    SLAB_SCOPE(slab, "request"); /* ends at the closing brace, on each way out */
    Field* fields = parse(line);
    if (fields == NULL) {
        puts("400");
        return;
    }
    int n = 0;
    for (Field* f = fields; f != NULL; f = f->next, n++)
        if (strcmp(f->name, "user") == 0) {
            slab_free(slab, last_user);
            last_user = strcpy(must(slab_malloc_outside(slab, strlen(f->value) + 1)), f->value);
        }
    printf("200 %d fields\n", n);
}

int main(void) {
    slab = must(slab_allocator_create());
    const char* lines[] = {"user=ann&item=7", "user=bob&item", "item=9&count=2&user=carol"};
    for (int i = 0; i < 3; i++) serve(lines[i]);
    printf("last user: %s\n", last_user);
    slab_free(slab, last_user);
    SlabGlobalStats left;
    slab_stats_global(slab, &left);
    slab_allocator_free(slab);
    return left.live_objects != 0;
}
