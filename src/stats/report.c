/*
 * report.c - one walk, every table. See report.h.
 *
 * The order keeps sums from counting anything twice: label accounts, then phases, then slabs. What moves between
 * two readings (a slab settled into its phase, a phase posted to its label) is missed, and TsiLabel.shown
 * keeps the told sums from going back until the next report.
 *
 * Rows do not contradict themselves. A phase has allocated what slabs that have left it had issued, and what those that are
 * there have: of each of these issued and live are read together, so what is missed is missed of both. A label's live objects are
 * what its sums leave, see phase/label.h.
 */
#include "stats/report.h"

#include "heap/charge.h"
#include "stats/tally.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What a walk finds of one incarnation; by record index. */
typedef struct PhaseSum {
    uint64_t slabs, empty, partial, full, bytes, empty_bytes;
    TsiTotals live, issued;
} PhaseSum;

/* What a report needs of a record, read under its stripe. */
typedef struct PhaseCopy {
    uint64_t era; /* 0: nothing to tell of */
    EpochId id;
    unsigned state;
    bool is_id;  /* its id still names it */
    bool used;
    uint32_t label, threads;
    char text[TSI_LABEL_BYTES];
    uint64_t since, refcount, peak, purged, soft, hard, rss_before, rss_after;
    TsiTotals allocated, released; /* by slabs that have left */
    uint64_t closed_slabs, pinned_slabs, slow, lock_fast, lock_contended; /* all that was not posted */
    TsiTotals new_allocated, new_released, posted_freed;
} PhaseCopy;

typedef struct Walk {
    TsiArena* a;
    TsiReport* r;
    PhaseCopy* copies;
    PhaseSum* sums;
    uint32_t* seen; /* by binding: the record in which it was counted last */
    uint32_t incs, bindings;
} Walk;

/* ---- phases ---- */

/* A thread may own several heaps of a phase, and some without slabs. Stripe held. */
static bool is_further_owner(Walk* w, TsiHeap* h, uint32_t n) {
    uint64_t word = tsi_load_relaxed(&h->word);
    uint32_t binding = (uint32_t)(word >> 8);
    bool of_a_thread = tsi_heap_state(word) != TSI_HEAP_DETACHED && h->lanes == NULL;
    if (!of_a_thread || tsi_load_relaxed(&h->slab_count) == 0) return false;
    if (binding >= w->bindings || w->seen[binding] == n) return false;
    w->seen[binding] = n;
    return true;
}

static void copy_phase(Walk* w, uint32_t n) {
    TsiArena* a = w->a;
    TsiInc* i = tsi_inc(&a->phases, n);
    PhaseCopy* c = &w->copies[n];
    if (tsi_inc_era(i) == 0) return;
    tsi_lock_take(tsi_inc_lock(i)); /* not counted for the phase: it is ours */
    c->era = tsi_inc_era(i);
    if (c->era == 0) { /* being reused: its fields are somebody's */
        tsi_lock_give(tsi_inc_lock(i));
        return;
    }
    c->id = tsi_load_relaxed(&i->id);
    c->state = tsi_inc_state(i);
    c->label = tsi_inc_label(i);
    memcpy(c->text, i->label, sizeof c->text);
    c->since = tsi_load_relaxed(&i->open_since_ns);
    c->refcount = tsi_snapshot_refcount(a, i);
    c->peak = tsi_load_relaxed(&i->peak);
    c->purged = tsi_load_relaxed(&i->purged);
    c->soft = tsi_load_relaxed(&i->budget.soft);
    c->hard = tsi_load_relaxed(&i->budget.hard);
    c->rss_before = i->rss_before;
    c->rss_after = i->rss_after;
    c->allocated.objects = i->allocated.objects - i->orphaned.objects;
    c->allocated.bytes = i->allocated.bytes - i->orphaned.bytes;
    c->released = i->released;
    c->new_allocated.objects = c->allocated.objects - i->posted.objects_allocated; /* may be below 0, until the slabs are added */
    c->new_allocated.bytes = c->allocated.bytes - i->posted.bytes_allocated;
    c->new_released.objects = i->released.objects - i->posted.objects_released;
    c->new_released.bytes = i->released.bytes - i->posted.bytes_released;
    c->posted_freed = (TsiTotals){i->posted.objects_freed, i->posted.bytes_freed};
    c->closed_slabs = i->closed_slabs - i->posted.closed_slabs;
    c->pinned_slabs = i->pinned_slabs - i->posted.pinned_slabs;
    c->slow = i->slow - i->posted.slow;
    c->lock_fast = i->lock_fast - i->posted.lock_fast;
    c->lock_contended = i->lock_contended - i->posted.lock_contended;
    for (uint32_t at = i->heaps; at != 0; at = tsi_heap(a, at - 1)->inc_next) {
        TsiHeap* h = tsi_heap(a, at - 1);
        c->slow += tsi_load_relaxed(&h->slow);
        c->threads += is_further_owner(w, h, n);
    }
    tsi_lock_give(tsi_inc_lock(i));
    c->is_id = tsi_phases_resolve(&a->phases, c->id) == tsi_ref(c->era, n);
    c->used = c->peak != 0;
}

