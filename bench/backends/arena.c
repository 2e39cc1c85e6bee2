/* arena.c - the bump arena behind calls, as a library has it: a file of its own, so that nothing is inlined. */
#include "backends/arena_bump.h"

void arena_open(struct bk_phase* ph, size_t hint);
void* arena_take(struct bk_phase* ph, size_t size);
void arena_end(struct bk_phase* ph);

void arena_open(struct bk_phase* ph, size_t hint) { bump_open(ph, hint); }

void* arena_take(struct bk_phase* ph, size_t size) { return bump_take(ph, size); }

void arena_end(struct bk_phase* ph) { bump_end(ph); }
