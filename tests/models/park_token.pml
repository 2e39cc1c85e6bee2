/*
 * park_token.pml - full lines, the token and the inboxes.
 *
 * One slab that is one line of two or three slots: slots 0 and 1 in remote word 0 (with
 * the token), slot 2 in remote word 1.  The inbox is a stack linked
 * through the line; a stack of one line is a byte, and the link tells only
 * "claimed or not", which is what the protocol relies on.
 *
 * Rules modelled
 *   - ARMED (owner's flag) is set while the token is not with the owner; the
 *     token itself is in the word, with a freer, or stands for an inbox entry.
 *   - The link is claimed by compare-exchange from 0; who finds it taken puts the
 *     token back and looks at the link again; a popper zeroes the link first.
 *   - An inbox entry is a hint: the owner that pops it compares ARMED with the
 *     word, a stranger puts the token back and routes it as a freer would.
 *   - After putting the token back because nobody was there, the freer leaves
 *     only if a walk over the heap's lines is still to come.
 *
 * Scenarios
 *   S_COUNT   one owner, threshold 2, frees on both sides and in both words
 *   S_EXIT    owner A exits (detach, then inbox closed and emptied), B adopts
 *   S_REBORN  A exits, its binding serves a new thread that adopts the heap
 *   S_REUSE   the slab is released while the line may sit in sleeping A's inbox,
 *             and B takes it for another incarnation
 *   S_TRIM    a trim revokes A's heap: A revives it, or it is seized, detached
 *             and adopted by A or B
 *
 * Checked: the line is in at most one inbox and once in a room; when everybody
 * is through and has emptied its inbox, a line with 2 * threshold - 1 free
 * slots is in the room of its owner; no slot has two owners.
 */
#define BUFD  1
#define NLOC  1
#define L_FR  0
#define ON_FLUSH(t, l) skip

/* Lifecycles need only "some slot came back"; the count across words and sides has a scenario of its own. */
#ifdef S_COUNT
#define NTH      1
#define T        2
#define SLOTS    7      /* 0 and 1 in word 0, 2 in word 1 */
#else
#define NTH      0
#define T        1
#define SLOTS    5      /* 0 in word 0, 2 in word 1 */
#endif
#ifndef NOPS            /* what A and B do besides parking, adopting and leaving */
#define NOPS     1
#endif
#if defined(S_REUSE) || defined(S_TRIM)
#define NOPS_A   (NOPS - 1)
#else
#define NOPS_A   NOPS
#endif

#ifndef F1
#ifdef S_COUNT
#define F1 2
#else
#define F1 1
#endif
#endif
#ifndef F2
#ifdef S_COUNT
#define F2 2
#else
#define F2 1
#endif
#endif
#ifndef NTRIM
#define NTRIM 1
#endif

#define PARKED   1
#define ARMED    4

#define OWNED    0
#define POOL     1

/* heap word: state | binding<<3 */
#define LIVE     1
#define REVOKED  3
#define SEIZED   4
#define DETACHED 6
#define DEAD     7
#define HW(st, b) ((st) | (((b) + 1) << 3))
#define HST(w)    ((w) & 7)
#define HB(w)     (((w) >> 3) - 1)

#define EMPTY    0
#define LINE     1
#define SHUT     2

#define TOK      4
#define NOBUF    9

#if defined(S_REUSE) || defined(S_TRIM)
#define NPROC 5
#elif defined(S_COUNT)
#define NPROC 3
#else
#define NPROC 4
#endif
#ifdef S_COUNT
#define OWNERS  1
#define ALL_OUT (b_n[0] == 0)
#else
#define OWNERS  2
#define ALL_OUT true
#endif

byte rem0;              /* bits 0-1, token 4, seq<<3 */
byte rem1;              /* bit 0, seq<<1             */
byte seq;               /* the tag: seq ...          */
byte tagst;             /* ... and state; heap index is seq & 1 */
byte hw[2];
byte wh;                /* owner's flags of the line */
bit  in_room;           /* in the owner's room, or current there */
bit  linked;            /* the line's link != 0      */
byte inbox[2];
bit  inb[2];            /* ghost: inside a bracket   */

