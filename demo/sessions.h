/*
 * sessions.h - the server's session cache: user -> session document, least recently used goes first.
 *
 * The one long-lived, changing memory of the server. It lives in a store (with temporal-slab: a
 * domain of its own that nobody enters), so sessions never share pages with the requests that made
 * them; each is freed singly when it is evicted. A document is read outside the lock while pinned.
 */
#ifndef DEMO_SESSIONS_H
#define DEMO_SESSIONS_H

#include "backend.h"

#include <pthread.h>

typedef struct Session {
    struct Session* chain;         /* next in the bucket */
    struct Session *newer, *older; /* LRU list */
    char* document;
    size_t document_len;
    unsigned pins;
    bool evicted; /* out of the table; freed by the last unpin */
    size_t user_len;
    char user[];
} Session;

typedef struct SessionCounts {
    uint64_t kept, hits, misses, evictions;
} SessionCounts;

typedef struct Sessions {
    Store store;
    pthread_mutex_t lock; /* guards everything below and the links and pins of every session */
    Session** buckets;
    size_t bucket_count; /* a power of two */
    Session *newest, *oldest;
    size_t capacity;
    SessionCounts counts;
} Sessions;

bool sessions_open(Sessions* cache, size_t capacity);
void sessions_close(Sessions* cache);
/* The user's session, now the most recently used one, or NULL. Unpin it. */
Session* sessions_pin(Sessions* cache, const char* user, size_t user_len);
void sessions_unpin(Sessions* cache, Session* session);
/* Keeps a copy, and evicts. A session that is there already stays. False when memory is short. */
bool sessions_put(Sessions* cache, const char* user, size_t user_len, const char* document, size_t document_len);
SessionCounts sessions_count(Sessions* cache);

#endif
