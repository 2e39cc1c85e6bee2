/*
 * export.c - the results as JSON (everything) and as CSV (the course of the arms of routing and lifetimes).
 *
 * CSV has one line per sample. "closed_": of epochs that have been closed; "close_slabs": what closes gave back so far.
 */
#include "drainability.h"
#include "machine.h"

#define ULL(x) ((unsigned long long)(x))

static void json_sample(FILE* f, const struct sample* s) {
    fprintf(f,
            "{\"requests\": %llu, \"rss_bytes\": %llu, \"slabs\": %llu, \"committed_bytes\": %llu, "
            "\"live_bytes\": %llu, \"metadata_bytes\": %llu, \"closed_slabs\": %llu, \"closed_bytes\": %llu, "
            "\"fresh_slabs\": %llu, \"reused_slabs\": %llu, \"close_slabs\": %llu, \"closes\": %llu, "
            "\"drainable\": %llu}",
            ULL(s->requests), ULL(s->rss_bytes), ULL(s->slabs), ULL(s->committed_bytes), ULL(s->live_bytes),
            ULL(s->metadata_bytes), ULL(s->closed_slabs), ULL(s->closed_bytes), ULL(s->fresh_slabs),
            ULL(s->reused_slabs), ULL(s->close_slabs), ULL(s->closes), ULL(s->drainable));
}

/* Ratios that have no meaning for an arm are null. */
static void json_ratio(FILE* f, const char* name, double v, bool known) {
    if (known)
        fprintf(f, "\"%s\": %.6f, ", name, v);
    else
        fprintf(f, "\"%s\": null, ", name);
}

static void json_arm(FILE* f, const struct arm* a, bool course) {
    const struct load* l = &a->load;
    fprintf(f,
            "    {\"name\": \"%s\", \"p\": %g, \"replaced_per_request\": %g, \"sessions_per_epoch\": %u, "
            "\"requests_per_epoch\": %u, \"epochs\": %u, \"lag\": %u, \"finished\": %s,\n     ",
            l->name, l->p, l->replaced, l->endless, l->batch, l->epochs, l->lag, a->finished ? "true" : "false");
    fprintf(f,
            "\"closes\": %llu, \"drainable\": %llu, \"escaped_objects\": %llu, \"counted_closes\": %llu, "
            "\"end_slabs\": %llu, \"left_slabs\": %llu, \"most_closed_slabs\": %llu,\n     ",
            ULL(a->closes), ULL(a->drainable), ULL(a->escaped), ULL(a->counted), ULL(a->end_slabs), ULL(a->left_slabs),
            ULL(a->most_closed_slabs));
    json_ratio(f, "dsr", arm_dsr(a), a->closes > 0);
    json_ratio(f, "theory_dsr", ratio(a->theory_drainable, (double)a->closes), a->closes > 0);
    json_ratio(f, "slab_dsr", arm_slab_dsr(a), a->end_slabs > 0);
    json_ratio(f, "theory_slab_dsr", 1 - ratio(a->theory_left, (double)a->end_slabs), a->end_slabs > 0);
    json_ratio(f, "label_drainability", a->label_drainability, a->closes > 0);
    fprintf(f, "\"label_closed_slabs\": %llu, \"label_pinned_slabs\": %llu, \"defects\": %llu,\n     \"course\": [",
            ULL(a->label_slabs), ULL(a->label_pinned), ULL(a->defects));
    for (unsigned i = 0; course && i < a->samples; i++) {
        fputs(i ? ",\n      " : "\n      ", f);
        json_sample(f, &a->sample[i]);
    }
    fputs("]}", f);
}

struct list {
    FILE* f;
    bool course, some;
};

static void json_one(struct list* list, const struct arm* a) {
    if (!a->started) return;
    fputs(list->some ? ",\n" : "\n", list->f);
    list->some = true;
    json_arm(list->f, a, list->course);
}

