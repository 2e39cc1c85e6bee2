/* registry.c - see registry.h. */
#include "threads/registry.h"

#include "base/check.h"
#include "state/bracket.h"
#include "observe/profile.h"
#include "mem/region.h"

#include <pthread.h>
#include <string.h>

enum { ARENAS_MAX = 1 << 16, THREADS_MAX = 1 << 16, THREADS_LEAST = 1 << 10 };

_Thread_local TsiTls tsi_tls TSI_TLS_MODEL = {.record = &tsi_no_thread, .serial = UINT64_MAX};
TsiThread tsi_no_thread = {.owner = TSI_NO_OWNER};
TsiLock tsi_registry_lock = TSI_LOCK_OF(REGISTRY);
_Atomic uint64_t tsi_registry_removals;
_Atomic(_Atomic uint64_t*) tsi_marks[TSI_MARKS];
uint32_t (*tsi_domain_scopes)(const TsiArena*, uint32_t domain, TsiRef ref);

static TsiTable arena_slots; /* TsiArenaSlot; under the registry lock */
static TsiTable threads;     /* under the registry lock */
static TsiGround ground;     /* of both */
static uint64_t threads_made;
static _Atomic uint32_t arenas_now;
static uint64_t serial_next = 1; /* a serial is this and the slot */
static pthread_key_t key;
static bool key_ok;

typedef struct TsiArenaSlot {
    uint64_t serial; /* share/gdb compares it with the arena's */
    TsiArena* arena;
} TsiArenaSlot;

enum { THREAD_STRIDE = (sizeof(TsiThread) + 63) & ~(size_t)63 };

/* Returns the arena with this serial, by its slot, or NULL if it has gone or never was. Good while the lock is held.
 * [registry lock held] */
static TsiArena* arena_by_serial_locked(uint64_t serial) {
    TSI_HOLDS(&tsi_registry_lock);
    uint32_t slot = (uint32_t)serial % ARENAS_MAX;
    TsiArenaSlot* entry = slot < tsi_table_used(&arena_slots) ? tsi_table_at(&arena_slots, slot) : NULL;
    return entry != NULL && entry->serial == serial ? entry->arena : NULL;
}

/* Returns true if there is address space for a small allocator beside the present reservations.
 * [any thread, needs no lock] */
static bool room_for_one(void) {
    const size_t bytes = TSI_MIB(56);
    if (tsi_os.sparse || tsi_os.space_limit == UINT64_MAX) return true;
    void* p = tsi_os.reserve(bytes);
    if (p != NULL) tsi_os.unmap(p, bytes);
    return p != NULL;
}

bool tsi_registry_open(void) {
    tsi_lock_take(&tsi_registry_lock);
    /* Here, not once per process: a process that was short of memory may have some now. */
    for (uint32_t n = THREADS_MAX; ground.base == NULL && n >= THREADS_LEAST; n /= 2) {
        bool made = tsi_ground_reserve(&ground, tsi_table_room(sizeof(TsiArenaSlot), ARENAS_MAX, false) +
                                                    tsi_table_room(THREAD_STRIDE, n, false));
        if (made && n > THREADS_LEAST && !room_for_one()) tsi_ground_drop(&ground);
        if (ground.base == NULL) continue;
        tsi_table_init_in(&arena_slots, &ground, sizeof(TsiArenaSlot), ARENAS_MAX, false);
        tsi_table_init_in(&threads, &ground, THREAD_STRIDE, n, false);
        threads.spare = 0; /* nobody keeps an index of a thread: the lowest is taken again */
    }

    bool ok = ground.base != NULL;
    tsi_lock_give(&tsi_registry_lock);
    return ok;
}