static void add_slab(const TsiSlabView* v, void* ctx) {
    Walk* w = ctx;
    tsi_tally_global_add(&w->r->global, v);
    for (uint32_t n = 0; n < w->r->class_count; n++) {
        /* The slab's own class, and for a mixed slab those of its objects. */
        if (v->cls == tsi_class_number(n) || (v->cls == TSI_CLASS_MIXED && n < TSI_FIXED_CLASSES)) tsi_tally_class_add(w->a, &w->r->classes[n], v);
    }
    uint32_t n = tsi_ref_index(v->ref);
    if (v->ref == 0 || n >= w->incs || w->copies[n].era != tsi_ref_era(v->ref)) return;
    PhaseSum* p = &w->sums[n];
    p->slabs++;
    p->bytes += v->bytes;
    p->live.objects += v->sum.live.objects;
    p->live.bytes += v->sum.live.bytes;
    p->issued.objects += v->sum.issued.objects;
    p->issued.bytes += v->sum.issued.bytes;
    if (v->sum.live.objects == 0) {
        p->empty++;
        p->empty_bytes += v->bytes;
    } else if (tsi_tally_is_full(w->a, v)) {
        p->full++;
    } else {
        p->partial++;
    }
}

static uint64_t age_of(Walk* w, const PhaseCopy* c, uint64_t now) {
    uint64_t since = c->since;
    if (since == 0) since = c->used ? w->a->born_ns : now; /* the first incarnation of id 0 was always open */
    return now > since ? now - since : 0;
}

static void phase_row(Walk* w, uint32_t n, uint64_t now) {
    const PhaseCopy* c = &w->copies[n];
    const PhaseSum* p = &w->sums[n];
    if (!c->used || (c->state != TSI_INC_ACTIVE && p->slabs == 0)) return;
    SlabPhaseStats* out = &w->r->phases[w->r->phase_count++];
    *out = (SlabPhaseStats){.version = SLAB_STATS_VERSION, .epoch_id = c->id, .epoch_era = c->era};
    memcpy(out->label, c->text, sizeof out->label);
    out->label_id = tsi_label_id(&w->a->phases.labels, c->label);
    out->state = c->state == TSI_INC_ACTIVE ? EPOCH_ACTIVE : EPOCH_CLOSING;
    out->open_since_ns = c->since;
    out->age_ns = age_of(w, c, now);
    out->refcount = c->refcount;
    out->threads = c->threads;
    out->objects_allocated = c->allocated.objects + p->issued.objects;
    out->bytes_allocated = c->allocated.bytes + p->issued.bytes;
    out->live_objects = p->live.objects;
    out->live_bytes = p->live.bytes;
    out->slabs = p->slabs;
    out->empty_slabs = p->empty;
    out->committed_bytes = p->bytes;
    out->peak_bytes = c->peak > p->bytes ? c->peak : p->bytes; /* a slab taken since the phase was copied */
    out->purged_bytes = c->purged;
    out->budget_soft_bytes = c->soft;
    out->budget_hard_bytes = c->hard;
    out->rss_before_close = c->rss_before;
    out->rss_after_close = c->rss_after;
}

