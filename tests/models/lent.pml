/*
 * lent.pml - a heap that its thread has lent at a detach, and takes back at an attach (heap/thread_heaps.h), against an end, a walk that looks for memory,
 * and another thread that takes it over.
 *
 * Heap word   state | binding<<3
 *
 *   LIVE(b) <-> LENT(b)     by b's thread alone, one compare-exchange each way, no lock
 *   LENT(b) -> DETACHED     by anybody who holds the stripe
 *   LENT(b) -> LIVE(c)      by c's thread, which holds the stripe and adopts the heap
 *   the rest as in close_seize.pml: LIVE(b) -> REVOKED(b) -> SEIZED -> DEAD(b) -> FREE; DETACHED -> SEIZED -> DETACHED | FREE; DETACHED -> LIVE(c)
 *
 * One record, two phases. Phase 1 is ended, phase 2 is not; the record serves the one, and the other when it is FREE. `key`: the phase it is in.
 * Threads allocate in brackets, lend, take back, or look for a heap under the stripe. A thread keeps its LIVE heaps in a chain of its own (`chained`).
 *
 * Checked: no allocation that began after the close has returned; nobody writes in a heap that somebody else walks or writes in; a heap is in one
 * chain at most, of the thread that may touch it; in the end phase 1 has no heap.
 *
 * Not covered: several heaps in a phase, rooms and tokens (a heap that has a room is not lent), orders weaker than TSO but with PSO.
 */
#define NTH 2
#define NLOC 2
#define L_BUSY(t) (t)
#define ON_FLUSH(t, l) skip
#ifndef NOPS
#define NOPS 2
#endif

#ifdef LOOKS
#define CALLED 2
#else
#define CALLED 1
#endif

#define FREE     0
#define LIVE     1
#define LENT     2
#define REVOKED  3
#define SEIZED   4
#define DETACHED 5
#define DEAD     6
#define HW(st, t) ((st) | (((t) + 1) << 3))
#define ST(w)     ((w) & 7)
#define OF(w)     (((w) >> 3) - 1)

#ifdef MUTANT_LENT_STAYS
#define IS_LENT(w) false
#else
#define IS_LENT(w) (ST(w) == LENT)
#endif

byte hw;
byte key;
bit  lock;
bit  ended;             /* phase 1 */
/* ghosts */
bit  closed;
bit  walked;
bit  writes[2];
byte chained;           /* thread + 1 */
byte called;            /* of the closer and the looker, that are through */
byte done;

#include "mm.pml"

inline take() { atomic { lock == 0 -> lock = 1 } }
inline give() { lock = 0 }

/* A compare-exchange of the word by thread t. */
inline exchange(t, from, to)
{
	d_step {
		mm_drain(t);
		if
		:: hw == (from) -> hw = to; ok = 1
		:: else -> ok = 0
		fi
	}
}
inline link(t)   { d_step { assert(chained == 0); chained = (t) + 1 } }
inline unlink(t) { d_step { assert(chained == (t) + 1); chained = 0 } }

inline walk()
{
	d_step { assert(!writes[0] && !writes[1] && !walked); walked = 1 }
	walked = 0
}

/* The thread is asked for the heap. */
inline hand_over(t)
{
	take();
	if
	:: hw == HW(REVOKED, t) -> walk(); unlink(t); hw = FREE
	:: else
	fi;
	give()
}

/* The slow path: the thread's heap in phase p, in whatever state, or a new one. */
inline make(t)
{
	take();
	w = hw;
	if
	:: (p == 1 && ended) || (key != p && ST(w) != FREE)
	:: (p != 1 || !ended) && key == p && (ST(w) == LENT || ST(w) == DETACHED) ->
#ifdef MUTANT_ADOPT_BY_STORE
		d_step { mm_drain(t); hw = HW(LIVE, t); ok = 1 }
#else
		exchange(t, w, HW(LIVE, t));
#endif
		if
		:: ok -> link(t)
		:: else
		fi
	:: (p != 1 || !ended) && ST(w) == FREE -> d_step { mm_drain(t); key = p; hw = HW(LIVE, t) } link(t)
	:: else
	fi;
	give()
}

inline allocate(t)
{
	began = closed;
	k = key;
	STORE_REL(t, L_BUSY(t), 1);
	if
	:: k == p && hw == HW(LIVE, t) ->
		d_step { assert(!writes[1 - t] && !walked && !(began && p == 1)); writes[t] = 1 }
		writes[t] = 0;
		STORE_REL(t, L_BUSY(t), 0);
		if
		:: hw == HW(REVOKED, t) -> hand_over(t)
		:: else
		fi
	:: else ->
		STORE_REL(t, L_BUSY(t), 0);
		if
		:: hw == HW(REVOKED, t) -> hand_over(t)
		:: else
		fi;
		make(t)
	fi
}

