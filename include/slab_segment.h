/*
 * slab_segment.h - the statistics segment: shared memory in which a process shows its statistics, and a reader for it.
 *
 * An allocator made with the option `segment` copies its statistics there from time to time. Any process of the same
 * user can read them by process id, without a signal and without slowing the process. docs/segment.md says how to find
 * the segment, in which order to read it and what to check. This header has the layout first, and then functions that
 * do all of that.
 *
 * Numbers are in the byte order of the machine (SlabSegmentHeader.endian tells) and aligned to their size. Every
 * position is an offset in bytes, from the start of the segment unless stated otherwise. Tables have a stride. Read
 * fields by their offsets and step by the stride, because later minor versions append fields.
 */
#ifndef SLAB_SEGMENT_H
#define SLAB_SEGMENT_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the layout ------------------------------------------------------------------------- */

#define SLAB_SEGMENT_MAGIC "TSLABSEG" /* 8 bytes, no 0 */
#define SLAB_SEGMENT_ENDIAN 0x01020304u
#define SLAB_SEGMENT_MAJOR 1u /* do not read a segment with another */
/* In a segment with a larger minor version, tables and rows may be longer, but everything here keeps its place. The
 * only exception is the upper half of the size_class of a profile's sample, which is `escaped` from 3 on. */
#define SLAB_SEGMENT_MINOR 3u

enum {
    SLAB_SEGMENT_HEADER_BYTES = 256,
    SLAB_SEGMENT_SLOTS = 16 /* allocators that a process can show at a time */
};

/* A table: `count` rows, `stride` bytes from one to the next. */
typedef struct SlabSegmentTable {
    uint64_t offset;
    uint32_t count, stride;
} SlabSegmentTable;

/* The header, at offset 0. `magic` is written last; from then on the header is constant, except for the words marked
 * with *. */
typedef struct SlabSegmentHeader {
    char magic[8];
    uint32_t endian;
    uint16_t major, minor;
    uint32_t header_bytes; /* at least SLAB_SEGMENT_HEADER_BYTES */
    uint32_t reserved;
    uint64_t total_bytes;         /* size of the segment and of the file */
    uint64_t pid;                 /* as the process itself sees it */
    uint64_t start_time;          /* of the process: field 22 of /proc/PID/stat */
    char boot_id[40];             /* /proc/sys/kernel/random/boot_id, padded with zeros; empty if unknown */
    uint64_t created_ns;          /* CLOCK_MONOTONIC */
    uint64_t heartbeat_ns;        /* * CLOCK_MONOTONIC of the latest publication of any allocator */
    uint64_t publications;        /* * of all allocators */
    uint64_t allocators_left_out; /* * allocators that found no slot or no memory when they asked for one */
    SlabSegmentTable scopes;      /* SlabSegmentScope */
    SlabSegmentTable metrics;     /* SlabSegmentMetric */
    SlabSegmentTable slots;       /* SlabSegmentSlot */
    uint8_t zero[88];
} SlabSegmentHeader;

/* Shape of a scope's rows. A scope whose form is not ARRAY has one row. */
typedef enum SlabSegmentForm { SLAB_SEGMENT_TOP = 0, SLAB_SEGMENT_OBJECT = 1, SLAB_SEGMENT_ARRAY = 2 } SlabSegmentForm;

/* A kind of row. The rows of a scope have the same layout for all allocators. */
typedef struct SlabSegmentScope {
    char name[32];   /* "DOCUMENT", "GLOBAL", "CLASS", "EPOCH", "PHASE", "LABEL", ... */
    char key[32];    /* of the JSON document; "" when the members are the document's own */
    char labels[48]; /* label names of a row's Prometheus series, separated by ", " */
    uint32_t form;   /* SlabSegmentForm */
    uint32_t row_bytes;
    uint32_t capacity; /* rows that a buffer has room for */
    uint32_t reserved;
    uint64_t offset; /* of row 0, from the start of a buffer */
} SlabSegmentScope;

