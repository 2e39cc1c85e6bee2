/*
 * doctor.c - the diagnosis in words, a section each; see doctor.h.
 *
 * Sentences that other programs share are in words.def, like all thresholds. A section is one line if nothing is wrong.
 * Advice is a line that starts with ACTION, so the text can be searched and the last line can count them.
 */
#include "stats/doctor.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long Num;

/* ---- leaks ---- */

/* Appends the leak *row, the n-th of those shown, as a line, and below it an ACTION, which is another one if scopes
 * are inside of its phases (refcount), if some have not been closed, only passed by the ring (unclosed), or if neither
 * is so. [no other user of text] */
static void put_leak(TsiText* text, unsigned n, const TsiLeakRow* row) {
    TsiWord label = tsi_word_label(row->c.label), bytes = tsi_word_bytes(row->c.estimated_rss_bytes);
    TsiWord cls = tsi_word_class(row->c.class_index, row->c.object_size);
    Num era = row->c.epoch_era, objects = row->c.alloc_count, age = row->c.age_sec;
    unsigned slabs = row->c.partial_slab_count + row->c.full_slab_count + row->c.reclaimable_slab_count;

    char of[sizeof cls + 4];
    (void)snprintf(of, sizeof of, " of %s", cls.at);
    tsi_text_line(
        text,
        "%u. %s, %s: %llu live in %u slabs of %s; %u phases, the oldest %llu s, epoch %u, era %llu; refcount %llu", n,
        label.at, cls.at, objects, slabs, bytes.at, row->phases, age, row->c.epoch_id, era, (Num)row->refcount);

    if (row->refcount != 0)
        tsi_text_action(text, tsi_say_leak_entered, label.at, objects, of, bytes.at, age, (Num)row->refcount, "it");
    else if (row->unclosed != 0)
        tsi_text_action(text, tsi_say_leak_unclosed, label.at, objects, of, bytes.at, age, era,
                        row->c.reclaimable_slab_count);
    else tsi_text_action(text, tsi_say_leak, label.at, objects, of, bytes.at, age, era);
}

typedef struct LeakSum {
    uint32_t rows;
    uint64_t objects, bytes;
    const TsiLeakRow* first;
} LeakSum;

/* Returns true if ended phases of the label have held more than expected for leak_sec seconds or longer.
 * [any thread, needs no lock] */
static bool label_leaks(const SlabLabelStats* stats, unsigned leak_sec) {
    return stats->unexpected_draining_objects != 0 && stats->oldest_unexpected_ns / 1000000000u >= leak_sec;
}

/* Returns true if the label of the row *stats may let something escape: expected objects or bytes are not 0.
 * [any thread, needs no lock] */
static bool label_expects(const SlabLabelStats* stats) {
    return (stats->expected_objects | stats->expected_bytes) != 0;
}

/* Appends a line with a label's escaped objects, those that drain now and the expected ones, by its row *stats; and an
 * ACTION if the label has expectations and phases of it have let more escape. [no other user of text] */
static void put_escapes(TsiText* text, const SlabLabelStats* stats) {
    TsiWord label = tsi_word_label(stats->label);
    char expected[sizeof tsi_say_escapes_expected + 2 * sizeof(TsiWord)] = "";
    if (label_expects(stats))
        (void)snprintf(expected, sizeof expected, tsi_say_escapes_expected, (Num)stats->expected_objects,
                       tsi_word_bytes(stats->expected_bytes).at);
    TsiWord escaped = tsi_word_bytes(stats->bytes_escaped);
    if (stats->draining_objects == 0)
        tsi_text_line(text, tsi_say_escapes_over, label.at, (Num)stats->objects_escaped, escaped.at, expected);
    else
        tsi_text_line(text, tsi_say_escapes, label.at, (Num)stats->objects_escaped, escaped.at,
                      (Num)stats->draining_objects, (Num)stats->draining_phases,
                      (Num)(stats->oldest_draining_ns / 1000000000u), expected);
    if (label_expects(stats) && stats->unexpected_phases != 0)
        tsi_text_action(text, tsi_say_unexpected, label.at, (Num)stats->unexpected_phases, (Num)stats->phases_ended,
                        (Num)stats->expected_objects, tsi_word_bytes(stats->expected_bytes).at);
}

/* Appends by put_escapes the labels of the report with escaped or draining objects: those with expectations first,
 * then the others, by id; TSI_DOCTOR_ROWS of them, and a line with how many more there are. [no other user of text] */
static void put_all_escapes(TsiText* text, const TsiReport* report) {
    unsigned told = 0, more = 0;
    for (unsigned expects = 1; expects + 1 != 0; expects--)
        for (uint32_t n = 0; n < report->label_count; n++) {
            const SlabLabelStats* stats = &report->labels[n];
            if ((stats->objects_escaped | stats->draining_objects) == 0 || label_expects(stats) != expects) continue;
            if (told == TSI_DOCTOR_ROWS) more++;
            else told++, put_escapes(text, stats);
        }
    if (more != 0) tsi_text_line(text, "and %u more labels.", more);
}

/* Appends a line: what ended phases of a label hold, young ones included, by its row, and the eras, three at most,
 * where most of it is, the largest first. [no other user of text] */
