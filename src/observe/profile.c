/* profile.c - see profile.h. */
#include "observe/profile.h"

#include "state/arena.h"
#include "state/names.h"
#include "mem/region.h"
#include "os/stack.h"

#include <errno.h>
#include <string.h>

/* ---- chance: without the mathematical library ---- */

/* Returns the natural logarithm of u, which lies in (0, 1] and is not subnormal, to nearly the precision of a double;
 * without libm. [any thread, needs no lock] */
static double ln(double u) {
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & ((1ull << 52) - 1)) | 1023ull << 52;
    double m, t, sum = 0;
    memcpy(&m, &bits, sizeof m); /* in [1, 2): ln m = 2 artanh((m - 1) / (m + 1)), and that is at most 1/3 */
    t = (m - 1) / (m + 1);
    double power = t;
    for (int k = 1; k < 32; k += 2, power *= t * t) sum += power / k;
    return 2 * sum + exponent * 0.69314718055994530942;
}

/* Returns 1 - exp(-x), the chance that a mark lies within x mean distances; x > 0. [any thread, needs no lock] */
static double chance_within(double x) {
    if (x > 40) return 1;
    double y = x, sum = 0, term = 1;
    unsigned halved = 0;
    for (; y > 0.5; y /= 2) halved++;
    for (int k = 1; k < 20; k++) sum -= term *= -y / k;
    for (; halved != 0; halved--) sum = sum * (2 - sum); /* of twice the distance: 1 - (1 - sum)^2 */
    return sum;
}

double tsi_profile_weight(uint64_t bytes, uint64_t mean) {
    return mean == 1 ? 1 : 1 / chance_within((double)bytes / (double)mean);
}

/* Returns a random number in (0, 1], and moves *state on, which is not 0 before and after: xorshift64* (S. Vigna,
 * 2016). [the one user of *state] */
static double uniform(uint64_t* state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * 0x2545f4914f6cdd1dull >> 11) + 1) * (1.0 / (double)(1ull << 53));
}

/* Sets b->profile_left to a new random distance to the thread's next mark, in bytes, b->profile_mean on average: 0
 * with a mean of 1, where a mark lies on each byte. There is a profile. [own thread, needs no lock] */
static void next_mark(TsiBinding* b) {
    if (b->profile_mean == 1) b->profile_left = 0;
    else b->profile_left = (uint64_t)(-ln(uniform(&b->profile_dice)) * (double)b->profile_mean);
}

void tsi_profile_start(TsiBinding* b, uint64_t mean) {
    b->profile_mean = mean;
    b->profile_hit = false;
    b->past = 0;
    b->profile_dice = tsi_os.random() | 1;
    if (mean != 0) next_mark(b);
}

/* Counts n allocations of `bytes` bytes, at least 1, or those up to and including the one with the next mark. Returns
 * how many come before that one, and draws b->profile_left anew; returns n if the mark lies behind all, and lowers
 * b->profile_left, the bytes up to it, by n * bytes. There is a profile. [own thread, needs no lock] */
static uint64_t before_mark(TsiBinding* b, uint64_t n, uint64_t bytes) {
    if (b->profile_left >= n * bytes) {
        b->profile_left -= n * bytes;
        return n;
    }
    uint64_t k = b->profile_left / bytes;
    next_mark(b); /* from the end of that allocation: the distances have no memory */
    return k;
}

void tsi_profile_one(TsiBinding* b, uint64_t bytes) {
    if (b->profile_mean != 0 && before_mark(b, 1, bytes) == 0) b->profile_hit = true;
}

