/*
 * openmetrics.c - the text format 0.0.4 made OpenMetrics 1.0, line by line.
 *
 * What differs: families of counters are named without _total, their samples with it; `untyped` is `unknown`; help texts
 * escape quotes; bounds of buckets are floats ("1.0", "1e-09"); the document ends with # EOF.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "openmetrics.h"

/* ---- Accept ---- */

/* Returns the value of a parameter of a media range that ends at `end`; NULL when it has none.
 * [any thread, needs no lock] */
static const char* parameter(const char* from, const char* end, const char* name) {
    size_t n = strlen(name);
    for (const char* p = memchr(from, ';', (size_t)(end - from)); p; p = memchr(p, ';', (size_t)(end - p))) {
        p++;
        while (p < end && (*p == ' ' || *p == '\t')) p++;
        if ((size_t)(end - p) > n && strncasecmp(p, name, n) == 0 && p[n] == '=') return p + n + 1;
    }
    return NULL;
}

/* Returns true if the media range at `from` is of the type `word`. [any thread, needs no lock] */
static bool starts(const char* from, const char* end, const char* word) {
    size_t n = strlen(word);
    return (size_t)(end - from) >= n && strncasecmp(from, word, n) == 0 &&
           (from + n == end || strchr("; \t", from[n]) != NULL);
}

bool openmetrics_wanted(const char* accept) {
    double open = 0, text = 0;
    if (accept == NULL) return false;
    for (const char *p = accept, *end; *p; p = *end ? end + 1 : end) {
        while (*p == ' ' || *p == '\t') p++;
        end = p + strcspn(p, ",");
        const char *q = parameter(p, end, "q"), *version = parameter(p, end, "version");
        double weight = q ? strtod(q, NULL) : 1;
        if (version && *version == '"') version++;
        bool known = !version || strncmp(version, "1.0.0", 5) == 0 || strncmp(version, "0.0.1", 5) == 0;
        if (starts(p, end, "application/openmetrics-text") && known) open = weight > open ? weight : open;
        if (starts(p, end, "text/plain") || starts(p, end, "text/*") || starts(p, end, "*/*"))
            text = weight > text ? weight : text;
    }
    return open > 0 && open >= text;
}

/* ---- the document ---- */

/* Writes the text from `from` to `end`. [no other user of out] */
static void put(struct text* out, const char* from, const char* end) {
    (void)text_write(out, from, (size_t)(end - from));
}

/* Returns true if the text from `from` to `end` ends with `word`. [any thread, needs no lock] */
static bool ends_with(const char* from, const char* end, const char* word) {
    size_t n = strlen(word);
    return (size_t)(end - from) >= n && memcmp(end - n, word, n) == 0;
}

/* Writes the line "# HELP name text" or "# TYPE name type". The type of a family comes after its help, so a counter is
 * known by its name: the library gives _total to counters and to nothing else. [no other user of out] */
static void put_comment(struct text* out, const char* line, const char* end) {
    const char* name = line + 7;
    const char* name_end = memchr(name, ' ', (size_t)(end - name));
    if (name_end == NULL) name_end = end;
    put(out, line, ends_with(name, name_end, "_total") ? name_end - 6 : name_end);
    if (line[2] == 'T') {
        bool untyped = end - name_end == 8 && memcmp(name_end, " untyped", 8) == 0;
        if (untyped) text_put(out, " unknown");
        else put(out, name_end, end);
    } else {
        for (const char* c = name_end; c < end; c++) {
            if (*c == '"') text_put(out, "\\");
            put(out, c, c + 1);
        }
    }
}

/* Writes the bound of a bucket as a float, the shortest that reads back. [no other user of out] */
static void put_bound(struct text* out, const char* from, const char* end) {
    char number[32];
    double v = strtod(from, NULL);
    int digits = 1;
    if (memchr(from, 'I', (size_t)(end - from)) != NULL) {
        put(out, from, end);
        return;
    }
    do (void)snprintf(number, sizeof number, "%.*g", digits, v);
    while (strtod(number, NULL) != v && digits++ < 17);
    text_put(out, number);
    if (strpbrk(number, ".e") == NULL) text_put(out, ".0");
}

/* Writes the line of a sample. A label value may hold what looks like a bound: only the last `le` of the line is one,
 * and only in buckets. [no other user of out] */
static void put_sample(struct text* out, const char* line, const char* end) {
    const char *name_end = line, *bound = NULL;
    while (name_end < end && *name_end != '{' && *name_end != ' ') name_end++;
    if (ends_with(line, name_end, "_bucket"))
        for (const char* c = name_end; c + 5 < end; c++)
            if ((*c == '{' || *c == ',') && memcmp(c + 1, "le=\"", 4) == 0) bound = c + 5;
    if (bound == NULL) {
        put(out, line, end);
        return;
    }
    const char* bound_end = memchr(bound, '"', (size_t)(end - bound));
    put(out, line, bound);
    put_bound(out, bound, bound_end);
    put(out, bound_end, end);
}

void openmetrics_write(const struct text* in, struct text* out) {
    const char *line = in->bytes, *end = in->bytes + in->size;
    while (line < end) {
        const char* stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL) stop = end;
        bool comment = stop - line > 7 && (memcmp(line, "# HELP ", 7) == 0 || memcmp(line, "# TYPE ", 7) == 0);
        if (comment) put_comment(out, line, stop);
        else put_sample(out, line, stop);
        text_put(out, "\n");
        line = stop + 1;
    }
    text_put(out, "# EOF\n");
}
