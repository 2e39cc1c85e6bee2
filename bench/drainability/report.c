/*
 * report.c - the results as tables.
 *
 * An arm that was interrupted is shown for what it did.
 *
 * The table of lengths asks what a ratio of two arms says. "rate" is reused / (fresh + reused) slabs, the formula of
 * the published comparison. Each ratio is taken at equal length and, marked *, with one arm held at one length: the
 * rate of isolated so far to that of mixed at the end, slabs of mixed so far to those of isolated after 20 epochs.
 */
#include "drainability.h"
#include "machine.h"

enum { KIB = 1024, SHORT_EPOCHS = 20, GROWING_LIFETIME = 6 };

static const unsigned length_epochs[] = {5, 10, 20, 50, 100, 200, 300};
enum { LENGTHS = sizeof length_epochs / sizeof *length_epochs };

/* The last sample within `requests`, or NULL. */
static const struct sample* sample_at(const struct arm* a, uint64_t requests) {
    const struct sample* s = NULL;
    for (unsigned i = 0; i < a->samples && a->sample[i].requests <= requests; i++) s = &a->sample[i];
    return s;
}

static const struct sample* last_sample(const struct arm* a) { return a->samples ? &a->sample[a->samples - 1] : NULL; }

static double theory_slab_dsr(const struct arm* a) { return 1 - ratio(a->theory_left, (double)a->end_slabs); }

/* Drainable closes, and slabs; common to all tables of arms. */
static void print_closes(const struct arm* a) {
    double n = (double)a->counted;
    if (a->closes == 0) {
        printf("%8s", "none");
        return;
    }
    printf("%8llu %9llu %7.4f %7.4f %10.1f %9.2f %10.2f %8.4f %8.4f %7.4f", (unsigned long long)a->closes,
           (unsigned long long)a->drainable, arm_dsr(a), ratio(a->theory_drainable, (double)a->closes),
           ratio((double)a->escaped, (double)a->closes), ratio((double)a->end_slabs, n),
           ratio((double)a->left_slabs, n), arm_slab_dsr(a), theory_slab_dsr(a), a->label_drainability);
}

/* Above what print_closes prints. */
static void print_closes_head(void) {
    printf("%8s %9s %7s %7s %10s %9s %10s %8s %8s %7s", "closes", "drainable", "DSR", "theory", "live/close",
           "slabs/end", "left/close", "slab DSR", "theory", "label");
}

/* ---- routing ---------------------------------------------------------------------------- */

static void print_routing(const struct results* r) {
    const struct load* l = &r->routing[0].load;
    printf(
        "\nROUTING: %llu requests each; per request %g of %d sessions are replaced; epochs of %u requests, closed %u "
        "epochs after\ntheir end\n%-9s",
        (unsigned long long)r->requests, l->replaced, POOL, l->batch, l->lag, "");
    print_closes_head();
    printf("\n");
    for (unsigned k = 0; k < ROUTING_ARMS; k++) {
        const struct arm* a = &r->routing[k];
        if (!a->started || a->load.glibc) continue;
        printf("%-9s", a->load.name);
        print_closes(a);
        printf("%s\n", a->finished ? "" : "  (interrupted)");
    }
}

static void print_course(const struct results* r) {
    printf("\nCourse: slabs held, those of closed epochs, KiB committed, KiB live, KiB resident above the start\n"
           "%9s   %37s   %37s   %8s\n",
           "requests", "mixed", "isolated", "glibc");
    for (unsigned i = 0; i < LENGTHS; i++) {
        uint64_t requests = (uint64_t)length_epochs[i] * r->routing[0].load.batch;
        if (requests > r->requests) break;
        printf("%9llu", (unsigned long long)requests);
        for (unsigned k = 0; k < ROUTING_ARMS; k++) {
            const struct sample* s = sample_at(&r->routing[k], requests);
            if (!s)
                printf("   -");
            else if (r->routing[k].load.glibc)
                printf("   %8llu", (unsigned long long)s->rss_bytes / KIB);
            else
                printf("   %6llu %6llu %8llu %6llu %7llu", (unsigned long long)s->slabs,
                       (unsigned long long)s->closed_slabs, (unsigned long long)s->committed_bytes / KIB,
                       (unsigned long long)s->live_bytes / KIB, (unsigned long long)s->rss_bytes / KIB);
        }
        printf("\n");
    }
}

