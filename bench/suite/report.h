/*
 * report.h - one set of calls, two renderings: what a program found, as JSON and as indented text.
 *
 * Both are written into fixed buffers, so that reporting asks nothing of the allocator that is measured. A value without
 * a number (NaN) is null.
 */
#ifndef SUITE_REPORT_H
#define SUITE_REPORT_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPORT_BYTES = 1 << 18, REPORT_DEPTH = 8 };

struct report_text {
    char bytes[REPORT_BYTES];
    size_t n;
};

static struct {
    struct report_text json, text;
    unsigned depth;
    bool json_only; /* no text for the time being: it would be long */
    bool inside[REPORT_DEPTH]; /* something stands before at this depth */
    char closer[REPORT_DEPTH];
} report;

__attribute__((format(printf, 2, 3))) static void report_print(struct report_text* t, const char* format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->bytes + t->n, sizeof t->bytes - t->n, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof t->bytes - t->n) {
        fprintf(stderr, "the report is larger than its buffer\n");
        exit(1);
    }
    t->n += (size_t)n;
}

static void report_quoted(struct report_text* t, const char* s) {
    report_print(t, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') report_print(t, "\\%c", *s);
        else if ((unsigned char)*s < 32) report_print(t, "\\u%04x", (unsigned)*s);
        else report_print(t, "%c", *s);
    }
    report_print(t, "\"");
}

/* What goes before a value, in both renderings; key NULL inside lists. */
static void report_before(const char* key) {
    unsigned d = report.depth;
    if (d) {
        report_print(&report.json, "%s\n%*s", report.inside[d] ? "," : "", (int)(2 * d), "");
        report.inside[d] = true;
    }
    if (key) {
        report_quoted(&report.json, key);
        report_print(&report.json, ": ");
    }
}

static void report_line(const char* key, const char* value) {
    if (report.depth && !report.json_only) report_print(&report.text, "%*s%-*s %s\n", (int)(2 * report.depth - 2), "",
                                   32 - (int)(2 * report.depth), key ? key : "-", value);
}

static void report_down(const char* key, char opener, char closer) {
    report_before(key);
    report_line(key, "");
    report_print(&report.json, "%c", opener);
    if (++report.depth == REPORT_DEPTH) abort();
    report.inside[report.depth] = false;
    report.closer[report.depth] = closer;
}

static inline void report_open(const char* key) { report_down(key, '{', '}'); }

static inline void report_list(const char* key) { report_down(key, '[', ']'); }

static inline void report_close(void) {
    unsigned d = report.depth--;
    if (report.inside[d]) report_print(&report.json, "\n%*s", (int)(2 * d - 2), "");
    report_print(&report.json, "%c", report.closer[d]);
}

static inline void report_count(const char* key, uint64_t v) {
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    report_before(key);
    report_print(&report.json, "%s", text);
    report_line(key, text);
}

static inline void report_number(const char* key, double v) {
    char text[64];
    if (isfinite(v)) (void)snprintf(text, sizeof text, "%.*f", fabs(v) < 10 ? 4 : 2, v);
    report_before(key);
    report_print(&report.json, "%s", isfinite(v) ? text : "null");
    report_line(key, isfinite(v) ? text : "-");
}

static inline void report_bool(const char* key, bool v) {
    report_before(key);
    report_print(&report.json, v ? "true" : "false");
    report_line(key, v ? "yes" : "no");
}

static inline void report_word(const char* key, const char* v) {
    report_before(key);
    if (v) report_quoted(&report.json, v);
    else report_print(&report.json, "null");
    report_line(key, v ? v : "-");
}

#endif
