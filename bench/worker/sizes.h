/* sizes.h - the sizes of a request and of other phases, drawn once, the same for everybody. */
#ifndef BENCH_SIZES_H
#define BENCH_SIZES_H

enum {
    REQUEST_OBJECTS = 225,
    REQUEST_BYTES = 52 << 10,
    BIG_OBJECTS = 1085, /* 250 KB */
    BIG_BYTES = 250000,
    SMALL_OBJECTS = 10,
    SMALL_BYTES = 1760
};

static const uint16_t small_sizes[SMALL_OBJECTS] = {64, 256, 96, 128, 384, 64, 192, 128, 256, 192};

/* Eight sizes in a shuffled deck, small ones more often: 225 of them are 52 KB. */
static inline size_t draw_sizes(uint16_t* sizes, unsigned n) {
    static const uint8_t weight[8] = {5, 4, 5, 3, 3, 2, 2, 2};
    uint8_t deck[26];
    unsigned cards = 0;
    for (unsigned c = 0; c < 8; c++)
        for (unsigned k = 0; k < weight[c]; k++) deck[cards++] = (uint8_t)c;
    size_t total = 0;
    uint64_t random = 12345;
    for (unsigned i = 0; i < n; i++) {
        if (i % 26 == 0)
            for (unsigned k = 25; k > 0; k--) {
                unsigned j = next_random(&random) % (k + 1);
                uint8_t card = deck[k];
                deck[k] = deck[j], deck[j] = card;
            }
        sizes[i] = eight_sizes[deck[i % 26]];
        total += sizes[i];
    }
    return total;
}

#endif
