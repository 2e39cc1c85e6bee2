/*
 * hostile_texts.h - copies of texts as objects, sizes of frees that tell, and documents for sinks that may refuse.
 */
#ifndef FUZZ_HOSTILE_TEXTS_H
#define FUZZ_HOSTILE_TEXTS_H

#include "hostile_objects.h"
#include "text.h"

#include "slab_diagnostics.h"

/* Bytes that follow from one draw; 0 only at the end. */
static inline size_t any_text(struct world* w, char* to, size_t room) {
    size_t n = below(w, room);
    uint64_t seed = roll(w);
    for (size_t i = 0; i < n; i++) to[i] = (char)(1 + kit_mix(seed + i) % 255);
    to[n] = 0;
    return n;
}

/* Each call that copies: what it copies is checked before the object is filled anew. */
static inline void hostile_text(struct world* w) {
    char text[600], wanted[700];
    struct side* s = any_side(w);
    size_t n = any_text(w, text, sizeof text), most = any_number(w);
    unsigned how = (unsigned)below(w, 5);
    struct wish q = {.align = 1};
    unsigned char* p = NULL;
    note(w, "hostile text s%d way %u, %zu bytes, at most %zu", side_index(w, s), how, n, most);
    memcpy(wanted, text, n + 1);
    errno = 0;
    switch (how) {
    case 0:
        q.size = n + 1;
        p = (unsigned char*)slab_strdup(s->a, text);
        break;
    case 1:
        q.size = (n < most ? n : most) + 1;
        wanted[q.size - 1] = 0;
        p = (unsigned char*)slab_strndup(s->a, text, most);
        break;
    case 2:
        q.size = n;
        p = slab_memdup(s->a, text, n);
        break;
    case 3:
        q.size = 1 + (size_t)snprintf(wanted, sizeof wanted, "%d <%s>", (int)most, text);
        p = (unsigned char*)slab_asprintf(s->a, "%d <%s>", (int)most, text);
        break;
    default:
        q.size = n != 0 ? n : 1;
        p = slab_malloc0(s->a, n);
        break;
    }
    int error = errno;
    REQUIRE_OR(p == NULL || how == 4 || memcmp(p, wanted, q.size) == 0, "a copy in way %u is another text", how);
    judge_birth(w, s, &q, p, error);
}

/* A free with a size that tells whether it was refused. */
static inline void hostile_sized_checked(struct world* w) {
    struct side* s = any_side(w);
    struct obj* o = any_obj(w, s);
    size_t size = o && chance(w, 60) ? o->usable + below(w, 5) - 2 : any_number(w);
    if (!o) return;
    note(w, "hostile free_sized_checked s%d %p %zu", side_index(w, s), (void*)o->p, size);
    check_contents(o);
    w->in_call = o;
    bool freed = slab_free_sized_checked(s->a, o->p, size);
    w->in_call = NULL;
    REQUIRE_OR(freed == (size <= o->usable), "%zu bytes of %zu: freed %d", size, o->usable, freed);
    if (freed) {
        ref_freed(w, o);
        return;
    }
    want_one(s, BIT(SLAB_MISUSE_SIZE_MISMATCH));
    check_identity(s, o);
}

/* ---- documents ---- */

struct page {
    char* bytes;
    size_t size, room, most;
    bool refused;
};

static inline bool to_page(void* ctx, const char* bytes, size_t n) {
    struct page* t = ctx;
    REQUIRE_OR(!t->refused, "a sink that has refused is called again");
    if (t->size + n > t->most) return t->refused = true, false;
    if (t->size + n > t->room) {
        t->room = 2 * (t->size + n);
        t->bytes = realloc(t->bytes, t->room);
        REQUIRE_OR(t->bytes != NULL, "no memory");
    }
    memcpy(t->bytes + t->size, bytes, n);
    t->size += n;
    return true;
}

static inline void check_receipt_text(const EpochReceipt* r, size_t n) {
    char text[400] = "";
    size_t room = n % (sizeof text + 1), whole = epoch_receipt_text(r, NULL, 0), told = epoch_receipt_text(r, text, room);
    REQUIRE_OR(told == whole && (room == 0 || strlen(text) == (whole < room ? whole : room - 1)),
               "a receipt of %zu bytes in %zu", told, room);
    if (told < room) text_is_utf8(text, told);
    REQUIRE_OR(epoch_receipt_lines(r, n % 100, text, sizeof text) == whole, "a receipt on lines is longer");
}

static inline void hostile_document(struct world* w) {
    struct side* s = any_side(w);
    struct page t = {.most = chance(w, 30) ? below(w, 1 << 16) : SIZE_MAX};
    unsigned how = (unsigned)below(w, 24); /* dear: seldom */
    EpochReceipt r = {.version = 2, .epoch_id = (EpochId)any_number(w), .epoch_era = any_number(w)};
    r.objects_allocated = r.bytes_allocated = any_number(w);
    r.objects_released = r.bytes_released = r.slabs_returned = any_number(w);
    r.close_ns = r.rss_before = any_number(w);
    (void)any_text(w, r.label, sizeof r.label);
    check_receipt_text(&r, below(w, 1 << 10));
    if (how > 4) return;
    note(w, "hostile document %u s%d, at most %zu bytes", how, side_index(w, s), t.most);
    bool all = how == 0   ? slab_stats_json(s->a, to_page, &t)
               : how == 1 ? slab_stats_json_all(s->a, to_page, &t)
               : how == 2 ? slab_stats_prometheus(s->a, to_page, &t)
               : how == 3 ? slab_doctor(s->a, to_page, &t)
                          : slab_profile_write(s->a, to_page, &t) != 0;
    REQUIRE_OR(how == 4 || all == !t.refused, "document %u: all was taken: %d", how, all);
    if (all && how < 2) json_document(t.bytes, t.size);
    if (all && how == 2) prometheus_page(t.bytes, t.size);
    if (all && how == 3) text_is_utf8(t.bytes, t.size);
    free(t.bytes);
}

#endif
