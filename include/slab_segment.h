/*
 * slab_segment.h - the statistics segment (shared memory in which a process publishes its statistics) and its reader.
 *
 * An allocator made with the option `segment` copies its statistics to the segment from time to time. Any process of
 * the same user can find the segment by process id and read it, without signaling or slowing the publishing process.
 * docs/segment.md explains how to find the segment, in which order to read it, and what to check. This header first
 * declares the layout and then functions that find, check and read a segment.
 *
 * Numbers have the byte order of the machine (see SlabSegmentHeader.endian) and are aligned to their size. Every
 * position is an offset in bytes from the start of the segment, unless stated otherwise. Later minor versions append
 * fields, so read each field at its offset, and step from row to row by the stride of the table.
 */
#ifndef SLAB_SEGMENT_H
#define SLAB_SEGMENT_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the layout ------------------------------------------------------------------------- */

#define SLAB_SEGMENT_MAGIC "TSLABSEG" /* 8 bytes, without a terminating 0 */
#define SLAB_SEGMENT_ENDIAN 0x01020304u
#define SLAB_SEGMENT_MAJOR 1u /* do not read a segment that has another major version */
/* Higher minor versions can make tables and rows longer, but everything below keeps its position, with one exception:
 * before minor version 3, `size_class` in SlabProfileLive had 32 bits. The upper 16 bits are now the field
 * `escaped`. */
#define SLAB_SEGMENT_MINOR 3u

enum {
    SLAB_SEGMENT_HEADER_BYTES = 256,
    SLAB_SEGMENT_SLOTS = 16 /* maximum number of allocators in a segment */
};

/* A table: `count` rows, which start at `offset` and are `stride` bytes apart. */
typedef struct SlabSegmentTable {
    uint64_t offset;
    uint32_t count, stride;
} SlabSegmentTable;

/* The header, at offset 0. The process writes `magic` last. After that, only fields marked with * change. */
typedef struct SlabSegmentHeader {
    char magic[8];
    uint32_t endian;
    uint16_t major, minor;
    uint32_t header_bytes; /* at least SLAB_SEGMENT_HEADER_BYTES */
    uint32_t reserved;
    uint64_t total_bytes;         /* size of the segment and of its file */
    uint64_t pid;                 /* process id in the process's own pid namespace */
    uint64_t start_time;          /* when the process started: field 22 of /proc/PID/stat */
    char boot_id[40];             /* text of /proc/sys/kernel/random/boot_id, padded with zeros; empty if unknown */
    uint64_t created_ns;          /* CLOCK_MONOTONIC when the segment was made */
    uint64_t heartbeat_ns;        /* * CLOCK_MONOTONIC at the latest publication of any allocator */
    uint64_t publications;        /* * number of publications of all allocators */
    uint64_t allocators_left_out; /* * allocators that were refused a slot so far: none was free, or no memory */
    SlabSegmentTable scopes;      /* SlabSegmentScope */
    SlabSegmentTable metrics;     /* SlabSegmentMetric */
    SlabSegmentTable slots;       /* SlabSegmentSlot */
    uint8_t zero[88];
} SlabSegmentHeader;

/* Form of a scope (see SlabSegmentScope). An ARRAY has any number of rows; a scope of another form has exactly one
 * row. */
typedef enum SlabSegmentForm { SLAB_SEGMENT_TOP = 0, SLAB_SEGMENT_OBJECT = 1, SLAB_SEGMENT_ARRAY = 2 } SlabSegmentForm;

/* A scope is a kind of row, such as the rows that describe labels. The rows of a scope have the same layout for all
 * allocators. */
typedef struct SlabSegmentScope {
    char name[32];   /* "DOCUMENT", "GLOBAL", "CLASS", "EPOCH", "PHASE", "LABEL", ... */
    char key[32];    /* key in the JSON document; "" if the members are at the top level of the document */
    char labels[48]; /* names of the Prometheus labels of a row, separated by ", " */
    uint32_t form;   /* SlabSegmentForm */
    uint32_t row_bytes;
    uint32_t capacity; /* maximum number of rows in a buffer */
    uint32_t reserved;
    uint64_t offset; /* offset of row 0 from the start of a buffer */
} SlabSegmentScope;

