/*
 * stand_in.c - see stand_in.h.
 *
 * A record for each block is in a tree of the process, by address, so that a pointer into a block finds it, and in a
 * list of its incarnation, so that an end finds all of them. The tree is a treap whose ranks are hashes of addresses.
 * Its root is a static variable: leak checkers, which do not scan pages of ours, find all blocks from there, and
 * through the blocks the program's other memory.
 */
#include "observe/stand_in.h"

#include "os/os.h"
#include "os/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct TsiStandIn {
    uint8_t* block;
    size_t bytes;
    uint8_t* slot;
    TsiArena* arena;
    TsiRef ref;
    uint32_t seq;                    /* the slab's incarnation */
    struct TsiStandIn *less, *more;  /* in the tree */
    struct TsiStandIn *next, **link; /* in the list of the incarnation, or of those that are about to be freed */
} TsiStandIn;

_Static_assert(sizeof(TsiStandIn) <= TSI_SHEET_CELL, "a record fits into a cell");

/* The stand-ins of an allocator. */
struct TsiStandIns {
    size_t bytes;             /* of this struct */
    struct TsiSheets* sheets; /* of the blocks; NULL: they are malloc's */
    uint32_t period, left;    /* one allocation in `period` has a sheet of its own, the next after `left`; 0: none */
    bool others;              /* the others have blocks too */
    _Atomic uint8_t* marks;   /* by index of an incarnation's record: a block may have been made there; set and cleared
                               * under the lock */
    TsiStandIn* of_inc[];     /* by index of the incarnation's record, which may serve a later one already */
};

enum { GONE_KEPT = 1 << 12 };
/* A block freed lately: malloc may have given its address to somebody else since. */
typedef struct Gone {
    const void* block;
    uint64_t serial; /* of the allocator */
    SlabMisuse what; /* the misuse that a free of it would be */
} Gone;

static TsiStandIn* tree;
static Gone gone[GONE_KEPT]; /* used in turn */
static uint32_t gone_count;

/* ---- is a tool present? ---- */

/* A function of the runtimes of AddressSanitizer, HWAddressSanitizer and LeakSanitizer, and one of MemorySanitizer's,
 * linked to the program or not. */
extern void __lsan_do_leak_check(void) __attribute__((weak));
extern void __msan_unpoison(const volatile void* p, size_t bytes) __attribute__((weak));

/* Returns true if the process runs under Valgrind's memcheck, which puts its malloc into LD_PRELOAD, but not for
 * programs that it does not follow. Reads the environment. [any thread, needs no lock] */
static bool under_memcheck(void) {
    const char* preloaded = tsi_os_getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload_memcheck") != NULL;
}

/* Returns true if blocks of malloc must stand in for objects: the option by_malloc is TSI_BY_MALLOC_ALWAYS, or it is 0
 * and a tool is present. [any thread, needs no lock] */
static bool wanted(unsigned by_malloc) {
    if (by_malloc != 0) return by_malloc == TSI_BY_MALLOC_ALWAYS;
    return __lsan_do_leak_check != NULL || __msan_unpoison != NULL || under_memcheck();
}

bool tsi_stand_ins_open(TsiArena* a) {
    bool tool = wanted(a->options.by_malloc), late = a->options.late_access != 0;
    bool guards = a->options.guard_period != 0 && (late || !tool);
    a->samples_guards = a->options.guard_sampling != 0 && !late && !tool && !guards;
    if (!late && !tool && !guards && !a->samples_guards) return true;
    size_t incs = a->phases.incs.capacity, bytes = sizeof(struct TsiStandIns) + incs * (sizeof(TsiStandIn*) + 1);
    a->stand_ins = tsi_os_map(bytes);
    if (a->stand_ins == NULL) return false;
    a->stand_ins->bytes = bytes;
    a->stand_ins->marks = (_Atomic uint8_t*)&a->stand_ins->of_inc[incs];
    a->stand_ins->others = late || (!guards && !a->samples_guards);
    if (guards) a->stand_ins->period = a->stand_ins->left = a->options.guard_period;
    bool sheets = late || guards || a->samples_guards;
    if (sheets) a->stand_ins->sheets = tsi_sheets_open(a);
    return !sheets || a->stand_ins->sheets != NULL;
}