byte live;              /* slots in users' hands     */
byte claim;
byte done;
bit  waking;

#include "mm.pml"

#if NTH
#define PUT(t, l, v) STORE(t, l, v)
#else
#define PUT(t, l, v) mem[l] = v         /* no count is taken from both sides at once: nothing to see in a buffer */
#endif

#define POP3(x) (((x) & 1) + (((x) >> 1) & 1) + (((x) >> 2) & 1))
#define BITS(a, b) (((a) & 3) | (((b) & 1) << 2))

/* Free slots as thread th sees them: remote words, then freed. */
inline free_bits(th)
{
#ifdef S_COUNT
	cnt = rem0 & 3;
	cnt = cnt | ((rem1 & 1) << 2);
	d_step { mm_get(th, L_FR, fr); cnt = POP3(cnt | fr); fr = 0 }
#else
	d_step { cnt = BITS(rem0, rem1) | mem[L_FR]; cnt = POP3(cnt) }
#endif
}

/* ok = 1: the caller has taken the token out of the word */
inline token_take(th, sq)
{
	ok = 0;
	do
	:: d_step { w = rem0 }
	   if
	   :: (w >> 3) != (sq) || !(w & TOK) -> break
	   :: else ->
		free_bits(th);
		if
		:: cnt < T -> break
		:: else ->
			d_step {
				mm_drain(th);
				if
				:: rem0 == w -> rem0 = w & ~TOK; ok = 1
				:: else
				fi
			}
			if
			:: ok -> break
			:: else
			fi
		fi
	   fi
	od;
	skip;
	d_step { w = 0; cnt = 0 }
}

/* ok = 0: the slab has left that incarnation */
inline token_put(th, sq)
{
	d_step {
		mm_drain(th);
		if
		:: (rem0 >> 3) == (sq) -> rem0 = rem0 | TOK; ok = 1
		:: else -> ok = 0
		fi
	}
}

#define PUSHED      1
#define PUSH_SHUT   2
#define PUSH_LINKED 3

/* to binding hb */
inline inbox_push(th)
{
	d_step {
		mm_drain(th);
		if
		:: linked -> res = PUSH_LINKED
		:: else -> linked = 1; res = 0
		fi
	}
#ifdef MUTANT_LINK_UNCLAIMED
	res = 0;
#endif
	if
	:: res == 0 ->
		if
#ifdef MUTANT_PUSH_TO_DEAD_INBOX
		:: false
#else
		:: inbox[hb] == SHUT -> linked = 0; res = PUSH_SHUT
#endif
		:: d_step { inbox[hb] != SHUT ->
			assert(inbox[0] != LINE && inbox[1] != LINE);   /* never linked twice */
			inbox[hb] = LINE; res = PUSHED }
#ifdef MUTANT_PUSH_TO_DEAD_INBOX
		:: d_step { inbox[hb] == SHUT -> res = PUSHED }     /* nobody will ever pop it */
#endif
		fi
	:: else
	fi
}

