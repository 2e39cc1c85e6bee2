/*
 * flags.h - a command line read from tables, which also feed its complaints and --help.
 *
 * A flag is written --name VALUE or --name=VALUE, with - for _ and the reverse. Names are never shortened: with
 * getopt_long a flag that is added later would change what a script means. A word without a dash goes to the entries
 * without one, in the order of the table. Every program has --help and -h, those with a version --version. A
 * complaint is one line on standard error, which says what would be right.
 */
#ifndef COMMON_FLAGS_H
#define COMMON_FLAGS_H

#include <stdbool.h>
#include <stdint.h>

enum flag_kind { /* and what `to` points at */
    FLAG_SWITCH,   /* bool: true */
    FLAG_CLEAR,    /* bool: false */
    FLAG_COUNT,    /* uint64_t */
    FLAG_UNSIGNED, /* unsigned */
    FLAG_REAL,     /* double */
    FLAG_TEXT,     /* const char* */
    FLAG_WORD,     /* const char*: one of `words` */
    FLAG_FILE,     /* struct flag_file */
};

/* A value that may be left out; a word that follows is one unless it is a flag or a number. */
struct flag_file {
    bool asked;
    const char* path; /* NULL: standard output */
};

/* A list of words; in a function it ends with the block around it. */
#define FLAG_WORDS(...) ((const char* const[]){__VA_ARGS__, NULL})

struct flag {
    const char* name; /* with its dashes; NULL ends a table */
    enum flag_kind kind;
    void* to;
    bool (*take)(void* to, const char* value); /* of TEXT and WORD: instead of storing it; false after a complaint */
    double least, most;                        /* of a number; most 0: no bound */
    uint64_t preset, quick;                    /* of COUNT, 0: none; told by --help. Who has quick ones sets them */
    const char* const* words;                  /* NULL ends them */
    const char* argument;                      /* for --help, which else says N, WORD or [=FILE] */
    const char* help;                          /* "": --help has it elsewhere; NULL: not for users */
    bool given;
};

struct command_line {
    const char *program, *version; /* no version: no --version */
    void (*help)(const struct command_line* c);
    int column;            /* where --help has its sentences */
    char between;          /* --name, this, ARGUMENT */
    struct flag* tables[3]; /* NULL ends them */
    int argc;
    char** argv;
};

extern const char* program_name; /* begins complaints; flags_read sets it: `program`, or tslab-`program` if called so */

/* Stores presets and what is given, in its order. -1 to go on, else the exit status. */
int flags_read(const struct command_line* c);
/* Before that: the last value of a flag; NULL when it has none. */
const char* flags_value(const struct command_line* c, const char* name);
/* The lines of one table. */
void flags_print(const struct command_line* c, const struct flag* table);

/* A complaint; false. */
bool flags_wrong(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Numbers within bounds, without sign and exponent; false after a complaint about what `name` takes. */
bool flags_count(const char* name, const char* text, double least, double most, uint64_t* out);
bool flags_real(const char* name, const char* text, double least, double most, double* out);
/* Index of a word; -1 after a complaint. */
int flags_word(const char* name, const char* text, const char* const* words);

#endif
