/*
 * pending.pml - a thread's record of sums for one label, which becomes another label's, beside a reader that takes no lock
 * (src/account/charge.h, TsiPending; src/stats/report_labels.c).
 *
 *   thread: a post                         reader of a label
 *   turn, if the record is another's:      shard                  (acquire)
 *     sum = 0              (release)       whose                  (acquire)
 *     shard += sum         (release)       sum                    (acquire)
 *     whose = next         (release)       whose == as before ? shard + sum : shard
 *   sum += 1               (release)
 *
 * A figure that was shown once never goes back, so what is told too much stays. `whose` names a label and counts the turns.
 * The shard has one writer here, so the read-modify-write is a load and a release store.
 *
 * Checked
 *   a reader tells of a label no more than was posted to it; once all is quiet the sums are exact.
 *
 * Not covered: what a reader misses, and how it finds out (moves_begun, moves_ended); several sums; records of other threads.
 */
#define NTH 1
#ifndef BUFD
#define BUFD 3
#endif
#ifndef NOPS
#define NOPS 4          /* posts */
#endif
#ifndef NLOOKS
#define NLOOKS 1        /* of each reader */
#endif
#define NLOC 4
#define L_WHOSE    0    /* turns << 1 | label */
#define L_SUM      1
#define L_SHARD(l) (2 + (l))
#define ON_FLUSH(t, l) skip

byte posted[2];         /* ghost: begun */
byte done;

#include "mm.pml"

inline turn(to)
{
	LOAD(0, L_SUM, n);
	if
	:: n ->
		LOAD(0, L_SHARD(w & 1), s);
#ifdef MUTANT_MOVED_FIRST
		STORE_REL(0, L_SHARD(w & 1), s + n);
		STORE_REL(0, L_SUM, 0)
#else
		STORE_REL(0, L_SUM, 0);
		STORE_REL(0, L_SHARD(w & 1), s + n)
#endif
	:: else
	fi;
#ifdef MUTANT_TURNS_UNCOUNTED
	w = to;
#else
	w = ((w >> 1) + 1) << 1 | to;
#endif
#ifdef MUTANT_TURNED_RELAXED
	STORE(0, L_WHOSE, w);
#else
	STORE_REL(0, L_WHOSE, w);
#endif
	n = 0; s = 0
}

proctype thread()
{
	byte ops, w, n, s, to;
	do
	:: ops < NOPS ->
		ops++;
		if :: to = 0 :: to = 1 fi;
		if
		:: (w & 1) != to -> turn(to)
		:: else
		fi;
		LOAD(0, L_SUM, n);
		d_step {
			ROOM(0) ->
			posted[to]++;
#ifdef MUTANT_POSTED_RELAXED
			mm_put(0, L_SUM, n + 1, 0)
#else
			mm_put(0, L_SUM, n + 1, 1)
#endif
		}
		n = 0; to = 0
	:: else -> break
	od;
	done++
}

/* Acquire loads happen in program order. */
proctype reader(bit label)
{
	byte looks, told, w, n;
	do
	:: looks < NLOOKS ->
		looks++;
		told = mem[L_SHARD(label)];
		w = mem[L_WHOSE];
		if
		:: (w & 1) == label ->
			n = mem[L_SUM];
			if
#ifdef MUTANT_NO_SECOND_LOOK
			:: true -> told = told + n
#else
			:: mem[L_WHOSE] == w -> told = told + n
#endif
			:: else /* some may be the other label's */
			fi
		:: else
		fi;
		d_step { assert(told <= posted[label]); told = 0; w = 0; n = 0 }
	:: else -> break
	od;
	done++
}

init
{
	atomic {
		run thread(); run flusher(0);
		run reader(0); run reader(1)
	}
	done == 3 && b_n[0] == 0 ->
	d_step {
		assert(mem[L_SHARD(mem[L_WHOSE] & 1)] + mem[L_SUM] == posted[mem[L_WHOSE] & 1]);
		assert(mem[L_SHARD(1 - (mem[L_WHOSE] & 1))] == posted[1 - (mem[L_WHOSE] & 1)])
	}
}
