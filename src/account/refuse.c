/* refuse.c - see refuse.h. */
#include "account/refuse.h"

#include "base/probes.h"
#include "threads/bank.h"
#include "state/liveness.h"
#include "observe/stand_in.h"

#include <errno.h>
#include <stdlib.h>

const char* tsi_misuse_name(SlabMisuse what) {
    static const char* const names[] = {
        [SLAB_MISUSE_STALE_HANDLE] = "stale_handle",         [SLAB_MISUSE_BAD_HANDLE] = "bad_handle",
        [SLAB_MISUSE_DOUBLE_FREE] = "double_free",           [SLAB_MISUSE_STALE_FREE] = "stale_free",
        [SLAB_MISUSE_INTERIOR_POINTER] = "interior_pointer", [SLAB_MISUSE_FOREIGN_POINTER] = "foreign_pointer",
        [SLAB_MISUSE_SIZE_MISMATCH] = "size_mismatch",       [SLAB_MISUSE_BAD_EPOCH] = "bad_epoch",
        [SLAB_MISUSE_CLOSED_EPOCH] = "closed_epoch",         [SLAB_MISUSE_BAD_SIZE] = "bad_size",
        [SLAB_MISUSE_DOMAIN_ORDER] = "domain_order",         [SLAB_MISUSE_DOMAIN_STALE] = "domain_stale",
        [SLAB_MISUSE_WRITE_AFTER_END] = "write_after_end",
    };
    _Static_assert(sizeof names / sizeof *names == SLAB_MISUSE_COUNT, "each has a name");
    return (unsigned)what < SLAB_MISUSE_COUNT ? names[what] : "unknown";
}

/* Adds 1 to the refusals for the cause `what`, SlabMisuse or TSI_REFUSED_*, of the binding at hand if that is the
 * arena's, otherwise of the arena, and fires the probe. where: the pointer, or NULL. [any thread, needs no lock] */
static void count(TsiArena* a, unsigned what, const void* where) {
    TsiBinding* b = tsi_tls.serial == a->serial ? tsi_tls.binding : NULL;
    tsi_sum_add(b, b != NULL ? &b->refused[what] : &a->refused[what], 1);
    tsi_probe_refusal(a->owner, what, where);
}

void tsi_refuse_count(TsiArena* a, unsigned what) { count(a, what, NULL); }

/* Returns the label that a misuse counts for: of misuse->ref's phase, if that is not 0, otherwise of the phase whose
 * slab, or whose stand-in, misuse->where points into. NULL if that phase has gone, or if there is none.
 * [any thread, needs no lock] */
static TsiLabel* label_of(TsiArena* a, const TsiMisuse* misuse) {
    TsiPlace at;
    TsiRef ref = misuse->ref;
    if (ref == 0) {
        TsiPlaceResult place =
            misuse->where != NULL ? tsi_space_locate(&a->space, tsi_slot_of(a, misuse->where), &at) : TSI_PLACE_FOREIGN;
        bool in_slab = place == TSI_PLACE_OK || (place == TSI_PLACE_INTERIOR && at.cls != TSI_CLASS_CONT);
        if (!in_slab || !tsi_slab_ref(a, &at, &ref)) return NULL;
    }
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    return misuse->ref == 0 || tsi_inc_era(inc) == tsi_ref_era(ref) ? tsi_label_of(a, inc) : NULL;
}

/* A line of text, made without malloc, locale or a lock: the process may be in any state. Cut if it is too long. */
typedef struct Line {
    size_t used;
    char text[256];
} Line;

/* Adds a character to the line; leaves it out if only the place of the line's end is left. [no other user] */
static void add_char(Line* line, char c) {
    if (line->used < sizeof line->text - 1) line->text[line->used++] = c;
}

/* Adds the text up to its 0, but at most `most` bytes, to the line, control characters as "?"; what does not fit is
 * left out. [no other user] */
