/* out.c - see out.h. */
#include "stats/out.h"

#include "stats/decimal.h"

#include <string.h>

/* Hands the gathered bytes to the callback, if there are any and it has not refused, clears out->ok if it refuses, and
 * empties the buffer. [no other user of out] */
static void flush(TsiOut* out) {
    if (out->ok && out->used != 0) out->ok = out->write(out->ctx, out->bytes, out->used);
    out->used = 0;
}

bool tsi_out_end(TsiOut* out) {
    flush(out);
    return out->ok;
}

void tsi_out_bytes(TsiOut* out, const char* bytes, size_t n) {
    while (n != 0 && out->ok) {
        size_t room = sizeof out->bytes - out->used, part = n < room ? n : room;
        memcpy(out->bytes + out->used, bytes, part);
        out->used += part;
        bytes += part;
        n -= part;
        if (out->used == sizeof out->bytes) flush(out);
    }
}

void tsi_out_text(TsiOut* out, const char* text) { tsi_out_bytes(out, text, strlen(text)); }
void tsi_out_char(TsiOut* out, char c) { tsi_out_bytes(out, &c, 1); }

void tsi_out_u64(TsiOut* out, uint64_t v) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    tsi_out_bytes(out, digits + at, sizeof digits - at);
}

void tsi_out_f64(TsiOut* out, double v) {
    char text[TSI_DECIMAL_BYTES];
    tsi_out_bytes(out, text, tsi_decimal_write(text, v));
}

void tsi_out_seconds(TsiOut* out, uint64_t ns) {
    char digits[10] = ".";
    size_t n = 0;
    uint64_t rest = ns % 1000000000;
    tsi_out_u64(out, ns / 1000000000);
    for (size_t i = 9; i > 0; i--, rest /= 10) {
        digits[i] = (char)('0' + rest % 10);
        if (n == 0 && digits[i] != '0') n = i + 1;
    }
    tsi_out_bytes(out, digits, n);
}

size_t tsi_utf8_length(const unsigned char* s, size_t n) {
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (length > n) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xed && s[1] >= 0xa0, beyond = s[0] == 0xf4 && s[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Writes `text`, up to its 0 or `most` bytes, in UTF-8, each character of one byte by `escape`, or as it is if that
 * returns false. Returns true if U+FFFD is in it, put there for a byte that is not UTF-8, or before.
 * [no other user of out] */
static bool write_escaped(TsiOut* out, const char* text, size_t most, bool (*escape)(TsiOut*, unsigned char)) {
    const unsigned char* s = (const unsigned char*)text;
    bool replaced = false;
    size_t n = strnlen(text, most);
    for (size_t i = 0; i < n;) {
        size_t length = tsi_utf8_length(s + i, n - i);
        if (length == 0) tsi_out_text(out, replacement);
        else if (length > 1 || !escape(out, s[i])) tsi_out_bytes(out, text + i, length);
        replaced |= length == 0 || (length == 3 && memcmp(s + i, replacement, 3) == 0);
        i += length != 0 ? length : 1;
    }
    return replaced;
}

/* Writes the escape of the character c in JSON and returns true. Returns false, and writes nothing, if it needs no
 * escape. [no other user of out] */
static bool escape_json(TsiOut* out, unsigned char c) {
    static const char digits[] = "0123456789abcdef", letters[] = "btn?fr"; /* 8 .. 13 */
    if (c >= 0x20 && c != '"' && c != '\\') return false;
    tsi_out_char(out, '\\');
    if (c >= 0x20) {
        tsi_out_char(out, (char)c);
    } else if (c >= 8 && c <= 13 && c != 11) {
        tsi_out_char(out, letters[c - 8]);
    } else {
        tsi_out_text(out, "u00");
        tsi_out_char(out, digits[c >> 4]);
        tsi_out_char(out, digits[c & 15]);
    }
    return true;
}

/* Writes the escape of the character c in the value of a Prometheus label and returns true. Returns false, and writes
 * nothing, if it needs no escape. [no other user of out] */
static bool escape_label(TsiOut* out, unsigned char c) {
    if (c != '\n' && c != '"' && c != '\\') return false;
    tsi_out_char(out, '\\');
    tsi_out_char(out, c == '\n' ? 'n' : (char)c);
    return true;
}

void tsi_out_json_string(TsiOut* out, const char* s, size_t most) {
    tsi_out_char(out, '"');
    (void)write_escaped(out, s, most, escape_json);
    tsi_out_char(out, '"');
}

bool tsi_out_label_value(TsiOut* out, const char* s, size_t most) { return write_escaped(out, s, most, escape_label); }
