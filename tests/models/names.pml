/*
 * names.pml - a lookup by handle beside the thread that uses the place again (names.h, N2; names.c, line.c, bump.c).
 * One place for an object: a slot of a line, or the granule of a region.
 *
 *   lookup                                 its owner, after the object has ended
 *   generation of the place                S_LINE    count raised          (plain)
 *   does an object live there?                       avail = the slot      (release), freed without it (release)
 *   the same generation?                             popped from avail     (plain)
 *                                          S_REGION  base raised           (seq_cst)
 *                                                    word of the next life, then the byte of its first object (plain)
 *
 * A count is made odd by whoever frees, if a free sees that the slab has handles. One that does not (the owner's, which reads only
 * the line's mark; another's, which has read the tag before) leaves it even, and the refill raises an even one, too. A region
 * raises its base once for a life, and its generations of bytes come round (two here instead of 63).
 *
 * Scenarios (exactly one)
 *   S_LINE    the owner allocates, frees and refills; one thread frees what the owner gives it; one asks for a handle of
 *             the object there, whichever that is, and then looks it up, more than once
 *   S_REGION  the owner allocates with a handle, frees, and begins again; one thread frees; one looks up
 *
 * Checked
 *   a lookup that finds has begun before its object's free was through; one that does not find ends after the free began; no
 *   object gets a count for which a handle was issued before it began.
 *
 * Not covered: slabs that leave their incarnation (N1; region.pml), handles of made-up values, generations that run out.
 */
#define NTH 1
#ifndef BUFD
#define BUFD 3
#endif
#ifndef NOPS
#define NOPS 5          /* calls of the owner */
#endif
#ifndef NLOOK
#define NLOOK 2         /* lookups */
#endif
#define NLOC    6
#define L_AV    0
#define L_FR    1
#define L_COUNT 2
#define L_BASE  3
#define L_WORD  4       /* gen, 0 while no life is open */
#define L_BYTE  5
#define ON_FLUSH(t, l) skip

#define GEN_LAST 2
#define MARKED   4
#define ODD(c)   ((c) & 1)

bit  handled, marked;   /* the slab's flag, the line's mark */
bit  rem;               /* freed by another thread */
/* ghosts */
byte id;                /* objects begun here; the last one is the present one */
byte count_of[NOPS + 1]; /* by which its handle would name it */
bit  live[NOPS + 1], begun[NOPS + 1], through[NOPS + 1]; /* its free */
bit  given;             /* the present one is another thread's to free */
byte issued;            /* what the handle says, 0 without one */
byte named;             /* the object it names */

#include "mm.pml"

inline begins(c)
{
	d_step {
		id++;
		assert(c != issued);
		count_of[id] = c; live[id] = 1; given = 0
	}
}

/* ---- a slot of a line ---- */
#ifdef S_LINE

inline raise()
{
	if
	:: flag ->
		LOAD(0, L_COUNT, c);
#ifdef MUTANT_EVEN_STAYS
		d_step { c = c + ODD(c) }
#else
		d_step { c = (c | 1) + 1 }
#endif
#ifdef MUTANT_RAISED_PLAIN
		STORE(0, L_COUNT, c)
#else
		STORE_REL(0, L_COUNT, c)
#endif
	:: else
	fi
}

inline refill()
{
#ifdef MUTANT_FLAG_READ_FIRST
	flag = handled;
#endif
	LOAD(0, L_FR, f);
	d_step { r = rem }
	if
	:: r ->
		STORE_REL(0, L_FR, 1);
		d_step { mm_drain(0); rem = 0; f = 1 }
	:: else
	fi;
	if
	:: f ->
#ifndef MUTANT_FLAG_READ_FIRST
		flag = handled;
#endif
#ifndef MUTANT_RAISED_AFTER
		raise();
#endif
		STORE_REL(0, L_AV, 1);
		STORE_REL(0, L_FR, 0);
#ifdef MUTANT_RAISED_AFTER
		raise();
#endif
	:: else
	fi;
	d_step { f = 0; r = 0; c = 0; flag = 0 }
}

inline allocs()
{
	LOAD(0, L_AV, f);
	if
	:: f == 0 -> refill(); LOAD(0, L_AV, f)
	:: else
	fi;
	if
	:: f ->
		d_step { mm_get(0, L_COUNT, c) }
		begins(c);
		STORE(0, L_AV, 0)
	:: else
	fi;
	d_step { f = 0; c = 0 }
}

inline frees()
{
	begun[id] = 1;
	flag = marked;
	if
	:: flag -> d_step { mm_drain(0); assert(!ODD(mem[L_COUNT])); mem[L_COUNT] = mem[L_COUNT] + 1; through[id] = 1 }
	:: else
	fi;
	STORE(0, L_FR, 1);
	d_step { live[id] = 0; flag = 0 }
}

inline frees_other()
{
	d_step { begun[i] = 1; flag = handled; c = mem[L_COUNT] }
	if
	:: flag -> d_step { assert(mem[L_COUNT] == c && !ODD(c)); mem[L_COUNT] = c + 1; through[i] = 1 }
	:: else
	fi;
	d_step { rem = 1; live[i] = 0; through[i] = 1; flag = 0; c = 0 }
}

