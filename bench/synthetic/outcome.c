/*
 * outcome.c - whether the counts agree: the program's with each other, and with the library's.
 *
 * Every object is counted where it is allocated, freed and leaked; what is live is counted a second time where it is
 * kept, in slots and in the lists that go through leaked objects. The library must have seen the same, in sum and for
 * each label; only where threads share phases is a label's share nobody's business, because a request may run on into
 * the next phase.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include <slab_stats.h>

#include "common/flags.h"
#include "synthetic.h"

enum { DROP_WAIT_NS = 1000000000, DROP_LEAST = 1 << 20 };

static unsigned complain(const char* format, ...) __attribute__((format(printf, 1, 2)));
static unsigned complain(const char* format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: counts do not agree: ", program_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return 1;
}

static unsigned same(const char* what, const char* of, uint64_t ours, uint64_t theirs) {
    if (ours == theirs) return 0;
    return complain("%s%s: %" PRIu64 " by the program, %" PRIu64 " by the library", what, of, ours, theirs);
}

static unsigned check_refusals(const struct run* r, const struct totals* t) {
    SlabRefusals f;
    slab_stats_refusals(r->a, &f);
    uint64_t misuse = f.stale_handle + f.bad_handle + f.double_free + f.stale_free + f.interior_pointer +
                      f.foreign_pointer + f.size_mismatch + f.bad_epoch + f.closed_epoch + f.bad_size + f.domain_order +
                      f.domain_stale + f.late_double_free;
    return same("calls refused as misuse", "", 0, misuse) +
           same("allocations that failed", "", t->failed, f.out_of_memory + f.over_budget);
}

/* Does a phase's label tell its requests' route? */
static bool labels_are_exact(const struct run* r) {
    for (unsigned n = 0; n < r->s.threads; n++)
        if (r->workers[n].log.refused != 0) return false; /* requests outside of any phase */
    return has_own_phases(r) || (r->s.threads == 1 && atomic_load(&r->phase_ends_wanted) == 0);
}

static const SlabLabelStats* find_label(const SlabLabelStats* rows, size_t count, const char* label) {
    for (size_t n = 0; n < count; n++)
        if (strcmp(rows[n].label, label) == 0) return &rows[n];
    return NULL;
}

static unsigned check_route(const struct run* r, const struct totals* t, const SlabLabelStats* rows, size_t count,
                            unsigned route) {
    static const SlabLabelStats none;
    const char* label = r->s.pattern->routes[route];
    const SlabLabelStats* row = find_label(rows, count, label);
    uint64_t allocated = t->route[route].allocated, freed = t->route[route].freed;
    if (row == NULL) row = &none;
    return same("objects allocated under ", label, allocated, row->objects_allocated) +
           same("objects freed under ", label, freed, row->objects_freed) +
           same("objects live under ", label, allocated - freed, row->live_objects);
}

static unsigned check_labels(const struct run* r, const struct totals* t) {
    size_t count = slab_stats_labels(r->a, NULL, 0);
    SlabLabelStats* rows = calloc(count + 1, sizeof *rows);
    if (rows == NULL) return complain("no memory to read the labels");
    count = slab_stats_labels(r->a, rows, count);
    uint64_t allocated = 0, freed = 0, released = 0, live = 0, swallowed = 0;
    for (size_t n = 0; n < count; n++) {
        allocated += rows[n].objects_allocated;
        freed += rows[n].objects_freed;
        released += rows[n].objects_released;
        live += rows[n].live_objects;
        swallowed += rows[n].swallowed;
    }
    unsigned bad = same("objects allocated", " under all labels", t->allocated, allocated) +
                   same("objects freed", " under all labels", t->freed, freed) +
                   same("objects released", " under all labels", 0, released) +
                   same("objects live", " under all labels", t->leaked + t->live, live);
    for (unsigned route = 0; route < ROUTES && swallowed == 0 && labels_are_exact(r); route++)
        bad += check_route(r, t, rows, count, route);
    free(rows);
    return bad;
}

static unsigned check_library(const struct run* r, const struct totals* t) {
    SlabGlobalStats g;
    slab_stats_global(r->a, &g);
    return same("objects live", "", t->leaked + t->live, g.live_objects) + check_labels(r, t) + check_refusals(r, t);
}

unsigned outcome_check(const struct run* r, struct totals* t) {
    unsigned bad = 0;
    uint64_t live = 0, leaked = 0;
    *t = totals_now(r);
    for (unsigned n = 0; n < r->s.threads; n++) {
        live += worker_live(&r->workers[n]);
        for (void** p = r->workers[n].leaked_list; p != NULL; p = *p) leaked++;
        for (unsigned route = 0; route < ROUTES; route++) {
            t->route[route].allocated += r->workers[n].route_allocated[route];
            t->route[route].freed += r->workers[n].route_freed[route];
            t->route[route].leaked += r->workers[n].route_leaked[route];
        }
    }
    t->live = live;
    if (t->allocated != t->freed + t->leaked + t->live)
        bad += complain("%" PRIu64 " allocated, but %" PRIu64 " freed, %" PRIu64 " leaked and %" PRIu64 " live",
                        t->allocated, t->freed, t->leaked, t->live);
    if (leaked != t->leaked) bad += complain("%" PRIu64 " leaked, but %" PRIu64 " in the lists", t->leaked, leaked);
    if (t->damaged != 0)
        bad += complain("%" PRIu64 " objects were not as they had been written when they were freed", t->damaged);
    return bad + (r->a != NULL ? check_library(r, t) : 0);
}

/* ---- the end ---- */

static void watch_drop(struct last_close* c, uint64_t from, uint64_t asked) {
    do {
        c->rss_after = resident_bytes();
        if (c->rss_before > c->rss_after && c->rss_before - c->rss_after >= asked / 10 * 9) {
            c->drop_ns = now_ns() - from;
            return;
        }
    } while (now_ns() - from < DROP_WAIT_NS);
}

struct last_close outcome_close(struct run* r, unsigned* complaints) {
    struct last_close c = {0};
    struct totals t = totals_now(r);
    c.freed = t.live;
    for (unsigned n = 0; n < r->s.threads; n++) worker_free_live(&r->workers[n]);
    c.rss_before = c.rss_after = resident_bytes();
    if (r->a == NULL) return c;
    SlabGlobalStats before, after;
    slab_stats_global(r->a, &before);
    uint64_t from = now_ns();
    EpochReceipt receipt = {0};
    (void)epoch_close_ex(r->a, epoch_current(r->a), EPOCH_DRAIN, &receipt);
    c.close_ns = now_ns() - from;
    c.bytes_returned = receipt.bytes_returned;
    slab_stats_global(r->a, &after);
    uint64_t asked = after.total_madvise_bytes - before.total_madvise_bytes;
    if (asked >= DROP_LEAST) /* less is lost among what else moves the resident size */
        watch_drop(&c, from, asked);
    else
        c.rss_after = resident_bytes();
    *complaints += same("objects live", " after the last close", t.leaked, after.live_objects);
    return c;
}
