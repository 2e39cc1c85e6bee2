/*
 * close_seize.pml - the owner's bracket against closers, trims, remote frees,
 * thread exit and adoption.  One incarnation that ends, two slabs of two slots.
 *
 * Heap word   state | binding<<3
 *
 *   LIVE(b) -> REVOKED(b) -> SEIZED -> DEAD(b) | FREE | DETACHED | RETIRE(b)
 *   LIVE(b) -> RETIRE(b): an advance, a trim or an exit asks the owner to let go
 *   DETACHED: nobody's, adoptable while the incarnation is ACTIVE
 *
 * A sweep holds the incarnation's lock twice, with a membarrier in between.  In
 * the first hold it revokes heaps under its ticket, in the second it seizes those
 * that still carry it, reading the owner's `busy`: nothing named -> all slabs; a
 * slab -> all but that one (`skip`, settled by the owner in its handover); the
 * whole heap -> deferred to the owner.
 *
 * A line's `heap_at` names the heap whose owner frees there by plain stores. A free reads it inside its
 * bracket, then that heap's word; LIVE and the thread's own -> plain, else the tag tells how to free.
 * It is cleared when the slab leaves the heap, before the heap's word leaves SEIZED or DEAD.
 *
 * Scenarios (exactly one)
 *   S_DRAIN S_RELEASE   owner, a closer, a remote freer; slab 1 comes from the pool
 *   S_TWO               a drain and a release race
 *   S_PARTIAL           as S_TWO, and the drain claims half-empty slabs for a while
 *                       to give single pages back
 *   S_TRIM              a trim and a close race; the owner loses the heap and adopts it again
 *   S_EXIT              the owner exits, another thread adopts, a close races
 *   S_MORE              slab 1 is in a second, ownerless heap that the owner adopts beside its
 *                       first one (trim or close, -DMORE_CLOSE, races; with MORE_TRIM both do)
 *   S_ADVANCE           the incarnation is advanced, its owner asleep; a freer empties a slab
 * and, beside one of them,
 *   REBORN              a freed heap record lives again, in another incarnation
 *   FENCED              no membarrier: the owner's stores to busy are seq_cst exchanges, but for the name of a fast path, which
 *                       always misses and takes the name back
 *   AND_FREER           S_EXIT with a remote freer as well
 *   OWN_END             S_MORE: the owner closes it in the end
 *   PIECES              S_ADVANCE: a freer that sweeps in passing settles one slab; the rest waits on a list, from which
 *                       others take a piece each. Ends, trims and handovers are whole
 *   BESIDE              S_ADVANCE with the two heaps of S_MORE
 *   AND_CLOSE AND_RELEASE  S_ADVANCE, and the incarnation is closed
 *
 * Checked
 *   no allocation begun after a close returned succeeds; no slot has two owners;
 *   nobody writes, or has a store buffered for, a slab that somebody else sweeps;
 *   a slab is settled once; the words of a slab that goes back account for exactly
 *   the live objects; in the end nothing is left to nobody: every slab is back, or
 *   ORPHAN with live objects; heap records are not freed before their skipped slab
 *   is settled; allocated = freed + released + live; a receipt tells of as many slabs as
 *   deferred as it lacks.
 */
#ifdef S_EXIT
#define NTH 2
#else
#define NTH 1
#endif
#define NLOC        8
#define L_BUSY(b)   (b)
#define L_AV(s)     (2 + (s))
#define L_FR(s)     (4 + (s))
#define L_HEAP(s)   (6 + (s))   /* heap_at: number + 1 of the heap whose owner frees by plain stores */
#define SLAB_OF(l)  (((l) - 2) & 1)
#define ON_FLUSH(t, l) assert((l) < 2 || !swept[SLAB_OF(l)] || swept[SLAB_OF(l)] == 1 + (t))

#include "close_seize.h"
#include "mm.pml"
#include "close_seize_sweep.pml"

/* ---- remote free of bit b of slab s; q is the sequence the call read first ---- */