uint64_t tsi_profile_cut(TsiBinding* b, TsiLine* l, uint32_t bytes, uint64_t ready) {
    unsigned n = tsi_popcount(ready), first = 0;
    uint8_t flags = tsi_load_relaxed(&l->flags);
    bool marked = (flags & TSI_LINE_CUT) != 0; /* its refill before was cut here */
    if (marked) tsi_store_relaxed(&l->flags, flags & (uint8_t)~TSI_LINE_CUT);
    uint64_t k = marked ? 0 : before_mark(b, n, bytes);
    if (k == 0) { /* the allocation that asked for the refill */
        b->profile_hit = true;
        first = 1;
        k = before_mark(b, n - 1, bytes);
    }
    if (first + k == n) return ready;
    tsi_store_relaxed(&l->flags, tsi_load_relaxed(&l->flags) | TSI_LINE_CUT);
    return tsi_lowest_bits(ready, first + (unsigned)k);
}

/* ---- regions ---- */

/* Draws the first mark in [from, end) of a region, at a random distance from `from`, b->profile_mean bytes on average.
 * Returns its offset, `from` with a mean of 1, or `end` if it does not fall there. These places must have had no mark
 * before. There is a profile. [own thread, needs no lock] */
static uint32_t mark_in(TsiBinding* b, uint32_t from, uint32_t end) {
    double u = uniform(&b->profile_dice), mean = (double)b->profile_mean;
    if (b->profile_mean == 1) return from;
    if ((1 - u) * mean >= end - from) return end; /* -ln u >= 1 - u: normally the logarithm is not needed */
    double bytes = -ln(u) * mean;
    return bytes < end - from ? from + (uint32_t)bytes : end;
}

/* Sets the owner's limit of the region r to the start of the granule that the offset `mark` is in, so that the
 * allocation on it misses. [owner, in bracket] */
static void limit(TsiRegion* r, uint32_t mark) { tsi_store_relaxed(&r->lim, mark & ~(TSI_GRANULE - 1u)); }

void tsi_profile_bumped(TsiBinding* b, TsiHeap* h, uint32_t bytes, bool fresh) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t rel = tsi_load_relaxed(&r->rel), start = rel - bytes, end = tsi_region_room(r);
    if (fresh || h->mark < start) h->mark = mark_in(b, start, end); /* or it lay in a gap */
    if (h->mark < rel) {
        b->profile_hit = true;
        h->mark = mark_in(b, rel, end);
    }
    limit(r, h->mark);
}

void tsi_profile_solo(TsiBinding* b, TsiRegion* r, uint32_t bytes) {
    tsi_profile_one(b, bytes);
    limit(r, mark_in(b, bytes, tsi_region_room(r)));
}

void tsi_profile_grown(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t end) {
    bool current = r == tsi_load_relaxed(&h->region);
    uint32_t mark = current ? h->mark : tsi_load_relaxed(&r->lim);
    if (mark < end) {
        b->profile_hit = true;
        mark = mark_in(b, end, tsi_region_room(r));
    }
    if (current) h->mark = mark;
    limit(r, mark);
}

/* ---- tables ---- */

bool tsi_profile_init(TsiProfile* profile, uint64_t mean, bool escapes) {
    const size_t stacks = TSI_PROFILE_STACKS * sizeof(TsiProfileStack),
                 live = TSI_PROFILE_LIVE * sizeof(TsiProfileLive);
    profile->mean = mean == 0 && escapes ? 1 : mean;
    profile->escapes = escapes;
    tsi_lock_init(&profile->lock, TSI_LOCK_PROFILE);
    if (profile->mean == 0) return true;

    profile->mapping_bytes =
        tsi_align_up(stacks + live + TSI_PROFILE_INDEX * sizeof *profile->index, tsi_os.page_bytes);
    uint8_t* at = tsi_os_map(profile->mapping_bytes);
    if (at == NULL) return false;
    profile->stacks = (TsiProfileStack*)(void*)at;
    profile->live = (TsiProfileLive*)(void*)(at + stacks);
    profile->index = (uint16_t*)(void*)(at + stacks + live);
    return true;
}

void tsi_profile_destroy(TsiProfile* profile) {
    if (profile->stacks != NULL) tsi_os.unmap(profile->stacks, profile->mapping_bytes);
    profile->stacks = NULL;
}

