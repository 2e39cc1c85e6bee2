/*
 * shared.h - shared mode (option `shared`): all threads of an epoch allocate from the same slabs.
 */
#ifndef TSI_HEAP_SHARED_H
#define TSI_HEAP_SHARED_H

#include "heap/take.h"

/* How an allocation in one incarnation ends. AGAIN: what it was tried in has changed meanwhile. */
typedef enum TsiOutcome { TSI_GOT, TSI_AGAIN, TSI_STALE, TSI_NO_MEMORY, TSI_OVER } TsiOutcome;

/* Any class and size, in the incarnation `ref`. *e: budgets that were passed or in the way. */
TsiOutcome tsi_shared_alloc(TsiBinding* b, TsiRef ref, size_t size, unsigned cls, size_t align, void** out,
                            TsiIssue* issue, TsiBudgetEvents* e);
/* Tells the controller of so many allocations of a class and what they repeated. Any thread. */
void tsi_scan_note(TsiArena* a, unsigned cls, uint64_t allocations, uint64_t retries);

#endif
