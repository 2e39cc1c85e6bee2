/* text.c - see text.h. */
#include "stats/text.h"

#include "mem/size_class.h"
#include "stats/out.h"
#include "stats/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 512 };

/* Hands the collected bytes to `write`, if there are any and it has not refused, sets text->refused if it refuses, and
 * empties the buffer. [no other user of text] */
static void flush(TsiText* text) {
    if (text->used != 0 && !text->refused && !text->write(text->ctx, text->buf, text->used)) text->refused = true;
    text->used = 0;
}

static const struct {
    const char *many, *one;
} nouns[] = {
#define NOUN(many, one) {many, one},
#include "stats/words.def"
};

/* Returns true if the character c may stand in a number: a digit, a point or a comma. [any thread, needs no lock] */
static bool in_number(char c) { return (c >= '0' && c <= '9') || c == '.' || c == ','; }

/* Turns "1 objects" in `text`, of `len` bytes and ended by 0, into "1 object", except in quotes, which hold labels.
 * Returns the new length in bytes. [no other user of text] */
static size_t singular(char* text, size_t len) {
    bool quoted = false;
    for (size_t at = 0; at + 2 < len; at++) {
        quoted ^= text[at] == '"';
        bool goes_on = at != 0 && in_number(text[at - 1]);
        bool is_one = text[at] == '1' && text[at + 1] == ' ' && !goes_on;
        if (quoted || !is_one) continue;

        char* noun = text + at + 2;
        for (size_t n = 0; n < sizeof nouns / sizeof nouns[0]; n++) {
            size_t many = strlen(nouns[n].many), one = strlen(nouns[n].one);
            if (strncmp(noun, nouns[n].many, many) != 0 || (noun[many] >= 'a' && noun[many] <= 'z')) continue;
            memcpy(noun, nouns[n].one, one);
            memmove(noun + one, noun + many, len - (size_t)(noun + many - text) + 1);
            len -= many - one;
            break;
        }
    }
    return len;
}

/* Appends `args` by `format` to the buffer, cut after LINE_MAX_BYTES - 1 bytes, with nouns in the singular behind a 1;
 * first hands the buffer to `write` if fewer than LINE_MAX_BYTES are left in it. [no other user of text] */
static void put_list(TsiText* text, const char* format, va_list args) {
    if (sizeof text->buf - text->used < LINE_MAX_BYTES) flush(text);
    int n = vsnprintf(text->buf + text->used, LINE_MAX_BYTES, format, args);
    size_t len = n <= 0 ? 0 : (size_t)n < LINE_MAX_BYTES ? (size_t)n : LINE_MAX_BYTES - 1;
    text->used += singular(text->buf + text->used, len);
}

void tsi_text_put(TsiText* text, const char* format, ...) {
    va_list args;
    va_start(args, format);
    put_list(text, format, args);
    va_end(args);
}

void tsi_text_head(TsiText* text, unsigned section, const char* format, ...) {
    va_list args;
    tsi_text_put(text, "%u. ", section);
    va_start(args, format);
    put_list(text, format, args);
    va_end(args);
    tsi_text_put(text, "\n");
}

void tsi_text_line(TsiText* text, const char* format, ...) {
    va_list args;
    tsi_text_put(text, "   ");
    va_start(args, format);
    put_list(text, format, args);
    va_end(args);
    tsi_text_put(text, "\n");
}

void tsi_text_action(TsiText* text, const char* format, ...) {
    va_list args;
    text->actions++;
    tsi_text_put(text, "   ACTION: ");
    va_start(args, format);
    put_list(text, format, args);
    va_end(args);
    tsi_text_put(text, "\n");
}

bool tsi_text_end(TsiText* text) {
    flush(text);
    return !text->refused;
}

TsiWord tsi_word_bytes(uint64_t bytes) {
    static const char units[] = "KMGTPE";
    TsiWord w;
    unsigned unit = 0;
    if (bytes < 1024) {
        (void)snprintf(w.at, sizeof w.at, "%u B", (unsigned)bytes);
        return w;
    }
    for (; bytes >= 1u << 20; bytes >>= 10) unit++;
    (void)snprintf(w.at, sizeof w.at, "%u.%u %ciB", (unsigned)(bytes >> 10), (unsigned)(bytes & 1023) * 10 / 1024,
                   units[unit]);
    return w;
}

TsiWord tsi_word_label(const char* label) {
    TsiWord w;
    if (label[0] == 0) {
        (void)snprintf(w.at, sizeof w.at, "(unlabeled)");
        return w;
    }
    int n = snprintf(w.at, sizeof w.at, "\"%.31s\"", label);
    for (size_t i = 0, length; i < (size_t)n; i += length != 0 ? length : 1) {
        length = tsi_utf8_length((unsigned char*)w.at + i, (size_t)n - i);
        if (length == 0 || (unsigned char)w.at[i] < 0x20 || w.at[i] == 0x7f) w.at[i] = '?';
        if (w.at[i] == '"' && i != 0 && i != (size_t)n - 1) w.at[i] = '\'';
    }
    return w;
}

TsiWord tsi_word_class(uint32_t class_index, uint32_t object_size) {
    TsiWord w;
    if (class_index == TSI_CLASS_REGION - 1) (void)snprintf(w.at, sizeof w.at, "%s", tsi_say_class_regions);
    else if (class_index == TSI_CLASS_LARGE - 1) (void)snprintf(w.at, sizeof w.at, "%s", tsi_say_class_large);
    else (void)snprintf(w.at, sizeof w.at, tsi_say_class, class_index, object_size);
    return w;
}
