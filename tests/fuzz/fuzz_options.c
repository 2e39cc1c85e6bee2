/*
 * fuzz_options.c - a fuzzer's bytes as option structs and as TSLAB_OPTIONS.
 *
 * The first bytes of an input fill a SlabOptions, mostly near the limits that options.def names; what is left
 * becomes the environment variable. There the bytes 0x80..0xbf stand for whole words (names, limits, suffixes), so
 * that lists close to good ones are common; every other byte is itself.
 *
 * A second reader of options.def, written as plainly as docs/options.md describes the rules, says what each field
 * must become, whether the struct is refused and how many words of the environment are ignored. The library must
 * agree: from its reader, and, for one input in 256, from allocators made by both entry points.
 */
#include "api/internal.h"

#include "fuzz/input.h"

#include "epoch_domain.h"
#include "slab_stats.h"

#include "kit/check.h"

enum { TEXT_MOST = 2048, FIELDS = 29, STRUCT_MOST = 4096, VALUE_MOST = 23, WARM = 3, WARM_LIMIT = 17 };

__extension__ typedef unsigned __int128 Wide; /* no product of a 64-bit number and a suffix overflows it */

typedef struct Field {
    const char* name;
    uint64_t least, most, preset;
} Field;

#define OPTION(field, least, most, preset, unit, help) {#field, least, most, preset},
static const Field fields[] = {
#include "api/options.def"
};
#undef OPTION
_Static_assert(sizeof fields / sizeof *fields == FIELDS, "FIELDS is the number of options");

static char environment[TEXT_MOST + 64];

/* ---- the input -------------------------------------------------------------------------- */

/* A value for a field: the default, a limit or just beside it, within, or any bits. */
static uint64_t take_value(Input* in, const Field* f) {
    uint64_t how = take(in, 1);
    switch (how % 8) {
    case 0:
    case 1:
        return 0;
    case 2:
        return f->least + how / 8 % 3 - 1;
    case 3:
        return f->most + how / 8 % 3 - 1;
    case 4:
        return f->preset;
    case 5:
        return (uint64_t)1 << how / 4;
    case 6:
        return take(in, 2);
    default:
        return take(in, 8);
    }
}

static void take_environment(Input* in) {
    static const char* const words[] = {"=",
                                        ",",
                                        "k",
                                        "m",
                                        "g",
                                        "0",
                                        "1",
                                        "2",
                                        "16",
                                        "-1",
                                        "+1",
                                        "4096",
                                        "64k",
                                        " ",
                                        "1g",
                                        "64g",
                                        "0x",
                                        "010",
                                        "1048576",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "99999999999999999999999",
                                        "K",
                                        "kk",
                                        ",,",
                                        "misuse_fatal=0"};
    size_t count = sizeof words / sizeof *words, at = 0;
    environment[0] = 0;
    while (in->left != 0 && at < TEXT_MOST) {
        uint8_t byte = (uint8_t)take(in, 1);
        if (byte == 0) byte = ',';
        const char* word = NULL;
        if (byte >= 0x80 && byte < 0x80 + FIELDS) word = fields[byte - 0x80].name;
        if (byte >= 0x80 + FIELDS && byte < 0xc0) word = words[(byte - 0x80u - FIELDS) % count];
        if (word == NULL) environment[at++] = (char)byte;
        else at += strlen(strcpy(environment + at, word));
        environment[at] = 0;
    }
}

/* ---- the second reader ------------------------------------------------------------------ */

static bool field_takes(const Field* f, uint64_t v) {
    bool power = v != 0 && (v & (v - 1)) == 0;
    return v >= f->least && v <= f->most && (power || strcmp(f->name, "slab_bytes") != 0);
}

