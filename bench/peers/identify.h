/*
 * identify.h - who serves malloc in this process, and which version is it?
 *
 * Asked by the probe of scripts/get-peers.sh and by every worker before anything is timed: a library
 * that was named in LD_PRELOAD and is not in force must not be measured under its name. The file is
 * found through the address of malloc; version and profiler are asked of those that can say it.
 */
#ifndef BENCH_IDENTIFY_H
#define BENCH_IDENTIFY_H

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file that malloc (or another function) comes from; "" when it is nowhere. */
static inline const char* identify_file_of(const char* function) {
    Dl_info info;
    void* at = dlsym(RTLD_DEFAULT, function);
    return at && dladdr(at, &info) && info.dli_fname ? info.dli_fname : "";
}

static inline bool identify_same_file(const char* a, const char* b) {
    char real_a[PATH_MAX], real_b[PATH_MAX];
    return realpath(a, real_a) && realpath(b, real_b) && strcmp(real_a, real_b) == 0;
}

static inline void identify_version(char* out, size_t size) {
    union {
        void* p;
        int (*mimalloc)(void);
        int (*jemalloc)(const char*, void*, size_t*, void*, size_t);
        const char* (*tcmalloc)(int*, int*, const char**);
        const char* (*apr)(void);
        int (*number)(void);
    } ask, minor;
    out[0] = 0;
    if ((ask.p = dlsym(RTLD_DEFAULT, "mi_version"))) {
        int v = ask.mimalloc(); /* 2.1.0 is 210, since 2.2.3 and 3.1.0 five digits */
        if (v >= 10000)
            snprintf(out, size, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
        else
            snprintf(out, size, "%d.%d.%d", v / 100, v / 10 % 10, v % 10);
    } else if ((ask.p = dlsym(RTLD_DEFAULT, "mallctl"))) {
        const char* text = "";
        size_t bytes = sizeof text;
        if (ask.jemalloc("version", &text, &bytes, NULL, 0) == 0)
            snprintf(out, size, "%.*s", (int)strcspn(text, "-"), text);
    } else if ((ask.p = dlsym(RTLD_DEFAULT, "tc_version"))) {
        int major = 0, low = 0;
        const char* patch = "";
        ask.tcmalloc(&major, &low, &patch);
        snprintf(out, size, "%d.%d%s", major, low, patch ? patch : "");
    } else if ((ask.p = dlsym(RTLD_DEFAULT, "apr_version_string"))) {
        snprintf(out, size, "%s", ask.apr());
    } else if ((ask.p = dlsym(RTLD_DEFAULT, "talloc_version_major")) &&
               (minor.p = dlsym(RTLD_DEFAULT, "talloc_version_minor"))) {
        snprintf(out, size, "%d.%d", ask.number(), minor.number());
    }
}

/*
 * gperftools: the sampled live allocations as words, NULL for none known: count, size, depth and call path of each; a count
 * of 0 ends them. The caller frees them. *period: mean bytes from one sample to the next, 0 when none are taken. It is
 * MallocExtension::ReadStackTraces, a C++ member, called under its linker name for want of one in C.
 */
static inline uintptr_t* identify_sampled(int* period) {
    union {
        void* p;
        void* (*instance)(void);
        uintptr_t* (*read)(void*, int*);
    } get, ask;
    *period = 0;
    get.p = dlsym(RTLD_DEFAULT, "_ZN15MallocExtension8instanceEv");
    ask.p = dlsym(RTLD_DEFAULT, "_ZN22TCMallocImplementation15ReadStackTracesEPi");
    return get.p && ask.p ? ask.read(get.instance(), period) : NULL;
}

/* "off", "one in N bytes", "every allocation"; "none" where there is no profiler that we know. */
static inline void identify_profiler(char* out, size_t size) {
    union {
        void* p;
        int (*jemalloc)(const char*, void*, size_t*, void*, size_t);
        int (*number)(void);
    } ask;
    snprintf(out, size, "none");
    if ((ask.p = dlsym(RTLD_DEFAULT, "mallctl"))) {
        bool on = false, active = false;
        size_t log2 = 0, bytes = sizeof on, room = sizeof log2;
        ask.jemalloc("opt.prof", &on, &bytes, NULL, 0);
        if (on) ask.jemalloc("prof.active", &active, &bytes, NULL, 0);
        if (active) ask.jemalloc("opt.lg_prof_sample", &log2, &room, NULL, 0);
        snprintf(out, size, "%s", active ? "every allocation" : "off");
        if (log2) snprintf(out, size, "one in %zu bytes", (size_t)1 << log2);
    } else if ((ask.p = dlsym(RTLD_DEFAULT, "IsHeapProfilerRunning"))) {
        int period = 0;
        free(identify_sampled(&period));
        snprintf(out, size, "%s", ask.number() ? "every allocation" : "off");
        if (!ask.number() && period > 0) snprintf(out, size, "one in %d bytes", period);
    }
}

#endif
