/*
 * fuzz_profile.c - a heap profile of any tables, written as pprof and read back.
 *
 * The writer is stats/pprof.c itself, given tables, labels and mappings of the input in place of those of an
 * allocator. The harness's reader is as plain as profile.proto: it takes the messages apart and holds them to the
 * tables. Held: each number of a string, mapping or location names one that is there; each sample has as many values as
 * there are types, and the frames, labels, eras and classes of its row; sums are those of the tables, to less than one;
 * a sink that refuses is not called again, and the writer returns 0.
 */
#include "stats/pprof.c"

#include "fuzz/input.h"
#include "fuzz/text.h"

#include "daemon/text.h"
#include "slab_alloc.h"
#include "state/arena.h"
#include "api/internal.h"

enum {
    STACKS_MOST = 12,
    LIVE_MOST = 24,
    LABELS_USED = 8,
    MAPPINGS_MOST = 6,
    STRINGS_MOST = 64,
    LOCATIONS_MOST = STACKS_MOST * 32,
    KEYS_MOST = 8
};

static SlabAllocator* allocator;
static struct {
    Writer writer;
    TsiProfileStack stacks[STACKS_MOST];
    TsiProfileLive live[LIVE_MOST];
    uint32_t names[LABELS_USED + 2];
    TsiMapping mappings[MAPPINGS_MOST];
} given;

int LLVMFuzzerInitialize(int* argc, char*** argv) {
    (void)argc, (void)argv;
    SlabOptions o = {.struct_size = sizeof o, .max_labels = 64, .reserve_bytes = 64 << 20};
    allocator = slab_allocator_create_with(&o);
    REQUIRE_OR(allocator != NULL, "no allocator");
    for (unsigned n = 0; n < LABELS_USED; n++) {
        char name[TSI_LABEL_BYTES] = {(char)('a' + (char)n)};
        REQUIRE_OR(tsi_label_find(&tsi_arena(allocator)->phases.labels, name) == n + 2, "label %u", n);
    }
    return 0;
}

/* ---- tables from the input ---- */

/* What a table may hold: not negative, and below 2^53. */
static double take_weight(Input* in) {
    uint64_t v = take_number(in) >> 11;
    return (double)v / (double)(1 + take(in, 1) % 8);
}

static uint32_t take_label(Input* in) { return (uint32_t)(take(in, 1) % (LABELS_USED + 2)); }

static void take_tables(Input* in) {
    Writer* w = &given.writer;
    memset(&given, 0, sizeof given);
    w->stacks = given.stacks, w->live = given.live, w->names = given.names;
    w->arena = tsi_arena(allocator);
    for (unsigned n = 0; n < LABELS_USED; n++) {
        char *name = tsi_label(&w->arena->phases.labels, n + 2)->name, raw[TSI_LABEL_BYTES + 1] = "";
        take_bytes(in, raw, take(in, 1) % TSI_LABEL_BYTES);
        raw[0] |= raw[0] == 0 ? 'x' : 0;
        tsi_label_copy(name, raw);
    }
    w->counts = (TsiProfileCounts){.mean = 1 + (take_number(in) >> 11),
                                   .samples = take_number(in),
                                   .lost_stacks = take_number(in),
                                   .lost_live = take_number(in)};
    w->counts.escapes = take(in, 1) % 2;
    w->counts.stack_count = (uint32_t)(take(in, 1) % (STACKS_MOST + 1));
    for (uint32_t n = 0; n < w->counts.stack_count; n++) {
        TsiProfileStack* s = &given.stacks[n];
        s->label = take_label(in);
        s->maker = (uint16_t)(take(in, 1) % 4 == 0 ? take_label(in) + 1 : 0);
        s->depth = (uint16_t)(1 + take(in, 1) % TSI_PROFILE_FRAMES);
        s->objects = take_weight(in), s->bytes = take_weight(in);
        s->escaped_objects = take_weight(in), s->escaped_bytes = take_weight(in);
        for (unsigned k = 0; k < s->depth; k++) s->frames[k] = take_number(in);
    }
    if (w->counts.stack_count != 0) w->counts.live_count = (uint32_t)(take(in, 1) % (LIVE_MOST + 1));
    for (uint32_t n = 0; n < w->counts.live_count; n++) {
        given.live[n] = (TsiProfileLive){.era = take_number(in), .bytes = 1 + (take_number(in) >> 24)};
        given.live[n].stack = (uint32_t)(take(in, 1) % w->counts.stack_count);
        given.live[n].cls = (uint16_t)(1 + take(in, 2) % UINT16_MAX);
        given.live[n].escaped = take(in, 1) % 2;
    }
    unsigned mappings = (unsigned)(take(in, 1) % (MAPPINGS_MOST + 1));
    for (unsigned n = 0; n < mappings; n++) {
        TsiMapping* m = &given.mappings[n];
        m->low = take_number(in), m->high = take_number(in), m->offset = take_number(in);
        m->executable = take(in, 1) % 4 != 0;
        take_bytes(in, m->path, take(in, 1));
        (void)keep_mapping(m, w);
    }
}

