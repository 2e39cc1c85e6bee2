/* leave.c - see leave.h. */
#include "heap/leave.h"

#include "account/charge.h"
#include "heap/finish.h"
#include "heap/fork.h"
#include "heap/heap.h"
#include "heap/line.h"
#include "heap/put_off.h"
#include "heap/records.h"
#include "observe/sample.h"
#include "heap/trim.h"
#include "heap/warm.h"
#include "os/stay.h"

#include <pthread.h>

void (*tsi_thread_end_scopes)(TsiThread*);

/* Ends the thread's part in an arena: heaps detached with their empty slabs, inbox closed, records, eras, warm slabs,
 * pages put off and charges returned, samples added to the arena's. Cleanups may run. The binding is nobody's then.
 * [own thread, no lock held, no bracket open] */
static void binding_release(TsiBinding* b) {
    TsiArena* a = b->arena;
    tsi_ready_close(b); /* before the heaps that phases have */
    tsi_heaps_detach_all(b);
    tsi_put_off_no_more(b);
    tsi_sweep_piece(a, b); /* in shared mode no heap goes with its thread */
    if (a->options.shared) tsi_trim_banks(a, b);

    tsi_inbox_close(b);
    tsi_binding_flush_records(b);
    tsi_eras_leave(b);
    tsi_warm_leave(b);
    tsi_charges_flush(b);

    tsi_lock_take(&tsi_registry_lock);
    tsi_samples_fold(&a->samples, &b->samples); /* the next thread's are its own; counters go on */
    tsi_clear(&b->samples, sizeof b->samples);
    tsi_store_release(&b->in_use, false); /* pairs with the acquire in flush_stores of warm.c */
    tsi_lock_give(&tsi_registry_lock);

    tsi_table_give(&a->bindings, b->index);
    tsi_records_tidy(a);
}

/* Leaves, in one pass, the living arenas that the thread has used, and forgets the others; stops early once a cleanup
 * has opened a scope or a phase of its own. Returns true if there was one to leave or forget, so that the caller must
 * look again; false if there was none. [own thread, no lock held, no bracket open] */
static bool leave_arenas(TsiThread* thread) {
    bool any = false;
    for (uint32_t i = 0; i < thread->ref_capacity; i++) {
        TsiBindingRef r = thread->refs[i];
        if (r.serial == 0 || r.binding == NULL) continue;
        any = true;
        /* Gone from our tables first: a cleanup that runs below and allocates gets a binding of its own. */
        thread->refs[i].binding = NULL;
        tsi_tls_forget();
        TsiArena* a = tsi_registry_hold(r.serial);
        if (a == NULL) continue;
        thread->held = a;
        binding_release(r.binding);
        thread->held = NULL;
        tsi_registry_unhold(a);
        if (thread->scope_count != 0 || thread->owns) break; /* by a cleanup: must end before its binding goes */
    }

    return any;
}

/* Leaves every living arena the thread has used, after ending its scopes, until there is none, and gives its record
 * back: `thread` is gone then. Cleanups may use this or other arenas meanwhile.
 * [own thread, no lock held, no bracket open] */
static void thread_leave(TsiThread* thread) {
    tsi_tls.late++; /* calls of cleanups below are not the outermost */
    do {
        if ((thread->scope_count != 0 || thread->owns) && tsi_thread_end_scopes != NULL) tsi_thread_end_scopes(thread);
    } while (leave_arenas(thread));
    tsi_tls.late--;
    tsi_thread_give(thread);
}

/* Leaves all arenas as the thread exits: its destructor. arg: its record.
 * [own thread, no lock held, no bracket open] */
static void thread_exit(void* arg) {
    tsi_tls.exiting = true;
    tsi_tls.number = 0; /* its lanes call from here on */
    if (arg != NULL && tsi_tls.thread == arg) thread_leave(arg);
}

void tsi_thread_late_leave_slow(void) {
    TsiThread* thread = tsi_tls.thread;
    if (thread != NULL) tsi_scopes_refresh(thread); /* a scope of a destroyed allocator keeps nobody here */
    if (--tsi_tls.late == 0 && thread != NULL && thread->scope_count == 0) thread_leave(thread);
}

/* Keeps the loader from unloading a plugin with this library. Here, because no program has the library without this
 * file: thread_exit is what threads run late. [once per process, as the library is loaded] */
__attribute__((constructor)) static void stay_loaded(void) { tsi_stay(); }

/* Does tsi_process_init, by pthread_once. [once per process] */
static void process_init_once(void) {
    tsi_os_init();
    tsi_space_process_init();
    tsi_registry_at_exit(thread_exit);
    tsi_heap_init();
    tsi_fork_init();
}

void tsi_process_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, process_init_once);
}
