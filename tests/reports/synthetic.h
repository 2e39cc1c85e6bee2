/*
 * synthetic.h - reports made by hand for the writers of src/stats: one in which every field has a value of its own, one
 * of extremes, one without rows. The fields are filled through metrics.def, by name and not by offset.
 */
#ifndef TESTS_REPORTS_SYNTHETIC_H
#define TESTS_REPORTS_SYNTHETIC_H

#include "stats/metrics.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SYNTHETIC_CLASSES = 3, SYNTHETIC_EPOCHS = 6, SYNTHETIC_PHASES = 5, SYNTHETIC_LABELS = 9, SYNTHETIC_CLOSES = 2 };

typedef struct Synthetic {
    TsiReport r;
    SlabClassStats classes[SYNTHETIC_CLASSES];
    TsiEpochRow epochs[SYNTHETIC_EPOCHS];
    SlabPhaseStats phases[SYNTHETIC_PHASES];
    SlabLabelStats labels[SYNTHETIC_LABELS];
    TsiCloseRow closes[SYNTHETIC_CLOSES];
} Synthetic;

/* Strings that a careless writer lets through. The last ones look the same after repair. */
static const char* const synthetic_labels[SYNTHETIC_LABELS] = {"(unlabeled)",
                                                               "GET \"/x\"",
                                                               "back\\slash\n\t\r\b\f",
                                                               "\x01\x1f\x7f bell\a",
                                                               "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
                                                               "\xff",
                                                               "\xfe",
                                                               "\xef\xbf\xbd",
                                                               "\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82"};

static inline void synthetic_set_array(uint64_t* a, unsigned n, uint64_t* next) {
    for (unsigned i = 0; i < n; i++) a[i] = i % 3 == 1 ? 0 : (*next)++;
}