static void add_text(Line* line, const char* text, size_t most) {
    for (; most != 0 && *text != 0; text++, most--)
        add_char(line, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

/* Adds the text `before`, of which 32 bytes at most, and v in lower-case hexadecimal, without leading zeros (0 is "0"),
 * to the line; what does not fit is left out. [no other user] */
static void add_hex(Line* line, const char* before, uint64_t v) {
    add_text(line, before, 32);
    for (unsigned shift = v != 0 ? tsi_log2(v) & ~3u : 0;; shift -= 4) {
        add_char(line, "0123456789abcdef"[v >> shift & 15]);
        if (shift == 0) return;
    }
}

/* Prints one line that names the misuse and its label, and ends the process by abort. label: NULL for misuse->label.
 * [any thread, needs no lock] */
static _Noreturn void die(const TsiMisuse* misuse, const TsiLabel* label) {
    if (label == NULL) label = misuse->label;

    Line line = {.used = 0};
    add_text(&line, "temporal-slab: ", 32);
    add_text(&line, tsi_misuse_name(misuse->what), 32);
    if (misuse->where != NULL) add_hex(&line, ", pointer 0x", (uint64_t)(uintptr_t)misuse->where);
    if (misuse->handle != 0) add_hex(&line, ", handle 0x", misuse->handle);
    add_text(&line, label != NULL ? ", label \"" : ", no label", 32);
    if (label != NULL) {
        add_text(&line, label->name, sizeof label->name);
        add_char(&line, '"');
    }

    add_text(&line, ": aborting, because misuse_fatal is set", 64);
    line.text[line.used++] = '\n'; /* add_char leaves room */
    tsi_os.complain(line.text, line.used);
    abort();
}

/* Calls the program's function for misuse, which is set, with its ctx. Meanwhile TSI_TELLS_MISUSE is set, so that
 * misuse in it calls nothing, and a bank that the thread holds is left and then waited for again.
 * [own thread, no lock held but a bank's, no bracket open] */
static TSI_NOINLINE void tell(TsiArena* a, const TsiMisuse* misuse) {
    TsiBankPause pause = tsi_bank_pause();
    tsi_tls.telling |= TSI_TELLS_MISUSE;
    a->options.misuse_fn(a->owner, misuse->what, misuse->where, a->options.misuse_ctx);
    tsi_tls.telling &= (uint8_t)~TSI_TELLS_MISUSE;
    tsi_bank_resume(pause);
}

/* Returns the error, for slab_error, that a misuse is. [any thread, needs no lock] */
static SlabError error_of(SlabMisuse what) {
    static const uint8_t errors[] = {
        [SLAB_MISUSE_STALE_HANDLE] = SLAB_ERROR_OBJECT,     [SLAB_MISUSE_BAD_HANDLE] = SLAB_ERROR_OBJECT,
        [SLAB_MISUSE_DOUBLE_FREE] = SLAB_ERROR_OBJECT,      [SLAB_MISUSE_STALE_FREE] = SLAB_ERROR_OBJECT,
        [SLAB_MISUSE_INTERIOR_POINTER] = SLAB_ERROR_OBJECT, [SLAB_MISUSE_FOREIGN_POINTER] = SLAB_ERROR_OBJECT,
        [SLAB_MISUSE_SIZE_MISMATCH] = SLAB_ERROR_OBJECT,    [SLAB_MISUSE_BAD_EPOCH] = SLAB_ERROR_EPOCH,
        [SLAB_MISUSE_CLOSED_EPOCH] = SLAB_ERROR_ENDED,      [SLAB_MISUSE_BAD_SIZE] = SLAB_ERROR_SIZE,
        [SLAB_MISUSE_DOMAIN_ORDER] = SLAB_ERROR_ORDER,      [SLAB_MISUSE_DOMAIN_STALE] = SLAB_ERROR_ENDED,
        [SLAB_MISUSE_WRITE_AFTER_END] = SLAB_ERROR_OBJECT,
    };
    _Static_assert(sizeof errors == SLAB_MISUSE_COUNT, "each is an error");
    return (SlabError)errors[what];
}

void tsi_error_set(int error) {
    tsi_tls.error = error == ENOMEM   ? SLAB_ERROR_NO_MEMORY
                    : error == EDQUOT ? SLAB_ERROR_BUDGET
                    : error == ESTALE ? SLAB_ERROR_ENDED
                    : error == EBUSY  ? SLAB_ERROR_BUSY
                                      : SLAB_ERROR_ARGUMENT;
    errno = error;
}

void tsi_refuse_as(TsiArena* a, const TsiMisuse* misuse) {
    int saved = errno;
    TsiLabel* label = label_of(a, misuse);
    count(a, misuse->what, misuse->where);
    if (label != NULL) tsi_add_relaxed(&label->refusals, 1);

    if (a->options.misuse_fn != NULL && (tsi_tls.telling & TSI_TELLS_MISUSE) == 0) tell(a, misuse);
    if (a->options.misuse_fatal) die(misuse, label);
    tsi_tls.error = (uint8_t)error_of(misuse->what);
    errno = saved;
}
