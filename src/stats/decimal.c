/*
 * decimal.c - see decimal.h.
 *
 * printf follows the locale and may allocate, so digits are made here, by the exact integer method of Steele and White
 * ("How to print floating-point numbers accurately", 1990). The number is r / s; everything nearer to it than `up` / s
 * above or `down` / s below reads back as the same double. Digits are divided off until the rest is within those
 * bounds. Reports have few numbers: speed does not matter.
 */
#include "stats/decimal.h"

#include "base/check.h"

#include <string.h>

enum { WORDS = 40, DIGITS = 17 }; /* 1280 bits: 2^1076, 10^324 and a margin */

typedef struct Big {
    unsigned used;        /* no zero words on top */
    uint32_t word[WORDS]; /* lowest first */
} Big;

/* Sets *big to v, whatever it was. [any thread, needs no lock] */
static void big_set(Big* big, uint64_t v) {
    big->word[0] = (uint32_t)v;
    big->word[1] = (uint32_t)(v >> 32);
    big->used = big->word[1] != 0 ? 2 : big->word[0] != 0;
}

/* Multiplies *big by `by`, below 2^32 and not 0; stops the process if the product takes more than WORDS words.
 * [any thread, needs no lock] */
static void big_times(Big* big, uint32_t by) {
    uint64_t carry = 0;
    for (unsigned i = 0; i < big->used; i++) {
        carry += (uint64_t)big->word[i] * by;
        big->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry == 0) return;
    TSI_CHECK(big->used < WORDS);
    big->word[big->used++] = (uint32_t)carry;
}

/* Multiplies *big by 2^bits; stops the process if it has no room. [any thread, needs no lock] */
static void big_shift(Big* big, unsigned bits) {
    for (; bits >= 31; bits -= 31) big_times(big, 1u << 31);
    big_times(big, 1u << bits);
}

/* Multiplies *big by 10^n; stops the process if it has no room. [any thread, needs no lock] */
static void big_times_10_to(Big* big, unsigned n) {
    for (; n >= 9; n -= 9) big_times(big, 1000000000u);
    for (; n > 0; n--) big_times(big, 10);
}

/* Returns -1, 0 or 1: *big is less than, equal to or more than *number. [any thread, needs no lock] */
static int big_compare(const Big* big, const Big* number) {
    if (big->used != number->used) return big->used < number->used ? -1 : 1;
    for (unsigned i = big->used; i-- > 0;)
        if (big->word[i] != number->word[i]) return big->word[i] < number->word[i] ? -1 : 1;
    return 0;
}

/* Adds *number, which stays, to *big; stops the process if the sum takes more than WORDS words.
 * [any thread, needs no lock] */