/* A freer, or a popper that is a stranger, delivers the token if there is something to tell. */
inline notify(th, sq)
{
	do
	:: true ->
		token_take(th, sq);
		if
		:: !ok -> break
		:: else -> ok = 0
		fi;
		d_step { ok = (seq == (sq) && tagst == OWNED) }
		if
		:: !ok -> break
		:: else -> ok = 0
		fi;
		d_step { hx = hw[(sq) & 1] }
		if
		:: HST(hx) == LIVE || HST(hx) == REVOKED ->
			hb = HB(hx); inbox_push(th)
		:: else -> res = PUSH_SHUT
		fi;
		if
		:: res == PUSHED -> break
		:: else
		fi;
#ifdef MUTANT_LINKED_DROPS_TOKEN
		if
		:: res == PUSH_LINKED -> break
		:: else
		fi;
#endif
#ifdef MUTANT_CLOSED_DROPS_TOKEN
		if
		:: res == PUSH_SHUT -> break
		:: else
		fi;
#endif
		token_put(th, sq);
		if
		:: !ok -> break
		:: else -> ok = 0
		fi;
		if
		:: res == PUSH_LINKED ->
			if
#ifdef MUTANT_NO_SECOND_LOOK_AT_LINK
			:: true -> break
#endif
			:: linked -> break
			:: !linked
			fi
		:: else ->
			/* was it adopted before the token was back? */
#ifdef MUTANT_NO_SECOND_LOOK_AT_OWNER
			break
#endif
#ifdef MUTANT_SECOND_LOOK_COMPARES_WORD
			if
			:: hw[(sq) & 1] == hx -> break
			:: else
			fi
#else
			d_step { hx = hw[(sq) & 1] }
			if
			:: (HST(hx) == LIVE || HST(hx) == REVOKED) && inbox[HB(hx)] != SHUT
			:: else -> break
			fi
#endif
		fi
	od;
	skip;
	d_step { hx = 0; hb = 0; res = 0; ok = 0 }
}

/* ---- remote free ---- */

proctype freer(byte n)
{
	byte b, q, w, cnt, fr, ok, hx, hb, res;
	do
	:: n > 0 ->
		if
		:: d_step { tagst == OWNED && (live & ~claim & 1) -> b = 1; claim = claim | 1; q = seq }
		:: d_step { tagst == OWNED && (live & ~claim & 2) -> b = 2; claim = claim | 2; q = seq }
		:: d_step { tagst == OWNED && (live & ~claim & 4) -> b = 4; claim = claim | 4; q = seq }
		:: break
		fi;
		n--;
		d_step {
			if
			:: b < 4 && (rem0 >> 3) == q -> rem0 = rem0 | b; ok = 1
			:: b == 4 && (rem1 >> 1) == q -> rem1 = rem1 | 1; ok = 1
			:: else -> ok = 0
			fi;
			if
			:: ok -> assert(live & b); live = live & ~b; claim = claim & ~b
			:: else
			fi;
			b = 0
		}
		if
		:: ok -> notify(NOBUF, q)
		:: else
		fi;
		q = 0
	:: n == 0 -> break
	od;
	done++
}

/* ---- owner ---- */

inline enter(me, h)
{
	d_step { in = (hw[h] == HW(LIVE, me)); inb[me] = in }
}
/* a revoked heap in an ACTIVE incarnation: its owner takes it back as it leaves */
inline leave(me, h)
{
	d_step { inb[me] = 0;
		if
		:: hw[h] == HW(REVOKED, me) -> mm_drain(me); hw[h] = HW(LIVE, me)
		:: else
		fi }
}

/* in = 1 and the line is used up: park it, or keep it in the room if slots came back */
inline park(me, sq)
{
	res = 1;
	if
	:: !(wh & ARMED) ->
#ifdef MUTANT_PARK_NOT_ARMED
		skip
#else
		token_put(me, sq);
#ifndef MUTANT_ARM_NO_RECOUNT
		token_take(me, sq);
		if
		:: ok -> res = 0; ok = 0
		:: else -> wh = wh | ARMED
		fi
#else
		wh = wh | ARMED
#endif
#endif
	:: else
	fi;
	if
	:: res -> wh = wh | PARKED
	:: else -> room_push()
	fi;
	res = 0
}

inline room_push()
{
	d_step { assert(!in_room); in_room = 1; wh = wh & ~PARKED }
}

