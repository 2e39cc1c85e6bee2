/*
 * json.c - see json.h.
 */
#include "common/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct json* j, const char* bytes) { (void)j->write(j->ctx, bytes, strlen(bytes)); }

static void put_line(struct json* j, unsigned columns) {
    char blanks[64];
    (void)snprintf(blanks, sizeof blanks, "\n%*s", (int)columns, "");
    put(j, blanks);
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

static void put_string(struct json* j, const char* text) {
    const unsigned char* s = (const unsigned char*)text;
    put(j, "\"");
    while (*s) {
        char escaped[8] = "\xef\xbf\xbd";
        size_t n = sequence(s);
        bool plain = n > 1 || (n == 1 && *s >= 0x20 && *s != '"' && *s != '\\');
        if (n == 1) (void)snprintf(escaped, sizeof escaped, *s < 0x20 ? "\\u%04x" : "\\%c", *s);
        if (plain)
            (void)j->write(j->ctx, (const char*)s, n);
        else
            put(j, escaped);
        s += n ? n : 1;
    }
    put(j, "\"");
}

/* What stands before a value. */
static void begin(struct json* j, const char* key) {
    bool follows = j->level[j->depth].some;
    if (follows) put(j, ",");
    if (j->line || (j->depth && j->depth <= j->lines))
        put_line(j, j->line ? j->line - 1 : j->depth * j->indent);
    else if (follows && !j->tight)
        put(j, " ");
    j->line = 0;
    j->level[j->depth].some = j->depth;
    if (!key) return;
    put_string(j, key);
    put(j, j->tight ? ":" : ": ");
}

static void open_level(struct json* j, const char* key, const char* opener, char closer) {
    begin(j, key);
    put(j, opener);
    if (++j->depth == JSON_DEPTH) abort();
    j->level[j->depth].some = false;
    j->level[j->depth].closer = closer;
}

void json_object(struct json* j, const char* key) { open_level(j, key, "{", '}'); }

void json_array(struct json* j, const char* key) { open_level(j, key, "[", ']'); }

void json_close(struct json* j) {
    unsigned inner = j->depth--;
    if (j->line || (j->level[inner].some && inner <= j->lines))
        put_line(j, j->line ? j->line - 1 : j->depth * j->indent);
    j->line = 0;
    put(j, (const char[]){j->level[inner].closer, 0});
}

void json_line(struct json* j, unsigned column) { j->line = column + 1; }

bool json_file(void* ctx, const char* bytes, size_t n) { return fwrite(bytes, 1, n, ctx) == n; }

/* ---- values ---- */

void json_text(struct json* j, const char* key, const char* text) {
    begin(j, key);
    if (text)
        put_string(j, text);
    else
        put(j, "null");
}

void json_bool(struct json* j, const char* key, bool v) {
    begin(j, key);
    put(j, v ? "true" : "false");
}

void json_count(struct json* j, const char* key, uint64_t v) {
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, v);
    begin(j, key);
    put(j, text);
}

static void put_real(struct json* j, const char* key, const char* format, int precision, double v) {
    char text[352]; /* the largest number has 309 digits */
    begin(j, key);
    (void)snprintf(text, sizeof text, format, precision, v);
    put(j, isfinite(v) ? text : "null");
}

void json_fixed(struct json* j, const char* key, double v, int decimals) { put_real(j, key, "%.*f", decimals, v); }

void json_short(struct json* j, const char* key, double v, int digits) { put_real(j, key, "%.*g", digits, v); }
