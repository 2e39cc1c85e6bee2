/*
 * birth_close.pml - a heap is born, or a large object linked, while its incarnation closes.
 *
 * Two threads with store buffers allocate: each needs a heap of its own, entered into
 * the incarnation's list under the stripe lock, which also checks the state; then the
 * bracket of bracket.h with `busy` naming the whole heap.  A large object is linked to
 * the incarnation under the same lock.  A closer sets the state and revokes under the
 * lock, runs a membarrier if it found heaps, and seizes under the lock what busy does
 * not name; the rest is left to the owner as it leaves.  List, heap words, busy and the
 * lock itself are memory behind the buffers of mm.pml (unlocking is a release store).
 *
 * Checked
 *   no allocation begun after the close returned succeeds; nothing is allocated from a
 *   heap that has been swept; in the end every heap that was born has been swept, and
 *   every large object ended (the close is a release).
 */
#ifndef BUFD
#define BUFD 3
#endif
#define NTH  2
#define NLOC 8
#define L_LOCK    0
#define L_HEAD    1
#define L_BUSY(t) (2 + (t))
#define L_NEXT(t) (4 + (t))
#define L_HW(t)   (6 + (t))
#define ON_FLUSH(t, l) skip
#define NOBUF 9

#ifndef NOPS
#define NOPS 2
#endif

/* heap word */
#define FREE    0
#define LIVE    1
#define REVOKED 2
#define DEAD    3

#define ACTIVE   0
#define RELEASED 3

byte inc;               /* state; stored seq_cst */
/* ghosts */
bit  closed_ret;
bit  born[2], swept[2];
byte large;             /* large objects linked and live */
byte done;

#include "mm.pml"

inline take_lock(t) { d_step { !mem[L_LOCK] -> mm_drain(t); mem[L_LOCK] = 1 } }
inline give_lock(t) { STORE_REL(t, L_LOCK, 0) }

/* A heap, indexed as its thread; ok: it is there. */
inline birth(t)
{
#if defined(MUTANT_BIRTH_UNLOCKED)
	/* looks, then enters itself */
	ok = (inc == ACTIVE);
	if
	:: ok -> join(t)
	:: else
	fi
#elif defined(MUTANT_BIRTH_BUFFERED)
	/* enters itself, then looks, and withdraws: right but for the store buffer (FENCED shows that) */
	join(t);
#ifdef FENCED
	d_step { mm_drain(t) };
#endif
	ok = (inc == ACTIVE);
	if
	:: ok
	:: else -> d_step { mm_drain(t);
		if
		:: mem[L_HW(t)] == LIVE -> mem[L_HW(t)] = DEAD; swept[t] = 1
		:: else
		fi }
		if
		:: mem[L_HW(t)] == REVOKED -> handover(t)
		:: else
		fi
	fi
#else
#ifdef MUTANT_BIRTH_CHECKS_BEFORE_LOCK
	ok = (inc == ACTIVE);
	take_lock(t);
#else
	take_lock(t);
	ok = (inc == ACTIVE);
#endif
	if
	:: ok -> join(t)
	:: else
	fi;
	give_lock(t)
#endif
}

inline join(t)
{
	LOAD(t, L_HEAD, h);
	STORE(t, L_NEXT(t), h);
	STORE(t, L_HEAD, t + 1);
#if defined(MUTANT_BIRTH_UNLOCKED) || defined(MUTANT_BIRTH_BUFFERED)
	d_step { ROOM(t) -> mm_put(t, L_HW(t), LIVE, 1); born[t] = 1 }
#else
	d_step { mm_drain(t); mem[L_HW(t)] = LIVE; born[t] = 1 }       /* seq_cst */
#endif
	h = 0
}

inline handover(t)
{
	take_lock(t);
	d_step {
		if
		:: mem[L_HW(t)] == REVOKED -> assert(!swept[t]); swept[t] = 1; mem[L_HW(t)] = FREE
		:: else
		fi
	}
	give_lock(t)
}

inline alloc(t)
{
	beg = closed_ret;
	LOAD(t, L_HW(t), w);
	if
	:: w == FREE || w == DEAD -> birth(t)
	:: else -> ok = 1
	fi;
	if
	:: ok ->
		STORE_REL(t, L_BUSY(t), 1);
		d_step { mm_get(t, L_HW(t), w); ok = (w == LIVE) }
		if
		:: ok -> d_step { assert(!swept[t]); assert(!beg) }
			skip            /* the stores to the slab's words */
		:: else
		fi;
		assert(!ok || !swept[t]);
		STORE_REL(t, L_BUSY(t), 0);
		LOAD(t, L_HW(t), w);
		if
		:: w != LIVE -> handover(t)
		:: else
		fi
	:: else
	fi;
	d_step { ok = 0; w = 0; beg = 0 }
}

inline alloc_large(t)
{
	beg = closed_ret;
#ifdef MUTANT_LARGE_UNLOCKED
	ok = (inc == ACTIVE);
#else
	take_lock(t);
	ok = (inc == ACTIVE);
#endif
	if
	:: ok -> d_step { mm_drain(t); large++; assert(!beg) }
	:: else
	fi;
#ifndef MUTANT_LARGE_UNLOCKED
	give_lock(t);
#endif
	d_step { ok = 0; beg = 0 }
}

proctype thread(byte me; byte n)
{
	byte h, w;
	bit ok, beg;
	do
	:: n > 0 ->
		n--;
		if
		:: alloc(me)
		:: alloc_large(me)
		:: n = 0
		fi
	:: n == 0 -> break
	od;
	done++
}

proctype closer()
{
	byte h;
	bit others;
	take_lock(NOBUF);
	inc = RELEASED;
	h = mem[L_HEAD];
	do
	:: h != 0 ->
		d_step {
			if
			:: mem[L_HW(h - 1)] == LIVE -> mem[L_HW(h - 1)] = REVOKED
			:: else
			fi;
			others = 1;
			h = mem[L_NEXT(h - 1)]
		}
	:: else -> break
	od;
	if
	:: others ->
		d_step { mem[L_LOCK] = 0 }
#ifndef MUTANT_NO_MEMBARRIER
		mm_barrier_all();
#endif
		d_step { !mem[L_LOCK] -> mem[L_LOCK] = 1 }
		h = mem[L_HEAD];
		do
		:: h != 0 ->
			d_step {
				if
				:: mem[L_HW(h - 1)] == REVOKED && !mem[L_BUSY(h - 1)] ->
					assert(!swept[h - 1]);
					swept[h - 1] = 1; mem[L_HW(h - 1)] = DEAD
				:: else
				fi;
				h = mem[L_NEXT(h - 1)]
			}
		:: else -> break
		od
	:: else
	fi;
	skip;
	d_step { large = 0; mem[L_LOCK] = 0 }
	closed_ret = 1;
	done++
}

init
{
	atomic {
		run flusher(0); run flusher(1);
		run thread(0, NOPS);
#ifdef ONE
		done++;
#else
		run thread(1, NOPS);
#endif
		 run closer();
	}
	d_step { done == 3 && b_n[0] == 0 && b_n[1] == 0 ->
		assert(!born[0] || swept[0]);
		assert(!born[1] || swept[1]);
		assert(!large) }
}
