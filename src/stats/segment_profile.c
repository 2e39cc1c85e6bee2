/*
 * segment_profile.c - see segment_profile.h; how a publication is written and read, and P1 to P7, are in segment.c.
 *
 * A buffer: SlabProfileBuffer, the live samples, the stacks, each as long as it is deep, their makers, and counts of
 * the escaped objects. The file has room for full tables, so nothing is ever left out; its pages are reserved before
 * they are written, as many as this publication needs and 64 KiB more at a time. Copied are the tables first, under the
 * profile's lock, which nobody waits for while shared memory is reserved or written.
 */
#include "stats/segment_profile.h"

#include "observe/profile.h"
#include "os/clock.h"
#include "os/shared.h"
#include "stats/segment_rows.h"

#include <errno.h>
#include <string.h>

#define STEP_BYTES ((size_t)64 << 10) /* reserved at a time */
#define RETRY_NS 1000000000u

_Static_assert(sizeof(SlabProfileBuffer) == 96 && sizeof(SlabProfileLive) == 24 && sizeof(SlabProfileStack) == 56 &&
                   sizeof(SlabProfileMaker) == 40 && sizeof(SlabProfileEscape) == 24,
               "layout");
_Static_assert(TSI_LABEL_BYTES == sizeof((SlabProfileStack*)0)->label, "label");
_Static_assert(TSI_LABEL_BYTES == sizeof((SlabProfileMaker*)0)->label, "label");
_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "frames");

typedef struct Slot {
    uint64_t sequence;
    size_t reserved[2]; /* bytes of each buffer that may be written */
} Slot;

static struct {
    TsiShared memory;             /* base NULL: none */
    size_t buffers, buffer_bytes; /* where they begin */
    Slot slots[SLAB_SEGMENT_SLOTS];
    uint64_t due_ns, publications;
} prof = {.memory = {.fd = -1}};

/* Returns the word at an offset, in bytes and a multiple of 8, of the file, which is there.
 * [any thread, needs no lock] */
static TsiShareWord* word_at(size_t offset) { return (TsiShareWord*)(void*)(prof.memory.base + offset); }
#define HEADER(field) word_at(offsetof(SlabSegmentHeader, field))
#define SLOT(slot, field) \
    word_at(SLAB_SEGMENT_HEADER_BYTES + (slot) * sizeof(SlabSegmentSlot) + offsetof(SlabSegmentSlot, field))

/* Returns the place of the buffer `which`, 0 or 1, of the slot number `slot`, in bytes from the start of the file.
 * [segment lock held] */
static size_t buffer_at(unsigned slot, unsigned which) {
    return prof.buffers + (2 * (size_t)slot + which) * prof.buffer_bytes;
}

/* ---- the file ---- */

size_t tsi_share_profile_most(void) {
    size_t stack = sizeof(SlabProfileStack) + TSI_PROFILE_FRAMES * sizeof(uint64_t) + sizeof(SlabProfileMaker) +
                   sizeof(SlabProfileEscape);
    return sizeof(SlabProfileBuffer) + TSI_PROFILE_LIVE * sizeof(SlabProfileLive) + TSI_PROFILE_STACKS * stack;
}

/* Makes the file of profiles if there is none, its magic last, and sets prof.memory, prof.buffer_bytes and
 * prof.buffers. like: the segment's header. Returns 0; otherwise an errno value and *what as the words for the step
 * that failed, and there is no file, so that the next call tries again. *what means nothing with 0.
 * [segment lock held] */
static int file_ready(const SlabSegmentHeader* like, const char** what) {
    if (prof.memory.base != NULL) return 0;
    SlabSegmentHeader header = *like;
    size_t slots = SLAB_SEGMENT_SLOTS * sizeof(SlabSegmentSlot);
    prof.buffer_bytes = tsi_align_up(tsi_share_profile_most(), tsi_os.page_bytes);
    prof.buffers = tsi_align_up(sizeof header + slots, tsi_os.page_bytes);
    header.total_bytes = buffer_at(SLAB_SEGMENT_SLOTS, 0);
    header.scopes = header.metrics = (SlabSegmentTable){sizeof header, 0, 0};
    header.slots = (SlabSegmentTable){sizeof header, SLAB_SEGMENT_SLOTS, sizeof(SlabSegmentSlot)};
    header.created_ns = header.heartbeat_ns = tsi_os.now_ns();

    int error = tsi_shared_open(&prof.memory, "tslab-profile", "profile", header.total_bytes, prof.buffers, what);
    if (error != 0) return error;

    memset(header.magic, 0, sizeof header.magic);
    memcpy(prof.memory.base, &header, sizeof header);
    for (unsigned slot = 0; slot < SLAB_SEGMENT_SLOTS; slot++) {
        tsi_store_relaxed(SLOT(slot, buffer_bytes), prof.buffer_bytes);
        tsi_store_relaxed(SLOT(slot, buffer), buffer_at(slot, 0));
        tsi_store_relaxed(SLOT(slot, buffer) + 1, buffer_at(slot, 1));
    }

    uint64_t magic;
    memcpy(&magic, SLAB_PROFILE_MAGIC, sizeof magic);
    tsi_store_release(HEADER(magic), magic); /* pairs with the reader's acquire: everything else is there */
    return 0;
}