/* Finds the record of the stack of `depth` frames, innermost first, TSI_PROFILE_FRAMES at most, with that label and
 * maker, or makes one with all sums 0. label: its record's index; maker: such an index + 1, or 0. Returns it, which
 * stays there as long as the profile, or NULL if it is new and the table has TSI_PROFILE_STACKS already.
 * [profile lock held] */
static TsiProfileStack* stack_locked(TsiProfile* profile, uint32_t label, uint32_t maker, const uintptr_t* frames,
                                     unsigned depth) {
    TSI_HOLDS(&profile->lock);
    uint64_t hash = label | (uint64_t)maker << 32;
    for (unsigned n = 0; n < depth; n++) hash = (hash ^ frames[n]) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 29;

    uint32_t at = (uint32_t)(hash >> 32) & (TSI_PROFILE_INDEX - 1);
    for (; profile->index[at] != 0; at = (at + 1) & (TSI_PROFILE_INDEX - 1)) {
        TsiProfileStack* stack = &profile->stacks[profile->index[at] - 1];
        bool alike = stack->hash == hash && stack->label == label && stack->maker == maker;
        if (alike && stack->depth == depth && memcmp(stack->frames, frames, depth * sizeof *frames) == 0) return stack;
    }

    if (profile->stack_count == TSI_PROFILE_STACKS) return NULL;
    TsiProfileStack* stack = &profile->stacks[profile->stack_count++];
    profile->index[at] = (uint16_t)profile->stack_count;
    profile->index_pages |= 1u << at * sizeof *profile->index / tsi_os.page_bytes;
    stack->label = label;
    stack->maker = (uint16_t)maker;
    stack->depth = (uint16_t)depth;
    stack->hash = hash;
    memcpy(stack->frames, frames, depth * sizeof *frames);
    return stack;
}

/* Returns true if samples of class `cls` keep the handle of their object, because its slots are used again within an
 * incarnation; false for regions and large objects, whose address will do. [any thread, needs no lock] */
static bool has_handle(unsigned cls) { return cls <= TSI_SMALL_CLASSES; }

/* Sets name, cls, seq and life of *live, by which is_live tells later whether the object at *at, which has just been
 * taken, still lives; the other fields stay. Returns true if it lives in the phase ref; false if it has ended already,
 * got no handle, or its slab is not in that phase: the four fields mean nothing then.
 * [own thread, no lock held, no bracket open] */
static bool name_object(TsiBinding* b, const void* object, const TsiPlace* at, TsiRef ref, TsiProfileLive* live) {
    TsiArena* a = b->arena;
    TsiRef now;
    live->cls = (uint16_t)at->cls;
    live->seq = tsi_tag_seq(tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->tag));
    /* the object lives, so its region's life goes on */
    live->life = tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->gen_base);
    live->name = has_handle(at->cls) ? tsi_handle_of(a, b, at) : (uint64_t)(uintptr_t)object;
    return live->name != 0 && tsi_slab_ref(a, at, &now) && now == ref;
}

/* Returns true if the object of the sample *live still lives; false if it was freed or its phase released. Reads name,
 * cls, seq and life, of which name_object returned true. [any thread, needs no lock] */
static bool is_live(TsiArena* a, const TsiProfileLive* live) {
    TsiPlace at;
    uint64_t tag;
    if (has_handle(live->cls)) return tsi_handle_find(a, live->name, &at);
    bool there =
        tsi_space_locate(&a->space, (const void*)(uintptr_t)live->name, &at) == TSI_PLACE_OK && at.cls == live->cls;
    if (!there || !tsi_place_is_live(a, &at, &tag) || tsi_tag_seq(tag) != live->seq) return false;
    /* After the object was seen: a region's next life raises it first. */
    return live->cls == TSI_CLASS_LARGE || tsi_load_seq(&tsi_slab(&a->space, at.slab_id)->gen_base) == live->life;
}

/* Drops the samples of profile->live whose objects have ended, keeps the order of the others, and sets lost_since to
 * 0, so that the next call that finds the table full tidies it again. [profile lock held] */
