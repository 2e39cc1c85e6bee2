/*
 * args.h - the command line of a suite program, from a table.
 *
 * A program lists its arguments; --allocator, --seed, --json, --csv, --quick, --inject-corruption, --help and --version
 * come with every one. Names that start with "--" are flags (--name value or --name=value), others are positional, in
 * table order, and may be left out from the right. A number that is not given is its preset, or its quick value with
 * --quick. --json and --csv go to standard output, or to a file when a word follows that is neither a flag nor a number.
 * A wrong word ends the program with status 2 and a hint.
 */
#ifndef SUITE_ARGS_H
#define SUITE_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum arg_kind { ARG_NUMBER, ARG_WORD, ARG_FLAG, ARG_FILE };

/* Where output goes; path NULL: standard output. */
struct arg_file {
    bool asked;
    const char* path;
};

struct arg {
    const char* name;
    enum arg_kind kind;
    void* to;              /* uint64_t, const char*, bool, struct arg_file */
    uint64_t least, most;  /* of a number */
    uint64_t preset, quick; /* of a number; quick 0: as preset */
    const char* words;     /* of a word: "first|second|..."; the first is the preset */
    const char* help;
    bool given;
};

static unsigned arg_distance(const char* a, const char* b) {
    enum { MOST = 31 };
    unsigned row[MOST + 1];
    size_t la = strlen(a), lb = strlen(b);
    if (la > MOST || lb > MOST) return MOST;
    for (size_t k = 0; k <= lb; k++) row[k] = (unsigned)k;
    for (size_t i = 1; i <= la; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= lb; k++) {
            unsigned change = diagonal + (a[i - 1] != b[k - 1]), step = row[k] < row[k - 1] ? row[k] : row[k - 1];
            diagonal = row[k];
            row[k] = step + 1 < change ? step + 1 : change;
        }
    }
    return row[lb];
}

static bool arg_is_flag(const struct arg* t) { return t->name[0] == '-'; }

static _Noreturn void arg_wrong(const char* program, const char* word, struct arg* args, size_t n) {
    const char* best = arg_distance(word, "--help") < 3 ? "--help" : NULL;
    unsigned closest = best ? arg_distance(word, best) : 4; /* further away it is another word */
    for (size_t i = 0; i < n; i++) {
        unsigned d = arg_is_flag(&args[i]) ? arg_distance(word, args[i].name) : closest;
        if (d < closest) {
            closest = d;
            best = args[i].name;
        }
    }
    fprintf(stderr, "%s: '%s' is not an argument", program, word);
    if (best) fprintf(stderr, "; did you mean %s?\n", best);
    else fprintf(stderr, "; see %s --help\n", program);
    exit(2);
}

static void arg_print_help(const char* program, const char* what, const struct arg* args, size_t n) {
    printf("usage: %s [options]", program);
    for (size_t i = 0; i < n; i++)
        if (!arg_is_flag(&args[i])) printf(" [%s]", args[i].name);
    printf("\n%s\n\n", what);
    for (size_t i = 0; i < n; i++) {
        const struct arg* t = &args[i];
        char left[64];
        const char* kind = t->kind == ARG_NUMBER && arg_is_flag(t) ? " N" : t->kind == ARG_WORD ? " WORD" : "";
        (void)snprintf(left, sizeof left, "%s%s", t->name, t->kind == ARG_FILE ? "[=FILE]" : kind);
        printf("  %-22s %s", left, t->help);
        if (t->kind == ARG_WORD) printf(": %s", t->words);
        if (t->kind == ARG_NUMBER) printf(" (default %llu", (unsigned long long)t->preset);
        if (t->kind == ARG_NUMBER && t->quick) printf(", quick %llu", (unsigned long long)t->quick);
        printf(t->kind == ARG_NUMBER ? ")\n" : "\n");
    }
    printf("  %-22s %s\n  %-22s %s\n", "--help", "this text", "--version", "the version of temporal-slab");
    printf("Exit status: 0; 1 contents were damaged or output failed; 2 wrong arguments; 3 out of memory; 130 interrupted.\n");
}

