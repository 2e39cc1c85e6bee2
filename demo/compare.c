/*
 * compare.c - the parent process: runs the backends in turn, each run in a fresh process of this
 * same program, and checks their answers against each other.
 *
 * A run hears its flags on its command line, writes its figures as JSON to a pipe and the checksum
 * of every answer to a memory file. The first run's checksums are the reference for all others.
 * Ctrl-C reaches the run too (or is passed on): it stops taking requests and reports what it did.
 */
#define _GNU_SOURCE
#include "compare.h"

#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* No further round starts when it would be expected to end later than this. */
#define MOST_SECONDS 100.0

static volatile sig_atomic_t child_pid;

static void pass_on(int number) {
    (void)number;
    atomic_store(&run_stop, true);
    if (child_pid > 0) kill((pid_t)child_pid, SIGINT);
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void exec_run(const Options* o, BackendKind kind, int result_fd, int sums_fd) {
    char number[6][32];
    const uint64_t values[6] = {o->requests, o->threads, o->sessions, o->seed, (uint64_t)result_fd, (uint64_t)sums_fd};
    for (int i = 0; i < 6; i++) snprintf(number[i], sizeof number[i], "%" PRIu64, values[i]);
    char* const args[] = {(char*)"tslab_demo",
                          (char*)"--backend",
                          (char*)backend_name(kind),
                          (char*)"--requests",
                          number[0],
                          (char*)"--threads",
                          number[1],
                          (char*)"--sessions",
                          number[2],
                          (char*)"--seed",
                          number[3],
                          (char*)"--result-fd",
                          number[4],
                          (char*)"--sums-fd",
                          number[5],
                          (char*)"--data",
                          (char*)o->data_dir,
                          (char*)"--handlers",
                          (char*)o->handlers_dir,
                          NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(result_fd, F_SETFD, 0);
    fcntl(sums_fd, F_SETFD, 0);
    execv("/proc/self/exe", args);
    perror("tslab_demo: cannot start itself");
    _exit(1);
}

/* All of a pipe as text; the caller frees it. */
static char* read_all(int fd) {
    size_t len = 0, room = 1 << 16;
    char* text = malloc(room);
    while (text) {
        ssize_t n = read(fd, text + len, room - len - 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        len += (size_t)n;
        if (room - len < 4096) {
            char* grown = realloc(text, room *= 2);
            if (!grown) free(text);
            text = grown;
        }
    }
    if (text) text[len] = '\0';
    return text;
}

/* One run in a child; its figures, or NULL. */
static cJSON* run_child(const Options* o, BackendKind kind, int sums_fd) {
    int pipe_fd[2];
    if (pipe2(pipe_fd, O_CLOEXEC) != 0) return NULL;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) exec_run(o, kind, pipe_fd[1], sums_fd);
    close(pipe_fd[1]);
    if (pid < 0) {
        perror("tslab_demo: cannot start a process");
        close(pipe_fd[0]);
        return NULL;
    }
    child_pid = pid;
    if (atomic_load(&run_stop)) kill(pid, SIGINT);
    char* text = read_all(pipe_fd[0]);
    close(pipe_fd[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    child_pid = 0;
    cJSON* run = text ? cJSON_Parse(text) : NULL;
    free(text);
    if (run && WIFEXITED(status) && WEXITSTATUS(status) == 0) return run;
    cJSON_Delete(run);
    if (!atomic_load(&run_stop)) {
        if (WIFSIGNALED(status))
            fprintf(stderr, "tslab_demo: the run on %s was ended by signal %d\n", backend_name(kind), WTERMSIG(status));
        else
            fprintf(stderr, "tslab_demo: the run on %s failed\n", backend_name(kind));
    }
    return NULL;
}

/* Compares a run's checksums with the reference, where both served the request. */
static void check_sums(Comparison* c, uint64_t* reference, const uint64_t* sums) {
    for (uint64_t i = 0; i < c->options->requests; i++) {
        if (!sums[i]) continue;
        if (!reference[i]) {
            reference[i] = sums[i];
            continue;
        }
        c->compared++;
        if (reference[i] != sums[i] && c->differing++ == 0) c->first_differing = i;
    }
}

/* One run of one backend. False when it failed. */
static bool one_run(Comparison* c, BackendKind kind, uint64_t* reference) {
    const Options* o = c->options;
    size_t bytes = o->requests * sizeof *reference;
    int fd = memfd_create("tslab_demo sums", MFD_CLOEXEC);
    uint64_t* sums = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0) sums = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (sums == MAP_FAILED) {
        perror("tslab_demo: no memory for checksums");
        if (fd >= 0) close(fd);
        return false;
    }
    cJSON* run = run_child(o, kind, fd);
    if (run) {
        c->runs[kind][c->run_count[kind]++] = run;
        check_sums(c, reference, sums);
    }
    munmap(sums, bytes);
    close(fd);
    return run != NULL;
}

/* Takes the backends in turn. False when a run failed. */
static bool all_rounds(Comparison* c, uint64_t* reference) {
    double begin = seconds_now();
    for (uint64_t round = 0; round < c->options->rounds; round++) {
        double elapsed = seconds_now() - begin;
        if (round && elapsed + elapsed / (double)round > MOST_SECONDS) {
            c->out_of_time = true;
            break;
        }
        for (int k = 0; k < BACKEND_COUNT; k++) {
            if (atomic_load(&run_stop)) break;
            fprintf(stderr, "round %" PRIu64 " of %" PRIu64 ": %s\n", round + 1, c->options->rounds,
                    backend_name((BackendKind)k));
            if (!one_run(c, (BackendKind)k, reference) && !atomic_load(&run_stop)) return false;
        }
    }
    c->interrupted = atomic_load(&run_stop);
    return true;
}

/* Runs, prints, writes; an exit status. */
static int compare_into(Comparison* c, FILE* json) {
    const Options* o = c->options;
    uint64_t* reference = calloc(o->requests, sizeof *reference);
    if (!reference) {
        fprintf(stderr, "tslab_demo: no memory for %" PRIu64 " checksums\n", o->requests);
        return 1;
    }
    bool ok = all_rounds(c, reference);
    free(reference);
    report_print(c);
    if (json && (!report_write_json(c, json) || fflush(json) != 0)) {
        fprintf(stderr, "tslab_demo: cannot write %s: %s\n", o->json_file, strerror(errno));
        ok = false;
    }
    for (int k = 0; k < BACKEND_COUNT; k++)
        for (int r = 0; r < c->run_count[k]; r++) cJSON_Delete(c->runs[k][r]);
    if (c->interrupted) return 130;
    return ok && c->differing == 0 && !c->unsound ? 0 : 1;
}

int compare_backends(const Options* o) {
    static Comparison c;
    struct sigaction action = {.sa_handler = pass_on};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    c.options = o;
    FILE* json = o->json_file ? fopen(o->json_file, "we") : NULL;
    if (o->json_file && !json) {
        fprintf(stderr, "tslab_demo: cannot write %s: %s\n", o->json_file, strerror(errno));
        return 1;
    }
    int status = compare_into(&c, json);
    if (json) fclose(json);
    return status;
}
