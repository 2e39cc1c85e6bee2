/* handles.c - frees by handle that the fast path of handles.h misses: other threads, refusals. */
#include "heap/handles.h"

#include "heap/free.h"
#include "account/refuse.h"
#include "threads/registry.h"
#include "observe/stand_in.h"

/* Frees the object that the handle names if it lives in a region, the commonest case of other threads. Returns true if
 * it is freed; false, with nothing freed, if it names none in a region or that is refused, which is not counted. b: the
 * calling thread's binding, or NULL. [any thread, no lock held, no bracket open] */
static bool free_bumped(TsiArena* a, TsiBinding* b, SlabHandle handle) {
    TsiSpace* s = &a->space;
    uint32_t place = tsi_handle_place_of(handle);
    TsiPlace at = {.line_id = tsi_place_line(place), .slot = tsi_place_slot(place)};
    if ((handle & 3) != TSI_HANDLE_VERSION || tsi_line_chunk(at.line_id) >= s->chunk_count) return false;
    at.cls = tsi_class_of_line(s, at.line_id);
    const TsiClass* shape = &s->classes->c[at.cls];
    if (!tsi_class_is_region(at.cls) || !tsi_line_has_slab(shape, tsi_line_number(at.line_id))) return false;
    at.slab_id = tsi_slab_at(shape, at.line_id);
    uint64_t tag = tsi_load_seq(&tsi_slab(s, at.slab_id)->tag);
    uint32_t generation = tsi_load_seq(&tsi_slab(s, at.slab_id)->gen_base);
    if (!tsi_state_holds_objects(tag) || (tag & TSI_SLAB_HANDLED) == 0 || generation >= TSI_GEN_LIMIT) return false;
    if (tsi_handle_stamp(a->secret, place, generation) != tsi_handle_stamp_of(handle)) return false;
    return tsi_free_in_region(a, b, &at, tsi_tag_seq(tag), generation) == TSI_FREE_OK;
}

/* Frees the object that a handle names. Returns TSI_FREE_OK or the SlabMisuse as which it is refused, which is not
 * counted yet. [any thread, no lock held, no bracket open] */
static int free_named(TsiArena* a, SlabHandle handle) {
    TsiBinding* b = tsi_binding_get(a, false);
    TsiPlace at;
    uint64_t tag, word;
    if (free_bumped(a, b, handle)) return TSI_FREE_OK;
    int bad = tsi_handle_decode(a, handle, &at, &tag, &word);
    if (bad == TSI_FREE_OK) {
        /* in a region another thread frees it at this moment */
        bool mine = !tsi_class_is_region(at.cls) &&
                    tsi_count_move(&tsi_counts(&a->space, at.line_id)[at.slot], tsi_tag_seq(tag), word);
        if (!mine || tsi_free_place(a, b, &at, tsi_tag_seq(tag), true) != TSI_FREE_OK) bad = SLAB_MISUSE_STALE_HANDLE;
    }
    return bad;
}

bool tsi_free_handle(TsiArena* a, SlabHandle handle) {
    void *slot = NULL, *block = NULL;
    TsiPlace at;
    if (TSI_UNLIKELY(a->stand_ins != NULL) && tsi_handle_find(a, handle, &at)) {
        slot = tsi_place_address(&a->space, &at);
        block = tsi_stand_in_block(a, slot);
        if (block != slot) tsi_unlink_block(a, &at, slot, block);
    }
    int bad = free_named(a, handle);
    if (bad != TSI_FREE_OK) tsi_refuse_as(a, &(TsiMisuse){.what = (SlabMisuse)bad, .handle = handle});
    else if (TSI_UNLIKELY(block != slot)) tsi_stand_in_drop(a, block, slot);
    return bad == TSI_FREE_OK;
}
