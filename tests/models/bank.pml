/*
 * bank.pml - a bank of shared mode (bank.h): a bracket whose owner is whoever holds a lock, against an end.  One bank, one
 * heap in it, which `busy` names as a whole; its word `count` stands for all that an owner writes plainly.
 *
 *   thread                                     end
 *   lock                                       lock, or go without it after a while
 *   busy = heap; LIVE ? count++                stripe; LIVE -> REVOKED
 *   busy = 0; REVOKED ? stripe, settle it      with the lock: settle.  Else as bracket.h: membarrier, settle
 *     cleanups, the lock given meanwhile       what busy does not name
 *   give by a release store                    give both
 *
 * Scenarios
 *   (none)    two threads, an end; who settles in its bracket runs a cleanup that waits for the other thread
 *   S_STOP    the first thread may stand still for ever inside of its bracket; no cleanup
 *
 * Checked
 *   count changes only while the heap is not settled; it is settled at most once, with all that was counted; an end with
 *   the lock leaves nothing; no end and no cleanup waits for ever; if nobody stands still the heap is settled in the end.
 *   A thread that waits for the bank of one that stands still goes on to another bank, which is not here.
 */
#define NTH 2
#ifndef NOPS
#define NOPS 2
#endif
#define NLOC    3
#define L_LOCK  0
#define L_BUSY  1
#define L_COUNT 2
#define ON_FLUSH(t, l) assert((l) != L_COUNT || !settled)

#define LIVE    0
#define REVOKED 1
#define DEAD    2

byte hw;
bit  stripe, settled, stopped;
byte counted;           /* ghost: stores to count that were made */
byte done;
bit  through[2];

#include "mm.pml"

#define take_bank(t) d_step { mem[L_LOCK] == 0 -> mm_drain(t); mem[L_LOCK] = 1 }
#define take_stripe(t) d_step { !stripe -> mm_drain(t); stripe = 1 }

inline settle()
{
	d_step {
		assert(hw == REVOKED && !settled);
		settled = 1;
		assert(mem[L_COUNT] == counted);
		hw = DEAD
	}
}

inline clean_up(t)
{
#ifndef S_STOP
#ifndef MUTANT_CLEANS_UP_INSIDE
	STORE_REL(t, L_LOCK, 0);
#endif
	through[1 - t];
#ifndef MUTANT_CLEANS_UP_INSIDE
	take_bank(t)
#endif
#endif
	skip
}

proctype thread(byte me)
{
	byte n = NOPS, c;
	bit in, mine;
	do
	:: n > 0 ->
		n--;
end_wait:	take_bank(me);
		STORE_REL(me, L_BUSY, 1);
		in = (hw == LIVE);
		if
		:: in ->
			LOAD(me, L_COUNT, c);
			d_step { ROOM(me) -> mm_put(me, L_COUNT, c + 1, 0); counted++; c = 0 }
#ifdef S_STOP
			if
			:: me == 0 -> stopped = 1; break
			:: true
			fi
#endif
		:: else
		fi;
		STORE_REL(me, L_BUSY, 0);
		if
		:: hw == REVOKED ->
			take_stripe(me);
			mine = (hw == REVOKED);
			if
			:: mine -> settle()
			:: else
			fi;
			stripe = 0;
			if
			:: mine -> through[me] = (n == 0); mine = 0; clean_up(me)
			:: else
			fi
		:: else
		fi;
		in = 0;
		STORE_REL(me, L_LOCK, 0)
	:: n == 0 -> break
	od;
	through[me] = 1;
	done++
}

proctype end()
{
	bit have;
	if
	:: take_bank(NTH) -> have = 1
#ifndef MUTANT_WAITS_FOR_EVER
	:: true
#endif
	fi;
	take_stripe(NTH);
	hw = REVOKED;
#ifdef MUTANT_OWN_WITHOUT_LOCK
	settle();
#else
	if
	:: have -> settle()
	:: else ->
		stripe = 0;
#ifndef MUTANT_NO_MEMBARRIER
		mm_barrier_all();
#endif
		take_stripe(NTH);
		if
		:: hw == REVOKED && mem[L_BUSY] == 0 -> settle()
		:: else
		fi
	fi;
#endif
	stripe = 0;
	if
	:: have -> mem[L_LOCK] = 0
	:: else
	fi;
	done++
}

init
{
	atomic {
		run thread(0); run thread(1); run flusher(0); run flusher(1); run end()
	}
end_init:
	done == 3 && b_n[0] == 0 && b_n[1] == 0;
	assert(settled || stopped)
}
