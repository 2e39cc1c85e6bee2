/*
 * search.h - the work of an allocation between two tries: memory that no object needs goes back, and functions of
 * budgets are called.
 *
 * A look gives that memory back, and notes whether others have what the request wants: threads inside of a heap, and
 * threads that give memory back meanwhile. A request is tried again after the first look, and as long as the last look
 * found that others have some. So a request is refused if a look found everything that no object needed and the next
 * try failed, or if it has waited enough: a thread may be stopped with memory in its hands.
 *
 * Slabs in the hands of another thread's sweep are off the charges before anybody can miss them (tsi_sweep_uncharge),
 * so under a budget nobody waits for threads that give memory back.
 */
#ifndef TSI_HEAP_SEARCH_H
#define TSI_HEAP_SEARCH_H

#include "state/arena.h"

/* The result of an allocation in one incarnation. AGAIN: what it was tried in has changed. OVER: a budget is in the
 * way. */
typedef enum TsiOutcome { TSI_GOT, TSI_AGAIN, TSI_STALE, TSI_NO_MEMORY, TSI_OVER_BUDGET } TsiOutcome;

/* The efforts of an allocation to find room since it was first refused. */
typedef struct TsiSearch {
    bool looked;     /* everywhere, since the last try but one */
    bool left;       /* others were inside of what it wanted */
    uint32_t givers; /* threads that gave memory back, after the look */
    uint32_t gone;   /* how often memory had gone by then */
    unsigned turn, waits, looks;
    unsigned told; /* hard budgets whose functions were called */
} TsiSearch;

/* Looks for room after outcome `outcome` of a try: no memory, or over the budgets in events->hard; any other looks for
 * none. Waits, for a second and more at most in one search, for threads that give memory back. Calls the functions of
 * the budgets in `events`: of the soft ones each time, of a hard one once in a search. *search: zeros before the first
 * try, and kept for the next ones. Returns true if the request should be tried again; false if it must be refused,
 * counted for the label where a budget is in the way, or if `outcome` is another.
 * [own thread, no lock held, no bracket open] */
bool tsi_search(TsiBinding* b, TsiOutcome outcome, const TsiBudgetEvents* events, TsiSearch* search);

#endif
