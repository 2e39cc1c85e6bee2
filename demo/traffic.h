/*
 * traffic.h - the requests: request number `index` is a pure function of (seed, index, data), so
 * every run of a seed serves the same ones, in whatever order its threads take them.
 */
#ifndef DEMO_TRAFFIC_H
#define DEMO_TRAFFIC_H

#include "data.h"
#include "routes.h"

#define TRAFFIC_TEXT_MAX 4096

typedef struct Traffic {
    uint64_t seed;
    const Data* data;
    uint64_t users; /* sessions are asked for by this many users, a few of them much more often */
} Traffic;

RouteId traffic_route(const Traffic* traffic, uint64_t index);
/* Writes the request as HTTP text of at most TRAFFIC_TEXT_MAX bytes; returns its length. */
size_t traffic_request(const Traffic* traffic, uint64_t index, char* out);

#endif
