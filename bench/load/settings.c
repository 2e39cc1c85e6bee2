/*
 * settings.c - one table of patterns, one of the flags that change them.
 */
#include <stdio.h>
#include <string.h>

#include "load/settings.h"
#include "load/words.h"

/* clang-format off */
static const struct pattern patterns[] = {
    {.name = "burst", .what = "requests of many small objects, a phase each",
     .routes = {"GET /products", "GET /search", "POST /cart", "GET /home"},
     .threads = 1, .req_rate = 2000, .objs_min = 80, .objs_max = 200, .size = 128,
     .epoch_policy = EPOCH_PER_REQ, .free_policy = FREE_WITHIN_REQ},
    {.name = "steady", .what = "small requests whose objects outlive them a little",
     .routes = {"GET /feed", "GET /timeline", "POST /like", "GET /notices"},
     .threads = 1, .req_rate = 5000, .objs_min = 50, .objs_max = 50, .size = 128,
     .epoch_policy = EPOCH_BATCH, .batch = 16, .free_policy = FREE_LAG, .lag = 8},
    {.name = "leak", .what = "burst, and POST /orders keeps one object in a hundred of all",
     .routes = {"GET /users", "GET /search", "POST /orders", "GET /health"},
     .threads = 1, .req_rate = 2000, .objs_min = 80, .objs_max = 200, .size = 128,
     .epoch_policy = EPOCH_PER_REQ, .free_policy = FREE_LEAK, .leak_pct = 1},
    {.name = "hotspot", .what = "one route has most requests, one size most objects",
     .routes = {"GET /popular", "GET /rare", "POST /vote", "GET /archive"}, .hot_percent = 70,
     .threads = 1, .req_rate = 4000, .objs_min = 120, .objs_max = 120, .size = 0,
     .epoch_policy = EPOCH_PER_REQ, .free_policy = FREE_WITHIN_REQ},
    {.name = "kernel", .what = "larger phases whose pages all go back to the system",
     .routes = {"PUT /blob", "GET /blob", "POST /convert", "GET /preview"}, .keep_nothing_warm = true,
     .threads = 1, .req_rate = 2000, .objs_min = 300, .objs_max = 300, .size = 256,
     .epoch_policy = EPOCH_PER_REQ, .free_policy = FREE_WITHIN_REQ},
    {.name = "contention", .what = "eight threads in the same phases",
     .routes = {"rpc lookup", "rpc insert", "rpc update", "rpc expire"},
     .threads = 8, .req_rate = 10000, .objs_min = 50, .objs_max = 50, .size = 128,
     .epoch_policy = EPOCH_BATCH, .batch = 100, .free_policy = FREE_WITHIN_REQ},
};
/* clang-format on */
enum { PATTERNS = sizeof patterns / sizeof *patterns };

enum {
    FLAG_PATTERN,
    FLAG_THREADS,
    FLAG_RATE,
    FLAG_OBJS_MIN,
    FLAG_OBJS_MAX,
    FLAG_SIZE,
    FLAG_EPOCH_POLICY,
    FLAG_FREE_POLICY,
    FLAG_PHASES,
    FLAG_SEED,
    FLAGS
};

static const struct flag flags[FLAGS] = {
    [FLAG_PATTERN] = {"--pattern", "NAME", "the preset that the other flags change, see below (default: burst)", 0, 0},
    [FLAG_THREADS] = {"--threads", "N", "threads that serve requests", 1, WORKERS_MAX},
    [FLAG_RATE] = {"--req_rate", "R", "requests per second of all threads together; 0: as fast as they can", 0, 1e9},
    [FLAG_OBJS_MIN] = {"--objs_min", "N", "least objects of a request", 1, 100000},
    [FLAG_OBJS_MAX] = {"--objs_max", "N", "most objects of a request", 1, 100000},
    [FLAG_SIZE] = {"--size", "BYTES", "of an object, 8 to 16777216, or mixed: 64 to 768, half of them 128", 8,
                   16777216},
    [FLAG_EPOCH_POLICY] = {"--epoch_policy", "P",
                           "when a phase ends: per_req, batch:N (requests), or manual: on SIGUSR1 and at the end", 1,
                           1e9},
    [FLAG_FREE_POLICY] =
        {"--free_policy", "P",
         "when an object is freed: within_req, lag:N (N requests later), or leak:PCT (that share never)", 0, 100},
    [FLAG_PHASES] = {"--phases", "KIND",
                     "ring: shared by all threads; domain: of each thread (default: domain for per_req with several "
                     "threads, else ring)",
                     0, 0},
    [FLAG_SEED] = {"--seed", "N", "the same seed gives each thread the same requests (default: 1)", 0, 1e18},
};

const struct flag_table load_flags = {flags, FLAGS};
const struct flag* const pattern_flag = &flags[FLAG_PATTERN];

bool pattern_named(const char* name, const char* also, const struct pattern** out) {
    const char* names[PATTERNS + 1];
    size_t count = 0;
    while (count < PATTERNS) names[count] = patterns[count].name, count++;
    if (also) names[count++] = also;
    int index = word_index("pattern", name, names, count);
    *out = index >= 0 && index < PATTERNS ? &patterns[index] : NULL;
    return index >= 0;
}

