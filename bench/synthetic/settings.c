/*
 * settings.c - one table of patterns, one table of flags: they feed the parser, its messages and --help.
 *
 * The pattern is looked for first and sets everything else; every other flag overrides its preset, wherever it stands
 * on the command line. Flags are accepted with - for _ and the reverse, with "=" or as two words.
 */
#include <string.h>

#include "synthetic.h"
#include "words.h"

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

enum flag_id {
    FLAG_ALLOCATOR,
    FLAG_PATTERN,
    FLAG_DURATION,
    FLAG_REQUESTS,
    FLAG_THREADS,
    FLAG_RATE,
    FLAG_OBJS_MIN,
    FLAG_OBJS_MAX,
    FLAG_SIZE,
    FLAG_EPOCH_POLICY,
    FLAG_FREE_POLICY,
    FLAG_PHASES,
    FLAG_SEED,
    FLAG_RSS,
    FLAG_STATS_FILE,
    FLAG_JSON,
    FLAG_DOCTOR,
    FLAG_LEAK_THRESHOLD,
    FLAG_STATS_S,
    FLAG_PROGRESS_S,
    FLAG_HELP,
    FLAG_VERSION,
    FLAGS
};

struct flag {
    const char *name, *argument, *help;
    double low, high; /* of a number */
};

static const struct flag flags[FLAGS] = {
    [FLAG_ALLOCATOR] = {"--allocator", "NAME",
                        "tslab (default), or malloc: whatever the process has, LD_PRELOAD included", 0, 0},
    [FLAG_PATTERN] = {"--pattern", "NAME", "the preset that the other flags change, see below (default: burst)", 0, 0},
    [FLAG_DURATION] = {"--duration_s", "S", "how long it runs; 0: until SIGINT or SIGTERM (default: 60)", 0, 1e7},
    [FLAG_REQUESTS] = {"--requests", "N", "ends after N requests, if that is sooner; 0: no such limit (default)", 0,
                       1e15},
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
    [FLAG_RSS] = {"--rss_sample_ms", "MS",
                  "how often the resident size is read for its peak; 0: at start and end only (default: 100)", 0,
                  3600000},
    [FLAG_STATS_FILE] =
        {"--stats-file", "FILE",
         "now and then and at the end: statistics as JSON, with benchmark_* counters; replaced by rename", 0, 0},
    [FLAG_JSON] = {"--json", "FILE", "settings and results as JSON, at the end", 0, 0},
    [FLAG_DOCTOR] = {"--doctor", NULL, "the library's diagnosis on standard error, at the end", 0, 0},
    [FLAG_LEAK_THRESHOLD] =
        {"--leak_threshold_s", "S",
         "age from which an ended phase that holds objects is a leak, also to the doctor (default: 30)", 0, 1000000},
    [FLAG_STATS_S] = {"--stats_s", "S", "how often the statistics file is written; 0: at the end only (default: 5)", 0,
                      1e6},
    [FLAG_PROGRESS_S] = {"--progress_s", "S", "how often a line of progress is printed; 0: never (default: 10)", 0,
                         1e6},
    [FLAG_HELP] = {"--help", NULL, "", 0, 0},
    [FLAG_VERSION] = {"--version", NULL, "", 0, 0},
};

static int pattern_index(const char* word) {
    const char* names[PATTERNS];
    for (size_t n = 0; n < PATTERNS; n++) names[n] = patterns[n].name;
    return word_index("pattern", word, names, PATTERNS);
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
    fprintf(stderr, "synthetic_bench: %s %s %s\n", f->name, word,
            batch  ? "needs a number of requests, like batch:16"
            : lag  ? "needs a number of requests, like lag:8"
            : leak ? "needs a percentage, like leak:1"
                   : "takes no number");
    return false;
}

