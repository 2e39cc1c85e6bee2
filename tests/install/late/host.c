/*
 * host.c - a program that knows nothing of the library and loads it late, while threads run.
 *
 * host LIBRARY [FILLER...]: loads as many of the fillers as fit, each of which takes from what is left of the static
 * blocks; when there are some, one must not fit. Then loads the library and uses it.
 * host LIBRARY pairs N [FILLER...]: only N pairs of slab_malloc and slab_free, to count instructions.
 * Exit code: 0 when all went well, 1 when not, 4 when the library was not loaded, which it says.
 */
#include <dlfcn.h>
#include <epoch_domain.h>
#include <pthread.h>
#include <semaphore.h>
#include <slab_alloc.h>
#include <slab_diagnostics.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "FAILED: line %d: %s\n", __LINE__, #x), exit(1)))

/* What is used of the library, under the names that it has there. */
#define EACH(F) \
    F(slab_allocator_create) F(slab_allocator_create_with) F(slab_allocator_free) F(slab_malloc) F(slab_free) F(slab_free_checked) \
    F(alloc_obj) F(free_obj) F(slab_last_error) F(slab_trim) F(epoch_current) F(epoch_advance) F(epoch_close_ex) \
    F(epoch_domain_create_labeled) F(epoch_domain_enter) F(epoch_domain_exit) F(epoch_domain_malloc) F(epoch_domain_receipt) \
    F(epoch_domain_destroy) F(slab_stats_json) F(slab_doctor) F(slab_profile_write) F(slab_asprintf) F(epoch_domain_asprintf)
static struct {
#define FIELD(name) __typeof__(name)* name;
    EACH(FIELD)
} lib;

/* ---- a thread that runs before the library is there ---- */

static sem_t go, done;
static void (*job)(void); /* NULL: it is to end */

static void* early_main(void* arg) {
    for (;;) {
        while (sem_wait(&go) != 0) {}
        if (job == NULL) return arg;
        job();
        sem_post(&done);
    }
}

static void on_early(void (*fn)(void)) {
    job = fn;
    sem_post(&go);
    if (fn == NULL) return;
    while (sem_wait(&done) != 0) {}
}

/* ---- loading ---- */

static void use_up(char** fillers, int n) {
    int fit = 0;
    const char* why = NULL;
    for (int i = 0; i < n; i++) {
        if (dlopen(fillers[i], RTLD_NOW | RTLD_LOCAL) != NULL) fit++;
        else why = dlerror();
    }
    printf("%d of %d fillers fit%s%s\n", fit, n, why != NULL ? ": " : "", why != NULL ? why : "");
    CHECK(n == 0 || why != NULL);
}

static void* load(const char* path) {
    void* l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (l == NULL) return NULL;
    /* Through an object pointer: C has no conversion from one to a function. */
#define FIND(name) CHECK((*(void**)&lib.name = dlsym(l, #name)) != NULL);
    EACH(FIND)
    return l;
}

/* ---- using it ---- */

enum { OBJECTS = 1000 };
static SlabAllocator* a;
static void *ours, *theirs;
static SlabHandle handle;
static epoch_domain_t* domain;
static EpochId ring;

static void fail_to_create(void) {
    SlabOptions o = {.struct_size = sizeof o, .slab_bytes = 3};
    CHECK(lib.slab_last_error()[0] == 0);
    CHECK(lib.slab_allocator_create_with(&o) == NULL && lib.slab_last_error()[0] != 0);
}

static void swap_objects(void) {
    CHECK(lib.slab_free_checked(a, ours));
    CHECK(!lib.slab_free_checked(a, ours));
    CHECK((theirs = lib.slab_malloc(a, 100)) != NULL);
    CHECK(lib.alloc_obj(a, 200, &handle) != NULL && handle != 0);
}

/* Arguments in vector registers, which most of the library does not touch in such a build. */
static void print_some(epoch_domain_t* d) {
    char* here = lib.slab_asprintf(a, "%.3f %d %.1f", 3.25, 7, -0.5);
    char* there = lib.epoch_domain_asprintf(d, "%g %s", 1e9, "late");
    CHECK(here != NULL && strcmp(here, "3.250 7 -0.5") == 0 && there != NULL && strcmp(there, "1e+09 late") == 0);
    CHECK(lib.slab_free_checked(a, here) && lib.slab_free_checked(a, there));
}