struct TsiSheets* tsi_stand_in_sheets(const TsiArena* a) {
    return a->stand_ins != NULL ? a->stand_ins->sheets : NULL;
}

/* ---- the tree and the lists ---- */

/* Returns a stand-in's rank in the treap, a hash of its block's address: one with a higher rank is nearer to the root.
 * [any thread, needs no lock] */
static uint64_t rank(const TsiStandIn* stand_in) { return (uint64_t)(uintptr_t)stand_in->block * 0x9e3779b97f4a7c15u; }

/* Puts a stand-in, whose block, arena and ref are set, into the tree and into the list of its incarnation's record;
 * sets its links. [stand-in lock held] */
static void insert_locked(TsiStandIn* stand_in) {
    TSI_HOLDS(&tsi_stand_in_lock);
    TsiStandIn** at = &tree;
    while (*at != NULL && rank(*at) > rank(stand_in)) at = stand_in->block < (*at)->block ? &(*at)->less : &(*at)->more;

    /* Split the tree below in two. */
    TsiStandIn *rest = *at, **less = &stand_in->less, **more = &stand_in->more;
    *at = stand_in;
    while (rest != NULL) {
        TsiStandIn*** side = rest->block < stand_in->block ? &less : &more;
        **side = rest;
        *side = rest->block < stand_in->block ? &rest->more : &rest->less;
        rest = **side;
    }
    *less = *more = NULL;

    TsiStandIn** list = &stand_in->arena->stand_ins->of_inc[tsi_ref_index(stand_in->ref)];
    stand_in->next = *list;
    stand_in->link = list;
    if (stand_in->next != NULL) stand_in->next->link = &stand_in->next;
    *list = stand_in;
}

/* Takes a stand-in off the tree and its list, and records that a free of its block is the misuse `why` from here on.
 * Frees nothing; its fields stay, links included. [stand-in lock held] */
static void remove_locked(TsiStandIn* stand_in, SlabMisuse why) {
    TSI_HOLDS(&tsi_stand_in_lock);
    gone[gone_count++ % GONE_KEPT] = (Gone){stand_in->block, stand_in->arena->serial, why};
    TsiStandIn **at = &tree, *less = stand_in->less, *more = stand_in->more;
    while (*at != stand_in) at = stand_in->block < (*at)->block ? &(*at)->less : &(*at)->more;

    /* Join the two below. */
    while (less != NULL && more != NULL) {
        bool first = rank(less) > rank(more);
        *at = first ? less : more;
        at = first ? &less->more : &more->less;
        *(first ? &less : &more) = *at;
    }
    *at = less != NULL ? less : more;

    *stand_in->link = stand_in->next;
    if (stand_in->next != NULL) stand_in->next->link = stand_in->link;
}

/* Returns the allocator's stand-in with a block that p is in, from its first byte to below its size, or NULL; p may be
 * any address. Compares addresses only, and does not read at p. [stand-in lock held] */
static TsiStandIn* find_locked(const TsiArena* a, const void* p) {
    TSI_HOLDS(&tsi_stand_in_lock);
    const TsiStandIn* found = NULL;
    for (const TsiStandIn* stand_in = tree; stand_in != NULL;) {
        bool beyond = (uintptr_t)stand_in->block > (uintptr_t)p;
        if (!beyond) found = stand_in;
        stand_in = beyond ? stand_in->less : stand_in->more;
    }
    bool inside = found != NULL && (uintptr_t)p - (uintptr_t)found->block < found->bytes;
    return inside && found->arena == a ? (TsiStandIn*)(uintptr_t)found : NULL;
}

/* Frees the blocks and records of a list of stand-ins, chained by `next` (NULL: none), that are off the tree; the tool
 * takes this for the end of the objects. Blocks on sheets end there. [any thread, no lock held, no bracket open] */