inline remote_free(t)
{
	do
	:: r = rem[s];
	   if
	   :: RSEQ(r) != q -> ok = 0; break     /* stale: released meanwhile */
	   :: else ->
#ifdef MUTANT_HEAP_BEFORE_BIT
		hwas = HST(hw[HEAP(s)]);
#endif
		d_step {
			mm_drain(t);
			if
			:: rem[s] == r ->
				assert(live[s] & b);
				rem[s] = r | b;
				live[s] = live[s] & ~b; claim[s] = claim[s] & ~b;
				n_freed++; ok = 1
#ifdef S_ADVANCE
				/* the last one, the owner's own frees being visible; an advance is over when it has asked */
				; if
				:: inc == ADVANCED && HST(hw[HEAP(s)]) != LIVE && !live[s] && !b_n[0] && !inbr[s] -> late = late | (1 << s)
				:: else
				fi
#endif
			:: else -> ok = 0
			fi
		}
		if
		:: ok -> break
		:: else
		fi
	   fi
	od;
	r = 0;
#ifndef MUTANT_LATE_EMPTY_UNNOTICED
	if
	:: ok ->
		d_step { x = tag[s]; ok = 0;
#ifdef MUTANT_COMPLETE_BEFORE_TAG
			/* `early`: freed as an acquire load could see it before the compare-exchange is done */
			if
			:: ((mem[L_AV(s)] | early | BITS(rem[s])) != 3) -> x = TAG(POOL, 0)
			:: else
			fi
#endif
		}
		if
		:: TST(x) == ORPHAN && TSEQ(x) == q -> complete(t, s, false)
		:: TST(x) == OWNED && TSEQ(x) == q ->
			/* LIVE: who takes the heap away looks after that; so does who has begun an end */
			x = 0;
#ifndef MUTANT_HEAP_BEFORE_BIT
			hwas = HST(hw[HEAP(s)]);
#endif
			if
			:: hwas != LIVE && !AGAIN(HEAP(s)) && NOBODYS && EMPTY(s) -> hwas = 0; IN_PASSING; sweep(t, 0, 0)
			:: else -> hwas = 0
			fi
		:: else -> x = 0
		fi
	:: else
	fi;
#endif
	d_step { s = 0; b = 0; q = 0; early = 0; ok = 0 }
}

proctype freer(byte n)
{
	byte s, b, q, r, x, ok, sk, early, tk, h, i, in, w, df, pc, hwas;
	do
	:: n > 0 ->
		if
		:: CLAIM(0, 1)
		:: CLAIM(0, 2)
		:: CLAIM(1, 1)
		:: CLAIM(1, 2)
		:: break
		fi;
		n--;
		remote_free(NOBUF)
	:: n == 0 -> break
	od;
	done++
}

/* ---- the owner ---- */

#define OP_ALLOC 1      /* from slab s; hangs on the first heap's word, the only one the fast path knows */
#define OP_FREE  2      /* bit b of slab s; hangs on the word of the heap that the line names */
#define OP_MORE  3      /* slow path: slab s from the pool, or an ownerless heap */
#define OP_ADOPT 4      /* no heap: an ownerless one, whose room is then made anew */
#define OP_BIRTH 5      /* no heap: the record again, in another incarnation */
#define OP_GET   6      /* a slow path that looks for a heap while its own is asked for */

inline choose(t)
{
	if
	:: IN_ROOM(t, 0) -> d_step { op = OP_ALLOC; s = 0 }
	:: IN_ROOM(t, 1) -> d_step { op = OP_ALLOC; s = 1 }
	:: CLAIM_BY(t, 0, 1)
	:: CLAIM_BY(t, 0, 2)
	:: CLAIM_BY(t, 1, 1)
	:: CLAIM_BY(t, 1, 2)
#ifdef TWO_HEAPS
	:: OWN(t, 0) && HST(hw[1]) == DETACHED -> op = OP_MORE
#else
#ifndef MUTANT_RENAME_IN_BRACKET
	:: BINDING_IS(0, t) && TST(tag[0]) == POOL -> d_step { op = OP_MORE; s = 0 }
	:: BINDING_IS(0, t) && TST(tag[1]) == POOL -> d_step { op = OP_MORE; s = 1 }
#else
	:: OWN(t, 0) && TST(tag[1]) == POOL -> d_step { op = OP_MORE; s = 1 }
#endif
#endif
#if defined(S_TRIM) || defined(S_EXIT) || defined(TWO_HEAPS)
	:: HST(hw[0]) == DETACHED -> op = OP_ADOPT
#endif
#ifdef TWO_HEAPS
	:: hw[0] == HW(RETIRE, t) || hw[0] == HW(REVOKED, t) -> op = OP_GET
#endif
#ifdef REBORN
	:: HST(hw[0]) == FREE || hw[0] == HW(DEAD, t) -> op = OP_BIRTH
#endif
	:: n = 0                        /* sleeps outside any call for good */
	fi
}

