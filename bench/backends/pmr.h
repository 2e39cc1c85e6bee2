/* pmr.h - std::pmr::monotonic_buffer_resource, through the few functions of pmr.cc. */
#include "backends/imported.h"

#define BK_PHASE_FREE 0
#define BK_HANDS_OVER 1

struct bk_phase {
    void* room[8]; /* where the resource lives */
};

void pmr_open(void* room, size_t bytes);
void* pmr_take(void* room, size_t size);
void pmr_end(void* room);

static inline void bk_start(void) {}

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    (void)hint;
    pmr_open(ph->room, sizeof ph->room);
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return bk_kept(pmr_take(ph->room, size), ref);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    pmr_end(ph->room);
}
