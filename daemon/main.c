/*
 * main.c - tslabd: begins, waits for a signal, ends.
 *
 * Order of the end: nobody is accepted any more, what is being answered has its time, connections are closed, then the
 * load ends, then the allocator. A second signal skips the waiting.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/flags.h"
#include "measure.h"
#include "own.h"
#include "serve.h"

#define LOOK_NS 1000000000u /* how often the main thread looks at the load */

static struct options options;
static struct gate gate;
static struct server server;
static struct keeper keeper;

/* Blocks our signals in all threads. Returns a descriptor that becomes readable with each, or -1 with errno.
 * [main thread, before any other] */
static int take_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2); /* of the load's last worker */
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Reads a signal, if one has come, and does what SIGUSR1 asks. Returns true when it is one that ends the program.
 * [main thread] */
static bool read_signal(int signals) {
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != sizeof info) return false;
    if (info.ssi_signo == SIGUSR1) own_end_phase(server.source);
    return info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM;
}

/* Prints where it listens, and warns if other machines may reach that. Returns false after a complaint if standard
 * output cannot be written. [main thread] */
static bool announce(void) {
    char name[80];
    gate_name(&gate, name, sizeof name);
    if (!address_is_loopback(&options.address.any))
        fprintf(stderr, "%s: warning: other machines can reach %s; there is no password and no encryption\n",
                program_name, name);
    printf("tslabd: http://%s/ pattern %s\n", name, server.source->name);
    if (fflush(stdout) == 0) return true;
    fprintf(stderr, "%s: standard output: %s\n", program_name, strerror(errno));
    return false;
}

/* Accepts no more, and answers what is open until drain_s has passed or a second signal comes. [main thread] */
static void drain(int signals) {
    uint64_t until = now_ns() + (uint64_t)(options.drain_s * 1e9);
    server.draining = true;
    gate_shut(&gate);
    while (gate.used != 0 && now_ns() < until) {
        gate_wait(&gate, signals, until, &keeper);
        if (read_signal(signals)) break;
    }
}

/* Serves until a signal. Returns the exit status: 0 ended by a signal, 1 something could not be made, 2 wrong command
 * line. [main thread] */
int main(int argc, char** argv) {
    int status = options_read(&options, argc, argv);
    if (status >= 0) return status;

    int signals = take_signals();
    if (signals < 0) return fprintf(stderr, "tslabd: signals: %s\n", strerror(errno)), 1;

    server.options = &options;
    server.gate = &gate;
    if (!gate_open(&gate, &options)) return 1; /* before the load: a taken address costs nothing */
    server.source = own_begin(&options);
    if (server.source == NULL || !server_begin(&server, &keeper)) return 1;

    if (announce()) {
        do {
            own_look(server.source);
            gate_wait(&gate, signals, now_ns() + LOOK_NS, &keeper);
        } while (!read_signal(signals));
    } else {
        status = 1;
    }

    drain(signals);
    server_end(&server);
    own_end(server.source);
    return status > 0 ? 1 : 0;
}
