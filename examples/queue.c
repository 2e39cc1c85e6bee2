/*
 * queue.c - a message queue by batches: messages of a batch share a phase, which ends when the last of them was acknowledged, on the thread
 * that does so. Producers and consumers name the phase; nobody is inside of it.
 *
 * Claim: 100,000 messages pass from two producers to two consumers without a free of a single one, and nothing is left. Beside it the same
 * with malloc, where each consumer frees what a producer allocated. Times are printed, and are not part of the claim.
 *
 *     cc -O2 queue.c $(pkg-config --cflags --libs temporal-slab) -pthread && ./a.out
 */
#include <epoch_domain.h>
#include <pthread.h>
#include <slab_stats.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCERS = 2, CONSUMERS = 2, BATCHES = 100, MESSAGES = 500, ROOM = 1024 };

typedef struct Batch {
    epoch_domain_t* phase; /* NULL: malloc */
    _Atomic unsigned open; /* messages that were not acknowledged */
} Batch;

typedef struct Message {
    Batch* batch;
    unsigned bytes;
    char text[];
} Message;

static SlabAllocator* slab; /* NULL: malloc */
static Batch batches[PRODUCERS][BATCHES];
static Message* ring[ROOM];
static unsigned in, out, closed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Atomic unsigned long frees, ended, read_bytes, sent_bytes, wrong;

static void put(Message* m) {
    pthread_mutex_lock(&lock);
    while (in - out == ROOM) pthread_cond_wait(&changed, &lock);
    ring[in++ % ROOM] = m;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* NULL: the queue is empty and will stay so. */
static Message* get(void) {
    pthread_mutex_lock(&lock);
    while (in == out && closed != PRODUCERS) pthread_cond_wait(&changed, &lock);
    Message* m = in != out ? ring[out++ % ROOM] : NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return m;
}

static void* produce(void* mine) {
    for (Batch* b = mine; b < (Batch*)mine + BATCHES; b++) {
        atomic_store(&b->open, MESSAGES);
        b->phase = slab != NULL ? epoch_domain_create_labeled(slab, "batch") : NULL;
        if (slab != NULL && b->phase == NULL) abort();
        for (unsigned i = 0; i < MESSAGES; i++) {
            unsigned bytes = 20 + i * 37 % 700;
            size_t size = sizeof(Message) + bytes;
            Message* m = slab != NULL ? epoch_domain_malloc(b->phase, size) : malloc(size);
            if (m == NULL) abort();
            m->batch = b, m->bytes = bytes;
            memset(m->text, 'm', bytes);
            sent_bytes += bytes;
            put(m);
        }
    }
    pthread_mutex_lock(&lock);
    closed++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void acknowledge(Message* m) {
    Batch* b = m->batch;
    if (slab == NULL) free(m), frees++;
    if (atomic_fetch_sub(&b->open, 1) != 1 || slab == NULL) return;
    EpochReceipt r;
    if (!epoch_domain_force_close(b->phase) || !epoch_domain_receipt(b->phase, &r) || r.objects_released != MESSAGES) wrong++;
    if (!epoch_domain_destroy(b->phase)) wrong++;
    ended += MESSAGES;
}

static void* consume(void* unused) {
    for (Message* m; (m = get()) != NULL;) {
        read_bytes += memchr(m->text, 'x', m->bytes) == NULL ? m->bytes : 0;
        acknowledge(m);
    }
    return unused;
}

static double run(void) {
    pthread_t threads[PRODUCERS + CONSUMERS];
    uint64_t start = slab_now_ns();
    in = out = closed = 0;
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) {
        bool makes = i < PRODUCERS;
        if (pthread_create(&threads[i], NULL, makes ? produce : consume, makes ? batches[i] : NULL) != 0) abort();
    }
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) pthread_join(threads[i], NULL);
    return (double)(slab_now_ns() - start) / 1e6;
}

int main(void) {
    double without = run();
    unsigned long singly = frees;
    if ((slab = slab_allocator_create()) == NULL) return puts(slab_last_error()), 3;
    double with = run();
    SlabGlobalStats g;
    slab_stats_global(slab, &g);
    printf("phases  %lu frees, %lu messages ended with their batches, %.1f ms\n", frees - singly, ended, with);
    printf("malloc  %lu frees, %.1f ms\n", singly, without);
    bool holds = wrong == 0 && frees == singly && singly == 100000 && ended == singly && read_bytes == sent_bytes && g.live_objects == 0;
    puts(holds ? "claim holds: no message was freed singly, and nothing is left" : "claim FAILS");
    slab_allocator_free(slab);
    return holds ? 0 : 1;
}
