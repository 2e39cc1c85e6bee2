/*
 * source.h - where numbers come from.
 *
 * The routes know nothing of allocators: they ask a source for texts. There is one source, an allocator in this process
 * (own.c). Other processes are shown by tslab web.
 *
 * All functions are called by the main thread, one at a time. Texts are complete when true is returned; when
 * false is, the client gets 503 and nothing of them.
 */
#ifndef TSLABD_SOURCE_H
#define TSLABD_SOURCE_H

#include <stdbool.h>

#include "text.h"

struct source {
    const char* name;                          /* of its load */
    void* self;                                /* first argument of the functions */
    bool (*metrics)(void* self, struct text*); /* Prometheus text format 0.0.4 */
    bool (*stats)(void* self, struct text*);   /* the JSON document of share/stats.schema.json */
    bool (*doctor)(void* self, struct text*);  /* text: what to do */
    bool (*ready)(void* self);                 /* numbers can be had */
    bool (*moves)(void* self, char* why, size_t size); /* the numbers do; if not, a sentence without a full stop */
};

#endif
