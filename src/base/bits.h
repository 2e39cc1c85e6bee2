/*
 * bits.h - words, sizes and hints. No state, no OS.
 */
#ifndef TSI_BASE_BITS_H
#define TSI_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TSI_LIKELY(x) __builtin_expect(!!(x), 1)
#define TSI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TSI_COLD __attribute__((cold, noinline))
#define TSI_NOINLINE __attribute__((noinline))
#define TSI_INLINE static inline __attribute__((always_inline))
/* Marks a function that reads, as plain memory, words which others write: hidden from ThreadSanitizer. */
#define TSI_TSAN_BLIND __attribute__((no_sanitize("thread")))
#define TSI_KIB(n) ((size_t)(n) << 10)
#define TSI_MIB(n) ((size_t)(n) << 20)
#define TSI_GIB(n) ((uint64_t)(n) << 30)

/* Returns the index of the lowest set bit; w must not be 0. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_ctz64(uint64_t w) { return (unsigned)__builtin_ctzll(w); }

/* Returns the index of the lowest set bit as 64 bits, for a fast path that scales it: gcc would extend an int's sign
 * there. w must not be 0. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_ctz64_wide(uint64_t w) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    uint64_t at;
    __asm__("rep bsfq %1, %0" : "=r"(at) : "r"(w) : "cc");
    return at;
#else
    return (uint64_t)__builtin_ctzll(w);
#endif
}

/* Returns the index of the highest set bit; w must not be 0. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_log2(uint64_t w) { return 63u - (unsigned)__builtin_clzll(w); }

/* Returns the number of set bits, inline, because the instruction is not in every x86-64 and the library routine is a
 * call: the parallel sums of Warren, "Hacker's Delight", section 5-1. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_popcount(uint64_t w) {
#if defined(__POPCNT__) || defined(__aarch64__)
    return (unsigned)__builtin_popcountll(w);
#else
    w -= w >> 1 & 0x5555555555555555u;
    w = (w & 0x3333333333333333u) + (w >> 2 & 0x3333333333333333u);
    return (unsigned)(((w + (w >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
#endif
}

/* Returns true if n is a power of two; false for 0. [any thread, needs no lock] */
TSI_INLINE bool tsi_is_pow2(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

/* Returns true if bit `at`, counted from bit 0 of words[0], is set in an array of words. [no other writer] */
TSI_INLINE bool tsi_bit_is(const uint64_t* words, uint32_t at) { return words[at >> 6] >> (at & 63) & 1; }
/* Sets bit `at` (0..63) of the word if `on`, otherwise clears it, by a plain load and store. [no other user] */
TSI_INLINE void tsi_word_set(uint64_t* word, unsigned at, bool on) {
    uint64_t bit = 1ull << at;
    *word = on ? *word | bit : *word & ~bit;
}
/* Sets bit `at` of an array of words if `on`, otherwise clears it, by a plain load and store. [no other user] */
TSI_INLINE void tsi_bit_set(uint64_t* words, uint32_t at, bool on) { tsi_word_set(&words[at >> 6], at & 63, on); }

/* Returns n rounded up to a multiple of a, a power of two. n + a - 1 must not overflow. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_align_up(uint64_t n, uint64_t a) { return (n + a - 1) & ~(a - 1); }

/* Returns n * of / all, rounded down; all is not 0, and the result fits. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_share(uint64_t n, uint64_t of, uint64_t all) {
    __extension__ typedef unsigned __int128 Wide;
    return (uint64_t)((Wide)n * of / all);
}

/* Returns scale * part / whole, or 0 if whole is 0. [any thread, needs no lock] */
TSI_INLINE double tsi_ratio(uint64_t part, uint64_t whole, double scale) {
    return whole != 0 ? scale * (double)part / (double)whole : 0.0;
}

/* Zeroes `bytes` at p, both multiples of 8, writing only words that are not zero: pages that the system has not filled
 * yet stay with it. [no other user] */
TSI_INLINE void tsi_clear(void* p, size_t bytes) {
    typedef uint64_t __attribute__((may_alias)) Word;
    for (Word *at = p, *end = at + bytes / sizeof *at; at < end; at++)
        if (*at != 0) *at = 0;
}

/* Returns the least power of two >= n, n in 1..2^63. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_ceil_pow2(uint64_t n) { return n <= 1 ? 1 : 1ull << (tsi_log2(n - 1) + 1); }

/* Returns the lowest n set bits of w, as a word; all of w if it has no more than n. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_lowest_bits(uint64_t w, unsigned n) {
    uint64_t rest = w;
    if (n >= tsi_popcount(w)) return w;
    for (; n != 0 && rest != 0; n--) rest &= rest - 1;
    return w & ~rest;
}

/* Returns x rotated right by `bits`, 0..63. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_rotate_right(uint64_t x, unsigned bits) { return x >> bits | x << (-bits & 63); }

#endif