/* Compare-exchange under the lock that closes take too, and only while ACTIVE. ok = 1: it is the thread's. */
inline adopt(t, hp)
{
#ifdef MUTANT_ADOPT_WITHOUT_CAS
	ok = ((inc == ACTIVE || AGAIN(hp)) && HST(hw[hp]) == DETACHED);
	if
	:: ok -> d_step { mm_drain(t); hw[hp] = HW(LIVE, t) }
	:: else
	fi
#else
	take_lock(t);
	d_step {
		if
#ifdef MUTANT_ADOPT_NO_STATE_CHECK
		:: HST(hw[hp]) == DETACHED -> hw[hp] = HW(LIVE, t); ok = 1
#else
		:: (inc == ACTIVE || AGAIN(hp)) && HST(hw[hp]) == DETACHED -> hw[hp] = HW(LIVE, t); ok = 1
#endif
		:: else
		fi;
		lock = 0
	}
#endif
}

#ifdef REBORN
/* The slow path throws away what a sweep left DEAD; the record serves the next heap, under that one's lock. */
inline birth(t)
{
	if
	:: hw[0] == HW(DEAD, t) -> drop(0)
	:: else
	fi;
	d_step {
		mm_drain(t);
		if
		:: hw[0] == FREE -> again = 1; hw[0] = HW(LIVE, t)
		:: else         /* another thread took the record */
		fi
	}
}
#endif

/* An adopted heap's slab goes into the room: its line names the heap, as it did before. */
inline name_heap(t, i)
{
	if
	:: TST(tag[i]) == OWNED && HB(hw[HEAP(i)]) == t -> inbr[i] = 1 + t; STORE(t, L_HEAP(i), HEAP(i) + 1)
	:: else
	fi
}

/* Inside the bracket. */
inline work(t)
{
	if
	:: op == OP_ALLOC ->
		LOAD(t, L_AV(s), r);
		if
		:: r == 0 ->
			/* refill: what was freed here and elsewhere */
			d_step { mm_get(t, L_FR(s), r); mm_drain(t);
				 r = r | BITS(rem[s]); rem[s] = rem[s] & ~3 }
			if
			:: r -> STORE(t, L_FR(s), 0)
			:: else
			fi
		:: else
		fi;
		if
		:: r -> d_step {
			ROOM(t) ->
			assert(!swept[s]);
			b = r & ~(r - 1);
			assert(!(live[s] & b));
			assert(!beg);
			live[s] = live[s] | b; n_alloc++; used[s] = 1;
			mm_put(t, L_AV(s), r & ~b, 0);
			b = 0; r = 0 }
		:: else
		fi
	:: op == OP_FREE ->
		LOAD(t, L_FR(s), r);
		d_step {
			ROOM(t) ->
			assert(!swept[s] && TST(tag[s]) == OWNED);
			/* an adopted heap's lines live in the room of the first: it must be this thread's */
			assert(HEAP(s) == 0 || HB(hw[0]) == t);
			mm_put(t, L_FR(s), r | b, 0);
			live[s] = live[s] & ~b; claim[s] = claim[s] & ~b;
			n_freed++; r = 0; b = 0 }
	:: op == OP_MORE ->
#ifdef MUTANT_RENAME_IN_BRACKET
		/* the bracket on slab 0 turns into one on everything without another look at the word */
		STORE_REL(t, L_BUSY(t), ALL);
#endif
#ifdef TWO_HEAPS
		adopt(t, 1);
		if
		:: ok -> ok = 0; name_heap(t, 1)
		:: else
		fi
#else
		d_step { mm_drain(t);
			 if
			 :: TST(tag[s]) == POOL ->
				mem[L_AV(s)] = 0; mem[L_FR(s)] = 3; tag[s] = TAG(OWNED, TSEQ(tag[s])); ok = 1
			 :: else
			 fi }
		if
		:: ok -> STORE(t, L_HEAP(s), 1); ok = 0
		:: else
		fi
#endif
#if defined(S_TRIM) || defined(S_EXIT) || defined(TWO_HEAPS)
	:: op == OP_ADOPT ->
		if
		:: hb == 1 -> name_heap(t, 0)
		:: else
		fi;
		name_heap(t, 1)
#endif
	fi
}

#ifdef MUTANT_RENAME_IN_BRACKET
#define NAME_MORE 1
#else
#define NAME_MORE ALL
#endif

/* The bracket names the whole incarnation. */
#define SLOW(op) ((op) == OP_MORE || (op) == OP_ADOPT)