/* How a value is stored. U32, U64, FLAG (0 or 1) and STATE (0 ACTIVE, 1 CLOSING) are stored as 8-byte unsigned
 * integers, and F64 as an 8-byte double. A STRING takes up SlabSegmentMetric.bytes bytes, including at least one
 * terminating 0. The other types are arrays of 8-byte unsigned integers. Such an array has SlabSegmentMetric.bytes / 8
 * elements. BY_LABEL is indexed like lock_fast_acquire_by_label in SlabClassStats. DOUBLING is a histogram with
 * SLAB_HISTOGRAM_BUCKETS buckets, and LATENCY is a histogram with SLAB_LATENCY_BUCKETS buckets (slab_stats.h). LIST is
 * any other array. */
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

/* The kind of a metric; docs/metrics.md defines each kind. */
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

/* A metric. Each metric has a line in docs/metrics.md and a value in each row of its scope. Metrics are in the same
 * order as in the JSON document. */
typedef struct SlabSegmentMetric {
    char name[64]; /* JSON key */
    /* Prometheus name without the prefix "temporal_slab_". A fixed label, "{name=word}", can follow the name. The text
     * is empty if the metric has no Prometheus series. */
    char family[96];
    char help[160];
    uint32_t scope; /* index in the table of scopes */
    uint32_t type, kind, unit;
    uint32_t offset, bytes; /* position and length of the value in the row */
    uint64_t reserved;
} SlabSegmentMetric;

/* State of a slot. FREE: no allocator has used the slot yet. LIVE: an allocator uses the slot. ENDED: the allocator in
 * the slot was destroyed. The last publication of an ENDED allocator stays readable until another allocator takes the
 * slot, which happens at least one second after the destruction. */
typedef enum SlabSegmentState { SLAB_SEGMENT_FREE = 0, SLAB_SEGMENT_LIVE = 1, SLAB_SEGMENT_ENDED = 2 } SlabSegmentState;

/* A slot: the place of one allocator in the segment. Each field consists of 8-byte words. While you read a slot, every
 * field except buffer_bytes and `buffer` can change; docs/segment.md explains how to read safely. */
typedef struct SlabSegmentSlot {
    uint64_t state;  /* SlabSegmentState */
    uint64_t serial; /* serial number of the allocator, never reused in its process */
    /* 2 n if n publications are complete, and 2 n - 1 while the n-th is being written. The count is not reset when
     * another allocator takes the slot. */
    uint64_t sequence;
    uint64_t published_ns; /* end of the latest publication; CLOCK_MONOTONIC, like the next two fields */
    uint64_t since_ns;     /* when the allocator took the slot */
    uint64_t ended_ns;     /* when the allocator was destroyed */
    uint64_t cost_ns;      /* duration of the latest publication */
    uint64_t buffer_bytes; /* size of each buffer */
    uint64_t buffer[2];    /* publication n is in buffer[n & 1] */
    /* 1 if the allocator has changed since the snapshot of the latest publication was taken. Always 0 before minor
     * version 2. */
    uint64_t changed;
    uint64_t reserved[5];
} SlabSegmentSlot;

/* Rows of a scope in one publication: the number in the buffer, and the number left out. */
typedef struct SlabSegmentRows {
    uint64_t count, left_out;
} SlabSegmentRows;

/* The head of a buffer. A SlabSegmentRows structure for each scope follows, in the order of the table of scopes. The
 * rows of a scope begin at SlabSegmentScope.offset. */
typedef struct SlabSegmentBuffer {
    uint64_t number;   /* number of the publication */
    uint64_t serial;   /* serial number of its allocator */
    uint64_t begun_ns; /* CLOCK_MONOTONIC when the snapshot was taken */
    uint64_t reserved;
} SlabSegmentBuffer;

/* ---- the heap profile ------------------------------------------------------------------- */

/* An allocator with the option `segment` and one of `profile_bytes` and `escape_stacks` publishes its heap profile
 * in a second file. That file begins with a header like SlabSegmentHeader, but with the magic below and without
 * scopes and metrics. An allocator has the same slot number in both files, and separate buffers in each. */
#define SLAB_PROFILE_MAGIC "TSLABPRF"

