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

/* Makes the tables for a mean distance, of 1 where there is none and `escapes`; false without memory. */
bool tsi_profile_init(TsiProfile* profile, uint64_t mean, bool escapes);
void tsi_profile_destroy(TsiProfile* profile);
/* The distance to a thread's first mark. */
void tsi_profile_start(TsiBinding* b, uint64_t mean);
/* Returns the slots of `ready`, of `bytes` bytes each, that a refill may hand out; marks the line if that is not all.
 * Sets b->profile_hit if the first of them is sampled. */
uint64_t tsi_profile_cut(TsiBinding* b, TsiLine* l, uint32_t bytes, uint64_t ready);
/* Records that an object of `bytes` bytes was bumped in the current region: sets b->profile_hit if it is sampled, and
 * the next mark. fresh: the region's life has begun with it. There is a profile. */
void tsi_profile_bumped(TsiBinding* b, TsiHeap* h, uint32_t bytes, bool fresh);
/* Like tsi_profile_bumped, for an object that has a region alone. */
void tsi_profile_solo(TsiBinding* b, TsiRegion* r, uint32_t bytes);
/* The last object of a region is about to reach to `end`: b->profile_hit when what it gains is sampled. */
void tsi_profile_grown(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t end);
/* Counts an allocation that no refill has counted: sets b->profile_hit if it is sampled. */
void tsi_profile_one(TsiBinding* b, uint64_t bytes);
/* Records a sampled object. gained: what it has gained where it is, when that is sampled, else 0. ref: its phase.
 * maker: see tsi_scope_maker. No lock held and no bracket open. Preserves errno. */
void tsi_profile_record(TsiBinding* b, const void* object, uint64_t gained, uint64_t ref, uint32_t maker,
                        TsiCaller from);
/* The callers of an allocation, innermost first: at most `most`, 1 at least. Returns how many. Own thread. */
unsigned tsi_profile_frames(TsiBinding* b, TsiCaller from, uintptr_t* frames, unsigned most);
/* Counts the samples of the phase that live for their stacks, and drops those that do not. `ref` was drained just now,
 * and objects of it live or slabs are deferred. [stripe] */
void tsi_profile_escaped(TsiArena* a, TsiRef ref);
/* Returns the number of objects that a sampled one of `bytes` bytes stands for. */
double tsi_profile_weight(uint64_t bytes, uint64_t mean);
/* Bytes of the tables that were written. */
size_t tsi_profile_bytes(TsiArena* a);
/* Copies the tables, of the live samples those that are; room for all of both. */
void tsi_profile_copy(TsiArena* a, TsiProfileStack* stacks, TsiProfileLive* live, TsiProfileCounts* counts);

#endif
