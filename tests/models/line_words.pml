/*
 * line_words.pml - the words of one line: the owner's avail and freed, the
 * remote word of other threads' frees, and the slab's tag.  One slab of one line
 * with two slots.
 *
 * A free slot's bit moves remote -> freed -> avail, set in the target before it
 * leaves the source; who asks "is it free?" reads in that direction.  A free of
 * another thread is one compare-exchange of its bit into the remote word, under
 * the seq that the call read first.  The owner's words pass through a store
 * buffer (mm.pml); its bracket is abstracted: whoever ends the slab waits until
 * the owner is outside a call and empties its buffer (close_seize.pml has the rest).
 *
 * Scenarios (exactly one)
 *   S_DOUBLE   nobody ends the slab; owner and two others free, and free again what
 *              has been freed already
 *   S_RELEASE  the slab is released, and taken again by the owner under the next seq,
 *              up to NREL times, while frees of earlier incarnations are under way
 *   S_DRAIN    the slab becomes ORPHAN while frees are under way
 *
 * Checked
 *   no slot is handed out twice; a double free is refused when it follows the first
 *   free and the slot has not been handed out since; a free that is the first one is
 *   accepted unless the slab was released before its compare-exchange; a stale free
 *   never takes effect; at a release freed and released account for exactly the live
 *   objects; an ORPHAN that is complete in the end has been returned, by exactly one.
 *
 * Not covered: two frees of the same object that run at the same time (the later one
 * may pass if the owner hands the slot out again in between; nobody could tell).
 */
#ifndef BUFD
#define BUFD 3
#endif
#define NTH  1
#define NLOC 2
#define L_AV 0
#define L_FR 1
/* `i` is the parameter of mm_flush: the entry that leaves. The owner's free of a slot is out. */
#define ON_FLUSH(t, l) pend = pend & (((l) == L_FR) -> (3 ^ b_val[(t) * BUFD + (i)]) : 3)

#ifndef NOPS
#define NOPS 4          /* calls of the owner */
#endif
#ifndef NREM
#define NREM 1          /* calls of each other thread */
#endif
#ifndef NREL            /* 2 with -DONE: only one other thread */
#define NREL 1
#endif

#define POOL    0
#define OWNED   1
#define ORPHAN  2
#define PURGING 3
#define TST(x)  ((x) & 3)
#define TSEQ(x) ((x) >> 2)
#define TAG(st, q) ((st) | ((q) << 2))

/* remote word: bits | inc << 2 */
#ifdef MUTANT_SMALL_SEQ
#define INC(q)  ((q) & 1)
#else
#define INC(q)  (q)
#endif
#define BITS(r) ((r) & 3)
#define RINC(r) ((r) >> 2)
#define FRESH(q) (INC(q) << 2)
#define POP2(x) (((x) & 1) + ((x) >> 1))

byte tag, rem;
/* ghosts */
byte live;              /* slots in users' hands */
byte claim;             /* of these, being freed for the first time */
byte was;               /* slots that have been handed out in this incarnation */
byte pend;              /* freed by the owner, the store not yet out */
byte again[2];          /* slots that a thread is freeing once more: not handed out meanwhile */
bit  inbr;              /* the owner is inside a call */
bit  ending;            /* somebody has the slab to himself */
byte n_alloc, n_freed, n_rel;
byte returned;          /* how often the slab went back */

#include "mm.pml"

/* Every store of the owner that names the slot has left its buffer. */
#if BUFD > 2
#define UNNAMED(m) (!((b_val[0] | b_val[1] | b_val[2]) & (m)))
#else
#define UNNAMED(m) (!((b_val[0] | b_val[1]) & (m)))
#endif
/* Another thread was told the address: all stores before that are visible to it. */
#define PUBLISHED(m) (!((mem[L_AV] | mem[L_FR]) & (m)) && UNNAMED(m))

#define FIRST(m)  (live & ~claim & (m))
/* A free that finds the slab in another state is refused as stale at once. */
#define HOLDS     (TST(tag) == OWNED || TST(tag) == ORPHAN)
#define GONE(m)   (!(live & (m)) && !(pend & (m)) && (was & (m)) && TST(tag) == OWNED)

/* ---- free by another thread: slot bit b, under q; d: it is a second free ---- */

inline slot_check(t)
{
#ifdef MUTANT_CHECK_BACKWARDS
	LOAD(t, L_AV, a);
	LOAD(t, L_FR, f);
	r = rem;
#else
	r = rem;
#ifndef MUTANT_REMOTE_CHECKS_OWN_WORD_ONLY
	LOAD(t, L_FR, f);
	LOAD(t, L_AV, a);
#endif
#endif
}

