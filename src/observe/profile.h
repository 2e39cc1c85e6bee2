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

/* Sets mean and escapes of *profile, whose other words are 0, and maps its tables: a mark every `mean` bytes on
 * average; with `escapes` (stacks of escaped objects are asked for) and mean 0 each object is sampled (mean 1). Without
 * either there are no tables. Returns true, or false without memory. [before the allocator is shared] */
bool tsi_profile_init(TsiProfile* profile, uint64_t mean, bool escapes);
/* Unmaps the tables and sets profile->stacks to NULL; does nothing if there are none.
 * [no other thread in the allocator] */
void tsi_profile_destroy(TsiProfile* profile);
/* Starts a thread's marks: sets b->profile_mean to `mean` bytes (0: no marks, 1: each object), b->profile_hit to false
 * and b->past to 0, seeds the binding's random numbers, and, if mean is not 0, draws b->profile_left, the distance to
 * the first mark. [own thread, or before the binding is shared] */
void tsi_profile_start(TsiBinding* b, uint64_t mean);
/* Returns the slots of `ready`, bits of the line l that are not 0, of `bytes` bytes each, that a refill may hand out
 * now: the lowest, up to the one before the next sampled one. Sets TSI_LINE_CUT of the line if these are not all, and
 * clears it otherwise. Sets b->profile_hit if the first of them is sampled. There is a profile. [owner, in bracket] */
uint64_t tsi_profile_cut(TsiBinding* b, TsiLine* l, uint32_t bytes, uint64_t ready);
/* Counts an object of `bytes` bytes that was just bumped in h's current region, whose rel is behind it: sets
 * b->profile_hit if a mark lies on it and leaves that alone otherwise, sets h->mark to the next mark and the region's
 * lim by that, so that the fast path misses where the mark lies. fresh: true if the region's life has begun with this
 * object. There is a profile. [owner, in bracket] */
void tsi_profile_bumped(TsiBinding* b, TsiHeap* h, uint32_t bytes, bool fresh);
/* Counts an object of `bytes` bytes that has the region r alone: sets b->profile_hit if a mark lies on it and leaves
 * that alone otherwise, and sets r->lim to the granule of the next mark behind it, or to the region's end. There is a
 * profile. [owner, in bracket] */
void tsi_profile_solo(TsiBinding* b, TsiRegion* r, uint32_t bytes);
/* Counts what the last object of the region r of h is about to gain by reaching to `end`, an offset in the region that
 * is not beyond its room: sets b->profile_hit if a mark lies there and leaves that alone otherwise, and moves h->mark,
 * if r is h's current region, and r->lim to the next mark. Does not move the region's rel. There is a profile.
 * [owner, in bracket] */
void tsi_profile_grown(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t end);
/* Counts an allocation of `bytes` bytes, at least 1, that no refill has counted: sets b->profile_hit if it is sampled,
 * and leaves that alone otherwise. Does nothing without a profile. [own thread, needs no lock] */
void tsi_profile_one(TsiBinding* b, uint64_t bytes);
/* Records a sampled object with its stack, label and maker, and adds it to profile->live if it lives. gained: the
 * bytes that it has gained where it is, if those are sampled, otherwise 0. ref: its phase; maker: the record of the
 * label whose scope made it outside, + 1, or 0 (tsi_scope_maker); from: the caller of the allocation. Records nothing
 * if the object was released meanwhile, and with mean 1 in epochs of the ring; a full table adds 1 to lost_stacks or
 * lost_live instead. A phase that tsi_profile_escaped was called for has the object counted as escaped at once. Does
 * not clear b->profile_hit. There is a profile. Preserves errno. Takes the profile's lock.
 * [own thread, no lock held, no bracket open] */
void tsi_profile_record(TsiBinding* b, const void* object, uint64_t gained, uint64_t ref, uint32_t maker,
                        TsiCaller from);
/* Writes the callers of an allocation to `frames`, innermost first: from.pc, then return addresses from the frame that
 * from.fp points to on. If b->past is not 0 (tsi_malloc_past), puts it where a function without a frame is missing.
 * Returns how many were written: 1 to `most`, which is the room and at least 1. Reads the bounds of the thread's stack
 * from a file, into b, where those in b do not fit. [own thread, needs no lock] */
unsigned tsi_profile_frames(TsiBinding* b, TsiCaller from, uintptr_t* frames, unsigned most);
/* Counts the samples of the phase `ref` whose objects live for their stacks, as escaped, and drops those whose objects
 * have ended; sets the phase's `told`, so that samples recorded later count themselves. `ref` was drained just now, and
 * objects of it live or slabs are deferred. There is a profile. Takes the profile's lock.
 * [stripe held, profile lock not held] */
void tsi_profile_escaped(TsiArena* a, TsiRef ref);
/* Returns the number of objects that a sampled one of `bytes` bytes, at least 1, stands for, at least 1. mean: the mean
 * distance of marks in bytes, at least 1 (1: each object is sampled). [any thread, needs no lock] */
double tsi_profile_weight(uint64_t bytes, uint64_t mean);
/* Returns the bytes of pages of the profile's tables that were written, each table's rounded up to whole pages; 0
 * without a profile. Takes the profile's lock. [any thread that does not hold it] */
size_t tsi_profile_bytes(TsiArena* a);
/* Drops from the profile the samples whose objects have ended, then copies the stacks and the other samples, and sets
 * *counts to the counts of both and of what was lost. `stacks` has room for TSI_PROFILE_STACKS rows and `live` for
 * TSI_PROFILE_LIVE; rows beyond the counts are left alone. There is a profile. Takes the profile's lock.
 * [any thread that does not hold it] */
void tsi_profile_copy(TsiArena* a, TsiProfileStack* stacks, TsiProfileLive* live, TsiProfileCounts* counts);

#endif
