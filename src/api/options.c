/*
 * options.c - options from the struct and from TSLAB_OPTIONS, both by the table in options.def.
 *
 * A bad struct fails the call with a sentence. A bad word in the environment is ignored and
 * counted: the environment must not stop a program.
 */
#include "api/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[160];

const char* slab_last_error(void) { return last_error; }

bool tsi_set_error(const char* format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return false;
}

void* tsi_failed(int error, const char* sentence) {
    (void)tsi_set_error("%s", sentence);
    errno = error;
    return NULL;
}

bool tsi_failed_bool(int error, const char* sentence) { return tsi_failed(error, sentence) != NULL; }

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

static uint64_t get(const SlabOptions* o, const Option* t) {
    uint8_t b;
    uint32_t w;
    uint64_t q;
    const char* at = (const char*)o + t->offset;
    if (t->size == 1) return memcpy(&b, at, 1), b;
    if (t->size == 4) return memcpy(&w, at, 4), w;
    return memcpy(&q, at, 8), q;
}

static void set(SlabOptions* o, const Option* t, uint64_t v) {
    uint8_t b = (uint8_t)v;
    uint32_t w = (uint32_t)v;
    char* at = (char*)o + t->offset;
    if (t->size == 1) memcpy(at, &b, 1);
    else if (t->size == 4) memcpy(at, &w, 4);
    else memcpy(at, &v, 8);
}

static bool fits(const Option* t, uint64_t v) {
    if (v < t->least || v > t->most) return false;
    return t->offset != offsetof(SlabOptions, slab_bytes) || tsi_is_pow2(v);
}

/* name=value; sizes take k, m, g. False when the word is no option. */
static bool apply_word(SlabOptions* o, const char* word, size_t n, bool* fixed) {
    const char* eq = memchr(word, '=', n);
    char digits[24];
    size_t len = eq != NULL ? n - (size_t)(eq - word) - 1 : 0;
    if (eq == NULL || len == 0 || len >= sizeof digits || eq[1] < '0' || eq[1] > '9') return false;
    memcpy(digits, eq + 1, len);
    digits[len] = 0;
    char* end = digits;
    errno = 0;
    uint64_t v = strtoull(digits, &end, 10);
    unsigned shift = *end == 'k' ? 10 : *end == 'm' ? 20 : *end == 'g' ? 30 : 0;
    if (shift != 0) end++;
    if (*end != 0 || errno != 0 || v > UINT64_MAX >> shift) return false;
    v <<= shift;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const Option* t = &table[i];
        if (strlen(t->name) != (size_t)(eq - word) || memcmp(t->name, word, strlen(t->name)) != 0) continue;
        if (!fits(t, v)) return false;
        bool warm = t->offset == offsetof(SlabOptions, warm_bytes);
        if (warm) *fixed = true;
        set(o, t, warm && v == 0 ? UINT64_MAX : v);
        return true;
    }
    return false;
}

/* *fixed: becomes true where warm_bytes is set. */
static uint32_t apply_environment(SlabOptions* o, bool* fixed) {
    uint32_t bad = 0;
    int saved = errno;
    const char* at = tsi_os_getenv("TSLAB_OPTIONS");
    while (at != NULL && *at != 0) {
        size_t n = strcspn(at, ",");
        if (n != 0 && !apply_word(o, at, n, fixed)) bad++;
        at += n;
        if (*at == ',') at++;
    }
    errno = saved;
    return bad;
}

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

bool tsi_options_read(SlabOptions* out, const SlabOptions* in, uint32_t* bad_environment) {
    memset(out, 0, sizeof *out);
    if (in != NULL && !copy_struct(out, in)) return false;
    for (size_t i = 0; i < sizeof out->reserved_; i++)
        if (out->reserved_[i] != 0) return tsi_set_error("SlabOptions.reserved_ must be 0");
    bool fixed = out->warm_bytes != 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const Option* t = &table[i];
        uint64_t v = get(out, t);
        if (v == 0) set(out, t, t->preset);
        else if (!fits(t, v))
            return tsi_set_error("option %s: %" PRIu64 " is not within %" PRIu64 "..%" PRIu64 "%s", t->name, v,
                                 t->least, t->most,
                                 t->offset == offsetof(SlabOptions, slab_bytes) ? ", a power of two" : "");
    }
    *bad_environment = apply_environment(out, &fixed);
    if (out->warm_bytes == UINT64_MAX) out->warm_bytes = 0;
    if (fixed) out->warm_limit_bytes = out->warm_bytes; /* it does not learn */
    return true;
}
