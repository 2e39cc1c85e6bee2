/*
 * domain.c - domains: scopes bound to an incarnation.
 *
 * A domain of its own holds one pin on its incarnation's record from opening to end, and `ref` names it;
 * ref is 0 while the domain has ended. A borrowed domain keeps only the reference: its era tells
 * when the ring has moved on.
 *
 * The domain's lock decides who opens and who ends: the scope that makes refcount 0 takes `ref` away under
 * the lock and ends the incarnation after it, so a thread that enters meanwhile opens a fresh one and
 * waits for nothing. A thread's scopes are its own; only refcount and `detached` are shared.
 */
#include "api/internal.h"

#include "base/probes.h"
#include "heap/fork.h"
#include "heap/heap.h"
#include "heap/sweep.h"
#include "stats/segment.h"

#include <pthread.h>
#include <string.h>

#define DOMAIN_ALIVE 0x646f6d31u
enum { ERA_BLOCK = 64 };

typedef struct TsiDomain {
    epoch_domain_t pub;
    TsiArena* arena; /* pub.alloc is overwritten while the record is free */
    _Atomic TsiRef ref;
    _Atomic uint32_t alive; /* DOMAIN_ALIVE; a record of a destroyed domain stays readable */
    TsiLock lock;           /* opening, ending, the receipt */
    _Atomic uint32_t detached;
    bool own;
    _Atomic bool shows_scopes; /* `own` for other threads: the others add theirs to the incarnation */
    bool entered, drained;  /* borrowed: entered once; drained by this domain */
    bool has_receipt;
    bool empty_receipt;     /* only id, era and label of `receipt` are set; the rest is 0 */
    uint32_t index;         /* of this record */
    EpochReceipt receipt;
    uint32_t label_at; /* its record */
    char label[TSI_LABEL_BYTES];
} TsiDomain;

const size_t tsi_domain_stride = (sizeof(TsiDomain) + 63) & ~(size_t)63;

static TsiDomain* domain_of(epoch_domain_t* d) { return (TsiDomain*)(void*)d; }
static bool is_alive(TsiDomain* d) { return d != NULL && tsi_load_acquire(&d->alive) == DOMAIN_ALIVE; }
static void refuse(TsiDomain* d, SlabMisuse what);
/* False for NULL; false and a refusal for a domain that was destroyed. */
static bool usable(TsiDomain* d) {
    if (is_alive(d)) return true;
    if (d != NULL && d->arena != NULL) refuse(d, SLAB_MISUSE_DOMAIN_STALE);
    return false;
}
static uint32_t refs(TsiDomain* d) { return __atomic_load_n(&d->pub.refcount, __ATOMIC_ACQUIRE); }
static void refs_set(TsiDomain* d, uint32_t n) { __atomic_store_n(&d->pub.refcount, n, __ATOMIC_RELEASE); }

static void refuse(TsiDomain* d, SlabMisuse what) { tsi_refuse(d->arena, what, d); }

/* ---- incarnations of a domain's own ---- */

static uint64_t next_era(TsiArena* a, TsiBinding* b) {
    if (b->era == b->era_end) {
        b->era = tsi_add_relaxed(&a->phases.era_next, ERA_BLOCK);
        b->era_end = b->era + ERA_BLOCK;
    }
    return b->era++;
}

static bool open_own(TsiArena* a, TsiBinding* b, TsiDomain* d) {
    uint32_t index;
    if (!tsi_record_take_inc(a, b, &index)) return false;
    uint64_t era = next_era(a, b);
    EpochId id = tsi_domain_id(&a->phases, index);
    tsi_inc_open(&a->phases, index, era, id, d->label_at, d->label);
    tsi_store_relaxed(&tsi_inc(&a->phases, index)->domain, d->index + 1);
    if (TSI_UNLIKELY(d->label_at == TSI_LABEL_OTHER)) tsi_add_relaxed(&tsi_label(&a->phases.labels, TSI_LABEL_OTHER)->swallowed, 1);
    d->pub.epoch_id = id;
    d->pub.epoch_era = era;
    tsi_store_release(&d->ref, tsi_ref(era, index)); /* pairs with the acquire loads of ref */
    tsi_probe_epoch_open(d->pub.alloc, id, era, &d->label[0]);
    return true;
}