static bool set_policy(struct settings* s, enum flag_id id, const char* value) {
    static const char* const epochs[] = {"per_req", "batch", "manual"};
    static const char* const frees[] = {"within_req", "lag", "leak"};
    int index;
    double amount = 0;
    if (!policy(&flags[id], value, id == FLAG_EPOCH_POLICY ? epochs : frees, 3, &index, &amount)) return false;
    if (id == FLAG_EPOCH_POLICY) {
        s->epoch_policy = (enum epoch_policy)index;
        s->batch = (unsigned)amount;
    } else {
        s->free_policy = (enum free_policy)index;
        s->lag = index == FREE_LAG ? (unsigned)amount : 0;
        s->leak_pct = index == FREE_LEAK ? amount : 0;
    }
    return true;
}

static bool set_word(struct settings* s, enum flag_id id, const char* value) {
    static const char* const allocators[] = {"tslab", "malloc"};
    static const char* const kinds[] = {"ring", "domain"};
    int index = id == FLAG_PHASES ? word_index("kind of phases", value, kinds, 2)
                                  : word_index("allocator", value, allocators, 2);
    if (index < 0) return false;
    if (id == FLAG_PHASES)
        s->phases = (enum phase_kind)index;
    else
        s->use_malloc = index == 1;
    return true;
}

static bool is_fraction(enum flag_id id) {
    return id == FLAG_DURATION || id == FLAG_RATE || id == FLAG_STATS_S || id == FLAG_PROGRESS_S;
}

static bool set_number(struct settings* s, enum flag_id id, const char* value) {
    double v = 0;
    bool mixed = id == FLAG_SIZE && strcmp(value, "mixed") == 0;
    if (!mixed && !number(flags[id].name, value, flags[id].low, flags[id].high, !is_fraction(id), &v)) return false;
    switch (id) {
    case FLAG_DURATION:
        s->duration_s = v;
        break;
    case FLAG_REQUESTS:
        s->requests = (uint64_t)v;
        break;
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
    case FLAG_SEED:
        s->seed = (uint64_t)v;
        break;
    case FLAG_STATS_S:
        s->stats_s = v;
        break;
    case FLAG_PROGRESS_S:
        s->progress_s = v;
        break;
    case FLAG_RSS:
        s->rss_sample_ms = (unsigned)v;
        break;
    default:
        s->leak_threshold_s = (unsigned)v;
        break;
    }
    return true;
}

static bool set_value(struct settings* s, enum flag_id id, const char* value) {
    switch (id) {
    case FLAG_ALLOCATOR:
    case FLAG_PHASES:
        return set_word(s, id, value);
    case FLAG_PATTERN:
        return true; /* taken already */
    case FLAG_EPOCH_POLICY:
    case FLAG_FREE_POLICY:
        return set_policy(s, id, value);
    case FLAG_STATS_FILE:
        s->stats_file = value;
        return true;
    case FLAG_JSON:
        s->json_file = value;
        return true;
    default:
        return set_number(s, id, value);
    }
}

/* ---- the command line ---- */

/* The rest of a line that stands LEFT columns in. */
static void wrapped(const char* text) {
    enum { LEFT = 26, WIDTH = 100 };
    int column = LEFT;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (column + n > WIDTH)
            column = LEFT, printf("\n%*s", LEFT, "");
        else if (column > LEFT)
            putchar(' ');
        printf("%.*s", n, text);
        column += n + 1;
        text += n + (text[n] != 0);
    }
    putchar('\n');
}

static void print_help(void) {
    printf(
        "NAME\n  synthetic_bench - load of a server's shape on temporal-slab, or on malloc for comparison\n\n"
        "SYNOPSIS\n  synthetic_bench [--allocator=tslab|malloc] [--pattern=NAME] [flag]...\n\n"
        "DESCRIPTION\n"
        "  Threads serve requests at a rate, or as fast as they can. A request allocates some objects, writes to each\n"
        "  cache line of them, and frees them as the free policy says. Requests belong to phases, which carry their "
        "route\n"
        "  as a label. At the end the program compares its own counts with each other and with the library's.\n\n"
        "  Progress goes to standard error. SIGINT and SIGTERM end the run, and what was done is\n"
        "  printed; SIGUSR1 ends the phase.\n\nOPTIONS\n");
    for (int n = 0; n < FLAG_HELP; n++) {
        int width =
            printf("  %s%s%s", flags[n].name, flags[n].argument ? "=" : "", flags[n].argument ? flags[n].argument : "");
        printf("%*s", width < 25 ? 26 - width : 1, "");
        wrapped(flags[n].help);
    }
    printf("  --help, --version\n\nPATTERNS\n");
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
    printf("\nEXIT STATUS\n  0  done, also after SIGINT and SIGTERM\n  1  counts do not agree, or something could not "
           "be made or written\n"
           "  2  wrong command line\n");
}