/* The head of a buffer in the profile's file. Four lists follow, in this order:
 *   - `live` rows of SlabProfileLive;
 *   - `stacks` rows of SlabProfileStack, each followed by its frames;
 *   - `makers` rows of SlabProfileMaker;
 *   - `escapes` rows of SlabProfileEscape. */
typedef struct SlabProfileBuffer {
    uint64_t number, serial, begun_ns; /* as in SlabSegmentBuffer */
    uint64_t bytes;                    /* bytes of the buffer in use, including this head */
    uint64_t period;                   /* mean number of bytes between samples; 1: all objects in domains are sampled */
    uint64_t samples;                  /* samples taken since the allocator was made */
    uint64_t lost_stacks, lost_live;   /* samples lost because a table was full */
    uint64_t stacks, live;             /* numbers of rows that follow */
    uint64_t makers;                   /* number of rows that follow; always 0 before minor version 2 */
    uint32_t escapes;                  /* number of rows that follow; added in minor version 3, like the next field */
    uint32_t escape_stacks;            /* value of the option escape_stacks */
} SlabProfileBuffer;

/* A sampled object that is live. The sample stands for 1 / (1 - exp(-bytes / period)) objects. */
typedef struct SlabProfileLive {
    uint64_t bytes, era; /* usable bytes of the object; era (unique number) of its phase */
    uint32_t stack;
    uint16_t size_class;
    uint16_t escaped; /* 1: the object's phase was drained (option `escape_stacks`, from minor version 3 on) */
} SlabProfileLive;

/* Sums over all samples so far that have the same label, maker (if any) and stack. The stack follows: `depth` 8-byte
 * return addresses, innermost first. */
typedef struct SlabProfileStack {
    char label[32];        /* UTF-8, terminated by a 0 */
    double objects, bytes; /* estimated totals, computed from the samples */
    uint64_t depth;        /* 1 to 32 */
} SlabProfileStack;

/* A maker: the label of the domain in which a thread called slab_malloc_outside to allocate the objects of a stack.
 * `stack` is an index in the list of stacks. */
typedef struct SlabProfileMaker {
    uint64_t stack;
    char label[32]; /* UTF-8, terminated by a 0 */
} SlabProfileMaker;

/* Objects allocated from one stack that were live when their phase was drained. Some of these objects may have been
 * freed since then. These rows exist only with the option `escape_stacks`. */
typedef struct SlabProfileEscape {
    uint64_t stack;
    double objects, bytes; /* estimated totals, computed from the samples */
} SlabProfileEscape;

/* ---- a reader --------------------------------------------------------------------------- */

/* An open segment. The functions below check everything that they read: inconsistent data is reported as an error and
 * never causes a crash or an endless wait. Only one thread at a time may use an open segment. */
typedef struct SlabSegment SlabSegment;

/* Result of slab_segment_read. */
typedef enum SlabSegmentResult {
    SLAB_SEGMENT_OK = 0,
    SLAB_SEGMENT_NOTHING,      /* there is no such slot, or nothing has been published in it yet */
    SLAB_SEGMENT_INCONSISTENT, /* the publication is invalid, or was overwritten during every attempt to read it */
    SLAB_SEGMENT_NO_MEMORY
} SlabSegmentResult;

/* A publication that slab_segment_read has copied. */
typedef struct SlabSegmentView {
    uint32_t slot, state; /* SlabSegmentState */
    uint64_t serial, number, begun_ns, published_ns, cost_ns;
    bool changed; /* the allocator has changed since begun_ns without publishing */
} SlabSegmentView;

/* A value. The type of the metric determines which field is set. U32, U64, FLAG and STATE are in `u`, an F64 is in `f`,
 * and a STRING is in `text`. The array types are in `counts`, which has `entries` elements. */
typedef struct SlabSegmentValue {
    uint64_t u;
    double f;
    const char* text;
    const uint64_t* counts;
    uint32_t entries;
} SlabSegmentValue;

/* Opens the segment of the process `pid`. The caller must run as the same user as that process, or as root. On failure,
 * returns NULL and sets errno; slab_last_error() describes the cause. The value of errno is ESRCH if there is no such
 * process, EACCES if the process belongs to another user, and ENOENT if the process has no segment. The value is EPROTO
 * if the segment is damaged or its file has an unexpected owner or mode, EPROTONOSUPPORT if the major version or byte
 * order differs, and ENOMEM if memory runs out. O(file descriptors of the process). */
