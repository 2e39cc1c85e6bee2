/*
 * fast_paths.c - the paths whose instructions fast_paths.sh counts: `fast_paths PATH COUNT [label] [sampled] [segment]`.
 *
 * Only what runs inside counted() is counted (callgrind's --toggle-collect); everything is warmed up outside.
 * COUNT operations run in it, so a loop's own two or three instructions are part of each.
 */
#include <epoch_domain.h>
#include <slab_alloc.h>
#include <slab_lane.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 128, WIDE = 8000, COUNT_MAX = 1 << 17, OBJECTS = 225, FIRST_BYTES = 12 << 10 };

static SlabAllocator* a;
static const char* label; /* of the domain around, and of domains */
static void* p[COUNT_MAX];
static SlabHandle h[COUNT_MAX];

typedef void (*Run)(unsigned n);
__attribute__((noinline, noclone)) void counted(Run run, unsigned n);
void counted(Run run, unsigned n) {
    run(n);
    __asm__ volatile("" ::: "memory"); /* not a tail call */
}

static void alloc(unsigned n) {
    for (unsigned i = 0; i < n; i++) p[i] = slab_malloc(a, SIZE);
}
static void release(unsigned n) {
    for (unsigned i = 0; i < n; i++) slab_free(a, p[i]);
}
static void release_sized(unsigned n) {
    for (unsigned i = 0; i < n; i++) slab_free_sized(a, p[i], SIZE);
}
/* In lines, where the ring's epochs allocate behind a thread's first 12 KiB. */
static void alloc_in_ring(unsigned n) {
    for (unsigned bytes = 0; bytes < FIRST_BYTES; bytes += SIZE)
        if (slab_malloc_epoch(a, SIZE, epoch_current(a)) == NULL) exit(1);
    for (unsigned i = 0; i < n; i++) p[i] = slab_malloc_epoch(a, SIZE, epoch_current(a));
}
static void close_ring(void) {
    EpochId id = epoch_current(a);
    epoch_advance(a);
    epoch_close(a, id);
}
static void alloc_and_close(unsigned n) {
    alloc_in_ring(n);
    close_ring();
}
/* In the regions that the thread begins with there, if n is no more than they hold. */
static void alloc_first_and_close(unsigned n) {
    for (unsigned i = 0; i < n; i++) p[i] = slab_malloc_epoch(a, SIZE, epoch_current(a));
    close_ring();
}
/* Most of the line's or page's neighbours live on as one is freed. */
static void release_apart(unsigned n) {
    for (unsigned first = 0; first < 256; first++)
        for (unsigned i = first; i < n; i += 256) slab_free(a, p[i]);
}
static void pair(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        void* volatile q = slab_malloc(a, SIZE);
        slab_free(a, q);
    }
}
/* Of a size that is not looked up, and in no region. */
static void wide(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        void* volatile q = slab_malloc(a, WIDE);
        slab_free(a, q);
    }
}
static void handle_alloc(unsigned n) {
    for (unsigned i = 0; i < n; i++) p[i] = alloc_obj(a, SIZE, &h[i]);
}
static void handle_free(unsigned n) {
    for (unsigned i = 0; i < n; i++) free_obj(a, h[i]);
}
static void domain(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, label);
        epoch_domain_enter(d);
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
    }
}
static void request(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, label);
        epoch_domain_enter(d);
        for (unsigned k = 0; k < OBJECTS; k++) p[k] = slab_malloc(a, 64 + 64 * (k % 8));
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
    }
}
/* The same by its lane. */
static void request_lane(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        SlabLane lane;
        if (!slab_lane_begin(&lane, a, label)) exit(1);
        for (unsigned k = 0; k < OBJECTS; k++) p[k] = slab_lane_malloc(&lane, 64 + 64 * (k % 8));
        epoch_domain_end(lane.domain);
    }
}
/* The same by a run. */
static void request_run(unsigned n) {
    SlabDomainOptions o = {.struct_size = sizeof o, .label = label, .flags = SLAB_DOMAIN_OWNER_ONLY};
    for (unsigned i = 0; i < n; i++) {
        SlabRun run;
        epoch_domain_t* d = epoch_domain_create_ex(a, &o);
        if (d == NULL || !slab_run_begin(&run, d)) exit(1);
        for (unsigned k = 0; k < OBJECTS; k++) p[k] = slab_run_malloc(&run, 64 + 64 * (k % 8));
        slab_run_end(&run);
        epoch_domain_destroy(d);
    }
}
/* Ten objects, while fifteen others are open. */
static void tiny(unsigned n, bool singly) {
    static const unsigned short sizes[10] = {64, 256, 96, 128, 384, 64, 192, 128, 256, 192};
    static epoch_domain_t* ring[16];
    static void* object[16][10];
    for (unsigned i = 0; i < n; i++) {
        unsigned at = i % 16;
        if (ring[at] != NULL) {
            for (unsigned k = 0; singly && k < 10; k++) slab_free(a, object[at][k]);
            epoch_domain_destroy(ring[at]);
        }
        ring[at] = epoch_domain_create_labeled(a, label);
        for (unsigned k = 0; k < 10; k++) object[at][k] = epoch_domain_malloc(ring[at], sizes[k]);
    }
}
static void phase(unsigned n) { tiny(n, false); }
static void phase_freed(unsigned n) { tiny(n, true); }

