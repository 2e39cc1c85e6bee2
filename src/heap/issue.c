/* issue.c - see issue.h. */
#include "heap/issue.h"

#include "heap/current.h"
#include "heap/registry.h"

/* Owner, in a bracket: the line hands out no more slots. */
static void retire_line(TsiArena* a, const TsiPlace* at, uint64_t tag) {
    TsiHeap* h = tsi_heap(a, tsi_tag_index(tag));
    if (tsi_class_is_region(at->cls)) tsi_bump_drop(tsi_binding_get(a, false), h);
    if (at->cls > TSI_SMALL_CLASSES) return;
    TsiLine* l = tsi_line(&a->space, at->line_id);
    TsiRoom* room = tsi_heap(a, h->primary)->room;
    if (room != NULL && room->cur[at->cls] == l) room->cur[at->cls] = tsi_no_cur[0];
    tsi_store_relaxed(&l->flags, tsi_load_relaxed(&l->flags) | TSI_LINE_PARKED | TSI_LINE_RETIRED);
    tsi_store_relaxed(&l->heap_at, 0);
}

void tsi_handle_issue_held(TsiArena* a, void* p, TsiIssue* out) {
    TsiSpace* s = &a->space;
    uint64_t generation, word;
    out->handle = 0;
    out->spent = false;
    (void)tsi_space_locate(s, p, &out->at);
    _Atomic uint64_t* tag_word = &tsi_slab(s, out->at.slab_id)->tag;
    out->seq = tsi_tag_seq(tsi_load_relaxed(tag_word));
    bool region = tsi_class_is_region(out->at.cls);
    if (!region && !tsi_space_commit_counts(s, tsi_line_chunk(out->at.line_id))) return;
    if (!tsi_handle_flag_slab(s, out->at.slab_id, out->seq)) return;
    if (region) /* frees by handle and by pointer meet in the map byte */
        tsi_store_relaxed(&tsi_region(s, out->at.slab_id)->heap_at, 0);
    else tsi_line_mark_handled(tsi_line(s, out->at.line_id));
    uint64_t tag = tsi_load_seq(tag_word);
    if (!tsi_generation_of(a, &out->at, tag, &generation, &word)) return;
    out->spent = generation >= TSI_GEN_LIMIT;
    if (!out->spent)
        out->handle = tsi_handle_make(a->secret, tsi_handle_place(out->at.line_id, out->at.slot), (uint32_t)generation);
    else retire_line(a, &out->at, tag);
}
