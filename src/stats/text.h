/*
 * text.h - text in pieces, to a function that may refuse.
 *
 * Lines are collected in a small buffer, so that `write` is called seldom; once it returns false it is not called
 * again. Nothing allocates.
 */
#ifndef TSI_STATS_TEXT_H
#define TSI_STATS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TsiText {
    bool (*write)(void* ctx, const char* bytes, size_t n);
    void* ctx;
    bool refused;
    unsigned actions; /* ACTION lines so far */
    size_t used;
    char buf[2048];
} TsiText;

/* Writes text; cut after 500 bytes. */
void tsi_text_put(TsiText* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Write a line: the head of a section, "1. ..."; one below it; one below it that starts with ACTION. */
void tsi_text_head(TsiText* text, unsigned section, const char* format, ...) __attribute__((format(printf, 3, 4)));
void tsi_text_line(TsiText* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
void tsi_text_action(TsiText* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Hands over the rest. Returns false if anything was refused. */
bool tsi_text_end(TsiText* text);

typedef struct TsiWord {
    char at[48];
} TsiWord;
/* Returns "12.3 MiB". */
TsiWord tsi_word_bytes(uint64_t bytes);
/* Returns a label in quotes, unprintable bytes as '?'; or (unlabeled). */
TsiWord tsi_word_label(const char* label);
/* Returns "class 2 (128 B)", "regions" or "large objects". */
TsiWord tsi_word_class(uint32_t class_index, uint32_t object_size);

#endif