static void put_drains(TsiText* text, const SlabLabelStats* stats) {
    tsi_text_put(text, "   %s in all: %llu ended phases hold %llu objects in %s; most in era",
                 tsi_word_label(stats->label).at, (Num)stats->draining_phases, (Num)stats->draining_objects,
                 tsi_word_bytes(stats->draining_bytes).at);
    for (unsigned n = 0; n < 3 && stats->worst_eras[n] != 0; n++)
        tsi_text_put(text, "%s %llu (%s)", n != 0 ? "," : "", (Num)stats->worst_eras[n],
                     tsi_word_bytes(stats->worst_bytes[n]).at);
    tsi_text_put(text, "\n");
}

/* Appends a line: the sum *young of objects and bytes that phases hold that ended less than leak_sec ago, with the
 * label and class of its largest row, young->first, which is not NULL. [no other user of text] */
static void put_young(TsiText* text, const LeakSum* young) {
    const EpochLeakCandidate* most = &young->first->c;
    char cls[sizeof(TsiWord) + 2];
    (void)snprintf(cls, sizeof cls, ", %s", tsi_word_class(most->class_index, most->object_size).at);
    tsi_text_line(text, tsi_say_leaks_young, (Num)young->objects, tsi_word_bytes(young->bytes).at,
                  tsi_word_label(most->label).at, cls);
}

/* Appends section 1: what ended phases hold, by label and class, and what has escaped; TSI_DOCTOR_ROWS rows of leaks,
 * and of labels that leak, at most. leak_sec: age in seconds from which rows count as leaks, 0: all do; younger rows
 * are one line together. [no other user of text] */
static void section_leaks(TsiText* text, const TsiReport* report, const TsiLeaks* leaks, unsigned leak_sec) {
    char which[64] = "";
    LeakSum old = {0, 0, 0, NULL}, young = old;
    for (uint32_t n = 0; n < leaks->count; n++) {
        const TsiLeakRow* row = &leaks->rows[n];
        LeakSum* sum = row->c.age_sec >= leak_sec ? &old : &young;
        if (sum->rows++ == 0) sum->first = row;
        sum->objects += row->c.alloc_count;
        sum->bytes += row->c.estimated_rss_bytes;
    }

    unsigned leaking = 0; /* labels: they know, whatever the walk has seen */
    for (uint32_t n = 0; n < report->label_count; n++) leaking += label_leaks(&report->labels[n], leak_sec);
    if (leak_sec != 0) (void)snprintf(which, sizeof which, tsi_say_leaks_age, leak_sec);
    if (leaking == 0 && old.rows == 0) tsi_text_head(text, 1, tsi_say_leaks_none, which);
    else
        tsi_text_head(text, 1, "Leaks: %llu objects, %s of slabs, in ended phases%s.", (Num)old.objects,
                      tsi_word_bytes(old.bytes).at, which);

    unsigned shown = 0;
    for (uint32_t n = 0; n < leaks->count && shown < TSI_DOCTOR_ROWS; n++)
        if (leaks->rows[n].c.age_sec >= leak_sec) put_leak(text, ++shown, &leaks->rows[n]);
    if (old.rows > shown) tsi_text_line(text, "and %u smaller ones.", old.rows - shown);

    unsigned told = 0;
    for (uint32_t n = 0; n < report->label_count && told < TSI_DOCTOR_ROWS; n++)
        if (label_leaks(&report->labels[n], leak_sec)) put_drains(text, &report->labels[n]), told++;
    if (leaking > told) tsi_text_line(text, "and %u more labels.", leaking - told);

    if (young.rows != 0) put_young(text, &young);
    put_all_escapes(text, report);
}

/* ---- slow path ---- */

/* Appends a line with a class's slow allocations and the percentage of each cause; if they are TSI_DOCTOR_FEW_HITS or
 * more, also slow->recommendation: as an ACTION if more than TSI_DOCTOR_PREVAILS percent found their epoch ended,
 * otherwise as a plain line. [no other user of text] */
static void put_slow(TsiText* text, const SlowPathAttribution* slow) {
    tsi_text_line(text, tsi_say_slow_class, tsi_word_class(slow->class_index, slow->object_size).at,
                  (Num)slow->total_slow_path_hits, slow->cache_miss_pct, slow->epoch_closed_pct, slow->partial_null_pct,
                  slow->partial_full_pct);
    if (slow->total_slow_path_hits < TSI_DOCTOR_FEW_HITS) return;
    if (slow->epoch_closed_pct > TSI_DOCTOR_PREVAILS) tsi_text_action(text, "%s", slow->recommendation);
    else tsi_text_line(text, "   %s", slow->recommendation);
}

/* Returns the row of view->slow with most hits among those that come after `last`, a row of it: with fewer hits, or as
 * many and a later row; among all if last is NULL. Returns NULL if there is none. [any thread, needs no lock] */
static const SlowPathAttribution* next_most(const TsiDoctorView* view, const SlowPathAttribution* last) {
    const SlowPathAttribution* best = NULL;
    for (uint32_t n = 0; n < view->slow_count; n++) {
        const SlowPathAttribution* slow = &view->slow[n];
        uint64_t hits = slow->total_slow_path_hits;
        uint64_t least = last != NULL ? last->total_slow_path_hits : UINT64_MAX;
        bool told = hits > least || (hits == least && slow <= last);
        if (told) continue;
        if (best == NULL || hits > best->total_slow_path_hits) best = slow;
    }
    return best;
}

