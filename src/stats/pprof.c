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

#include <stdio.h>
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
/* The first strings, numbered from 0, which is the empty one. */
#define STRINGS(EACH)                        \
    EACH(NONE, "")                           \
    EACH(ALLOC_OBJECTS, "alloc_objects")     \
    EACH(COUNT, "count")                     \
    EACH(ALLOC_SPACE, "alloc_space")         \
    EACH(BYTES, "bytes")                     \
    EACH(INUSE_OBJECTS, "inuse_objects")     \
    EACH(INUSE_SPACE, "inuse_space")         \
    EACH(SPACE, "space")                     \
    EACH(LABEL, "label")                     \
    EACH(MAKER, "maker")                     \
    EACH(ERA, "era")                         \
    EACH(CLASS, "class")                     \
    EACH(ESCAPED_OBJECTS, "escaped_objects") \
    EACH(ESCAPED_SPACE, "escaped_space") EACH(PHASE, "phase") EACH(ENDED, "ended")
#define NUMBER(name, text) name,
#define TEXT(name, text) text,
enum { STRINGS(NUMBER) FIXED };
static const char* const fixed[FIXED] = {STRINGS(TEXT)};

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

/* Adds v to a message, 7 bits a byte; does nothing if fewer than 10 bytes are left. [no other user of message] */
static void put_varint(Message* message, uint64_t v) {
    if (message->n + 10 > sizeof message->bytes) return;
    for (; v >= 0x80; v >>= 7) message->bytes[message->n++] = (uint8_t)(v | 0x80);
    message->bytes[message->n++] = (uint8_t)v;
}

/* Adds the field number `field` with the value v to a message. [no other user of message] */
static void put_number(Message* message, unsigned field, uint64_t v) {
    put_varint(message, field << 3);
    put_varint(message, v);
}

/* Adds the field number `field` with the message *inner in it to a message. Adds nothing of *inner if there is no room
 * for all of it: messages must be larger than what is put there. [no other user of message] */
static void put_message(Message* message, unsigned field, const Message* inner) {
    put_varint(message, field << 3 | 2);
    put_varint(message, inner->n);
    if (message->n + inner->n > sizeof message->bytes) return;
    memcpy(message->bytes + message->n, inner->bytes, inner->n);
    message->n += inner->n;
}

/* Writes n bytes and adds n to writer->written, whether `write` takes them or not. [no other user of writer] */
static void emit(Writer* writer, const void* bytes, size_t n) {
    tsi_out_bytes(&writer->out, bytes, n);
    writer->written += n;
}

/* Writes the field number `field` of the profile with n bytes: its key, the length n as a varint, and the bytes as
 * they are. [no other user of writer] */
static void emit_bytes(Writer* writer, unsigned field, const void* bytes, size_t n) {
    Message head;
    head.n = 0;
    put_varint(&head, field << 3 | 2);
    put_varint(&head, n);
    emit(writer, head.bytes, head.n);
    emit(writer, bytes, n);
}

/* Writes the field number `field` of the profile with a message. [no other user of writer] */
static void emit_message(Writer* writer, unsigned field, const Message* message) {
    emit_bytes(writer, field, message->bytes, message->n);
}

/* Writes the field number `field` of the profile with the value v as a varint. [no other user of writer] */
static void emit_number(Writer* writer, unsigned field, uint64_t v) {
    Message message;
    message.n = 0;
    put_number(&message, field, v);
    emit(writer, message.bytes, message.n);
}

/* Writes a string of n bytes, without a 0, and counts it. Returns its number, by which fields refer to it.
 * [no other user of writer] */
static uint64_t emit_string(Writer* writer, const char* s, size_t n) {
    emit_bytes(writer, STRING, s, n);
    return writer->strings++;
}

/* Writes the field number `field` with a ValueType: type and unit, as numbers of strings. [no other user of writer] */
static void emit_type(Writer* writer, unsigned field, unsigned type, unsigned unit) {
    Message message = {.n = 0};
    put_number(&message, 1, type);
    put_number(&message, 2, unit);
    emit_message(writer, field, &message);
}

/* Copies *map into the Writer ctx, if it is of code from a file; there is room for it. Returns true; false, which ends
 * the walk over mappings, when there is no room for more. [no other user of ctx] */
static bool keep_mapping(const TsiMapping* map, void* ctx) {
    Writer* writer = ctx;
    if (map->executable && map->path[0] != 0) writer->mapping[writer->mappings++] = *map;
    return writer->mappings < MAPPINGS;
}