/* The receipt of an incarnation that held nothing, until a fuller one replaces it. */
static void note_ended_locked(TsiDomain* d, EpochId id, uint64_t era) {
    d->receipt.epoch_id = id;
    d->receipt.epoch_era = era;
    memcpy(d->receipt.label, d->label, sizeof d->label);
    d->has_receipt = d->empty_receipt = true;
}

/* False when the domain was destroyed meanwhile, and perhaps made again. */
static bool ended_here_locked(TsiDomain* d, TsiRef ref) {
    return is_alive(d) && (d->own ? d->has_receipt && d->receipt.epoch_era == tsi_ref_era(ref) : d->pub.epoch_era == tsi_ref_era(ref));
}

/* Ends what ref named; the domain's lock is not held, so another thread may destroy the domain meanwhile. `own`: the
 * domain's pin goes with it. label: what the domain's receipt says already; overwritten. */
static void end_ref(TsiArena* a, TsiDomain* d, TsiRef ref, EpochCloseMode mode, bool own, char label[TSI_LABEL_BYTES]) {
    EpochReceipt r;
    bool renamed = false, empty = own && tsi_inc_end_empty(a, tsi_binding_get(a, false), ref, label, &renamed);
    if (TSI_LIKELY(empty && !renamed)) return;
    if (!empty && !tsi_epoch_end(a, ref, mode, false, &r)) return;
    tsi_lock_take(&d->lock);
    if (ended_here_locked(d, ref)) {
        if (empty) memcpy(d->receipt.label, label, TSI_LABEL_BYTES);
        else d->receipt = r;
        d->has_receipt = true;
        d->empty_receipt = empty;
    }
    tsi_lock_give(&d->lock);
    if (empty) return;
    if (own) tsi_inc_unpin(a, tsi_binding_get(a, false), tsi_inc(&a->phases, tsi_ref_index(ref)));
    tsi_segment_tick(a);
}

/* ---- create, wrap, destroy ---- */

/* A thread mostly opens phases of the label it had last. */
static void name_it(TsiArena* a, TsiBinding* b, TsiDomain* d, const char* label) {
    if (label == NULL || (b->label[0] != 0 && strncmp(label, b->label, TSI_LABEL_BYTES) == 0)) {
        memcpy(d->label, label != NULL ? b->label : tsi_no_label, sizeof d->label);
        d->label_at = label != NULL ? b->label_at : TSI_LABEL_NONE;
        return;
    }
    tsi_label_copy(d->label, label);
    d->label_at = tsi_label_find(&a->phases.labels, d->label);
    if (d->label_at == TSI_LABEL_OTHER) return; /* there may be room for it later */
    memcpy(b->label, d->label, sizeof b->label);
    b->label_at = d->label_at;
}

static TsiDomain* make(SlabAllocator* s, const char* label, TsiBinding** b) {
    TsiArena* a = tsi_arena(s);
    uint32_t index;
    *b = a != NULL ? tsi_binding_get(a, true) : NULL;
    if (*b == NULL || !tsi_record_take(&a->domains, (*b)->domain_cache, &(*b)->domain_count, &index)) {
        errno = a == NULL ? EINVAL : ENOMEM;
        return NULL;
    }
    TsiDomain* d = tsi_table_at(&a->domains, index);
    d->index = index;
    d->pub.alloc = s;
    d->arena = a;
    d->pub.epoch_id = 0;
    d->pub.epoch_era = 0;
    refs_set(d, 0);
    d->pub.auto_close = true;
    tsi_store_relaxed(&d->ref, 0);
    tsi_store_relaxed(&d->detached, 0);
    d->entered = d->drained = d->has_receipt = false;
    name_it(a, *b, d, label);
    return d;
}

static void discard(TsiArena* a, TsiDomain* d) {
    TsiBinding* b = tsi_binding_get(a, false);
    tsi_store_release(&d->alive, 0); /* pairs with is_alive */
    if (b != NULL) tsi_record_give(&a->domains, b->domain_cache, &b->domain_count, d->index);
    else tsi_table_give(&a->domains, d->index);
}

