/*
 * words.h - words and numbers of the command line. Complaints go to standard error.
 */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

extern const char* program_name; /* begins complaints; main sets it */

/* Says that a word is unknown, and which of those known may have been meant. */
void wrong_word(const char* kind, const char* word, const char* const* known, size_t count);
/* Index of a word; -1 after a complaint. */
int word_index(const char* kind, const char* word, const char* const* known, size_t count);
/* A decimal number within bounds, without sign and exponent; false after a complaint. */
bool number(const char* flag, const char* text, double low, double high, bool whole, double* out);

#endif
