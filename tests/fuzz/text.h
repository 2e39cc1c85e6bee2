/*
 * text.h - second readers of what the library writes: UTF-8, strings of JSON, values of Prometheus labels, and whole
 * JSON documents. Each is as short as its grammar, and fails by REQUIRE_OR.
 */
#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

#include "kit/check.h"

typedef struct Text {
    size_t size;
    char bytes[1 << 16];
} Text;

static inline void text_byte(Text* t, unsigned c) {
    REQUIRE_OR(t->size < sizeof t->bytes, "a text of more than %zu bytes", sizeof t->bytes);
    t->bytes[t->size++] = (char)c;
}

/* A sink of the library's writers. */
static inline bool to_text(void* ctx, const char* bytes, size_t n) {
    for (size_t i = 0; i < n; i++) text_byte(ctx, (unsigned char)bytes[i]);
    return true;
}

static inline void text_rune(Text* t, uint32_t c) {
    if (c < 0x80) {
        text_byte(t, c);
    } else if (c < 0x800) {
        text_byte(t, 0xc0 | c >> 6);
        text_byte(t, 0x80 | (c & 63));
    } else if (c < 0x10000) {
        text_byte(t, 0xe0 | c >> 12);
        text_byte(t, 0x80 | (c >> 6 & 63));
        text_byte(t, 0x80 | (c & 63));
    } else {
        text_byte(t, 0xf0 | c >> 18);
        text_byte(t, 0x80 | (c >> 12 & 63));
        text_byte(t, 0x80 | (c >> 6 & 63));
        text_byte(t, 0x80 | (c & 63));
    }
}

/* The character at s and its bytes; U+FFFD and one byte where there is none. */
static inline uint32_t rune_at(const unsigned char* s, size_t n, size_t* length) {
    static const struct {
        uint32_t least;
        unsigned char mask, lead;
    } form[] = {{0, 0x80, 0}, {0x80, 0xe0, 0xc0}, {0x800, 0xf0, 0xe0}, {0x10000, 0xf8, 0xf0}};
    for (unsigned k = 0; k < 4; k++) {
        if ((s[0] & form[k].mask) != form[k].lead) continue;
        uint32_t c = s[0] & (unsigned char)~form[k].mask;
        unsigned more = 0;
        for (; more < k && more + 1 < n && (s[more + 1] & 0xc0) == 0x80; more++) c = c << 6 | (s[more + 1] & 63);
        if (more < k || c < form[k].least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) break;
        *length = k + 1;
        return c;
    }
    *length = 1;
    return 0xfffd;
}

/* What readers must see of n bytes. Returns whether U+FFFD is in it. */
static inline bool text_of_bytes(Text* t, const char* bytes, size_t n) {
    bool replaced = false;
    for (size_t i = 0, length; i < n; i += length) {
        uint32_t c = rune_at((const unsigned char*)bytes + i, n - i, &length);
        replaced |= c == 0xfffd;
        text_rune(t, c);
    }
    return replaced;
}

