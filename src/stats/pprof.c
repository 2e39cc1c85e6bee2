/*
 * pprof.c - see pprof.h.
 *
 * Strings are numbered as they are written: the fixed ones first, then mappings, comments and names of labels, each
 * before its first use. A location is a stack's frame: its id is the stack's number and the frame's. A message inside a
 * message is gathered in a small buffer, because its length comes first.
 */
#include "stats/pprof.h"

#include "observe/profile.h"
#include "stats/out.h"

#include <string.h>

enum { MAPPINGS = 256, VALUES = 6 /* the last two with the option escape_stacks */ };
/* Fields of Profile. */
enum {
    SAMPLE_TYPE = 1,
    SAMPLE,
    MAPPING,
    LOCATION,
    STRING = 6,
    DROP_FRAMES,
    PERIOD_TYPE = 11,
    PERIOD,
    COMMENT,
    DEFAULT_TYPE
};
/* The first strings; 0 is the empty one. */
enum {
    NONE,
    ALLOC_OBJECTS,
    COUNT,
    ALLOC_SPACE,
    BYTES,
    INUSE_OBJECTS,
    INUSE_SPACE,
    SPACE,
    LABEL,
    MAKER,
    ERA,
    CLASS,
    ESCAPED_OBJECTS,
    ESCAPED_SPACE,
    PHASE,
    ENDED,
    FIXED
};
static const char* const fixed[FIXED] = {
    "",      "alloc_objects", "count", "alloc_space", "bytes",           "inuse_objects", "inuse_space", "space",
    "label", "maker",         "era",   "class",       "escaped_objects", "escaped_space", "phase",       "ended"};

/* Functions of the library that allocate: readers leave them out, with all that they call. tslab has the same. */
static const char ours[] = "(slab|epoch_domain|slab_lane|slab_run)_(malloc0?|calloc|realloc|reallocarray|aligned_alloc|"
                           "memdup|strn?dup|v?asprintf|array|array_add|move|alloc_obj)(_[a-z]+)*|"
                           "alloc_obj(_[a-z]+)*|ts[ip]_[a-z_]+(\\.[a-z0-9.]+)?";

typedef struct Message {
    size_t n;
    uint8_t bytes[1024]; /* more than any: a sample has 32 locations of 3 bytes, a mapping a few numbers */
} Message;

typedef struct Writer {
    TsiOut out;
    size_t written;
    uint64_t strings;             /* written so far */
    TsiMapping mapping[MAPPINGS]; /* of code, from files */
    unsigned mappings;
    TsiProfileCounts counts;
    TsiProfileStack* stacks;
    TsiProfileLive* live;
    uint32_t* names; /* string of a label's record, 0: not written yet */
    TsiArena* arena;
} Writer;

static void put_varint(Message* m, uint64_t v) {
    if (m->n + 10 > sizeof m->bytes) return;
    for (; v >= 0x80; v >>= 7) m->bytes[m->n++] = (uint8_t)(v | 0x80);
    m->bytes[m->n++] = (uint8_t)v;
}
static void put_number(Message* m, unsigned field, uint64_t v) {
    put_varint(m, field << 3);
    put_varint(m, v);
}
static void put_message(Message* m, unsigned field, const Message* inner) {
    put_varint(m, field << 3 | 2);
    put_varint(m, inner->n);
    if (m->n + inner->n > sizeof m->bytes) return;
    memcpy(m->bytes + m->n, inner->bytes, inner->n);
    m->n += inner->n;
}

static void emit(Writer* w, const void* bytes, size_t n) {
    tsi_out_bytes(&w->out, bytes, n);
    w->written += n;
}
static void emit_bytes(Writer* w, unsigned field, const void* bytes, size_t n) {
    Message head;
    head.n = 0;
    put_varint(&head, field << 3 | 2);
    put_varint(&head, n);
    emit(w, head.bytes, head.n);
    emit(w, bytes, n);
}
static void emit_message(Writer* w, unsigned field, const Message* m) { emit_bytes(w, field, m->bytes, m->n); }
static void emit_number(Writer* w, unsigned field, uint64_t v) {
    Message m;
    m.n = 0;
    put_number(&m, field, v);
    emit(w, m.bytes, m.n);
}
static uint64_t emit_string(Writer* w, const char* s, size_t n) {
    emit_bytes(w, STRING, s, n);
    return w->strings++;
}