static void free_list(TsiStandIn* stand_in) {
    TSI_KEEP_FRAME();
    while (stand_in != NULL) {
        TsiStandIn* next = stand_in->next;
        struct TsiSheets* sheets = stand_in->arena->stand_ins->sheets;
        if (sheets != NULL) {
            tsi_sheet_give(sheets, stand_in->block);
            tsi_sheet_cell_give(sheets, stand_in);
        } else {
            free(stand_in->block);
            free(stand_in);
        }
        stand_in = next;
    }
}

/* ---- objects ---- */

/* Returns the documented alignment in bytes of the object in the slot, whose place *at tells the class: of a class that
 * is a power of two its size, of a large object that of its slot, of others 16; at least `align`, and at most the
 * larger one of `align` and TSI_STAND_IN_ALIGN_MAX. [any thread, needs no lock] */
static size_t alignment_of(const TsiArena* a, const TsiPlace* at, const void* slot, size_t align) {
    size_t has = 16;
    if (at->cls == TSI_CLASS_LARGE) has = (uintptr_t)slot & (0 - (uintptr_t)slot);
    else if (!tsi_class_is_region(at->cls) && tsi_is_pow2(a->space.classes->c[at->cls].size))
        has = a->space.classes->c[at->cls].size;
    if (has > TSI_STAND_IN_ALIGN_MAX) has = TSI_STAND_IN_ALIGN_MAX;
    return has > align ? has : align;
}

/* Returns a block of malloc, of at least `size` bytes and aligned to `align`, a power of two, for free; NULL without
 * memory. Errno may change. [any thread, no lock held, no bracket open] */
static void* new_block(size_t size, size_t align) {
    TSI_KEEP_FRAME();
    void* block = NULL;
    if (align <= 16) return malloc(size);
    return posix_memalign(&block, align, size) == 0 ? block : NULL;
}

/* Returns the address of the slot's first word, which holds the address of its object's block.
 * [any thread, needs no lock] */
static _Atomic(void*)* word_of(void* slot) { return slot; }

/* Returns true if the phase `ref` was released, or its record serves another phase by now; false while it is open or
 * drains. [any thread, needs no lock] */
static bool is_released(TsiArena* a, TsiRef ref) {
    /* seq_cst: pairs with the store of an end, which reads the mark and the list afterwards (ST3) */
    uint64_t word = tsi_load_seq(&tsi_inc(&a->phases, tsi_ref_index(ref))->word);
    return word >> 2 != tsi_ref_era(ref) || (word & TSI_INC_STATE) == TSI_INC_RELEASED;
}

bool tsi_stand_in_due(TsiArena* a, TsiBinding* b) {
    struct TsiStandIns* stand_ins = a->stand_ins;
    if (a->samples_guards) {
        if (b == NULL || (b->guard_left != 0 && --b->guard_left != 0)) return false;
        b->dice = b->dice * 1664525u + 1013904223u; /* as in sample.c */
        uint32_t span = 2 * a->options.guard_sampling - 1;
        b->guard_left = 1 + (uint32_t)(((uint64_t)b->dice * span) >> 32);
        return true;
    }

    if (stand_ins->period == 0) return false;
    tsi_lock_take(&tsi_stand_in_lock);
    bool due = --stand_ins->left == 0;
    if (due) stand_ins->left = stand_ins->period;
    tsi_lock_give(&tsi_stand_in_lock);
    return due;
}

/* Takes the stripe of the phase `ref`, where a slot may be written under it alone: with sampled guards (ST5), and where
 * the pages of an ended phase are read-only. The take is not counted, since nothing of the phase changes. Returns
 * the stripe, which the caller gives back, or NULL if none is needed. [any thread, no lock held] */
static TsiLock* hold_to_write(TsiArena* a, TsiRef ref) {
    if (!a->samples_guards && !tsi_os.strict_commit) return NULL;
    TsiLock* stripe = tsi_inc_lock(tsi_inc(&a->phases, tsi_ref_index(ref)));
    tsi_lock_take(stripe);
    return stripe;
}

