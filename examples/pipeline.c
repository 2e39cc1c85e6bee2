/*
 * pipeline.c - parse -> filter -> write over three threads: a batch is a phase, and goes from thread to thread with its
 * memory.
 *
 * Claim: 100 batches of 1,000 records pass without a free of a single one, and at the end nothing of them lives. Beside
 * it the same with malloc: the writer frees what the parser allocated, one record at a time. Times are printed, and are
 * not part of the claim.
 *
 *     cc -O2 pipeline.c $(pkg-config --cflags --libs temporal-slab) -pthread && ./a.out
 */
#define _GNU_SOURCE /* asprintf */
#include <epoch_domain.h>
#include <pthread.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 100, RECORDS = 1000, ROOM = 4, STAGES = 3 };

typedef struct Batch {
    epoch_domain_t* phase; /* NULL: malloc */
    char* record[RECORDS];
    bool wanted[RECORDS];
} Batch;

/* Batches on their way from one stage to the next. */
typedef struct Queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Batch* batch[ROOM];
    unsigned in, out;
} Queue;

static SlabAllocator* slab; /* NULL: malloc */
static Queue queues[STAGES - 1];
static unsigned long frees, written, released, escaped;

static void put(Queue* q, Batch* b) {
    pthread_mutex_lock(&q->lock);
    while (q->in - q->out == ROOM) pthread_cond_wait(&q->changed, &q->lock);
    q->batch[q->in++ % ROOM] = b;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static Batch* get(Queue* q) {
    pthread_mutex_lock(&q->lock);
    while (q->in == q->out) pthread_cond_wait(&q->changed, &q->lock);
    Batch* b = q->batch[q->out++ % ROOM];
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return b;
}

static char* text(unsigned batch, unsigned n) {
    static const char format[] = "batch %u record %u %.*s";
    static const char dots[] = "................................................................................";
    char* p = NULL;
    if (slab != NULL) return slab_asprintf(slab, format, batch, n, (int)(n % 80), dots);
    return asprintf(&p, format, batch, n, (int)(n % 80), dots) < 0 ? NULL : p;
}

/* A stage takes the phase over before it works, and lets go of it before it hands the batch on. */
static void take_over(const Batch* b) {
    if (b->phase != NULL && !epoch_domain_attach(b->phase)) exit(3);
}
static void hand_on(Queue* q, Batch* b) {
    if (b->phase != NULL && !epoch_domain_detach(b->phase)) exit(3);
    put(q, b);
}

static void* parse(void* unused) {
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        epoch_domain_t* phase = slab != NULL ? epoch_domain_begin(slab, "batch") : NULL;
        Batch* b = slab != NULL ? SLAB_NEW(slab, Batch) : malloc(sizeof *b); /* the batch itself is of the phase, too */
        if (b == NULL) exit(3);
        b->phase = phase;
        for (unsigned n = 0; n < RECORDS; n++)
            if ((b->record[n] = text(batch, n)) == NULL) exit(3);
        hand_on(&queues[0], b);
    }
    return unused;
}

static void* filter(void* unused) {
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        Batch* b = get(&queues[0]);
        take_over(b);
        for (unsigned n = 0; n < RECORDS; n++) b->wanted[n] = strchr(b->record[n], '7') != NULL;
        hand_on(&queues[1], b);
    }
    return unused;
}

static void* write_out(void* unused) {
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        Batch* b = get(&queues[1]);
        take_over(b);
        for (unsigned n = 0; n < RECORDS; n++) written += b->wanted[n] ? strlen(b->record[n]) : 0;
        EpochReceipt r;
        if (b->phase != NULL) { /* ends a phase that another thread began: every record, and the batch */
            if (!epoch_domain_end_ex(b->phase, &r)) exit(3);
            released += r.objects_released, escaped += r.objects_freed + r.objects_escaped;
            continue;
        }
        for (unsigned n = 0; n < RECORDS; n++, frees++) free(b->record[n]);
        free(b);
    }
    return unused;
}

static double run(void) {
    static void* (*const stages[STAGES])(void*) = {parse, filter, write_out};
    pthread_t threads[STAGES];
    uint64_t start = slab_now_ns();
    frees = written = 0;
    for (int i = 0; i < STAGES - 1; i++)
        queues[i] = (Queue){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    for (int i = 0; i < STAGES; i++)
        if (pthread_create(&threads[i], NULL, stages[i], NULL) != 0) exit(3);
    for (int i = 0; i < STAGES; i++) pthread_join(threads[i], NULL);
    return (double)(slab_now_ns() - start) / 1e6;
}

int main(void) {
    double without = run();
    unsigned long singly = frees, bytes = written;
    if ((slab = slab_allocator_create()) == NULL) return puts(slab_last_error()), 3;
    double with = run();
    SlabGlobalStats g;
    slab_stats_global(slab, &g);
    printf("%d batches of %d records, %lu bytes written by either\n", BATCHES, RECORDS, bytes);
    printf("phases  %6lu frees, %lu objects ended with their batches, %llu live afterwards, %.1f ms\n", frees, released,
           (unsigned long long)g.live_objects, with);
    printf("malloc  %6lu frees, by another thread than allocated, %.1f ms\n", singly, without);
    bool ended = released == BATCHES * (RECORDS + 1) && escaped == 0 && g.live_objects == 0;
    bool holds = bytes == written && singly == 100000 && frees == 0 && ended;
    puts(holds ? "claim holds: 100,000 frees avoided, and nothing is left" : "claim FAILS");
    slab_allocator_free(slab);
    return holds ? 0 : 1;
}
