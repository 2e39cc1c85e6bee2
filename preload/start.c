/*
 * start.c - makes the allocator, see preload.h.
 *
 * Options of the allocator come from TSLAB_OPTIONS, as in every program; this library's own from three variables:
 * TSLAB_PRELOAD_LABEL names the phase that everything is in, TSLAB_PRELOAD_DEEPBIND=keep does not change dlopen,
 * TSLAB_PRELOAD_LIBC=phase leaves in phases the objects that libc keeps. None of them is read in a program that has
 * more rights than its user.
 */
#define _GNU_SOURCE
#include "preload.h"

#include "slab_stats.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DECAY_MS = 500 /* unless TSLAB_OPTIONS says otherwise: the phase that everything is in does not end */ };

SlabAllocator tsp_heap;
_Atomic int tsp_state;
extern int tsp_dlopen_mask;

/* Writes the texts to standard error, in one line of at most 256 bytes, which names the library first.
 * [any thread, needs no lock] */
static void say(const char* what, const char* of) {
    const char* texts[] = {"temporal-slab: ", what, of};
    char line[256];
    size_t used = 0;
    for (unsigned k = 0; k < 3; k++) {
        size_t n = strlen(texts[k]);
        if (n > sizeof line - 1 - used) n = sizeof line - 1 - used;
        memcpy(line + used, texts[k], n);
        used += n;
    }
    line[used++] = '\n';
    tsi_os.complain(line, used);
}
/* Says that malloc stays libc's, and why. [any thread, needs no lock] */
static void say_stays(const char* why) { say("malloc stays libc's: ", why); }

/* Returns true if the variable `name` is `word`. Complains of another value, but an empty one, with `usage`.
 * [tsp_start] */
static bool is_word(const char* name, const char* word, const char* usage) {
    const char* value = secure_getenv(name);
    bool same = value != NULL && strcmp(value, word) == 0;
    if (value != NULL && value[0] != 0 && !same) say(usage, value);
    return same;
}

/* Asks the system for its limits. Returns the bytes that the allocator must reserve: 0 as configured, UINT64_MAX if
 * there is too little for its tables. Under a limit of address space it maps pieces as it needs them, so the limit is
 * shared with all else that the program maps; where it cannot do so, it reserves an eighth of the limit, and tables
 * beside it: the rest is the program's, and serves when the allocator has no room. [tsp_start] */
static uint64_t reservation(void) {
    tsi_malloc_start_lean();
    (void)slab_page_size(); /* the system has been asked */
    if (tsi_os.space_limit == UINT64_MAX) return 0;
    if (tsi_os.space_limit < (tsi_os.sparse ? TSI_MIB(64) : TSI_GIB(1))) return UINT64_MAX;
    if (tsi_os.sparse) return 0;
    return tsi_os.space_limit / 8 < TSI_GIB(64) ? tsi_os.space_limit / 8 : TSI_GIB(64);
}

/* Makes the allocator in tsp_heap, and labels the phase that everything is in if TSLAB_PRELOAD_LABEL names it. Returns
 * true; false, after a complaint, if it cannot, and without one if address space is too small. May change errno.
 * [tsp_start] */
static bool make(void) {
    /* Objects cannot be blocks of malloc, which this is. */
    SlabOptions options = {
        .struct_size = sizeof options, .by_malloc = 2, .decay_ms = DECAY_MS, .reserve_bytes = reservation()};
    if (options.reserve_bytes == UINT64_MAX) return false;
    if (!allocator_init_with(&tsp_heap, &options)) {
        say_stays(slab_last_error());
        return false;
    }

    if (tsi_malloc_is_circular(&tsp_heap)) {
        allocator_destroy(&tsp_heap);
        say_stays("TSLAB_OPTIONS has by_malloc=1");
        return false;
    }

    const char* label = secure_getenv("TSLAB_PRELOAD_LABEL");
    if (label == NULL || label[0] == 0) return true;
    if (strlen(label) >= TSI_LABEL_BYTES) say("TSLAB_PRELOAD_LABEL has more than 31 bytes and is cut: ", label);
    slab_epoch_set_label(&tsp_heap, epoch_current(&tsp_heap), label);
    (void)slab_stats_publish(&tsp_heap); /* the first publication, where there is a segment, was before */
    return true;
}

bool tsp_start(void) {
    int was = TSP_NEW, saved = errno;
    if (environ == NULL) return false; /* libc has not got that far: options would be lost */
    /* seq_cst: one caller makes it; others, and calls of this one from within, are libc's until then */
    if (!tsi_cas_seq(&tsp_state, &was, TSP_STARTING)) return was == TSP_READY;

    if (is_word("TSLAB_PRELOAD_DEEPBIND", "keep", "TSLAB_PRELOAD_DEEPBIND can only be 'keep'; ignored: "))
        tsp_dlopen_mask = -1;
    tsp_libc_in_phases = is_word("TSLAB_PRELOAD_LIBC", "phase", "TSLAB_PRELOAD_LIBC can only be 'phase'; ignored: ");

    bool made = make();
    tsi_store_release(&tsp_state, made ? TSP_READY : TSP_OFF); /* pairs with the acquire in tsp_ready */
    errno = saved;
    return made;
}

/* Makes the allocator at the latest as the library is loaded; does nothing if malloc was called with an environment
 * before. [loader] */
__attribute__((constructor(101))) static void start_at_load(void) { (void)tsp_start(); }

void* tsp_next(const char* name, const void* caller) {
    void* found = dlsym(RTLD_NEXT, name);
    Dl_info of;
    if (found != NULL || caller == NULL) return found;
    if (dladdr(caller, &of) == 0 || of.dli_fname == NULL) return NULL;

    void* library = dlopen(of.dli_fname, RTLD_LAZY | RTLD_NOLOAD); /* with its dependencies */
    if (library == NULL) return NULL;
    found = dlsym(library, name);
    (void)dlclose(library);
    return found;
}
