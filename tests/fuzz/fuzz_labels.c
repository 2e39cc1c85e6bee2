/*
 * fuzz_labels.c - any bytes as a label: how it is cut, and what it is in each format that shows it.
 *
 * An input is the label. Always: the cut at 31 bytes, the strings of JSON of both writers, the value of a Prometheus
 * label, and tslabd's step to OpenMetrics. Second readers (text.h) must get the same characters back from each, with
 * U+FFFD for each byte that is no UTF-8. One input in 1024 also names a domain of an allocator by it, and one in 2^17 reads
 * the whole documents of that allocator.
 */
#include "fuzz/input.h"
#include "fuzz/text.h"

#include "common/json.h"
#include "daemon/openmetrics.h"
#include "epoch_domain.h"
#include "phase/label.h"
#include "slab_diagnostics.h"
#include "slab_stats.h"
#include "stats/out.h"

enum { LABELS = 64, PHASES_OF_ONE = 4096 };

static Text made, read_back, wanted;

static void clear(Text* t) { t->size = 0; }

/* ---- the cut ---- */

static void check_copy(const char* label, char copy[TSI_LABEL_BYTES]) {
    size_t whole = strlen(label), n;
    tsi_label_copy(copy, label);
    REQUIRE_OR(copy[TSI_LABEL_BYTES - 1] == 0, "a label of %zu bytes has no end", whole);
    n = strlen(copy);
    for (size_t i = n; i < TSI_LABEL_BYTES; i++)
        REQUIRE_OR(copy[i] == 0, "byte %zu behind the label is %d", i, copy[i]);
    REQUIRE_OR(memcmp(copy, label, n) == 0, "the label is another");
    if (whole < TSI_LABEL_BYTES) {
        REQUIRE_OR(n == whole, "a label of %zu bytes is cut to %zu", whole, n);
        return;
    }
    size_t at = 0; /* characters that fit, each whole */
    for (size_t length; at < whole; at += length) {
        (void)rune_at((const unsigned char*)label + at, whole - at, &length);
        if (at + length >= TSI_LABEL_BYTES) break;
    }
    clear(&wanted);
    if (!text_of_bytes(&wanted, label, whole)) REQUIRE_OR(n == at, "cut to %zu bytes, %zu characters fit", n, at);
}

/* ---- the formats ---- */

static void check_json(const char* s, size_t most) {
    TsiOut out;
    clear(&made), clear(&read_back), clear(&wanted);
    (void)text_of_bytes(&wanted, s, strnlen(s, most));
    tsi_out_begin(&out, to_text, &made);
    tsi_out_json_string(&out, s, most);
    REQUIRE_OR(tsi_out_end(&out), "the text was refused");
    Json j = {made.bytes, made.bytes + made.size, 0};
    json_string(&j, &read_back);
    REQUIRE_OR(j.at == j.end && same_text(&read_back, &wanted), "JSON has another text: %.*s", (int)made.size,
               made.bytes);
}

static void check_json_of_programs(const char* s) {
    struct json out = {.write = to_text, .ctx = &made, .tight = true};
    clear(&made), clear(&read_back), clear(&wanted);
    (void)text_of_bytes(&wanted, s, strlen(s));
    json_array(&out, NULL);
    json_text(&out, NULL, s);
    json_close(&out);
    Json j = {made.bytes, made.bytes + made.size, 0};
    json_word(&j, "[");
    json_blank(&j);
    json_string(&j, &read_back);
    REQUIRE_OR(same_text(&read_back, &wanted), "JSON of programs has another text: %.*s", (int)made.size, made.bytes);
    json_document(made.bytes, made.size);
}

