/*
 * uses.c - a use that tools must report, or none: uses MAKE END USE.
 *
 * An object of 100 bytes (large: 3,000,000) is made in object_is_made, ended in object_is_ended and then used in
 * object_is_used; so a report names these three. MAKE is a way to allocate, END one to end the object, USE what is
 * done with it: `ended` reads it after its end, `beyond` one byte behind it and `before` one in front of it while it
 * lives, `fresh` before anything was written to it, `none` uses it as programs may. Exit code 3 where the calls did not do what they should.
 *
 * uses MAKE END USE MAKE END USE...: each in a child of its own, between a line "@ MAKE:END:USE" and a line "@ STATUS". The tool
 * starts once.
 */
#include <epoch_domain.h>
#include <slab_alloc.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEED(x)                                                         \
    do {                                                                \
        if (!(x)) {                                                     \
            fprintf(stderr, "uses.c:%d: failed: %s\n", __LINE__, #x); \
            _exit(3);                                                   \
        }                                                               \
    } while (0)
#define APART __attribute__((noinline, noclone))

static SlabAllocator* a;
static epoch_domain_t* d;
static SlabHandle handle;
static size_t size = 100;
static bool is_fresh; /* USE is `fresh` */

static bool is(const char* word, const char* what) { return strcmp(word, what) == 0; }
/* The compiler knows nothing of where it points. */
static char* hidden(void* p) {
    void* volatile q = p;
    return q;
}

/* ---- made ---- */

APART static char* object_is_made(const char* how) {
    void* p = NULL;
    if (is(how, "malloc")) p = slab_malloc(a, size);
    if (is(how, "calloc")) p = slab_calloc(a, 10, size / 10);
    if (is(how, "aligned")) p = slab_aligned_alloc(a, 256, size);
    if (is(how, "handle")) p = alloc_obj(a, (uint32_t)size, &handle);
    if (is(how, "named")) p = epoch_domain_malloc(d, size);
    if (is(how, "id")) p = slab_malloc_epoch(a, size, d->epoch_id);
    if (is(how, "copy")) p = slab_memdup(a, memset((char[100]){0}, 7, 100), size);
    if (is(how, "grown")) p = slab_realloc(a, slab_realloc(a, slab_malloc(a, 8), 16), size);
    if (is(how, "shrunk")) p = slab_realloc(a, slab_malloc(a, 5000), size);
    if (is(how, "large")) p = slab_malloc(a, size = 3000000);
    if (is(how, "large_calloc")) p = slab_calloc(a, 1, size = 3000000);
    if (is(how, "ring")) p = slab_malloc_outside(a, size);
    NEED(p != NULL && slab_usable_size(a, p) == size && slab_owns(a, p) && slab_ptr_epoch(a, p, NULL, NULL));
    NEED(!is(how, "aligned") || (uintptr_t)p % 256 == 0);
    NEED(!is(how, "calloc") || (*hidden(p) == 0 && hidden(p)[size - 1] == 0));
    NEED(!is(how, "handle") || slab_handle_ptr(a, handle) == p);
    if (!is_fresh && !is(how, "copy") && !is(how, "calloc")) memset(p, 7, size);
    return hidden(p);
}

/* ---- ended ---- */

static EpochId its_id;
static uint64_t its_era;

APART static void* ends_it(void* how) {
    if (is(how, "other_thread")) NEED(epoch_close_ex(a, its_id, EPOCH_RELEASE, NULL));
    return NULL;
}
static void* frees_it(void* p) { return slab_free(a, p), NULL; }

static void in_thread(void* (*fn)(void*), void* arg) {
    pthread_t t;
    NEED(pthread_create(&t, NULL, fn, arg) == 0);
    NEED(pthread_join(t, NULL) == 0);
}

APART static void object_is_ended(const char* how, char* p) {
    bool freed = false;
    if (is(how, "end")) NEED(epoch_domain_end(d));
    if (is(how, "end_ex")) NEED(epoch_domain_end_ex(d, NULL));
    if (is(how, "exit")) NEED(epoch_domain_exit(d));
    if (is(how, "reset")) NEED(epoch_domain_reset(d));
    if (is(how, "close")) NEED(epoch_close_ex(a, its_id, EPOCH_RELEASE, NULL));
    if (is(how, "close_era")) NEED(epoch_close_era(a, its_era, EPOCH_RELEASE, NULL));
    if (is(how, "drain")) {
        NEED(epoch_domain_drain(d, NULL) && hidden(p)[99] != 0);
        NEED(slab_free_checked(a, p));
    }
    if (is(how, "advance")) {
        epoch_advance(a);
        NEED(epoch_close_ex(a, its_id, EPOCH_DRAIN, NULL) && hidden(p)[99] != 0);
        NEED(epoch_close_era(a, its_era, EPOCH_RELEASE, NULL));
    }
    if (is(how, "other_thread")) in_thread(ends_it, (void*)(uintptr_t)how);
    if (is(how, "other_frees")) in_thread(frees_it, p);
    if (is(how, "free")) NEED((freed = slab_free_checked(a, p)));
    if (is(how, "sized")) slab_free_sized(a, p, size);
    if (is(how, "handle")) NEED((freed = free_obj(a, handle)));
    if (is(how, "grow")) NEED(slab_realloc(a, p, size + 28) != NULL);
    if (is(how, "shrink")) NEED(slab_realloc(a, p, size - 1) != NULL);
    if (is(how, "destroy")) slab_allocator_free(a);
    NEED(!freed || !slab_free_checked(a, p)); /* twice */
    NEED(is(how, "destroy") || (!slab_usable_size(a, p) && !slab_owns(a, p)));
    /* The next ones take the slot, if they like. */
    for (int n = 0; n < 64 && !is(how, "destroy"); n++) NEED(slab_malloc_outside(a, 100) != NULL);
}

/* ---- used ---- */

/* Decides something by the byte: what nobody has set may be read and copied, and tools do not mind. */
APART static int object_is_used(const char* use, char* p) {
    static volatile unsigned sevens;
    char byte = hidden(p)[is(use, "beyond") ? size : is(use, "before") ? (size_t)-1 : 99];
    if (byte == 7) sevens++;
    return byte;
}

static char* left_behind;

/* Leaves its scope by its exit. */
static void* exits(void* how) {
    d = epoch_domain_begin(a, "left");
    left_behind = object_is_made(how);
    return NULL;
}

/* In a child of fork: what the parent has ended, and what the child ends. */
static void in_child(char* ended, const char* use) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        char* p = slab_malloc_outside(a, size);
        memset(p, 7, size);
        NEED(slab_free_checked(a, p));
        if (is(use, "ended")) (void)object_is_used(use, ended);
        _exit(0);
    }
    NEED(child > 0 && waitpid(child, &status, 0) == child);
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
}