void tsi_share_profile_forget(void) {
    tsi_shared_forget(&prof.memory);
    memset(prof.slots, 0, sizeof prof.slots);
    prof.due_ns = prof.publications = 0;
}

void tsi_share_profile_vacate(unsigned slot) {
    /* Before the next allocator's serial, which seat_take publishes. */
    if (prof.memory.base != NULL) tsi_store_release(SLOT(slot, state), SLAB_SEGMENT_FREE);
}

void tsi_share_profile_end(unsigned slot, uint64_t now) {
    tsi_store_relaxed(SLOT(slot, ended_ns), now);
    tsi_store_release(SLOT(slot, state), SLAB_SEGMENT_ENDED); /* pairs with the reader's acquire: the time is there */
}

/* ---- a publication ---- */

typedef struct Tables {
    TsiProfileStack stacks[TSI_PROFILE_STACKS];
    TsiProfileLive live[TSI_PROFILE_LIVE];
    TsiProfileCounts counts;
} Tables;

/* Writes `bytes` bytes from `from`, whole words, at the offset `at` of the file, for which room_for returned 0.
 * Returns the offset behind them. release: pairs with the reader's acquire of the word (segment.c).
 * [segment lock held] */
static size_t put(size_t at, const void* from, size_t bytes) {
    for (size_t n = 0; n < bytes; n += sizeof(uint64_t)) {
        uint64_t v;
        memcpy(&v, (const char*)from + n, sizeof v);
        tsi_store_release(word_at(at + n), v);
    }
    return at + bytes;
}

/* Sets head->stacks, live and bytes, the length of head and rows, from *tables, and adds to its makers and escapes,
 * which are 0, the stacks that have a maker and those with escaped bytes. [no other user of head] */
static void count_rows(const Tables* tables, SlabProfileBuffer* head) {
    head->stacks = tables->counts.stack_count;
    head->live = tables->counts.live_count;
    head->bytes = sizeof *head + head->live * sizeof(SlabProfileLive);
    for (uint32_t i = 0; i < tables->counts.stack_count; i++) {
        const TsiProfileStack* stack = &tables->stacks[i];
        head->makers += stack->maker != 0;
        head->escapes += stack->escaped_bytes != 0;
        head->bytes += sizeof(SlabProfileStack) + stack->depth * sizeof(uint64_t);
    }
    head->bytes += head->makers * sizeof(SlabProfileMaker) + head->escapes * sizeof(SlabProfileEscape);
}

/* Reserves pages of the buffer `which`, 0 or 1, of the slot number `slot`, in steps of STEP_BYTES, until at least
 * `bytes` of it may be written (P6), and sets entry->reserved[which] to the bytes that may be. Returns 0, or an errno
 * value with *entry unchanged. [segment lock held] */
static int room_for(Slot* entry, unsigned slot, unsigned which, size_t bytes) {
    size_t have = entry->reserved[which], want = tsi_align_up(bytes, STEP_BYTES);
    if (bytes <= have) return 0;
    if (want > prof.buffer_bytes) want = prof.buffer_bytes;
    int error = tsi_shared_reserve(&prof.memory, buffer_at(slot, which) + have, want - have);
    if (error == 0) entry->reserved[which] = want; /* P6 */
    return error;
}

/* Writes *head, whose counts count_rows has set, and behind it the profile's tables into the buffer at the offset `at`
 * of the file, which room_for has made large enough: the live objects; each stack with its frames; the makers of
 * stacks that have one; what escaped of stacks that have escaped bytes. [segment lock held] */
