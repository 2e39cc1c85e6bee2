/*
 * remote_words.pml - the three words of a line: avail, freed, remote.
 *
 * One slab of two slots.  Its owner allocates, refills, frees, and now and then
 * ends the incarnation and opens the slab again under the next seq; two other
 * threads free.  Every thread also frees slots that have been freed already: a
 * second free that starts after the first returned must be refused, unless the
 * address is issued again while it runs (then it cannot be told from a free of
 * the new object and the run is not judged any further: `taint`).
 *
 * Bits move remote -> freed -> avail, set in the target before they leave the
 * source; whoever asks "is it free?" reads in that direction.  A remote free
 * sets its bit by compare-exchange under the seq it read first.
 *
 * What users tell each other (an address, "I have freed it") travels by release
 * stores as well: ST(i) is 1 once slot i's object is published, 2 once its end is.
 *
 * Checked: no slot has two owners; a second free in sequence is refused, by
 * whomever; a first free succeeds unless its incarnation was released; a free
 * never takes a bit under another seq than the one it read; the exchange of a
 * release finds exactly the live objects; merges find no bit twice.
 */
#define NTH      1
#define NLOC     4
#define L_AV     0
#define L_FR     1
#define ST(i)    (2 + (i))
#define ON_FLUSH(t, l) skip

#ifndef NOPS
#define NOPS     4
#endif
#ifndef NFREE
#define NFREE    2
#endif

#define BITS(r)  ((r) & 3)
#ifdef MUTANT_SMALL_SEQ
#define SEQ(q)   ((q) & 1)
#else
#define SEQ(q)   (q)
#endif
#define RSEQ(r)  ((r) >> 2)
#define REM(q, b) ((SEQ(q) << 2) | (b))

#define PURGING  0
#define OWNED    1

byte tagst;
byte seq;
byte rem;

/* ghosts */
byte live;              /* bits                               */
byte claim;             /* handed to a free that has not returned */
byte issue[2];          /* times the slot was given out       */
byte n_alloc, n_freed, n_rel;
bit  taint;
byte done;

#include "mm.pml"

#define POP2(x)  (((x) & 1) + (((x) >> 1) & 1))

/* A free begins: i the slot, dup whether its object's end was published before. */
inline begin(i0)
{
	if
	:: d_step { mem[ST(i0)] == 1 && !(claim & (1 << i0)) && tagst == OWNED ->
		i = i0; dup = 0; claim = claim | (1 << i0); q = seq; iss = issue[i] }
	:: d_step { mem[ST(i0)] == 2 -> i = i0; dup = 1; iss = issue[i] }
	fi;
	/* the call looks at the tag; a release before that has ended the object */
	d_step {
		if :: !dup && q != seq -> dup = 1 :: else fi;
		q = seq; ok = (tagst == OWNED); b = 1 << i }
}

/* The step that takes the bit, in a d_step: what it may do, and what the words say afterwards. */
inline took()
{
	assert(taint || seq == q);
	assert(taint || !dup || issue[i] != iss);   /* else: a double free in sequence went through */
	assert(taint || dup || ((live & b) && issue[i] == iss));
	if
	:: dup -> taint = 1
	:: else -> n_freed++
	fi;
	live = live & ~b
}

inline ended()
{
	d_step {
		assert(ok || taint || dup || seq != q || tagst != OWNED);
		if :: !dup && seq == q -> claim = claim & ~b :: else fi;
		 i = 0; b = 0; q = 0; dup = 0; iss = 0; ok = 0; r = 0; f = 0; a = 0 }
}

proctype freer(byte n)
{
	byte i, b, q, r, f, a, iss;
	bit dup, ok;
	do
	:: n > 0 && !taint ->
		n--;
		if
		:: mem[ST(0)] -> begin(0)
		:: mem[ST(1)] -> begin(1)
		:: break
		fi;
		do
		:: !ok -> break
		:: ok ->
#ifdef MUTANT_CHECK_AGAINST_MOVEMENT
			a = mem[L_AV];
			f = mem[L_FR];
			r = rem;
#else
			r = rem;
#ifndef MUTANT_REMOTE_CHECKS_OWN_WORD_ONLY
			f = mem[L_FR];
			a = mem[L_AV];
#endif
#endif
			if
#ifdef MUTANT_FETCH_OR_NO_INCARNATION
			:: (BITS(r) | f | a) & b -> ok = 0; break
			:: else -> d_step { took(); rem = rem | b } break
#else
#ifdef MUTANT_RETRY_UNDER_NEW_SEQ
			:: RSEQ(r) != SEQ(q) -> q = seq
#else
			:: RSEQ(r) != SEQ(q) -> ok = 0; break
#endif
			:: RSEQ(r) == SEQ(q) && ((BITS(r) | f | a) & b) -> ok = 0; break
			:: else ->
				if
				:: d_step { rem == r -> took(); rem = r | b }
					break
				:: rem != r
				fi
#endif
			fi
		od;
		if
		:: ok -> d_step { if :: issue[i] == iss -> mem[ST(i)] = 2 :: else fi }
		:: else
		fi;
		ended()
	:: n == 0 || taint -> break
	od;
	done++
}

