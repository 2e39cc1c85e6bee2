/*
 * ring_advance.pml - advancing the ring, threads that read it and slept, records in reuse.
 *
 * A ring of two ids, three records.  An incarnation is a record's word {era, state};
 * a reference is {era, index}.  An advance opens the spare record, publishes ring[next],
 * then current (release stores behind the store buffer of mm.pml), retires the one that
 * was current and closes the one that lost its id.  A closed record without heaps is
 * free (its word names no era) and becomes the next spare; one with heaps waits until
 * somebody's slow path has swept it and given up the ring's pin.
 *
 * With -DCLOSES an advance may be the first half of a close of the current one, whose second half ends what was current.
 * With -DBESIDE another thread closes by id what is not current. An id may lead to an epoch that is about to be current,
 * so the closer waits for an advance that may be under way, and looks again.
 *
 * One thread or two (-DTWO) allocate: by the ambient epoch (current, then ring[current], a sleep in
 * between is any interleaving), or by a reference that they took earlier and kept.
 * A birth checks the record's word under the record's lock against the reference.
 *
 * Checked
 *   an allocation by a reference is in the incarnation that the reference named, or
 *   refused, and while that incarnation is current it is not refused; an ambient
 *   allocation is never refused; begun after an advance returned, it is not in an
 *   incarnation that this advance retired; a record is opened only without heaps.
 */
#ifndef BUFD
#define BUFD 3
#endif
#ifndef NADV
#define NADV 3          /* the third opens a record again */
#endif
#ifndef NOPS
#define NOPS 2
#endif

#define NTH  1          /* thread 0 advances */
#define NLOC 6
#define L_CUR     0
#define L_RING(n) (1 + (n))
#define L_WORD(i) (3 + (i))
#define ON_FLUSH(t, l) skip
#define NOBUF 9

#define ACTIVE   0
#define ADVANCED 1
#define CLOSED   2
#define NONE     3      /* the word of a record that is free: era 0 */
#define WORD(era, st) ((era) << 2 | (st))
#define REF(era, i)   ((era) << 2 | (i))
#define ERA(x)   ((x) >> 2)
#define INDEX(r) ((r) & 3)

/* heap of a thread: LIVE and RETIRE carry its reference */
#define FREE   0
#define LIVE   1
#define RETIRE 2

bit  lock[3];
byte spare;             /* index + 1 */
byte waiting;           /* displaced records with heaps, a bit each */
byte hst[2], href[2];   /* a thread's heap; changed under the lock of its record */
/* ghosts */
byte hera[2];           /* era of the record as the heap was born */
byte least;             /* era that the last complete advance made current */
byte done;
bit  moving;             /* the ring lock */

#include "mm.pml"

inline take_lock(t, i) { d_step { !lock[i] -> mm_drain(t); lock[i] = 1 } }
inline give_lock(t, i) { d_step { mm_drain(t); lock[i] = 0 } }

#define HAS_HEAP(t, i) (hst[t] != FREE && INDEX(href[t]) == (i))

/* ---- advance ---- */

inline open_record(i)
{
	d_step { ROOM(0) ->
		assert(!HAS_HEAP(0, i) && !HAS_HEAP(1, i));
		assert(mem[L_WORD(i)] == NONE);
		mm_put(0, L_WORD(i), WORD(era, ACTIVE), 1) }
}

inline retire(i, st)
{
	take_lock(0, i);
	d_step {
#ifndef MUTANT_CLOSE_BEFORE_ADVANCE
#ifndef BESIDE
		assert((mem[L_WORD(i)] & 3) <= st);
#endif
#endif
		if
		:: (mem[L_WORD(i)] & 3) < st -> mem[L_WORD(i)] = WORD(ERA(mem[L_WORD(i)]), st)
		:: else
		fi;
		if
		:: HAS_HEAP(0, i) && hst[0] == LIVE -> hst[0] = RETIRE
		:: else
		fi;
		if
		:: HAS_HEAP(1, i) && hst[1] == LIVE -> hst[1] = RETIRE
		:: else
		fi
	}
}

