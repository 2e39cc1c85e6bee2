/*
 * flags.c - walks over a command line, stores values, complains, prints tables.
 */
#include "common/flags.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char* program_name = "program";

/* ---- complaints ---- */

bool flags_wrong(const char* format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

static unsigned least_of(unsigned a, unsigned b) { return a < b ? a : b; }

/* Letters to put in, take out or change to make b of a. */
static unsigned distance(const char* a, const char* b) {
    enum { MOST = 31 };
    unsigned row[MOST + 1];
    size_t la = strlen(a), lb = strlen(b);
    if (la > MOST || lb > MOST) return MOST;
    for (size_t k = 0; k <= lb; k++) row[k] = (unsigned)k;
    for (size_t i = 1; i <= la; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= lb; k++) {
            unsigned above = row[k];
            row[k] = least_of(least_of(above, row[k - 1]) + 1, diagonal + (a[i - 1] != b[k - 1]));
            diagonal = above;
        }
    }
    return row[lb];
}

struct nearest {
    const char *word, *known;
    unsigned distance;
};

static void look_nearer(struct nearest* n, const char* known) {
    unsigned d = distance(n->word, known);
    if (d < n->distance) n->known = known, n->distance = d;
}

/* From there on it is another word. */
static unsigned far_from(const char* word) { return least_of(4, (unsigned)strlen(word)); }

static void unknown_flag(const struct command_line* c, const char* word) {
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    struct nearest n = {.word = name, .distance = far_from(name)};
    look_nearer(&n, "--help");
    for (struct flag* const* t = c->tables; *t; t++)
        for (const struct flag* f = *t; f->name; f++)
            if (f->help && f->name[0] == '-') look_nearer(&n, f->name);
    if (n.known)
        (void)flags_wrong("'%s' is not a flag; did you mean %s?", word, n.known);
    else
        (void)flags_wrong("'%s' is not a flag; see %s --help", word, program_name);
}

int flags_word(const char* name, const char* text, const char* const* words) {
    struct nearest n = {.word = text, .distance = far_from(text)};
    for (int i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) return i;
        look_nearer(&n, words[i]);
    }
    fprintf(stderr, "%s: %s takes ", program_name, name);
    for (int i = 0; words[i]; i++) fprintf(stderr, "%s%s", i ? "|" : "", words[i]);
    fprintf(stderr, ", not '%s'%s%s%s\n", text, n.known ? "; did you mean " : "", n.known ? n.known : "",
            n.known ? "?" : "");
    return -1;
}

static bool wrong_number(const char* name, const char* text, const char* kind, double least, double most) {
    if (most == 0) return flags_wrong("%s takes a %s, not '%s'", name, kind, text);
    return flags_wrong("%s takes a %s from %.15g to %.15g, not '%s'", name, kind, least, most, text);
}

/* ---- values ---- */

bool flags_count(const char* name, const char* text, double least, double most, uint64_t* out) {
    errno = 0;
    *out = strtoull(text, NULL, 10);
    if (*text && text[strspn(text, "0123456789")] == 0 && errno == 0 && (double)*out >= least &&
        (most == 0 || (double)*out <= most))
        return true;
    return wrong_number(name, text, "whole number", least, most);
}

bool flags_real(const char* name, const char* text, double least, double most, double* out) {
    char* end = NULL;
    *out = strtod(text, &end);
    if (*text && *end == 0 && text[strspn(text, "0123456789.")] == 0 && *out >= least && (most == 0 || *out <= most))
        return true;
    return wrong_number(name, text, "number", least, most);
}

static const char* argument_of(const struct flag* f) {
    static const char* const usual[] = {[FLAG_COUNT] = "N",   [FLAG_UNSIGNED] = "N", [FLAG_REAL] = "N",
                                        [FLAG_WORD] = "WORD", [FLAG_TEXT] = "TEXT",  [FLAG_FILE] = "[=FILE]"};
    if (f->argument) return f->argument;
    return f->name[0] == '-' && usual[f->kind] ? usual[f->kind] : "";
}

static bool store(struct flag* f, const char* value) {
    uint64_t count;
    f->given = true;
    if (f->kind == FLAG_SWITCH || f->kind == FLAG_CLEAR) {
        *(bool*)f->to = f->kind == FLAG_SWITCH;
        return value ? flags_wrong("%s takes no value", f->name) : true;
    }
    if (f->kind == FLAG_FILE) {
        *(struct flag_file*)f->to = (struct flag_file){true, value};
        return true;
    }
    if (!value || !*value) return flags_wrong("%s needs a value: %s %s", f->name, f->name, argument_of(f));
    if (f->kind == FLAG_REAL) return flags_real(f->name, value, f->least, f->most, f->to);
    if (f->kind == FLAG_COUNT) return flags_count(f->name, value, f->least, f->most, f->to);
    if (f->kind == FLAG_UNSIGNED) {
        bool good = flags_count(f->name, value, f->least, f->most, &count);
        if (good) *(unsigned*)f->to = (unsigned)count;
        return good;
    }
    if (f->kind == FLAG_WORD && flags_word(f->name, value, f->words) < 0) return false;
    if (f->take) return f->take(f->to, value);
    *(const char**)f->to = value;
    return true;
}

