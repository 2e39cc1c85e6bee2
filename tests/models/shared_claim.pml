/*
 * shared_claim.pml - a shared heap (shared.c): claims by compare-exchange from the remote words against sweeps.
 * One heap record, one slab that is one line of two slots, one in each remote word.
 *
 * Heap word   FREE -> SHARED <-> HELD -> SEIZED -> FREE | SHARED
 *
 * A claim names the heap in `busy`, looks at the heap's word, its ref and the incarnation, takes a bit, counts it and
 * clears `busy`.  A sweep holds the lock twice: HELD under its ticket, then a membarrier and a wait until no
 * thread names the heap, then it takes the heap.  When only the sweeping thread has used the heap it keeps the lock
 * and waits for nobody.  A closer that finds the heap HELD waits for that sweep first.
 * A line that is used up is put aside: its token is armed, then its free slots are counted again.  A freer
 * that takes the token lists the line under the lock, if its slab is still there.
 *
 * Scenarios (exactly one)
 *   S_CLOSE   two claimers, a closer, a freer
 *   S_USER    two claimers, of which the first closes in the end, and a freer
 *   S_TRIM    two claimers, a trim and a closer, a freer
 *   S_ENDS    two claimers and two closers, a freer; with AND_TRIM a trim as well
 *   S_LATE    two claimers, a closer, an advance, a freer whose free of the last object sweeps
 *   S_REBORN  S_USER after another thread has closed: the record serves a second incarnation
 *   S_TOKEN   one claimer, a trim, two freers; a line comes back with T free slots
 *   FENCED    beside one of them: no membarrier, busy is exchanged
 *
 * Checked
 *   a bit is taken only in the claimer's incarnation and before the heap is seized; no slot has two owners;
 *   when a slab is settled its count is that of the claims which took a bit there; a line is listed only while its slab
 *   is in the heap; a closer's receipt has every claim, once, and leaves nothing to others; in the end a line with T free
 *   slots is current or listed; allocated = freed + released + live.
 */
#ifdef S_TOKEN
#define NTH 1
#else
#define NTH 2
#endif
#ifndef T
#define T 1
#endif
#ifndef NOPS            /* of the first claimer; the second one has one */
#define NOPS 1
#endif
#ifndef NFREE
#define NFREE 1
#endif
#define NLOC      4
#define L_BUSY(t) (t)
#define L_ISS(t)  (2 + (t))     /* what a thread has counted of `issued`: an addition that may be late until busy is cleared */
#define ISSUED    (mem[L_ISS(0)] + mem[L_ISS(1)])
#define ON_FLUSH(t, l) skip
#define NOBUF 9

#define FREE   0
#define SHARED 1
#define HELD   2
#define SEIZED 3

#define POOL    0
#define OWNED   1
#define PURGING 2

#define TOK 4

byte inc = 2;                   /* era << 1 | closed */
byte hw = SHARED, href = 1, user, revoker, ticket;      /* the first claimer has made it */
bit  many, lock;
byte sweeps;                    /* pins of the incarnation */
byte by_ref[2];
byte rem0 = 1, rem1 = 1;              /* bit 0 free, TOK, seq << 3 */
byte tagst = OWNED, seq;
bit  cur = 1, listed;

/* ghosts */
byte live, out;                 /* slots taken; slots whose claims have returned and nobody frees yet */
byte taken;                     /* bits taken since the slab was opened */
byte n_taken;                   /* ever */
byte n_settled, n_freed, n_rel, done;

#include "mm.pml"

#define take_lock(t) d_step { !lock -> lock = 1; mm_drain(t) }

/* ---- tokens ---- */

inline count_free()
{
	x = rem0 & 1;
	x = x + (rem1 & 1)
}

/* ok = 1: the caller has taken the token out of the word */
inline disarm(q)
{
	ok = 0;
	do
	:: d_step { w = rem0 }
	   if
	   :: (w >> 3) != (q) || !(w & TOK) -> break
	   :: else ->
		count_free();
		if
		:: x < T -> break
		:: else ->
			d_step {
				if
				:: rem0 == w -> rem0 = w & ~TOK; ok = 1
				:: else
				fi
			}
			if
			:: ok -> break
			:: else
			fi
		fi
	   fi
	od;
	skip;
	d_step { w = 0; x = 0 }
}

inline list_line()
{
	d_step { assert(tagst == OWNED && hw != FREE); listed = 1 }
}

/* The lock is held. */
inline put_aside()
{
#ifdef MUTANT_ARM_NO_RECOUNT
	count_free();
	if
	:: x >= T -> list_line()
	:: else -> rem0 = rem0 | TOK
	fi;
	x = 0
#else
	d_step { rem0 = rem0 | TOK }
	disarm(seq);
	if
	:: ok -> list_line(); ok = 0
	:: else
	fi
#endif
}

