/* names.c - see names.h. */
#include "state/names.h"

#include "state/bracket.h"
#include "mem/chunk_pages.h"

bool tsi_generation_of(TsiArena* a, const TsiPlace* at, uint64_t tag, uint64_t* generation, uint64_t* word) {
    if ((tag & TSI_SLAB_HANDLED) == 0) return false;
    if (tsi_class_is_region(at->cls)) { /* one for a life: a granule is used once in it */
        *word = 0;
        *generation = tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->gen_base);
        return true;
    }
    *word = tsi_load_seq(&tsi_counts(&a->space, at->line_id)[at->slot]);
    /* acquire, before the caller looks at the object and the tag again: pairs with raise_generations (heap/settle.c). A
     * base that was raised as the slab left would make the handle of a later object; the tag has changed before. */
    *generation = tsi_load_acquire(&tsi_slab(&a->space, at->slab_id)->gen_base);
    *generation += (tsi_count_of(*word, tsi_tag_seq(tag)) + 1) / 2; /* odd: the next one, not issued yet */
    return true;
}

bool tsi_handle_flag_slab(TsiSpace* s, uint32_t slab_id, uint32_t seq) {
    _Atomic uint64_t* tag_word = &tsi_slab(s, slab_id)->tag;
    bool lines = !tsi_class_is_region(tsi_class_of_slab(s, slab_id));
    /* seq_cst, before the mark: a refill that would see the mark sees this (line.c) */
    if (lines && !tsi_load_seq(&s->counted)) tsi_store_seq(&s->counted, true);
    uint64_t tag = tsi_load_seq(tag_word);
    do {
        if (!tsi_state_holds_objects(tag) || tsi_tag_seq(tag) != seq) return false;
        if ((tag & TSI_SLAB_HANDLED) != 0) return true;
    } while (!tsi_cas_seq(tag_word, &tag, tag | TSI_SLAB_HANDLED));
    if (lines) tsi_written_counts(s, slab_id); /* frees will write them */
    return true;
}

/* Marks the place's line as one with handles, or sets its region's heap_at to 0, in a bracket of its own, if the slab
 * is of incarnation `seq` and of a heap of b that is LIVE. Returns true if it did; false, with nothing marked, if b is
 * NULL, the slab is another's, or its heap was asked for, which it then hands over.
 * [own thread, no lock held, no bracket open] */
static bool mark_own_line(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq) {
    uint64_t tag = tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->tag);
    if (b == NULL || tsi_tag_state(tag) != TSI_SLAB_OWNED) return false;
    TsiHeap* h = tsi_heap(a, tsi_tag_index(tag));
    if (!tsi_heap_is_live(b, h) || !tsi_bracket_enter(b, h, tsi_busy_all(h))) return false;
    uint64_t now = tsi_load_relaxed(&tsi_slab(&a->space, at->slab_id)->tag);
    bool ours = tsi_tag_state(now) == TSI_SLAB_OWNED && tsi_tag_seq(now) == seq && tsi_tag_index(now) == h->index;
    if (ours && tsi_class_is_region(at->cls)) tsi_store_relaxed(&tsi_region(&a->space, at->slab_id)->heap_at, 0);
    else if (ours) tsi_line_mark_handled(tsi_line(&a->space, at->line_id));
    tsi_bracket_leave(b, h);
    return ours;
}

/* Returns true if a plain free that does not read the slab's flag may be under way: a heap with an owner whose binding
 * is not fenced has the place's slab. Frees of a slab without a heap see the flag. [any thread, needs no lock] */
static bool has_unfenced_owner(TsiArena* a, const TsiPlace* at) {
    uint64_t tag = tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->tag);
    if (tsi_tag_state(tag) != TSI_SLAB_OWNED) return false;
    uint64_t word = tsi_load_seq(&tsi_heap(a, tsi_tag_index(tag))->word);
    return tsi_state_has_owner(tsi_heap_state(word)) && !tsi_binding_is_fenced(tsi_binding_at(a, word));
}

