/* output.c - see output.h. */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int own_stdout = -1; /* what standard output was before it was claimed */

static bool is_stdout(const char* path) { return strcmp(path, "-") == 0; }

static bool fail(const char* path) {
    fprintf(stderr, "tslab_demo: cannot write %s: %s\n", is_stdout(path) ? "standard output" : path, strerror(errno));
    return false;
}

void output_init(void) {
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO) fd = dup(fd);
    if (fd > STDERR_FILENO) close(fd);
}

bool output_claim_stdout(const char* path) {
    if (!is_stdout(path)) return true;
    fflush(stdout);
    own_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return (own_stdout >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) || fail(path);
}

bool output_check(const char* path) {
    struct stat there;
    char dir[4096];
    if (is_stdout(path)) return true;
    if (stat(path, &there) == 0) {
        if (S_ISDIR(there.st_mode)) errno = EISDIR;
        if (!S_ISDIR(there.st_mode) && access(path, W_OK) == 0) return true;
        return fail(path);
    }
    if (errno != ENOENT) return fail(path);
    const char* slash = strrchr(path, '/');
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
    return access(dir, W_OK | X_OK) == 0 || fail(path);
}

bool output_write(const char* path, bool (*fill)(FILE* out, const void* ctx), const void* ctx) {
    errno = 0;
    FILE* out = is_stdout(path) ? fdopen(own_stdout, "w") : fopen(path, "we");
    if (!out) return fail(path);
    bool filled = fill(out, ctx);
    int why = errno;
    if (fclose(out) == 0 && filled) return true;
    if (!filled) errno = why;
    return fail(path);
}