static void fields_of(const SlabOptions* o, uint64_t v[FIELDS]) {
    const uint64_t all[FIELDS] = {
        o->ring_size,        o->purge_policy,   o->reserve_bytes,    o->warm_bytes,   o->slab_bytes,
        o->prefault,         o->misuse_fatal,   o->leak_report,      o->max_labels,   o->max_bytes,
        o->sampling_period,  o->huge_pages,     o->numa_local,       o->shared,       o->segment,
        o->profile_bytes,    o->bump,           o->warm_limit_bytes, o->quiet,        o->decay_ms,
        o->by_malloc,        o->late_access,    o->escape_stacks,    o->guard_period, o->fill_freed,
        o->quarantine_bytes, o->guard_sampling, o->random_order,     o->hardened};
    memcpy(v, all, sizeof all);
}

/* One word "name=value": the field it sets and the value, the default for a 0 out of range; false when it is none. */
static bool read_word(const char* word, size_t n, unsigned* field, uint64_t* value) {
    size_t eq = 0;
    while (eq < n && word[eq] != '=') eq++;
    size_t end = eq + 1;
    Wide v = 0;
    for (; end < n && word[end] >= '0' && word[end] <= '9'; end++)
        if (v <= UINT64_MAX) v = v * 10 + (unsigned)(word[end] - '0');
    if (eq >= n || end == eq + 1 || n - eq - 1 > VALUE_MOST) return false;
    char suffix = end < n ? word[end++] : 0;
    if (end != n || (suffix != 0 && strchr("kmgKMG", suffix) == NULL) || v > UINT64_MAX) return false;
    if (suffix != 0) v <<= suffix == 'k' || suffix == 'K' ? 10 : suffix == 'm' || suffix == 'M' ? 20 : 30;
    if (v > UINT64_MAX) return false;
    for (unsigned f = 0; f < FIELDS; f++) {
        if (strlen(fields[f].name) != eq || strncmp(fields[f].name, word, eq) != 0) continue;
        *field = f;
        *value = (uint64_t)v;
        if (v == 0 && !field_takes(&fields[f], 0)) *value = fields[f].preset;
        return v == 0 || field_takes(&fields[f], *value);
    }
    return false;
}

static unsigned place_of(const char* name) {
    for (unsigned f = 0; f < FIELDS; f++)
        if (strcmp(fields[f].name, name) == 0) return f;
    abort();
}

/* What options imply, however they were set: others that nobody has set. */
static void imply_others(uint64_t v[FIELDS], const bool named[FIELDS]) {
    static const struct {
        const char* name;
        uint64_t value;
    } parts[] = {{"fill_freed", 1}, {"random_order", 1}, {"guard_sampling", 5000}, {"quarantine_bytes", 4 << 20}};
    for (unsigned n = 0; n < 4 && v[place_of("hardened")] != 0; n++) {
        unsigned f = place_of(parts[n].name);
        if (v[f] == 0 && !named[f]) v[f] = parts[n].value;
    }
    if (v[place_of("random_order")] != 0) v[place_of("bump")] = 2;
}

static uint32_t read_environment(uint64_t v[FIELDS], bool named[FIELDS]) {
    uint32_t bad = 0;
    for (const char* at = environment; *at != 0;) {
        const char* comma = strchr(at, ',');
        size_t n = comma != NULL ? (size_t)(comma - at) : strlen(at);
        unsigned field = 0;
        uint64_t value = 0;
        bool reads = n != 0 && read_word(at, n, &field, &value);
        if (reads) v[field] = field == WARM && value == 0 ? UINT64_MAX : value;
        if (reads) named[field] = true;
        else if (n != 0) bad++;
        at += n + (comma != NULL);
    }
    return bad;
}

/* What must come of a struct (NULL: none) and the environment. */
typedef struct Verdict {
    bool good;
    const char* culprit; /* part of the sentence that refuses it */
    uint64_t v[FIELDS];
    uint32_t bad_words;
} Verdict;

