/*
 * segment.c - publishing; see segment.h.
 *
 * A process has one segment, made for the first allocator that publishes, with a slot for each of SLAB_SEGMENT_SLOTS
 * allocators. A slot has two buffers and one sequence, written under tsi_segment_lock, which is tried and never waited
 * for (except by tsi_segment_publish):
 *
 *   writer of publication n                       reader
 *   sequence = 2n - 1          (release)          s = sequence            (acquire)
 *   words of buffer n & 1      (release, each)    n = s / 2; words of buffer n & 1   (acquire, each)
 *   sequence = 2n              (release)          accept when sequence <= 2n + 2
 *
 * Invariants
 *   P1  Publication n is written to buffer n & 1, and sequence is 2n - 1 before its first word is. So while n is the
 *       latest complete one, nobody writes to its buffer.
 *   P2  A reader that sees sequence >= 2n sees every word of publication n: every store of the sequence is a release
 *       that pairs with its acquire, odd numbers included: while a writer is at work, the reader normally sees these.
 *   P3  A reader that sees a word of publication n + 2 sees, afterwards, sequence >= 2n + 3, and does not accept: the
 *       word's release comes after that store, and pairs with the acquire of the word. So an accepted publication is
 *       whole.
 *   P4  The sequence goes on when another allocator takes the slot; the buffer has the serial of its allocator.
 *   P5  The writer relies on its own copy of sequence, states and places. The segment is written and never read.
 *   P6  Pages are reserved before they are written.
 *   P7  A process writes only to a segment it has made itself: a fork child has none of its parent's mapped, and a
 *       process with another id forgets it.
 *   P8  Changes before a slow path set the mark are in the figures of the publication that clears the mark, or of a
 *       later one: so while the mark is 0, the latest publication has everything that slow paths did.
 *   P9  A child that no fork handler was run in has the directory mapped, and nothing else: it may set a mark of its
 *       parent, which is a publication too few at worst.
 *
 * A writer that stays stopped leaves the sequence odd and the other buffer whole. Model: tests/models/segment.pml.
 */
#include "stats/segment.h"

#include "heap/fork.h"
#include "os/clock.h"
#include "os/shared.h"
#include "stats/report.h"
#include "stats/segment_profile.h"
#include "stats/segment_rows.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(2 * TSI_SEGMENT_EACH <= TSI_KEPT_PHASES && 2 * TSI_SEGMENT_EACH <= TSI_KEPT_EPOCHS,
               "the tables of the segment hold the rows that are chosen");
#define COOL_NS 1000000000u  /* before an ended slot is taken again */
#define RETRY_NS 1000000000u /* after a failure */

typedef struct Slot {
    bool reserved;
    uint64_t sequence;
    _Atomic uint64_t state, ended_ns; /* release and acquire: tsi_segment_end takes no lock */
} Slot;

_Static_assert(TSI_MARKS == SLAB_SEGMENT_SLOTS + 1, "a mark for each slot, and none");

static struct {
    TsiShared memory; /* base NULL: none */
    TsiPlan plan;
    SlabSegmentHeader process; /* the header's words about it */
    Slot slots[SLAB_SEGMENT_SLOTS];
    _Atomic uint32_t segment; /* number of the segment; 0: none yet */
    _Atomic uint32_t pid;
    uint64_t publications, left_out;
    _Atomic uint64_t due_ns; /* of the whole process */
    uint64_t walk_due_ns;    /* of walks over everything, of the whole process */
    const char* _Atomic what;
    _Atomic int error;
} seg = {.memory = {.fd = -1}};

/* Returns the word at an offset, in bytes and a multiple of 8, of the segment, which is there.
 * [any thread, needs no lock] */
static TsiShareWord* word_at(size_t offset) { return (TsiShareWord*)(void*)(seg.memory.base + offset); }
#define HEADER(field) word_at(offsetof(SlabSegmentHeader, field))
#define SLOT(slot, field) word_at(seg.plan.slots + (slot) * sizeof(SlabSegmentSlot) + offsetof(SlabSegmentSlot, field))

/* Records the last failure, for tsi_segment_health: `what`, the step in words, a literal, and `error`, an errno value.
 * Returns false, for callers to return. [any thread, needs no lock] */
static bool failed(const char* what, int error) {
    tsi_store_relaxed(&seg.what, what);
    tsi_store_relaxed(&seg.error, error);
    return false;
}

/* ---- the segment ---- */

