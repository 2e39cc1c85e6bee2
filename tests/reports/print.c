/*
 * print.c - writes what the scripts of this folder examine to the current folder: NAME.json, NAME.prometheus and
 * NAME.fields of the reports full, extreme and empty (see synthetic.h) and of an allocator at work (live). A line of
 * fields is a C field itself:
 *
 *   SECTION <tab> row <tab> key <tab> type <tab> kind <tab> unit <tab> family <tab> value
 */
#include "reports/synthetic.h"

#include "api/internal.h"
#include "epoch_domain.h"
#include "stats/report.h"

#include <inttypes.h>

static FILE* out;

static bool to_file(void* ctx, const char* bytes, size_t n) {
    (void)ctx;
    return fwrite(bytes, 1, n, out) == n;
}

static void put_array(const uint64_t* a, size_t n) {
    for (size_t i = 0; i < n; i++) fprintf(out, "%s%" PRIu64, i != 0 ? "," : "", a[i]);
}
static void put_hex(const char* s, size_t most) {
    for (size_t i = 0; i < most && s[i] != 0; i++) fprintf(out, "%02x", (unsigned char)s[i]);
}

#define PUT_U32(x) fprintf(out, "%" PRIu32, x)
#define PUT_FLAG(x) fprintf(out, "%s", x != 0 ? "true" : "false")
#define PUT_U64(x) fprintf(out, "%" PRIu64, x)
#define PUT_F64(x) fprintf(out, "%.17g", x)
#define PUT_STATE(x) fprintf(out, "%u", (unsigned)(x))
#define PUT_STRING(x) put_hex(x, sizeof(x))
#define PUT_BY_LABEL(x) put_array(x, sizeof(x) / 8)
#define PUT_DOUBLING(x) put_array(x, sizeof(x) / 8)
#define PUT_LIST(x) put_array(x, sizeof(x) / 8)
#define PUT_LATENCY(x) put_array(x, sizeof(x) / 8)
#define JSON_ONLY "-"
#define RENAMED(section, field, key, type, kind, unit, family, help, question)                       \
    if (TSI_SECTION_##section == of) {                                                               \
        fprintf(out, "%s\t%u\t%s\t%s\t%s\t%s\t%s\t", #section, i, key, #type, #kind, #unit, family); \
        PUT_##type(((const TsiRow_##section*)row)->field);                                           \
        fputc('\n', out);                                                                            \
    }
static void put_fields(TsiSection of, const void* row, uint32_t i) {
#include "stats/metrics.def"
}

static bool print(const char* name, const char* form, const TsiReport* r) {
    char path[64];
    bool whole = true;
    (void)snprintf(path, sizeof path, "%s.%s", name, form);
    out = fopen(path, "w");
    if (out == NULL) return false;
    if (strcmp(form, "json") == 0)
        whole = tsi_report_json(r, to_file, NULL);
    else if (strcmp(form, "prometheus") == 0)
        whole = tsi_report_prometheus(r, to_file, NULL);
    else
        for (unsigned section = 0; section < TSI_SECTIONS; section++) {
            TsiRows rows = tsi_report_rows(r, (TsiSection)section);
            for (uint32_t i = 0; i < rows.count; i++) put_fields((TsiSection)section, rows.first + i * rows.bytes, i);
        }
    return (fclose(out) == 0) & whole;
}

static bool print_all(const char* name, const TsiReport* r) {
    return print(name, "json", r) && print(name, "prometheus", r) && print(name, "fields", r);
}

/* Phases open, ended, drained and draining, labels of all kinds, domains, refusals. */
static SlabAllocator* at_work(void) {
    SlabOptions o = {.struct_size = sizeof o, .sampling_period = 16};
    SlabAllocator* a = slab_allocator_create_with(&o);
    if (a == NULL) return NULL;
    for (unsigned phase = 0; phase < 40; phase++) {
        EpochId id = epoch_current(a);
        slab_epoch_set_label(a, id, synthetic_labels[phase % SYNTHETIC_LABELS]);
        for (unsigned i = 0; i < 3000; i++) {
            void* p = slab_malloc(a, 1 + (i * 7919u + phase) % 3000);
            if (i % 5 != 0) slab_free(a, p);
        }
        (void)slab_malloc(a, 3u << 20);
        epoch_advance(a);
        if (phase % 4 == 0) epoch_close(a, id);
        if (phase % 4 == 1) (void)epoch_close_ex(a, id, EPOCH_RELEASE, NULL);
    }
    for (unsigned i = 0; i < 20; i++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, "GET /domain");
        epoch_domain_enter(d);
        (void)slab_malloc(a, 1000);
        if (i % 2 == 0) { /* the others stay open */
            epoch_domain_exit(d);
            epoch_domain_destroy(d);
        }
    }
    slab_free(a, &o);
    (void)slab_malloc(a, 0);
    return a;
}

int main(void) {
    static Synthetic s;
    TsiReport live;
    SlabAllocator* a = at_work();
    if (a == NULL || !tsi_report_take(tsi_arena(a), &live))
        return fprintf(stderr, "no memory for the live report\n"), 1;
    bool whole = print_all("live", &live);
    tsi_report_drop(&live);
    slab_allocator_free(a);
    synthetic_make(&s);
    whole &= print_all("full", &s.r);
    synthetic_make_extreme(&s);
    whole &= print_all("extreme", &s.r);
    synthetic_make_empty(&s);
    whole &= print_all("empty", &s.r);
    return !whole;
}
