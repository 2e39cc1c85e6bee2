/*
 * print.c - prints what the scripts of this folder examine: `print REPORT FORM`.
 *
 *   REPORT  full, extreme, empty: see synthetic.h; live: an allocator at work
 *   FORM    json, prometheus; fields: the C fields themselves, one a line, as
 *           SECTION <tab> row <tab> key <tab> type <tab> kind <tab> unit <tab> family <tab> value
 */
#include "reports/synthetic.h"

#include "epoch_domain.h"

#include <inttypes.h>

static bool to_stdout(void* ctx, const char* bytes, size_t n) {
    (void)ctx;
    return fwrite(bytes, 1, n, stdout) == n;
}

static void put_array(const uint64_t* a, size_t n) {
    for (size_t i = 0; i < n; i++) printf("%s%" PRIu64, i != 0 ? "," : "", a[i]);
}
static void put_hex(const char* s, size_t most) {
    for (size_t i = 0; i < most && s[i] != 0; i++) printf("%02x", (unsigned char)s[i]);
}

#define PUT_U32(x) printf("%" PRIu32, x)
#define PUT_U64(x) printf("%" PRIu64, x)
#define PUT_F64(x) printf("%.17g", x)
#define PUT_STATE(x) printf("%u", (unsigned)(x))
#define PUT_STRING(x) put_hex(x, sizeof(x))
#define PUT_BY_LABEL(x) put_array(x, sizeof(x) / 8)
#define PUT_DOUBLING(x) put_array(x, sizeof(x) / 8)
#define PUT_LATENCY(x) put_array(x, sizeof(x) / 8)
#define JSON_ONLY "-"
#define RENAMED(section, field, key, type, kind, unit, family, help, question)                 \
    if (TSI_SECTION_##section == of) {                                                         \
        printf("%s\t%u\t%s\t%s\t%s\t%s\t%s\t", #section, i, key, #type, #kind, #unit, family); \
        PUT_##type(((const TsiRow_##section*)row)->field);                                     \
        putchar('\n');                                                                         \
    }
static void put_fields(TsiSection of, const void* row, uint32_t i) {
#include "stats/metrics.def"
}

static bool print(const TsiReport* r, const char* form) {
    if (strcmp(form, "json") == 0) return tsi_report_json(r, to_stdout, NULL);
    if (strcmp(form, "prometheus") == 0) return tsi_report_prometheus(r, to_stdout, NULL);
    for (unsigned section = 0; section < TSI_SECTIONS; section++) {
        TsiRows rows = tsi_report_rows(r, (TsiSection)section);
        for (uint32_t i = 0; i < rows.count; i++) put_fields((TsiSection)section, rows.first + i * rows.bytes, i);
    }
    return true;
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

int main(int argc, char** argv) {
    static Synthetic s;
    if (argc != 3) return fprintf(stderr, "print REPORT FORM\n"), 2;
    if (strcmp(argv[1], "live") == 0) {
        SlabAllocator* a = at_work();
        bool json = strcmp(argv[2], "json") == 0;
        if (a == NULL) return fprintf(stderr, "no allocator: %s\n", slab_last_error()), 1;
        return !(json ? slab_stats_json(a, to_stdout, NULL) : slab_stats_prometheus(a, to_stdout, NULL));
    }
    if (strcmp(argv[1], "full") == 0)
        synthetic_make(&s);
    else if (strcmp(argv[1], "extreme") == 0)
        synthetic_make_extreme(&s);
    else
        synthetic_make_empty(&s);
    return !print(&s.r, argv[2]);
}
