/*
 * scenarios.c - processes in which something drains, or nothing does, for everybody who judges from outside:
 * `truth_scenarios NAME`.
 *
 *   many      300 open sessions, 3000 ended requests that hold objects
 *   old       300 open sessions that are older and larger, and a leak
 *   harmless  300 open sessions, and requests that leave nothing behind
 *   thirty    42,000 ended requests that hold objects
 *   labels    400 labels, of which every tenth leaks
 *   ring      a leak in epochs that the ring has moved past and nobody has closed
 *
 * What leaks is counted here, by hand, and printed: `label NAME phases N objects N`, then `ready`. Then lines are read:
 * `more` leaks as much again and prints the same, `free` frees one leaked object of each phase in two and prints the
 * same, `publish` copies the statistics to the segment and prints `published yes` or `no`, `doctor SECONDS`, `json`,
 * `prom` print what the library says, and `end`; `destroy` destroys the allocator and prints `end`.
 */
#include <epoch_domain.h>
#include <slab_alloc.h>
#include <slab_diagnostics.h>
#include <slab_stats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 300, LABELS = 400, LEAKS_MAX = 1 << 17, OBJECT = 200 };

static SlabAllocator* a;
static epoch_domain_t* sessions[SESSIONS];

/* Every object that was leaked, in the order of phases. */
static struct {
    void* at;
    unsigned label, phase;
} leaks[LEAKS_MAX];
static unsigned leak_count, phase_count;

static struct {
    char name[32];
    unsigned long long objects, phases;
} labels[LABELS + 1];

static unsigned label_of(const char* name) {
    unsigned n = 0;
    for (; labels[n].name[0] != 0; n++)
        if (strcmp(labels[n].name, name) == 0) return n;
    (void)snprintf(labels[n].name, sizeof labels[n].name, "%s", name);
    return n;
}

static void* some(size_t size) {
    void* p = slab_malloc(a, size);
    if (p == NULL) exit(3);
    memset(p, 1, 16);
    return p;
}

static void note(void* at, unsigned label) {
    if (leak_count == LEAKS_MAX) exit(3);
    leaks[leak_count].at = at;
    leaks[leak_count].label = label;
    leaks[leak_count++].phase = phase_count;
}

/* A request with some objects, of which `kept` outlive it; then its domain is not destroyed, which would end them. */
static void request(const char* name, unsigned objects, unsigned kept) {
    void* own[64];
    epoch_domain_t* d = epoch_domain_begin(a, name);
    d->auto_close = false;
    for (unsigned n = 0; n < objects; n++) own[n] = some(OBJECT);
    for (unsigned n = 0; n < kept; n++) note(own[n], label_of(name));
    for (unsigned n = kept; n < objects; n++) slab_free(a, own[n]);
    epoch_domain_exit(d);
    (void)epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL);
    if (kept == 0) epoch_domain_destroy(d);
    phase_count += kept != 0;
}

static void open_sessions(unsigned objects) {
    for (unsigned n = 0; n < SESSIONS; n++) {
        sessions[n] = epoch_domain_begin(a, "session");
        for (unsigned k = 0; k < objects; k++) (void)some(OBJECT);
        (void)epoch_domain_detach(sessions[n]);
    }
}

static void leak(const char* scenario) {
    if (strcmp(scenario, "many") == 0)
        for (unsigned n = 0; n < 3000; n++) request("leaky", 12, 2);
    if (strcmp(scenario, "old") == 0)
        for (unsigned n = 0; n < 50; n++) request("leaky", 12, 1);
    if (strcmp(scenario, "harmless") == 0)
        for (unsigned n = 0; n < 3000; n++) request("tidy", 12, 0);
    if (strcmp(scenario, "thirty") == 0)
        for (unsigned n = 0; n < 42000; n++) request(n % 3 == 0 ? "first" : "second", 12, 1);
    if (strcmp(scenario, "labels") == 0)
        for (unsigned n = 0; n < LABELS; n++) {
            char name[32];
            (void)snprintf(name, sizeof name, "route %03u", n);
            request(name, 8, n % 10 == 0 ? 1 : 0);
        }
    if (strcmp(scenario, "ring") == 0)
        for (unsigned n = 0; n < 5; n++) {
            slab_epoch_set_label(a, epoch_current(a), "turn");
            for (unsigned k = 0; k < 7; k++) note(slab_malloc_epoch(a, OBJECT, epoch_current(a)), label_of("turn"));
            epoch_advance(a);
            phase_count++;
        }
}

static void free_some(void) {
    unsigned kept = 0;
    for (unsigned n = 0; n < leak_count; n++) {
        bool first = n == 0 || leaks[n].phase != leaks[n - 1].phase;
        if (first && leaks[n].phase % 2 == 0) slab_free(a, leaks[n].at);
        else leaks[kept++] = leaks[n];
    }
    leak_count = kept;
}

static void say_truth(void) {
    unsigned last = ~0u;
    for (unsigned n = 0; n <= LABELS; n++) labels[n].objects = labels[n].phases = 0;
    for (unsigned n = 0; n < leak_count; n++) {
        labels[leaks[n].label].objects++;
        labels[leaks[n].label].phases += leaks[n].phase != last;
        last = leaks[n].phase;
    }
    for (unsigned n = 0; n <= LABELS; n++)
        if (labels[n].objects != 0)
            printf("label %s phases %llu objects %llu\n", labels[n].name, labels[n].phases, labels[n].objects);
    puts("ready");
    (void)fflush(stdout);
}

static bool to_stdout(void* ctx, const char* bytes, size_t n) {
    (void)ctx;
    return fwrite(bytes, 1, n, stdout) == n;
}

static void answer(const char* scenario, const char* line) {
    if (strcmp(line, "more") == 0 || strcmp(line, "free") == 0) {
        if (line[0] == 'm') leak(scenario);
        else free_some();
        say_truth();
        return;
    }
    if (strcmp(line, "publish") == 0) {
        puts(slab_stats_publish(a) ? "published yes" : "published no");
        (void)fflush(stdout);
        return;
    }
    if (strcmp(line, "destroy") == 0) {
        slab_allocator_free(a);
        a = NULL;
    }
    if (strncmp(line, "doctor ", 7) == 0) (void)slab_doctor_ex(a, (uint32_t)atoi(line + 7), to_stdout, NULL);
    if (strcmp(line, "json") == 0) (void)slab_stats_json(a, to_stdout, NULL);
    if (strcmp(line, "prom") == 0) (void)slab_stats_prometheus(a, to_stdout, NULL);
    puts("end");
    (void)fflush(stdout);
}

int main(int argc, char** argv) {
    static const char* const names[] = {"many", "old", "harmless", "thirty", "labels", "ring"};
    SlabOptions options = {.struct_size = sizeof(SlabOptions), .segment = 1, .max_labels = LABELS + 16};
    const char* scenario = argc == 2 ? argv[1] : "";
    unsigned known = 0;
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++) known += strcmp(scenario, names[n]) == 0;
    if (known == 0) {
        fprintf(stderr, "usage: truth_scenarios many|old|harmless|thirty|labels|ring\n");
        return 2;
    }
    a = slab_allocator_create_with(&options);
    if (a == NULL) {
        fprintf(stderr, "%s\n", slab_last_error());
        return 3;
    }
    if (strcmp(scenario, "old") == 0) open_sessions(64);
    if (strcmp(scenario, "many") == 0 || strcmp(scenario, "harmless") == 0) open_sessions(3);
    leak(scenario);
    say_truth();
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = 0;
        answer(scenario, line);
    }
    slab_allocator_free(a);
    return 0;
}
