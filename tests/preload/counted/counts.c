/*
 * counts.c - counts what a program allocates between the begins and ends of its phases, from outside: preloaded in front
 * of whatever malloc is, it knows nothing of how that counts. An object is of the phase that the thread is in, one that
 * realloc moves of its old phase as long as that is open; bytes are malloc_usable_size's.
 *
 * At each end the account that the library gives is compared with its own. As the process exits it writes to the file
 * COUNTS names: the phases that differ, and the sums by label.
 */
#define _GNU_SOURCE
#include "temporal_slab/phase.h"

#include <dlfcn.h>
#include <locale.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))
enum { PHASES = 1 << 18, PLACES = 1 << 20, DEEP = 256, LABELS = 64 };

typedef struct Phase {
    tslab_phase* handle; /* NULL: it has ended */
    int label;
    tslab_phase_account a;
} Phase;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Phase phases[PHASES]; /* 0: outside */
static int phase_count = 1;
static struct {
    void* p;
    int phase; /* -1: the object is gone */
    size_t bytes;
} places[PLACES];
static char labels[LABELS][32];
static tslab_phase_account by_label[LABELS];
static int label_count = 1;
static unsigned long differ, ends;

static __thread int stack[DEEP] __attribute__((tls_model("initial-exec")));
static __thread int depth __attribute__((tls_model("initial-exec")));
static __thread int finding __attribute__((tls_model("initial-exec")));

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);

