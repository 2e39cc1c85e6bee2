/* token.c - see token.h. */
#include "heap/token.h"

uint64_t tsi_line_free_bits(const TsiSpace* s, TsiLine* l, uint32_t line_id) {
    _Atomic uint64_t* r = tsi_remote(s, line_id);
    uint64_t w0 = tsi_load_seq(&r[0]), w1 = tsi_load_seq(&r[1]); /* T4 */
    uint64_t freed = tsi_load_acquire(&l->freed); /* invariant F: remote before freed */
    return tsi_remote_bits(w0, w1) | (freed & s->classes->c[tsi_chunk_class(s, line_id >> 10)].full);
}

bool tsi_line_arm(TsiSpace* s, uint32_t line_id, uint32_t seq) {
    _Atomic uint64_t* r = tsi_remote(s, line_id);
    uint64_t w = tsi_load_seq(&r[0]);
    while (tsi_remote_is(0, w, seq)) {
        if (tsi_cas_seq(&r[0], &w, w | TSI_REMOTE_TOKEN)) return true; /* T4 */
    }
    return false; /* the slab has left its incarnation: the token is void */
}

bool tsi_line_disarm(TsiSpace* s, uint32_t line_id, uint32_t seq, unsigned threshold) {
    _Atomic uint64_t* r = tsi_remote(s, line_id);
    uint64_t w = tsi_load_seq(&r[0]); /* T4 */
    while (tsi_remote_is(0, w, seq) && (w & TSI_REMOTE_TOKEN) != 0) {
        if (tsi_popcount(tsi_line_free_bits(s, tsi_line(s, line_id), line_id)) < threshold) return false;
        if (tsi_cas_seq(&r[0], &w, w & ~TSI_REMOTE_TOKEN)) return true;
    }
    return false;
}