static void emit_type(Writer* w, unsigned field, unsigned type, unsigned unit) {
    Message m = {.n = 0};
    put_number(&m, 1, type);
    put_number(&m, 2, unit);
    emit_message(w, field, &m);
}

static bool keep_mapping(const TsiMapping* map, void* ctx) {
    Writer* w = ctx;
    if (map->executable && map->path[0] != 0) w->mapping[w->mappings++] = *map;
    return w->mappings < MAPPINGS;
}

static void emit_mappings(Writer* w) {
    for (unsigned n = 0; n < w->mappings && w->out.ok; n++) {
        const TsiMapping* map = &w->mapping[n];
        uint64_t name = emit_string(w, map->path, strlen(map->path));
        Message m = {.n = 0};
        put_number(&m, 1, n + 1);
        put_number(&m, 2, map->low);
        put_number(&m, 3, map->high);
        put_number(&m, 4, map->offset);
        put_number(&m, 5, name);
        emit_message(w, MAPPING, &m);
    }
}

static void emit_comment(Writer* w, uint64_t n, const char* what) {
    char text[128], digits[20];
    size_t used = 0, k = 0;
    if (n == 0) return;
    do digits[k++] = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    while (k != 0) text[used++] = digits[--k];
    size_t length = strlen(what);
    memcpy(text + used, what, length);
    emit_number(w, COMMENT, emit_string(w, text, used + length));
}

static uint64_t location(uint32_t stack, unsigned frame) { return (uint64_t)stack * TSI_PROFILE_FRAMES + frame + 1; }

static void emit_locations(Writer* w, uint32_t stack) {
    const TsiProfileStack* s = &w->stacks[stack];
    for (unsigned n = 0; n < s->depth; n++) {
        uintptr_t call = s->frames[n] - 1; /* of a return address: in the call */
        Message m = {.n = 0};
        put_number(&m, 1, location(stack, n));
        for (unsigned k = 0; k < w->mappings; k++)
            if (call >= w->mapping[k].low && call < w->mapping[k].high) put_number(&m, 2, k + 1);
        put_number(&m, 3, call);
        emit_message(w, LOCATION, &m);
    }
}

static uint64_t name_of(Writer* w, uint32_t label) {
    if (w->names[label] == 0) {
        const char* name = tsi_label(&w->arena->phases.labels, label)->name;
        w->names[label] = (uint32_t)emit_string(w, name, strnlen(name, TSI_LABEL_BYTES));
    }
    return w->names[label];
}

static void put_label(Message* m, unsigned key, unsigned kind, uint64_t v, unsigned unit) {
    Message label = {.n = 0};
    put_number(&label, 1, key);
    put_number(&label, kind, v);
    if (unit != NONE) put_number(&label, 4, unit);
    put_message(m, 3, &label);
}

/* live: NULL for what was allocated. */
static void emit_sample(Writer* w, uint32_t stack, const uint64_t values[VALUES], const TsiProfileLive* live) {
    const TsiProfileStack* s = &w->stacks[stack];
    uint64_t name = name_of(w, s->label), maker = s->maker != 0 ? name_of(w, s->maker - 1u) : NONE;
    Message m = {.n = 0}, packed = {.n = 0};
    for (unsigned n = 0; n < s->depth; n++) put_varint(&packed, location(stack, n));
    put_message(&m, 1, &packed);
    packed.n = 0;
    for (unsigned n = 0; n < (w->counts.escapes ? VALUES : 4); n++) put_varint(&packed, values[n]);
    put_message(&m, 2, &packed);
    put_label(&m, LABEL, 2, name, NONE);
    if (maker != NONE) put_label(&m, MAKER, 2, maker, NONE);
    if (live != NULL) {
        put_label(&m, BYTES, 3, live->bytes, BYTES);
        put_label(&m, CLASS, 3, live->cls - 1, NONE);
        put_label(&m, ERA, 3, live->era, NONE);
        if (live->escaped) put_label(&m, PHASE, 2, ENDED, NONE);
    }
    emit_message(w, SAMPLE, &m);
}

