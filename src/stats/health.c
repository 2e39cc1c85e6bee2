/*
 * health.c - sampling, locks, refusals and labels in words; see doctor.h.
 *
 * Thresholds: of lock acquisitions that had to wait, under 15 % is good, to 20 % normal, to 30 % to be watched; of
 * compare-exchanges that were repeated, per operation, under 0.01 good, under 0.05 normal, under 0.10 to be watched.
 */
#include "stats/doctor.h"

enum { FEW_SAMPLES = 100, FEW_LOCKS = 100 };

typedef unsigned long long Num;

static const char* const health_words[] = {"good", "normal", "watch it", "act"};

/* ---- sampling ---- */

TsiVerdict tsi_sampling_verdict(uint64_t wait, uint64_t cpu, uint64_t locks) {
    if (locks > wait && locks > cpu) return TSI_VERDICT_LOCKS;
    if (wait > 2 * cpu) return TSI_VERDICT_HYPERVISOR;
    if (4 * wait >= 3 * cpu && 4 * wait <= 5 * cpu) return TSI_VERDICT_BALANCED;
    return wait > cpu ? TSI_VERDICT_SCHEDULER : TSI_VERDICT_ALLOCATOR;
}

/* What is neither work nor waiting for a processor is sleeping for locks, see heap/sample.h. */
static uint64_t slept(const ThreadStats* s) {
    uint64_t other = s->alloc_cpu_ns_sum + s->alloc_wait_ns_sum;
    return s->alloc_wall_ns_sum > other ? s->alloc_wall_ns_sum - other : 0;
}

static void put_verdict(TsiText* t, const ThreadStats* s) {
    static const char* const words[] = {
        [TSI_VERDICT_ALLOCATOR] = "allocator: the time is spent in it, not waiting for a processor; see 2 and 5",
        [TSI_VERDICT_LOCKS] = "allocator: threads sleep for its locks longer than they run or wait for a processor",
        [TSI_VERDICT_BALANCED] = "balanced: as much time on the processor as waiting for one",
        [TSI_VERDICT_SCHEDULER] = "scheduler: threads wait for a processor longer than they run",
        [TSI_VERDICT_HYPERVISOR] =
            "scheduler or hypervisor: threads wait for a processor more than twice as long as they run",
    };
    uint64_t locks = slept(s);
    if (s->alloc_wait_ns_sum + s->alloc_cpu_ns_sum + locks == 0) {
        tsi_text_put(t, "   Verdict: none; the samples are shorter than the clocks can tell.\n");
        return;
    }
    TsiVerdict v = tsi_sampling_verdict(s->alloc_wait_ns_sum, s->alloc_cpu_ns_sum, locks);
    tsi_text_put(t, "   Verdict: %s.\n", words[v]);
    if (s->alloc_samples < FEW_SAMPLES) return;
    if (v == TSI_VERDICT_LOCKS)
        tsi_text_action(t, "look at 5 for the label whose threads wait; a system call under a lock that takes long "
                           "(see the holds below) points at the kernel: memory cgroup, swapping, or a tracer");
    if (v == TSI_VERDICT_SCHEDULER)
        tsi_text_action(t, "run fewer busy threads than processors, or look for a CPU quota (cpu.stat, nr_throttled) "
                           "and for pinned threads");
    if (v == TSI_VERDICT_HYPERVISOR)
        tsi_text_action(
            t, "look at the steal time of the machine (vmstat, column st), at CPU quotas, and at the run queue");
}

