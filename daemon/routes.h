/*
 * routes.h - what is served: a fixed list, and nothing of the file system.
 */
#ifndef TSLABD_ROUTES_H
#define TSLABD_ROUTES_H

#include "serve.h"

struct request {
    const char* path;
    const char* accept; /* NULL: no such header */
};

struct answer {
    unsigned code;
    const char* type;
    struct text body;
    const void* fixed; /* instead of body: bytes that stay */
    size_t fixed_size;
};

struct route {
    const char* path;
    void (*answer)(struct server* s, const struct request* r, struct answer* out);
    bool shared; /* its answer depends on nothing but the format of metrics, and is dear */
};

/* Returns the route of a path, or NULL if there is none. [any thread, needs no lock] */
const struct route* route_find(const char* path);

#endif
