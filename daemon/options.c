/*
 * options.c - tslabd's own flags, beside those of the load. As in synthetic_bench the pattern comes first, and every
 * other flag of the load overrides its preset.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slab_alloc.h>

#include "common/flags.h"
#include "options.h"

#define IDLE "idle"
#define IN_QUOTES(x) #x
#define TEXT_OF(number) IN_QUOTES(number)

bool address_is_loopback(const struct sockaddr* address) {
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in*)(const void*)address)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6*)(const void*)address)->sin6_addr);
}

/* Sets the address to listen at from "ADDRESS:PORT". Returns false after a complaint. [main thread] */
static bool set_address(void* options, const char* value) {
    struct options* o = options;
    char host[64] = "", *end = NULL;
    const char* colon = strrchr(value, ':');
    size_t n = colon ? (size_t)(colon - value) : 0;
    bool bracketed = n > 2 && value[0] == '[' && colon[-1] == ']';
    unsigned long port = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 65536;

    if (n < sizeof host && port <= 65535 && *end == 0) {
        (void)snprintf(host, sizeof host, "%.*s", (int)n - 2 * bracketed, value + bracketed);
        memset(&o->address, 0, sizeof o->address);
        if (bracketed && inet_pton(AF_INET6, host, &o->address.v6.sin6_addr) == 1) {
            o->address.v6.sin6_family = AF_INET6;
            o->address.v6.sin6_port = htons((uint16_t)port);
            return true;
        }
        if (!bracketed && inet_pton(AF_INET, host, &o->address.v4.sin_addr) == 1) {
            o->address.v4.sin_family = AF_INET;
            o->address.v4.sin_port = htons((uint16_t)port);
            return true;
        }
    }

    return flags_wrong("--listen takes an address and a port, like 127.0.0.1:8080 or [::1]:8080, not '%s'", value);
}

/* Returns true if the text is made of the characters of a host's name. [any thread, needs no lock] */
static bool is_host(const char* s) {
    for (const char* c = s; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *c)) return false;
    return true;
}

/* Adds a name that this server may be called by. Returns false after a complaint. [main thread] */
static bool set_host(void* options, const char* value) {
    struct options* o = options;
    if (!is_host(value))
        return flags_wrong("--allow-host takes a name without scheme and port, like metrics.example, not '%s'", value);
    if (o->host_count == HOSTS_MAX) return flags_wrong("--allow-host can be given %d times at most", HOSTS_MAX);
    o->hosts[o->host_count++] = value;
    return true;
}

/* Prints the help, with the flags of c. [main thread] */
static void print_help(const struct command_line* c) {
    printf(
        "NAME\n  tslabd - serves the statistics of an allocator over HTTP\n\n"
        "SYNOPSIS\n  tslabd [--pattern=NAME] [--listen=ADDRESS:PORT] [flag]...\n\n"
        "DESCRIPTION\n"
        "  Creates an allocator, runs a load on it or leaves it idle, and answers GET and HEAD requests for\n\n"
        "    /              one line that names the paths below\n"
        "    /metrics       for Prometheus: text format 0.0.4, or OpenMetrics 1.0 if the client asks for it\n"
        "    /stats.json    all statistics (schema: share/temporal-slab/stats.schema.json)\n"
        "    /doctor        the diagnosis as text\n"
        "    /healthz       200 if the load serves requests or there is no load; 503 if the load is stuck\n"
        "    /readyz        200 once there are statistics; 503 before that, and while tslabd shuts down\n\n"
        "  tslabd also publishes its statistics for tslab; tslab web shows them on a page.\n\n"
        "  tslabd serves no other paths, reads no files, and refuses a request whose Host header names another host.\n"
        "  After SIGTERM or SIGINT, tslabd completes open requests and exits; a second signal ends it at once.\n"
        "  SIGUSR1 ends the current phase of the load.\n\n"
        "EXAMPLES\n"
        "  tslabd --pattern=leak                       for a page, run: tslab web --name tslabd\n"
        "  tslabd --pattern=steady --req_rate=20000 --threads=2\n"
        "  curl -s http://127.0.0.1:8080/metrics | grep draining\n\n"
        "OPTIONS\n");

    flags_print(c, c->tables[0]);
    printf("  --help, --version\n\nLOAD\n");
    flags_print(c, c->tables[1]);
    printf("\nPATTERNS\n  %-11s no load (default)\n", IDLE);
    patterns_print();
    printf("\nEXIT STATUS\n  0  ended by a signal\n  1  startup failed, for example because the address is in use\n"
           "  2  wrong command line\n");
}

