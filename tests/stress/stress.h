/*
 * stress.h - what the stress programs share beside the kit: cookies, threads that come and go, how a run ends.
 *
 * Ownership is proved by contents: whoever gets an object writes its own cookie over all of it and
 * checks every word before the object is freed or handed on, so an object that two parties hold is
 * noticed by one of them. Work is counted in operations, never in time; TSLAB_TEST_SCALE
 * multiplies it, and sanitizer builds do a small part of it.
 */
#ifndef STRESS_H
#define STRESS_H

#define CHECK_DIVISOR (CHECK_TSAN ? 16 : CHECK_ASAN ? 4 : 1)
#define KIT_RESERVE_BYTES 0 /* the default */

#include "kit/inside.h"

#include <stdatomic.h>

/* The default of SlabOptions.warm_limit_bytes: nothing lives and nothing is open, and no more than that may have been learned. */
#define WARM_BOUND ((uint64_t)64 << 20)

/* ---- dice ------------------------------------------------------------------------------- */

struct dice {
    uint64_t state;
};

static inline uint64_t roll(struct dice* d) { return kit_rand(&d->state); }

static inline uint64_t below(struct dice* d, uint64_t n) { return roll(d) % n; }

static inline bool chance(struct dice* d, unsigned one_in) { return below(d, one_in) == 0; }

/* ---- cookies ---------------------------------------------------------------------------- */

/* Start of every object; the rest is filled with words that depend on cookie and place. */
struct cookie {
    uint64_t value, size_mixed;
};

enum { LEAST = sizeof(struct cookie) };

static inline uint64_t cookie_word(uint64_t value, size_t at) { return (value + at) * 0x9e3779b97f4a7c15u; }

static inline void cookie_write(void* p, size_t size, uint64_t value) {
    struct cookie* head = p;
    head->value = value;
    head->size_mixed = cookie_word(value, size);
    uint64_t* words = p;
    for (size_t i = 2; i < size / 8; i++) words[i] = cookie_word(value, i);
}

/* Checks every word of an object written with cookie_write. */
static inline void cookie_check(const void* p, size_t size) {
    const struct cookie* head = p;
    uint64_t value = head->value;
    REQUIRE_OR(head->size_mixed == cookie_word(value, size), "object %p of %zu bytes: its head is not its owner's", p,
               size);
    const uint64_t* words = p;
    for (size_t i = 2; i < size / 8; i++)
        REQUIRE_OR(words[i] == cookie_word(value, i), "object %p of %zu bytes: word %zu is another owner's", p, size,
                   i);
}

static inline size_t small_size(struct dice* d) {
    static const uint16_t sizes[] = {16, 48, 64, 96, 128, 128, 128, 192, 256, 384, 512, 768};
    return chance(d, 40) ? LEAST + 8 * below(d, 1000) : sizes[below(d, 12)];
}

/* An object that travels between threads: its size goes with the pointer. */
struct parcel {
    struct cookie cookie;
    uint64_t size;
};

static inline struct parcel* parcel_make(void* p, size_t size, uint64_t value) {
    struct parcel* parcel = p;
    if (!p) return NULL;
    cookie_write(p, size, value);
    parcel->size = size;
    return parcel;
}

static inline size_t parcel_size(struct dice* d) {
    size_t size = small_size(d);
    return size < sizeof(struct parcel) ? sizeof(struct parcel) : size;
}

static inline void parcel_check(struct parcel* parcel) {
    size_t size = parcel->size;
    REQUIRE_OR(size >= sizeof *parcel && size < (64u << 10), "parcel %p claims %zu bytes", (void*)parcel, size);
    const uint64_t* words = (const uint64_t*)parcel;
    uint64_t value = parcel->cookie.value;
    REQUIRE_OR(parcel->cookie.size_mixed == cookie_word(value, size), "parcel %p: its head is not its owner's",
               (void*)parcel);
    for (size_t i = sizeof *parcel / 8; i < size / 8; i++)
        REQUIRE_OR(words[i] == cookie_word(value, i), "parcel %p of %zu bytes: word %zu is another owner's",
                   (void*)parcel, size, i);
}