const struct pattern* pattern_default(void) { return &patterns[0]; }

void settings_preset(struct settings* s, const struct pattern* p) {
    *s = (struct settings){.pattern = p,
                           .req_rate = p->req_rate,
                           .threads = p->threads,
                           .objs_min = p->objs_min,
                           .objs_max = p->objs_max,
                           .size = p->size,
                           .epoch_policy = p->epoch_policy,
                           .batch = p->batch,
                           .free_policy = p->free_policy,
                           .lag = p->lag,
                           .leak_pct = p->leak_pct,
                           .phases = PHASES_BY_POLICY,
                           .seed = 1};
}

/* ---- values ---- */

/* A policy is a word, or a word and a number: "lag:8". */
static bool policy(const struct flag* f, const char* value, const char* const* words, size_t count, int* index,
                   double* amount) {
    char word[32];
    const char* colon = strchr(value, ':');
    size_t n = colon ? (size_t)(colon - value) : strlen(value);
    (void)snprintf(word, sizeof word, "%.*s", (int)n, value);
    *index = word_index(f->name + 2, n < sizeof word ? word : value, words, count);
    if (*index < 0) return false;
    bool batch = strcmp(word, "batch") == 0, lag = strcmp(word, "lag") == 0, leak = strcmp(word, "leak") == 0;
    if (!batch && !lag && !leak && !colon) return true;
    if ((batch || lag || leak) && colon)
        return number(f->name, colon + 1, leak ? 0 : 1, leak ? 100 : lag ? LAG_MAX : 1e9, !leak, amount);
    fprintf(stderr, "%s: %s %s %s\n", program_name, f->name, word,
            batch  ? "needs a number of requests, like batch:16"
            : lag  ? "needs a number of requests, like lag:8"
            : leak ? "needs a percentage, like leak:1"
                   : "takes no number");
    return false;
}

static bool set_policy(struct settings* s, const struct flag* f, const char* value) {
    static const char* const epochs[] = {"per_req", "batch", "manual"};
    static const char* const frees[] = {"within_req", "lag", "leak"};
    int index;
    double amount = 0;
    if (!policy(f, value, f == &flags[FLAG_EPOCH_POLICY] ? epochs : frees, 3, &index, &amount)) return false;
    if (f == &flags[FLAG_EPOCH_POLICY]) {
        s->epoch_policy = (enum epoch_policy)index;
        s->batch = (unsigned)amount;
    } else {
        s->free_policy = (enum free_policy)index;
        s->lag = index == FREE_LAG ? (unsigned)amount : 0;
        s->leak_pct = index == FREE_LEAK ? amount : 0;
    }
    return true;
}

static bool set_number(struct settings* s, const struct flag* f, const char* value) {
    double v = 0;
    bool mixed = f == &flags[FLAG_SIZE] && strcmp(value, "mixed") == 0;
    if (!mixed && !number(f->name, value, f->low, f->high, f != &flags[FLAG_RATE], &v)) return false;
    switch (f - flags) {
    case FLAG_THREADS:
        s->threads = (unsigned)v;
        break;
    case FLAG_RATE:
        s->req_rate = v;
        break;
    case FLAG_OBJS_MIN:
        s->objs_min = (unsigned)v;
        break;
    case FLAG_OBJS_MAX:
        s->objs_max = (unsigned)v;
        break;
    case FLAG_SIZE:
        s->size = (unsigned)v;
        break;
    default:
        s->seed = (uint64_t)v;
        break;
    }
    return true;
}

bool settings_set(struct settings* s, const struct flag* f, const char* value) {
    static const char* const kinds[] = {"ring", "domain"};
    if (f == &flags[FLAG_EPOCH_POLICY] || f == &flags[FLAG_FREE_POLICY]) return set_policy(s, f, value);
    if (f != &flags[FLAG_PHASES]) return set_number(s, f, value);
    int index = word_index("kind of phases", value, kinds, 2);
    if (index >= 0) s->phases = (enum phase_kind)index;
    return index >= 0;
}

bool settings_settle(struct settings* s) {
    bool several = s->threads > 1 && s->epoch_policy == EPOCH_PER_REQ;
    if (s->phases == PHASES_BY_POLICY) s->phases = several ? PHASES_DOMAIN : PHASES_RING;
    if (s->objs_min > s->objs_max)
        return fprintf(stderr, "%s: --objs_min %u is above --objs_max %u; pattern %s has %u to %u, set both\n",
                       program_name, s->objs_min, s->objs_max, s->pattern->name, s->pattern->objs_min,
                       s->pattern->objs_max),
               false;
    double kept = (double)s->threads * (s->lag + 1.0) * (s->objs_max * 8.0 + 64);
    if (kept > 1e9)
        return fprintf(stderr,
                       "%s: --threads %u, --free_policy lag:%u and --objs_max %u need lists of %.1f GB; "
                       "1 GB is the limit, lower one of them\n",
                       program_name, s->threads, s->lag, s->objs_max, kept / 1e9),
               false;
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