inline unpark(q)
{
	take_lock(NOBUF);
#ifdef MUTANT_UNPARK_NO_LOOK
	list_line();
#else
	if
	:: tagst == OWNED && seq == q -> list_line()
	:: else
	fi;
#endif
	lock = 0
}

/* ---- claims ---- */

#ifdef MUTANT_CACHED_BY_RECORD
#define KNOWN(t) (by_ref[t] && href == ref)
#else
#define KNOWN(t) (by_ref[t] == ref)
#endif

/* ok = 1: there is a heap to try */
inline heap_of(t)
{
	if
	:: KNOWN(t) -> ok = 1
	:: else ->
		take_lock(t);
		d_step {
			if
			:: inc == 2 * ref ->
				if
				:: hw == FREE -> hw = SHARED; href = ref; user = t; many = 0; cur = 0; listed = 0
#ifndef MUTANT_MANY_NOT_SET
				:: hw != FREE && user != t -> many = 1
#endif
				:: else
				fi;
				by_ref[t] = ref; ok = 1
			:: else -> ok = 0
			fi;
			lock = 0
		}
	fi
}

/* got = 1: slot h is the caller's */
inline claim(t)
{
	h = 0;
	do
	:: h < 2 ->
		d_step { w = (h == 0 -> rem0 : rem1) }
		if
		:: w & 1 ->
			d_step {
				mm_drain(t);
				if
				:: h == 0 && rem0 == w -> rem0 = w & ~1; got = 1
				:: h == 1 && rem1 == w -> rem1 = w & ~1; got = 1
				:: else
				fi;
				if
				:: got ->
					assert(tagst == OWNED && href == ref && (hw == SHARED || hw == HELD));
					assert(!(live & (1 << h)));
					live = live | (1 << h); taken++; n_taken++
				:: else
				fi;
				w = 0
			}
			if
			:: got -> break
			:: else
			fi
		:: else -> h++
		fi
	:: else -> break
	od;
	if
	:: got -> d_step { ROOM(t) -> mm_get(t, L_ISS(t), w); mm_put(t, L_ISS(t), w + 1, 0); w = 0 }
	:: else
	fi
}

/* The lock is held. A line in the place of the current one; ok = 0: there is none. */
inline next_line(t)
{
	d_step { at = listed; listed = 0 }
	if
	:: cur -> cur = 0; put_aside()
	:: else
	fi;
	d_step {
		if
		:: at -> cur = 1; ok = 1
		:: !at && tagst == POOL ->
			mm_drain(t);
			tagst = OWNED; rem0 = seq << 3 | 1; rem1 = seq << 3 | 1;
			mem[L_ISS(0)] = 0; mem[L_ISS(1)] = 0; taken = 0;
			cur = 1; ok = 1
		:: else -> ok = 0
		fi;
		at = 0
	}
}

#ifdef FENCED
#define EXCHANGED(t) mm_drain(t)
#else
#define EXCHANGED(t) skip
#endif
#ifdef MUTANT_RELAXED_BUSY_CLEAR
#define CLEARS 0
#else
#define CLEARS 1
#endif

inline name(t) { d_step { ROOM(t) -> mm_put(t, L_BUSY(t), 1, 1); EXCHANGED(t) } }

inline look(t)
{
	d_step { in = (hw == SHARED) }
#if !defined(MUTANT_NO_REF) && !defined(MUTANT_NO_RECORD_REF)
	d_step { in = (in && href == ref) }
#endif
#ifdef MUTANT_NO_REF            /* active, but which? */
	d_step { in = (in && !(inc & 1)) }
#else
	d_step { in = (in && inc == 2 * ref) }
#endif
}

inline alloc(t)
{
	ref = inc >> 1;
	heap_of(t);
	if
	:: ok ->
		ok = 0;
		d_step { in = (hw == SHARED) }  /* for progress alone: nobody is waited for who came later */
		if
		:: in ->
#ifdef MUTANT_BUSY_AFTER_LOOK
			look(t); name(t);
#elif defined(MUTANT_NO_BRACKET)
			look(t);
#else
			name(t); look(t);
#endif
			if
			:: in && cur -> claim(t)
			:: else
			fi;
			d_step { ROOM(t) -> mm_put(t, L_BUSY(t), 0, CLEARS); EXCHANGED(t) }
		:: else
		fi;
		in = 0;
		if
		:: !got ->
			take_lock(t);
			if
			:: inc == 2 * ref && href == ref && hw == SHARED ->
				do
				:: true ->
					if
					:: cur -> claim(t)
					:: else
					fi;
					if
					:: got -> break
					:: else
					fi;
					next_line(t);
					if
					:: !ok -> break
					:: else -> ok = 0
					fi
				od;
				skip
			:: else
			fi;
			d_step { mm_drain(t); lock = 0 }
		:: else
		fi;
		d_step {
			if
			/* given to a user; one whose epoch has been released meanwhile is nobody's */
			:: got && tagst == OWNED && href == ref && (live & (1 << h)) -> out = out | (1 << h)
			:: else
			fi;
			got = 0; h = 0
		}
	:: else
	fi;
	d_step { ok = 0; ref = 0 }
}

