/*
 * pcre2.c - patterns of many kinds over a megabyte of text: captures, names, substitutions, both matchers, callouts of depth, in phases
 * that free what they made or just end; and patterns that live longer than the phases they are used in.
 */
#include <temporal_slab/pcre2.h>

#include "adapters/adapter.h"

static const unsigned long adapter_least = 15000;

static const Text* subject(void) { return adapter_file("/usr/share/xml/iso-codes/iso_639-3.xml"); }

static void adapter_install(SlabAllocator* a) { (void)a; }
static void adapter_remove(SlabAllocator* a) { (void)a; }

typedef struct Pattern {
    const char* text;
    uint32_t options;
    const char* replacement; /* NULL: it is only searched for */
} Pattern;

static const Pattern patterns[] = {
    {"name=\"(?<name>[^\"]*)\"", 0, "called=<$1>"},
    {"id=\"(\\w)(\\w)(\\w)\"", 0, "$3$2$1"},
    {"<!--.*?-->", PCRE2_DOTALL, ""},
    {"\\b(\\w+)\\s+\\1\\b", PCRE2_CASELESS, NULL},
    {"(?:[aeiou]{3,}|[^aeiou\\W\\d_]{6,})", PCRE2_CASELESS, NULL},
    {"^\\t+(status|scope)=\"(?:Active|I)\"$", PCRE2_MULTILINE, NULL},
    {"\\p{Lu}\\p{Ll}+(?:[-\\x{2bc}]\\p{L}+)+", PCRE2_UTF | PCRE2_UCP, "*"},
    {"(?<!\\w)(?=\\w*q)(?!\\w*qu)\\w+", 0, NULL},
    {"<(?<tag>\\w+)(?:\\s+\\w+=\"(?:[^\"\\\\]|\\\\.)*\")*\\s*/?>", 0, NULL},
    {"(?<list>\\((?:[^()]|(?&list))*\\))", 0, "[]"},
    {"(a?){12}a{12}", 0, NULL},
    {"[[:^ascii:]]+", PCRE2_UTF, NULL},
};
enum { PATTERNS = sizeof patterns / sizeof patterns[0], STEPS = 60000 };

typedef struct Tools { /* contexts: all NULL with malloc */
    pcre2_general_context* general;
    pcre2_compile_context* compile;
    pcre2_match_context* match;
} Tools;

/* False: no memory. */
static bool open_tools(Tools* t, epoch_domain_t* d) {
    memset(t, 0, sizeof *t);
    if (d == NULL) return true;
    return (t->general = tslab_pcre2_context(d)) != NULL && (t->compile = pcre2_compile_context_create(t->general)) != NULL &&
           (t->match = pcre2_match_context_create(t->general)) != NULL;
}

static void close_tools(Tools* t) {
    pcre2_match_context_free(t->match);
    pcre2_compile_context_free(t->compile);
    pcre2_general_context_free(t->general);
}

static pcre2_code* compiled(const Pattern* p, const Tools* t, int* error) {
    PCRE2_SIZE where;
    return pcre2_compile((PCRE2_SPTR)p->text, PCRE2_ZERO_TERMINATED, p->options, error, &where, t->compile);
}

/* Every match of the first part of the text; its groups go into `out`. New match data for every fourth. */
static int search(Text* out, const pcre2_code* code, const Tools* t, size_t size, bool frees) {
    unsigned found = 0;
    int status = 0;
    pcre2_match_data* data = NULL;
    for (PCRE2_SIZE at = 0; at < size; found++) {
        if (found % 4 == 0) {
            if (frees) pcre2_match_data_free(data);
            if ((data = pcre2_match_data_create_from_pattern(code, t->general)) == NULL) return PCRE2_ERROR_NOMEMORY;
        }
        status = pcre2_match(code, (PCRE2_SPTR)subject()->bytes, size, at, 0, data, t->match);
        if (status < 0) break;
        PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
        for (int i = 0; i < status; i++)
            if (ends[2 * i] != PCRE2_UNSET) text_format(out, "%d:%zu-%zu ", i, ends[2 * i], ends[2 * i + 1]);
        if (found % 3 == 0) {
            PCRE2_UCHAR* copy;
            PCRE2_SIZE n;
            int got = pcre2_substring_get_bynumber(data, 0, &copy, &n);
            if (got == PCRE2_ERROR_NOMEMORY) return got;
            if (got == 0) text_add(out, copy, n);
            if (got == 0 && frees) pcre2_substring_free(copy);
        }
        at = ends[1] > at ? ends[1] : at + 1;
    }
    if (frees) pcre2_match_data_free(data);
    text_format(out, "\n%u found, last %d\n", found, status);
    return status == PCRE2_ERROR_NOMATCH || status > 0 ? 0 : status;
}

static int substitute(Text* out, const pcre2_code* code, const Pattern* p, const Tools* t, PCRE2_UCHAR* room, PCRE2_SIZE size) {
    if (p->replacement == NULL) return 0;
    int n = pcre2_substitute(code, (PCRE2_SPTR)subject()->bytes, subject()->size, 0, PCRE2_SUBSTITUTE_GLOBAL, NULL, t->match,
                             (PCRE2_SPTR)p->replacement, PCRE2_ZERO_TERMINATED, room, &size);
    text_format(out, "%d replaced\n", n);
    if (n > 0) text_add(out, room, size);
    return n < 0 ? n : 0;
}

