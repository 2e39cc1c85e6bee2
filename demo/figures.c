/* figures.c - see figures.h. */
#include "figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double figure(const cJSON* run, const char* path) {
    char part[64];
    const cJSON* at = run;
    while (at && *path) {
        size_t len = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)len, path);
        at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, atoi(part)) : cJSON_GetObjectItemCaseSensitive(at, part);
        path += len + (path[len] == '.');
    }
    return cJSON_IsNumber(at) ? at->valuedouble : NAN;
}

static int compare_doubles(const void* left, const void* right) {
    double a = *(const double*)left, b = *(const double*)right;
    return (a > b) - (a < b);
}

void figures_sort(double* values, int n) { qsort(values, (size_t)n, sizeof *values, compare_doubles); }

double figures_median(const double* sorted, int n) { return n ? (sorted[(n - 1) / 2] + sorted[n / 2]) / 2 : NAN; }

bool run_complete(const cJSON* run) { return figure(run, "done") == figure(run, "requests"); }

const char* grouped(double value, char out[32]) {
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%.0f", value);
    int n = 0;
    for (int i = 0; i < len && n < 30; i++) {
        out[n++] = digits[i];
        if (i + 1 < len && (len - i - 1) % 3 == 0 && n < 30) out[n++] = ',';
    }
    out[n] = '\0';
    return out;
}

/* The largest unit of which there is at least one; three or four digits. */
static void scaled(double value, const char* const units[], int count, char out[32]) {
    int u = 0;
    for (; value >= (u == 0 ? 1e3 : 999.95) && u + 1 < count; u++) value /= 1e3; /* 999.95 would be shown as 1000.0 */
    snprintf(out, 32, "%.*f %s", u == 0 ? 0 : value < 100 && u > 1 ? 2 : 1, value, units[u]);
}

const char* counted(double value, int width, char out[32]) {
    static const char* const counts[] = {"", "k", "M", "G"};
    if ((int)strlen(grouped(value, out)) > width) scaled(value, counts, 4, out);
    return out;
}

const char* shown(double value, Unit unit, char out[32]) {
    static const char* const times[] = {"ns", "us", "ms", "s"};
    static const char* const sizes[] = {"B", "kB", "MB", "GB"};
    if (isnan(value))
        snprintf(out, 32, "-");
    else if (unit == UNIT_COUNT)
        grouped(value, out);
    else if (unit == UNIT_SECONDS)
        snprintf(out, 32, "%.2f s", value);
    else
        scaled(value, unit == UNIT_TIME ? times : sizes, 4, out);
    return out;
}
