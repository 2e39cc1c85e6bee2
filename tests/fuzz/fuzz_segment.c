/*
 * fuzz_segment.c - a damaged segment, as the reader of another process's statistics meets it.
 *
 * The template is what an allocator has published, with some metrics of each section and form; one input in 256 has all
 * of them, and one in 32 is also read as text. An input is a list of changes to it: a place, which is mostly a word
 * that decides something, and a value. Or it is the file itself, byte by byte. The file lies in memory of exactly its
 * length, so that AddressSanitizer sees a read beyond it; the reader's copies are checked here, pointer by pointer.
 *
 * Held: a refusal has an errno value and a sentence; what is not refused stays within its tables; what was read twice
 * is the same both times; text made of a damaged copy is still JSON in UTF-8, and a page of Prometheus.
 */
#define _GNU_SOURCE
#include "api/segment.h"

#include "fuzz/input.h"
#include "fuzz/text.h"

#include "api/internal.h"
#include "daemon/text.h"
#include "epoch_domain.h"
#include "slab_stats.h"
#include "stats/metrics.h"

#include <sys/mman.h>

enum { CHANGES = 24, WORDS_OF_CHANGE = 32, METRICS_OF_SECTION = 4, SLOTS_READ = 4, VALUES_READ = 16 };

typedef struct Template {
    uint8_t* bytes;
    size_t size;
    SlabSegmentHeader header;
    size_t buffer; /* of the publication */
    size_t buffer_bytes;
} Template;

static Template small, whole;
static TsiProcess process;

/* ---- the template ---- */

static void* phase(void* arg) {
    SlabAllocator* a = arg;
    epoch_domain_t* d = epoch_domain_begin(a, "GET /users");
    for (size_t n = 0; n < 100; n++) REQUIRE_OR(slab_malloc(a, 16 + n) != NULL, "no object");
    REQUIRE_OR(d != NULL && epoch_domain_drain(d, NULL), "no drain");
    return NULL;
}

static SlabSegment* published(void) {
    SlabOptions o = {.struct_size = sizeof o, .segment = 1, .max_labels = 16, .reserve_bytes = 64 << 20};
    SlabAllocator* a = slab_allocator_create_with(&o);
    REQUIRE_OR(a != NULL, "no allocator: %s", slab_last_error());
    (void)phase(a);
    slab_free(a, &o); /* a refusal */
    REQUIRE_OR(slab_stats_publish(a), "nothing is published: %s", slab_last_error());
    SlabSegment* s = slab_segment_open((uint32_t)getpid());
    REQUIRE_OR(s != NULL, "no segment: %s", slab_last_error());
    return s;
}

static uint8_t* exactly(size_t size) {
    uint8_t* p = calloc(1, size);
    REQUIRE_OR(p != NULL, "no memory");
    return p;
}

/* A file with the chosen metrics: header, tables, one slot whose two buffers are the publication's, once. */
static Template template_of(const SlabSegment* s, const uint32_t* chosen, uint32_t count) {
    Template t = {.header = s->header, .buffer_bytes = s->copy_bytes};
    size_t at = sizeof t.header;
    t.header.scopes = (SlabSegmentTable){at, s->scope_count, sizeof(SlabSegmentScope)};
    at += s->scope_count * sizeof(SlabSegmentScope);
    t.header.metrics = (SlabSegmentTable){at, count, sizeof(SlabSegmentMetric)};
    at += count * sizeof(SlabSegmentMetric);
    t.header.slots = (SlabSegmentTable){at, 2, sizeof(SlabSegmentSlot)};
    at += 2 * sizeof(SlabSegmentSlot);
    t.buffer = at;
    t.size = at + t.buffer_bytes;
    t.header.total_bytes = t.size;

    SlabSegmentSlot slot, none = {0};
    REQUIRE_OR(tsi_segment_copy(s, s->header.slots.offset, &slot, sizeof slot), "no slot");
    slot.buffer[0] = slot.buffer[1] = t.buffer;
    slot.buffer_bytes = t.buffer_bytes;
    t.bytes = exactly(t.size);
    memcpy(t.bytes, &t.header, sizeof t.header);
    memcpy(t.bytes + t.header.scopes.offset, s->scopes, s->scope_count * sizeof *s->scopes);
    for (uint32_t n = 0; n < count; n++)
        memcpy(t.bytes + t.header.metrics.offset + n * sizeof *s->metrics, &s->metrics[chosen[n]], sizeof *s->metrics);
    memcpy(t.bytes + t.header.slots.offset, &slot, sizeof slot);
    memcpy(t.bytes + t.header.slots.offset + sizeof slot, &none, sizeof none);
    memcpy(t.bytes + t.buffer, s->copy, t.buffer_bytes);
    return t;
}

