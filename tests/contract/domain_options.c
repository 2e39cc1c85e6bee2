/*
 * domain_options.c - epoch_domain_create_ex: what options are taken, and what each does to every epoch of the domain.
 */
#include "kit/fixture.h"

#include <slab_diagnostics.h>

static SlabDomainOptions options(const char* label, uint32_t flags) {
    return (SlabDomainOptions){.struct_size = sizeof(SlabDomainOptions), .label = label, .flags = flags};
}

static void refused(epoch_domain_t* d, int error) {
    int seen = errno;
    CHECK_NULL(d);
    CHECK_EQ(seen, error);
}

static void bad_options(void) {
    SlabAllocator* a = kit_create();
    SlabDomainOptions o = options("x", 0);
    refused(epoch_domain_create_ex(a, NULL), EINVAL);
    refused(epoch_domain_create_ex(NULL, &o), EINVAL);
    o.struct_size = 8;
    refused(epoch_domain_create_ex(a, &o), EINVAL);
    o = options("x", 8);
    refused(epoch_domain_create_ex(a, &o), EINVAL);
    o = options("x", 0);
    o.reserved_ = 1;
    refused(epoch_domain_create_ex(a, &o), EINVAL);
    o = options("x", 0);
    o.soft_bytes = 2, o.hard_bytes = 1;
    refused(epoch_domain_create_ex(a, &o), EINVAL);
    struct {
        SlabDomainOptions o;
        uint64_t later;
    } larger = {options("x", 0), 1};
    larger.o.struct_size = sizeof larger;
    refused(epoch_domain_create_ex(a, &larger.o), EINVAL);
    larger.later = 0;
    epoch_domain_t* d = epoch_domain_create_ex(a, &larger.o);
    CHECK(d != NULL && epoch_domain_destroy(d));
    slab_allocator_free(a);
}

