/*
 * table_give.pml - a page of records that goes back, beside takers and those who hold old indices (os/table.h, phase/epoch.c,
 * api/domain_records.c).
 *
 * One unit of two records. A record has the word of its incarnation (its era, never used again; 0: nobody's), a number of
 * openings of which ids have MOD, and a lock. Users take a record under the table's lock, open it, lock it for a while,
 * end it and give it. One tidies: under the table's lock, when no record of the unit is taken, it puts the numbers of
 * openings aside, takes the records' locks, and gives the page back, which zeroes its words one after the other.
 *
 * A late one holds an era and an id of an incarnation, and looks whether they are still that: by the word, and by the id. And it
 * takes the record's lock, as who ends a domain does, who may have been destroyed meanwhile.
 *
 * Checked
 *   a record is one user's; its words are as he has left them while he has it; at most one thread is inside of its lock
 *   what matches an old era is that incarnation; an id matches no other incarnation of fewer than MOD openings later
 *
 * Not covered: store buffers (all is under locks, or compared with numbers that are never used again), how records are chosen.
 */
#ifndef NOPS
#define NOPS 2          /* phases of one user; the other has one */
#endif
#define N   2
#define MOD 8

byte word[N], opened[N], lockw[N];      /* the page */
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

inline lock_table() { d_step { !table_lock -> table_lock = 1 } }
inline unlock_table() { table_lock = 0 }

inline lock_record(r)
{
	d_step { lockw[r] == 0 -> lockw[r] = 1 }
	d_step { inside[r]++; assert(inside[r] == 1) }
}
inline unlock_record(r)
{
	inside[r]--;
	lockw[r] = 0
}

/* One step: nothing of it is done beside the lock. */
inline take_record(me, n)
{
	d_step { !table_lock && !taken[n] ->
		r = n;
		taken[n] = 1;
		if
		:: !filled[n] ->
			filled[n] = 1;
#if !defined(MUTANT_NUMBER_LOST) && !defined(MUTANT_ERA_OF_RECORD)
			opened[n] = aside[n]
#endif
		:: else
		fi;
		assert(owner[n] == 0);
		owner[n] = me + 1
	}
}

proctype user(byte me; byte n)
{
	byte r, era;
	do
	:: n > 0 ->
		n--;
		r = N;
		if
		:: take_record(me, 0)
		:: take_record(me, 1)
		:: taken[0] && taken[1]
		fi;
		if
		:: r < N ->
			opened[r] = opened[r] + 1;
#ifdef MUTANT_ERA_OF_RECORD
			era = opened[r];
#else
			d_step { era = era_next; era_next++ }
#endif
			d_step { word[r] = era; era_of[r] = era; count[r]++ }
			if
			:: d_step { known_at == N -> known_at = r; known_era = era; known_id = ID(opened[r]); known_count = count[r] }
			:: true
			fi;
			lock_record(r);
			assert(word[r] == era && owner[r] == me + 1);   /* nobody zeroes what is taken */
			unlock_record(r);
#ifdef MUTANT_GIVEN_ALIVE
			skip;
#else
			d_step { word[r] = 0; era_of[r] = 0 }
#endif
			d_step { !table_lock -> owner[r] = 0; taken[r] = 0; era_of[r] = 0 }
		:: else
		fi
	:: n == 0 -> break
	od
}

/* Zeroes one word after the other: a reader meets any mixture. */
inline zero(r)
{
	word[r] = 0;
	opened[r] = 0;
	lockw[r] = 0
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
				:: lockw[i] == 0 -> lockw[i] = 1
				:: else -> ok = 0
				fi }
#endif
			if
			:: ok && filled[i] -> aside[i] = opened[i]
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
			:: i > 0 -> i--; lockw[i] = 0
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
		:: d_step { w = word[known_at]; assert(w != known_era || era_of[known_at] == known_era) }
		:: d_step { w = word[known_at]; w = (w != 0 && ID(opened[known_at]) == known_id && count[known_at] - known_count < MOD);
			assert(!w || !taken[known_at] || count[known_at] == known_count || era_of[known_at] == 0) }
		:: lock_record(known_at); unlock_record(known_at)
		fi;
		w = 0
	:: true -> break
	od
}

init
{
	atomic {
		run user(0, NOPS);
		run user(1, 1);
		run tidier(2);
		run late(2)
	}
}