static epoch_domain_t* create(SlabAllocator* s, const char* label) {
    TsiBinding* b;
    TsiDomain* d = make(s, label, &b);
    if (d == NULL) return NULL;
    d->own = true;
    tsi_store_relaxed(&d->shows_scopes, true);
    if (!open_own(b->arena, b, d)) {
        discard(b->arena, d);
        errno = ENOMEM;
        return NULL;
    }
    tsi_store_release(&d->alive, DOMAIN_ALIVE); /* pairs with is_alive */
    return &d->pub;
}

epoch_domain_t* epoch_domain_create_labeled(SlabAllocator* s, const char* label) {
    tsi_thread_late_enter();
    epoch_domain_t* d = create(s, label);
    tsi_thread_late_leave();
    return d;
}

epoch_domain_t* epoch_domain_create(SlabAllocator* s) { return epoch_domain_create_labeled(s, NULL); }

epoch_domain_t* epoch_domain_wrap(SlabAllocator* s, EpochId epoch, bool auto_close) {
    TsiArena* a = tsi_arena(s);
    TsiBinding* b;
    TsiRef ref = a != NULL ? tsi_resolve(a, epoch) : 0;
    TsiDomain* d = ref != 0 ? make(s, NULL, &b) : NULL;
    if (a == NULL) errno = EINVAL;
    if (d == NULL) return NULL;
    d->own = false;
    tsi_store_relaxed(&d->shows_scopes, false);
    d->pub.auto_close = auto_close;
    d->pub.epoch_id = epoch;
    d->pub.epoch_era = tsi_ref_era(ref);
    tsi_store_release(&d->ref, ref);            /* as in open_own */
    tsi_store_release(&d->alive, DOMAIN_ALIVE); /* pairs with is_alive */
    return &d->pub;
}

/* True when nobody else's scope is in the borrowed incarnation and the id still names it. */
static bool may_drain(TsiArena* a, TsiDomain* d) {
    TsiRef ref = tsi_load_acquire(&d->ref);
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    return ref != 0 && tsi_phases_resolve(&a->phases, d->pub.epoch_id) == ref && tsi_load_relaxed(&i->scopes) == 0;
}

static void domain_destroy(epoch_domain_t* p) {
    TsiDomain* d = domain_of(p);
    if (!usable(d)) return;
    TsiArena* a = d->arena;
    if (refs(d) != 0) {
        refuse(d, SLAB_MISUSE_DOMAIN_ORDER);
        return;
    }
    TsiRef ref = tsi_load_acquire(&d->ref); /* pairs with open_own */
    if (d->own && ref != 0) {
        end_ref(a, d, ref, EPOCH_RELEASE, true, d->label);
    } else if (!d->own && d->entered && p->auto_close && !d->drained && may_drain(a, d)) {
        end_ref(a, d, ref, EPOCH_DRAIN, false, d->label);
    }
    discard(a, d);
}

/* ---- the thread's stack ---- */

static void ambient_from_scope(TsiBinding* b) {
    TsiRef ref = b->scope != 0 ? tsi_load_relaxed(b->thread->scopes[b->scope - 1].ref) : tsi_phases_current(&b->arena->phases);
    TsiHeap* h = ref != 0 ? tsi_heap_cached(b, ref) : NULL;
    tsi_binding_set_ambient(b, h != NULL ? h : &tsi_no_heap);
}

static bool push(TsiArena* a, TsiBinding* b, TsiDomain* d) {
    TsiThread* t = b->thread;
    if (TSI_UNLIKELY(t->scope_count == t->scope_capacity) && !tsi_scopes_grow(t)) return false;
    t->scopes[t->scope_count++] = (TsiScope){d, &d->ref, a->serial, b, b->scope};
    b->scope = t->scope_count;
    ambient_from_scope(b);
    return true;
}

static TsiScope* top_of(TsiDomain* d) {
    TsiThread* t = tsi_tls.thread;
    if (t != NULL) tsi_scopes_refresh(t);
    TsiScope* top = t != NULL && t->scope_count != 0 ? &t->scopes[t->scope_count - 1] : NULL;
    return top != NULL && top->domain == d ? top : NULL;
}