/* Clears the first word of a slot whose object stays there (ST4), unless its phase `ref` was released: then the slot
 * may be another object's. With sampled guards (a->samples_guards) writes nothing and takes no lock (ST5); otherwise
 * takes the stand-in lock. Returns the slot. [any thread, no lock held] */
static void* stay_in_slot(TsiArena* a, void* slot, TsiRef ref) {
    if (a->samples_guards) return slot; /* ST5 */
    TsiLock* stripe = hold_to_write(a, ref);
    tsi_lock_take(&tsi_stand_in_lock);
    if (!is_released(a, ref)) tsi_store_relaxed(word_of(slot), NULL); /* otherwise it may be another object's */
    tsi_lock_give(&tsi_stand_in_lock);
    if (stripe != NULL) tsi_lock_give(stripe);
    return slot;
}

void tsi_stand_in_unlink(const TsiArena* a, void* slot, void* block) {
    /* By exchange: the slot may be another object's by now, which does not lead to the block. relaxed: the free of the
     * slot publishes it. */
    if (a->samples_guards)
        (void)atomic_compare_exchange_strong_explicit(word_of(slot), &block, NULL, memory_order_relaxed,
                                                      memory_order_relaxed);
}

TSI_NOINLINE void* tsi_stand_in_make(TsiArena* a, void* slot, TsiRef ref, size_t size, size_t align, bool due) {
    TSI_KEEP_FRAME();
    if (align > TSI_STAND_IN_ALIGN_MAX) return slot;
    int saved = errno;
    if (!due && !a->stand_ins->others) return stay_in_slot(a, slot, ref);

    TsiPlace at; /* only its class and slab are used: the slot may be another object's by now */
    bool there = tsi_space_locate(&a->space, slot, &at) == TSI_PLACE_OK;
    /* before the phase's state is read below: until it ends the slab stays in the incarnation */
    uint32_t seq = there ? tsi_tag_seq(tsi_load_seq(&tsi_slab(&a->space, at.slab_id)->tag)) : 0;
    if (there) align = alignment_of(a, &at, slot, align);
    struct TsiSheets* sheets = a->stand_ins->sheets;

    TsiStandIn* stand_in = sheets != NULL ? tsi_sheet_cell_take(sheets) : malloc(sizeof *stand_in);
    void* block = stand_in != NULL && due ? tsi_sheet_take_guarded(sheets, ref, size, align) : NULL;
    if (block == NULL && stand_in != NULL && a->stand_ins->others)
        block = sheets != NULL ? tsi_sheet_take(sheets, ref, size, align) : new_block(size, align);
    if (block == NULL) {
        if (sheets == NULL) free(stand_in);
        else if (stand_in != NULL) tsi_sheet_cell_give(sheets, stand_in);
        errno = saved;
        if (!a->stand_ins->others) return stay_in_slot(a, slot, ref);
        errno = ENOMEM;
        return NULL;
    }
    errno = saved;

    *stand_in = (TsiStandIn){.block = block, .bytes = size, .slot = slot, .arena = a, .ref = ref, .seq = seq};
    /* ST5: the thread that takes the slot next does not come by the stand-in lock. */
    TsiLock* stripe = hold_to_write(a, ref);
    tsi_lock_take(&tsi_stand_in_lock);
    /* seq_cst, before the state is read: pairs with an end, which changes the state, then reads the mark */
    tsi_store_seq(&a->stand_ins->marks[tsi_ref_index(ref)], 1);
    bool ended = is_released(a, ref);
    if (!ended) tsi_store_relaxed(word_of(slot), block); /* otherwise the slot may be another object's */
    insert_locked(stand_in);
    /* The program gets an object that has ended, as without stand-ins. */
    if (TSI_UNLIKELY(ended)) remove_locked(stand_in, SLAB_MISUSE_STALE_FREE);
    tsi_lock_give(&tsi_stand_in_lock);
    if (stripe != NULL) tsi_lock_give(stripe);

    if (TSI_LIKELY(!ended)) return block;
    stand_in->next = NULL;
    free_list(stand_in);
    return block;
}

