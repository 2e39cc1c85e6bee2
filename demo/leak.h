/*
 * leak.h - the fault that --leak puts into the server.
 *
 * Every hundredth request of one route leaves an entry of an access log behind, allocated in the request's phase. So
 * that the entry stays valid the phase is not released but drained, and it would be over as soon as the entry is
 * written and freed. Whoever was to do that never comes. With glibc the same entries are lost in the heap.
 */
#ifndef DEMO_LEAK_H
#define DEMO_LEAK_H

#include "routes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LEAK_ROUTE ROUTE_SESSION
enum { LEAK_ONE_IN = 100 };

typedef struct LeakEntry {
    struct LeakEntry* older;
    int status;
    char line[244]; /* the beginning of the request; all in all 256 bytes, a size class */
} LeakEntry;

typedef struct Leak {
    bool on;
    atomic_uint_fast64_t requests; /* of the route */
    _Atomic(LeakEntry*) newest;
} Leak;

/* Asked once for each request: true when it will leave an entry behind. */
bool leak_chosen(Leak* leak, RouteId route);
/* Leaves one, in the phase that the thread is in. False when memory is short. */
bool leak_entry(Leak* leak, int status, const char* text, size_t len);

#endif
