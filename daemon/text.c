/*
 * text.c - text that grows in memory.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Makes room for n bytes more. Returns false, and sets t->failed, without memory or beyond the limit.
 * [no other user of t] */
static bool make_room(struct text* t, size_t n) {
    if (t->failed || n > t->limit - t->size) return t->failed = true, false;
    if (t->size + n <= t->room) return true;
    size_t room = t->room < 4096 ? 4096 : t->room;
    while (room < t->size + n) room *= 2;
    char* bytes = realloc(t->bytes, room);
    if (bytes == NULL) return t->failed = true, false;
    t->bytes = bytes;
    t->room = room;
    return true;
}

bool text_write(void* ctx, const char* bytes, size_t n) {
    struct text* t = ctx;
    if (!make_room(t, n)) return false;
    if (n != 0) memcpy(t->bytes + t->size, bytes, n);
    t->size += n;
    return true;
}

void text_put(struct text* t, const char* s) { (void)text_write(t, s, strlen(s)); }

void text_format(struct text* t, const char* format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof line) t->failed = true;
    else (void)text_write(t, line, (size_t)n);
}
