/*
 * options.c - options from the struct and from TSLAB_OPTIONS, both by the table in options.def.
 *
 * A bad struct fails the call with a sentence. A bad word in the environment is ignored, counted and explained, in
 * slab_last_error and once a process on standard error: the environment must not stop a program, and a typo must not
 * pass unseen.
 */
#include "api/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int slab_error(void) { return tsi_tls.error; }

typedef struct Option {
    const char* name;
    size_t offset, size;
    uint64_t least, most, preset;
} Option;

#define OPTION(field, least, most, preset, unit, help) \
    {#field, offsetof(SlabOptions, field), sizeof(((SlabOptions*)0)->field), least, most, preset},
static const Option table[] = {
#include "api/options.def"
};
#undef OPTION

/* Checks that limits of options match the bounds that they stand for. */
#define IS(option, field) (offsetof(SlabOptions, option) == offsetof(SlabOptions, field))
#define OPTION(option, least, most, preset, unit, help)                                                        \
    _Static_assert(!IS(option, ring_size) || (most) == TSI_RING_MAX, "the ring has a place for each id");      \
    _Static_assert(!IS(option, reserve_bytes) || ((least) == TSI_RESERVE_MIN && (most) == TSI_RESERVE_MAX),    \
                   "records are in proportion to the largest reservation");                                    \
    _Static_assert(!IS(option, max_labels) || (most) == TSI_LABELS_MAX, "the registry has a record for each"); \
    _Static_assert(!IS(option, bump) || (most) == TSI_BUMP_DOMAINS, "the last way to bump");                   \
    _Static_assert(!IS(option, purge_policy) || (most) == SLAB_PURGE_NEVER, "the last policy");
#include "api/options.def"
#undef OPTION
#undef IS

enum { COUNT = sizeof table / sizeof table[0], WORD_MOST = 40 /* bytes of a word that are shown */ };
_Static_assert(COUNT <= 64, "a set of options is a word of 64 bits");
enum { HARDENED_SAMPLING = 5000, HARDENED_QUARANTINE = 4 << 20 };

/* Returns the value of the option in *options: its field of 1, 4 or 8 bytes at option->offset, widened to 64 bits.
 * [any thread, needs no lock] */
static uint64_t get(const SlabOptions* options, const Option* option) {
    uint8_t b;
    uint32_t w;
    uint64_t q;
    const char* at = (const char*)options + option->offset;
    if (option->size == 1) return memcpy(&b, at, 1), b;
    if (option->size == 4) return memcpy(&w, at, 4), w;
    return memcpy(&q, at, 8), q;
}

/* Sets the field of the option in *options, of 1, 4 or 8 bytes at option->offset, to v, of which `fits` returned true.
 * [no other user of options] */
static void set(SlabOptions* options, const Option* option, uint64_t v) {
    uint8_t b = (uint8_t)v;
    uint32_t w = (uint32_t)v;
    char* at = (char*)options + option->offset;
    if (option->size == 1) memcpy(at, &b, 1);
    else if (option->size == 4) memcpy(at, &w, 4);
    else memcpy(at, &v, 8);
}

/* Returns words to add to a sentence about the option's range: ", a power of two" for slab_bytes, empty for all others.
 * [any thread, needs no lock] */
static const char* power_of_two(const Option* option) {
    return option->offset == offsetof(SlabOptions, slab_bytes) ? ", a power of two" : "";
}

/* Returns true if the option may have the value v: within its bounds, both included, and a power of two where that is
 * asked for. [any thread, needs no lock] */
static bool fits(const Option* option, uint64_t v) {
    bool shaped = power_of_two(option)[0] == 0 || tsi_is_pow2(v);
    return shaped && v >= option->least && v <= option->most;
}

/* Returns the option whose name is the n bytes at `name`, or NULL if there is none. [any thread, needs no lock] */
static const Option* find(const char* name, size_t n) {
    for (size_t i = 0; i < COUNT; i++)
        if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0) return &table[i];
    return NULL;
}

/* Sets *out to the decimal number of the n characters at `text`, times 2^10, 2^20 or 2^30 if it ends with k, m or g, in
 * either case. Returns true; false, with *out left alone, if the text is anything else, or the number too large. May
 * change errno. [any thread, needs no lock] */
static bool read_number(const char* text, size_t n, uint64_t* out) {
    char digits[24];
    bool begins = n != 0 && text[0] >= '0' && text[0] <= '9';
    if (!begins || n >= sizeof digits) return false;
    memcpy(digits, text, n);
    digits[n] = 0;
    char* end = digits;
    errno = 0;
    uint64_t v = strtoull(digits, &end, 10);
    char unit = (char)(*end | ('a' - 'A'));
    unsigned shift = unit == 'k' ? 10 : unit == 'm' ? 20 : unit == 'g' ? 30 : 0;
    if (shift != 0) end++;
    if (*end != 0 || errno != 0 || v > UINT64_MAX >> shift) return false;
    *out = v << shift;
    return true;
}

