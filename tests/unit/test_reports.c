/*
 * JSON and Prometheus text of reports made by hand: a reader who stops, strings of all kinds, what becomes series and
 * what does not. That every number is right is the work of tests/reports.
 */
#include "unit.h"

#include "reports/synthetic.h"
#include "stats/out.h"

typedef bool (*Form)(const TsiReport*, TsiWriteFn, void*);
static const Form forms[] = {tsi_report_json, tsi_report_prometheus};

/* Takes `most` bytes and then says no. */
typedef struct Reader {
    char* text;
    size_t n, most;
    unsigned calls, refusals;
} Reader;

enum { ROOM = 4 << 20 };

static bool take(void* ctx, const char* bytes, size_t n) {
    Reader* r = ctx;
    assert_true(n != 0);
    assert_int_equal(r->refusals, 0); /* never called again */
    r->calls++;
    if (r->n + n > r->most) {
        r->refusals++;
        return false;
    }
    memcpy(r->text + r->n, bytes, n);
    r->n += n;
    r->text[r->n] = 0;
    return true;
}

static char first_text[ROOM], second_text[ROOM];

static const char* text_of(Form form, const TsiReport* r) {
    Reader reader = {.text = first_text, .most = ROOM - 1};
    assert_true(form(r, take, &reader));
    return first_text;
}

static Synthetic s; /* too large for some stacks */

static void stop_at(Form form, size_t most, size_t whole) {
    Reader reader = {.text = second_text, .most = most};
    assert_int_equal(form(&s.r, take, &reader), most >= whole);
    assert_int_equal(reader.refusals, most < whole);
    assert_memory_equal(second_text, first_text, reader.n);
}

/* At every byte of a small report, and near the edges of every piece of a large one. */
static void a_reader_may_stop_anywhere(void** state) {
    (void)state;
    for (unsigned n = 0; n < 4; n++) {
        Form form = forms[n % 2];
        Reader whole = {.text = first_text, .most = ROOM - 1};
        if (n < 2)
            synthetic_make_empty(&s);
        else
            synthetic_make(&s);
        assert_true(form(&s.r, take, &whole));
        for (size_t most = 0; most <= whole.n + 1; most++) {
            size_t in_piece = most % sizeof((TsiOut*)0)->bytes;
            if (n < 2 || in_piece < 2 || in_piece == sizeof((TsiOut*)0)->bytes - 1 || most + 2 >= whole.n)
                stop_at(form, most, whole.n);
        }
    }
}

static bool take_one(void* ctx, const char* bytes, size_t n) {
    size_t* calls = ctx;
    (void)bytes;
    assert_true(n <= sizeof(TsiOut));
    return ++*calls < 3;
}

static void pieces_are_small_and_stop_at_the_third(void** state) {
    (void)state;
    synthetic_make_extreme(&s);
    for (unsigned f = 0; f < 2; f++) {
        size_t calls = 0;
        assert_false(forms[f](&s.r, take_one, &calls));
        assert_int_equal(calls, 3);
    }
}

static const char* string_of(const char* bytes, size_t n, bool json, bool* repaired) {
    Reader reader = {.text = second_text, .most = ROOM - 1};
    TsiOut o;
    tsi_out_begin(&o, take, &reader);
    if (json)
        tsi_out_json_string(&o, bytes, n);
    else
        *repaired = tsi_out_label_value(&o, bytes, n);
    assert_true(tsi_out_end(&o));
    return n == 0 && !json ? "" : second_text;
}
#define JSON(bytes) string_of(bytes, sizeof(bytes), true, NULL)
#define BAD "\xef\xbf\xbd"