/* A close by reference, of thread t. */
inline end_it(t, ref)
{
	take_lock(t, INDEX(ref));
	d_step {
		if
		:: ERA(mem[L_WORD(INDEX(ref))]) == ERA(ref) -> mem[L_WORD(INDEX(ref))] = WORD(ERA(ref), CLOSED);
			/* heaps are taken from their threads here; asking them is enough for what is checked */
			if
			:: HAS_HEAP(0, INDEX(ref)) && hst[0] == LIVE -> hst[0] = RETIRE
			:: else
			fi;
			if
			:: HAS_HEAP(1, INDEX(ref)) && hst[1] == LIVE -> hst[1] = RETIRE
			:: else
			fi
		:: else
		fi;
		mm_drain(t);
		lock[INDEX(ref)] = 0
	}
}

proctype advancer(byte n)
{
	byte era = 3, next, was, gone;
	do
	:: n > 0 && spare ->
		d_step { !moving -> moving = 1; n--;
			mm_get(0, L_CUR, next); next = 1 - next;
			mm_get(0, L_RING(1 - next), was); mm_get(0, L_RING(next), gone) }
#ifdef MUTANT_CLOSE_BEFORE_ADVANCE
		if
		:: end_it(0, was)
		:: true
		fi;
#endif
#ifdef MUTANT_RETIRE_BEFORE_CURRENT
		retire(INDEX(was), ADVANCED);
		give_lock(0, INDEX(was));
#endif
#ifndef MUTANT_OPEN_AFTER_RING
		open_record(spare - 1);
#endif
#ifdef MUTANT_CURRENT_BEFORE_RING
		STORE_REL(0, L_CUR, next);
#endif
#ifdef MUTANT_RING_RELAXED
		STORE(0, L_RING(next), REF(era, spare - 1));
#else
		STORE_REL(0, L_RING(next), REF(era, spare - 1));
#endif
#ifdef MUTANT_OPEN_AFTER_RING
		open_record(spare - 1);
#endif
#ifndef MUTANT_CURRENT_BEFORE_RING
#ifdef MUTANT_RING_RELAXED
		STORE(0, L_CUR, next);
#else
		STORE_REL(0, L_CUR, next);
#endif
#endif
		spare = 0;
#ifndef MUTANT_RETIRE_BEFORE_CURRENT
		retire(INDEX(was), ADVANCED);
		give_lock(0, INDEX(was));
#endif
		retire(INDEX(gone), CLOSED);
		d_step {
			mm_drain(0);
			if
#ifndef MUTANT_NO_PIN
			:: HAS_HEAP(0, INDEX(gone)) || HAS_HEAP(1, INDEX(gone)) -> waiting = waiting | (1 << INDEX(gone))
#endif
			:: else -> mem[L_WORD(INDEX(gone))] = NONE; spare = INDEX(gone) + 1
			fi;
			lock[INDEX(gone)] = 0;
			moving = 0;
			least = era; era++;
			gone = 0; next = 0
		}
#ifdef CLOSES
		/* it was a close of the current one: that ends after the ring has moved */
		if
		:: end_it(0, was)
		:: true
		fi;
#endif
		was = 0
	:: else -> break        /* nothing to open: an advance is refused */
	od;
	done++
}

/* Closes by an id, once. */
proctype closer()
{
	byte i, ref;
	if
	:: i = 0
	:: i = 1
	fi;
	ref = mem[L_RING(i)];
	i = mem[L_CUR];
	if
	:: mem[L_RING(i)] == ref        /* that is CLOSES */
	:: else ->
#ifndef MUTANT_NOT_WAITED_FOR
		d_step { !moving -> i = mem[L_CUR] };
#endif
		if
		:: mem[L_RING(i)] == ref
		:: else -> end_it(NOBUF, ref)
		fi
	fi;
	d_step { i = 0; ref = 0; done++ }
}

/* ---- allocation ---- */

/* The slow path's look at displaced records: heaps that nobody is in go, then the record is free. */
inline sweep_displaced()
{
	d_step {
		i = 0;
		do
		:: i < 3 ->
			if
			:: (waiting & (1 << i)) && !lock[i] && !HAS_HEAP(0, i) && !HAS_HEAP(1, i) && !spare ->
				waiting = waiting & ~(1 << i);
				mem[L_WORD(i)] = NONE; spare = i + 1
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	}
}