/* Writes the mappings that keep_mapping has kept, numbered from 1, each after the string of its file: bounds, offset
 * in the file, and that string's number. [no other user of writer] */
static void emit_mappings(Writer* writer) {
    for (unsigned n = 0; n < writer->mappings && writer->out.ok; n++) {
        const TsiMapping* map = &writer->mapping[n];
        uint64_t name = emit_string(writer, map->path, strlen(map->path));
        Message message = {.n = 0};
        put_number(&message, 1, n + 1);
        put_number(&message, 2, map->low);
        put_number(&message, 3, map->high);
        put_number(&message, 4, map->offset);
        put_number(&message, 5, name);
        emit_message(writer, MAPPING, &message);
    }
}

/* Writes a comment, n in decimal followed by the text `what`, as a string and its number; nothing if n is 0.
 * [no other user of writer] */
static void emit_comment(Writer* writer, uint64_t n, const char* what) {
    char text[128];
    if (n == 0) return;
    int length = snprintf(text, sizeof text, "%llu%s", (unsigned long long)n, what);
    emit_number(writer, COMMENT, emit_string(writer, text, (size_t)length));
}

/* Returns the id of the frame number `frame`, from 0, of the stack number `stack`: at least 1.
 * [any thread, needs no lock] */
static uint64_t location(uint32_t stack, unsigned frame) { return (uint64_t)stack * TSI_PROFILE_FRAMES + frame + 1; }

/* Writes the locations of the stack number `stack`, one a frame, with the ids of `location`, the address of the call,
 * and the number of the mapping that has its code, if keep_mapping has kept that. [no other user of writer] */
static void emit_locations(Writer* writer, uint32_t stack) {
    const TsiProfileStack* callers = &writer->stacks[stack];
    for (unsigned n = 0; n < callers->depth; n++) {
        uintptr_t call = callers->frames[n] - 1; /* of a return address: in the call */
        Message message = {.n = 0};
        put_number(&message, 1, location(stack, n));
        for (unsigned k = 0; k < writer->mappings; k++)
            if (call >= writer->mapping[k].low && call < writer->mapping[k].high) put_number(&message, 2, k + 1);
        put_number(&message, 3, call);
        emit_message(writer, LOCATION, &message);
    }
}

/* Returns the number of the string with the name of the label with the record `label`; at its first use writes the
 * string and sets writer->names[label] to its number. Strings of a message that is begun must come first.
 * [no other user of writer] */
static uint64_t name_of(Writer* writer, uint32_t label) {
    if (writer->names[label] == 0) {
        const char* name = tsi_label(&writer->arena->phases.labels, label)->name;
        writer->names[label] = (uint32_t)emit_string(writer, name, strnlen(name, TSI_LABEL_BYTES));
    }
    return writer->names[label];
}

/* Adds a label to a sample: the string number `key`, and v, a string's number (kind 2) or a number (kind 3) in `unit`,
 * a string's number or NONE. [no other user of message] */
static void put_label(Message* message, unsigned key, unsigned kind, uint64_t v, unsigned unit) {
    Message label = {.n = 0};
    put_number(&label, 1, key);
    put_number(&label, kind, v);
    if (unit != NONE) put_number(&label, 4, unit);
    put_message(message, 3, &label);
}

/* Writes a sample: values (four of them without escapes), the locations of the stack number `stack`, and labels: the
 * label's name, and the maker's if there is one. live: the object of the sample, whose size, class, era and, if it has
 * escaped, phase are labels, too; or NULL for what was allocated. Writes names of labels first where they are new.
 * [no other user of writer] */
static void emit_sample(Writer* writer, uint32_t stack, const uint64_t values[VALUES], const TsiProfileLive* live) {
    const TsiProfileStack* callers = &writer->stacks[stack];
    uint64_t name = name_of(writer, callers->label),
             maker = callers->maker != 0 ? name_of(writer, callers->maker - 1u) : NONE;

    Message message = {.n = 0}, packed = {.n = 0};
    for (unsigned n = 0; n < callers->depth; n++) put_varint(&packed, location(stack, n));
    put_message(&message, 1, &packed);
    packed.n = 0;
    for (unsigned n = 0; n < (writer->counts.escapes ? VALUES : 4); n++) put_varint(&packed, values[n]);
    put_message(&message, 2, &packed);

    put_label(&message, LABEL, 2, name, NONE);
    if (maker != NONE) put_label(&message, MAKER, 2, maker, NONE);
    if (live != NULL) {
        put_label(&message, BYTES, 3, live->bytes, BYTES);
        put_label(&message, CLASS, 3, live->cls - 1, NONE);
        put_label(&message, ERA, 3, live->era, NONE);
        if (live->escaped) put_label(&message, PHASE, 2, ENDED, NONE);
    }
    emit_message(writer, SAMPLE, &message);
}

