/*
 * parts.pml - a page that two small regions share, and who gives it back (parts.h, parts.c).
 *
 * Bits     in[h]: the half is in the pool. The pool's lock makes each step on bits and counts one; who purges a page does not hold it.
 * Take     a bit is cleared; the tag says POOL until the taker opens the slab.
 * Give     the tag is PURGING. With the other half in the pool, or retired, the page is claimed: the other's bit is cleared as well,
 *          the page purged without the lock, and both halves put into the pool. Else the half alone.
 * Retire   the same; the tag becomes RETIRED under the lock, and the half is never in the pool again.
 * Fork     at any time, with the lock: in the child all others have vanished. Bits are what tags say, and a page whose halves are both
 *          unused by their tags, but not by the bits that the parent had, is purged; then what is PURGING is given.
 *
 * Checked: nobody uses or takes a half of a page that is being purged, and what is written there stays until the half is given; while
 * both halves are unused, and nobody works on them, the page has gone, in the child, too, whose chunk can leave its class then; in
 * the pool is what nobody has, as many as are counted.
 *
 * Not covered: the stock (the same lock), several pages in one call, kept slabs (they are as used ones).
 */
#ifndef NOPS
#define NOPS 2
#endif
#ifndef NTHREADS
#define NTHREADS 2
#endif

#define POOL    0
#define OPEN    1
#define PURGING 2
#define RETIRED 3

byte tag[2];
bit  in[2];
byte count;             /* free_count */
bit  resident;          /* the page is not zero */
bit  purged_now;        /* ghost: between begin and end of the call */
bit  mine[2];           /* ghost: taken by somebody who has not given it */
bit  wrote[2];          /* ghost: something lies in the half */
byte claims;            /* ghost: threads that have claimed the page */

#define UNUSED(h) (in[h] || tag[h] == RETIRED)

inline put(p)
{
	tag[p] = POOL;
	in[p] = 1;
	count++;
	assert(count == in[0] + in[1]);
	assert(count < 2 || !resident)          /* the chunk may leave its class */
}

/* Under the lock. */
inline claim(c)
{
	if
	:: in[1 - c] ->
		page = 1;
#ifndef MUTANT_BIT_STAYS
		in[1 - c] = 0;
		count--
#endif
#ifndef MUTANT_RETIRED_USED
	:: tag[1 - c] == RETIRED -> page = 1
#endif
	:: else -> page = 0
	fi;
	claims = claims + page;
	assert(claims < 2)
}

inline purge()
{
	purged_now = 1;
	assert(!mine[0] && !mine[1]);
	atomic {
		assert(!mine[0] && !mine[1]);
		resident = 0;
		wrote[0] = 0; wrote[1] = 0;
		purged_now = 0
	}
}

inline unclaim(u)
{
	atomic {
		claims--;
		if
		:: tag[1 - u] != RETIRED -> put(1 - u)
		:: else
		fi;
		if
		:: tag[u] != RETIRED -> put(u)
		:: else
		fi
	}
}

proctype thread()
{
	byte n, h;
	bit page, retire;
	do
	:: n < NOPS ->
		n++;
		atomic {
			if
			:: in[0] -> h = 0
			:: in[1] -> h = 1
			:: else -> goto next
			fi;
			assert(!purged_now && !mine[h]);
			in[h] = 0;
			count--;
			mine[h] = 1
		}
		tag[h] = OPEN;
		atomic { resident = 1; wrote[h] = 1 }
		assert(wrote[h]);
		atomic {
			assert(wrote[h]);
			tag[h] = PURGING;
#ifdef RETIRES
			if
			:: retire = 1
			:: retire = 0
			fi
#endif
		}
#ifdef MUTANT_RETIRED_EARLY
		if
		:: retire -> tag[h] = RETIRED
		:: else
		fi;
#endif
#ifdef MUTANT_LOOK_FIRST
		page = UNUSED(1 - h);
#endif
		atomic {
			mine[h] = 0;
			assert(wrote[h]);
			if
			:: retire -> tag[h] = RETIRED
			:: else
			fi;
#ifdef MUTANT_LOOK_FIRST
			in[1 - h] = in[1 - h] && !page;
			count = in[0] + in[1];
			claims = claims + page;
#else
			claim(h);
#endif
			if
			:: !page && tag[h] != RETIRED -> put(h)
			:: else
			fi
		}
		if
		:: page -> purge(); unclaim(h)
		:: else
		fi;
		h = 0; page = 0; retire = 0;
next:		skip
	:: else -> break
	od
}

/* What a child would find now. */
proctype forks()
{
	bit now[2], has, ok0, ok1;
	atomic {
		has = resident;
		now[0] = tag[0] == POOL;
		now[1] = tag[1] == POOL;
#ifndef MUTANT_CHILD_KEEPS_PAGE
		if
		:: (now[0] || tag[0] == RETIRED) && (now[1] || tag[1] == RETIRED) && (in[0] != now[0] || in[1] != now[1]) -> has = 0
		:: else
		fi;
#endif
#ifdef MUTANT_CHILD_BY_BITS
		now[0] = in[0];
		now[1] = in[1];
#endif
		/* What is PURGING is given, one after the other. */
		if
		:: tag[0] == PURGING ->
			if
			:: now[1] || tag[1] == RETIRED -> has = 0
			:: else
			fi;
			now[0] = 1
		:: else
		fi;
		if
		:: tag[1] == PURGING ->
			if
			:: now[0] || tag[0] == RETIRED -> has = 0
			:: else
			fi;
			now[1] = 1
		:: else
		fi;
		/* rebuilt by the tags */
		ok0 = now[0] || tag[0] == POOL;
		ok1 = now[1] || tag[1] == POOL;
		assert(!(ok0 && ok1) || !has);
		has = 0; now[0] = 0; now[1] = 0; ok0 = 0; ok1 = 0
	}
}

init {
	in[0] = 1; in[1] = 1; count = 2;
	atomic {
		run thread();
		run thread();
#if NTHREADS > 2
		run thread();
#endif
		run forks()
	}
	(_nr_pr == 1);
	assert(claims == 0 && count == in[0] + in[1]);
	assert(!(UNUSED(0) && UNUSED(1)) || !resident)
}