static Verdict judge(const SlabOptions* o, size_t room) {
    Verdict is = {.good = true};
    SlabOptions seen;
    memset(&seen, 0, sizeof seen);
    if (o != NULL) {
        size_t n = o->struct_size;
        if (n < offsetof(SlabOptions, ring_size) + 4 || n > STRUCT_MOST) return (Verdict){.culprit = "struct_size"};
        memcpy(&seen, o, n < sizeof seen ? n : sizeof seen);
        for (size_t i = sizeof seen; i < n && i < room; i++)
            if (((const uint8_t*)o)[i] != 0) return (Verdict){.culprit = "field"};
        if (seen.reserved_[0] != 0) return (Verdict){.culprit = "reserved_"};
    }
    fields_of(&seen, is.v);
    bool fixed = is.v[WARM] != 0;
    for (unsigned f = 0; f < FIELDS; f++) {
        if (is.v[f] != 0 && !field_takes(&fields[f], is.v[f])) return (Verdict){.culprit = fields[f].name};
        if (is.v[f] == 0) is.v[f] = fields[f].preset;
    }
    bool named[FIELDS] = {false};
    is.bad_words = read_environment(is.v, named);
    imply_others(is.v, named);
    fixed |= named[WARM];
    if (is.v[WARM] == UINT64_MAX) is.v[WARM] = 0; /* none */
    if (fixed) is.v[WARM_LIMIT] = is.v[WARM];     /* what does not learn has no other limit */
    return is;
}

/* ---- the library ------------------------------------------------------------------------ */

static void check_refused(const Verdict* is, int error) {
    REQUIRE_OR(error == EINVAL, "refused options: errno %d", error);
    REQUIRE_OR(strstr(slab_last_error(), is->culprit) != NULL, "'%s' does not name %s", slab_last_error(), is->culprit);
}

static void check_reader(const SlabOptions* o, const Verdict* is) {
    SlabOptions out;
    uint32_t bad = 0;
    uint64_t v[FIELDS];
    bool good = tsi_options_read(&out, o, &bad);
    REQUIRE_OR(good == is->good, "options were %s: %s", good ? "taken" : "refused",
               good ? is->culprit : slab_last_error());
    if (!good) {
        check_refused(is, EINVAL);
        return;
    }
    REQUIRE_OR(bad == is->bad_words, "%u words ignored, %u due", bad, is->bad_words);
    fields_of(&out, v);
    for (unsigned f = 0; f < FIELDS; f++)
        REQUIRE_OR(v[f] == is->v[f], "%s became %llu, due %llu", fields[f].name, (unsigned long long)v[f],
                   (unsigned long long)is->v[f]);
}

/* An allocator with those options does what they say. */
static void check_allocator(SlabAllocator* a, const Verdict* is) {
    SlabRefusals refused;
    SlabGlobalStats g;
    SlabClassStats k;
    uint32_t ring = (uint32_t)is->v[0];
    slab_stats_refusals(a, &refused);
    slab_stats_global(a, &g);
    slab_stats_class(a, 0, &k);
    REQUIRE_OR(refused.bad_environment == is->bad_words, "bad_environment is %llu, due %u",
               (unsigned long long)refused.bad_environment, is->bad_words);
    REQUIRE_OR(epoch_era(a, ring - 1) != 0 && epoch_era(a, ring) == 0, "the ring has not %u epochs", ring);
    REQUIRE_OR(g.reserved_bytes <= is->v[2] && g.reserved_bytes >= fields[2].least, "%llu bytes reserved of %llu",
               (unsigned long long)g.reserved_bytes, (unsigned long long)is->v[2]);
    REQUIRE_OR(k.slab_bytes >= is->v[4], "slabs of %llu bytes, %llu due", (unsigned long long)k.slab_bytes,
               (unsigned long long)is->v[4]);
    unsigned char* p = slab_malloc(a, 100);
    REQUIRE_OR(p != NULL, "no object, errno %d", errno);
    memset(p, 1, 100);
    REQUIRE_OR(slab_free_checked(a, p), "the object cannot be freed");
}

static void check_makers(const SlabOptions* o, const Verdict* is) {
    SlabAllocator storage;
    errno = 0;
    bool good = allocator_init_with(&storage, o);
    REQUIRE_OR(good == is->good, "init: %s", slab_last_error());
    if (good) check_allocator(&storage, is);
    else check_refused(is, errno);
    allocator_destroy(&storage);
    REQUIRE_OR(slab_malloc(&storage, 1) == NULL, "a destroyed or inert allocator gave memory");
    errno = 0;
    SlabAllocator* a = slab_allocator_create_with(o);
    REQUIRE_OR((a != NULL) == is->good, "create: %s", slab_last_error());
    if (a != NULL) check_allocator(a, is);
    else check_refused(is, errno);
    slab_allocator_free(a);
}

