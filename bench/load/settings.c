/*
 * settings.c - one table of patterns, one of the flags that change them.
 */
#include <stdio.h>
#include <string.h>

#include "common/flags.h"
#include "load/settings.h"

/* clang-format off */
static const struct pattern patterns[] = {
    {.name = "burst", .what = "requests with many small objects, one phase per request",
     .routes = {"GET /products", "GET /search", "POST /cart", "GET /home"},
     .threads = 1, .req_rate = 2000, .objs_min = 80, .objs_max = 200, .size = 128,
     .epoch_policy = EPOCH_PER_REQ, .free_policy = FREE_WITHIN_REQ},
    {.name = "steady", .what = "small requests whose objects live slightly longer than the request",
     .routes = {"GET /feed", "GET /timeline", "POST /like", "GET /notices"},
     .threads = 1, .req_rate = 5000, .objs_min = 50, .objs_max = 50, .size = 128,
     .epoch_policy = EPOCH_BATCH, .batch = 16, .free_policy = FREE_LAG, .lag = 8},
    {.name = "leak", .what = "like burst, but POST /orders keeps one percent of all objects",
     .routes = {"GET /users", "GET /search", "POST /orders", "GET /health"},
     .threads = 1, .req_rate = 2000, .objs_min = 80, .objs_max = 200, .size = 128,
     .epoch_policy = EPOCH_PER_REQ, .free_policy = FREE_LEAK, .leak_pct = 1},
    {.name = "hotspot", .what = "most requests go to one route, and most objects have one size",
     .routes = {"GET /popular", "GET /rare", "POST /vote", "GET /archive"}, .hot_percent = 70,
     .threads = 1, .req_rate = 4000, .objs_min = 120, .objs_max = 120, .size = 0,
     .epoch_policy = EPOCH_PER_REQ, .free_policy = FREE_WITHIN_REQ},
    {.name = "kernel", .what = "larger phases whose pages are all returned to the system",
     .routes = {"PUT /blob", "GET /blob", "POST /convert", "GET /preview"}, .keep_nothing_warm = true,
     .threads = 1, .req_rate = 2000, .objs_min = 300, .objs_max = 300, .size = 256,
     .epoch_policy = EPOCH_PER_REQ, .free_policy = FREE_WITHIN_REQ},
    {.name = "contention", .what = "eight threads share the same phases",
     .routes = {"rpc lookup", "rpc insert", "rpc update", "rpc expire"},
     .threads = 8, .req_rate = 10000, .objs_min = 50, .objs_max = 50, .size = 128,
     .epoch_policy = EPOCH_BATCH, .batch = 100, .free_policy = FREE_WITHIN_REQ},
};
/* clang-format on */
enum { PATTERNS = sizeof patterns / sizeof *patterns };

void settings_preset(struct settings* s, const char* pattern) {
    const struct pattern* p = NULL;
    for (int n = 0; pattern != NULL && n < PATTERNS; n++)
        if (strcmp(patterns[n].name, pattern) == 0) p = &patterns[n];
    const struct pattern* as = p != NULL ? p : &patterns[0];
    *s = (struct settings){.pattern = p,
                           .req_rate = as->req_rate,
                           .threads = as->threads,
                           .objs_min = as->objs_min,
                           .objs_max = as->objs_max,
                           .size = as->size,
                           .epoch_policy = as->epoch_policy,
                           .batch = as->batch,
                           .free_policy = as->free_policy,
                           .lag = as->lag,
                           .leak_pct = as->leak_pct,
                           .phases = PHASES_BY_POLICY,
                           .seed = 1};
}

/* ---- values ---- */

/* A policy is a word, or a word and a number: "lag:8". The index of the word; -1 after a complaint. */
static int policy(const char* flag, const char* value, const char* const* words, const char** amount) {
    char word[32];
    size_t n = strcspn(value, ":");
    (void)snprintf(word, sizeof word, "%.*s", (int)n, value);
    *amount = value[n] ? value + n + 1 : NULL;
    return flags_word(flag, n < sizeof word ? word : value, words);
}

static bool set_epoch_policy(void* to, const char* value) {
    static const char flag[] = "--epoch_policy", *const words[] = {"per_req", "batch", "manual", NULL};
    struct settings* s = to;
    const char* amount;
    uint64_t batch = 0;
    int index = policy(flag, value, words, &amount);
    if (index < 0) return false;
    if ((index == EPOCH_BATCH) != (amount != NULL))
        return flags_wrong("%s %s %s", flag, words[index],
                           amount ? "takes no number" : "needs a number of requests, like batch:16");
    if (amount != NULL && !flags_count(flag, amount, 1, 1e9, &batch)) return false;
    s->epoch_policy = (enum epoch_policy)index;
    s->batch = (unsigned)batch;
    return true;
}

static bool set_free_policy(void* to, const char* value) {
    static const char flag[] = "--free_policy", *const words[] = {"within_req", "lag", "leak", NULL};
    struct settings* s = to;
    const char* amount;
    uint64_t lag = 0;
    double leak = 0;
    int index = policy(flag, value, words, &amount);
    if (index < 0) return false;
    if ((index != FREE_WITHIN_REQ) != (amount != NULL))
        return flags_wrong("%s %s %s", flag, words[index],
                           amount              ? "takes no number"
                           : index == FREE_LAG ? "needs a number of requests, like lag:8"
                                               : "needs a percentage, like leak:1");
    if (index == FREE_LAG && !flags_count(flag, amount, 1, LAG_MAX, &lag)) return false;
    if (index == FREE_LEAK && !flags_real(flag, amount, 0, 100, &leak)) return false;
    s->free_policy = (enum free_policy)index;
    s->lag = (unsigned)lag;
    s->leak_pct = leak;
    return true;
}

