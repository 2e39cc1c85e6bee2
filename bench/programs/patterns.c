/*
 * patterns.c - programs that do little but allocate, each in a manner that allocators are known to differ in.
 *
 *   patterns NAME [PERCENT]       PERCENT of the usual work (100)
 *
 * Written in the manner of the programs of mimalloc-bench, not from them: what each plays stands above it. Every object carries a number and
 * is filled from it; it is checked as it is freed, and the numbers of all that were freed are added up. So the sum that is printed is the same under any
 * allocator, in whatever order threads come: a lost, doubled or overwritten object changes it, or ends the program.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4 };
static unsigned percent = 100;

/* ---- objects ---- */

typedef struct Object {
    uint64_t number;
    uint32_t bytes; /* of all of it, this included */
    uint32_t check; /* of the two */
} Object;

typedef struct Random {
    uint64_t state;
} Random;
static uint32_t draw(Random* r, uint32_t below) {
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((r->state >> 33) % below);
}
/* As many below a power of two as between it and the next. */
static uint32_t draw_log(Random* r, unsigned least_log2, unsigned most_log2) {
    uint32_t low = 1u << (least_log2 + draw(r, most_log2 - least_log2));
    return low + draw(r, low);
}

static void die(const char* what) {
    fprintf(stderr, "patterns: %s\n", what);
    exit(3);
}

static uint32_t check_of(const Object* o) {
    return (uint32_t)(o->number * 2654435761u) ^ (uint32_t)(o->number >> 32) ^ o->bytes;
}

static Object* make(uint64_t number, size_t bytes) {
    if (bytes < sizeof(Object)) bytes = sizeof(Object);
    Object* o = malloc(bytes);
    if (o == NULL) die("no memory");
    o->number = number;
    o->bytes = (uint32_t)bytes;
    o->check = check_of(o);
    size_t rest = bytes - sizeof *o;
    memset(o + 1, (int)(number & 0xff), rest < 256 ? rest : 256);
    if (rest != 0) ((unsigned char*)o)[bytes - 1] = (unsigned char)number;
    return o;
}

/* Frees it; its number. NULL: 0. */
static uint64_t done(Object* o) {
    if (o == NULL) return 0;
    uint64_t number = o->number;
    const unsigned char* p = (const unsigned char*)o;
    if (o->check != check_of(o)) die("an object is not what it was");
    if (o->bytes > sizeof *o && (p[sizeof *o] != (unsigned char)number || p[o->bytes - 1] != (unsigned char)number))
        die("an object's bytes are not what they were");
    free(o);
    return number;
}

/* ---- threads ---- */

static _Atomic uint64_t total;
typedef struct Thread {
    pthread_t id;
    unsigned number;
    void* (*body)(void*);
} Thread;

static void run_threads(unsigned n, void* (*body)(void*)) {
    Thread t[64];
    for (unsigned k = 0; k < n; k++) {
        t[k].number = k;
        if (pthread_create(&t[k].id, NULL, body, &t[k]) != 0) die("no thread");
    }
    for (unsigned k = 0; k < n; k++) pthread_join(t[k].id, NULL);
}
static unsigned number_of(void* arg) { return ((Thread*)arg)->number; }
static Random random_of(void* arg) { return (Random){number_of(arg) * 7919 + 1}; }

/* ---- larson: a server whose threads pass what they hold on to their successors ---- */

enum { HELD = 2000, LIVES = 240, TURNS = 20000 };
typedef struct Server {
    Object* held[HELD];
    Random random;
    uint64_t sum;
} Server;

static void* serve(void* arg) {
    Server* s = arg;
    for (unsigned n = 0; n < TURNS; n++) {
        unsigned at = draw(&s->random, HELD);
        s->sum += done(s->held[at]);
        s->held[at] = make(s->random.state, 16 + draw(&s->random, 500));
    }
    return NULL;
}
static void* server(void* arg) {
    Server* s = calloc(1, sizeof *s);
    if (s == NULL) die("no memory");
    s->random = random_of(arg);
    for (unsigned lives = 1 + LIVES * percent / 100; lives != 0; lives--) {
        pthread_t next;
        if (pthread_create(&next, NULL, serve, s) != 0) die("no thread");
        pthread_join(next, NULL);
    }
    for (unsigned n = 0; n < HELD; n++) s->sum += done(s->held[n]);
    total += s->sum;
    free(s);
    return NULL;
}
static void larson(void) { run_threads(THREADS, server); }