static void buffer_write(TsiArena* a, const Tables* tables, size_t at, const SlabProfileBuffer* head) {
    at = put(at, head, sizeof *head);
    for (uint32_t n = 0; n < tables->counts.live_count; n++) {
        const TsiProfileLive* live = &tables->live[n];
        SlabProfileLive row = {live->bytes, live->era, live->stack, (uint16_t)(live->cls - 1), live->escaped};
        at = put(at, &row, sizeof row);
    }

    for (uint32_t n = 0; n < tables->counts.stack_count; n++) {
        const TsiProfileStack* stack = &tables->stacks[n];
        SlabProfileStack row = {.objects = stack->objects, .bytes = stack->bytes, .depth = stack->depth};
        memcpy(row.label, tsi_label(&a->phases.labels, stack->label)->name, sizeof row.label);
        at = put(at, &row, sizeof row);
        at = put(at, stack->frames, stack->depth * sizeof *stack->frames);
    }

    for (uint32_t n = 0; n < tables->counts.stack_count; n++) {
        if (tables->stacks[n].maker == 0) continue;
        SlabProfileMaker row = {.stack = n};
        memcpy(row.label, tsi_label(&a->phases.labels, tables->stacks[n].maker - 1u)->name, sizeof row.label);
        at = put(at, &row, sizeof row);
    }

    for (uint32_t n = 0; n < tables->counts.stack_count; n++) {
        const TsiProfileStack* stack = &tables->stacks[n];
        SlabProfileEscape row = {n, stack->escaped_objects, stack->escaped_bytes};
        if (stack->escaped_bytes != 0) at = put(at, &row, sizeof row);
    }
}

/* Writes the tables as the next publication of the slot number `slot` (P1, P2), into the buffer that readers do not
 * have, after reserving its pages, and marks the slot LIVE with the allocator's serial. begun: ns of the clock at its
 * start. Returns 0, or an errno value, with nothing published and the last publication still there.
 * [segment lock held] */
static int publish(TsiArena* a, const Tables* tables, unsigned slot, uint64_t begun) {
    Slot* entry = &prof.slots[slot];
    uint64_t n = entry->sequence / 2 + 1;
    const TsiProfileCounts* counts = &tables->counts;
    SlabProfileBuffer head = {n, a->serial, begun, 0, counts->mean, counts->samples, .escape_stacks = counts->escapes};
    head.lost_stacks = counts->lost_stacks, head.lost_live = counts->lost_live;
    count_rows(tables, &head);

    int error = room_for(entry, slot, n & 1, head.bytes);
    if (error != 0) return error;
    tsi_store_relaxed(SLOT(slot, serial), a->serial);
    entry->sequence = 2 * n - 1;
    tsi_store_release(SLOT(slot, sequence), entry->sequence); /* P1, P2 */

    buffer_write(a, tables, buffer_at(slot, n & 1), &head);
    uint64_t now = tsi_os.now_ns();
    tsi_store_relaxed(SLOT(slot, published_ns), now);
    tsi_store_relaxed(SLOT(slot, cost_ns), tsi_clock_between(begun, now));
    entry->sequence = 2 * n;
    tsi_store_release(SLOT(slot, sequence), entry->sequence); /* pairs with the reader's acquire, P2 */
    tsi_store_release(SLOT(slot, state), SLAB_SEGMENT_LIVE);  /* the serial and a publication of it are there */
    tsi_store_relaxed(HEADER(publications), ++prof.publications);
    tsi_store_relaxed(HEADER(heartbeat_ns), now);
    return 0;
}

/* Copies the profile of `a`, whose mean is not 0, and publishes the copy in the slot number `slot`. begun: ns of the
 * clock at its start. Returns 0, or an errno value with nothing published. Sets *what to the words for the last step
 * tried, which is the one that failed. Takes the profile's lock. [segment lock held] */
static int copy_and_publish(TsiArena* a, unsigned slot, uint64_t begun, const char** what) {
    *what = "memory for a copy of the profile";
    Tables* tables = tsi_os_map(sizeof *tables);
    if (tables == NULL) return ENOMEM;
    tsi_profile_copy(a, tables->stacks, tables->live, &tables->counts);
    *what = "reserving pages for the profile";
    int error = publish(a, tables, slot, begun);
    tsi_os_drop(tables, sizeof *tables);
    return error;
}

int tsi_share_profile(TsiArena* a, unsigned slot, const SlabSegmentHeader* like, const char** what) {
    TsiSeat* seat = &a->seat;
    if (a->profile.mean == 0) return 0;
    uint64_t begun = tsi_os.coarse_ns();
    bool due = tsi_clock_is_due(begun, seat->profile_retry_ns, RETRY_NS) &&
               tsi_clock_is_due(begun, prof.due_ns, TSI_SEGMENT_WALK_NS);
    if (!due) return 0;

    begun = tsi_os.now_ns();
    int error = file_ready(like, what);
    if (error == 0) error = copy_and_publish(a, slot, begun, what);
    if (error != 0) {
        seat->profile_retry_ns = begun + RETRY_NS;
        return error;
    }

    seat->has_profile = true;
    uint64_t now = tsi_os.now_ns();
    prof.due_ns = now + tsi_segment_walk_pause(tsi_clock_between(begun, now));
    return 0;
}