/* Returns the whole part of v and *owed together, and sets *owed to the rest, which is added to the next value: values
 * are whole numbers, weights are not. *owed is 0 before the first call. [any thread, needs no lock] */
static uint64_t whole(double v, double* owed) {
    *owed += v;
    uint64_t n = (uint64_t)*owed;
    *owed -= (double)n;
    return n;
}

/* Writes the profile, from the copies in the writer, whose output tsi_out_begin has begun: types, mappings, comments
 * on lost samples, then a sample for each stack and for each live object. Fractions of a sample's figures go to the
 * next sample's. Ends early if `write` refuses; tsi_out_end then tells. [no other user of writer] */
static void write_all(Writer* writer) {
    double owed[VALUES] = {0, 0, 0, 0, 0, 0};
    for (unsigned n = 0; n < FIXED; n++) (void)emit_string(writer, fixed[n], strlen(fixed[n]));
    emit_type(writer, SAMPLE_TYPE, ALLOC_OBJECTS, COUNT);
    emit_type(writer, SAMPLE_TYPE, ALLOC_SPACE, BYTES);
    emit_type(writer, SAMPLE_TYPE, INUSE_OBJECTS, COUNT);
    emit_type(writer, SAMPLE_TYPE, INUSE_SPACE, BYTES);
    if (writer->counts.escapes) {
        emit_type(writer, SAMPLE_TYPE, ESCAPED_OBJECTS, COUNT);
        emit_type(writer, SAMPLE_TYPE, ESCAPED_SPACE, BYTES);
    }

    emit_number(writer, DEFAULT_TYPE, INUSE_SPACE);
    emit_type(writer, PERIOD_TYPE, SPACE, BYTES);
    emit_number(writer, PERIOD, writer->counts.mean);
    emit_number(writer, DROP_FRAMES, emit_string(writer, ours, sizeof ours - 1));
    emit_mappings(writer);
    emit_comment(writer, writer->counts.samples, " samples since the allocator was made");
    emit_comment(writer, writer->counts.lost_stacks, " samples lost: more stacks than the table holds");
    emit_comment(writer, writer->counts.lost_live, " samples not followed: more live ones than the table holds");

    for (uint32_t n = 0; n < writer->counts.stack_count && writer->out.ok; n++) {
        const TsiProfileStack* stack = &writer->stacks[n];
        uint64_t values[VALUES] = {whole(stack->objects, &owed[0]), whole(stack->bytes, &owed[1]), 0, 0};
        values[4] = whole(stack->escaped_objects, &owed[4]);
        values[5] = whole(stack->escaped_bytes, &owed[5]);
        emit_locations(writer, n);
        emit_sample(writer, n, values, NULL);
    }

    for (uint32_t n = 0; n < writer->counts.live_count && writer->out.ok; n++) {
        const TsiProfileLive* live = &writer->live[n];
        double weight = tsi_profile_weight(live->bytes, writer->counts.mean);
        uint64_t values[VALUES] = {0, 0, whole(weight, &owed[2]), whole(weight * (double)live->bytes, &owed[3])};
        emit_sample(writer, live->stack, values, live);
    }
}

size_t tsi_pprof_write(TsiArena* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    const size_t stacks = TSI_PROFILE_STACKS * sizeof(TsiProfileStack),
                 live = TSI_PROFILE_LIVE * sizeof(TsiProfileLive);
    const size_t bytes = sizeof(Writer) + stacks + live + TSI_LABELS_MAX * sizeof(uint32_t);
    Writer* writer = tsi_os_map(bytes);
    if (writer == NULL) return 0;

    writer->stacks = (TsiProfileStack*)(void*)(writer + 1);
    writer->live = (TsiProfileLive*)(void*)(writer->stacks + TSI_PROFILE_STACKS);
    writer->names = (uint32_t*)(void*)(writer->live + TSI_PROFILE_LIVE);
    writer->arena = a;

    tsi_profile_copy(a, writer->stacks, writer->live, &writer->counts);
    tsi_os.each_mapping(keep_mapping, writer); /* not while `write` is called */
    tsi_out_begin(&writer->out, write, ctx);
    write_all(writer);
    size_t written = tsi_out_end(&writer->out) ? writer->written : 0;
    tsi_os_drop(writer, bytes);
    return written;
}
