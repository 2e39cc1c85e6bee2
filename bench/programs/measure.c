/*
 * measure.c - runs one command and says what it took: for bench/programs/run.py.
 *
 *   measure REPORT PRELOAD COMMAND [ARGUMENT...]       PRELOAD: what LD_PRELOAD is to be, or "-"
 *
 * REPORT gets one line: exit code (or 128 and the signal), seconds of wall and of processor time, most resident bytes of
 * any process of the run, resident bytes of the largest as it exited, page faults. The last is read where the kernel
 * stops a process that is about to exit (PTRACE_O_TRACEEXIT), with its memory still there; this program traces it for
 * that and forks, nothing else, and threads not at all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long most_at_exit;

static long long resident_of(pid_t pid) {
    char path[64];
    long long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE* f = fopen(path, "r");
    if (f == NULL) return 0;
    if (fscanf(f, "%*s %lld", &pages) != 1) pages = 0;
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fail(const char* what) {
    fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
    return 2;
}

static void child_main(const char* preload, char** argv) {
    if (strcmp(preload, "-") != 0) setenv("LD_PRELOAD", preload, 1);
    raise(SIGSTOP); /* until it is traced */
    execvp(argv[0], argv);
    _exit(fail(argv[0]) + 125);
}

/* Lets a stopped process go on, and reads what it holds where it exits. */
static void go_on(pid_t pid, int status) {
    int event = status >> 16, signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_EXIT) {
        long long bytes = resident_of(pid);
        if (bytes > most_at_exit) most_at_exit = bytes;
    }
    if (event != 0 || signal == SIGTRAP) signal = 0;
    /* One that has just been born stops once, by itself or by this signal. */
    if (signal == SIGSTOP) signal = 0;
    ptrace(PTRACE_CONT, pid, NULL, (void*)(long)signal);
}

int main(int argc, char** argv) {
    if (argc < 4) return fprintf(stderr, "usage: measure REPORT PRELOAD COMMAND [ARGUMENT...]\n"), 2;
    pid_t pid = fork();
    if (pid < 0) return fail("fork");
    if (pid == 0) child_main(argv[2], argv + 3);
    int status;
    if (waitpid(pid, &status, WUNTRACED) != pid) return fail("waitpid");
    long options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void*)options) != 0) return kill(pid, SIGKILL), fail("ptrace");
    double begun = now();
    kill(pid, SIGCONT);
    struct rusage used;
    for (;;) {
        pid_t who = wait4(-1, &status, __WALL, &used);
        if (who < 0 && errno == EINTR) continue;
        if (who < 0) return fail("wait4");
        if (WIFSTOPPED(status)) go_on(who, status);
        else if (who == pid) break;
    }
    double wall = now() - begun;
    FILE* report = fopen(argv[1], "w");
    if (report == NULL) return fail(argv[1]);
    fprintf(report, "%d %.6f %.6f %lld %lld %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), wall,
            (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
                (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
            (long long)used.ru_maxrss << 10, most_at_exit, used.ru_minflt + used.ru_majflt);
    return fclose(report) == 0 ? 0 : fail(argv[1]);
}