/* Returns the process's start time in ticks since boot, 0 if /proc does not tell: field 22; the second is a name in
 * parentheses that may hold anything. [any thread, needs no lock] */
static uint64_t start_time(void) {
    char text[1024];
    const char* at = strrchr(tsi_os_read_text("/proc/self/stat", text, sizeof text), ')');
    for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/* Returns a header that identifies this process: byte order, versions, seg.pid, which is set, start time and the
 * system's boot id, empty if /proc does not tell; magic, sizes, tables and times are 0. [segment lock held] */
static SlabSegmentHeader header_of_process(void) {
    SlabSegmentHeader header = {.endian = SLAB_SEGMENT_ENDIAN,
                                .major = SLAB_SEGMENT_MAJOR,
                                .minor = SLAB_SEGMENT_MINOR,
                                .header_bytes = sizeof header,
                                .pid = tsi_load_relaxed(&seg.pid),
                                .start_time = start_time()};
    char boot[64];
    if (strlen(tsi_os_read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot)) >= 36)
        memcpy(header.boot_id, boot, 36);
    return header;
}

/* Writes the header, the tables and the places of buffers into seg.memory, a new segment whose bytes are 0, by
 * seg.plan; the magic last, so that readers see all or nothing. Sets seg.process to the header without sizes and
 * magic. seg.pid is set. now: ns of the clock. [segment lock held] */
static void header_write(uint64_t now) {
    const TsiPlan* plan = &seg.plan;
    SlabSegmentHeader header = seg.process = header_of_process();
    header.total_bytes = plan->total_bytes;
    header.created_ns = header.heartbeat_ns = now;
    header.scopes = (SlabSegmentTable){plan->scopes, TSI_SECTIONS, sizeof(SlabSegmentScope)};
    header.metrics = (SlabSegmentTable){plan->metrics, TSI_METRICS, sizeof(SlabSegmentMetric)};
    header.slots = (SlabSegmentTable){plan->slots, SLAB_SEGMENT_SLOTS, sizeof(SlabSegmentSlot)};
    memcpy(seg.memory.base, &header, sizeof header); /* everything except the magic */

    tsi_plan_tables(plan, seg.memory.base);
    for (unsigned slot = 0; slot < SLAB_SEGMENT_SLOTS; slot++) {
        tsi_store_relaxed(SLOT(slot, buffer_bytes), plan->buffer_bytes);
        tsi_store_relaxed(SLOT(slot, buffer), tsi_plan_buffer(plan, slot, 0));
        tsi_store_relaxed(SLOT(slot, buffer) + 1, tsi_plan_buffer(plan, slot, 1));
    }

    uint64_t magic;
    memcpy(&magic, SLAB_SEGMENT_MAGIC, sizeof magic);
    tsi_store_release(HEADER(magic), magic); /* pairs with the reader's acquire: everything else is there */
}

/* Forgets the segment of another process: unmaps it, drops its descriptor and that of the profile, sets all tsi_marks
 * to NULL, makes all slots free and clears the counts and times in seg. The file itself stays the other process's.
 * [segment lock held, or fork child] */
static void forget(void) {
    for (unsigned n = 0; n < TSI_MARKS; n++) tsi_store_relaxed(&tsi_marks[n], NULL);
    tsi_shared_forget(&seg.memory);
    tsi_share_profile_forget();
    memset(seg.slots, 0, sizeof seg.slots);
    seg.publications = seg.left_out = seg.walk_due_ns = 0;
    tsi_store_relaxed(&seg.due_ns, 0);
}

/* Makes the process's segment if there is none, or only that of the parent, which is forgotten: sets seg.memory,
 * seg.plan and seg.pid, and adds 1 to seg.segment. Returns true if there is one; false after recording a failure, and
 * there is none. now: ns of the clock. [segment lock held] */
static bool segment_ready(uint64_t now) {
    uint32_t pid = (uint32_t)getpid();
    const char* what = NULL;
    if (seg.memory.base != NULL && tsi_load_relaxed(&seg.pid) == pid) return true;
    if (seg.memory.base != NULL) forget(); /* P7: a child without a fork handler */
    tsi_plan_make(&seg.plan, tsi_os.page_bytes);

    int error = tsi_shared_open(&seg.memory, "temporal-slab", "segment", seg.plan.total_bytes, seg.plan.buffers, &what);
    if (error != 0) return failed(what, error);
    error = tsi_shared_inherit(&seg.memory, seg.plan.slots, seg.plan.buffers - seg.plan.slots); /* P9 */
    if (error != 0) {
        seg.memory.inherited_bytes = seg.plan.total_bytes; /* all of it is ours */
        forget();
        return failed("MADV_DOFORK", error);
    }

    tsi_store_relaxed(&seg.pid, pid);
    tsi_add_relaxed(&seg.segment, 1);
    header_write(now);
    return true;
}

