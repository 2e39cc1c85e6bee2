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

byte word;              /* era */
bit  closed;
bit  stripe;
byte fast;
byte extra;             /* what others have put there */
byte put_in;            /* ghost: the life it was put into */

inline take() { atomic { stripe == 0 -> stripe = 1 } }
inline give() { stripe = 0 }

/* Under the stripe. */
inline count()
{
	if
	:: word != 0 -> fast++
	:: else
	fi
}

proctype owner()
{
	byte life;
	do
	:: life < NLIVES ->
		life++;
		assert(extra == 0);             /* all of the life before was found */
		closed = 0;
#ifdef MUTANT_COUNT_SET_LATE
		word = life;
		fast = 0;
#else
		fast = 0;
		word = life;
#endif
		take();                         /* the first object */
		count();
#ifdef MUTANT_BEGIN_ALWAYS
		if
		:: word == life && !closed ->
#else
		if
		:: fast == 1 && word == life && !closed ->
#endif
			assert(extra == 0)      /* straight: no heap, no slab, no budget */
		:: else                         /* the common one looks at what is there */
		fi;
		give();
		take();
		count();
#ifdef MUTANT_WORD_UNSEEN
		if
		:: fast == 2 ->
#else
		if
		:: fast == 2 && word == life && !closed ->
#endif
			assert(extra == 0 && !closed);  /* straight */
#ifdef MUTANT_GIVEN_FIRST
			give();
			word = 0
#else
			word = 0;
			give()
#endif
		:: else ->
			assert(extra == 0 || put_in == life);
			extra = 0;
			word = 0;
			give()
		fi
	:: else -> break
	od
}

proctype other()
{
	byte n, seen;
	bit closes;
	do
	:: n < NTOUCH ->
		n++;
		seen = word;
		if
		:: seen != 0 ->
			take();
			if
			:: closes = 1           /* one way to end it does not count (tsi_inc_end_empty) */
			:: closes = 0;
#ifndef MUTANT_UNCOUNTED
				count()
#endif
			fi;
#ifndef MUTANT_ERA_UNSEEN
			if
			:: word == seen ->
#else
			if
			:: true ->
#endif
				assert(word != 0);
				if
				:: closes -> closed = 1
				:: else -> extra++; put_in = word
				fi
			:: else
			fi;
			give()
		:: else
		fi
	:: else -> break
	od
}

init
{
	atomic {
		run owner();
		run other();
		run other()
	}
}