static void preset(struct settings* s, const struct pattern* p) {
    *s = (struct settings){.pattern = p,
                           .duration_s = 60,
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
                           .rss_sample_ms = 100,
                           .leak_threshold_s = 30,
                           .stats_s = 5,
                           .progress_s = 10,
                           .seed = 1};
}

/* Splits an argument into flag and value; FLAGS after a complaint. */
static enum flag_id take_flag(int argc, char** argv, int* i, const char** value) {
    char name[64];
    const char *eq = strchr(argv[*i], '='), *names[FLAGS];
    size_t n = eq ? (size_t)(eq - argv[*i]) : strlen(argv[*i]);
    (void)snprintf(name, sizeof name, "%.*s", (int)n, argv[*i]);
    for (int f = 0; f < FLAGS; f++) {
        names[f] = flags[f].name;
        bool same = n == strlen(names[f]);
        for (size_t k = 0; same && k < n; k++)
            same = name[k] == names[f][k] || (k > 1 && strchr("-_", name[k]) && strchr("-_", names[f][k]));
        if (!same) continue;
        *value = eq ? eq + 1 : flags[f].argument && *i + 1 < argc ? argv[++*i] : NULL;
        if (flags[f].argument ? *value && **value : !*value) return (enum flag_id)f;
        fprintf(stderr, "synthetic_bench: %s %s\n", names[f], flags[f].argument ? "needs a value" : "takes no value");
        return FLAGS;
    }
    wrong_word("option", n < sizeof name ? name : argv[*i], names, FLAGS);
    return FLAGS;
}

static bool consistent(struct settings* s) {
    bool several = s->threads > 1 && s->epoch_policy == EPOCH_PER_REQ;
    if (s->phases == PHASES_BY_POLICY) s->phases = several ? PHASES_DOMAIN : PHASES_RING;
    if (s->objs_min > s->objs_max)
        return fprintf(stderr,
                       "synthetic_bench: --objs_min %u is above --objs_max %u; pattern %s has %u to %u, set both\n",
                       s->objs_min, s->objs_max, s->pattern->name, s->pattern->objs_min, s->pattern->objs_max),
               false;
    double kept = (double)s->threads * (s->lag + 1.0) * (s->objs_max * 8.0 + 64);
    if (kept > 1e9)
        return fprintf(stderr,
                       "synthetic_bench: --threads %u, --free_policy lag:%u and --objs_max %u need lists of %.1f GB; "
                       "1 GB is the limit, lower one of them\n",
                       s->threads, s->lag, s->objs_max, kept / 1e9),
               false;
    return true;
}

int settings_read(struct settings* s, int argc, char** argv) {
    const struct pattern* p = &patterns[0];
    const char* value = NULL;
    for (int i = 1; i < argc; i++) {
        enum flag_id id = take_flag(argc, argv, &i, &value);
        if (id == FLAGS) return 2;
        if (id == FLAG_HELP) return print_help(), 0;
        if (id == FLAG_VERSION) return printf("synthetic_bench %s\n", slab_version()) < 0;
        int index = id == FLAG_PATTERN ? pattern_index(value) : 0;
        if (index < 0) return 2;
        if (id == FLAG_PATTERN) p = &patterns[index];
    }
    preset(s, p);
    for (int i = 1; i < argc; i++) {
        enum flag_id id = take_flag(argc, argv, &i, &value);
        if (id == FLAG_DOCTOR)
            s->doctor = true;
        else if (!set_value(s, id, value))
            return 2;
    }
    return consistent(s) ? -1 : 2;
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