SLAB_API SlabSegment* slab_segment_open(uint32_t pid);
/* Closes the segment and frees all copies of its data. Does nothing if s is NULL. */
SLAB_API void slab_segment_close(SlabSegment* s);
/* Copies the current header to *out. Returns false if s or out is NULL, or if the header cannot be read. */
SLAB_API bool slab_segment_header(SlabSegment* s, SlabSegmentHeader* out);
/* Returns true if the segment's process still exists. Returns false if s is NULL. */
SLAB_API bool slab_segment_alive(const SlabSegment* s);
/* State of a segment's process. STOPPED means stopped by a signal or a tracer. */
typedef enum SlabProcessState {
    SLAB_PROCESS_RUNNING = 0,
    SLAB_PROCESS_STOPPED = 1,
    SLAB_PROCESS_ENDED = 2
} SlabProcessState;
/* Returns the state of the segment's process, or ENDED if s is NULL. O(1), with three accesses to /proc. */
SLAB_API SlabProcessState slab_segment_process(const SlabSegment* s);
/* Set *rows to a checked copy of the table of scopes or of metrics, and return the number of rows. The copy stays valid
 * until slab_segment_close. */
SLAB_API uint32_t slab_segment_scopes(const SlabSegment* s, const SlabSegmentScope** rows);
SLAB_API uint32_t slab_segment_metrics(const SlabSegment* s, const SlabSegmentMetric** rows);
/* Returns the number of slots of the segment. */
SLAB_API uint32_t slab_segment_slots(const SlabSegment* s);
/* Copies the latest publication of a slot, and writes a description of the publication to *out; out may be NULL.
 * slab_segment_rows, slab_segment_value, slab_segment_json and slab_segment_prometheus read this copy. Returns
 * SLAB_SEGMENT_OK, or the reason why there is no copy. O(bytes of a buffer). */
SLAB_API SlabSegmentResult slab_segment_read(SlabSegment* s, uint32_t slot, SlabSegmentView* out);
/* Returns how many rows of a scope are in the copy, and how many were left out of the publication. */
SLAB_API SlabSegmentRows slab_segment_rows(const SlabSegment* s, uint32_t scope);
/* Sets *out to the value that a metric has in row `row` of its scope. Returns false if the copy has no such value.
 * Pointers in *out stay valid until the next slab_segment_read. */
SLAB_API bool slab_segment_value(const SlabSegment* s, uint32_t metric, uint32_t row, SlabSegmentValue* out);
/* Write the copy in the format of slab_stats_json or slab_stats_prometheus. The output contains only the metrics that
 * this version of the library supports. These functions stop and return false as soon as `write` returns false. On
 * error, they return false and set errno: EINVAL if s or `write` is NULL or there is no copy, ENOMEM if memory runs
 * out. */
SLAB_API bool slab_segment_json(const SlabSegment* s, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
SLAB_API bool slab_segment_prometheus(const SlabSegment* s, bool (*write)(void* ctx, const char* bytes, size_t n),
                                      void* ctx);
/* Reads the latest publications of all live allocators and writes one JSON document. If there is only one live
 * allocator, the document is the one that slab_segment_json writes. Otherwise, the document contains sums over all live
 * allocators, and its member `by_allocator` lists the document of each allocator. In a document of several allocators,
 * each row of a list has an additional member `allocator`, which contains the slot number. Overwrites the copy that
 * slab_segment_read made, so call slab_segment_read again before you call a function that reads the copy. Stops and
 * returns false as soon as `write` returns false. On error, returns false and sets errno: ENOENT if no live allocator
 * has published anything, EINVAL if s or `write` is NULL, ENOMEM if memory runs out. */
SLAB_API bool slab_segment_json_all(SlabSegment* s, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* Reads the publications of all live allocators like slab_segment_json_all, but writes them in the Prometheus text
 * format. Each series has the label `allocator`. Overwrites the copy and fails like slab_segment_json_all. */
SLAB_API bool slab_segment_prometheus_all(SlabSegment* s, bool (*write)(void* ctx, const char* bytes, size_t n),
                                          void* ctx);

#ifdef __cplusplus
}
#endif
#endif