/* Values are whole numbers, weights are not: what is cut off one goes to the next. */
static uint64_t whole(double v, double* owed) {
    *owed += v;
    uint64_t n = (uint64_t)*owed;
    *owed -= (double)n;
    return n;
}

static void write_all(Writer* w) {
    double owed[VALUES] = {0, 0, 0, 0, 0, 0};
    for (unsigned n = 0; n < FIXED; n++) (void)emit_string(w, fixed[n], strlen(fixed[n]));
    emit_type(w, SAMPLE_TYPE, ALLOC_OBJECTS, COUNT);
    emit_type(w, SAMPLE_TYPE, ALLOC_SPACE, BYTES);
    emit_type(w, SAMPLE_TYPE, INUSE_OBJECTS, COUNT);
    emit_type(w, SAMPLE_TYPE, INUSE_SPACE, BYTES);
    if (w->counts.escapes) {
        emit_type(w, SAMPLE_TYPE, ESCAPED_OBJECTS, COUNT);
        emit_type(w, SAMPLE_TYPE, ESCAPED_SPACE, BYTES);
    }
    emit_number(w, DEFAULT_TYPE, INUSE_SPACE);
    emit_type(w, PERIOD_TYPE, SPACE, BYTES);
    emit_number(w, PERIOD, w->counts.mean);
    emit_number(w, DROP_FRAMES, emit_string(w, ours, sizeof ours - 1));
    emit_mappings(w);
    emit_comment(w, w->counts.samples, " samples since the allocator was made");
    emit_comment(w, w->counts.lost_stacks, " samples lost: more stacks than the table holds");
    emit_comment(w, w->counts.lost_live, " samples not followed: more live ones than the table holds");
    for (uint32_t n = 0; n < w->counts.stack_count && w->out.ok; n++) {
        const TsiProfileStack* s = &w->stacks[n];
        uint64_t values[VALUES] = {whole(s->objects, &owed[0]), whole(s->bytes, &owed[1]), 0, 0};
        values[4] = whole(s->escaped_objects, &owed[4]);
        values[5] = whole(s->escaped_bytes, &owed[5]);
        emit_locations(w, n);
        emit_sample(w, n, values, NULL);
    }
    for (uint32_t n = 0; n < w->counts.live_count && w->out.ok; n++) {
        const TsiProfileLive* l = &w->live[n];
        double weight = tsi_profile_weight(l->bytes, w->counts.mean);
        uint64_t values[VALUES] = {0, 0, whole(weight, &owed[2]), whole(weight * (double)l->bytes, &owed[3])};
        emit_sample(w, l->stack, values, l);
    }
}

size_t tsi_pprof_write(TsiArena* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    const size_t stacks = TSI_PROFILE_STACKS * sizeof(TsiProfileStack),
                 live = TSI_PROFILE_LIVE * sizeof(TsiProfileLive);
    const size_t bytes = sizeof(Writer) + stacks + live + TSI_LABELS_MAX * sizeof(uint32_t);
    Writer* w = tsi_os_map(bytes);
    if (w == NULL) return 0;
    w->stacks = (TsiProfileStack*)(void*)(w + 1);
    w->live = (TsiProfileLive*)(void*)(w->stacks + TSI_PROFILE_STACKS);
    w->names = (uint32_t*)(void*)(w->live + TSI_PROFILE_LIVE);
    w->arena = a;
    tsi_profile_copy(a, w->stacks, w->live, &w->counts);
    tsi_os.each_mapping(keep_mapping, w); /* not while `write` is called */
    tsi_out_begin(&w->out, write, ctx);
    write_all(w);
    size_t written = tsi_out_end(&w->out) ? w->written : 0;
    tsi_os_drop(w, bytes);
    return written;
}
