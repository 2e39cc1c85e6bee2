/*
 * purge.c - memory that goes back to the system, in as few calls as the addresses allow.
 *
 * Memory that has gone back reads as zero, unless the system or the purge policy prevents it: then its chunks are
 * marked dirty until all of such a chunk was purged in one call.
 */
#include "mem/purge.h"

#include "base/probes.h"
#include "base/sanitize.h"

/* Returns the chunk of an address in the payload. [any thread, needs no lock] */
static uint32_t chunk_of(const TsiSpace* s, const uint8_t* p) { return (uint32_t)((p - s->base) >> TSI_CHUNK_SHIFT); }

/* Repeats, for [p, p + bytes), which was mapped anew so that the kernel has forgotten them, the requests for huge pages
 * if the allocator wants them, and for nodes if it tells nodes apart. The caller holds their slabs, so chunks keep
 * their nodes. [holder of the slabs] */
static void wish_again(TsiSpace* s, uint8_t* p, size_t bytes) {
    if (s->config.huge_pages) tsi_os.prefer_huge(p, bytes);
    for (uint8_t *end = p + bytes, *to; s->nodes != 1 && p < end; p = to) {
        uint32_t chunk = chunk_of(s, p);
        to = tsi_chunk_base(s, chunk + 1);
        if (to > end) to = end;
        tsi_os.prefer_node(p, (size_t)(to - p), s->chunks[chunk].asked_node - 1u);
    }
}

/* Sets `dirty` of chunks that the range touches to TSI_DIRTY or, with `zero`, of those wholly in it to 0. Relaxed: a
 * thread that takes a chunk after its last slab went back has had the pool's lock in between.
 * [any thread, needs no lock] */
static void mark(TsiSpace* s, uint8_t* p, size_t bytes, bool zero) {
    uint32_t from = chunk_of(s, zero ? p + (1u << TSI_CHUNK_SHIFT) - 1 : p);
    uint32_t end = chunk_of(s, zero ? p + bytes : p + bytes - 1) + !zero;
    uint8_t to = zero ? 0 : TSI_DIRTY;
    for (; from < end; from++)
        if (tsi_load_relaxed(&s->chunks[from].dirty) != to) tsi_store_relaxed(&s->chunks[from].dirty, to);
}

/* Sets the chunk's `dirty` to `to` if it is `from`, by compare-exchange: a thread that could not give pages back marks
 * them without the lock. Otherwise it stays. [any thread, needs no lock] */
static void change_dirty(TsiChunk* chunk, uint8_t from, uint8_t to) {
    if (tsi_load_relaxed(&chunk->dirty) == from)
        (void)atomic_compare_exchange_strong_explicit(&chunk->dirty, &from, to, memory_order_relaxed,
                                                      memory_order_relaxed);
}
void tsi_space_mark_kept(TsiChunk* record) { change_dirty(record, 0, TSI_DIRTY_KEPT); }
void tsi_space_mark_gone(TsiChunk* record) { change_dirty(record, TSI_DIRTY_KEPT, 0); }

void tsi_space_avoid_huge(TsiSpace* s, uint32_t chunk) {
    s->chunks[chunk].huge = false;
    if (!s->config.huge_pages) tsi_os.avoid_huge(tsi_chunk_base(s, chunk), (size_t)1 << TSI_CHUNK_SHIFT);
}

/* Gives [p, p + bytes), whole pages, back to the system as `how` says. Adds to the space's counters of purges and of
 * class cls: calls, and bytes or a failure; fires the probe. Returns false if the system refuses.
 * [no other user of the bytes] */
static bool purge(TsiSpace* s, unsigned cls, void* p, size_t bytes, TsiPurgeHow how) {
    int error = tsi_os.purge(p, bytes, how);
    cls = tsi_class_row(cls);
    bool ok = error == 0;
    tsi_add_relaxed(&s->purge_calls, 1);
    tsi_add_relaxed(&s->purges[cls], 1);
    tsi_add_relaxed(ok ? &s->purge_bytes : &s->purge_failures, ok ? bytes : 1);
    tsi_add_relaxed(ok ? &s->purged[cls] : &s->purges_failed[cls], ok ? bytes : 1);
    tsi_probe_purge(p, bytes, cls - 1, error);
    return ok;
}

bool tsi_space_purge_range(TsiSpace* s, unsigned cls, void* p, size_t bytes, bool whole_slabs) {
    if (!tsi_space_gives_back(s)) {
        mark(s, p, bytes, false);
        return false;
    }
    TsiPurgeHow how = s->config.purge_policy == SLAB_PURGE_FREE ? TSI_PURGE_LAZY : TSI_PURGE_DONTNEED;
    if (whole_slabs && tsi_os.strict_commit) how = TSI_PURGE_UNCHARGE;
    bool ok = purge(s, cls, p, bytes, how);
    if (ok && how == TSI_PURGE_UNCHARGE) wish_again(s, p, bytes);
    bool gone = ok && how != TSI_PURGE_LAZY;
    mark(s, p, bytes, gone);
    return gone;
}

void tsi_space_zero_large(TsiSpace* s, void* p, size_t bytes) {
    uint8_t *at = p, *end = at + tsi_align_up(bytes, tsi_os.page_bytes), *to;
    TSI_DEFINED(p, (size_t)(end - at)); /* a program may have left bytes there that it never set */
    for (; at < end; at = to) {         /* in runs of chunks that are alike */
        bool dirty = tsi_load_relaxed(&s->chunks[chunk_of(s, at)].dirty) != 0;
        for (to = at; to < end && (tsi_load_relaxed(&s->chunks[chunk_of(s, to)].dirty) != 0) == dirty;)
            to = tsi_chunk_base(s, chunk_of(s, to) + 1); /* an object begins anywhere in its chunk */
        if (to > end) to = end;
        bool kept =
            dirty && !(tsi_space_gives_back(s) && purge(s, TSI_CLASS_LARGE, at, (size_t)(to - at), TSI_PURGE_DONTNEED));
        if (kept) tsi_clear(at, (size_t)(to - at));
    }
}

void tsi_space_purge_pages(TsiSpace* s, void* p, size_t bytes) {
    (void)tsi_space_purge_range(s, tsi_chunk_class(s, chunk_of(s, p)), p, bytes, false);
}

/* Sorts ids by Shell's sort (D. Shell, 1959): no recursion, no allocation; there are some hundred at most. */
void tsi_sort_ids(uint32_t* v, unsigned n) {
    /* The slabs of an epoch normally come in the order of their addresses, or against it. */
    unsigned rising = 1, falling = 1, gap = 1;
    while (rising < n && v[rising - 1] < v[rising]) rising++;
    if (rising >= n) return;

    while (falling < n && v[falling - 1] > v[falling]) falling++;
    for (unsigned i = 0; falling == n && i < n / 2; i++) {
        uint32_t t = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = t;
    }

    while (gap < n / 3) gap = 3 * gap + 1;
    for (; gap != 0; gap /= 3) {
        for (unsigned i = gap; i < n; i++) {
            uint32_t id = v[i], at = i;
            for (; at >= gap && v[at - gap] > id; at -= gap) v[at] = v[at - gap];
            v[at] = id;
        }
    }
}
