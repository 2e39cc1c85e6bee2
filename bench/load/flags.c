/*
 * flags.c - finds a flag in its tables, and prints tables for --help.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "load/flags.h"
#include "load/words.h"

enum { FLAGS_MAX = 64 };

static bool same_name(const char* flag, const char* word, size_t n) {
    bool same = n == strlen(flag);
    for (size_t k = 0; same && k < n; k++)
        same = word[k] == flag[k] || (k > 1 && strchr("-_", word[k]) && strchr("-_", flag[k]));
    return same;
}

const struct flag* flag_take(const struct flag_table* tables, size_t count, int argc, char** argv, int* i,
                             const char** value) {
    const char *word = argv[*i], *eq = strchr(word, '='), *names[FLAGS_MAX];
    size_t n = eq ? (size_t)(eq - word) : strlen(word), known = 0;
    for (size_t t = 0; t < count; t++)
        for (size_t k = 0; k < tables[t].count; k++) {
            const struct flag* f = &tables[t].flags[k];
            if (known < FLAGS_MAX) names[known++] = f->name;
            if (!same_name(f->name, word, n)) continue;
            *value = eq ? eq + 1 : f->argument && *i + 1 < argc ? argv[++*i] : NULL;
            if (f->argument ? *value && **value : !*value) return f;
            fprintf(stderr, "%s: %s %s\n", program_name, f->name, f->argument ? "needs a value" : "takes no value");
            return NULL;
        }
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)n, word);
    wrong_word("option", n < sizeof name ? name : word, names, known);
    return NULL;
}

/* The rest of a line that stands LEFT columns in. */
static void wrapped(const char* text) {
    enum { LEFT = 26, WIDTH = 100 };
    int column = LEFT;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column + n > WIDTH)
            column = LEFT, printf("\n%*s", LEFT, "");
        else if (column > LEFT)
            putchar(' ');
        printf("%.*s", n, text);
        column += n + 1;
        text += n + (text[n] != 0);
    }
    putchar('\n');
}

void flags_print(const struct flag_table* table) {
    for (size_t n = 0; n < table->count; n++) {
        const struct flag* f = &table->flags[n];
        if (*f->help == 0) continue;
        int width = printf("  %s%s%s", f->name, f->argument ? "=" : "", f->argument ? f->argument : "");
        printf("%*s", width < 25 ? 26 - width : 1, "");
        wrapped(f->help);
    }
}