static void pop(TsiScope* top) {
    TsiBinding* b = top->binding;
    b->scope = top->outer;
    b->thread->scope_count--;
    ambient_from_scope(b);
}

/* Of a borrowed epoch. */
static void scopes_add_to(TsiArena* a, TsiDomain* d, int n) {
    TsiRef ref = tsi_load_acquire(&d->ref);
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    if (ref == 0) return;
    tsi_inc_take(i);
    if (tsi_inc_era(i) == tsi_ref_era(ref)) tsi_add_relaxed(&i->scopes, (uint32_t)n);
    tsi_inc_give(i);
}

static void scopes_add(TsiArena* a, TsiDomain* d, int n) {
    if (!d->own) scopes_add_to(a, d, n);
}

static void domain_enter(epoch_domain_t* p) {
    TsiDomain* d = domain_of(p);
    if (!usable(d)) return;
    TsiArena* a = d->arena;
    TsiBinding* b = tsi_binding_get(a, true);
    if (b == NULL) return;
    if (!d->own && tsi_phases_resolve(&a->phases, p->epoch_id) != tsi_load_acquire(&d->ref)) { /* pairs with wrap */
        refuse(d, SLAB_MISUSE_DOMAIN_STALE);
        return;
    }
    tsi_lock_take(&d->lock);
    TsiRef ended = d->own && refs(d) == 0 ? tsi_load_relaxed(&d->ref) : 0;
    if (ended != 0 && tsi_ref_is_active(&a->phases, ended)) ended = 0;
    if (ended != 0) tsi_store_release(&d->ref, 0); /* somebody closed the epoch by its id: a fresh one */
    bool open = tsi_load_relaxed(&d->ref) != 0 || open_own(a, b, d);
    if (open) refs_set(d, refs(d) + 1);
    d->entered = true;
    tsi_lock_give(&d->lock);
    if (ended != 0) tsi_inc_unpin(a, b, tsi_inc(&a->phases, tsi_ref_index(ended)));
    if (open && push(a, b, d)) {
        scopes_add(a, d, 1);
        return;
    }
    if (open) { /* no memory for the scope: the exit that follows will be refused */
        tsi_lock_take(&d->lock);
        refs_set(d, refs(d) - 1);
        tsi_lock_give(&d->lock);
    }
    tsi_refuse_count(a, TSI_REFUSED_MEMORY);
}

/* One scope less; the last one ends the epoch when auto_close says so. */
static void leave(TsiArena* a, TsiDomain* d) {
    TsiRef end = 0;
    bool own = d->own;
    char label[TSI_LABEL_BYTES];
    scopes_add(a, d, -1);
    tsi_lock_take(&d->lock);
    refs_set(d, refs(d) - 1);
    if (refs(d) == 0 && d->pub.auto_close) {
        memcpy(label, d->label, sizeof label);
        if (own) {
            end = tsi_load_relaxed(&d->ref);
            tsi_store_release(&d->ref, 0); /* a thread that enters from here on opens a fresh one */
            if (end != 0) note_ended_locked(d, d->pub.epoch_id, d->pub.epoch_era);
        } else if (may_drain(a, d)) {
            end = tsi_load_relaxed(&d->ref);
            d->drained = true;
        }
    }
    tsi_lock_give(&d->lock);
    if (end != 0) end_ref(a, d, end, own ? EPOCH_RELEASE : EPOCH_DRAIN, own, label);
}

static void domain_exit(epoch_domain_t* p) {
    TsiDomain* d = domain_of(p);
    if (!usable(d)) return;
    TsiArena* a = d->arena;
    TsiScope* top = top_of(d);
    if (top == NULL) {
        refuse(d, SLAB_MISUSE_DOMAIN_ORDER);
        return;
    }
    pop(top);
    leave(a, d);
}

bool epoch_domain_detach(epoch_domain_t* p) {
    TsiDomain* d = domain_of(p);
    if (!usable(d)) return false;
    TsiScope* top = top_of(d);
    if (top == NULL) {
        refuse(d, SLAB_MISUSE_DOMAIN_ORDER);
        return false;
    }
    pop(top);
    tsi_add_seq(&d->detached, 1); /* publishes the scope to the thread that attaches it */
    return true;
}