static bool set_size(void* to, const char* value) {
    uint64_t size = 0;
    bool good = strcmp(value, "mixed") == 0 || flags_count("--size", value, 8, 16777216, &size);
    if (good) ((struct settings*)to)->size = (unsigned)size;
    return good;
}

static bool set_phases(void* to, const char* value) {
    ((struct settings*)to)->phases = strcmp(value, "ring") == 0 ? PHASES_RING : PHASES_DOMAIN;
    return true;
}

struct flag* settings_flags(struct settings* s, const char* also) {
    static const char *names[PATTERNS + 2], *pattern; /* which settings_preset has been told */
    static const char* const kinds[] = {"ring", "domain", NULL};
    static struct flag flags[11];
    const struct flag table[] = {
        {"--pattern", FLAG_WORD, &pattern, .words = names, .argument = "NAME",
         .help = also ? "the preset that the other flags change, see below"
                      : "the preset that the other flags change, see below (default: burst)"},
        {"--threads", FLAG_UNSIGNED, &s->threads, .least = 1, .most = WORKERS_MAX,
         .help = "number of threads that serve requests"},
        {"--req_rate", FLAG_REAL, &s->req_rate, .most = 1e9, .argument = "R",
         .help = "requests per second of all threads together; 0: as fast as possible"},
        {"--objs_min", FLAG_UNSIGNED, &s->objs_min, .least = 1, .most = 100000,
         .help = "minimum number of objects per request"},
        {"--objs_max", FLAG_UNSIGNED, &s->objs_max, .least = 1, .most = 100000,
         .help = "maximum number of objects per request"},
        {"--size", FLAG_TEXT, s, set_size, .argument = "BYTES",
         .help = "size of an object, 8 to 16777216; mixed: 64 to 768, half of them 128"},
        {"--epoch_policy", FLAG_TEXT, s, set_epoch_policy, .argument = "P",
         .help = "end a phase: per_req (after each request), batch:N (after N requests) or manual (on SIGUSR1 and at "
                 "the end)"},
        {"--free_policy", FLAG_TEXT, s, set_free_policy, .argument = "P",
         .help =
             "free an object: within_req, lag:N (N requests later) or leak:PCT (never for PCT percent of the objects)"},
        {"--phases", FLAG_WORD, s, set_phases, .words = kinds, .argument = "KIND",
         .help = "ring: shared by all threads; domain: one per thread (default: domain for per_req with several "
                 "threads, otherwise ring)"},
        {"--seed", FLAG_COUNT, &s->seed, .most = 1e18,
         .help = "the same seed gives each thread the same requests (default: 1)"},
        {.name = NULL},
    };
    for (int n = 0; n < PATTERNS; n++) names[n] = patterns[n].name;
    names[PATTERNS] = also;
    return memcpy(flags, table, sizeof table);
}

bool settings_settle(struct settings* s) {
    bool several = s->threads > 1 && s->epoch_policy == EPOCH_PER_REQ;
    if (s->phases == PHASES_BY_POLICY) s->phases = several ? PHASES_DOMAIN : PHASES_RING;
    if (s->objs_min > s->objs_max)
        return flags_wrong("--objs_min %u is above --objs_max %u; pattern %s has %u to %u, set both", s->objs_min,
                           s->objs_max, s->pattern->name, s->pattern->objs_min, s->pattern->objs_max);
    double kept = (double)s->threads * (s->lag + 1.0) * (s->objs_max * 8.0 + 64);
    if (kept > 1e9)
        return flags_wrong("--threads %u, --free_policy lag:%u and --objs_max %u need lists of %.1f GB; 1 GB is the "
                           "limit, lower one of them",
                           s->threads, s->lag, s->objs_max, kept / 1e9);
    return true;
}

/* ---- words ---- */

void patterns_print(void) {
    for (int n = 0; n < PATTERNS; n++) {
        const struct pattern* p = &patterns[n];
        struct settings s = {.epoch_policy = p->epoch_policy,
                             .batch = p->batch,
                             .free_policy = p->free_policy,
                             .lag = p->lag,
                             .leak_pct = p->leak_pct};
        char objects[32], size[24] = "mixed sizes";
        (void)snprintf(objects, sizeof objects, p->objs_min == p->objs_max ? "%u" : "%u-%u", p->objs_min, p->objs_max);
        if (p->size) (void)snprintf(size, sizeof size, "%u bytes", p->size);
        printf("  %-11s %s\n  %11s %u thread%s, %.0f requests/s, %s objects of %s, %s, %s%s\n", p->name, p->what, "",
               p->threads, p->threads == 1 ? "" : "s", p->req_rate, objects, size, settings_epoch_policy(&s),
               settings_free_policy(&s), p->keep_nothing_warm ? ", warm_bytes none" : "");
    }
}

const char* settings_epoch_policy(const struct settings* s) {
    static _Thread_local char text[32];
    if (s->epoch_policy == EPOCH_BATCH) (void)snprintf(text, sizeof text, "batch:%u", s->batch);
    return s->epoch_policy == EPOCH_BATCH ? text : s->epoch_policy == EPOCH_PER_REQ ? "per_req" : "manual";
}

const char* settings_free_policy(const struct settings* s) {
    static _Thread_local char text[32];
    if (s->free_policy == FREE_LAG) (void)snprintf(text, sizeof text, "lag:%u", s->lag);
    if (s->free_policy == FREE_LEAK) (void)snprintf(text, sizeof text, "leak:%g", s->leak_pct);
    return s->free_policy == FREE_WITHIN_REQ ? "within_req" : text;
}
