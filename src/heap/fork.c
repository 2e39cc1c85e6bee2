/*
 * fork.c - repairs, in the child of a fork, what vanished threads left half done.
 *
 * The parent takes every lock before the fork, in lock order, so in the child no list that a lock guards is half
 * changed. Brackets of other threads cannot be stopped. Their words are changed by single stores, so in the child they
 * are whole, except that one operation of each vanished thread may have happened or not, and a refill half: it is
 * undone.
 *
 * Where the process has had no other thread (tsi_os_is_alone) nothing needs repair: the child goes on with what it has,
 * whatever its size.
 *
 * Otherwise the child detaches the heaps of vanished threads, closes their inboxes and drops their rooms (adoption
 * makes new ones). Sums, charges and the chains of those heaps are made anew from the tags, so all that a vanished
 * thread had in its hands comes back, and a line's token, too (F2). Incarnations whose close was under way are swept,
 * and drained ones run the cleanups that nobody had begun. Incarnations that a vanished thread was making or ending for
 * a domain are ended. Records that such a thread held stay unused in the child.
 *
 * The child reads all words of slabs and lines but writes only those that have to change, since each page that it
 * writes is copied: a server that forks to save its data needs little more memory than before.
 *
 * Invariants
 *   F1  A heap of the forking thread that is LIVE stays as it is, with its room: the thread is inside no bracket, and
 *       others change nothing that the room is made of. A heap that somebody had asked for is RETIRE.
 *   F2  A line of such a heap that is armed in the child has its token in its word, and too few free slots to be told
 *       of. A token that was with a freer, in an inbox, or to be passed on from one (line.c, T1 and T3) is with the
 *       owner again, which looks whether the line has room. Without an owner a line without its token is not armed any
 *       more, and adoption looks at all lines.
 *   F3  The lists of the pool are those of the parent unless a slab tagged POOL is in none of them, or pages of a chunk
 *       were on their way: they change under its lock alone, which the parent had.
 */
#include "heap/fork.h"

#include "heap/decay.h"

#include "state/bracket.h"
#include "account/charge.h"
#include "heap/close.h"
#include "heap/bump.h"
#include "heap/finish.h"
#include "threads/bank.h"
#include "heap/late_frees.h"
#include "heap/line.h"
#include "heap/records.h"
#include "heap/ready.h"
#include "threads/registry.h"
#include "heap/settle.h"
#include "observe/stand_in.h"
#include "heap/warm.h"
#include "mem/large.h"
#include "mem/parts.h"
#include "mem/pool.h"

#include <pthread.h>

void (*tsi_fork_drop_scopes)(void);
void (*tsi_fork_drop_segment)(void);
TsiLock tsi_segment_lock = TSI_LOCK_OF(SEGMENT);

/* Calls op with each lock of the arena that comes after the stripes, in lock order. [all locks before these held] */
static void inner_locks(TsiArena* a, void (*op)(TsiLock*)) {
    op(&a->space.lock);
    op(&a->phases.labels.lock);
    op(&a->phases.eras.lock);
    op(&a->phases.labels.records.lock);
    op(&a->phases.incs.lock);
    op(&a->phases.ends.lock);
    op(&a->heaps.lock);
    op(&a->rooms.lock);
    op(&a->domains.lock);
    op(&a->bindings.lock);
    op(&a->closed_log.lock);
    op(&a->profile.lock);
}

static bool alone; /* the process that forks has one thread; written under all locks */

/* Takes every lock of the process, in lock order, which in_parent and in_child give back, and sets `alone` to whether
 * the process has one thread. [thread that forks, no lock held] */
static void prepare(void) {
    TsiArena* a;
    tsi_lock_all(true);
    tsi_lock_take(&tsi_segment_lock);
    tsi_lock_take(&tsi_registry_lock);
    for (uint32_t at = 0; (a = tsi_registry_next(&at)) != NULL;) tsi_lock_take(&a->phases.ring_lock);
    for (unsigned i = 0; i < TSI_STRIPES; i++) tsi_lock_take(&tsi_stripes[i].lock);
    for (uint32_t at = 0; (a = tsi_registry_next(&at)) != NULL;) inner_locks(a, tsi_lock_take);
    tsi_lock_take(&tsi_stand_in_lock);
    alone = tsi_os_is_alone();
}

/* Calls op with each lock of the process, in the opposite order of prepare's, but inside an arena in the same: to give
 * it, in the parent, or to reset it, in the child, where the waiters are gone. [all locks of the process held] */
