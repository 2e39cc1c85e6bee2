/*
 * openmetrics.h - which of the two formats a scraper wants, and how one becomes the other.
 */
#ifndef TSLABD_OPENMETRICS_H
#define TSLABD_OPENMETRICS_H

#include "text.h"

#define TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* By the Accept header, or NULL. Text unless OpenMetrics is asked for by name and at least as much. */
bool openmetrics_wanted(const char* accept);
/* Text format 0.0.4 made OpenMetrics 1.0; what follows `at` in `in` is complete lines. */
void openmetrics_write(const struct text* in, struct text* out);

#endif
