/*
 * segment_read.c - tables and publications of a segment, copied and checked.
 *
 * Each step copies first and checks the copy, so nothing changes between the check and the use. The protocol of a
 * publication is at the head of stats/segment.c; retries are bounded, and a buffer that is overwritten each time is
 * "inconsistent". Where the file is read by pread the kernel copies: each call is ordered after the previous one by the
 * locks and counts that both take, which is not promised; the number and the serial in the buffer are always checked.
 */
#define _GNU_SOURCE
#include "api/segment.h"

#include "api/internal.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TRIES = 16, ROWS_MOST = 1 << 16 };

/* ---- copies ---- */

bool tsi_segment_copy(const SlabSegment* segment, uint64_t offset, void* to, size_t bytes) {
    if (((offset | bytes) & 7) != 0 || offset > segment->bytes || bytes > segment->bytes - offset) return false;
    if (segment->map != NULL) {
        uint8_t* out = to;
        _Atomic uint64_t* from = (_Atomic uint64_t*)(uintptr_t)(segment->map + offset);
        for (size_t n = 0; n < bytes / sizeof(uint64_t); n++) {
            uint64_t v =
                tsi_load_acquire(&from[n]); /* pairs with the writer's releases: P2 and P3 in stats/segment.c */
            memcpy(out + n * sizeof v, &v, sizeof v);
        }
        return true;
    }

    for (size_t at = 0; at < bytes;) {
        ssize_t got = pread(segment->fd, (char*)to + at, bytes - at, (off_t)(offset + at));
        if (got == 0 || (got < 0 && errno != EINTR)) return false;
        if (got > 0) at += (size_t)got;
    }
    return true;
}

/* ---- header and tables ---- */

/* Writes the sentence of slab_last_error: the segment of the process `pid` is damaged, and `what` is wrong. Returns
 * EPROTO, for callers to return. [any thread, no lock held] */
static int refuse(const char* what, uint32_t pid) {
    tsi_set_error("the segment of process %u is damaged: %s", pid, what);
    return EPROTO;
}

/* Copies the header to segment->header and checks it against the process. Returns 0; an errno value with a sentence:
 * EPROTO for a damaged one, EPROTONOSUPPORT for another major version or byte order; or TSI_SEGMENT_FOREIGN: the
 * segment of another process, without a sentence. segment->header is filled in part then.
 * [no other user of segment] */
static int header_check(SlabSegment* segment, const TsiProcess* process) {
    SlabSegmentHeader* header = &segment->header;
    char boot[64];
    if (!tsi_segment_copy(segment, 0, header, sizeof *header)) return refuse("it has no header", process->pid);
    if (memcmp(header->magic, SLAB_SEGMENT_MAGIC, sizeof header->magic) != 0)
        return refuse("it does not begin like one, or is being made", process->pid);
    if (header->endian != SLAB_SEGMENT_ENDIAN || header->major != SLAB_SEGMENT_MAJOR) {
        tsi_set_error("the segment of process %u is of another kind (major version %u, this is %u)", process->pid,
                      header->major, SLAB_SEGMENT_MAJOR);
        return EPROTONOSUPPORT;
    }

    if (header->header_bytes < sizeof *header || header->total_bytes != segment->bytes)
        return refuse("its length is not what it says", process->pid);
    if (header->pid != process->inner_pid || header->start_time != process->start_time)
        return TSI_SEGMENT_FOREIGN; /* a segment that the process reads, or has inherited */

    bool known = strlen(tsi_os_read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot)) >= 36;
    if (known && header->boot_id[0] != 0 && memcmp(boot, header->boot_id, 36) != 0)
        return refuse("it is of another boot", process->pid);
    return 0;
}

/* Returns true if the table lies within the segment, aligned to 8 bytes, and has rows, ROWS_MOST at most, of at least
 * `row` bytes. [any thread, needs no lock] */
