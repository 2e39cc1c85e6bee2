/*
 * said.h - a child that does something which may end it: what it says on standard error, and how it ends.
 */
#ifndef TESTS_KIT_SAID_H
#define TESTS_KIT_SAID_H

#include "kit/check.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Said {
    char text[4096];
    int status; /* as waitpid has it */
} Said;

/* Runs fn(arg), which ends the process, in a child. */
static inline Said kit_said(void (*fn)(void* arg), void* arg) {
    Said s = {.text = ""};
    int of[2];
    size_t used = 0;
    REQUIRE_EQ(pipe(of), 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)dup2(of[1], 2);
        fn(arg);
        _exit(1);
    }
    close(of[1]);
    for (ssize_t n; used < sizeof s.text - 1 && (n = read(of[0], s.text + used, sizeof s.text - 1 - used)) > 0;)
        used += (size_t)n;
    close(of[0]);
    REQUIRE_EQ(waitpid(pid, &s.status, 0), pid);
    return s;
}
/* Returns true if it exited by itself with the code, and said nothing. */
static inline bool kit_was_quiet(Said s, int code) {
    return WIFEXITED(s.status) && WEXITSTATUS(s.status) == code && s.text[0] == 0;
}

#endif