/* ---- sweeps ---- */

inline settle()
{
	/* every claim that took a bit is counted */
	d_step {
		assert(ISSUED == taken);
		n_settled = n_settled + ISSUED;
		tagst = PURGING; seq++; out = 0
	}
	d_step { rem0 = seq << 3; n_rel = n_rel + (live & 1); live = live & ~1 }
	d_step { rem1 = seq << 3; n_rel = n_rel + (live >> 1); live = 0 }
	tagst = POOL
}

inline rebuild()
{
	d_step { cur = 0; listed = 0 }
	if
	:: tagst == OWNED ->
		count_free();
		if
		:: x -> x = 0; list_line()
		:: else -> put_aside()
		fi
	:: else
	fi
}

/*
 * Another sweep may have the heap, between its two holds.  An end waits until that one has settled it, by the state that
 * the end has set; its receipt would lack everything otherwise.  The code gives the lock back, yields, and takes it to
 * look again; here it sleeps until a look is worth it, so that a wait without an end shows.
 */
#ifdef MUTANT_AWAIT_ONCE
#define WORTH_A_LOOK true
#else
#define WORTH_A_LOOK (hw != HELD)
#endif
inline await_held(me)
{
#if !defined(MUTANT_NO_AWAIT) && !defined(MUTANT_AWAIT_UNLOCKED)
	do
	:: hw == HELD ->
#ifdef MUTANT_AWAIT_LOCKED
		hw != HELD
#else
		lock = 0;
		WORTH_A_LOOK;
		take_lock(me);
#ifdef MUTANT_AWAIT_ONCE
		break
#endif
#endif
	:: else -> break
	od;
#endif
	skip
}

/* The heap is ours: HELD, and claims are over. */
inline seize(era)
{
	hw = SEIZED;
#ifdef MUTANT_GIVES_BACK_EARLY
	if
	:: !(inc & 1) -> hw = SHARED
	:: else
	fi;
#endif
	if
	:: inc & 1 ->
		if
		:: tagst == OWNED -> settle()
		:: else
		fi;
		d_step { href = 0; user = NOBUF; hw = FREE }
	:: else ->
		if
		:: tagst == OWNED ->
			count_free();
			if
			:: x == 2 -> settle()
			:: else
			fi;
			x = 0
		:: else
		fi;
		rebuild();
		hw = SHARED
	fi
}

#define LATE 4          /* a freer's: it finds an incarnation that has ended, and makes no receipt */
#define ENDS(era) ((era) && (era) != LATE)
#ifdef MUTANT_AWAIT_UNPINNED
#define PINS_BEFORE(era) (!ENDS(era))
#else
#define PINS_BEFORE(era) true
#endif
#ifdef MUTANT_HOLDER_LEAVES_IT  /* the end may have it */
#define TAKES(era) ((era) || !(inc & 1))
#else
#define TAKES(era) true
#endif

/* era: the one to end, 0 to trim, LATE */
inline sweep(me, era)
{
#ifdef MUTANT_AWAIT_UNLOCKED
	if
	:: ENDS(era) -> hw != HELD
	:: else
	fi;
#endif
	take_lock(me);
	if
	:: (ENDS(era) && (inc >> 1) != (era)) || ((era) == LATE && !(inc & 1))  /* somebody else's by now */
	:: else ->
		d_step {
			if
			:: PINS_BEFORE(era) -> sweeps++
			:: else
			fi;
			if
			:: ENDS(era) -> inc = inc | 1
			:: else
			fi
		}
		if
		:: ENDS(era) -> await_held(me)
		:: else
		fi;
		d_step {
			if
			:: !PINS_BEFORE(era) -> sweeps++
			:: else
			fi;
			if
			:: hw == SHARED ->
				hw = HELD; ticket++; tk = ticket; revoker = tk;
				in = (many || user != me)
			:: else
			fi
		}
		if
		:: in ->
			in = 0;
			lock = 0;
#if !defined(MUTANT_NO_MEMBARRIER) && !defined(FENCED)
			mm_barrier_all();
#endif
#ifndef MUTANT_NO_WAIT
			mem[L_BUSY(0)] == 0;
#if NTH > 1
			mem[L_BUSY(1)] == 0;
#endif
#endif
			take_lock(me)
		:: else
		fi;
		if
#ifdef MUTANT_NO_TICKET
		:: hw == HELD && TAKES(era) -> seize(era)
#else
		:: hw == HELD && tk && revoker == tk && TAKES(era) -> seize(era)
#endif
		:: else
		fi;
		d_step {
			if
			:: ENDS(era) ->         /* the receipt: all that was ever claimed, once, and nothing is left to others */
				assert(inc == 2 * (era) + 1);
				assert(hw == FREE && tagst == POOL);
				assert(n_settled == n_taken)
			:: else
			fi;
			sweeps--; tk = 0
		}
	fi;
	lock = 0
}