static void tidy_locked(TsiArena* a) {
    TSI_HOLDS(&a->profile.lock);
    TsiProfile* profile = &a->profile;
    uint32_t kept = 0;
    for (uint32_t n = 0; n < profile->live_count; n++)
        if (is_live(a, &profile->live[n])) profile->live[kept++] = profile->live[n];
    profile->live_count = kept;
    profile->lost_since = 0;
}

/* Makes room for a live sample in profile->live: if the table is full, by dropping the samples whose objects have
 * ended, but only in one of TSI_PROFILE_PATIENCE calls that find it full. Returns true if there is room; false if the
 * table stays full. [profile lock held] */
static bool live_room_locked(TsiArena* a) {
    TSI_HOLDS(&a->profile.lock);
    TsiProfile* profile = &a->profile;
    /* Only now and then: otherwise a full table of living objects would be walked for each sample. */
    if (profile->live_count == TSI_PROFILE_LIVE && profile->lost_since == 0) tidy_locked(a);
    if (profile->live_count < TSI_PROFILE_LIVE) return true;
    profile->lost_since = (profile->lost_since + 1) % TSI_PROFILE_PATIENCE;
    return false;
}

enum { PAST = 3 }; /* functions before the caller of tsi_malloc_past */

unsigned tsi_profile_frames(TsiBinding* b, TsiCaller from, uintptr_t* frames, unsigned most) {
    uintptr_t here = (uintptr_t)&from;
    if (here < b->stack_low || here >= b->stack_high) {
        b->stack_low = b->stack_high = 0;
        (void)tsi_stack_bounds(here, &b->stack_low, &b->stack_high);
    }
    frames[0] = from.pc;
    unsigned count = 1 + tsi_stack_walk(from.fp, here, b->stack_high, frames + 1, most - 1);
    if (TSI_LIKELY(b->past == 0) || count < PAST || most <= PAST) return count;
    if (count > PAST && frames[PAST] == b->past) return count; /* in a build with frame pointers it does keep one */
    if (count < most) count++;
    memmove(&frames[PAST + 1], &frames[PAST], (count - PAST - 1) * sizeof *frames);
    frames[PAST] = b->past;
    return count;
}

/* Returns true if the phase `ref` is an epoch of the ring; false if it is a domain's, or its record serves another
 * phase by now. [any thread, needs no lock] */
static bool is_of_ring(TsiArena* a, TsiRef ref) {
    if (!tsi_ref_is_current(&a->phases, ref)) return false;
    return (tsi_load_relaxed(&tsi_inc(&a->phases, tsi_ref_index(ref))->id) & TSI_DOMAIN_ID_BIT) == 0;
}

/* Returns true if what escapes the phase `ref` was counted already (tsi_profile_escaped), so that a sample recorded now
 * counts itself; false if it was not, or the record serves another phase by now. [profile lock held] */
static bool is_told_locked(TsiArena* a, TsiRef ref) {
    TSI_HOLDS(&a->profile.lock);
    /* acquire: before the era, so that it is not of the phase that has the record next */
    return tsi_load_acquire(&tsi_inc(&a->phases, tsi_ref_index(ref))->told) && tsi_ref_is_current(&a->phases, ref);
}

/* Adds the sample *live, whose object lived as its phase was drained, to escaped_objects and escaped_bytes of its
 * stack in *profile, by tsi_profile_weight, and sets live->escaped. Bytes that an object has gained in place
 * (live->gain) count without an object. [profile lock held] */
static void escaped_locked(TsiProfile* profile, TsiProfileLive* live) {
    TSI_HOLDS(&profile->lock);
    TsiProfileStack* stack = &profile->stacks[live->stack];
    double weight = tsi_profile_weight(live->bytes, profile->mean);
    if (!live->gain) stack->escaped_objects += weight;
    stack->escaped_bytes += weight * (double)live->bytes;
    live->escaped = true;
}

