/*
 * profile.h - a heap profile: one allocation in about `profile_bytes` bytes, with its stack, size, label and era.
 *
 * Which. Marks lie on a thread's allocated bytes, at distances that are exponential with the mean `profile_bytes`; an
 * allocation on whose bytes one falls is sampled. So each of s bytes (usable ones) is with probability
 * 1 - exp(-s / mean), whatever was before it, and counts for the reciprocal: sums of weights are unbiased.
 *
 * How, without a branch in a fast path. Bytes are counted where slots are made ready, not where they are taken: a
 * refill that a mark falls into is cut before that slot, and the line is marked (TSI_LINE_CUT). The allocation that
 * finds it used up is the one; it takes in the rest. Slots that are made ready and never taken do no harm: a mark
 * belongs to a slot before anybody knows whether it will be taken. In a region marks lie on its bytes, and the owner's
 * limit (`lim`) ends before the next one: the allocation that misses is recorded, and the limit goes on to the mark
 * behind it. A life begins with a distance of its own, as does what follows a mark; what lies behind the last object
 * when a life ends may be forgotten, as the distances have no memory. Bytes that an object gains in place are sampled
 * like an object of that size. Allocations that are slow anyway (large objects) ask for themselves.
 *
 * Live. A sample keeps a handle of its object (mem/handle.h), so it ends when the object is freed or its phase is
 * released, exactly, and nothing is done at that moment. Its price: a line with a sample counts the frees of its slots
 * from then on. Large objects use no slot twice in one incarnation: there the address and the slab's seq
 * will do; and no granule of a region is used twice in a life, so beside them the generation that its handles would
 * have, which rises with each life while there is a profile. Samples whose object has ended are dropped when the table
 * is full or somebody reads it.
 *
 * Escapes. With the option `escape_stacks` a drain that leaves objects alive, or slabs to threads that are inside,
 * looks which samples of its phase live, and counts them for their stacks: each once, since one end of a phase tells of
 * escapes. A sample is recorded after its object was taken, so a thread that was between the two finds that the phase
 * was counted (`told`), and counts its own. Alone, without a mean, each object is sampled (mean 1), and what is made in
 * epochs of the ring is not kept: such a profile is of phases that end, and the table has room for what lives in them.
 *
 * Memory is bounded; a stack or a live sample that finds no room is counted as lost.
 */
#ifndef TSI_OBSERVE_PROFILE_H
#define TSI_OBSERVE_PROFILE_H

#include "state/arena.h"

/* Makes the tables of a profile with a mark every `mean` bytes on average; with `escapes` and no mean, each object is
 * sampled (mean 1). No tables without either. Returns true, or false without memory.
 * [before the allocator is shared] */
bool tsi_profile_init(TsiProfile* profile, uint64_t mean, bool escapes);
/* Unmaps the tables, if there are any. [no other thread in the allocator] */
void tsi_profile_destroy(TsiProfile* profile);
/* Starts a thread's marks: sets the mean and draws the distance to the first; mean 0: none.
 * [own thread, or before the binding is shared] */
void tsi_profile_start(TsiBinding* b, uint64_t mean);
/* Returns the slots of `ready`, of `bytes` bytes each, that a refill may hand out now: those before the next sampled
 * one. Marks the line (TSI_LINE_CUT) if that is not all. Sets b->profile_hit if the first of them is sampled.
 * [owner, in bracket] */
uint64_t tsi_profile_cut(TsiBinding* b, TsiLine* l, uint32_t bytes, uint64_t ready);
/* Counts an object of `bytes` bytes that was just bumped in h's current region: sets b->profile_hit if it is sampled,
 * and the region's limit to the next mark. fresh: the region's life has begun with it. There is a profile.
 * [owner, in bracket] */
void tsi_profile_bumped(TsiBinding* b, TsiHeap* h, uint32_t bytes, bool fresh);
/* Counts, like tsi_profile_bumped, an object of `bytes` bytes that has the region r alone. There is a profile.
 * [owner, in bracket] */
void tsi_profile_solo(TsiBinding* b, TsiRegion* r, uint32_t bytes);
/* Counts what a region's last object gains by reaching to `end`, an offset: sets b->profile_hit if a mark lies there,
 * and the limit to the next one. There is a profile. [owner, in bracket] */
void tsi_profile_grown(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t end);
/* Counts an allocation of `bytes` bytes that no refill has counted: sets b->profile_hit if it is sampled. Does nothing
 * without a profile. [own thread] */
void tsi_profile_one(TsiBinding* b, uint64_t bytes);
/* Records a sampled object with its stack. `gained`: the bytes that it has gained where it is, if those are sampled,
 * otherwise 0. ref: its phase. maker: see tsi_scope_maker. Records nothing if it was released meanwhile; a table that
 * is full counts it as lost. Preserves errno. Takes the profile's lock. from: the caller of the allocation.
 * [own thread, no lock, no bracket] */
void tsi_profile_record(TsiBinding* b, const void* object, uint64_t gained, uint64_t ref, uint32_t maker,
                        TsiCaller from);
/* Writes the callers of an allocation to `frames`, innermost first. Returns how many: 1 to `most`. from: the caller of
 * the allocation, its code and frame. [own thread] */
unsigned tsi_profile_frames(TsiBinding* b, TsiCaller from, uintptr_t* frames, unsigned most);
/* Counts the samples of the phase that live for their stacks, and drops those that do not. `ref` was drained just now,
 * and objects of it live or slabs are deferred. Takes the profile's lock. [stripe held] */
void tsi_profile_escaped(TsiArena* a, TsiRef ref);
/* Returns the number of objects that a sampled one of `bytes` bytes stands for, at least 1. `mean`: distance of marks
 * in bytes, at least 1. [any thread] */
double tsi_profile_weight(uint64_t bytes, uint64_t mean);
/* Returns the bytes of the tables' pages that were written; 0 without a profile. Takes the profile's lock.
 * [any thread that does not hold it] */
size_t tsi_profile_bytes(TsiArena* a);
/* Copies the stacks, the samples whose objects live now, and the counts; `stacks` and `live` have room for whole
 * tables. There is a profile. Takes the profile's lock. [any thread that does not hold it] */
void tsi_profile_copy(TsiArena* a, TsiProfileStack* stacks, TsiProfileLive* live, TsiProfileCounts* counts);

#endif
