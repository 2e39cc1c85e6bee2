/*
 * JSON and Prometheus text of reports made by hand: a reader who stops, strings of all kinds, what becomes series and
 * what does not. That every number is right is the work of tests/reports.
 */
#include "kit/inside.h"

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
    REQUIRE(n != 0);
    REQUIRE_EQ(r->refusals, 0); /* never called again */
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
    REQUIRE(form(r, take, &reader));
    return first_text;
}

static Synthetic s; /* too large for some stacks */

static void stop_at(Form form, size_t most, size_t whole) {
    Reader reader = {.text = second_text, .most = most};
    REQUIRE_EQ(form(&s.r, take, &reader), most >= whole);
    REQUIRE_EQ(reader.refusals, most < whole);
    REQUIRE(memcmp(second_text, first_text, reader.n) == 0);
}

/* At every byte of a small report, and near the edges of every piece of a large one. */
static void a_reader_may_stop_anywhere(void) {
    for (unsigned n = 0; n < 4; n++) {
        Form form = forms[n % 2];
        Reader whole = {.text = first_text, .most = ROOM - 1};
        if (n < 2)
            synthetic_make_empty(&s);
        else
            synthetic_make(&s);
        REQUIRE(form(&s.r, take, &whole));
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
    REQUIRE(n <= sizeof(TsiOut));
    return ++*calls < 3;
}

static void pieces_are_small_and_stop_at_the_third(void) {
    synthetic_make_extreme(&s);
    for (unsigned f = 0; f < 2; f++) {
        size_t calls = 0;
        REQUIRE(!(forms[f](&s.r, take_one, &calls)));
        REQUIRE_EQ(calls, 3);
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
    REQUIRE(tsi_out_end(&o));
    return n == 0 && !json ? "" : second_text;
}
#define JSON(bytes) string_of(bytes, sizeof(bytes), true, NULL)
#define BAD "\xef\xbf\xbd"

static void strings_of_json(void) {
    REQUIRE_STR(JSON(""), "\"\"");
    REQUIRE_STR(JSON("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
    REQUIRE_STR(JSON("\b\t\n\f\r"), "\"\\b\\t\\n\\f\\r\"");
    REQUIRE_STR(JSON("\x01\x0b\x1f\x7f"), "\"\\u0001\\u000b\\u001f\x7f\"");
    REQUIRE_STR(JSON("\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf"),
                "\"\xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf\"");
    REQUIRE_STR(JSON("\x80"), "\"" BAD "\"");
    REQUIRE_STR(JSON("\xc0\xaf"), "\"" BAD BAD "\"");         /* overlong */
    REQUIRE_STR(JSON("\xe0\x9f\xbf"), "\"" BAD BAD BAD "\""); /* overlong */
    REQUIRE_STR(JSON("\xed\xa0\x80"), "\"" BAD BAD BAD "\""); /* a surrogate */
    REQUIRE_STR(JSON("\xf0\x8f\xbf\xbf"), "\"" BAD BAD BAD BAD "\"");
    REQUIRE_STR(JSON("\xf4\x90\x80\x80"), "\"" BAD BAD BAD BAD "\"");
    REQUIRE_STR(JSON("\xf5\xff\xfe"), "\"" BAD BAD BAD "\"");
    REQUIRE_STR(JSON("\xe2\x82"), "\"" BAD BAD "\""); /* cut short */
    REQUIRE_STR(JSON("\xe2\x82g\xc3\xbc"), "\"" BAD BAD "g\xc3\xbc\"");
    static const char open_ended[3] = {'a', '"', '\xe2'};
    REQUIRE_STR(string_of(open_ended, sizeof open_ended, true, NULL), "\"a\\\"" BAD "\"");
}

static void strings_of_labels(void) {
    bool repaired = true;
    REQUIRE_STR(string_of("a\"b\\c\nd\te\x01", 32, false, &repaired), "a\\\"b\\\\c\\nd\te\x01");
    REQUIRE(!repaired);
    REQUIRE_STR(string_of("\xff", 32, false, &repaired), BAD);
    REQUIRE(repaired);
    REQUIRE_STR(string_of(BAD "x", 32, false, &repaired), BAD "x"); /* looks like a repaired one */
    REQUIRE(repaired);
    REQUIRE_STR(string_of("\xef\xbf\xbe", 32, false, &repaired), "\xef\xbf\xbe");
    REQUIRE(!repaired);
}

static void numbers(void) {
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
        REQUIRE(tsi_out_end(&o));
        REQUIRE_EQ(strncmp(second_text, seconds[i].text, strlen(seconds[i].text)), 0);
        REQUIRE(strtoull(strchr(second_text, ' '), NULL, 10) == seconds[i].ns);
    }
}

static bool has(const char* text, const char* piece) { return strstr(text, piece) != NULL; }

static void a_report_without_rows(void) {
    synthetic_make_empty(&s);
    const char* text = text_of(tsi_report_json, &s.r);
    REQUIRE(has(text, "\"classes\":[]") && has(text, "\"epochs\":[]") && has(text, "\"phases\":[]"));
    REQUIRE(has(text, "\"labels\":[]}"));
    text = text_of(tsi_report_prometheus, &s.r);
    REQUIRE(has(text, "\ntemporal_slab_net_slabs 0\n"));
    REQUIRE(!has(text, "label="));
    REQUIRE(!has(text, "_bucket"));
}

static void numbers_that_are_none(void) {
    synthetic_make_extreme(&s);
    const char* text = text_of(tsi_report_json, &s.r);
    REQUIRE(!(has(text, "nan") || has(text, "NaN") || has(text, "inf") || has(text, "Inf")));
    REQUIRE(has(text, "\"live_bytes\":18446744073709551615"));
    REQUIRE(has(text, "1.7976931348623157e308"));
    text = text_of(tsi_report_prometheus, &s.r);
    REQUIRE(
        has(text, "temporal_slab_class_alloc_cas_retries_per_attempt{class=\"0\",object_size=\"4294967295\"} NaN\n"));
    REQUIRE(has(text, "temporal_slab_uptime_seconds 18446744073.709551615\n"));
}

static unsigned count(const char* text, const char* piece) {
    unsigned n = 0;
    for (; (text = strstr(text, piece)) != NULL; text++) n++;
    return n;
}

/* Of a ring id the newest incarnation, of domains none, of phases sums. */
static void what_becomes_series(void) {
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
    REQUIRE_EQ(count(text, "\ntemporal_slab_epoch_refcount{"), 3);
    REQUIRE(has(text, "\ntemporal_slab_epoch_refcount{epoch=\"3\",state=\"CLOSING\",label=\"GET \\\"/x\\\"\"} 77\n"));
    REQUIRE_EQ(count(text, "\ntemporal_slab_phase_threads{"), 2);
    REQUIRE(has(text, "\ntemporal_slab_phase_threads{label=\"GET \\\"/x\\\"\"} 6\n"));
    REQUIRE(has(text, "\ntemporal_slab_phase_threads{label=\"(other)\"} 9\n"));
    REQUIRE(has(text, "\ntemporal_slab_phase_max_age_seconds{label=\"(other)\"} 5\n"));
    REQUIRE(has(text, "\ntemporal_slab_refusals_total{cause=\"double_free\"} "));
    REQUIRE_EQ(count(text, "# TYPE temporal_slab_refusals_total "), 1);
    REQUIRE(has(text, "\n# TYPE temporal_slab_sampled_alloc_wall_seconds histogram\n"));
    REQUIRE_EQ(count(text, "\ntemporal_slab_sampled_alloc_wall_seconds_sum "), 1);
}

/* With labels left out, the row of "(other)" lies before that of the rest, under which the phases of these count. */
static void phases_of_other_beside_the_rest(void) {
    synthetic_make(&s);
    s.labels[SYNTHETIC_LABELS - 2].label_id = 4095;
    strcpy(s.labels[SYNTHETIC_LABELS - 2].label, "(other)");
    s.r.labels_left_out = 200;
    s.r.label_ids = s.labels[SYNTHETIC_LABELS - 1].label_id = 300; /* how many labels there are */
    strcpy(s.labels[SYNTHETIC_LABELS - 1].label, TSI_REST_LABEL);
    for (unsigned i = 0; i < SYNTHETIC_PHASES; i++) {
        s.phases[i].label_id = i < 3 ? 4095 : 250; /* 250 has no row */
        s.phases[i].threads = i + 1;
    }
    const char* text = text_of(tsi_report_prometheus, &s.r);
    REQUIRE_EQ(count(text, "\ntemporal_slab_phase_threads{"), 2);
    REQUIRE(has(text, "\ntemporal_slab_phase_threads{label=\"(other)\"} 6\n"));
    REQUIRE(has(text, "\ntemporal_slab_phase_threads{label=\"(rest)\"} 9\n"));
}

/* More label ids than are summed at a time, and phases in any order. */
static void many_labels(void) {
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
    REQUIRE_EQ(count(text, "\ntemporal_slab_phase_slabs{"), LABELS);
    for (uint32_t i = 0; i < LABELS; i++) {
        char line[96];
        (void)snprintf(line, sizeof line, "\ntemporal_slab_phase_slabs{label=\"route %u\"} %u\n", i, 3 * (1000 + i));
        REQUIRE(has(text, line));
    }
}

static void bucket_tops(void) {
    for (unsigned i = 1; i < SLAB_LATENCY_BUCKETS; i++)
        REQUIRE(tsi_metric_bucket_top(SLAB_SEGMENT_LATENCY, i) > tsi_metric_bucket_top(SLAB_SEGMENT_LATENCY, i - 1));
    for (uint64_t v = 4; v < 1u << 20; v++) { /* the index as slab_stats.h has it */
        unsigned log2 = tsi_log2(v), i = 4 * log2 + (unsigned)(v >> (log2 - 2) & 3) - 4;
        REQUIRE(v <= tsi_metric_bucket_top(SLAB_SEGMENT_LATENCY, i) && v > tsi_metric_bucket_top(SLAB_SEGMENT_LATENCY, i - 1));
    }
    for (unsigned i = 0; i < SLAB_HISTOGRAM_BUCKETS; i++)
        REQUIRE(tsi_metric_bucket_top(SLAB_SEGMENT_DOUBLING, i) == (2ull << i) - 1);
}

static void allocators(void) {
    SlabAllocator inert;
    SlabAllocator* a = kit_create();
    Reader reader = {.text = first_text, .most = ROOM - 1};
    REQUIRE(slab_malloc(a, 100) != NULL);
    REQUIRE(slab_stats_json(a, take, &reader));
    REQUIRE(has(first_text, "\"classes\":[\n{") && has(first_text, "\"schema_version\":3"));
    reader = (Reader){.text = first_text, .most = ROOM - 1};
    REQUIRE(slab_stats_prometheus(a, take, &reader));
    REQUIRE(has(first_text, "\ntemporal_slab_live_objects 1\n"));
    reader = (Reader){.text = first_text, .most = 3000};
    REQUIRE(!slab_stats_json(a, take, &reader));
    memset(&inert, 0, sizeof inert);
    reader = (Reader){.text = first_text, .most = ROOM - 1};
    errno = 0;
    REQUIRE(!(slab_stats_json(NULL, take, &reader) || slab_stats_prometheus(&inert, take, &reader)));
    REQUIRE(!slab_stats_json(a, NULL, NULL));
    REQUIRE_EQ(errno, EINVAL);
    REQUIRE_EQ(reader.calls, 0);
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(a_reader_may_stop_anywhere),
        CHECK_CASE(pieces_are_small_and_stop_at_the_third),
        CHECK_CASE(strings_of_json),
        CHECK_CASE(strings_of_labels),
        CHECK_CASE(numbers),
        CHECK_CASE(a_report_without_rows),
        CHECK_CASE(numbers_that_are_none),
        CHECK_CASE(what_becomes_series),
        CHECK_CASE(phases_of_other_beside_the_rest),
        CHECK_CASE(many_labels),
        CHECK_CASE(bucket_tops),
        CHECK_CASE(allocators),
    };
    return CHECK_RUN(argc, argv, tests);
}