void tsi_health_sampling(TsiText* t, const SlabSamplingStats* s) {
    const ThreadStats* a = &s->sum;
    if (s->period == 0) {
        tsi_text_put(t, "4. Sampling: off. SlabOptions.sampling_period = 1024, or TSLAB_OPTIONS=sampling_period=1024, "
                        "times one allocation in 1024.\n");
        return;
    }
    if (a->alloc_samples == 0) {
        tsi_text_put(t, "4. Sampling: one allocation in %u, none so far.\n", s->period);
        return;
    }
    Num n = a->alloc_samples;
    tsi_text_put(
        t,
        "4. Sampling: %llu samples, one allocation in %u; on average %llu ns = cpu %llu + wait %llu + locks %llu; "
        "longest %llu ns; %llu dropped (more cpu than wall)\n",
        n, s->period, a->alloc_wall_ns_sum / n, a->alloc_cpu_ns_sum / n, a->alloc_wait_ns_sum / n, slept(a) / n,
        (Num)a->alloc_wall_ns_max, (Num)s->dropped);
    put_verdict(t, a);
    if (s->lock_samples != 0)
        tsi_text_put(
            t, "   Locks: %llu samples; waited for %llu ns on average, %llu at most; held for %llu ns, %llu at most.\n",
            (Num)s->lock_samples, (Num)(s->lock_wait_ns_sum / s->lock_samples), (Num)s->lock_wait_ns_max,
            (Num)(s->lock_hold_ns_sum / s->lock_samples), (Num)s->lock_hold_ns_max);
}

/* ---- locks and retries ---- */

TsiHealth tsi_lock_health(uint64_t contended, uint64_t total) {
    double pct = total != 0 ? 100.0 * (double)contended / (double)total : 0.0;
    return pct < 15 ? TSI_HEALTH_GOOD : pct < 20 ? TSI_HEALTH_NORMAL : pct <= 30 ? TSI_HEALTH_WATCH : TSI_HEALTH_ACT;
}

TsiHealth tsi_retry_health(uint64_t retries, uint64_t operations) {
    double rate = operations != 0 ? (double)retries / (double)operations : 0.0;
    return rate < 0.01   ? TSI_HEALTH_GOOD
           : rate < 0.05 ? TSI_HEALTH_NORMAL
           : rate < 0.10 ? TSI_HEALTH_WATCH
                         : TSI_HEALTH_ACT;
}

static void put_locks(TsiText* t, const TsiReport* r, uint64_t fast, uint64_t contended) {
    uint64_t total = fast + contended;
    if (total < FEW_LOCKS) {
        tsi_text_put(t, "5. Locks: %llu acquisitions on record, too few to judge", (Num)total);
        return;
    }
    TsiHealth h = tsi_lock_health(contended, total);
    tsi_text_put(t, "5. Locks: %.1f %% of %llu acquisitions had to wait: %s", 100.0 * (double)contended / (double)total,
                 (Num)total, health_words[h]);
    if (h < TSI_HEALTH_WATCH) return;
    const SlabLabelStats* worst = NULL;
    for (uint32_t n = 0; n < r->label_count; n++)
        if (worst == NULL || r->labels[n].lock_contended > worst->lock_contended) worst = &r->labels[n];
    if (worst != NULL && worst->lock_contended != 0)
        tsi_text_put(t, ", most under %s", tsi_word_label(worst->label).at);
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
    if (retries == 0)
        tsi_text_put(t, "; no free was repeated.\n");
    else
        tsi_text_put(t, "; %.4f retries per free: %s.\n", frees != 0 ? (double)retries / (double)frees : 0.0,
                     health_words[h]);
    if (fast + contended >= FEW_LOCKS && tsi_lock_health(contended, fast + contended) == TSI_HEALTH_ACT)
        tsi_text_action(t, "locks are taken when slabs change hands and when phases end: longer phases, larger "
                           "slab_bytes and more warm_bytes take fewer");
    if (h == TSI_HEALTH_ACT)
        tsi_text_action(t, "threads free each other's objects of the same lines at the same time: free where the "
                           "objects were made, or release the phase as a whole");
}

/* ---- refusals ---- */

typedef struct Cause {
    size_t offset;
    const char *name, *advice;
} Cause;