bool tsi_registry_add(TsiArena* a) {
    uint32_t slot = 0;
    tsi_lock_take(&tsi_registry_lock);
    bool ok = tsi_table_take(&arena_slots, &slot, 0);
    if (ok) {
        a->serial = serial_next++ * ARENAS_MAX + slot;
        a->slot = slot;
        *(TsiArenaSlot*)tsi_table_at(&arena_slots, slot) = (TsiArenaSlot){a->serial, a};
        tsi_add_relaxed(&arenas_now, 1);
    }
    tsi_lock_give(&tsi_registry_lock);
    return ok;
}

void tsi_registry_remove(TsiArena* a) {
    tsi_lock_take(&tsi_registry_lock);
    *(TsiArenaSlot*)tsi_table_at(&arena_slots, a->slot) = (TsiArenaSlot){0, NULL};
    tsi_table_give(&arena_slots, a->slot);
    tsi_sub_relaxed(&arenas_now, 1);

    for (uint32_t n = 0; n < tsi_table_used(&threads); n++) {
        TsiThread* thread = tsi_table_at(&threads, n);
        SlabAllocator* owner = a->owner;
        /* By exchange: the thread may be about to use another allocator. Relaxed: the maker of the next one at this
         * address, and every thread that learns of it, comes after the end of this one. */
        if (tsi_load_relaxed(&thread->owner) == owner) /* first: records whose pages have gone are not written */
            (void)atomic_compare_exchange_strong_explicit(&thread->owner, &owner, TSI_NO_OWNER, memory_order_relaxed,
                                                          memory_order_relaxed);
    }

    tsi_lock_give(&tsi_registry_lock);
    tsi_add_relaxed(&tsi_registry_removals, 1);
    if (tsi_tls.serial == a->serial) tsi_tls_forget();

    /* acquire: pairs with the release in thread_exit: the leaver's last access happened before */
    for (unsigned turn = 0; tsi_load_acquire(&a->exiting) != 0;) tsi_os_yield(&turn);
}

uint32_t tsi_registry_count(void) { return tsi_load_relaxed(&arenas_now); }

TsiArena* tsi_registry_next(uint32_t* at) {
    while (*at < tsi_table_used(&arena_slots)) {
        TsiArenaSlot* slot = tsi_table_at(&arena_slots, (*at)++);
        if (slot->arena != NULL) return slot->arena;
    }
    return NULL;
}

TsiArena* tsi_registry_hold(uint64_t serial) {
    tsi_lock_take(&tsi_registry_lock);
    TsiArena* a = arena_by_serial_locked(serial);
    if (a != NULL) tsi_add_relaxed(&a->exiting, 1);
    tsi_lock_give(&tsi_registry_lock);
    return a;
}

TsiArena* tsi_registry_hold_after(uint64_t serial) {
    TsiArena *found = NULL, *a;
    tsi_lock_take(&tsi_registry_lock);
    for (uint32_t at = 0; (a = tsi_registry_next(&at)) != NULL;)
        if (a->serial > serial && (found == NULL || a->serial < found->serial)) found = a;
    if (found != NULL) tsi_add_relaxed(&found->exiting, 1);
    tsi_lock_give(&tsi_registry_lock);
    return found;
}

TsiArena* tsi_registry_hold_domain(const void* record) {
    TsiArena* found = NULL;
    tsi_lock_take(&tsi_registry_lock);
    TsiArena* a;
    for (uint32_t at = 0; found == NULL && (a = tsi_registry_next(&at)) != NULL;)
        if ((uintptr_t)record - (uintptr_t)a->domains.base < a->domains.bytes_reserved) found = a;
    if (found != NULL) tsi_add_relaxed(&found->exiting, 1);
    tsi_lock_give(&tsi_registry_lock);
    return found;
}

void tsi_registry_unhold(TsiArena* a) {
    /* release: pairs with the acquire in tsi_registry_remove */
    atomic_fetch_sub_explicit(&a->exiting, 1, memory_order_release);
}

/* ---- threads ---- */

void tsi_tls_forget(void) {
    if (tsi_tls.record != &tsi_no_thread) tsi_store_relaxed(&tsi_tls.record->owner, TSI_NO_OWNER);
    tsi_tls.serial = UINT64_MAX;
}

