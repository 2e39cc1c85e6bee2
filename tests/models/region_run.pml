/*
 * region_run.pml - what a snapshot tells of a region beside its owner, who bumps, leaves gaps for alignments, frees, and has
 * runs (src/mem/region.c, tsi_region_sum, tsi_region_claim, tsi_region_unclaim; include/slab_lane.h, slab_run_malloc;
 * src/heap/bump.c, take_aligned; src/heap/bump.h, tsi_bump_take).
 *
 *   owner                                             reader
 *   bump       map[rel] = object       (release)      rel, freed, issued, gap_granules, in this order
 *              rel, issued             (release)      nothing freed, rel below the room: by these counts
 *   alignment  map[rel] = gap, gap_granules           otherwise rel again, and the map below it, byte by byte, upwards:
 *              rel                     (release)          each start reaches to the next, the last to rel
 *   begin run  map[rel] = gap                         rel was the room: again, if rel or issued has changed
 *              rel = room              (release)
 *   in it      map[behind] = gap
 *              map[at] = object        (release)
 *   end run    rel = at, issued        (release)
 *   free       map[object] = freed
 *              freed                   (release)
 *   grow       the last object, where no run has ended
 *              rel                     (release)
 *
 * Checked
 *   a snapshot tells no more objects or granules as issued, or as freed, than the owner had begun to issue, or to free,
 *   as it ended; once all is quiet, it is exact.
 *
 * Not covered: lives that end (region_sum.pml); frees of others (region.pml).
 */
#define NTH 1
#ifndef BUFD
#define BUFD 3
#endif
#ifndef ROOM_
#define ROOM_ 5                 /* granules */
#endif
#ifndef NOPS
#define NOPS 4                  /* of the owner's calls */
#endif
#ifndef BEGUN
#define BEGUN 1                 /* whether the run is open as the reader begins */
#endif
#define L_REL    0
#define L_FREED  1
#define L_ISSUED 2
#define L_GAPS   3
#define L_MAP(g) (4 + (g))
#define NLOC (4 + ROOM_)
#define OBJECT 1
#define FREED  2
#define GAP    3
#define ON_FLUSH(t, l) skip

byte objects, granules;                 /* ghosts: issued, at the latest */
byte freed_objects, freed_granules;     /* and freed */
bit done;

#include "mm.pml"

#ifdef MUTANT_REL_RELAXED
#define STORE_BUMPED STORE
#else
#define STORE_BUMPED STORE_REL
#endif

#ifdef MUTANT_OBJECT_RELAXED
#define STORE_OBJECT STORE
#else
#define STORE_OBJECT STORE_REL
#endif

/* An object of `size` granules, live. */
inline counted(size) { d_step { objects++; granules = granules + size } }

inline bump(size)
{
	counted(size);
	STORE_OBJECT(0, L_MAP(rel), OBJECT);
	last = rel; last_size = size; rel = rel + size; issued++; bounded = 0;
	STORE_BUMPED(0, L_REL, rel);
	STORE_REL(0, L_ISSUED, issued)
}

inline align()
{
	STORE(0, L_MAP(rel), GAP);
	rel++; gaps++;
#ifdef MUTANT_GAP_COUNTED_LATE
	STORE_REL(0, L_REL, rel);
	STORE(0, L_GAPS, gaps)
#else
	STORE(0, L_GAPS, gaps);
	STORE_REL(0, L_REL, rel)
#endif
}

inline begin_run()
{
#ifdef MUTANT_CLAIM_UNBOUNDED
	skip;
#else
	STORE(0, L_MAP(rel), GAP);
#endif
	at = rel; rel = ROOM_; claimed = 1; made = 0;
	STORE_REL(0, L_REL, ROOM_)
}

inline of_run(size)
{
	counted(size);
#ifdef MUTANT_BOUND_LATE
	STORE_REL(0, L_MAP(at), OBJECT);
	STORE(0, L_MAP(at + size), GAP);
#else
	STORE(0, L_MAP(at + size), GAP);
#ifdef MUTANT_START_RELAXED
	STORE(0, L_MAP(at), OBJECT);
#else
	STORE_REL(0, L_MAP(at), OBJECT);
#endif
#endif
	last = at; last_size = size; at = at + size; made++
}

inline end_run()
{
	rel = at; claimed = 0; issued = issued + made; bounded = 1;
	STORE_REL(0, L_REL, rel);
	STORE_REL(0, L_ISSUED, issued)
}

inline free_last()
{
	d_step { freed_objects++; freed_granules = freed_granules + last_size };
	STORE(0, L_MAP(last), FREED);
	freed++; last_size = 0;
	STORE_REL(0, L_FREED, freed)
}

