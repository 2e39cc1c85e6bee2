/*
 * main.c - tslab_server: see server.h. Prints its port, serves until SIGTERM, SIGINT or the end of standard input, lets open
 * requests end, and prints its figures as a line of JSON.
 */
#define _GNU_SOURCE
#include "server.h"

#include "common/flags.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#ifndef TSLAB_SERVER_HANDLERS
#define TSLAB_SERVER_HANDLERS "handlers"
#endif

static void help(const struct command_line* c) {
    puts("tslab_server: a shop over HTTP, whose requests are phases where libtemporal_slab_preload.so is preloaded");
    for (int n = 0; c->tables[n] != NULL; n++) flags_print(c, c->tables[n]);
}

static void* reports(void* ctx) {
    Server* server = ctx;
    Reader* reader = reader_open(server->database);
    if (reader == NULL) exit(1);
    for (Request* all; (all = queue_take_all(&server->reports, true)) != NULL;)
        for (Request* next; all != NULL; all = next) {
            next = all->next;
            request_run_elsewhere(all, reader);
            loop_give(all);
        }
    reader_close(reader);
    return NULL;
}

/* Waits for a signal, or for the end of standard input if that is a pipe. */
static void wait_for_the_end(const sigset_t* signals) {
    struct pollfd at[2] = {{.fd = signalfd(-1, signals, SFD_CLOEXEC), .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};
    nfds_t count = isatty(STDIN_FILENO) ? 1 : 2;
    for (;;) {
        char bytes[256];
        if (poll(at, count, -1) < 0) continue;
        if (at[0].revents != 0) break;
        if (count == 2 && at[1].revents != 0 && read(STDIN_FILENO, bytes, sizeof bytes) <= 0) break;
    }
    close(at[0].fd);
}

static bool open_all(Server* server) {
    if (!routes_open(server->folder) || !store_open(server->database, server->products)) return false;
    queue_open(&server->writes);
    queue_open(&server->reports);
    sessions_open(server->rest_seconds);
    server->loop = calloc(server->loops, sizeof *server->loop);
    if (server->loop == NULL) return false;
    for (unsigned n = 0; n < server->loops; n++)
        if (!loop_open(&server->loop[n], server)) return false;
    return true;
}

int main(int argc, char** argv) {
    Server server = {.folder = TSLAB_SERVER_HANDLERS, .loops = 1, .products = 5000, .rest_seconds = 15, .phases = true};
    struct flag flags[] = {
        {"--database", FLAG_TEXT, &server.database, .argument = "FILE",
         .help = "of SQLite; filled where it has no products"},
        {"--handlers", FLAG_TEXT, &server.folder, .argument = "FOLDER", .help = "of the Lua handlers"},
        {"--port", FLAG_UNSIGNED, &server.port, .least = 0, .most = 65535,
         .help = "on the loopback interface; 0: a free one, which is printed"},
        {"--loops", FLAG_UNSIGNED, &server.loops, .least = 1, .most = 64, .help = "threads with an event loop (1)"},
        {"--products", FLAG_UNSIGNED, &server.products, .least = 100, .most = 1000000,
         .help = "in a new database (5000)"},
        {"--rest", FLAG_UNSIGNED, &server.rest_seconds, .least = 1, .most = 86400,
         .help = "seconds until a session ends that nobody uses (15)"},
        {"--no-phases", FLAG_CLEAR, &server.phases, .help = "begins none, though the library is there"},
        {NULL},
    };
    struct command_line line = {.program = "tslab_server",
                                .help = help,
                                .column = 22,
                                .between = ' ',
                                .tables = {flags},
                                .argc = argc,
                                .argv = argv};
    int status = flags_read(&line);
    if (status >= 0) return status;
    if (server.database == NULL) {
        flags_wrong("--database FILE is needed");
        return 2;
    }
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);

    pthread_t helper;
    if (!open_all(&server) || !writer_start(server.database, &server.writes) ||
        pthread_create(&helper, NULL, reports, &server) != 0)
        return 1;
    for (unsigned n = 0; n < server.loops; n++)
        if (!loop_start(&server.loop[n])) return 1;
    printf("%u\n", server.port);
    fflush(stdout);
    wait_for_the_end(&signals);

    atomic_store_explicit(&server.ends, true, memory_order_relaxed);
    for (unsigned n = 0; n < server.loops; n++) loop_wait(&server.loop[n]);
    char* figures = routes_figures(&server);
    if (figures != NULL) fputs(figures, stdout);
    free(figures);
    queue_close(&server.reports);
    pthread_join(helper, NULL);
    writer_stop();
    for (unsigned n = 0; n < server.loops; n++) loop_close(&server.loop[n]);
    sessions_close();
    free(server.loop);
    routes_close();
    return fflush(stdout) == 0 ? 0 : 1;
}
