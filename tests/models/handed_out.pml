/*
 * handed_out.pml - a snapshot's count of frees beside the threads that allocate (liveness.c: tsi_line_handed_out,
 * tsi_line_sum; line.h: tsi_line_hand_out; bump.h: tsi_bump_take).  One line of two slots.
 *
 * Nobody counts frees.  A snapshot, which holds no lock that an allocation takes, says: freed singly is what was ever
 * handed out and is not live.  Accounts of labels keep what they were told, so a slot must never look freed because it
 * was handed out between two of the reader's looks:
 *
 *   reader                                 refill
 *   issued            (acquire)            freed |= remote bits   (release), then they leave the remote word
 *   - slots in avail  (acquire)            avail = slots          (release)
 *   remote words, freed, avail             freed without them     (release)
 *   live = those in none of the three      issued += slots        (release)
 *
 * The count is the last store.  A release does not hold back later ones, so counted before freed has lost them, on a machine
 * weaker than TSO a slot that was popped from avail could be in freed yet; and an object of a mixed slab that is counted before
 * its granules leave avail is not live yet, on any machine.
 *
 * A pop takes a bit from avail by a plain store and touches no count: issued - avail rises by itself.  Objects of a
 * mixed slab come in a row: avail is what has not been used, `starts` where objects begin, and issued counts them.
 *
 * Scenarios (exactly one)
 *   S_REFILL  an owner that allocates, frees, and gives objects to a thread that frees them; a reader
 *   S_MIXED   the same, in a mixed slab
 *
 * Checked
 *   frees told <= frees begun, objects told <= objects handed out, at the end of each snapshot; once all is quiet both
 *   are exact.
 *
 * Not covered: lines of different slabs, and slabs that leave their incarnation meanwhile (view_slab looks at the tag
 * twice).  What a snapshot told may be less than the one before: accounts take only what is more.
 */
#define NTH 1
#ifndef BUFD
#define BUFD 3
#endif
#ifndef NOPS
#define NOPS 4          /* calls of the owner */
#endif
#ifndef NFREE
#define NFREE 1         /* frees by another thread */
#endif
#define NLOC     5
#define L_AV     0
#define L_FR     1
#define L_ST     2      /* TsiMixed.starts */
#define L_ISS(t) (3 + (t))      /* issued */
#define ON_FLUSH(t, l) skip

#ifdef MUTANT_ISSUED_RELAXED
#define COUNTS 0
#else
#define COUNTS 1
#endif

#define FULL 3
#define POP2(x) (((x) & 1) + ((x) >> 1))

byte rem;               /* bits that others freed */
/* ghosts */
byte live;              /* slots in users' hands, from the instant they are taken */
byte out;               /* of these, given to another thread to free */
byte n_alloc, n_freed;  /* begun */
byte done;

#include "mm.pml"

/* ---- the owner ---- */

/* Counted after its slots show in avail. */
inline show_slots(o)
{
#ifdef MUTANT_ISSUED_BEFORE_AVAIL
	STORE_REL(0, L_ISS(0), c + POP2(o));
#endif
	STORE_REL(0, L_AV, o);
#ifndef MUTANT_ISSUED_NOT_LAST
	STORE_REL(0, L_FR, f & ~(o));
#endif
#ifndef MUTANT_ISSUED_BEFORE_AVAIL
	d_step { ROOM(0) -> mm_put(0, L_ISS(0), c + POP2(o), COUNTS) }
#endif
#ifdef MUTANT_ISSUED_NOT_LAST
	STORE_REL(0, L_FR, f & ~(o))
#endif
}

/* avail is 0 */
inline refill()
{
	LOAD(0, L_FR, f);
	d_step { r = rem }
	if
	:: r ->
		f = f | r;
		STORE_REL(0, L_FR, f);
		d_step { mm_drain(0); rem = rem & ~r }
	:: else
	fi;
	if
	:: f ->
		LOAD(0, L_ISS(0), c);
		a = f;
		if
		:: true
		:: f == FULL -> a = 1   /* cut short for a sample */
		fi;
		show_slots(a)
	:: else
	fi;
	d_step { f = 0; c = 0; r = 0 }
}