/* Appends section 2: slow allocations and their causes, the TSI_DOCTOR_ROWS classes with most, and how many classes
 * more there are; before the head, an ACTION if there were repairs. [no other user of text] */
static void section_slow(TsiText* text, const TsiDoctorView* view) {
    uint64_t hits = 0;
    for (uint32_t n = 0; n < view->slow_count; n++) hits += view->slow[n].total_slow_path_hits;
    if (view->report->global.total_repairs != 0)
        tsi_text_action(text, tsi_say_repairs, (Num)view->report->global.total_repairs);
    if (hits == 0) {
        tsi_text_head(text, 2, tsi_say_slow_none);
        return;
    }
    tsi_text_head(text, 2, tsi_say_slow, (Num)hits, view->slow_count);
    unsigned shown = 0;
    for (const SlowPathAttribution* slow = next_most(view, NULL); slow != NULL && shown < TSI_DOCTOR_ROWS;
         slow = next_most(view, slow), shown++)
        put_slow(text, slow);
    if (view->slow_count > shown) tsi_text_line(text, tsi_say_slow_more, view->slow_count - shown);
}

/* ---- reclamation ---- */

typedef struct Close {
    const EpochReclamation* row; /* its first */
    uint64_t slabs, bytes;
    bool kept; /* much was given back, and the resident size hardly changed */
} Close;

/* Returns the close whose last row in view->closes is *end - 1, with the slabs and bytes of all its rows, which have
 * one era and the same resident sizes, and moves *end to its first row. `kept` is true if it gave back
 * TSI_DOCTOR_KEPT_MIN_BYTES or more and the resident size fell by less than one part in TSI_DOCTOR_KEPT_SHARE of that.
 * *end > 0 on entry, at most view->close_count. [any thread, needs no lock] */
static Close close_before(const TsiDoctorView* view, uint32_t* end) {
    const EpochReclamation* last = &view->closes[*end - 1];
    Close close = {last, 0, 0, false};
    while (*end != 0) {
        const EpochReclamation* row = &view->closes[*end - 1];
        if (row->epoch_era != last->epoch_era || row->rss_before != last->rss_before ||
            row->rss_after != last->rss_after)
            break;
        close.row = row;
        close.slabs += row->slabs_recycled;
        close.bytes += row->bytes_madvised;
        --*end;
    }
    close.kept =
        close.bytes >= TSI_DOCTOR_KEPT_MIN_BYTES && last->rss_delta < (int64_t)(close.bytes / TSI_DOCTOR_KEPT_SHARE);
    return close;
}

/* Appends the close *close as one line: label and era, how many slabs and bytes went back, the resident size before
 * and after, and by how much it fell or rose; with a remark if close->kept. [no other user of text] */
static void put_close(TsiText* text, const Close* close) {
    int64_t fell = close->row->rss_delta;
    tsi_text_put(text, "   ");
    tsi_text_put(text, tsi_say_close_of, tsi_word_label(close->row->label).at, (Num)close->row->epoch_era);
    tsi_text_put(text, "%llu slabs, ", (Num)close->slabs);
    tsi_text_put(text, tsi_say_close, tsi_word_bytes(close->bytes).at, tsi_word_bytes(close->row->rss_before).at,
                 tsi_word_bytes(close->row->rss_after).at, fell < 0 ? tsi_say_close_rose : tsi_say_close_fell,
                 tsi_word_bytes(fell < 0 ? (uint64_t)-fell : (uint64_t)fell).at, close->kept ? tsi_say_close_kept : "");
    tsi_text_put(text, "\n");
}

/* Appends an ACTION: that `kept` closes, at least 1, gave pages back and the resident size stayed, and why, by the
 * purge policy (SlabPurgePolicy). [no other user of text] */
static void put_kept(TsiText* text, unsigned kept, unsigned policy) {
    if (policy == SLAB_PURGE_FREE)
        tsi_text_action(text,
                        "%u closes returned pages, but RSS did not fall: purge_policy is MADV_FREE, which lets the "
                        "kernel keep pages until it is short of memory; set purge_policy to 0 (DONTNEED) if RSS must "
                        "fall at once",
                        kept);
    else tsi_text_action(text, tsi_say_kept, kept);
}

/* Appends section 3: the pages given back since the start and failures of that, the latest TSI_DOCTOR_CLOSES closes of
 * view->closes, the newest first, a line each, and what is kept warm; put_kept's ACTION if closes did not lower the
 * resident size, and an ACTION if giving pages back failed. [no other user of text] */
static void section_reclamation(TsiText* text, const TsiDoctorView* view) {
    const SlabGlobalStats* stats = &view->report->global;
    unsigned closes = 0, kept = 0;
    for (uint32_t end = view->close_count; end != 0; closes++) kept += close_before(view, &end).kept;
    tsi_text_head(text, 3, tsi_say_reclamation, (Num)stats->total_madvise_calls,
                  tsi_word_bytes(stats->total_madvise_bytes).at, (Num)stats->total_madvise_failures, closes,
                  closes == 0 ? tsi_say_closes_none : tsi_say_closes_some);

    unsigned shown = 0;
    for (uint32_t end = view->close_count; end != 0 && shown < TSI_DOCTOR_CLOSES; shown++) {
        Close close = close_before(view, &end);
        put_close(text, &close);
    }

    tsi_text_line(text, tsi_say_warm, tsi_word_bytes(stats->warm_bytes).at, tsi_word_bytes(stats->warm_budget_bytes).at,
                  tsi_word_bytes(stats->warm_regretted_bytes).at);
    if (kept != 0) put_kept(text, kept, view->purge_policy);
    else if (view->purge_policy == SLAB_PURGE_NEVER)
        tsi_text_line(text, "purge_policy is 2: pages are kept for reuse, RSS does not fall.");
    if (stats->total_madvise_failures != 0)
        tsi_text_action(text, tsi_say_madvise_failed, (Num)stats->total_madvise_failures);
}