/* A heap for reference ref; ok: it is there and LIVE. */
inline heap_get(t)
{
	if
	:: hst[t] == LIVE && href[t] == ref -> ok = 1
	:: else ->
		/* let go of the one it had: one heap a thread is enough here */
		if
		:: d_step { hst[t] != FREE && !lock[INDEX(href[t])] -> hst[t] = FREE; href[t] = 0; hera[t] = 0 }
		:: hst[t] == FREE
		fi;
		take_lock(NOBUF, INDEX(ref));
		d_step {
#ifdef MUTANT_INC_REUSED
			ok = (mem[L_WORD(INDEX(ref))] & 3) == ACTIVE;
#else
			ok = mem[L_WORD(INDEX(ref))] == WORD(ERA(ref), ACTIVE);
#endif
			if
			:: ok -> hst[t] = LIVE; href[t] = ref; hera[t] = ERA(mem[L_WORD(INDEX(ref))])
			:: else
			fi;
			lock[INDEX(ref)] = 0
		}
	fi
}

inline read_current()
{
	i = mem[L_CUR];
	d_step { ref = mem[L_RING(i)]; i = 0 }
}

inline alloc_ambient(t)
{
	beg = least;
	do
	:: if
	   :: hst[t] == LIVE && href[t] == amb -> ok = 1        /* the fast path does not read the ring */
	   :: else ->
		sweep_displaced();
		read_current();
		heap_get(t);
		if
		:: !ok ->
			was = ref;
			read_current();
			assert(ref != was);     /* STALE, and yet current: refused */
#ifdef MUTANT_NO_RETRY
			assert(false);
#endif
			was = 0
		:: else -> amb = ref
		fi
	   fi;
	   if
	   :: ok ->
		d_step {                /* the bracket */
			ok = (hst[t] == LIVE && href[t] == amb);
			if
			:: ok -> assert(hera[t] == ERA(amb)); assert(hera[t] >= beg)
			:: else
			fi
		}
		if
		:: ok -> break
		:: else
		fi
	   :: else
	   fi
	od;
	skip;
	d_step { ok = 0; beg = 0; ref = 0 }
}

/* By the reference that was kept: refused when the incarnation has ended. */
inline alloc_kept(t)
{
	beg = least;
	ref = kept;
	heap_get(t);
	d_step {
		if
		:: ok && hst[t] == LIVE && href[t] == ref -> assert(hera[t] == ERA(kept)); assert(ERA(kept) >= beg)
		:: else -> assert(ERA(kept) != ERA(mem[L_RING(mem[L_CUR])]))
		fi;
		ok = 0; beg = 0; ref = 0
	}
}

proctype thread(byte me; byte n)
{
	byte i, ref, was, amb, kept, beg;
	bit ok;
	do
	:: n > 0 ->
		n--;
		if
		:: alloc_ambient(me)
		:: kept == 0 -> read_current(); d_step { kept = ref; ref = 0 }; alloc_kept(me)
		:: kept != 0 -> alloc_kept(me)
		:: n = 0
		fi
	:: n == 0 -> break
	od;
	skip;
	/* the thread ends: its heap goes when the record's lock is free */
	if
	:: d_step { hst[me] != FREE && !lock[INDEX(href[me])] -> hst[me] = FREE; href[me] = 0; hera[me] = 0 }
	:: hst[me] == FREE
	fi;
	d_step { amb = 0; kept = 0; done++ }
}

init
{
	atomic {
		mem[L_WORD(0)] = WORD(1, ACTIVE); mem[L_WORD(1)] = WORD(2, ACTIVE); mem[L_WORD(2)] = NONE;
		mem[L_RING(0)] = REF(1, 0); mem[L_RING(1)] = REF(2, 1);
		spare = 3;
		run flusher(0);
		run thread(0, NOPS);
#ifdef TWO
		run thread(1, NOPS);
#else
		done++;
#endif
#ifdef BESIDE
		run closer();
#else
		done++;
#endif
		run advancer(NADV);
	}
	done == 4
}
