/*
 * search.c - looks for room: which memory goes back, and how long a request waits for memory that others give back.
 */
#include "heap/search.h"

#include "account/charge.h"
#include "heap/trim.h"

enum { WAITS = 20000 /* yields, most of them naps: a second and more */, LOOKS = 64 };

/* Gives back what can go for a request with outcome `outcome`: everything (tsi_trim_all) without memory; where
 * max_bytes is in the way, what makes room (tsi_trim_for_room); else the empty slabs of the epoch events->ref. Returns
 * true if others were inside of some. [own thread, no lock held, no bracket open] */
static bool give_back(TsiBinding* b, TsiOutcome outcome, const TsiBudgetEvents* events) {
    TsiArena* a = b->arena;
    if (outcome == TSI_NO_MEMORY) return tsi_trim_all(a, b);
    if ((events->hard & TSI_BUDGET_SPACE) != 0) return tsi_trim_for_room(a, b);
    return tsi_trim_inc(a, b, tsi_inc(&a->phases, tsi_ref_index(events->ref)));
}

/* Waits by yields: until as many threads have given memory back as were at it after the look (search->givers), or,
 * where there were none, search->looks times. Returns true if another look is due; false if the request has waited
 * enough, WAITS yields or LOOKS looks, or nothing has gone since another request gave up on the same givers: a thread
 * may be stopped there. [any thread, no lock held, no bracket open] */
static bool wait_for_others(TsiArena* a, TsiSearch* search) {
    uint64_t giving = tsi_space_giving(&a->space);
    bool gives = search->givers != 0, stood = gives && giving == tsi_load_relaxed(&a->stood);
    if (stood || search->looks == LOOKS) return false;
    for (unsigned n = 0;
         gives ? tsi_givers(giving) != 0 && tsi_gone(giving) - search->gone < search->givers : n < search->looks; n++) {
        if (++search->waits > WAITS) {
            tsi_store_relaxed(&a->stood, giving);
            return false;
        }
        tsi_os_yield(&search->turn);
        giving = tsi_space_giving(&a->space);
    }
    return true;
}

/* Looks for room: once, and again, after a wait, while the last look found that others may have some; notes in *search
 * what they have. Returns true if it looked, so that the request must be tried again; false, giving nothing back,
 * otherwise. [own thread, no lock held, no bracket open] */
static bool find_room(TsiBinding* b, TsiOutcome outcome, const TsiBudgetEvents* events, TsiSearch* search) {
    TsiArena* a = b->arena;
    if (search->looked && !search->left && search->givers == 0) return false;
    if (search->looked && !wait_for_others(a, search)) return false;
    search->left = give_back(b, outcome, events);
    search->looked = true;
    search->looks++;
    uint64_t giving = tsi_space_giving(&a->space);
    bool of_space = outcome == TSI_NO_MEMORY || (events->hard & TSI_BUDGET_SPACE) != 0;
    search->givers = of_space ? tsi_givers(giving) : 0;
    search->gone = tsi_gone(giving);
    return true;
}

bool tsi_search(TsiBinding* b, TsiOutcome outcome, const TsiBudgetEvents* events, TsiSearch* search) {
    TsiArena* a = b->arena;
    unsigned hard = outcome == TSI_OVER_BUDGET ? events->hard & ~search->told : 0;
    if (hard != 0) search->looked = false; /* another budget than before */
    bool again = (outcome == TSI_OVER_BUDGET || outcome == TSI_NO_MEMORY) && find_room(b, outcome, events, search);
    if ((events->soft | hard) != 0) tsi_budget_notify(a, events, hard);
    search->told |= hard;
    if (outcome == TSI_OVER_BUDGET && !again) tsi_add_relaxed(&tsi_label(&a->phases.labels, events->label)->over, 1);
    return again;
}
