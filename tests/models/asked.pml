/*
 * asked.pml - handles that other threads ask for (names.c, tsi_handle_of), while the object ends and its place is used
 * again: in a region whose owner frees by plain stores and begins the next life, and in a slab that leaves its
 * incarnation. One place for an object, one object for each life or incarnation.
 *
 *   asker                                  owner, S_REGION
 *   flag set               (exchange)      byte marked, a free                          (plain)
 *   heap_at is 0 already?  if not:         flag seen ? base raised                      (seq_cst)
 *     heap_at = 0, membarrier              word of the next life                        (exchange)
 *   base                                   heap_at                                      (plain)
 *   word, byte: does the object live?      flag seen only now ? base raised, next word  (seq_cst, exchange)
 *   the same base, the same seq?           byte of the next object                      (plain)
 *
 * An asker that finds heap_at 0 has no membarrier of its own, and the one that has set it may not have come to its own yet. So a
 * plain free may still be in the owner's buffer, after which the owner has not seen the flag: it looks again after the exchange,
 * which empties the buffer.
 *
 * Scenarios (exactly one)
 *   S_REGION  two askers, and one that frees by a handle: it enters the word, looks at the base, then at the byte
 *   S_LEAVES  a slab with lines is released, its base raised, and it is taken again; one asker, and one that looks a handle up
 *
 * Checked
 *   an object that begins has no generation for which a handle was issued; a handle that names an object is issued for that one;
 *   a handle of an object whose end was through frees nothing; one that was issued is never taken for a made-up one.
 *
 * Memory   a load may be late where nothing holds it (MUTANT_BASE_RELAXED); all others are in program order.
 *
 * Not covered: counts of slots and lookups beside them (names.pml), sleepers in a life and generations that wrap (region.pml).
 */
#define NTH 1
#ifndef BUFD
#define BUFD 3
#endif
#ifndef NOPS
#define NOPS 4          /* calls of the owner */
#endif
#define NLOC    5
#define L_BASE  0
#define L_WORD  1       /* the number of the life; in S_LEAVES the seq of the remote word */
#define L_BYTE  2
#define L_HEAP  3       /* heap_at: 1, or 0 */
#define L_TAG   4
#define ON_FLUSH(t, l) skip

#define MARKED  32
#define NLIFE   (2 * NOPS + 2)
/* Tags: of no incarnation, PURGING, or with objects. */
#define NOBODYS 0
#define PURGING 1
#define OWNED   2
#define TAG(q, st) ((q) << 2 | (st))
#define SEQ(t)  ((t) >> 2)
#define TST(t)  ((t) & 3)

bit  handled;           /* the slab's flag */
/* ghosts */
byte id;                /* objects begun here */
byte of_life[NLIFE];    /* the object of a life or incarnation */
bit  live[NOPS + 2], begun[NOPS + 2], through[NOPS + 2]; /* its end */
byte named[NLIFE];      /* by generation: the object for which a handle was issued, 0: none */

#include "mm.pml"

/* An owner's plain free is through when others can see it. */
#define THROUGH(x) (through[x] || (begun[x] && !live[x] && b_n[0] == 0))

inline begins(base, lf)
{
	d_step {
		id++;
		assert(named[base] == 0);
		of_life[lf] = id; live[id] = 1
	}
}
/* x: the base, w: the life in which an object was seen. */
inline issue()
{
	d_step {
		assert(of_life[w] != 0 && (named[x] == 0 || named[x] == of_life[w]));
		named[x] = of_life[w]
	}
}

#ifdef S_REGION
inline raise_base() { d_step { mm_drain(0); mem[L_BASE] = mem[L_BASE] + 1 } }
inline next_word()  { d_step { mm_drain(0); mem[L_WORD] = mem[L_WORD] + 1 } }

