/*
 * words.c - words and numbers of the command line, and what is said about wrong ones.
 */
#include <stdlib.h>
#include <string.h>

#include "load/words.h"

const char* program_name = "load";

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

/* Letters to put in, take out or change to make b of a. */
static unsigned distance(const char* a, const char* b) {
    enum { MOST = 24 };
    unsigned row[MOST + 1];
    size_t la = strlen(a), lb = strlen(b);
    if (la > MOST || lb > MOST) return MOST;
    for (size_t k = 0; k <= lb; k++) row[k] = (unsigned)k;
    for (size_t i = 1; i <= la; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= lb; k++) {
            unsigned above = row[k];
            row[k] = least(least(above, row[k - 1]) + 1, diagonal + (a[i - 1] != b[k - 1]));
            diagonal = above;
        }
    }
    return row[lb];
}

void wrong_word(const char* kind, const char* word, const char* const* known, size_t count) {
    const char* best = NULL;
    unsigned best_distance = 4; /* further away it is another word */
    for (size_t n = 0; n < count; n++) {
        unsigned d = distance(word, known[n]);
        if (d < best_distance) best = known[n], best_distance = d;
    }
    fprintf(stderr, "%s: unknown %s '%s'; ", program_name, kind, word);
    if (best)
        fprintf(stderr, "did you mean %s?\n", best);
    else
        fprintf(stderr, "see %s --help\n", program_name);
}

int word_index(const char* kind, const char* word, const char* const* known, size_t count) {
    for (size_t n = 0; n < count; n++)
        if (strcmp(word, known[n]) == 0) return (int)n;
    wrong_word(kind, word, known, count);
    return -1;
}

bool number(const char* flag, const char* text, double low, double high, bool whole, double* out) {
    char* end = NULL;
    double v = strtod(text, &end);
    bool plain = *text != 0 && strspn(text, whole ? "0123456789" : "0123456789.") == strlen(text);
    if (plain && *end == 0 && v >= low && v <= high) return *out = v, true;
    fprintf(stderr, "%s: %s takes a %snumber from %.15g to %.15g, not '%s'\n", program_name, flag,
            whole ? "whole " : "", low, high, text);
    return false;
}
