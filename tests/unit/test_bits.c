/* test_bits.c - words and sizes. */
#include "kit/inside.h"

#include "base/bits.h"
#include "mem/slab.h"

static void logarithms(void) {
    for (unsigned n = 0; n < 64; n++) {
        REQUIRE_EQ(tsi_ctz64(1ull << n), n);
        REQUIRE_EQ(tsi_ctz64(~0ull << n), n);
        REQUIRE_EQ(tsi_log2(1ull << n), n);
        REQUIRE_EQ(tsi_log2((1ull << n) | 1), n);
        REQUIRE(tsi_is_pow2(1ull << n));
        REQUIRE_EQ(tsi_is_pow2((1ull << n) + 2), n == 1);
        REQUIRE_EQ(tsi_popcount(~0ull >> n), 64 - n);
    }
    REQUIRE(!tsi_is_pow2(0));
    REQUIRE_EQ(tsi_popcount(0), 0);
}

static void rounding(void) {
    REQUIRE_EQ(tsi_align_up(0, 16), 0);
    REQUIRE_EQ(tsi_align_up(1, 16), 16);
    REQUIRE_EQ(tsi_align_up(16, 16), 16);
    REQUIRE_EQ(tsi_align_up(4097, 4096), 8192);
    REQUIRE_EQ(tsi_ceil_pow2(1), 1);
    for (unsigned n = 1; n < 63; n++) {
        REQUIRE(tsi_ceil_pow2(1ull << n) == 1ull << n);
        REQUIRE(tsi_ceil_pow2((1ull << n) + 1) == 1ull << (n + 1));
    }
}

static void shares(void) {
    REQUIRE(tsi_share(0, 5, 7) == 0);
    REQUIRE(tsi_share(10, 2, 3) == 6);
    REQUIRE(tsi_share(UINT64_MAX, 3, 3) == UINT64_MAX); /* the product has more than 64 bits */
    REQUIRE(tsi_share((1ull << 63) + 2, 1ull << 40, 1ull << 41) == (1ull << 62) + 1);
}

static void lowest_bits(void) {
    uint64_t w = 0x8000000000000451ull;
    static const uint64_t want[] = {0, 0x1, 0x11, 0x51, 0x451, 0x8000000000000451ull, 0x8000000000000451ull};
    for (unsigned n = 0; n < 7; n++) REQUIRE(tsi_lowest_bits(w, n) == want[n]);
    REQUIRE(tsi_lowest_bits(~0ull, 64) == ~0ull);
    REQUIRE(tsi_lowest_bits(0, 5) == 0);
}

static void tags(void) {
    uint64_t tag = tsi_tag(0xfedcba98u, 0xabcdef, TSI_SLAB_PARTIAL | TSI_SLAB_HANDLED);
    REQUIRE_EQ(tsi_tag_seq(tag), 0xfedcba98u);
    REQUIRE_EQ(tsi_tag_index(tag), 0xabcdef);
    REQUIRE_EQ(tsi_tag_state(tag), TSI_SLAB_PARTIAL);
    REQUIRE_EQ(tsi_seq_next(7), 8);
    REQUIRE_EQ(tsi_seq_next(UINT32_MAX), 1); /* 0 is never in use */
}

static void remote_words(void) {
    for (uint32_t seq = 1; seq != 0; seq <<= 1) {
        for (unsigned half = 0; half < 2; half++) {
            uint64_t w = tsi_remote_fresh(half, seq);
            REQUIRE(tsi_remote_is(half, w, seq));
            /* Neither bits nor token reach it. */
            REQUIRE(tsi_remote_is(half, w | (half == 0 ? TSI_REMOTE_TOKEN : 0) | tsi_remote_mask(half), seq));
            REQUIRE(!tsi_remote_is(half, w, seq + 1));
        }
        REQUIRE_EQ(tsi_remote_bits(tsi_remote_fresh(0, seq) | TSI_REMOTE_TOKEN, tsi_remote_fresh(1, seq)), 0);
    }
    for (unsigned slot = 0; slot < 64; slot++) {
        TsiLine l = {.remote = {tsi_remote_fresh(0, UINT32_MAX) | TSI_REMOTE_TOKEN, tsi_remote_fresh(1, UINT32_MAX)}};
        REQUIRE_EQ(tsi_remote_bit(slot) & tsi_remote_mask(slot >> 5), tsi_remote_bit(slot));
        tsi_store_relaxed(&l.remote[slot >> 5], tsi_load_relaxed(&l.remote[slot >> 5]) | tsi_remote_bit(slot));
        REQUIRE(tsi_remote_bits(tsi_load_relaxed(&l.remote[0]), tsi_load_relaxed(&l.remote[1])) == 1ull << slot);
        REQUIRE(tsi_remote_seen(&l) == 1ull << slot);
    }
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(logarithms),  CHECK_CASE(rounding), CHECK_CASE(shares),
        CHECK_CASE(lowest_bits), CHECK_CASE(tags),     CHECK_CASE(remote_words),
    };
    return CHECK_RUN(argc, argv, tests);
}
