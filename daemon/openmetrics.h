/*
 * openmetrics.h - which of the two formats a scraper wants, and how one becomes the other.
 */
#ifndef TSLABD_OPENMETRICS_H
#define TSLABD_OPENMETRICS_H

#include "text.h"

#define TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Returns true if an Accept header, or NULL, asks for OpenMetrics by name and at least as much as for text.
 * [any thread, needs no lock] */
bool openmetrics_wanted(const char* accept);
/* Writes text format 0.0.4 as OpenMetrics 1.0; `in` has complete lines. A failure is in out->failed.
 * [no other user of out] */
void openmetrics_write(const struct text* in, struct text* out);

#endif
