/*
 * text.h - text that grows in memory, up to a limit.
 */
#ifndef TSLABD_TEXT_H
#define TSLABD_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char* bytes; /* malloc'ed; the caller's */
    size_t size, room, limit;
    bool failed; /* no memory, or over the limit: what follows is dropped */
};

/* Adds n bytes to the struct text ctx; the library's kind of writer. Returns false when it has failed: no memory, or
 * over the limit. [no other user of ctx] */
bool text_write(void* ctx, const char* bytes, size_t n);
/* Adds a text; a failure is in t->failed. [no other user of t] */
void text_put(struct text* t, const char* s);
/* Adds text by a format of printf, of less than 512 bytes: a longer one fails. A failure is in t->failed.
 * [no other user of t] */
void text_format(struct text* t, const char* format, ...) __attribute__((format(printf, 2, 3)));

#endif
