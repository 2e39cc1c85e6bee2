/*
 * compare.c - the parent process: runs the backends in turn, each run in a fresh process of this
 * same program, and checks their answers against each other.
 *
 * A run hears its flags on its command line, writes its figures as JSON to a pipe, the checksum of every answer to
 * a memory file and its allocator's statistics to another. The first run's checksums are the reference for all others.
 * Ctrl-C reaches the run too (or is passed on): it stops taking requests and reports what it did.
 */
#define _GNU_SOURCE
#include "compare.h"

#include "figures.h"
#include "output.h"
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
#define MOST_SECONDS 50.0

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

static void exec_run(const Options* o, BackendKind kind, int result_fd, int sums_fd, int snapshot_fd) {
    const struct {
        const char* flag;
        uint64_t value;
    } numbers[] = {
        {"--requests", o->requests},
        {"--threads", o->threads},
        {"--sessions", o->sessions},
        {"--seed", o->seed},
        {"--result-fd", (uint64_t)result_fd},
        {"--sums-fd", (uint64_t)sums_fd},
        {"--snapshot-fd", (uint64_t)snapshot_fd},
    };
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
    char text[NUMBERS][32];
    const char* args[16 + 2 * NUMBERS] = {"tslab_demo", "--backend",  backend_name(kind), "--data",
                                          o->data_dir,  "--handlers", o->handlers_dir};
    int n = 7;
    for (int i = 0; i < NUMBERS; i++) {
        snprintf(text[i], sizeof text[i], "%" PRIu64, numbers[i].value);
        args[n++] = numbers[i].flag;
        args[n++] = text[i];
    }
    if (o->leak) args[n++] = "--leak";
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(result_fd, F_SETFD, 0);
    fcntl(sums_fd, F_SETFD, 0);
    fcntl(snapshot_fd, F_SETFD, 0);
    execv("/proc/self/exe", (char* const*)args);
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
static cJSON* run_child(const Options* o, BackendKind kind, int sums_fd, int snapshot_fd) {
    int pipe_fd[2];
    if (pipe2(pipe_fd, O_CLOEXEC) != 0) return NULL;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) exec_run(o, kind, pipe_fd[1], sums_fd, snapshot_fd);
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

/* Takes or closes the statistics of a run on temporal-slab. */
static void keep_run(Comparison* c, const cJSON* run, int snapshot_fd) {
    bool better = run_complete(run) || (figure(run, "done") > 0 && (!c->shown || !run_complete(c->shown)));
    if (!better) {
        close(snapshot_fd);
        return;
    }
    if (c->shown) close(c->snapshot_fd);
    c->shown = run;
    c->snapshot_fd = snapshot_fd;
}

/* One run of one backend. False when it failed. */
static bool one_run(Comparison* c, BackendKind kind, uint64_t* reference) {
    const Options* o = c->options;
    size_t bytes = o->requests * sizeof *reference;
    int fd = memfd_create("tslab_demo sums", MFD_CLOEXEC);
    int snapshot_fd = memfd_create("tslab_demo statistics", MFD_CLOEXEC);
    uint64_t* sums = MAP_FAILED;
    cJSON* run = NULL;
    if (fd >= 0 && snapshot_fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        sums = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (sums == MAP_FAILED)
        perror("tslab_demo: no memory for checksums");
    else
        run = run_child(o, kind, fd, snapshot_fd);
    if (run) {
        c->runs[kind][c->run_count[kind]++] = run;
        check_sums(c, reference, sums);
    }
    if (sums != MAP_FAILED) munmap(sums, bytes);
    if (fd >= 0) close(fd);
    if (run && kind == BACKEND_TSLAB)
        keep_run(c, run, snapshot_fd);
    else if (snapshot_fd >= 0)
        close(snapshot_fd);
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
            BackendKind kind = (BackendKind)((uint64_t)k ^ (round & 1)); /* who is first has no advantage */
            if (atomic_load(&run_stop)) break;
            fprintf(stderr, "round %" PRIu64 " of %" PRIu64 ": %s\n", round + 1, c->options->rounds,
                    backend_name(kind));
            if (!one_run(c, kind, reference) && !atomic_load(&run_stop)) return false;
        }
    }
    c->interrupted = atomic_load(&run_stop);
    return true;
}

/* A fill function of output_write: the statistics that the last run on temporal-slab has left. */
static bool copy_snapshot(FILE* out, const void* ctx) {
    int fd = *(const int*)ctx;
    char piece[1 << 16];
    ssize_t n = 0;
    for (off_t at = 0; (n = pread(fd, piece, sizeof piece, at)) > 0; at += n)
        if (fwrite(piece, 1, (size_t)n, out) != (size_t)n) return false;
    return n == 0;
}

static bool write_files(const Comparison* c) {
    const Options* o = c->options;
    bool ok = !o->figures_file || output_write(o->figures_file, report_write_json, c);
    if (!c->shown || lseek(c->snapshot_fd, 0, SEEK_END) <= 0) { /* no run, or one that could not write them */
        fprintf(stderr, "tslab_demo: there are no statistics for %s\n", o->json_file);
        return false;
    }
    if (!output_write(o->json_file, copy_snapshot, &c->snapshot_fd)) return false;
    if (strcmp(o->json_file, "-") != 0)
        printf("Statistics of temporal-slab as JSON: %s (schema: share/stats.schema.json)\n", o->json_file);
    return ok;
}

/* Runs, prints, writes; an exit status. */
static int compare_into(Comparison* c) {
    const Options* o = c->options;
    uint64_t* reference = calloc(o->requests, sizeof *reference);
    if (!reference) {
        fprintf(stderr, "tslab_demo: no memory for %" PRIu64 " checksums\n", o->requests);
        return 1;
    }
    bool ok = all_rounds(c, reference);
    free(reference);
    report_print(c);
    ok &= write_files(c);
    for (int k = 0; k < BACKEND_COUNT; k++)
        for (int r = 0; r < c->run_count[k]; r++) cJSON_Delete(c->runs[k][r]);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("tslab_demo: standard output");
        ok = false;
    }
    if (c->interrupted) return 130;
    return ok && c->differing == 0 && !c->unsound ? 0 : 1;
}

int compare_backends(const Options* o) {
    static Comparison c;
    struct sigaction action = {.sa_handler = pass_on};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    c.options = o;
    if (!output_claim_stdout(o->json_file) || (o->figures_file && !output_claim_stdout(o->figures_file))) return 1;
    bool hopeful = output_check(o->json_file);
    if (o->figures_file) hopeful &= output_check(o->figures_file);
    if (!hopeful) fprintf(stderr, "tslab_demo: the runs go on without; Ctrl-C ends them\n");
    return compare_into(&c);
}
