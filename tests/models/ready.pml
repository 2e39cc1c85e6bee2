/*
 * ready.pml - a heap that waits for a phase with its region (ready.h, ready.c), and who may have the region.
 *
 * Word     state, region. STANDBY(r) -> LIVE by the owner, STANDBY(r) -> STANDBY_EMPTY by who flushes, both by
 *          compare-exchange of the whole word; the owner stores STANDBY(r) when a phase ends, and frees the heap when
 *          it meets STANDBY_EMPTY: the record comes back to it, as another heap with another region.
 * Life     the owner ends one by an exchange of the region's word, then looks whether the slab's tag has the flag of
 *          handles, raises the base if so, and stores the next tag, WARM. It is OWNED as the next phase begins. Who asks
 *          for a handle sets the flag by compare-exchange of the tag, then looks at the word, then at the tag again.
 * Flush    who has won the region gives it to the pool: the tag says POOL, and an owner may take it again.
 *
 * Memory   all that the owner stores is in a store buffer (mm.pml) until it leaves: the heap's word, tags, the base, and
 *          the object that the program shows to others. WARM and the base are plain stores here (a release, and an
 *          addition, in the code). All steps of others are read-modify-writes, or under the pool's lock. Flushers look at
 *          the heap at any time, whatever the list that they find it by says.
 *
 * Checked: a region that was flushed is in no phase, is given back once, in its new life, and nothing that its former
 * owner has stored arrives after that; a handle that was issued names a base that no later life of the region has.
 *
 * Not covered: frees of others (region.pml), charges, the stripe, which makes an end one step for other ends.
 */
#ifndef NOPS
#define NOPS 4      /* phases of the owner */
#endif
#ifndef NASK
#define NASK 2      /* handles asked for, one after the other */
#endif
#ifndef BUFD
#define BUFD 3
#endif
#define NTH 1       /* the owner */
#define NLOC 5
#define L_WORD  0
#define L_TAG   1   /* two of them */
#define L_BASE  3   /* of region 0 */
#define L_SHOWN 4   /* life of region 0 of which the program has shown an object; 0: none */

#define STANDBY_EMPTY  0
#define LIVE  1
#define STANDBY 2
#define WORD(s, r) ((s) | ((r) << 2))
#define ST(w)      ((w) & 3)
#define REG(w)     ((w) >> 2)

/* Tags: seq, state, flag. */
#define FLAG  1
#define POOL  0
#define WARM  2
#define OWNED 4
#define STATE 6
#define TAG(q, s) (((q) << 3) | (s))
#define SEQ(t)    ((t) >> 3)

#define POOLS   0
#define WAITS   1
#define PHASES  2
#define FLUSHES 3
byte owner_of[2];       /* ghost: whose a region is */
byte region_of = 0;     /* h->slabs */
byte gen = 1;           /* of region 0, like all below; changed by exchanges only */
byte issued[4];         /* ghost: by base, the life in which a handle was issued; 0: none */
bit  done;

/* Tags are stored by who has the region. */
#define ON_FLUSH(t, l) assert(((l) != L_TAG && (l) != L_TAG + 1) || owner_of[(l) == L_TAG + 1] == WAITS || owner_of[(l) == L_TAG + 1] == PHASES)

#include "mm.pml"

/* Region 0's life ends and the next begins. */
inline end_life()
{
#ifdef MUTANT_FLAG_FIRST
	LOAD(0, L_TAG, seen);
	d_step { mm_drain(0); gen++ }
#else
	d_step { mm_drain(0); gen++ }   /* the exchange */
	LOAD(0, L_TAG, seen);
#endif
	if
	:: seen & FLAG ->
		LOAD(0, L_BASE, w);
		STORE(0, L_BASE, w + 1)
	:: else
	fi;
	STORE(0, L_TAG, TAG(SEQ(seen) + 1, WARM))
}

/* The same where nobody asks: the next seq. */
inline end_other()
{
	LOAD(0, L_TAG + 1, seen);
	STORE(0, L_TAG + 1, TAG(SEQ(seen) + 1, WARM))
}