TSI_NOINLINE void tsi_stand_in_drop(TsiArena* a, void* block, const void* slot) {
    TSI_KEEP_FRAME();
    tsi_lock_take(&tsi_stand_in_lock);
    TsiStandIn* stand_in = find_locked(a, block);
    bool its = stand_in != NULL && stand_in->block == block && stand_in->slot == slot;
    if (its) remove_locked(stand_in, SLAB_MISUSE_DOUBLE_FREE);
    tsi_lock_give(&tsi_stand_in_lock);
    if (!its) return;
    stand_in->next = NULL;
    free_list(stand_in);
}

/* Takes from *list, the list of a record of incarnations, the stand-ins of the incarnation `ref`, or with ref 0 all,
 * off the tree and the list, as stale from here on. The record may serve a later incarnation, whose stand-ins stay.
 * Takes the stand-in lock. Returns them as a list of their own, chained by `next`, NULL if there are none. [any
 * thread, no lock held] */
static TsiStandIn* take_list(TsiStandIn** list, TsiRef ref) {
    TsiStandIn* taken = NULL;
    tsi_lock_take(&tsi_stand_in_lock);
    for (TsiStandIn *stand_in = *list, *next; stand_in != NULL; stand_in = next) {
        next = stand_in->next;
        if (ref != 0 && stand_in->ref != ref) continue;
        remove_locked(stand_in, SLAB_MISUSE_STALE_FREE);
        stand_in->next = taken;
        taken = stand_in;
    }
    tsi_lock_give(&tsi_stand_in_lock);
    return taken;
}

/* Returns true if the mark of the record of `ref` is 0: no block was made there since unmark cleared it. The caller
 * has ended the phase before, by a seq_cst store, so that a block that is made meanwhile is ended by its maker.
 * [any thread, needs no lock] */
static bool is_unmarked(const TsiArena* a, TsiRef ref) {
    return tsi_load_seq(&a->stand_ins->marks[tsi_ref_index(ref)]) == 0; /* pairs with tsi_stand_in_make */
}

/* Sets the mark of the record of `ref` to 0 if no incarnation of that record has a block. Takes the stand-in lock.
 * [any thread, no lock held] */
static void unmark(TsiArena* a, TsiRef ref) {
    tsi_lock_take(&tsi_stand_in_lock);
    uint32_t at = tsi_ref_index(ref);
    /* seq_cst, like the mark's other store: a maker sets it again under this lock before it reads the phase's state */
    if (a->stand_ins->of_inc[at] == NULL) tsi_store_seq(&a->stand_ins->marks[at], 0);
    tsi_lock_give(&tsi_stand_in_lock);
}

TSI_NOINLINE void tsi_stand_ins_end(TsiArena* a, TsiRef ref) {
    TSI_KEEP_FRAME();
    if (is_unmarked(a, ref)) return;
    free_list(take_list(&a->stand_ins->of_inc[tsi_ref_index(ref)], ref));
    if (a->stand_ins->sheets != NULL) tsi_sheets_ended(a->stand_ins->sheets, ref, true);
    unmark(a, ref);
}

void tsi_stand_ins_drained(TsiArena* a, TsiRef ref) {
    if (is_unmarked(a, ref)) return;
    if (a->stand_ins->sheets != NULL) tsi_sheets_ended(a->stand_ins->sheets, ref, false);
}

void tsi_stand_ins_close(TsiArena* a) {
    TSI_KEEP_FRAME();
    if (a->stand_ins == NULL) return;
    for (uint32_t n = 0; n < tsi_table_used(&a->phases.incs); n++) free_list(take_list(&a->stand_ins->of_inc[n], 0));
    if (a->stand_ins->sheets != NULL) tsi_sheets_close(a->stand_ins->sheets);
    tsi_os_drop(a->stand_ins, a->stand_ins->bytes);
    a->stand_ins = NULL;
}