/* ---- lengths ---------------------------------------------------------------------------- */

static double rate(const struct sample* s) {
    return ratio((double)s->reused_slabs, (double)(s->fresh_slabs + s->reused_slabs));
}

/* Of one kind of slabs, so far. */
static void print_slabs(uint64_t mixed, uint64_t isolated, uint64_t isolated_brief) {
    printf(" | %7llu %7llu %7.2f %7.2f", (unsigned long long)mixed, (unsigned long long)isolated,
           ratio((double)mixed, (double)isolated), ratio((double)mixed, (double)isolated_brief));
}

static void print_lengths(const struct arm* mixed, const struct arm* isolated) {
    const struct sample *full = last_sample(mixed),
                        *brief = sample_at(isolated, (uint64_t)SHORT_EPOCHS * isolated->load.batch);
    if (!full || !brief) return;
    printf(
        "\nLENGTHS, %g replaced per request; *: isolated to mixed after %llu requests (rate), mixed to isolated after "
        "%llu (slabs)\n",
        mixed->load.replaced, (unsigned long long)full->requests, (unsigned long long)brief->requests);
    printf("%9s | %-31s | %-31s | %-31s | %s\n", "", "rate, %", "fresh slabs so far", "slabs held",
           "returned by closes");
    printf("%9s", "requests");
    for (unsigned i = 0; i < 3; i++) printf(" | %7s %7s %7s %7s", "mixed", "isol.", "ratio", "ratio*");
    printf(" | %7s %7s\n", "mixed", "isol.");
    for (unsigned i = 0; i < LENGTHS; i++) {
        uint64_t requests = (uint64_t)length_epochs[i] * mixed->load.batch;
        const struct sample *m = sample_at(mixed, requests), *s = sample_at(isolated, requests);
        if (!m || !s || m->requests != requests || s->requests != requests) continue;
        printf("%9llu | %7.2f %7.2f %7.2f %7.2f", (unsigned long long)requests, 100 * rate(m), 100 * rate(s),
               ratio(rate(s), rate(m)), ratio(rate(s), rate(full)));
        print_slabs(m->fresh_slabs, s->fresh_slabs, brief->fresh_slabs);
        print_slabs(m->slabs, s->slabs, brief->slabs);
        printf(" | %7llu %7llu\n", (unsigned long long)m->close_slabs, (unsigned long long)s->close_slabs);
    }
}

/* ---- lifetimes -------------------------------------------------------------------------- */

static void print_lifetimes(const struct results* r) {
    printf(
        "\nLIFETIMES: %llu requests each; a session lives for %d / replaced requests on average; at the end of the "
        "arm: "
        "slabs\nheld, slabs of closed epochs, KiB committed, KiB of closed epochs, KiB resident above the start, the "
        "same for glibc\n%8s %6s %-9s",
        (unsigned long long)r->requests, POOL, "replaced", "batch", "");
    print_closes_head();
    printf(" | %6s %6s %9s %8s %8s %6s\n", "held", "closed", "committed", "closed", "resident", "glibc");
    for (unsigned i = 0; i < LIFETIMES; i++)
        for (unsigned k = 0; k < ARM_GLIBC; k++) {
            const struct arm* a = &r->lifetimes[i][k];
            const struct sample *s = last_sample(a), *glibc = last_sample(&r->lifetimes[i][ARM_GLIBC]);
            if (!s) continue;
            printf("%8g %6u %-9s", a->load.replaced, a->load.batch, a->load.name);
            print_closes(a);
            printf(" | %6llu %6llu %9llu %8llu %8llu", (unsigned long long)s->slabs,
                   (unsigned long long)s->closed_slabs, (unsigned long long)s->committed_bytes / KIB,
                   (unsigned long long)s->closed_bytes / KIB, (unsigned long long)s->rss_bytes / KIB);
            if (glibc)
                printf(" %6llu", (unsigned long long)glibc->rss_bytes / KIB);
            else
                printf(" %6s", "-");
            printf("%s\n", a->finished ? "" : "  (interrupted)");
        }
}

/* ---- sweep and granules ----------------------------------------------------------------- */