/* ---- words ---- */

static const char* const health_words[] = {
#define HEALTH(NAME, word) [TSI_HEALTH_##NAME] = word,
#include "stats/words.def"
};

static const char* const verdict_words[] = {
#define VERDICT(NAME, words) [TSI_VERDICT_##NAME] = words,
#include "stats/words.def"
};

/* ---- sampling ---- */

TsiVerdict tsi_sampling_verdict(uint64_t wait, uint64_t cpu, uint64_t locks) {
    if (locks > wait && locks > cpu) return TSI_VERDICT_LOCKS;
    if (wait > TSI_DOCTOR_WAITS_LONG * cpu) return TSI_VERDICT_HYPERVISOR;
    uint64_t part = TSI_DOCTOR_EQUAL_PART;
    if (part * wait >= (part - 1) * cpu && part * wait <= (part + 1) * cpu) return TSI_VERDICT_BALANCED;
    return wait > cpu ? TSI_VERDICT_SCHEDULER : TSI_VERDICT_ALLOCATOR;
}

/* Returns the ns of *stats that allocations were asleep, waiting for locks: wall time that is neither work nor waiting
 * for a processor (observe/sample.h); 0 if these two are more than the wall time. [any thread, needs no lock] */
static uint64_t slept(const ThreadStats* stats) {
    uint64_t other = stats->alloc_cpu_ns_sum + stats->alloc_wait_ns_sum;
    return stats->alloc_wall_ns_sum > other ? stats->alloc_wall_ns_sum - other : 0;
}

/* Appends where sampled allocations spent their time, by tsi_sampling_verdict; and, with TSI_DOCTOR_FEW_SAMPLES
 * samples or more, an ACTION for locks, the scheduler or the hypervisor. [no other user of text] */
static void put_verdict(TsiText* text, const ThreadStats* stats) {
    uint64_t locks = slept(stats);
    if (stats->alloc_wait_ns_sum + stats->alloc_cpu_ns_sum + locks == 0) {
        tsi_text_line(text, tsi_say_verdict_none);
        return;
    }
    TsiVerdict v = tsi_sampling_verdict(stats->alloc_wait_ns_sum, stats->alloc_cpu_ns_sum, locks);
    tsi_text_line(text, tsi_say_verdict, verdict_words[v]);
    if (stats->alloc_samples < TSI_DOCTOR_FEW_SAMPLES) return;
    if (v == TSI_VERDICT_LOCKS) tsi_text_action(text, tsi_say_verdict_locks);
    if (v == TSI_VERDICT_SCHEDULER) tsi_text_action(text, tsi_say_verdict_scheduler);
    if (v == TSI_VERDICT_HYPERVISOR) tsi_text_action(text, tsi_say_verdict_hypervisor);
}

/* Appends section 4: times of sampled allocations, averages and the largest in ns, what they waited for (put_verdict),
 * and of sampled locks if there are any, by *sampling; only a head if sampling is off or there are no samples.
 * [no other user of text] */
static void section_sampling(TsiText* text, const SlabSamplingStats* sampling) {
    const ThreadStats* stats = &sampling->sum;
    if (sampling->period == 0) {
        tsi_text_head(text, 4, tsi_say_sampling_off);
        return;
    }
    if (stats->alloc_samples == 0) {
        tsi_text_head(text, 4, tsi_say_sampling_none, sampling->period);
        return;
    }

    Num n = stats->alloc_samples;
    tsi_text_head(text, 4, tsi_say_sampling, n, sampling->period, stats->alloc_wall_ns_sum / n,
                  stats->alloc_cpu_ns_sum / n, stats->alloc_wait_ns_sum / n, slept(stats) / n,
                  (Num)stats->alloc_wall_ns_max, (Num)sampling->dropped);
    put_verdict(text, stats);

    if (sampling->lock_samples != 0)
        tsi_text_line(text, tsi_say_sampled_locks, (Num)sampling->lock_samples,
                      (Num)(sampling->lock_wait_ns_sum / sampling->lock_samples), (Num)sampling->lock_wait_ns_max,
                      (Num)(sampling->lock_hold_ns_sum / sampling->lock_samples), (Num)sampling->lock_hold_ns_max);
}

/* ---- locks and retries ---- */

TsiHealth tsi_lock_health(uint64_t contended, uint64_t total) {
    double pct = tsi_ratio(contended, total, 100.0);
    return pct < TSI_DOCTOR_LOCK_GOOD     ? TSI_HEALTH_GOOD
           : pct < TSI_DOCTOR_LOCK_NORMAL ? TSI_HEALTH_NORMAL
           : pct <= TSI_DOCTOR_LOCK_WATCH ? TSI_HEALTH_WATCH
                                          : TSI_HEALTH_ACT;
}