/* avail is used up: everything freed comes back */
inline refill()
{
	r = rem;
	d_step { mm_get(0, L_FR, f); assert(taint || !(f & BITS(r))) }
#ifdef MUTANT_MERGE_CLEARS_FIRST
	d_step { mm_drain(0); a = BITS(r); rem = rem & ~a }
	STORE_REL(0, L_FR, f | a);
	f = f | a;
#else
	if
	:: BITS(r) ->
		f = f | BITS(r);
		STORE_REL(0, L_FR, f);
		d_step { mm_drain(0); rem = rem & ~BITS(r) }
	:: else
	fi;
#endif
	/* half of it at a time, as the cap on a refill does */
	if
	:: f == 3 -> a = 3
	:: f == 3 -> a = 1
	:: f != 3 -> a = f
	fi;
	if
	:: a ->
#ifdef MUTANT_RELAXED_MOVE
		STORE(0, L_AV, a);
		STORE(0, L_FR, f & ~a)
#else
		STORE_REL(0, L_AV, a);
		STORE_REL(0, L_FR, f & ~a)
#endif
	:: else
	fi;
	d_step { r = 0; f = 0 }
}

proctype owner(byte n)
{
	byte i, b, q, r, f, a, iss;
	bit dup, ok;
	do
	:: n > 0 && !taint ->
		n--;
		if
		:: true ->                      /* allocate */
			LOAD(0, L_AV, a);
			if
			:: !a -> refill()
			:: else
			fi;
			if
			:: a ->
				d_step {
					ROOM(0) ->
					b = a & ~(a - 1); i = b >> 1;
					assert(taint || !(live & b));
					live = live | b; issue[i] = issue[i] + 1; n_alloc++;
					mm_put(0, L_AV, a & ~b, 0) }
				STORE_REL(0, ST(i), 1)
			:: else
			fi;
			d_step { a = 0; b = 0; i = 0 }
		:: true ->                      /* free */
			if
			:: mem[ST(0)] -> begin(0)
			:: mem[ST(1)] -> begin(1)
			:: true -> ok = 0; b = 0; dup = 1
			fi;
			if
			:: ok ->
				d_step { mm_get(0, L_AV, a); mm_get(0, L_FR, f) }
#ifndef MUTANT_OWNER_FREE_CHECKS_OWN_WORD_ONLY
				r = BITS(rem);
#endif
				if
				:: (a | f | r) & b -> ok = 0
				:: else -> d_step { ROOM(0) -> took(); mm_put(0, L_FR, f | b, 0) }
				fi
			:: else
			fi;
			if
			:: ok -> STORE_REL(0, ST(i), 2)
			:: else
			fi;
			ended()
		:: true ->                      /* the incarnation ends, the slab serves the next */
			d_step { mm_drain(0); tagst = PURGING; seq++ }
#ifdef MUTANT_RESET_WORDS_FIRST
			d_step { mem[L_AV] = 0; mem[L_FR] = 0; a = 3 & ~live; f = 0 }
#else
			d_step { a = mem[L_AV]; f = mem[L_FR] }
#endif
#ifdef MUTANT_RELEASE_STORES_WORDS
			r = rem;
#endif
			d_step {
#ifndef MUTANT_RELEASE_STORES_WORDS
				r = rem;
#endif
				assert(taint || live == (3 & ~(a | f | BITS(r))));
				n_rel = n_rel + POP2(live); live = 0; claim = 0;
				rem = REM(seq, 0);
				if :: mem[ST(0)] -> mem[ST(0)] = 2 :: else fi;
				if :: mem[ST(1)] -> mem[ST(1)] = 2 :: else fi;
				a = 0; f = 0; r = 0 }
			STORE(0, L_AV, 0);
			STORE(0, L_FR, 3);
			d_step { mm_drain(0); rem = REM(seq, 0); tagst = OWNED }
		fi
	:: n == 0 || taint -> break
	od;
	done++
}

init
{
	atomic {
		tagst = OWNED;
		mem[L_FR] = 3;
		run flusher(0);
		run owner(NOPS);
		run freer(NFREE);
		run freer(NFREE)
	}
	d_step {
		done == 3 && b_n[0] == 0 ->
		assert(taint || live == (3 & ~(mem[L_AV] | mem[L_FR] | BITS(rem))));
		assert(taint || n_alloc == n_freed + n_rel + POP2(live))
	}
}