SlabHandle tsi_handle_of(TsiArena* a, TsiBinding* b, const TsiPlace* at) {
    TsiSpace* s = &a->space;
    _Atomic uint64_t* tag_word = &tsi_slab(s, at->slab_id)->tag;
    uint64_t tag, generation, word, remote;
    bool region = tsi_class_is_region(at->cls);
    if (!tsi_place_is_live(a, at, &tag) || (!region && !tsi_space_commit_counts(s, tsi_line_chunk(at->line_id))))
        return 0;

    uint32_t seq = tsi_tag_seq(tag);
    if (!tsi_handle_flag_slab(s, at->slab_id, seq)) return 0;

    bool marked = region ? tsi_load_acquire(&tsi_region(s, at->slab_id)->heap_at) == 0
                         : tsi_load_acquire(&tsi_line(s, at->line_id)->handled) != 0;
    if (!marked && !mark_own_line(a, b, at, seq)) {
        /* its owner's next free then reads the map byte like others */
        if (region) tsi_store_seq(&tsi_region(s, at->slab_id)->heap_at, 0);
        if (!tsi_barrier() && has_unfenced_owner(a, at)) return 0; /* see handles.h */
    }

    if (!tsi_generation_of(a, at, tag | TSI_SLAB_HANDLED, &generation, &word)) return 0;
    if ((tsi_count_of(word, seq) & 1) != 0 || generation >= TSI_GEN_LIMIT) return 0;

    /* The object has lived throughout, with one count. */
    if (tsi_slot_check(s, at, seq, &remote) != TSI_FREE_OK) return 0;
    if (region ? tsi_load_seq(&tsi_slab(s, at->slab_id)->gen_base) != generation
               : tsi_load_seq(&tsi_counts(s, at->line_id)[at->slot]) != word)
        return 0;
    if (tsi_tag_seq(tsi_load_seq(tag_word)) != seq) return 0;
    return tsi_handle_make(a->secret, tsi_handle_place(at->line_id, at->slot), (uint32_t)generation);
}

enum { OLD = 1 << 20 /* generations below this are taken for issued ones, where any was issued */ };

/* Returns how a handle that matches nothing is refused: SLAB_MISUSE_STALE_HANDLE if its generation is below `issued`,
 * otherwise SLAB_MISUSE_BAD_HANDLE. Issued ones start low, so this holds well enough even when the chunk has changed
 * class since. key: of the place; scrambled: the handle's stamp; issued 0: nothing was issued there.
 * [any thread, needs no lock] */
static int classify(uint64_t key, uint32_t scrambled, uint64_t issued) {
    uint32_t generation = tsi_handle_unscramble(key, scrambled);
    return generation < issued || (issued != 0 && generation < OLD) ? SLAB_MISUSE_STALE_HANDLE : SLAB_MISUSE_BAD_HANDLE;
}

/* Returns a limit of the generations that the chunk's slabs may have issued, for a place that no slab of its class has:
 * its floor, but at least OLD; 0 for a chunk that was never used. [any thread, needs no lock] */
static uint64_t chunk_issued(const TsiSpace* s, uint32_t chunk) {
    if (chunk >= tsi_load_relaxed(&s->chunk_high)) return 0;
    uint64_t floor = tsi_load_relaxed(&s->chunks[chunk].gen_floor);
    return floor > OLD ? floor : OLD;
}

/* Returns the tag that a PURGING slab, whose tag is `tag`, had in the incarnation that it leaves: OWNED, with the seq
 * before, the same index and flag of handles. [any thread, needs no lock] */
static uint64_t tag_before(uint64_t tag) {
    return tsi_tag(tsi_seq_before(tsi_tag_seq(tag)), tsi_tag_index(tag), TSI_SLAB_OWNED) | (tag & TSI_SLAB_HANDLED);
}