static void json_granules(FILE* f, const struct results* r) {
    bool some = false;
    for (unsigned i = 0; i < GRANULE_SIZES; i++)
        for (unsigned k = 0; k < SWEEP_STEPS; k++) {
            const struct granule* g = &r->granules[i][k];
            if (!g->finished) continue;
            fprintf(f,
                    "%s\n    {\"object_bytes\": %u, \"objects_per_slab\": %u, \"p\": %g, \"slabs\": %llu, "
                    "\"left_slabs\": %llu, \"slab_dsr\": %.6f, \"theory_slab_dsr\": %.6f, "
                    "\"label_drainability\": %.6f, \"defects\": %llu}",
                    some ? "," : "", g->size, g->per_slab, g->p, ULL(g->slabs), ULL(g->left_slabs),
                    1 - ratio((double)g->left_slabs, (double)g->slabs), g->theory, g->label_drainability,
                    ULL(g->defects));
            some = true;
        }
}

void export_json(const struct results* r, FILE* f) {
    struct machine m = machine_read();
    const char* first = "";
    fputs("{\n  ", f);
    json_member(f, "program", "tslab_drainability");
    fputs("  ", f);
    json_member(f, "cpu", m.cpu);
    fprintf(f, "  \"cpus\": %ld,\n  \"memory_mb\": %ld,\n  ", m.cpus, m.memory_mb);
    json_member(f, "kernel", m.kernel);
    fputs("  ", f);
    json_member(f, "compiler", compiler_text());
    fputs("  ", f);
    json_member(f, "commit", commit_text());
    fputs("  ", f);
    json_member(f, "command", r->command);
    fputs("  ", f);
    json_member(f, "options", r->options ? r->options : "");
    fprintf(f,
            "  \"seed\": %llu,\n  \"requests\": %llu,\n  \"pool\": %d,\n  \"session_bytes\": %d,\n  \"complete\": %s,\n"
            "  \"defects\": %llu,\n  \"failures\": %u,\n",
            ULL(r->seed), ULL(r->requests), POOL, SESSION_BYTES, r->stop ? "false" : "true",
            ULL(results_defects(r, &first)), r->failures);
    fputs("  ", f);
    json_member(f, "first_defect", first);
    fputs("  \"published_dsr\": [", f);
    for (unsigned k = 0; k < SWEEP_STEPS; k++) fprintf(f, "%s%g", k ? ", " : "", published_dsr[k]);
    fputs("],\n  \"routing\": [", f);
    struct list list = {f, true, false};
    for (unsigned k = 0; k < ROUTING_ARMS; k++) json_one(&list, &r->routing[k]);
    fputs("],\n  \"lifetimes\": [", f);
    list.some = false;
    for (unsigned i = 0; i < LIFETIMES; i++)
        for (unsigned k = 0; k < ROUTING_ARMS; k++) json_one(&list, &r->lifetimes[i][k]);
    fputs("],\n  \"sweep\": [", f);
    list = (struct list){f, false, false};
    for (unsigned i = 0; i < SWEEPS; i++)
        for (unsigned k = 0; k < SWEEP_STEPS; k++) json_one(&list, &r->sweep[i][k]);
    fputs("],\n  \"granules\": [", f);
    json_granules(f, r);
    fputs("]\n}\n", f);
}

static void csv_arm(FILE* f, const char* section, const struct arm* a) {
    for (unsigned i = 0; i < a->samples; i++) {
        const struct sample* s = &a->sample[i];
        fprintf(f, "%s,%s,%g,%u,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu\n", section, a->load.name,
                a->load.replaced, a->load.batch, ULL(s->requests), ULL(s->rss_bytes), ULL(s->slabs),
                ULL(s->committed_bytes), ULL(s->live_bytes), ULL(s->closed_slabs), ULL(s->closed_bytes),
                ULL(s->fresh_slabs), ULL(s->reused_slabs), ULL(s->close_slabs), ULL(s->closes), ULL(s->drainable));
    }
}

void export_csv(const struct results* r, FILE* f) {
    fputs("section,arm,replaced_per_request,requests_per_epoch,requests,rss_bytes,slabs,committed_bytes,live_bytes,"
          "closed_slabs,closed_bytes,fresh_slabs,reused_slabs,close_slabs,closes,drainable\n",
          f);
    for (unsigned k = 0; k < ROUTING_ARMS; k++) csv_arm(f, "routing", &r->routing[k]);
    for (unsigned i = 0; i < LIFETIMES; i++)
        for (unsigned k = 0; k < ROUTING_ARMS; k++) csv_arm(f, "lifetimes", &r->lifetimes[i][k]);
}