/* Scopes hold as many rows as they have, so that files are short. */
static void tighten(SlabSegment* s) {
    size_t at = sizeof(SlabSegmentBuffer) + s->scope_count * sizeof(SlabSegmentRows);
    for (uint32_t n = 0; n < s->scope_count; n++) {
        SlabSegmentScope* scope = &s->scopes[n];
        SlabSegmentRows* rows = (SlabSegmentRows*)(void*)((char*)s->copy + sizeof(SlabSegmentBuffer)) + n;
        if (rows->count > 3) rows->left_out += rows->count - 3, rows->count = 3;
        memmove((char*)s->copy + at, (char*)s->copy + scope->offset, rows->count * scope->row_bytes);
        scope->offset = at;
        scope->capacity = (uint32_t)rows->count;
        at += rows->count * scope->row_bytes;
    }
    s->copy_bytes = at;
}

int LLVMFuzzerInitialize(int* argc, char*** argv) {
    static uint32_t all[TSI_METRICS], some[TSI_METRICS], of_scope[64];
    uint32_t count = 0;
    (void)argc, (void)argv;
    SlabSegment* s = published();
    REQUIRE_OR(slab_segment_read(s, 0, NULL) == SLAB_SEGMENT_OK && s->metric_count == TSI_METRICS, "no publication");
    tighten(s);
    for (uint32_t n = 0; n < TSI_METRICS; n++) {
        const SlabSegmentMetric* m = &s->metrics[n];
        bool special = m->type == SLAB_SEGMENT_STRING || m->type == SLAB_SEGMENT_F64 || strcmp(m->name, "count") == 0 ||
                       strcmp(m->name, "label_id") == 0 || strstr(m->name, "_ns") != NULL;
        all[n] = n;
        if (special || of_scope[m->scope]++ < METRICS_OF_SECTION) some[count++] = n;
    }
    whole = template_of(s, all, TSI_METRICS);
    small = template_of(s, some, count);
    REQUIRE_OR(tsi_process_poll((uint32_t)getpid(), &process), "no process");
    slab_segment_close(s);
    return 0;
}

/* ---- the changes ---- */

static size_t within(uint64_t n, size_t size) { return (size_t)(n % (size / 8)) * 8; }

/* A place in the file, as a multiple of 8 bytes, and of how many bytes what is there. */
static size_t take_place(Input* in, const Template* t) {
    uint64_t how = take(in, 1), row = take(in, 1);
    size_t scopes = t->header.scopes.count * sizeof(SlabSegmentScope),
           metrics = t->header.metrics.count * sizeof(SlabSegmentMetric);
    switch (how % 8) {
    case 0: /* the header, and places of its tables */
        return within(row, sizeof(SlabSegmentHeader));
    case 1: /* numbers of a scope, and its texts */
        return t->header.scopes.offset + row % t->header.scopes.count * sizeof(SlabSegmentScope) + 112 +
               within(how / 8, 24);
    case 2:
        return t->header.scopes.offset + within(row << 8 | take(in, 1), scopes);
    case 3: /* numbers of a metric */
        return t->header.metrics.offset + row % t->header.metrics.count * sizeof(SlabSegmentMetric) + 320 +
               within(how / 8, 24);
    case 4:
        return t->header.metrics.offset + within(row << 8 | take(in, 1), metrics);
    case 5:
        return t->header.slots.offset + within(row, 2 * sizeof(SlabSegmentSlot));
    case 6: /* number, serial, and counts of rows */
        return t->buffer + within(row, sizeof(SlabSegmentBuffer) + t->header.scopes.count * sizeof(SlabSegmentRows));
    default:
        return t->buffer + within(row << 8 | take(in, 1), t->buffer_bytes);
    }
}