#define SET_U32(x) x = (uint32_t)(*next)++
#define SET_U64(x) x = 9007199254740993u + 1000003u * (*next)++ /* no double has the first */
#define SET_F64(x) x = (double)(*next)++ + 0.1
#define SET_STATE(x) x = (*next)++ % 2
#define SET_FLAG(x) x = (*next)++ % 2
#define SET_STRING(x) (void)snprintf(x, sizeof(x), "own-%llu", (unsigned long long)(*next)++)
#define SET_BY_LABEL(x) synthetic_set_array(x, sizeof(x) / 8, next)
#define SET_DOUBLING(x) synthetic_set_array(x, sizeof(x) / 8, next)
#define SET_LIST(x) synthetic_set_array(x, sizeof(x) / 8, next)
#define SET_LATENCY(x) synthetic_set_array(x, sizeof(x) / 8, next)
#define RENAMED(section, field, key, type, kind, unit, family, help, question) \
    if (TSI_SECTION_##section == of) SET_##type(((TsiRow_##section*)row)->field);
static inline void synthetic_fill(TsiSection of, void* row, uint64_t* next) {
#include "stats/metrics.def"
}

#define MOST_U32(x) x = UINT32_MAX
#define MOST_U64(x) x = UINT64_MAX
#define MOST_F64(x) x = (turn++ % 4 == 0 ? NAN : turn % 4 == 2 ? INFINITY : turn % 4 == 3 ? -INFINITY : DBL_MAX)
#define MOST_STATE(x) x = 1
#define MOST_FLAG(x) x = 1
#define MOST_STRING(x) memset(x, 0xff, sizeof(x) - 1)
#define MOST_BY_LABEL(x) memset(x, 0xff, sizeof(x))
#define MOST_DOUBLING(x) memset(x, 0xff, sizeof(x))
#define MOST_LIST(x) memset(x, 0xff, sizeof(x))
#define MOST_LATENCY(x) memset(x, 0xff, sizeof(x))
#define RENAMED(section, field, key, type, kind, unit, family, help, question) \
    if (TSI_SECTION_##section == of) MOST_##type(((TsiRow_##section*)row)->field);
static inline void synthetic_maximise(TsiSection of, void* row) {
    unsigned turn = 0;
#include "stats/metrics.def"
    (void)turn;
}

static inline void synthetic_rows(Synthetic* s) {
    s->r.classes = s->classes;
    s->r.class_count = SYNTHETIC_CLASSES;
    s->r.epochs = s->epochs;
    s->r.epoch_rows = SYNTHETIC_EPOCHS;
    s->r.phases = s->phases;
    s->r.phase_count = SYNTHETIC_PHASES;
    s->r.labels = s->labels;
    s->r.label_count = SYNTHETIC_LABELS;
    s->r.closes = s->closes;
    s->r.close_count = SYNTHETIC_CLOSES;
}

static inline void synthetic_versions(Synthetic* s) {
    s->r.global.version = s->r.refusals.version = s->r.sampling.version = SLAB_STATS_VERSION;
    for (unsigned i = 0; i < SYNTHETIC_CLASSES; i++) s->classes[i].version = SLAB_STATS_VERSION;
    for (unsigned i = 0; i < SYNTHETIC_PHASES; i++) s->phases[i].version = SLAB_STATS_VERSION;
    for (unsigned i = 0; i < SYNTHETIC_LABELS; i++) s->labels[i].version = SLAB_STATS_VERSION;
}

/* Every field its own value. Epochs: ring id 3 in two incarnations, ids 0 and 5, and two domains. */
static inline void synthetic_make(Synthetic* s) {
    static const EpochId ids[SYNTHETIC_EPOCHS] = {3, 0, 3, 5, 0x80000001u, 0x80000002u};
    uint64_t next = 1;
    memset(s, 0, sizeof *s);
    for (unsigned section = 0; section < TSI_SECTIONS; section++) {
        synthetic_rows(s); /* label_count is a field that is filled, too */
        TsiRows rows = tsi_report_rows(&s->r, (TsiSection)section);
        for (uint32_t i = 0; i < rows.count; i++)
            synthetic_fill((TsiSection)section, (char*)(uintptr_t)rows.first + i * rows.bytes, &next);
    }
    synthetic_rows(s);
    synthetic_versions(s);
    for (unsigned i = 0; i < SYNTHETIC_EPOCHS; i++) {
        s->epochs[i].epoch_id = ids[i];
        s->epochs[i].label_id = i;
    }
    for (unsigned i = 0; i < SYNTHETIC_PHASES; i++) s->phases[i].label_id = i % 3;
    for (unsigned i = 0; i < SYNTHETIC_LABELS; i++) {
        s->labels[i].label_id = i;
        memset(s->labels[i].label, 0, sizeof s->labels[i].label);
        strncpy(s->labels[i].label, synthetic_labels[i], sizeof s->labels[i].label - 1);
    }
}

/* Every field at its upper end; doubles not finite or the largest. */
static inline void synthetic_make_extreme(Synthetic* s) {
    memset(s, 0, sizeof *s);
    for (unsigned section = 0; section < TSI_SECTIONS; section++) {
        synthetic_rows(s); /* label_count is a field that is filled, too */
        TsiRows rows = tsi_report_rows(&s->r, (TsiSection)section);
        for (uint32_t i = 0; i < rows.count; i++)
            synthetic_maximise((TsiSection)section, (char*)(uintptr_t)rows.first + i * rows.bytes);
    }
    synthetic_rows(s);
    synthetic_versions(s);
    for (unsigned i = 0; i < SYNTHETIC_CLASSES; i++) s->classes[i].class_index = i;
    for (unsigned i = 0; i < SYNTHETIC_LABELS; i++) s->labels[i].label_id = i;
}

static inline void synthetic_make_empty(Synthetic* s) {
    memset(s, 0, sizeof *s);
    s->r.global.version = SLAB_STATS_VERSION;
}

#endif