TsiHealth tsi_retry_health(uint64_t retries, uint64_t operations) {
    double rate = tsi_ratio(retries, operations, 1.0);
    return rate < tsi_rate_RETRY_GOOD     ? TSI_HEALTH_GOOD
           : rate < tsi_rate_RETRY_NORMAL ? TSI_HEALTH_NORMAL
           : rate < tsi_rate_RETRY_WATCH  ? TSI_HEALTH_WATCH
                                          : TSI_HEALTH_ACT;
}

/* Appends the sentence of section 5 on locks, without a newline: `fast` taken at once, `contended` after waiting.
 * Below TSI_DOCTOR_FEW_LOCKS in all only their number; otherwise the share that waited in percent and its health, and
 * from TSI_HEALTH_WATCH on the label with most that waited. [no other user of text] */
static void put_locks(TsiText* text, const TsiReport* report, uint64_t fast, uint64_t contended) {
    uint64_t total = fast + contended;
    tsi_text_put(text, "5. ");
    if (total < TSI_DOCTOR_FEW_LOCKS) {
        tsi_text_put(text, tsi_say_locks_few, (Num)total);
        return;
    }
    TsiHealth h = tsi_lock_health(contended, total);
    tsi_text_put(text, tsi_say_locks, tsi_ratio(contended, total, 100.0), (Num)total, health_words[h]);
    if (h < TSI_HEALTH_WATCH) return;
    const SlabLabelStats* worst = NULL;
    for (uint32_t n = 0; n < report->label_count; n++)
        if (worst == NULL || report->labels[n].lock_contended > worst->lock_contended) worst = &report->labels[n];
    if (worst != NULL && worst->lock_contended != 0)
        tsi_text_put(text, tsi_say_locks_most, tsi_word_label(worst->label).at);
}

/* Appends section 5: locks, by the sums of classes or, if these are 0, of labels, and retries of frees with their rate
 * and health; below it an ACTION for each of the two whose health is TSI_HEALTH_ACT, for locks only if
 * TSI_DOCTOR_FEW_LOCKS or more were taken. [no other user of text] */
static void section_locks(TsiText* text, const TsiReport* report) {
    uint64_t fast = 0, contended = 0, retries = 0, frees = 0, label_fast = 0, label_contended = 0;

    for (uint32_t n = 0; n < report->class_count; n++) {
        fast += report->classes[n].lock_fast_acquire;
        contended += report->classes[n].lock_contended;
    }
    for (uint32_t n = 0; n < report->label_count; n++) {
        label_fast += report->labels[n].lock_fast_acquire;
        label_contended += report->labels[n].lock_contended;
        retries += report->labels[n].cas_retries;
        frees += report->labels[n].objects_freed;
    }

    if (fast + contended == 0) {
        fast = label_fast;
        contended = label_contended;
    }
    put_locks(text, report, fast, contended);
    TsiHealth h = tsi_retry_health(retries, frees);
    if (retries == 0) tsi_text_put(text, tsi_say_retries_none);
    else tsi_text_put(text, tsi_say_retries, tsi_ratio(retries, frees, 1.0), health_words[h]);
    tsi_text_put(text, "\n");
    if (fast + contended >= TSI_DOCTOR_FEW_LOCKS && tsi_lock_health(contended, fast + contended) == TSI_HEALTH_ACT)
        tsi_text_action(text, tsi_say_locks_act);
    if (h == TSI_HEALTH_ACT) tsi_text_action(text, tsi_say_retries_act);
}

/* ---- refusals ---- */

static const struct {
    size_t offset;
    const char *name, *advice;
} causes[] = {
#define CAUSE(field, words) {offsetof(SlabRefusals, field), #field, words},
#include "stats/words.def"
};

/* Writes the label whose budgets have refused most, and how often, to `to`, of n bytes, as the end of a sentence, cut
 * there; leaves `to` alone if none has refused anything. [no other user of to] */
static void put_refused(char* to, size_t n, const TsiReport* report) {
    const SlabLabelStats* most = NULL;
    for (uint32_t k = 0; k < report->label_count; k++)
        if (most == NULL || report->labels[k].budget_refusals > most->budget_refusals) most = &report->labels[k];
    if (most != NULL && most->budget_refusals != 0)
        (void)snprintf(to, n, tsi_say_refused_most, tsi_word_label(most->label).at, (Num)most->budget_refusals);
}

/* Appends section 6: refused calls, an ACTION for each cause with its number and what to do, over_budget with the
 * label that is refused most; a line on slabs taken out of use, and an ACTION on ignored words of TSLAB_OPTIONS, where
 * there are any. [no other user of text] */
static void section_refusals(TsiText* text, const TsiReport* report) {
    const SlabRefusals* refusals = &report->refusals;
    unsigned kinds = 0;
    for (size_t n = 0; n < sizeof causes / sizeof causes[0]; n++) {
        uint64_t count = *(const uint64_t*)(const void*)((const char*)refusals + causes[n].offset);
        if (count == 0) continue;
        if (kinds++ == 0) tsi_text_head(text, 6, tsi_say_refusals);
        char under[sizeof(TsiWord) + sizeof tsi_say_refused_most + 20] = "";
        if (causes[n].offset == offsetof(SlabRefusals, over_budget)) put_refused(under, sizeof under, report);
        tsi_text_action(text, tsi_say_refusal, causes[n].name, (Num)count, causes[n].advice, under);
    }
    if (kinds == 0) tsi_text_head(text, 6, tsi_say_refusals_none);
    if (refusals->retired_slabs != 0) tsi_text_line(text, tsi_say_retired, (Num)refusals->retired_slabs);
    if (refusals->bad_environment != 0) tsi_text_action(text, tsi_say_bad_environment, (Num)refusals->bad_environment);
}

