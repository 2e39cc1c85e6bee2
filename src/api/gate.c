/*
 * gate.c - slab_gate: does a phase retain more than the one before it?
 *
 * Runs rounds of the program and reads the figures of labels after each. A label retains the objects that live under
 * it, in open phases and in ended ones. The tables are mappings, so measuring changes nothing that is measured.
 */
#include "api/internal.h"

#include "slab_diagnostics.h"
#include "slab_stats.h"
#include "stats/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WARM_UP = 3, ROUNDS = 5, MORE_LABELS = 16 };

/* The most that a label has retained after any counted round, by its id. */
typedef struct Most {
    uint64_t objects, bytes;
    uint64_t made_bytes; /* outside of its scopes, before the first counted round */
} Most;

typedef struct Gate {
    SlabAllocator* a;
    SlabGateOptions o;
    char label[TSI_LABEL_BYTES]; /* o.label as phases have it; all zeros for NULL */
    size_t ids, room;
    SlabLabelStats* rows; /* room */
    Most* most;           /* ids */
    char* why;
    size_t why_bytes;
    bool known; /* a row was one that gate->o.label selects */
    bool blind; /* the figures could not be read */
} Gate;

/* Sets *options to the program's options *in (NULL: all zeros), as far as both versions know them; zeros in warm_up
 * and rounds become WARM_UP and ROUNDS. Returns NULL; otherwise a sentence, a literal, that says what is bad, and
 * *options means nothing: a wrong struct_size, or a field that is set and not known. [any thread, needs no lock] */
static const char* options_read(const SlabGateOptions* in, SlabGateOptions* options) {
    *options = (SlabGateOptions){.struct_size = sizeof *options};
    if (in != NULL && (in->struct_size < sizeof in->struct_size || in->struct_size > 4096))
        return "set SlabGateOptions.struct_size to sizeof(SlabGateOptions)";
    if (in != NULL) memcpy(options, in, in->struct_size < sizeof *options ? in->struct_size : sizeof *options);
    for (size_t n = sizeof *options; in != NULL && n < in->struct_size; n++)
        if (((const unsigned char*)in)[n] != 0) return "an option of a later version of the library is set";
    if (options->warm_up == 0) options->warm_up = WARM_UP;
    if (options->rounds == 0) options->rounds = ROUNDS;
    return NULL;
}

/* Returns true if the label of the row *stats is that of the ring's current epoch of gate->a, where objects are that
 * were made outside of scopes; false also if that epoch has moved on before its figures were read.
 * [any thread, no lock held, no bracket open] */
static bool has_ring(Gate* gate, const SlabLabelStats* stats) {
    SlabEpochStats ring;
    slab_stats_epoch(gate->a, 0, epoch_current(gate->a), &ring);
    if (ring.version == 0) return false;
    return ring.label[0] == 0 ? stats->label_id == TSI_LABEL_NONE : strcmp(ring.label, stats->label) == 0;
}

/* Returns the row, of the first `count` of gate->rows, of the label whose scopes have made most bytes outside since
 * the first comparison, by most->made_bytes; NULL if none has. count: what slab_stats_labels returned; rows beyond
 * gate->room are not there. [no other user of gate] */
static const SlabLabelStats* maker(const Gate* gate, size_t count) {
    const SlabLabelStats* maker = NULL;
    uint64_t most = 0;
    for (size_t n = 0; n < count && n < gate->room; n++) {
        const SlabLabelStats* stats = &gate->rows[n];
        if (stats->label_id >= gate->ids) continue;
        uint64_t before = gate->most[stats->label_id].made_bytes, made = stats->outside_bytes; /* may miss what moves */
        if (made > before && made - before > most) maker = stats, most = made - before;
    }
    return maker;
}

/* Writes a sentence to gate->why, of gate->why_bytes bytes, cut there and ended by 0: that the label of the row *stats
 * retains more after the round number `round`, what it retained before, and, if it is the ring's, which label's scopes
 * made most; nothing if gate->why_bytes is 0. count: what slab_stats_labels returned.
 * [no other user of gate, no lock held] */
static void say(Gate* gate, const SlabLabelStats* stats, size_t count, unsigned round) {
    const Most* most = &gate->most[stats->label_id];
    if (gate->why_bytes == 0) return;
    int n =
        snprintf(gate->why, gate->why_bytes,
                 "%s retains %" PRIu64 " %s (%" PRIu64 " bytes) after round %u, up from at most %" PRIu64 " (%" PRIu64
                 " bytes); its phases: %" PRIu64 " open, %" PRIu64 " draining",
                 tsi_word_label(stats->label).at, stats->live_objects, stats->live_objects == 1 ? "object" : "objects",
                 stats->live_bytes, round, most->objects, most->bytes, stats->phases_open, stats->draining_phases);
    const SlabLabelStats* from = has_ring(gate, stats) ? maker(gate, count) : NULL;
    if (from != NULL && n > 0 && (size_t)n < gate->why_bytes)
        (void)snprintf(gate->why + n, gate->why_bytes - (size_t)n, "; made outside of scopes, most by %s",
                       tsi_word_label(from->label).at);
}