/* ---- slots ---- */

/* Returns true if an allocator may take the slot at `now`, ns of the clock: it is free, or its last one ended COOL_NS
 * (a second) ago, or after `now` by more than that, because the clock was set back. [segment lock held] */
static bool is_free(Slot* slot, uint64_t now) {
    uint64_t state = tsi_load_acquire(&slot->state);    /* pairs with tsi_segment_end */
    uint64_t ended = tsi_load_relaxed(&slot->ended_ns); /* may be after `now`: ends take no lock */
    if (state == SLAB_SEGMENT_ENDED) return tsi_clock_is_due(now, ended + COOL_NS, COOL_NS);
    return state == SLAB_SEGMENT_FREE;
}

/* Takes a free slot of the segment for the allocator, if a->seat names none in this segment: reserves its buffers'
 * pages, marks it SLAB_SEGMENT_LIVE with the allocator's serial, sets a->seat, and lets tsi_changed mark that slot.
 * Returns true if the allocator has a slot; false after recording a failure: all are taken, which adds 1 to the
 * header's allocators_left_out the first time, or no memory. now: ns of the clock. [segment lock held] */
static bool seat_take(TsiArena* a, uint64_t now) {
    TsiSeat* seat = &a->seat;
    uint32_t segment = tsi_load_relaxed(&seg.segment);
    if (seat->slot != 0 && seat->segment == segment) return true;
    int error = ENOSPC;
    const char* what = "all slots of the segment are taken";

    for (unsigned n = 0; n < SLAB_SEGMENT_SLOTS; n++) {
        Slot* slot = &seg.slots[n];
        if (!is_free(slot, now)) continue;
        error = slot->reserved
                    ? 0
                    : tsi_shared_reserve(&seg.memory, tsi_plan_buffer(&seg.plan, n, 0), 2 * seg.plan.buffer_bytes);
        what = "reserving pages of a slot";
        if (error != 0) break;
        slot->reserved = true; /* P6 */
        tsi_share_profile_vacate(n);
        tsi_store_relaxed(SLOT(n, since_ns), now);
        /* release: a reader that sees it sees that the profile of the slot is nobody's (tsi_share_profile_vacate) */
        tsi_store_release(SLOT(n, serial), a->serial);
        tsi_store_release(SLOT(n, state), SLAB_SEGMENT_LIVE); /* pairs with the reader's acquire: the serial is there */
        tsi_store_relaxed(&slot->state, SLAB_SEGMENT_LIVE);
        seat->slot = n + 1;
        seat->segment = segment;
        tsi_store_relaxed(&tsi_marks[n + 1], SLOT(n, changed));
        tsi_store_relaxed(&seat->marked, n + 1);
        seat->has_profile = false;
        seat->profile_retry_ns = 0;
        return true;
    }

    if (!seat->left_out) tsi_store_relaxed(HEADER(allocators_left_out), ++seg.left_out);
    seat->left_out = true;
    return failed(what, error);
}

/* ---- publications ---- */

/* Clears the mark of the slot number `slot`, by which readers know that figures have changed (P8), before the figures
 * are taken. [segment lock held] */
static void mark_clear(unsigned slot) {
    /* seq_cst: pairs with tsi_changed */
    (void)tsi_swap_seq(SLOT(slot, changed), 0);
}

/* Writes the report as the next publication of the slot number `slot` (P1 to P3), into the buffer that readers do not
 * have, and sets report->publication to its number; of labels the report keeps only those that
 * tsi_report_choose_labels chooses. Raises seg.publications and the header's heartbeat. serial: of its allocator;
 * begun: ns of the clock at its start. [segment lock held] */
