/*
 * doctor.c - leaks, slow path and reclamation in words; see doctor.h. health.c has the rest.
 *
 * What others say, too, is in words.def, as all thresholds are. Each section is one line when nothing is wrong. What
 * somebody should do is a line that starts with ACTION, so the text can be searched and the last line can count them.
 */
#include "stats/doctor.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long Num;

/* ---- leaks ---- */

static void put_leak(TsiText* t, unsigned n, const TsiLeakRow* r) {
    TsiWord label = tsi_word_label(r->c.label), bytes = tsi_word_bytes(r->c.estimated_rss_bytes);
    TsiWord cls = tsi_word_class(r->c.class_index, r->c.object_size);
    Num era = r->c.epoch_era, objects = r->c.alloc_count, age = r->c.age_sec;
    unsigned slabs = r->c.partial_slab_count + r->c.full_slab_count + r->c.reclaimable_slab_count;
    char of[sizeof cls + 4];
    (void)snprintf(of, sizeof of, " of %s", cls.at);
    tsi_text_line(
        t, "%u. %s, %s: %llu live in %u slabs of %s; %u phases, the oldest %llu s, epoch %u, era %llu; refcount %llu",
        n, label.at, cls.at, objects, slabs, bytes.at, r->phases, age, r->c.epoch_id, era, (Num)r->refcount);
    if (r->refcount != 0)
        tsi_text_action(t, tsi_say_leak_entered, label.at, objects, of, bytes.at, age, (Num)r->refcount, "it");
    else if (r->unclosed != 0)
        tsi_text_action(t, tsi_say_leak_unclosed, label.at, objects, of, bytes.at, age, era,
                        r->c.reclaimable_slab_count);
    else tsi_text_action(t, tsi_say_leak, label.at, objects, of, bytes.at, age, era);
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

static void put_young(TsiText* t, const LeakSum* young) {
    const EpochLeakCandidate* most = &young->first->c;
    char cls[sizeof(TsiWord) + 2];
    (void)snprintf(cls, sizeof cls, ", %s", tsi_word_class(most->class_index, most->object_size).at);
    tsi_text_line(t, tsi_say_leaks_young, (Num)young->objects, tsi_word_bytes(young->bytes).at,
                  tsi_word_label(most->label).at, cls);
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
    if (leak_sec != 0) (void)snprintf(which, sizeof which, tsi_say_leaks_age, leak_sec);
    if (leaking == 0 && old.rows == 0) tsi_text_head(t, 1, tsi_say_leaks_none, which);
    else
        tsi_text_head(t, 1, "Leaks: %llu objects, %s of slabs, in ended phases%s.", (Num)old.objects,
                      tsi_word_bytes(old.bytes).at, which);
    unsigned shown = 0;
    for (uint32_t n = 0; n < l->count && shown < TSI_DOCTOR_ROWS; n++)
        if (l->rows[n].c.age_sec >= leak_sec) put_leak(t, ++shown, &l->rows[n]);
    if (old.rows > shown) tsi_text_line(t, "and %u smaller ones.", old.rows - shown);
    unsigned told = 0;
    for (uint32_t n = 0; n < report->label_count && told < TSI_DOCTOR_ROWS; n++)
        if (label_leaks(&report->labels[n], leak_sec)) put_drains(t, &report->labels[n]), told++;
    if (leaking > told) tsi_text_line(t, "and %u more labels.", leaking - told);
    if (young.rows != 0) put_young(t, &young);
}

/* ---- slow path ---- */

static void put_slow(TsiText* t, const SlowPathAttribution* s) {
    tsi_text_line(t, tsi_say_slow_class, tsi_word_class(s->class_index, s->object_size).at,
                  (Num)s->total_slow_path_hits, s->cache_miss_pct, s->epoch_closed_pct, s->partial_null_pct,
                  s->partial_full_pct);
    if (s->total_slow_path_hits < TSI_DOCTOR_FEW_HITS) return;
    if (s->epoch_closed_pct > TSI_DOCTOR_PREVAILS) tsi_text_action(t, "%s", s->recommendation);
    else tsi_text_line(t, "   %s", s->recommendation);
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
    if (v->report->global.total_repairs != 0) tsi_text_action(t, tsi_say_repairs, (Num)v->report->global.total_repairs);
    if (hits == 0) {
        tsi_text_head(t, 2, tsi_say_slow_none);
        return;
    }
    tsi_text_head(t, 2, tsi_say_slow, (Num)hits, v->slow_count);
    unsigned shown = 0;
    for (const SlowPathAttribution* s = next_most(v, NULL); s != NULL && shown < TSI_DOCTOR_ROWS;
         s = next_most(v, s), shown++)
        put_slow(t, s);
    if (v->slow_count > shown) tsi_text_line(t, tsi_say_slow_more, v->slow_count - shown);
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
    c.kept = c.bytes >= TSI_DOCTOR_KEPT_MIN_BYTES && last->rss_delta < (int64_t)(c.bytes / TSI_DOCTOR_KEPT_SHARE);
    return c;
}

static void put_close(TsiText* t, const Close* c) {
    int64_t fell = c->row->rss_delta;
    tsi_text_put(t, "   ");
    tsi_text_put(t, tsi_say_close_of, tsi_word_label(c->row->label).at, (Num)c->row->epoch_era);
    tsi_text_put(t, "%llu slabs back, ", (Num)c->slabs);
    tsi_text_put(t, tsi_say_close, tsi_word_bytes(c->bytes).at, tsi_word_bytes(c->row->rss_before).at,
                 tsi_word_bytes(c->row->rss_after).at, fell < 0 ? tsi_say_close_rose : tsi_say_close_fell,
                 tsi_word_bytes(fell < 0 ? (uint64_t)-fell : (uint64_t)fell).at, c->kept ? tsi_say_close_kept : "");
    tsi_text_put(t, "\n");
}

static void put_kept(TsiText* t, unsigned kept, unsigned policy) {
    if (policy == SLAB_PURGE_FREE)
        tsi_text_action(t,
                        "%u closes gave pages back and RSS stayed: purge_policy is MADV_FREE, which lets the kernel "
                        "keep pages until it is short of memory; take policy 0 (DONTNEED) if RSS must fall at once",
                        kept);
    else tsi_text_action(t, tsi_say_kept, kept);
}

static void section_reclamation(TsiText* t, const TsiDoctorView* v) {
    const SlabGlobalStats* g = &v->report->global;
    unsigned closes = 0, kept = 0;
    for (uint32_t end = v->close_count; end != 0; closes++) kept += close_before(v, &end).kept;
    tsi_text_head(t, 3, tsi_say_reclamation, (Num)g->total_madvise_calls, tsi_word_bytes(g->total_madvise_bytes).at,
                  (Num)g->total_madvise_failures, closes, closes == 0 ? tsi_say_closes_none : tsi_say_closes_some);
    unsigned shown = 0;
    for (uint32_t end = v->close_count; end != 0 && shown < TSI_DOCTOR_CLOSES; shown++) {
        Close c = close_before(v, &end);
        put_close(t, &c);
    }
    tsi_text_line(t, tsi_say_warm, tsi_word_bytes(g->warm_bytes).at, tsi_word_bytes(g->warm_budget_bytes).at,
                  tsi_word_bytes(g->warm_regretted_bytes).at);
    if (kept != 0) put_kept(t, kept, v->purge_policy);
    else if (v->purge_policy == SLAB_PURGE_NEVER)
        tsi_text_line(t, "purge_policy is 2: pages are kept for reuse, RSS does not fall.");
    if (g->total_madvise_failures != 0) tsi_text_action(t, tsi_say_madvise_failed, (Num)g->total_madvise_failures);
}

/* ---- all of it ---- */

bool tsi_doctor_write(const TsiDoctorView* v, TsiWriteFn write, void* ctx) {
    TsiText t = {.write = write, .ctx = ctx};
    const TsiReport* r = v->report;
    tsi_text_put(&t, tsi_say_head, r->pid, (Num)r->global.live_objects, tsi_word_bytes(r->global.committed_bytes).at,
                 tsi_word_bytes(r->global.rss_bytes_current).at);
    tsi_text_put(&t, "\n");
    section_leaks(&t, r, v->leaks, v->leak_sec);
    section_slow(&t, v);
    section_reclamation(&t, v);
    tsi_health_sampling(&t, &r->sampling);
    tsi_health_locks(&t, r);
    tsi_health_refusals(&t, &r->refusals);
    tsi_health_labels(&t, r);
    tsi_health_segment(&t, &v->segment);
    if (t.actions == 0) tsi_text_put(&t, tsi_say_end_none);
    else if (t.actions == 1) tsi_text_put(&t, tsi_say_end_one);
    else tsi_text_put(&t, tsi_say_end_some, t.actions);
    tsi_text_put(&t, "\n");
    return tsi_text_end(&t);
}
