/*
 * export.c - the results as JSON (everything) and as CSV (the course of the arms of routing and lifetimes).
 *
 * CSV has one line per sample. "closed_": of epochs that have been closed; "close_slabs": what closes gave back so far.
 */
#include <math.h>

#include "common/json.h"
#include "drainability.h"
#include "machine.h"

#define ULL(x) ((unsigned long long)(x))

#define COUNT(field) json_count(j, #field, s->field)

static void put_sample(struct json* j, const struct sample* s) {
    json_object(j, NULL);
    COUNT(requests), COUNT(rss_bytes), COUNT(slabs), COUNT(committed_bytes), COUNT(live_bytes), COUNT(metadata_bytes);
    COUNT(closed_slabs), COUNT(closed_bytes), COUNT(fresh_slabs), COUNT(reused_slabs), COUNT(close_slabs);
    COUNT(closes), COUNT(drainable);
    json_close(j);
}

#undef COUNT

/* Ratios that have no meaning for an arm are null. */
static void put_ratio(struct json* j, const char* name, double v, bool known) {
    json_fixed(j, name, known ? v : (double)NAN, 6);
}

static void put_load(struct json* j, const struct arm* a) {
    const struct load* l = &a->load;
    json_text(j, "name", l->name);
    json_short(j, "p", l->p, 6);
    json_short(j, "replaced_per_request", l->replaced, 6);
    json_count(j, "sessions_per_epoch", l->endless);
    json_count(j, "requests_per_epoch", l->batch);
    json_count(j, "epochs", l->epochs);
    json_count(j, "lag", l->lag);
    json_bool(j, "finished", a->finished);
}

static void put_arm(struct json* j, const struct arm* a, bool course) {
    if (!a->started) return;
    json_line(j, 4);
    json_object(j, NULL);
    put_load(j, a);
    json_line(j, 5);
    json_count(j, "closes", a->closes);
    json_count(j, "drainable", a->drainable);
    json_count(j, "escaped_objects", a->escaped);
    json_count(j, "counted_closes", a->counted);
    json_count(j, "end_slabs", a->end_slabs);
    json_count(j, "left_slabs", a->left_slabs);
    json_count(j, "most_closed_slabs", a->most_closed_slabs);
    json_line(j, 5);
    put_ratio(j, "dsr", arm_dsr(a), a->closes > 0);
    put_ratio(j, "theory_dsr", ratio(a->theory_drainable, (double)a->closes), a->closes > 0);
    put_ratio(j, "slab_dsr", arm_slab_dsr(a), a->end_slabs > 0);
    put_ratio(j, "theory_slab_dsr", 1 - ratio(a->theory_left, (double)a->end_slabs), a->end_slabs > 0);
    put_ratio(j, "label_drainability", a->label_drainability, a->closes > 0);
    json_count(j, "label_closed_slabs", a->label_slabs);
    json_count(j, "label_pinned_slabs", a->label_pinned);
    json_count(j, "defects", a->defects);
    json_line(j, 5);
    json_array(j, "course");
    for (unsigned i = 0; course && i < a->samples; i++) {
        json_line(j, 6);
        put_sample(j, &a->sample[i]);
    }
    json_close(j);
    json_close(j);
}

static void put_arms(struct json* j, const char* section, const struct arm* arms, unsigned count, bool course) {
    json_array(j, section);
    for (unsigned i = 0; i < count; i++) put_arm(j, &arms[i], course);
    json_close(j);
}

static void put_granule(struct json* j, const struct granule* g) {
    if (!g->finished) return;
    json_line(j, 4);
    json_object(j, NULL);
    json_count(j, "object_bytes", g->size);
    json_count(j, "objects_per_slab", g->per_slab);
    json_short(j, "p", g->p, 6);
    json_count(j, "slabs", g->slabs);
    json_count(j, "left_slabs", g->left_slabs);
    json_fixed(j, "slab_dsr", 1 - ratio((double)g->left_slabs, (double)g->slabs), 6);
    json_fixed(j, "theory_slab_dsr", g->theory, 6);
    json_fixed(j, "label_drainability", g->label_drainability, 6);
    json_count(j, "defects", g->defects);
    json_close(j);
}

static void put_head(struct json* j, const struct results* r) {
    const char* first = "";
    uint64_t defects = results_defects(r, &first);
    json_text(j, "program", "tslab_drainability");
    machine_json(j);
    json_text(j, "command", r->command);
    json_text(j, "options", r->options ? r->options : "");
    json_count(j, "seed", r->seed);
    json_count(j, "requests", r->requests);
    json_count(j, "pool", POOL);
    json_count(j, "session_bytes", SESSION_BYTES);
    json_bool(j, "complete", !r->stop);
    json_count(j, "defects", defects);
    json_count(j, "failures", r->failures);
    json_text(j, "first_defect", first);
    json_array(j, "published_dsr");
    for (unsigned k = 0; k < SWEEP_STEPS; k++) json_short(j, NULL, published_dsr[k], 6);
    json_close(j);
}

void export_json(const struct results* r, FILE* f) {
    struct json j = {.write = json_file, .ctx = f, .lines = 1, .indent = 2};
    json_object(&j, NULL);
    put_head(&j, r);
    put_arms(&j, "routing", r->routing, ROUTING_ARMS, true);
    put_arms(&j, "lifetimes", r->lifetimes[0], LIFETIMES * ROUTING_ARMS, true);
    put_arms(&j, "sweep", r->sweep[0], SWEEPS * SWEEP_STEPS, false);
    json_array(&j, "granules");
    for (unsigned i = 0; i < GRANULE_SIZES; i++)
        for (unsigned k = 0; k < SWEEP_STEPS; k++) put_granule(&j, &r->granules[i][k]);
    json_close(&j);
    json_close(&j);
    fputc('\n', f);
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