static int search_all_ways(Text* out, const pcre2_code* code, const Tools* t, bool frees) {
    int workspace[200];
    pcre2_match_data* data = pcre2_match_data_create(10, t->general);
    if (data == NULL) return PCRE2_ERROR_NOMEMORY;
    for (PCRE2_SIZE at = 0; at < STEPS; at += 1500) {
        int n = pcre2_dfa_match(code, (PCRE2_SPTR)subject()->bytes, STEPS, at, 0, data, t->match, workspace, 200);
        text_format(out, "%d ", n);
        if (n > 0) text_format(out, "%zu ", pcre2_get_ovector_pointer(data)[0]);
    }
    if (frees) pcre2_match_data_free(data);
    return 0;
}

static void work(Text* out, const Tools* t, bool frees) {
    PCRE2_SIZE size = 2 * subject()->size;
    PCRE2_UCHAR* room = malloc(size);
    REQUIRE(room != NULL);
    for (int i = 0; i < PATTERNS; i++) {
        int error = 0;
        pcre2_code* code = compiled(&patterns[i], t, &error);
        REQUIRE(code != NULL);
        text_format(out, "pattern %d\n", i);
        REQUIRE(search(out, code, t, i == 10 ? STEPS : subject()->size / 3, frees) == 0);
        REQUIRE(substitute(out, code, &patterns[i], t, room, size) == 0);
        REQUIRE(search_all_ways(out, code, t, frees) == 0);
        if (frees) pcre2_code_free(code);
    }
    free(room);
    static const Pattern bad[] = {{"(open", 0, NULL}, {"[z-a]", 0, NULL}, {"(?<n>a)(?<n>b)", 0, NULL}, {"a{9,2}", 0, NULL}};
    for (int i = 0; i < 4; i++) {
        int error = 0;
        PCRE2_UCHAR text[200];
        REQUIRE(compiled(&bad[i], t, &error) == NULL && pcre2_get_error_message(error, text, sizeof text) > 0);
        text_format(out, "%d %s\n", error, (char*)text);
    }
    const uint8_t* tables = pcre2_maketables(t->general);
    REQUIRE(tables != NULL);
    text_add(out, tables, 256);
    if (frees) pcre2_maketables_free(t->general, tables);
}

/* A pattern for all requests, translated to machine code where PCRE2 does that: it is freed before its phase ends. */
static void shared(Text* out, SlabAllocator* a) {
    static const Pattern word = {"\\bL\\w+n\\b", 0, NULL};
    epoch_domain_t* program = adapter_create(a, "program");
    Tools all, t;
    int error = 0;
    REQUIRE(open_tools(&all, program));
    pcre2_code* code = compiled(&word, &all, &error);
    REQUIRE(code != NULL);
    error = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    REQUIRE(error == 0 || error == PCRE2_ERROR_JIT_BADOPTION || error == PCRE2_ERROR_NOMEMORY);
    for (int n = 0; n < 20; n++) {
        epoch_domain_t* request = adapter_create(a, "request");
        REQUIRE(open_tools(&t, request));
        REQUIRE(search(out, code, &t, STEPS / 2, a == NULL) == 0);
        if (a == NULL) close_tools(&t);
        EpochReceipt r = adapter_end(request);
        REQUIRE(a == NULL || (r.objects_allocated >= 4 && r.objects_freed == 0));
    }
    pcre2_code_free(code);
    close_tools(&all);
    REQUIRE(adapter_end(program).objects_released == 0);
}

static void adapter_run(Text* out, SlabAllocator* a) {
    for (int frees = 0; frees < 2; frees++) {
        epoch_domain_t* d = adapter_create(a, "patterns");
        Tools t;
        REQUIRE(open_tools(&t, d));
        work(out, &t, frees || a == NULL);
        if (frees || a == NULL) close_tools(&t);
        EpochReceipt r = adapter_end(d);
        if (d != NULL) REQUIRE(frees ? r.objects_released == 0 : r.objects_released > 300);
    }
    shared(out, a);
}

static void adapter_starve(SlabAllocator* a) {
    unsigned refused = 0, done = 0;
    REQUIRE(tslab_pcre2_context(NULL) == NULL);
    for (size_t budget = 4096; budget <= 16 << 20; budget *= 4) {
        epoch_domain_t* d = adapter_create(a, "hungry patterns");
        REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, budget, NULL, NULL));
        Text out = {NULL, 0, 0};
        Tools t;
        if (!open_tools(&t, d)) REQUIRE(++refused);
        for (int i = 0; t.match != NULL && i < PATTERNS; i++) {
            int error = 0;
            pcre2_code* code = compiled(&patterns[i], &t, &error);
            REQUIRE(code != NULL || error == PCRE2_ERROR_HEAP_FAILED);
            int status = code != NULL ? search(&out, code, &t, STEPS, true) : PCRE2_ERROR_NOMEMORY;
            REQUIRE(status == 0 || status == PCRE2_ERROR_NOMEMORY);
            *(status == 0 ? &done : &refused) += 1;
        }
        (void)adapter_end(d);
        free(out.bytes);
    }
    REQUIRE(refused >= 3 && done >= PATTERNS);
}
