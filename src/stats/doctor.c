/*
 * doctor.c - leaks, slow path and reclamation in words; see doctor.h. health.c has the rest.
 *
 * Each section is one line when nothing is wrong. What somebody should do is a line that starts with ACTION, so the
 * text can be searched and the last line can count them.
 */
#include "stats/doctor.h"

#include <stdio.h>
#include <string.h>

enum { CLOSES_SHOWN = 8, FEW_HITS = 100 };
#define KEPT_MIN_BYTES (1u << 20) /* below, other threads move the resident size as much */

typedef unsigned long long Num;

/* ---- leaks ---- */

static void put_leak(TsiText* t, unsigned n, const TsiLeakRow* r) {
    TsiWord label = tsi_word_label(r->c.label), bytes = tsi_word_bytes(r->c.estimated_rss_bytes);
    TsiWord cls = tsi_word_class(r->c.class_index, r->c.object_size);
    Num era = r->c.epoch_era, objects = r->c.alloc_count, age = r->c.age_sec;
    unsigned slabs = r->c.partial_slab_count + r->c.full_slab_count + r->c.reclaimable_slab_count;
    tsi_text_put(
        t,
        "   %u. %s, %s: %llu live in %u slabs of %s; %u phases, the oldest %llu s, epoch %u, era %llu; refcount %llu\n",
        n, label.at, cls.at, objects, slabs, bytes.at, r->phases, age, r->c.epoch_id, era, (Num)r->refcount);
    if (r->refcount != 0)
        tsi_text_action(
            t,
            "%s holds %llu objects of %s (%s) after %llu s, and %llu references to it are open: look for the missing "
            "epoch_domain_exit or slab_epoch_dec_refcount",
            label.at, objects, cls.at, bytes.at, age, (Num)r->refcount);
    else if (r->unclosed != 0)
        tsi_text_action(t,
                        "%s was advanced past and never closed, and holds %llu objects of %s (%s) after %llu s: "
                        "close it by its era (%llu) and free the rest; %u slabs of it are empty",
                        label.at, objects, cls.at, bytes.at, age, era, r->c.reclaimable_slab_count);
    else
        tsi_text_action(t,
                        "%s leaks %llu objects of %s (%s), for up to %llu s: slab_epoch_walk_era(a, %llu, ...) tells "
                        "addresses; free them where the phase ends, or release the phase if nobody needs them",
                        label.at, objects, cls.at, bytes.at, age, era);
}

typedef struct LeakSum {
    uint32_t rows;
    uint64_t objects, bytes;
    const TsiLeakRow* first;
} LeakSum;

static bool label_leaks(const SlabLabelStats* l, unsigned leak_sec) {
    return l->draining_objects != 0 && l->oldest_draining_ns / 1000000000u >= leak_sec;
}

/* All that ended phases of a label hold, the young ones, too, and where most of it is. */
static void put_drains(TsiText* t, const SlabLabelStats* l) {
    tsi_text_put(t, "   %s in all: %llu ended phases hold %llu objects in %s; most in era", tsi_word_label(l->label).at,
                 (Num)l->draining_phases, (Num)l->draining_objects, tsi_word_bytes(l->draining_bytes).at);
    for (unsigned n = 0; n < 3 && l->worst_eras[n] != 0; n++)
        tsi_text_put(t, "%s %llu (%s)", n != 0 ? "," : "", (Num)l->worst_eras[n], tsi_word_bytes(l->worst_bytes[n]).at);
    tsi_text_put(t, "\n");
}