void tsi_registry_at_exit(void (*fn)(void*)) { key_ok = pthread_key_create(&key, fn) == 0; }

/* Returns the calling thread's record, tsi_tls.thread; if there is none, takes one, fits it with its first tables, puts
 * it in tsi_tls and sets the destructor that gives it back as the thread exits. tsi_tls.number is then its number, or 0
 * if the thread is exiting already. Returns NULL, and changes nothing, without memory or a free record.
 * [own thread, no registry lock held] */
static TsiThread* thread_get(void) {
    if (tsi_tls.thread != NULL) return tsi_tls.thread;

    tsi_lock_take(&tsi_registry_lock);
    TsiThread* thread = NULL;
    uint32_t index;
    if (tsi_table_take(&threads, &index, 0)) {
        thread = tsi_table_at(&threads, index);
        thread->index = index;
        thread->number = ++threads_made;
        thread->alive = true;
        tsi_store_relaxed(&thread->owner, TSI_NO_OWNER);
    }
    tsi_lock_give(&tsi_registry_lock);

    if (thread == NULL) return NULL;
    if (thread->refs == NULL) {
        thread->refs = thread->first_refs;
        thread->ref_capacity = TSI_REFS_FIRST;
        thread->scopes = thread->first_scopes;
        thread->scope_capacity = TSI_SCOPES_FIRST;
    }

    /* in a late destructor too: ours runs once more, as often as the system allows */
    if (key_ok) (void)pthread_setspecific(key, thread);
    tsi_tls.thread = tsi_tls.record = thread;
    tsi_tls.number = tsi_tls.exiting ? 0 : thread->number;
    return thread;
}

/* Returns the bytes, in whole pages, of an array of n elements of `size` bytes. [any thread, needs no lock] */
static size_t array_bytes(size_t n, size_t size) { return tsi_align_up(n * size, tsi_os.page_bytes); }

/* Returns the entry of the table that has the serial, or the free one where it goes. The table has a free entry.
 * [own thread, needs no lock] */
static TsiBindingRef* ref_find(TsiBindingRef* refs, uint32_t capacity, uint64_t serial) {
    /* the low bits are the slot, used again */
    uint32_t i = (uint32_t)(serial * 0x9e3779b97f4a7c15u >> 32) & (capacity - 1);
    while (refs[i].serial != serial && refs[i].serial != 0) i = (i + 1) & (capacity - 1);
    return &refs[i];
}

/* Rebuilds the thread's table of bindings without those of dead arenas, at twice the size if the others fill half of
 * it, otherwise at its size; frees the old one. Returns false without memory: then the table stays, with the bindings
 * of dead arenas set to NULL and their places still filled. [own thread, no registry lock held] */
static bool refs_grow(TsiThread* thread) {
    uint32_t live = 0;
    tsi_lock_take(&tsi_registry_lock);
    for (uint32_t i = 0; i < thread->ref_capacity; i++) {
        if (thread->refs[i].serial == 0) continue;
        if (arena_by_serial_locked(thread->refs[i].serial) != NULL) live++;
        else thread->refs[i].binding = NULL;
    }
    tsi_lock_give(&tsi_registry_lock);

    uint32_t capacity = live * 2 >= thread->ref_capacity ? thread->ref_capacity * 2 : thread->ref_capacity;
    TsiBindingRef* refs = tsi_os_map(array_bytes(capacity, sizeof *refs));
    if (refs == NULL) return false;
    for (uint32_t i = 0; i < thread->ref_capacity; i++) {
        if (thread->refs[i].serial != 0 && thread->refs[i].binding != NULL)
            *ref_find(refs, capacity, thread->refs[i].serial) = thread->refs[i];
    }

    if (thread->refs != thread->first_refs) tsi_os.unmap(thread->refs, array_bytes(thread->ref_capacity, sizeof *refs));
    thread->refs = refs;
    thread->ref_capacity = capacity;
    thread->ref_count = live;
    return true;
}