static void release_all(void (*op)(TsiLock*)) {
    TsiArena* a;
    op(&tsi_stand_in_lock);
    for (uint32_t at = 0; (a = tsi_registry_next(&at)) != NULL;) inner_locks(a, op);
    for (unsigned i = 0; i < TSI_STRIPES; i++) op(&tsi_stripes[i].lock);
    for (uint32_t at = 0; (a = tsi_registry_next(&at)) != NULL;) op(&a->phases.ring_lock);
    op(&tsi_registry_lock);
    op(&tsi_segment_lock);
}

/* Empties the heap's chain and sets its counts of slabs and bytes to 0: child_slabs finds its slabs by their tags.
 * [fork child] */
static void forget_slabs(TsiHeap* h) {
    tsi_store_relaxed(&h->slabs, 0);
    tsi_store_relaxed(&h->slab_count, 0);
    tsi_store_relaxed(&h->slab_bytes, 0);
}

/* Makes heaps of vanished threads, and lent ones, DETACHED, without a room and without slabs until child_slabs finds
 * these; DEAD ones lose these, too, and their records stay unused. Heaps of the forking thread that were asked for
 * become RETIRE; heaps that wait lose their regions (tsi_ready_child). A sweep that vanished between its two holds is
 * void. [fork child] */
static void child_heaps(TsiArena* a) {
    for (uint32_t n = 0; n < tsi_table_used(&a->heaps); n++) {
        TsiHeap* h = tsi_heap(a, n);
        uint64_t word = tsi_load_relaxed(&h->word);
        unsigned state = tsi_heap_state(word);
        if (state == TSI_HEAP_DETACHED) {
            forget_slabs(h);
            continue;
        }

        bool ready = state == TSI_HEAP_STANDBY || state == TSI_HEAP_STANDBY_EMPTY;
        if (ready) tsi_ready_child(a, h, tsi_binding_at(a, word)->thread == tsi_tls.thread);
        bool lent = state == TSI_HEAP_LENT;
        if (!lent && !tsi_state_has_owner(state)) continue;
        if (!lent && tsi_binding_at(a, word)->thread == tsi_tls.thread) {
            if (state != TSI_HEAP_DEAD && state != TSI_HEAP_LIVE) /* F1 */
                tsi_store_relaxed(&h->word, tsi_heap_word(tsi_heap_binding(word), TSI_HEAP_RETIRE));
            continue;
        }

        h->room = NULL;
        tsi_bump_drop(NULL, h);
        h->primary = h->index;
        forget_slabs(h);
        if (state == TSI_HEAP_DEAD) continue; /* its record stays unused */
        h->adopted = 0;
        tsi_store_relaxed(&h->roomy, UINT64_MAX); /* nobody has looked */
        tsi_store_relaxed(&tsi_heap_inc(a, h)->roomy, UINT64_MAX);
        tsi_store_relaxed(&h->word, tsi_detached_word());
        tsi_add_relaxed(&tsi_heap_inc(a, h)->detached, 1);
    }
}

/* Empties the stores and inboxes of all bindings in use, and closes the inboxes of vanished threads, whose brackets and
 * chains of heaps are dropped. The slabs of stores are found by their tags afterwards (child_slabs). [fork child] */
static void child_bindings(TsiArena* a) {
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        TsiBinding* b = tsi_table_at(&a->bindings, n);
        if (!tsi_load_relaxed(&b->in_use)) continue;
        tsi_warm_forget(b); /* child_slabs returns what is tagged WARM */
        bool own = b->thread == tsi_tls.thread;
        bool open = own && tsi_load_relaxed(&b->inbox) != TSI_INBOX_CLOSED;
        tsi_store_relaxed(&b->inbox, open ? TSI_INBOX_EMPTY : TSI_INBOX_CLOSED);
        if (own) continue;
        tsi_store_relaxed(&b->busy, 0);
        b->own_heaps = 0;
    }
}

/* Returns true if the heap is LIVE and the forking thread's. [fork child] */
static bool is_kept(const TsiArena* a, TsiHeap* h) {
    uint64_t word = tsi_load_relaxed(&h->word);
    return tsi_heap_state(word) == TSI_HEAP_LIVE && tsi_binding_at(a, word)->thread == tsi_tls.thread;
}

/* Repairs the lines of the OWNED slab `id`, of the class cls, in heap h: between two stores of a refill slots are in
 * avail and freed, before they are counted: they stay freed alone. A token that was on its way is with the owner again,
 * and the line filed if it has room; without an owner the line is not armed any more (F2). Writes only what changes.
 * [fork child] */