/* How a value is kept. U32, U64, FLAG (0 or 1) and STATE (0 ACTIVE, 1 CLOSING) are unsigned and take 8 bytes; F64 takes
 * 8 bytes. A STRING is `bytes` long and ends with at least one 0. The other types are bytes / 8 counts of 8 bytes, by
 * label id or by one of the two bucket schemes of slab_stats.h. */
typedef enum SlabSegmentType {
    SLAB_SEGMENT_U32 = 0,
    SLAB_SEGMENT_U64 = 1,
    SLAB_SEGMENT_F64 = 2,
    SLAB_SEGMENT_FLAG = 3,
    SLAB_SEGMENT_STRING = 4,
    SLAB_SEGMENT_STATE = 5,
    SLAB_SEGMENT_BY_LABEL = 6,
    SLAB_SEGMENT_DOUBLING = 7,
    SLAB_SEGMENT_LATENCY = 8,
    SLAB_SEGMENT_LIST = 9
} SlabSegmentType;

/* Meaning of a value; docs/metrics.md explains the words. */
typedef enum SlabSegmentKind {
    SLAB_SEGMENT_COUNTER = 0,
    SLAB_SEGMENT_GAUGE = 1,
    SLAB_SEGMENT_PEAK = 2,
    SLAB_SEGMENT_HISTOGRAM = 3,
    SLAB_SEGMENT_SUM = 4,
    SLAB_SEGMENT_INFO = 5,
    SLAB_SEGMENT_IDENTITY = 6,
    SLAB_SEGMENT_COPY = 7
} SlabSegmentKind;

typedef enum SlabSegmentUnit {
    SLAB_SEGMENT_COUNT = 0,
    SLAB_SEGMENT_BYTES = 1,
    SLAB_SEGMENT_NS = 2,
    SLAB_SEGMENT_SECONDS = 3,
    SLAB_SEGMENT_PERCENT = 4,
    SLAB_SEGMENT_RATIO = 5,
    SLAB_SEGMENT_MIB = 6,
    SLAB_SEGMENT_ID = 7,
    SLAB_SEGMENT_TEXT = 8
} SlabSegmentUnit;

/* A metric, which is one line of docs/metrics.md and one value in each row of its scope. The metrics are in the order
 * of the JSON document. */
typedef struct SlabSegmentMetric {
    char name[64]; /* JSON key */
    /* Prometheus name after "temporal_slab_", possibly with a fixed label "{name=word}"; "" if there is none */
    char family[96];
    char help[160];
    uint32_t scope; /* row of the table of scopes */
    uint32_t type, kind, unit;
    uint32_t offset, bytes; /* in the row */
    uint64_t reserved;
} SlabSegmentMetric;

/* FREE: never used. LIVE: an allocator's. ENDED: the allocator was destroyed; its last publication stays readable until
 * another allocator takes the slot, at least one second later. */
typedef enum SlabSegmentState { SLAB_SEGMENT_FREE = 0, SLAB_SEGMENT_LIVE = 1, SLAB_SEGMENT_ENDED = 2 } SlabSegmentState;

/* A slot: an allocator's place in the segment. The words are 8 bytes each. All of them change except the positions of
 * the buffers, see docs/segment.md. */
typedef struct SlabSegmentSlot {
    uint64_t state;  /* SlabSegmentState */
    uint64_t serial; /* of the allocator, never reused in its process */
    /* 2 n: n publications are complete; 2 n - 1: the n-th is being written. The count goes on when the slot is
     * reused */
    uint64_t sequence;
    uint64_t published_ns; /* end of the latest; CLOCK_MONOTONIC like the next two */
    uint64_t since_ns;     /* when the allocator took the slot */
    uint64_t ended_ns;     /* when it was destroyed */
    uint64_t cost_ns;      /* duration of the latest publication, ns */
    uint64_t buffer_bytes; /* of each */
    uint64_t buffer[2];    /* publication n is in buffer[n & 1] */
    /* 1: the allocator has changed since the figures of the latest publication were taken. From minor version 2 on; 0
     * before */
    uint64_t changed;
    uint64_t reserved[5];
} SlabSegmentSlot;

