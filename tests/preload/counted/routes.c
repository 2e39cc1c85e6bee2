/*
 * routes.c - a program of libc's, with a phase for each of its routes; it is linked with nothing of temporal-slab. What
 * it prints depends on nothing but its arguments.
 *
 * Usage: routes ROUNDS [wait]     wait: goes on with "waits" until standard input ends, so that somebody can look
 */
#define _GNU_SOURCE
#include <temporal_slab/phase.h>

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned long seed = 42, sum;
static unsigned dice(unsigned n) {
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(seed >> 33) % n;
}
static void eat(const void* p, size_t n) {
    for (size_t i = 0; i < n; i++) sum = sum * 31 + ((const unsigned char*)p)[i];
}

/* strdup, asprintf, getline, a stream in memory: what libc makes for its caller. */
static void strings(void) {
    char *text = NULL, *line = NULL, *all = NULL;
    size_t room = 0, n = 0;
    char* copy = strdup("a text of some length");
    if (asprintf(&text, "%s, %u times", copy, dice(1000)) < 0) abort();
    FILE* mem = open_memstream(&all, &n);
    for (unsigned i = 0; i < 30; i++) fprintf(mem, "%s %u\n", text, i);
    fclose(mem);
    FILE* in = fmemopen(all, n, "r");
    while (getline(&line, &room, in) > 0) eat(line, strlen(line));
    fclose(in);
    free(line), free(all), free(text), free(copy);
}

static int by_value(const void* a, const void* b) {
    unsigned x = *(const unsigned*)a, y = *(const unsigned*)b;
    return x < y ? -1 : x > y;
}

static void leaves_it(void* p) { (void)p; }

/* Expressions, sorting, a tree: libraries' insides. */
static void searches(void) {
    regex_t r;
    void* root = NULL;
    unsigned* numbers = malloc(6000 * sizeof *numbers);
    for (unsigned i = 0; i < 6000; i++) numbers[i] = dice(1u << 20);
    qsort(numbers, 6000, sizeof *numbers, by_value);
    eat(numbers, 400);
    if (regcomp(&r, "^([a-z]+)-([0-9]+|x)*(end|stop)$", REG_EXTENDED) != 0) abort();
    sum += (unsigned)regexec(&r, "some-12xend", 0, NULL, 0);
    regfree(&r);
    for (unsigned i = 0; i < 50; i++) (void)tsearch(&numbers[i], &root, by_value);
    tdestroy(root, leaves_it);
    free(numbers);
}

/* What libc keeps, made in the middle of a request. */
static FILE* kept;
static void keeps(void) {
    time_t at = 86400 * 365;
    struct tm tm;
    setenv("TZ", dice(2) != 0 ? "Europe/Berlin" : "America/New_York", 1);
    (void)setlocale(LC_ALL, "C");
    localtime_r(&at, &tm);
    sum += (unsigned)tm.tm_mon;
    if (kept == NULL) kept = fopen("/dev/null", "r");
    FILE* f = fopen("routes.tmp", "w+");
    if (f == NULL) abort();
    for (unsigned i = 0; i < 100; i++) fprintf(f, "%u\n", i);
    rewind(f);
    char* line = NULL;
    size_t room = 0;
    while (getline(&line, &room, f) > 0) eat(line, 1);
    free(line);
    fclose(f);
}

/* A cache of the program: one object a request stays; with `outside` it is the process's. */
enum { CACHE = 64 };
static char* cache[CACHE];
static void caches(bool outside) {
    unsigned at = dice(CACHE);
    void* work = malloc(500);
    if (outside) (void)tslab_phase_outer();
    free(cache[at]);
    cache[at] = malloc(40 + dice(300));
    memset(cache[at], 7, 40);
    if (outside) (void)tslab_phase_outer_leave();
    free(work);
}

/* Blocks that grow, small ones and large ones, alone and beside others. */
static void grows(void) {
    char *one = NULL, *other = NULL;
    size_t n = 8;
    for (unsigned i = 0; i < 60; i++) {
        n += n / 4 + dice(64);
        one = realloc(one, n);
        one[0] = one[n - 1] = (char)i;
        if (i % 3 == 0) other = realloc(other, n / 2 + 1);
        if (n > 3000000) n = 8;
    }
    eat(one, 1);
    one = realloc(one, 100);
    void* aligned;
    if (posix_memalign(&aligned, 256, 1000) != 0) abort();
    free(aligned);
    free(calloc(7, 1 + dice(9000)));
    free(one), free(other);
}

/* Objects that another thread frees, during the phase and after it. */
static void* frees(void* arg) {
    void** list = arg;
    tslab_phase* phase = tslab_phase_begin("thread");
    for (unsigned i = 0; i < 40; i++) free(list[i]), list[i] = malloc(24);
    (void)tslab_phase_end(phase);
    return NULL;
}
static void* handed[40];
static void hands_over(void) {
    void* list[40];
    pthread_t t;
    for (unsigned i = 0; i < 40; i++) list[i] = malloc(10 + dice(2000));
    for (unsigned i = 0; i < 40; i++) free(handed[i]), handed[i] = malloc(10 + dice(200));
    if (pthread_create(&t, NULL, frees, list) != 0) abort();
    pthread_join(t, NULL);
    for (unsigned i = 0; i < 40; i++) free(list[i]);
}

/* Requests that take turns on one thread. */
enum { OPEN = 20, SLOTS = 30 };
static void turns(void) {
    tslab_phase* phases[OPEN];
    char* made[OPEN][SLOTS];
    unsigned count[OPEN] = {0};
    for (unsigned k = 0; k < OPEN; k++) {
        phases[k] = tslab_phase_begin("turns");
        (void)tslab_phase_suspend(phases[k]);
    }
    for (unsigned i = 0; i < 400; i++) {
        unsigned k = dice(OPEN);
        (void)tslab_phase_resume(phases[k]);
        if (count[k] == SLOTS || (count[k] != 0 && dice(3) == 0)) free(made[k][--count[k]]);
        else made[k][count[k]++] = malloc(1 + dice(700));
        (void)tslab_phase_suspend(phases[k]);
    }
    for (unsigned k = 0; k < OPEN; k++) {
        if (k % 2 == 0) (void)tslab_phase_end(phases[k]); /* the others first free what they have */
        while (count[k] != 0) free(made[k][--count[k]]);
        if (k % 2 != 0) (void)tslab_phase_end(phases[k]);
    }
}

static void inner(const char* label, void (*fn)(void)) {
    tslab_phase* phase = tslab_phase_begin(label);
    fn();
    (void)tslab_phase_end(phase);
}
static void cached(void) { caches(false); }
static void outer(void) { caches(true); }
static void nested(void) {
    void* p = malloc(77);
    inner("nested/strings", strings);
    inner("nested/grows", grows);
    free(p);
}

int main(int argc, char** argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    (void)tslab_phase_expect("cache", 1, 1024);
    for (int n = 0; n < rounds; n++) {
        inner("strings", strings);
        inner("searches", searches);
        inner("keeps", keeps);
        inner("cache", cached);
        inner("outer", outer);
        inner("grows", grows);
        inner("hands over", hands_over);
        inner("nested", nested);
        turns();
    }
    unlink("routes.tmp");
    printf("%lx\n", sum);
    fflush(stdout);
    struct pollfd in = {.fd = 0, .events = POLLIN};
    while (argc > 2 && poll(&in, 1, 50) == 0) inner("waits", strings); /* an idle process shows nothing new */
    return 0;
}