static void child_lines(TsiArena* a, TsiHeap* h, uint32_t id, unsigned cls) {
    TsiSpace* s = &a->space;
    const TsiClass* shape = &s->classes->c[cls];
    uint32_t seq = tsi_tag_seq(tsi_load_relaxed(&tsi_slab(s, id)->tag));
    bool kept = is_kept(a, h);
    for (uint32_t i = 0, first = tsi_first_line(shape, id); i < 1u << shape->lines_log2; i++) {
        TsiLine* l = tsi_line(s, first + i);
        uint64_t avail = tsi_load_relaxed(&l->avail), freed = tsi_load_relaxed(&l->freed);
        uint8_t flags = tsi_load_relaxed(&l->flags);
        if ((avail & freed) != 0) tsi_store_relaxed(&l->avail, avail & ~freed);
        bool lost = (flags & TSI_LINE_ARMED) != 0 && (tsi_load_relaxed(&l->remote[0]) & TSI_REMOTE_TOKEN) == 0; /* F2 */
        if (kept) tsi_line_take_in(tsi_binding_at(a, tsi_load_relaxed(&h->word)), h, cls, first + i, seq);
        else if (lost) tsi_store_relaxed(&l->flags, flags & (uint8_t)~TSI_LINE_ARMED);
    }
}

/* Puts an OWNED slab `id`, with `tag`, of a DETACHED heap back into the heap's chain and its counts; of a vanished
 * thread's DEAD heap, since a sweep had left it to that thread, among the orphans of its incarnation. A slab of any
 * other heap stays as it is. [fork child] */
static void child_owned(TsiArena* a, uint32_t id, unsigned cls, uint64_t tag) {
    TsiSpace* s = &a->space;
    TsiHeap* h = tsi_heap(a, tsi_tag_index(tag));
    uint64_t word = tsi_load_relaxed(&h->word);
    if (tsi_heap_state(word) == TSI_HEAP_DETACHED) {
        tsi_slab(s, id)->next = tsi_load_relaxed(&h->slabs);
        tsi_store_relaxed(&h->slabs, id + 1);
        tsi_add_relaxed(&h->slab_count, 1);
        tsi_add_relaxed(&h->slab_bytes, s->classes->c[cls].slab_bytes);
    } else if (tsi_heap_state(word) == TSI_HEAP_DEAD && tsi_binding_at(a, word)->thread != tsi_tls.thread) {
        TsiInc* inc = tsi_heap_inc(a, h);
        tsi_skipped_add_locked(a, inc, id, -1);
        tsi_slab_to_orphan(a, inc, id);
    }
}

/* Repairs all slabs by their tags: PARTIAL ones are orphans again, PURGING ones go to the pool, WARM ones, and units
 * that a vanished thread had taken for a large object, to the system, those of heaps without a thread into their chains
 * again. Then makes the pool's lists anew where that is needed (F3). [fork child] */
static void child_slabs(TsiArena* a) {
    TsiSpace* s = &a->space;
    tsi_parts_child(s);

    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk);
        if (cls == 0 || cls == TSI_CLASS_CONT) continue;
        for (uint32_t k = 0; k < tsi_chunk_slab_count(s, cls); k++) {
            uint32_t id = tsi_slab_id(chunk, k);
            _Atomic uint64_t* tag = &tsi_slab(s, id)->tag;
            uint64_t now = tsi_load_relaxed(tag);
            unsigned state = tsi_tag_state(now);
            if (state == TSI_SLAB_PARTIAL) tsi_store_relaxed(tag, (now & ~(uint64_t)TSI_SLAB_STATE) | TSI_SLAB_ORPHAN);
            if (tsi_load_relaxed(&tsi_slab(s, id)->inbox) != 0) tsi_store_relaxed(&tsi_slab(s, id)->inbox, 0);
            bool region = tsi_class_is_region(cls);
            if (region) tsi_region_recount(s, id, tsi_state_holds_objects(tsi_load_relaxed(tag)));
            if (state == TSI_SLAB_OWNED && !region) child_lines(a, tsi_heap(a, tsi_tag_index(now)), id, cls);
            if (state == TSI_SLAB_OWNED) child_owned(a, id, cls, now);
            if (state == TSI_SLAB_PURGING) tsi_return_claimed(a, id);
            if (state == TSI_SLAB_WARM) (void)tsi_space_purge(s, &id, 1);
            bool lost = state == TSI_SLAB_POOL && cls == TSI_CLASS_LARGE && tsi_large_is_used(s, id);
            if (lost) (void)tsi_space_give_large(s, id, false);
            if (tsi_chunk_class(s, chunk) != cls) break; /* that was its last slab */
        }
    }

    tsi_space_rebuild(s);
}