/* ---- alloc-test: one of many is replaced, of sizes of every magnitude ---- */

static void* mix(void* arg) {
    enum { LIVE = 20000 };
    Object** live = calloc(LIVE, sizeof *live);
    Random r = random_of(arg);
    uint64_t sum = 0;
    if (live == NULL) die("no memory");
    for (unsigned n = 0; n < 160000 * percent; n++) {
        unsigned at = draw(&r, LIVE);
        sum += done(live[at]);
        live[at] = make(r.state, draw_log(&r, 4, draw(&r, 64) == 0 ? 15 : 9));
    }
    for (unsigned n = 0; n < LIVE; n++) sum += done(live[n]);
    free(live);
    total += sum;
    return NULL;
}
static void alloc_test(void) { run_threads(1, mix); }

/* ---- cache-scratch: threads free what another has made, and write to what they get in its place ---- */

static Object* given[THREADS];
static void* scratch(void* arg) {
    unsigned me = number_of(arg);
    uint64_t sum = done(given[me]);
    for (unsigned n = 0; n < 1600 * percent; n++) {
        Object* o = make(n * (uint64_t)THREADS + me, 24);
        volatile unsigned char* p = (unsigned char*)(o + 1);
        for (unsigned k = 0; k < 500; k++) p[1] = (unsigned char)(p[1] + k);
        sum += done(o);
    }
    total += sum;
    return NULL;
}
static void cache_scratch(void) {
    for (unsigned n = 0; n < THREADS; n++) given[n] = make(n, 24); /* side by side, perhaps in one line of the cache */
    run_threads(THREADS, scratch);
}

/* ---- xmalloc: some threads only allocate, others only free ---- */

enum { BATCH = 128, QUEUE = 64 };
typedef struct Batch {
    Object* o[BATCH];
} Batch;
static Batch* queue[QUEUE];
static unsigned queue_first, queue_count, producers;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_moved = PTHREAD_COND_INITIALIZER;

static void produce(Random r) {
    for (unsigned n = 0; n < 400 * percent; n++) {
        Batch* b = malloc(sizeof *b);
        if (b == NULL) die("no memory");
        for (unsigned k = 0; k < BATCH; k++) b->o[k] = make(r.state, 16 + draw(&r, 240));
        pthread_mutex_lock(&queue_lock);
        while (queue_count == QUEUE) pthread_cond_wait(&queue_moved, &queue_lock);
        queue[(queue_first + queue_count++) % QUEUE] = b;
        pthread_cond_broadcast(&queue_moved);
        pthread_mutex_unlock(&queue_lock);
    }
    pthread_mutex_lock(&queue_lock);
    producers--;
    pthread_cond_broadcast(&queue_moved);
    pthread_mutex_unlock(&queue_lock);
}
static void consume(void) {
    for (uint64_t sum = 0;;) {
        pthread_mutex_lock(&queue_lock);
        while (queue_count == 0 && producers != 0) pthread_cond_wait(&queue_moved, &queue_lock);
        Batch* b = NULL;
        if (queue_count != 0) {
            b = queue[queue_first];
            queue_first = (queue_first + 1) % QUEUE;
            queue_count--;
            pthread_cond_broadcast(&queue_moved);
        }
        pthread_mutex_unlock(&queue_lock);
        if (b == NULL) {
            total += sum;
            return;
        }
        for (unsigned k = 0; k < BATCH; k++) sum += done(b->o[k]);
        free(b);
    }
}
static void* xmalloc_thread(void* arg) {
    if (number_of(arg) % 2 == 0) produce(random_of(arg));
    else consume();
    return NULL;
}
static void xmalloc(void) {
    producers = THREADS / 2;
    run_threads(THREADS, xmalloc_thread);
}

