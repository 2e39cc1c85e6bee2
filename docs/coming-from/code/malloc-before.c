/* Requests on malloc: what a request makes is freed on each way out of it, by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Field {
    struct Field* next;
    char *name, *value;
} Field;

static char* last_user; /* outlives its request */

static void* must(void* p) {
    if (p == NULL) exit(3);
    return p;
}

static void free_fields(Field* f) {
    while (f != NULL) {
        Field* next = f->next;
        free(f->name), free(f->value), free(f);
        f = next;
    }
}

static Field* parse(const char* line) { /* NULL when malformed */
    Field* fields = NULL;
    while (*line != 0) {
        size_t n = strcspn(line, "&"), name = strcspn(line, "=");
        if (name >= n) {
            free_fields(fields);
            return NULL;
        }
        Field* f = must(malloc(sizeof *f));
        f->name = must(strndup(line, name));
        f->value = must(strndup(line + name + 1, n - name - 1));
        f->next = fields, fields = f;
        line += n + (line[n] == '&');
    }
    return fields;
}

static void serve(const char* line) {
    Field* fields = parse(line);
    if (fields == NULL) {
        puts("400");
        return;
    }
    int n = 0;
    for (Field* f = fields; f != NULL; f = f->next, n++)
        if (strcmp(f->name, "user") == 0) {
            free(last_user);
            last_user = must(strdup(f->value));
        }
    printf("200 %d fields\n", n);
    free_fields(fields);
}

int main(void) {
    const char* lines[] = {"user=ann&item=7", "user=bob&item", "item=9&count=2&user=carol"};
    for (int i = 0; i < 3; i++) serve(lines[i]);
    printf("last user: %s\n", last_user);
    free(last_user);
}
