/*
 * sessions.c - see server.h. A table of lists, and one list in the order of use, under one lock. A session is made in the
 * middle of a request and lives on, so it is made in the outer scope; it is freed by whichever thread sweeps.
 */
#include "server.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUCKETS = 1 << 14 };

typedef struct Session {
    struct Session *next, *older, *newer; /* of the bucket; in the order of use */
    char *user, *text;
    size_t bytes;
    time_t used;
} Session;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all that follows */
static Session* buckets[BUCKETS];
static Session *newest, *oldest;
static size_t count;
static time_t rest;

static time_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec;
}

static Session** place_of(const char* user) {
    uint32_t hash = 2166136261u;
    for (const char* c = user; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    Session** place = &buckets[hash % BUCKETS];
    while (*place != NULL && strcmp((*place)->user, user) != 0) place = &(*place)->next;
    return place;
}

static void unlist(Session* s) {
    *(s->newer ? &s->newer->older : &newest) = s->older;
    *(s->older ? &s->older->newer : &oldest) = s->newer;
}

static void list_as_newest(Session* s) {
    s->older = newest;
    s->newer = NULL;
    *(newest ? &newest->newer : &oldest) = s;
    newest = s;
    s->used = now();
}

static void forget(Session* s) {
    *place_of(s->user) = s->next;
    unlist(s);
    free(s->text);
    free(s->user);
    free(s);
    count--;
}

void sessions_open(unsigned rest_seconds) { rest = rest_seconds; }

/* Returns the session with its text, or NULL if there is no memory. [lock, outer scope] */
static Session* keep(const char* user, const char* text, size_t bytes) {
    Session** place = place_of(user);
    Session* s = *place;
    char* kept = malloc(bytes);
    if (kept == NULL) return NULL;
    memcpy(kept, text, bytes);
    if (s != NULL) {
        unlist(s);
        free(s->text);
    } else {
        s = calloc(1, sizeof *s);
        char* name = strdup(user);
        if (s == NULL || name == NULL) {
            free(s), free(name), free(kept);
            return NULL;
        }
        s->user = name;
        *place = s;
        count++;
    }
    s->text = kept;
    s->bytes = bytes;
    list_as_newest(s);
    return s;
}

size_t sessions_touch(const char* user, const char* text, size_t bytes, char** copy) {
    size_t kept = 0;
    pthread_mutex_lock(&lock);
    bool out = tslab_phase_outer();
    Session* s = keep(user, text, bytes);
    if (out) tslab_phase_outer_leave();
    *copy = s ? malloc(s->bytes) : NULL;
    if (*copy) memcpy(*copy, s->text, kept = s->bytes);
    pthread_mutex_unlock(&lock);
    return kept;
}

void sessions_sweep(void) {
    pthread_mutex_lock(&lock);
    time_t limit = now() - rest;
    while (oldest != NULL && oldest->used < limit) forget(oldest);
    pthread_mutex_unlock(&lock);
}

size_t sessions_count(void) {
    pthread_mutex_lock(&lock);
    size_t n = count;
    pthread_mutex_unlock(&lock);
    return n;
}

void sessions_close(void) {
    while (oldest != NULL) forget(oldest);
}
