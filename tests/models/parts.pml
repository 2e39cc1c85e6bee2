/*
 * parts.pml - a page that two small regions share, and who gives it back (parts.h, parts.c).
 *
 * Bits     one for each half: it is in the pool. Bits and count are plain words under the pool's lock; who purges a page does not hold it.
 * Take     a bit is cleared under the lock; the tag says POOL until the taker opens the slab. It does so without the lock, and writes there.
 * Give     the tag is PURGING, by compare-exchange. With the other half in the pool, or retired, the page is claimed: the other's bit is
 *          cleared as well, the page purged without the lock, and both halves put into the pool. Else the half alone.
 * Retire   the same; the tag becomes RETIRED under the lock, and the half is never in the pool again.
 * Fork     at any time, with the lock: in the child all others have vanished, and with them what their store buffers held. Bits are what
 *          tags say, and a page whose halves are both unused by their tags, but not by the bits that the parent had, is purged; then what
 *          is PURGING is given.
 *
 * Memory   all stores go through mm.pml's buffers: tags, bits, count, what is written in a half. The lock is taken by an acquire, which
 *          lets nothing leave, and given by a release store. A taker's tag is a plain store here (a release in the code, for freers).
 *
 * Checked: nobody uses or takes a half of a page that is being purged, and what is written there stays until the half is given, and
 * arrives before; while both halves are unused, and nobody works on them, the page has gone, in the child, too, whose chunk can leave its
 * class then; in the pool is what nobody has, as many as are counted.
 *
 * Not covered: the stock (the same lock), several pages in one call, kept slabs (they are as used ones).
 */
#ifndef NOPS
#define NOPS 2
#endif
#ifndef NTHREADS
#define NTHREADS 2
#endif
#define NTH NTHREADS
#ifndef BUFD
#define BUFD 2
#endif

#define POOL    0
#define OPEN    1
#define PURGING 2
#define RETIRED 3

#define NLOC    7
#define L_LOCK  0
#define L_BITS  1       /* of both halves: they lie in one word */
#define L_COUNT 2       /* free_count */
#define L_TAG   3       /* two of them */
#define L_HALF  5       /* two of them: something is written there */
#define BIT(h)  (1 << (h))

bit  resident;          /* the page is not zero */
bit  purged_now;        /* ghost: between begin and end of the call */
bit  mine[2];           /* ghost: taken by somebody who has not given it */
byte claims;            /* ghost: threads that have claimed the page */

/* A store to a page that has gone brings it back. */
#define ON_FLUSH(t, l) \
	if \
	:: (l) >= L_HALF -> assert(!purged_now); resident = 1 \
	:: else \
	fi

#include "mm.pml"

#define PUT_ON(bits) ((bits & 1) + (bits >> 1))

inline lock() { d_step { mem[L_LOCK] == 0 -> mem[L_LOCK] = 1 } }
inline unlock()
{
#ifdef MUTANT_GIVE_RELAXED
	STORE(me, L_LOCK, 0)
#else
	STORE_REL(me, L_LOCK, 0)
#endif
}

/* Under the lock. */
inline put(p)
{
	STORE(me, L_TAG + (p), POOL);
	LOAD(me, L_COUNT, count);
	STORE(me, L_COUNT, count + 1);
	LOAD(me, L_BITS, bits);
	bits = bits | BIT(p);
	STORE(me, L_BITS, bits);
	d_step {
		assert(count + 1 == PUT_ON(bits));
		assert(count + 1 < 2 || !resident);     /* the chunk may leave its class */
		count = 0; bits = 0
	}
}

/* Under the lock. */
inline claim(c)
{
	LOAD(me, L_BITS, bits);
#ifndef MUTANT_LOOK_FIRST
	LOAD(me, L_TAG + (1 - c), tag);
	page = (bits & BIT(1 - c)) != 0;
#ifndef MUTANT_RETIRED_USED
	page = page || tag == RETIRED;
#endif
#endif
	if
#ifndef MUTANT_BIT_STAYS
	:: page && (bits & BIT(1 - c)) ->
		LOAD(me, L_COUNT, count);
		STORE(me, L_COUNT, count - 1);
		STORE(me, L_BITS, bits & BIT(c))
#endif
	:: else
	fi;
	d_step {
		claims = claims + page;
		assert(claims < 2);
		count = 0; bits = 0; tag = 0
	}
}

inline purge()
{
	purged_now = 1;
	assert(!mine[0] && !mine[1]);
	atomic {
		assert(!mine[0] && !mine[1]);
		resident = 0;
		mem[L_HALF] = 0; mem[L_HALF + 1] = 0;
		purged_now = 0
	}
}