/* Without options it is what epoch_domain_create_labeled makes. */
static void none(void) {
    SlabAllocator* a = kit_create();
    SlabDomainOptions o = options("request", 0);
    epoch_domain_t* d = epoch_domain_create_ex(a, &o);
    CHECK(d != NULL && d->auto_close);
    CHECK(epoch_domain_enter(d));
    CHECK(slab_malloc(a, 100) != NULL);
    CHECK(epoch_domain_exit(d));
    EpochReceipt r;
    CHECK(epoch_domain_receipt(d, &r));
    CHECK_EQ(r.objects_released, 1);
    CHECK_STR(r.label, "request");
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

static void keep(void) {
    SlabAllocator* a = kit_create();
    SlabDomainOptions o = options("cache", SLAB_DOMAIN_KEEP);
    epoch_domain_t* d = epoch_domain_create_ex(a, &o);
    uint64_t era = d->epoch_era;
    for (unsigned n = 0; n < 3; n++) {
        CHECK(epoch_domain_enter(d));
        CHECK(slab_malloc(a, 100) != NULL);
        CHECK(epoch_domain_exit(d));
        CHECK_EQ(epoch_domain_era(d), era);
    }
    CHECK_EQ(kit_live(a), 3);
    CHECK(epoch_domain_destroy(d));
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static unsigned told_soft, told_hard;
static void told(SlabAllocator* a, EpochId id, uint64_t bytes, bool hard, void* ctx) {
    (void)a, (void)id, (void)bytes;
    CHECK(ctx == &told_soft);
    if (hard) told_hard++;
    else told_soft++;
}

/* Each epoch of the domain has the budget, the first one and those that an enter opens. */
static void budgets(void) {
    SlabAllocator* a = kit_create();
    SlabDomainOptions o = options("limited", 0);
    o.soft_bytes = 64 << 10, o.hard_bytes = 256 << 10, o.budget_fn = told, o.budget_ctx = &told_soft;
    epoch_domain_t* d = epoch_domain_create_ex(a, &o);
    for (unsigned n = 1; n <= 3; n++) {
        CHECK(epoch_domain_enter(d));
        uint64_t bytes = 0;
        while (slab_malloc(a, 1000) != NULL) CHECK_GE(256 << 10, bytes += 1000);
        CHECK_EQ(errno, EDQUOT);
        CHECK_GE(bytes, 128 << 10);
        CHECK_EQ(told_soft, n);
        CHECK_EQ(told_hard, n);
        CHECK(epoch_domain_exit(d));
    }
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

static SlabPhaseStats row_of(SlabAllocator* a, uint64_t era) {
    static SlabPhaseStats rows[64];
    size_t n = slab_stats_phases(a, rows, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        if (rows[i].epoch_era == era) return rows[i];
    CHECK(!"a row of the phase");
    return rows[0];
}

static uint64_t durations(SlabAllocator* a, const char* label) {
    static SlabLabelStats rows[64];
    size_t n = slab_stats_labels(a, rows, 64);
    for (size_t i = 0; i < n && i < 64; i++) {
        if (strcmp(rows[i].label, label) != 0) continue;
        uint64_t sum = 0;
        for (unsigned k = 0; k < SLAB_HISTOGRAM_BUCKETS; k++) sum += rows[i].duration_ns[k];
        return sum;
    }
    return 0;
}

/* Straight, swept and empty ends; phases with large objects; and one that is open for long. */
static void untimed(void) {
    SlabAllocator* a = kit_create();
    const char* const labels[] = {"timed", "untimed"};
    for (unsigned flags = 0; flags <= SLAB_DOMAIN_UNTIMED; flags += SLAB_DOMAIN_UNTIMED) {
        const char* label = labels[flags != 0];
        SlabDomainOptions o = options(label, flags);
        for (unsigned n = 0; n < 40; n++) {
            epoch_domain_t* d = epoch_domain_create_ex(a, &o);
            for (unsigned k = 0; k < 10; k++) CHECK(epoch_domain_malloc(d, 40 + 8 * k) != NULL);
            if (n % 4 == 1) CHECK(epoch_domain_malloc(d, 300000) != NULL);
            usleep(100);
            SlabPhaseStats p = row_of(a, d->epoch_era);
            CHECK_EQ(p.age_ns == 0, flags != 0);
            CHECK_EQ(p.open_since_ns == 0, flags != 0);
            EpochReceipt r;
            if (n % 4 == 3) CHECK(epoch_domain_drain(d, &r));
            else if (n % 4 == 2) CHECK(epoch_domain_destroy_ex(d, &r));
            else CHECK(epoch_domain_destroy(d));
            if (n % 4 == 2) CHECK_EQ(r.objects_released, 10);
        }
        CHECK_EQ(durations(a, label), flags != 0 ? 0 : 40);
    }
    slab_allocator_free(a);
}

/* The next phase in the same record is timed. */
static void timed_after_untimed(void) {
    SlabAllocator* a = kit_create();
    SlabDomainOptions o = options("untimed", SLAB_DOMAIN_UNTIMED);
    for (unsigned n = 0; n < 20000; n++) { /* more than there are records that wait */
        epoch_domain_t* d = epoch_domain_create_ex(a, &o);
        if (n % 2 != 0) CHECK(epoch_domain_malloc(d, 40) != NULL);
        CHECK(epoch_domain_destroy(d));
        d = epoch_domain_create_labeled(a, "timed");
        CHECK(epoch_domain_malloc(d, 40) != NULL);
        if (n % 1000 == 0) CHECK(row_of(a, d->epoch_era).open_since_ns != 0);
        CHECK(epoch_domain_destroy(d));
    }
    CHECK_EQ(durations(a, "timed"), 20000);
    CHECK_EQ(durations(a, "untimed"), 0);
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(bad_options), CHECK_CASE(none),    CHECK_CASE(keep),
        CHECK_CASE(budgets),     CHECK_CASE(untimed), CHECK_CASE(timed_after_untimed),
    };
    return CHECK_RUN(argc, argv, tests);
}
