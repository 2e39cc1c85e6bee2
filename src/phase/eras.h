/*
 * eras.h - from an era to the record of the incarnation that has it.
 *
 * A hash table of record indexes. The record itself says which era it has, so an entry whose incarnation is over is
 * recognised and nothing has to be taken out when a phase ends: such entries are dropped as the table is rebuilt,
 * which happens once half of it is filled. Nothing is put in when a phase begins either. A thread notes the records of
 * its last TSI_ERA_BLOCK eras by plain stores (heap/records.h) and puts those that are still there in as it goes on to
 * the next block. Epochs of the ring are found in the ring, and put in as they lose their id.
 *
 * The table is made with its first entry, has room for four times the records that were there when it was made, and
 * shrinks or goes as records go back (tsi_eras_tidy).
 *
 *   E1  Every record that is neither in the ring nor in a thread's block is in the table: it is put in before it leaves
 *       either. So whoever looks there first, and in the table afterwards, cannot miss it.
 */
#ifndef TSI_PHASE_ERAS_H
#define TSI_PHASE_ERAS_H

#include "phase/epoch.h"

/* Puts a record that is in use in; a second time does nothing. */
void tsi_eras_add(TsiPhases* p, uint32_t index);
/* Record in the table that has the era, or 0. */
uint32_t tsi_eras_find(TsiPhases* p, uint64_t era);
/* Makes the table as small as the records in use allow, when it is much larger. */
void tsi_eras_tidy(TsiPhases* p);
/* Finds an open or draining incarnation by its era in the ring and in the table; 0 if it is in neither. Those that
 * threads have begun a moment ago are in their own notes (tsi_era_find in heap/records.h). */
TsiRef tsi_phases_find_era(TsiPhases* p, uint64_t era);

#endif
