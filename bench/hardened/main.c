/*
 * main.c - tslab_hardened: what the parts of the hardened form cost, beside the secure builds of other allocators.
 *
 * Each form is a child process of its own: an allocator that is preloaded, or the options of this library. A round runs
 * every form once; the table has, of all rounds, the median of the ratio to the plain form of the same allocator in the
 * same round, and to the plain form of this library. So what the machine does beside falls on both.
 *
 *   malloc   objects of 16 to 1024 bytes, half of them live, each written, freed in no order, by malloc and free
 *   large    the same from 4 to 64 KiB
 *   phase    a phase with 200 objects that ends, by the calls of this library alone
 *
 * Usage: tslab_hardened [--rounds N] [--peers peers.tsv] [--preload libtemporal_slab_preload.so]
 * Exit code: 0; 1 if a child fails; 2 for wrong usage.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <epoch_domain.h>
#include <slab_alloc.h>

enum { FORMS_MOST = 32, LOADS = 3, ROUNDS_MOST = 99, LIVE = 4096, PHASE_OBJECTS = 200 };

typedef enum Load { LOAD_MALLOC, LOAD_LARGE, LOAD_PHASE } Load;
static const char* const load_name[LOADS] = {"malloc", "large", "phase"};

typedef struct Form {
    char name[64], library[512], options[128];
    int plain;                     /* the form without the option, to compare with; its own index if it is plain */
    double ns[LOADS][ROUNDS_MOST]; /* of processor time an operation; 0: not measured */
    double kib[ROUNDS_MOST];       /* most resident, of the first load */
} Form;

static Form forms[FORMS_MOST];
static int form_count;

static int add(const char* name, const char* library, const char* options, int plain) {
    if (form_count == FORMS_MOST) exit(2);
    Form* form = &forms[form_count];
    (void)snprintf(form->name, sizeof form->name, "%s", name);
    (void)snprintf(form->library, sizeof form->library, "%s", library);
    (void)snprintf(form->options, sizeof form->options, "%s", options);
    form->plain = plain < 0 ? form_count : plain;
    return form_count++;
}

/* ---- the loads, in a child ---- */

static uint64_t dice = 1;
static uint32_t throw_dice(uint32_t n) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((dice >> 33) % n);
}

static double processor_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Returns the nanoseconds of a malloc with its free. */
static double run_malloc(uint32_t least, uint32_t most, uint32_t live, uint32_t times) {
    static char* p[LIVE];
    double begun = 0;
    for (uint32_t n = 0; n < times + live; n++) {
        if (n == live) begun = processor_ns();
        uint32_t at = throw_dice(live), size = least + throw_dice(most - least + 1);
        free(p[at]);
        p[at] = malloc(size);
        if (p[at] == NULL) exit(1);
        p[at][0] = p[at][size - 1] = (char)n;
    }
    return (processor_ns() - begun) / times;
}

/* Returns the nanoseconds of an object of a phase, its share of begin and end included. */
static double run_phases(uint32_t times) {
    SlabAllocator* a = slab_allocator_create();
    double begun = 0;
    if (a == NULL) exit(1);
    for (uint32_t n = 0; n < times + times / 10; n++) {
        if (n == times / 10) begun = processor_ns();
        epoch_domain_t* d = epoch_domain_begin(a, "request");
        for (uint32_t k = 0; k < PHASE_OBJECTS; k++) {
            uint32_t size = 16 + throw_dice(241);
            char* p = slab_malloc(a, size);
            if (p == NULL) exit(1);
            p[0] = p[size - 1] = (char)k;
            if (k % 4 == 0) slab_free(a, p);
        }
        if (!epoch_domain_end(d)) exit(1);
    }
    double ns = (processor_ns() - begun) / times / PHASE_OBJECTS;
    slab_allocator_free(a);
    return ns;
}

static double run_load(Load load) {
    if (load == LOAD_MALLOC) return run_malloc(16, 1024, LIVE, 2000000);
    if (load == LOAD_LARGE) return run_malloc(4096, 65536, 256, 200000);
    return run_phases(10000);
}

/* ---- children ---- */

/* Runs a load in a child and sets what it took. Returns false if the child fails. */
static bool measure(Form* form, Load load, int round) {
    int of[2];
    if (pipe(of) != 0) return false;
    pid_t child = fork();
    if (child == 0) {
        char number[16];
        (void)dup2(of[1], 3);
        (void)snprintf(number, sizeof number, "%d", (int)load);
        if (form->library[0] != 0 && load != LOAD_PHASE) setenv("LD_PRELOAD", form->library, 1);
        if (form->options[0] != 0) setenv("TSLAB_OPTIONS", form->options, 1);
        else unsetenv("TSLAB_OPTIONS");
        execl("/proc/self/exe", "tslab_hardened", "--load", number, (char*)NULL);
        _exit(127);
    }
    close(of[1]);
    char text[64] = "";
    ssize_t n = read(of[0], text, sizeof text - 1);
    close(of[0]);
    int status;
    struct rusage used;
    if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0 || n <= 0) return false;
    form->ns[load][round] = strtod(text, NULL);
    if (load == LOAD_MALLOC) form->kib[round] = (double)used.ru_maxrss;
    return form->ns[load][round] > 0;
}

/* ---- the table ---- */

