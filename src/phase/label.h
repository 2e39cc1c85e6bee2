/*
 * label.h - labels: a bounded registry of names, and the account of each.
 *
 * An allocator knows at most `capacity` labels. Record 0 is "(unlabeled)", record 1 "(other)", which takes every label
 * that finds no room. Looking a label up takes no lock: names are published once and never change; making one takes
 * `lock`.
 *
 * Accounts are cumulative and written when a phase ends (samples: when they are taken). A thread that ends phases of a
 * label counts in a record of its own by plain stores (TsiPending, account/charge.h), which goes to one of the label's
 * eight shards, by relaxed read-modify-writes, when the thread leaves or needs the record for another label. So threads
 * that end phases at once meet on no cache line. Live objects are never counted: readers take them from the slabs.
 *
 * A reader reads the shards first, then the threads' records, again if something has moved between them meanwhile, then
 * the phases. A phase is marked as posted before it is added, and figures that move leave the record before the shard
 * has them. So a sum that races with an end misses it, and never counts it twice; `shown` keeps reported sums from
 * going back. So each reported sum is at most the true one, and the live figure is what they leave: allocated + moved =
 * freed + released + live, in every reading.
 */
#ifndef TSI_PHASE_LABEL_H
#define TSI_PHASE_LABEL_H

#include "os/table.h"

enum { TSI_LABEL_NONE = 0, TSI_LABEL_OTHER = 1 }; /* records of every registry */
enum { TSI_LABEL_BYTES = 32, TSI_LABELS_MAX = 4096, TSI_LABEL_INDEX = 2 * TSI_LABELS_MAX };
enum { TSI_LABEL_SHARDS = 8, TSI_LABEL_BUCKETS = 48, TSI_LABEL_SHOWN = 13 };
enum { TSI_LABEL_COLUMNS = 16 }; /* columns of figures by class and label: ids 0..14, and the rest */

typedef struct TsiTotals {
    uint64_t objects, bytes;
} TsiTotals;

/* Holding of a phase in slabs that no heap has: live objects, their usable bytes, and the slabs' bytes. */
typedef struct TsiHolding {
    uint64_t objects, live_bytes, slab_bytes;
} TsiHolding;

/* Escapes of a phase that raise no alarm; both 0: nothing was set for the label. */
typedef struct TsiExpected {
    uint64_t objects, bytes;
} TsiExpected;

/* Returns true if a phase from which `objects` or `bytes` escape must be reported: one of them is above what is
 * expected. [any thread, needs no lock] */
TSI_INLINE bool tsi_is_unexpected(const TsiExpected* expected, uint64_t objects, uint64_t bytes) {
    return objects > expected->objects || bytes > expected->bytes;
}
/* Adds `more` to *to, objects and bytes. [no other user of *to] */
TSI_INLINE void tsi_totals_add(TsiTotals* to, TsiTotals more) {
    to->objects += more.objects;
    to->bytes += more.bytes;
}
/* Adds `more` to *to. [no other user of *to] */
TSI_INLINE void tsi_holding_add(TsiHolding* to, TsiHolding more) {
    to->objects += more.objects;
    to->live_bytes += more.live_bytes;
    to->slab_bytes += more.slab_bytes;
}

/* Sums in words only: TSI_LABEL_SUMS of them. */
typedef struct TsiLabelSums {
    _Atomic uint64_t ended, objects_allocated, bytes_allocated, objects_released, bytes_released, closed_slabs,
        pinned_slabs, slow;
    _Atomic uint64_t objects_freed, bytes_freed; /* of phases that have ended, or that went to another label */
    _Atomic uint64_t lock_fast, lock_contended;
    /* Phases that ended the straight way (heap/ready.h): `ended`, `closed_slabs` and `slow` lack one for each of them,
     * `lock_fast` two. Then the objects and bytes that they both allocated and released, which the sums above lack. */
    _Atomic uint64_t straight, straight_objects, straight_bytes;
    _Atomic uint64_t outside_objects, outside_bytes; /* requested by scopes of the label, made outside of every scope */
} TsiLabelSums;
enum { TSI_LABEL_SUMS = sizeof(TsiLabelSums) / sizeof(uint64_t) };

typedef struct TsiLabelShard {
    TsiLabelSums sums;
    _Atomic uint64_t samples, sample_ns[3]; /* of allocations: wall, cpu, wait */
    _Atomic uint64_t duration[TSI_LABEL_BUCKETS], peaks[TSI_LABEL_BUCKETS];
} TsiLabelShard;

/* Limits on committed bytes; 0 = none. fn and ctx: the owner's lock. */
typedef struct TsiBudget {
    _Atomic uint64_t soft, hard;
    void (*fn)(void);
    void* ctx;
} TsiBudget;

/* Least live bytes read in this stretch and in the two before, see stats/growth.h. */
typedef struct TsiFloor {
    uint64_t now, before, older;
} TsiFloor;
enum { TSI_GROWTH_SHORT, TSI_GROWTH_LONG, TSI_GROWTHS };

