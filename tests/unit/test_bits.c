/* test_bits.c - words and sizes. */
#include "unit.h"

#include "base/bits.h"
#include "mem/slab.h"

static void logarithms(void** state) {
    (void)state;
    for (unsigned n = 0; n < 64; n++) {
        assert_int_equal(tsi_ctz64(1ull << n), n);
        assert_int_equal(tsi_ctz64(~0ull << n), n);
        assert_int_equal(tsi_log2(1ull << n), n);
        assert_int_equal(tsi_log2((1ull << n) | 1), n);
        assert_true(tsi_is_pow2(1ull << n));
        assert_int_equal(tsi_is_pow2((1ull << n) + 2), n == 1);
        assert_int_equal(tsi_popcount(~0ull >> n), 64 - n);
    }
    assert_false(tsi_is_pow2(0));
    assert_int_equal(tsi_popcount(0), 0);
}

static void rounding(void** state) {
    (void)state;
    assert_int_equal(tsi_align_up(0, 16), 0);
    assert_int_equal(tsi_align_up(1, 16), 16);
    assert_int_equal(tsi_align_up(16, 16), 16);
    assert_int_equal(tsi_align_up(4097, 4096), 8192);
    assert_int_equal(tsi_ceil_pow2(1), 1);
    for (unsigned n = 1; n < 63; n++) {
        assert_true(tsi_ceil_pow2(1ull << n) == 1ull << n);
        assert_true(tsi_ceil_pow2((1ull << n) + 1) == 1ull << (n + 1));
    }
}

static void shares(void** state) {
    (void)state;
    assert_true(tsi_share(0, 5, 7) == 0);
    assert_true(tsi_share(10, 2, 3) == 6);
    assert_true(tsi_share(UINT64_MAX, 3, 3) == UINT64_MAX); /* the product has more than 64 bits */
    assert_true(tsi_share((1ull << 63) + 2, 1ull << 40, 1ull << 41) == (1ull << 62) + 1);
}

static void lowest_bits(void** state) {
    (void)state;
    uint64_t w = 0x8000000000000451ull;
    static const uint64_t want[] = {0, 0x1, 0x11, 0x51, 0x451, 0x8000000000000451ull, 0x8000000000000451ull};
    for (unsigned n = 0; n < 7; n++) assert_true(tsi_lowest_bits(w, n) == want[n]);
    assert_true(tsi_lowest_bits(~0ull, 64) == ~0ull);
    assert_true(tsi_lowest_bits(0, 5) == 0);
}

static void tags(void** state) {
    (void)state;
    uint64_t tag = tsi_tag(0xfedcba98u, 0xabcdef, TSI_SLAB_PARTIAL | TSI_SLAB_HANDLED);
    assert_int_equal(tsi_tag_seq(tag), 0xfedcba98u);
    assert_int_equal(tsi_tag_index(tag), 0xabcdef);
    assert_int_equal(tsi_tag_state(tag), TSI_SLAB_PARTIAL);
    assert_int_equal(tsi_seq_next(7), 8);
    assert_int_equal(tsi_seq_next(UINT32_MAX), 1); /* 0 is never in use */
}

static void remote_words(void** state) {
    (void)state;
    for (uint32_t seq = 1; seq != 0; seq <<= 1) {
        for (unsigned half = 0; half < 2; half++) {
            uint64_t w = tsi_remote_fresh(half, seq);
            assert_true(tsi_remote_is(half, w, seq));
            /* Neither bits nor token reach it. */
            assert_true(tsi_remote_is(half, w | (half == 0 ? TSI_REMOTE_TOKEN : 0) | tsi_remote_mask(half), seq));
            assert_false(tsi_remote_is(half, w, seq + 1));
        }
        assert_int_equal(tsi_remote_bits(tsi_remote_fresh(0, seq) | TSI_REMOTE_TOKEN, tsi_remote_fresh(1, seq)), 0);
    }
    for (unsigned slot = 0; slot < 64; slot++) {
        TsiLine l = {.remote = {tsi_remote_fresh(0, UINT32_MAX) | TSI_REMOTE_TOKEN, tsi_remote_fresh(1, UINT32_MAX)}};
        assert_int_equal(tsi_remote_bit(slot) & tsi_remote_mask(slot >> 5), tsi_remote_bit(slot));
        tsi_store_relaxed(&l.remote[slot >> 5], tsi_load_relaxed(&l.remote[slot >> 5]) | tsi_remote_bit(slot));
        assert_true(tsi_remote_bits(tsi_load_relaxed(&l.remote[0]), tsi_load_relaxed(&l.remote[1])) == 1ull << slot);
        assert_true(tsi_remote_seen(&l) == 1ull << slot);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms), cmocka_unit_test(rounding), cmocka_unit_test(shares),     cmocka_unit_test(lowest_bits),
        cmocka_unit_test(tags),       cmocka_unit_test(remote_words),
    };
    return cmocka_run_group_tests_name("bits", tests, NULL, NULL);
}