static void big_add(Big* big, const Big* number) {
    uint64_t carry = 0;
    for (unsigned i = 0; i < number->used || i < big->used || carry != 0; i++) {
        TSI_CHECK(i < WORDS);
        carry += (uint64_t)(i < big->used ? big->word[i] : 0) + (i < number->used ? number->word[i] : 0);
        if (i >= big->used) big->used = i + 1;
        big->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* Subtracts *number, which stays, from *big, which is at least as large. [any thread, needs no lock] */
static void big_subtract(Big* big, const Big* number) {
    int64_t borrow = 0;
    for (unsigned i = 0; i < big->used; i++) {
        borrow += (int64_t)big->word[i] - (i < number->used ? number->word[i] : 0);
        big->word[i] = (uint32_t)borrow;
        borrow >>= 32; /* 0 or -1 */
    }
    while (big->used != 0 && big->word[big->used - 1] == 0) big->used--;
}

/* Returns -1, 0 or 1: *big + *number is less than, equal to or more than *with. All three stay; stops the process if
 * the sum has no room. [any thread, needs no lock] */
static int compare_sum(const Big* big, const Big* number, const Big* with) {
    Big sum = *big;
    big_add(&sum, number);
    return big_compare(&sum, with);
}

/* Makes the digits d1 d2 ... of v = fraction * 2^exponent = 0.d1d2... * 10^*point: the fewest that read back as v, and
 * of these the nearest. fraction: 1 to 2^53 - 1; exponent: -1074 to 971. Sets digits[0] on to them, as characters
 * without a 0 behind, and *point. Returns their number, 1 to DIGITS. [any thread, needs no lock] */
static unsigned make_digits(uint64_t fraction, int exponent, char digits[DIGITS], int* point) {
    Big big, s, up, down;
    bool even = fraction % 2 == 0;
    bool lowest = fraction == 1ull << 52 && exponent > -1074; /* the gap below is half as wide */

    big_set(&big, fraction);
    big_set(&s, 1);
    big_set(&down, 1);
    big_shift(&big, (exponent > 0 ? (unsigned)exponent : 0) + 1 + lowest);
    big_shift(&s, (exponent < 0 ? (unsigned)-exponent : 0) + 1 + lowest);
    if (exponent > 0) big_shift(&down, (unsigned)exponent);
    up = down;
    if (lowest) big_shift(&up, 1);

    /* The least k with 10^k > v, from below. */
    int log2 = exponent + (int)tsi_log2(fraction);
    int k = (log2 * 1233 - (log2 < 0 ? 4095 : 0)) / 4096; /* 4096 * log10(2) is 1233.02 */
    if (k > 0) {
        big_times_10_to(&s, (unsigned)k);
    } else {
        big_times_10_to(&big, (unsigned)-k);
        big_times_10_to(&up, (unsigned)-k);
        big_times_10_to(&down, (unsigned)-k);
    }
    while (compare_sum(&big, &up, &s) >= (even ? 0 : 1)) {
        big_times(&s, 10);
        k++;
    }
    *point = k;

    for (unsigned n = 0;;) {
        unsigned digit = 0;
        big_times(&big, 10);
        big_times(&up, 10);
        big_times(&down, 10);
        for (; big_compare(&big, &s) >= 0; digit++) big_subtract(&big, &s);
        bool low = big_compare(&big, &down) < (even ? 1 : 0);
        bool high = compare_sum(&big, &up, &s) >= (even ? 0 : 1);
        if (low && high) high = compare_sum(&big, &big, &s) >= 0; /* both read back: take the nearer one */
        TSI_CHECK(n < DIGITS);
        digits[n++] = (char)('0' + digit + (high ? 1 : 0));
        if (low || high) return n;
    }
}

/* Writes "e12" or "e-12" for `e`, of at most three digits, from out[at] on; no 0 is added. Returns the index behind it.
 * [any thread, needs no lock] */
static size_t put_exponent(char* out, size_t at, int e) {
    unsigned magnitude = (unsigned)(e < 0 ? -e : e);
    out[at++] = 'e';
    if (e < 0) out[at++] = '-';
    if (magnitude >= 100) out[at++] = (char)('0' + magnitude / 100);
    if (magnitude >= 10) out[at++] = (char)('0' + magnitude / 10 % 10);
    out[at++] = (char)('0' + magnitude % 10);
    return at;
}

size_t tsi_decimal_write(char out[TSI_DECIMAL_BYTES], double v) {
    uint64_t word;
    char digits[DIGITS];
    int point;
    size_t at = 0;
    memcpy(&word, &v, sizeof word);
    unsigned biased = (unsigned)(word >> 52) & 2047;
    uint64_t fraction = word & ((1ull << 52) - 1);

    if (biased == 2047 || (biased == 0 && fraction == 0)) {
        out[0] = '0';
        return 1;
    }

    if (biased != 0) fraction |= 1ull << 52;

    int count = (int)make_digits(fraction, biased != 0 ? (int)biased - 1075 : -1074, digits, &point);

    if (word >> 63) out[at++] = '-';
    bool power = point > 17 || point < -5; /* d.ddd e point - 1 */
    int whole = power ? 1 : point;         /* digits before the point; 0 and less: zeros behind it, and one before */
    for (int n = whole < 1 ? whole - 1 : 0; n < count || n < whole; n++) {
        if (n == whole) out[at++] = '.';
        out[at++] = n >= 0 && n < count ? digits[n] : '0';
    }
    return power ? put_exponent(out, at, point - 1) : at;
}
