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

/* The library's kind of writer: ctx is a struct text. False when it has failed. */
bool text_write(void* ctx, const char* bytes, size_t n);
void text_put(struct text* t, const char* s);
void text_format(struct text* t, const char* format, ...) __attribute__((format(printf, 2, 3)));

#endif
