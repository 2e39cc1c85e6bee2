/*
 * out.h - text on its way to a write callback.
 *
 * Pieces are gathered in a small buffer inside the TsiOut, which lives on the stack: no memory is allocated. After the
 * callback has returned false it is not called again and everything below does nothing; loops test `ok` to end soon.
 */
#ifndef TSI_STATS_OUT_H
#define TSI_STATS_OUT_H

#include "base/bits.h"

typedef struct TsiOut {
    bool (*write)(void* ctx, const char* bytes, size_t n);
    void* ctx;
    bool ok;
    size_t used;
    char bytes[1024];
} TsiOut;

/* Sets *out to an empty text to write(ctx, bytes, n), which is called whenever the buffer is full and at tsi_out_end,
 * until it returns false; out->ok is true until then. [no other user of out] */
TSI_INLINE void tsi_out_begin(TsiOut* out, bool (*write)(void*, const char*, size_t), void* ctx) {
    out->write = write;
    out->ctx = ctx;
    out->ok = true;
    out->used = 0;
}
/* Hands on the gathered bytes. Returns true if the callback took everything, false if it has refused, now or before.
 * [no other user of out] */
bool tsi_out_end(TsiOut* out);

/* Returns the bytes of the UTF-8 sequence at s, 1 to 4, within `n` bytes, n at least 1; 0 if there is none. Overlong
 * forms, surrogates and values beyond U+10FFFF are none. [any thread, needs no lock] */
size_t tsi_utf8_length(const unsigned char* s, size_t n);
/* Appends n bytes, as they are, to the buffer, and hands it to the callback whenever it is full; does nothing once the
 * callback has refused (out->ok is false). [no other user of out] */
void tsi_out_bytes(TsiOut* out, const char* bytes, size_t n);
/* Writes a text up to its 0; nothing once the callback has refused. [no other user of out] */
void tsi_out_text(TsiOut* out, const char* text);
/* Writes the character c; nothing once the callback has refused. [no other user of out] */
void tsi_out_char(TsiOut* out, char c);
/* Writes v in decimal digits, without leading zeros or separators; "0" for 0. [no other user of out] */
void tsi_out_u64(TsiOut* out, uint64_t v);
/* Writes v as the shortest decimal number that reads back as v, in JSON's form; 0 if it is not finite.
 * [no other user of out] */
void tsi_out_f64(TsiOut* out, double v);
/* Writes `ns` nanoseconds as seconds, exactly, with 0 to 9 digits behind the point, without zeros at the end: "1.5"
 * for 1500000000, "2" for 2000000000, "0.000000001" for 1. [no other user of out] */
void tsi_out_seconds(TsiOut* out, uint64_t ns);
/* Writes s, up to its 0 or `most` bytes, in quotes, escaped for JSON. Bytes that are not UTF-8 become U+FFFD.
 * [no other user of out] */
void tsi_out_json_string(TsiOut* out, const char* s, size_t most);
/* Writes s, up to its 0 or `most` bytes, escaped as the value of a Prometheus label, without the quotes; bytes that are
 * not UTF-8 become U+FFFD. Returns true if U+FFFD is in it: two different strings may then look the same.
 * [no other user of out] */
bool tsi_out_label_value(TsiOut* out, const char* s, size_t most);

#endif