#define CAUSE(field, advice) \
    { offsetof(SlabRefusals, field), #field, advice }
static const Cause causes[] = {
    CAUSE(stale_handle, "handles were used after their object ended"),
    CAUSE(bad_handle, "values were freed that this allocator never issued as handles"),
    CAUSE(double_free, "objects were freed twice"),
    CAUSE(stale_free, "pointers were freed after their phase was released or their slab returned"),
    CAUSE(interior_pointer, "pointers into the middle of objects were freed"),
    CAUSE(foreign_pointer, "pointers of somebody else were freed here; slab_owns tells whose they are"),
    CAUSE(size_mismatch, "slab_free_sized was told more bytes than the object has"),
    CAUSE(bad_epoch, "epoch ids or eras were used that do not exist"),
    CAUSE(closed_epoch, "allocations named a phase that had ended; take the id anew for each phase"),
    CAUSE(bad_size, "sizes of 0, or beyond what fits into memory, were asked for"),
    CAUSE(domain_order, "scopes were left out of order, without entering, or destroyed while entered"),
    CAUSE(domain_stale, "a borrowed domain was entered after its epoch had moved on"),
    CAUSE(late_double_free, "objects were freed by two threads at once"),
    CAUSE(out_of_memory,
          "allocations found no memory: look at RLIMIT_AS, the memory cgroup, overcommit and reserve_bytes"),
    CAUSE(over_budget, "allocations exceeded a hard budget or max_bytes"),
};

void tsi_health_refusals(TsiText* t, const SlabRefusals* r) {
    unsigned kinds = 0;
    for (size_t n = 0; n < sizeof causes / sizeof causes[0]; n++) {
        uint64_t count = *(const uint64_t*)(const void*)((const char*)r + causes[n].offset);
        if (count == 0) continue;
        if (kinds++ == 0) tsi_text_put(t, "6. Refusals:\n");
        tsi_text_action(t, "%s %llu: %s", causes[n].name, (Num)count, causes[n].advice);
    }
    if (kinds == 0) tsi_text_put(t, "6. Refusals: nothing was refused.\n");
    if (r->retired_slabs != 0)
        tsi_text_put(t, "   %llu slabs have used up their handle generations and rest; no harm.\n",
                     (Num)r->retired_slabs);
    if (r->bad_environment != 0)
        tsi_text_action(
            t, "%llu words of TSLAB_OPTIONS are no options or out of range and were ignored; see docs/options.md",
            (Num)r->bad_environment);
}

/* ---- labels ---- */

void tsi_health_labels(TsiText* t, const TsiReport* r) {
    uint64_t swallowed = 0;
    for (uint32_t n = 0; n < r->label_count; n++) swallowed += r->labels[n].swallowed;
    if (r->label_count == 0) {
        tsi_text_put(t, "7. Labels: none in use.\n");
        return;
    }
    if (swallowed == 0) {
        tsi_text_put(t, "7. Labels: every label has a place (%u of %u ids in use).\n", r->label_count, r->max_labels);
        return;
    }
    tsi_text_put(t, "7. Labels: all %u ids are taken.\n", r->max_labels);
    tsi_text_action(t,
                    "%llu phases went to \"(other)\" because their label found no room: raise max_labels (to 4096 at "
                    "most), or take names out of labels that make them many, such as request numbers",
                    (Num)swallowed);
}

/* ---- segment ---- */

void tsi_health_segment(TsiText* t, const TsiSegmentHealth* h) {
    if (!h->asked) return;
    tsi_text_put(t, "8. Segment: published %llu times, %llu attempts failed.\n", (Num)h->publications,
                 (Num)h->failures);
    if (h->publications == 0 && h->what != NULL)
        tsi_text_action(t, "other processes cannot watch this allocator: %s: error %d (errno)", h->what, h->error);
    else if (h->failures != 0 && h->what != NULL)
        tsi_text_put(t, "   The last failure of the process: %s: error %d (errno).\n", h->what, h->error);
}