/* ---- words that are ignored ---- */

/* Returns the least of x, y and z. [any thread, needs no lock] */
static unsigned min3(unsigned x, unsigned y, unsigned z) {
    unsigned least = x < y ? x : y;
    return least < z ? least : z;
}

/* Returns true if the character x of a word stands for y of an option's name: letters of either case, and '-' for '_'.
 * [any thread, needs no lock] */
static bool alike(char x, char y) {
    if (x >= 'A' && x <= 'Z') x = (char)(x - 'A' + 'a');
    return x == y || (x == '-' && y == '_');
}

/* Returns how many letters to insert, drop or replace until the n bytes at `word` are the name. n <= WORD_MOST (40).
 * [any thread, needs no lock] */
static unsigned distance(const char* word, size_t n, const char* name) {
    unsigned row[WORD_MOST + 1];
    for (size_t i = 0; i <= n; i++) row[i] = (unsigned)i;
    for (; *name != 0; name++) {
        unsigned corner = row[0]++;
        for (size_t i = 1; i <= n; i++) {
            unsigned same = corner + !alike(word[i - 1], *name);
            corner = row[i];
            row[i] = min3(same, row[i] + 1, row[i - 1] + 1);
        }
    }
    return row[n];
}

/* Returns the name of the option that the n bytes at `word` are most like; NULL if they are like none, and for words of
 * less than 3 or more than WORD_MOST (40) bytes. tslab has the same rule (internal/options).
 * [any thread, needs no lock] */
static const char* nearest(const char* word, size_t n) {
    const char* name = NULL;
    unsigned least = 2 + (unsigned)n / 3;
    if (n < 3 || n > WORD_MOST) return NULL;
    for (size_t i = 0; i < COUNT; i++) {
        bool begun = strlen(table[i].name) > n && memcmp(table[i].name, word, n) == 0;
        unsigned d = begun ? 1 : distance(word, n, table[i].name);
        if (d >= least) continue;
        least = d;
        name = table[i].name;
    }
    return name;
}

/* Adds to the thread's sentence of slab_last_error what is wrong with a word of n bytes; cuts it where the room ends.
 * option: the one that it names, which then has no such value, or NULL. name_bytes: of its name, before '='.
 * [any thread, no lock held] */
static void explain(const char* word, size_t n, const Option* option, size_t name_bytes) {
    char shown[WORD_MOST + 1];
    char* text = tsi_error_text();
    if (text == NULL) return;
    size_t used = strlen(text), bytes = n < WORD_MOST ? n : WORD_MOST;
    for (size_t i = 0; i < bytes; i++) shown[i] = (unsigned char)word[i] < ' ' || word[i] == 0x7f ? '?' : word[i];
    shown[bytes] = 0;

    char* at = text + used;
    size_t room = TSI_SENTENCE_BYTES - used;
    const char* before = used == 0 ? "ignored in TSLAB_OPTIONS: " : "; ";
    if (option != NULL) {
        (void)snprintf(at, room, "%s%s is not a number within %" PRIu64 "..%" PRIu64 "%s", before, shown, option->least,
                       option->most, power_of_two(option));
        return;
    }

    const char* near = nearest(word, name_bytes);
    (void)snprintf(at, room, "%s%s is no option%s%s%s", before, shown, near != NULL ? ": " : "",
                   near != NULL ? near : "", near != NULL ? "?" : "");
}

/* Returns true if the set `named`, a bit for each option by its place in the table, has the option of this name.
 * [any thread, needs no lock] */
static bool has(uint64_t named, const char* name) { return (named >> (find(name, strlen(name)) - table) & 1) != 0; }

/* Sets the field of *options that the n bytes name=value at `word` name, and adds the option to the set *named. A value
 * of 0 sets warm_bytes to UINT64_MAX, and an option whose range lacks 0 to its default. Returns true; false, with
 * nothing set, after explaining the word in the thread's sentence, if there is no such option or it has no such value.
 * [no other user of options, no lock held] */