static void epoch_row(Walk* w, uint32_t n, uint64_t now) {
    const PhaseCopy* c = &w->copies[n];
    const PhaseSum* p = &w->sums[n];
    bool ring = (c->id & TSI_DOMAIN_ID_BIT) == 0;
    if (!c->used || (!(ring && c->is_id) && p->slabs == 0)) return;
    TsiEpochRow* out = &w->r->epochs[w->r->epoch_rows++];
    *out = (TsiEpochRow){.epoch_id = c->id, .epoch_era = c->era};
    out->state = c->state == TSI_INC_ACTIVE ? EPOCH_ACTIVE : EPOCH_CLOSING;
    out->age_sec = (double)age_of(w, c, now) / 1e9;
    out->refcount = c->refcount;
    memcpy(out->label, c->text, sizeof out->label);
    out->label_id = tsi_label_id(&w->a->phases.labels, c->label);
    out->total_partial_slabs = p->partial;
    out->total_full_slabs = p->full;
    out->total_reclaimable_slabs = out->reclaimable_slab_count = p->empty;
    out->alloc_count = p->live.objects;
    out->estimated_rss_bytes = p->bytes;
    out->open_since_ns = c->since;
    out->rss_before_close = c->rss_before;
    out->rss_after_close = c->rss_after;
    out->rss_delta_mb = ((double)c->rss_before - (double)c->rss_after) / (1 << 20); /* positive when it fell */
    out->madvise_bytes = c->purged;
}

/* ---- labels ---- */

/* What the account has, before any phase is read. */
static void label_begin(TsiLabels* ls, uint32_t at, SlabLabelStats* out) {
    TsiLabel* l = tsi_label(ls, at);
    *out = (SlabLabelStats){.version = SLAB_STATS_VERSION, .label_id = tsi_label_id(ls, at)};
    memcpy(out->label, l->name, sizeof out->label);
    for (unsigned n = 0; n < TSI_LABEL_SHARDS; n++) {
        TsiLabelShard* s = &l->shard[n];
        out->phases_ended += tsi_load_relaxed(&s->ended);
        out->objects_allocated += tsi_load_relaxed(&s->objects_allocated);
        out->bytes_allocated += tsi_load_relaxed(&s->bytes_allocated);
        out->objects_released += tsi_load_relaxed(&s->objects_released);
        out->bytes_released += tsi_load_relaxed(&s->bytes_released);
        out->objects_freed += tsi_load_relaxed(&s->objects_freed);
        out->bytes_freed += tsi_load_relaxed(&s->bytes_freed);
        out->closed_slabs += tsi_load_relaxed(&s->closed_slabs);
        out->pinned_slabs += tsi_load_relaxed(&s->pinned_slabs);
        out->slow_path_hits += tsi_load_relaxed(&s->slow);
        out->alloc_samples += tsi_load_relaxed(&s->samples);
        out->alloc_wall_ns_sum += tsi_load_relaxed(&s->sample_ns[0]);
        out->alloc_cpu_ns_sum += tsi_load_relaxed(&s->sample_ns[1]);
        out->alloc_wait_ns_sum += tsi_load_relaxed(&s->sample_ns[2]);
        for (unsigned b = 0; b < TSI_LABEL_BUCKETS; b++) {
            out->duration_ns[b] += tsi_load_relaxed(&s->duration[b]);
            out->peak_bytes_hist[b] += tsi_load_relaxed(&s->peaks[b]);
        }
    }
    out->objects_escaped = tsi_load_relaxed(&l->objects_escaped);
    out->bytes_escaped = tsi_load_relaxed(&l->bytes_escaped);
    out->refusals = tsi_load_relaxed(&l->refusals);
    out->cas_retries = tsi_load_relaxed(&l->retries);
    out->lock_fast_acquire = tsi_load_relaxed(&l->lock_fast);
    out->lock_contended = tsi_load_relaxed(&l->lock_contended);
    out->swallowed = tsi_load_relaxed(&l->swallowed);
    out->budget_soft_bytes = tsi_load_relaxed(&l->budget.soft);
    out->budget_hard_bytes = tsi_load_relaxed(&l->budget.hard);
    out->budget_warnings = tsi_load_relaxed(&l->warnings);
    out->budget_refusals = tsi_load_relaxed(&l->over);
    out->peak_bytes = tsi_load_relaxed(&l->peak);
}

