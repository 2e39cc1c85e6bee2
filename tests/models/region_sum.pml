/*
 * region_sum.pml - what a snapshot tells of a region that its owner renews, or ends and begins anew (src/mem/region.c,
 * tsi_region_sum; src/mem/region.h, tsi_region_count_nothing, tsi_region_turn, tsi_region_start).
 *
 * A region without a live object begins again: its counts are set to 0, then its word takes the next generation.  No lock
 * keeps a snapshot away.  It reads the word before and after the rest, which shows an end, but not that counts are about to
 * be 0; so their order must do for the moment between.  Where live objects end, with their phase, the word goes first, and
 * the counts are needed afterwards: there gen, which follows the word as they have begun anew, shows that they have not.
 *
 *   reader                                 owner
 *   word                (seq_cst)          (turn: word = next    (exchange))
 *   gen, or nothing     (acquire)          issued = 0            (release)
 *   rel                 (acquire)          freed = 0             (release)
 *   freed               (acquire)          rel = 0               (release)
 *   issued              (acquire)          gap_granules = 0      (release)
 *   gap_granules        (acquire)          (renewal: word = next (exchange))
 *   rel again: the smaller one             gen                   (release)
 *   nothing freed ? all live : the map     ... objects: map, rel, issued (release)
 *   word again          (acquire)
 *
 * The life that ends had an object and a gap, or two objects.  Its owner has freed them, or does so first; at a turn it may
 * have freed one.  The next one gets an object.
 *
 * Checked
 *   a snapshot that is accepted tells no more live objects than live by its end, where none was freed meanwhile, no more
 *   issued ones than were issued in one of the lives, nor more granules, and no more of either as freed than were; once all
 *   is quiet all are exact.
 *
 * Not covered: loads that are made early (tests/loom, looks.rs); frees of others (region.pml); runs and gaps that come
 * meanwhile (region_run.pml).
 */
#define NTH 1
#ifndef BUFD
#define BUFD 3
#endif
#define NLOC 8
#define L_ISSUED 0
#define L_FREED  1
#define L_REL    2
#define L_GAPS   3
#define L_WORD   4      /* generation */
#define L_GEN    5      /* generation, as its counts have begun */
#define L_MAP(g) (6 + (g))      /* generation << 2 | mark of a gap | freed by its owner */
#define ON_FLUSH(t, l) skip

byte live, issued_most, freed_most;     /* ghosts */
byte gaps_had;
bit freed_before, turns;
byte done;

#include "mm.pml"

#ifdef MUTANT_FREED_RELAXED
#define STORE_FREED STORE
#else
#define STORE_FREED STORE_REL
#endif

#ifdef MUTANT_GAPS_RELAXED
#define STORE_GAPS STORE
#else
#define STORE_GAPS STORE_REL
#endif

inline free_all()
{
	if
	:: freed_before
	:: else ->
		STORE(0, L_MAP(0), 1 << 2 | 1);
		STORE_REL(0, L_FREED, 1);
		if
		:: gaps_had == 0 ->
			STORE(0, L_MAP(1), 1 << 2 | 1);
			STORE_REL(0, L_FREED, 2)
		:: else
		fi
	fi
}

inline count_nothing()
{
#ifdef MUTANT_ISSUED_LAST
	STORE_FREED(0, L_FREED, 0);
#else
	STORE_REL(0, L_ISSUED, 0);
	STORE_FREED(0, L_FREED, 0);
#endif
#ifdef MUTANT_GAPS_BEFORE_REL
	STORE_GAPS(0, L_GAPS, 0);
	STORE_REL(0, L_REL, 0);
#else
	STORE_REL(0, L_REL, 0);
	STORE_GAPS(0, L_GAPS, 0);
#endif
#ifdef MUTANT_ISSUED_LAST
	STORE_REL(0, L_ISSUED, 0);
#endif
	skip
}

