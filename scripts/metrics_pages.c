/*
 * metrics_pages.c - prints what is generated from src/stats/metrics.def: `page` docs/metrics.md, `schema`
 * share/stats.schema.json, `table` the lines themselves with tabs between their parts, for readers that are not C.
 * Built and run by scripts/metrics.sh.
 */
#include "stats/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Section {
    const char *name, *row, *key, *form, *title, *labels, *about;
} Section;
typedef struct Line {
    const char *section, *field /* NULL: derived */, *key, *type, *kind, *unit, *family, *help, *question;
    bool json_only;
    unsigned entries; /* of an array */
} Line;

#define SECTION(section, Row, key, form, title, labels, about) {#section, #Row, key, #form, title, labels, about},
static const Section sections[] = {
#include "stats/metrics.def"
};

#define JSON_ONLY ""
#define METRIC(section, field, ...) RENAMED(section, field, #field, __VA_ARGS__)
#define RENAMED(section, field, key, type, kind, unit, family, help, question) \
    {#section, #field, key, #type, #kind, #unit, family, help, question, sizeof(family) == 1, \
     sizeof ((TsiRow_##section*)0)->field / sizeof(uint64_t)},
#define DERIVED(section, key, type, kind, unit, family, help, question) \
    {#section, NULL, #key, #type, #kind, #unit, family, help, question, sizeof(family) == 1, 0},
static const Line lines[] = {
#include "stats/metrics.def"
};

enum { SECTIONS = sizeof sections / sizeof sections[0], LINES = sizeof lines / sizeof lines[0] };

static bool is(const char* a, const char* b) { return strcmp(a, b) == 0; }

/* ---- the page ---- */

static const char page_head[] =
    "# Metrics\n"
    "\n"
    "Written by `scripts/metrics.sh` from `src/stats/metrics.def`; do not edit.\n"
    "\n"
    "This page explains every number that the library reports. `slab_stats_json` writes one document with\n"
    "all of them (schema: `share/temporal-slab/stats.schema.json`), and `slab_stats_prometheus` writes\n"
    "the Prometheus text format. [monitoring.md](monitoring.md) explains how to set up Prometheus.\n"
    "\n"
    "In the tables:\n"
    "\n"
    "- **Key** is the member of the JSON document. If the C field has another name, that name follows in\n"
    "  brackets. *Computed* keys have no C field.\n"
    "- **Prometheus** is the name of the series, without the prefix `" TSI_METRIC_PREFIX "`. A dash means that\n"
    "  the number has no series: it identifies its row, or has a series under another name.\n"
    "- **Kind** is one of these:\n"
    "  - A *counter* only grows while the allocator exists.\n"
    "  - A *gauge* rises and falls.\n"
    "  - A *peak* is a gauge; where several rows share a series, the series shows the largest.\n"
    "  - A *histogram* counts values in buckets, and a *sum* is the total of those values.\n"
    "  - An *info* is a text, shown as the label of a series that is always 1.\n"
    "  - An *identity* identifies its row.\n"
    "  - A *copy* repeats another number, or is computed from others.\n"
    "- **Unit** is the unit in the JSON document. Prometheus has seconds instead of nanoseconds, and\n"
    "  ratios instead of percentages.\n"
    "\n"
    "Terms that recur in the tables (all others are in the glossary of\n"
    "[src/README.md](../src/README.md)):\n"
    "\n"
    "- **Epoch**, **phase**: An epoch is the memory of one phase of the program, and ends with that\n"
    "  phase. An ended epoch is *drained* if objects that are still live stay valid (they *escape*), or\n"
    "  *released* if all are freed in bulk.\n"
    "- **Incarnation**, **era**, **ring**: Epoch ids are reused in turn, like places in a ring. One use\n"
    "  of an id is an incarnation, and its number, the era, is never reused.\n"
    "- **Slab**, **line**, **slot**: A slab is a run of pages for objects of one size class. A slot is\n"
    "  the room for one object. A line is a group of up to 64 slots of a slab.\n"
    "- **Warm** pages belong to no epoch and are kept for later phases, within a *warm budget*.\n"
    "- **Bank**: In shared mode (option `shared`), threads take turns allocating from slabs that belong\n"
    "  to a bank, which has a lock.\n"
    "\n"
    "Rules for values:\n"
    "\n"
    "- Integers are exact to 64 bits in both formats. A ratio whose denominator is 0 is shown as 0.\n"
    "- If a histogram has a line for its sum, the sum is exact. Otherwise each value counts as the middle\n"
    "  of its bucket.\n"
    "- Once a process has a second allocator, the series that `tslab` reads carry the label `allocator`.\n"
    "  Its value is the number that `tslab ls` shows.\n"
    "- Bytes of a label that are not UTF-8 are replaced by U+FFFD. In Prometheus, such a label is\n"
    "  followed by its id (` #7`), so that no two series have the same name.\n";

static void put_lower(const char* word) {
    for (; *word != 0; word++) putchar(*word >= 'A' && *word <= 'Z' ? *word + 32 : *word);
}

static void page_line(const Line* l) {
    printf("| `%s`", l->key);
    if (l->field == NULL) printf(" (computed)");
    else if (!is(l->field, l->key)) printf(" (`%s`)", l->field);
    if (l->json_only) printf(" | - | ");
    else printf(" | `%s` | ", l->family);
    put_lower(l->unit);
    printf(" | ");
    put_lower(l->kind);
    printf(" | %s | %s |\n", l->help, l->question);
}

static void print_page(void) {
    fputs(page_head, stdout);
    for (unsigned s = 0; s < SECTIONS; s++) {
        const Section* section = &sections[s];
        printf("\n## %s\n\n%s\n\n", section->title, section->about);
        if (is(section->form, "TOP")) printf("The document has these members.");
        else printf("%s `%s` has these members.", is(section->form, "ARRAY") ? "Each row of the list" : "The object", section->key);
        if (section->labels[0] != 0) printf(" Series carry the labels `%s`.", section->labels);
        printf("\n\n| key | Prometheus | unit | kind | meaning | question |\n|---|---|---|---|---|---|\n");
        for (unsigned i = 0; i < LINES; i++)
            if (is(lines[i].section, section->name)) page_line(&lines[i]);
    }
}

/* ---- the schema ---- */

static void put_quoted(const char* text) {
    putchar('"');
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

static void put_indent(int depth) {
    printf("\n%*s", 2 * depth, "");
}

static const char* unit_words(const char* unit) {
    static const char* const words[][2] = {
        {"BYTES", " In bytes."}, {"NS", " In nanoseconds."}, {"SECONDS", " In seconds."}};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        if (is(words[i][0], unit)) return words[i][1];
    return "";
}

#define COUNT_SCHEMA "\"type\": \"integer\", \"minimum\": 0, \"maximum\": 18446744073709551615"

static void put_type(const Line* l) {
    if (l->field != NULL && is(l->key, "schema_version")) printf("\"const\": %d", SLAB_STATS_VERSION);
    else if (l->field != NULL && is(l->key, "version")) printf("\"enum\": [0, %d]", SLAB_STATS_VERSION);
    else if (is(l->type, "U32")) printf("\"type\": \"integer\", \"minimum\": 0, \"maximum\": 4294967295");
    else if (is(l->type, "U64")) printf(COUNT_SCHEMA);
    else if (is(l->type, "F64")) printf("\"type\": \"number\"%s", is(l->unit, "MIB") ? "" : ", \"minimum\": 0");
    else if (is(l->type, "FLAG")) printf("\"type\": \"boolean\"");
    else if (is(l->type, "STATE")) printf("\"enum\": [\"ACTIVE\", \"CLOSING\"]");
    else if (l->field == NULL) printf("\"type\": \"string\", \"pattern\": \"^[0-9]+\\\\.[0-9]+\\\\.[0-9]+$\"");
    else if (is(l->type, "STRING")) printf("\"type\": \"string\", \"maxLength\": 31");
    else {
        printf("\"type\": \"array\", \"minItems\": %u, \"maxItems\": %u, ", l->entries, l->entries);
        printf("\"items\": {" COUNT_SCHEMA "}");
    }
}

static void put_property(bool* comma, int depth, const char* key) {
    if (*comma) putchar(',');
    *comma = true;
    put_indent(depth);
    put_quoted(key);
    printf(": {");
}

static void put_description(const char* text, const char* more) {
    char whole[1024];
    (void)snprintf(whole, sizeof whole, "%s%s", text, more);
    printf("\"description\": ");
    put_quoted(whole);
}

static void put_contention(bool* comma, int depth) {
    static const char suffix[] = "_by_label";
    bool inner = false;
    put_property(comma, depth, "contention_by_label");
    put_description("The arrays by label, as objects that map each label id to its count; zeros are omitted.", "");
    printf(", \"type\": \"object\", \"additionalProperties\": false,");
    put_indent(depth + 1);
    printf("\"properties\": {");
    for (unsigned i = 0; i < LINES; i++) {
        char key[64];
        if (!is(lines[i].type, "BY_LABEL")) continue;
        (void)snprintf(key, sizeof key, "%.*s", (int)(strlen(lines[i].key) - strlen(suffix)), lines[i].key);
        put_property(&inner, depth + 2, key);
        put_description(lines[i].help, "");
        printf(", \"type\": \"object\", \"additionalProperties\": false, \"patternProperties\": {"
               "\"^([0-9]|1[0-5])$\": {\"description\": \"Count of the label with this id.\", \"type\": \"integer\", "
               "\"minimum\": 1, \"maximum\": 18446744073709551615}}}");
    }
    put_indent(depth + 1);
    printf("},");
    put_indent(depth + 1);
    printf("\"required\": [");
    for (unsigned i = 0, n = 0; i < LINES; i++)
        if (is(lines[i].type, "BY_LABEL"))
            printf("%s\"%.*s\"", n++ != 0 ? ", " : "", (int)(strlen(lines[i].key) - strlen(suffix)), lines[i].key);
    printf("]}");
}

static void put_registry(bool* comma, int depth) {
    put_property(comma, depth, "labels");
    printf("\"description\": \"The labels by id.\", \"type\": \"array\", \"items\": {\"type\": \"object\", "
           "\"additionalProperties\": false, \"required\": [\"id\", \"label\"], \"properties\": {");
    put_indent(depth + 1);
    printf("\"id\": {\"description\": \"Id of the label.\", \"type\": \"integer\", "
           "\"minimum\": 0, \"maximum\": 4294967295},");
    put_indent(depth + 1);
    printf("\"label\": {\"description\": \"The label.\", \"type\": \"string\", \"maxLength\": 31}}}}");
}

static void put_members(bool* comma, int depth, const Section* s) {
    for (unsigned i = 0; i < LINES; i++) {
        if (!is(lines[i].section, s->name)) continue;
        put_property(comma, depth, lines[i].key);
        put_description(lines[i].help, unit_words(lines[i].unit));
        printf(", ");
        put_type(&lines[i]);
        putchar('}');
    }
    if (is(s->name, "CLASS")) put_contention(comma, depth);
    if (is(s->name, "REGISTRY")) put_registry(comma, depth);
}

static void put_required(bool* comma, const Section* s) {
    for (unsigned i = 0; i < LINES; i++) {
        if (!is(lines[i].section, s->name)) continue;
        printf(*comma ? ", " : "");
        *comma = true;
        put_quoted(lines[i].key);
    }
    if (is(s->name, "CLASS")) printf(", \"contention_by_label\"");
    if (is(s->name, "REGISTRY")) printf(", \"labels\"");
}

static void put_object(int depth, const Section* s) {
    bool comma = false;
    printf("\"type\": \"object\", \"additionalProperties\": false,");
    put_indent(depth);
    printf("\"required\": [");
    put_required(&comma, s);
    printf("],");
    put_indent(depth);
    printf("\"properties\": {");
    comma = false;
    if (is(s->form, "ARRAY")) {
        put_property(&comma, depth + 1, "allocator");
        printf("\"description\": \"In a document of several allocators: the number of the row's allocator.\", "
               "\"type\": \"integer\", \"minimum\": 0}");
    }
    put_members(&comma, depth + 1, s);
    printf("}");
}

static void put_section(bool* comma, const Section* s) {
    if (is(s->form, "TOP")) {
        put_members(comma, 2, s);
        return;
    }
    put_property(comma, 2, s->key);
    put_description(s->about, "");
    printf(", ");
    if (is(s->form, "ARRAY")) printf("\"type\": \"array\", \"items\": {");
    put_object(3, s);
    printf(is(s->form, "ARRAY") ? "}}" : "}");
}

static void print_schema(void) {
    bool comma = false;
    printf("{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n");
    printf("  \"$id\": \"urn:temporal-slab:stats:%d\",\n", SLAB_STATS_VERSION);
    printf("  \"title\": \"Statistics of a temporal-slab allocator\",\n"
           "  \"description\": \"What slab_stats_json writes. Written by scripts/metrics.sh; do not edit.\",\n"
           "  \"type\": \"object\",\n  \"required\": [");
    for (unsigned s = 0; s < SECTIONS; s++) {
        if (is(sections[s].form, "TOP")) put_required(&comma, &sections[s]);
        else printf(", \"%s\"", sections[s].key);
    }
    printf("],\n  \"additionalProperties\": false,\n  \"patternProperties\": {");
    printf("\"^benchmark_\": {\"description\": \"Added by programs that run a workload.\"}},\n");
    printf("  \"properties\": {");
    comma = false;
    for (unsigned s = 0; s < SECTIONS; s++) put_section(&comma, &sections[s]);
    put_property(&comma, 2, "by_allocator");
    printf("\"description\": \"Written by tslab and tslabd for a process with several allocators: the document of each. "
           "The other members are sums over the allocators, and lists have the rows of all.\", "
           "\"type\": \"array\", \"items\": {\"type\": \"object\"}}");
    printf("\n  }\n}\n");
}

/* ---- the table ---- */

/* Entries of each type that is an array, and the largest value that each of its buckets counts; the last has no such bound. */
static void print_arrays(void) {
    for (unsigned i = 0; i < LINES; i++) {
        const TsiMetric* m = &tsi_metrics[i];
        unsigned before = 0;
        while (before < i && tsi_metrics[before].type != m->type) before++;
        if (!tsi_metric_is_array(m) || before < i) continue;
        printf("array\t%s\t%u", lines[i].type, lines[i].entries);
        for (unsigned k = 0; tsi_metric_has_buckets(m) && k + 1 < lines[i].entries; k++)
            printf("%s%" PRIu64, k == 0 ? "\t" : " ", tsi_metric_bucket_top(m->type, k));
        printf("\n");
    }
}

static void print_table(void) {
    printf("# Written by scripts/metrics.sh from src/stats/metrics.def; do not edit.\n");
    printf("version\t%d\n", SLAB_STATS_VERSION);
    printf("prefix\t" TSI_METRIC_PREFIX "\n");
    printf("ring\t%d\n", TSI_RING_MAX);
    printf("states\t%s\t%s\n", tsi_metric_state(0), tsi_metric_state(1));
    print_arrays();
    for (unsigned s = 0; s < SECTIONS; s++)
        printf("section\t%s\t%s\t%s\t%s\n", sections[s].name, sections[s].key, sections[s].form, sections[s].title);
#define FAMILY(family, help) printf("family\t%s\t%s\n", family, help);
#include "stats/metrics.def"
    for (unsigned i = 0; i < LINES; i++) {
        const Line* l = &lines[i];
        printf("metric\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l->section, l->key, l->type, l->kind, l->unit,
               l->json_only ? "-" : l->family, l->help, l->question);
    }
}

int main(int argc, char** argv) {
    if (argc == 2 && is(argv[1], "page")) print_page();
    else if (argc == 2 && is(argv[1], "schema")) print_schema();
    else if (argc == 2 && is(argv[1], "table")) print_table();
    else return fprintf(stderr, "metrics_pages: page, schema or table?\n"), 2;
    return ferror(stdout) || fflush(stdout) != 0;
}