/* ---- glibc-simple, glibc-thread: blocks of one size after the other, in order, backwards and by chance ---- */

static void* blocks(void* arg) {
    enum { N = 1600 };
    Object* o[N];
    Random r = random_of(arg);
    uint64_t sum = 0;
    for (unsigned turn = 0; turn < 15 * percent; turn++) {
        for (size_t bytes = 16; bytes <= 4096; bytes *= 2) {
            unsigned n = bytes > 512 ? N / 16 : N;
            for (unsigned k = 0; k < n; k++) o[k] = make(turn * bytes + k, bytes);
            if (turn % 3 == 1)
                for (unsigned k = n; k > 1; k--) {
                    unsigned other = draw(&r, k);
                    Object* x = o[k - 1];
                    o[k - 1] = o[other];
                    o[other] = x;
                }
            for (unsigned k = 0; k < n; k++) sum += done(o[turn % 3 == 2 ? n - 1 - k : k]);
        }
    }
    total += sum;
    return NULL;
}
static void simple(void) { run_threads(1, blocks); }
static void threads(void) { run_threads(THREADS, blocks); }

/* ---- rptest: threads that replace their own objects and leave each tenth to whoever comes by ---- */

enum { SHELVES = 4096 };
static Object* _Atomic shelves[SHELVES];

static void* passers(void* arg) {
    enum { LIVE = 8000 };
    Object** live = calloc(LIVE, sizeof *live);
    Random r = random_of(arg);
    uint64_t sum = 0;
    if (live == NULL) die("no memory");
    for (unsigned n = 0; n < 12000 * percent; n++) {
        unsigned at = draw(&r, LIVE), shelf = draw(&r, SHELVES);
        if (draw(&r, 10) == 0) {
            Object* mine = live[at];
            live[at] = NULL;
            sum += done(atomic_exchange(&shelves[shelf], mine));
        } else {
            sum += done(live[at]);
        }
        live[at] = make(r.state, draw_log(&r, 4, 12));
    }
    for (unsigned n = 0; n < LIVE; n++) sum += done(live[n]);
    free(live);
    total += sum;
    return NULL;
}
static void rptest(void) {
    run_threads(THREADS, passers);
    for (unsigned n = 0; n < SHELVES; n++) total += done(shelves[n]);
}

/* ---- mstress: threads that come and go, some of what they make stays for long, some is exchanged ---- */

static void* stress(void* arg) {
    enum { KEPT = 3000, SOON = 200 };
    Object **kept = calloc(KEPT, sizeof *kept), *soon[SOON] = {0};
    Random r = {number_of(arg) * 104729u + 17};
    uint64_t sum = 0;
    unsigned count = 0;
    if (kept == NULL) die("no memory");
    for (unsigned n = 0; n < 50000; n++) {
        Object* o = make(r.state, 16 + draw_log(&r, 3, draw(&r, 100) == 0 ? 14 : 8));
        unsigned what = draw(&r, 100), at = draw(&r, SOON);
        if (what < 4 && count < KEPT) {
            kept[count++] = o;
        } else if (what < 14) {
            sum += done(atomic_exchange(&shelves[draw(&r, SHELVES)], o));
        } else {
            sum += done(soon[at]);
            soon[at] = o;
        }
    }
    for (unsigned n = 0; n < SOON; n++) sum += done(soon[n]);
    for (unsigned n = 0; n < count; n++) sum += done(kept[n]);
    free(kept);
    total += sum;
    return NULL;
}
static void mstress(void) {
    for (unsigned turn = 0; turn < 1 + percent / 2; turn++) {
        run_threads(THREADS, stress);
        for (unsigned n = turn % 4; n < SHELVES; n += 4) total += done(atomic_exchange(&shelves[n], NULL));
    }
    for (unsigned n = 0; n < SHELVES; n++) total += done(shelves[n]);
}

/* ---- sh6, sh8: batches of a few sizes, freed as a queue, as a stack and mixed; sh8 with threads and larger sizes ---- */