static void section_leaks(TsiText* t, const TsiReport* report, const TsiLeaks* l, unsigned leak_sec) {
    char which[64] = "";
    LeakSum old = {0, 0, 0, NULL}, young = old;
    for (uint32_t n = 0; n < l->count; n++) {
        const TsiLeakRow* r = &l->rows[n];
        LeakSum* s = r->c.age_sec >= leak_sec ? &old : &young;
        if (s->rows++ == 0) s->first = r;
        s->objects += r->c.alloc_count;
        s->bytes += r->c.estimated_rss_bytes;
    }
    unsigned leaking = 0; /* labels: they know, whatever the walk has met */
    for (uint32_t n = 0; n < report->label_count; n++) leaking += label_leaks(&report->labels[n], leak_sec);
    if (leak_sec != 0) (void)snprintf(which, sizeof which, " of %u s or more", leak_sec);
    tsi_text_put(t, "1. Leaks: ");
    if (leaking == 0 && old.rows == 0)
        tsi_text_put(t, "nothing leaks: no ended phase%s holds an object.\n", which);
    else
        tsi_text_put(t, "%llu objects, %s of slabs, in ended phases%s.\n", (Num)old.objects,
                     tsi_word_bytes(old.bytes).at, which);
    unsigned shown = 0;
    for (uint32_t n = 0; n < l->count && shown < TSI_DOCTOR_ROWS; n++)
        if (l->rows[n].c.age_sec >= leak_sec) put_leak(t, ++shown, &l->rows[n]);
    if (old.rows > shown) tsi_text_put(t, "   and %u smaller ones.\n", old.rows - shown);
    unsigned told = 0;
    for (uint32_t n = 0; n < report->label_count && told < TSI_DOCTOR_ROWS; n++)
        if (label_leaks(&report->labels[n], leak_sec)) put_drains(t, &report->labels[n]), told++;
    if (leaking > told) tsi_text_put(t, "   and %u more labels.\n", leaking - told);
    if (young.rows != 0)
        tsi_text_put(t, "   Too young to judge: %llu objects, %s of slabs, most of it %s, %s.\n", (Num)young.objects,
                     tsi_word_bytes(young.bytes).at, tsi_word_label(young.first->c.label).at,
                     tsi_word_class(young.first->c.class_index, young.first->c.object_size).at);
}

/* ---- slow path ---- */

static void put_slow(TsiText* t, const SlowPathAttribution* s) {
    tsi_text_put(t, "   %s: %llu hits; miss %.1f %%, closed %.1f %%, null %.1f %%, full %.1f %%\n",
                 tsi_word_class(s->class_index, s->object_size).at, (Num)s->total_slow_path_hits, s->cache_miss_pct,
                 s->epoch_closed_pct, s->partial_null_pct, s->partial_full_pct);
    if (s->total_slow_path_hits < FEW_HITS) return;
    if (s->epoch_closed_pct > 50)
        tsi_text_action(t, "%s", s->recommendation);
    else
        tsi_text_put(t, "      %s\n", s->recommendation);
}

/* The class with most hits among those below `*less` (and after it, where equal). */
static const SlowPathAttribution* next_most(const TsiDoctorView* v, const SlowPathAttribution* last) {
    const SlowPathAttribution* best = NULL;
    for (uint32_t n = 0; n < v->slow_count; n++) {
        const SlowPathAttribution* s = &v->slow[n];
        uint64_t hits = s->total_slow_path_hits;
        if (last != NULL && (hits > last->total_slow_path_hits || (hits == last->total_slow_path_hits && s <= last)))
            continue;
        if (best == NULL || hits > best->total_slow_path_hits) best = s;
    }
    return best;
}

static void section_slow(TsiText* t, const TsiDoctorView* v) {
    uint64_t hits = 0;
    for (uint32_t n = 0; n < v->slow_count; n++) hits += v->slow[n].total_slow_path_hits;
    if (v->report->global.total_repairs != 0)
        tsi_text_action(t,
                        "%llu lists of lines were found wrong and mended: somebody writes where it may not, or the "
                        "library has a fault",
                        (Num)v->report->global.total_repairs);
    if (hits == 0) {
        tsi_text_put(t, "2. Slow path: nothing is slow: no allocation has left the fast path.\n");
        return;
    }
    tsi_text_put(t, "2. Slow path: %llu hits in %u classes; the first allocations of a phase are always among them.\n",
                 (Num)hits, v->slow_count);
    unsigned shown = 0;
    for (const SlowPathAttribution* s = next_most(v, NULL); s != NULL && shown < TSI_DOCTOR_ROWS;
         s = next_most(v, s), shown++)
        put_slow(t, s);
    if (v->slow_count > shown) tsi_text_put(t, "   and %u classes with fewer hits.\n", v->slow_count - shown);
}

/* ---- reclamation ---- */

typedef struct Close {
    const EpochReclamation* row; /* its first */
    uint64_t slabs, bytes;
    bool kept; /* the system was asked for much, and the resident size hardly moved */
} Close;

/* The close whose last row is end - 1; *end moves to its first row. */
static Close close_before(const TsiDoctorView* v, uint32_t* end) {
    const EpochReclamation* last = &v->closes[*end - 1];
    Close c = {last, 0, 0, false};
    while (*end != 0) {
        const EpochReclamation* r = &v->closes[*end - 1];
        if (r->epoch_era != last->epoch_era || r->rss_before != last->rss_before || r->rss_after != last->rss_after)
            break;
        c.row = r;
        c.slabs += r->slabs_recycled;
        c.bytes += r->bytes_madvised;
        --*end;
    }
    c.kept = c.bytes >= KEPT_MIN_BYTES && last->rss_delta < (int64_t)(c.bytes / 10);
    return c;
}

