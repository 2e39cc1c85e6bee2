/*
 * lock_give.pml - a lock that is given back by a plain store (src/os/lock.h).
 *
 * NTH threads with store buffers take and give one lock. The giver stores 0, then looks for waiters;
 * a waiter counts itself, runs a membarrier, then tries and sleeps while the word is 1. The kernel
 * compares the word and puts the thread to sleep in one step, and a wake takes one sleeper.
 *
 * Checked
 *   at most one thread holds the lock; what a holder writes the next one reads; nobody sleeps for
 *   ever (an invalid end state).
 */
#ifndef NTH
#define NTH 3
#endif
#define BUFD 3
#define NLOC 3
#define L_WORD 0
#define L_DATA 1
#define L_NONE 2
#define ON_FLUSH(t, l) skip
#ifndef NOPS
#define NOPS 2
#endif

#include "mm.pml"

byte waiters;           /* changed by read-modify-writes only */
bit  asleep[NTH];
byte holders, written;  /* ghosts */

/* One atomic try; a read-modify-write empties the caller's buffer. */
inline try_lock(t)
{
	d_step {
		mm_drain(t);
		got = (mem[L_WORD] == 0);
		mem[L_WORD] = 1 /* it was that already when the try fails */
	}
}

inline wait_lock(t)
{
	d_step { mm_drain(t); waiters++ }
#if !defined(FENCED) && !defined(MUTANT_NO_MEMBARRIER)
	mm_barrier_all();
#endif
	do
	:: true ->
	   try_lock(t);
	   if
	   :: got -> break
	   :: else -> skip
	   fi;
	   /* FUTEX_WAIT: compared and asleep in one step */
	   d_step {
		   mm_drain(t);
		   asleep[t] = (mem[L_WORD] == 1)
	   }
	   !asleep[t]
	od;
	skip;
	d_step { mm_drain(t); waiters-- }
}

inline wake_one()
{
	if
	:: asleep[0] -> asleep[0] = 0
	:: asleep[1] -> asleep[1] = 0
#if NTH > 2
	:: asleep[2] -> asleep[2] = 0
#endif
	:: else
	fi
}

inline give_lock(t)
{
#if defined(MUTANT_LOOK_FIRST)
	seen = waiters;
	STORE_REL(t, L_WORD, 0);
#elif defined(FENCED) && !defined(MUTANT_FENCED_STORE)
	d_step { mm_drain(t); mem[L_WORD] = 0 }
	seen = waiters;
#else
	STORE_REL(t, L_WORD, 0);
	seen = waiters;
#endif
	if
	:: seen > 0 ->
		skip;
		d_step { mm_drain(t) }; /* FUTEX_WAKE has a full barrier before it looks for sleepers */
		wake_one()
	:: else
	fi
}

proctype user(byte t)
{
	byte n, v, seen;
	bit got;
	n = NOPS;
	do
	:: n > 0 ->
		try_lock(t);
		if
		:: got
		:: else -> wait_lock(t)
		fi;
		d_step { assert(holders == 0); holders++ }
		LOAD(t, L_DATA, v);
		assert(v == written);
		d_step { written = (written + 1) % 7; ROOM(t) -> mm_put(t, L_DATA, (v + 1) % 7, 0) }
		holders--;
		give_lock(t);
		n--
	:: else -> break
	od
}

init
{
	atomic {
		run user(0); run flusher(0);
		run user(1); run flusher(1);
#if NTH > 2
		run user(2); run flusher(2)
#endif
	}
}