/* Was it labelled anew, or ended, since it was copied? Then what its slabs have issued belongs to another label. */
static bool has_moved(Walk* w, uint32_t n) {
    const PhaseCopy* c = &w->copies[n];
    TsiInc* i = tsi_inc(&w->a->phases, n);
    return tsi_inc_label(i) != c->label || tsi_inc_era(i) != c->era;
}

/* Freed singly is what is neither live nor released; what was posted of it is with some label. The parts are read one
 * after the other: what moves meanwhile is missing. */
static uint64_t freed(uint64_t allocated, uint64_t released, uint64_t live, uint64_t posted) {
    uint64_t gone = released + live + posted;
    return allocated > gone ? allocated - gone : 0;
}

/* What a relabelling has posted ahead may be settled after the phase was copied, or issued and not counted yet: missed, this time. */
static uint64_t more(uint64_t not_posted) { return (int64_t)not_posted > 0 ? not_posted : 0; }

/* What a phase has that its label's account has not. */
static void label_add(Walk* w, uint32_t n) {
    const PhaseCopy* c = &w->copies[n];
    const PhaseSum* p = &w->sums[n];
    if (c->era == 0 || c->label >= w->r->label_count) return; /* a label younger than this report */
    SlabLabelStats* out = &w->r->labels[c->label];
    if (c->state == TSI_INC_ACTIVE) out->phases_open++;
    else if (p->live.objects != 0) out->phases_draining++;
    if (!has_moved(w, n)) { /* else missed, this time: what is told of a label is never taken back */
        out->objects_allocated += more(c->new_allocated.objects + p->issued.objects);
        out->bytes_allocated += more(c->new_allocated.bytes + p->issued.bytes);
        out->objects_freed += freed(c->allocated.objects + p->issued.objects, c->released.objects, p->live.objects, c->posted_freed.objects);
        out->bytes_freed += freed(c->allocated.bytes + p->issued.bytes, c->released.bytes, p->live.bytes, c->posted_freed.bytes);
    }
    out->objects_released += c->new_released.objects;
    out->bytes_released += c->new_released.bytes;
    out->closed_slabs += c->closed_slabs;
    out->pinned_slabs += c->pinned_slabs;
    out->slow_path_hits += c->slow;
    out->lock_fast_acquire += c->lock_fast;
    out->lock_contended += c->lock_contended;
    out->committed_bytes += p->bytes;
}

static void keep_rising(uint64_t* shown, uint64_t* value) {
    if (*value < *shown) *value = *shown;
    *shown = *value;
}

/* What is live is what was allocated or brought along, and neither freed nor released. All sums are least ones, and so is what
 * they say of `allocated`. */
static uint64_t live_by(uint64_t* shown, uint64_t* allocated, uint64_t ended, _Atomic int64_t* moved) {
    int64_t brought = tsi_load_relaxed(moved), least = (int64_t)ended - brought;
    if ((int64_t)*allocated < least) *shown = *allocated = (uint64_t)least;
    return *allocated + (uint64_t)brought - ended;
}