/* An owner's plain free is through when others can see it. */
#define THROUGH(x) (through[x] || (begun[x] && !live[x] && b_n[0] == 0))

inline is_live()
{
	d_step { g = !rem }
	d_step { g = g && mem[L_FR] == 0 }
	d_step { g = g && mem[L_AV] == 0 }
}

inline asks()
{
	handled = 1;
	marked = 1;
#ifndef MUTANT_NO_MEMBARRIER
	mm_barrier_all();
#endif
	d_step { c = mem[L_COUNT] }
	is_live();
	d_step {
		if
		:: g && !ODD(c) && mem[L_COUNT] == c && id > 0 ->
			/* the last that began with this count */
			named = id;
			do
			:: named > 0 && count_of[named] != c -> named--
			:: else -> break
			od;
			assert(named > 0);
			issued = c
		:: else
		fi;
		c = 0; g = 0
	}
}

inline generation(x) { d_step { x = mem[L_COUNT] } }

/* ---- the granule of a region ---- */
#else

#define THROUGH(x) through[x]

inline allocs()
{
	if
	:: id == 0 || THROUGH(id) ->
		if
		:: id > 0 ->
#ifndef MUTANT_RAISED_AFTER
			d_step { mm_drain(0); mem[L_BASE] = mem[L_BASE] + 1 }
#endif
			d_step { mm_drain(0); c = mem[L_WORD]; mem[L_WORD] = 0 }
			if
			:: c == GEN_LAST -> STORE(0, L_BYTE, 0); d_step { c = 0 }
			:: else
			fi;
			d_step { mm_drain(0); mem[L_WORD] = c + 1; c = 0 }
		:: else
		fi;
		d_step { mm_get(0, L_BASE, c); f = mem[L_WORD] }
#ifdef MUTANT_RAISED_AFTER
		d_step { c = c + (id > 0) }
#endif
		begins(c);
		STORE(0, L_BYTE, f);
#ifdef MUTANT_RAISED_AFTER
		d_step { mm_drain(0); mem[L_BASE] = c }
#endif
		/* The handle is told by a release: what came before is out. */
		d_step { b_n[0] == 0 -> issued = c; named = id; f = 0; c = 0 }
	:: else
	fi
}

/* A compare-exchange of the byte: regions with handles take no plain frees. */
inline frees()
{
	d_step { begun[id] = 1 }
	d_step { mm_drain(0); assert(mem[L_BYTE] == mem[L_WORD]); mem[L_BYTE] = mem[L_BYTE] | MARKED; live[id] = 0; through[id] = 1 }
}
inline frees_other()
{
	d_step { begun[i] = 1 }
	d_step { assert(mem[L_BYTE] == mem[L_WORD]); mem[L_BYTE] = mem[L_BYTE] | MARKED; live[i] = 0; through[i] = 1 }
}
inline is_live()
{
	d_step { c = mem[L_WORD] }
	d_step { g = c != 0 && mem[L_BYTE] == c; c = 0 }
}

inline generation(x) { d_step { x = mem[L_BASE] } }
#endif

proctype owner(byte n)
{
	byte f, r, c;
	bit flag;
	do
	:: n > 0 ->
		n--;
		if
		:: !live[id] -> allocs()
		:: live[id] && !given -> frees()
		/* The other thread learns of the address by a release. */
		:: d_step { live[id] && !given && b_n[0] == 0 -> given = 1 }
#ifdef S_LINE
		/* for other slots of the line */
		:: live[id] -> LOAD(0, L_AV, f); assert(!f); refill()
#endif
		:: n = 0
		fi
	:: n == 0 -> break
	od
}

proctype freer(byte n)
{
	byte i, c;
	bit flag;
	do
	:: n > 0 ->
		n--;
		if
		:: d_step { given && live[id] && !begun[id] -> i = id }
		:: i = 0; break
		fi;
		frees_other();
		i = 0
	:: n == 0 -> break
	od
}

proctype looks(byte n)
{
	byte first, second, want, who, c;
	bit g, over, found;
#ifdef S_LINE
	asks();
#endif
	do
	:: d_step { n > 0 && issued != 0 -> n--; want = issued; who = named; over = THROUGH(who) }
		generation(first);
		if
		:: first == want ->
#ifdef MUTANT_LOOKED_BEFORE
			generation(second);
			is_live();
#else
			is_live();
#ifdef MUTANT_NO_SECOND_LOOK
			second = first;
#else
			generation(second);
#endif
#endif
			found = g && second == first
		:: else
		fi;
		d_step {
			assert(!found || !over);
			assert(found || begun[who]);
			first = 0; second = 0; want = 0; who = 0; g = 0; over = 0; found = 0
		}
	:: break
	od
}

init
{
	atomic {
#ifdef S_LINE
		mem[L_FR] = 1; mem[L_COUNT] = 2;
#else
		mem[L_BASE] = 1; mem[L_WORD] = 1;
#endif
		run flusher(0);
		run owner(NOPS);
		run freer(1);
		run looks(NLOOK)
	}
}