/* ---- one input -------------------------------------------------------------------------- */

static void print_environment(void) { fprintf(stderr, "  TSLAB_OPTIONS=%s\n", environment); }

static size_t take_struct_size(Input* in) {
    uint64_t how = take(in, 1);
    switch (how % 8) {
    case 0:
        return how / 8;
    case 1:
        return sizeof(SlabOptions) - how / 8;
    case 2:
        return sizeof(SlabOptions) + how / 8;
    case 3:
        return (size_t)take(in, how / 8 % 2 ? 8 : 2);
    default:
        return sizeof(SlabOptions);
    }
}

/* In memory of exactly the size that the struct claims, so that a read past it is seen. */
static SlabOptions* take_struct(Input* in, size_t* room) {
    SlabOptions o;
    memset(&o, 0, sizeof o);
    o.struct_size = take_struct_size(in);
    o.ring_size = (uint32_t)take_value(in, &fields[0]);
    o.purge_policy = (uint32_t)take_value(in, &fields[1]);
    o.reserve_bytes = take_value(in, &fields[2]);
    o.warm_bytes = take_value(in, &fields[3]);
    o.slab_bytes = (uint32_t)take_value(in, &fields[4]);
    o.prefault = (uint8_t)take_value(in, &fields[5]);
    o.misuse_fatal = (uint8_t)take_value(in, &fields[6]);
    o.leak_report = (uint8_t)take_value(in, &fields[7]);
    o.huge_pages = (uint8_t)take_value(in, &fields[11]);
    o.numa_local = (uint8_t)take_value(in, &fields[12]);
    o.segment = (uint8_t)take_value(in, &fields[14]);
    o.profile_bytes = take_value(in, &fields[15]);
    if (take(in, 1) % 4 == 1) {
        o.max_labels = (uint32_t)take_value(in, &fields[8]);
        o.max_bytes = take_value(in, &fields[9]);
        o.sampling_period = (uint32_t)take_value(in, &fields[10]);
        o.bump = (uint8_t)take_value(in, &fields[16]);
        o.warm_limit_bytes = take_value(in, &fields[17]);
        o.quiet = (uint8_t)take_value(in, &fields[18]);
        o.decay_ms = (uint32_t)take_value(in, &fields[19]);
    }
    if (take(in, 1) % 4 == 1) {
        o.shared = (uint8_t)take_value(in, &fields[13]);
        o.by_malloc = (uint8_t)take_value(in, &fields[20]);
        o.late_access = (uint8_t)take_value(in, &fields[21]);
        o.escape_stacks = (uint8_t)take_value(in, &fields[22]);
        o.guard_period = (uint32_t)take_value(in, &fields[23]);
    }
    o.reserved_[0] = take(in, 1) == 1;
    *room = o.struct_size < sizeof o.struct_size ? sizeof o.struct_size : o.struct_size;
    if (o.struct_size > STRUCT_MOST) *room = sizeof o.struct_size;
    SlabOptions* given = calloc(1, *room);
    if (given == NULL) abort();
    memcpy(given, &o, *room < sizeof o ? *room : sizeof o);
    if (*room > sizeof o && take(in, 1) % 2 == 1) ((uint8_t*)given)[sizeof o + take(in, 2) % (*room - sizeof o)] = 1;
    return given;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Input in = {data, size};
    size_t room = 0;
    check_state.last_words = print_environment;
    SlabOptions* given = take(&in, 1) % 8 != 0 ? take_struct(&in, &room) : NULL;
    take_environment(&in);
    if (environment[0] != 0) setenv("TSLAB_OPTIONS", environment, 1);
    else unsetenv("TSLAB_OPTIONS");
    Verdict is = judge(given, room);
    check_reader(given, &is);
    if (one_in(256, data, size)) check_makers(given, &is);
    free(given);
    return 0;
}