/* The registry's lock is held. */
static void label_end(TsiLabel* l, SlabLabelStats* out) {
    uint64_t* shown = l->shown;
    out->phases_opened = out->phases_ended + out->phases_open;
    keep_rising(&shown[0], &out->phases_opened);
    keep_rising(&shown[8], &out->phases_ended);
    keep_rising(&shown[1], &out->objects_allocated);
    keep_rising(&shown[2], &out->bytes_allocated);
    keep_rising(&shown[3], &out->slow_path_hits);
    keep_rising(&shown[4], &out->objects_freed);
    keep_rising(&shown[5], &out->bytes_freed);
    keep_rising(&shown[6], &out->lock_fast_acquire);
    keep_rising(&shown[7], &out->lock_contended);
    keep_rising(&shown[9], &out->objects_released);
    keep_rising(&shown[10], &out->bytes_released);
    out->live_objects = live_by(&shown[1], &out->objects_allocated, out->objects_freed + out->objects_released, &l->moved_objects);
    out->live_bytes = live_by(&shown[2], &out->bytes_allocated, out->bytes_freed + out->bytes_released, &l->moved_bytes);
    /* What threads have pending is in the slabs already: what was told of a peak stays. */
    while (out->peak_bytes < out->committed_bytes && !tsi_cas_seq(&l->peak, &out->peak_bytes, out->committed_bytes)) {}
    /* Live objects lie in slabs, whether the walk has met those or not. */
    if (out->committed_bytes < out->live_bytes) out->committed_bytes = out->live_bytes;
    if (out->peak_bytes < out->committed_bytes) out->peak_bytes = out->committed_bytes;
    if (out->pinned_slabs > out->closed_slabs) out->pinned_slabs = out->closed_slabs; /* read one after the other */
    out->drainability = out->closed_slabs != 0 ? 1.0 - (double)out->pinned_slabs / (double)out->closed_slabs : 1.0;
}

/* ---- the report ---- */

static uint64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void* carve(uint8_t** at, size_t n, size_t size) {
    void* p = *at;
    *at += tsi_align_up(n * size, 64);
    return p;
}

/* One mapping for all tables; the walk's own come last. */
static bool tables_map(Walk* w) {
    TsiReport* r = w->r;
    uint32_t incs = w->incs, labels = r->label_count, classes = r->class_count;
    size_t bytes = tsi_align_up(classes * sizeof(SlabClassStats), 64) + tsi_align_up(labels * sizeof(SlabLabelStats), 64) +
                   tsi_align_up(incs * sizeof(TsiEpochRow), 64) + tsi_align_up(incs * sizeof(SlabPhaseStats), 64) +
                   tsi_align_up(incs * sizeof(PhaseCopy), 64) + tsi_align_up(incs * sizeof(PhaseSum), 64) +
                   tsi_align_up(w->bindings * sizeof(uint32_t), 64);
    r->mapping_bytes = tsi_align_up(bytes, tsi_os.page_bytes);
    r->mapping = tsi_os.reserve(r->mapping_bytes);
    if (r->mapping == NULL) return false;
    if (tsi_os.commit(r->mapping, r->mapping_bytes) != 0) return false;
    uint8_t* at = r->mapping;
    r->classes = carve(&at, classes, sizeof(SlabClassStats));
    r->labels = carve(&at, labels, sizeof(SlabLabelStats));
    r->epochs = carve(&at, incs, sizeof(TsiEpochRow));
    r->phases = carve(&at, incs, sizeof(SlabPhaseStats));
    w->copies = carve(&at, incs, sizeof(PhaseCopy));
    w->sums = carve(&at, incs, sizeof(PhaseSum));
    w->seen = carve(&at, w->bindings, sizeof(uint32_t));
    return true;
}

enum { ROW_MAX = 512 };

static uint64_t era_at(const uint8_t* rows, size_t size, size_t era_offset, uint32_t n) {
    uint64_t era;
    memcpy(&era, rows + n * size + era_offset, sizeof era);
    return era;
}

static void swap_rows(uint8_t* rows, size_t size, uint32_t n, uint32_t m) {
    uint8_t row[ROW_MAX];
    memcpy(row, rows + n * size, size);
    memcpy(rows + n * size, rows + m * size, size);
    memcpy(rows + m * size, row, size);
}

