/*
 * event_loop.c - tasks of an event loop (epoll): a task is a phase, which follows it from thread to thread. While it waits for an event
 * nobody is inside of its phase; the thread that gets the event goes on in it.
 *
 * Claim: each of 200 tasks ends with exactly what its eight steps made, on whatever threads they ran, and nothing is left. Beside it the
 * same with malloc, where each task keeps a list of what it has to free.
 *
 *     cc -O2 event_loop.c $(pkg-config --cflags --libs temporal-slab) -pthread && ./a.out
 */
#include <epoch_domain.h>
#include <pthread.h>
#include <slab_stats.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TASKS = 200, STEPS = 8, OBJECTS = 100, THREADS = 3 };

typedef struct Task {
    int events; /* what it waits for */
    unsigned step;
    pthread_t last;         /* who ran its last step */
    epoch_domain_t* phase;  /* NULL: malloc */
    void** made;            /* malloc: what is to be freed */
} Task;

static SlabAllocator* slab; /* NULL: malloc */
static Task tasks[TASKS];
static int loop;
static _Atomic unsigned open_tasks;
static _Atomic unsigned long frees, moved, released, wrong;

static void* checked(void* p) {
    if (p == NULL) abort();
    return p;
}

static void wait_for_event(Task* t, int how) {
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = t};
    if (epoll_ctl(loop, how, t->events, &e) != 0 || eventfd_write(t->events, 1) != 0) abort(); /* the event comes at once */
}

static void finish(Task* t) {
    EpochReceipt r;
    if (t->phase != NULL) {
        if (!epoch_domain_end_ex(t->phase, &r) || r.objects_released != STEPS * OBJECTS) wrong++;
        released += r.objects_released;
    } else {
        for (unsigned i = 0; i < STEPS * OBJECTS; i++, frees++) free(t->made[i]);
        free(t->made);
    }
    close(t->events);
    open_tasks--;
}

static void step(Task* t) {
    eventfd_t value;
    if (eventfd_read(t->events, &value) != 0) abort();
    if (t->step != 0) moved += !pthread_equal(t->last, pthread_self());
    t->last = pthread_self();
    if (t->phase != NULL && !epoch_domain_attach(t->phase)) abort();
    for (unsigned i = 0; i < OBJECTS; i++) {
        size_t size = 24 + i * 11 % 300;
        void* p = memset(checked(slab != NULL ? slab_malloc(slab, size) : malloc(size)), 1, size);
        if (slab == NULL) t->made[t->step * OBJECTS + i] = p;
    }
    if (++t->step == STEPS) {
        finish(t);
        return;
    }
    if (t->phase != NULL && !epoch_domain_detach(t->phase)) abort();
    wait_for_event(t, EPOLL_CTL_MOD); /* from here on it may be another thread's */
}

static void* serve(void* unused) {
    struct epoll_event e;
    while (open_tasks != 0)
        if (epoll_wait(loop, &e, 1, 10) == 1) step(e.data.ptr);
    return unused;
}

static double run(void) {
    pthread_t threads[THREADS];
    uint64_t start = slab_now_ns();
    if ((loop = epoll_create1(0)) < 0) abort();
    open_tasks = TASKS;
    moved = 0;
    for (Task* t = tasks; t < tasks + TASKS; t++) {
        *t = (Task){.events = eventfd(0, 0)};
        if (slab == NULL) t->made = checked(calloc(STEPS * OBJECTS, sizeof *t->made));
        else t->phase = checked(epoch_domain_begin(slab, "task"));
        if (t->phase != NULL && !epoch_domain_detach(t->phase)) abort();
        wait_for_event(t, EPOLL_CTL_ADD);
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, serve, NULL) != 0) abort();
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    close(loop);
    return (double)(slab_now_ns() - start) / 1e6;
}

int main(void) {
    double without = run();
    printf("malloc  %lu frees, %.1f ms\n", frees, without);
    unsigned long singly = frees;
    if ((slab = slab_allocator_create()) == NULL) return puts(slab_last_error()), 3;
    double with = run();
    SlabGlobalStats g;
    slab_stats_global(slab, &g);
    printf("phases  %lu frees, %lu objects ended with %d tasks, which went on on another thread %lu times, %.1f ms\n", frees - singly, released,
           TASKS, moved, with);
    bool holds = wrong == 0 && frees == singly && released == singly && g.live_objects == 0;
    puts(holds ? "claim holds: each task ended with what it made" : "claim FAILS");
    slab_allocator_free(slab);
    return holds ? 0 : 1;
}
