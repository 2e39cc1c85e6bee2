/*
 * routes.h - the routes of the demo server: one phase label and one Lua handler each.
 */
#ifndef DEMO_ROUTES_H
#define DEMO_ROUTES_H

#include <stddef.h>

typedef enum RouteId {
    ROUTE_COUNTRY,
    ROUTE_SEARCH,
    ROUTE_LANGUAGES,
    ROUTE_CONVERT,
    ROUTE_SESSION,
    ROUTE_REPORT,
    ROUTE_COUNT
} RouteId;

typedef struct Route {
    const char* label;  /* "METHOD /path", also the label of its phases */
    const char* script; /* handlers/<script>.lua */
    unsigned weight;    /* requests in a thousand */
} Route;

extern const Route ROUTES[ROUTE_COUNT];

/* Route of a request line "METHOD /path"; ROUTE_COUNT when there is none. */
RouteId route_find(const char* line, size_t len);

#endif
