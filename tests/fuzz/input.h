/*
 * input.h - a fuzzer's bytes, taken one after the other; zeros when they are used up.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Input {
    const uint8_t* at;
    size_t left;
} Input;

/* Takes a number of n bytes, at most 8. */
static inline uint64_t take(Input* in, unsigned n) {
    uint64_t v = 0;
    for (; n > 0; n--) {
        v = v << 8 | (in->left != 0 ? *in->at : 0);
        if (in->left != 0) in->at++, in->left--;
    }
    return v;
}

/* Takes n bytes to `to`, zeros for those that are missing. */
static inline void take_bytes(Input* in, void* to, size_t n) {
    size_t has = n < in->left ? n : in->left;
    memset(to, 0, n);
    if (has != 0) memcpy(to, in->at, has);
    in->at += has;
    in->left -= has;
}

/* Takes a number near a power of two, near an end of the range, small, or of any bits. */
static inline uint64_t take_number(Input* in) {
    uint64_t how = take(in, 1), near = (uint64_t)1 << how / 4 % 64;
    switch (how % 4) {
    case 0:
        return how / 4;
    case 1:
        return near + take(in, 1) % 16 - 8;
    case 2:
        return take(in, 2);
    default:
        return take(in, 8);
    }
}

/* Returns true for one input in `most`, whatever the others like it are: what is dear is done for so few. A byte of the
 * input could say as much, and would soon be in every input of the corpus. */
static inline bool one_in(unsigned most, const uint8_t* data, size_t size) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) h = (h ^ data[i]) * 0x100000001b3u;
    return (h ^ h >> 29) * 0x9e3779b97f4a7c15u >> 32 < ((uint64_t)1 << 32) / most;
}

/* What libFuzzer calls; replay.c calls the first two. */
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most); /* libFuzzer's own mutations */
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed);

#endif
