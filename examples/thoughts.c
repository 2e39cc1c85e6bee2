/*
 * thoughts.c - nested thoughts on a pool of threads: each thought is a phase, begins thoughts of its own, which any
 * thread takes, and leaves its parent nothing but a conclusion.
 *
 * Claim: whatever the order in which 364 thoughts end, each ends with all that it made and no more: after the last one
 * the answer alone is live, and none of 72,800 notes was freed singly. Beside it the same with malloc. Times are
 * printed, and are not part of the claim.
 *
 *     cc -O2 thoughts.c $(pkg-config --cflags --libs temporal-slab) -pthread && ./a.out
 */
#include <epoch_domain.h>
#include <pthread.h>
#include <sched.h>
#include <slab_stats.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, DEPTH = 6, FAN_OUT = 3, NOTES = 200, WAITING_MAX = 1000 };

typedef struct Thought {
    struct Thought* parent;
    epoch_domain_t* phase; /* NULL: malloc */
    unsigned depth, index;
    _Atomic unsigned open; /* thoughts that it waits for */
    char* conclusion[FAN_OUT];
} Thought;

static SlabAllocator* slab; /* NULL: malloc */
static Thought* waiting[WAITING_MAX];
static size_t waiting_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned long thoughts, notes_released, notes_freed, refused;
static _Atomic bool over;
static char* answer;

static void* checked(void* p) {
    if (p == NULL) abort();
    return p;
}

static Thought* next_thought(void) {
    pthread_mutex_lock(&lock);
    Thought* t = waiting_count != 0 ? waiting[--waiting_count] : NULL;
    pthread_mutex_unlock(&lock);
    return t;
}

static void begin_thought(Thought* t) {
    pthread_mutex_lock(&lock);
    if (waiting_count == WAITING_MAX) abort();
    waiting[waiting_count++] = t;
    pthread_mutex_unlock(&lock);
}

/* The conclusion is the parent's: it is made in the parent's phase, from whatever thread. The last one's is nobody's. */
static void conclude(Thought* t, const char* last_note) {
    char text[100];
    (void)snprintf(text, sizeof text, "depth %u, thought %u: %.40s", t->depth, t->index, last_note);
    if (t->parent != NULL)
        t->parent->conclusion[t->index] = checked(slab != NULL ? epoch_domain_strdup(t->parent->phase, text) : strdup(text));
    else
        answer = strcpy(checked(slab != NULL ? slab_malloc_outside(slab, sizeof text) : malloc(sizeof text)), text);
}

static void think(Thought* t) {
    Thought* parent = t->parent;
    Thought child[FAN_OUT];
    char* note[NOTES];
    bool leaf = t->depth + 1 == DEPTH;
    t->phase = slab != NULL ? checked(epoch_domain_begin(slab, "thought")) : NULL;
    for (unsigned i = 0; i < NOTES; i++) {
        size_t size = 40 + i * 17 % 400;
        note[i] = checked(slab != NULL ? slab_malloc(slab, size) : malloc(size));
        (void)snprintf(note[i], size, "note %u of depth %u", i, t->depth);
    }
    atomic_store(&t->open, leaf ? 0 : FAN_OUT);
    for (unsigned i = 0; i < FAN_OUT && !leaf; i++) {
        child[i] = (Thought){.parent = t, .depth = t->depth + 1, .index = i};
        begin_thought(&child[i]);
    }
    while (atomic_load(&t->open) != 0) { /* who waits helps: thoughts nest on this thread's stack, and end before it goes on */
        Thought* other = next_thought();
        if (other != NULL) think(other);
        else sched_yield();
    }
    conclude(t, leaf ? note[NOTES - 1] : t->conclusion[FAN_OUT - 1]);
    if (slab != NULL) {
        EpochReceipt r;
        unsigned long due = NOTES + (leaf ? 0 : FAN_OUT);
        if (!epoch_domain_end_ex(t->phase, &r) || r.objects_released != due || r.objects_escaped + r.objects_freed != 0) refused++;
        notes_released += NOTES;
    } else {
        for (unsigned i = 0; i < NOTES; i++, notes_freed++) free(note[i]);
        for (unsigned i = 0; i < FAN_OUT && !leaf; i++) free(t->conclusion[i]);
    }
    thoughts++;
    if (parent != NULL) atomic_fetch_sub(&parent->open, 1); /* from here on the parent may end, and t with it */
    else atomic_store(&over, true);
}

static void* pool(void* unused) {
    while (!atomic_load(&over)) {
        Thought* t = next_thought();
        if (t != NULL) think(t);
        else sched_yield();
    }
    return unused;
}

static double run(void) {
    pthread_t threads[THREADS];
    static Thought first;
    uint64_t start = slab_now_ns();
    first = (Thought){.depth = 0};
    atomic_store(&thoughts, 0);
    atomic_store(&over, false);
    begin_thought(&first);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, pool, NULL) != 0) abort();
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return (double)(slab_now_ns() - start) / 1e6;
}

int main(void) {
    double without = run();
    printf("%lu thoughts, %d deep, on %d threads\n", thoughts, DEPTH, THREADS);
    printf("malloc  %6lu notes freed singly, %.1f ms\n", notes_freed, without);
    free(answer);
    unsigned long singly = notes_freed;
    if ((slab = slab_allocator_create()) == NULL) return puts(slab_last_error()), 3;
    double with = run();
    SlabGlobalStats g;
    slab_stats_global(slab, &g);
    printf("phases  %6lu notes freed singly, %lu ended with their thoughts, %llu object live: \"%s\", %.1f ms\n", notes_freed - singly,
           notes_released, (unsigned long long)g.live_objects, answer, with);
    bool holds = refused == 0 && notes_freed == singly && notes_released == singly && singly == 72800 && g.live_objects == 1;
    puts(holds ? "claim holds: each thought ended with what it made, and the answer is left" : "claim FAILS");
    slab_allocator_free(slab);
    return holds ? 0 : 1;
}
