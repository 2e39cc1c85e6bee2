/*
 * eras.h - from an era to the record of the incarnation that has it.
 *
 * A hash table of record indexes. The record itself has its era, so an entry whose incarnation is over is recognised
 * and nothing has to be removed when a phase ends: such entries are dropped as the table is rebuilt, which happens once
 * half of it is filled. Nothing is added when a phase begins either. A thread notes the records of its last
 * TSI_ERA_BLOCK eras by plain stores (heap/records.h) and adds those that are still in use when it begins the next
 * block. Epochs of the ring are found in the ring, and added as they lose their id.
 *
 * The table is made with its first entry, has room for four times the records that were there when it was made, and
 * shrinks or goes as records go back (tsi_eras_tidy).
 *
 *   E1  Every record that is neither in the ring nor in a thread's block is in the table: it is added before it leaves
 *       either. So a thread that looks there first, and in the table afterwards, cannot miss it.
 */
#ifndef TSI_PHASE_ERAS_H
#define TSI_PHASE_ERAS_H

#include "phase/epoch.h"

/* Puts record `index` into the table under its era, and enlarges or cleans the table if half of it is filled. Without
 * memory sets `partial`: tsi_eras_find then looks at all records. Does nothing if it is there already or no incarnation
 * has it. [any thread, no eras lock held] */
void tsi_eras_add(TsiPhases* phases, uint32_t index);
/* Returns the record that has the era now, by the table; by a walk over all records if the table lacks some. Returns 0
 * if none has it. [any thread, no eras lock held] */
uint32_t tsi_eras_find(TsiPhases* phases, uint64_t era);
/* Rebuilds the table for the records in use if that makes it smaller, and drops it if there are none. Without memory it
 * stays as it is. [any thread, no eras lock held] */
void tsi_eras_tidy(TsiPhases* phases);
/* Returns the reference of the incarnation, open or draining, that has the era, by the ring and the table; 0 if it is
 * in neither, and for era 0. Incarnations that threads have just begun may be only in their own notes (tsi_era_find in
 * heap/records.h). Pins nothing. [any thread, no eras lock held] */
TsiRef tsi_phases_find_era(TsiPhases* phases, uint64_t era);

#endif