/* ---- labels ---- */

/* Appends section 7: how many labels there are of how many that there may be; if phases found no room for theirs, an
 * ACTION with the number of these. [no other user of text] */
static void section_labels(TsiText* text, const TsiReport* report) {
    uint64_t swallowed = 0;
    for (uint32_t n = 0; n < report->label_count; n++) swallowed += report->labels[n].swallowed;
    if (report->label_count == 0) {
        tsi_text_head(text, 7, tsi_say_labels_none);
        return;
    }
    if (swallowed == 0) {
        tsi_text_head(text, 7, tsi_say_labels, report->label_count, report->max_labels);
        return;
    }
    tsi_text_head(text, 7, tsi_say_labels_full, report->max_labels);
    tsi_text_action(text, tsi_say_swallowed, (Num)swallowed);
}

/* ---- growth ---- */

/* The labels whose scopes have made most bytes outside, with their shares, as a list in words. */
typedef struct Makers {
    char at[TSI_DOCTOR_MOST_MAKERS * 64];
    uint64_t objects, bytes; /* of all labels */
} Makers;

/* Returns the TSI_DOCTOR_MOST_MAKERS labels whose scopes have made most bytes outside, the largest first, as a list in
 * words with each one's percentage of all such bytes, empty if none has; and the sums of objects and bytes made
 * outside of all labels. [any thread, needs no lock] */
static Makers makers_of(const TsiReport* report) {
    Makers m = {"", 0, 0};
    uint64_t last = UINT64_MAX;
    uint32_t last_at = 0;
    size_t used = 0;

    for (uint32_t n = 0; n < report->label_count; n++) {
        m.objects += report->labels[n].outside_objects;
        m.bytes += report->labels[n].outside_bytes;
    }

    for (unsigned shown = 0; shown < TSI_DOCTOR_MOST_MAKERS; shown++) {
        const SlabLabelStats* most = NULL;
        for (uint32_t n = 0; n < report->label_count; n++) {
            uint64_t bytes = report->labels[n].outside_bytes;
            bool told = bytes > last || (bytes == last && n <= last_at);
            bool more = most == NULL || bytes > most->outside_bytes;
            if (bytes != 0 && !told && more) most = &report->labels[n];
        }
        if (most == NULL) break;
        last = most->outside_bytes;
        last_at = (uint32_t)(most - report->labels);
        if (shown != 0) used += (size_t)snprintf(m.at + used, sizeof m.at - used, ", ");
        used += (size_t)snprintf(m.at + used, sizeof m.at - used, tsi_say_maker, tsi_word_label(most->label).at,
                                 (unsigned)tsi_ratio(last, m.bytes, 100.0));
    }

    return m;
}

/* Returns true if the label of the row *stats is that of the report's row of the ring's current epoch, where objects
 * are that were made outside of scopes; false also if there is no such row. [any thread, needs no lock] */
static bool has_ring(const TsiReport* report, const SlabLabelStats* stats) {
    for (uint32_t n = 0; n < report->epoch_rows; n++)
        if (report->epochs[n].epoch_id == report->global.current_epoch)
            return report->epochs[n].label_id == stats->label_id;
    return false;
}

/* Returns true if the label has grown by at least TSI_DOCTOR_GROWTH_LEAST bytes, and by at least
 * TSI_DOCTOR_GROWTH_SHARE percent of the live bytes that were there before, by its row. [any thread, needs no lock] */
static bool label_grows(const SlabLabelStats* stats) {
    uint64_t before = stats->live_bytes > stats->growth_bytes ? stats->live_bytes - stats->growth_bytes : 0;
    return stats->growth_bytes >= TSI_DOCTOR_GROWTH_LEAST &&
           stats->growth_bytes >= before / 100 * TSI_DOCTOR_GROWTH_SHARE;
}

/* Writes the bytes left of the limit that is reached first, the allocator's (*stats) or the label's (*figures), its
 * name, and in how many seconds, to `out`, of `bytes` bytes, as the end of a sentence; leaves `out` alone if none is
 * reached within TSI_DOCTOR_LEFT_TOLD seconds. [no other user of out] */
static void put_left(char* out, size_t bytes, const SlabGlobalStats* stats, const SlabLabelStats* figures) {
    bool budget = figures->limit_ns != 0 && (stats->limit_ns == 0 || figures->limit_ns < stats->limit_ns);
    uint64_t limit = budget ? figures->limit_bytes : stats->limit_bytes,
             used = budget ? figures->limit_used_bytes : stats->limit_used_bytes;
    uint64_t ns = budget ? figures->limit_ns : stats->limit_ns;
    if (ns == 0 || ns / 1000000000u >= TSI_DOCTOR_LEFT_TOLD) return;
    (void)snprintf(out, bytes, tsi_say_grows_left, tsi_word_bytes(limit > used ? limit - used : 0).at,
                   budget ? tsi_say_grows_budget : stats->limit_name, (Num)(ns / 1000000000u));
}