proctype owner(byte me; byte n)
{
	byte s, b, q, r, x, ok, sk, early, tk, h, i, in, w, op, hb, beg, df, pc, hwas;
	byte got = 1;   /* number + 1 of the heap that the bracket hangs on */
	do
	:: n > 0 ->
		n--;
		choose(me);
		if
		:: op == OP_ADOPT ->
			adopt(me, 0);
			if
			:: ok -> ok = 0
			:: else -> op = 0
			fi
#ifdef TWO_HEAPS
		:: op == OP_GET ->
#ifdef MUTANT_SECOND_HEAP_BESIDE_ONE_ASKED_FOR
			adopt(me, 1);
			got = 2;
#else
			handover(me);
			adopt(me, 0);
#endif
			if
			:: ok -> ok = 0; op = OP_ADOPT
			:: else -> op = 0
			fi
#endif
#ifdef REBORN
		:: op == OP_BIRTH -> birth(me); op = 0
#endif
		:: else
		fi;
#ifdef FENCED
		if
		:: op == OP_ALLOC || op == OP_FREE ->
			/* The fast path names the line by a plain store, and never finds its heap LIVE (tsi_bracket_missed). */
			STORE_REL(me, L_BUSY(me), s + 1);
			STORE_REL(me, L_BUSY(me), 0);
#ifndef MUTANT_MISSED_UNFENCED
			d_step { EXCHANGED(me) }
#endif
			hb = (TST(tag[s]) == OWNED -> HEAP(s) + 1 : 0);
			if
			:: LEAVES(me, hb, false) -> handover(me)
			:: else
			fi;
			hb = 0;
			/* it goes on by the slow path, or ends: refused, or in another phase */
			if
			:: true
			:: op == OP_FREE -> d_step { claim[s] = claim[s] & ~b; op = 0 }
			:: op == OP_ALLOC -> op = 0
			fi
		:: else
		fi;
#endif
		if
		:: op ->
			d_step {
				ROOM(me) ->
				beg = closed_ret && !AGAIN(0);
				mm_put(me, L_BUSY(me), (op == OP_MORE -> NAME_MORE : (op == OP_ADOPT -> ALL : s + 1)), 1);
				EXCHANGED(me) }
			if
			:: op == OP_FREE -> LOAD(me, L_HEAP(s), hb)
			:: op == OP_FREE -> hb = 0      /* a retired line names nobody */
			:: else -> hb = got
			fi;
			d_step {
				in = MAY(me, hb, s);
				if
				:: in && !SLOW(op) -> assert(!swept[s]); inbr[s] = 1 + me
				:: in && SLOW(op) && hb == 1 && OWN(me, 0) -> inbr[0] = 1 + me
				:: else
				fi }
			if
			:: in -> work(me)
			/* not plain: the tag tells whose it is, while the bracket still names it */
			:: !in && op == OP_FREE -> hb = (TST(tag[s]) == OWNED -> HEAP(s) + 1 : 0)
			:: else
			fi;
			d_step {
				ROOM(me) ->
				if :: inbr[0] == 1 + me -> inbr[0] = 0 :: else fi;
				if :: inbr[1] == 1 + me -> inbr[1] = 0 :: else fi;
#ifdef MUTANT_RELAXED_BUSY_CLEAR
				mm_put(me, L_BUSY(me), 0, 0)
#else
				mm_put(me, L_BUSY(me), 0, 1)
#endif
				; EXCHANGED(me)
			}
			if
			:: LEAVES(me, hb, in) -> handover(me)
			:: else
			fi;
			if
			:: b && op == OP_FREE -> remote_free(me)
			:: else
			fi
		:: else
		fi;
		d_step { op = 0; s = 0; b = 0; q = 0; in = 0; beg = 0; early = 0; hb = 0; got = 1 }
	:: n == 0 -> break
	od;
#ifdef S_EXIT
	/* thread exit, or it sleeps for ever */
	do
	:: BINDING_IS(0, me) ->
		d_step { mm_drain(me);
			if
			:: hw[0] == HW(LIVE, me) -> hw[0] = HW(RETIRE, me)
			:: else
			fi }
		handover(me)
	:: hw[0] == HW(DEAD, me) -> drop(0)
	:: !BINDING_IS(0, me) && hw[0] != HW(DEAD, me) -> break
	:: break
	od;
#endif
#ifdef OWN_END
	sweep(me, CLOSED, 0);
	/* nothing of its own is left to a sweep that has been and gone, or comes later */
	assert(!BINDING_IS(0, me) && !BINDING_IS(1, me));
	closed_ret = 1;
#endif
	done++
}