static void check_prometheus(const char* s, size_t most) {
    static const char head[] = "x_bucket{label=\"", tail[] = "\",le=\"1\"} 3\n",
                      open_tail[] = ",le=\"1.0\"} 3\n# EOF\n";
    static Text page;
    TsiOut out;
    clear(&page), clear(&wanted), clear(&read_back);
    bool lossy = text_of_bytes(&wanted, s, strnlen(s, most));
    tsi_out_begin(&out, to_text, &page);
    tsi_out_text(&out, head);
    REQUIRE_OR(tsi_out_label_value(&out, s, most) == lossy, "U+FFFD in a label, told: %d", !lossy);
    tsi_out_text(&out, tail);
    REQUIRE_OR(tsi_out_end(&out), "the text was refused");
    prometheus_page(page.bytes, page.size);
    (void)label_value(page.bytes + sizeof head - 1, page.bytes + page.size, &read_back);
    REQUIRE_OR(same_text(&read_back, &wanted), "a label's value is another: %.*s", (int)page.size, page.bytes);

    /* Memory of exactly its size, so that a read beyond it is seen. */
    struct text in = {.bytes = malloc(page.size), .size = page.size}, open = {.limit = 1 << 20};
    REQUIRE_OR(in.bytes != NULL, "no memory");
    memcpy(in.bytes, page.bytes, page.size);
    openmetrics_write(&in, &open);
    size_t value = page.size - sizeof tail + 2; /* up to and with the quote behind it */
    REQUIRE_OR(!open.failed && open.size == value + sizeof open_tail - 1 &&
                   memcmp(open.bytes, page.bytes, value) == 0 &&
                   memcmp(open.bytes + value, open_tail, sizeof open_tail - 1) == 0,
               "OpenMetrics has another line: %.*s", (int)open.size, open.bytes);
    free(in.bytes);
    free(open.bytes);
}

/* ---- the registry ---- */

static SlabAllocator* allocator(void) {
    static SlabAllocator* a;
    static unsigned uses;
    if (a != NULL && ++uses % PHASES_OF_ONE != 0) return a;
    slab_allocator_free(a);
    SlabOptions o = {.struct_size = sizeof o, .max_labels = LABELS, .reserve_bytes = 64 << 20};
    a = slab_allocator_create_with(&o);
    REQUIRE_OR(a != NULL, "no allocator: %s", slab_last_error());
    return a;
}

static void check_domain(const char* label, const char* copy) {
    static SlabLabelStats rows[LABELS];
    SlabAllocator* a = allocator();
    epoch_domain_t* d = epoch_domain_begin(a, label);
    REQUIRE_OR(d != NULL && slab_malloc(a, 40) != NULL, "no domain for a label");
    size_t n = slab_stats_labels(a, rows, LABELS), found = 0, other = 0;
    for (size_t i = 0; i < n && i < LABELS; i++) {
        found += strcmp(rows[i].label, copy) == 0 && rows[i].live_objects != 0;
        other += strcmp(rows[i].label, "(other)") == 0 && rows[i].live_objects != 0;
    }
    if (copy[0] == 0) found = 1; /* "(unlabeled)" */
    REQUIRE_OR(found + other == 1 || (found == 1 && other == 1 && strcmp(copy, "(other)") == 0),
               "an object of the label is in %zu rows and %zu of the others", found, other);
    REQUIRE_OR(epoch_domain_end(d), "the domain does not end");
}

static bool to_large(void* ctx, const char* bytes, size_t n) {
    struct text* t = ctx;
    return text_write(t, bytes, n);
}

static void check_documents(const char* label) {
    struct text t = {.limit = 64 << 20};
    SlabAllocator* a = allocator();
    epoch_domain_t* d = epoch_domain_begin(a, label);
    REQUIRE_OR(d != NULL && slab_malloc(a, 40) != NULL, "no domain for a label");
    REQUIRE_OR(slab_stats_json(a, to_large, &t), "no JSON");
    json_document(t.bytes, t.size);
    t.size = 0;
    REQUIRE_OR(slab_stats_prometheus(a, to_large, &t), "no page");
    prometheus_page(t.bytes, t.size);
    t.size = 0;
    REQUIRE_OR(slab_doctor(a, to_large, &t), "no report");
    text_is_utf8(t.bytes, t.size);
    free(t.bytes);
    REQUIRE_OR(epoch_domain_end(d), "the domain does not end");
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Input in = {data, size};
    char copy[TSI_LABEL_BYTES];
    if (in.left > 4096) return 0;
    char* label = malloc(in.left + 1);
    REQUIRE_OR(label != NULL, "no memory");
    label[in.left] = 0;
    take_bytes(&in, label, in.left);
    check_copy(label, copy);
    check_json(copy, sizeof copy);
    check_json(label, strlen(label));
    check_json_of_programs(label);
    check_prometheus(copy, sizeof copy);
    check_prometheus(label, strlen(label));
    if (one_in(1024, data, size)) check_domain(label, copy);
    if (one_in(1 << 17, data, size)) check_documents(label);
    free(label);
    return 0;
}