inline unclaim(u)
{
	lock();
	claims--;
	LOAD(me, L_TAG + (1 - u), tag);
	if
	:: tag != RETIRED -> put(1 - u)
	:: else
	fi;
	LOAD(me, L_TAG + (u), tag);
	if
	:: tag != RETIRED -> put(u)
	:: else
	fi;
	tag = 0;
	unlock()
}

proctype thread(byte me)
{
	byte n, h, bits, count, tag;
	bit page, retire;
	do
	:: n < NOPS ->
		n++;
		lock();
		LOAD(me, L_BITS, bits);
		if
		:: bits & 1 -> h = 0
		:: bits & 2 -> h = 1
		:: else -> unlock(); goto next
		fi;
		d_step { assert(!purged_now && !mine[h]); mine[h] = 1 }
		STORE(me, L_BITS, bits & BIT(1 - h));
		LOAD(me, L_COUNT, count);
		STORE(me, L_COUNT, count - 1);
		d_step { bits = 0; count = 0 }
		unlock();
		STORE(me, L_TAG + h, OPEN);
		STORE(me, L_HALF + h, 1);
		LOAD(me, L_HALF + h, bits);
		assert(bits == 1);
		d_step { /* a compare-exchange */
			mm_drain(me);
			assert(mem[L_HALF + h] == 1 && mem[L_TAG + h] == OPEN);
			mem[L_TAG + h] = PURGING;
			bits = 0
		}
#ifdef RETIRES
		if
		:: retire = 1
		:: retire = 0
		fi;
#endif
#ifdef MUTANT_RETIRED_EARLY
		if
		:: retire -> STORE(me, L_TAG + h, RETIRED)
		:: else
		fi;
#endif
#ifdef MUTANT_LOOK_FIRST
		LOAD(me, L_BITS, bits);
		LOAD(me, L_TAG + (1 - h), tag);
		page = (bits & BIT(1 - h)) || tag == RETIRED;
#endif
		lock();
		d_step { mine[h] = 0; assert(mem[L_HALF + h] == 1) }
		if
		:: retire -> STORE(me, L_TAG + h, RETIRED)
		:: else
		fi;
		claim(h);
		if
		:: !page && !retire -> put(h)
		:: else
		fi;
		unlock();
		if
		:: page -> purge(); unclaim(h)
		:: else
		fi;
next:		skip;
		d_step { h = 0; page = 0; retire = 0; bits = 0 }
	:: else -> break
	od
}

/* What a child would find now: memory without what others' buffers hold. */
proctype forks()
{
	bit now[2], in[2], has, ok0, ok1;
	atomic {
		mem[L_LOCK] == 0;
		has = resident;
		in[0] = mem[L_BITS] & 1;
		in[1] = mem[L_BITS] >> 1;
		now[0] = mem[L_TAG] == POOL;
		now[1] = mem[L_TAG + 1] == POOL;
#ifndef MUTANT_CHILD_KEEPS_PAGE
		if
		:: (now[0] || mem[L_TAG] == RETIRED) && (now[1] || mem[L_TAG + 1] == RETIRED) && (in[0] != now[0] || in[1] != now[1]) -> has = 0
		:: else
		fi;
#endif
#ifdef MUTANT_CHILD_BY_BITS
		now[0] = in[0];
		now[1] = in[1];
#endif
		/* What is PURGING is given, one after the other. */
		if
		:: mem[L_TAG] == PURGING ->
			if
			:: now[1] || mem[L_TAG + 1] == RETIRED -> has = 0
			:: else
			fi;
			now[0] = 1
		:: else
		fi;
		if
		:: mem[L_TAG + 1] == PURGING ->
			if
			:: now[0] || mem[L_TAG] == RETIRED -> has = 0
			:: else
			fi;
			now[1] = 1
		:: else
		fi;
		/* rebuilt by the tags */
		ok0 = now[0] || mem[L_TAG] == POOL;
		ok1 = now[1] || mem[L_TAG + 1] == POOL;
		assert(!(ok0 && ok1) || !has);
		has = 0; now[0] = 0; now[1] = 0; in[0] = 0; in[1] = 0; ok0 = 0; ok1 = 0
	}
}

init {
	mem[L_BITS] = 3; mem[L_COUNT] = 2;
	atomic {
		run flusher(0); /* first: spin ends processes in the opposite order */
		run flusher(1);
#if NTHREADS > 2
		run flusher(2);
#endif
		run thread(0);
		run thread(1);
#if NTHREADS > 2
		run thread(2);
#endif
		run forks()
	}
	(_nr_pr == 1 + NTHREADS && b_n[0] == 0 && b_n[1] == 0 && b_n[NTHREADS - 1] == 0); /* the flushers stay */
	assert(claims == 0 && mem[L_COUNT] == PUT_ON(mem[L_BITS]));
	assert(!((mem[L_BITS] & 1 || mem[L_TAG] == RETIRED) && (mem[L_BITS] & 2 || mem[L_TAG + 1] == RETIRED)) || !resident)
}