bool epoch_domain_attach(epoch_domain_t* p) {
    TsiDomain* d = domain_of(p);
    if (!usable(d)) return false;
    TsiArena* a = d->arena;
    uint32_t n = tsi_load_seq(&d->detached);
    while (n != 0 && !tsi_cas_seq(&d->detached, &n, n - 1)) {} /* once per detach */
    if (n == 0) {
        refuse(d, SLAB_MISUSE_DOMAIN_ORDER);
        return false;
    }
    TsiBinding* b = tsi_binding_get(a, true);
    if (b != NULL && push(a, b, d)) return true;
    tsi_add_seq(&d->detached, 1);
    tsi_refuse_count(a, TSI_REFUSED_MEMORY);
    return false;
}

/* ---- the rest ---- */

void epoch_domain_force_close(epoch_domain_t* p) {
    TsiDomain* d = domain_of(p);
    if (!usable(d)) return;
    TsiArena* a = d->arena;
    char label[TSI_LABEL_BYTES];
    tsi_lock_take(&d->lock);
    memcpy(label, d->label, sizeof label);
    TsiRef ref = tsi_load_relaxed(&d->ref);
    bool inside = refs(d) != 0;
    bool stale = ref == 0 || (!d->own && tsi_phases_resolve(&a->phases, p->epoch_id) != ref);
    if (!inside && !stale && d->own) {
        tsi_store_release(&d->ref, 0); /* as in leave */
        note_ended_locked(d, d->pub.epoch_id, d->pub.epoch_era);
    }
    tsi_lock_give(&d->lock);
    if (inside || stale) refuse(d, inside ? SLAB_MISUSE_DOMAIN_ORDER : SLAB_MISUSE_DOMAIN_STALE);
    else end_ref(a, d, ref, EPOCH_RELEASE, d->own, label);
}

/* ---- those that a destructor of thread-specific data may still call ---- */

#define LATE(name)                              \
    void epoch_domain_##name(epoch_domain_t* d) { \
        tsi_thread_late_enter();                \
        domain_##name(d);                       \
        tsi_thread_late_leave();                \
    }
LATE(enter)
LATE(exit)
LATE(destroy)

epoch_domain_t* epoch_domain_begin(SlabAllocator* s, const char* label) {
    epoch_domain_t* d = epoch_domain_create_labeled(s, label);
    if (d == NULL) return NULL;
    epoch_domain_enter(d);
    if (top_of(domain_of(d)) != NULL) return d;
    epoch_domain_destroy(d);
    errno = ENOMEM;
    return NULL;
}

void epoch_domain_end(epoch_domain_t* d) {
    epoch_domain_exit(d);
    epoch_domain_destroy(d);
}

epoch_domain_t* epoch_domain_current(void) {
    TsiThread* t = tsi_tls.thread;
    if (t != NULL) tsi_scopes_refresh(t);
    return t != NULL && t->scope_count != 0 ? &((TsiDomain*)t->scopes[t->scope_count - 1].domain)->pub : NULL;
}

SlabAllocator* epoch_domain_allocator(void) {
    epoch_domain_t* d = epoch_domain_current();
    return d != NULL ? d->alloc : NULL;
}

void* epoch_domain_malloc(epoch_domain_t* p, size_t size) {
    TsiDomain* d = domain_of(p);
    errno = EINVAL;
    if (!usable(d)) return NULL;
    TsiRef ref = tsi_load_acquire(&d->ref); /* pairs with open_own */
    if (ref != 0) return tsi_alloc_ref(p->alloc, size, ref);
    refuse(d, SLAB_MISUSE_CLOSED_EPOCH);
    errno = ESTALE;
    return NULL;
}

bool epoch_domain_receipt(epoch_domain_t* p, EpochReceipt* out) {
    TsiDomain* d = domain_of(p);
    if (!usable(d) || out == NULL) return false;
    tsi_lock_take(&d->lock);
    bool ok = d->has_receipt;
    if (ok && d->empty_receipt) {
        memset(out, 0, sizeof *out);
        out->version = 1;
        out->epoch_id = d->receipt.epoch_id;
        out->epoch_era = d->receipt.epoch_era;
        memcpy(out->label, d->receipt.label, sizeof out->label);
    } else if (ok) {
        *out = d->receipt;
    }
    tsi_lock_give(&d->lock);
    return ok;
}