inline grow()
{
	d_step { granules++; last_size++ };
#ifdef MUTANT_GROWS_OVER_GAP
	STORE(0, L_MAP(rel), 0);
#endif
	rel++;
	STORE_REL(0, L_REL, rel)
}

proctype owner()
{
	byte rel = 1, issued = 1, gaps, freed, at, made, n, last, last_size = 1;
	bit claimed, bounded;
	if
	:: BEGUN -> d_step { at = 1; rel = ROOM_; claimed = 1 }
	:: else
	fi;
	do
	:: n < NOPS ->
		n++;
		if
		:: claimed && at + 1 < ROOM_ -> of_run(1)
		:: claimed && at + 2 < ROOM_ -> of_run(2)
		:: claimed -> end_run()
		:: !claimed && rel + 1 <= ROOM_ -> bump(1)
		:: !claimed && rel + 2 <= ROOM_ -> bump(2)
		:: !claimed && rel + 2 <= ROOM_ -> align(); bump(1)
		:: !claimed && rel + 1 < ROOM_ -> begin_run()
		:: last_size != 0 -> free_last()
#ifdef MUTANT_GROWS_OVER_GAP
		:: !claimed && last_size != 0 && last + last_size == rel && rel < ROOM_ -> grow()
#else
		:: !claimed && last_size != 0 && last + last_size == rel && rel < ROOM_ && !bounded -> grow()
#endif
		:: else -> n = NOPS
		fi
	:: else -> break
	od;
	done = 1
}

inline count_map()
{
	i = 0; starts = 0; lives = 0; in_gaps = 0; live_granules = 0; kind = 0;
	do
	:: i < end ->
#ifdef MUTANT_MAP_BACKWARDS
		m = mem[L_MAP(end - 1 - i)];
		map[end - 1 - i] = m;
#else
		m = mem[L_MAP(i)];
		map[i] = m;
#endif
		i++
	:: else -> break
	od;
	skip;
	d_step {
		i = 0;
		do
		:: i < end ->
			kind = (map[i] != 0 -> map[i] : kind);
			starts = starts + (map[i] == OBJECT || map[i] == FREED);
			lives = lives + (map[i] == OBJECT);
			in_gaps = in_gaps + (kind == GAP);
			live_granules = live_granules + (kind == OBJECT);
			map[i] = 0;
			i++
		:: else -> break
		od;
		i = 0; m = 0; kind = 0
	}
}

inline snapshot()
{
	do
	:: end = mem[L_REL];
		freed = mem[L_FREED];
		issued = mem[L_ISSUED];
		gaps = mem[L_GAPS];
		if
#ifdef MUTANT_ROOM_BY_COUNTS
		:: freed == 0 ->
#else
		:: freed == 0 && end != ROOM_ ->
#endif
			d_step {
				starts = issued; lives = issued;
				sum = (end > gaps -> end - gaps : 0); live_granules = sum
			};
			break
		:: else ->
#ifndef MUTANT_ROOM_READ_FIRST
			end = mem[L_REL];
#endif
			count_map();
			d_step {
				sum = end - in_gaps;
				lives = (lives < starts -> lives : starts);
				live_granules = (live_granules < sum -> live_granules : sum)
			};
			moved = 0;
#ifndef MUTANT_NO_SECOND_LOOK
			moved = (end == ROOM_ && mem[L_REL] != end);
#ifndef MUTANT_ONLY_REL_AGAIN
			moved = moved || (end == ROOM_ && mem[L_ISSUED] != issued);
#endif
#endif
			if
			:: !moved -> break
			:: else
			fi
		fi
	od;
	skip
}

proctype reader()
{
	byte end, freed, issued, gaps, i, m, kind, starts, lives, in_gaps, live_granules, sum;
	bit moved;
	byte map[ROOM_];
	snapshot();
	d_step {
		assert(starts <= objects);
		assert(sum <= granules);
		assert(starts - lives <= freed_objects);
		assert(sum - live_granules <= freed_granules)
	}
	done && b_n[0] == 0 ->
	snapshot();
	d_step {
		assert(starts == objects && sum == granules);
		assert(starts - lives == freed_objects && sum - live_granules == freed_granules)
	}
}

init
{
	atomic {
		mem[L_MAP(0)] = OBJECT;
		mem[L_REL] = (BEGUN -> ROOM_ : 1);
		mem[L_MAP(1)] = (BEGUN -> GAP : 0);
		mem[L_ISSUED] = 1;
		objects = 1; granules = 1;
		run owner(); run flusher(0);
		run reader()
	}
}