/* Rows of a scope in one publication: the number in the buffer, and the number left out. */
typedef struct SlabSegmentRows {
    uint64_t count, left_out;
} SlabSegmentRows;

/* The start of a buffer. After it, there is one SlabSegmentRows for each scope, in the order of the scopes. Then come
 * the rows, at SlabSegmentScope.offset. */
typedef struct SlabSegmentBuffer {
    uint64_t number;   /* of the publication */
    uint64_t serial;   /* of its allocator */
    uint64_t begun_ns; /* CLOCK_MONOTONIC when the figures were taken */
    uint64_t reserved;
} SlabSegmentBuffer;

/* ---- the heap profile ------------------------------------------------------------------- */

/* An allocator that also has the option `profile_bytes` copies its heap profile to a second file. That file has a
 * header like the one above, with this magic and without scopes and metrics. Its slots have the numbers of the
 * segment's slots and buffers of their own. */
#define SLAB_PROFILE_MAGIC "TSLABPRF"

/* The start of a profile's buffer. Four lists follow: `live` rows of SlabProfileLive, `stacks` rows of SlabProfileStack
 * with their frames, `makers` rows of SlabProfileMaker, and `escapes` rows of SlabProfileEscape. */
typedef struct SlabProfileBuffer {
    uint64_t number, serial, begun_ns; /* as in SlabSegmentBuffer */
    uint64_t bytes;                    /* of the buffer in use, including these */
    uint64_t period;                   /* mean bytes between samples; 1: every object, of domains only */
    uint64_t samples;                  /* since the allocator was made */
    uint64_t lost_stacks, lost_live;   /* samples that found no room */
    uint64_t stacks, live;             /* that follow */
    uint64_t makers;                   /* that follow; 0 before minor version 2 */
    uint32_t escapes;                  /* that follow; from minor version 3 on, as is the next field */
    uint32_t escape_stacks;            /* the option */
} SlabProfileBuffer;

/* A live sampled object, which stands for 1 / (1 - exp(-bytes / period)) objects. */
typedef struct SlabProfileLive {
    uint64_t bytes, era; /* usable bytes; era of its phase */
    uint32_t stack;
    uint16_t size_class;
    uint16_t escaped; /* 1: its phase was drained; set with the option `escape_stacks`, from minor version 3 on */
} SlabProfileLive;

/* The sum of all samples ever taken with the same label, maker (if any) and stack. `depth` return addresses of 8 bytes
 * follow, innermost first. */
typedef struct SlabProfileStack {
    char label[32];        /* ends with a 0; UTF-8 */
    double objects, bytes; /* that the samples stand for */
    uint64_t depth;        /* 1 to 32 */
} SlabProfileStack;

/* Maker of a stack's objects: scopes of this label made them outside every phase (slab_malloc_outside). */
typedef struct SlabProfileMaker {
    uint64_t stack;
    char label[32]; /* ends with a 0; UTF-8 */
} SlabProfileMaker;

/* Objects of a stack that have outlived the end of their phase, and may have been freed since. The option
 * `escape_stacks` makes these rows. */
typedef struct SlabProfileEscape {
    uint64_t stack;
    double objects, bytes; /* that the samples stand for */
} SlabProfileEscape;

/* ---- a reader --------------------------------------------------------------------------- */

/* An open segment. The reader trusts nothing in it: inconsistent bytes are an error, never a crash or an endless wait.
 * Only one thread at a time may use an open segment. */
typedef struct SlabSegment SlabSegment;

/* Result of slab_segment_read. */
typedef enum SlabSegmentResult {
    SLAB_SEGMENT_OK = 0,
    SLAB_SEGMENT_NOTHING,      /* no such slot, never used, or nothing published yet */
    SLAB_SEGMENT_INCONSISTENT, /* overwritten during every attempt to read it, or invalid */
    SLAB_SEGMENT_NO_MEMORY
} SlabSegmentResult;

/* The publication that slab_segment_read has copied. */
typedef struct SlabSegmentView {
    uint32_t slot, state; /* SlabSegmentState */
    uint64_t serial, number, begun_ns, published_ns, cost_ns;
    bool changed; /* the allocator has changed since begun_ns without publishing */
} SlabSegmentView;

