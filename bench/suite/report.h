/*
 * report.h - one set of calls, two renderings: what a program found, as JSON and as indented text.
 *
 * Both are written into fixed buffers, so that reporting asks nothing of the allocator that is measured. A value
 * without a number (NaN) is null.
 */
#ifndef SUITE_REPORT_H
#define SUITE_REPORT_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"

enum { REPORT_BYTES = 1 << 18, REPORT_DEPTH = 8 };

struct report_text {
    char bytes[REPORT_BYTES];
    size_t n;
};

static void report_grow(struct report_text* t, size_t n) {
    if (n < sizeof t->bytes - t->n) {
        t->n += n;
        return;
    }
    fprintf(stderr, "the report is larger than its buffer\n");
    exit(1);
}

static bool report_keep(void* to, const char* bytes, size_t n) {
    struct report_text* t = to;
    report_grow(t, n);
    memcpy(t->bytes + t->n - n, bytes, n);
    return true;
}

static struct {
    struct report_text json, text;
    struct json writer; /* of the JSON */
    bool json_only;     /* no text for the time being: it would be long */
} report = {.writer = {.write = report_keep, .ctx = &report.json, .lines = JSON_DEPTH, .indent = 2}};

__attribute__((format(printf, 1, 2))) static void report_print(const char* format, ...) {
    struct report_text* t = &report.text;
    va_list args;
    va_start(args, format);
    report_grow(t, (size_t)vsnprintf(t->bytes + t->n, sizeof t->bytes - t->n, format, args));
    va_end(args);
}

static void report_line(const char* key, const char* value) {
    int depth = (int)report.writer.depth;
    if (depth && !report.json_only)
        report_print("%*s%-*s %s\n", 2 * depth - 2, "", 32 - 2 * depth, key ? key : "-", value);
}

static inline void report_open(const char* key) {
    report_line(key, "");
    json_object(&report.writer, key);
}

static inline void report_list(const char* key) {
    report_line(key, "");
    json_array(&report.writer, key);
}

static inline void report_close(void) { json_close(&report.writer); }

static inline void report_count(const char* key, uint64_t v) {
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    report_line(key, text);
    json_count(&report.writer, key, v);
}

static inline void report_number(const char* key, double v) {
    char text[64] = "-";
    int decimals = fabs(v) < 10 ? 4 : 2;
    if (isfinite(v)) (void)snprintf(text, sizeof text, "%.*f", decimals, v);
    report_line(key, text);
    json_fixed(&report.writer, key, v, decimals);
}

static inline void report_bool(const char* key, bool v) {
    report_line(key, v ? "yes" : "no");
    json_bool(&report.writer, key, v);
}

static inline void report_word(const char* key, const char* v) {
    report_line(key, v ? v : "-");
    json_text(&report.writer, key, v);
}

#endif
