/* queue.c - see server.h. Requests are linked by themselves: a queue allocates nothing. */
#include "server.h"

void queue_open(Queue* queue) {
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->filled, NULL);
    queue->first = NULL;
    queue->last = &queue->first;
    queue->closed = false;
}

bool queue_give(Queue* queue, Request* request) {
    request->next = NULL;
    pthread_mutex_lock(&queue->lock);
    bool empty = queue->first == NULL;
    *queue->last = request;
    queue->last = &request->next;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
    return empty;
}

Request* queue_take_all(Queue* queue, bool waits) {
    pthread_mutex_lock(&queue->lock);
    while (waits && queue->first == NULL && !queue->closed) pthread_cond_wait(&queue->filled, &queue->lock);
    Request* all = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    pthread_mutex_unlock(&queue->lock);
    return all;
}

void queue_close(Queue* queue) {
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}