proctype owner(byte n)
{
	byte x, w;
	bit flag;
	do
	:: n > 0 ->
		n--;
		if
		:: !live[id] ->
			if
			:: id > 0 ->
				flag = handled;
				if
				:: flag -> raise_base()
				:: else
				fi;
				next_word();
				STORE(0, L_HEAP, !flag);
				if
				:: !flag && handled ->
					d_step { mm_drain(0); mem[L_HEAP] = 0 }
#ifndef MUTANT_ASKED_UNRAISED
					raise_base();
#ifndef MUTANT_RAISED_IN_LIFE
					next_word()
#endif
#endif
				:: else
				fi
			:: else
			fi;
			d_step { mm_get(0, L_BASE, x); w = mem[L_WORD] }
			begins(x, w);
			STORE(0, L_BYTE, w)
		:: live[id] ->
			d_step { begun[id] = 1; mm_get(0, L_HEAP, x) }
			if
			:: x -> d_step { ROOM(0) -> mm_put(0, L_BYTE, mem[L_WORD] | MARKED, 0); live[id] = 0 }
			:: else -> d_step { mm_drain(0); mem[L_BYTE] = mem[L_BYTE] | MARKED; live[id] = 0; through[id] = 1 }
			fi
		:: n = 0
		fi;
		d_step { x = 0; w = 0; flag = 0 }
	:: n == 0 -> break
	od
}

proctype asker()
{
	byte x, w;
	bit g;
	handled = 1;
	if
	:: mem[L_HEAP] != 0 -> mem[L_HEAP] = 0; mm_barrier_all()
	:: else
	fi;
	x = mem[L_BASE];
	w = mem[L_WORD];
	g = (mem[L_BYTE] == w);
	d_step {
		if
		:: g && mem[L_BASE] == x -> issue()
		:: else
		fi }
}

/* tsi_bump_free_in_life, without its mark: others may look at the object afterwards */
proctype freer()
{
	byte x, w, who;
	bit g, over;
	do
	:: d_step { x < NLIFE - 1 -> x++ }
	:: d_step { named[x] != 0 -> who = named[x]; over = THROUGH(who); w = mem[L_WORD] } break
	:: goto out
	od;
	g = (mem[L_BASE] == x);
	g = g && (mem[L_BYTE] == w);
	d_step { g = g && (mem[L_WORD] == w); assert(!g || (!over && of_life[w] == who)) }
out:	skip
}
#endif

#ifdef S_LEAVES
proctype owner(byte n)
{
	byte x, q = 1;
	do
	:: n > 0 ->
		n--;
		d_step { mm_drain(0); q++; begun[id] = 1; mem[L_TAG] = TAG(q, PURGING) }
		d_step { mm_drain(0); mem[L_WORD] = q; live[id] = 0; through[id] = 1 }
		LOAD(0, L_BASE, x);
		STORE_REL(0, L_BASE, x + 1);
		/* a store's or the pool's; then it is taken, and opened */
#ifdef MUTANT_TURNED_PLAIN
		STORE(0, L_TAG, TAG(q, NOBODYS));
#else
		STORE_REL(0, L_TAG, TAG(q, NOBODYS));
#endif
		begins(x + 1, q);
		STORE_REL(0, L_TAG, TAG(q, OWNED))
	:: break
	od
}

proctype asker()
{
	byte x, w, t;
	bit g, late;
	t = mem[L_TAG];
	w = SEQ(t);
	if
#ifdef MUTANT_BASE_RELAXED
	/* nothing holds the load before the looks that follow it */
	:: TST(t) == OWNED -> late = 1
#endif
	:: TST(t) == OWNED -> x = mem[L_BASE]
	:: else -> goto out
	fi;
	g = (mem[L_WORD] == w);
	g = g && (SEQ(mem[L_TAG]) == w);
	if
	:: late -> x = mem[L_BASE]
	:: else
	fi;
	if
	:: g -> issue()
	:: else
	fi;
out:	skip
}

/* tsi_handle_decode, as far as it goes by the base alone (classify) */
proctype looks()
{
	byte x, t;
	do
	:: d_step { x < NLIFE - 1 -> x++ }
	:: d_step { named[x] != 0 -> t = mem[L_TAG] } break
	:: goto out
	od;
	assert(TST(t) != NOBODYS || x < mem[L_BASE]);
out:	skip
}
#endif

init
{
	atomic {
		mem[L_BASE] = 1; mem[L_WORD] = 1; mem[L_HEAP] = 1; mem[L_TAG] = TAG(1, OWNED);
#ifdef S_LEAVES
		id = 1; of_life[1] = 1; live[1] = 1;
#endif
		run flusher(0);
		run owner(NOPS);
		run asker();
#ifdef S_REGION
		run asker();
		run freer()
#else
		run looks()
#endif
	}
}