static void* found(void** word, const char* name) {
    if (*word == NULL && finding == 0) {
        finding = 1;
        *word = dlsym(RTLD_NEXT, name);
        finding = 0;
    }
    return *word;
}
#define NEXT(fn)          \
    static void* next_;   \
    __typeof__(&fn) next; \
    *(void**)(void*)&next = found(&next_, #fn)

/* ---- the books ---- */

static int here(void) { return depth != 0 ? stack[depth - 1] : 0; }

static unsigned place_of(const void* p, int make) {
    unsigned at = (unsigned)(((size_t)p >> 4) * 2654435761u) % PLACES;
    while (places[at].p != p && places[at].p != NULL) at = (at + 1) % PLACES;
    if (places[at].p == NULL && make) places[at].p = (void*)(size_t)p;
    return at;
}

static void book(void* p, int phase) {
    if (p == NULL) return;
    size_t bytes = malloc_usable_size(p);
    pthread_mutex_lock(&lock);
    unsigned at = place_of(p, 1);
    places[at].phase = phase;
    places[at].bytes = bytes;
    phases[phase].a.objects_allocated++;
    phases[phase].a.bytes_allocated += bytes;
    pthread_mutex_unlock(&lock);
}

/* The phase of an object that is about to go. */
static int unbook(void* p) {
    int phase = 0;
    if (p == NULL) return 0;
    pthread_mutex_lock(&lock);
    unsigned at = place_of(p, 0);
    if (places[at].p == p && places[at].phase >= 0) {
        phase = places[at].phase;
        places[at].phase = -1;
        phases[phase].a.objects_freed++;
        phases[phase].a.bytes_freed += places[at].bytes;
    }
    pthread_mutex_unlock(&lock);
    return phase;
}

/* ---- malloc ---- */

API void* malloc(size_t size) {
    NEXT(malloc);
    if (next == NULL) return __libc_malloc(size);
    void* p = next(size);
    book(p, here());
    return p;
}
API void* calloc(size_t n, size_t size) {
    NEXT(calloc);
    if (next == NULL) return __libc_calloc(n, size);
    void* p = next(n, size);
    book(p, here());
    return p;
}
API void* memalign(size_t align, size_t size) {
    NEXT(memalign);
    if (next == NULL) return __libc_memalign(align, size);
    void* p = next(align, size);
    book(p, here());
    return p;
}
API void* aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
API int posix_memalign(void** out, size_t align, size_t size) {
    NEXT(posix_memalign);
    int failed = next(out, align, size);
    if (!failed) book(*out, here());
    return failed;
}
API void free(void* p) {
    NEXT(free);
    (void)unbook(p);
    if (next == NULL) __libc_free(p);
    else next(p);
}
API void* realloc(void* p, size_t size) {
    NEXT(realloc);
    if (p == NULL) return malloc(size);
    if (size == 0) {
        (void)unbook(p);
        return next(p, 0);
    }
    pthread_mutex_lock(&lock); /* nobody else may get the old address in between */
    unsigned at = place_of(p, 0);
    int known = places[at].p == p && places[at].phase >= 0, phase = known ? places[at].phase : 0;
    void* q = next(p, size);
    size_t bytes = q != NULL ? malloc_usable_size(q) : 0;
    if (known && q == p) {
        phases[phase].a.bytes_allocated += bytes - places[at].bytes;
        places[at].bytes = bytes;
    } else if (q != NULL) {
        if (known) {
            places[at].phase = -1;
            phases[phase].a.objects_freed++;
            phases[phase].a.bytes_freed += places[at].bytes;
        }
        if (known && phase != 0 && phases[phase].handle == NULL) phase = here();
        at = place_of(q, 1);
        places[at].phase = phase;
        places[at].bytes = bytes;
        phases[phase].a.objects_allocated++;
        phases[phase].a.bytes_allocated += bytes;
    }
    pthread_mutex_unlock(&lock);
    return q;
}
API void* reallocarray(void* p, size_t n, size_t size) { return realloc(p, n * size); }

/* ---- phases ---- */

tslab_phase* tslab_preload_phase_begin(const char* label);
bool tslab_preload_phase_end(tslab_phase* phase, tslab_phase_account* out, size_t size);
bool tslab_preload_phase_suspend(tslab_phase* phase);
bool tslab_preload_phase_resume(tslab_phase* phase);
bool tslab_preload_phase_outer(void);
bool tslab_preload_phase_outer_leave(void);

static int find(const tslab_phase* handle) {
    int n = phase_count;
    while (--n > 0 && phases[n].handle != handle) {}
    return n;
}
static void push(int phase) {
    if (depth == DEEP) abort();
    stack[depth++] = phase;
}

API tslab_phase* tslab_preload_phase_begin(const char* label) {
    NEXT(tslab_preload_phase_begin);
    tslab_phase* handle = next(label);
    pthread_mutex_lock(&lock);
    int l = 1;
    while (l < label_count && strcmp(labels[l], label) != 0) l++;
    if (l == LABELS || phase_count == PHASES || handle == NULL) abort();
    if (l == label_count) snprintf(labels[label_count++], sizeof labels[0], "%s", label);
    phases[phase_count] = (Phase){.handle = handle, .label = l};
    push(phase_count++);
    pthread_mutex_unlock(&lock);
    return handle;
}

static void add(tslab_phase_account* to, const tslab_phase_account* more) {
    to->objects_allocated += more->objects_allocated;
    to->bytes_allocated += more->bytes_allocated;
    to->objects_freed += more->objects_freed;
    to->bytes_freed += more->bytes_freed;
    to->objects_escaped += more->objects_escaped;
    to->bytes_escaped += more->bytes_escaped;
}

API bool tslab_preload_phase_end(tslab_phase* phase, tslab_phase_account* out, size_t size) {
    NEXT(tslab_preload_phase_end);
    tslab_phase_account theirs, ours;
    if (!next(phase, &theirs, sizeof theirs)) return false;
    if (out != NULL) memcpy(out, &theirs, size < sizeof theirs ? size : sizeof theirs);
    pthread_mutex_lock(&lock);
    int n = find(phase);
    if (depth != 0 && stack[depth - 1] == n) depth--;
    phases[n].handle = NULL;
    ours = phases[n].a;
    ours.objects_escaped = ours.objects_allocated - ours.objects_freed;
    ours.bytes_escaped = ours.bytes_allocated - ours.bytes_freed;
    ends++;
    if (memcmp(&ours, &theirs, sizeof ours) != 0 && differ++ < 10)
        fprintf(stderr, "%s: counted %lu/%lu, freed %lu/%lu; told %lu/%lu, freed %lu/%lu\n", labels[phases[n].label],
                (unsigned long)ours.objects_allocated, (unsigned long)ours.bytes_allocated,
                (unsigned long)ours.objects_freed, (unsigned long)ours.bytes_freed,
                (unsigned long)theirs.objects_allocated, (unsigned long)theirs.bytes_allocated,
                (unsigned long)theirs.objects_freed, (unsigned long)theirs.bytes_freed);
    add(&by_label[phases[n].label], &ours);
    pthread_mutex_unlock(&lock);
    return true;
}
API bool tslab_preload_phase_suspend(tslab_phase* phase) {
    NEXT(tslab_preload_phase_suspend);
    if (!next(phase)) return false;
    depth--;
    return true;
}
API bool tslab_preload_phase_resume(tslab_phase* phase) {
    NEXT(tslab_preload_phase_resume);
    if (!next(phase)) return false;
    pthread_mutex_lock(&lock);
    push(find(phase));
    pthread_mutex_unlock(&lock);
    return true;
}
API bool tslab_preload_phase_outer(void) {
    NEXT(tslab_preload_phase_outer);
    push(0);
    return next();
}
API bool tslab_preload_phase_outer_leave(void) {
    NEXT(tslab_preload_phase_outer_leave);
    depth--;
    return next();
}

/* ---- what libc keeps is outside ---- */

#define OUTSIDE(type, fn, parameters, ...) \
    API type fn parameters {               \
        NEXT(fn);                          \
        push(0);                           \
        type result = next(__VA_ARGS__);   \
        depth--;                           \
        return result;                     \
    }
OUTSIDE(char*, setlocale, (int category, const char* name), category, name)
OUTSIDE(locale_t, newlocale, (int categories, const char* name, locale_t base), categories, name, base)
OUTSIDE(int, getaddrinfo, (const char* n, const char* s, const struct addrinfo* h, struct addrinfo** out), n, s, h, out)
OUTSIDE(struct tm*, localtime, (const time_t* at), at)
OUTSIDE(struct tm*, localtime_r, (const time_t* at, struct tm* out), at, out)
OUTSIDE(time_t, mktime, (struct tm * of), of)
OUTSIDE(size_t, strftime, (char* out, size_t most, const char* format, const struct tm* of), out, most, format, of)
OUTSIDE(int, setenv, (const char* name, const char* value, int replaces), name, value, replaces)
OUTSIDE(FILE*, fopen, (const char* path, const char* mode), path, mode)
OUTSIDE(FILE*, fopen64, (const char* path, const char* mode), path, mode)
OUTSIDE(FILE*, fdopen, (int fd, const char* mode), fd, mode)
OUTSIDE(FILE*, popen, (const char* command, const char* mode), command, mode)
OUTSIDE(void*, dlopen, (const char* name, int flags), name, flags)
OUTSIDE(int, pthread_create, (pthread_t * out, const pthread_attr_t* with, void* (*fn)(void*), void* arg), out, with,
        fn, arg)

__attribute__((destructor)) static void tell(void) {
    const char* path = getenv("COUNTS");
    FILE* f = path != NULL ? fopen(path, "w") : NULL;
    if (f == NULL) return;
    fprintf(f, "differ %lu of %lu\n", differ, ends);
    for (int l = 1; l < label_count; l++)
        fprintf(f, "%s\t%lu\t%lu\t%lu\t%lu\n", labels[l], (unsigned long)by_label[l].objects_allocated,
                (unsigned long)by_label[l].bytes_allocated, (unsigned long)by_label[l].objects_escaped,
                (unsigned long)by_label[l].bytes_escaped);
    fclose(f);
}