static bool table_fits(const SlabSegment* segment, const SlabSegmentTable* table, size_t row) {
    bool has_rows = table->count != 0 && table->count <= ROWS_MOST && table->stride >= row;
    bool aligned = ((table->offset | table->stride) & 7) == 0;
    if (!has_rows || !aligned || table->offset > segment->bytes) return false;
    return (uint64_t)table->count * table->stride <= segment->bytes - table->offset; /* 32 bits by 17: no overflow */
}

/* Returns true if a text ends with a 0 within its n bytes. [any thread, needs no lock] */
static bool is_text(const char* text, size_t n) { return memchr(text, 0, n) != NULL; }

/* Returns true if a scope's row makes sense in the segment, and raises *end to the end of its rows in a buffer, in
 * bytes, if that is more; false otherwise, with *end left alone. [any thread, needs no lock] */
static bool scope_fits(const SlabSegment* segment, const SlabSegmentScope* scope, size_t* end) {
    uint64_t head = sizeof(SlabSegmentBuffer) + (uint64_t)segment->scope_count * sizeof(SlabSegmentRows);
    if (!is_text(scope->name, sizeof scope->name) || !is_text(scope->key, sizeof scope->key) ||
        !is_text(scope->labels, sizeof scope->labels))
        return false;
    bool aligned = ((scope->offset | scope->row_bytes) & 7) == 0;
    bool within = scope->offset >= head && scope->offset <= segment->bytes;
    if (scope->form > SLAB_SEGMENT_ARRAY || !aligned || !within) return false;

    uint64_t rows = (uint64_t)scope->capacity * scope->row_bytes; /* 32 bits by 32: no overflow */
    if (rows > segment->bytes - scope->offset || (scope->row_bytes == 0 && scope->capacity != 0)) return false;
    if (scope->offset + rows > *end) *end = (size_t)(scope->offset + rows);
    return true;
}

/* Returns true if a metric's row makes sense: its texts end, its length fits its type, and its values lie within the
 * rows of its scope; false otherwise. scope_fits returned true for all scopes of the segment, which are in
 * segment->scopes. [any thread, needs no lock] */
static bool metric_fits(const SlabSegment* segment, const SlabSegmentMetric* metric) {
    if (!is_text(metric->name, sizeof metric->name) || !is_text(metric->family, sizeof metric->family) ||
        !is_text(metric->help, sizeof metric->help))
        return false;
    if (metric->scope >= segment->scope_count || ((metric->offset | metric->bytes) & 7) != 0 || metric->bytes == 0)
        return false;
    if (metric->type < SLAB_SEGMENT_STRING && metric->bytes != 8) return false;
    if (metric->type == SLAB_SEGMENT_STATE && metric->bytes != 8) return false;
    return (uint64_t)metric->offset + metric->bytes <= segment->scopes[metric->scope].row_bytes;
}

/* Copies the first `bytes` bytes of the row n of a table to `to`. Returns true; false beyond the segment's end, or if
 * it cannot be read. [any thread, needs no lock] */
static bool row_copy(const SlabSegment* segment, const SlabSegmentTable* table, uint32_t n, void* to, size_t bytes) {
    return tsi_segment_copy(segment, table->offset + (uint64_t)n * table->stride, to, bytes);
}

/* Copies the scopes and metrics to the segment's own memory, which has room, checks each, and sets segment->copy_bytes.
 * Returns true; false if one makes no sense or cannot be read. [no other user of segment] */
static bool tables_copy(SlabSegment* segment) {
    const SlabSegmentHeader* header = &segment->header;
    SlabSegmentScope* scope = segment->scopes;
    SlabSegmentMetric* metric = segment->metrics;
    segment->copy_bytes = sizeof(SlabSegmentBuffer) + segment->scope_count * sizeof(SlabSegmentRows);
    for (uint32_t n = 0; n < segment->scope_count; n++)
        if (!row_copy(segment, &header->scopes, n, &scope[n], sizeof *scope) ||
            !scope_fits(segment, &scope[n], &segment->copy_bytes))
            return false;
    for (uint32_t n = 0; n < segment->metric_count; n++)
        if (!row_copy(segment, &header->metrics, n, &metric[n], sizeof *metric) || !metric_fits(segment, &metric[n]))
            return false;
    return true;
}

