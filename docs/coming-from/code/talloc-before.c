/* A configuration that is read anew, on talloc: an object is a context, and ends with all below it. */
#include <stdio.h>
#include <string.h>
#include <talloc.h>

typedef struct Config {
    int n;
    char* names[4];
} Config;

static int config_gone(Config* c) {
    printf("configuration of %d gone\n", c->n);
    return 0;
}

static Config* load(TALLOC_CTX* owner, const char* text) { /* NULL when there are too many names */
    TALLOC_CTX* scratch = talloc_new(owner);
    Config* c = talloc_zero(scratch, Config); /* not the owner's until it is whole */
    talloc_set_destructor(c, config_gone);
    char* rest = talloc_strdup(scratch, text);
    for (char* word = strtok(rest, " "); word != NULL; word = strtok(NULL, " ")) {
        if (c->n == 4) {
            talloc_free(scratch);
            return NULL;
        }
        c->names[c->n++] = talloc_asprintf(c, "<%s>", word);
    }
    talloc_steal(owner, c);
    talloc_free(scratch);
    return c;
}

int main(void) {
    const char* texts[] = {"ann bob", "a b c d e", "carol"};
    TALLOC_CTX* server = talloc_new(NULL);
    Config* current = NULL;
    for (int i = 0; i < 3; i++) {
        Config* next = load(server, texts[i]);
        if (next == NULL) {
            puts("refused");
            continue;
        }
        talloc_free(current);
        current = next;
        printf("%d names, first %s\n", current->n, current->names[0]);
    }
    talloc_free(server);
}