/* Returns a + b, or UINT64_MAX if that is more. [any thread, needs no lock] */
static uint64_t sum(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

/* Takes the figures of all labels into gate->rows and compares each label that gate->o.label selects (NULL: all) with
 * the most that it has retained, gate->most. More is: gate->o.objects more live objects, or a quarter and
 * gate->o.bytes more live bytes. If no label retains more, raises gate->most. first: true to compare nothing, and to
 * set most->made_bytes, too. round: the number of the round, for the sentence. Returns true; false if a label retains
 * more, and gate->why then names the one with most bytes more, or if there is no memory for the figures. Sets
 * gate->blind, true in the last case, when gate->why stays, and sets gate->known if a label is selected.
 * [no other user of gate, no lock held] */
static bool compare(Gate* gate, unsigned round, bool first) {
    size_t count = slab_stats_labels(gate->a, gate->rows, gate->room);
    const SlabLabelStats* worst = NULL;
    uint64_t worst_by = 0;
    gate->blind = count == 0; /* one label there always is */
    if (gate->blind) return false;

    for (size_t n = 0; n < count && n < gate->room; n++) {
        const SlabLabelStats* stats = &gate->rows[n];
        if (stats->label_id >= gate->ids ||
            (gate->o.label != NULL && strncmp(stats->label, gate->label, sizeof stats->label) != 0))
            continue;
        gate->known = true;
        Most* most = &gate->most[stats->label_id];
        /* A request may take up to a quarter more bytes elsewhere: in a class instead of a region. */
        bool more = stats->live_objects > sum(most->objects, gate->o.objects) ||
                    stats->live_bytes > sum(most->bytes + most->bytes / 4, gate->o.bytes);
        uint64_t by =
            stats->live_bytes > most->bytes ? stats->live_bytes - most->bytes : 0; /* more objects may be fewer bytes */
        bool worse = worst == NULL || by > worst_by;
        if (!first && more && worse) worst = stats, worst_by = by;
    }

    if (worst != NULL) {
        say(gate, worst, count, round);
        return false;
    }

    for (size_t n = 0; n < count && n < gate->room; n++) {
        const SlabLabelStats* stats = &gate->rows[n];
        if (stats->label_id >= gate->ids) continue;
        Most* most = &gate->most[stats->label_id];
        if (stats->live_objects > most->objects) most->objects = stats->live_objects;
        if (stats->live_bytes > most->bytes) most->bytes = stats->live_bytes;
        if (first) most->made_bytes = stats->outside_bytes;
    }
    return true;
}

/* Calls round(ctx) gate->o.warm_up times, compares, then calls it gate->o.rounds times and compares after each.
 * Returns true if no label retains more; false as soon as one does, with gate->why, or with gate->blind. No round is
 * called after that. [no other user of gate, no lock held] */
static bool run(Gate* gate, void (*round)(void* ctx), void* ctx) {
    for (uint32_t n = 0; n < gate->o.warm_up; n++) round(ctx);
    if (!compare(gate, 0, true)) return false;
    for (uint32_t n = 1; n <= gate->o.rounds; n++) {
        round(ctx);
        if (!compare(gate, n, false)) return false;
    }
    return true;
}

bool slab_gate(SlabAllocator* allocator, const SlabGateOptions* options, void (*round)(void* ctx), void* ctx, char* why,
               size_t why_bytes) {
    TsiArena* a = tsi_arena(allocator);
    Gate gate = {.a = allocator, .why = why, .why_bytes = why != NULL ? why_bytes : 0};
    if (gate.why_bytes != 0) why[0] = 0;
    const char* wrong =
        a == NULL || round == NULL ? "the allocator or the function is NULL" : options_read(options, &gate.o);
    if (wrong != NULL) {
        if (gate.why_bytes != 0) (void)snprintf(why, why_bytes, "%s", wrong);
        return tsi_failed_bool(EINVAL, wrong);
    }

    tsi_label_copy(gate.label, gate.o.label);
    gate.ids = a->phases.labels.capacity;
    gate.room = gate.ids + MORE_LABELS;
    gate.rows = tsi_os_map(gate.room * sizeof *gate.rows);
    gate.most = tsi_os_map(gate.ids * sizeof *gate.most);

    bool passed = false, memory = gate.rows != NULL && gate.most != NULL;
    if (memory) passed = run(&gate, round, ctx);
    memory = memory && !gate.blind;
    bool unknown = passed && !gate.known;
    if (unknown) passed = false;
    if (!memory && gate.why_bytes != 0) (void)snprintf(why, why_bytes, "no memory for the figures of labels");
    if (unknown && gate.why_bytes != 0)
        (void)snprintf(why, why_bytes, "no phase has had the label %s", tsi_word_label(gate.label).at);

    if (gate.rows != NULL) tsi_os_drop(gate.rows, gate.room * sizeof *gate.rows);
    if (gate.most != NULL) tsi_os_drop(gate.most, gate.ids * sizeof *gate.most);
    if (!passed) tsi_error_set(unknown ? ENOENT : memory ? ERANGE : ENOMEM);
    return passed;
}
