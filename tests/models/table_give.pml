/*
 * table_give.pml - a page of records that goes back, beside takers and those who hold old indices (os/table.h, phase/epoch.c,
 * api/domain_records.c).
 *
 * One unit of two records. A record has the word of its incarnation (its era, never used again; 0: nobody's), a number of
 * openings of which ids have MOD, and a lock. Users take a record under the table's lock, open it, lock it for a while,
 * end it and give it. One tidies: under the table's lock, when no record of the unit is taken, it puts the numbers of
 * openings aside, takes the records' locks, and gives the page back, which zeroes its words one after the other.
 *
 * A late one holds an era and an id of an incarnation, and looks whether they are still that: by the word, and by the id, for which it
 * reads the word and then the id. And it takes the record's lock, as who ends a domain does, who may have been destroyed meanwhile.
 *
 * Memory   what users store into records is in store buffers (mm.pml): the number of openings and then the word, by a release, without a
 *          lock; locks of records are taken by an acquire and given by a release. What is stored under the table's lock is there as it is
 *          given. The late one stores nothing but that it gives a lock.
 *
 * Checked
 *   a record is one user's; its words are as he has left them while he has it, and nothing that he has stored arrives afterwards; at most
 *   one thread is inside of its lock
 *   what matches an old era is that incarnation; an id matches no other incarnation of fewer than MOD openings later, unless with an era
 *   that has ended
 *
 * Not covered: how records are chosen.
 */
#ifndef NOPS
#define NOPS 2          /* phases of one user; the other has one */
#endif
#ifndef NTIDY
#define NTIDY 2         /* give-backs */
#endif
#ifndef NLATE
#define NLATE 2         /* looks of the late one */
#endif
#define N   2
#define MOD 8

#define NTH 2           /* the users */
#define NLOC 6          /* the page: N records of */
#define L_WORD   0
#define L_OPENED 2      /* number of openings, and so the id */
#define L_LOCK   4
byte aside[N];                          /* numbers of openings, beside it */
bit  taken[N], filled[N];
bit  table_lock;
byte era_next = 1;

/* ghosts */
byte owner[N];          /* user + 1 */
byte inside[N];
byte era_of[N];         /* of the incarnation that lives in the record; 0: none */
byte known_at = N, known_era, known_id, known_count; /* what the late one has */
byte count[N];          /* openings, ever */

#define ID(n) ((n) & (MOD - 1))

/* Only its user writes into a record, and takers of its lock. */
#define ON_FLUSH(t, l) assert((l) >= L_LOCK || owner[(l) % N] == (t) + 1)

#include "mm.pml"

inline lock_table() { d_step { !table_lock -> table_lock = 1 } }
inline unlock_table() { table_lock = 0 }

inline lock_record(r)
{
	d_step { mem[L_LOCK + r] == 0 -> mem[L_LOCK + r] = 1; inside[r]++; assert(inside[r] == 1) }
}

/* One step: nothing of it is done beside the lock. */
inline take_record(me, n)
{
	d_step { !table_lock && !taken[n] ->
		rec = n;
		taken[n] = 1;
		if
		:: !filled[n] ->
			filled[n] = 1;
#if !defined(MUTANT_NUMBER_LOST) && !defined(MUTANT_ERA_OF_RECORD)
			mem[L_OPENED + n] = aside[n]
#endif
		:: else
		fi;
		assert(owner[n] == 0);
		owner[n] = me + 1
	}
}

proctype user(byte me; byte n)
{
	byte rec, era, num;
	do
	:: n > 0 ->
		n--;
		rec = N;
		if
		:: take_record(me, 0)
		:: take_record(me, 1)
		:: taken[0] && taken[1]
		fi;
		if
		:: rec < N ->
			d_step { ROOM(me) ->
				mm_get(me, L_OPENED + rec, num);
				num++;
				mm_put(me, L_OPENED + rec, num, 0)
			}
			d_step { ROOM(me) ->
#ifdef MUTANT_ERA_OF_RECORD
				era = num;
#else
				era = era_next;
				era_next++;
#endif
				era_of[rec] = era;
				count[rec]++;
#ifdef MUTANT_OPENED_RELAXED
				mm_put(me, L_WORD + rec, era, 0)
#else
				mm_put(me, L_WORD + rec, era, 1)
#endif
			}
			if
			:: d_step { known_at == N -> known_at = rec; known_era = era; known_id = ID(num); known_count = count[rec] }
			:: true
			fi;
			lock_record(rec);
			d_step { ROOM(me) ->
				mm_get(me, L_WORD + rec, num);
				assert(num == era && owner[rec] == me + 1);     /* nobody zeroes what is taken */
				inside[rec]--;
				mm_put(me, L_LOCK + rec, 0, 1)
			}
#ifndef MUTANT_GIVEN_ALIVE
			STORE(me, L_WORD + rec, 0);
#endif
			d_step { !table_lock -> mm_drain(me); owner[rec] = 0; taken[rec] = 0; era_of[rec] = 0; era = 0; num = 0 }
		:: else
		fi
	:: n == 0 -> break
	od
}

/* Zeroes one word after the other: a reader meets any mixture. */
inline zero(r)
{
	mem[L_WORD + r] = 0;
	mem[L_OPENED + r] = 0;
	mem[L_LOCK + r] = 0
}

proctype tidier(byte n)
{
	byte i;
	bit ok;
	do
	:: n > 0 ->
		n--;
		lock_table();
#ifdef MUTANT_TAKEN_GOES
		ok = 1;
#else
		ok = (!taken[0] && !taken[1]);
#endif
#ifdef MUTANT_GOES_UNLOCKED
		unlock_table();
#endif
		i = 0;
		do
		:: i < N && ok ->       /* leave */
#ifndef MUTANT_LOCK_NOT_TAKEN
			d_step {
				if
				:: mem[L_LOCK + i] == 0 -> mem[L_LOCK + i] = 1
				:: else -> ok = 0
				fi }
#endif
			if
			:: ok && filled[i] -> aside[i] = mem[L_OPENED + i]
			:: else
			fi;
			i++
		:: else -> break
		od;
		if
		:: ok ->
			zero(0); zero(1);
			d_step { filled[0] = 0; filled[1] = 0 }
		:: !ok && i > 0 ->      /* stay: but for the one that could not be had */
			i = i - 1;
			do
			:: i > 0 -> i--; mem[L_LOCK + i] = 0
			:: else -> break
			od
		:: else
		fi;
#ifndef MUTANT_GOES_UNLOCKED
		unlock_table();
#endif
		i = 0; ok = 0
	:: true -> break
	od
}

/* Holds an old reference and an old id, and may come at any time. */
proctype late(byte n)
{
	byte w;
	do
	:: n > 0 && known_at < N ->
		n--;
		if
		:: d_step {
			w = mem[L_WORD + known_at];
			assert(w != known_era || (era_of[known_at] == known_era && count[known_at] == known_count))
		   }
		:: w = mem[L_WORD + known_at];
		   assert(w == 0 || ID(mem[L_OPENED + known_at]) != known_id || era_of[known_at] != w || count[known_at] == known_count)
		:: lock_record(known_at);
		   d_step { inside[known_at]--; mem[L_LOCK + known_at] = 0 }
		fi;
		w = 0
	:: true -> break
	od
}

init
{
	atomic {
		run user(0, NOPS); run flusher(0);
		run user(1, 1); run flusher(1);
		run tidier(NTIDY);
		run late(NLATE)
	}
}