/* ---- the reader ---- */

typedef struct Part {
    const uint8_t *at, *end;
} Part;

typedef struct Field {
    unsigned number, kind;
    uint64_t v; /* of kind 0 */
    Part inner; /* of kind 2 */
} Field;

static uint64_t varint(Part* p) {
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        REQUIRE_OR(p->at < p->end && shift < 64, "a number does not end");
        uint8_t byte = *p->at++;
        REQUIRE_OR(shift < 63 || byte <= 1, "a number of more than 64 bits");
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return v;
    }
}

static bool next_field(Part* p, Field* f) {
    if (p->at == p->end) return false;
    uint64_t key = varint(p);
    *f = (Field){.number = (unsigned)(key >> 3), .kind = key & 7};
    REQUIRE_OR(f->kind == 0 || f->kind == 2, "field %u has kind %u", f->number, f->kind);
    f->v = varint(p);
    if (f->kind == 0) return true;
    REQUIRE_OR(f->v <= (uint64_t)(p->end - p->at), "field %u has %llu bytes", f->number, (unsigned long long)f->v);
    f->inner = (Part){p->at, p->at + f->v};
    p->at += f->v;
    return true;
}

static struct {
    Part strings[STRINGS_MOST];
    unsigned string_count, types, mappings, locations, samples;
    struct {
        uint64_t id, address, mapping;
    } location[LOCATIONS_MOST];
    double sums[VALUES];
    uint64_t mean;
} seen;

static bool is_string(uint64_t n, const char* s, size_t most) {
    REQUIRE_OR(n < seen.string_count, "string %llu of %u", (unsigned long long)n, seen.string_count);
    size_t size = strnlen(s, most);
    return size == (size_t)(seen.strings[n].end - seen.strings[n].at) && memcmp(s, seen.strings[n].at, size) == 0;
}

static void read_location(Part p) {
    REQUIRE_OR(seen.locations < LOCATIONS_MOST, "more locations than frames");
    for (Field f; next_field(&p, &f);) {
        if (f.number == 1) seen.location[seen.locations].id = f.v;
        if (f.number == 2) seen.location[seen.locations].mapping = f.v;
        if (f.number == 3) seen.location[seen.locations].address = f.v;
    }
    uint64_t mapping = seen.location[seen.locations].mapping, id = seen.location[seen.locations].id;
    REQUIRE_OR(mapping <= seen.mappings && id != 0, "location %llu in mapping %llu", (unsigned long long)id,
               (unsigned long long)mapping);
    for (unsigned n = 0; n < seen.locations; n++)
        REQUIRE_OR(seen.location[n].id != id, "location %llu twice", (unsigned long long)id);
    if (mapping != 0) {
        const TsiMapping* m = &given.writer.mapping[mapping - 1];
        uint64_t address = seen.location[seen.locations].address;
        REQUIRE_OR(address >= m->low && address < m->high, "a location is not in its mapping");
    }
    seen.locations++;
}