static size_t take_change(Input* in, const Template* t, uint8_t* value) {
    uint64_t how = take(in, 1), v = take_number(in), was;
    memcpy(&was, value, 8);
    switch (how % 6) {
    case 0: /* half a word */
        memcpy(value + how / 8 % 2 * 4, &v, 4);
        return 8;
    case 1: /* a size or place of this file, about */
        v = (how & 8 ? t->size : t->buffer) + v % 64 * 8 - 256;
        break;
    case 2:
        v = was + v % 33 - 16;
        break;
    case 3: /* a text without its end */
        memset(value, (int)(how / 8 % 2 ? v : 'x'), 8);
        return 8;
    case 4:
        v = was ^ (uint64_t)1 << v % 64;
        break;
    default:
        break;
    }
    memcpy(value, &v, 8);
    return 8;
}

/* ---- reading ---- */

/* A value lies in its row, and the row in the copy. */
static void in_row(const SlabSegment* s, uint32_t metric, uint32_t row, const void* p, size_t bytes) {
    const SlabSegmentScope* scope = &s->scopes[s->metrics[metric].scope];
    const char *copy = (const char*)s->copy, *from = copy + scope->offset + (size_t)row * scope->row_bytes, *at = p;
    REQUIRE_OR(at >= from && bytes <= scope->row_bytes && at + bytes <= from + scope->row_bytes,
               "a value of %zu bytes at %td of a row of %u", bytes, at - from, scope->row_bytes);
    REQUIRE_OR(from + scope->row_bytes <= copy + s->copy_bytes, "row %u is not in the copy", row);
}

static uint64_t look_at_value(const SlabSegment* s, uint32_t metric, uint32_t row) {
    SlabSegmentValue v;
    uint64_t sum = 0;
    if (!slab_segment_value(s, metric, row, &v)) return 0;
    if (v.text != NULL) {
        size_t n = strnlen(v.text, s->metrics[metric].bytes);
        REQUIRE_OR(n < s->metrics[metric].bytes, "a text does not end");
        in_row(s, metric, row, v.text, n + 1);
        for (size_t i = 0; i < n; i++) sum += (unsigned char)v.text[i];
    }
    if (v.counts != NULL) {
        in_row(s, metric, row, v.counts, v.entries * sizeof *v.counts);
        for (uint32_t i = 0; i < v.entries; i++) sum += v.counts[i];
    }
    if (v.text == NULL && v.counts == NULL) {
        uint64_t word;
        in_row(s, metric, row,
               (const char*)s->copy + s->scopes[s->metrics[metric].scope].offset +
                   (size_t)row * s->scopes[s->metrics[metric].scope].row_bytes + s->metrics[metric].offset,
               sizeof word);
    }
    return sum + v.u;
}

static uint64_t look_at_rows(const SlabSegment* s) {
    uint64_t sum = 0;
    for (uint32_t m = 0; m < s->metric_count && m < 4096; m++) {
        uint64_t rows = slab_segment_rows(s, s->metrics[m].scope).count;
        REQUIRE_OR(rows <= s->scopes[s->metrics[m].scope].capacity, "more rows than room");
        for (uint64_t n = 0; n < rows && n < VALUES_READ; n++) sum += look_at_value(s, m, (uint32_t)n);
        if (rows != 0 && rows <= UINT32_MAX) sum += look_at_value(s, m, (uint32_t)rows - 1);
        REQUIRE_OR(rows > UINT32_MAX || !slab_segment_value(s, m, (uint32_t)rows, &(SlabSegmentValue){0}),
                   "a row beyond");
    }
    return sum;
}