/* Appends an ACTION line: that the label of the row *stats grows, how fast, how much lives, in how many phases, since
 * when, and which limit it meets if put_left has one; with the makers if the label is one of the ring's. *makers: of
 * the whole report, by makers_of. [no other user of text] */
static void put_growing(TsiText* text, const TsiReport* report, const SlabLabelStats* stats, const Makers* makers) {
    char left[sizeof(TsiWord) + sizeof tsi_say_grows_left + 64] = "";
    char outside[sizeof makers->at + sizeof tsi_say_grows_outside] = "";
    if (makers->bytes != 0 && has_ring(report, stats))
        (void)snprintf(outside, sizeof outside, tsi_say_grows_outside, makers->at);
    put_left(left, sizeof left, &report->global, stats);
    tsi_text_action(text, tsi_say_grows, tsi_word_label(stats->label).at,
                    tsi_word_bytes((uint64_t)stats->growth_per_second).at, tsi_word_bytes(stats->live_bytes).at,
                    (Num)stats->phases_open, (Num)stats->draining_phases, tsi_word_bytes(stats->growth_bytes).at,
                    (Num)(stats->growth_ns / 1000000000u), left, outside);
}

/* Returns true if a limit is reached within TSI_DOCTOR_LIMIT_SOON seconds. limit_ns: the ns until then, 0 if it is not
 * in sight. [any thread, needs no lock] */
static bool is_soon(uint64_t limit_ns) { return limit_ns != 0 && limit_ns / 1000000000u < TSI_DOCTOR_LIMIT_SOON; }

/* Appends the allocator's limit, if it has one, and the label that grows fastest; then each label's budget that
 * is_soon says is reached soon. Each that is reached soon is an ACTION, a limit that is not is a plain line.
 * [no other user of text] */
static void put_limits(TsiText* text, const TsiReport* report) {
    const SlabGlobalStats* stats = &report->global;
    const SlabLabelStats* most = NULL;
    char who[sizeof(TsiWord) + sizeof tsi_say_limit_most] = "";
    for (uint32_t n = 0; n < report->label_count; n++)
        if (most == NULL || report->labels[n].growth_per_second > most->growth_per_second) most = &report->labels[n];
    if (most != NULL && most->growth_per_second > 0)
        (void)snprintf(who, sizeof who, tsi_say_limit_most, tsi_word_label(most->label).at);

    TsiWord limit = tsi_word_bytes(stats->limit_bytes), used = tsi_word_bytes(stats->limit_used_bytes);
    if (is_soon(stats->limit_ns))
        tsi_text_action(text, tsi_say_limit_soon, stats->limit_name, limit.at, used.at,
                        (Num)(stats->limit_ns / 1000000000u), who);
    else if (stats->limit_bytes != 0) tsi_text_line(text, tsi_say_limit, stats->limit_name, limit.at, used.at);
    for (uint32_t n = 0; n < report->label_count; n++) {
        const SlabLabelStats* figures = &report->labels[n];
        if (is_soon(figures->limit_ns))
            tsi_text_action(text, tsi_say_budget_soon, tsi_word_label(figures->label).at,
                            tsi_word_bytes(figures->limit_bytes).at, tsi_word_bytes(figures->limit_used_bytes).at,
                            (Num)(figures->limit_ns / 1000000000u));
    }
}

/* Returns a pace, in bytes a second, in the words of tsi_word_bytes behind its sign, "+1.2 MiB" or "-900 B"; "0 B"
 * without a sign if it is below one byte. [any thread, needs no lock] */
static TsiWord word_pace(double pace) {
    TsiWord bytes = tsi_word_bytes((uint64_t)(pace < 0 ? -pace : pace)), w;
    const char* sign = bytes.at[0] == '0' && bytes.at[1] == ' ' ? "" : pace < 0 ? "-" : "+";
    (void)snprintf(w.at, sizeof w.at, "%s%.*s", sign, (int)sizeof w.at - 2, bytes.at);
    return w;
}

/* Appends a line: how live and committed bytes have changed over the spans of about 10 s and 100 s, whose length it
 * tells, and since the start, in bytes a second with a sign; nothing if either span is not known (its ns are 0).
 * [no other user of text] */
static void put_pace(TsiText* text, const SlabGlobalStats* stats) {
    if (stats->pace_10s_ns == 0 || stats->pace_100s_ns == 0) return;
    tsi_text_line(text, tsi_say_pace, word_pace(stats->live_pace_10s).at, (Num)(stats->pace_10s_ns / 1000000000u),
                  word_pace(stats->live_pace_100s).at, (Num)(stats->pace_100s_ns / 1000000000u),
                  word_pace(stats->live_pace_ever).at, word_pace(stats->committed_pace_10s).at,
                  word_pace(stats->committed_pace_100s).at, word_pace(stats->committed_pace_ever).at);
}

/* Returns true if the phase is open and holds at least TSI_DOCTOR_OPEN_LEAST bytes and TSI_DOCTOR_OPEN_SHARE percent of
 * the allocator's. [any thread, needs no lock] */
static bool open_holds_much(const TsiReport* report, const SlabPhaseStats* phase) {
    uint64_t bytes = phase->committed_bytes;
    return phase->state == EPOCH_ACTIVE && bytes >= TSI_DOCTOR_OPEN_LEAST &&
           bytes >= report->global.committed_bytes / 100 * TSI_DOCTOR_OPEN_SHARE;
}

