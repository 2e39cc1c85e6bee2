/*
 * stress_accounts.c - what labels are told of phases that end is exact, and never goes back while others read it.
 *
 * Writers end phases of more labels than a thread keeps accounts of, so that accounts move from threads to labels all
 * the time; threads come and go, too. A reader lists the labels meanwhile: no sum is smaller than it was, and none is
 * more than what was begun. When all rest, each is exact.
 */
#include "stress.h"

enum { WRITERS = 3, LABELS = 41, LIVES = 6, PHASES = 480000, MOST = 5 };

struct sums {
    uint64_t ended, allocated, freed, released, slabs, durations, peaks;
};

static SlabAllocator* a;
static _Atomic uint64_t begun[LABELS], issued[LABELS], freed_singly[LABELS], used[LABELS];
static _Atomic int writing;
static struct sums last[LABELS];

static void name_of(char out[32], unsigned n) { (void)snprintf(out, 32, "route-%02u", n); }

/* A phase of up to MOST objects, some of them freed before its end. */
static void phase(struct dice* d, unsigned n) {
    char name[32];
    void* p[MOST];
    unsigned objects = (unsigned)below(d, MOST + 1), singly = (unsigned)below(d, objects + 1);
    name_of(name, n);
    atomic_fetch_add(&begun[n], 1);
    atomic_fetch_add(&issued[n], objects);
    atomic_fetch_add(&freed_singly[n], singly);
    if (objects != 0) atomic_fetch_add(&used[n], 1);
    epoch_domain_t* domain = epoch_domain_create_labeled(a, name);
    REQUIRE_OR(domain, "no domain");
    for (unsigned k = 0; k < objects; k++)
        REQUIRE_OR((p[k] = epoch_domain_malloc(domain, 16 + 16 * below(d, 8))) != NULL, "no object");
    for (unsigned k = 0; k < singly; k++) slab_free(a, p[k]);
    epoch_domain_destroy(domain);
}

static struct sums sums_of(const SlabLabelStats* l) {
    struct sums s = {l->phases_ended, l->objects_allocated, l->objects_freed, l->objects_released, l->closed_slabs, 0, 0};
    for (unsigned n = 0; n < SLAB_HISTOGRAM_BUCKETS; n++) {
        s.durations += l->duration_ns[n];
        s.peaks += l->peak_bytes_hist[n];
    }
    return s;
}

#define RISES(what)                                                                                                 \
    REQUIRE_OR(now.what >= last[n].what, "label %u: " #what " is %llu after %llu", n, (unsigned long long)now.what, \
               (unsigned long long)last[n].what)

static unsigned read_labels(void) {
    static SlabLabelStats rows[LABELS + 2];
    size_t count = slab_stats_labels(a, rows, LABELS + 2);
    unsigned seen = 0;
    for (size_t k = 0; k < count; k++) {
        unsigned n;
        if (sscanf(rows[k].label, "route-%u", &n) != 1) continue;
        struct sums now = sums_of(&rows[k]);
        RISES(ended);
        RISES(allocated);
        RISES(freed);
        RISES(released);
        RISES(slabs);
        RISES(durations);
        RISES(peaks);
        REQUIRE_OR(now.ended <= atomic_load(&begun[n]) && now.allocated <= atomic_load(&issued[n]) &&
                       now.freed <= atomic_load(&freed_singly[n]) && now.peaks <= atomic_load(&used[n]),
                   "label %u: more than there was", n);
        last[n] = now;
        seen++;
    }
    return seen;
}

static void live(struct slot* self) {
    if (self->index < WRITERS) {
        /* One label for a while, then each in turn: accounts stay, and accounts move. */
        for (uint64_t k = 0; k < self->ops_per_life; k++)
            phase(&self->dice, k % 512 < 128 ? (unsigned)self->index : (unsigned)(k % LABELS));
        atomic_fetch_sub(&writing, 1);
    } else {
        while (atomic_load(&writing) > 0) read_labels();
    }
}

int main(void) {
    SlabOptions o = {.struct_size = sizeof o, .max_labels = LABELS + 2};
    a = kit_create_with(&o);
    for (unsigned life = 0; life < LIVES; life++) {
        atomic_store(&writing, WRITERS);
        run_slots(WRITERS + 1, 1, check_count(PHASES) / LIVES + 1, life, live, NULL);
    }
    REQUIRE_OR(read_labels() == LABELS, "labels are missing");
    for (unsigned n = 0; n < LABELS; n++) {
        const struct sums* s = &last[n];
        REQUIRE_OR(s->ended == begun[n], "label %u: %llu phases, %llu ended", n, (unsigned long long)begun[n],
                   (unsigned long long)s->ended);
        REQUIRE_OR(s->allocated == issued[n] && s->freed == freed_singly[n] &&
                       s->released == issued[n] - freed_singly[n],
                   "label %u: objects are missing", n);
        REQUIRE_OR(s->peaks == used[n] && s->durations == used[n],
                   "label %u: %llu phases held something, %llu and %llu told", n, (unsigned long long)used[n],
                   (unsigned long long)s->peaks, (unsigned long long)s->durations);
    }
    char why[256];
    REQUIRE_OR(tsi_check_allocator(a, why, sizeof why), "%s", why);
    slab_allocator_free(a);
    puts("stress_accounts: ok");
    return 0;
}
