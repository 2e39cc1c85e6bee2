/*
 * accounts.h - what the allocator itself says of a run: its accounts by label, its doctor, its statistics as JSON.
 *
 * Taken once, when the last request has ended and the server idles. None of it comes from the server's own counting;
 * accounts_differ holds the one against the other. With glibc all of it is empty.
 */
#ifndef DEMO_ACCOUNTS_H
#define DEMO_ACCOUNTS_H

#include "routes.h"

#include <slab_stats.h>
#include <stdio.h>

typedef struct RouteFigures RouteFigures; /* run.h */

typedef struct Accounts {
    SlabLabelStats* labels;
    size_t label_count;
    uint32_t sampling_period;
    char* doctor; /* text of slab_doctor_ex */
    size_t doctor_len;
} Accounts;

/* False when memory is short. */
bool accounts_take(Accounts* accounts);
void accounts_drop(Accounts* accounts);
/* slab_stats_json to a file. False with errno. */
bool accounts_write_json(int fd);
/* Of the figures that the labels of the routes and the receipts of their phases both have, those that differ;
 * `figures` by route. *phases: how many receipts were compared. */
unsigned accounts_differ(const Accounts* accounts, const RouteFigures* figures, uint64_t* phases);
/* Label of the largest leak among phases that began a second ago or earlier; false when there is none. */
bool accounts_find_leak(char label[32]);

#endif
