/*
 * held.c - phases in every state, for a debugger to look at: prints what the library says of them, then stops itself
 * by SIGTRAP. With "torn" it first damages a list of heaps, as a process stopped at a bad moment might have it.
 *
 * Lines: "phase OWNER ID ERA LABEL STATE HEAPS SLABS COMMITTED", "label OWNER NAME OPEN DRAINING COMMITTED PEAK ENDED
 * ESCAPED BYTES REFUSALS"; an empty label is "-".
 */
#include "epoch_domain.h"
#include "heap/records.h"
#include "state/arena.h"
#include "slab_stats.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 64 };
static SlabAllocator* first;
static epoch_domain_t* shared;
static volatile bool allocated;

static void* helper(void* unused) {
    (void)unused;
    for (unsigned n = 0; n < 500; n++) (void)epoch_domain_malloc(shared, 64 + n);
    allocated = true;
    for (;;) pause();
    return NULL;
}

/* Statistics have the threads that own slabs: a heap may have none. */
static uint32_t heaps_of(SlabAllocator* s, uint64_t era) {
    TsiArena* a = *(TsiArena**)(void*)s;
    return tsi_load_relaxed(&tsi_inc(&a->phases, tsi_ref_index(tsi_era_find(a, era)))->heap_count);
}

static void tell(SlabAllocator* a) {
    SlabPhaseStats p[ROWS];
    SlabLabelStats l[ROWS];
    size_t phases = slab_stats_phases(a, p, ROWS), labels = slab_stats_labels(a, l, ROWS);
    for (size_t n = 0; n < phases && n < ROWS; n++) {
        printf("phase %#lx %u %lu %s %s %u %lu %lu\n", (unsigned long)(uintptr_t)a, p[n].epoch_id, p[n].epoch_era, p[n].label[0] != 0 ? p[n].label : "-",
               p[n].state == EPOCH_ACTIVE ? "active" : "ended", heaps_of(a, p[n].epoch_era), p[n].slabs, p[n].committed_bytes);
    }
    for (size_t n = 0; n < labels && n < ROWS; n++) {
        if ((l[n].phases_open | l[n].phases_ended | l[n].committed_bytes) == 0) continue;
        printf("label %#lx %s %lu %lu %lu %lu %lu %lu %lu %lu\n", (unsigned long)(uintptr_t)a, l[n].label, l[n].phases_open, l[n].phases_draining,
               l[n].committed_bytes, l[n].peak_bytes, l[n].phases_ended, l[n].objects_escaped, l[n].bytes_escaped, l[n].refusals);
    }
}

/* The heaps of the shared domain go round in a circle, lists of others lead out of the table, or to another phase's
 * heap. */
static void tear(void) {
    TsiArena* a = *(TsiArena**)(void*)first;
    uint32_t alone = 0;
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        TsiInc* i = tsi_inc(&a->phases, n);
        if (strcmp(i->label, "two threads") == 0) {
            tsi_heap(a, tsi_heap(a, i->heaps - 1)->inc_next - 1)->inc_next = i->heaps;
            tsi_store_relaxed(&i->heap_count, UINT32_MAX);
        }
        if (strcmp(i->label, "request") != 0 || tsi_inc_era(i) == 0) continue;
        if (i->heaps != 0) alone = i->heaps;
        i->heaps = 0x7fffffff;
    }
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        TsiInc* i = tsi_inc(&a->phases, n);
        if (strcmp(i->label, "rounds") == 0 && i->heaps != 0) i->heaps = alone;
    }
}

int main(int argc, char** argv) {
    pthread_t t;
    SlabOptions o = {.struct_size = sizeof o, .reserve_bytes = 16 << 20}; /* gdb writes reserved address space to its core files */
    first = slab_allocator_create_with(&o);
    SlabAllocator* second = slab_allocator_create_with(&o);
    if (first == NULL || second == NULL) return 1;

    shared = epoch_domain_create_labeled(first, "two threads");
    if (pthread_create(&t, NULL, helper, NULL) != 0) return 1;
    for (unsigned n = 0; n < 300; n++) (void)epoch_domain_malloc(shared, 700);
    while (!allocated) (void)usleep(1000);

    for (unsigned n = 0; n < 3; n++) { /* drained with what lives on, advanced past, and ended empty */
        EpochId id = epoch_current(first);
        slab_epoch_set_label(first, id, n == 0 ? "leaks" : "rounds");
        void* p = slab_malloc(first, 5000);
        epoch_advance(first);
        if (n == 2) slab_free(first, p);
        if (n != 1) epoch_close(first, id);
    }
    (void)slab_malloc(first, 3 << 20);
    for (unsigned n = 0; n < 7; n++) {
        epoch_domain_t* d = epoch_domain_begin(first, "request");
        for (unsigned k = 0; k < 50 * n; k++) (void)slab_malloc(first, 48);
        if (n < 4) epoch_domain_end(d);
    }
    epoch_domain_t* other = epoch_domain_begin(second, "of the second");
    (void)slab_malloc(second, 100);
    if (other == NULL) return 1;

    tell(first);
    tell(second);
    if (argc > 1 && strcmp(argv[1], "torn") == 0) tear();
    fflush(stdout);
    (void)raise(SIGTRAP);
    _Exit(0);
}
