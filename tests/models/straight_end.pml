/*
 * straight_end.pml - a phase that only its thread has touched begins and ends by a straight way (ready.h, tsi_ready_first and tsi_ready_end), and how
 * both know.
 *
 * Record   word: era, 0 while it is nobody's; `fast`: how often its stripe was taken in this life. Who opens the record sets `fast` without the
 *          stripe, then the word.
 * Owner    opens; takes the stripe to begin, and to end. One take, or two in all, and the word still says that it is open: the straight way, which
 *          looks at nothing else. Else the common one, which finds what others have put there. The record is opened again.
 * Others   have read the word some time before. They take the stripe, count that if the record is anybody's (not all that close it do), and go on
 *          if the word is still the one they have read: then they put something there (a heap, a pin, a cleanup), or close the phase.
 *
 * Memory   stores of all three are buffered (mm.pml); the stripe is given by a release store, as is the word of who opens. Closed is a bit of
 *          the word, which goes with the era in one store.
 *
 * Checked: what others have put there was found by the end of that life; nothing is put into a record that is nobody's, or another life.
 *
 * Not covered: words that are changed without the stripe (user references, peaks: the end looks at each); the heap (ready.pml).
 */
#ifndef NLIVES
#define NLIVES 3
#endif
#ifndef NTOUCH
#define NTOUCH 2
#endif
#define NTH 3           /* the owner and two others */
#define BUFD 3
#define NLOC 4
#define L_STRIPE 0
#define L_WORD   1      /* era << 1 | closed; 0: nobody's */
#define L_FAST   2
#define L_EXTRA  3      /* what others have put there */
#define ON_FLUSH(t, l) skip
#define OPEN(era) ((era) << 1)
#define ERA(w)    ((w) >> 1)

byte put_in;            /* ghost: the life it was put into */

#include "mm.pml"

inline take(t) { d_step { mem[L_STRIPE] == 0 -> mm_drain(t); mem[L_STRIPE] = 1 } }
inline give(t)
{
#ifdef MUTANT_STRIPE_RELAXED
	STORE(t, L_STRIPE, 0)
#else
	STORE_REL(t, L_STRIPE, 0)
#endif
}

/* Under the stripe. */
inline count(t)
{
	LOAD(t, L_WORD, w);
	if
	:: w != 0 ->
		LOAD(t, L_FAST, f);
		STORE(t, L_FAST, f + 1)
	:: else
	fi
}

proctype owner()
{
	byte life, w, f, x;
	do
	:: life < NLIVES ->
		life++;
		LOAD(0, L_EXTRA, x);
		assert(x == 0);                 /* all of the life before was found */
#ifdef MUTANT_COUNT_SET_LATE
		STORE_REL(0, L_WORD, OPEN(life));
		STORE(0, L_FAST, 0);
#else
		STORE(0, L_FAST, 0);
#ifdef MUTANT_OPENED_RELAXED
		STORE(0, L_WORD, OPEN(life));
#else
		STORE_REL(0, L_WORD, OPEN(life));
#endif
#endif
		take(0);                        /* the first object */
		count(0);
		LOAD(0, L_FAST, f);
		LOAD(0, L_WORD, w);
		LOAD(0, L_EXTRA, x);
#ifdef MUTANT_BEGIN_ALWAYS
		if
		:: w == OPEN(life) ->
#else
		if
		:: f == 1 && w == OPEN(life) ->
#endif
			assert(x == 0)          /* straight: no heap, no slab, no budget */
		:: else                         /* the common one looks at what is there */
		fi;
		give(0);
		take(0);
		count(0);
		LOAD(0, L_FAST, f);
		LOAD(0, L_WORD, w);
		LOAD(0, L_EXTRA, x);
#ifdef MUTANT_WORD_UNSEEN
		if
		:: f == 2 ->
#else
		if
		:: f == 2 && w == OPEN(life) ->
#endif
			assert(x == 0 && w == OPEN(life));      /* straight */
#ifdef MUTANT_GIVEN_FIRST
			give(0);
			STORE(0, L_WORD, 0)
#else
			STORE(0, L_WORD, 0);
			give(0)
#endif
		:: else ->
			assert(x == 0 || put_in == life);
			STORE(0, L_EXTRA, 0);
			STORE(0, L_WORD, 0);
			give(0)
		fi;
		w = 0; f = 0; x = 0
	:: else -> break
	od
}

proctype other(byte t)
{
	byte n, seen, w, f;
	bit closes;
	do
	:: n < NTOUCH ->
		n++;
		LOAD(t, L_WORD, seen);
		if
		:: seen != 0 ->
			take(t);
			if
			:: closes = 1           /* one way to end it does not count (tsi_inc_end_empty) */
			:: closes = 0;
#ifndef MUTANT_UNCOUNTED
				count(t)
#endif
			fi;
			LOAD(t, L_WORD, w);
#ifndef MUTANT_ERA_UNSEEN
			if
			:: ERA(w) == ERA(seen) ->
#else
			if
			:: true ->
#endif
				assert(w != 0);
				if
				:: closes -> STORE(t, L_WORD, w | 1)
				:: else ->
					LOAD(t, L_EXTRA, f);
					d_step { ROOM(t) -> mm_put(t, L_EXTRA, f + 1, 0); put_in = ERA(w) }
				fi
			:: else
			fi;
			give(t)
		:: else
		fi;
		w = 0; f = 0; seen = 0; closes = 0
	:: else -> break
	od
}

init
{
	atomic {
		run owner(); run flusher(0);
		run other(1); run flusher(1);
		run other(2); run flusher(2)
	}
}
