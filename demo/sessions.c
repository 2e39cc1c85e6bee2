/*
 * sessions.c - see sessions.h. A chained hash table and a doubly linked LRU list under one mutex.
 * Copies are made and memory is freed outside the lock.
 */
#include "sessions.h"

#include <string.h>

bool sessions_open(Sessions* cache, size_t capacity) {
    memset(cache, 0, sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    cache->capacity = capacity;
    cache->bucket_count = 16;
    while (cache->bucket_count < 2 * capacity) cache->bucket_count *= 2;
    if (!store_open(&cache->store, "sessions")) return false;
    size_t bytes = cache->bucket_count * sizeof(Session*);
    cache->buckets = store_malloc(&cache->store, bytes);
    if (cache->buckets) memset(cache->buckets, 0, bytes);
    return cache->buckets != NULL;
}

static void session_free(Session* session) {
    store_free(session->document);
    store_free(session);
}

void sessions_close(Sessions* cache) {
    if (!backend_ends_in_bulk()) {
        for (Session* s = cache->oldest; s;) {
            Session* next = s->newer;
            session_free(s);
            s = next;
        }
        store_free(cache->buckets);
    }
    store_close(&cache->store);
    pthread_mutex_destroy(&cache->lock);
}

static Session** bucket_of(Sessions* cache, const char* user, size_t len) {
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)user[i]) * 1099511628211u;
    return &cache->buckets[(h ^ (h >> 29)) & (cache->bucket_count - 1)];
}

static Session* find_locked(Session** bucket, const char* user, size_t len) {
    Session* s = *bucket;
    while (s && (s->user_len != len || memcmp(s->user, user, len) != 0)) s = s->chain;
    return s;
}

static void unlink_locked(Sessions* cache, Session* s) {
    *(s->newer ? &s->newer->older : &cache->newest) = s->older;
    *(s->older ? &s->older->newer : &cache->oldest) = s->newer;
}

static void link_newest_locked(Sessions* cache, Session* s) {
    s->older = cache->newest;
    s->newer = NULL;
    *(s->older ? &s->older->newer : &cache->oldest) = s;
    cache->newest = s;
}

/* Takes the least recently used session out; returns it when nobody reads it. */
static Session* evict_locked(Sessions* cache) {
    Session* s = cache->oldest;
    unlink_locked(cache, s);
    Session** at = bucket_of(cache, s->user, s->user_len);
    while (*at != s) at = &(*at)->chain;
    *at = s->chain;
    cache->counts.kept--;
    cache->counts.evictions++;
    s->evicted = true;
    return s->pins ? NULL : s;
}

Session* sessions_pin(Sessions* cache, const char* user, size_t user_len) {
    pthread_mutex_lock(&cache->lock);
    Session* s = find_locked(bucket_of(cache, user, user_len), user, user_len);
    if (s) {
        s->pins++;
        unlink_locked(cache, s);
        link_newest_locked(cache, s);
        cache->counts.hits++;
    } else {
        cache->counts.misses++;
    }
    pthread_mutex_unlock(&cache->lock);
    return s;
}

void sessions_unpin(Sessions* cache, Session* session) {
    pthread_mutex_lock(&cache->lock);
    bool last = --session->pins == 0 && session->evicted;
    pthread_mutex_unlock(&cache->lock);
    if (last) session_free(session);
}

bool sessions_put(Sessions* cache, const char* user, size_t user_len, const char* document, size_t document_len) {
    Session* made = store_malloc(&cache->store, sizeof *made + user_len);
    char* copy = store_malloc(&cache->store, document_len + 1);
    if (!made || !copy) {
        store_free(made);
        store_free(copy);
        return false;
    }
    memset(made, 0, sizeof *made);
    memcpy(made->user, user, user_len);
    made->user_len = user_len;
    memcpy(copy, document, document_len + 1);
    made->document = copy;
    made->document_len = document_len;

    Session* unused = NULL;
    pthread_mutex_lock(&cache->lock);
    Session** bucket = bucket_of(cache, user, user_len);
    if (find_locked(bucket, user, user_len)) {
        unused = made; /* another request of this user was quicker */
    } else {
        made->chain = *bucket;
        *bucket = made;
        link_newest_locked(cache, made);
        if (++cache->counts.kept > cache->capacity) unused = evict_locked(cache);
    }
    pthread_mutex_unlock(&cache->lock);
    if (unused) session_free(unused);
    return true;
}

SessionCounts sessions_count(Sessions* cache) {
    pthread_mutex_lock(&cache->lock);
    SessionCounts counts = cache->counts;
    pthread_mutex_unlock(&cache->lock);
    return counts;
}
