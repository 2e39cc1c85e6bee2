/*
 * idle.c - a program whose memory has become empty and that goes on with a call now and then: it goes back to the
 * system by itself, and what lives stays as it is.
 *
 * How long it takes is not asserted: the program waits for it, within what the test may take.
 */
#include "preload/preloaded.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { OBJECTS = 400000, KEPT = 500, MIB = 1 << 20, TICKS = 20000, TICK_NS = 2000000 };
static char* table[OBJECTS];

static size_t resident(void) {
    unsigned long pages = 0;
    FILE* f = fopen("/proc/self/statm", "r");
    REQUIRE(f != NULL);
    REQUIRE_EQ(fscanf(f, "%*u %lu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t size_of(unsigned n) { return 40 + n % 17 * 20; }

static void load(void) {
    for (unsigned n = 0; n < OBJECTS; n++) {
        table[n] = malloc(size_of(n));
        memset(table[n], (int)n, size_of(n));
    }
}

/* As a table of hashes is emptied: in an order that has nothing to do with that of the addresses. */
static void* flush(void* arg) {
    for (unsigned n = 0, at = 0; n < OBJECTS; n++, at = (at + 100003) % OBJECTS) {
        free(table[at]);
        table[at] = NULL;
    }
    return arg;
}

/* An event loop without events. */
static bool ticks_until(size_t bytes) {
    struct timespec tick = {0, TICK_NS};
    for (unsigned n = 0; n < TICKS && resident() > bytes; n++) {
        nanosleep(&tick, NULL);
        free(malloc(100));
    }
    return resident() <= bytes;
}

static void flush_here(void) { (void)flush(NULL); }
static void flush_elsewhere(void) {
    pthread_t t;
    REQUIRE_EQ(pthread_create(&t, NULL, flush, NULL), 0);
    pthread_join(t, NULL);
}

static void goes_back_after(void (*flushed)(void)) {
    char* kept[KEPT];
    pre_require();
    for (unsigned n = 0; n < KEPT; n++) pre_fill(kept[n] = malloc(size_of(n)), size_of(n), n);
    size_t before = resident();
    load();
    REQUIRE_GE(resident(), before + 60u * MIB);
    flushed();
    CHECK(ticks_until(before + 24u * MIB));
    for (unsigned n = 0; n < KEPT; n++) {
        CHECK(pre_is_filled(kept[n], size_of(n), n));
        free(kept[n]);
    }
}

static void what_a_thread_empties_goes_back(void) { goes_back_after(flush_here); }
static void so_does_what_another_empties(void) { goes_back_after(flush_elsewhere); }

static const CheckCase cases[] = {
    CHECK_CASE(what_a_thread_empties_goes_back),
    CHECK_CASE(so_does_what_another_empties),
};
CHECK_MAIN(cases)