/* A buffer that grows in a phase of its own. */
static void grow(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, label);
        epoch_domain_enter(d);
        void* q = slab_malloc(a, 300);
        for (size_t size = 600; size <= 15000; size += 300) q = slab_realloc(a, q, size);
        p[0] = q;
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
    }
}

/* Of max_bytes, while ten thousand phases drain. */
enum { REFUSED_BYTES = 1 << 20, DRAINING = 10000 };
static void fill(unsigned n) {
    (void)n;
    for (unsigned i = 0; i < DRAINING; i++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, label);
        if (epoch_domain_malloc(d, SIZE) == NULL || !epoch_domain_drain(d, NULL)) exit(1);
    }
    while (slab_malloc(a, REFUSED_BYTES) != NULL) {}
}
static void refused(unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (slab_malloc(a, REFUSED_BYTES) != NULL) exit(1);
}

static unsigned count;
static void* remote(void* arg) {
    (void)arg;
    slab_free(a, slab_malloc(a, SIZE));
    counted(release, count);
    return NULL;
}

/* A thread that only frees. */
static void* remote_unbound(void* arg) {
    (void)arg;
    counted(release, count);
    return NULL;
}

static const struct {
    const char* name;
    Run before, run;
} paths[] = {
    {"alloc", NULL, alloc},
    {"free", alloc, release},
    {"free_sized", alloc, release_sized},
    {"pair", pair, pair},
    {"wide", wide, wide},
    {"remote_free", alloc, NULL},
    {"remote_free_line", alloc_in_ring, NULL},
    {"remote_free_unbound", alloc_in_ring, NULL},
    {"late_free", alloc_and_close, release_apart},
    {"late_free_first", alloc_first_and_close, release},
    {"handle_alloc", NULL, handle_alloc},
    {"handle_free", handle_alloc, handle_free},
    {"domain", domain, domain},
    {"request", request, request},
    {"request_lane", request_lane, request_lane},
    {"request_run", request_run, request_run},
    {"request_sampled", request, request}, /* as with the word */
    {"grow", grow, grow},
    {"phase", phase, phase},
    {"phase_freed", phase_freed, phase_freed},
    {"phase_budget", phase, phase}, /* of a label with a budget */
    {"refused", fill, refused},
};

int main(int argc, char** argv) {
    SlabOptions o = {.struct_size = sizeof o};
    count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    bool sampled = argc > 1 && strcmp(argv[1], "request_sampled") == 0;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "label") == 0) label = "GET /users";
        if (strcmp(argv[i], "sampled") == 0) sampled = true;
        if (strcmp(argv[i], "segment") == 0) o.segment = 1;
    }
    if (sampled) o.sampling_period = 64;
    if (argc > 1 && strcmp(argv[1], "refused") == 0) o.max_bytes = 256u << 20;
    for (size_t i = 0; argc > 2 && i < sizeof paths / sizeof *paths; i++) {
        if (strcmp(argv[1], paths[i].name) != 0 || count == 0 || count > COUNT_MAX) continue;
        pthread_t t;
        a = slab_allocator_create_with(&o);
        bool budget = a != NULL && strcmp(argv[1], "phase_budget") == 0;
        if (budget) label = "GET /users";
        if (budget && !slab_label_set_budget(a, label, 0, 1 << 30, NULL, NULL)) return 1;
        epoch_domain_t* around = a != NULL ? epoch_domain_create_labeled(a, label) : NULL;
        if (around == NULL) return 1;
        epoch_domain_enter(around);
        slab_free(a, slab_malloc(a, SIZE));
        if (paths[i].before != NULL) paths[i].before(count);
        if (paths[i].run != NULL) counted(paths[i].run, count);
        else if (pthread_create(&t, NULL, strcmp(argv[1], "remote_free_unbound") == 0 ? remote_unbound : remote,
                                NULL) != 0 ||
                 pthread_join(t, NULL) != 0)
            return 1;
        epoch_domain_exit(around);
        epoch_domain_destroy(around);
        slab_allocator_free(a);
        return 0;
    }
    fprintf(stderr, "usage: fast_paths PATH COUNT [label] [sampled] [segment], COUNT 1..%d, PATH one of", COUNT_MAX);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) fprintf(stderr, " %s", paths[i].name);
    fprintf(stderr, "\n");
    return 2;
}