/* ---- names ---- */

/* Returns true if p is surely in no block of the allocator, by its address: the blocks are on sheets, and p is not.
 * False: the tree must be asked. a->stand_ins is not NULL. [any thread, needs no lock] */
static bool is_outside(const TsiArena* a, const void* p) {
    return a->stand_ins->sheets != NULL && !tsi_sheets_own(a->stand_ins->sheets, p);
}

/* Returns true if the slab of the stand-in's slot is still in the incarnation in which the block was made (ST5).
 * [stand-in lock held] */
static bool is_present(const TsiArena* a, const TsiStandIn* stand_in) {
    TsiPlace at;
    return tsi_space_locate(&a->space, stand_in->slot, &at) == TSI_PLACE_OK &&
           /* seq_cst: pairs with whoever ends the slab's incarnation, as in after_remote_free */
           tsi_tag_seq(tsi_load_seq(&tsi_slab(&a->space, at.slab_id)->tag)) == stand_in->seq;
}

void* tsi_stand_in_slot(const TsiArena* a, const void* p, uint32_t* seq) {
    *seq = 0;
    if (is_outside(a, p)) return (void*)(uintptr_t)p;
    tsi_lock_take(&tsi_stand_in_lock);
    const TsiStandIn* stand_in = find_locked(a, p);
    if (stand_in != NULL) *seq = stand_in->seq;
    void* slot = stand_in != NULL ? stand_in->slot + ((const uint8_t*)p - stand_in->block) : (void*)(uintptr_t)p;
    tsi_lock_give(&tsi_stand_in_lock);
    return slot;
}

SlabMisuse tsi_stand_in_misuse(const TsiArena* a, const void* p, SlabMisuse foreign) {
    if (a->stand_ins == NULL || foreign != SLAB_MISUSE_FOREIGN_POINTER) return foreign;
    tsi_lock_take(&tsi_stand_in_lock);
    uint32_t n = gone_count, most = n < GONE_KEPT ? n : GONE_KEPT;
    SlabMisuse what = foreign;
    for (; most != 0 && what == foreign; most--) {
        const Gone* row = &gone[--n % GONE_KEPT];
        if (row->block == p && row->serial == a->serial) what = row->what;
    }
    tsi_lock_give(&tsi_stand_in_lock);
    return what;
}

/* Returns the stand-in whose block the slot's first word points to, if it is one of the allocator's, for this slot,
 * and is_present returns true; otherwise NULL: the word may be anything when the object has ended. The slot can be
 * read. [stand-in lock held] */
static const TsiStandIn* find_by_slot_locked(const TsiArena* a, void* slot) {
    TSI_HOLDS(&tsi_stand_in_lock);
    const void* block = tsi_load_relaxed(word_of(slot));
    const TsiStandIn* stand_in = find_locked(a, block);
    bool its = stand_in != NULL && stand_in->block == block && stand_in->slot == slot;
    return its && is_present(a, stand_in) ? stand_in : NULL;
}

void* tsi_stand_in_block(const TsiArena* a, void* slot) {
    if (is_outside(a, tsi_load_relaxed(word_of(slot)))) return slot;
    tsi_lock_take(&tsi_stand_in_lock);
    const TsiStandIn* stand_in = find_by_slot_locked(a, slot);
    void* block = stand_in != NULL ? stand_in->block : slot;
    tsi_lock_give(&tsi_stand_in_lock);
    return block;
}

size_t tsi_stand_in_bytes(const TsiArena* a, void* slot, size_t usable) {
    if (is_outside(a, tsi_load_relaxed(word_of(slot)))) return usable;
    tsi_lock_take(&tsi_stand_in_lock);
    const TsiStandIn* stand_in = find_by_slot_locked(a, slot);
    size_t bytes = stand_in != NULL ? stand_in->bytes : usable;
    tsi_lock_give(&tsi_stand_in_lock);
    return bytes;
}