int tsi_segment_try(SlabSegment* segment, const TsiProcess* process) {
    const SlabSegmentHeader* header = &segment->header;
    int error = header_check(segment, process);
    if (error != 0) return error;
    if (!table_fits(segment, &header->scopes, sizeof(SlabSegmentScope)) ||
        !table_fits(segment, &header->metrics, sizeof(SlabSegmentMetric)) ||
        !table_fits(segment, &header->slots, sizeof(SlabSegmentSlot)))
        return refuse("a table is not within it", process->pid);

    segment->scope_count = header->scopes.count;
    segment->metric_count = header->metrics.count;
    segment->slot_count = header->slots.count;
    size_t scopes = segment->scope_count * sizeof *segment->scopes,
           metrics = segment->metric_count * sizeof *segment->metrics;
    segment->memory_bytes =
        scopes + metrics + segment->bytes; /* a buffer is no longer than the segment; untouched pages cost nothing */

    void* memory =
        mmap(NULL, segment->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        tsi_set_error("no memory to read the segment of process %u", process->pid);
        return ENOMEM;
    }

    segment->memory = memory;
    segment->scopes = memory;
    segment->metrics = (SlabSegmentMetric*)(void*)((char*)memory + scopes);
    segment->copy = (uint64_t*)(void*)((char*)memory + scopes + metrics);
    return tables_copy(segment) ? 0 : refuse("a row of its tables makes no sense", process->pid);
}

bool slab_segment_header(SlabSegment* segment, SlabSegmentHeader* out) {
    return segment != NULL && out != NULL && tsi_segment_copy(segment, 0, out, sizeof *out);
}
uint32_t slab_segment_scopes(const SlabSegment* segment, const SlabSegmentScope** rows) {
    if (rows != NULL) *rows = segment != NULL ? segment->scopes : NULL;
    return segment != NULL ? segment->scope_count : 0;
}
uint32_t slab_segment_metrics(const SlabSegment* segment, const SlabSegmentMetric** rows) {
    if (rows != NULL) *rows = segment != NULL ? segment->metrics : NULL;
    return segment != NULL ? segment->metric_count : 0;
}
uint32_t slab_segment_slots(const SlabSegment* segment) { return segment != NULL ? segment->slot_count : 0; }

/* ---- publications ---- */

/* Returns the counts of rows, one for each scope, of the copied buffer; they lie there. [no other user of segment] */
static const SlabSegmentRows* counts(const SlabSegment* segment) {
    return (const SlabSegmentRows*)(const void*)((const char*)segment->copy + sizeof(SlabSegmentBuffer));
}

/* Returns true if the copied counts are within the capacities of their scopes, and 1 in scopes that are no arrays.
 * [no other user of segment] */
static bool counts_fit(const SlabSegment* segment) {
    for (uint32_t n = 0; n < segment->scope_count; n++)
        if (counts(segment)[n].count > segment->scopes[n].capacity ||
            (segment->scopes[n].form != SLAB_SEGMENT_ARRAY && counts(segment)[n].count != 1))
            return false;
    return true;
}

/* Copies the slot at the offset `at` to *slot and its latest publication to segment->copy, and checks that it was
 * whole. Returns SLAB_SEGMENT_OK; SLAB_SEGMENT_NOTHING if nothing was published there, or nothing of the allocator that
 * has the slot now; SLAB_SEGMENT_INCONSISTENT if it changed meanwhile or makes no sense: the caller tries again.
 * [no other user of segment] */