/* A value. Its SlabSegmentType decides whether it is in u, f, text or counts (of which there are `entries`). */
typedef struct SlabSegmentValue {
    uint64_t u;
    double f;
    const char* text;
    const uint64_t* counts;
    uint32_t entries;
} SlabSegmentValue;

/* Opens the segment of a process of the same user, or, for root, of any user. On failure, returns NULL and sets errno,
 * and slab_last_error() gives the reason. errno is ESRCH if there is no such process, EACCES if it is another user's,
 * and ENOENT if it has no segment. A damaged or foreign segment gives EPROTO; another major version or byte order gives
 * EPROTONOSUPPORT. O(file descriptors of the process). */
SLAB_API SlabSegment* slab_segment_open(uint32_t pid);
/* Closes a segment and ends its copies. Does nothing for NULL. */
SLAB_API void slab_segment_close(SlabSegment* s);
/* Copies the header as it is now to *out. Returns false for NULL. */
SLAB_API bool slab_segment_header(SlabSegment* s, SlabSegmentHeader* out);
/* Returns true if the process of the segment still exists. */
SLAB_API bool slab_segment_alive(const SlabSegment* s);
/* State of a segment's process. STOPPED means by a signal or a tracer. A NULL segment gives ENDED. */
typedef enum SlabProcessState {
    SLAB_PROCESS_RUNNING = 0,
    SLAB_PROCESS_STOPPED = 1,
    SLAB_PROCESS_ENDED = 2
} SlabProcessState;
/* Returns the state of the process. O(1), three files of /proc. */
SLAB_API SlabProcessState slab_segment_process(const SlabSegment* s);
/* Point *rows to a checked copy of a table, which stays valid until slab_segment_close, and return the number of
 * rows. */
SLAB_API uint32_t slab_segment_scopes(const SlabSegment* s, const SlabSegmentScope** rows);
SLAB_API uint32_t slab_segment_metrics(const SlabSegment* s, const SlabSegmentMetric** rows);
/* Returns the number of slots of the directory. */
SLAB_API uint32_t slab_segment_slots(const SlabSegment* s);
/* Copies the latest publication in a slot, which the calls below then read; *out may be NULL. O(bytes of a buffer). */
SLAB_API SlabSegmentResult slab_segment_read(SlabSegment* s, uint32_t slot, SlabSegmentView* out);
/* Returns the number of rows of a scope in the copy, and the number left out. */
SLAB_API SlabSegmentRows slab_segment_rows(const SlabSegment* s, uint32_t scope);
/* Writes the value of a metric in row `row` of its scope in the copy to *out. Returns false if there is none. Pointers
 * stay valid until the next read. */
SLAB_API bool slab_segment_value(const SlabSegment* s, uint32_t metric, uint32_t row, SlabSegmentValue* out);
/* Write the copy in the formats of slab_stats_json and slab_stats_prometheus, with the metrics that this version knows.
 * On failure, return false and set errno: EINVAL if there is no copy, ENOMEM if memory runs out. */
SLAB_API bool slab_segment_json(const SlabSegment* s, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
SLAB_API bool slab_segment_prometheus(const SlabSegment* s, bool (*write)(void* ctx, const char* bytes, size_t n),
                                      void* ctx);
/* Reads all live allocators and writes one document. If there is only one allocator, this is the document of
 * slab_segment_json. Otherwise the document has the sums of all allocators, the slot as `allocator` in each row of a
 * list, and the document of each allocator in `by_allocator`. Afterwards the copy is that of the last allocator.
 * Returns false and sets errno to ENOENT if none has published anything. */
SLAB_API bool slab_segment_json_all(SlabSegment* s, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* Reads all live allocators and writes them in the Prometheus format, each series with the label `allocator`. */
SLAB_API bool slab_segment_prometheus_all(SlabSegment* s, bool (*write)(void* ctx, const char* bytes, size_t n),
                                          void* ctx);

#ifdef __cplusplus
}
#endif
#endif
