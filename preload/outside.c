/*
 * outside.c - functions of libc that make something for the rest of the process, run outside of all phases.
 *
 * A locale that is loaded in the middle of a request, the time zone, a stream with its buffer, a library and all that
 * its constructors make, the blocks of a thread: each would escape from the phase in which it happens to be made. So
 * while the thread is in a phase these functions run in an outer scope (slab_scope_outer). Outside of phases, and with
 * TSLAB_PRELOAD_LIBC=phase, each jumps to libc's. Objects that libc makes for its caller stay in the phase: those of
 * strdup, getline, asprintf, and all functions not named here.
 */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

bool tsp_libc_in_phases;

bool tsp_outside_enter(void) {
    if (TSI_LIKELY(tsi_load_relaxed(&tsp_state) != TSP_READY || !tsi_malloc_in_phase(&tsp_heap))) return false;
    if (tsp_libc_in_phases) return false;
    int saved = errno;
    bool in = slab_scope_outer(&tsp_heap);
    errno = saved;
    return in;
}
void tsp_outside_leave(bool in) {
    int saved = errno;
    if (in) (void)slab_scope_outer_leave(&tsp_heap);
    errno = saved;
}

/* Returns the definition of `name` that comes next: *word if that is not 0; otherwise searches, and sets *word, to
 * which every thread stores the same. Aborts if there is none. [any thread, no lock held] */
static void* found(_Atomic uintptr_t* word, const char* name) {
    void* at = (void*)tsi_load_relaxed(word);
    if (TSI_LIKELY(at != NULL)) return at;
    at = dlsym(RTLD_NEXT, name);
    if (at == NULL) abort(); /* a program that links with the name has it */
    tsi_store_relaxed(word, (uintptr_t)at);
    return at;
}
#define NEXT(fn, name)               \
    static _Atomic uintptr_t next_;  \
    void* at_ = found(&next_, name); \
    __typeof__(&fn) fn##_next;       \
    memcpy(&fn##_next, &at_, sizeof at_)

#define OUTSIDE(type, fn, parameters, ...)    \
    TSP_API type fn parameters {              \
        NEXT(fn, #fn);                        \
        bool in = tsp_outside_enter();        \
        type result = fn##_next(__VA_ARGS__); \
        tsp_outside_leave(in);                \
        return result;                        \
    }

/* ---- locales, converters, names of hosts, the time zone ---- */

OUTSIDE(char*, setlocale, (int category, const char* name), category, name)
OUTSIDE(locale_t, newlocale, (int categories, const char* name, locale_t base), categories, name, base)
OUTSIDE(iconv_t, iconv_open, (const char* to, const char* from), to, from)
OUTSIDE(int, getaddrinfo, (const char* node, const char* service, const struct addrinfo* hints, struct addrinfo** out),
        node, service, hints, out)
OUTSIDE(struct tm*, localtime, (const time_t* at), at)
OUTSIDE(struct tm*, localtime_r, (const time_t* at, struct tm* out), at, out)
OUTSIDE(time_t, mktime, (struct tm * of), of)
OUTSIDE(char*, ctime, (const time_t* at), at)
OUTSIDE(char*, ctime_r, (const time_t* at, char* out), at, out)
OUTSIDE(size_t, strftime, (char* out, size_t most, const char* format, const struct tm* of), out, most, format, of)

/* Reads the time zone by libc's tzset, outside of all phases. [own thread, no lock held] */
TSP_API void tzset(void) {
    NEXT(tzset, "tzset");
    bool in = tsp_outside_enter();
    tzset_next();
    tsp_outside_leave(in);
}

/* ---- the environment ---- */

OUTSIDE(int, setenv, (const char* name, const char* value, int replaces), name, value, replaces)
OUTSIDE(int, putenv, (char* text), text)

/* ---- streams ---- */

/* Gives the stream f its buffer now, if `outside` is true (the thread is outside of phases that it has left) and f has
 * none; libc would make it at the first use, in any phase. Passes a terminal by, because libc makes that line-buffered
 * as it makes the buffer. Returns f, which may be NULL. Preserves errno. [no other user of f] */
static FILE* with_buffer(FILE* f, bool outside) {
    struct stat is;
    int saved = errno;
    bool bare = f != NULL && outside && __fbufsize(f) == 0;
    if (bare && fstat(fileno(f), &is) == 0 && !S_ISCHR(is.st_mode)) (void)setvbuf(f, NULL, _IOFBF, 0);
    errno = saved;
    return f;
}

#define STREAM(fn, parameters, ...)                             \
    TSP_API FILE* fn parameters {                               \
        NEXT(fn, #fn);                                          \
        bool in = tsp_outside_enter();                          \
        FILE* result = with_buffer(fn##_next(__VA_ARGS__), in); \
        tsp_outside_leave(in);                                  \
        return result;                                          \
    }

STREAM(fopen, (const char* path, const char* mode), path, mode)
STREAM(fopen64, (const char* path, const char* mode), path, mode)
STREAM(fdopen, (int fd, const char* mode), fd, mode)
STREAM(popen, (const char* command, const char* mode), command, mode)

/* ---- threads ---- */

OUTSIDE(int, pthread_create, (pthread_t * out, const pthread_attr_t* with, void* (*fn)(void*), void* arg), out, with,
        fn, arg)
