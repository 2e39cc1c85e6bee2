/* issue.c - see issue.h. */
#include "heap/issue.h"

#include "heap/current.h"

bool tsi_handle_issue_held(TsiArena* a, const TsiPlace* at, TsiIssue* out) {
    TsiSpace* s = &a->space;
    uint64_t generation, word;
    *out = (TsiIssue){.tried = true};
    _Atomic uint64_t* tag_word = &tsi_slab(s, at->slab_id)->tag;
    bool region = tsi_class_is_region(at->cls);
    if (!region && !tsi_space_commit_counts(s, tsi_line_chunk(at->line_id))) return false;
    if (!tsi_handle_flag_slab(s, at->slab_id, tsi_tag_seq(tsi_load_relaxed(tag_word)))) return false;

    if (region) /* frees by handle and by pointer meet in the map byte */
        tsi_store_relaxed(&tsi_region(s, at->slab_id)->heap_at, 0);
    else tsi_line_mark_handled(tsi_line(s, at->line_id));

    if (!tsi_generation_of(a, at, tsi_load_seq(tag_word), &generation, &word)) return false;
    out->spent = generation >= TSI_GEN_LIMIT;
    if (!out->spent)
        out->handle = tsi_handle_make(a->secret, tsi_handle_place(at->line_id, at->slot), (uint32_t)generation);
    return !out->spent;
}

void tsi_line_retire(TsiArena* a, TsiHeap* h, TsiLine* l, unsigned cls) {
    TsiRoom* room = tsi_heap(a, h->primary)->room;
    if (room != NULL && room->cur[cls] == l) room->cur[cls] = tsi_no_cur[0];
    tsi_store_relaxed(&l->flags, tsi_load_relaxed(&l->flags) | TSI_LINE_PARKED | TSI_LINE_RETIRED);
    tsi_store_relaxed(&l->heap_at, 0);
}
