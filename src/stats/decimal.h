/*
 * decimal.h - a double as the shortest decimal number that reads back as the same double.
 */
#ifndef TSI_STATS_DECIMAL_H
#define TSI_STATS_DECIMAL_H

#include "base/bits.h"

enum { TSI_DECIMAL_BYTES = 32 };

/* Writes v to `out` as in JSON, with a point in every locale and the fewest digits that read back as v: without an
 * exponent from 1e-6 to below 1e17 ("0.001", "1500"), as "1.5e17" or "1e-7" otherwise; "0" if v is not finite, or is 0
 * of either sign. Returns its length in bytes, at most TSI_DECIMAL_BYTES; no 0 is added.
 * [any thread, needs no lock] */
size_t tsi_decimal_write(char out[TSI_DECIMAL_BYTES], double v);

#endif
