/*
 * reports.h - what the page shows beside metrics, of bounded size however many phases there are.
 */
#ifndef TSLABD_REPORTS_H
#define TSLABD_REPORTS_H

#include <stdint.h>

#include <slab_alloc.h>

struct json;

/* Members of the object that is open: leak_threshold_s, leaks (by label, most bytes first), leaking_labels
 * (how many there are), receipts (newest first), phase_count and phases (the oldest and the newest). False without
 * memory. */
bool reports_write(SlabAllocator* a, uint32_t leak_threshold_s, struct json* j);

#endif
