/*
 * options.c - tslabd's own flags, beside those of the load. As in synthetic_bench the pattern comes first, and every
 * other flag of the load overrides its preset.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slab_alloc.h>

#include "load/words.h"
#include "options.h"

#define IDLE "idle"

enum {
    FLAG_LISTEN,
    FLAG_REMOTE,
    FLAG_HOST,
    FLAG_CONNECTIONS,
    FLAG_TIMEOUT,
    FLAG_DRAIN,
    FLAG_MAX_BYTES,
    FLAG_SAMPLING,
    FLAG_PROCESSES,
    FLAG_LEAK_THRESHOLD,
    FLAG_STALE_AFTER,
    FLAG_HELP,
    FLAG_VERSION,
    FLAGS
};

static const struct flag flags[FLAGS] = {
    [FLAG_LISTEN] = {"--listen", "ADDRESS:PORT",
                     "numbers, an IPv6 address in brackets; port 0: any, it is printed (default: 127.0.0.1:8080)", 0,
                     0},
    [FLAG_REMOTE] = {"--allow-remote", NULL,
                     "needed to listen where other machines reach it; there is no password and no encryption", 0, 0},
    [FLAG_HOST] =
        {"--allow-host", "NAME",
         "a name that browsers and scrapers may call this server by, beside localhost and its address; may be "
         "given several times",
         0, 0},
    [FLAG_CONNECTIONS] = {"--max_connections", "N", "at a time; more wait (default: 64)", 1, 10000},
    [FLAG_TIMEOUT] = {"--timeout_s", "S", "a connection is closed after that, done or not (default: 10)", 0.1, 3600},
    [FLAG_DRAIN] = {"--drain_s", "S", "what is being answered when it is told to end has that long (default: 5)", 0,
                    3600},
    [FLAG_MAX_BYTES] = {"--max_bytes", "BYTES",
                        "most memory of the allocator: a load that leaks comes to an end; 0: no limit (default: "
                        "268435456)",
                        0, 1e15},
    [FLAG_SAMPLING] = {"--sampling_period", "N", "times one allocation in so many, 16 or more; 0: none (default: 1024)",
                       0, 1048576},
    [FLAG_PROCESSES] =
        {"--processes", "on|off",
         "whether /processes shows the statistics segments of this user's processes, their labels and "
         "command names, to whoever reaches this server (default: on, off where other machines reach it)",
         0, 0},
    [FLAG_LEAK_THRESHOLD] = {"--leak_threshold_s", "S",
                             "age from which an ended phase that holds objects is a leak (default: 60)", 0, 1000000},
    [FLAG_STALE_AFTER] = {"--stale_after_s", "S",
                          "a load without a request for so long, and older figures of a process, are not healthy; "
                          "0: never (default: 60)",
                          0, 1000000},
    [FLAG_HELP] = {"--help", NULL, "", 0, 0},
    [FLAG_VERSION] = {"--version", NULL, "", 0, 0},
};

bool address_is_loopback(const struct sockaddr* address) {
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in*)(const void*)address)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6*)(const void*)address)->sin6_addr);
}

static bool set_address(struct options* o, const char* value) {
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
    fprintf(stderr, "%s: --listen takes an address and a port, like 127.0.0.1:8080 or [::1]:8080, not '%s'\n",
            program_name, value);
    return false;
}

static bool is_host(const char* s) {
    for (const char* c = s; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *c)) return false;
    return true;
}

static bool set_host(struct options* o, const char* value) {
    if (!is_host(value)) {
        fprintf(stderr, "%s: --allow-host takes a name without scheme and port, like metrics.example, not '%s'\n",
                program_name, value);
        return false;
    }
    if (o->host_count == HOSTS_MAX) {
        fprintf(stderr, "%s: --allow-host can be given %d times at most\n", program_name, HOSTS_MAX);
        return false;
    }
    o->hosts[o->host_count++] = value;
    return true;
}

static bool set_number(struct options* o, int id, const char* value) {
    double v = 0;
    bool fraction = id == FLAG_TIMEOUT || id == FLAG_DRAIN || id == FLAG_STALE_AFTER;
    if (!number(flags[id].name, value, flags[id].low, flags[id].high, !fraction, &v)) return false;
    switch (id) {
    case FLAG_CONNECTIONS:
        o->max_connections = (unsigned)v;
        return true;
    case FLAG_TIMEOUT:
        o->timeout_s = v;
        return true;
    case FLAG_DRAIN:
        o->drain_s = v;
        return true;
    case FLAG_STALE_AFTER:
        o->stale_after_s = v;
        return true;
    case FLAG_LEAK_THRESHOLD:
        o->leak_threshold_s = (unsigned)v;
        return true;
    case FLAG_SAMPLING:
        o->sampling_period = (unsigned)v;
        if (v == 0 || v >= 16) return true;
        fprintf(stderr, "%s: --sampling_period takes 0, or 16 to 1048576, not '%s'\n", program_name, value);
        return false;
    default:
        o->max_bytes = (uint64_t)v;
        if (v == 0 || v >= 65536) return true;
        fprintf(stderr, "%s: --max_bytes takes 0, or 65536 and more, not '%s'\n", program_name, value);
        return false;
    }
}

static bool set_processes(struct options* o, const char* value) {
    o->processes = strcmp(value, "on") == 0;
    if (o->processes || strcmp(value, "off") == 0) return true;
    fprintf(stderr, "%s: --processes takes on or off, not '%s'\n", program_name, value);
    return false;
}

static bool set_own(struct options* o, int id, const char* value) {
    switch (id) {
    case FLAG_LISTEN:
        return set_address(o, value);
    case FLAG_REMOTE:
        return o->remote_allowed = true;
    case FLAG_HOST:
        return set_host(o, value);
    case FLAG_PROCESSES:
        return set_processes(o, value);
    default:
        return set_number(o, id, value);
    }
}

static void print_help(void) {
    printf("NAME\n  tslabd - serves the numbers of an allocator over HTTP\n\n"
           "SYNOPSIS\n  tslabd [--pattern=NAME] [--listen=ADDRESS:PORT] [flag]...\n\n"
           "DESCRIPTION\n"
           "  Has an allocator of its own, runs a load on it or leaves it idle, and answers GET and HEAD of\n\n"
           "    /              a page with everything, live\n"
           "    /metrics       for Prometheus: text format 0.0.4, or OpenMetrics 1.0 for those who ask for it\n"
           "    /stats.json    all statistics (schema: share/temporal-slab/stats.schema.json)\n"
           "    /reports.json  leaks by label, the last receipts, the oldest and newest phases\n"
           "    /doctor        what to do, in words\n"
           "    /processes     this user's processes with the option segment=1, and of each\n"
           "                   /processes/PID/stats.json, /processes/PID/metrics and /processes/PID/healthz\n"
           "    /healthz       200 while the load serves requests, or there is none; 503 when it stands still\n"
           "    /readyz        200 while it answers; 503 from when it was told to end\n\n"
           "  Nothing else is served, no file is read, and a request that names another host than this is refused.\n"
           "  SIGTERM and SIGINT end it when what is being answered is done, a second one at once; SIGUSR1 ends the\n"
           "  phase of the load.\n\n"
           "EXAMPLES\n"
           "  tslabd --pattern=leak                       then look at http://127.0.0.1:8080/\n"
           "  tslabd --pattern=steady --req_rate=20000 --threads=2\n"
           "  curl -s http://127.0.0.1:8080/metrics | grep draining\n\n"
           "OPTIONS\n");
    flags_print(&(struct flag_table){flags, FLAGS});
    printf("  --help, --version\n\nLOAD\n");
    flags_print(&load_flags);
    printf("\nPATTERNS\n  %-11s no load (default)\n", IDLE);
    patterns_print();
    printf("\nEXIT STATUS\n  0  ended by a signal\n  1  something could not be made, or the address is taken\n"
           "  2  wrong command line\n");
}

static bool consistent(struct options* o, const struct flag* of_load) {
    if (o->load.pattern == NULL && of_load != NULL) {
        fprintf(stderr, "%s: %s changes a pattern, but there is none; add --pattern=burst, or another of --help\n",
                program_name, of_load->name);
        return false;
    }
    if (!address_is_loopback(&o->address.any) && !o->remote_allowed) {
        fprintf(stderr,
                "%s: --listen names an address that other machines may reach; add --allow-remote if they should "
                "(there is no password and no encryption), or use 127.0.0.1\n",
                program_name);
        return false;
    }
    return o->load.pattern == NULL || settings_settle(&o->load);
}

int options_read(struct options* o, int argc, char** argv) {
    const struct flag_table tables[] = {{flags, FLAGS}, load_flags};
    const struct pattern* p = NULL;
    const struct flag* of_load = NULL;
    bool of_processes = false;
    const char* value = NULL;
    for (int i = 1; i < argc; i++) {
        const struct flag* f = flag_take(tables, 2, argc, argv, &i, &value);
        if (f == NULL) return 2;
        if (f == &flags[FLAG_HELP]) return print_help(), 0;
        if (f == &flags[FLAG_VERSION]) return printf("tslabd %s\n", slab_version()) < 0;
        if (f == pattern_flag && !pattern_named(value, IDLE, &p)) return 2;
    }
    *o = (struct options){.max_connections = 64,
                          .timeout_s = 10,
                          .drain_s = 5,
                          .max_bytes = 268435456,
                          .sampling_period = 1024,
                          .leak_threshold_s = 60,
                          .stale_after_s = 60};
    if (!set_address(o, "127.0.0.1:8080")) return 2;
    settings_preset(&o->load, p != NULL ? p : pattern_default());
    for (int i = 1; i < argc; i++) {
        const struct flag* f = flag_take(tables, 2, argc, argv, &i, &value);
        bool own = f >= flags && f < flags + FLAGS;
        if (f == pattern_flag) continue;
        if (!(own ? set_own(o, (int)(f - flags), value) : settings_set(&o->load, f, value))) return 2;
        if (!own) of_load = f;
        of_processes |= f == &flags[FLAG_PROCESSES];
    }
    if (!of_processes) o->processes = address_is_loopback(&o->address.any);
    o->load.pattern = p;
    return consistent(o, of_load) ? -1 : 2;
}
