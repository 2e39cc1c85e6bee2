/* stack.c - see stack.h. */
#include "os/stack.h"

#include "base/sanitize.h"

typedef struct Search {
    uintptr_t in, low, high;
} Search;

/* Sets low and high of *ctx, a Search, if the mapping is readable and holds ctx->in. Returns false then, which ends the
 * walk over mappings; true, with *ctx unchanged, to go on. [any thread, needs no lock] */
static bool look(const TsiMapping* mapping, void* ctx) {
    Search* search = ctx;
    if (search->in < mapping->low || search->in >= mapping->high || !mapping->readable) return true;
    search->low = mapping->low;
    search->high = mapping->high;
    return false;
}

bool tsi_stack_bounds(uintptr_t in, uintptr_t* low, uintptr_t* high) {
    Search search = {in, 0, 0};
    tsi_os.each_mapping(look, &search);
    *low = search.low;
    *high = search.high;
    return search.high != 0;
}

/* Returns true if both words of the frame at fp, which is aligned to a word, can be read. *page is read and set: the
 * address of the page last found readable, + 1; the caller sets it to 0 before the first call.
 * [any thread, needs no lock] */
static bool can_read(uintptr_t fp, uintptr_t* page) {
    for (unsigned n = 0; n < 2; n++) {
        uintptr_t at = fp + n * sizeof(uintptr_t), of = (at & ~(uintptr_t)(tsi_os.page_bytes - 1)) + 1;
        if (of != *page && !tsi_os.is_readable((const void*)at)) return false;
        *page = of;
    }
    return true;
}

/* Returns true if both words of a frame at fp would lie in [low, high) and fp is aligned to a word.
 * [any thread, needs no lock] */
static bool lies_in(uintptr_t fp, uintptr_t low, uintptr_t high) {
    bool within = fp >= low && fp < high;
    return within && high - fp >= 2 * sizeof(uintptr_t) && fp % sizeof(uintptr_t) == 0;
}

/* Reads frames of other functions, whose variables sanitizers watch. */
TSI_UNWATCHED unsigned tsi_stack_walk(uintptr_t fp, uintptr_t low, uintptr_t high, uintptr_t* out, unsigned max) {
    unsigned n = 0;
    uintptr_t page = 0;
#if defined(__x86_64__) || defined(__aarch64__)
    while (n < max && lies_in(fp, low, high) && can_read(fp, &page)) {
        const uintptr_t* frame = (const uintptr_t*)fp;
        if (frame[1] == 0) break; /* the outermost */
        out[n++] = frame[1];
        low = fp + 2 * sizeof(uintptr_t);
        fp = frame[0];
    }
#else
    (void)fp, (void)low, (void)high, (void)out, (void)max, (void)page, (void)lies_in, (void)can_read;
#endif
    return n;
}
