/*
 * settings.h - what load there is: patterns, and the flags that change them. Both programs have these flags, with the
 * same names and limits; complaints go to standard error.
 */
#ifndef LOAD_SETTINGS_H
#define LOAD_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct flag;

enum { ROUTES = 4, LEAKING_ROUTE = 2, WORKERS_MAX = 256, LAG_MAX = 100000, EVERY_ROUTE_LEAKS_ABOVE = 20 };

enum epoch_policy { EPOCH_PER_REQ, EPOCH_BATCH, EPOCH_MANUAL };
enum free_policy { FREE_WITHIN_REQ, FREE_LAG, FREE_LEAK };
enum phase_kind { PHASES_RING, PHASES_DOMAIN, PHASES_BY_POLICY };

struct pattern {
    const char *name, *what;
    const char* routes[ROUTES];
    unsigned hot_percent;                       /* share of the first route; 0: all routes alike */
    bool keep_nothing_warm;                     /* every page of an ended phase goes back to the system */
    unsigned threads, objs_min, objs_max, size; /* size 0: mixed */
    double req_rate;
    enum epoch_policy epoch_policy;
    unsigned batch;
    enum free_policy free_policy;
    unsigned lag;
    double leak_pct;
};

struct settings {
    bool use_malloc;
    const struct pattern* pattern;
    double req_rate;
    uint64_t requests; /* 0: until it is stopped */
    unsigned threads, objs_min, objs_max, size;
    enum epoch_policy epoch_policy;
    unsigned batch;
    enum free_policy free_policy;
    unsigned lag;
    double leak_pct;
    enum phase_kind phases;
    uint64_t seed;
};

/* Everything as that pattern has it; as the first pattern, without one, where there is none of that name. */
void settings_preset(struct settings* s, const char* pattern);
/* The flags that change settings, --pattern first. Its preset is to be there before they are read (flags_value), so
 * that they override it wherever it stands. `also`: another word for a pattern, or NULL. */
struct flag* settings_flags(struct settings* s, const char* also);
/* When all flags are set: what follows from them, and whether they go together. */
bool settings_settle(struct settings* s);
/* The table of patterns, for --help. */
void patterns_print(void);
const char* settings_epoch_policy(const struct settings* s); /* as it would be written; storage of the thread */
const char* settings_free_policy(const struct settings* s);

#endif
