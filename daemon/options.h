/*
 * options.h - what the command line asks for.
 */
#ifndef TSLABD_OPTIONS_H
#define TSLABD_OPTIONS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "load/settings.h"

enum { HOSTS_MAX = 16 };

struct options {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    bool remote_allowed;
    const char* hosts[HOSTS_MAX]; /* accepted beside those of the address */
    unsigned host_count, max_connections;
    double timeout_s, drain_s, stale_after_s;
    uint64_t max_bytes;
    unsigned sampling_period, leak_threshold_s;
    struct settings load; /* pattern NULL: idle */
};

/* Reads the command line into *o. Returns -1 to go on, else the exit status. [main thread] */
int options_read(struct options* o, int argc, char** argv);
/* Returns true if only programs of this machine can reach the address. [any thread, needs no lock] */
bool address_is_loopback(const struct sockaddr* address);

#endif