static bool to_bytes(void* ctx, const char* bytes, size_t n) { return text_write(ctx, bytes, n); }

/* A document of many rows is cut off; what came is looked at only where it is whole. */
static void look_at_texts(SlabSegment* s) {
    struct text t = {.limit = 4 << 20};
    if (slab_segment_json(s, to_bytes, &t)) json_document(t.bytes, t.size);
    t.size = 0, t.failed = false;
    if (slab_segment_prometheus(s, to_bytes, &t)) prometheus_page(t.bytes, t.size);
    t.size = 0, t.failed = false;
    if (slab_segment_json_all(s, to_bytes, &t)) json_document(t.bytes, t.size);
    t.size = 0, t.failed = false;
    if (slab_segment_prometheus_all(s, to_bytes, &t)) prometheus_page(t.bytes, t.size);
    free(t.bytes);
}

static void look_at_slots(SlabSegment* s, bool texts) {
    SlabSegmentView view;
    for (uint32_t n = 0; n <= slab_segment_slots(s) && n < SLOTS_READ; n++) {
        SlabSegmentResult result = slab_segment_read(s, n, &view);
        if (result != SLAB_SEGMENT_OK) continue;
        REQUIRE_OR(view.slot == n && (view.state == SLAB_SEGMENT_LIVE || view.state == SLAB_SEGMENT_ENDED),
                   "slot %u in state %u", view.slot, view.state);
        uint64_t sum = look_at_rows(s);
        REQUIRE_OR(slab_segment_read(s, n, NULL) == SLAB_SEGMENT_OK && look_at_rows(s) == sum, "read twice: another");
        if (texts) look_at_texts(s);
    }
}

static void read_file(uint8_t* bytes, size_t size, bool texts) {
    SlabSegment s = {.fd = -1, .map = bytes, .bytes = size, .pid = process.pid};
    SlabSegmentHeader header;
    tsi_clear_error();
    int error = tsi_segment_try(&s, &process);
    if (error == 0) {
        REQUIRE_OR(slab_segment_header(&s, &header) && header.total_bytes == size, "the header is another");
        look_at_slots(&s, texts);
    } else if (error != TSI_SEGMENT_FOREIGN) {
        REQUIRE_OR(error == EPROTO || error == EPROTONOSUPPORT || error == ENOMEM, "errno %d", error);
        REQUIRE_OR(slab_last_error()[0] != 0, "a refusal without a sentence");
    }
    if (s.memory != NULL) (void)munmap(s.memory, s.memory_bytes);
}

/* ---- one input ---- */

static void change_and_read(Input* in, const Template* t, bool texts) {
    struct {
        size_t at, bytes;
        uint8_t was[8];
    } undo[CHANGES];
    unsigned n = 0;
    for (; n < CHANGES && in->left != 0; n++) {
        uint8_t value[8];
        undo[n].at = take_place(in, t);
        memcpy(undo[n].was, t->bytes + undo[n].at, 8);
        memcpy(value, undo[n].was, 8);
        undo[n].bytes = take_change(in, t, value);
        memcpy(t->bytes + undo[n].at, value, 8);
    }
    read_file(t->bytes, t->size, texts);
    while (n-- > 0) memcpy(t->bytes + undo[n].at, undo[n].was, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Input in = {data, size};
    uint64_t how = take(&in, 1);
    if (how == 255) { /* the bytes themselves */
        uint8_t* file = exactly(in.left + 1);
        take_bytes(&in, file, in.left);
        if (size > SLAB_SEGMENT_HEADER_BYTES) read_file(file, (size - 1) & ~(size_t)7, one_in(32, data, size));
        free(file);
        return 0;
    }
    change_and_read(&in, one_in(256, data, size) ? &whole : &small, one_in(32, data, size));
    return 0;
}