bool tsi_scopes_grow(TsiThread* thread) {
    uint32_t capacity = thread->scope_capacity * 2;
    TsiScope* scopes = tsi_os_map(array_bytes(capacity, sizeof *scopes));
    if (scopes == NULL) return false;
    memcpy(scopes, thread->scopes, thread->scope_count * sizeof *scopes);
    TsiScope* old = thread->scopes;
    thread->scopes = scopes; /* before the old array goes: a fork child walks it */
    if (old != thread->first_scopes) tsi_os.unmap(old, array_bytes(thread->scope_capacity, sizeof *scopes));
    thread->scope_capacity = capacity;
    return true;
}

uint32_t tsi_scope_maker(const TsiBinding* b) {
    if (b->scope == 0) return 0;
    const TsiPhases* phases = &b->arena->phases;
    TsiRef scope = tsi_load_relaxed(&b->thread->scopes[b->scope - 1].phase->ref);
    if (scope == tsi_phases_current(phases) || !tsi_ref_is_current(phases, scope)) return 0;
    return tsi_inc_label(tsi_inc(phases, tsi_ref_index(scope))) + 1;
}

void tsi_scopes_refresh_slow(TsiThread* thread, uint64_t removals) {
    bool buried = false; /* a dead scope under a living one: look again next time */
    tsi_lock_take(&tsi_registry_lock);
    while (thread->scope_count != 0 && arena_by_serial_locked(thread->scopes[thread->scope_count - 1].serial) == NULL)
        thread->scope_count--;
    for (uint32_t n = 0; n < thread->scope_count && !buried; n++)
        buried = arena_by_serial_locked(thread->scopes[n].serial) == NULL;
    tsi_lock_give(&tsi_registry_lock);
    if (!buried) thread->seen_removals = removals;
}

/* ---- bindings ---- */

/* Takes a free record of a->bindings and fills it for `thread` (tsi_no_thread for a bank's) in the arena: no heap, no
 * bracket, inbox open, in_use true; fenced, if the system has no membarrier or one has failed. period: slow paths
 * between lock samples; mean: mean bytes between profile samples; 0: none of these. Returns the binding, which the
 * caller enters in the thread's table or the bank; NULL, and changes nothing, if there is no free record or no memory.
 * [own thread, or bank held] */
static TsiBinding* binding_open(TsiArena* a, TsiThread* thread, uint32_t period, uint64_t mean) {
    uint32_t index = 0;
    if (!tsi_table_take(&a->bindings, &index, 0)) return NULL;
    TsiBinding* b = tsi_table_at(&a->bindings, index);

    b->index = index;
    b->base = a->space.base;
    b->payload_bytes = a->space.payload_bytes;
    b->covered = tsi_load_acquire(&a->space.covered); /* pairs with cover in space.c */
    b->entries = a->space.entries;
    b->words = a->space.words;
    b->keys = a->space.keys;
    b->lines = tsi_line(&a->space, 0);
    b->counts = tsi_counts(&a->space, 0);
    b->secret = a->secret;
    b->heaps_base = tsi_heap(a, 0);
    b->classes = a->space.classes;
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++)
        b->ready_size[rank] = b->classes->c[tsi_region_class(rank)].slab_bytes;

    b->arena = a;
    b->incs_base = a->phases.incs.base;
    b->thread = thread;
    b->scope = 0;
    b->own_heaps = 0;
    b->heap = &tsi_no_heap;
    b->cur = tsi_no_cur;
    b->region = NULL;
    for (unsigned n = 0; n < TSI_HEAP_CACHE; n++) b->by_inc[n] = &tsi_no_heap;
    b->bank = 0;

    b->period = period;
    if (period != 0) b->samples.locks.period = period; /* if 0, its page stays with the system */
    b->dice = (uint32_t)tsi_os.random();
    b->slow_left = 1 + (period != 0 ? b->dice % period : 0);

    b->order_dice = a->options.random_order ? tsi_os.random() | 1 : 0;
    b->guard_left = a->samples_guards ? 1 + b->dice % (2 * a->options.guard_sampling - 1) : 0;

    tsi_profile_start(b, mean);
    tsi_store_relaxed(&b->look_in, 1);
    b->looked_ns = 0;
    b->put_off_bytes = b->put_off_first = b->put_off_count = 0;
    b->stack_low = b->stack_high = 0; /* the record may have been another thread's */
    b->watched = period != 0 || mean != 0 || a->stand_ins != NULL || a->fill;

    tsi_store_relaxed(&b->busy, 0);
    tsi_store_relaxed(&b->dead_heaps, 0);
    /* Without membarrier no word matches: every call takes the slow path, whose bracket is fenced. */
    b->live_word = tsi_os.has_membarrier ? tsi_heap_word(index, TSI_HEAP_LIVE) : TSI_FENCED;
    tsi_store_seq(&b->fenced, !tsi_os.has_membarrier);
    tsi_store_release(&b->inbox, 0); /* pairs with the acquire of a pusher: the inbox is open */

    /* seq_cst, then the load: a sweep whose membarrier fails says so and then reads in_use; one of the two sees the
     * other. Pairs with the acquire in flush_stores of warm.c, too. */
    tsi_store_seq(&b->in_use, true);
    if (tsi_load_seq(&tsi_barrier_failed)) tsi_binding_fence(b);
    return b;
}