inline alloc()
{
	LOAD(0, L_AV, a);
#ifdef S_MIXED
	if
	:: a ->
		d_step { mm_get(0, L_ST, f); f = f | (a & ~(a - 1)); mm_get(0, L_ISS(0), c) }
		d_step { ROOM(0) -> mm_put(0, L_ST, f, 1); f = a & (a - 1); a = a & ~(a - 1); live = live | a; n_alloc++ }
#ifndef MUTANT_ISSUED_NOT_LAST
		STORE_REL(0, L_AV, f);
		d_step { ROOM(0) -> mm_put(0, L_ISS(0), c + 1, COUNTS) }
#else
		STORE(0, L_ISS(0), c + 1);
		STORE_REL(0, L_AV, f)
#endif
	:: else
	fi;
#else
	if
	:: a == 0 -> refill()
	:: else
	fi;
	if
	:: a ->
		d_step { ROOM(0) ->
			mm_put(0, L_AV, a & (a - 1), 0);
			a = a & ~(a - 1);
			assert(!(live & a));
			live = live | a; n_alloc++ }
	:: else
	fi;
#endif
	d_step { a = 0; f = 0; c = 0 }
}

#define MINE (live & ~out)

proctype owner(byte n)
{
	byte a, f, r, c;
	do
	:: n > 0 ->
		n--;
		if
		:: alloc()
		/* The other thread learns of the address by a release: all that came before is out. */
		:: d_step { MINE && b_n[0] == 0 -> out = out | (MINE & ~(MINE - 1)) }
		:: MINE ->
			d_step { a = MINE & ~(MINE - 1); live = live & ~a; n_freed++ }
			LOAD(0, L_FR, f);
			STORE(0, L_FR, f | a);
			d_step { a = 0; f = 0 }
		:: n = 0
		fi
	:: n == 0 -> break
	od;
	done++
}

/* ---- another thread ---- */

proctype freer(byte n)
{
	byte b;
	do
	:: n > 0 ->
		n--;
		if
		:: d_step { out -> b = out & ~(out - 1); out = out & ~b; live = live & ~b; n_freed++ }
		:: break
		fi;
		d_step { assert(!(rem & b)); rem = rem | b; b = 0 }
	:: n == 0 -> break
	od;
	done++
}

/* ---- the snapshot ---- */

#define ISSUED mem[L_ISS(0)]

inline line_state()
{
	l = FULL & ~rem;
	l = l & ~mem[L_FR];
#ifdef MUTANT_ONE_AVAIL
	l = l & ~a;
#else
	l = l & ~mem[L_AV];
#endif
#ifdef S_MIXED
	l = l & mem[L_ST];
#endif
	l = POP2(l)
}

inline handed_out()
{
#if defined(S_MIXED)
	h = ISSUED
#elif defined(MUTANT_AVAIL_READ_FIRST)
	a = mem[L_AV];
	h = ISSUED - POP2(a)
#else
	h = ISSUED;
	a = mem[L_AV];
	h = h - POP2(a)
#endif
}

/* sum_line */
inline sum()
{
	if
#if !defined(S_MIXED) || !defined(MUTANT_ISSUED_NOT_LAST)
	:: h < l -> h = l
#endif
	:: else
	fi
}

proctype reader()
{
	byte a, l;
	short h;
#ifdef MUTANT_FREE_READ_FIRST
	line_state();
	handed_out();
#else
	handed_out();
	line_state();
#endif
	d_step {
		sum();
		assert(h - l <= n_freed);
		assert(h <= n_alloc);
		a = 0; l = 0; h = 0
	}
	done++
}

#define NPROC 3

init
{
	byte a, l;
	short h;
	atomic {
#if defined(S_REFILL)
		mem[L_FR] = FULL;
		run owner(NOPS);
#elif defined(S_MIXED)
		mem[L_AV] = FULL;
		run owner(NOPS);
#endif
		run flusher(0);
		run freer(NFREE);
		run reader()
	}
	atomic {
		done == NPROC && b_n[0] == 0 ->
		handed_out();
		line_state();
		sum();
		assert(h == n_alloc && h - l == n_freed && l == POP2(live))
	}
}
