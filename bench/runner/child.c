/*
 * child.c - one worker process.
 *
 * It runs in a process group of its own, so that ctrl-C reaches the runner alone and the runner can
 * end the worker with whatever it started; it dies with the runner. Its standard output carries the numbers (worker.c
 * has the lines), its last line on standard error is the reason when it fails without giving one.
 */
#define _GNU_SOURCE
#include "runner/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t interrupted;

/* A stream that is read line by line. */
struct stream {
    int fd;
    size_t n;
    char line[1024];
};

/* "NAME=VALUE ..." into the environment. */
static void put_environment(const char* words) {
    char* copy = words ? strdup(words) : NULL; /* stays: putenv keeps pointers into it */
    for (char* word = copy ? strtok(copy, " ") : NULL; word; word = strtok(NULL, " ")) putenv(word);
}

static _Noreturn void become(const char* const* words, const struct backend* b, const int out[2], const int err[2]) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0), dup2(out[1], 1), dup2(err[1], 2);
    close(out[0]), close(out[1]), close(err[0]), close(err[1]);
    if (b->library[0])
        setenv("LD_PRELOAD", b->library, 1);
    else
        unsetenv("LD_PRELOAD");
    unsetenv("TSLAB_OPTIONS"), unsetenv("MALLOC_CONF"), unsetenv("GLIBC_TUNABLES"); /* everybody has its defaults */
    put_environment(b->environment);
    execvp(words[0], (char* const*)words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static void keep_text(struct child_result* r, enum child_state state, const char* text) {
    r->state = state;
    snprintf(r->text, sizeof r->text, "%s", text);
}

static void take_output(struct child_result* r, const char* line, bool* done) {
    unsigned index;
    double value;
    if (sscanf(line, "value %u %lf", &index, &value) == 2 && index < MAX_METRICS)
        r->value[index] = value;
    else if (strncmp(line, "cannot ", 7) == 0)
        keep_text(r, CHILD_CANNOT, line + 7);
    else if (strncmp(line, "corrupt ", 8) == 0)
        keep_text(r, CHILD_CORRUPT, line + 8);
    else if (strncmp(line, "version ", 8) == 0)
        snprintf(r->version, sizeof r->version, "%s", line + 8);
    else if (strncmp(line, "malloc ", 7) == 0)
        snprintf(r->malloc_from, sizeof r->malloc_from, "%s", line + 7);
    else if (strncmp(line, "profiler ", 9) == 0)
        snprintf(r->profiler, sizeof r->profiler, "%s", line + 9);
    else if (strcmp(line, "done") == 0)
        *done = true;
}

static void take_error(char* last, const char* line, struct child_result* r) {
    const char* collected = strstr(line, "Collected : ");
    if (collected) r->collected = strtod(collected + 12, NULL);
    if (line[0]) snprintf(last, TEXT, "%.150s", line);
}

/* Reads what is there; false at the end of the stream. */
static bool stream_read(struct stream* s, struct child_result* r, bool* done, char* last) {
    char block[2048];
    ssize_t n = read(s->fd, block, sizeof block);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    for (ssize_t i = 0; i < n; i++) {
        if (block[i] != '\n') {
            if (s->n + 1 < sizeof s->line) s->line[s->n++] = block[i];
            continue;
        }
        s->line[s->n] = 0, s->n = 0;
        if (last)
            take_error(last, s->line, r);
        else
            take_output(r, s->line, done);
    }
    return n > 0;
}

static long long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Listens until both streams end; true when the time ran out or the run was interrupted. */
static bool listen_to(struct stream* out, struct stream* err, long long deadline, struct child_result* r, bool* done,
                      char* last) {
    bool out_open = true, err_open = true;
    while (out_open || err_open) {
        long long left = deadline - now_ms();
        if (left <= 0 || interrupted) return true;
        struct pollfd fds[2] = {{.fd = out_open ? out->fd : -1, .events = POLLIN},
                                {.fd = err_open ? err->fd : -1, .events = POLLIN}};
        if (poll(fds, 2, left < 1000 ? (int)left : 1000) <= 0) continue;
        if (fds[0].revents) out_open = stream_read(out, r, done, NULL);
        if (fds[1].revents) err_open = stream_read(err, r, done, last);
    }
    return false;
}

static void explain(struct child_result* r, int status, bool ended, bool done, unsigned seconds, const char* last) {
    char text[TEXT + 64] = "";
    if (interrupted) {
        keep_text(r, CHILD_INTERRUPTED, "interrupted");
        return;
    }
    if (r->state != CHILD_DONE) return;
    if (ended)
        snprintf(text, sizeof text, "took over %u s", seconds);
    else if (WIFSIGNALED(status))
        snprintf(text, sizeof text, "signal %d (%s)%s%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
                 last[0] ? ": " : "", last);
    else if (WEXITSTATUS(status) != 0)
        snprintf(text, sizeof text, "exit code %d%s%s", WEXITSTATUS(status), last[0] ? ": " : "", last);
    else if (!done)
        snprintf(text, sizeof text, "it ended without its numbers");
    if (text[0]) keep_text(r, CHILD_FAILED, text);
}

void child_run(const char* const* words, const struct backend* b, unsigned seconds, struct child_result* r) {
    int out[2], err[2], status = 0;
    char last[TEXT] = "";
    bool done = false;
    memset(r, 0, sizeof *r);
    r->collected = NAN;
    for (unsigned i = 0; i < MAX_METRICS; i++) r->value[i] = NAN;
    keep_text(r, CHILD_FAILED, "no pipe");
    if (pipe2(out, O_CLOEXEC) != 0) return;
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[0]), close(out[1]);
        return;
    }
    keep_text(r, CHILD_DONE, "");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) become(words, b, out, err);
    close(out[1]), close(err[1]);
    bool ended = false;
    if (child > 0) {
        struct stream from_out = {.fd = out[0]}, from_err = {.fd = err[0]};
        setpgid(child, child);
        ended = listen_to(&from_out, &from_err, now_ms() + seconds * 1000LL, r, &done, last);
        if (ended) kill(-child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        explain(r, status, ended, done, seconds, last);
    } else {
        keep_text(r, CHILD_FAILED, "no process");
    }
    close(out[0]), close(err[0]);
}