#ifdef PIECES
/* Slow paths, one after the other, each with a piece of what is on the list. */
proctype later()
{
	byte r, x, ok, sk, tk, h, i, in, w, df, pc;
end:	do
	:: d_step { more -> more = 0; sweeps = 1 }
	   pc = 1;
	   sweep(NOBUF, 0, 0);
	   sweeps = 0
	od
}
#endif

/* ---- those who end it ---- */

proctype closer(byte target)
{
	byte r, x, ok, sk, tk, h, i, in, w, df, pc;
	sweep(NOBUF, target, 0);
	closed_ret = 1;
	done++
}

#if defined(S_TRIM) || (defined(S_MORE) && (!defined(MORE_CLOSE) || defined(MORE_TRIM)))
proctype trimmer()
{
	byte r, x, ok, sk, tk, h, i, in, w, df, pc;
	sweep(NOBUF, 0, 1);
	done++
}
#endif

#ifdef S_ADVANCE
proctype advancer()
{
	take_lock(NOBUF);
	inc = ADVANCED;
	d_step {
		if
		:: hw[0] == HW(LIVE, 0) -> hw[0] = HW(RETIRE, 0)
		:: else
		fi;
		if
		:: hw[1] == HW(LIVE, 0) -> hw[1] = HW(RETIRE, 0)
		:: else
		fi }
	lock = 0;
	done++
}
#endif

init
{
	atomic {
		hw[0] = HW(LIVE, 0);
		tag[0] = TAG(OWNED, 0);
		mem[L_AV(0)] = 3; mem[L_HEAP(0)] = 1;
#ifdef TWO_HEAPS
		hw[1] = DETACHED;
		tag[1] = TAG(OWNED, 0);
		mem[L_AV(1)] = 2; mem[L_HEAP(1)] = 2; live[1] = 1; n_alloc = 1; used[1] = 1;
#else
		hw[1] = FREE;
#endif
		run flusher(0);
#ifdef PIECES
		run later();
#endif
		run owner(0, NOPS);
#ifdef S_DRAIN
		run closer(CLOSED); run freer(NFREE);
#endif
#ifdef S_RELEASE
		run closer(RELEASED); run freer(NFREE);
#endif
#if defined(S_TWO) || defined(S_PARTIAL)
		run closer(CLOSED); run closer(RELEASED); run freer(NFREE);
#endif
#ifdef S_TRIM
		run trimmer(); run closer(CLOSED);
#endif
#ifdef S_EXIT
		run flusher(1);
		run owner(1, NOPS); run closer(CLOSED);
#ifdef AND_FREER
		run freer(NFREE);
#endif
#endif
#ifdef S_MORE
#ifdef MORE_CLOSE
		run closer(CLOSED);
#endif
#if !defined(MORE_CLOSE) || defined(MORE_TRIM)
		run trimmer();
#endif
#endif
#ifdef S_ADVANCE
		run advancer(); run freer(NFREE);
#endif
#ifdef AND_CLOSE
		run closer(CLOSED);
#endif
#ifdef AND_RELEASE
		run closer(RELEASED);
#endif
	}
	/* everybody is through and every store is out */
	d_step {
		done == NPROC && b_n[0] == 0 &&
#if NTH > 1
		b_n[1] == 0 &&
#endif
		!lock && !WAITS ->
#if defined(S_ADVANCE) && !defined(ENDS)
		/* what a remote free emptied after the advance is gone */
		assert(TST(tag[0]) == POOL || !(late & 1));
		assert(TST(tag[1]) == POOL || !(late & 2));
#elif defined(S_MORE) && !defined(MORE_CLOSE) && !defined(OWN_END)
		skip;
#else
		assert(TST(tag[0]) == POOL || (TST(tag[0]) == ORPHAN && live[0] && inc != RELEASED) || (AGAIN(0) && TST(tag[0]) == OWNED));
		assert(TST(tag[1]) == POOL || (TST(tag[1]) == ORPHAN && live[1] && inc != RELEASED) || (AGAIN(0) && TST(tag[1]) == OWNED));
		assert(AGAIN(0) || HST(hw[0]) == FREE || (HST(hw[0]) == DEAD && !hskip[0]));
		assert(HST(hw[1]) == FREE || (HST(hw[1]) == DEAD && !hskip[1]));
#endif
		assert(n_alloc == n_freed + n_rel + POP2(live[0]) + POP2(live[1]))
	}
}