/* Returns a generation above all that the slab's earlier incarnations have issued: its gen_base, or the chunk's floor
 * if that is higher, as where the slab was not taken since the chunk got its class. [any thread, needs no lock] */
static uint64_t issued_before(const TsiSpace* s, uint32_t slab_id) {
    /* acquire, and then the floor: where the page of gen_base has gone, the floor was raised before (chunk.h) */
    uint64_t base = tsi_load_acquire(&tsi_slab(s, slab_id)->gen_base);
    uint64_t floor = tsi_load_relaxed(&s->chunks[tsi_slab_chunk(slab_id)].gen_floor);
    return base > floor ? base : floor;
}

int tsi_handle_decode(TsiArena* a, SlabHandle handle, TsiPlace* at, uint64_t* tag, uint64_t* word) {
    TsiSpace* s = &a->space;
    uint32_t place = tsi_handle_place_of(handle), chunk = tsi_line_chunk(tsi_place_line(place));
    uint64_t now, remote;
    if ((handle & 3) != TSI_HANDLE_VERSION || chunk >= s->chunk_count) return SLAB_MISUSE_BAD_HANDLE;

    at->line_id = tsi_place_line(place);
    at->slot = tsi_place_slot(place);
    at->cls = tsi_chunk_class(s, chunk);
    uint32_t line = tsi_line_number(at->line_id);
    const TsiClass* shape = &s->classes->c[at->cls];

    uint64_t key = tsi_handle_key(a->secret, place);
    uint32_t scrambled = tsi_handle_stamp_of(handle);
    bool served = at->cls != 0 && at->cls != TSI_CLASS_CONT;
    bool exists = served && line < (1u << TSI_CHUNK_SHIFT) >> shape->line_shift && tsi_line_has_slab(shape, line);
    if (!exists || (shape->full >> at->slot & 1) == 0) return classify(key, scrambled, chunk_issued(s, chunk));

    at->slab_id = tsi_slab_id(chunk, line >> shape->lines_log2);
    *tag = tsi_load_seq(&tsi_slab(s, at->slab_id)->tag);
    bool holds = tsi_state_holds_objects(*tag), leaves = tsi_tag_state(*tag) == TSI_SLAB_PURGING; /* N1 */
    uint64_t as_of = leaves ? tag_before(*tag) : *tag;
    if ((!holds && !leaves) || !tsi_generation_of(a, at, as_of, &now, word))
        return classify(key, scrambled, issued_before(s, at->slab_id));

    if (now >= TSI_GEN_LIMIT || tsi_handle_scramble(key, (uint32_t)now) != scrambled) {
        /* The base's page may have gone since the tag was read: then the chunk's floor tells. */
        uint64_t least = issued_before(s, at->slab_id);
        return classify(key, scrambled, now > least ? now : least);
    }

    /* the next generation: never issued */
    if ((tsi_count_of(*word, tsi_tag_seq(as_of)) & 1) != 0) return SLAB_MISUSE_BAD_HANDLE;
    if (leaves || tsi_slot_check(s, at, tsi_tag_seq(*tag), &remote) != TSI_FREE_OK) return SLAB_MISUSE_STALE_HANDLE;
    bool region = tsi_class_is_region(at->cls);
    /* N2. seq_cst, after the object was seen: pair with begin_again (heap/bump.c) and tsi_counts_even (heap/line.c). */
    bool its = region ? tsi_load_seq(&tsi_slab(s, at->slab_id)->gen_base) == now
                      : tsi_load_seq(&tsi_counts(s, at->line_id)[at->slot]) == *word;
    return its ? TSI_FREE_OK : SLAB_MISUSE_STALE_HANDLE;
}

bool tsi_handle_find(TsiArena* a, SlabHandle handle, TsiPlace* at) {
    uint64_t tag, word;
    return tsi_handle_decode(a, handle, at, &tag, &word) == TSI_FREE_OK;
}