/* Makes a binding of the calling thread in the arena, in which it has none, and puts it into the thread's table, which
 * grows if half full; makes the thread's record too, if there is none. Returns it, not at hand yet; NULL, with no
 * binding made, without memory. [own thread, no registry lock held] */
static TsiBinding* binding_make(TsiArena* a) {
    TsiThread* thread = thread_get();
    if (thread == NULL) return NULL;
    if (thread->ref_count * 2 >= thread->ref_capacity && !refs_grow(thread)) return NULL;
    TsiBinding* b = binding_open(a, thread, a->options.sampling_period, a->profile.mean);
    if (b == NULL) return NULL;
    *ref_find(thread->refs, thread->ref_capacity, a->serial) = (TsiBindingRef){a->serial, b};
    thread->ref_count++;
    return b;
}

/* Its `thread` is nobody's: no fork finds it to be its own. The thread that allocates takes the samples. */
TsiBinding* tsi_binding_of_nobody(TsiArena* a) { return binding_open(a, &tsi_no_thread, 0, 0); }

TsiBinding* tsi_binding_find(TsiArena* a, bool make) {
    TsiThread* thread = tsi_tls.thread;
    TsiBinding* b = thread != NULL ? ref_find(thread->refs, thread->ref_capacity, a->serial)->binding : NULL;
    if (b == NULL && make) b = binding_make(a);
    if (b != NULL) {
        tsi_tls.serial = a->serial;
        tsi_tls.binding = b;
        /* In shared mode each call searches for a bank; with stand-ins, for those; hardened calls do more. */
        tsi_store_relaxed(&tsi_tls.thread->owner, a->none_at_hand ? TSI_NO_OWNER : a->owner);
    }
    return b;
}

/* Adds `words` counters at `from` to those at `to`, or with `less` takes them off there; words of `from` that are 0
 * cause no write. `from` stays as it is. [registry lock held] */
static void add_all(_Atomic uint64_t* to, _Atomic uint64_t* from, size_t words, bool less) {
    for (size_t n = 0; n < words; n++) {
        uint64_t count = tsi_load_relaxed(&from[n]);
        if (count != 0) tsi_add_relaxed(&to[n], less ? 0 - count : count);
    }
}

/* Adds the counters of a binding whose page goes to its arena's, or, with `back`, takes them off there again; the
 * binding's own stay as they are. They are summed under the same lock. [registry lock held] */