static void publication_write(TsiReport* report, unsigned slot, uint64_t serial, uint64_t begun) {
    Slot* entry = &seg.slots[slot];
    uint64_t n = entry->sequence / 2 + 1;
    size_t buffer = tsi_plan_buffer(&seg.plan, slot, n & 1);
    report->publication = n;
    entry->sequence = 2 * n - 1;
    /* release: a reader that sees this one must see the words of n - 1, too (P2). The words of n follow it: they are
     * releases themselves (P1). */
    tsi_store_release(SLOT(slot, sequence), entry->sequence);
    /* release: pairs with the reader's acquire of each word, P3 */
    tsi_store_release(word_at(buffer + offsetof(SlabSegmentBuffer, number)), n);
    tsi_store_release(word_at(buffer + offsetof(SlabSegmentBuffer, serial)), serial);
    tsi_store_release(word_at(buffer + offsetof(SlabSegmentBuffer, begun_ns)), begun);
    tsi_plan_rows(&seg.plan, report, seg.memory.base + buffer);

    uint64_t now = tsi_os.now_ns();
    tsi_store_relaxed(SLOT(slot, published_ns), now);
    tsi_store_relaxed(SLOT(slot, cost_ns), tsi_clock_between(begun, now));
    entry->sequence = 2 * n;
    tsi_store_release(SLOT(slot, sequence), entry->sequence); /* pairs with the reader's acquire, P2 */
    tsi_store_relaxed(HEADER(publications), ++seg.publications);
    tsi_store_relaxed(HEADER(heartbeat_ns), now);
}

/* Sets *report to a report at `now`, ns of the clock: of everything if a walk is due for the allocator and the
 * process, otherwise of figures alone, with the rows of the last walk, which seat->kept has and which must stay while
 * the report is used. A walk sets seat->kept and when the next ones are due, for both. kept_make has returned true.
 * Returns true, and *report to drop; false without memory. [segment lock held] */
static bool report_take(TsiArena* a, uint64_t now, TsiReport* report) {
    TsiSeat* seat = &a->seat;
    bool walk = seat->kept->phases_ns == 0 || (tsi_clock_is_due(now, seat->walk_due_ns, TSI_SEGMENT_PERIOD_NS) &&
                                               tsi_clock_is_due(now, seg.walk_due_ns, TSI_SEGMENT_WALK_NS));
    if (!walk) return tsi_report_figures(a, seat->kept, report);
    if (!tsi_report_take_rows(a, TSI_SEGMENT_EACH, report)) return false;
    tsi_report_keep(report, seat->kept);
    uint64_t done = tsi_os.now_ns();
    seg.walk_due_ns = done + tsi_segment_walk_pause(tsi_clock_between(now, done));
    seat->walk_due_ns = now + TSI_SEGMENT_PERIOD_NS;
    return true;
}

/* Makes a->seat.kept, the memory for the results of walks, of zeros, if it is NULL; tsi_segment_end gives it back.
 * Returns true if there is one; false, after recording a failure, without memory. [segment lock held] */
static bool kept_make(TsiArena* a) {
    TsiSeat* seat = &a->seat;
    if (seat->kept != NULL) return true;
    seat->kept = tsi_os_map(sizeof *seat->kept);
    return seat->kept != NULL || failed("memory for what walks have found", ENOMEM);
}

/* Returns the ns in which the process publishes nothing after a publication of `cost` ns: TSI_SEGMENT_SHARE times
 * that, at most TSI_SEGMENT_PAUSE_NS divided by the number of slots that are LIVE, so that each live allocator can
 * publish in that time. [segment lock held] */
static uint64_t pause_after(uint64_t cost) {
    uint64_t live = 0, pause = TSI_SEGMENT_SHARE * cost;
    for (unsigned n = 0; n < SLAB_SEGMENT_SLOTS; n++)
        live += tsi_load_relaxed(&seg.slots[n].state) == SLAB_SEGMENT_LIVE;
    uint64_t most = TSI_SEGMENT_PAUSE_NS / (live != 0 ? live : 1);
    return pause < most ? pause : most;
}

/* Publishes the allocator's report, and its profile if that is due, in the process's segment, after making segment and
 * seat if there are none. Sets *done to true if the report is published; otherwise to false, and adds 1 to
 * a->seat.failures, as a profile that fails does. Returns when, in ns of the clock, the allocator's next publication
 * may be; sets seg.due_ns, before which no allocator publishes, after a success. Setting up happens once and is not
 * part of a publication's share. [segment lock held] */