static void read_mapping(Part p) {
    const TsiMapping* m = &given.writer.mapping[seen.mappings++];
    REQUIRE_OR(seen.mappings <= given.writer.mappings, "a mapping too many");
    for (Field f; next_field(&p, &f);) {
        uint64_t due[] = {0, seen.mappings, m->low, m->high, m->offset};
        REQUIRE_OR(f.number <= 5 && f.number > 0, "field %u of a mapping", f.number);
        if (f.number < 5) REQUIRE_OR(f.v == due[f.number], "field %u of a mapping", f.number);
        else REQUIRE_OR(is_string(f.v, m->path, sizeof m->path), "a mapping's path");
    }
}

static void check_label(Field* f, const TsiProfileStack* s, const TsiProfileLive* live) {
    uint64_t v[5] = {0};
    const char *label = tsi_label(&given.writer.arena->phases.labels, s->label)->name, *maker = "";
    if (s->maker != 0) maker = tsi_label(&given.writer.arena->phases.labels, s->maker - 1u)->name;
    for (Field of; next_field(&f->inner, &of);) {
        REQUIRE_OR(of.number >= 1 && of.number <= 4 && of.kind == 0, "field %u of a label", of.number);
        v[of.number] = of.v;
    }
    if (is_string(v[1], "label", 99)) REQUIRE_OR(is_string(v[2], label, TSI_LABEL_BYTES), "another label");
    else if (is_string(v[1], "maker", 99))
        REQUIRE_OR(s->maker != 0 && is_string(v[2], maker, TSI_LABEL_BYTES), "another maker");
    else if (is_string(v[1], "phase", 99))
        REQUIRE_OR(live != NULL && live->escaped && is_string(v[2], "ended", 99), "another phase");
    else if (is_string(v[1], "bytes", 99))
        REQUIRE_OR(live != NULL && v[3] == live->bytes && is_string(v[4], "bytes", 99), "bytes");
    else if (is_string(v[1], "class", 99)) REQUIRE_OR(live != NULL && v[3] == live->cls - 1u, "class");
    else if (is_string(v[1], "era", 99)) REQUIRE_OR(live != NULL && v[3] == live->era, "era");
    else FAIL("an unknown label");
}

/* Samples come in the order of the stacks, then in that of the live objects. */
static void read_sample(Part p) {
    uint32_t stacks = given.writer.counts.stack_count, n = seen.samples++;
    REQUIRE_OR(n < stacks + given.writer.counts.live_count, "a sample too many");
    const TsiProfileLive* live = n < stacks ? NULL : &given.live[n - stacks];
    const TsiProfileStack* s = &given.stacks[live != NULL ? live->stack : n];
    unsigned labels = 0;
    for (Field f; next_field(&p, &f);) {
        unsigned count = 0;
        if (f.number == 1) {
            for (; f.inner.at < f.inner.end; count++) {
                uint64_t id = varint(&f.inner);
                unsigned k = 0;
                while (k < seen.locations && seen.location[k].id != id) k++;
                REQUIRE_OR(k < seen.locations, "a sample's location %llu is nowhere", (unsigned long long)id);
                REQUIRE_OR(count < s->depth && seen.location[k].address == s->frames[count] - 1, "frame %u is another",
                           count);
            }
            REQUIRE_OR(count == s->depth, "%u frames of %u", count, s->depth);
        } else if (f.number == 2) {
            for (; f.inner.at < f.inner.end; count++) {
                uint64_t v = varint(&f.inner);
                REQUIRE_OR(count < seen.types, "more values than types");
                seen.sums[count] += (double)v;
            }
            REQUIRE_OR(count == seen.types, "%u values of %u types", count, seen.types);
        } else {
            REQUIRE_OR(f.number == 3, "field %u of a sample", f.number);
            check_label(&f, s, live);
            labels++;
        }
    }
    REQUIRE_OR(labels == 1u + (s->maker != 0) + (live != NULL ? 3 + live->escaped : 0), "%u labels", labels);
}

