/*
 * sizes.h - the sizes of a request and of other phases. Which they are is fixed, so that every seed asks for the same
 * bytes; their order is drawn from the seed, the same for everybody in a repetition.
 */
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

static uint16_t small_sizes[SMALL_OBJECTS] = {64, 256, 96, 128, 384, 64, 192, 128, 256, 192};

static inline void shuffle_sizes(uint16_t* sizes, unsigned n, uint64_t sequence) {
    uint64_t random = seeded(sequence);
    for (unsigned k = n; k-- > 1;) {
        unsigned j = next_random(&random) % (k + 1);
        uint16_t size = sizes[k];
        sizes[k] = sizes[j], sizes[j] = size;
    }
}

/* Eight sizes, small ones more often: 225 of them are 52 KB. The first 26 hold each size as often as its weight; a number
 * that is no multiple of 26 ends with every third of the deck. */
static inline void draw_sizes(uint16_t* sizes, unsigned n) {
    static const uint8_t weight[8] = {5, 4, 5, 3, 3, 2, 2, 2};
    uint16_t deck[26];
    unsigned cards = 0;
    for (unsigned c = 0; c < 8; c++)
        for (unsigned k = 0; k < weight[c]; k++) deck[cards++] = eight_sizes[c];
    for (unsigned i = 0; i < n; i++) sizes[i] = deck[i * 3 % 26];
    shuffle_sizes(sizes, n, 4);
}

#endif