/* ---- threads ---------------------------------------------------------------------------- */

struct slot {
    int index, lives;
    uint64_t ops_per_life;
    struct dice dice;
    void (*live)(struct slot* self);
    void (*after)(struct slot* self); /* on the keeper, when a life has ended; may be NULL */
    void* own;                        /* the program's */
    pthread_t keeper;
};

static inline void* slot_life(void* arg) {
    struct slot* self = arg;
    self->live(self);
    return NULL;
}

static inline void* slot_keeper(void* arg) {
    struct slot* self = arg;
    for (int i = 0; i < self->lives; i++) {
        pthread_t thread;
        REQUIRE_OR(pthread_create(&thread, NULL, slot_life, self) == 0, "no thread");
        pthread_join(thread, NULL);
        if (self->after) self->after(self);
    }
    return NULL;
}

enum { MAX_SLOTS = 32 };

/* Runs n slots, each a succession of `lives` threads, and returns when all are gone. */
static inline void run_slots(int n, int lives, uint64_t ops_per_life, uint64_t seed, void (*live)(struct slot*),
                             void (*after)(struct slot*)) {
    static struct slot slots[MAX_SLOTS];
    REQUIRE_OR(n <= MAX_SLOTS, "too many slots");
    for (int i = 0; i < n; i++) {
        slots[i] =
            (struct slot){.index = i, .lives = lives, .ops_per_life = ops_per_life, .live = live, .after = after};
        slots[i].dice.state = seed * 1000003u + (uint64_t)i * 7919u;
        REQUIRE_OR(pthread_create(&slots[i].keeper, NULL, slot_keeper, &slots[i]) == 0, "no thread");
    }
    for (int i = 0; i < n; i++) pthread_join(slots[i].keeper, NULL);
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Nothing runs and nothing should be live: closes all ring epochs and looks at what is left. */
static inline void check_all_gone(SlabAllocator* a, uint32_t ring_size) {
    SlabGlobalStats g;
    kit_check(a);
    slab_stats_global(a, &g);
    REQUIRE_OR(g.live_objects == 0 && g.live_bytes == 0, "%llu objects (%llu bytes) are live, none should be",
               (unsigned long long)g.live_objects, (unsigned long long)g.live_bytes);
    for (uint32_t id = 0; id < ring_size; id++) epoch_close(a, id);
    kit_check(a);
    slab_stats_global(a, &g);
    REQUIRE_OR(
        g.committed_bytes == g.warm_bytes && g.warm_bytes <= g.warm_budget_bytes + g.quarantine_bytes &&
            g.warm_budget_bytes <= WARM_BOUND,
        "%llu bytes are committed after everything was closed, %llu kept warm, of a budget of %llu and a quarantine",
        (unsigned long long)g.committed_bytes, (unsigned long long)g.warm_bytes,
        (unsigned long long)g.warm_budget_bytes);
    slab_trim(a);
    kit_check(a);
    slab_stats_global(a, &g);
    REQUIRE_OR(g.committed_bytes == 0, "%llu bytes are committed after a trim", (unsigned long long)g.committed_bytes);
}

/* No misuse happened, so none may have been counted; late_double_free would be the library's own. */
static inline void check_no_misuse(SlabAllocator* a) {
    SlabRefusals r;
    slab_stats_refusals(a, &r);
    REQUIRE_OR(r.double_free == 0 && r.late_double_free == 0 && r.interior_pointer == 0 && r.foreign_pointer == 0 &&
                   r.stale_free == 0 && r.bad_handle == 0,
               "misuse counted: double %llu late %llu interior %llu foreign %llu stale %llu bad handle %llu",
               (unsigned long long)r.double_free, (unsigned long long)r.late_double_free,
               (unsigned long long)r.interior_pointer, (unsigned long long)r.foreign_pointer,
               (unsigned long long)r.stale_free, (unsigned long long)r.bad_handle);
}

#endif