/* Live and committed bytes at the latest three marks of each span, newest first, see stats/pace.h. */
enum { TSI_SPAN_10S, TSI_SPAN_100S, TSI_SPANS, TSI_SPAN_MARKS = 3 };
typedef struct TsiPast {
    uint64_t live[TSI_SPANS][TSI_SPAN_MARKS], committed[TSI_SPANS][TSI_SPAN_MARKS];
} TsiPast;

typedef struct TsiLabel {
    char name[TSI_LABEL_BYTES];
    _Atomic uint64_t committed
        __attribute__((aligned(64))); /* without what threads have pending, see account/charge.h */
    _Atomic uint64_t peak;
    TsiBudget budget;       /* fn and ctx: the registry's lock */
    _Atomic uint32_t exact; /* charges in progress at a limit of the budget, see account/charge.h */
    _Atomic uint64_t warnings, over;
    _Atomic uint64_t objects_escaped __attribute__((aligned(64)));
    _Atomic uint64_t bytes_escaped, refusals, retries, swallowed;
    _Atomic uint64_t moves_begun, moves_ended; /* moves from threads' records to the shards */
    /* live objects and bytes that relabelled phases brought, less those taken away */
    _Atomic int64_t moved_objects, moved_bytes;
    uint64_t shown[TSI_LABEL_SHOWN]; /* sums as reported; the registry's lock */
    TsiFloor floors[TSI_GROWTHS];    /* the registry's lock */
    TsiPast past;                    /* the registry's lock */
    TsiLock drain_lock;              /* a leaf: no lock is taken under it */
    TsiExpected expected;            /* drain_lock */
    _Atomic uint64_t unexpected;     /* phases from which more escaped by the time they had drained */
    TsiLabelShard shard[TSI_LABEL_SHARDS] __attribute__((aligned(64)));
} TsiLabel;

_Static_assert(TSI_LABELS_MAX + 2 <= UINT16_MAX, "slots hold every record + 1");

typedef struct TsiLabels {
    TsiTable records;
    uint32_t capacity;
    TsiLock lock;
    _Atomic uint16_t slots[TSI_LABEL_INDEX]; /* record + 1, by hash of the name */
} TsiLabels;

/* Makes the registry in `ground`, for at most `capacity` labels, with the records TSI_LABEL_NONE, "(unlabeled)", and
 * TSI_LABEL_OTHER, "(other)", which count as two of them; *labels was zeroed. Returns false if the system refuses; what
 * was made stays the ground's. [no other user] */
bool tsi_labels_init(TsiLabels* labels, TsiGround* ground, uint32_t capacity);
/* Unmaps the registry, unless it is in a ground. [no other user] */
void tsi_labels_destroy(TsiLabels* labels);
/* Copies a label, at most 31 bytes, cut at a UTF-8 boundary, with zeros behind; all zeros for NULL.
 * [any thread, needs no lock] */
void tsi_label_copy(char out[TSI_LABEL_BYTES], const char* label);
/* Returns the record index of a name, which has all TSI_LABEL_BYTES as tsi_label_copy makes them; makes a record with
 * that name if it is new. Returns TSI_LABEL_NONE for an empty name and for "(unlabeled)", TSI_LABEL_OTHER for "(other)"
 * and if there is no room for a new one. Takes the labels lock only for a new one. [any thread, no labels lock held] */
uint32_t tsi_label_find(TsiLabels* labels, const char name[TSI_LABEL_BYTES]);
/* Returns the number of records that have their name, "(unlabeled)" and "(other)" included; it never falls. Takes the
 * labels lock, so that it waits for one being made. [any thread, no labels lock held] */
uint32_t tsi_label_count(TsiLabels* labels);

/* Returns the label with record index `at`, which was handed out. [any thread, needs no lock] */
TSI_INLINE TsiLabel* tsi_label(const TsiLabels* labels, uint32_t at) { return tsi_table_at(&labels->records, at); }
/* Returns the public id of a label's record: 0 for "(unlabeled)", capacity - 1 for "(other)", names by age between.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_label_id(const TsiLabels* labels, uint32_t at) {
    return at == TSI_LABEL_OTHER ? labels->capacity - 1 : at == TSI_LABEL_NONE ? 0 : at - 1;
}
/* Returns the column of figures by class and label, 0 to TSI_LABEL_COLUMNS - 1, that a label's record counts in.
 * [any thread, needs no lock] */
TSI_INLINE unsigned tsi_label_column(const TsiLabels* labels, uint32_t at) {
    uint32_t id = tsi_label_id(labels, at);
    return id < TSI_LABEL_COLUMNS - 1 ? id : TSI_LABEL_COLUMNS - 1;
}
/* Returns the bucket of a value in a histogram of doublings: the index of its highest bit, at most TSI_LABEL_BUCKETS -
 * 1; 0 for 0. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_label_bucket(uint64_t v) {
    unsigned b = v == 0 ? 0 : tsi_log2(v);
    return b < TSI_LABEL_BUCKETS ? b : TSI_LABEL_BUCKETS - 1;
}

#endif