/* Returns true if the options make sense together; false after a complaint. of_load: the flags of the load.
 * [main thread] */
static bool consistent(struct options* o, const struct flag* of_load) {
    for (const struct flag* f = of_load; o->load.pattern == NULL && f->name; f++)
        if (f != of_load && f->given) /* the first is the pattern */
            return flags_wrong(
                "%s changes a pattern, but no pattern is given; add --pattern=burst, or another pattern from --help",
                f->name);
    if (!address_is_loopback(&o->address.any) && !o->remote_allowed)
        return flags_wrong(
            "--listen gives an address that other machines can reach; use 127.0.0.1, or add --allow-remote "
            "to permit this (there is no password and no encryption)");
    if (o->sampling_period != 0 && o->sampling_period < 16)
        return flags_wrong("--sampling_period takes 0, or 16 to 1048576, not '%u'", o->sampling_period);
    if (o->max_bytes != 0 && o->max_bytes < 65536)
        return flags_wrong("--max_bytes takes 0, or 65536 and more, not '%" PRIu64 "'", o->max_bytes);
    return o->load.pattern == NULL || settings_settle(&o->load);
}

int options_read(struct options* o, int argc, char** argv) {
    struct flag flags[] = {
        {"--listen", FLAG_TEXT, o, set_address, .argument = "ADDRESS:PORT",
         .help = "listen on this numeric address, with IPv6 in brackets; port 0 chooses a free port and prints it "
                 "(default: "
                 "127.0.0.1:8080)"},
        {"--allow-remote", FLAG_SWITCH, &o->remote_allowed,
         .help = "permit an address that other machines can reach; there is no password and no encryption"},
        {"--allow-host", FLAG_TEXT, o, set_host, .argument = "NAME",
         .help = "accept this name in the Host header, in addition to localhost and the address; can be given several "
                 "times"},
        {"--max_connections", FLAG_UNSIGNED, &o->max_connections, .least = 1, .most = 10000,
         .help = "serve at most this many connections at a time; others wait (default: 64)"},
        {"--timeout_s", FLAG_REAL, &o->timeout_s, .least = 0.1, .most = 3600, .argument = "S",
         .help = "close a connection after this time, even if it is not finished (default: 10)"},
        {"--drain_s", FLAG_REAL, &o->drain_s, .most = 3600, .argument = "S",
         .help = "at shutdown, wait at most this long for open requests (default: 5)"},
        {"--max_bytes", FLAG_COUNT, &o->max_bytes, .most = 1e15, .argument = "BYTES",
         .help = "limit the allocator's memory, so that a leak is stopped; 0: no limit (default: 268435456)"},
        {"--sampling_period", FLAG_UNSIGNED, &o->sampling_period, .most = 1048576,
         .help = "time one slow allocation out of N, 16 or more; 0: none (default: 64)"},
        {"--leak_threshold_s", FLAG_UNSIGNED, &o->leak_threshold_s, .most = 1000000, .argument = "S",
         .help = "report ended phases that still hold objects as leaks from this age (default: " TEXT_OF(
             DOCTOR_LEAK_SECONDS) ")"},
        {"--stale_after_s", FLAG_REAL, &o->stale_after_s, .most = 1000000, .argument = "S",
         .help = "report the load as stuck if it has served no request for this time; 0: never (default: 60)"},
        {.name = NULL},
    };

    struct flag* of_load = settings_flags(&o->load, IDLE);
    const struct command_line c = {"tslabd", slab_version(), print_help, 26, '=', {flags, of_load}, argc, argv};
    *o = (struct options){.max_connections = 64,
                          .timeout_s = 10,
                          .drain_s = 5,
                          .max_bytes = 268435456,
                          .sampling_period = 64,
                          .leak_threshold_s = DOCTOR_LEAK_SECONDS,
                          .stale_after_s = 60};

    (void)set_address(o, "127.0.0.1:8080");
    settings_preset(&o->load, flags_value(&c, "--pattern"));
    int status = flags_read(&c);
    if (status >= 0) return status;
    return consistent(o, of_load) ? -1 : 2;
}
