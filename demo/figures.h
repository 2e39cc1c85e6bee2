/*
 * figures.h - figures of a run, as result.c has written them, and how they are shown.
 */
#ifndef DEMO_FIGURES_H
#define DEMO_FIGURES_H

#include <cJSON.h>
#include <stdbool.h>

typedef enum Unit { UNIT_COUNT, UNIT_TIME, UNIT_SIZE, UNIT_SECONDS } Unit;

/* Ascending order; and the median of figures in that order, NAN of none. */
void figures_sort(double* values, int n);
double figures_median(const double* sorted, int n);

/* Number at a path such as "routes.2.latency_ns.p50"; NAN when it is not there. */
double figure(const cJSON* run, const char* path);
/* True when no request of the run was left out. */
bool run_complete(const cJSON* run);
/* 1234567 as 1,234,567. */
const char* grouped(double value, char out[32]);
/* The same, or in thousands or millions when that is wider than `width`. */
const char* counted(double value, int width, char out[32]);
/* With its unit; "-" for NAN. UNIT_TIME is of nanoseconds. */
const char* shown(double value, Unit unit, char out[32]);

#endif