static bool apply_word(SlabOptions* options, const char* word, size_t n, uint64_t* named) {
    const char* eq = memchr(word, '=', n);
    size_t name_bytes = eq != NULL ? (size_t)(eq - word) : n;
    const Option* option = find(word, name_bytes);
    bool whole = option != NULL && eq != NULL;
    uint64_t v;
    if (!whole || !read_number(eq + 1, n - name_bytes - 1, &v) || (v != 0 && !fits(option, v))) {
        explain(word, n, option, name_bytes);
        return false;
    }
    if (option->offset == offsetof(SlabOptions, warm_bytes) && v == 0) v = UINT64_MAX;
    if (!fits(option, v)) v = option->preset;
    set(options, option, v);
    *named |= (uint64_t)1 << (option - table);
    return true;
}

/* Sets the options that TSLAB_OPTIONS names, and *named to the set of them. Returns how many of its words were ignored,
 * which the thread's sentence then explains; the sentence is empty if there are none. Preserves errno.
 * [no other user of options, no lock held] */
static uint32_t apply_environment(SlabOptions* options, uint64_t* named) {
    uint32_t bad = 0;
    int saved = errno;
    const char* at = tsi_os_getenv("TSLAB_OPTIONS");
    tsi_clear_error();
    *named = 0;
    while (at != NULL && *at != 0) {
        size_t n = strcspn(at, ",");
        if (n != 0 && !apply_word(options, at, n, named)) bad++;
        at += n;
        if (*at == ',') at++;
    }
    errno = saved;
    return bad;
}

void tsi_options_complain(const SlabOptions* options) {
    static _Atomic bool told;
    char line[TSI_SENTENCE_BYTES + 32];
    if (options->quiet || options->misuse_fn != NULL || tsi_swap_seq(&told, true))
        return; /* once a process: nothing is ordered */
    int n = snprintf(line, sizeof line, "temporal-slab: %s\n", slab_last_error());
    if (n > 0) tsi_os.complain(line, (size_t)n);
}

/* Copies the program's options *in, of in->struct_size bytes, to *out as far as both versions know them; members that
 * `in` lacks stay. Returns true; false, with a sentence in slab_last_error, if the size is impossible or a member that
 * this version does not know is not 0; *out is then changed in part or not at all.
 * [no other user of out, no lock held] */
static bool copy_struct(SlabOptions* out, const SlabOptions* in) {
    if (in->struct_size < offsetof(SlabOptions, ring_size) + sizeof in->ring_size || in->struct_size > 4096)
        return tsi_set_error("SlabOptions.struct_size is %zu; set it to sizeof(SlabOptions)", in->struct_size);
    size_t known = in->struct_size < sizeof *out ? in->struct_size : sizeof *out;
    memcpy(out, in, known);
    for (size_t i = sizeof *out; i < in->struct_size; i++)
        if (((const unsigned char*)in)[i] != 0)
            return tsi_set_error("SlabOptions has a field at byte %zu that version %s does not know", i,
                                 slab_version());
    return true;
}

/* Sets what other options imply: with `hardened`, those of fill_freed, random_order, guard_sampling and
 * quarantine_bytes that are 0 and not in the set `named`; with random_order, bump to TSI_BUMP_OFF. Leaves all else
 * alone. [no other user of options] */
static void imply(SlabOptions* options, uint64_t named) {
    if (options->hardened) {
        if (!has(named, "fill_freed")) options->fill_freed = 1;
        if (!has(named, "random_order")) options->random_order = 1;
        if (options->guard_sampling == 0 && !has(named, "guard_sampling")) options->guard_sampling = HARDENED_SAMPLING;
        if (options->quarantine_bytes == 0 && !has(named, "quarantine_bytes"))
            options->quarantine_bytes = HARDENED_QUARANTINE;
    }
    if (options->random_order) options->bump = TSI_BUMP_OFF;
}

bool tsi_options_read(SlabOptions* out, const SlabOptions* in, uint32_t* bad_environment) {
    memset(out, 0, sizeof *out);
    if (in != NULL && !copy_struct(out, in)) return false;
    for (size_t i = 0; i < sizeof out->reserved_; i++)
        if (out->reserved_[i] != 0) return tsi_set_error("SlabOptions.reserved_ must be 0");

    bool fixed = out->warm_bytes != 0; /* it does not learn */
    for (size_t i = 0; i < COUNT; i++) {
        const Option* option = &table[i];
        uint64_t v = get(out, option);
        if (v == 0) set(out, option, option->preset);
        else if (!fits(option, v))
            return tsi_set_error("option %s: %" PRIu64 " is not within %" PRIu64 "..%" PRIu64 "%s", option->name, v,
                                 option->least, option->most, power_of_two(option));
    }

    uint64_t named;
    *bad_environment = apply_environment(out, &named);
    imply(out, named);
    if (out->warm_bytes == UINT64_MAX) out->warm_bytes = 0;
    if (fixed || has(named, "warm_bytes")) out->warm_limit_bytes = out->warm_bytes;
    return true;
}