static inline bool same_text(const Text* a, const Text* b) {
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static inline void text_is_utf8(const char* bytes, size_t n) {
    for (size_t i = 0, length; i < n; i += length)
        REQUIRE_OR(rune_at((const unsigned char*)bytes + i, n - i, &length) != 0xfffd || length == 3,
                   "byte %zu is no UTF-8", i);
}

/* ---- JSON ---- */

typedef struct Json {
    const char *at, *end;
    unsigned depth;
} Json;

static inline char json_next(const Json* j) { return j->at < j->end ? *j->at : 0; }

static inline char json_take(Json* j) {
    REQUIRE_OR(j->at < j->end, "the JSON text ends within a value");
    return *j->at++;
}

static inline uint32_t json_hex(Json* j) {
    uint32_t v = 0;
    for (unsigned k = 0; k < 4; k++) {
        char c = json_take(j);
        REQUIRE_OR(strchr("0123456789abcdefABCDEF", c) != NULL && c != 0, "no hexadecimal digit: %d", c);
        v = v << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return v;
}

/* Reads a string and its quotes; t may be NULL. */
static inline void json_string(Json* j, Text* t) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    REQUIRE_OR(json_take(j) == '"', "no string at '%.20s'", j->at - 1);
    for (char c; (c = json_take(j)) != '"';) {
        uint32_t rune = (unsigned char)c;
        REQUIRE_OR((unsigned char)c >= 0x20, "a string has the control character %d", c);
        if (c == '\\') {
            c = json_take(j);
            const char* known = c != 0 ? strchr(from, c) : NULL;
            REQUIRE_OR(known != NULL || c == 'u', "an unknown escape: \\%c", c);
            rune = known != NULL ? (unsigned char)to[known - from] : json_hex(j);
            REQUIRE_OR(rune < 0x80, "an escape that the library has no reason for: U+%04x", rune);
        }
        if (t != NULL) text_byte(t, rune);
    }
}

static inline void json_word(Json* j, const char* word) {
    for (; *word != 0; word++) REQUIRE_OR(json_take(j) == *word, "a word of JSON is not whole");
}

static inline void json_blank(Json* j) {
    while (json_next(j) == ' ' || json_next(j) == '\n') j->at++;
}

static inline unsigned json_digits(Json* j) {
    unsigned n = 0;
    for (; json_next(j) >= '0' && json_next(j) <= '9'; n++) j->at++;
    return n;
}

static inline void json_number(Json* j) {
    if (json_next(j) == '-') j->at++;
    bool zero = json_next(j) == '0';
    unsigned n = json_digits(j);
    REQUIRE_OR(n == 1 || (n > 1 && !zero), "a number of JSON does not begin so");
    if (json_next(j) == '.') {
        j->at++;
        REQUIRE_OR(json_digits(j) != 0, "a number of JSON ends with its point");
    }
    if ((json_next(j) | 32) == 'e') {
        j->at++;
        if (json_next(j) == '-' || json_next(j) == '+') j->at++;
        REQUIRE_OR(json_digits(j) != 0, "a number of JSON has no exponent");
    }
}

static inline void json_value(Json* j) {
    char c = json_next(j), close = c == '{' ? '}' : ']';
    REQUIRE_OR(++j->depth < 32, "JSON nested %u deep", j->depth);
    if (c == '{' || c == '[') {
        j->at++;
        json_blank(j);
        for (bool first = true; json_next(j) != close; first = false, json_blank(j)) {
            if (!first) json_word(j, ","), json_blank(j);
            if (c == '{') json_string(j, NULL), json_blank(j), json_word(j, ":"), json_blank(j);
            json_value(j);
        }
        j->at++;
    } else if (c == '"') json_string(j, NULL);
    else if (c == 't') json_word(j, "true");
    else if (c == 'f') json_word(j, "false");
    else if (c == 'n') json_word(j, "null");
    else json_number(j);
    j->depth--;
}

/* A whole document in UTF-8, nothing behind it but blanks. */
static inline void json_document(const char* bytes, size_t n) {
    Json j = {bytes, bytes + n, 0};
    text_is_utf8(bytes, n);
    json_blank(&j);
    json_value(&j);
    json_blank(&j);
    REQUIRE_OR(j.at == j.end, "JSON is followed by '%.20s'", j.at);
}

/* ---- Prometheus ---- */

/* Takes the value of a label up to its closing quote to t. */
static inline const char* label_value(const char* at, const char* end, Text* t) {
    for (; at < end && *at != '"'; at++) {
        REQUIRE_OR(*at != '\n', "a label's value has a line end");
        char c = *at;
        if (c == '\\') {
            REQUIRE_OR(++at < end && strchr("n\"\\", *at) != NULL, "an unknown escape in a label's value");
            c = *at == 'n' ? '\n' : *at;
        }
        if (t != NULL) text_byte(t, (unsigned char)c);
    }
    REQUIRE_OR(at < end, "a label's value has no end");
    return at + 1;
}

/* Each line of a page in the text format: a comment, or a name, labels in braces and a number. */
static inline void prometheus_page(const char* bytes, size_t n) {
    const char *at = bytes, *end = bytes + n;
    text_is_utf8(bytes, n);
    while (at < end) {
        const char* stop = memchr(at, '\n', (size_t)(end - at));
        REQUIRE_OR(stop != NULL, "the last line of a page has no end");
        if (*at != '#') {
            while (at < stop &&
                   (*at == '_' || *at == ':' || (*at >= '0' && *at <= '9') || ((*at | 32) >= 'a' && (*at | 32) <= 'z')))
                at++;
            if (*at == '{') {
                do {
                    at++;
                    const char* quote = memchr(at, '"', (size_t)(stop - at));
                    REQUIRE_OR(quote != NULL && quote[-1] == '=', "a label has no value: '%.40s'", at);
                    at = label_value(quote + 1, stop, NULL);
                } while (*at == ',');
                REQUIRE_OR(*at == '}', "a label's value is followed by '%.20s'", at);
                at++;
            }
            char* number_end = NULL;
            REQUIRE_OR(*at == ' ', "a sample is not written so: '%.60s'", at);
            (void)strtod(at + 1, &number_end);
            REQUIRE_OR(number_end == stop, "a sample's number: '%.40s'", at);
        }
        at = stop + 1;
    }
}

#endif