static void counters_move(TsiTable* table, uint32_t index, bool back) {
    TsiArena* a = (TsiArena*)(void*)((uint8_t*)table - offsetof(TsiArena, bindings));
    TsiBinding* b = tsi_table_at(table, index);
    const size_t words = sizeof(TsiClassCounters) / sizeof(uint64_t) * TSI_CLASSES;
    add_all((_Atomic uint64_t*)(void*)a->counters, (_Atomic uint64_t*)(void*)b->counters, words, back);
    add_all(a->refused, b->refused, TSI_REFUSED_COUNT, back);
}

/* Prepares a free record for its page to go: moves its counters to the arena (counters_move) and takes the lock of its
 * store of warm slabs, which stays taken, so no flush is inside, and the zeros that come are an unlocked store. Returns
 * true; false, with nothing moved, if another thread has that lock. [registry and table lock held] */
static bool binding_leaves(TsiTable* table, uint32_t index) {
    TsiBinding* b = tsi_table_at(table, index);
    if (!tsi_warm_lock(&b->warm)) return false;
    counters_move(table, index, false);
    return true;
}

/* Undoes binding_leaves for a record whose page has not gone: takes its counters off the arena's again, and gives the
 * lock of its store of warm slabs back. [registry and table lock held] */
static void binding_stays(TsiTable* table, uint32_t index) {
    TsiBinding* b = tsi_table_at(table, index);
    counters_move(table, index, true);
    tsi_warm_unlock(&b->warm);
}

enum { BINDING_STRIDE = (sizeof(TsiBinding) + 63) & ~(size_t)63 };

size_t tsi_bindings_room(uint32_t capacity) { return tsi_table_room(BINDING_STRIDE, capacity, false); }

void tsi_bindings_init(TsiTable* table, TsiGround* ground, uint32_t capacity) {
    tsi_table_init_in(table, ground, BINDING_STRIDE, capacity, false);
    table->leave = binding_leaves;
    table->stay = binding_stays;
}

void tsi_registry_tidy(TsiArena* a, bool all) {
    tsi_lock_take(&tsi_registry_lock);
    if (all) {
        tsi_table_tidy_slow(&a->bindings, true);
        tsi_table_tidy_slow(&threads, true);
    } else {
        tsi_table_tidy(&a->bindings);
    }
    tsi_lock_give(&tsi_registry_lock);
}

/* Clears the record of a thread that has gone or is about to (bindings, scopes, held) and gives it back to the table.
 * Arrays outside of it are the caller's to unmap before. [registry lock held, or fork child] */
static void thread_drop(TsiThread* thread) {
    memset(thread->first_refs, 0, sizeof thread->first_refs);
    thread->refs = NULL;
    thread->ref_count = thread->scope_count = 0;
    thread->alive = false;
    thread->held = NULL;
    tsi_table_give(&threads, thread->index);
}

void tsi_thread_give(TsiThread* thread) {
    if (thread->refs != thread->first_refs)
        tsi_os.unmap(thread->refs, array_bytes(thread->ref_capacity, sizeof *thread->refs));
    if (thread->scopes != thread->first_scopes)
        tsi_os.unmap(thread->scopes, array_bytes(thread->scope_capacity, sizeof *thread->scopes));
    tsi_tls_forget();
    tsi_tls.binding = NULL;
    tsi_tls.thread = NULL;
    tsi_tls.record = &tsi_no_thread;
    tsi_lock_take(&tsi_registry_lock);
    thread_drop(thread);
    tsi_table_tidy(&threads);
    tsi_lock_give(&tsi_registry_lock);
}

void tsi_registry_child(void) {
    for (uint32_t n = 0; n < tsi_table_used(&threads); n++) {
        TsiThread* thread = tsi_table_at(&threads, n);
        /* mapped arrays of dead threads stay: they may have been mid-growth */
        if (thread != tsi_tls.thread && thread->alive) thread_drop(thread);
    }
}