static void print_sweep(const struct results* r) {
    for (unsigned i = 0; i < SWEEPS; i++) {
        const struct load* l = &r->sweep[i][0].load;
        if (!r->sweep[i][0].started) continue;
        printf("\nSWEEP, %s: %u epochs of %u requests, closed %u epochs after their end\n%5s", l->name, l->epochs,
               l->batch, l->lag, "p");
        print_closes_head();
        printf("%s\n", i == 0 ? "  published DSR" : "");
        for (unsigned k = 0; k < SWEEP_STEPS; k++) {
            const struct arm* a = &r->sweep[i][k];
            if (!a->started) break;
            printf("%5.2f", a->load.p);
            print_closes(a);
            if (i == 0) printf("  %13.2f", published_dsr[k]);
            printf("%s\n", a->finished ? "" : "  (interrupted)");
        }
    }
}

static void print_granules(const struct results* r) {
    printf(
        "\nGRANULES: slab DSR when each of the k objects of a slab is a session with probability p; measured (theory: "
        "(1 - p)^k)\n%5s %7s",
        "k", "bytes");
    for (unsigned k = 0; k < SWEEP_STEPS; k++) printf("      p = %-8.2g", sweep_steps[k]);
    printf("\n");
    for (unsigned i = 0; i < GRANULE_SIZES; i++) {
        if (!r->granules[i][0].finished) break;
        printf("%5u %7u", r->granules[i][0].per_slab, r->granules[i][0].size);
        for (unsigned k = 0; k < SWEEP_STEPS && r->granules[i][k].finished; k++) {
            const struct granule* g = &r->granules[i][k];
            printf("  %7.4f (%6.4f)", 1 - ratio((double)g->left_slabs, (double)g->slabs), g->theory);
        }
        printf("\n");
    }
}

/* ---- all -------------------------------------------------------------------------------- */

struct tally {
    uint64_t n;
    const char* first;
};

static void add(struct tally* t, uint64_t more, const char* text) {
    if (more > 0 && t->n == 0) t->first = text;
    t->n += more;
}

uint64_t results_defects(const struct results* r, const char** first) {
    struct tally t = {0, *first};
    for (unsigned k = 0; k < ROUTING_ARMS; k++) {
        add(&t, r->routing[k].defects, r->routing[k].defect);
        for (unsigned i = 0; i < LIFETIMES; i++) add(&t, r->lifetimes[i][k].defects, r->lifetimes[i][k].defect);
    }
    for (unsigned k = 0; k < SWEEP_STEPS; k++) {
        for (unsigned i = 0; i < SWEEPS; i++) add(&t, r->sweep[i][k].defects, r->sweep[i][k].defect);
        for (unsigned i = 0; i < GRANULE_SIZES; i++) add(&t, r->granules[i][k].defects, r->granules[i][k].defect);
    }
    *first = t.first;
    return t.n;
}

void report_text(const struct results* r) {
    struct machine m = machine_read();
    const char* first = "none";
    printf("tslab_drainability: sessions %d x %d B, requests of %d objects of %d to %d B, seed %llu%s\n", POOL,
           SESSION_BYTES, REQUEST_OBJECTS, REQUEST_LEAST_BYTES, REQUEST_MOST_BYTES, (unsigned long long)r->seed,
           r->stop ? "; INTERRUPTED" : "");
    printf("machine   %s, %ld cpus, %ld MiB\nkernel    %s\ncompiler  %s\ncommit    %s\ncommand   %s\n", m.cpu, m.cpus,
           m.memory_mb, m.kernel, compiler_text(), commit_text(), r->command);
    if (r->options) printf("options   %s\n", r->options);
    printf("live/close, left/close: objects alive and slabs held after a close; slabs/end: slabs of an epoch as it "
           "ends;\nlabel: drainability of the requests' label\n");
    if (r->wanted[SECTION_ROUTING]) {
        print_routing(r);
        print_course(r);
        print_lengths(&r->routing[ARM_MIXED], &r->routing[ARM_ISOLATED]);
    }
    if (r->wanted[SECTION_LIFETIMES]) {
        print_lifetimes(r);
        print_lengths(&r->lifetimes[GROWING_LIFETIME][ARM_MIXED], &r->lifetimes[GROWING_LIFETIME][ARM_ISOLATED]);
    }
    if (r->wanted[SECTION_SWEEP]) print_sweep(r);
    if (r->wanted[SECTION_GRANULES]) print_granules(r);
    uint64_t defects = results_defects(r, &first);
    printf("\ndefects: %llu (%s)\n", (unsigned long long)defects, first);
}