static void strings_of_json(void** state) {
    (void)state;
    assert_string_equal(JSON(""), "\"\"");
    assert_string_equal(JSON("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
    assert_string_equal(JSON("\b\t\n\f\r"), "\"\\b\\t\\n\\f\\r\"");
    assert_string_equal(JSON("\x01\x0b\x1f\x7f"), "\"\\u0001\\u000b\\u001f\x7f\"");
    assert_string_equal(JSON("\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf"),
                        "\"\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf\"");
    assert_string_equal(JSON("\x80"), "\"" BAD "\"");
    assert_string_equal(JSON("\xc0\xaf"), "\"" BAD BAD "\"");         /* overlong */
    assert_string_equal(JSON("\xe0\x9f\xbf"), "\"" BAD BAD BAD "\""); /* overlong */
    assert_string_equal(JSON("\xed\xa0\x80"), "\"" BAD BAD BAD "\""); /* a surrogate */
    assert_string_equal(JSON("\xf0\x8f\xbf\xbf"), "\"" BAD BAD BAD BAD "\"");
    assert_string_equal(JSON("\xf4\x90\x80\x80"), "\"" BAD BAD BAD BAD "\"");
    assert_string_equal(JSON("\xf5\xff\xfe"), "\"" BAD BAD BAD "\"");
    assert_string_equal(JSON("\xe2\x82"), "\"" BAD BAD "\""); /* cut short */
    assert_string_equal(JSON("\xe2\x82g\xc3\xbc"), "\"" BAD BAD "g\xc3\xbc\"");
    static const char open_ended[3] = {'a', '"', '\xe2'};
    assert_string_equal(string_of(open_ended, sizeof open_ended, true, NULL), "\"a\\\"" BAD "\"");
}

static void strings_of_labels(void** state) {
    (void)state;
    bool repaired = true;
    assert_string_equal(string_of("a\"b\\c\nd\te\x01", 32, false, &repaired), "a\\\"b\\\\c\\nd\te\x01");
    assert_false(repaired);
    assert_string_equal(string_of("\xff", 32, false, &repaired), BAD);
    assert_true(repaired);
    assert_string_equal(string_of(BAD "x", 32, false, &repaired), BAD "x"); /* looks like a repaired one */
    assert_true(repaired);
    assert_string_equal(string_of("\xef\xbf\xbe", 32, false, &repaired), "\xef\xbf\xbe");
    assert_false(repaired);
}

static void numbers(void** state) {
    (void)state;
    static const struct {
        uint64_t ns;
        const char* text;
    } seconds[] = {{0, "0"},
                   {1, "0.000000001"},
                   {1000000000, "1"},
                   {1500000000, "1.5"},
                   {10000000010u, "10.00000001"},
                   {UINT64_MAX, "18446744073.709551615"}};
    for (unsigned i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        Reader reader = {.text = second_text, .most = ROOM - 1};
        TsiOut o;
        tsi_out_begin(&o, take, &reader);
        tsi_out_seconds(&o, seconds[i].ns);
        tsi_out_char(&o, ' ');
        tsi_out_u64(&o, seconds[i].ns);
        assert_true(tsi_out_end(&o));
        assert_int_equal(strncmp(second_text, seconds[i].text, strlen(seconds[i].text)), 0);
        assert_true(strtoull(strchr(second_text, ' '), NULL, 10) == seconds[i].ns);
    }
}

static bool has(const char* text, const char* piece) { return strstr(text, piece) != NULL; }

static void a_report_without_rows(void** state) {
    (void)state;
    synthetic_make_empty(&s);
    const char* text = text_of(tsi_report_json, &s.r);
    assert_true(has(text, "\"classes\":[]") && has(text, "\"epochs\":[]") && has(text, "\"phases\":[]"));
    assert_true(has(text, "\"labels\":[]}"));
    text = text_of(tsi_report_prometheus, &s.r);
    assert_true(has(text, "\ntemporal_slab_net_slabs 0\n"));
    assert_false(has(text, "label="));
    assert_false(has(text, "_bucket"));
}

static void numbers_that_are_none(void** state) {
    (void)state;
    synthetic_make_extreme(&s);
    const char* text = text_of(tsi_report_json, &s.r);
    assert_false(has(text, "nan") || has(text, "NaN") || has(text, "inf") || has(text, "Inf"));
    assert_true(has(text, "\"live_bytes\":18446744073709551615"));
    assert_true(has(text, "1.7976931348623157e308"));
    text = text_of(tsi_report_prometheus, &s.r);
    assert_true(
        has(text, "temporal_slab_class_alloc_cas_retries_per_attempt{class=\"0\",object_size=\"4294967295\"} NaN\n"));
    assert_true(has(text, "temporal_slab_uptime_seconds 18446744073.709551615\n"));
}

static unsigned count(const char* text, const char* piece) {
    unsigned n = 0;
    for (; (text = strstr(text, piece)) != NULL; text++) n++;
    return n;
}

/* Of a ring id the newest incarnation, of domains none, of phases sums. */
static void what_becomes_series(void** state) {
    (void)state;
    synthetic_make(&s);
    s.epochs[0].epoch_era = UINT64_MAX; /* id 3, newer than the row behind it */
    s.epochs[0].state = EPOCH_CLOSING;
    s.epochs[0].refcount = 77;
    s.epochs[0].label_id = 1;
    for (unsigned i = 0; i < SYNTHETIC_PHASES; i++) {
        s.phases[i].label_id = i < 3 ? 1 : 1000; /* an id that no label has counts under the last */
        s.phases[i].threads = i + 1;
        s.phases[i].age_ns = 1000000000ull * (i + 1);
    }
    s.labels[SYNTHETIC_LABELS - 1].label_id = 999;
    strcpy(s.labels[SYNTHETIC_LABELS - 1].label, "(other)");
    const char* text = text_of(tsi_report_prometheus, &s.r);
    assert_int_equal(count(text, "\ntemporal_slab_epoch_refcount{"), 3);
    assert_true(
        has(text, "\ntemporal_slab_epoch_refcount{epoch=\"3\",state=\"CLOSING\",label=\"GET \\\"/x\\\"\"} 77\n"));
    assert_int_equal(count(text, "\ntemporal_slab_phase_threads{"), 2);
    assert_true(has(text, "\ntemporal_slab_phase_threads{label=\"GET \\\"/x\\\"\"} 6\n"));
    assert_true(has(text, "\ntemporal_slab_phase_threads{label=\"(other)\"} 9\n"));
    assert_true(has(text, "\ntemporal_slab_phase_max_age_seconds{label=\"(other)\"} 5\n"));
    assert_true(has(text, "\ntemporal_slab_refusals_total{cause=\"double_free\"} "));
    assert_int_equal(count(text, "# TYPE temporal_slab_refusals_total "), 1);
    assert_true(has(text, "\n# TYPE temporal_slab_sampled_alloc_wall_seconds histogram\n"));
    assert_int_equal(count(text, "\ntemporal_slab_sampled_alloc_wall_seconds_sum "), 1);
}

/* More label ids than are summed at a time, and phases in any order. */
static void many_labels(void** state) {
    (void)state;
    enum { LABELS = 600, PHASES = 3 * LABELS };
    static SlabLabelStats labels[LABELS];
    static SlabPhaseStats phases[PHASES];
    synthetic_make_empty(&s);
    memset(labels, 0, sizeof labels);
    memset(phases, 0, sizeof phases);
    for (uint32_t i = 0; i < LABELS; i++) {
        labels[i].label_id = i;
        (void)snprintf(labels[i].label, sizeof labels[i].label, "route %u", i);
    }
    for (uint32_t i = 0; i < PHASES; i++) {
        phases[i].label_id = i * 7 % LABELS;
        phases[i].slabs = 1000 + i * 7 % LABELS;
    }
    s.r.labels = labels;
    s.r.label_count = LABELS;
    s.r.phases = phases;
    s.r.phase_count = PHASES;
    const char* text = text_of(tsi_report_prometheus, &s.r);
    assert_int_equal(count(text, "\ntemporal_slab_phase_slabs{"), LABELS);
    for (uint32_t i = 0; i < LABELS; i++) {
        char line[96];
        (void)snprintf(line, sizeof line, "\ntemporal_slab_phase_slabs{label=\"route %u\"} %u\n", i, 3 * (1000 + i));
        assert_true(has(text, line));
    }
}

static void bucket_tops(void** state) {
    (void)state;
    for (unsigned i = 1; i < SLAB_LATENCY_BUCKETS; i++)
        assert_true(tsi_metric_bucket_top(TSI_TYPE_LATENCY, i) > tsi_metric_bucket_top(TSI_TYPE_LATENCY, i - 1));
    for (uint64_t v = 4; v < 1u << 20; v++) { /* the index as slab_stats.h has it */
        unsigned log2 = tsi_log2(v), i = 4 * log2 + (unsigned)(v >> (log2 - 2) & 3) - 4;
        assert_true(v <= tsi_metric_bucket_top(TSI_TYPE_LATENCY, i) &&
                    v > tsi_metric_bucket_top(TSI_TYPE_LATENCY, i - 1));
    }
    for (unsigned i = 0; i < SLAB_HISTOGRAM_BUCKETS; i++)
        assert_true(tsi_metric_bucket_top(TSI_TYPE_DOUBLING, i) == (2ull << i) - 1);
}

static void allocators(void** state) {
    (void)state;
    SlabAllocator inert;
    SlabAllocator* a = unit_create();
    Reader reader = {.text = first_text, .most = ROOM - 1};
    assert_non_null(slab_malloc(a, 100));
    assert_true(slab_stats_json(a, take, &reader));
    assert_true(has(first_text, "\"classes\":[\n{") && has(first_text, "\"schema_version\":3"));
    reader = (Reader){.text = first_text, .most = ROOM - 1};
    assert_true(slab_stats_prometheus(a, take, &reader));
    assert_true(has(first_text, "\ntemporal_slab_live_objects 1\n"));
    reader = (Reader){.text = first_text, .most = 3000};
    assert_false(slab_stats_json(a, take, &reader));
    memset(&inert, 0, sizeof inert);
    reader = (Reader){.text = first_text, .most = ROOM - 1};
    errno = 0;
    assert_false(slab_stats_json(NULL, take, &reader) || slab_stats_prometheus(&inert, take, &reader));
    assert_false(slab_stats_json(a, NULL, NULL));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(reader.calls, 0);
    slab_allocator_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_may_stop_anywhere),
        cmocka_unit_test(pieces_are_small_and_stop_at_the_third),
        cmocka_unit_test(strings_of_json),
        cmocka_unit_test(strings_of_labels),
        cmocka_unit_test(numbers),
        cmocka_unit_test(a_report_without_rows),
        cmocka_unit_test(numbers_that_are_none),
        cmocka_unit_test(what_becomes_series),
        cmocka_unit_test(many_labels),
        cmocka_unit_test(bucket_tops),
        cmocka_unit_test(allocators),
    };
    return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}
