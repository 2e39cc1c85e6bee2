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

/* Appends text by a format of printf, cut after 511 bytes, without a newline; "1 objects" becomes "1 object", except
 * in quotes. Nothing reaches `write` once it has refused. [no other user of text] */
void tsi_text_put(TsiText* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Appends the head of the section number `section` as a line, "1. ...", with a newline: a text by a format of printf,
 * cut after 511 bytes, in which "1 objects" becomes "1 object", except in quotes. [no other user of text] */
void tsi_text_head(TsiText* text, unsigned section, const char* format, ...) __attribute__((format(printf, 3, 4)));
/* Appends a line below a head, indented by three spaces, with a newline: a text by a format of printf, cut after 511
 * bytes, in which "1 objects" becomes "1 object", except in quotes. [no other user of text] */
void tsi_text_line(TsiText* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a line that begins with three spaces and "ACTION: ", with a newline: a text by a format of printf, cut after
 * 511 bytes, in which "1 objects" becomes "1 object", except in quotes. Adds 1 to text->actions.
 * [no other user of text] */
void tsi_text_action(TsiText* text, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Hands over the collected bytes. Returns true, or false if `write` has refused anything, now or before.
 * [no other user of text] */
bool tsi_text_end(TsiText* text);

typedef struct TsiWord {
    char at[48];
} TsiWord;
/* Returns an amount of bytes in words: "900 B", and from 1024 on in KiB (2^10) to EiB (2^60) with one digit behind the
 * point, cut: "12.3 MiB". The text is in the value that is returned. [any thread, needs no lock] */
TsiWord tsi_word_bytes(uint64_t bytes);
/* Returns a label in quotes, cut to 31 bytes, with ' for a quote and '?' for each control character and each byte
 * that is not UTF-8; "(unlabeled)" without quotes for an empty one. [any thread, needs no lock] */
TsiWord tsi_word_label(const char* label);
/* Returns "class 2 (128 B)", "regions" or "large objects" for class_index, a public index, and object_size, the bytes
 * of an object of the class. [any thread, needs no lock] */
TsiWord tsi_word_class(uint32_t class_index, uint32_t object_size);

#endif
