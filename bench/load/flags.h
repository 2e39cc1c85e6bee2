/*
 * flags.h - tables of flags: they feed the reader of the command line, its messages and --help.
 *
 * Flags are accepted with - for _ and the reverse, with "=" or as two words. Complaints go to standard error.
 */
#ifndef LOAD_FLAGS_H
#define LOAD_FLAGS_H

#include <stddef.h>

struct flag {
    const char *name, *argument, *help; /* argument NULL: takes none; help "": not in the table of options */
    double low, high;                   /* of a number */
};

struct flag_table {
    const struct flag* flags;
    size_t count;
};

/* The flag at argv[*i] and its value, which may be the next word: then *i moves on. NULL after a complaint. */
const struct flag* flag_take(const struct flag_table* tables, size_t count, int argc, char** argv, int* i,
                             const char** value);
/* One line or more for each flag of a table. */
void flags_print(const struct flag_table* table);

#endif
