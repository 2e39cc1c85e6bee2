/*
 * region_sum.pml - what a snapshot tells of a region that its owner renews (src/mem/region.c, tsi_region_sum;
 * src/mem/region.h, tsi_region_count_nothing).
 *
 * A region without a live object begins again: its counts are set to 0, then its word takes the next generation.  No lock
 * keeps a snapshot away.  It reads the word before and after the rest, which shows an end, but not that counts are about to
 * be 0; so their order must do for the moment between.
 *
 *   reader                                 owner
 *   word                (seq_cst)          issued = 0            (release)
 *   rel                 (acquire)          freed = 0             (release)
 *   freed               (acquire)          rel = 0               (release)
 *   issued              (acquire)          gap_granules = 0      (release)
 *   gap_granules        (acquire)          word = next           (exchange)
 *   rel again: the smaller one             ... objects: map, rel, issued (release)
 *   nothing freed ? all live : the map
 *   word again          (acquire)
 *
 * The life that ends had an object and a gap, or two objects.  Its owner has freed them, or does so first.  The next one
 * gets an object.
 *
 * Checked
 *   a snapshot that is accepted tells no more live objects than live by its end, where none was freed meanwhile, and no more
 *   issued ones than were issued in one of the lives, nor more granules; once all is quiet all are exact.
 *
 * Not covered: loads that are made early (tests/loom, looks.rs); frees of others (region.pml); runs and gaps that come
 * meanwhile (region_run.pml).
 */
#define NTH 1
#ifndef BUFD
#define BUFD 3
#endif
#define NLOC 7
#define L_ISSUED 0
#define L_FREED  1
#define L_REL    2
#define L_GAPS   3
#define L_WORD   4      /* generation */
#define L_MAP(g) (5 + (g))      /* generation << 2 | mark of a gap | freed by its owner */
#define ON_FLUSH(t, l) skip

byte live, issued_most;         /* ghosts */
byte gaps_had;
bit freed_before;
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

proctype owner()
{
	free_all();
	count_nothing();
	d_step { mm_drain(0); mem[L_WORD] = 2 }
	STORE(0, L_MAP(0), 2 << 2);
	d_step { ROOM(0) -> live++; mm_put(0, L_REL, 1, 1) }
	STORE_REL(0, L_ISSUED, 1);
	done++
}

/* Objects of the generation g below `end`, and those of them that live. */
inline count_map(g)
{
	i = 0; starts = 0; lives = 0;
	do
	:: i < end ->
		m = mem[L_MAP(i)];
		starts = starts + (m >> 1 == g << 1);
		lives = lives + (m == g << 2);
		i++
	:: else -> break
	od;
	granules = starts;
	i = 0; m = 0
}

inline snapshot()
{
	word = mem[L_WORD];
	end = mem[L_REL];
	freed = mem[L_FREED];
	issued = mem[L_ISSUED];
	gaps = mem[L_GAPS];
#ifndef MUTANT_REL_READ_ONCE
	again = mem[L_REL];
	end = (again < end && freed == 0 -> again : end);
#endif
	if
	:: freed == 0 && issued == 0 -> starts = 0; lives = 0; granules = 0
	:: freed == 0 && issued != 0 -> starts = issued; lives = starts; granules = (end > gaps -> end - gaps : 0)
	:: else -> count_map(word)
	fi;
	again = mem[L_WORD]
}

proctype reader()
{
	byte word, end, freed, issued, gaps, again, starts, lives, granules, i, m;
	snapshot();
	d_step {
		if
		:: again == word -> assert(!freed_before || lives <= live); assert(starts <= issued_most && granules <= issued_most)
		:: else
		fi;
		done++
	}
}

init
{
	byte word, end, freed, issued, gaps, again, starts, lives, granules, i, m;
	if :: gaps_had = 0 :: gaps_had = 1 fi;
	if :: freed_before = 0 :: freed_before = 1 fi;
	atomic {
		mem[L_WORD] = 1;
		mem[L_MAP(0)] = 1 << 2 | freed_before;
		mem[L_MAP(1)] = (gaps_had -> 1 << 2 | 3 : 1 << 2 | freed_before);
		mem[L_REL] = 2;
		mem[L_ISSUED] = 2 - gaps_had;
		mem[L_FREED] = (freed_before -> 2 - gaps_had : 0);
		mem[L_GAPS] = gaps_had;
		issued_most = 2 - gaps_had;
		run owner(); run flusher(0);
		run reader()
	}
	done == 2 && b_n[0] == 0 ->
	snapshot();
	assert(starts == 1 && lives == 1 && granules == 1)
}
