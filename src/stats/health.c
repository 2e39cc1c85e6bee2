/* health.c - sampling, locks, refusals and labels in words; see doctor.h. */
#include "stats/doctor.h"

typedef unsigned long long Num;

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

/* What is neither work nor waiting for a processor is sleeping for locks, see heap/sample.h. */
static uint64_t slept(const ThreadStats* s) {
    uint64_t other = s->alloc_cpu_ns_sum + s->alloc_wait_ns_sum;
    return s->alloc_wall_ns_sum > other ? s->alloc_wall_ns_sum - other : 0;
}

static void put_verdict(TsiText* t, const ThreadStats* s) {
    uint64_t locks = slept(s);
    if (s->alloc_wait_ns_sum + s->alloc_cpu_ns_sum + locks == 0) {
        tsi_text_line(t, tsi_say_verdict_none);
        return;
    }
    TsiVerdict v = tsi_sampling_verdict(s->alloc_wait_ns_sum, s->alloc_cpu_ns_sum, locks);
    tsi_text_line(t, tsi_say_verdict, verdict_words[v]);
    if (s->alloc_samples < TSI_DOCTOR_FEW_SAMPLES) return;
    if (v == TSI_VERDICT_LOCKS) tsi_text_action(t, tsi_say_verdict_locks);
    if (v == TSI_VERDICT_SCHEDULER) tsi_text_action(t, tsi_say_verdict_scheduler);
    if (v == TSI_VERDICT_HYPERVISOR) tsi_text_action(t, tsi_say_verdict_hypervisor);
}

void tsi_health_sampling(TsiText* t, const SlabSamplingStats* s) {
    const ThreadStats* a = &s->sum;
    if (s->period == 0) {
        tsi_text_head(t, 4, tsi_say_sampling_off);
        return;
    }
    if (a->alloc_samples == 0) {
        tsi_text_head(t, 4, tsi_say_sampling_none, s->period);
        return;
    }
    Num n = a->alloc_samples;
    tsi_text_head(t, 4, tsi_say_sampling, n, s->period, a->alloc_wall_ns_sum / n, a->alloc_cpu_ns_sum / n,
                  a->alloc_wait_ns_sum / n, slept(a) / n, (Num)a->alloc_wall_ns_max, (Num)s->dropped);
    put_verdict(t, a);
    if (s->lock_samples != 0)
        tsi_text_line(t, tsi_say_sampled_locks, (Num)s->lock_samples, (Num)(s->lock_wait_ns_sum / s->lock_samples),
                      (Num)s->lock_wait_ns_max, (Num)(s->lock_hold_ns_sum / s->lock_samples), (Num)s->lock_hold_ns_max);
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

static void put_locks(TsiText* t, const TsiReport* r, uint64_t fast, uint64_t contended) {
    uint64_t total = fast + contended;
    tsi_text_put(t, "5. ");
    if (total < TSI_DOCTOR_FEW_LOCKS) {
        tsi_text_put(t, tsi_say_locks_few, (Num)total);
        return;
    }
    TsiHealth h = tsi_lock_health(contended, total);
    tsi_text_put(t, tsi_say_locks, tsi_ratio(contended, total, 100.0), (Num)total, health_words[h]);
    if (h < TSI_HEALTH_WATCH) return;
    const SlabLabelStats* worst = NULL;
    for (uint32_t n = 0; n < r->label_count; n++)
        if (worst == NULL || r->labels[n].lock_contended > worst->lock_contended) worst = &r->labels[n];
    if (worst != NULL && worst->lock_contended != 0)
        tsi_text_put(t, tsi_say_locks_most, tsi_word_label(worst->label).at);
}

void tsi_health_locks(TsiText* t, const TsiReport* r) {
    uint64_t fast = 0, contended = 0, retries = 0, frees = 0, label_fast = 0, label_contended = 0;
    for (uint32_t n = 0; n < r->class_count; n++) {
        fast += r->classes[n].lock_fast_acquire;
        contended += r->classes[n].lock_contended;
    }
    for (uint32_t n = 0; n < r->label_count; n++) {
        label_fast += r->labels[n].lock_fast_acquire;
        label_contended += r->labels[n].lock_contended;
        retries += r->labels[n].cas_retries;
        frees += r->labels[n].objects_freed;
    }
    if (fast + contended == 0) {
        fast = label_fast;
        contended = label_contended;
    }
    put_locks(t, r, fast, contended);
    TsiHealth h = tsi_retry_health(retries, frees);
    if (retries == 0) tsi_text_put(t, tsi_say_retries_none);
    else tsi_text_put(t, tsi_say_retries, tsi_ratio(retries, frees, 1.0), health_words[h]);
    tsi_text_put(t, "\n");
    if (fast + contended >= TSI_DOCTOR_FEW_LOCKS && tsi_lock_health(contended, fast + contended) == TSI_HEALTH_ACT)
        tsi_text_action(t, tsi_say_locks_act);
    if (h == TSI_HEALTH_ACT) tsi_text_action(t, tsi_say_retries_act);
}

/* ---- refusals ---- */

static const struct {
    size_t offset;
    const char *name, *advice;
} causes[] = {
#define CAUSE(field, words) {offsetof(SlabRefusals, field), #field, words},
#include "stats/words.def"
};

void tsi_health_refusals(TsiText* t, const SlabRefusals* r) {
    unsigned kinds = 0;
    for (size_t n = 0; n < sizeof causes / sizeof causes[0]; n++) {
        uint64_t count = *(const uint64_t*)(const void*)((const char*)r + causes[n].offset);
        if (count == 0) continue;
        if (kinds++ == 0) tsi_text_head(t, 6, tsi_say_refusals);
        tsi_text_action(t, tsi_say_refusal, causes[n].name, (Num)count, causes[n].advice);
    }
    if (kinds == 0) tsi_text_head(t, 6, tsi_say_refusals_none);
    if (r->retired_slabs != 0) tsi_text_line(t, tsi_say_retired, (Num)r->retired_slabs);
    if (r->bad_environment != 0) tsi_text_action(t, tsi_say_bad_environment, (Num)r->bad_environment);
}

/* ---- labels ---- */

void tsi_health_labels(TsiText* t, const TsiReport* r) {
    uint64_t swallowed = 0;
    for (uint32_t n = 0; n < r->label_count; n++) swallowed += r->labels[n].swallowed;
    if (r->label_count == 0) {
        tsi_text_head(t, 7, tsi_say_labels_none);
        return;
    }
    if (swallowed == 0) {
        tsi_text_head(t, 7, tsi_say_labels, r->label_count, r->max_labels);
        return;
    }
    tsi_text_head(t, 7, tsi_say_labels_full, r->max_labels);
    tsi_text_action(t, tsi_say_swallowed, (Num)swallowed);
}

/* ---- segment ---- */

void tsi_health_segment(TsiText* t, const TsiSegmentHealth* h) {
    if (!h->asked) return;
    tsi_text_head(t, 8, "Segment: published %llu times, %llu attempts failed.", (Num)h->publications, (Num)h->failures);
    if (h->publications == 0 && h->what != NULL)
        tsi_text_action(t, "other processes cannot watch this allocator: %s: error %d (errno)", h->what, h->error);
    else if (h->failures != 0 && h->what != NULL)
        tsi_text_line(t, "The last failure of the process: %s: error %d (errno).", h->what, h->error);
}