static void put_close(TsiText* t, const Close* c) {
    int64_t fell = c->row->rss_delta;
    tsi_text_put(t, "   %s, era %llu: %llu slabs back, %s given to the system; RSS %s -> %s (%s %s)%s\n",
                 tsi_word_label(c->row->label).at, (Num)c->row->epoch_era, (Num)c->slabs, tsi_word_bytes(c->bytes).at,
                 tsi_word_bytes(c->row->rss_before).at, tsi_word_bytes(c->row->rss_after).at,
                 fell < 0 ? "rose by" : "fell by", tsi_word_bytes(fell < 0 ? (uint64_t)-fell : (uint64_t)fell).at,
                 c->kept ? " - the kernel kept the pages" : "");
}

static void put_kept(TsiText* t, unsigned kept, unsigned policy) {
    if (policy == SLAB_PURGE_FREE)
        tsi_text_action(t,
                        "%u closes gave pages back and RSS stayed: purge_policy is MADV_FREE, which lets the kernel "
                        "keep pages until it is short of memory; take policy 0 (DONTNEED) if RSS must fall at once",
                        kept);
    else
        tsi_text_action(t,
                        "%u closes gave pages back and RSS stayed: look at transparent huge pages (AnonHugePages in "
                        "/proc/PID/smaps), at the memory cgroup (memory.stat), at locked memory (mlockall), and at "
                        "other threads that allocated meanwhile",
                        kept);
}

static void section_reclamation(TsiText* t, const TsiDoctorView* v) {
    const SlabGlobalStats* g = &v->report->global;
    unsigned closes = 0, kept = 0;
    for (uint32_t end = v->close_count; end != 0; closes++) kept += close_before(v, &end).kept;
    tsi_text_put(t, "3. Reclamation: %llu calls gave %s to the system, %llu failed; %u closes on record%s\n",
                 (Num)g->total_madvise_calls, tsi_word_bytes(g->total_madvise_bytes).at, (Num)g->total_madvise_failures,
                 closes, closes == 0 ? "." : ", latest first:");
    unsigned shown = 0;
    for (uint32_t end = v->close_count; end != 0 && shown < CLOSES_SHOWN; shown++) {
        Close c = close_before(v, &end);
        put_close(t, &c);
    }
    tsi_text_put(t, "   Kept warm: %s of a budget of %s; %s went back and came again at once.\n",
                 tsi_word_bytes(g->warm_bytes).at, tsi_word_bytes(g->warm_budget_bytes).at,
                 tsi_word_bytes(g->warm_regretted_bytes).at);
    if (kept != 0)
        put_kept(t, kept, v->purge_policy);
    else if (v->purge_policy == SLAB_PURGE_NEVER)
        tsi_text_put(t, "   purge_policy is 2: pages are kept for reuse, RSS does not fall.\n");
    if (g->total_madvise_failures != 0)
        tsi_text_action(t,
                        "%llu of the calls failed: a seccomp filter, locked memory or a kernel limit "
                        "(vm.max_map_count) stands in the way",
                        (Num)g->total_madvise_failures);
}

/* ---- all of it ---- */

bool tsi_doctor_write(const TsiDoctorView* v, TsiWriteFn write, void* ctx) {
    TsiText t = {.write = write, .ctx = ctx};
    const TsiReport* r = v->report;
    tsi_text_put(&t, "temporal-slab doctor: pid %u, %llu objects live, %s of slabs committed, RSS %s\n", r->pid,
                 (Num)r->global.live_objects, tsi_word_bytes(r->global.committed_bytes).at,
                 tsi_word_bytes(r->global.rss_bytes_current).at);
    section_leaks(&t, r, v->leaks, v->leak_sec);
    section_slow(&t, v);
    section_reclamation(&t, v);
    tsi_health_sampling(&t, &r->sampling);
    tsi_health_locks(&t, r);
    tsi_health_refusals(&t, &r->refusals);
    tsi_health_labels(&t, r);
    tsi_health_segment(&t, &v->segment);
    if (t.actions == 0)
        tsi_text_put(&t, "Nothing needs attention.\n");
    else
        tsi_text_put(&t, "%u %s attention: see ACTION above.\n", t.actions,
                     t.actions == 1 ? "thing needs" : "things need");
    return tsi_text_end(&t);
}