#ifdef MUTANT_GEN_RELAXED
#define STORE_GEN STORE
#else
#define STORE_GEN STORE_REL
#endif

proctype owner()
{
	if
	:: turns ->
		d_step { mm_drain(0); mem[L_WORD] = 2 }
#ifdef MUTANT_GEN_FIRST
		STORE_GEN(0, L_GEN, 2);
#endif
		count_nothing()
	:: else ->
		free_all();
		count_nothing();
		d_step { mm_drain(0); mem[L_WORD] = 2 }
	fi;
#ifndef MUTANT_GEN_FIRST
	STORE_GEN(0, L_GEN, 2);
#endif
	STORE(0, L_MAP(0), 2 << 2);
	d_step { ROOM(0) -> live++; mm_put(0, L_REL, 1, 1) }
	STORE_REL(0, L_ISSUED, 1);
	done++
}

/* Objects of the generation g below `end`, those of them that live, and the granules of both: each start reaches to the next. */
inline count_map(g)
{
	i = 0; starts = 0; lives = 0; granules = 0; lively = 0; was = 0;
	do
	:: i < end ->
		m = mem[L_MAP(i)];
		if
		:: m >> 2 == g ->
			was = m & 3;
			starts = starts + (was != 3);
			lives = lives + (was == 0)
		:: else -> m = 0
		fi;
		granules = granules + !(was == 3);
		lively = lively + (was == 0 && starts != 0);
		i++
	:: else -> break
	od;
	i = 0; m = 0; was = 0
}

#ifdef MUTANT_GEN_UNREAD
#define BEGUN true
#else
#define BEGUN (begun == word)
#endif

inline snapshot()
{
	word = mem[L_WORD];
	begun = mem[L_GEN];
	end = mem[L_REL];
	freed = mem[L_FREED];
	issued = mem[L_ISSUED];
	gaps = mem[L_GAPS];
#ifndef MUTANT_REL_READ_ONCE
	again = mem[L_REL];
	end = (again < end && freed == 0 -> again : end);
#endif
	if
	:: !BEGUN || freed == 0 && issued == 0 -> starts = 0; lives = 0; granules = 0; lively = 0
	:: BEGUN && freed == 0 && issued != 0 ->
		starts = issued; lives = starts;
		granules = (end > gaps -> end - gaps : 0); lively = granules
	:: BEGUN && freed != 0 -> count_map(word)
	fi;
	again = mem[L_WORD]
}

proctype reader()
{
	byte word, begun, end, freed, issued, gaps, again, starts, lives, granules, lively, was, i, m;
	snapshot();
	d_step {
		if
		:: again == word ->
			assert(turns || !freed_before || lives <= live);
			assert(starts <= issued_most && granules <= issued_most);
			assert(starts <= lives + freed_most && granules <= lively + freed_most)
		:: else
		fi;
		done++
	}
}

init
{
	byte word, begun, end, freed, issued, gaps, again, starts, lives, granules, lively, was, i, m;
	if :: gaps_had = 0 :: gaps_had = 1 fi;
	if :: freed_before = 0 :: freed_before = 1 fi;
	if :: turns = 0 :: turns = 1 fi;
	atomic {
		mem[L_WORD] = 1;
		mem[L_GEN] = 1;
		mem[L_MAP(0)] = 1 << 2 | freed_before;
		mem[L_MAP(1)] = (gaps_had -> 1 << 2 | 3 : 1 << 2 | (freed_before && !turns));
		mem[L_REL] = 2;
		mem[L_ISSUED] = 2 - gaps_had;
		freed_most = (turns -> freed_before : 2 - gaps_had);
		mem[L_FREED] = (freed_before -> freed_most : 0);
		mem[L_GAPS] = gaps_had;
		issued_most = 2 - gaps_had;
		run owner(); run flusher(0);
		run reader()
	}
	done == 2 && b_n[0] == 0 ->
	snapshot();
	assert(starts == 1 && lives == 1 && granules == 1 && lively == 1)
}