/* The line was popped from inbox[me]; sq, h as the tag says. */
inline take_in(me)
{
#ifndef MUTANT_UNLINK_AFTER_LOOK
	linked = 0;
#endif
	d_step { q = seq; h = seq & 1; ok = (tagst == OWNED) }
	if
	:: ok ->
		ok = 0;
		enter(me, h);
		if
		:: !in ->
#ifndef MUTANT_STRANGER_KEEPS_TOKEN
			token_put(me, q); ok = 0;
#endif
#ifdef MUTANT_UNLINK_AFTER_LOOK
			linked = 0;
#endif
			notify(me, q)
		:: in && seq == q ->
#ifdef MUTANT_OWNER_IGNORES_ARMED_WORD
			skip;
#else
			token_take(me, q);
#endif
			d_step { w = rem0; ok = 0 }
			if
			:: (wh & ARMED) && !(w & TOK) ->
				wh = wh & ~ARMED;
				if
				:: wh & PARKED ->
					free_bits(me);
					if
					:: cnt >= T -> room_push()
					:: else -> park(me, q)
					fi
				:: else
				fi
			:: else
			fi;
			w = 0;
			cnt = 0;
			leave(me, h)
		:: in && seq != q -> leave(me, h)
		fi
	:: else
	fi;
#ifdef MUTANT_UNLINK_AFTER_LOOK
	linked = 0;
#endif
	d_step { q = 0; h = 0; in = 0; ok = 0 }
}

inline drain_inbox(me, to)
{
	d_step { mm_drain(me); res = inbox[me]; inbox[me] = to }
	if
	:: res == LINE -> res = 0; take_in(me)
	:: else -> res = 0
	fi
}

inline adopt(me)
{
	d_step {
		mm_drain(me);
		if
		:: hw[0] == DETACHED -> hw[0] = HW(LIVE, me); inb[me] = 1; ok = 1
		:: else -> ok = 0
		fi
	}
	if
	:: ok ->
		/* the walk: cached rooms are rebuilt from the words */
		ok = 0; q = seq;
		wh = wh & ~PARKED;
		free_bits(me);
		if
		:: cnt >= T -> room_push()
#ifdef MUTANT_ADOPTER_PARKS_UNARMED
		:: else -> wh = wh | PARKED
#else
		:: else -> park(me, q)
#endif
		fi;
		d_step { cnt = 0; q = 0 }
		leave(me, 0)
	:: else
	fi
}

inline work(me, h0)
{
	do
	:: n > 0 ->
		if
		/* uses up the line in the room, then parks it */
		:: in_room && hw[h0] == HW(LIVE, me) ->
			n--;
			enter(me, h0);
			if
			:: in && in_room ->
				in_room = 0;
				/* refill: remote -> freed -> avail -> users, in one step here */
				d_step { mm_drain(me);
					w = BITS(rem0, rem1) | mem[L_FR];
					assert(!(w & live));
					rem0 = rem0 & ~3; rem1 = rem1 & ~1; mem[L_FR] = 0;
					live = live | w; w = 0 }
				q = seq;
				park(me, q);
				q = 0;
				leave(me, h0)
			:: else
			fi;
			if :: in && inb[me] -> leave(me, h0) :: else fi
		/* frees one locally */
		:: d_step { hw[h0] == HW(LIVE, me) && (live & ~claim) && seq == h0 ->
			    n--;
			    hb = live & ~claim; hb = hb & ~(hb - 1); claim = claim | hb }
			enter(me, h0);
			if
			:: in ->
				d_step { mm_get(me, L_FR, fr); fr = fr | hb }
				PUT(me, L_FR, fr);
				d_step { live = live & ~hb; claim = claim & ~hb; hb = 0; fr = 0 }
				if
				:: (wh & PARKED) ->
					free_bits(me);
					if
					:: cnt >= T -> room_push()
					:: else
					fi
				:: else
				fi;
				cnt = 0;
				leave(me, h0)
			:: else -> d_step { if :: seq == h0 -> claim = claim & ~hb :: else fi; hb = 0 }
			fi
		:: inbox[me] == LINE -> n--; drain_inbox(me, EMPTY)
		:: break
		fi;
		in = 0
	:: n == 0 -> break
	od
}

/* Everybody else is through; whoever slept wakes up and empties its inbox. */
inline wake_up(me)
{
	(done >= NPROC);
	do
	:: d_step { inbox[me] == LINE && !waking -> waking = 1 }
		drain_inbox(me, EMPTY); waking = 0
	:: inbox[0] != LINE && inbox[1] != LINE && !waking -> break
	od;
	done = done + 10
}