static bool arg_known_word(const char* words, const char* word) {
    size_t n = strlen(word);
    for (const char* at = words; n != 0 && at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(at, word, n) == 0 && (at[n] == '|' || at[n] == 0)) return true;
    return false;
}

/* The first of a|b|c, in storage that lives on. */
static const char* arg_first_word(const char* words) {
    size_t n = strcspn(words, "|");
    char* copy = malloc(n + 1);
    if (!copy) exit(3);
    memcpy(copy, words, n);
    copy[n] = 0;
    return copy;
}

static void arg_set(const char* program, struct arg* t, const char* value) {
    if (t->given && !arg_is_flag(t)) abort();
    t->given = true;
    if (t->kind == ARG_NUMBER) {
        char* end = NULL;
        unsigned long long v = value[0] >= '0' && value[0] <= '9' ? strtoull(value, &end, 10) : 0;
        if (!end || *end || v < t->least || v > t->most) {
            fprintf(stderr, "%s: %s takes a number from %llu to %llu, not '%s'\n", program, t->name,
                    (unsigned long long)t->least, (unsigned long long)t->most, value);
            exit(2);
        }
        *(uint64_t*)t->to = v;
    } else {
        if (!arg_known_word(t->words, value)) {
            fprintf(stderr, "%s: %s takes %s, not '%s'\n", program, t->name, t->words, value);
            exit(2);
        }
        *(const char**)t->to = value;
    }
}

static bool arg_is_number(const char* word) { return word[strspn(word, "0123456789")] == 0; }

/* Returns how many of the following words it used. */
static int arg_flag(const char* program, struct arg* t, const char* eq, const char* next) {
    if (t->kind == ARG_FLAG) {
        if (eq) {
            fprintf(stderr, "%s: %s takes no value\n", program, t->name);
            exit(2);
        }
        *(bool*)t->to = true;
        return 0;
    }
    if (t->kind == ARG_FILE) {
        bool follows = !eq && next && next[0] != '-' && !arg_is_number(next);
        *(struct arg_file*)t->to = (struct arg_file){true, eq ? eq + 1 : follows ? next : NULL};
        return follows;
    }
    if ((eq && !eq[1]) || (!eq && !next)) {
        fprintf(stderr, "%s: %s needs a value\n", program, t->name);
        exit(2);
    }
    arg_set(program, t, eq ? eq + 1 : next);
    return !eq;
}

static struct arg* arg_find(struct arg* args, size_t n, const char* name, size_t length) {
    for (size_t i = 0; i < n; i++)
        if (arg_is_flag(&args[i]) && strlen(args[i].name) == length && memcmp(args[i].name, name, length) == 0)
            return &args[i];
    return NULL;
}

static void arg_presets(struct arg* args, size_t n, bool quick) {
    for (size_t i = 0; i < n; i++) {
        struct arg* t = &args[i];
        if (t->given) continue;
        if (t->kind == ARG_NUMBER) *(uint64_t*)t->to = quick && t->quick ? t->quick : t->preset;
        if (t->kind == ARG_WORD) *(const char**)t->to = arg_first_word(t->words);
    }
}

/* `quick` is the bool that the --quick entry of the table sets. */
static void arg_parse(int argc, char** argv, const char* program, const char* what, const char* version,
                      struct arg* args, size_t n, const bool* quick) {
    size_t place = 0; /* next positional */
    for (int i = 1; i < argc; i++) {
        const char* word = argv[i];
        if (!strcmp(word, "--help")) {
            arg_print_help(program, what, args, n);
            exit(fflush(stdout) ? 1 : 0);
        }
        if (!strcmp(word, "--version")) exit(printf("%s %s\n", program, version) < 0 || fflush(stdout) ? 1 : 0);
        if (word[0] == '-') {
            const char* eq = strchr(word, '=');
            struct arg* t = arg_find(args, n, word, eq ? (size_t)(eq - word) : strlen(word));
            if (!t) arg_wrong(program, word, args, n);
            i += arg_flag(program, t, eq, i + 1 < argc ? argv[i + 1] : NULL);
            continue;
        }
        while (place < n && arg_is_flag(&args[place])) place++;
        if (place == n) arg_wrong(program, word, args, n);
        arg_set(program, &args[place++], word);
    }
    arg_presets(args, n, *quick);
}

#endif
