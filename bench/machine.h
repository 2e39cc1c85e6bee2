/*
 * machine.h - where a result comes from: processor, kernel, compiler, commit, command line. What of it goes into a
 * document is written here alone; scripts ask `tslab_bench --machine`.
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "common/json.h"

static inline const char* first_line_with(const char* path, const char* key, char* out, size_t size) {
    FILE* f = fopen(path, "r");
    char line[512];
    out[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char* text = strpbrk(line, ":=");
        text = text ? text + 1 + strspn(text + 1, " \t\"") : line;
        snprintf(out, size, "%.*s", (int)strcspn(text, "\"\n"), text);
        break;
    }
    if (f) fclose(f);
    return out[0] ? out : "unknown";
}

/* "hash date" of the commit, and whether files differ from it: given by the build, else asked of git where the program
 * runs. */
static inline const char* commit_text(void) {
#ifdef TSLAB_COMMIT
    return TSLAB_COMMIT;
#else
    static char text[128];
    FILE* git = popen("git log -1 --format='%h %cI' 2>/dev/null | tr -d '\\n'; git diff --quiet HEAD 2>/dev/null;"
                      "[ $? -ne 1 ] || echo ', modified'",
                      "r");
    if (!git || !fgets(text, sizeof text, git)) text[0] = 0;
    if (git) pclose(git);
    text[strcspn(text, "\n")] = 0;
    return text[0] ? text : "unknown";
#endif
}

static inline const char* compiler_text(void) {
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

struct machine {
    char cpu[256], kernel[256], system[256];
    long cpus, memory_mb;
};

static inline struct machine machine_read(void) {
    struct machine m;
    struct utsname u;
    char text[256];
    snprintf(m.cpu, sizeof m.cpu, "%s", first_line_with("/proc/cpuinfo", "model name", text, sizeof text));
    if (uname(&u) != 0) memset(&u, 0, sizeof u);
    snprintf(m.kernel, sizeof m.kernel, "%s %.80s %s", u.sysname, u.release, u.machine);
    snprintf(m.system, sizeof m.system, "%s", first_line_with("/etc/os-release", "PRETTY_NAME", text, sizeof text));
    m.cpus = 0;
    FILE* f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(text, sizeof text, f)) m.cpus += strncmp(text, "processor", 9) == 0;
    if (f) fclose(f);
    m.memory_mb = atol(first_line_with("/proc/meminfo", "MemTotal", text, sizeof text)) / 1024;
    return m;
}

/* Members of the object that is open. */
static inline void machine_json(struct json* j) {
    struct machine m = machine_read();
    json_text(j, "cpu", m.cpu);
    json_count(j, "cpus", (uint64_t)m.cpus);
    json_count(j, "memory_mb", (uint64_t)m.memory_mb);
    json_text(j, "kernel", m.kernel);
    json_text(j, "system", m.system);
    json_text(j, "compiler", compiler_text());
    json_text(j, "commit", commit_text());
}

/* UTC, as in ISO 8601. */
static inline const char* date_text(void) {
    static char text[32];
    time_t now = time(NULL);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return text;
}

static inline const char* command_text(int argc, char** argv) {
    static char text[1024];
    size_t n = 0;
    for (int i = 0; i < argc && n < sizeof text; i++) {
        const char* word = i == 0 && strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[i];
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "", word);
    }
    return text;
}

#endif
