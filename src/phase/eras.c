/* eras.c - see eras.h. */
#include "phase/eras.h"

enum { LEAST = 1024 /* slots: a page of them */, MOST = 2 << TSI_INC_BITS };

/* Returns the slot, of `size`, a power of two, where the search for an era begins. [any thread, needs no lock] */
static uint32_t first_slot(uint64_t era, uint32_t size) {
    return (uint32_t)(era * 0x9e3779b97f4a7c15u >> 32) & (size - 1);
}

/* Puts record `index`, which has the era, into the slots, `size` of them, a power of two, of which one at least is 0.
 * Returns true if it fills an empty slot; false if it was there, or took the place of a record that no incarnation has.
 * [eras lock held] */
static bool put(const TsiPhases* phases, uint32_t* slots, uint32_t size, uint32_t index, uint64_t era) {
    for (uint32_t at = first_slot(era, size);; at = (at + 1) & (size - 1)) {
        uint32_t there = slots[at];
        if (there == index) return false;
        if (there != 0 && tsi_inc_era(tsi_inc(phases, there)) != 0) continue;
        slots[at] = index;
        return there == 0;
    }
}

/* Returns the number of slots of a table for `records` records, a power of two: four for each, LEAST at least, MOST at
 * most. [any thread, needs no lock] */
static uint32_t room_for(uint32_t records) {
    uint32_t size = LEAST;
    while (size < MOST && size / 4 < records) size *= 2;
    return size;
}

/* Returns how many places source_locked has for a rebuild, from 0 on: the table's slots, or all records ever taken if
 * the table lacks some (`partial`). [eras lock held] */
static uint32_t sources_locked(const TsiPhases* phases, const TsiEras* eras) {
    TSI_HOLDS(&eras->lock);
    return eras->partial ? tsi_table_used(&phases->incs) : eras->size;
}

/* Returns the index of the record in place `at`, below sources_locked, of the slots, or of all records if the table
 * lacks some; 0 if there is none. [eras lock held] */
static uint32_t source_locked(const TsiEras* eras, uint32_t at) {
    TSI_HOLDS(&eras->lock);
    return eras->partial ? at : eras->slots[at];
}

/* Returns the number of entries whose record is in use. An entry whose record has a new era stays: it is found by that.
 * [eras lock held] */
static uint32_t count_used_locked(const TsiPhases* phases, const TsiEras* eras) {
    TSI_HOLDS(&eras->lock);
    uint32_t used = 0;
    for (uint32_t at = 0; at < sources_locked(phases, eras); at++) {
        uint32_t index = source_locked(eras, at);
        used += index != 0 && tsi_inc_era(tsi_inc(phases, index)) != 0;
    }
    return used;
}

/* Moves the entries whose record is in use, or all records in use if the table lacks some, to a new table of `size`
 * slots, a power of two, and unmaps the old one; clears `partial`. Returns true; false, and changes nothing, without
 * memory. [eras lock held] */
static bool rebuild_locked(const TsiPhases* phases, TsiEras* eras, uint32_t size) {
    TSI_HOLDS(&eras->lock);
    uint32_t* slots = tsi_os_map(size * sizeof *slots);
    uint32_t filled = 0;
    if (slots == NULL) return false;

    for (uint32_t at = 0; at < sources_locked(phases, eras); at++) {
        uint32_t index = source_locked(eras, at);
        uint64_t era = index != 0 ? tsi_inc_era(tsi_inc(phases, index)) : 0;
        if (era != 0) filled += put(phases, slots, size, index, era);
    }

    tsi_os_drop(eras->slots, eras->size * sizeof *slots);
    eras->slots = slots;
    eras->size = size;
    eras->filled = filled;
    eras->partial = false;
    return true;
}

void tsi_eras_add(TsiPhases* phases, uint32_t index) {
    TsiEras* eras = &phases->eras;
    tsi_lock_take(&eras->lock);
    uint64_t era = tsi_inc_era(tsi_inc(phases, index));
    bool room = (eras->filled < eras->size / 2 && !eras->partial) ||
                rebuild_locked(phases, eras, room_for(count_used_locked(phases, eras) + 1));
    if (era != 0 && room) eras->filled += put(phases, eras->slots, eras->size, index, era);
    if (!room) eras->partial = true;
    tsi_lock_give(&eras->lock);
}

/* Returns the index of the record in the table that has the era now; 0 if none has it, or there is no table.
 * [eras lock held] */
static uint32_t find_locked(const TsiPhases* phases, const TsiEras* eras, uint64_t era) {
    TSI_HOLDS(&eras->lock);
    if (eras->size == 0) return 0;
    for (uint32_t at = first_slot(era, eras->size); eras->slots[at] != 0; at = (at + 1) & (eras->size - 1))
        if (tsi_inc_era(tsi_inc(phases, eras->slots[at])) == era) return eras->slots[at];
    return 0;
}

uint32_t tsi_eras_find(TsiPhases* phases, uint64_t era) {
    TsiEras* eras = &phases->eras;
    tsi_lock_take(&eras->lock);
    uint32_t index = find_locked(phases, eras, era);
    bool partial = eras->partial;
    tsi_lock_give(&eras->lock);
    for (uint32_t n = 1; index == 0 && partial && n < tsi_table_used(&phases->incs); n++)
        if (tsi_inc_era(tsi_inc(phases, n)) == era) index = n;
    return index;
}

void tsi_eras_tidy(TsiPhases* phases) {
    TsiEras* eras = &phases->eras;
    tsi_lock_take(&eras->lock);
    uint32_t used = count_used_locked(phases, eras);
    if (used == 0) {
        tsi_os_drop(eras->slots, eras->size * sizeof *eras->slots);
        eras->slots = NULL;
        eras->size = eras->filled = 0;
        eras->partial = false;
    } else if (room_for(used) < eras->size) {
        (void)rebuild_locked(phases, eras, room_for(used));
    }
    tsi_lock_give(&eras->lock);
}

TsiRef tsi_phases_find_era(TsiPhases* phases, uint64_t era) {
    if (era == 0) return 0;
    for (uint32_t n = 0; n < phases->ring_size; n++) {
        TsiRef ref = tsi_load_acquire(&phases->ring[n]); /* pairs as in tsi_phases_resolve; the table afterwards (E1) */
        if (tsi_ref_era(ref) == era) return ref;
    }
    uint32_t index = tsi_eras_find(phases, era);
    return index != 0 ? tsi_ref(era, index) : 0;
}