bool epoch_domain_reset(epoch_domain_t* p) {
    TsiDomain* d = domain_of(p);
    if (!usable(d)) return false;
    TsiArena* a = d->arena;
    TsiBinding* b = tsi_binding_get(a, true);
    if (b == NULL) return false;
    uint32_t mine = 0;
    for (uint32_t n = 0; n < b->thread->scope_count; n++) mine += b->thread->scopes[n].domain == d;
    char label[TSI_LABEL_BYTES];
    tsi_lock_take(&d->lock);
    memcpy(label, d->label, sizeof label);
    TsiRef old = tsi_load_relaxed(&d->ref);
    bool ok = d->own && refs(d) == mine;
    EpochId id = d->pub.epoch_id;
    uint64_t era = d->pub.epoch_era;
    bool opened = ok && open_own(a, b, d);
    if (opened && old != 0) note_ended_locked(d, id, era);
    tsi_lock_give(&d->lock);
    if (!ok) refuse(d, SLAB_MISUSE_DOMAIN_ORDER);
    if (!opened) return false;
    if (old != 0) end_ref(a, d, old, EPOCH_RELEASE, true, label);
    ambient_from_scope(b);
    return true;
}

/* ---- threads that go ---- */

static void end_scopes(TsiThread* t) {
    while (t->scope_count != 0) {
        TsiScope top = t->scopes[t->scope_count - 1];
        TsiArena* a = tsi_registry_hold(top.serial);
        if (a == NULL) { /* its allocator is gone, and the domain with it */
            t->scope_count--;
            continue;
        }
        t->held = a;
        pop(&t->scopes[t->scope_count - 1]);
        if (is_alive(top.domain)) leave(a, top.domain);
        t->held = NULL;
        tsi_registry_unhold(a);
    }
}

/* In a fork child: vanished threads may have held any domain's lock, anywhere in a call. What is left are the scopes of
 * this thread and the detached ones. */
static void child_domains(TsiArena* a, void* unused) {
    (void)unused;
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        tsi_store_relaxed(&tsi_inc(&a->phases, n)->scopes, 0);
        tsi_inc(&a->phases, n)->named = false;
    }
    for (uint32_t n = 0; n < tsi_table_used(&a->domains); n++) {
        TsiDomain* d = tsi_table_at(&a->domains, n);
        tsi_lock_reset(&d->lock);
        if (!is_alive(d)) continue;
        TsiRef ref = tsi_load_relaxed(&d->ref);
        uint32_t detached = tsi_load_relaxed(&d->detached);
        refs_set(d, detached);
        scopes_add(a, d, (int)detached);
        if (tsi_ref_is_current(&a->phases, ref)) tsi_inc(&a->phases, tsi_ref_index(ref))->named = true;
    }
}

static void drop_scopes(void) {
    tsi_registry_each(child_domains, NULL);
    TsiThread* t = tsi_tls.thread;
    for (uint32_t n = 0; t != NULL && n < t->scope_count; n++) {
        TsiArena* a = tsi_registry_hold(t->scopes[n].serial);
        TsiDomain* d = t->scopes[n].domain;
        if (a == NULL) continue;
        if (is_alive(d)) {
            refs_set(d, refs(d) + 1);
            scopes_add(a, d, 1);
        }
        tsi_registry_unhold(a);
    }
}

/* Scopes inside of a domain's own incarnation; 0 when the domain has another by now. */
static uint32_t scopes_of(const TsiArena* a, uint32_t domain, TsiRef ref) {
    TsiDomain* d = tsi_table_at(&a->domains, domain);
    return tsi_load_acquire(&d->ref) == ref && tsi_load_relaxed(&d->shows_scopes) ? refs(d) : 0; /* pairs with open_own */
}

static void domain_init_once(void) {
    tsi_domain_scopes = scopes_of;
    tsi_thread_end_scopes = end_scopes;
    tsi_fork_drop_scopes = drop_scopes;
}

void tsi_domain_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, domain_init_once);
}