static SlabSegmentResult read_once(SlabSegment* segment, uint64_t at, SlabSegmentSlot* slot) {
    SlabSegmentSlot after;
    if (!tsi_segment_copy(segment, at, slot, sizeof *slot)) return SLAB_SEGMENT_INCONSISTENT;
    uint64_t n = slot->sequence / 2;
    if (slot->state == SLAB_SEGMENT_FREE || n == 0) return SLAB_SEGMENT_NOTHING;
    if (slot->buffer_bytes < segment->copy_bytes || slot->state > SLAB_SEGMENT_ENDED) return SLAB_SEGMENT_INCONSISTENT;

    if (!tsi_segment_copy(segment, slot->buffer[n & 1], segment->copy, segment->copy_bytes))
        return SLAB_SEGMENT_INCONSISTENT;
    if (!tsi_segment_copy(segment, at, &after, sizeof after)) return SLAB_SEGMENT_INCONSISTENT;
    const SlabSegmentBuffer* buffer = (const SlabSegmentBuffer*)(const void*)segment->copy;
    if (after.sequence - 2 * n > 2 || buffer->number != n)
        return SLAB_SEGMENT_INCONSISTENT;                            /* P3; also when it went back */
    if (buffer->serial != slot->serial) return SLAB_SEGMENT_NOTHING; /* slot taken anew, or just now: tried again */
    return counts_fit(segment) ? SLAB_SEGMENT_OK : SLAB_SEGMENT_INCONSISTENT;
}

SlabSegmentResult slab_segment_read(SlabSegment* segment, uint32_t slot, SlabSegmentView* out) {
    SlabSegmentSlot row;
    if (out != NULL) memset(out, 0, sizeof *out);
    if (segment == NULL || slot >= segment->slot_count) return SLAB_SEGMENT_NOTHING;

    SlabSegmentResult result = SLAB_SEGMENT_NOTHING;
    segment->filled = false;
    row.state = SLAB_SEGMENT_FREE;
    for (unsigned tries = 0; tries < TRIES && !segment->filled; tries++) {
        result = read_once(segment, segment->header.slots.offset + (uint64_t)slot * segment->header.slots.stride, &row);
        segment->filled = result == SLAB_SEGMENT_OK;
        if (result == SLAB_SEGMENT_NOTHING && (row.state == SLAB_SEGMENT_FREE || row.sequence < 2)) break;
    }

    segment->slot = slot;
    segment->state = (uint32_t)row.state;
    segment->changed = row.state == SLAB_SEGMENT_LIVE && row.changed != 0;
    if (!segment->filled || out == NULL) return result;

    const SlabSegmentBuffer* buffer = (const SlabSegmentBuffer*)(const void*)segment->copy;
    *out = (SlabSegmentView){slot,           (uint32_t)row.state, buffer->serial,
                             buffer->number, buffer->begun_ns,    row.published_ns,
                             row.cost_ns,    segment->changed};
    return result;
}

SlabSegmentRows slab_segment_rows(const SlabSegment* segment, uint32_t scope) {
    if (segment == NULL || !segment->filled || scope >= segment->scope_count) return (SlabSegmentRows){0, 0};
    return counts(segment)[scope];
}

bool slab_segment_value(const SlabSegment* segment, uint32_t metric, uint32_t row, SlabSegmentValue* out) {
    if (out == NULL) return false;
    *out = (SlabSegmentValue){0};
    if (segment == NULL || !segment->filled || metric >= segment->metric_count) return false;

    const SlabSegmentMetric* field = &segment->metrics[metric];
    const SlabSegmentScope* scope = &segment->scopes[field->scope];
    if (row >= counts(segment)[field->scope].count) return false;
    char* at = (char*)segment->copy + scope->offset + (size_t)row * scope->row_bytes + field->offset;

    if (field->type == SLAB_SEGMENT_STRING) {
        at[field->bytes - 1] = 0; /* in our copy */
        out->text = at;
    } else if (field->type == SLAB_SEGMENT_F64) {
        memcpy(&out->f, at, sizeof out->f);
    } else if (field->type <= SLAB_SEGMENT_STATE) {
        memcpy(&out->u, at, sizeof out->u);
    } else {
        out->counts = (const uint64_t*)(const void*)at;
        out->entries = field->bytes / (uint32_t)sizeof(uint64_t);
    }
    return true;
}
