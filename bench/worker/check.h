/*
 * check.h - a backend behind checks: ck_* stands where bk_* stands.
 *
 * Every object that is live is in a table (open addressing, from the kernel, under one lock) with its
 * size and a seed; its bytes hold a pattern made of the seed. An object that is handed out twice, is not
 * aligned, or whose pattern has changed when it is freed or its phase ends, ends the process as
 * corrupt. It leaves the table before the allocator gets it back, so that nobody can be handed the
 * same address meanwhile.
 */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

enum { CK_PLACES = 1 << 21 };

struct ck_entry {
    unsigned char* p; /* NULL: never used; CK_GONE: has left */
    uint32_t size, seed;
};

#define CK_GONE ((unsigned char*)1)

static struct ck_entry* ck_table;
static pthread_mutex_t ck_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t ck_next_seed;
static uint64_t ck_checked, ck_entered;

static inline size_t ck_place(const void* p) { return (size_t)((uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15u >> 43); }

static inline unsigned char ck_byte(uint32_t seed, uint32_t i) { return (unsigned char)((seed + i * 31u) * 167u >> 3); }

static void ck_enter(void* p, size_t size) {
    if (!p) cannot("an allocation failed");
    if ((uintptr_t)p % (size < BK_ALIGN ? 8 : BK_ALIGN) != 0) corrupt("an object is not aligned");
    pthread_mutex_lock(&ck_lock);
    if (!ck_table)
        ck_table = mmap(NULL, CK_PLACES * sizeof *ck_table, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (++ck_entered > CK_PLACES / 2) cannot("too many objects for the check");
    size_t i = ck_place(p);
    struct ck_entry* free_place = NULL;
    for (; ck_table[i].p; i = (i + 1) % CK_PLACES) {
        if (ck_table[i].p == p) corrupt("an address was handed out twice");
        if (ck_table[i].p == CK_GONE && !free_place) free_place = &ck_table[i];
    }
    if (!free_place) free_place = &ck_table[i];
    *free_place = (struct ck_entry){.p = p, .size = (uint32_t)size, .seed = ++ck_next_seed};
    uint32_t seed = ck_next_seed;
    pthread_mutex_unlock(&ck_lock);
    for (uint32_t k = 0; k < size; k++) ((unsigned char*)p)[k] = ck_byte(seed, k);
}

static struct ck_entry* ck_find_locked(const void* p) {
    size_t i = ck_place(p);
    while (ck_table && ck_table[i].p && ck_table[i].p != p) i = (i + 1) % CK_PLACES;
    if (!ck_table || !ck_table[i].p) corrupt("an object that is freed was never handed out");
    return &ck_table[i];
}

static uint32_t ck_seed_of(const void* p) {
    pthread_mutex_lock(&ck_lock);
    uint32_t seed = ck_find_locked(p)->seed;
    pthread_mutex_unlock(&ck_lock);
    return seed;
}

static void ck_leave(void* p) {
    pthread_mutex_lock(&ck_lock);
    struct ck_entry* place = ck_find_locked(p);
    struct ck_entry entry = *place;
    place->p = CK_GONE;
    ck_checked++;
    pthread_mutex_unlock(&ck_lock);
    for (uint32_t k = 0; k < entry.size; k++)
        if (entry.p[k] != ck_byte(entry.seed, k)) corrupt("the contents of a live object changed");
}

/* A row that checked nothing has not been checked. */
static void ck_finish(void) {
    if (ck_entered && !ck_checked) corrupt("no object was verified");
    for (size_t i = 0; ck_table && i < CK_PLACES; i++)
        if (ck_table[i].p > CK_GONE)
            for (uint32_t k = 0; k < ck_table[i].size; k++)
                if (ck_table[i].p[k] != ck_byte(ck_table[i].seed, k)) corrupt("the contents of a live object changed");
}

#define ck_start bk_start
#define ck_ptr bk_ptr

static void* ck_alloc(size_t size, bk_ref* ref) {
    void* p = bk_alloc(size, ref);
    ck_enter(p, size);
    return p;
}

static void ck_free(bk_ref ref) {
    ck_leave(bk_ptr(ref));
    bk_free(ref);
}

/* A phase remembers its objects; those that were freed are NULL. */
struct ck_phase {
    struct bk_phase real;
    void** list;
    size_t n, room;
};

static void ck_phase_note(struct ck_phase* ph, void* p, size_t size) {
    ck_enter(p, size);
    if (ph->n == ph->room) {
        size_t room = ph->room ? 2 * ph->room : 512;
        void** list = touched(room * sizeof *list);
        if (ph->n) memcpy(list, ph->list, ph->n * sizeof *list), munmap(ph->list, ph->room * sizeof *list);
        ph->list = list, ph->room = room;
    }
    ph->list[ph->n++] = p;
}

static void ck_phase_forget(struct ck_phase* ph, void* p) {
    for (size_t i = ph->n; i-- > 0;)
        if (ph->list[i] == p) {
            ph->list[i] = ph->list[--ph->n];
            break;
        }
    ck_leave(p);
}

static void ck_phase_leave_all(struct ck_phase* ph) {
    for (size_t i = 0; i < ph->n; i++) ck_leave(ph->list[i]);
    if (ph->room) munmap(ph->list, ph->room * sizeof *ph->list);
    ph->n = ph->room = 0, ph->list = NULL;
}

static void ck_phase_open(struct ck_phase* ph, size_t hint) {
    ph->n = ph->room = 0, ph->list = NULL;
    bk_phase_open(&ph->real, hint);
}

static void* ck_phase_alloc(struct ck_phase* ph, size_t size, bk_ref* ref) {
    void* p = bk_phase_alloc(&ph->real, size, ref);
    ck_phase_note(ph, p, size);
    return p;
}

static void* ck_phase_alloc_id(struct ck_phase* ph, size_t size, bk_ref* ref) {
    void* p = bk_phase_alloc_id(&ph->real, size, ref);
    ck_phase_note(ph, p, size);
    return p;
}

static void ck_phase_free(struct ck_phase* ph, bk_ref ref) {
    ck_phase_forget(ph, bk_ptr(ref));
    bk_phase_free(&ph->real, ref);
}

static void ck_phase_end(struct ck_phase* ph, bk_ref* list, size_t n) {
    ck_phase_leave_all(ph);
    bk_phase_end(&ph->real, list, n);
}

static void ck_scope_begin(struct ck_phase* ph, size_t hint) {
    ph->n = ph->room = 0, ph->list = NULL;
    bk_scope_begin(&ph->real, hint);
}

static void* ck_scope_alloc(struct ck_phase* ph, size_t size, bk_ref* ref) {
    void* p = bk_scope_alloc(&ph->real, size, ref);
    ck_phase_note(ph, p, size);
    return p;
}

static void ck_scope_free(struct ck_phase* ph, bk_ref ref) {
    ck_phase_forget(ph, bk_ptr(ref));
    bk_scope_free(&ph->real, ref);
}

/* What was written must have come along; then the object is written anew. */
static void* ck_scope_realloc(struct ck_phase* ph, bk_ref* ref, size_t old, size_t size) {
    void* before = bk_ptr(*ref);
    uint32_t seed = ck_seed_of(before);
    ck_phase_forget(ph, before);
    unsigned char* p = bk_scope_realloc(&ph->real, ref, old, size);
    if (!p) cannot("an allocation failed");
    for (uint32_t k = 0; k < old; k++)
        if (p[k] != ck_byte(seed, k)) corrupt("a buffer that has grown has lost its contents");
    ck_phase_note(ph, p, size);
    return p;
}

static void ck_hand_over(struct ck_phase* ph) { bk_hand_over(&ph->real); }

static void ck_take_over(struct ck_phase* ph) { bk_take_over(&ph->real); }

static void ck_scope_end(struct ck_phase* ph, bk_ref* list, size_t n) {
    ck_phase_leave_all(ph);
    bk_scope_end(&ph->real, list, n);
}

#endif