/* What malloc has given, and only an object here points to, is no leak; `lost`: until that has ended. */
static void holds(const char* use) {
    char** p = (char**)(void*)object_is_made("ring");
    *p = malloc(24);
    NEED(*p != NULL);
    if (is(use, "lost")) NEED(slab_free_checked(a, p));
}

static int use_one(const char* make, const char* end, const char* use) {
    is_fresh = is(use, "fresh");
    a = slab_allocator_create();
    NEED(a != NULL);
    if (is(make, "holds")) return holds(use), 0;
    if (is(end, "thread_exit")) {
        in_thread(exits, (void*)(uintptr_t)make);
        return is(use, "ended") ? object_is_used(use, left_behind) & 0 : 0;
    }
    d = epoch_domain_begin(a, "request");
    NEED(d != NULL);
    char* p = object_is_made(make);
    NEED(slab_ptr_epoch(a, p, &its_id, &its_era));
    if (!is(use, "ended")) (void)object_is_used(use, p);
    if (is(end, "fork")) {
        object_is_ended("end", p);
        in_child(p, use);
    }
    object_is_ended(end, p);
    if (is(use, "ended")) (void)object_is_used(use, p);
    if (!is(end, "destroy")) slab_allocator_free(a);
    return 0;
}

int main(int argc, char** argv) {
    NEED(argc > 1 && argc % 3 == 1);
    if (argc == 4) return use_one(argv[1], argv[2], argv[3]);
    for (char** of = argv + 1; *of != NULL; of += 3) {
        int status = -1;
        fprintf(stderr, "@ %s:%s:%s\n", of[0], of[1], of[2]);
        pid_t child = fork();
        if (child == 0) exit(use_one(of[0], of[1], of[2]));
        NEED(child > 0 && waitpid(child, &status, 0) == child);
        fprintf(stderr, "@ %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    return 0;
}