static void have_a_phase(void) {
    EpochReceipt r;
    epoch_domain_t* d = lib.epoch_domain_create_labeled(a, "late");
    CHECK(d != NULL);
    print_some(d);
    enum { PRINTED = 1 }; /* and freed */
    lib.epoch_domain_enter(d);
    for (size_t n = 1; n <= OBJECTS; n++) {
        void* p = lib.slab_malloc(a, n);
        CHECK(p != NULL);
        memset(p, 7, n);
        if (n % 4 == 0) CHECK(lib.slab_free_checked(a, p));
    }
    lib.epoch_domain_exit(d);
    CHECK(lib.epoch_domain_receipt(d, &r));
    CHECK(r.objects_allocated == OBJECTS + PRINTED && r.objects_freed == OBJECTS / 4 + PRINTED && r.objects_released == OBJECTS - OBJECTS / 4);
    lib.epoch_domain_destroy(d);
}

/* What it owns there is taken from it by another thread. */
static void leave_objects(void) {
    ring = lib.epoch_current(a);
    CHECK((theirs = lib.slab_malloc(a, 300)) != NULL);
    for (int n = 0; n < OBJECTS; n++) CHECK(lib.epoch_domain_malloc(domain, 64) != NULL);
}

static bool write_nothing(void* ctx, const char* bytes, size_t n) {
    (void)bytes;
    *(size_t*)ctx += n;
    return true;
}

/* On a thread, whose stack may be small. */
static void* tell(void* arg) {
    size_t json = 0, doctor = 0, profile = 0;
    CHECK(lib.slab_stats_json(a, write_nothing, &json) && lib.slab_doctor(a, write_nothing, &doctor));
    CHECK(lib.slab_profile_write(a, write_nothing, &profile) == profile); /* 0 without the option */
    CHECK(json != 0 && doctor != 0);
    have_a_phase();
    return arg;
}

static void phases_and_threads(void) {
    pthread_t t;
    EpochReceipt r;
    CHECK((ours = lib.slab_malloc(a, 100)) != NULL);
    on_early(swap_objects);
    CHECK(lib.slab_free_checked(a, theirs) && !lib.slab_free_checked(a, theirs));
    CHECK(lib.free_obj(a, handle) && !lib.free_obj(a, handle));
    on_early(have_a_phase);
    have_a_phase();
    CHECK((domain = lib.epoch_domain_create_labeled(a, "taken")) != NULL);
    on_early(leave_objects);
    CHECK(lib.epoch_close_ex(a, domain->epoch_id, EPOCH_RELEASE, &r) && r.objects_released == OBJECTS);
    lib.epoch_domain_destroy(domain);
    lib.epoch_advance(a);
    CHECK(lib.epoch_close_ex(a, ring, EPOCH_DRAIN, &r) && r.objects_escaped != 0);
    CHECK(lib.slab_free_checked(a, theirs)); /* late */
    lib.slab_trim(a);
    on_early(have_a_phase);
    CHECK(pthread_create(&t, NULL, tell, NULL) == 0 && pthread_join(t, NULL) == 0);
}

static void child(void) {
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        have_a_phase();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void pairs(long n) {
    CHECK((a = lib.slab_allocator_create()) != NULL);
    for (int k = 0; k < 1000; k++) lib.slab_free(a, lib.slab_malloc(a, 128));
    for (long k = 0; k < n; k++) lib.slab_free(a, lib.slab_malloc(a, 128));
}

int main(int argc, char** argv) {
    pthread_t early;
    CHECK(argc >= 2);
    bool count = argc >= 4 && strcmp(argv[2], "pairs") == 0;
    int skip = count ? 4 : 2;
    CHECK(sem_init(&go, 0, 0) == 0 && sem_init(&done, 0, 0) == 0);
    CHECK(pthread_create(&early, NULL, early_main, NULL) == 0);
    use_up(argv + skip, argc - skip);

    void* l = load(argv[1]);
    if (l == NULL) {
        printf("not loaded: %s\n", dlerror());
        on_early(NULL);
        CHECK(pthread_join(early, NULL) == 0);
        return 4;
    }
    if (count) return pairs(strtol(argv[3], NULL, 10)), 0;

    SlabOptions o = {.struct_size = sizeof o, .sampling_period = 16, .profile_bytes = 512};
    on_early(fail_to_create);
    CHECK(lib.slab_last_error()[0] == 0); /* each thread has its own */
    CHECK((a = lib.slab_allocator_create()) != NULL);
    phases_and_threads();
    SlabAllocator* plain = a;
    CHECK((a = lib.slab_allocator_create_with(&o)) != NULL);
    phases_and_threads();
    child();

    /* It stays where it is: threads run its code as they end. */
    CHECK(dlclose(l) == 0);
    have_a_phase();
    on_early(have_a_phase);
    l = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
    CHECK(l != NULL && dlsym(l, "slab_malloc") == *(void**)&lib.slab_malloc);
    on_early(NULL);
    CHECK(pthread_join(early, NULL) == 0);
    lib.slab_allocator_free(a);
    lib.slab_allocator_free(plain);
    puts("loaded late and used");
    return 0;
}
