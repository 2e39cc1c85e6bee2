/*
 * look.h - what an allocator says of itself: everything as text, and a heap profile by call path. Each is
 * asked for by the name that it has in the library that serves malloc; one without a name there has none.
 *
 *   statistics   ours: slab_stats_json. jemalloc: malloc_stats_print, as JSON. gperftools: MallocExtension_GetStats.
 *                mimalloc: mi_stats_print_out. glibc, scudo: malloc_info
 *   profile      jemalloc: prof.dump, into memory. gperftools: GetHeapProfile with the heap profiler, else the table of
 *                samples. Ours have none: labels are part of the statistics
 *
 * look_* give the length in bytes, 0 for a look that is not there.
 */
#ifndef BENCH_LOOK_H
#define BENCH_LOOK_H

static inline ssize_t look_add_stream(void* total, const char* bytes, size_t n) {
    (void)bytes;
    *(size_t*)total += n;
    return (ssize_t)n;
}

#if BK_OURS
static inline bool look_add_ours(void* total, const char* bytes, size_t n) {
    return look_add_stream(total, bytes, n) >= 0;
}

static inline size_t look_statistics(void) {
    size_t total = 0;
    if (!slab_stats_json(bk_allocator, look_add_ours, &total)) corrupt("its statistics end early");
    return total;
}

static inline size_t look_profile(void) { return 0; }
#else
union look {
    void* p;
    void (*jemalloc)(void (*)(void*, const char*), void*, const char*);
    void (*mimalloc)(void (*)(const char*, void*), void*);
    void (*tcmalloc)(char*, int);
    int (*glibc)(int, FILE*);
    int (*mallctl)(const char*, void*, size_t*, void*, size_t);
    int (*number)(void);
    char* (*text)(void);
};

/* A function of the library that serves malloc. */
static inline void* look_function(const char* name) {
    const char* file = identify_file_of(name);
    return file[0] && strcmp(file, identify_file_of("malloc")) == 0 ? dlsym(RTLD_DEFAULT, name) : NULL;
}

static inline void look_add_jemalloc(void* total, const char* text) { *(size_t*)total += strlen(text); }

static inline void look_add_mimalloc(const char* text, void* total) { *(size_t*)total += strlen(text); }

static inline size_t look_statistics(void) {
    static char text[1 << 16];
    union look ask;
    size_t total = 0;
    if ((ask.p = look_function("malloc_stats_print"))) {
        ask.jemalloc(look_add_jemalloc, &total, "J");
    } else if ((ask.p = look_function("MallocExtension_GetStats"))) {
        ask.tcmalloc(text, sizeof text);
        total = strlen(text);
    } else if ((ask.p = look_function("mi_stats_print_out"))) {
        ask.mimalloc(look_add_mimalloc, &total);
    } else if ((ask.p = look_function("malloc_info"))) {
        FILE* f = fopencookie(&total, "w", (cookie_io_functions_t){.write = look_add_stream});
        if (f) ask.glibc(0, f), fclose(f);
    }
    return total;
}

static inline size_t look_profile_jemalloc(union look ask) {
    static int file = -1;
    static char path[64];
    const char* name = path;
    bool on = false;
    size_t bytes = sizeof on;
    if (ask.mallctl("prof.active", &on, &bytes, NULL, 0) != 0 || !on) return 0;
    if (file < 0) file = memfd_create("profile", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (ask.mallctl("prof.dump", NULL, NULL, &name, sizeof name) != 0) corrupt("its profile is not written");
    off_t end = lseek(file, 0, SEEK_END);
    return end > 0 ? (size_t)end : 0;
}

static inline size_t look_profile_tcmalloc(union look running) {
    union look ask;
    int period;
    size_t n = 0;
    if (running.number() && (ask.p = look_function("GetHeapProfile"))) {
        char* text = ask.text();
        n = text ? strlen(text) : 0;
        free(text);
        return n;
    }
    uintptr_t* words = identify_sampled(&period);
    while (period > 0 && words && words[n]) n += 3 + words[n + 2];
    free(words);
    return n * sizeof *words;
}

static inline size_t look_profile(void) {
    union look ask;
    if ((ask.p = look_function("mallctl"))) return look_profile_jemalloc(ask);
    if ((ask.p = look_function("IsHeapProfilerRunning"))) return look_profile_tcmalloc(ask);
    return 0;
}
#endif

#endif