proctype owner()
{
	byte n, w, seen;
	do
	:: n < NOPS ->
		n++;
		d_step { /* STANDBY -> LIVE, or STANDBY_EMPTY */
			mm_drain(0);
			w = mem[L_WORD];
			if
			:: ST(w) == STANDBY && REG(w) == region_of ->
				mem[L_WORD] = WORD(LIVE, 0);
				assert(owner_of[region_of] == WAITS); owner_of[region_of] = PHASES
			:: else -> assert(ST(w) == STANDBY_EMPTY)
			fi
		}
		if
		:: ST(w) == STANDBY_EMPTY -> /* the heap is freed and born again with a region of the pool */
			STORE_REL(0, L_WORD, WORD(LIVE, 0));
			if
			:: d_step { owner_of[0] == POOLS -> region_of = 0; owner_of[0] = PHASES }
			:: d_step { owner_of[1] == POOLS -> region_of = 1; owner_of[1] = PHASES }
			fi
		:: else
		fi;
		LOAD(0, L_TAG + region_of, seen);
		STORE_REL(0, L_TAG + region_of, TAG(SEQ(seen), OWNED));
		if
		:: region_of == 0 ->
			STORE_REL(0, L_SHOWN, gen);
			STORE(0, L_SHOWN, 0);
			end_life()
		:: else -> end_other()
		fi;
		owner_of[region_of] = WAITS;
#ifdef MUTANT_STANDBY_RELAXED
		STORE(0, L_WORD, WORD(STANDBY, region_of));
#else
		STORE_REL(0, L_WORD, WORD(STANDBY, region_of));
#endif
		w = 0; seen = 0
	:: else -> break
	od;
	done = 1
}

proctype flushes()
{
	byte w, r;
	do
	:: done -> break
	:: else ->
		w = mem[L_WORD];
		if
		:: ST(w) == STANDBY ->
#ifdef MUTANT_REGION_READ_APART
			r = region_of;
			d_step {
				if
				:: ST(mem[L_WORD]) == STANDBY ->
#else
			r = REG(w);
			d_step {
				if
				:: mem[L_WORD] == w ->
#endif
					mem[L_WORD] = WORD(STANDBY_EMPTY, 0);
					assert(owner_of[r] == WAITS); owner_of[r] = FLUSHES
				:: else -> r = 2
				fi
			}
			if
			:: r < 2 ->
				d_step { /* under the pool's lock */
					assert((mem[L_TAG + r] & STATE) == WARM);
					mem[L_TAG + r] = TAG(SEQ(mem[L_TAG + r]), POOL);
					owner_of[r] = POOLS
				}
			:: else
			fi
		:: else
		fi;
		w = 0; r = 0
	od
}

/* Another thread that has an object of region 0's present life. */
proctype asker()
{
	byte n, t, b, l;
	do
	:: n < NASK ->
		n++;
		l = 0;
		do
		:: mem[L_SHOWN] != 0 -> l = mem[L_SHOWN]; break
		:: done -> goto out
		od;
		t = mem[L_TAG];
		if
		:: gen != l || !(t & OWNED) -> goto next
		:: else
		fi;
		d_step {
			if
			:: (mem[L_TAG] | FLAG) == (t | FLAG) -> mem[L_TAG] = t | FLAG
			:: else -> t = 0
			fi
		}
		if
		:: t == 0 -> goto next
		:: else
		fi;
		b = mem[L_BASE];
#ifndef MUTANT_WORD_UNSEEN
		if
		:: gen != l -> goto next
		:: else
		fi;
#endif
		if
		:: SEQ(mem[L_TAG]) != SEQ(t) -> goto next
		:: else
		fi;
		d_step {
			assert(b < 4 && (issued[b] == 0 || issued[b] == l));
			issued[b] = l
		}
next:		t = 0; b = 0
	:: else -> break
	od;
out:	skip
}

init {
	d_step {
		owner_of[0] = WAITS;
		mem[L_WORD] = WORD(STANDBY, 0);
		mem[L_TAG] = TAG(1, WARM);
		mem[L_BASE] = 1
	}
	atomic {
		run owner(); run flusher(0);
#ifdef S_FLUSH
		run flushes();
		run flushes();
#endif
#ifdef S_HANDLES
		run asker()
#endif
	}
}