inline lend(t)
{
	if
	:: key == p && hw == HW(LIVE, t) ->
#ifndef MUTANT_UNLINKED_LATE
		unlink(t);
#endif
#ifdef MUTANT_LEND_BY_STORE
		d_step { mm_drain(t); hw = HW(LENT, t); ok = 1 }
#else
		exchange(t, HW(LIVE, t), HW(LENT, t));
#endif
#ifdef MUTANT_UNLINKED_LATE
		if
		:: ok -> unlink(t)
		:: else
		fi
#else
		if
		:: !ok -> link(t); hand_over(t)
		:: else
		fi
#endif
	:: else
	fi
}

inline take_back(t)
{
#ifdef MUTANT_KEY_UNSEEN
	if
	:: hw == HW(LENT, t) ->
#else
	if
	:: key == p && hw == HW(LENT, t) ->
#endif
#ifdef MUTANT_BACK_BY_STORE
		d_step { mm_drain(t); hw = HW(LIVE, t); ok = 1 }
#else
		exchange(t, HW(LENT, t), HW(LIVE, t));
#endif
		if
		:: ok -> assert(key == p); link(t)
		:: else
		fi
	:: else
	fi
}

inline prune(t)
{
	if
	:: hw == HW(DEAD, t) -> unlink(t); hw = FREE
	:: else
	fi
}

proctype thread(byte me)
{
	byte n, p, w, k;
	bit ok, began;
	do
	:: n < NOPS ->
		n++;
		prune(me);
		if
		:: p = 1
		:: p = 2
		fi;
		if
		:: skip; allocate(me)
		:: skip; lend(me)
		:: skip; take_back(me)
		fi;
		d_step { p = 0; w = 0; k = 0; ok = 0; began = 0 }
	:: else -> break
	od;
	/* It calls again, some time. */
	called == CALLED;
	if
	:: hw == HW(REVOKED, me) -> hand_over(me)
	:: else
	fi;
	prune(me);
	done++
}

/* What is lent is nobody's from here on. The lender may take it back meanwhile. */
inline recall(who)
{
	do
	:: w = hw;
	   if
	   :: ST(w) == LENT -> exchange(who, w, DETACHED)
	   :: else -> break
	   fi
	od
}

proctype closer()
{
	byte w;
	bit ok, others;
	take();
	ended = 1;
	if
	:: key == 1 ->
		do
		:: w = hw;
		   if
		   :: IS_LENT(w) -> exchange(9, w, DETACHED)
		   :: ST(w) == LIVE -> exchange(9, w, HW(REVOKED, OF(w))); others = others | ok
		   :: else -> break
		   fi
		od
	:: else
	fi;
	if
	:: others -> give(); mm_barrier_all(); take()
#ifdef MUTANT_LENT_STAYS
	:: else -> give(); take()
#else
	:: else
#endif
	fi;
#ifdef MUTANT_LENT_STAYS
	if
	:: key == 1 -> recall(9)
	:: else
	fi;
#endif
	w = hw;
	if
	:: key == 1 && ST(w) == DETACHED ->
		exchange(9, w, SEIZED);
		assert(ok);
		walk();
		hw = FREE
	:: key == 1 && ST(w) == REVOKED && mem[L_BUSY(OF(w))] == 0 ->
		exchange(9, w, SEIZED);
		assert(ok);
		walk();
		hw = HW(DEAD, OF(w))
	:: else
	fi;
	closed = 1;
	give();
	called++;
	done++
}

/* A free that has emptied much of a heap that nobody has, or a trim. */
proctype looker()
{
	byte w;
	bit ok;
	take();
	if
	:: key != 1 || !ended ->
		recall(9);
		w = hw;
		if
		:: ST(w) == DETACHED -> exchange(9, w, SEIZED); assert(ok); walk(); hw = DETACHED
		:: else
		fi
	:: else
	fi;
	give();
	called++;
	done++
}

init
{
	atomic {
		key = 1; hw = HW(LIVE, 0); chained = 1;
		run flusher(0);
		run flusher(1);
		run thread(0);
		run thread(1);
#ifdef LOOKS
		run looker();
#endif
		run closer()
	}
	done == CALLED + 2;
	assert(key == 2 || ST(hw) == FREE)
}
