/*
 * search.h - what an allocation does between two tries: memory that no object needs goes back, wherever it is, and
 * functions of budgets are called.
 *
 * A look returns that memory, and notes whether others have what the request wants: threads inside of it, and threads
 * that give memory back meanwhile. A request is tried again after the first look, and as long as a look has found that
 * others have some. So it is refused when all that no object needed was where a look finds it and the try after that
 * look failed, or when it has waited enough: a thread may be stopped where memory is in its hands.
 *
 * Slabs that another thread's sweep has are off the charges before anybody can miss them (tsi_sweep_uncharge): under a
 * budget nobody waits for threads that give memory back.
 */
#ifndef TSI_HEAP_SEARCH_H
#define TSI_HEAP_SEARCH_H

#include "state/arena.h"

/* How an allocation in one incarnation ends. AGAIN: what it was tried in has changed meanwhile. */
typedef enum TsiOutcome { TSI_GOT, TSI_AGAIN, TSI_STALE, TSI_NO_MEMORY, TSI_OVER } TsiOutcome;

/* What an allocation has done to find room since it was first refused. */
typedef struct TsiSearch {
    bool looked;     /* everywhere, since the last try but one */
    bool left;       /* others were inside of what it wanted */
    uint32_t givers; /* of memory, after the look */
    uint32_t gone;   /* how often some had gone by then */
    unsigned turn, waits, looks;
    unsigned told; /* hard budgets whose functions were called */
} TsiSearch;

/* Looks for room where the request has found no memory or was over the budgets in e->hard; and calls the functions of
 * the budgets in `e`, that of a hard one once in a search. Returns true if the request is to be tried again.
 * [no bracket, no lock] */
bool tsi_search(TsiBinding* b, TsiOutcome o, const TsiBudgetEvents* e, TsiSearch* search);

#endif