proctype ownerA()
{
	byte q, w, cnt, fr, ok, hx, hb, res, in, h, n;
	/* the current line is used up: all its slots are out; the owner finds that out, or leaves before */
	if
	:: true ->
		enter(0, 0);
		if
		:: in -> in_room = 0; park(0, 0); leave(0, 0)
		:: else
		fi;
		in = 0
	:: true
	fi;
	n = NOPS_A;
	work(0, 0);
#if defined(S_EXIT) || defined(S_REBORN)
	if
	:: true ->
		/* detach: the store is seq_cst; the room is thrown away */
		d_step { mm_drain(0); in_room = 0; hw[0] = DETACHED }
		drain_inbox(0, SHUT);
#ifdef S_REBORN
		if
		:: true -> inbox[0] = EMPTY; adopt(0); n = 1; work(0, 0)
		:: true
		fi
#endif
	:: true
	fi;
#endif
#ifdef S_TRIM
	if
	:: hw[0] == DETACHED -> adopt(0)
	:: true
	fi;
#endif
	done++;
	wake_up(0)
}

proctype ownerB()
{
	byte q, w, cnt, fr, ok, hx, hb, res, in, h, n;
#ifdef S_REUSE
	/* the slab comes from the pool with a later seq; its users take everything */
	if
	:: tagst == POOL ->
		d_step { mem[L_FR] = 0; wh = 0; in_room = 0;
			 hw[1] = HW(LIVE, 1); inb[1] = 1; tagst = OWNED; live = SLOTS }
		q = seq; park(1, q); q = 0;
		leave(1, 1);
		n = NOPS;
		work(1, 1)
	:: true
	fi;
#elif !defined(S_REBORN)
	if
	:: hw[0] == DETACHED -> adopt(1); n = NOPS; work(1, 0)
	:: true
	fi;
#endif
	done++;
	wake_up(1)
}

#ifdef S_REUSE
/* A releaser: deferred while A is in its bracket. */
proctype releaser()
{
	if
	:: d_step { !inb[0] && hw[0] == HW(LIVE, 0) ->
		    mm_drain(0); hw[0] = DEAD; in_room = 0 }
		/* claim, then the exchanges that decide racing frees; live ones end */
		d_step { tagst = POOL + 1; seq = seq + 1 }
		d_step { rem0 = seq << 3; live = live & 4; claim = claim & 4 }
		d_step { rem1 = seq << 1; live = 0; claim = 0 }
		tagst = POOL
	:: true
	fi;
	done++
}
#endif

#ifdef S_TRIM
proctype trimmer()
{
	byte n = NTRIM;
	do
	:: n > 0 ->
		n--;
		if
		:: d_step { hw[0] == HW(LIVE, 0) -> hw[0] = HW(REVOKED, 0) }
			/* membarrier; then seize if the owner is not in, else it revives */
			if
			:: d_step { hw[0] == HW(REVOKED, 0) && !inb[0] -> mm_drain(0); hw[0] = SEIZED; in_room = 0 }
				hw[0] = DETACHED
			:: d_step { hw[0] == HW(REVOKED, 0) && !inb[0] -> mm_drain(0); hw[0] = HW(LIVE, 0) }
			:: hw[0] != HW(REVOKED, 0)
			fi
		:: break
		fi
	:: n == 0 -> break
	od;
	done++
}
#endif


init
{
	atomic {
		hw[0] = HW(LIVE, 0);
		live = SLOTS; in_room = 1;
#if NTH
		run flusher(0);
#endif
		run ownerA();
#ifndef S_COUNT
		run ownerB();
#endif
		run freer(F1); run freer(F2);
#ifdef S_REUSE
		run releaser();
#endif
#ifdef S_TRIM
		run trimmer();
#endif
	}
	d_step {
		done == NPROC + 10 * OWNERS && ALL_OUT ->
		/* the last owner's room has the line, if enough of it is free */
		if
		:: tagst == OWNED && HST(hw[seq & 1]) == LIVE &&
		   POP3(BITS(rem0, rem1) | mem[L_FR]) >= 2 * T - 1 ->
			assert(in_room)
		:: else
		fi
	}
}