#if defined(MUTANT_FETCH_OR_NO_INCARNATION)
#define PASSES 1
#else
#define PASSES (rem == r)
#endif

/* The tag's state is ORPHAN under q: return the slab if nothing in it is live. */
inline complete(t)
{
	d_step { ok = ((BITS(rem) | mem[L_FR] | mem[L_AV]) == 3) }
	if
	:: ok ->
		d_step { ok = 0;
			if
			:: tag == TAG(ORPHAN, q) -> tag = TAG(PURGING, q + 1); ok = 1
			:: else
			fi }
		if
		:: ok -> renew()
		:: else
		fi
	:: else
	fi
}

/* A claimed slab's remote word gets the next inc. Live objects end here. */
inline renew()
{
#ifdef MUTANT_RELEASE_PLAIN_RESET
	r = rem;
#endif
	d_step {
#ifndef MUTANT_RELEASE_PLAIN_RESET
		r = rem;
#endif
		assert(live == (3 & ~(mem[L_AV] | mem[L_FR] | BITS(r))));
		n_rel = n_rel + POP2(live);
		live = 0; claim = 0; was = 0;
		rem = FRESH(TSEQ(tag))
	}
	d_step { assert(TST(tag) == PURGING); tag = TAG(POOL, TSEQ(tag)); returned++; r = 0; ok = 0 }
}

inline remote_free(t)
{
	do
	:: slot_check(t);
	   if
	   :: RINC(r) != INC(q) -> d_step { assert(TSEQ(tag) != q); ok = 0 } break
	   :: RINC(r) == INC(q) && ((BITS(r) | a | f) & b) ->
		/* refused as freed already: right, unless it is the first free of this incarnation's object */
		d_step { assert(d || TSEQ(tag) != q); ok = 0 } break
	   :: else ->
#ifdef MUTANT_LATE_EMPTY_UNNOTICED
		tg = tag;
#endif
		d_step {
			mm_drain(t);
			if
			:: PASSES ->
				assert(!d);             /* two owners soon */
				assert(TSEQ(tag) == q || TST(tag) == PURGING); /* else it frees a stranger's slot */
				assert(live & b);
				rem = rem | b;
				live = live & ~b; claim = claim & ~b; n_freed++; ok = 1
			:: else -> ok = 0
			fi }
		if
		:: ok -> break
		:: else
		fi
	   fi
	od;
	if
	:: ok ->
#ifndef MUTANT_LATE_EMPTY_UNNOTICED
		tg = tag;
#endif
		if
		:: tg == TAG(ORPHAN, q) -> complete(t)
		:: else
		fi
	:: else
	fi;
	d_step { ok = 0; r = 0; a = 0; f = 0; tg = 0 }
}

proctype other(byte me; byte n)
{
	byte b, q, r, a, f, tg;
	bit ok, d;
	do
	:: n > 0 ->
		n--;
		if
		:: d_step { HOLDS && FIRST(1) && PUBLISHED(1) -> b = 1; claim = claim | 1; q = TSEQ(tag) }
		:: d_step { HOLDS && FIRST(2) && PUBLISHED(2) -> b = 2; claim = claim | 2; q = TSEQ(tag) }
#ifdef S_DOUBLE
		:: d_step { GONE(1) -> b = 1; d = 1; again[me - 1] = 1; q = TSEQ(tag) }
		:: d_step { GONE(2) -> b = 2; d = 1; again[me - 1] = 2; q = TSEQ(tag) }
#endif
		:: true -> break
		fi;
		remote_free(me);
		d_step { again[me - 1] = 0; b = 0; q = 0; d = 0 }
	:: n == 0 -> break
	od
}

/* ---- the owner ---- */

#define OWN (TST(tag) == OWNED && !ending)
#define IN_CALL d_step { OWN -> assert(!inbr); inbr = 1 }

/* freed takes in the remote bits, avail takes both */
inline refill()
{
	LOAD(0, L_FR, f);
	r = rem;
	if
	:: BITS(r) ->
		f = f | BITS(r);
#ifdef MUTANT_MERGE_CLEARS_FIRST
		d_step { mm_drain(0); rem = rem & ~BITS(r) };
		STORE_REL(0, L_FR, f)
#else
		STORE_REL(0, L_FR, f);
		d_step { mm_drain(0); rem = rem & ~BITS(r) }
#endif
	:: else
	fi;
	if
	:: f ->
#if defined(MUTANT_FREED_CLEARED_FIRST)
		STORE_REL(0, L_FR, 0);
		STORE_REL(0, L_AV, f);
#elif defined(MUTANT_REFILL_RELAXED)
		STORE(0, L_AV, f);
		STORE(0, L_FR, 0);
#else
		STORE_REL(0, L_AV, f);
		STORE_REL(0, L_FR, 0);
#endif
		a = f
	:: else
	fi;
	d_step { r = 0; f = 0 }
}