/* Strings first: a message may name one that stands behind it. */
static void read_strings(Part p) {
    for (Field f; next_field(&p, &f);) {
        if (f.number != STRING) continue;
        REQUIRE_OR(seen.string_count < STRINGS_MOST, "more strings than there can be");
        seen.strings[seen.string_count++] = f.inner;
    }
    REQUIRE_OR(seen.string_count != 0 && seen.strings[0].at == seen.strings[0].end, "the first string is not empty");
}

static void is_about(double v, double due, const char* what) {
    double most = 1 + due * 1e-9;
    REQUIRE_OR(v - due < most && due - v < most, "%s: %.17g, due %.17g", what, v, due);
}

static void check_sums(void) {
    const Writer* w = &given.writer;
    double due[VALUES] = {0};
    for (uint32_t n = 0; n < w->counts.stack_count; n++) {
        due[0] += given.stacks[n].objects, due[1] += given.stacks[n].bytes;
        due[4] += given.stacks[n].escaped_objects, due[5] += given.stacks[n].escaped_bytes;
    }
    for (uint32_t n = 0; n < w->counts.live_count; n++) {
        double weight = tsi_profile_weight(given.live[n].bytes, w->counts.mean);
        due[2] += weight, due[3] += weight * (double)given.live[n].bytes;
    }
    for (unsigned n = 0; n < seen.types; n++) is_about(seen.sums[n], due[n], "a sum");
}

static void read_profile(Part p) {
    memset(&seen, 0, sizeof seen);
    read_strings(p);
    for (Field f; next_field(&p, &f);) {
        if (f.number == SAMPLE_TYPE) seen.types++;
        else if (f.number == SAMPLE) read_sample(f.inner);
        else if (f.number == MAPPING) read_mapping(f.inner);
        else if (f.number == LOCATION) read_location(f.inner);
        else if (f.number == PERIOD) seen.mean = f.v;
        else if (f.number == COMMENT || f.number == DROP_FRAMES || f.number == DEFAULT_TYPE)
            REQUIRE_OR(f.v < seen.string_count, "string %llu", (unsigned long long)f.v);
        else REQUIRE_OR(f.number == STRING || f.number == PERIOD_TYPE, "field %u of a profile", f.number);
    }
    REQUIRE_OR(seen.types == (given.writer.counts.escapes ? 6 : 4), "%u types", seen.types);
    REQUIRE_OR(seen.mappings == given.writer.mappings, "mappings are missing");
    REQUIRE_OR(seen.samples == given.writer.counts.stack_count + given.writer.counts.live_count, "samples are missing");
    REQUIRE_OR(seen.mean == given.writer.counts.mean, "another period");
    check_sums();
}

/* ---- one input ---- */

typedef struct Sink {
    struct text text;
    size_t most;
    bool refused;
} Sink;

static bool sink(void* ctx, const char* bytes, size_t n) {
    Sink* s = ctx;
    REQUIRE_OR(!s->refused, "a sink that has refused is called again");
    if (s->text.size + n > s->most) return s->refused = true, false;
    return text_write(&s->text, bytes, n);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Input in = {data, size};
    uint64_t how = take(&in, 1);
    Sink to = {.text.limit = 1 << 20, .most = how % 8 == 7 ? take(&in, 2) : SIZE_MAX};
    take_tables(&in);
    tsi_out_begin(&given.writer.out, sink, &to);
    write_all(&given.writer);
    bool all = tsi_out_end(&given.writer.out);
    REQUIRE_OR(all == !to.refused && !to.text.failed, "all was taken: %d", all);
    if (all) {
        REQUIRE_OR(given.writer.written == to.text.size, "%zu bytes written, %zu told", to.text.size,
                   given.writer.written);
        read_profile((Part){(const uint8_t*)to.text.bytes, (const uint8_t*)to.text.bytes + to.text.size});
    }
    free(to.text.bytes);
    return 0;
}