/* ---- the walk ---- */

struct walk {
    int next;
    unsigned place; /* among the words without a dash */
    const char *word, *value;
    struct flag* flag; /* NULL: the word is unknown */
};

static bool same_name(const char* name, const char* word, size_t n) {
    bool same = n == strlen(name);
    for (size_t k = 0; same && k < n; k++)
        same = word[k] == name[k] || (k > 1 && strchr("-_", word[k]) && strchr("-_", name[k]));
    return same;
}

static struct flag* find(const struct command_line* c, const char* word, size_t n, unsigned place) {
    for (struct flag* const* t = c->tables; *t; t++)
        for (struct flag* f = *t; f->name; f++)
            if (*word == '-' ? same_name(f->name, word, n) : f->name[0] != '-' && place-- == 0) return f;
    return NULL;
}

static bool takes_next(const struct flag* f, const char* next) {
    if (!f || !next || f->kind == FLAG_SWITCH || f->kind == FLAG_CLEAR) return false;
    return f->kind != FLAG_FILE || (next[0] != '-' && next[strspn(next, "0123456789")] != 0);
}

static bool step(const struct command_line* c, struct walk* w) {
    if (w->next >= c->argc) return false;
    const char *word = c->argv[w->next++], *eq = *word == '-' ? strchr(word, '=') : NULL;
    w->flag = find(c, word, eq ? (size_t)(eq - word) : strlen(word), *word == '-' ? 0 : w->place++);
    w->word = word;
    w->value = eq ? eq + 1 : *word == '-' ? NULL : word;
    if (!w->value && takes_next(w->flag, c->argv[w->next])) w->value = c->argv[w->next++];
    return true;
}

const char* flags_value(const struct command_line* c, const char* name) {
    const char* value = NULL;
    for (struct walk w = {.next = 1}; step(c, &w);)
        if (w.flag && strcmp(w.flag->name, name) == 0) value = w.value;
    return value;
}

static int printed(void) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    (void)flags_wrong("standard output: %s", strerror(errno ? errno : EIO));
    return 1;
}

/* Returns the name that the program was called by: its own, or tslab-NAME if it is installed as that. */
static const char* called(const struct command_line* c) {
    const char* word = c->argc > 0 ? c->argv[0] : "";
    const char* slash = strrchr(word, '/');
    if (slash) word = slash + 1;
    return strncmp(word, "tslab-", 6) == 0 && strcmp(word + 6, c->program) == 0 ? word : c->program;
}

int flags_read(const struct command_line* c) {
    program_name = called(c);
    for (struct flag* const* t = c->tables; *t; t++)
        for (struct flag* f = *t; f->name; f++)
            if (f->kind == FLAG_COUNT && f->preset) *(uint64_t*)f->to = f->preset;
    for (struct walk w = {.next = 1}; step(c, &w);) {
        if (!strcmp(w.word, "--help") || !strcmp(w.word, "-h")) return c->help(c), printed();
        if (c->version && !strcmp(w.word, "--version")) return printf("%s %s\n", program_name, c->version), printed();
        if (!w.flag) return unknown_flag(c, w.word), 2;
        if (!store(w.flag, w.value)) return 2;
    }
    return -1;
}

/* ---- help ---- */

/* The rest of a line that stands at a column. */
static void print_wrapped(const char* text, int left) {
    enum { WIDTH = 100 };
    for (int column = left; *text;) {
        int n = (int)strcspn(text, " ");
        if (column + n > WIDTH)
            column = left, printf("\n%*s", left, "");
        else if (column > left)
            putchar(' ');
        printf("%.*s", n, text);
        column += n + 1;
        text += n + (text[n] != 0);
    }
    putchar('\n');
}

void flags_print(const struct command_line* c, const struct flag* table) {
    for (const struct flag* f = table; f->name; f++) {
        const char* argument = argument_of(f);
        char between[2] = {isalpha((unsigned char)*argument) ? c->between : 0, 0}, *text = NULL;
        size_t size;
        FILE* all = f->help && *f->help ? open_memstream(&text, &size) : NULL;
        if (!all) continue;
        fputs(f->help, all);
        for (int i = 0; f->kind == FLAG_WORD && !f->argument && f->words[i]; i++)
            fprintf(all, "%s%s", i ? "|" : ": ", f->words[i]);
        if (f->preset) fprintf(all, " (default %" PRIu64, f->preset);
        if (f->quick) fprintf(all, ", quick %" PRIu64, f->quick);
        if (f->preset) fputc(')', all);
        (void)fclose(all);
        int width = printf("  %s%s%s", f->name, between, argument);
        printf("%*s", width < c->column ? c->column - width : 1, "");
        print_wrapped(text, c->column);
        free(text);
    }
}
