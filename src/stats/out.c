/* out.c - see out.h. */
#include "stats/out.h"

#include "stats/decimal.h"

#include <string.h>

static void flush(TsiOut* o) {
    if (o->ok && o->used != 0) o->ok = o->write(o->ctx, o->bytes, o->used);
    o->used = 0;
}

bool tsi_out_end(TsiOut* o) {
    flush(o);
    return o->ok;
}

void tsi_out_bytes(TsiOut* o, const char* bytes, size_t n) {
    while (n != 0 && o->ok) {
        size_t room = sizeof o->bytes - o->used, part = n < room ? n : room;
        memcpy(o->bytes + o->used, bytes, part);
        o->used += part;
        bytes += part;
        n -= part;
        if (o->used == sizeof o->bytes) flush(o);
    }
}

void tsi_out_text(TsiOut* o, const char* text) { tsi_out_bytes(o, text, strlen(text)); }
void tsi_out_char(TsiOut* o, char c) { tsi_out_bytes(o, &c, 1); }

void tsi_out_u64(TsiOut* o, uint64_t v) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    tsi_out_bytes(o, digits + at, sizeof digits - at);
}

void tsi_out_f64(TsiOut* o, double v) {
    char text[TSI_DECIMAL_BYTES];
    tsi_out_bytes(o, text, tsi_decimal_write(text, v));
}

void tsi_out_seconds(TsiOut* o, uint64_t ns) {
    char digits[10] = ".";
    size_t n = 0;
    uint64_t rest = ns % 1000000000;
    tsi_out_u64(o, ns / 1000000000);
    for (size_t i = 9; i > 0; i--, rest /= 10) {
        digits[i] = (char)('0' + rest % 10);
        if (n == 0 && digits[i] != '0') n = i + 1;
    }
    tsi_out_bytes(o, digits, n);
}

/* Returns the length of the UTF-8 sequence at s, at most `n` bytes; 0 if there is none. Overlong forms, surrogates and
 * values beyond U+10FFFF are none. */
static size_t utf8_length(const unsigned char* s, size_t n) {
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (length > n) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)) return 0;
    return length;
}

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Writes s in UTF-8, single characters through `escape` unless that returns false. Returns true if U+FFFD is in it. */
static bool write_escaped(TsiOut* o, const char* text, size_t most, bool (*escape)(TsiOut*, unsigned char)) {
    const unsigned char* s = (const unsigned char*)text;
    bool replaced = false;
    size_t n = strnlen(text, most);
    for (size_t i = 0; i < n;) {
        size_t length = utf8_length(s + i, n - i);
        if (length == 0) tsi_out_text(o, replacement);
        else if (length > 1 || !escape(o, s[i])) tsi_out_bytes(o, text + i, length);
        replaced |= length == 0 || (length == 3 && memcmp(s + i, replacement, 3) == 0);
        i += length != 0 ? length : 1;
    }
    return replaced;
}

static bool escape_json(TsiOut* o, unsigned char c) {
    static const char digits[] = "0123456789abcdef", letters[] = "btn?fr"; /* 8 .. 13 */
    if (c >= 0x20 && c != '"' && c != '\\') return false;
    tsi_out_char(o, '\\');
    if (c >= 0x20) {
        tsi_out_char(o, (char)c);
    } else if (c >= 8 && c <= 13 && c != 11) {
        tsi_out_char(o, letters[c - 8]);
    } else {
        tsi_out_text(o, "u00");
        tsi_out_char(o, digits[c >> 4]);
        tsi_out_char(o, digits[c & 15]);
    }
    return true;
}

static bool escape_label(TsiOut* o, unsigned char c) {
    if (c != '\n' && c != '"' && c != '\\') return false;
    tsi_out_char(o, '\\');
    tsi_out_char(o, c == '\n' ? 'n' : (char)c);
    return true;
}

void tsi_out_json_string(TsiOut* o, const char* s, size_t most) {
    tsi_out_char(o, '"');
    (void)write_escaped(o, s, most, escape_json);
    tsi_out_char(o, '"');
}

bool tsi_out_label_value(TsiOut* o, const char* s, size_t most) { return write_escaped(o, s, most, escape_label); }
