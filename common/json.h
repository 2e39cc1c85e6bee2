/*
 * json.h - writes JSON, one value after the other, to whatever takes bytes.
 *
 *   struct json j = {.write = json_file, .ctx = f, .lines = 1, .indent = 2};
 *   json_object(&j, NULL);
 *   json_text(&j, "name", name);
 *   json_close(&j);
 *
 * Keys are those of members; in arrays and for the outermost value they are NULL. Outer levels have a line for each
 * of their values, inner ones stand on one line, and json_line begins a line by hand. Nothing is allocated. A failure
 * is the sink's to remember.
 */
#ifndef COMMON_JSON_H
#define COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH = 12 };

struct json {
    bool (*write)(void* ctx, const char* bytes, size_t n);
    void* ctx;
    bool tight;            /* no blank after , and : */
    unsigned lines;        /* so many outer levels have a line for each value */
    unsigned indent;       /* columns of each level there */
    unsigned line, depth;  /* line: columns and one, of a line that is to begin; 0: none */
    struct {
        bool some;
        char closer;
    } level[JSON_DEPTH];
};

/* A sink: ctx is a FILE*. */
bool json_file(void* ctx, const char* bytes, size_t n);

void json_object(struct json* j, const char* key);
void json_array(struct json* j, const char* key);
void json_close(struct json* j); /* the innermost of both */
/* The next value, or closing bracket, begins a line and stands in that column. */
void json_line(struct json* j, unsigned column);

void json_text(struct json* j, const char* key, const char* text); /* what is not UTF-8 becomes U+FFFD; NULL: null */
void json_bool(struct json* j, const char* key, bool v);
void json_count(struct json* j, const char* key, uint64_t v);
void json_fixed(struct json* j, const char* key, double v, int decimals); /* NaN and infinity are null */
void json_short(struct json* j, const char* key, double v, int digits);   /* the same; at most so many digits */

#endif