/* Appends a line for each open phase that open_holds_much returns true for, by committed bytes, the largest first,
 * TSI_DOCTOR_OPEN_SHOWN at most. [no other user of text] */
static void put_open(TsiText* text, const TsiReport* report) {
    uint64_t last = UINT64_MAX, last_era = 0;
    for (unsigned shown = 0; shown < TSI_DOCTOR_OPEN_SHOWN; shown++) {
        const SlabPhaseStats* most = NULL;
        for (uint32_t n = 0; n < report->phase_count; n++) {
            const SlabPhaseStats* phase = &report->phases[n];
            bool told =
                phase->committed_bytes > last || (phase->committed_bytes == last && phase->epoch_era <= last_era);
            if (told || !open_holds_much(report, phase)) continue;
            bool larger = most == NULL || phase->committed_bytes > most->committed_bytes;
            bool equal = most != NULL && phase->committed_bytes == most->committed_bytes;
            if (larger || (equal && phase->epoch_era < most->epoch_era)) most = phase;
        }
        if (most == NULL) return;

        last = most->committed_bytes;
        last_era = most->epoch_era;
        tsi_text_line(text, tsi_say_open_much, tsi_word_label(most->label).at, (Num)last_era, tsi_word_bytes(last).at,
                      (Num)(most->age_ns / 1000000000u), tsi_word_bytes(most->live_bytes).at, (Num)most->live_objects);
    }
}

/* Appends section 8: growth over the span of growth_ns or that it is not known, paces, limits, an ACTION for each
 * label that label_grows returns true for, a line for each open phase that open_holds_much returns true for, and the
 * makers of objects outside of scopes. [no other user of text] */
static void section_growth(TsiText* text, const TsiReport* report) {
    const SlabGlobalStats* stats = &report->global;
    Makers makers = makers_of(report);
    uint64_t seconds = stats->growth_ns / 1000000000u;
    if (stats->growth_ns == 0) tsi_text_head(text, 8, tsi_say_growth_unknown);
    else if (stats->growth_bytes == 0) tsi_text_head(text, 8, tsi_say_growth_none, (Num)seconds);
    else
        tsi_text_head(text, 8, tsi_say_growth, tsi_word_bytes(stats->growth_bytes).at, (Num)seconds,
                      tsi_word_bytes((uint64_t)stats->growth_per_second).at);
    put_pace(text, stats);
    put_limits(text, report);
    for (uint32_t n = 0; n < report->label_count; n++)
        if (label_grows(&report->labels[n])) put_growing(text, report, &report->labels[n], &makers);
    put_open(text, report);
    if (makers.objects != 0)
        tsi_text_line(text, tsi_say_outside, (Num)makers.objects, tsi_word_bytes(makers.bytes).at, makers.at);
}

/* ---- segment ---- */

/* Appends section 9: publications and failed attempts, by *health; the last failure as an ACTION if nothing was ever
 * published, otherwise as a line. Nothing if the option `segment` is not set. [no other user of text] */
static void section_segment(TsiText* text, const TsiSegmentHealth* health) {
    if (!health->asked) return;
    tsi_text_head(text, 9, "Segment: published %llu times, %llu attempts failed.", (Num)health->publications,
                  (Num)health->failures);
    if (health->publications == 0 && health->what != NULL)
        tsi_text_action(text, "other processes cannot watch this allocator: %s: error %d (errno)", health->what,
                        health->error);
    else if (health->failures != 0 && health->what != NULL)
        tsi_text_line(text, "The last failure of the process: %s: error %d (errno).", health->what, health->error);
}

/* ---- all of it ---- */

/* Appends sections 1 to 9 in order, by the figures in *view; adds the number of ACTION lines to text->actions. Runs
 * twice for a diagnosis: once to count. [no other user of text] */
static void sections(TsiText* text, const TsiDoctorView* view) {
    const TsiReport* report = view->report;
    section_leaks(text, report, view->leaks, view->leak_sec);
    section_slow(text, view);
    section_reclamation(text, view);
    section_sampling(text, &report->sampling);
    section_locks(text, report);
    section_refusals(text, report);
    section_labels(text, report);
    section_growth(text, report);
    section_segment(text, &view->segment);
}

/* Drops n bytes of text: the first pass of the diagnosis only counts. ctx may be NULL. Returns true.
 * [any thread, needs no lock] */
static bool to_nobody(void* ctx, const char* bytes, size_t n) {
    (void)ctx, (void)bytes, (void)n;
    return true;
}

bool tsi_doctor_write(const TsiDoctorView* view, TsiWriteFn write, void* ctx) {
    TsiText text = {.write = write, .ctx = ctx}, counted = {.write = to_nobody};
    const SlabGlobalStats* stats = &view->report->global;
    sections(&counted, view); /* the number of ACTION lines stands above them */

    tsi_text_put(&text, tsi_say_head, view->report->pid, (Num)stats->live_objects,
                 tsi_word_bytes(stats->committed_bytes).at, tsi_word_bytes(stats->rss_bytes_current).at);
    tsi_text_put(&text, "\n");
    if (counted.actions == 0) tsi_text_put(&text, tsi_say_end_none);
    else if (counted.actions == 1) tsi_text_put(&text, tsi_say_end_one);
    else tsi_text_put(&text, tsi_say_end_some, counted.actions);
    tsi_text_put(&text, "\n");

    sections(&text, view);
    return tsi_text_end(&text);
}