static void* batches(void* arg, unsigned most_log2) {
    enum { N = 3000 };
    Object* o[N];
    Random r = random_of(arg);
    uint64_t sum = 0;
    for (unsigned turn = 0; turn < 15 * percent; turn++) {
        uint32_t size = draw_log(&r, 4, most_log2);
        for (unsigned n = 0; n < N; n++)
            o[n] = make(turn + (uint64_t)n * 3, n % 8 == 0 ? draw_log(&r, 4, most_log2) : size);
        for (unsigned n = 0; n < N; n += 2) sum += done(o[n]);
        for (unsigned n = 0; n < N; n += 2) o[n] = make(turn * 5u + n, size / 2);
        for (unsigned n = 0; n < N; n++) sum += done(o[turn % 2 == 0 ? n : N - 1 - n]);
    }
    total += sum;
    return NULL;
}
static void* small_batches(void* arg) { return batches(arg, 9); }
static void* large_batches(void* arg) { return batches(arg, 11); }
static void sh6(void) { run_threads(1, small_batches); }
static void sh8(void) { run_threads(THREADS, large_batches); }

/* ---- cfrac, espresso: one thread, very small objects of short lives beside lists that grow and are copied ---- */

static void cfrac(void) {
    Random r = {1};
    Object* numbers[64] = {0};
    for (unsigned n = 0; n < 400000 * percent; n++) {
        unsigned at = draw(&r, 64);
        total += done(numbers[at]);
        numbers[at] = make(r.state, 16 + draw(&r, 4) * 8);
    }
    for (unsigned n = 0; n < 64; n++) total += done(numbers[n]);
}

static void espresso(void) {
    enum { LISTS = 300 };
    uint64_t* lists[LISTS] = {0};
    uint64_t counts[LISTS] = {0}, rooms[LISTS] = {0};
    Random r = {3};
    for (unsigned n = 0; n < 300000 * percent; n++) {
        unsigned at = draw(&r, LISTS);
        if (counts[at] == rooms[at]) {
            uint64_t room = rooms[at] + 4 + rooms[at] / 4;
            uint64_t* more = realloc(lists[at], room * sizeof *more);
            if (more == NULL) die("no memory");
            lists[at] = more;
            rooms[at] = room;
        }
        lists[at][counts[at]++] = n;
        if (draw(&r, 400) == 0) { /* a copy takes its place */
            unsigned to = draw(&r, LISTS);
            if (to == at) continue;
            for (uint64_t k = 0; k < counts[to]; k++) total += lists[to][k];
            free(lists[to]);
            counts[to] = rooms[to] = counts[at] / 2 + 1;
            lists[to] = calloc(rooms[to], sizeof *lists[to]);
            if (lists[to] == NULL) die("no memory");
            memcpy(lists[to], lists[at], counts[at] / 2 * sizeof *lists[to]);
        }
    }
    for (unsigned n = 0; n < LISTS; n++) {
        for (uint64_t k = 0; k < counts[n]; k++) total += lists[n][k];
        free(lists[n]);
    }
}

static const struct {
    const char* name;
    void (*run)(void);
} programs[] = {
    {"larson", larson},   {"alloc-test", alloc_test}, {"cache-scratch", cache_scratch},
    {"xmalloc", xmalloc}, {"simple", simple},         {"threads", threads},
    {"rptest", rptest},   {"mstress", mstress},       {"sh6", sh6},
    {"sh8", sh8},         {"cfrac", cfrac},           {"espresso", espresso},
};

int main(int argc, char** argv) {
    if (argc >= 3) percent = (unsigned)atoi(argv[2]);
    for (size_t n = 0; argc >= 2 && n < sizeof programs / sizeof *programs; n++) {
        if (strcmp(argv[1], programs[n].name) != 0) continue;
        programs[n].run();
        printf("%s %016llx\n", argv[1], (unsigned long long)total);
        return fflush(stdout) == 0 ? 0 : 3;
    }
    fprintf(stderr, "usage: patterns NAME [PERCENT]; names:");
    for (size_t n = 0; n < sizeof programs / sizeof *programs; n++) fprintf(stderr, " %s", programs[n].name);
    fprintf(stderr, "\n");
    return 2;
}
