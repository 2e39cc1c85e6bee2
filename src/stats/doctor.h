/*
 * doctor.h - the diagnosis as text. Pure: figures in, text out; the caller has taken them.
 */
#ifndef TSI_STATS_DOCTOR_H
#define TSI_STATS_DOCTOR_H

#include "stats/diagnose.h"
#include "stats/report.h"
#include "stats/segment.h"
#include "stats/text.h"
#include "stats/words.h"

typedef struct TsiDoctorView {
    const TsiReport* report;
    const TsiLeaks* leaks; /* of any age, by label: tsi_leaks_by_label with leak_sec */
    uint32_t leak_sec;     /* age from which an ended phase that holds objects leaks */
    const SlowPathAttribution* slow;
    uint32_t slow_count;
    const EpochReclamation* closes; /* oldest first */
    uint32_t close_count;
    unsigned purge_policy; /* SlabPurgePolicy */
    TsiSegmentHealth segment;
} TsiDoctorView;

/* Writes the diagnosis of the figures in *view: a line about the process, the number of ACTION lines, and the
 * sections, in pieces, to write(ctx, bytes, n). Returns true, or false as soon as `write` does; it is not called again
 * then. [any thread, needs no lock] */
bool tsi_doctor_write(const TsiDoctorView* view, TsiWriteFn write, void* ctx);

/* Returns where sampled allocations spent their time, by three sums in ns: wait_ns for a processor, cpu_ns at work,
 * locks_ns asleep for the allocator's own locks. LOCKS if these are the largest; HYPERVISOR if waiting is more than
 * TSI_DOCTOR_WAITS_LONG times the work; BALANCED if wait and work differ by one part in TSI_DOCTOR_EQUAL_PART at most;
 * otherwise SCHEDULER or ALLOCATOR, by the larger one. [any thread, needs no lock] */
TsiVerdict tsi_sampling_verdict(uint64_t wait_ns, uint64_t cpu_ns, uint64_t locks_ns);

/* Returns the health of locks of which `contended` of `total` takings waited, by percent: TSI_HEALTH_GOOD below
 * TSI_DOCTOR_LOCK_GOOD, and if total is 0; NORMAL below TSI_DOCTOR_LOCK_NORMAL, WATCH up to TSI_DOCTOR_LOCK_WATCH, ACT
 * above. [any thread, needs no lock] */
TsiHealth tsi_lock_health(uint64_t contended, uint64_t total);
/* Returns the health of compare-exchanges that were retried `retries` times in `operations` operations, by retries an
 * operation: TSI_HEALTH_GOOD below tsi_rate_RETRY_GOOD, and if operations is 0; NORMAL below tsi_rate_RETRY_NORMAL,
 * WATCH below tsi_rate_RETRY_WATCH, ACT from there on. [any thread, needs no lock] */
TsiHealth tsi_retry_health(uint64_t retries, uint64_t operations);

#endif
