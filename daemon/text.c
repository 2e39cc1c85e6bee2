/*
 * text.c - text that grows in memory.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

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
    if (n < 0 || (size_t)n >= sizeof line)
        t->failed = true;
    else
        (void)text_write(t, line, (size_t)n);
}

/* Length of the UTF-8 sequence at s; 0 when it is none. */
static size_t sequence(const unsigned char* s) {
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
               : (s[0] & 0xf0) == 0xe0       ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
    for (size_t k = 1; k < n; k++)
        if ((s[k] & 0xc0) != 0x80) return 0; /* the terminating zero, too */
    if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0))) return 0;
    if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))) return 0;
    return n;
}

void text_json_string(struct text* t, const char* string) {
    const unsigned char* s = (const unsigned char*)string;
    text_put(t, "\"");
    while (*s != 0) {
        size_t n = sequence(s);
        if (n == 0)
            text_put(t, "\xef\xbf\xbd");
        else if (n == 1 && (*s < 0x20 || *s == '"' || *s == '\\'))
            text_format(t, "\\u%04x", *s);
        else
            (void)text_write(t, (const char*)s, n);
        s += n != 0 ? n : 1;
    }
    text_put(t, "\"");
}