static int by_size(const void* x, const void* y) {
    double a = *(const double*)x, b = *(const double*)y;
    return (a > b) - (a < b);
}
static double median(double* v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n % 2 != 0 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Returns the median over the rounds of the ratio of two forms; 0 if one was not measured. */
static double ratio(const Form* form, const Form* to, Load load, int rounds) {
    double v[ROUNDS_MOST];
    if (form->ns[load][0] <= 0 || to->ns[load][0] <= 0) return 0;
    for (int n = 0; n < rounds; n++) v[n] = form->ns[load][n] / to->ns[load][n];
    return median(v, rounds);
}

static void print_ratio(double r) {
    if (r > 0) printf(" %.2f |", r);
    else printf(" - |");
}

static void print_table(int rounds) {
    printf("| form |");
    for (int load = 0; load < LOADS; load++) printf(" %s: ns | to plain | to ours |", load_name[load]);
    printf(" resident MiB |\n|---|");
    for (int load = 0; load < LOADS; load++) printf("---|---|---|");
    printf("---|\n");
    for (int i = 0; i < form_count; i++) {
        Form* form = &forms[i];
        printf("| %s |", form->name);
        for (int load = 0; load < LOADS; load++) {
            double v[ROUNDS_MOST];
            memcpy(v, form->ns[load], sizeof v);
            print_ratio(form->ns[load][0] > 0 ? median(v, rounds) : 0);
            print_ratio(form->plain != i ? ratio(form, &forms[form->plain], (Load)load, rounds) : 0);
            print_ratio(i != 0 ? ratio(form, &forms[0], (Load)load, rounds) : 0);
        }
        printf(" %.1f |\n", median(form->kib, rounds) / 1024);
    }
}

/* ---- which forms ---- */

static void add_ours(const char* preload) {
    static const char* const parts[][2] = {
        {"fill_freed", "fill_freed=1"},
        {"quarantine_bytes=4m", "quarantine_bytes=4m"},
        {"guard_sampling=5000", "guard_sampling=5000"},
        {"random_order", "random_order=1"},
        {"hardened: all of these", "hardened=1"},
        {"for tests: guard_period=1000", "guard_period=1000"},
    };
    int plain = add("temporal-slab", preload, "", -1);
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++) {
        char name[80];
        (void)snprintf(name, sizeof name, "temporal-slab, %s", parts[n][0]);
        (void)add(name, preload, parts[n][1], plain);
    }
}

/* Returns the plain form of a secure build; -1 if there is none, or it is not here. */
static int plain_of(const char* name) {
    const char* plain = strcmp(name, "mimalloc-secure") == 0   ? "mimalloc2"
                        : strcmp(name, "snmalloc-checks") == 0 ? "snmalloc"
                                                               : "";
    for (int n = 0; n < form_count; n++)
        if (strcmp(forms[n].name, plain) == 0) return n;
    return -1;
}

/* Adds the peers that are checked, and those that they are compared with. Returns false if the list cannot be read. */
static bool add_peers(const char* list) {
    char line[1024];
    FILE* f = fopen(list, "r");
    if (f == NULL) return false;
    (void)add("glibc", "", "", -1);
    while (fgets(line, sizeof line, f) != NULL) {
        char *rest = line, *field[5] = {NULL};
        for (int n = 0; n < 5; n++) field[n] = strsep(&rest, "\t\n");
        if (field[3] == NULL || strcmp(field[3], "-") == 0 || field[3][0] == 0) continue;
        bool checked = strcmp(field[2], "checked") == 0;
        bool base = strcmp(field[0], "mimalloc2") == 0 || strcmp(field[0], "snmalloc") == 0;
        if (checked || base) (void)add(field[0], field[3], "", -1);
    }
    fclose(f);
    for (int n = 0; n < form_count; n++) { /* whatever their order */
        int plain = forms[n].plain == n ? plain_of(forms[n].name) : -1;
        if (plain >= 0) forms[n].plain = plain;
    }
    return true;
}

int main(int argc, char** argv) {
    const char *peers = "build/peers/peers.tsv", *preload = "build/bench/libtemporal_slab_preload.so";
    int rounds = 5;
    for (int n = 1; n < argc; n += 2) {
        if (n + 1 == argc) return 2;
        if (strcmp(argv[n], "--load") == 0) {
            double ns = run_load((Load)strtol(argv[n + 1], NULL, 10));
            return dprintf(3, "%.6f", ns) > 0 ? 0 : 1;
        }
        if (strcmp(argv[n], "--rounds") == 0) rounds = (int)strtol(argv[n + 1], NULL, 10);
        else if (strcmp(argv[n], "--peers") == 0) peers = argv[n + 1];
        else if (strcmp(argv[n], "--preload") == 0) preload = argv[n + 1];
        else return 2;
    }
    if (rounds < 1 || rounds > ROUNDS_MOST) return 2;

    char* path = realpath(preload, NULL);
    if (path == NULL) {
        (void)fprintf(stderr, "tslab_hardened: no preload library at %s\n", preload);
        return 2;
    }
    add_ours(path);
    if (!add_peers(peers)) (void)fprintf(stderr, "tslab_hardened: no peers at %s (scripts/get-peers.sh)\n", peers);

    int failed = 0;
    for (int round = 0; round < rounds; round++) {
        for (int n = 0; n < form_count; n++) {
            bool ours = strncmp(forms[n].name, "temporal-slab", 13) == 0;
            for (int load = 0; load < LOADS; load++) {
                if (load == LOAD_PHASE && !ours) continue;
                if (measure(&forms[n], (Load)load, round)) continue;
                (void)fprintf(stderr, "tslab_hardened: %s, %s failed\n", forms[n].name, load_name[load]);
                failed = 1;
            }
        }
    }
    print_table(rounds);
    free(path);
    return failed;
}
