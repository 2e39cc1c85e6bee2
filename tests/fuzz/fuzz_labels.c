/*
 * fuzz_labels.c - any bytes as a label: how it is cut, and what it is in each format that shows it.
 *
 * An input is the label; if its first byte is 0xff, each further byte is a character of one to four bytes, so that long
 * labels of good UTF-8 are common. Always: the cut at 31 bytes, the strings of JSON of both writers, the value of a Prometheus
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

/* A bound of a bucket, and the same in OpenMetrics, which wants floats. */
static const char* const bounds[][2] = {{"1", "1.0"},       {"0.001", "0.001"},         {"1e-09", "1e-09"},
                                        {"4096", "4096.0"}, {"+Inf", "+Inf"},           {"1e+20", "1e+20"},
                                        {"0.5", "0.5"},     {"123456.75", "123456.75"}, {"0.25", "0.25"}};

/* Memory of exactly its size, so that a read beyond it is seen. */
static void check_openmetrics(const Text* page, const char* value_end, const char* bound) {
    struct text in = {.bytes = malloc(page->size), .size = page->size}, open = {.limit = 1 << 20};
    char tail[64];
    size_t value = (size_t)(value_end - page->bytes),
           n = (size_t)snprintf(tail, sizeof tail, ",le=\"%s\"} 3\n# EOF\n", bound);
    REQUIRE_OR(in.bytes != NULL, "no memory");
    memcpy(in.bytes, page->bytes, page->size);
    openmetrics_write(&in, &open);
    REQUIRE_OR(!open.failed && open.size == value + n && memcmp(open.bytes, page->bytes, value) == 0 &&
                   memcmp(open.bytes + value, tail, n) == 0,
               "OpenMetrics has another line: %.*s", (int)open.size, open.bytes);
    free(in.bytes);
    free(open.bytes);
}

static void check_prometheus(const char* s, size_t most, unsigned bound) {
    static const char head[] = "x_bucket{label=\"";
    static Text page;
    TsiOut out;
    clear(&page), clear(&wanted), clear(&read_back);
    bool lossy = text_of_bytes(&wanted, s, strnlen(s, most));
    tsi_out_begin(&out, to_text, &page);
    tsi_out_text(&out, head);
    REQUIRE_OR(tsi_out_label_value(&out, s, most) == lossy, "U+FFFD in a label, told: %d", !lossy);
    tsi_out_text(&out, "\",le=\"");
    tsi_out_text(&out, bounds[bound][0]);
    tsi_out_text(&out, "\"} 3\n");
    REQUIRE_OR(tsi_out_end(&out), "the text was refused");
    prometheus_page(page.bytes, page.size);
    const char* end = label_value(page.bytes + sizeof head - 1, page.bytes + page.size, &read_back);
    REQUIRE_OR(same_text(&read_back, &wanted), "a label's value is another: %.*s", (int)page.size, page.bytes);
    check_openmetrics(&page, end, bounds[bound][1]);
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

/* The label of an input, in memory of exactly its size. */
static char* label_of(const uint8_t* data, size_t size) {
    static const uint32_t runes[] = {'a',   'Z',   ' ',    '"',    '\\',   '\n',    0x7f,    0xa0,    0xe9,
                                     0x7ff, 0x800, 0x20ac, 0xfffd, 0xffff, 0x10000, 0x1f600, 0x10ffff};
    static Text text;
    bool characters = size != 0 && data[0] == 0xff;
    clear(&text);
    for (size_t i = characters; i < size; i++) {
        if (characters) text_rune(&text, runes[data[i] % (sizeof runes / sizeof *runes)]);
        else text_byte(&text, data[i]);
    }
    char* label = malloc(text.size + 1);
    REQUIRE_OR(label != NULL, "no memory");
    memcpy(label, text.bytes, text.size);
    label[text.size] = 0;
    return label;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    char copy[TSI_LABEL_BYTES];
    if (size > 4096) return 0;
    unsigned bound = size != 0 ? data[size - 1] % (sizeof bounds / sizeof *bounds) : 0;
    char* label = label_of(data, size);
    check_copy(label, copy);
    check_json(copy, sizeof copy);
    check_json(label, strlen(label));
    check_json_of_programs(label);
    check_prometheus(copy, sizeof copy, bound);
    check_prometheus(label, strlen(label), bound);
    if (one_in(1024, data, size)) check_domain(label, copy);
    if (one_in(1 << 17, data, size)) check_documents(label);
    free(label);
    return 0;
}