/* Heapsort: in place, because qsort may ask for memory. (J. W. J. Williams, Algorithm 232, 1964) */
static void sort_by_era(void* table, uint32_t count, size_t size, size_t era_offset) {
    uint8_t* rows = table;
    for (uint32_t built = count / 2, end = count; end > 1;) {
        uint32_t root;
        if (built > 0) {
            root = --built;
        } else {
            swap_rows(rows, size, 0, --end);
            root = 0;
        }
        for (uint32_t child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && era_at(rows, size, era_offset, child) < era_at(rows, size, era_offset, child + 1)) child++;
            if (era_at(rows, size, era_offset, root) >= era_at(rows, size, era_offset, child)) break;
            swap_rows(rows, size, root, child);
        }
    }
}

/* Records 0 and 1 come first, the id of record 1 is the highest. */
static void labels_by_id(TsiReport* r) {
    SlabLabelStats other = r->labels[TSI_LABEL_OTHER];
    for (uint32_t n = TSI_LABEL_OTHER; n + 1 < r->label_count; n++) r->labels[n] = r->labels[n + 1];
    r->labels[r->label_count - 1] = other;
}

static void fill(Walk* w) {
    TsiArena* a = w->a;
    TsiReport* r = w->r;
    TsiLabels* labels = &a->phases.labels;
    for (uint32_t at = 0; at < r->label_count; at++) label_begin(labels, at, &r->labels[at]);
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        uint64_t ended = tsi_load_relaxed(&((TsiBinding*)tsi_table_at(&a->bindings, n))->ended);
        if (ended >> TSI_CHARGE_BITS < r->label_count) r->labels[ended >> TSI_CHARGE_BITS].phases_ended += ended & TSI_CHARGE_MASK;
    }
    for (uint32_t n = 1; n < w->incs; n++) copy_phase(w, n);
    tsi_tally_global_begin(a, &r->global);
    for (uint32_t n = 0; n < r->class_count; n++) tsi_tally_class_begin(a, n, &r->classes[n]);
    tsi_snapshot_slabs(a, add_slab, w);
    for (uint32_t n = 0; n < r->class_count; n++) tsi_tally_class_end(&r->classes[n]);
    uint64_t now = tsi_os.now_ns();
    for (uint32_t n = 1; n < w->incs; n++) {
        phase_row(w, n, now);
        epoch_row(w, n, now);
        label_add(w, n);
    }
    sort_by_era(r->phases, r->phase_count, sizeof *r->phases, offsetof(SlabPhaseStats, epoch_era));
    sort_by_era(r->epochs, r->epoch_rows, sizeof *r->epochs, offsetof(TsiEpochRow, epoch_era));
    tsi_lock_take(&labels->lock);
    for (uint32_t at = 0; at < r->label_count; at++) label_end(tsi_label(labels, at), &r->labels[at]);
    tsi_lock_give(&labels->lock);
    labels_by_id(r);
    tsi_tally_refusals(a, &r->refusals);
    tsi_tally_sampling(a, &r->sampling);
}

bool tsi_report_take(TsiArena* a, TsiReport* out) {
    memset(out, 0, sizeof *out);
    Walk w = {.a = a, .r = out, .incs = tsi_table_used(&a->phases.incs), .bindings = tsi_table_used(&a->bindings)};
    out->class_count = TSI_CLASS_LARGE;
    out->label_count = tsi_label_count(&a->phases.labels);
    if (!tables_map(&w)) {
        tsi_report_drop(out);
        errno = ENOMEM;
        return false;
    }
    out->timestamp_ns = wall_ns();
    out->uptime_ns = tsi_os.now_ns() - a->born_ns;
    out->pid = (uint32_t)getpid();
    out->page_size = (uint32_t)tsi_os.page_bytes;
    out->epoch_count = a->phases.ring_size;
    out->max_labels = a->phases.labels.capacity;
    out->segment_publications = tsi_load_relaxed(&a->seat.publications);
    out->segment_failures = tsi_load_relaxed(&a->seat.failures);
    fill(&w);
    return true;
}

void tsi_report_drop(TsiReport* r) {
    if (r->mapping != NULL) tsi_os.unmap(r->mapping, r->mapping_bytes);
    r->mapping = NULL;
}