inline pop(m)
{
	d_step {
		ROOM(0) && (a & (m)) && !((again[0] | again[1]) & (m)) ->
		assert(!(live & (m)));
		live = live | (m); was = was | (m); n_alloc++;
		mm_put(0, L_AV, a & ~(m), 0)
	}
}

inline alloc()
{
	IN_CALL;
	LOAD(0, L_AV, a);
	if
	:: a == 0 -> refill()
	:: else
	fi;
	if
	:: pop(1)
	:: pop(2)
	:: a == 0 || (a & (again[0] | again[1]))
	fi;
	d_step { inbr = 0; a = 0 }
}

/* frees slot bit b; d: once more */
inline local_free()
{
	r = rem;
	d_step { mm_get(0, L_FR, f); mm_get(0, L_AV, a);
#ifdef MUTANT_OWNER_FREE_CHECKS_OWN_WORD_ONLY
		ok = ((f | a) & b) == 0;
#else
		ok = ((f | a | BITS(r)) & b) == 0;
#endif
		assert(!d || !ok);      /* a second free is refused */
		assert(d || ok);        /* a first one is not */
	}
	if
	:: ok -> d_step { ROOM(0) ->
		mm_put(0, L_FR, f | b, 0);
		pend = pend | b;
		live = live & ~b; claim = claim & ~b; n_freed++ }
	:: else
	fi;
	d_step { inbr = 0; ok = 0; a = 0; f = 0; r = 0; b = 0; d = 0 }
}

proctype owner(byte n)
{
	byte b, r, a, f;
	bit ok, d;
	do
	:: n > 0 ->
		n--;
		if
		:: alloc()
		:: d_step { OWN && FIRST(1) -> inbr = 1; claim = claim | 1; b = 1 } local_free()
		:: d_step { OWN && FIRST(2) -> inbr = 1; claim = claim | 2; b = 2 } local_free()
#ifdef S_DOUBLE
		:: d_step { OWN && !(live & 1) && (was & 1) -> inbr = 1; d = 1; b = 1 } local_free()
		:: d_step { OWN && !(live & 2) && (was & 2) -> inbr = 1; d = 1; b = 2 } local_free()
#endif
#ifdef S_RELEASE
		:: TST(tag) == POOL ->  /* takes it again: slab_open */
			STORE(0, L_AV, 0);
			STORE(0, L_FR, 3);
			d_step { mm_drain(0); rem = FRESH(TSEQ(tag)); tag = TAG(OWNED, TSEQ(tag)) }
#endif
		:: n = 0
		fi
	:: n == 0 -> break
	od;
}

/* ---- those who end the slab ---- */

#ifndef S_DOUBLE
proctype ender(byte n)
{
	byte r, a, f, q;
	bit ok;
	do
	:: n > 0 && TST(tag) == OWNED && !inbr ->
		n--;
#ifdef S_RELEASE
		d_step { TST(tag) == OWNED && !inbr -> mm_drain(0); q = TSEQ(tag); tag = TAG(PURGING, q + 1); q = 0 }
		renew()
#else
		d_step { TST(tag) == OWNED && !inbr -> mm_drain(0);
			q = TSEQ(tag); ending = 1;
#ifdef MUTANT_LOOK_BEFORE_TAG
			ok = ((BITS(rem) | mem[L_FR] | mem[L_AV]) == 3)
		}
		d_step { tag = TAG(ORPHAN, q) }
		if
		:: ok -> complete(1)
		:: else
		fi;
#else
			tag = TAG(ORPHAN, q)
		}
		complete(1);
#endif
		d_step { ok = 0; q = 0 }
#endif
	:: true -> break
	od;
}
#endif

init
{
	atomic {
		tag = TAG(OWNED, 0);
		mem[L_FR] = 3;
		run flusher(0);
		run owner(NOPS);
		run other(1, NREM);
#ifndef ONE
		run other(2, NREM);
#endif
#ifdef S_RELEASE
		run ender(NREL);
#endif
#ifdef S_DRAIN
		run ender(1);
#endif
	}
	/* everybody is through */
	d_step { _nr_pr == 2 && b_n[0] == 0 ->
		assert(!(TST(tag) == ORPHAN && live == 0));
		assert(n_alloc == n_freed + n_rel + POP2(live)) }
}