/* ---- threads ---- */

proctype claimer(byte me; byte n)
{
	byte ref, w, h, x, tk;
	bit ok, got, in, at;
	do
	:: n > 0 -> n--; alloc(me)
	:: n == 0 -> break
	od;
#if defined(S_USER) || defined(S_REBORN)
	if
	:: me == 0 -> ref = inc >> 1; sweep(0, ref); ref = 0
	:: else
	fi;
#endif
	done++
}

proctype freer(byte n)
{
	byte w, h, x, q, tk;
	bit ok, in;
	do
	:: n > 0 ->
		n--;
		if
		:: d_step { out & 1 -> h = 0; q = seq; out = out & ~1 }
		:: d_step { out & 2 -> h = 1; q = seq; out = out & ~2 }
		:: break
		fi;
		d_step {
			if
			:: h == 0 && (rem0 >> 3) == q -> rem0 = rem0 | 1; ok = 1
			:: h == 1 && (rem1 >> 3) == q -> rem1 = rem1 | 1; ok = 1
			:: else
			fi;
			if
			:: ok -> assert(live & (1 << h)); live = live & ~(1 << h); n_freed++
			:: else
			fi
		}
		if
		:: ok ->
			disarm(q);
			if
			:: ok ->
#ifdef MUTANT_SEIZED_PUTS_BACK
				/* as where somebody adopts the heap and looks at all lines */
				if
				:: hw == SEIZED ->
					d_step {
						if
						:: (rem0 >> 3) == q -> rem0 = rem0 | TOK
						:: else
						fi
					}
				:: else -> unpark(q)
				fi
#else
				unpark(q)
#endif
			:: else
			fi;
#ifdef S_LATE                   /* the last of a slab whose incarnation has ended: after_late_free */
			if
			:: tagst == OWNED && seq == q && (inc & 1) && (rem0 & rem1 & 1) -> sweep(NOBUF, LATE)
			:: else
			fi;
#endif
			skip
		:: else
		fi;
		d_step { ok = 0; q = 0; h = 0 }
	:: n == 0 -> break
	od;
	done++
}

proctype sweeper(byte era)
{
	byte w, x, tk;
	bit ok, in;
	sweep(NOBUF, era);
#ifdef S_REBORN
	d_step { !lock && !sweeps && hw == FREE && (inc & 1) -> inc = inc + 1 }
#endif
	done++
}

#ifdef S_LATE
/* The ring moves on: nothing is swept. */
proctype advancer()
{
	take_lock(NOBUF);
	d_step { inc = inc | 1; lock = 0 }
	done++
}
#endif

#if defined(S_ENDS) && defined(AND_TRIM)
#define NPROC 6
#elif defined(S_TRIM) || defined(S_ENDS) || defined(S_LATE)
#define NPROC 5
#elif defined(S_USER)
#define NPROC 3
#else
#define NPROC 4
#endif

init
{
	atomic {
		by_ref[0] = 1;
#ifdef S_REBORN                 /* both have used it */
		by_ref[1] = 1; many = 1;
#endif
#ifdef S_TOKEN                  /* it is used up */
		rem0 = 0; rem1 = 0; live = 3; out = 3; taken = 2; n_taken = 2; mem[L_ISS(0)] = 2;
#endif
		run flusher(0);
		run claimer(0, NOPS);
#if NTH > 1
		run flusher(1);
		run claimer(1, 1);
#endif
		run freer(NFREE);
#ifdef S_TOKEN
		run freer(NFREE); run sweeper(0);
#endif
#if defined(S_TRIM) || defined(AND_TRIM)
		run sweeper(0);
#endif
#if defined(S_TRIM) || defined(S_ENDS)
		run sweeper(1);
#endif
#ifdef S_ENDS
		run sweeper(1);
#endif
#ifdef S_LATE
		run advancer(); run sweeper(1);
#endif
#if defined(S_CLOSE) || defined(S_REBORN)
		run sweeper(1);
#endif
	}
	d_step {
		done == NPROC && b_n[0] == 0 &&
#if NTH > 1
		b_n[1] == 0 &&
#endif
		!lock ->
		assert(hw == FREE || hw == SHARED);
		assert(!(hw == SHARED && tagst == OWNED && !cur && !listed && (rem0 & 1) + (rem1 & 1) >= T));
		assert(n_settled + (tagst == OWNED -> ISSUED : 0) == n_freed + n_rel + (live & 1) + (live >> 1))
	}
}