static uint64_t publish_locked(TsiArena* a, bool* done) {
    TSI_HOLDS(&tsi_segment_lock);
    TsiReport report;
    uint64_t begun = tsi_os.now_ns();
    bool ready = segment_ready(begun) && seat_take(a, begun) && kept_make(a);
    begun = tsi_os.now_ns();
    if (ready) mark_clear(a->seat.slot - 1);
    *done = ready && (report_take(a, begun, &report) || failed("memory for a snapshot", ENOMEM));

    if (!*done) {
        tsi_add_relaxed(&a->seat.failures, 1);
        tsi_changed(a); /* the mark may have been cleared */
        return begun + RETRY_NS;
    }

    publication_write(&report, a->seat.slot - 1, a->serial, begun);
    tsi_report_drop(&report);
    tsi_add_relaxed(&a->seat.publications, 1);

    uint64_t now = tsi_os.now_ns();
    const char* what = NULL;
    int error = tsi_share_profile(a, a->seat.slot - 1, &seg.process, &what); /* with a pause of its own */
    if (error != 0) {
        (void)failed(what, error);
        tsi_add_relaxed(&a->seat.failures, 1);
    }

    tsi_store_relaxed(&seg.due_ns, now + pause_after(tsi_clock_between(begun, now)));
    return begun + TSI_SEGMENT_PERIOD_NS;
}

/* Publishes if no thread does, or, if `waits` is true, after the publication under way; sets a->seat.due_ns to when
 * the next may be. The thread cannot be cancelled meanwhile. Preserves errno. Returns true if it has; false if
 * publish_locked has failed, or, with nothing done, if another thread publishes and `waits` is false. Takes the
 * segment lock. [any thread, no lock held, no bracket open] */
static TSI_COLD bool publish(TsiArena* a, bool waits) {
    int saved = errno, state;
    bool done;
    if (waits) tsi_lock_take(&tsi_segment_lock);
    else if (!tsi_lock_try(&tsi_segment_lock)) return false;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    tsi_store_relaxed(&a->seat.due_ns, publish_locked(a, &done));
    (void)pthread_setcancelstate(state, NULL);
    tsi_lock_give(&tsi_segment_lock);
    errno = saved;
    return done;
}

bool tsi_segment_publish(TsiArena* a) { return a->options.segment != 0 && publish(a, true); }

TSI_COLD void tsi_segment_poll(TsiArena* a) {
    uint64_t now = tsi_os.coarse_ns();
    bool due = tsi_clock_is_due(now, tsi_load_relaxed(&a->seat.due_ns), RETRY_NS) &&
               tsi_clock_is_due(now, tsi_load_relaxed(&seg.due_ns), TSI_SEGMENT_PAUSE_NS);
    if (!due || !publish(a, false)) tsi_changed(a);
}

void tsi_segment_begin(TsiArena* a) {
    if (a->options.segment != 0) (void)publish(a, false);
}

void tsi_segment_end(TsiArena* a) {
    TsiSeat* seat = &a->seat;
    tsi_os_drop(seat->kept, sizeof *seat->kept);
    seat->kept = NULL;
    if (a->options.segment == 0 || seat->slot == 0 || seat->segment != tsi_load_relaxed(&seg.segment)) return;
    if (tsi_load_relaxed(&seg.pid) != (uint32_t)getpid()) return; /* P7 */

    unsigned slot = seat->slot - 1;
    uint64_t now = tsi_os.now_ns();
    tsi_store_relaxed(SLOT(slot, ended_ns), now);
    tsi_store_release(SLOT(slot, state), SLAB_SEGMENT_ENDED); /* pairs with the reader's acquire: the time is there */
    if (seat->has_profile) tsi_share_profile_end(slot, now);
    tsi_store_relaxed(&seg.slots[slot].ended_ns, now);
    tsi_store_release(&seg.slots[slot].state, SLAB_SEGMENT_ENDED); /* pairs with is_free: this thread writes no more */
}

/* ---- the process ---- */

/* Forgets the parent's segment, if it had one, and raises seg.segment, so that no seat of an allocator has its number:
 * the child's allocators take slots of a new segment. [fork child] */
static void in_child(void) {
    if (seg.memory.base != NULL) forget();
    tsi_add_relaxed(&seg.segment, 1); /* no seat has this number */
}

/* Has fork children call in_child. [pthread_once] */
static void init_once(void) { tsi_fork_drop_segment = in_child; }

void tsi_segment_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, init_once);
}

TsiSegmentHealth tsi_segment_health(TsiArena* a) {
    return (TsiSegmentHealth){.asked = a->options.segment != 0,
                              .publications = tsi_load_relaxed(&a->seat.publications),
                              .failures = tsi_load_relaxed(&a->seat.failures),
                              .what = tsi_load_relaxed(&seg.what),
                              .error = tsi_load_relaxed(&seg.error)};
}