void tsi_profile_record(TsiBinding* b, const void* object, uint64_t gained, TsiRef ref, uint32_t maker,
                        TsiCaller from) {
    TsiArena* a = b->arena;
    TsiProfile* profile = &a->profile;
    TsiPlace at;
    uintptr_t frames[TSI_PROFILE_FRAMES];
    int saved = errno;
    if (tsi_space_locate(&a->space, object, &at) != TSI_PLACE_OK) return; /* released meanwhile */
    uint64_t bytes = tsi_place_bytes(&a->space, &at);
    if (bytes == 0) return; /* the same */
    if (profile->mean == 1 && is_of_ring(a, ref)) return;

    if (gained != 0) bytes = gained;
    uint32_t label =
        tsi_ref_is_current(&a->phases, ref) ? tsi_inc_label(tsi_inc(&a->phases, tsi_ref_index(ref))) : TSI_LABEL_NONE;
    TsiProfileLive live = {.bytes = bytes, .era = tsi_ref_era(ref), .gain = gained != 0};
    bool lives = name_object(b, object, &at, ref, &live);
    unsigned depth = tsi_profile_frames(b, from, frames, TSI_PROFILE_FRAMES);
    double weight = tsi_profile_weight(bytes, profile->mean);

    tsi_lock_take(&profile->lock);
    profile->samples++;
    TsiProfileStack* stack = stack_locked(profile, label, maker, frames, depth);
    if (stack == NULL) {
        profile->lost_stacks++;
    } else {
        stack->objects += weight;
        stack->bytes += weight * (double)bytes;
        live.stack = (uint32_t)(stack - profile->stacks);
        if (TSI_UNLIKELY(is_told_locked(a, ref))) escaped_locked(profile, &live);
        if (lives && live_room_locked(a)) profile->live[profile->live_count++] = live;
        else profile->lost_live += lives;
        if (profile->live_count > profile->live_high) profile->live_high = profile->live_count;
    }
    tsi_lock_give(&profile->lock);
    errno = saved;
}

void tsi_profile_escaped(TsiArena* a, TsiRef ref) {
    TsiProfile* profile = &a->profile;
    uint64_t era = tsi_ref_era(ref);
    uint32_t kept = 0;
    tsi_lock_take(&profile->lock);
    for (uint32_t n = 0; n < profile->live_count; n++) {
        TsiProfileLive* live = &profile->live[n];
        if (live->era == era) {
            if (!is_live(a, live)) continue;
            escaped_locked(profile, live);
        }
        profile->live[kept++] = *live;
    }
    profile->live_count = kept;
    tsi_store_release(&tsi_inc(&a->phases, tsi_ref_index(ref))->told, true); /* pairs with is_told_locked */
    tsi_lock_give(&profile->lock);
}

size_t tsi_profile_bytes(TsiArena* a) {
    TsiProfile* profile = &a->profile;
    if (profile->mean == 0) return 0;
    tsi_lock_take(&profile->lock);
    size_t stacks = profile->stack_count * sizeof *profile->stacks, live = profile->live_high * sizeof *profile->live,
           index = tsi_popcount(profile->index_pages);
    tsi_lock_give(&profile->lock);
    return tsi_align_up(stacks, tsi_os.page_bytes) + tsi_align_up(live, tsi_os.page_bytes) + index * tsi_os.page_bytes;
}

void tsi_profile_copy(TsiArena* a, TsiProfileStack* stacks, TsiProfileLive* live, TsiProfileCounts* counts) {
    TsiProfile* profile = &a->profile;
    tsi_lock_take(&profile->lock);
    tidy_locked(a);
    *counts = (TsiProfileCounts){profile->mean,        profile->samples,    profile->lost_stacks, profile->lost_live,
                                 profile->stack_count, profile->live_count, profile->escapes};
    memcpy(stacks, profile->stacks, profile->stack_count * sizeof *stacks);
    memcpy(live, profile->live, profile->live_count * sizeof *live);
    tsi_lock_give(&profile->lock);
}