/* Sets all charges of phases and labels to 0, and charges each OWNED slab and orphan again, by the tags.
 * [fork child] */
static void child_charges(TsiArena* a) {
    TsiSpace* s = &a->space;
    tsi_charges_forget(a);
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk);
        for (uint32_t k = 0; cls != 0 && cls != TSI_CLASS_CONT && k < tsi_chunk_slab_count(s, cls); k++) {
            uint64_t tag = tsi_load_relaxed(&tsi_slab(s, tsi_slab_id(chunk, k))->tag);
            uint32_t index = tsi_tag_index(tag);
            bool owned = tsi_tag_state(tag) == TSI_SLAB_OWNED;
            if (!owned && tsi_tag_state(tag) != TSI_SLAB_ORPHAN) continue;
            tsi_charge_again(a, owned ? tsi_heap_inc(a, tsi_heap(a, index)) : tsi_inc(&a->phases, index),
                             tsi_slab_bytes(s, cls, tsi_slab_id(chunk, k)));
        }
    }
}

/* Sweeps incarnations that are closed or released, whose end may have been under way, and ends, with their objects,
 * those whose domain no thread has any more. Runs cleanups of the program. Takes the stripes.
 * [fork child, locks free again] */
static void child_sweep(TsiArena* a) {
    TsiBinding* b = tsi_binding_get(a, false);
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        TsiInc* inc = tsi_inc(&a->phases, n);
        uint64_t era = tsi_inc_era(inc);
        bool domain = (tsi_load_relaxed(&inc->id) & TSI_DOMAIN_ID_BIT) != 0;
        if (era != 0 && tsi_inc_state(inc) >= TSI_INC_CLOSED) {
            tsi_phase_lock(inc);
            inc->pins++;
            tsi_phase_unlock(inc);
            (void)tsi_inc_sweep(a, b, inc, era, 0);
            tsi_inc_unpin(a, b, inc);                   /* it may have drained; its cleanups' thread is gone */
        } else if (era != 0 && domain && !inc->named) { /* its domain's thread vanished while making or ending it */
            (void)tsi_epoch_end(a, tsi_ref(era, n), EPOCH_RELEASE, TSI_END_OWN, NULL);
        }
    }
}

/* Repairs, in every allocator, all that other threads had, or were in the middle of: threads that were leaving, scopes,
 * heaps, bindings, banks, slabs, charges and figures of orphans; then sweeps ends that were under way, which runs
 * cleanups of the program. [fork child, locks free again] */
static void child_repair(void) {
    TsiArena* a;
    for (uint32_t at = 0; (a = tsi_registry_next(&at)) != NULL;) {
        /* threads that were leaving are gone, but for the one that forks */
        bool held = tsi_tls.thread != NULL && tsi_tls.thread->held == a;
        tsi_store_relaxed(&a->exiting, held ? 1u : 0u);
    }

    if (tsi_fork_drop_scopes != NULL) tsi_fork_drop_scopes();
    for (uint32_t at = 0; (a = tsi_registry_next(&at)) != NULL;) {
        child_heaps(a);
        child_bindings(a);
        tsi_banks_child(a);
        child_slabs(a);
        child_charges(a);
        tsi_late_child(a);
    }

    tsi_registry_child();
    for (uint32_t at = 0; (a = tsi_registry_next(&at)) != NULL;) child_sweep(a);
}

/* Frees all locks, makes the segment the parent's alone, and repairs what vanished threads left, unless the process had
 * one thread; then makes the first look due. [fork child] */
static void in_child(void) {
    TsiArena* a;
    release_all(tsi_lock_reset);
    tsi_os_after_fork();
    if (!tsi_os.has_membarrier) tsi_store_relaxed(&tsi_barrier_failed, true); /* it may have been there before */
    if (tsi_fork_drop_segment != NULL) tsi_fork_drop_segment();
    if (!alone) child_repair();
    for (uint32_t at = 0; (a = tsi_registry_next(&at)) != NULL;) tsi_decay_begin(a);
    tsi_lock_all(false);
}

/* Gives all locks back. [thread that has forked, all locks of the process held] */
static void in_parent(void) {
    release_all(tsi_lock_give);
    tsi_lock_all(false);
}

void tsi_fork_init(void) { (void)pthread_atfork(prepare, in_parent, in_child); }
