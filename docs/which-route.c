/*
 * which-route.c - the server of docs/which-route.md: four routes, a phase for each request, and one route that keeps a line
 * of each request for a log that nobody writes.
 *
 *     cc -O2 -g -fno-omit-frame-pointer which-route.c $(pkg-config --cflags --libs temporal-slab) -o which-route
 *     TSLAB_OPTIONS=segment=1,profile_bytes=4k ./which-route [REQUESTS [BUDGET]]
 *
 * It serves a thousand requests a second. SIGUSR1 writes the heap profile to heap.pb; it is written at the end, too. BUDGET: so
 * many bytes at most for the route that keeps.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <slab_diagnostics.h>

static const char* const routes[] = {"GET /", "GET /search", "GET /users", "POST /orders"};
static SlabAllocator* a;
static unsigned long not_logged;
static volatile sig_atomic_t profile_wanted;

static void want_profile(int number) { (void)number, profile_wanted = 1; }
static bool put(void* file, const char* bytes, size_t n) { return fwrite(bytes, 1, n, file) == n; }

static void write_profile(void) {
    FILE* f = fopen("heap.pb", "wb");
    profile_wanted = 0;
    if (f == NULL) return;
    (void)slab_profile_write(a, put, f);
    (void)fclose(f);
}

static char* parse(EpochId phase, unsigned n) { return slab_malloc_epoch(a, 300 + n % 200, phase); }

static void log_order(EpochId phase, unsigned n) {
    char* line = slab_malloc_epoch(a, 400, phase); /* nobody frees it: this is the fault */
    if (line == NULL)
        not_logged++; /* over the budget: served all the same, without a line */
    else
        (void)snprintf(line, 400, "order %u", n);
}

static void serve(unsigned n) {
    const char* route = routes[n % 4];
    EpochId phase = epoch_current(a);
    slab_epoch_set_label(a, phase, route);
    char* request = parse(phase, n);
    if (n % 4 == 3) log_order(phase, n);
    slab_free(a, request);
    (void)epoch_advance_id(a);
    epoch_close(a, phase);
}

int main(int argc, char** argv) {
    unsigned long requests = argc > 1 ? strtoul(argv[1], NULL, 10) : 60000;
    a = slab_allocator_create();
    if (a == NULL) return fprintf(stderr, "%s\n", slab_last_error()), 1;
    (void)signal(SIGUSR1, want_profile);
    if (argc > 2) (void)slab_label_set_budget(a, "POST /orders", 0, strtoul(argv[2], NULL, 10), NULL, NULL);
    for (unsigned n = 0; n < requests; n++) {
        serve(n);
        if (profile_wanted) write_profile();
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    write_profile();
    if (not_logged != 0) printf("%lu lines of the log found no room\n", not_logged);
    slab_allocator_free(a);
}
